//! Tests that step the scheduler, and tests of the choice of nodes.

use super::*;
use crate::base::{JobId, Time};
use crate::harness::{Harness, sends};
use crate::machine::Effect;
use crate::roles::RETRY_AFTER;

fn bench(config: &Kairos, cores: &[u32], tasks: u32) -> Harness {
    let layout = Layout::new(1, 0, cores.iter().copied());
    config.bench(&layout, layout.scheduler(0), tasks)
}

/// The copies that were dealt, by node.
fn dealt(effects: &[Effect]) -> Vec<(ActorId, CopyId)> {
    let task = |(to, msg)| match msg {
        Message::Launch(Launch::Task { copy, .. }) => Some((to, copy)),
        _ => None,
    };
    sends(effects).into_iter().filter_map(task).collect()
}

fn copy(job: u32, task: u32, attempt: u32) -> CopyId {
    JobId(job).task(task).copy(attempt)
}

/// With one core and Q = 1, two of three tasks are dealt: in two rounds under `one`, in one under `levels`. The third
/// task is dealt in the round after an end.
#[test]
fn tasks_are_dealt_in_rounds() {
    for pass in [KairosPass::One, KairosPass::Levels] {
        tasks_are_dealt_at_the_ends_of_intervals(pass);
    }
}

fn tasks_are_dealt_at_the_ends_of_intervals(pass: KairosPass) {
    let config = Kairos { queue: 1, pass, ..Kairos::default() };
    let mut bench = bench(&config, &[1], 3);
    let node = bench.layout.node(0);
    bench.now = Time::ZERO + Span::from_millis(2300);
    let round = |ms| Effect::Arm { timer: DEAL, after: Span::from_millis(ms) };
    assert_eq!(bench.submit(0), [round(700)]);
    bench.now = Time::ZERO + Span::from_secs(3);
    let mut sent = bench.step(Input::Fire(DEAL));
    if pass == KairosPass::One {
        assert_eq!(sent.pop(), Some(round(1000)));
        assert_eq!(dealt(&sent), [(node, copy(0, 0, 0))]);
        sent.extend(bench.step(Input::Fire(DEAL)));
    }
    assert_eq!(dealt(&sent), [(node, copy(0, 0, 0)), (node, copy(0, 1, 0))]);
    assert_eq!(sent.len(), 2, "the node is full, so only an end can lead to a round");
    let ended = bench.deliver(node, Launch::Completed { copy: copy(0, 1, 0) });
    assert_eq!(ended, [round(1000)]);
    assert_eq!(dealt(&bench.step(Input::Fire(DEAL))), [(node, copy(0, 2, 0))]);
}

#[test]
fn an_eager_scheduler_deals_the_oldest_job_as_soon_as_a_core_is_free() {
    let mut bench = bench(&Kairos { pass: KairosPass::Eager, queue: 0, ..Kairos::default() }, &[1], 2);
    let node = bench.layout.node(0);
    assert_eq!(dealt(&bench.submit(0)), [(node, copy(0, 0, 0))]);
    assert_eq!(dealt(&bench.submit(1)), []);
    let sent = bench.deliver(node, Launch::Completed { copy: copy(0, 0, 0) });
    assert_eq!(dealt(&sent), [(node, copy(0, 1, 0))]);
}

/// A node crashes with its task. An undeliverable task goes to another node, and its node is avoided for a while.
#[test]
fn lost_tasks_are_dealt_again() {
    let mut bench = bench(&Kairos { pass: KairosPass::Eager, queue: 0, ..Kairos::default() }, &[1, 1], 2);
    let first = dealt(&bench.submit(0));
    let [(a, lost), (b, _)] = first[..] else { panic!("{first:?}") };
    assert_eq!(dealt(&bench.step(Input::Down { actor: a })), [], "the other node is full");
    let again = lost.task.copy(1);
    assert_eq!(dealt(&bench.step(Input::Up { actor: a })), [(a, again)]);
    let back = |copy| Input::Undelivered { to: a, msg: Launch::Task { copy, at: Time::ZERO }.into() };
    assert_eq!(bench.step(back(lost)), [], "the task is queued already");
    let refused = bench.step(back(again));
    assert_eq!(dealt(&refused), []);
    let number = bench.layout.node_number(a);
    assert!(refused.contains(&Effect::Arm { timer: Timer::Node(number), after: RETRY_AFTER }));
    let ended = bench.deliver(b, Launch::Completed { copy: first[1].1 });
    assert_eq!(dealt(&ended), [(b, lost.task.copy(2))]);
    assert_eq!(
        sends(&bench.deliver(b, Launch::Completed { copy: lost.task.copy(2) })).len(),
        1,
        "the job ends"
    );
    assert_eq!(bench.step(Input::Fire(Timer::Node(number))), []);
}

mod nodes {
    use super::super::*;
    use crate::base::{JobId, Rng, Span};

    fn copy(task: u32) -> CopyId {
        JobId(0).task(task).copy(0)
    }

    fn nodes(cores: &[u32], queue: u32, pass: KairosPass) -> (DealtNodes, Rng) {
        let config = Kairos { queue, pass, ..Kairos::default() };
        (DealtNodes::new(&config, &Layout::new(1, 0, cores.iter().copied())), Rng::new(1, 2, 3))
    }

    fn count(nodes: &DealtNodes) -> u32 {
        let (node, copies) = nodes.all.get(0);
        node.count(copies)
    }

