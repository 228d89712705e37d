//! The node manager, which serves its tasks and sends an update when a task ends.

use super::config::{Murmuration, MurmurationOrder, MurmurationRank, MurmurationWait};
use super::disseminator::{Disseminator, SPREAD};
use crate::base::{ActorId, CopyId, Span, Time};
use crate::layout::Role;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{BacklogReport, Core, EndUpdate, Gossip, Launch, Message};
use crate::policies::policy::BuildContext;
use crate::roles::las::{Las, LasOptions};
use crate::roles::node_queue::{NodeQueue, QueueOrder, Rank};

/// The tick at which the node sends its report.
const REPORT: u32 = 3;

/// A node manager.
#[derive(Clone, Debug)]
pub(super) struct MurmurationNode {
    repair: Span,
    index: u32,
    disseminator: Disseminator,
    service: TaskService,
    /// Number of tasks received from each scheduler since this node's start; empty if the node sends no reports.
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

    /// Takes a task. A task that was sent before a crash of this node and arrives after its restart is accepted. Its
    /// scheduler places it again when notified of the crash, so the task runs twice. The node cannot reject the task,
    /// because the message does not carry the receiver's epoch.
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

    /// Sends all schedulers the update that a task has left the node.
    fn announce(&mut self, task: &DepartedTask, repair: bool, fx: &mut Effects<'_>) {
        let (number, estimate) = (self.disseminator.take_number(), task.estimate);
        let update = EndUpdate { node: self.index, number, estimate, since: task.since };
        self.disseminator.announce(Gossip::ended(self.disseminator.rumours(), update), repair, fx);
    }

    /// Drops the tasks of a crashed scheduler, because another scheduler places them again.
    fn forget(&mut self, scheduler: ActorId, fx: &mut Effects<'_>) {
        if let Role::Scheduler(index) = fx.layout().role(scheduler) {
            self.from.get_mut(index as usize).into_iter().for_each(|came| *came = 0);
        }
        for task in self.service.forget(scheduler, fx) {
            self.announce(&task, true, fx);
        }
        self.service.fill(fx);
    }

    /// Sends a report to all schedulers and arms the next report.
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

// The service of a node's tasks: a queue in front of its cores, or least attained service.

/// A task that waits or runs on the node.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldTask {
    pub(super) estimate: Span,
    /// Time at which the task's placement was decided.
    pub(super) at: Time,
    pub(super) from: ActorId,
    pub(super) copy: CopyId,
}

/// A task that ended or was dropped.
pub(super) struct DepartedTask {
    pub(super) from: ActorId,
    pub(super) estimate: Span,
    /// The time by which schedulers judge the update about the task.
    pub(super) since: Time,
}

impl HeldTask {
    const fn departed(self, since: Time) -> DepartedTask {
        DepartedTask { from: self.from, estimate: self.estimate, since }
    }
}

/// The tasks and cores of a node.
#[derive(Clone, Debug)]
pub(super) enum TaskService {
    Queue(QueueService),
    Las(LasService),
}

impl TaskService {
    pub(super) fn new(config: &Murmuration, context: BuildContext<'_>) -> Self {
        let cores = context.layout.cores(context.index);
        match config.order {
            MurmurationOrder::Las => Self::Las(LasService {
                las: Las::new(LasOptions::with(config.quantum), cores),
                tasks: Vec::new(),
            }),
            MurmurationOrder::Fcfs | MurmurationOrder::Srjf => {
                Self::Queue(QueueService::new(config, context.index, cores))
            }
        }
    }

    /// Takes a task.
    pub(super) fn arrive(&mut self, task: HeldTask, fx: &mut Effects<'_>) {
        match self {
            Self::Queue(queue) => queue.arrive(task, fx),
            Self::Las(las) => las.arrive(task, fx),
        }
    }

    /// Handles a worker's report that a copy ended; returns the copy's task.
    pub(super) fn ended(
        &mut self,
        worker: ActorId,
        copy: CopyId,
        fx: &mut Effects<'_>,
    ) -> Option<DepartedTask> {
        match self {
            Self::Queue(queue) => queue.ended(worker, copy, fx),
            Self::Las(las) => las.ended(worker, copy, fx),
        }
    }

    /// Gives idle cores the next tasks.
    pub(super) fn fill(&mut self, fx: &mut Effects<'_>) {
        match self {
            Self::Queue(queue) => queue.fill(fx),
            // Least attained service never leaves a core idle.
            Self::Las(_) => {}
        }
    }

    /// Drops the tasks of a scheduler and returns them. The caller must then [fill](Self::fill) the cores.
    pub(super) fn forget(&mut self, scheduler: ActorId, fx: &mut Effects<'_>) -> Vec<DepartedTask> {
        match self {
            Self::Queue(queue) => queue.forget(scheduler, fx),
            Self::Las(las) => las.forget(scheduler, fx),
        }
    }

    /// The estimated work of all tasks.
    pub(super) fn work(&self) -> Span {
        let add = |sum: Span, task: &HeldTask| sum + task.estimate;
        match self {
            Self::Queue(queue) => queue.tasks().fold(Span::ZERO, add),
            Self::Las(las) => las.tasks.iter().fold(Span::ZERO, add),
        }
    }

    /// Handles a worker's answer to an order of least attained service. Returns whether the node uses this discipline.
    pub(super) fn answer(&mut self, worker: ActorId, answer: Core, fx: &mut Effects<'_>) -> bool {
        let Self::Las(LasService { las, .. }) = self else { return false };
        let Core::Suspended { copy, left } = answer else { return false };
        las.suspended(worker, copy, left, fx);
        true
    }

