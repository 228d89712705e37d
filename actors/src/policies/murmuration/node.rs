//! The node manager: an update for every end of a task.

use super::config::Murmuration;
use super::disseminator::{Disseminator, SPREAD};
use super::service::{DepartedTask, HeldTask, TaskService};
use crate::base::{ActorId, CopyId, Span, Time};
use crate::layout::Role;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{BacklogReport, Core, EndUpdate, Gossip, Launch, Message};
use crate::policies::policy::BuildContext;

/// The tick at which the node sends its report.
const REPORT: u32 = 3;

/// A node manager.
pub(super) struct MurmurationNode {
    repair: Span,
    index: u32,
    disseminator: Disseminator,
    service: TaskService,
    /// Tasks received from each scheduler since this node's start; empty if it sends no reports.
    from: Vec<u32>,
}

impl MurmurationNode {
    pub(super) fn new(config: &Murmuration, context: BuildContext<'_>) -> Self {
        Self {
            repair: config.repair,
            index: context.index,
            disseminator: Disseminator::new(config, context),
            service: TaskService::new(config, context),
            from: if config.repair > Span::ZERO {
                vec![0; context.layout.schedulers() as usize]
            } else {
                Vec::new()
            },
        }
    }

    /// Takes a task. A task that was sent before a crash of this node and arrives after its restart is accepted, and
    /// its scheduler places it again when it is notified of the crash, so that it runs twice. The node cannot reject
    /// it, because the message does not carry the epoch of the node that it was sent to.
    fn task(&mut self, from: ActorId, copy: CopyId, at: Time, fx: &mut Effects<'_>) {
        if let Role::Scheduler(by) = fx.layout().role(from)
            && let Some(came) = self.from.get_mut(by as usize)
        {
            *came = came.saturating_add(1);
        }
        let estimate = fx.catalog().job_estimate(copy.task.job);
        self.service.arrive(HeldTask { estimate, at, from, copy }, fx);
    }

    fn ended(&mut self, worker: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        if let Some(task) = self.service.ended(worker, copy, fx) {
            fx.send(task.from, Launch::Completed { copy });
            self.announce(&task, false, fx);
        }
        self.service.fill(fx);
    }

    /// Tells all schedulers that a task is gone.
    fn announce(&mut self, task: &DepartedTask, repair: bool, fx: &mut Effects<'_>) {
        let (number, estimate) = (self.disseminator.take_number(), task.estimate);
        let update = EndUpdate { node: self.index, number, estimate, since: task.since };
        self.disseminator.announce(Gossip::ended(self.disseminator.rumours(), update), repair, fx);
    }

    /// Drops the tasks of a crashed scheduler: another one places them again.
    fn forget(&mut self, scheduler: ActorId, fx: &mut Effects<'_>) {
        if let Role::Scheduler(index) = fx.layout().role(scheduler) {
            self.from.get_mut(index as usize).into_iter().for_each(|came| *came = 0);
        }
        for task in self.service.forget(scheduler, fx) {
            self.announce(&task, true, fx);
        }
        self.service.fill(fx);
    }

    /// Sends a report to all schedulers, and arms the next one.
    fn report(&self, fx: &mut Effects<'_>) {
        let work = self.service.work();
        let (at, number) = (fx.now(), self.disseminator.number);
        for (index, &came) in (0..).zip(&self.from) {
            let scheduler = fx.layout().scheduler(index);
            if self.disseminator.is_up(scheduler) {
                fx.recover(scheduler, Gossip::Backlog(BacklogReport { work, at, number, came }));
            }
        }
        fx.arm(Timer::Tick(REPORT), self.repair);
    }
}

impl Machine for MurmurationNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Start { epoch } => {
                self.disseminator.begin(epoch);
                if self.repair > Span::ZERO {
                    // A random phase spreads the reports of all nodes.
                    let phase = self.repair.scale(fx.rng().unit());
                    fx.arm(Timer::Tick(REPORT), phase);
                }
            }
            Input::Deliver { from, msg } => match msg {
                Message::Launch(Launch::Task { copy, at }) => self.task(from, copy, at, fx),
                Message::Core(Core::Ended { copy }) => self.ended(from, copy, fx),
                Message::Core(answer) if self.service.answer(from, answer, fx) => {}
                _ => fx.unexpected(&msg),
            },
            Input::Fire(Timer::Tick(SPREAD)) => self.disseminator.due(fx),
            Input::Fire(Timer::Tick(REPORT)) => self.report(fx),
            Input::Fire(Timer::Tick(tick)) => self.service.fire(tick, fx),
            Input::Undelivered { to, msg } => match msg {
                // The peer timeout paces the repetition; a crashed scheduler is reported down instead.
                Message::Launch(Launch::Completed { copy }) => fx.recover(to, Launch::Completed { copy }),
                Message::Gossip(update) => self.disseminator.undelivered(to, update, fx),
                // No other stream message leaves the node.
                _ => {}
            },
            Input::Down { actor } => {
                self.disseminator.down(actor, fx.layout());
                self.forget(actor, fx);
            }
            Input::Up { actor } => self.disseminator.up(actor, fx),
            Input::Fire(_)
            | Input::Done { .. }
            | Input::Halted { .. }
            | Input::Progress { .. }
            | Input::Usage { .. } => {}
        }
    }
}
