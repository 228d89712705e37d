//! Tests that step the scheduler.

use rand::RngExt as _;

use super::config::{DistSched, UsageEstimates};
use super::load::tests::{certain, idle, of};
use super::*;
use crate::base::Amount;
use crate::base::{ActorId, Address, CopyId, JobId, Purpose, Span, Time};
use crate::harness::{Harness, sends};
use crate::layout::{Layout, Sharing};
use crate::machine::{Effect, Input, Note, Timer};
use crate::message::{Contention, Launch, Message, UsageReport};
use crate::policies::policy::Policy;
use crate::predict::Distribution;
use crate::roles::planning::OverEstimates;

const OPTIONS: GreedyOptions = GreedyOptions { now: 100.0, horizon: 1000.0, risk: 0.1 };

fn job(job: u32, waiting: u32, tasks: &Arc<TaskUse>, work: f64, utility: Utility) -> PendingJob {
    let (tasks, held, avoided) = (Arc::clone(tasks), Vec::new(), Vec::new());
    PendingJob { job: JobId(job), waiting, tasks, work, utility, held, avoided, salt: 5 }
}

fn slo(within: f64) -> Utility {
    Utility::Slo { deadline: 100.0 + within, zero: 100.0 + within }
}

const BEST_EFFORT: Utility = Utility::BestEffort { top: 0.2, completion: None };

fn order(launches: &[LaunchOrder]) -> Vec<(u32, u32)> {
    launches.iter().map(|launch| (launch.job.0, launch.size())).collect()
}

/// The node has 8 cores. The third job would need 40 s and has 30 s; the first job is longer than the second.
#[test]
fn the_most_useful_jobs_start_first() {
    let four = certain(4.0, 1.0);
    let jobs = [
        job(0, 1, &four, 800.0, BEST_EFFORT),
        job(1, 1, &four, 400.0, BEST_EFFORT),
        job(2, 1, &four, 160.0, slo(30.0)),
        job(3, 1, &four, 160.0, slo(50.0)),
    ];
    assert_eq!(order(&select(&jobs, &mut idle(&[(8.0, 16.0)]), OPTIONS)), [(3, 1), (1, 1)]);
    assert_eq!(order(&select(&jobs, &mut idle(&[(8.0, 16.0); 9]), OPTIONS)), [(3, 1), (1, 1), (0, 1)]);
}

/// All tasks of a job start together or none, unless the nodes would not hold all of them even if they were idle.
#[test]
fn gangs_start_as_a_whole() {
    let four = certain(4.0, 1.0);
    let mut loads = idle(&[(8.0, 16.0); 2]);
    loads.add(JobId(9), &[0], &four);
    assert_eq!(order(&select(&[job(0, 4, &four, 1.0, BEST_EFFORT)], &mut loads, OPTIONS)), []);
    assert_eq!(order(&select(&[job(0, 7, &four, 1.0, BEST_EFFORT)], &mut loads, OPTIONS)), []);
    let whole = select(&[job(0, 7, &four, 1.0, BEST_EFFORT)], &mut idle(&[(8.0, 16.0); 2]), OPTIONS);
    assert_eq!(order(&whole), [(0, 4)], "idle nodes hold only four tasks");
    let large = certain(99.0, 1.0);
    let alone = select(&[job(0, 3, &large, 1.0, BEST_EFFORT)], &mut idle(&[(8.0, 16.0); 2]), OPTIONS);
    assert_eq!(order(&alone), [(0, 2)], "one task on each node");
}

/// A job of eight tasks avoids one of two nodes; four tasks fit on the other.
#[test]
fn a_gang_does_not_wait_for_nodes_that_it_avoids() {
    let two = certain(2.0, 1.0);
    let avoiding = PendingJob { avoided: vec![0, 2], ..job(0, 8, &two, 1.0, BEST_EFFORT) };
    let found = select(&[avoiding], &mut idle(&[(8.0, 16.0); 3]), OPTIONS);
    assert_eq!(
        found.iter().map(|launch| &launch.places).collect::<Vec<_>>(),
        [&TaskPlaces::Nodes(vec![1; 4])]
    );
}

