//! Tests of the thesis's example as the policy formulates it, and tests that step the scheduler.

use volary_lp::{Problem, Work, relax, round};

use super::{Forecast, Formulated, KnownJob, RunTimeEstimates, ThreeSigma, formulate, *};
use crate::base::{ActorId, CopyId, JobId, Span, Time};
use crate::catalog::{JobSpec, Preference};
use crate::harness::{Harness, sends};
use crate::layout::Layout;
use crate::machine::{Effect, Input, Note, Timer};
use crate::message::{Launch, Message, TaskRange};
use crate::policies::policy::Policy;
use crate::predict::Distribution;
use crate::roles::job_table::{JobTable, OpenJob};
use crate::roles::planning::{CorePool, PlannedJob, Situation};

/// The expected cores at ages of multiples of 2.5 are those of the thesis's example.
#[test]
fn demand_is_the_probability_that_a_task_still_runs() {
    assert_eq!(demand(&Distribution::uniform(0.0, 10.0), 2.5, 8), [1.0, 0.75, 0.5, 0.25]);
    assert_eq!(demand(&Distribution::uniform(2.5, 7.5), 2.5, 8), [1.0, 1.0, 0.5]);
    assert_eq!(demand(&Distribution::point(5.0), 2.5, 8), [1.0, 1.0], "the task has ended after two slots");
    assert_eq!(demand(&Distribution::point(50.0), 2.5, 3), [1.0; 3]);
}

/// A job of U(0, 10) that has run for 5 ends between 5 and 10.
#[test]
fn run_times_are_conditioned_on_the_elapsed_time() {
    let left = given(&Distribution::uniform(0.0, 10.0), 5.0, 2.0);
    assert_eq!([5.0, 7.5, 10.0].map(|t| 1.0 - left.cdf(t)), [1.0, 0.5, 0.0]);
}

/// The expected end of a job that outlives its estimate grows by 1, 2, 4, 8 cycles.
#[test]
fn underestimates_are_extended_exponentially() {
    let run = Distribution::point(10.0);
    let (mut elapsed, mut extensions) = (10.0, Vec::new());
    for _ in 0..5 {
        let end = given(&run, elapsed, 2.0).max();
        extensions.push((end - elapsed) / 2.0);
        elapsed = end;
    }
    assert_eq!(extensions, [1.0, 2.0, 4.0, 8.0, 16.0]);
    assert_eq!(given(&run, 15.5, 2.0).max(), 16.0, "between two extensions the later one counts");
}

/// The SLO job of the thesis's example, with a deadline of 15.
const D: JobId = JobId(0);
/// The best-effort job of the example.
const BE: JobId = JobId(1);

fn seconds(seconds: f64) -> Span {
    Span::from_secs_f64(seconds)
}

/// The example of the thesis (Fig. 4.5) as the policy formulates it: one node, eight slots of 2.5, and two jobs
/// submitted at the same time.
fn example(run: &Distribution, best_effort: f64) -> Formulated {
    let config = ThreeSigma { slots: 8, slot: seconds(2.5), best_effort, ..ThreeSigma::default() };
    let (mut jobs, mut known) = (JobTable::default(), JobTable::default());
    for (job, deadline) in [(D, Some(Time::ZERO + seconds(15.0))), (BE, None)] {
        let spec = JobSpec { arrival: Time::ZERO, tasks: 1, client: 0, class: 0, deadline };
        let preference = Preference { kinds: 0, slowdown: 1.0 };
        let forecast = Forecast::expecting(run.clone());
        known.open(job, KnownJob::new(&config, &spec, forecast, (preference, 1)));
        jobs.open(job, PlannedJob::new(OpenJob::new(spec, 0)));
    }
    let pool = CorePool::new(&Layout::new(1, 0, [1]));
    formulate(&config, &mut known, Situation { jobs: &mut jobs, pool: &pool }, Time::ZERO)
}

