//! The paper's worked examples.

mod recovery;

use super::config::{
    Copying, Murmuration, MurmurationNews, MurmurationOrder, MurmurationRank, MurmurationSpread,
    MurmurationTies, MurmurationWait,
};
use crate::base::{ActorId, JobId, Parameters as _, Span, Time};
use crate::harness::{Harness, broadcasts, sends};
use crate::layout::Layout;
use crate::machine::{CacheNote, Effect, Input, Note, Oracle, Timer};
use crate::message::{
    BacklogReport, Core, EndUpdate, Gossip, Launch, Message, PlacementForm, PlacementUpdate,
};
use crate::policies::policy::Policy as _;

/// A watched scheduler; job j of the bench is estimated at j seconds.
fn scheduler(config: &Murmuration, index: u32, layout: &Layout, tasks: u32) -> Harness {
    let me = layout.scheduler(index);
    Harness::new(layout.clone(), me, tasks, config.machine(me, layout, true, true))
}

fn node(config: &Murmuration, layout: &Layout) -> Harness {
    let me = layout.node(0);
    Harness::new(layout.clone(), me, 1, config.machine(me, layout, true, false))
}

fn unbatched() -> Murmuration {
    Murmuration { batch: false, ..Murmuration::default() }
}

/// A launch of the first task of a job, with the placement time in seconds.
fn task(job: u32, seconds: u64) -> Launch {
    Launch::Task { copy: JobId(job).task(0).copy(0), at: Time::ZERO + Span::from_secs(seconds) }
}

/// The nodes on which tasks were placed, each with the work expected ahead of the task, s.
fn placements(effects: &[Effect]) -> Vec<(u32, i64)> {
    let placed = |effect: &Effect| match *effect {
        Effect::Note(Note::Cache(CacheNote::Placed { node, believed, .. })) => {
            Some((node, believed / 1_000_000_000))
        }
        _ => None,
    };
    effects.iter().filter_map(placed).collect()
}

/// The changes that a watched scheduler learnt: nodes and changes, s.
fn learnt(effects: &[Effect]) -> Vec<(u32, i64)> {
    let learnt = |effect: &Effect| match *effect {
        Effect::Note(Note::Cache(CacheNote::Learnt { node, change, .. })) => {
            Some((node, change / 1_000_000_000))
        }
        _ => None,
    };
    effects.iter().filter_map(learnt).collect()
}

fn ended(layout: &Layout, node: u32, number: u32, seconds: u64) -> (ActorId, Gossip) {
    let (estimate, counts_from) = (Span::from_secs(seconds), Time::ZERO);
    (layout.node(node), Gossip::Ended(EndUpdate { node, number, estimate, counts_from }))
}

