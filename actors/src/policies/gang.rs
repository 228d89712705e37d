//! Gang scheduling: all tasks of a job run in the same time slice, on distinct cores.
//!
//! The scheduler fills the matrix, rotates its slices, and orders cores to switch. Each core of a node suspends its
//! copy and runs the copy that the scheduler orders.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::base::{ActorId, CopyId, JobId, Span, TaskId, parameters};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Contention, Core, Job, Launch, Message, Slice, SliceWork};
use crate::policies::policy::{BuildContext, Policy, Traits};
use crate::roles::job_table::{JobTable, OpenJob};
use crate::roles::resend;

parameters! {
    /// Parameters of gang scheduling.
    struct Gang {
        /// Length of a time slice. The latin-square paper models the limit of short slices (processor sharing) and
        /// gives no length.
        quantum: Span = Span::from_millis(50) => period,
    }
}

impl Policy for Gang {
    const ABOUT: &'static str = "Gang scheduling (Ousterhout matrix; latin-square paper, section V-A)\n\
        Time is cut into slices; a slice holds jobs whose tasks fit on distinct cores together. Slices take \
        turns, a core resting where its slice has nothing for it; tasks keep their progress between slices. A \
        job with more tasks than cores runs in several slices.";

    fn traits(&self) -> Traits<'_> {
        Traits { one_scheduler: true, time_slice: Some(("quantum", self.quantum)), ..Traits::default() }
    }

    fn check(&self, layout: &Layout) -> Result<(), String> {
        if let Some(node) = (0..layout.nodes()).find(|&node| layout.cores(node) > u32::from(u16::MAX)) {
            return Err(format!("gang orders at most 65535 cores of a node; node {node} has more: split it"));
        }
        Ok(())
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(GangScheduler::new(self.quantum, context.layout))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(GangNode::new(context.layout.cores(context.index)))
    }
}

#[derive(Clone, Debug)]
struct GangJob {
    open: OpenJob,
    /// Core of each task in the matrix, numbered across the run; `None` if the task has no cell.
    cores: Vec<Option<u32>>,
    /// For each task, the attempt that its core was last ordered to run; `None` before the first order.
    ordered: Vec<Option<u32>>,
}

/// The only scheduler of a run.
#[derive(Clone, Debug)]
struct GangScheduler {
    quantum: Span,
    matrix: Matrix,
    /// Whether a tick is armed. No tick is armed while there is at most one slice.
    ticking: bool,
    /// Number of restarts of this scheduler.
    epoch: u16,
    /// Number of orders given to each core of the run.
    orders: Vec<u32>,
    jobs: JobTable<GangJob>,
    /// Copies without a live core.
    stranded: Vec<CopyId>,
}