    /// Each of three nodes with one core and Q = 1 gets a task. Tasks go to nodes in the order of their numbers,
    /// since no copy has attained any service. Then each node gets another task, and then no more.
    #[test]
    fn tasks_are_dealt_level_by_level() {
        let (mut nodes, mut rng) = nodes(&[1, 1, 1], 1, KairosPass::Levels);
        let mut order = Vec::new();
        while let Some(index) = nodes.all.pick(&mut rng) {
            nodes.deal(index, copy(order.len() as u32), Time(6));
            order.push(index);
        }
        order.chunks_mut(3).for_each(<[u32]>::sort_unstable);
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
        assert!(!nodes.all.has_room());
        let first = nodes.all.get(0).1[0].0;
        nodes.all.release(0, first);
        nodes.all.release(0, first);
        assert_eq!(nodes.all.pick(&mut rng), Some(0));
    }

    /// Algorithm 2 by hand: the node without a task is chosen first, then the nodes with one task by their spreads.
    /// No node gets two tasks in a round.
    #[test]
    fn a_node_gets_one_task_in_a_round() {
        let (mut nodes, mut rng) = nodes(&[1, 1, 1], 9, KairosPass::One);
        for (index, task) in [(0, 90), (1, 91)] {
            nodes.deal(index, copy(task), Time(1));
        }
        nodes.end_round();
        for (index, tasks, spread) in [(0, 1, 20), (1, 1, 10), (2, 0, 0)] {
            nodes.report(index, (tasks, 0, spread), Time(5));
        }
        let mut round = |first| {
            let mut order = Vec::new();
            while let Some(index) = nodes.all.pick(&mut rng) {
                nodes.deal(index, copy(first + order.len() as u32), Time(6));
                order.push(index);
            }
            assert!(!nodes.all.has_room());
            nodes.end_round();
            order
        };
        assert_eq!(round(0), [2, 1, 0]);
        assert_eq!(round(10)[0], 2, "the node has one task, the other two");
    }

    /// Standard deviations by hand, in ms, of copies that have attained 4 and 8 s, or 30 s, with and without copies
    /// that have attained nothing. The report contains copies dealt before it, but not copies dealt at its instant.
    #[test]
    fn copies_dealt_since_a_report_have_attained_nothing() {
        for (report, since, spread) in [
            ((2, 12_000, 2_000), 0, 2_000),
            ((2, 12_000, 2_000), 1, 3_266),
            ((2, 10_000, 5_000), 1, 4_714),
            ((1, 30_000, 0), 0, 0),
            ((1, 30_000, 0), 1, 15_000),
            ((1, 30_000, 0), 2, 14_142),
            ((0, 0, 0), 3, 0),
        ] {
            let (mut nodes, _) = nodes(&[1], 9, KairosPass::Levels);
            (0..report.0).for_each(|task| nodes.deal(0, copy(task), Time(4)));
            nodes.report(0, report, Time(5));
            (0..since).for_each(|task| nodes.deal(0, copy(9 + task), Time(5 + u64::from(task))));
            let (node, copies) = nodes.all.get(0);
            assert_eq!((node.count(copies), node.measure(copies)), (report.0 + since, spread));
            let sum = DealtNode { pick: KairosPick::Sum, ..node.clone() };
            assert_eq!(sum.measure(copies), report.1);
        }
    }

    /// A report of one copy, sent between the second and the third assignment, leads to a count of two. An older report
    /// is ignored.
    #[test]
    fn a_report_replaces_the_count_and_copies_dealt_since_are_added() {
        let (mut nodes, mut rng) = nodes(&[1, 1], 9, KairosPass::Levels);
        for task in 0..3 {
            nodes.deal(0, copy(task), Time(u64::from(task) * 10));
        }
        (3..6).for_each(|task| nodes.deal(1, copy(task), Time(0)));
        nodes.report(0, (1, 0, 0), Time(15));
        nodes.report(0, (3, 0, 0), Time(14));
        assert_eq!(nodes.all.pick(&mut rng), Some(0), "node 0 has two copies, the other three");
        // The report included the end of the first copy, but not the end of the second.
        nodes.all.release(0, copy(0));
        assert_eq!(count(&nodes), 2);
        nodes.all.release(0, copy(1));
        assert_eq!(count(&nodes), 1);
        nodes.report(0, (7, 0, 0), Time(0) + Span(20));
        assert_eq!(count(&nodes), 1, "a node cannot have more copies than it was dealt");
    }

    #[test]
    fn nodes_with_free_cores_come_first_and_crashed_nodes_get_no_tasks() {
        let (mut nodes, mut rng) = nodes(&[1, 3], 1, KairosPass::Levels);
        for task in 0..2 {
            assert_eq!(nodes.all.pick(&mut rng), Some(1));
            nodes.deal(1, copy(task), Time(0));
        }
        nodes.all.avoid(0, true);
        assert_eq!(nodes.all.pick(&mut rng), Some(1));
        nodes.all.set_up(1, false);
        assert_eq!(nodes.all.pick(&mut rng), None);
        nodes.all.set_up(1, true);
        assert_eq!(nodes.all.pick(&mut rng), Some(1));
        nodes.all.avoid(0, false);
        (2..6).for_each(|task| nodes.deal(1, copy(task), Time(0)));
        assert_eq!(nodes.all.pick(&mut rng), Some(0));
    }
}
