//! Invariants of every run whose faults heal.

use std::any::Any;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use volary_actors::base::{CopyId, DistributionSpec, Endpoint, JobId, TaskId};
use volary_actors::catalog::Catalog;
use volary_actors::roles::LONGEST_WAIT;
use volary_engine::metrics::Recording;
use volary_engine::metrics::RunConfig;
use volary_engine::replay::{Logged, replay};
use volary_engine::results::{CopyEnd, CopyRow, JobRow, Measured};
use volary_engine::shard::Observer;
use volary_engine::virtual_time::{Progress, measure_with};
use volary_engine::workload::Share;
use volary_engine::world::{EngineError, World};
use volary_netem::Worst;

use super::inputs::{InputLog, digest};
use super::survivors::survivors;
use crate::common::try_parse;
use crate::programs::WithinTest;
use crate::sharding::{lockstep, lossy_lockstep};

/// Number of slices, of 16,384 events each, after which a run is stopped.
const MOST_SLICES: u32 = 8192;
/// Emulated time that a stopped run must have passed, s; otherwise the run counts as endless.
const HOUR_S: f64 = 3600.0;

/// The second execution that a run is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Again {
    Nothing,
    /// A second run.
    SameSeed,
    /// A run on two shards.
    TwoShards,
    /// A replay of the run's inputs.
    Replay,
    /// A run on two hosts, whose network loses datagrams as well.
    Hosts,
}

/// The reason for which an experiment does not pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Flaw {
    /// The experiment is refused, or cannot end well.
    Invalid(String),
    /// A run violates an invariant.
    Broken(String),
}

/// Runs the only policy of an experiment and checks its results.
pub(crate) fn check(text: &str, again: Again) -> Result<(), Flaw> {
    let world = valid(text).map_err(Flaw::Invalid)?;
    let world = if again == Again::Hosts { world.on_hosts(2) } else { world };
    catch_unwind(AssertUnwindSafe(|| examine(&world, again)))
        .map_err(|why| Flaw::Broken(panic_message(&*why)))
}

/// The world of an experiment that can be run and that a scheduler and a node survive.
pub(crate) fn valid(text: &str) -> Result<World, String> {
    let experiment = try_parse(text)?;
    let [point] = &experiment.points[..] else { return Err("there must be one policy".to_owned()) };
    survivors(point, experiment.seed).map(|world| world.with_launcher(Arc::new(WithinTest)))
}

/// Whether several shards keep the order of events of a single shard. They do not without delays, since shards exchange
/// messages only between instants. They do not with pauses, at whose end each shard orders its own events, nor with an
/// oracle, which reads the state of all schedulers.
fn is_ordered(world: &World) -> bool {
    let (resolved, policy) = (&world.point().resolved, &world.point().policy);
    let distribution = &resolved.network.one_way;
    // Samples of other distributions can be rounded to zero; in a topology schedulers may live on nodes.
    let positive = distribution.bounds().0.is_some_and(|least| least > 0.0)
        || matches!(distribution, DistributionSpec::Lognormal(_));
    positive && resolved.cluster.topology.is_none() && !is_paused(world) && policy.traits().oracle.is_none()
}

/// The message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}

/// Counts the slices of a run, and ends a run that has too many.
struct SliceCount(Cell<u32>);

impl Progress for SliceCount {
    fn is_stopped(&self) -> bool {
        self.0.set(self.0.get() + 1);
        self.0.get() > MOST_SLICES
    }
}

fn config() -> RunConfig {
    let recording = Recording { one_in: Some(1), timeline_cores: 0, ..Recording::default() };
    RunConfig { until: None, recording }
}

/// Runs a world to its end. `None` if the run was stopped after [`MOST_SLICES`] but passed an hour of emulated time
/// within its limit on messages, as with short timers on a slow network.
fn run(world: &World, observer: impl Observer) -> Option<Measured> {
    let slices = SliceCount(Cell::new(0));
    match measure_with("swarm", world, &config(), observer, &slices) {
        Ok(measured) => Some(measured),
        Err(EngineError::Interrupted(measured)) => {
            messages(world, &measured);
            assert!(measured.summary.makespan_s > HOUR_S, "no end after {MOST_SLICES} slices of events");
            None
        }
        Err(EngineError::Refused(why)) => panic!("{why}"),
    }
}