impl GangScheduler {
    fn new(quantum: Span, layout: &Layout) -> Self {
        Self {
            quantum,
            matrix: Matrix::new(layout.workers()),
            ticking: false,
            epoch: 0,
            orders: vec![0; layout.workers() as usize],
            jobs: JobTable::default(),
            stranded: Vec::new(),
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let (tasks, attempt) = (open.spec.tasks, open.attempts(1));
        self.jobs.open(
            job,
            GangJob { open, cores: vec![None; tasks as usize], ordered: vec![None; tasks as usize] },
        );
        let copies: Vec<_> = (0..tasks).map(|i| job.task(i).copy(attempt)).collect();
        for gang in copies.chunks(self.matrix.width().max(1)) {
            self.place(gang, fx);
        }
    }

    /// Puts copies into the first slice with enough free cores, or into a new slice. The choice among the free cores of
    /// a slice is random.
    fn place(&mut self, gang: &[CopyId], fx: &mut Effects<'_>) {
        if self.matrix.width() < gang.len() {
            self.stranded.extend_from_slice(gang);
            return;
        }
        let (slice, mut free) = self.matrix.room(gang.len());
        let mut runs = false;
        for (i, &copy) in gang.iter().enumerate() {
            let j = i + fx.rng().below((free.len() - i) as u32) as usize;
            free.swap(i, j);
            runs = self.matrix.put(slice, free[i], copy);
            if let Some(placed) = self.jobs.get_mut(copy.task.job) {
                placed.cores[copy.task.index as usize] = Some(free[i]);
            }
        }
        if runs {
            for &core in &free[..gang.len()] {
                self.order(core, false, fx);
            }
        }
        self.keep_ticking(fx);
    }

    /// Orders a core to switch to its copy in the current slice.
    fn order(&mut self, core: u32, recovery: bool, fx: &mut Effects<'_>) {
        let Role::Worker { node, core: index } = fx.layout().role(fx.layout().worker_of_core(core)) else {
            unreachable!("core numbers belong to workers")
        };
        self.orders[core as usize] += 1;
        let copy = self.matrix.running(core);
        let work = copy.map_or(SliceWork::Rest, |copy| self.work(copy));
        let count = self.orders[core as usize];
        let (core, open) = (index as u16, self.jobs.first_open());
        let order = Slice::Switch { core, work, epoch: self.epoch, order: count, open };
        fx.send_as(recovery, fx.layout().node(node), order);
    }

    /// The order to a core to run a copy: to begin it, or to go on if the core was ordered to run it before.
    fn work(&mut self, copy: CopyId) -> SliceWork {
        let CopyId { task, attempt } = copy;
        let ordered = self.jobs.get_mut(task.job).map(|placed| &mut placed.ordered[task.index as usize]);
        let before = ordered.is_some_and(|ordered| ordered.replace(attempt) == Some(attempt));
        if before { SliceWork::GoOn(copy) } else { SliceWork::Begin(copy) }
    }

    fn keep_ticking(&mut self, fx: &mut Effects<'_>) {
        if !self.ticking && self.matrix.slices.len() > 1 {
            self.ticking = true;
            fx.arm(Timer::Tick(0), self.quantum);
        }
    }

    fn tick(&mut self, fx: &mut Effects<'_>) {
        self.ticking = false;
        if self.matrix.slices.len() > 1 {
            for core in self.matrix.turn() {
                self.order(core, false, fx);
            }
        }
        self.keep_ticking(fx);
    }

    /// Drops empty slices. If the current slice was empty, the next one runs.
    fn tidy(&mut self, fx: &mut Effects<'_>) {
        if self.matrix.tidy() {
            let busy: Vec<_> = self.matrix.busy().collect();
            for core in busy {
                self.order(core, false, fx);
            }
        }
    }

    fn completed(&mut self, copy: CopyId, fx: &mut Effects<'_>) {
        let Some(placed) = self.jobs.get_mut(copy.task.job) else { return };
        let cell = placed.cores[copy.task.index as usize].take();
        self.jobs.complete(copy.task, |placed| &mut placed.open, fx);
        let removed = cell.and_then(|core| Some((core, self.matrix.remove(core, copy.task)?)));
        self.tidy(fx);
        // A core that runs another copy of the finished task is ordered to its copy in the current slice, if any.
        if let Some((core, (other, true))) = removed
            && other != copy
        {
            self.order(core, false, fx);
        }
    }

    /// Sends an undelivered order to a core again, unless a newer order has been sent since.
    fn undelivered(&mut self, to: ActorId, core: u16, order: u32, fx: &mut Effects<'_>) {
        let Role::Node(node) = fx.layout().role(to) else { return };
        let core = fx.layout().core_index(fx.layout().worker(node, u32::from(core)));
        if self.matrix.alive[core as usize] && order == self.orders[core as usize] {
            self.order(core, true, fx);
        }
    }

    /// Handles a copy that a node lost in a crash not yet known to the scheduler: the core runs a new copy.
    fn lost(&mut self, copy: CopyId, fx: &mut Effects<'_>) {
        let Some(placed) = self.jobs.get_mut(copy.task.job) else { return };
        let Some(core) = placed.cores[copy.task.index as usize] else { return };
        if let Some(slice) = self.matrix.slice_of(core, copy) {
            let fresh = copy.task.copy(placed.open.attempts(1));
            if self.matrix.put(slice, core, fresh) {
                self.order(core, true, fx);
            }
        }
    }

    /// Places copies again, each separately and with a new attempt number.
    fn again(&mut self, copies: Vec<CopyId>, fx: &mut Effects<'_>) {
        for copy in copies {
            if let Some(placed) = self.jobs.get_mut(copy.task.job)
                && !placed.open.is_done(copy.task.index)
            {
                placed.cores[copy.task.index as usize] = None;
                let fresh = copy.task.copy(placed.open.attempts(1));
                self.place(&[fresh], fx);
            }
        }
    }

    /// The cores of a node, as numbers in the run.
    fn cores(node: u32, layout: &Layout) -> Range<u32> {
        let first = layout.core_index(layout.worker(node, 0));
        first..first + layout.cores(node)
    }
}

impl Machine for GangScheduler {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { msg, .. } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => self.completed(copy, fx),
                Message::Contention(Contention::Evicted { copy, .. }) => self.lost(copy, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Fire(Timer::Tick(_)) => self.tick(fx),
            Input::Undelivered { to, msg: Message::Gang(Slice::Switch { core, order, .. }) } => {
                self.undelivered(to, core, order, fx);
            }
            Input::Undelivered { to, msg } => {
                let _ = resend(to, msg, fx);
            }
            Input::Down { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    let lost = self.matrix.kill(Self::cores(node, fx.layout()));
                    self.tidy(fx);
                    self.again(lost, fx);
                }
            }
            Input::Up { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    self.matrix.revive(Self::cores(node, fx.layout()));
                    let stranded = std::mem::take(&mut self.stranded);
                    self.again(stranded, fx);
                }
            }
            Input::Start { epoch } => self.epoch = epoch as u16,
            Input::Fire(_)
            | Input::Done { .. }
            | Input::Halted { .. }
            | Input::Progress { .. }
            | Input::Usage { .. } => {}
        }
    }
}

