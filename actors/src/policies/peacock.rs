//! Peacock: probes that rotate on a ring of workers until they can be served in time.
//!
//! The scheduler sends a probe for each task; probes carry the shared load estimate. The messages, in the file
//! `messages`, are a part of `crate::message`.

mod config;
mod node;

pub use config::{Peacock, PeacockForm, PeacockWait};
use node::PeacockNode;

use crate::base::{ActorId, CopyId, Span, TaskId};
use crate::layout::{Layout, Role};
use crate::machine::{CacheNote, Effects, Machine, Timer};
use crate::message::{Message, Probe, Ring, RingProbe, Row};
use crate::policies::policy::{Binds, BuildContext, Caches, Policy, Traits};
use crate::roles::dispatcher::{DispatchRule, Dispatcher, OpenTasks};

impl Policy for Peacock {
    const ABOUT: &'static str = "Peacock (Khelghatdoust and Gramoli, Euro-Par 2018)\n\
        One probe per task goes to a random worker. A worker orders its probes by size, as far as the time that each \
        may still wait allows, and passes those it cannot serve in time to its successor on a ring. A probe at the \
        head holds the core while its scheduler is asked for the task. Fit its clocks to the tasks: the authors' \
        interval of 1 s, one hop of a probe, is far too slow for tasks of a second, and the waiting threshold of the \
        other form is unpublished.";