/// Fig. 7: the first of two schedulers gets a job of two tasks of 3 s, for two idle nodes. Each task gets its own
/// node. 2 messages announce placements and 4 announce ends; the cached work goes from 0 to 3 and back to 0.
#[test]
fn caches_follow_the_steps_of_figure_7() {
    let layout = Layout::new(2, 0, [1, 1]);
    let [mut s1, mut s2] = [0, 1].map(|i| scheduler(&unbatched(), i, &layout, 2));
    let effects = s1.submit(3);
    let placed = placements(&effects);
    let (first, second) = (placed[0].0, placed[1].0);
    assert_eq!(placed, [(first, 0), (second, 0)]);
    assert_ne!(first, second, "the second task finds 3 s at the first node");
    let sent_out = |effects: &[Effect], receivers: u32| broadcasts(effects).len() as u32 * receivers;
    let mut messages = sent_out(&effects, layout.schedulers() - 1);
    for (update, node) in broadcasts(&effects).into_iter().zip([first, second]) {
        assert_eq!(update.name(), "gossip.placed");
        assert_eq!(learnt(&s2.deliver(s1.me, update)), [(node, 3)]);
    }
    assert_eq!(messages, 2, "each task needs one message to the other scheduler");
    // The tasks reach their nodes, run, and end.
    for (to, msg) in sends(&effects) {
        let Message::Launch(Launch::Task { copy, .. }) = msg else { panic!("{msg:?}") };
        let mut manager = node(&unbatched(), &layout);
        manager.me = to;
        let worker = layout.worker(0, 0);
        assert_eq!(manager.receive(s1.me, msg), [(worker, Core::run(copy).into())]);
        let done = manager.deliver(worker, Core::Ended { copy });
        assert_eq!(sends(&done), [(s1.me, Launch::Completed { copy }.into())]);
        let [Message::Gossip(Gossip::Ended(update))] = broadcasts(&done)[..] else { panic!("{done:?}") };
        assert_eq!(update.estimate, Span::from_secs(3));
        messages += sent_out(&done, layout.schedulers());
    }
    for node in [first, second] {
        let (from, update) = ended(&layout, node, 0, 3);
        assert_eq!(learnt(&s1.deliver(from, update)), [(node, -3)]);
        assert_eq!(learnt(&s2.deliver(from, update)), [(node, -3)]);
    }
    assert_eq!(messages, 6);
    // Both caches are empty again: one more task finds no work at any node.
    assert!(placements(&s1.submit(5)).iter().all(|&(_, believed)| believed == 0));
    assert!(placements(&s2.submit(5)).iter().all(|&(_, believed)| believed == 0));
}

/// Fig. 8: both schedulers expect 10 s at a node. At the same time one places 3 s there and the other 4 s. Each
/// sees its own task first (13 and 14 s), and both see 17 s once the updates have arrived, in either order.
#[test]
fn caches_agree_after_the_conflict_of_figure_8() {
    for order in [[0, 1], [1, 0]] {
        let layout = Layout::new(2, 0, [1]);
        let mut both = [0, 1].map(|i| scheduler(&unbatched(), i, &layout, 1));
        for (own, bench) in both.iter_mut().enumerate() {
            // The ten seconds are a task of the other scheduler.
            let origin = 1 - own as u32;
            let placed = PlacementUpdate {
                at: Time::ZERO,
                job: JobId(10),
                nodes: [0, PlacementUpdate::NO_NODE],
                number: 0,
                origin,
                form: PlacementForm::Single,
                rumour: false,
            };
            let from = layout.scheduler(origin);
            assert_eq!(learnt(&bench.deliver(from, Gossip::Placed(placed))), [(0, 10)]);
        }
        let mut update: Vec<(usize, Message)> = Vec::new();
        for (own, job) in [(0, 3), (1, 4)] {
            let effects = both[own].submit(job);
            assert_eq!(placements(&effects), [(0, 10)]);
            update.extend(broadcasts(&effects).into_iter().map(|msg| (own, renumbered(msg))));
        }
        for i in order {
            let (own, msg) = update[i];
            both[1 - own].deliver(layout.scheduler(own as u32), msg);
        }
        assert_eq!(placements(&both[0].submit(1)), [(0, 17)]);
        assert_eq!(placements(&both[1].submit(1)), [(0, 17)]);
    }
    for (own, sees) in [(3, 13), (4, 14)] {
        let layout = Layout::new(2, 0, [1]);
        let mut alone = scheduler(&unbatched(), 0, &layout, 1);
        alone.submit(10);
        assert_eq!(placements(&alone.submit(own)), [(0, 10)]);
        assert_eq!(placements(&alone.submit(1)), [(0, sees)], "a scheduler counts its own task at once");
    }
}

/// The same placement update with the next number.
fn renumbered(msg: Message) -> Message {
    let Message::Gossip(Gossip::Placed(placed)) = msg else { panic!("{msg:?}") };
    Gossip::Placed(PlacementUpdate { number: placed.number + 1, ..placed }).into()
}

