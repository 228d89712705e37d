//! The node manager, which serves its tasks and sends an update when a task ends (section 4.1).
//!
//! Tasks wait in one queue, oldest job first (FCFS) or shortest task first (STF, section 4.2), for cores, which run
//! each task to its end. The oldest job is the one that arrived first, as the prototype orders by creation (section
//! 5.1); section 4.2 uses the order in which tasks arrive at the node instead. With least attained service (ours) no
//! task waits for a core.

use super::config::{Murmuration, MurmurationOrder, MurmurationRank, MurmurationWait};
use super::disseminator::Disseminator;
use super::timers::SPREAD;
use crate::base::{ActorId, CopyId, Span, Time};
use crate::layout::Role;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Core, EndUpdate, Gossip, Launch, Message};
use crate::policies::policy::BuildContext;
use crate::roles::las::{Las, LasOptions};
use crate::roles::node_queue::{NodeQueue, QueueOrder, Rank};

/// A task that waits or runs on the node.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldTask {
    pub(super) from: ActorId,
    pub(super) copy: CopyId,
    estimate: Span,
    /// The time by which schedulers judge the update about the end: the time of the placement or, with `wait =
    /// "clock"`, the time at which the task began to run.
    counts_from: Time,
}

/// A node manager of Murmuration.
#[derive(Clone, Debug)]
pub(super) struct MurmurationNode {
    /// The value by which tasks are ordered; `None` for the age of their job alone.
    rank: Option<MurmurationRank>,
    wait: MurmurationWait,
    pub(super) repair: Span,
    pub(super) index: u32,
    pub(super) disseminator: Disseminator,
    pub(super) queue: NodeQueue<HeldTask>,
    /// The task on each core; empty with least attained service.
    pub(super) cores: Box<[Option<HeldTask>]>,
    /// Least attained service, and all tasks of the node.
    pub(super) las: Option<(Las, Vec<HeldTask>)>,
    /// Number of tasks received from each scheduler since this node's start; empty if the node sends no reports.
    pub(super) came: Vec<u32>,
}

impl MurmurationNode {
    pub(super) fn new(config: &Murmuration, context: BuildContext<'_>) -> Self {
        let cores = context.layout.cores(context.index);
        let [las, srjf] = [MurmurationOrder::Las, MurmurationOrder::Srjf].map(|order| config.order == order);
        let bypass = if srjf { config.bypass } else { f64::INFINITY };
        let reports = if config.repair > Span::ZERO { context.layout.schedulers() } else { 0 };
        Self {
            rank: srjf.then_some(config.rank),
            wait: config.wait,
            repair: config.repair,
            index: context.index,
            disseminator: Disseminator::new(config, context),
            queue: NodeQueue::new(QueueOrder::Least { bypass }),
            cores: vec![None; if las { 0 } else { cores as usize }].into(),
            las: las.then(|| (Las::new(LasOptions::with(config.quantum), cores), Vec::new())),
            came: vec![0; reports as usize],
        }
    }

    /// Takes a task. A task that was sent before a crash of this node and arrives after its restart is accepted. Its
    /// scheduler places it again when notified of the crash, so the task runs twice. The node cannot reject the task,
    /// because the message does not carry the receiver's epoch.
    fn task(&mut self, from: ActorId, copy: CopyId, at: Time, fx: &mut Effects<'_>) {
        if let Role::Scheduler(by) = fx.layout().role(from)
            && let Some(came) = self.came.get_mut(by as usize)
        {
            *came = came.saturating_add(1);
        }
        let estimate = fx.catalog().job_estimate(copy.task.job);
        let task = HeldTask { from, copy, estimate, counts_from: at };
        if let Some((las, tasks)) = &mut self.las {
            tasks.push(task);
            las.arrive(from, copy, fx);
        } else {
            self.queue.push(task, Rank { key: Some(key(self.rank, copy, fx)), estimate });
            self.fill(fx);
        }
    }

    /// Gives idle cores the first tasks of the queue.
    pub(super) fn fill(&mut self, fx: &mut Effects<'_>) {
        while let Some(core) = self.cores.iter().position(Option::is_none) {
            let rank = self.rank;
            if rank == Some(MurmurationRank::JobLeftOracle) {
                self.queue.rerank(|task| Some(key(rank, task.copy, fx)));
            }
            let Some(mut task) = self.queue.serve() else { return };
            if self.wait == MurmurationWait::Clock {
                task.counts_from = fx.now();
            }
            self.cores[core] = Some(task);
            fx.send(fx.layout().worker(self.index, core as u32), Core::run(task.copy));
        }
    }