fn examine(world: &World, again: Again) {
    let mut inputs = InputLog::new(world.asked());
    let measured = match again {
        Again::Replay => run(world, &mut inputs),
        Again::Nothing | Again::SameSeed | Again::TwoShards | Again::Hosts => run(world, ()),
    };
    let Some(measured) = measured else { return };
    totals(world, &measured);
    if measured.summary.jobs.unfinished > 0 {
        return;
    }
    messages(world, &measured);
    executions(world, &measured);
    sharing(world, &measured);
    responses(world, &measured);
    stages(world, &measured);
    critical_paths(world, &measured);
    deadlines(world, &measured);
    match again {
        Again::Nothing => {}
        Again::SameSeed => {
            let hash = run(world, ()).map(|measured| measured.summary.engine.order_hash);
            assert_eq!(
                hash,
                Some(measured.summary.engine.order_hash),
                "the same seed gives another order of events"
            );
        }
        Again::TwoShards if !is_ordered(world) => {}
        Again::TwoShards => {
            let (rows, _) = lockstep(world, 2, world.recorder(Recording::default()));
            let other = rows.iter().zip(&measured.jobs).find(|(two, one)| two != one);
            assert_eq!(
                (other, rows.len()),
                (None, measured.jobs.len()),
                "two shards give other jobs than one"
            );
        }
        Again::Hosts => {
            let rows = lossy_lockstep(world, 10);
            assert_eq!(rows.len(), measured.jobs.len(), "a row for every job");
            let open = rows.iter().filter(|row| row.response.is_nan()).count();
            assert_eq!(open, 0, "jobs that never end on hosts");
        }
        Again::Replay => {
            let recorded = Some(&measured.summary);
            let logged = Logged { run: "", config: config(), real_time: false, shards: 1, recorded };
            let log = inputs.entries.into_iter().map(Ok);
            let replayed = replay(world, &logged, [(0, log)], digest).expect("the log is whole");
            assert!(replayed.is_identical() && replayed.is_equal() && !replayed.cut, "{replayed:#?}");
        }
    }
}

/// The probability that a transmission is lost on the worst links.
fn loss(world: &World) -> f64 {
    let network = &world.point().resolved.network;
    Worst::of(network, &world.machines().links, world.faults()).expect("the network fits").loss()
}

/// The number of messages about tasks is bounded. The bound counts the messages of each task and its reservations,
/// their repetitions after losses, and repetitions at the pace of back-offs and of the peer timeout.
fn messages(world: &World, measured: &Measured) {
    const ABOUT_TASKS: [&str; 4] = ["job.", "launch.", "probe.", "steal."];
    let (policy, workload) = (&world.point().policy, world.workload());
    let (summary, network) = (&measured.summary, &world.point().resolved.network);
    let tasks: u64 = (0..workload.jobs()).map(|job| u64::from(workload.tasks(JobId(job)))).sum();
    let reservations = policy.traits().reservations;
    let reserved = (0..workload.jobs()).map(|job| reservations.reserved_for(workload.tasks(JobId(job))));
    let (tasks, places) = (tasks as f64, reserved.sum::<u64>() as f64);
    let lost = (1.0 - loss(world)).powi(-4).min(1e4) * (1.0 + network.duplicate.get()).powi(4);
    let repeated = summary.makespan_s / LONGEST_WAIT.min(network.peer_timeout).as_secs_f64();
    let most = (200.0 * tasks + 8.0 * places) * lost + 4.0 * places * repeated;
    let about_tasks = |kind: &str| ABOUT_TASKS.iter().any(|protocol| kind.starts_with(protocol));
    let sent: u64 =
        summary.messages.by_kind.iter().filter(|(kind, _)| about_tasks(kind)).map(|(_, count)| count).sum();
    assert!(sent as f64 <= most, "{sent} messages about {tasks} tasks: {:?}", summary.messages.by_kind);
}

