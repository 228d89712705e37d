//! DistSched: a central scheduler places tasks on shared nodes from distributions of their use.
//!
//! This file has the policy that the registry lists, and its planner. Each cycle the planner places the waiting jobs
//! one after the other, the most useful first (thesis, section 5.2.3). It preempts best-effort tasks on nodes that
//! throttle (section 5.3.2).
//!
//! | module | contents |
//! |---|---|
//! | `config` | the parameters |
//! | `known` | an open job: the estimate of its use (predictors of CPU, memory and CPU-time), and reports that replace it |
//! | `load` | the tasks of each node, the risk of more, and sums of independent distributions on a grid |
//! | `placement` | nodes for the tasks of a job, a job's view of the nodes, and the expected utility of a placement |

mod config;
mod known;
mod load;
mod placement;

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

pub use config::{DistSched, UsageEstimates, UsageStatistic};
use known::{ExpectedJob, UsageHistory, UsageSource};
use load::{NodeLoad, NodeLoads, TaskUse};
use placement::{PlacementView, Terms, expected, place};

use crate::base::{CopyId, JobId, Span, Time};
use crate::catalog::JobSpec;
use crate::layout::Layout;
use crate::machine::{Effects, Machine, Note, Stored};
use crate::message::{Contention, UsageReport};
use crate::policies::policy::{Binds, BuildContext, Policy, Traits};
use crate::roles::job_table::JobTable;
use crate::roles::node::NodeUsage;
use crate::roles::planning::{
    Decision, HeldCore, JobRun, LaunchOrder, PlannedJob, Planner, PlanningScheduler, Situation, TaskPlaces,
    Utility,
};

impl Policy for DistSched {
    const ABOUT: &'static str = "DistSched (Park's thesis, chapter 5)\n\
        A central scheduler for shared nodes estimates distributions of the CPU, memory and CPU-time of each job's \
        tasks from similar jobs that have ended. Each cycle it places one waiting job after the other, the one \
        with the highest expected utility first. A task goes to the node on which memory and CPU are least likely to \
        be over-allocated, and among equals to the fullest node. The expected utility of a job is the probability that \
        none of its tasks is evicted times the expected utility of the end of its last task; the CPU of a task depends \
        on the other tasks of its node. Observed use that is constantly above the expected use replaces it, and \
        best-effort tasks are preempted on nodes that throttle SLO tasks.\n\
        Actual, Point and Request are { estimates = \"actual\" }, \"point\" and \"request\", each with { over = \
        \"never\", observe = false, preempt = false }; DistMax, ActualMax and PointMax have of = \"max\". NoDist is { \
        estimates = \"point\" }, NoPack { risk = 0.0 }, NoOver { over = \"never\" }, NoObs { observe = false }, \
        NoPreempt { preempt = false }. A task that is expected to use more than any node has runs alone on a node. A \
        job with more tasks than the idle cluster can hold runs as many tasks at a time as fit. Where nodes are not \
        shared, each task uses a core.";

    fn traits(&self) -> Traits<'_> {
        Traits {
            binds: Binds::Plans,
            one_scheduler: true,
            node_usage: Some(NodeUsage::Reports),
            ..Traits::default()
        }
    }

    fn remarks(&self, layout: &Layout, _: usize) -> Vec<String> {
        let mut remarks = Vec::new();
        if layout.sharing().is_none() {
            remarks.push(
                "nodes are not shared, so that each task has a core; set cluster.shared = true for nodes that tasks \
                 share"
                    .to_owned(),
            );
        }
        if self.estimates != UsageEstimates::Dist && self.risk != Self::default().risk && self.risk > 0.0 {
            remarks.push(
                "risk has little effect on point estimates: a node is over-allocated for certain or not at all".to_owned(),
            );
        }
        if layout.kinds() > 1 {
            remarks.push("jobs' preferences of nodes are ignored: nodes are chosen by their load".to_owned());
        }
        remarks
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let planner = UsagePlanner::new(self, context.layout);
        Box::new(PlanningScheduler::new(self.cycle, planner, context.layout))
    }
}

/// Plans the cycles of DistSched from the expected use of jobs and the loads of nodes.
#[derive(Clone, Debug)]
struct UsagePlanner {
    config: DistSched,
    source: UsageSource,
    known: JobTable<ExpectedJob>,
    loads: NodeLoads,
    /// Time between the reports of a node.
    period: Span,
    /// Whether nodes have been throttling copies since the last decision.
    contended: bool,
    /// Whether the history was restored after a crash.
    restored: bool,
}