/// A gang of four tasks prefers a kind of nodes with three cores, so it runs on any kind.
#[test]
fn a_gang_has_no_option_on_a_kind_of_nodes_with_too_few_cores() {
    let config = ThreeSigma::default();
    let pool = CorePool::new(&Layout::new(1, 0, [3, 3]).with_kinds(2));
    let offered = |tasks| {
        let (mut jobs, mut known) = (JobTable::default(), JobTable::default());
        let spec = JobSpec { arrival: Time::ZERO, tasks, client: 0, class: 0, deadline: None };
        let preference = Preference { kinds: 1, slowdown: 1.5 };
        let forecast = Forecast::expecting(Distribution::point(10.0));
        known.open(BE, KnownJob::new(&config, &spec, forecast, (preference, 2)));
        jobs.open(BE, PlannedJob::new(OpenJob::new(spec, 0)));
        let situation = Situation { jobs: &mut jobs, pool: &pool };
        let problem = formulate(&config, &mut known, situation, Time::ZERO).problem;
        problem.jobs()[0].blocks.iter().map(|block| block.sets.clone()).collect::<Vec<_>>()
    };
    assert_eq!(offered(3), [vec![0], vec![0, 1]]);
    assert_eq!(offered(4), [vec![0, 1]]);
}

/// Utilities of the only block of a job, by start.
fn utilities(problem: &Problem, job: usize) -> Vec<f64> {
    problem.jobs()[job].blocks[0].starts.iter().map(|start| start.utility).collect()
}

fn assert_close(values: &[f64], expected: &[f64]) {
    let close = values.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9);
    assert!(close && values.len() == expected.len(), "the utilities are {values:?}, expected {expected:?}");
}

/// The slots at which the jobs start in the best plan, and its value.
fn starts(problem: &Problem) -> ([Option<u32>; 2], f64) {
    let plan = round(problem, &relax(problem, None, Work::default()), Work::default());
    let slot = |job| plan.choices.iter().find(|choice| choice.job == job).map(|choice| choice.slot);
    ([slot(0), slot(1)], plan.value)
}

/// Scenario 1: U(0, 10). The SLO job goes first, because a start at 10 meets its deadline only with probability
/// 1/2.
#[test]
fn slo_jobs_of_uncertain_length_go_before_best_effort_jobs() {
    let Formulated { problem, waiting, .. } = example(&Distribution::uniform(0.0, 10.0), 0.2);
    assert_eq!(waiting, [D, BE]);
    assert_close(&utilities(&problem, 0), &[1.0, 1.0, 1.0, 0.75, 0.5, 0.25]);
    assert_close(&utilities(&problem, 1), &[0.2, 0.175, 0.15, 0.125, 0.1, 0.075, 0.05, 0.025]);
    for job in problem.jobs() {
        assert_close(&job.blocks[0].demand, &[1.0, 0.75, 0.5, 0.25]);
    }
    assert_close(problem.capacity(), &[1.0; 8]);
    let (slots, value) = starts(&problem);
    assert_eq!(slots, [Some(0), Some(4)]);
    assert_close(&[value], &[1.1]);
}

/// Scenario 2: U(2.5, 7.5). Either order is safe, and the best-effort job gains more by going first.
#[test]
fn best_effort_jobs_go_before_slo_jobs_of_certain_length() {
    let Formulated { problem, .. } = example(&Distribution::uniform(2.5, 7.5), 0.2);
    assert_close(&utilities(&problem, 0), &[1.0, 1.0, 1.0, 1.0, 0.5]);
    for job in problem.jobs() {
        assert_close(&job.blocks[0].demand, &[1.0, 1.0, 0.5]);
    }
    let (slots, value) = starts(&problem);
    assert_eq!(slots, [Some(3), Some(0)]);
    assert_close(&[value], &[1.2]);
}

/// In scenario 1 the best-effort job goes first only if it gains more than the half that the SLO job loses.
#[test]
fn the_job_that_loses_more_by_waiting_goes_first() {
    for (best_effort, first) in [(0.9, [Some(0), Some(4)]), (1.1, [Some(4), Some(0)])] {
        let Formulated { problem, .. } = example(&Distribution::uniform(0.0, 10.0), best_effort);
        assert_eq!(starts(&problem).0, first, "{best_effort}");
    }
}

