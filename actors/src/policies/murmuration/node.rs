//! The node manager: an unbounded queue, cores, and an update for every end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::config::{Murmuration, MurmurationOrder, MurmurationWait};
use super::disseminator::{Disseminator, SPREAD};
use crate::base::{ActorId, CopyId, Span, Time};
use crate::layout::Role;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{BacklogReport, Core, EndUpdate, Gossip, Launch, Message};
use crate::policies::policy::BuildContext;

/// The tick at which the node sends its report.
const REPORT: u32 = 3;

/// A task that waits: the least comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct QueuedTask {
    /// The estimate (zero under FCFS), the arrival of its job, and a sequence number.
    order: (Span, Time, u64),
    estimate: Span,
    /// When its placement was decided.
    at: Time,
    from: ActorId,
    copy: CopyId,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    task: QueuedTask,
    began: Time,
}

impl Running {
    /// The time by which schedulers judge the update about its end.
    const fn since(&self, wait: MurmurationWait) -> Time {
        match wait {
            MurmurationWait::Clock => self.began,
            MurmurationWait::PerCore | MurmurationWait::Work => self.task.at,
        }
    }
}

/// A node manager.
pub(super) struct MurmurationNode {
    order: MurmurationOrder,
    wait: MurmurationWait,
    repair: Span,
    index: u32,
    disseminator: Disseminator,
    cores: Box<[Option<Running>]>,
    queue: BinaryHeap<Reverse<QueuedTask>>,
    came: u64,
    /// Tasks received from each scheduler since this node's start; empty if it sends no reports.
    from: Vec<u32>,
}

impl MurmurationNode {
    pub(super) fn new(config: &Murmuration, context: BuildContext<'_>) -> Self {
        Self {
            order: config.order,
            wait: config.wait,
            repair: config.repair,
            index: context.index,
            disseminator: Disseminator::new(config, context),
            cores: (0..context.layout.cores(context.index)).map(|_| None).collect(),
            queue: BinaryHeap::new(),
            came: 0,
            from: if config.repair > Span::ZERO {
                vec![0; context.layout.schedulers() as usize]
            } else {
                Vec::new()
            },
        }
    }

    /// Queues a task. A task that was sent before a crash of this node and arrives after its restart is accepted, and
    /// its scheduler places it again when it is notified of the crash, so that it runs twice. The node cannot reject
    /// it, because the message does not carry the epoch of the node that it was sent to.
    fn task(&mut self, from: ActorId, copy: CopyId, at: Time, fx: &mut Effects<'_>) {
        if let Role::Scheduler(by) = fx.layout().role(from)
            && let Some(came) = self.from.get_mut(by as usize)
        {
            *came = came.saturating_add(1);
        }
        let (catalog, job) = (fx.catalog(), copy.task.job);
        let (estimate, created) = (catalog.job_estimate(job), catalog.job(job).arrival);
        let first = if self.order == MurmurationOrder::Srjf { estimate } else { Span::ZERO };
        self.came += 1;
        let order = (first, created, self.came);
        self.queue.push(Reverse(QueuedTask { order, estimate, at, from, copy }));
        self.fill(fx);
    }

    /// Gives idle cores the first tasks of the queue.
    fn fill(&mut self, fx: &mut Effects<'_>) {
        while !self.queue.is_empty() {
            let Some(core) = self.cores.iter().position(Option::is_none) else { return };
            let Some(Reverse(task)) = self.queue.pop() else { return };
            self.cores[core] = Some(Running { task, began: fx.now() });
            fx.send(fx.layout().worker(self.index, core as u32), Core::Run { copy: task.copy });
        }
    }

    fn ended(&mut self, worker: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let Role::Worker { core, .. } = fx.layout().role(worker) else {
            unreachable!("{copy} ended on {worker}, which is no core")
        };
        if let Some(run) = self.cores[core as usize].take() {
            debug_assert_eq!(run.task.copy, copy, "a core ended what it was not given");
            fx.send(run.task.from, Launch::Completed { copy });
            self.announce(run.task.estimate, run.since(self.wait), false, fx);
        }
        self.fill(fx);
    }

    fn announce(&mut self, estimate: Span, since: Time, repair: bool, fx: &mut Effects<'_>) {
        let number = self.disseminator.take_number();
        let update = EndUpdate { node: self.index, number, estimate, since };
        self.disseminator.announce(Gossip::ended(self.disseminator.rumours(), update), repair, fx);
    }

    /// Drops the tasks of a crashed scheduler: another one places them again.
    fn forget(&mut self, scheduler: ActorId, fx: &mut Effects<'_>) {
        if let Role::Scheduler(index) = fx.layout().role(scheduler) {
            self.from.get_mut(index as usize).into_iter().for_each(|came| *came = 0);
        }
        let mut gone = Vec::new();
        for core in 0..self.cores.len() {
            if let Some(run) = self.cores[core].take_if(|run| run.task.from == scheduler) {
                fx.send(fx.layout().worker(self.index, core as u32), Core::Stop { copy: run.task.copy });
                gone.push((run.task.estimate, run.since(self.wait)));
            }
        }
        self.queue.retain(|Reverse(task)| {
            let keep = task.from != scheduler;
            if !keep {
                gone.push((task.estimate, task.at));
            }
            keep
        });
        for (estimate, since) in gone {
            self.announce(estimate, since, true, fx);
        }
        self.fill(fx);
    }

    /// Sends a report to all schedulers, and arms the next one.
    fn report(&self, fx: &mut Effects<'_>) {
        let waiting = self.queue.iter().map(|Reverse(task)| task.estimate);
        let running = self.cores.iter().flatten().map(|run| run.task.estimate);
        let work = waiting.chain(running).fold(Span::ZERO, |sum, estimate| sum + estimate);
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
                _ => fx.unexpected(&msg),
            },
            Input::Fire(Timer::Tick(SPREAD)) => self.disseminator.due(fx),
            Input::Fire(Timer::Tick(REPORT)) => self.report(fx),
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
            Input::Fire(_) | Input::Done { .. } | Input::Halted { .. } | Input::Progress { .. } => {}
        }
    }
}