/// A greedy selection without caching, which recomputes the options of all jobs before each launch.
fn exhaustive(pending: &[PendingJob], loads: &mut NodeLoads, options: GreedyOptions) -> Vec<LaunchOrder> {
    let mut launches = Vec::new();
    let mut left: Vec<_> = pending.iter().collect();
    loop {
        let mut best: Option<(usize, SchedulingOption)> = None;
        for (at, job) in left.iter().enumerate() {
            let Some(found) = option(job, loads, options) else { continue };
            if best.as_ref().is_none_or(|(_, best)| found.worth > best.worth) {
                best = Some((at, found));
            }
        }
        let Some((at, SchedulingOption { nodes, .. })) = best else { return launches };
        let job = left.remove(at);
        loads.add(job.job, &nodes, &job.tasks);
        launches.push(LaunchOrder { job: job.job, places: TaskPlaces::Nodes(nodes) });
    }
}

/// Jobs of 1 to 5 tasks, whose uncertain CPU use is 0.5 to 4 cores, on four nodes; about half have deadlines.
#[test]
fn selection_equals_an_exhaustive_search() {
    for seed in 0..200 {
        let mut draw = Address::new(seed, Purpose::Tool).draw();
        let mut pending = Vec::new();
        for number in 0..draw.random_range(2..12) {
            let amount = |draw: &mut crate::base::Draw, scale: f64| {
                let point = |draw: &mut crate::base::Draw| {
                    (scale * f64::from(draw.random_range(1..9_u32)), f64::from(draw.random_range(1..5_u32)))
                };
                of(&(0..draw.random_range(1..5)).map(|_| point(draw)).collect::<Vec<_>>())
            };
            let (cpu, memory) = (amount(&mut draw, 0.5), amount(&mut draw, 1.0));
            let request = cpu.mean();
            let tasks = Arc::new(TaskUse { cpu, memory, request });
            let within = f64::from(draw.random_range(10..100_u32));
            let utility = if draw.random_range(0..2) == 0 { slo(within) } else { BEST_EFFORT };
            let work = f64::from(draw.random_range(5..200_u32));
            pending.push(job(number, draw.random_range(1..6), &tasks, work, utility));
        }
        let rooms = vec![(8.0, 16.0); 4];
        let lazy = select(&pending, &mut idle(&rooms), OPTIONS);
        let all = exhaustive(&pending, &mut idle(&rooms), OPTIONS);
        assert_eq!(lazy, all, "seed {seed}");
    }
}

#[test]
fn uncertain_jobs_are_worth_less() {
    let unsure = |high: f64| {
        Arc::new(TaskUse {
            cpu: of(&[(1.0, 0.5), (high, 0.5)]),
            memory: Distribution::point(1.0),
            request: 1.0,
        })
    };
    let jobs = [job(0, 1, &unsure(2.0), 40.0, slo(30.0)), job(1, 1, &unsure(1.5), 30.0, slo(30.0))];
    let found = select(&jobs, &mut idle(&[(8.0, 16.0)]), OPTIONS);
    assert_eq!(order(&found), [(1, 1), (0, 1)], "the first job meets its deadline with probability 1/2");
}

/// Shared nodes of four cores with eight slots each. Every task requests one core.
fn shared(nodes: usize) -> Layout {
    let room = Amount { cpu: 4000, memory: 1 << 30 };
    let sharing = Sharing { threshold: 900_000, report: Span::from_secs(15) };
    Layout::new(1, 0, vec![8; nodes]).with_room(vec![room; nodes], Amount::CORE).with_sharing(sharing)
}

fn bench(config: &DistSched, layout: &Layout, tasks: u32) -> Harness {
    config.bench(layout, layout.scheduler(0), tasks)
}

/// Steps the scheduler to the next end of a cycle.
fn cycle(bench: &mut Harness) -> Vec<Effect> {
    let cycle = 15_000_000_000;
    bench.now = Time((bench.now.0 / cycle + 1) * cycle);
    bench.step(Input::Fire(Timer::Tick(0)))
}