fn bench(config: &ThreeSigma, nodes: usize, tasks: u32) -> Harness {
    let layout = Layout::new(1, 0, vec![1; nodes]);
    config.bench(&layout, layout.scheduler(0), tasks)
}

/// A policy with perfect estimates. Task i of any job of the harness takes i + 1 s.
fn perfect() -> ThreeSigma {
    ThreeSigma { estimates: RunTimeEstimates::Perfect, slot: Span::from_secs(10), ..ThreeSigma::default() }
}

/// Steps the scheduler to the end of the next cycle.
fn cycle(bench: &mut Harness) -> Vec<Effect> {
    bench.now = Time(bench.now.0 / 2_000_000_000 * 2_000_000_000) + Span::from_secs(2);
    bench.step(Input::Fire(Timer::Tick(0)))
}

/// The copies that were launched, by node.
fn launched(effects: &[Effect]) -> Vec<(ActorId, CopyId)> {
    let row = |(to, msg)| match msg {
        Message::Launch(Launch::Row(row)) => Some((to, row.copy(0))),
        _ => None,
    };
    sends(effects).into_iter().filter_map(row).collect()
}

fn copy(job: u32, task: u32, attempt: u32) -> CopyId {
    JobId(job).task(task).copy(attempt)
}

/// There are three nodes and jobs of two tasks. The second job waits for two cores, though one node is free.
#[test]
fn all_tasks_of_a_job_start_together() {
    let mut bench = bench(&perfect(), 3, 2);
    let nodes: Vec<_> = (0..3).map(|node| bench.layout.node(node)).collect();
    bench.now = Time::ZERO + Span::from_millis(500);
    let armed = Effect::Arm { timer: Timer::Tick(0), after: Span::from_millis(1500) };
    assert_eq!(bench.submit(0), [armed]);
    assert_eq!(launched(&cycle(&mut bench)), [(nodes[0], copy(0, 0, 0)), (nodes[1], copy(0, 1, 0))]);
    bench.submit(1);
    assert_eq!(bench.submit(2), [], "the end of the cycle is armed already");
    assert_eq!(launched(&cycle(&mut bench)), [], "only one core is free");
    bench.deliver(nodes[0], Launch::Completed { copy: copy(0, 0, 0) });
    let next = launched(&cycle(&mut bench));
    assert_eq!(next.iter().map(|(node, _)| *node).collect::<Vec<_>>(), [nodes[2], nodes[0]]);
    assert_eq!(next[0].1.task.job, next[1].1.task.job, "both tasks are of one job");
    let done = bench.deliver(nodes[1], Launch::Completed { copy: copy(0, 1, 0) });
    let learnt = Note::Predicted { job: JobId(0), expected: Span::from_secs(2), run: Span::from_secs(4) };
    assert!(done.contains(&Effect::Note(learnt)), "{done:?}");
}

/// A job with a deadline that cannot wait takes the core of a best-effort job, which starts again later.
#[test]
fn best_effort_jobs_are_preempted_for_urgent_ones() {
    let mut bench = bench(&perfect(), 1, 1).with_deadline(JobId(1), Span::from_secs(5));
    let node = bench.layout.node(0);
    bench.submit(0);
    assert_eq!(launched(&cycle(&mut bench)), [(node, copy(0, 0, 0))]);
    bench.submit(1);
    let preempted = cycle(&mut bench);
    let gone = Launch::Drop(TaskRange::one(JobId(0).task(0), 1));
    assert_eq!(sends(&preempted)[0], (node, gone.into()));
    assert_eq!(launched(&preempted), [(node, copy(1, 0, 0))]);
    bench.deliver(node, Launch::Completed { copy: copy(1, 0, 0) });
    assert_eq!(launched(&cycle(&mut bench)), [(node, copy(0, 0, 1))], "the task has a new attempt number");
}