/// Every job and task has finished, and the accounts balance. A run may be given up if its network loses nearly all
/// messages.
fn totals(world: &World, measured: &Measured) {
    let summary = &measured.summary;
    if summary.jobs.unfinished > 0 && loss(world) > 0.9 {
        assert!(measured.notes.iter().any(|note| note.contains("given up")), "{:#?}", measured.notes);
        return;
    }
    let (jobs, tasks, copies) = (summary.jobs, summary.tasks, summary.copies);
    assert_eq!(
        (jobs.finished, jobs.unfinished, jobs.failed),
        (jobs.submitted, 0, 0),
        "every fault heals, so every job finishes\n{:#?}",
        measured.notes
    );
    assert_eq!(measured.jobs.len() as u64, jobs.submitted, "a row for every job");
    assert_eq!(measured.jobs.iter().map(|row| u64::from(row.tasks)).sum::<u64>(), tasks.submitted);
    assert_eq!(tasks.finished, tasks.submitted);
    assert_eq!(copies.started, copies.finished + copies.preempted + copies.lost + copies.in_progress);
}

/// The copy of an execution. Rows number tasks across the stages of a job.
fn copy(world: &World, row: &CopyRow) -> CopyId {
    let workload = world.workload();
    let stages = workload.jobs_of(row.job).map(JobId);
    let job = stages.rev().find(|&job| workload.tasks_before(job) <= row.task).expect("a job has a stage");
    CopyId { task: TaskId { job, index: row.task - workload.tasks_before(job) }, attempt: row.attempt }
}

/// Totals of the executions of a copy.
#[derive(Default)]
struct Spent {
    /// Core time, s.
    busy: f64,
    /// Work that healthy cores do in that time, s.
    work: f64,
    stretches: u32,
}

/// Executions on a core do not overlap, each copy starts once and runs no faster than its core, and the rows add up to
/// the totals.
fn executions(world: &World, measured: &Measured) {
    let mut rows = measured.copies.clone();
    rows.sort_by(|a, b| a.core.cmp(&b.core).then(a.start.total_cmp(&b.start)).then(a.end.total_cmp(&b.end)));
    for pair in rows.windows(2).filter(|pair| pair[0].core == pair[1].core) {
        assert!(pair[0].end <= pair[1].start, "executions overlap: {pair:?}");
    }
    let mut copies: BTreeMap<CopyId, Spent> = BTreeMap::new();
    for row in &rows {
        let spent = copies.entry(copy(world, row)).or_default();
        let length = row.end - row.start;
        spent.busy += length;
        spent.work += length * world.machines().cores.speed(row.core);
        spent.stretches += 1;
    }
    let healthy = is_healthy(world);
    let ended = |how: &[CopyEnd]| rows.iter().filter(|row| how.contains(&row.end_kind)).collect::<Vec<_>>();
    let finished = ended(&[CopyEnd::First, CopyEnd::Second]);
    for row in &finished {
        let spent = &copies[&copy(world, row)];
        // Only the scheduler of a gang knows whether another of its tasks runs on a node that the job does not prefer.
        let [least, most] = [false, true].map(|elsewhere| work_on(world, row, elsewhere));
        // Every stretch is rounded to the nanosecond on a core that may be fast.
        let rounding = 1e-9 * most + 1e-8 * f64::from(spent.stretches + 1);
        assert!(spent.work >= least - rounding, "{row:?} did {} s of its {least} s", spent.work);
        assert!(!healthy || spent.work <= most + rounding, "{row:?} did {} s for {most} s", spent.work);
    }
    let first = ended(&[CopyEnd::First]);
    let tasks: BTreeSet<_> = first.iter().map(|row| (row.job, row.task)).collect();
    let totals = measured.summary.copies;
    assert_eq!((tasks.len(), first.len() as u64), (first.len(), measured.summary.tasks.finished));
    assert_eq!(finished.len() as u64, totals.finished);
    assert_eq!(totals.started, copies.len() as u64, "a copy starts once");
    let busy: f64 = copies.values().map(|spent| spent.busy).sum();
    let useful: f64 = first.iter().map(|row| copies[&copy(world, row)].busy).sum();
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * (1.0 + a.abs());
    assert!(near(busy, totals.busy_s), "rows are busy for {busy} s, the totals for {} s", totals.busy_s);
    let useless = totals.wasted_work_s + totals.in_progress_s;
    assert!(near(busy - useful, useless), "{} s of {totals:?}", busy - useful);
    let finished = measured.summary.jobs.unfinished == 0;
    assert!(!finished || (totals.in_progress, totals.in_progress_s) == (0, 0.0), "{totals:?}");
}