/// The copies that were launched, with the numbers of their nodes (ids minus 2, for one client and one scheduler).
fn launched(effects: &[Effect]) -> Vec<(CopyId, u32)> {
    let launch = |(to, msg): (ActorId, Message)| match msg {
        Message::Launch(Launch::Row(row)) => Some((row.copy(0), to.0 - 2)),
        _ => None,
    };
    sends(effects).into_iter().filter_map(launch).collect()
}

/// The nodes of the launched tasks, in ascending order.
fn nodes(effects: &[Effect]) -> Vec<u32> {
    let mut nodes: Vec<_> = launched(effects).into_iter().map(|(_, node)| node).collect();
    nodes.sort_unstable();
    nodes
}

/// The tasks that were stopped, by job.
fn dropped(effects: &[Effect]) -> Vec<(u32, u32)> {
    let drop = |(_, msg): (ActorId, Message)| match msg {
        Message::Launch(Launch::Drop(tasks)) => Some((tasks.job.0, tasks.base)),
        _ => None,
    };
    sends(effects).into_iter().filter_map(drop).collect()
}

fn enacted(effects: &[Effect]) -> Option<(u32, u32, u32)> {
    effects.iter().find_map(|effect| match *effect {
        Effect::Note(Note::Enacted { launched, revoked, preempted, .. }) => {
            Some((launched, revoked, preempted))
        }
        _ => None,
    })
}

#[test]
fn nodes_are_filled_one_after_the_other() {
    let mut bench = bench(&DistSched::default(), &shared(3), 3);
    bench.submit(0);
    let first = cycle(&mut bench);
    let at = nodes(&first)[0];
    assert_eq!(nodes(&first), [at; 3], "all go to the node that has a task already");
    bench.submit(1);
    let second = nodes(&cycle(&mut bench));
    let next = second.iter().copied().find(|node| *node != at).expect("a task goes to another node");
    assert_eq!(second.iter().filter(|node| **node == at).count(), 1, "only one core is left");
    assert_eq!(second.iter().filter(|node| **node == next).count(), 2);
    bench.submit(2);
    bench.submit(3);
    let third = cycle(&mut bench);
    assert_eq!(enacted(&third), Some((2, 0, 0)), "six cores are left");
    bench.submit(4);
    assert_eq!(enacted(&cycle(&mut bench)), Some((0, 0, 0)), "no core is left");
}

/// Every task of the history and of the run uses one core, as requested.
#[test]
fn the_room_of_ended_tasks_goes_to_the_next_job() {
    let mut bench = bench(&DistSched::default(), &shared(1), 4);
    bench.submit(0);
    bench.submit(1);
    let running = launched(&cycle(&mut bench));
    assert_eq!(running.len(), 4);
    let node = bench.layout.node(0);
    for &(copy, _) in &running {
        bench.deliver(node, Launch::Completed { copy });
    }
    let next = launched(&cycle(&mut bench));
    assert_eq!((next.len(), next[0].0.task.job), (4, JobId(1)));
}

#[test]
fn evicted_tasks_are_launched_again() {
    let mut bench = bench(&DistSched::default(), &shared(2), 2);
    bench.submit(0);
    let running = launched(&cycle(&mut bench));
    let (copy, node) = running[1];
    let from = bench.layout.node(node);
    bench.deliver(from, Contention::Evicted { copy, age_ms: 5000, alone: false });
    let again = cycle(&mut bench);
    let relaunched: Vec<_> = launched(&again).iter().map(|(copy, _)| *copy).collect();
    assert_eq!(relaunched, [copy.task.copy(copy.attempt + 1)]);
    let repairs = again.iter().filter(|effect| matches!(effect, Effect::Send { recovery: true, .. })).count();
    assert_eq!(repairs, 0, "nothing was lost by a fault");
    bench.deliver(from, Contention::Evicted { copy, age_ms: 5000, alone: false });
    assert!(launched(&cycle(&mut bench)).is_empty(), "the copy was gone already");
}