/// A batch is one message for any number of tasks.
#[test]
fn a_batch_is_one_message() {
    let layout = Layout::new(3, 0, vec![1; 20]);
    let mut batched = scheduler(&Murmuration::default(), 0, &layout, 15);
    let update = broadcasts(&batched.submit(2));
    assert_eq!(update.iter().filter(|msg| !msg.is_fragment()).count(), 1);
    let mut other = scheduler(&Murmuration::default(), 1, &layout, 15);
    let seen: Vec<_> = update.iter().flat_map(|&msg| learnt(&other.deliver(batched.me, msg))).collect();
    let mut nodes: Vec<_> = seen.iter().map(|&(node, _)| node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    assert_eq!((seen.len(), nodes.len()), (15, 15), "the tasks go to fifteen idle nodes");
    assert!(seen.iter().all(|&(_, change)| change == 2));
    let mut single = scheduler(&unbatched(), 0, &layout, 15);
    assert_eq!(broadcasts(&single.submit(2)).len(), 15);
}

/// The update of an end may overtake the update of the placement. The expected work is negative in between, and
/// correct afterwards.
#[test]
fn expected_work_is_correct_for_any_order_of_updates() {
    let layout = Layout::new(2, 0, [1]);
    let mut s1 = scheduler(&unbatched(), 0, &layout, 1);
    let mut s2 = scheduler(&unbatched(), 1, &layout, 1);
    let update = broadcasts(&s1.submit(7))[0];
    let (from, end) = ended(&layout, 0, 0, 7);
    s2.deliver(from, end);
    assert_eq!(placements(&s2.submit(1)), [(0, -7)]);
    s2.deliver(s1.me, update);
    assert_eq!(placements(&s2.submit(2)), [(0, 1)]);
    assert_eq!(learnt(&s2.deliver(s1.me, update)), [], "a duplicate update counts once");
}

/// Section 6.2.4: 100 ms for a job and 5 ms for each of its tasks. Messages that arrive meanwhile wait.
#[test]
fn updates_wait_while_a_decision_takes_time() {
    let config = Murmuration {
        decision_per_job: Span::from_millis(100),
        decision_per_task: Span::from_millis(5),
        ..Murmuration::default()
    };
    let layout = Layout::new(2, 0, [1, 1]);
    let mut s1 = scheduler(&config, 0, &layout, 2);
    let arm = |ms| Effect::Arm { timer: Timer::Tick(0), after: Span::from_millis(ms) };
    assert_eq!(s1.submit(3), [arm(105)]);
    assert_eq!(s1.submit(2), [], "jobs are placed one after the other");
    let (from, end) = ended(&layout, 0, 0, 9);
    assert_eq!(s1.deliver(from, end), []);
    let first = s1.step(Input::Fire(Timer::Tick(0)));
    assert_eq!(placements(&first)[0].1, 0, "updates that arrived meanwhile are not applied yet");
    assert_eq!(first.last(), Some(&arm(5)));
    let second = s1.step(Input::Fire(Timer::Tick(0)));
    assert_eq!((placements(&second).len(), broadcasts(&second).len()), (1, 1));
    assert_eq!(learnt(&second), [(0, -9)]);
    assert_eq!(second.last(), Some(&arm(105)), "the decision on the next job begins");
}

#[test]
fn srjf_takes_the_smallest_job_and_the_shortest_task() {
    let config = Murmuration {
        order: MurmurationOrder::Srjf,
        decision_per_job: Span::from_millis(100),
        ..Murmuration::default()
    };
    let layout = Layout::new(1, 0, [1]);
    let mut s1 = scheduler(&config, 0, &layout, 2);
    [4, 9, 2].into_iter().for_each(|job| drop(s1.submit(job)));
    let mut order = Vec::new();
    for _ in 0..3 {
        let sent = sends(&s1.step(Input::Fire(Timer::Tick(0))));
        let Message::Launch(Launch::Task { copy, .. }) = sent[0].1 else { panic!("{sent:?}") };
        order.push(copy.task.job.0);
    }
    assert_eq!(order, [4, 2, 9], "job 4 was being placed when the others arrived");
    let mut manager = node(&config, &layout);
    [4, 9, 2].into_iter().for_each(|job| drop(manager.receive(s1.me, task(job, 0))));
    let next = manager.ended(JobId(4).task(0).copy(0));
    let run = Core::run(JobId(2).task(0).copy(0)).into();
    assert!(next.contains(&(layout.worker(0, 0), run)), "{next:?}");
}

/// The jobs of the tasks that are sent to nodes.
fn launched(effects: &[Effect]) -> Vec<u32> {
    let job = |(_, msg)| match msg {
        Message::Launch(Launch::Task { copy, .. }) => Some(copy.task.job.0),
        _ => None,
    };
    sends(effects).into_iter().filter_map(job).collect()
}

/// Job 6 has 18 s of work. After its first task, job 2 comes first, with 6 s. The 100 ms of a job are spent once, and
/// each piece of a job that is placed without interruption is a batch.
#[test]
fn a_preemptive_scheduler_chooses_a_job_after_each_task() {
    let config = Murmuration {
        order: MurmurationOrder::Srjf,
        preemptive: true,
        decision_per_job: Span::from_millis(100),
        decision_per_task: Span::from_millis(5),
        ..Murmuration::default()
    };
    let layout = Layout::new(2, 0, [1]);
    let mut s1 = scheduler(&config, 0, &layout, 3);
    let arm = |ms| Effect::Arm { timer: Timer::Tick(0), after: Span::from_millis(ms) };
    assert_eq!(s1.submit(6), [arm(105)]);
    s1.submit(2);
    let mut seen = Vec::new();
    for _ in 0..6 {
        let effects = s1.step(Input::Fire(Timer::Tick(0)));
        let batches = broadcasts(&effects).iter().filter(|msg| !msg.is_fragment()).count();
        let next = effects.iter().find(|effect| matches!(effect, Effect::Arm { .. })).copied();
        seen.push((launched(&effects)[0], batches, next));
    }
    let (job, task) = (Some(arm(105)), Some(arm(5)));
    let expected = [(6, 1, job), (2, 0, task), (2, 0, task), (2, 1, task), (6, 0, task), (6, 1, None)];
    assert_eq!(seen, expected);
}

/// Updates that arrive while the first task is being placed are applied before the second. A request for the cache is
/// answered only once the whole job is announced.
#[test]
fn updates_are_applied_between_the_tasks_of_a_job() {
    let config = Murmuration {
        news: MurmurationNews::BetweenTasks,
        decision_per_task: Span::from_millis(5),
        ..Murmuration::default()
    };
    let layout = Layout::new(2, 0, [1, 1]);
    let mut s1 = scheduler(&config, 0, &layout, 2);
    s1.submit(3);
    let (from, end) = ended(&layout, 0, 0, 9);
    assert_eq!(s1.deliver(from, end), []);
    assert_eq!(s1.deliver(layout.scheduler(1), Gossip::Ask { epoch: 1 }), []);
    let first = s1.step(Input::Fire(Timer::Tick(0)));
    assert_eq!((placements(&first)[0].1, learnt(&first)), (0, vec![(0, -9)]));
    assert_eq!(sends(&first).len(), 1, "the scheduler sends the task and no answer");
    let second = s1.step(Input::Fire(Timer::Tick(0)));
    assert_eq!(placements(&second), [(0, if placements(&first)[0].0 == 0 { -6 } else { -9 })]);
    assert!(sends(&second).iter().any(|(_, msg)| matches!(msg, Message::Gossip(Gossip::Answer { .. }))));
}

#[test]
fn ties_go_to_the_node_with_the_lowest_number() {
    let config = Murmuration { ties: MurmurationTies::Lowest, ..unbatched() };
    let layout = Layout::new(1, 0, [1; 5]);
    let mut s1 = scheduler(&config, 0, &layout, 4);
    assert_eq!(placements(&s1.submit(3)), [(0, 0), (1, 0), (2, 0), (3, 0)]);
}

/// Jobs of two tasks wait behind job 9. Job 4 has 8 s of work, job 5 has 10 s, job 6 has 12 s. An oracle knows that
/// both tasks of job 6 and one task of job 5 have begun on other nodes.
#[test]
fn a_node_ranks_tasks_by_total_or_remaining_work_of_their_job() {
    let next = |rank, bypass, oracle| {
        let config = Murmuration { order: MurmurationOrder::Srjf, rank, bypass, ..Murmuration::default() };
        let layout = Layout::new(1, 0, [1]);
        let me = layout.node(0);
        let mut manager = Harness::new(layout.clone(), me, 2, config.machine(me, &layout, true, false));
        manager.oracle = oracle;
        [9, 6, 5, 4].into_iter().for_each(|job| drop(manager.receive(layout.scheduler(0), task(job, 0))));
        let ran = manager.ended(JobId(9).task(0).copy(0));
        let run = ran.iter().find_map(|(_, msg)| match *msg {
            Message::Core(Core::Run { copy, .. }) => Some(copy.task.job.0),
            _ => None,
        });
        run.expect("a task runs")
    };
    let oracle = || {
        let mut oracle = Oracle::new(10);
        [6, 6, 5].into_iter().for_each(|job| oracle.begin(JobId(job)));
        Some(oracle)
    };
    assert_eq!(next(MurmurationRank::Task, 1e9, oracle()), 4);
    assert_eq!(next(MurmurationRank::Job, 1e9, oracle()), 4);
    assert_eq!(next(MurmurationRank::JobLeftOracle, 1e9, oracle()), 6);
    assert_eq!(
        next(MurmurationRank::JobLeftOracle, 1e9, None),
        4,
        "without an oracle all work counts as left"
    );
    assert_eq!(next(MurmurationRank::Job, 0.8, None), 4, "job 5 lets 4 s past");
    assert_eq!(next(MurmurationRank::Job, 0.7, None), 6, "job 5 lets 3.5 s past, job 6 4.2 s");
}

/// A restarted scheduler copies a cache. It applies updates that the copy lacks, and no update that the copy contains.
/// The naive variant applies both.
#[test]
fn updates_contained_in_a_copied_cache_are_not_applied_again() {
    for copy in [Copying::Numbered, Copying::Naive] {
        let config = Murmuration { copy, ..unbatched() };
        let layout = Layout::new(2, 0, [1]);
        let mut owner = scheduler(&config, 1, &layout, 1);
        let (from, first) = ended(&layout, 0, 0, 2);
        let (_, second) = ended(&layout, 0, 1, 3);
        owner.submit(20);
        owner.deliver(from, first);
        let mut back = scheduler(&config, 0, &layout, 1);
        let asked = sends(&back.step(Input::Start { epoch: 1 }));
        assert_eq!(asked, [(owner.me, Gossip::Ask { epoch: 1 }.into())]);
        // Both updates arrive before the answer, which contains the first update.
        back.deliver(from, first);
        back.deliver(from, second);
        assert_eq!(placements(&back.submit(1)), [], "the scheduler has no cache yet");
        let answer = sends(&owner.deliver(back.me, asked[0].1));
        let mut effects = Vec::new();
        answer.iter().for_each(|&(_, part)| effects.extend(back.deliver(owner.me, part)));
        let expected = if copy == Copying::Numbered { 20 - 2 - 3 } else { 20 - 2 - 2 - 3 };
        assert_eq!(placements(&effects), [(0, expected)], "{copy:?}");
    }
}

#[test]
fn without_any_answer_a_scheduler_starts_with_an_empty_cache() {
    let layout = Layout::new(4, 0, [1]);
    let mut back = scheduler(&unbatched(), 0, &layout, 1);
    let asked = |effects: &[Effect]| sends(effects).into_iter().map(|(to, _)| to).collect::<Vec<_>>();
    let mut all = asked(&back.step(Input::Start { epoch: 1 }));
    assert_eq!(all.len(), 2);
    back.submit(1);
    all.extend(asked(&back.step(Input::Fire(Timer::Tick(2)))));
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3].map(|i| layout.scheduler(i)), "each other scheduler is asked once");
    let empty = back.step(Input::Fire(Timer::Tick(2)));
    assert_eq!(placements(&empty), [(0, 0)], "all schedulers have been asked");
}

