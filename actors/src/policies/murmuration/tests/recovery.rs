//! Caches under crashes and partitions.

use super::*;

/// A restarted node restarts its task count, and its reports are accepted.
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

/// A task that never reached its node is withdrawn from all caches and placed again.
#[test]
fn an_undelivered_task_is_withdrawn() {
    let layout = Layout::new(2, 0, [1, 1]);
    let mut s1 = scheduler(&unbatched(), 0, &layout, 1);
    let (to, msg) = sends(&s1.submit(5))[0];
    let back = s1.step(Input::Undelivered { to, msg });
    let sent_out: Vec<_> = sends(&back).iter().map(|(_, msg)| msg.name()).collect();
    assert_eq!(sent_out, ["gossip.withdrawn", "launch.row", "gossip.placed"]);
}

/// The work of a crashed node is forgotten and placed on another node. Later updates about the node's earlier epoch
/// are ignored.
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
    assert_eq!(learnt(&noted), [(1, 9)], "work placed before the crash is forgotten");
    assert_eq!(placements(&s1.submit(1)), [(0, 0), (0, 1)]);
}

/// A scheduler that was down gets the updates that it missed. A scheduler that was only cut off gets undelivered
/// updates again.
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
    assert_eq!((later.0, later.1.name()), (cut, "gossip.placed"), "only live schedulers get the update");
    assert_eq!(sends(&s1.step(Input::Up { actor: dead })), [(dead, update), (dead, later.1)]);
}

/// A node that is back before its crash was detected gets tasks sent before the crash. Neither these tasks nor their
/// ends change the cache.
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
        assert_eq!(back.receive(s1.me, task(job, decided)).len(), 1, "the task runs");
        let done = back.deliver(layout.worker(0, 0), Core::Ended { copy: JobId(job).task(0).copy(0) });
        let [update @ Message::Gossip(Gossip::Ended(ended))] = broadcasts(&done)[..] else {
            panic!("{done:?}")
        };
        assert_eq!(ended.counts_from, second(decided));
        let expected = if counts { vec![(0, -i64::from(job))] } else { Vec::new() };
        assert_eq!(learnt(&s1.deliver(back.me, update)), expected);
    }
}

/// The tasks of a job are announced together when the last is placed, but each is accepted or ignored by its own
/// decision time. Placements on a node that crashed in between are ignored.
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
    assert_eq!(seen, [(first, 8), (third, 8)], "the first placement does not count");
}

/// Both nodes crash and return before their crashes are detected. The task of the first node is placed on the second
/// one just before the scheduler sets the work of the second node to zero.
#[test]
fn a_placement_in_the_instant_of_a_crash_is_withdrawn_from_other_caches_only() {
    let layout = Layout::new(2, 0, [1, 1]);
    let mut s1 = scheduler(&unbatched(), 0, &layout, 1);
    let (first, _) = sends(&s1.submit(5))[0];
    s1.now = Time(7);
    let (second, msg) = sends(&s1.step(Input::Down { actor: first }))[0];
    s1.step(Input::Down { actor: second });
    let number = layout.node_number(second);
    assert_eq!(placements(&s1.step(Input::Up { actor: second })), [(number, 0)]);
    let sent = sends(&s1.step(Input::Undelivered { to: second, msg }));
    assert_eq!(sent.iter().map(|(_, msg)| msg.name()).collect::<Vec<_>>(), ["gossip.withdrawn"]);
    assert_eq!(placements(&s1.submit(6)), [(number, 5)], "the task that waits there counts once");
}

/// A task that finds no node is sent as soon as one is back, as a repair with the next attempt number.
#[test]
fn a_task_without_a_node_waits_until_one_is_back() {
    let layout = Layout::new(1, 0, [1]);
    let (mut s1, node) = (scheduler(&unbatched(), 0, &layout, 1), layout.node(0));
    s1.step(Input::Down { actor: node });
    assert_eq!(placements(&s1.submit(5)), []);
    assert_eq!(s1.step(Input::Fire(Timer::Node(0))), [], "the node is down");
    let back = s1.step(Input::Up { actor: node });
    let launch = Launch::Task { copy: JobId(5).task(0).copy(1), at: Time::ZERO };
    assert!(back.contains(&Effect::Send { to: node, msg: launch.into(), recovery: true }), "{back:?}");
}

/// A node that could not be reached is not chosen for a while, however little work it has. Tasks returned from a node
/// that was reported down no longer change the cache.
#[test]
fn an_unreachable_node_is_not_chosen_for_a_while() {
    let layout = Layout::new(2, 0, [1, 1]);
    let mut s1 = scheduler(&unbatched(), 0, &layout, 1);
    let (to, msg) = sends(&s1.submit(5))[0];
    let (cut, other) = (layout.node_number(to), 1 - layout.node_number(to));
    let back = s1.step(Input::Undelivered { to, msg });
    let tick = Timer::Node(cut);
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
    assert_eq!(placements(&s1.submit(8))[0].0, other, "the node is down");
}