impl UsagePlanner {
    fn new(config: &DistSched, layout: &Layout) -> Self {
        Self {
            config: config.clone(),
            source: UsageSource::new(config),
            known: JobTable::default(),
            loads: NodeLoads::new(layout),
            period: layout.sharing().map_or(Span::ZERO, |sharing| sharing.report),
            contended: false,
            restored: false,
        }
    }

    /// The jobs with waiting tasks, by age, and the next time at which a job may use an avoided node again.
    fn pending(
        &mut self,
        situation: &mut Situation<'_>,
        fx: &mut Effects<'_>,
    ) -> (Vec<PendingJob>, Option<Time>) {
        let (mut pending, mut due) = (Vec::new(), None::<Time>);
        for (job, planned) in situation.jobs.iter_mut().filter(|(_, job)| !job.waiting.is_empty()) {
            let Some(known) = self.known.get_mut(job) else { continue };
            let mut held: Vec<u32> = planned.held.iter().map(|core| core.node).collect();
            held.sort_unstable();
            held.dedup();
            let (avoided, until) = known.avoided(fx.now(), &self.loads);
            due = due.into_iter().chain(until).min();
            pending.push(PendingJob {
                job,
                held,
                avoided,
                waiting: planned.waiting.len() as u32,
                tasks: Arc::clone(&known.tasks),
                work: known.work,
                utility: known.utility.at(fx.now()),
                salt: u64::from(fx.rng().below(u32::MAX)),
            });
        }
        (pending, due)
    }
}

impl Planner for UsagePlanner {
    fn started(&mut self, fx: &mut Effects<'_>) {
        if !self.restored {
            self.source.study(fx.catalog());
        }
    }

    fn submitted(&mut self, job: JobId, spec: &JobSpec, fx: &mut Effects<'_>) {
        let forecast = self.source.estimate(job, fx.catalog());
        let requested = fx.catalog().request(job).memory;
        self.known.open(job, ExpectedJob::new(&self.config, spec, forecast, requested));
    }

    fn has_choice(&self, waiting: bool) -> bool {
        waiting || self.contended
    }

    fn decide(&mut self, mut situation: Situation<'_>, fx: &mut Effects<'_>) -> Decision {
        let mut stops = Vec::new();
        if std::mem::take(&mut self.contended) {
            stops = relieve(situation.jobs, &mut self.known, self.loads.nodes(), fx.now());
        }
        let known = &mut self.known;
        self.loads.refresh((situation.jobs, situation.pool), stops.clone(), |job| {
            known.get_mut(job).map(|known| Arc::clone(&known.tasks))
        });
        let (pending, usable) = self.pending(&mut situation, fx);
        let options = GreedyOptions {
            now: fx.now().as_secs_f64(),
            horizon: self.config.horizon.as_secs_f64(),
            risk: self.config.risk,
        };
        let launches = select(&pending, &mut self.loads, options);
        let due = due(&pending, &launches).into_iter().chain(usable).min();
        Decision { stops, launches, due, ..Decision::default() }
    }

    fn reported(&mut self, report: UsageReport, _: &mut Effects<'_>) -> bool {
        let UsageReport::Report { copy, .. } = report;
        let Some(known) = self.known.get_mut(copy.task.job) else { return false };
        let constantly = self.config.observe.then_some(self.config.constantly);
        let changed = known.reported(report, constantly, self.period);
        // The report gives a better estimate of a throttled copy's demand.
        let contended = self.config.preempt && known.observed.of(copy).is_some_and(|seen| seen.rate < 1.0);
        self.contended |= contended;
        changed || contended
    }

    fn throttled(&mut self, copy: CopyId, rate: u32, at: Time, _: &mut Effects<'_>) -> bool {
        let Some(known) = self.known.get_mut(copy.task.job) else { return false };
        known.observed.throttled(copy, rate, at);
        let contended = self.config.preempt && rate < Contention::ALL;
        self.contended |= contended;
        contended
    }

    fn evicted(&mut self, copy: CopyId, node: u32, alone: bool, fx: &mut Effects<'_>) {
        let Some(known) = self.known.get_mut(copy.task.job) else { return };
        known.evicted(node, fx.now());
        if alone {
            known.needs_more_than(self.loads.nodes()[node as usize].room.memory);
        }
    }

    fn stopped(&mut self, copy: CopyId, _: &mut Effects<'_>) {
        if let Some(known) = self.known.get_mut(copy.task.job) {
            known.stopped(copy);
        }
    }