/// The used CPU is at most that of the nodes, and the wasted CPU at most the used CPU. Copies are evicted only where
/// memory can be short.
fn sharing(world: &World, measured: &Measured) {
    let Some(shared) = measured.summary.shared else {
        return assert!(world.layout().sharing().is_none());
    };
    assert!((0.0..=1.0 + 1e-6).contains(&shared.cpu), "{shared:?}");
    let useless = shared.wasted_core_h + shared.in_progress_core_h;
    assert!((0.0..=1.0).contains(&shared.throttled) && useless <= shared.used_core_h + 1e-9, "{shared:?}");
    assert!(measured.summary.jobs.unfinished > 0 || shared.in_progress_core_h == 0.0, "{shared:?}");
    assert!(shared.evictions == 0 || world.layout().evicts(), "{shared:?}");
    assert!(shared.evictions <= measured.summary.copies.preempted, "{shared:?}");
}

/// The work of an execution on its node, s.
fn work_on(world: &World, row: &CopyRow, elsewhere: bool) -> f64 {
    let layout = world.layout();
    let kind = layout.kind(layout.node_of_core(row.core));
    world.workload().work_on(copy(world, row), kind, elsewhere).as_secs_f64()
}

/// The met deadlines are those of the jobs that ended in time, and node-hours cover all jobs.
fn deadlines(world: &World, measured: &Measured) {
    let workload = world.workload();
    let Some(found) = measured.summary.deadlines else { return assert!(!workload.has_deadlines()) };
    let deadline = |row: &JobRow| workload.deadline(row.job).map(|at| at.as_secs_f64());
    let (slo, be): (Vec<_>, Vec<_>) = measured.jobs.iter().partition(|row| deadline(row).is_some());
    // Times of rows are rounded.
    let met = |slack: f64| {
        let by = |row: &&&JobRow| deadline(row).is_some_and(|at| row.arrival + row.response <= at + slack);
        slo.iter().filter(by).count() as u64
    };
    assert!((met(-1e-6)..=met(1e-6)).contains(&found.met), "{found:?}");
    assert_eq!((found.slo, found.met + found.missed, found.open), (slo.len() as u64, slo.len() as u64, 0));
    let jobs = (0..workload.jobs()).map(JobId);
    let hours = jobs.map(|job| f64::from(workload.tasks(job)) * workload.longest(job).as_secs_f64() / 3600.0);
    let (hours, total) = (hours.sum::<f64>(), found.goodput_h.total);
    assert!((hours - total).abs() <= 1e-9 * hours, "{hours} h, {found:?}");
    assert_eq!((be.is_empty(), found.value), (found.be_response_s.mean.is_nan(), found.met));
}

fn is_paused(world: &World) -> bool {
    (0..world.layout().endpoints()).any(|who| !world.faults().pauses(Endpoint(who)).is_empty())
}

/// Whether cores have their full speed all the time, and no copy can begin again after a crash.
fn is_healthy(world: &World) -> bool {
    let resolved = &world.point().resolved;
    let whole = resolved.interference.is_none() && resolved.service.preemption.0 == 0;
    let whole = whole && resolved.cluster.shared_cpu().is_none();
    whole && world.faults().crashes().is_empty() && !is_paused(world)
}