/// A node that throttles has two tasks of an SLO job and three best-effort tasks that use more than they requested.
#[test]
fn best_effort_tasks_are_preempted_on_contended_nodes() {
    let slo = JobId(0);
    let run = |config: &DistSched, cpu| {
        let mut bench = bench(config, &shared(1), 2).with_deadline(slo, Span::from_secs(1000));
        bench.submit(0);
        bench.submit(1);
        let running = launched(&cycle(&mut bench));
        assert_eq!(running.len(), 4);
        let from = bench.layout.node(0);
        for &(copy, _) in &running {
            let (at, best_effort) = (bench.now.into(), copy.task.job != slo);
            let cpu = if best_effort { cpu + 100 * copy.task.index } else { 500 };
            bench.deliver(from, UsageReport::Report { copy, cpu, memory: 0, at });
        }
        let throttled = running.iter().find(|(copy, _)| copy.task.job == slo).expect("an SLO task runs").0;
        bench.deliver(from, Contention::Throttled { copy: throttled, rate: 500_000, at: bench.now.into() });
        cycle(&mut bench)
    };
    let config = DistSched::default();
    // The best-effort tasks would use 1.4 + 1.5 + 0.5 + 1 of 4 cores.
    let effects = run(&config, 1400);
    assert_eq!((dropped(&effects), enacted(&effects)), (vec![(1, 1)], Some((0, 0, 1))));
    assert!(dropped(&run(&DistSched { preempt: false, ..DistSched::default() }, 1400)).is_empty());
    assert_eq!(dropped(&run(&config, 3000)), [(1, 1), (1, 0)], "the worst went first");
}

/// A job of two tasks has a deadline 20 or 65 s after its arrival. Without history it is expected to take 60 s. So it
/// is expected to miss a deadline of 20 s at once, and one of 65 s only after it has waited for the first decision.
#[test]
fn over_estimate_handling_decides_whether_late_jobs_are_tried() {
    let within = |over, seconds| {
        let config = DistSched { over, ..DistSched::default() };
        let mut bench = bench(&config, &shared(1), 2).with_deadline(JobId(0), Span::from_secs(seconds));
        bench.submit(0);
        let early = launched(&cycle(&mut bench)).len();
        let late = launched(&cycle(&mut bench)).len();
        (early, late)
    };
    assert_eq!(within(OverEstimates::Adaptive, 20), (2, 0));
    assert_eq!(within(OverEstimates::Never, 20), (0, 2), "the job runs as best effort after the deadline");
    assert_eq!(within(OverEstimates::Adaptive, 65), (0, 0), "the job seemed to meet its deadline at first");
    assert_eq!(within(DistSched::default().over, 65), (2, 0), "the utility of every job decays");
    let config =
        DistSched { over: OverEstimates::Never, estimates: UsageEstimates::Actual, ..DistSched::default() };
    let mut knows = bench(&config, &shared(1), 2).with_deadline(JobId(0), Span::from_secs(20));
    knows.submit(0);
    assert_eq!(launched(&cycle(&mut knows)).len(), 2);
}

/// On a node that is not shared each task has a core.
#[test]
fn on_unshared_nodes_each_task_has_a_core() {
    let layout = Layout::new(1, 0, [2, 3]);
    let mut bench = bench(&DistSched::default(), &layout, 2);
    for job in 0..3 {
        bench.submit(job);
    }
    assert_eq!(nodes(&cycle(&mut bench)), [0, 0, 1, 1], "one core is left, and two tasks wait");
}

#[test]
fn the_history_survives_a_crash() {
    let config = DistSched { over: OverEstimates::Never, ..DistSched::default() };
    let layout = shared(1);
    let mut first = bench(&config, &layout, 1);
    first.submit(0);
    let (copy, _) = launched(&cycle(&mut first))[0];
    first.deliver(layout.node(0), Launch::Completed { copy });
    let now = first.now;
    let machine = config.machine(layout.scheduler(0), &layout, false, false);
    let mut second = first.crash(machine).with_deadline(JobId(40), Span::from_secs(20));
    second.now = now;
    second.step(Input::Start { epoch: 1 });
    second.now = Time::ZERO + Span::from_secs(40);
    second.submit(40);
    let early = launched(&cycle(&mut second)).len();
    assert_eq!(early, 1, "a similar job took a second, not a minute");
}
