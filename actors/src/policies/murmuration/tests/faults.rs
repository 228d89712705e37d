//! Caches under crashes and partitions.

use super::*;

#[test]
fn inconsistent_parameters_are_refused() {
    let layout = Layout::new(2, 0, [1]);
    let wrong = |config: Murmuration| config.check(&layout).unwrap_err();
    let spread = MurmurationSpread::Epidemic;
    for fan_out in [0, u32::MAX] {
        let error = wrong(Murmuration { spread, fan_out, ..unbatched() });
        assert!(error.starts_with("fan_out: must be from 1 to 65536"), "{error}");
    }
    let (repair, update_delay) = (Span::from_secs(1), Span::from_secs(2));
    let error = wrong(Murmuration { repair, update_delay, ..unbatched() });
    assert!(error.starts_with("update_delay: 2s is longer than repair, 1s"), "{error}");
    let fcfs = Murmuration::default();
    for (key, config) in [
        ("rank", Murmuration { rank: MurmurationRank::Job, ..fcfs }),
        ("bypass", Murmuration { bypass: 5.0, ..fcfs }),
        ("preemptive", Murmuration { preemptive: true, ..fcfs }),
    ] {
        let error = wrong(config);
        assert!(error.starts_with(&format!("{key}: has no effect with order = \"fcfs\"")), "{error}");
    }
}

/// A restarted node restarts its task count, so its reports are accepted.
#[test]
fn a_report_counts_tasks_since_the_nodes_last_crash() {
    let config = Murmuration { repair: Span::from_secs(5), ..unbatched() };
    let layout = Layout::new(1, 0, [1]);
    let mut s1 = scheduler(&config, 0, &layout, 1);
    s1.submit(5);
    s1.now = Time(7);
    s1.step(Input::Down { actor: layout.node(0) });
    s1.step(Input::Up { actor: layout.node(0) });
    s1.now = Time(9);
    let (work, at, number) = (Span::from_secs(2), s1.now, 1 << 24);
    s1.deliver(layout.node(0), Gossip::Backlog(BacklogReport { work, at, number, came: 1 }));
    assert_eq!(placements(&s1.submit(1)), [(0, 2)]);
}

/// A task that never reached its node is withdrawn everywhere and placed again.
#[test]
fn an_undelivered_task_is_withdrawn() {
    let layout = Layout::new(2, 0, [1, 1]);
    let mut s1 = scheduler(&unbatched(), 0, &layout, 1);
    let (to, msg) = sends(&s1.submit(5))[0];
    let back = s1.step(Input::Undelivered { to, msg });
    let sent_out: Vec<_> = sends(&back).iter().map(|(_, msg)| msg.name()).collect();
    assert_eq!(sent_out, ["gossip.withdrawn", "launch.row", "gossip.placed"]);
}

/// The work of a crashed node is forgotten and placed elsewhere; later updates about its earlier epoch are ignored.
#[test]
fn the_work_of_a_crashed_node_is_forgotten() {
    let layout = Layout::new(2, 0, [1, 1]);
    let mut s1 = scheduler(&unbatched(), 0, &layout, 2);
    s1.submit(6);
    s1.now = Time(1_000_000_000);
    let again = s1.step(Input::Down { actor: layout.node(0) });
    assert_eq!(placements(&again), [(1, 6)]);
    let late = PlacementUpdate {
        at: Time(500_000_000),
        job: JobId(9),
        nodes: [0, 1],
        number: 0,
        origin: 1,
        form: PlacementForm::Batch,
        rumour: false,
    };
    s1.step(Input::Up { actor: layout.node(0) });
    let noted = s1.deliver(layout.scheduler(1), Gossip::Placed(late));
    assert_eq!(learnt(&noted), [(1, 9)], "what was placed before the crash is gone");
    assert_eq!(placements(&s1.submit(1)), [(0, 0), (0, 1)]);
}

/// A scheduler that was down gets the updates it missed; one that was only cut off gets them again.
#[test]
fn missed_updates_are_sent_again() {
    let layout = Layout::new(3, 0, [1, 1]);
    let mut s1 = scheduler(&unbatched(), 0, &layout, 1);
    let (cut, dead) = (layout.scheduler(1), layout.scheduler(2));
    let update = broadcasts(&s1.submit(5))[0];
    assert_eq!(sends(&s1.step(Input::Undelivered { to: cut, msg: update })), [(cut, update)]);
    s1.step(Input::Down { actor: dead });
    assert_eq!(s1.step(Input::Undelivered { to: dead, msg: update }), []);
    let later = sends(&s1.submit(6))[1];
    assert_eq!((later.0, later.1.name()), (cut, "gossip.placed"), "only those alive");
    assert_eq!(sends(&s1.step(Input::Up { actor: dead })), [(dead, update), (dead, later.1)]);
}