/// No task of a stage starts before every task of the stages that it waits for has ended.
fn stages(world: &World, measured: &Measured) {
    let mut ends: BTreeMap<JobId, f64> = BTreeMap::new();
    for row in measured.copies.iter().filter(|row| row.end_kind == CopyEnd::First) {
        let end = ends.entry(copy(world, row).task.job).or_default();
        *end = end.max(row.end);
    }
    for row in &measured.copies {
        let mut awaited = world.workload().links(copy(world, row).task.job).predecessors();
        assert!(awaited.all(|job| ends[&job] <= row.start), "{row:?} starts before its stage");
    }
}

/// No job takes less than its critical path on the fastest core: along every path of dependent stages, the copies that
/// finished first take their work one after the other.
fn critical_paths(world: &World, measured: &Measured) {
    let (workload, cores) = (world.workload(), &world.machines().cores);
    let fastest = (0..cores.cores()).map(|core| cores.speed(core)).fold(0.0, f64::max);
    let mut times = vec![0.0f64; workload.jobs() as usize];
    for row in measured.copies.iter().filter(|row| row.end_kind == CopyEnd::First) {
        let copy = copy(world, row);
        let time = &mut times[copy.task.job.index()];
        *time = time.max(workload.work(copy).as_secs_f64() / fastest);
    }
    let alike = world.point().resolved.service.correlated == Share::ALL;
    for row in &measured.jobs {
        let mut ends: BTreeMap<JobId, f64> = BTreeMap::new();
        for job in workload.jobs_of(row.job).map(JobId) {
            let begin = workload.links(job).predecessors().map(|other| ends[&other]).fold(0.0, f64::max);
            ends.insert(job, begin + times[job.index()]);
        }
        let path = ends.values().copied().fold(0.0, f64::max);
        let least = |path: f64| path - 1e-8 * (2.0 + path) * ends.len() as f64;
        assert!(row.response >= least(path), "{row:?} has a critical path of {path} s");
        // Without copies of other lengths, this is the critical path of the results.
        assert!(
            !alike || row.response >= least(row.longest / fastest),
            "{row:?} on cores of speed {fastest}"
        );
        assert!(
            !alike || (path - row.longest / fastest).abs() <= 1e-6 * (1.0 + path),
            "{row:?}, not {path} s"
        );
    }
    assert_eq!(measured.summary.graphs.is_some(), workload.has_dependencies());
    if let Some(graphs) = &measured.summary.graphs {
        let deep = measured.jobs.iter().filter(|row| workload.depth(row.job) > 1).count();
        assert_eq!(deep as f64 / measured.jobs.len() as f64, graphs.share, "{graphs:?}");
        assert_eq!(graphs.by_depth.values().map(|of| of.jobs).sum::<u64>(), measured.jobs.len() as u64);
    }
}

/// A job ends after its tasks, takes no less than the work of its longest task on the fastest core, and starts no task
/// before it arrives.
fn responses(world: &World, measured: &Measured) {
    const ROUNDING: f64 = 1e-8;
    let cores = &world.machines().cores;
    let fastest = (0..cores.cores()).map(|core| cores.speed(core)).fold(0.0, f64::max);
    let jobs: BTreeMap<u32, _> = measured.jobs.iter().map(|row| (row.job, row)).collect();
    for row in &measured.copies {
        let job = jobs[&row.job];
        assert!(row.start >= job.arrival - ROUNDING, "{row:?} starts before {job:?}");
        if row.end_kind == CopyEnd::First {
            let least = world.workload().work(copy(world, row)).as_secs_f64() / fastest;
            assert!(job.response >= least - ROUNDING - 1e-9 * least, "{job:?} with {row:?} of {least} s");
            assert!(row.end <= job.arrival + job.response + ROUNDING, "{row:?} ends after {job:?}");
        }
    }
    let begin = measured.jobs.iter().map(|row| row.arrival).fold(f64::INFINITY, f64::min);
    let end = measured.jobs.iter().map(|row| row.arrival + row.response).fold(0.0, f64::max);
    let makespan = measured.summary.makespan_s;
    assert!((makespan - (end - begin)).abs() <= ROUNDING, "makespan {makespan} s from {begin} to {end} s");
    let utilization = measured.summary.utilization;
    assert!((0.0..=1.0 + 1e-9).contains(&utilization), "utilization {utilization}");
}
