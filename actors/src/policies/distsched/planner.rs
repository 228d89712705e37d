//! The policy DistSched, and its planner: each cycle it places the waiting jobs that are worth most.

use std::sync::Arc;

use super::config::{DistSched, UsageEstimates};
use super::estimate::{UsageHistory, UsageSource};
use super::greedy::{GreedyOptions, PendingJob, select};
use super::known::ExpectedJob;
use super::load::NodeLoads;
use super::relief::relieve;
use crate::base::{CopyId, JobId, Span, Time};
use crate::catalog::JobSpec;
use crate::layout::Layout;
use crate::machine::{Effects, Machine, Note, Stored};
use crate::message::{Contention, UsageReport};
use crate::policies::policy::{BuildContext, Policy, Traits};
use crate::policies::shared::check_period;
use crate::roles::job_table::JobTable;
use crate::roles::node::NodeUsage;
use crate::roles::planning::{Decision, JobRun, LaunchOrder, Planner, PlanningScheduler, Situation, Utility};

impl Policy for DistSched {
    const ABOUT: &'static str = "DistSched (Park's thesis, chapter 5)\n\
        A central scheduler for shared nodes expects distributions of the CPU, memory and CPU-time of each job's \
        tasks, from the jobs like it that have ended. Each cycle it places one waiting job after the other, the one \
        with the highest expected utility first: a task goes to the node on which memory and CPU are least likely to \
        be over-allocated, and of these to the fullest one. What a job is worth is the probability that none of its \
        tasks is evicted times the expected utility of the end of its last task, as the CPU of a task depends on what \
        else runs on its node. Use that is constantly above what was expected takes its place, and best-effort tasks \
        are preempted on nodes that throttle SLO tasks.\n\
        Actual, Point and Request are { estimates = \"actual\" }, \"point\" and \"request\", each with { over = \
        \"never\", observe = false, preempt = false }; DistMax, ActualMax and PointMax have of = \"max\". NoDist is { \
        estimates = \"point\" }, NoPack { risk = 0.0 }, NoOver { over = \"never\" }, NoObs { observe = false }, \
        NoPreempt { preempt = false }. A task of which more is expected than any node has runs alone on a node, and a \
        job with more tasks than idle nodes would hold runs as many at a time as they do. Where nodes are not shared, \
        each task uses a core.";

    const VARIANTS: &'static [&'static str] = &[
        r#"{ cycle = "500ms" }"#,
        r#"{ cycle = "100ms", estimates = "point", of = "max", risk = 0.0, constantly = "1s" }"#,
        r#"{ cycle = "250ms", estimates = "actual", over = "never", observe = false, preempt = false }"#,
        r#"{ cycle = "200ms", estimates = "request", over = "always" }"#,
        r#"{ cycle = "300ms", of = "max", risk = 0.5, constantly = "500ms", horizon = "10s" }"#,
    ];

    fn traits(&self) -> Traits<'_> {
        Traits { one_scheduler: true, plans: true, node_usage: Some(NodeUsage::Reports), ..Traits::default() }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_period("cycle", self.cycle)?;
        check_period("horizon", self.horizon)
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
                "risk has little effect on points, which are over-allocated for certain or not".to_owned(),
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

/// The planner.
pub(super) struct UsagePlanner {
    config: DistSched,
    source: UsageSource,
    known: JobTable<ExpectedJob>,
    loads: NodeLoads,
    /// Time between the reports of a node.
    period: Span,
    /// Whether nodes have been throttling copies since the last decision.
    contended: bool,
    /// Whether the history is that of a predecessor.
    restored: bool,
}

impl UsagePlanner {
    pub(super) fn new(config: &DistSched, layout: &Layout) -> Self {
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

    /// The jobs with waiting tasks, by age, and the next time at which one of them may use an avoided node again.
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
        // The demand of a throttled copy is known better now.
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

/// When the utility of a job that still waits changes its form next.
fn due(pending: &[PendingJob], launches: &[LaunchOrder]) -> Option<Time> {
    let waits = |job: &&PendingJob| launches.iter().all(|launch| launch.job != job.job);
    let zeros = pending.iter().filter(waits).filter_map(|job| match job.utility {
        Utility::Slo { zero, .. } => Some(Time::ZERO + Span::from_secs_f64(zero)),
        Utility::BestEffort { .. } => None,
    });
    zeros.min()
}
