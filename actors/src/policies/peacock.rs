//! Peacock: probes that rotate on a ring of workers until they can be served in time.
//!
//! The scheduler sends a probe for each task; probes carry the shared load estimate.

mod config;
mod node;

pub use config::{Peacock, PeacockForm, PeacockWait};
use node::PeacockNode;

use crate::base::{ActorId, CopyId, JobId, Span, TaskId};
use crate::layout::{Layout, Role};
use crate::machine::{CacheNote, Effects, Input, Machine, Timer};
use crate::message::{Job, Launch, Message, Probe, Ring, RingProbe, Row};
use crate::policies::policy::{BuildContext, Caches, Policy, Traits};
use crate::roles::job_table::{Completion, JobTable, OpenJob};
use crate::roles::membership::Membership;
use crate::roles::resend;

impl Policy for Peacock {
    const ABOUT: &'static str = "Peacock (Khelghatdoust and Gramoli, Euro-Par 2018)\n\
        One probe per task goes to a random worker. A worker orders its probes by size, as far as the time that each \
        may still wait allows, and passes those it cannot serve in time to its successor on a ring. A probe at the \
        head holds the core while its scheduler is asked for the task. Fit its clocks to the tasks: the authors' \
        interval of 1 s, one hop of a probe, is far too slow for tasks of a second, and the waiting threshold of the \
        other form is unpublished.";

    const VARIANTS: &'static [&'static str] = &[r#"{ interval = "500ms" }"#, r#"{ form = "threshold" }"#];

    fn traits(&self) -> Traits<'_> {
        let caches = match self.form {
            PeacockForm::Elastic => Caches::SharedState,
            PeacockForm::Threshold => Caches::None,
        };
        Traits { caches, ..Traits::default() }
    }

    fn check(&self, layout: &Layout) -> Result<(), String> {
        if layout.schedulers() > u32::from(u16::MAX) {
            return Err("Peacock supports at most 65535 schedulers; lower cluster.schedulers".into());
        }
        Ok(())
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(PeacockScheduler::new(self, context))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(PeacockNode::new(self, context))
    }
}

/// Unfinished tasks A and their estimated work Ω (ns), from a numbered report.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    report: u64,
    active: u64,
    work: u128,
}

#[derive(Clone, Debug)]
struct PeacockJob {
    open: OpenJob,
    /// Node to which each task was granted; `None` while the task's probe is on the ring.
    nodes: Vec<Option<ActorId>>,
}

impl PeacockJob {
    /// Takes back the open tasks granted to a node that crashed.
    fn take_back(&mut self, node: ActorId) {
        let mut fresh = false;
        for (index, at) in self.nodes.iter_mut().enumerate().filter(|(_, at)| **at == Some(node)) {
            if !self.open.is_done(index as u32) {
                *at = None;
                fresh = true;
            }
        }
        if fresh {
            self.open.attempts(1);
        }
    }
}

#[derive(Clone, Debug)]
struct PeacockScheduler {
    form: PeacockForm,
    threshold: Span,
    index: u32,
    members: Membership,
    jobs: JobTable<PeacockJob>,
    /// The last report of each scheduler; the entry of this scheduler is exact.
    loads: Vec<Load>,
    /// Sum of `loads`.
    total: Load,
    sample: Vec<ActorId>,
    /// Whether unclaimed probes are about to be sent again.
    resending: bool,
    observed: bool,
}

/// Time from the crash of a node until unclaimed probes are sent again. All crashes within this time cost one
/// repetition.
const GATHER: Span = Span::from_millis(1);

impl PeacockScheduler {
    fn new(config: &Peacock, context: BuildContext<'_>) -> Self {
        Self {
            form: config.form,
            threshold: config.threshold,
            index: context.index,
            members: Membership::new(context.layout),
            jobs: JobTable::default(),
            loads: vec![Load::default(); context.layout.schedulers() as usize],
            total: Load::default(),
            sample: Vec::new(),
            resending: false,
            observed: context.observed,
        }
    }