/// A node that is back before its crash was detected gets tasks sent before the crash. They are no longer counted, and
/// neither is their end.
#[test]
fn messages_from_before_a_crash_leave_the_cache_unchanged() {
    let layout = Layout::new(1, 0, [1]);
    let (mut s1, mut back) = (scheduler(&unbatched(), 0, &layout, 1), node(&unbatched(), &layout));
    let second = |seconds| Time::ZERO + Span::from_secs(seconds);
    (s1.now, back.now) = (second(10), second(11));
    s1.step(Input::Down { actor: back.me });
    s1.step(Input::Up { actor: back.me });
    back.step(Input::Start { epoch: 1 });
    for (job, decided, counts) in [(3, 9, false), (4, 10, true)] {
        assert_eq!(back.receive(s1.me, task(job, decided)).len(), 1, "it runs");
        let done = back.deliver(layout.worker(0, 0), Core::Ended { copy: JobId(job).task(0).copy(0) });
        let [update @ Message::Gossip(Gossip::Ended(ended))] = broadcasts(&done)[..] else {
            panic!("{done:?}")
        };
        assert_eq!(ended.since, second(decided));
        let expected = if counts { vec![(0, -i64::from(job))] } else { Vec::new() };
        assert_eq!(learnt(&s1.deliver(back.me, update)), expected);
    }
}

/// Tasks of a job are announced when the last one is placed, but each is judged by its own decision time: placements on
/// a node that crashed in between do not count.
#[test]
fn each_task_of_a_batch_is_judged_by_its_own_decision_time() {
    let config = Murmuration { decision_per_task: Span::from_secs(1), ..Murmuration::default() };
    let layout = Layout::new(2, 0, [1, 1]);
    let mut both = [0, 1].map(|i| scheduler(&config, i, &layout, 3));
    both[0].submit(8);
    let decide = |s1: &mut Harness, seconds| {
        s1.now = Time::ZERO + Span::from_secs(seconds);
        s1.step(Input::Fire(Timer::Tick(0)))
    };
    let first = placements(&decide(&mut both[0], 1))[0].0;
    let node = layout.node(first);
    both.iter_mut().for_each(|bench| bench.now = Time::ZERO + Span::from_millis(1500));
    let [s1, s2] = &mut both;
    let again = s1.step(Input::Down { actor: node });
    s2.step(Input::Down { actor: node });
    assert_eq!(placements(&again), [(1 - first, 0)]);
    for update in broadcasts(&again).into_iter().chain(sends(&again).into_iter().map(|(_, msg)| msg)) {
        if let Message::Gossip(_) = update {
            assert_eq!(learnt(&s2.deliver(s1.me, update)), [(1 - first, 8)]);
        }
    }
    s1.step(Input::Up { actor: node });
    s2.step(Input::Up { actor: node });
    assert_eq!(placements(&decide(s1, 2)), [(first, 0)]);
    let last = decide(s1, 3);
    let third = placements(&last)[0].0;
    let seen: Vec<_> =
        broadcasts(&last).iter().flat_map(|&update| learnt(&s2.deliver(s1.me, update))).collect();
    assert_eq!(seen, [(first, 8), (third, 8)], "not the first one");
}

/// A node that could not be reached is not chosen for a while, however little work it has; and tasks returned from a
/// node that was reported down change nothing any more.
#[test]
fn an_unreachable_node_is_not_chosen_for_a_while() {
    let layout = Layout::new(2, 0, [1, 1]);
    let mut s1 = scheduler(&unbatched(), 0, &layout, 1);
    let (to, msg) = sends(&s1.submit(5))[0];
    let (cut, other) = (layout.node_number(to), 1 - layout.node_number(to));
    let back = s1.step(Input::Undelivered { to, msg });
    let tick = Timer::Tick(4 + cut);
    assert!(back.contains(&Effect::Arm { timer: tick, after: Span::from_secs(1) }), "{back:?}");
    assert_eq!(placements(&back), [(other, 0)]);
    assert_eq!(placements(&s1.submit(6)), [(other, 5)]);
    s1.now = Time::ZERO + Span::from_secs(1);
    s1.step(Input::Fire(tick));
    let (to, msg) = {
        let effects = s1.submit(7);
        assert_eq!(placements(&effects), [(cut, 0)]);
        sends(&effects)[0]
    };
    s1.now += Span::from_secs(1);
    s1.step(Input::Down { actor: to });
    s1.step(Input::Up { actor: to });
    assert_eq!(s1.step(Input::Undelivered { to, msg }), []);
    s1.step(Input::Down { actor: to });
    s1.step(Input::Fire(tick));
    assert_eq!(placements(&s1.submit(8))[0].0, other, "it is down");
}