    /// Lines 18 to 21: a task ended, and all schedulers get an update.
    fn ended(&mut self, worker: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let task = match (&mut self.las, fx.layout().role(worker)) {
            (Some((las, tasks)), _) => las
                .ended(worker, copy, fx)
                .and_then(|_| tasks.iter().position(|task| task.copy == copy))
                .map(|at| tasks.swap_remove(at)),
            (None, Role::Worker { core, .. }) => self.cores[core as usize].take(),
            (None, _) => unreachable!("{copy} ended on {worker}, which is not a core"),
        };
        if let Some(task) = task {
            debug_assert_eq!(task.copy, copy, "a core ended a copy that it was not given");
            fx.send(task.from, Launch::Completed { copy });
            self.announce(&task, false, fx);
        }
        self.fill(fx);
    }

    /// Sends all schedulers the update that a task has left the node.
    pub(super) fn announce(&mut self, task: &HeldTask, recovery: bool, fx: &mut Effects<'_>) {
        let (number, HeldTask { estimate, counts_from, .. }) = (self.disseminator.take_number(), *task);
        let update = EndUpdate { node: self.index, number, estimate, counts_from };
        self.disseminator.announce(Gossip::ended(self.disseminator.rumours, update), recovery, fx);
    }

    /// The estimated work of all tasks.
    pub(super) fn work(&self) -> Span {
        let served = self.las.iter().flat_map(|(_, tasks)| tasks);
        let all = self.queue.iter().chain(self.cores.iter().flatten()).chain(served);
        all.fold(Span::ZERO, |sum, task| sum + task.estimate)
    }
}

/// The rank of a task, then the arrival of its job. Without an oracle all tasks of the job are treated as not begun.
fn key(rank: Option<MurmurationRank>, copy: CopyId, fx: &Effects<'_>) -> (Span, Time) {
    let (catalog, job) = (fx.catalog(), copy.task.job);
    let tasks = match rank {
        None => 0,
        Some(MurmurationRank::Task) => 1,
        Some(MurmurationRank::Job) => catalog.tasks(job),
        Some(MurmurationRank::JobLeftOracle) => {
            catalog.tasks(job).saturating_sub(fx.oracle().map_or(0, |oracle| oracle.begun(job)))
        }
    };
    let work = catalog.job_estimate(job).0.saturating_mul(u64::from(tasks));
    (Span(work), catalog.job(job).arrival)
}

impl Machine for MurmurationNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Start { epoch } => {
                self.disseminator.begin(epoch);
                if self.repair > Span::ZERO {
                    // A random phase spreads the reports of all nodes.
                    let phase = self.repair.scale(fx.rng().unit());
                    fx.arm(Timer::Beat, phase);
                }
            }
            Input::Deliver { from, msg } => match (msg, &mut self.las) {
                (Message::Launch(Launch::Task { copy, at }), _) => self.task(from, copy, at, fx),
                (Message::Core(Core::Ended { copy }), _) => self.ended(from, copy, fx),
                (Message::Core(Core::Suspended { copy, left }), Some((las, _))) => {
                    las.suspended(from, copy, left, fx);
                }
                _ => fx.unexpected(&msg),
            },
            Input::Fire(SPREAD) => self.disseminator.due(fx),
            Input::Fire(Timer::Beat) => self.report(fx),
            Input::Fire(Timer::Tick(tick)) => {
                if let Some((las, _)) = &mut self.las {
                    las.fire(tick, fx);
                }
            }
            Input::Undelivered { to, msg } => match msg {
                // The peer timeout limits how often this repeats. If the scheduler crashed, `Down` arrives instead.
                Message::Launch(Launch::Completed { copy }) => fx.recover(to, Launch::Completed { copy }),
                Message::Gossip(update) => self.disseminator.undelivered(to, update, fx),
                // No other stream message leaves the node.
                _ => {}
            },
            Input::Down { actor } => {
                self.disseminator.peer(actor, false, fx);
                self.forget(actor, fx);
            }
            Input::Up { actor } => self.disseminator.peer(actor, true, fx),
            // The other inputs are for workers.
            _ => {}
        }
    }
}