// The Ousterhout matrix, with a row for each time slice and a column for each core of the run.

/// The copies by slice and core. Only cores that are believed alive have cells.
#[derive(Clone, Debug)]
struct Matrix {
    /// Rows in the order of their turns. Each row has at least one copy, by core.
    slices: Vec<BTreeMap<u32, CopyId>>,
    /// The slice that runs.
    current: usize,
    /// Whether the node of each core is believed alive.
    alive: Vec<bool>,
}

impl Matrix {
    /// A matrix without slices, over `cores` live cores.
    fn new(cores: u32) -> Self {
        Self { slices: Vec::new(), current: 0, alive: vec![true; cores as usize] }
    }

    /// Number of cores believed alive.
    fn width(&self) -> usize {
        self.alive.iter().filter(|alive| **alive).count()
    }

    /// The copy of a core in the current slice.
    fn running(&self, core: u32) -> Option<CopyId> {
        self.slices.get(self.current)?.get(&core).copied()
    }

    /// Cores that have a copy in the current slice, in ascending order.
    fn busy(&self) -> impl Iterator<Item = u32> + '_ {
        self.slices.get(self.current).into_iter().flat_map(|slice| slice.keys().copied())
    }

    /// The first slice in which `count` cores are free, or a new slice, with its free cores in ascending order.
    fn room(&mut self, count: usize) -> (usize, Vec<u32>) {
        let width = self.width();
        let fits = |slice: &BTreeMap<_, _>| width - slice.len() >= count;
        let slice = self.slices.iter().position(fits).unwrap_or_else(|| {
            self.slices.push(BTreeMap::new());
            self.slices.len() - 1
        });
        let mut taken = self.slices[slice].keys().copied().peekable();
        let free = |core: &u32| taken.next_if_eq(core).is_none() && self.alive[*core as usize];
        (slice, (0..self.alive.len() as u32).filter(free).collect())
    }

    /// Sets the copy of a cell; returns whether the cell is in the current slice.
    fn put(&mut self, slice: usize, core: u32, copy: CopyId) -> bool {
        self.slices[slice].insert(core, copy);
        slice == self.current
    }

    /// Proceeds to the next slice; returns the cores whose copy may change, in ascending order.
    fn turn(&mut self) -> Vec<u32> {
        let mut cores: Vec<_> = self.busy().collect();
        self.current = (self.current + 1) % self.slices.len();
        cores.extend(self.busy());
        cores.sort_unstable();
        cores.dedup();
        cores
    }

    /// Removes a task from its core; returns its copy, and whether the copy was in the current slice.
    fn remove(&mut self, core: u32, task: TaskId) -> Option<(CopyId, bool)> {
        let here = |slice: &BTreeMap<u32, CopyId>| slice.get(&core).is_some_and(|copy| copy.task == task);
        let slice = self.slices.iter().position(here)?;
        let copy = self.slices[slice].remove(&core)?;
        Some((copy, slice == self.current))
    }

    /// The slice in which a core has a copy.
    fn slice_of(&self, core: u32, copy: CopyId) -> Option<usize> {
        self.slices.iter().position(|slice| slice.get(&core) == Some(&copy))
    }

    /// Removes crashed cores; returns all copies on them.
    fn kill(&mut self, cores: Range<u32>) -> Vec<CopyId> {
        self.alive[cores.start as usize..cores.end as usize].fill(false);
        let mut lost = Vec::new();
        for slice in &mut self.slices {
            for core in cores.clone() {
                lost.extend(slice.remove(&core));
            }
        }
        lost
    }

    /// Readmits cores.
    fn revive(&mut self, cores: Range<u32>) {
        self.alive[cores.start as usize..cores.end as usize].fill(true);
    }

    /// Drops empty slices; returns whether the current slice was dropped, so that the next one is current.
    fn tidy(&mut self) -> bool {
        if self.slices.iter().all(|slice| !slice.is_empty()) {
            return false;
        }
        let before = self.slices.iter().take(self.current).filter(|slice| !slice.is_empty()).count();
        let passed = self.slices.get(self.current).is_some_and(BTreeMap::is_empty);
        self.slices.retain(|slice| !slice.is_empty());
        self.current = if before < self.slices.len() { before } else { 0 };
        passed
    }
}