    /// Handles a tick of least attained service.
    pub(super) fn fire(&mut self, tick: u32, fx: &mut Effects<'_>) {
        if let Self::Las(LasService { las, .. }) = self {
            las.fire(tick, fx);
        }
    }
}

/// Least attained service, without a bound on the number of copies.
#[derive(Clone, Debug)]
pub(super) struct LasService {
    las: Las,
    /// The tasks of the node's copies, which the discipline does not keep.
    tasks: Vec<HeldTask>,
}

impl LasService {
    fn arrive(&mut self, task: HeldTask, fx: &mut Effects<'_>) {
        self.tasks.push(task);
        self.las.arrive(task.from, task.copy, fx);
    }

    fn ended(&mut self, worker: ActorId, copy: CopyId, fx: &mut Effects<'_>) -> Option<DepartedTask> {
        self.las.ended(worker, copy, fx)?;
        let at = self.tasks.iter().position(|task| task.copy == copy)?;
        let task = self.tasks.swap_remove(at);
        Some(task.departed(task.at))
    }

    fn forget(&mut self, scheduler: ActorId, fx: &mut Effects<'_>) -> Vec<DepartedTask> {
        self.las.forget(scheduler, fx);
        self.tasks.extract_if(.., |task| task.from == scheduler).map(|task| task.departed(task.at)).collect()
    }
}

/// A task on a core.
#[derive(Clone, Copy, Debug)]
struct Running {
    task: HeldTask,
    began: Time,
}

/// The order of tasks at a node.
#[derive(Clone, Copy, Debug)]
struct TaskOrder {
    jobs: MurmurationOrder,
    rank: MurmurationRank,
}

impl TaskOrder {
    /// The rank of a task, then the arrival of its job. Without an oracle all tasks of the job count as not begun.
    fn key(self, copy: CopyId, fx: &Effects<'_>) -> (Span, Time) {
        let (catalog, job) = (fx.catalog(), copy.task.job);
        let work = |tasks: u32| Span(catalog.job_estimate(job).0.saturating_mul(u64::from(tasks)));
        let rank = match (self.jobs, self.rank) {
            (MurmurationOrder::Fcfs | MurmurationOrder::Las, _) => Span::ZERO,
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

/// An unbounded queue, and cores that run each task to its end.
#[derive(Clone, Debug)]
pub(super) struct QueueService {
    order: TaskOrder,
    wait: MurmurationWait,
    index: u32,
    cores: Box<[Option<Running>]>,
    queue: NodeQueue<HeldTask>,
}

impl QueueService {
    fn new(config: &Murmuration, index: u32, cores: u32) -> Self {
        let bypass = match config.order {
            MurmurationOrder::Fcfs | MurmurationOrder::Las => f64::INFINITY,
            MurmurationOrder::Srjf => config.bypass,
        };
        Self {
            order: TaskOrder { jobs: config.order, rank: config.rank },
            wait: config.wait,
            index,
            cores: (0..cores).map(|_| None).collect(),
            queue: NodeQueue::new(QueueOrder::Least { bypass }),
        }
    }

    fn arrive(&mut self, task: HeldTask, fx: &mut Effects<'_>) {
        let rank = Rank { key: Some(self.order.key(task.copy, fx)), estimate: task.estimate };
        self.queue.push(task, rank);
        self.fill(fx);
    }

    /// Gives idle cores the first tasks of the queue.
    fn fill(&mut self, fx: &mut Effects<'_>) {
        while let Some(core) = self.cores.iter().position(Option::is_none)
            && let Some(task) = self.next(fx)
        {
            self.cores[core] = Some(Running { task, began: fx.now() });
            fx.send(fx.layout().worker(self.index, core as u32), Core::run(task.copy));
        }
    }

    /// Takes the first task from the queue.
    fn next(&mut self, fx: &Effects<'_>) -> Option<HeldTask> {
        if self.order.rank == MurmurationRank::JobLeftOracle {
            let order = self.order;
            self.queue.rerank(|task| Some(order.key(task.copy, fx)));
        }
        self.queue.serve()
    }

    fn ended(&mut self, worker: ActorId, copy: CopyId, fx: &Effects<'_>) -> Option<DepartedTask> {
        let Role::Worker { core, .. } = fx.layout().role(worker) else {
            unreachable!("{copy} ended on {worker}, which is not a core")
        };
        let run = self.cores[core as usize].take()?;
        debug_assert_eq!(run.task.copy, copy, "a core ended a copy that it was not given");
        Some(self.departed(run))
    }

    const fn departed(&self, run: Running) -> DepartedTask {
        run.task.departed(match self.wait {
            MurmurationWait::Clock => run.began,
            MurmurationWait::PerCore | MurmurationWait::Work => run.task.at,
        })
    }

    fn forget(&mut self, scheduler: ActorId, fx: &mut Effects<'_>) -> Vec<DepartedTask> {
        let mut gone = Vec::new();
        for core in 0..self.cores.len() {
            if let Some(run) = self.cores[core].take_if(|run| run.task.from == scheduler) {
                fx.send(fx.layout().worker(self.index, core as u32), Core::Stop { copy: run.task.copy });
                gone.push(self.departed(run));
            }
        }
        self.queue.retain_mut(|task| {
            let keep = task.from != scheduler;
            if !keep {
                gone.push(task.departed(task.at));
            }
            keep
        });
        gone
    }

    fn tasks(&self) -> impl Iterator<Item = &HeldTask> {
        self.queue.iter().chain(self.cores.iter().flatten().map(|run| &run.task))
    }
}