    /// Mean load w̄ = Ω/n and queue limit q = round(max(0, A − n)/n) over the n cores alive.
    fn state(&self, layout: &Layout) -> (Span, u8) {
        let n = u64::from(layout.workers()) * u64::from(self.members.len()) / u64::from(layout.nodes());
        let n = n.max(1);
        let waiting = self.total.active.saturating_sub(n);
        let limit = ((waiting + n / 2) / n).min(u64::from(u8::MAX)) as u8;
        (Span((self.total.work / u128::from(n)) as u64), limit)
    }

    /// Records the unfinished tasks of a scheduler.
    fn account(&mut self, scheduler: u32, load: Load) {
        let entry = &mut self.loads[scheduler as usize];
        if load.report >= entry.report {
            self.total.active = self.total.active - entry.active + load.active;
            self.total.work = self.total.work - entry.work + load.work;
            *entry = load;
        }
    }

    /// Records a change of the tasks of this scheduler and reports it to the other schedulers.
    fn spread(&mut self, change: impl FnOnce(&mut Load), fx: &mut Effects<'_>) {
        let mut own = self.loads[self.index as usize];
        change(&mut own);
        own.report += 1;
        self.account(self.index, own);
        if self.form == PeacockForm::Threshold {
            return;
        }
        if self.observed {
            fx.note(CacheNote::Changed);
        }
        let (active, work) = (own.active as u32, Span(u64::try_from(own.work).unwrap_or(u64::MAX)));
        for i in (0..fx.layout().schedulers()).filter(|&i| i != self.index) {
            fx.send(fx.layout().scheduler(i), Ring::Load { report: own.report, active, work });
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let catalog = fx.catalog();
        let Some(mut open) = self.jobs.admit(job, round, catalog) else { return };
        open.attempts(1);
        let tasks = open.spec.tasks;
        let work = (0..tasks).fold(Span::ZERO, |sum, i| sum + catalog.estimate(job.task(i)));
        let add = |own: &mut Load| {
            own.active += u64::from(tasks);
            own.work += u128::from(work.0);
        };
        self.spread(add, fx);
        self.jobs.open(job, PeacockJob { open, nodes: vec![None; tasks as usize] });
        let mut base = 0;
        while base < tasks && !self.members.is_empty() {
            // Workers are distinct; a job with more tasks than workers uses them repeatedly.
            let mut sample = std::mem::take(&mut self.sample);
            sample.clear();
            self.members.sample(fx.rng(), (tasks - base) as usize, &mut sample);
            for &node in &sample {
                let visit = self.probe(job.task(base), false, fx.layout());
                fx.send(node, visit);
                base += 1;
            }
            self.sample = sample;
        }
    }

    fn probe(&self, task: TaskId, repair: bool, layout: &Layout) -> RingProbe {
        let (load, limit) = self.state(layout);
        let max_wait = if self.form == PeacockForm::Threshold { self.threshold } else { load };
        RingProbe { task, scheduler: self.index as u16, limit, hops: 0, repair, max_wait }
    }

    fn claim(&mut self, node: ActorId, job: JobId, index: u32, repair: bool, fx: &mut Effects<'_>) {
        // A task whose probe was sent again after a crash may be claimed twice; the first claim gets the task.
        if let Some(placed) = self.jobs.get_mut(job)
            && let Some(slot @ None) = placed.nodes.get_mut(index as usize)
        {
            *slot = Some(node);
            let attempt = placed.open.latest_attempt();
            let row = Row::single(job.task(index).copy(attempt));
            fx.send_as(placed.open.is_repeated(attempt), node, Probe::Grant { row, group: index });
        } else {
            fx.send_as(repair, node, Probe::Nothing { job, group: index });
        }
    }

    fn completed(&mut self, copy: CopyId, fx: &mut Effects<'_>) {
        if self.jobs.complete(copy.task, |placed| &mut placed.open, fx) == Completion::Duplicate {
            return;
        }
        let work = u128::from(fx.catalog().estimate(copy.task).0);
        let remove = |own: &mut Load| {
            own.active = own.active.saturating_sub(1);
            own.work = own.work.saturating_sub(work);
        };
        self.spread(remove, fx);
    }

    /// Sends probes again for open tasks that are `lost`. The first claim gets the task.
    fn again(
        &mut self,
        only: Option<JobId>,
        lost: impl Fn(u32, Option<ActorId>) -> bool,
        fx: &mut Effects<'_>,
    ) {
        let mut visits = Vec::new();
        for (job, placed) in self.jobs.iter_mut().filter(|(job, _)| only.is_none_or(|o| o == *job)) {
            let mut fresh = false;
            for index in 0..placed.open.spec.tasks {
                if placed.open.is_done(index) || !lost(index, placed.nodes[index as usize]) {
                    continue;
                }
                placed.nodes[index as usize] = None;
                if !std::mem::replace(&mut fresh, true) {
                    placed.open.attempts(1);
                }
                visits.push(job.task(index));
            }
        }
        for task in visits {
            if let Some(node) = self.members.pick(fx.rng()) {
                let visit = self.probe(task, true, fx.layout());
                fx.recover(node, visit);
            }
        }
    }

    /// Removes the load of a crashed scheduler, whose jobs the clients submit again.
    fn forget(&mut self, actor: ActorId, layout: &Layout) {
        if let Role::Scheduler(other) = layout.role(actor) {
            let report = self.loads[other as usize].report;
            self.account(other, Load { report, ..Load::default() });
        }
    }

    fn undelivered(&mut self, to: ActorId, msg: Message, fx: &mut Effects<'_>) {
        if let Message::RingProbe(visit) = msg {
            let task = visit.task.index;
            self.again(Some(visit.task.job), |index, at| index == task && at.is_none(), fx);
        } else if let Some(row) = resend(to, msg, fx) {
            self.again(Some(row.job), |index, at| index == row.base && at == Some(to), fx);
        }
    }
}

impl Machine for PeacockScheduler {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => self.completed(copy, fx),
                Message::Probe(Probe::Claim { job, group, repair }) => {
                    self.claim(from, job, group, repair, fx);
                }
                Message::Ring(Ring::Load { report, active, work }) => {
                    if let Role::Scheduler(other) = fx.layout().role(from) {
                        let load = Load { report, active: u64::from(active), work: u128::from(work.0) };
                        self.account(other, load);
                    }
                }
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg } => self.undelivered(to, msg, fx),
            Input::Down { actor } => {
                self.members.down(actor, fx.layout());
                if !matches!(fx.layout().role(actor), Role::Node(_)) {
                    self.forget(actor, fx.layout());
                    return;
                }
                for (_, placed) in self.jobs.iter_mut() {
                    placed.take_back(actor);
                }
                // The position of a probe when a node crashes is unknown, so every unclaimed probe is sent again.
                if !std::mem::replace(&mut self.resending, true) {
                    fx.arm(Timer::Tick(0), GATHER);
                }
            }
            Input::Fire(_) => {
                self.resending = false;
                self.again(None, |_, at| at.is_none(), fx);
            }
            Input::Up { actor } => {
                self.members.up(actor, fx.layout());
                if self.members.len() == 1 {
                    self.again(None, |_, at| at.is_none(), fx);
                }
            }
            // Reports of this epoch must be newer than reports of earlier epochs.
            Input::Start { epoch } => self.loads[self.index as usize].report = u64::from(epoch) << 32,
            Input::Done { .. } | Input::Halted { .. } | Input::Progress { .. } | Input::Usage { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, sends};

    /// The mean load that a probe carries includes the probe's own job, after any number of reports.
    #[test]
    fn probes_carry_the_load_of_their_own_job_after_any_number_of_reports() {
        let layout = Layout::new(1, 0, [1]);
        let me = layout.scheduler(0);
        let context =
            BuildContext { index: 0, layout: &layout, lossy: false, observed: false, watched: false };
        let mut scheduler = PeacockScheduler::new(&Peacock::default(), context);
        scheduler.loads[0].report = (1 << 26) - 1;
        let mut bench = Harness::new(layout.clone(), me, 1, Box::new(scheduler));
        let sent = sends(&bench.submit(0));
        let Message::RingProbe(probe) = sent[0].1 else { panic!("{sent:?}") };
        assert_eq!(probe.max_wait, Span::from_secs(1), "the job's only task is estimated at one second");
    }
}
