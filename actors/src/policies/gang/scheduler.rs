//! The policy of gang scheduling and its scheduler: fills the matrix, rotates its slices, and orders cores to switch.

use std::collections::BTreeMap;
use std::ops::Range;

use super::node::GangNode;
use crate::base::{ActorId, CopyId, JobId, Span, TaskId, parameters};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Contention, Job, Launch, Message, Slice, SliceWork};
use crate::policies::policy::{BuildContext, Policy, Traits};
use crate::policies::shared::check_period;
use crate::roles::job_table::{JobTable, OpenJob};
use crate::roles::resend;

parameters! {
    /// Parameters of gang scheduling.
    struct Gang {
        /// Length of a time slice. The latin-square paper models the limit of short slices (processor sharing) and
        /// gives no length.
        quantum: Span = Span::from_millis(50),
    }
}

impl Policy for Gang {
    const ABOUT: &'static str = "Gang scheduling (Ousterhout matrix; latin-square paper, section V-A)\n\
        Time is cut into slices; a slice holds jobs whose tasks fit on distinct cores together. Slices take \
        turns, a core resting where its slice has nothing for it; tasks keep their progress between slices. A \
        job with more tasks than cores runs in several slices.";

    const VARIANTS: &'static [&'static str] = &[r#"{ quantum = "200ms" }"#];

    fn traits(&self) -> Traits<'_> {
        Traits { one_scheduler: true, time_slice: Some(("quantum", self.quantum)), ..Traits::default() }
    }

    fn check(&self, layout: &Layout) -> Result<(), String> {
        check_period("quantum", self.quantum)?;
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

struct GangJob {
    open: OpenJob,
    /// Core of the run on which each task has its only cell, if it has one.
    cores: Vec<Option<u32>>,
    /// The attempt of each task that its core was last ordered to run.
    ordered: Vec<Option<u32>>,
}

/// The one scheduler of a run.
pub(super) struct GangScheduler {
    quantum: Span,
    matrix: Matrix,
    /// Whether a tick is armed; none is while one slice or none exists.
    ticking: bool,
    /// Number of restarts of this scheduler.
    epoch: u16,
    /// Number of orders given to each core of the run.
    orders: Vec<u32>,
    jobs: JobTable<GangJob>,
    /// Copies for which no core is alive.
    stranded: Vec<CopyId>,
}

impl GangScheduler {
    pub(super) fn new(quantum: Span, layout: &Layout) -> Self {
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

    /// Puts copies into the first slice with enough free cores, or a new one; among free cores of a slice
    /// the choice is random.
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

    /// Orders a core to switch to its copy of the current slice.
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

    /// A copy as work of its core, which is ordered to run it now.
    fn work(&mut self, copy: CopyId) -> SliceWork {
        let CopyId { task, attempt } = copy;
        let ordered = self.jobs.get_mut(task.job).map(|placed| &mut placed.ordered[task.index as usize]);
        let before = ordered.is_some_and(|ordered| ordered.replace(attempt) == Some(attempt));
        if before { SliceWork::GoOn(copy) } else { SliceWork::Begin(copy) }
    }

    fn keep_ticking(&mut self, fx: &mut Effects<'_>) {
        if !self.ticking && self.matrix.slices() > 1 {
            self.ticking = true;
            fx.arm(Timer::Tick(0), self.quantum);
        }
    }

    fn tick(&mut self, fx: &mut Effects<'_>) {
        self.ticking = false;
        if self.matrix.slices() > 1 {
            for core in self.matrix.turn() {
                self.order(core, false, fx);
            }
        }
        self.keep_ticking(fx);
    }

    /// Drops empty slices; if the current one was among them, the next one runs.
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
        // Another copy of the task may still run: its core goes on with its copy of the current slice.
        if let Some((core, (other, true))) = removed
            && other != copy
        {
            self.order(core, false, fx);
        }
    }

    /// Sends the current order of a core again after an undelivered one, unless a newer one was sent since.
    fn undelivered(&mut self, to: ActorId, core: u16, order: u32, fx: &mut Effects<'_>) {
        let Role::Node(node) = fx.layout().role(to) else { return };
        let core = fx.layout().core_index(fx.layout().worker(node, u32::from(core)));
        if self.matrix.is_alive(core) && order == self.orders[core as usize] {
            self.order(core, true, fx);
        }
    }

    /// A node has lost a copy in a crash that is not known here yet: its core runs another one.
    fn lost(&mut self, copy: CopyId, fx: &mut Effects<'_>) {
        let Some(placed) = self.jobs.get_mut(copy.task.job) else { return };
        let Some(core) = placed.cores[copy.task.index as usize] else { return };
        if self.matrix.has(core, copy) {
            let fresh = copy.task.copy(placed.open.attempts(1));
            if self.matrix.replace(core, copy, fresh) {
                self.order(core, true, fx);
            }
        }
    }

    /// Places copies again, each by itself and with a new attempt number.
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

    /// Cores of the run that belong to a node.
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

// The Ousterhout matrix: a row for each time slice, a column for each core of the run.

/// The copies by slice and core. Cells lie on cores believed alive.
pub(super) struct Matrix {
    /// Rows in the order of their turns: copies by core, at least one each.
    slices: Vec<BTreeMap<u32, CopyId>>,
    /// The slice that runs.
    current: usize,
    /// By core, whether its node is believed alive.
    alive: Vec<bool>,
    /// Number of cores believed alive.
    width: usize,
}

impl Matrix {
    /// A matrix without slices, over `cores` live cores.
    pub(super) fn new(cores: u32) -> Self {
        let cores = cores as usize;
        Self { slices: Vec::new(), current: 0, alive: vec![true; cores], width: cores }
    }

    /// Number of slices that take turns.
    pub(super) fn slices(&self) -> usize {
        self.slices.len()
    }

    /// Number of cores believed alive.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn is_alive(&self, core: u32) -> bool {
        self.alive[core as usize]
    }

    /// The copy that a core runs now.
    pub(super) fn running(&self, core: u32) -> Option<CopyId> {
        self.slices.get(self.current)?.get(&core).copied()
    }

    /// Cores that have something to run now, in ascending order.
    pub(super) fn busy(&self) -> impl Iterator<Item = u32> + '_ {
        self.slices.get(self.current).into_iter().flat_map(|slice| slice.keys().copied())
    }

    /// The first slice in which `count` cores are free, or a new one, and its free cores, in ascending order.
    pub(super) fn room(&mut self, count: usize) -> (usize, Vec<u32>) {
        let fits = |slice: &BTreeMap<_, _>| self.width - slice.len() >= count;
        let slice = self.slices.iter().position(fits).unwrap_or_else(|| {
            self.slices.push(BTreeMap::new());
            self.slices.len() - 1
        });
        let mut taken = self.slices[slice].keys().copied().peekable();
        let free = |core: &u32| taken.next_if_eq(core).is_none() && self.alive[*core as usize];
        (slice, (0..self.alive.len() as u32).filter(free).collect())
    }

    /// Fills a free cell; returns whether its copy is to run now.
    pub(super) fn put(&mut self, slice: usize, core: u32, copy: CopyId) -> bool {
        self.slices[slice].insert(core, copy);
        slice == self.current
    }

    /// Goes on to the next slice; returns the cores for which that can change something, in ascending order.
    pub(super) fn turn(&mut self) -> Vec<u32> {
        let mut cores: Vec<_> = self.busy().collect();
        self.current = (self.current + 1) % self.slices.len();
        cores.extend(self.busy());
        cores.sort_unstable();
        cores.dedup();
        cores
    }

    /// Takes a task off its core; returns its copy, and whether that was to run now.
    pub(super) fn remove(&mut self, core: u32, task: TaskId) -> Option<(CopyId, bool)> {
        let here = |slice: &BTreeMap<u32, CopyId>| slice.get(&core).is_some_and(|copy| copy.task == task);
        let slice = self.slices.iter().position(here)?;
        let copy = self.slices[slice].remove(&core)?;
        Some((copy, slice == self.current))
    }

    /// Whether a copy has a cell on a core.
    pub(super) fn has(&self, core: u32, copy: CopyId) -> bool {
        self.slices.iter().any(|slice| slice.get(&core) == Some(&copy))
    }

    /// Replaces a copy in its cell; returns whether the new one is to run now.
    pub(super) fn replace(&mut self, core: u32, copy: CopyId, by: CopyId) -> bool {
        let slice = self.slices.iter().position(|slice| slice.get(&core) == Some(&copy));
        slice.is_some_and(|slice| self.put(slice, core, by))
    }

    /// Removes crashed cores; returns all copies on them.
    pub(super) fn kill(&mut self, cores: Range<u32>) -> Vec<CopyId> {
        for alive in &mut self.alive[cores.start as usize..cores.end as usize] {
            self.width -= usize::from(std::mem::replace(alive, false));
        }
        let mut lost = Vec::new();
        for slice in &mut self.slices {
            for core in cores.clone() {
                lost.extend(slice.remove(&core));
            }
        }
        lost
    }

    /// Readmits cores.
    pub(super) fn revive(&mut self, cores: Range<u32>) {
        for alive in &mut self.alive[cores.start as usize..cores.end as usize] {
            self.width += usize::from(!std::mem::replace(alive, true));
        }
    }

    /// Drops empty slices; returns whether the turn passed on, because the current one was among them.
    pub(super) fn tidy(&mut self) -> bool {
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

#[cfg(test)]
mod policy_tests {
    use super::*;
    use crate::base::{ActorId, JobId};
    use crate::harness::{Harness, sends};
    use crate::machine::{Effect, Input, Timer};
    use crate::message::{Contention, Core, Launch, Message, Slice, SliceWork};

    fn scheduler(nodes: usize, tasks: u32) -> Harness {
        let layout = Layout::new(1, 0, vec![1; nodes]);
        Gang::default().bench(&layout, layout.scheduler(0), tasks)
    }

    fn running(sent: &[(ActorId, Message)]) -> Vec<Option<u32>> {
        let mut jobs: Vec<_> = sent
            .iter()
            .filter_map(|&(_, msg)| match msg {
                Message::Gang(Slice::Switch { work, .. }) => Some(work.copy().map(|copy| copy.task.job.0)),
                _ => None,
            })
            .collect();
        jobs.sort_unstable();
        jobs
    }

    #[test]
    fn two_jobs_take_turns_and_one_needs_no_ticks() {
        let mut bench = scheduler(2, 2);
        let first = bench.submit(0);
        assert_eq!(running(&sends(&first)), [Some(0), Some(0)]);
        assert!(!first.iter().any(|effect| matches!(effect, Effect::Arm { .. })), "one slice needs no clock");
        let second = bench.submit(1);
        assert_eq!(running(&sends(&second)), [], "it waits for its slice");
        assert!(second.iter().any(|effect| matches!(effect, Effect::Arm { .. })));
        for job in [1, 0, 1] {
            let tick = bench.step(Input::Fire(Timer::Tick(0)));
            assert_eq!(running(&sends(&tick)), [Some(job), Some(job)]);
        }
        // Job 1, whose turn it is, ends: the turn passes on at once.
        let node = bench.layout.node(0);
        bench.receive(node, Launch::Completed { copy: JobId(1).task(0).copy(0) });
        let sent = bench.receive(node, Launch::Completed { copy: JobId(1).task(1).copy(0) });
        assert_eq!(running(&sent), [Some(0), Some(0)]);
    }

    #[test]
    fn jobs_that_fit_share_a_slice_and_wide_ones_take_several() {
        let mut bench = scheduler(5, 2);
        assert_eq!(running(&sends(&bench.submit(0))), [Some(0), Some(0)]);
        assert_eq!(running(&sends(&bench.submit(1))), [Some(1), Some(1)], "the same slice");
        let mut wide = scheduler(2, 3);
        assert_eq!(running(&sends(&wide.submit(0))), [Some(0), Some(0)]);
        let tick = wide.step(Input::Fire(Timer::Tick(0)));
        assert_eq!(running(&sends(&tick)), [None, Some(0)], "the third task has a slice of its own");
    }

    #[test]
    fn a_core_keeps_progress_and_runs_nothing_twice() {
        let layout = Layout::new(1, 0, [1]);
        let (me, scheduler, worker) = (layout.node(0), layout.scheduler(0), layout.worker(0, 0));
        let mut node = Gang::default().bench(&layout, me, 2);
        let [a, b] = [0, 1].map(|job| JobId(job).task(0).copy(0));
        let switch = |work, order| Slice::Switch { core: 0, work, epoch: 0, order, open: JobId(0) };
        let order = |order: Core| (worker, Message::from(order));
        assert_eq!(node.receive(scheduler, switch(SliceWork::Begin(a), 1)), [order(Core::run(a))]);
        let both = [order(Core::Suspend { copy: a }), order(Core::run(b))];
        assert_eq!(node.receive(scheduler, switch(SliceWork::Begin(b), 2)), both);
        let left = Span::from_millis(300);
        node.receive(worker, Core::Suspended { copy: a, left });
        assert_eq!(
            node.receive(scheduler, switch(SliceWork::Begin(a), 1)),
            [],
            "an order that was overtaken is void"
        );
        assert_eq!(node.ended(b), [(scheduler, Launch::Completed { copy: b }.into())]);
        assert_eq!(node.receive(scheduler, switch(SliceWork::GoOn(b), 3)), [], "it has ended here");
        assert_eq!(
            node.receive(scheduler, switch(SliceWork::GoOn(a), 4)),
            [order(Core::Resume { copy: a, left })]
        );
    }

    /// A node that has crashed since it was first ordered to run a copy has lost it. It reports this, and the
    /// scheduler, which does not know of the crash, orders another one.
    #[test]
    fn a_copy_lost_in_a_crash_is_replaced_by_another() {
        let layout = Layout::new(1, 0, [1]);
        let (me, scheduler, worker) = (layout.node(0), layout.scheduler(0), layout.worker(0, 0));
        let mut node = Gang::default().bench(&layout, me, 1);
        let copy = JobId(0).task(0).copy(0);
        let switch = |work, order| Slice::Switch { core: 0, work, epoch: 0, order, open: JobId(0) };
        node.step(Input::Start { epoch: 1 });
        let lost = Contention::Evicted { copy, age_ms: 0, alone: false };
        assert_eq!(node.receive(scheduler, switch(SliceWork::GoOn(copy), 2)), [(scheduler, lost.into())]);
        assert_eq!(
            node.receive(scheduler, switch(SliceWork::Begin(copy), 3)),
            [(worker, Core::run(copy).into())],
            "it is new"
        );

        let mut bench = self::scheduler(1, 1);
        let order = |sent: &[(ActorId, Message)]| match sent {
            [(_, Message::Gang(Slice::Switch { work, .. }))] => *work,
            sent => panic!("{sent:?}"),
        };
        assert_eq!(order(&sends(&bench.submit(0))), SliceWork::Begin(copy));
        assert_eq!(order(&bench.receive(me, lost)), SliceWork::Begin(copy.task.copy(1)));
        assert_eq!(bench.receive(me, lost), [], "another one is ordered already");
    }

    /// No scheduler gives one copy to two cores; a node keeps its cores apart even if one did.
    #[test]
    fn an_end_concerns_the_core_that_reports_it_only() {
        let layout = Layout::new(1, 0, [2]);
        let (me, scheduler) = (layout.node(0), layout.scheduler(0));
        let workers = [0, 1].map(|core| layout.worker(0, core));
        let mut node = Gang::default().bench(&layout, me, 2);
        let [a, b] = [0, 1].map(|job| JobId(job).task(0).copy(0));
        for core in [0, 1] {
            node.receive(
                scheduler,
                Slice::Switch { core, work: SliceWork::Begin(a), epoch: 0, order: 1, open: JobId(0) },
            );
        }
        node.receive(workers[1], Core::Ended { copy: a });
        let sent = node.receive(
            scheduler,
            Slice::Switch { core: 1, work: SliceWork::Begin(b), epoch: 0, order: 2, open: JobId(0) },
        );
        assert_eq!(sent, [(workers[1], Core::run(b).into())], "it is idle");
        let sent = node.receive(
            scheduler,
            Slice::Switch { core: 0, work: SliceWork::Rest, epoch: 0, order: 2, open: JobId(0) },
        );
        assert_eq!(sent, [(workers[0], Core::Suspend { copy: a }.into())], "it still runs");
    }

    /// An order names the first open job. A core forgets the finished copies of earlier jobs, which it would otherwise
    /// remember for the whole run: it would even run one again, which no scheduler orders.
    #[test]
    fn copies_of_closed_jobs_are_forgotten() {
        let layout = Layout::new(1, 0, [1]);
        let (me, from, worker) = (layout.node(0), layout.scheduler(0), layout.worker(0, 0));
        let mut scheduler = scheduler(1, 1);
        let mut order = |job| match sends(&scheduler.submit(job))[..] {
            [(_, Message::Gang(order))] => {
                scheduler.receive(me, Launch::Completed { copy: JobId(job).task(0).copy(0) });
                order
            }
            ref sent => panic!("{sent:?}"),
        };
        let orders = [0, 1].map(&mut order);
        let [Slice::Switch { open: first, .. }, Slice::Switch { open: second, .. }] = orders;
        assert_eq!([first, second], [JobId(0), JobId(1)]);
        let mut node = Gang::default().bench(&layout, me, 1);
        let copy = JobId(0).task(0).copy(0);
        let switch =
            |order, open| Slice::Switch { core: 0, work: SliceWork::Begin(copy), epoch: 0, order, open };
        let run = (worker, Message::from(Core::run(copy)));
        assert_eq!(node.receive(from, switch(1, first)), [run]);
        node.ended(copy);
        assert_eq!(node.receive(from, switch(2, first)), [], "it has ended here");
        assert_eq!(node.receive(from, switch(1, second)), [], "an order that was overtaken is void");
        assert_eq!(node.receive(from, switch(3, first)), [], "and makes nothing be forgotten");
        assert_eq!(node.receive(from, switch(4, second)), [run]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, sends};

    /// A core prefers the orders of a restarted scheduler, regardless of how many the earlier epoch gave.
    #[test]
    fn orders_of_a_restarted_scheduler_are_newer() {
        let layout = Layout::new(1, 0, [1]);
        let (me, node) = (layout.scheduler(0), layout.node(0));
        let worker = layout.worker(0, 0);
        let order = |epoch, given| {
            let mut scheduler = GangScheduler::new(Span(1), &layout);
            scheduler.orders[0] = given;
            let mut bench = Harness::new(layout.clone(), me, 1, Box::new(scheduler));
            bench.step(Input::Start { epoch });
            let job = JobId(epoch);
            bench.receive(layout.client(0), Job::Submit { job, round: 0 })[0].1
        };
        let mut bench = Harness::new(layout.clone(), node, 1, Box::new(GangNode::new(1)));
        bench.receive(me, order(0, 1 << 26));
        let sent = sends(&bench.step(Input::Down { actor: me }));
        assert_eq!(sent.len(), 1, "it forgets what the dead scheduler wanted");
        let sent = bench.receive(me, order(1, 0));
        assert_eq!(sent, [(worker, crate::message::Core::run(JobId(1).task(0).copy(0)).into())]);
    }
}