    fn ended(&mut self, job: JobId, run: Option<JobRun>, fx: &mut Effects<'_>) {
        let Some(known) = self.known.close(job) else { return };
        self.source.learn(job, &known.forecast, fx.catalog());
        if let Some(JobRun { length, .. }) = run {
            fx.note(Note::Predicted { job, expected: Span::from_secs_f64(known.run()), run: length });
        }
    }

    fn stored(&mut self) -> Option<Stored> {
        Some(Box::new(self.source.take_history()))
    }

    fn restore(&mut self, stored: Stored) {
        if let Ok(history) = stored.downcast::<UsageHistory>() {
            self.source.restore(*history);
            self.restored = true;
        }
    }
}

/// Next time at which the utility function of a waiting job changes.
fn due(pending: &[PendingJob], launches: &[LaunchOrder]) -> Option<Time> {
    let waits = |job: &&PendingJob| launches.iter().all(|launch| launch.job != job.job);
    let zeros = pending.iter().filter(waits).filter_map(|job| match job.utility {
        Utility::Slo { zero, .. } => Some(Time::ZERO + Span::from_secs_f64(zero)),
        Utility::BestEffort { .. } => None,
    });
    zeros.min()
}

/// A job with waiting tasks.
struct PendingJob {
    job: JobId,
    /// Number of waiting tasks.
    waiting: u32,
    /// Expected use of each task.
    tasks: Arc<TaskUse>,
    /// Expected CPU-time of each task, core-seconds.
    work: f64,
    utility: Utility,
    /// Nodes that run tasks of the job, in order.
    held: Vec<u32>,
    /// Nodes that the job avoids, in order.
    avoided: Vec<u32>,
    /// Seed of the random order of equal nodes.
    salt: u64,
}

/// Options common to all jobs of a cycle.
#[derive(Clone, Copy)]
struct GreedyOptions {
    /// The current time, in seconds since the start of the run.
    now: f64,
    /// Run time at which a best-effort job reaches its least utility, s.
    horizon: f64,
    /// The probability of an over-allocation must be below this limit.
    risk: f64,
}

/// A placement at which a job could start, and the utility of this placement.
struct SchedulingOption {
    worth: f64,
    nodes: Vec<u32>,
}

/// The last computed utility of a job's option. Ties go to the first job.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Bound {
    worth: f64,
    at: usize,
}

impl Eq for Bound {}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bound {
    fn cmp(&self, other: &Self) -> Ordering {
        self.worth.total_cmp(&other.worth).then_with(|| other.at.cmp(&self.at))
    }
}

/// Launches of jobs until none can be placed, the job with the highest expected utility first. The launched tasks are
/// added to `loads`.
///
/// Every launch leaves less room. A recomputed option is therefore usually worth no more than before, and a job without
/// an option has none for the rest of the cycle. So it suffices to recompute the best option until it stays the best.
/// The exception is an option whose recomputed placement is worth more: its job is launched later in the cycle than it
/// could be.
fn select(pending: &[PendingJob], loads: &mut NodeLoads, options: GreedyOptions) -> Vec<LaunchOrder> {
    let mut order: BinaryHeap<_> = (0..pending.len()).map(|at| Bound { worth: f64::INFINITY, at }).collect();
    let mut launches = Vec::new();
    while let Some(Bound { at, .. }) = order.pop() {
        let job = &pending[at];
        let Some(SchedulingOption { worth, nodes }) = option(job, loads, options) else { continue };
        let again = Bound { worth, at };
        if order.peek().is_some_and(|next| *next > again) {
            order.push(again);
            continue;
        }
        loads.add(job.job, &nodes, &job.tasks);
        launches.push(LaunchOrder { job: job.job, places: TaskPlaces::Nodes(nodes) });
    }
    launches
}

/// A placement of all waiting tasks of a job or, if not even idle nodes would hold all of them, of as many as idle
/// nodes would hold. `None` if there is no such placement, or it is worth nothing.
fn option(job: &PendingJob, loads: &NodeLoads, options: GreedyOptions) -> Option<SchedulingOption> {
    let PendingJob { waiting, ref tasks, work, utility, salt, .. } = *job;
    let terms = Terms { tasks: waiting, risk: options.risk, alone: false, salt };
    let view = PlacementView::new(loads.nodes(), job.job, &job.held, &job.avoided);
    let mut nodes = place(&view, tasks, terms);
    if nodes.len() < waiting as usize {
        let room = loads.idle_room(tasks, waiting, options.risk, &job.avoided);
        let alone = room == 0;
        let wanted = if alone { waiting.min(loads.usable(&job.avoided)) } else { room };
        if alone {
            nodes = place(&view, tasks, Terms { tasks: wanted, alone, ..terms });
        }
        if wanted == 0 || nodes.len() < wanted as usize {
            return None;
        }
    }
    let of_time = |per_work: f64| utility.for_run_time(options.now, work * per_work, options.horizon);
    let worth = expected(&view, &nodes, tasks, of_time);
    (worth > 0.0).then_some(SchedulingOption { worth, nodes })
}