    fn traits(&self) -> Traits<'_> {
        let caches = match self.form {
            PeacockForm::Elastic => Caches::SharedState,
            PeacockForm::Threshold => Caches::None,
        };
        Traits { binds: Binds::Late, caches, ..Traits::default() }
    }

    fn check(&self, layout: &Layout) -> Result<(), String> {
        if layout.schedulers() > u32::from(u16::MAX) {
            return Err("Peacock supports at most 65535 schedulers; lower cluster.schedulers".into());
        }
        Ok(())
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(Dispatcher::with(PeacockRule::new(self, context), context.layout))
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

/// The rule of a scheduler: it sends a probe for each task, and the first node that claims the task gets it.
#[derive(Clone, Debug)]
struct PeacockRule {
    form: PeacockForm,
    threshold: Span,
    index: u32,
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

impl PeacockRule {
    fn new(config: &Peacock, context: BuildContext<'_>) -> Self {
        Self {
            form: config.form,
            threshold: config.threshold,
            index: context.index,
            loads: vec![Load::default(); context.layout.schedulers() as usize],
            total: Load::default(),
            sample: Vec::new(),
            resending: false,
            observed: context.observed,
        }
    }

    /// Mean load w̄ = Ω/n and queue limit q = round(max(0, A − n)/n) over the n cores alive.
    fn state(&self, nodes: u32, layout: &Layout) -> (Span, u8) {
        let n = u64::from(layout.workers()) * u64::from(nodes) / u64::from(layout.nodes());
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

    /// Sends a probe for a task; the claim will be sent to this scheduler.
    fn probe(&self, to: ActorId, task: TaskId, repair: bool, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let (load, limit) = self.state(tasks.members().len(), fx.layout());
        let max_wait = if self.form == PeacockForm::Threshold { self.threshold } else { load };
        let scheduler = self.index as u16;
        fx.send_as(repair, to, RingProbe { task, scheduler, limit, hops: 0, repair, max_wait });
    }

    /// Sends the probes of all unclaimed tasks again. The first claim gets the task.
    fn probe_all(&mut self, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        for copy in tasks.all_waiting() {
            self.ready(copy, tasks, fx);
        }
    }
}

impl DispatchRule for PeacockRule {
    /// Reports of this epoch must be newer than reports of earlier epochs.
    fn started(&mut self, epoch: u32, _: &mut Effects<'_>) {
        self.loads[self.index as usize].report = u64::from(epoch) << 32;
    }

    /// Sends the probes of a job to distinct workers; a job with more tasks than workers uses them repeatedly.
    fn submitted(&mut self, first: CopyId, count: u32, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let TaskId { job, .. } = first.task;
        let catalog = fx.catalog();
        let work = (0..count).fold(Span::ZERO, |sum, i| sum + catalog.estimate(job.task(i)));
        let add = |own: &mut Load| {
            own.active += u64::from(count);
            own.work += u128::from(work.0);
        };
        self.spread(add, fx);
        let mut probed = 0;
        let mut sample = std::mem::take(&mut self.sample);
        while probed < count && !tasks.members().is_empty() {
            tasks.members().sample(fx.rng(), (count - probed) as usize, &mut sample);
            for &node in &sample {
                self.probe(node, job.task(probed), false, tasks, fx);
                probed += 1;
            }
        }
        self.sample = sample;
    }

    /// Sends the probe of a task that was lost or not claimed.
    fn ready(&mut self, copy: CopyId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        if !self.resending
            && tasks.repair(copy)
            && let Some(node) = tasks.members().pick(fx.rng())
        {
            self.probe(node, copy.task, true, tasks, fx);
        }
    }

    fn finished(&mut self, task: TaskId, _: bool, fx: &mut Effects<'_>) {
        let work = u128::from(fx.catalog().estimate(task).0);
        let remove = |own: &mut Load| {
            own.active = own.active.saturating_sub(1);
            own.work = own.work.saturating_sub(work);
        };
        self.spread(remove, fx);
    }

    /// The position of a probe when a node crashes is unknown, so every unclaimed probe is sent again.
    fn crashed(&mut self, _: ActorId, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        if !std::mem::replace(&mut self.resending, true) {
            fx.arm(Timer::Tick(0), GATHER);
        }
    }

    fn back(&mut self, _: ActorId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        if tasks.members().len() == 1 {
            self.probe_all(tasks, fx);
        }
    }

    /// Removes the load of a crashed scheduler, whose jobs the clients submit again.
    fn peer(&mut self, actor: ActorId, up: bool, fx: &mut Effects<'_>) {
        if let (Role::Scheduler(other), false) = (fx.layout().role(actor), up) {
            let report = self.loads[other as usize].report;
            self.account(other, Load { report, ..Load::default() });
        }
    }

    fn receive(&mut self, from: ActorId, msg: &Message, tasks: &mut OpenTasks, fx: &mut Effects<'_>) -> bool {
        match *msg {
            // A task whose probe was sent again may be claimed twice; the first claim gets the task.
            Message::Probe(Probe::Claim { job, group, repair }) => match tasks.waiting(job.task(group)) {
                Some(copy) => {
                    tasks.launch_by(Probe::Grant { row: Row::single(copy), group }, copy, from, fx);
                }
                None => fx.send_as(repair, from, Probe::Nothing { job, group }),
            },
            Message::Ring(Ring::Load { report, active, work }) => {
                if let Role::Scheduler(other) = fx.layout().role(from) {
                    let load = Load { report, active: u64::from(active), work: u128::from(work.0) };
                    self.account(other, load);
                }
            }
            _ => return false,
        }
        true
    }

    fn returned(&mut self, _: ActorId, msg: Message, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        if let Message::RingProbe(probe) = msg
            && let Some(copy) = tasks.waiting(probe.task)
        {
            self.ready(copy, tasks, fx);
        }
    }

    fn fire(&mut self, _: Timer, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.resending = false;
        self.probe_all(tasks, fx);
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
        let context = BuildContext {
            index: 0,
            layout: &layout,
            lossy: false,
            observed: false,
            watched: false,
            programs: None,
        };
        let mut rule = PeacockRule::new(&Peacock::default(), context);
        rule.loads[0].report = (1 << 26) - 1;
        let scheduler = Dispatcher::with(rule, &layout);
        let mut bench = Harness::new(layout.clone(), me, 1, Box::new(scheduler));
        let sent = sends(&bench.submit(0));
        let Message::RingProbe(probe) = sent[0].1 else { panic!("{sent:?}") };
        assert_eq!(probe.max_wait, Span::from_secs(1), "the job's only task is estimated at one second");
    }
}