/// A core of a gang-scheduled node.
#[derive(Clone, Debug, Default)]
struct GangCore {
    running: Option<CopyId>,
    /// The scheduler whose copies the core runs; `None` before its first order.
    owner: Option<ActorId>,
    suspended: Vec<(CopyId, Span)>,
    /// Finished copies of open jobs whose completion the scheduler may not have received; repeated orders to run these
    /// copies are ignored.
    ended: BTreeSet<CopyId>,
    /// Epoch and number of the last order.
    last: (u16, u32),
}

impl GangCore {
    /// Forgets the finished copies of jobs before `open`. Delayed orders to run these copies are stale and ignored.
    fn forget_before(&mut self, open: JobId) {
        while self.ended.first().is_some_and(|copy| copy.task.job < open) {
            self.ended.pop_first();
        }
    }
}

/// The node manager of gang scheduling.
#[derive(Clone, Debug)]
struct GangNode {
    slots: Box<[GangCore]>,
    /// Whether the node has crashed before and may therefore have run copies that it does not know.
    restarted: bool,
}

impl GangNode {
    fn new(cores: u32) -> Self {
        Self { slots: vec![GangCore::default(); cores as usize].into(), restarted: false }
    }

    fn switch(
        &mut self,
        from: ActorId,
        core: u16,
        work: SliceWork,
        order: (u16, u32),
        open: JobId,
        fx: &mut Effects<'_>,
    ) {
        let worker = fx.worker(core.into());
        let slot = &mut self.slots[core as usize];
        // Orders can overtake each other. An outdated order is ignored, and so is the first open job that it names,
        // because earlier jobs may have been opened again since.
        if order >= slot.last {
            slot.forget_before(open);
        }
        if order < slot.last || slot.running == work.copy() {
            slot.last = slot.last.max(order);
            return;
        }
        slot.last = order;
        slot.owner = Some(from);
        if let Some(running) = slot.running.take() {
            fx.send(worker, Core::Suspend { copy: running });
        }
        let Some(copy) = work.copy().filter(|copy| !slot.ended.contains(copy)) else { return };
        match slot.suspended.iter().position(|(c, _)| *c == copy) {
            Some(i) => {
                let (_, left) = slot.suspended.swap_remove(i);
                fx.send(worker, Core::Resume { copy, left });
            }
            // The scheduler does not know of the crash yet.
            None if self.restarted && matches!(work, SliceWork::GoOn(_)) => {
                return fx.recover(from, Contention::Evicted { copy, age_ms: 0, alone: false });
            }
            None => fx.send(worker, Core::run(copy)),
        }
        slot.running = Some(copy);
    }

    fn ended(&mut self, worker: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let Role::Worker { core, .. } = fx.layout().role(worker) else { return };
        let slot = &mut self.slots[core as usize];
        slot.running = None;
        slot.ended.insert(copy);
        if let Some(owner) = slot.owner {
            fx.send(owner, Launch::Completed { copy });
        }
    }
}

impl Machine for GangNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Gang(Slice::Switch { core, work, epoch, order, open }) => {
                    self.switch(from, core, work, (epoch, order), open, fx);
                }
                Message::Core(Core::Ended { copy }) => self.ended(from, copy, fx),
                Message::Core(Core::Suspended { copy, left }) => {
                    if let Role::Worker { core, .. } = fx.layout().role(from) {
                        self.slots[core as usize].suspended.push((copy, left));
                    }
                }
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg: Message::Launch(Launch::Completed { copy }) } => {
                fx.recover(to, Launch::Completed { copy });
            }
            Input::Undelivered { to, msg: Message::Contention(Contention::Evicted { copy, .. }) } => {
                fx.recover(to, Contention::Evicted { copy, age_ms: 0, alone: false });
            }
            Input::Start { epoch } => self.restarted = epoch > 0,
            Input::Down { actor } => {
                for (core, slot) in self.slots.iter_mut().enumerate() {
                    if slot.owner == Some(actor) {
                        if let Some(copy) = slot.running {
                            fx.send(fx.worker(core), Core::Stop { copy });
                        }
                        // Orders of the dead scheduler that are still in flight are void, even with a higher number
                        // than the last one received, because the scheduler's copies are forgotten here.
                        *slot = GangCore { last: (slot.last.0, u32::MAX), ..GangCore::default() };
                    }
                }
            }
            // `Up` needs no action. No other message leaves the node, so none returns. No timer is armed. The
            // remaining inputs go to workers only.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