/// With the authors' clock a recently used node ranks behind a node that was never used, though both are idle.
#[test]
fn with_clocks_a_recently_used_node_ranks_behind_an_unused_one() {
    let config = Murmuration { wait: MurmurationWait::Clock, ..unbatched() };
    let layout = Layout::new(1, 0, [1, 1]);
    let mut s1 = scheduler(&config, 0, &layout, 1);
    s1.now = Time(10_000_000_000);
    let (used, _) = placements(&s1.submit(4))[0];
    let (estimate, counts_from) = (Span::from_secs(4), s1.now);
    let from = layout.node(used);
    s1.deliver(from, Gossip::Ended(EndUpdate { node: used, number: 0, estimate, counts_from }));
    assert_eq!(placements(&s1.submit(5))[0].0, 1 - used);
}

#[test]
fn an_epidemic_update_is_forwarded_once() {
    let config = Murmuration { spread: MurmurationSpread::Epidemic, fan_out: 2, ..unbatched() };
    let layout = Layout::new(6, 0, [1]);
    let mut s1 = scheduler(&config, 0, &layout, 1);
    let sent = sends(&s1.submit(2));
    let names: Vec<_> = sent.iter().map(|(_, msg)| msg.name()).collect();
    assert_eq!(names, ["launch.row", "rumour.placed", "rumour.placed"]);
    let mut s2 = scheduler(&config, 1, &layout, 1);
    let on = sends(&s2.deliver(s1.me, sent[1].1));
    assert_eq!(on.len(), 2);
    assert!(on.iter().all(|&(to, msg)| to != s1.me && to != s2.me && msg == sent[1].1));
    assert_eq!(s2.deliver(s1.me, sent[1].1), [], "a repeated update is ignored");
    assert_eq!(s1.deliver(s2.me, sent[1].1), [], "a scheduler ignores its own update");
}

