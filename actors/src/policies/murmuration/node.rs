//! The node manager: an unbounded queue, cores, and an update for every end.

use super::config::{Murmuration, MurmurationOrder, MurmurationRank, MurmurationWait};
use super::disseminator::{Disseminator, SPREAD};
use crate::base::{ActorId, CopyId, Span, Time};
use crate::layout::Role;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{BacklogReport, Core, EndUpdate, Gossip, Launch, Message};
use crate::policies::policy::BuildContext;
use crate::roles::node_queue::{NodeQueue, QueueOrder, Rank};

/// The tick at which the node sends its report.
const REPORT: u32 = 3;

/// A task that waits or runs.
#[derive(Clone, Copy, Debug)]
struct QueuedTask {
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

/// The order of tasks at a node.
#[derive(Clone, Copy, Debug)]
struct TaskOrder {
    jobs: MurmurationOrder,
    rank: MurmurationRank,
}

impl TaskOrder {
    /// The rank of a task, then the arrival of its job. Where there is no oracle, all of a job is left.
    fn key(self, copy: CopyId, fx: &Effects<'_>) -> (Span, Time) {
        let (catalog, job) = (fx.catalog(), copy.task.job);
        let work = |tasks: u32| Span(catalog.job_estimate(job).0.saturating_mul(u64::from(tasks)));
        let rank = match (self.jobs, self.rank) {
            (MurmurationOrder::Fcfs, _) => Span::ZERO,
            (MurmurationOrder::Srjf, MurmurationRank::Task) => work(1),
            (MurmurationOrder::Srjf, MurmurationRank::Job) => work(catalog.tasks(job)),
            (MurmurationOrder::Srjf, MurmurationRank::JobLeftOracle) => {
                let begun = fx.oracle().map_or(0, |oracle| oracle.begun(job));
                work(catalog.tasks(job).saturating_sub(begun))
            }
        };
        (rank, catalog.job(job).arrival)
    }
}

/// A node manager.
pub(super) struct MurmurationNode {
    order: TaskOrder,
    wait: MurmurationWait,
    repair: Span,
    index: u32,
    disseminator: Disseminator,
    cores: Box<[Option<Running>]>,
    queue: NodeQueue<QueuedTask>,
    /// Tasks received from each scheduler since this node's start; empty if it sends no reports.
    from: Vec<u32>,
}

impl MurmurationNode {
    pub(super) fn new(config: &Murmuration, context: BuildContext<'_>) -> Self {
        let bypass = match config.order {
            MurmurationOrder::Fcfs => f64::INFINITY,
            MurmurationOrder::Srjf => config.bypass,
        };
        Self {
            order: TaskOrder { jobs: config.order, rank: config.rank },
            wait: config.wait,
            repair: config.repair,
            index: context.index,
            disseminator: Disseminator::new(config, context),
            cores: (0..context.layout.cores(context.index)).map(|_| None).collect(),
            queue: NodeQueue::new(QueueOrder::Least { bypass }),
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
        let estimate = fx.catalog().job_estimate(copy.task.job);
        let rank = Rank { key: Some(self.order.key(copy, fx)), estimate };
        self.queue.push(QueuedTask { estimate, at, from, copy }, rank);
        self.fill(fx);
    }

    /// Gives idle cores the first tasks of the queue.
    fn fill(&mut self, fx: &mut Effects<'_>) {
        while let Some(core) = self.cores.iter().position(Option::is_none)
            && let Some(task) = self.next(fx)
        {
            self.cores[core] = Some(Running { task, began: fx.now() });
            fx.send(fx.layout().worker(self.index, core as u32), Core::Run { copy: task.copy });
        }
    }

    /// Takes the first task from the queue.
    fn next(&mut self, fx: &Effects<'_>) -> Option<QueuedTask> {
        if self.order.rank == MurmurationRank::JobLeftOracle {
            let order = self.order;
            self.queue.rerank(|task| order.key(task.copy, fx));
        }
        let (at, _) = self.queue.serve()?;
        self.queue.remove(at)
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
        self.queue.retain_mut(|task| {
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
        let waiting = self.queue.iter().map(|task| task.estimate);
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