/// The CPU demand of the tasks on a node.
#[derive(Clone, Copy, Default)]
struct NodeDemand {
    throttled: bool,
    /// Whether one of the tasks belongs to an SLO job whose utility has not fallen to zero yet.
    urgent: bool,
    /// CPU demand of the tasks, cores.
    demand: f64,
}

/// A best-effort copy on a contended node.
#[derive(Clone, Copy, Debug)]
struct Victim {
    core: HeldCore,
    over_request: bool,
    over_expected: bool,
    /// Number of contended nodes with tasks of the copy's job.
    nodes: usize,
    /// CPU demand of the copy, cores.
    demand: f64,
}

impl Victim {
    /// Order of eviction: tasks that use more than was requested, then tasks that use more than was expected, then
    /// tasks of jobs on many contended nodes, then tasks that use most.
    fn compare(&self, other: &Self) -> Ordering {
        let rank = |victim: &Self| (victim.over_request, victim.over_expected, victim.nodes);
        rank(other)
            .cmp(&rank(self))
            .then_with(|| other.demand.total_cmp(&self.demand))
            .then_with(|| self.core.copy.task.cmp(&other.core.copy.task))
    }
}

/// The best-effort copies to be preempted on nodes that throttle copies while an SLO task runs there. The worst copies
/// go first, until the others demand no more CPU than the node has.
fn relieve(
    jobs: &mut JobTable<PlannedJob>,
    known: &mut JobTable<ExpectedJob>,
    loads: &[NodeLoad],
    now: Time,
) -> Vec<HeldCore> {
    let mut nodes = contention(jobs, known, loads.len(), now);
    let mut victims = Vec::new();
    for (id, job) in jobs.iter_mut().filter(|(_, job)| job.open.spec.deadline.is_none()) {
        if let Some(known) = known.get_mut(id) {
            collect(job, known, &nodes, &mut victims);
        }
    }
    victims.sort_unstable_by(Victim::compare);
    let mut stops = Vec::new();
    for victim in victims {
        let node = victim.core.node as usize;
        if nodes[node].demand > loads[node].room.cpu {
            nodes[node].demand -= victim.demand;
            stops.push(victim.core);
        }
    }
    stops
}

/// The CPU demand on each node.
fn contention(
    jobs: &mut JobTable<PlannedJob>,
    known: &mut JobTable<ExpectedJob>,
    nodes: usize,
    now: Time,
) -> Vec<NodeDemand> {
    let mut found = vec![NodeDemand::default(); nodes];
    for (id, job) in jobs.iter_mut() {
        let Some(known) = known.get_mut(id) else { continue };
        let urgent = matches!(known.utility.at(now), Utility::Slo { .. });
        for core in &job.held {
            let node = &mut found[core.node as usize];
            node.throttled |= known.observed.of(core.copy).is_some_and(|seen| seen.rate < 1.0);
            node.urgent |= urgent;
            node.demand += known.demand(core.copy);
        }
    }
    found
}

/// Adds the copies of a best-effort job that may be preempted to `victims`.
fn collect(job: &PlannedJob, known: &ExpectedJob, nodes: &[NodeDemand], victims: &mut Vec<Victim>) {
    let contended = |core: &&HeldCore| nodes[core.node as usize].throttled;
    let mut on: Vec<_> = job.held.iter().filter(contended).map(|core| core.node).collect();
    on.sort_unstable();
    on.dedup();
    for &core in job.held.iter().filter(contended).filter(|core| nodes[core.node as usize].urgent) {
        let seen = known.observed.of(core.copy).copied();
        let (demand, memory) = (known.demand(core.copy), seen.map_or(0.0, |seen| seen.memory));
        let tasks = &known.tasks;
        victims.push(Victim {
            core,
            over_request: demand > tasks.request || memory > known.requested_memory,
            over_expected: demand > tasks.cpu.max() || memory > tasks.memory.max(),
            nodes: on.len(),
            demand,
        });
    }
}

#[cfg(test)]
mod tests;