/// An update that arrives while a restarted scheduler waits for a cache is forwarded when it has one.
#[test]
fn an_epidemic_update_is_forwarded_after_the_copying_of_a_cache() {
    let config = Murmuration { spread: MurmurationSpread::Epidemic, ..unbatched() };
    let layout = Layout::new(2, 0, [1]);
    let mut back = scheduler(&config, 0, &layout, 1);
    back.step(Input::Start { epoch: 1 });
    let update =
        Gossip::ended(true, EndUpdate { node: 0, number: 0, estimate: Span::ZERO, counts_from: Time::ZERO });
    assert_eq!(back.receive(layout.node(0), update), []);
    let empty = back.step(Input::Fire(Timer::Tick(2)));
    assert_eq!(sends(&empty), [(layout.scheduler(1), update.into())]);
    assert_eq!(back.receive(layout.node(0), update), [], "a repeated update is ignored");
}

/// A node's report replaces the node's entry in the cache.
#[test]
fn a_report_replaces_the_cache_entry_of_its_node() {
    let config = Murmuration { repair: Span::from_secs(5), ..unbatched() };
    let layout = Layout::new(1, 0, [1]);
    let mut manager = node(&config, &layout);
    [3, 4].into_iter().for_each(|job| drop(manager.receive(layout.scheduler(0), task(job, 0))));
    let report = sends(&manager.step(Input::Fire(Timer::Beat)));
    let mut s1 = scheduler(&config, 0, &layout, 1);
    s1.submit(50);
    s1.deliver(manager.me, report[0].1);
    assert_eq!(placements(&s1.submit(1)), [(0, 7)]);
}