/// A decision takes time. Launches that have become impossible by its end are revoked and decided again.
#[test]
fn launches_that_become_impossible_during_a_decision_are_revoked() {
    let config = ThreeSigma { decide: Span::from_millis(300), ..perfect() };
    let mut bench = bench(&config, 1, 1);
    let node = bench.layout.node(0);
    bench.submit(0);
    let decided = cycle(&mut bench);
    assert_eq!(launched(&decided), []);
    assert!(decided.contains(&Effect::Arm { timer: Timer::Tick(1), after: Span::from_millis(300) }));
    bench.step(Input::Down { actor: node });
    bench.now += Span::from_millis(300);
    let revoked =
        Note::Enacted { cycles: 1, launched: 0, revoked: 1, preempted: 0, took: Span::from_millis(300) };
    assert!(bench.step(Input::Fire(Timer::Tick(1))).contains(&Effect::Note(revoked)));
    bench.step(Input::Up { actor: node });
    cycle(&mut bench);
    bench.now += Span::from_millis(300);
    assert_eq!(launched(&bench.step(Input::Fire(Timer::Tick(1)))), [(node, copy(0, 0, 0))]);
}

/// One of two tasks of a job is lost with its node, and the other one ends. A refused launch goes to another node.
#[test]
fn lost_tasks_are_launched_again() {
    let mut bench = bench(&perfect(), 3, 2);
    let nodes: Vec<_> = (0..3).map(|node| bench.layout.node(node)).collect();
    bench.submit(0);
    cycle(&mut bench);
    bench.step(Input::Down { actor: nodes[0] });
    let again = copy(0, 0, 1);
    assert_eq!(launched(&cycle(&mut bench)), [(nodes[2], again)]);
    let refused = Launch::Row(crate::message::Row::single(again));
    bench.step(Input::Undelivered { to: nodes[2], msg: refused.into() });
    bench.deliver(nodes[1], Launch::Completed { copy: copy(0, 1, 0) });
    assert_eq!(launched(&cycle(&mut bench)), [(nodes[1], copy(0, 0, 2))]);
    // The first copy ended before its node crashed. Its result counts, and the last copy is stopped.
    let done = sends(&bench.deliver(nodes[0], Launch::Completed { copy: copy(0, 0, 0) }));
    let gone = Launch::Drop(TaskRange::one(JobId(0).task(0), 3));
    let finished = crate::message::Job::Finished { job: JobId(0), killed: false };
    assert_eq!(done, [(nodes[1], gone.into()), (bench.layout.client(0), finished.into())]);
}

/// A job with more tasks than live cores runs as many tasks at a time as there are cores.
#[test]
fn jobs_wider_than_the_cluster_run_in_waves() {
    let mut bench = bench(&perfect(), 2, 3);
    bench.submit(0);
    assert_eq!(launched(&cycle(&mut bench)).len(), 2);
    let node = bench.layout.node(0);
    bench.deliver(node, Launch::Completed { copy: copy(0, 0, 0) });
    assert_eq!(launched(&cycle(&mut bench)), [(node, copy(0, 2, 1))]);
}

/// A restarted scheduler keeps the history of run times.
#[test]
fn the_history_survives_a_crash() {
    let config = ThreeSigma { slot: Span::from_secs(10), ..ThreeSigma::default() };
    let mut bench = bench(&config, 1, 1);
    let node = bench.layout.node(0);
    bench.submit(0);
    cycle(&mut bench);
    bench.now += Span::from_secs(30);
    bench.deliver(node, Launch::Completed { copy: copy(0, 0, 0) });
    let successor = config.machine(bench.me, &bench.layout, false, false);
    let mut next = bench.crash(successor);
    next.step(Input::Start { epoch: 1 });
    next.submit(1);
    cycle(&mut next);
    let done = next.deliver(node, Launch::Completed { copy: copy(1, 0, 0) });
    let expected = Span::from_secs(30);
    let learnt = |effect: &Effect| matches!(effect, Effect::Note(Note::Predicted { expected: e, .. }) if *e == expected);
    assert!(done.iter().any(learnt), "{done:?}");
}