/// A report does not undo newer updates, such as a task in flight or an applied end. Updates about ends that the report
/// contains are ignored.
#[test]
fn a_report_does_not_undo_newer_updates() {
    let config = Murmuration { repair: Span::from_secs(5), ..unbatched() };
    let layout = Layout::new(1, 0, [1]);
    let mut s1 = scheduler(&config, 0, &layout, 1);
    let says = |work, number, came| {
        Gossip::Backlog(BacklogReport { work: Span::from_secs(work), at: Time(9), number, came })
    };
    let node = layout.node(0);
    s1.submit(5);
    s1.deliver(node, says(0, 0, 0));
    assert_eq!(placements(&s1.submit(6)), [(0, 5)], "the task of 5 s is on its way");
    s1.deliver(node, says(20, 1, 2));
    assert_eq!(learnt(&s1.deliver(node, ended(&layout, 0, 0, 5).1)), [], "the report contains this end");
    assert_eq!(learnt(&s1.deliver(node, ended(&layout, 0, 1, 6).1)), [(0, -6)]);
    s1.deliver(node, says(20, 1, 2));
    assert_eq!(placements(&s1.submit(1)), [(0, 14)], "the report is older than the end");
}

/// A second task preempts the first, which keeps its progress. Both are work of the node until they end or are dropped.
/// A scheduler states no order in which tasks wait.
#[test]
fn a_node_can_serve_tasks_by_least_attained_service() {
    let config = Murmuration { order: MurmurationOrder::Las, ..unbatched() };
    let layout = Layout::new(2, 0, [1]);
    let (s1, s2, worker) = (layout.scheduler(0), layout.scheduler(1), layout.worker(0, 0));
    let mut node = node(&config, &layout);
    let copy = |job| JobId(job).task(0).copy(0);
    let order = |order: Core| (worker, Message::from(order));
    assert_eq!(node.receive(s1, task(5, 1)), [order(Core::run(copy(5)))]);
    assert_eq!(node.receive(s2, task(3, 2)), [order(Core::Suspend { copy: copy(5) })]);
    let left = Span::from_secs(4);
    let sent = node.receive(worker, Core::Suspended { copy: copy(5), left });
    assert_eq!(sent, [order(Core::run(copy(3)))]);
    let effects = node.deliver(worker, Core::Ended { copy: copy(3) });
    let done = (s2, Launch::Completed { copy: copy(3) }.into());
    assert_eq!(sends(&effects), [order(Core::Resume { copy: copy(5), left }), done]);
    let ended = |number, seconds, at: u64| {
        let (estimate, counts_from) = (Span::from_secs(seconds), Time::ZERO + Span::from_secs(at));
        Gossip::Ended(EndUpdate { node: 0, number, estimate, counts_from }).into()
    };
    assert_eq!(broadcasts(&effects), [ended(0, 3, 2)]);
    // The first scheduler crashes. Its task is stopped, and the other scheduler is notified that the task has left.
    let sent = sends(&node.step(Input::Down { actor: s1 }));
    assert_eq!(sent, [order(Core::Stop { copy: copy(5) }), (s2, ended(1, 5, 1))]);
    let mut s1 = scheduler(&config, 0, &layout, 1);
    assert!(s1.submit(6).contains(&Effect::Note(Note::Bound { copy: copy(6) })));
}

#[test]
fn inconsistent_parameters_are_refused() {
    let layout = Layout::new(2, 0, [1]);
    let wrong = |config: Murmuration| config.check(&layout).unwrap_err();
    for fan_out in [0, u32::MAX] {
        let error = Murmuration { fan_out, ..unbatched() }.check_ranges().unwrap_err();
        assert!(error.starts_with("fan_out: must be between 1 and 65536"), "{error}");
    }
    let (repair, update_delay) = (Span::from_secs(1), Span::from_secs(2));
    let error = wrong(Murmuration { repair, update_delay, ..unbatched() });
    assert!(error.starts_with("update_delay: 2s is longer than repair, 1s"), "{error}");
    let epidemic = Murmuration { spread: MurmurationSpread::Epidemic, ..unbatched() };
    for config in [epidemic, Murmuration { repair, ..unbatched() }] {
        let error = wrong(Murmuration { copy: Copying::Naive, ..config });
        assert!(error.starts_with("copy: with `repair` or spread = \"epidemic\""), "{error}");
    }
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
