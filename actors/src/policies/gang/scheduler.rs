//! The gang scheduler: fills the matrix, rotates its slices, and orders cores to switch.

use super::matrix::Matrix;
use crate::base::{ActorId, CopyId, JobId, Span};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Contention, Job, Launch, Message, Slice, SliceWork};
use crate::roles::job_table::{JobTable, OpenJob};
use crate::roles::resend;

struct GangJob {
    open: OpenJob,
    /// Core of the run on which each task has its cell, where it has one; it has no more.
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
    /// How often this scheduler was restarted.
    epoch: u16,
    /// How many orders each core of the run was given.
    orders: Vec<u32>,
    jobs: JobTable<GangJob>,
    /// Copies that found no core alive.
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
        // Another copy of the task may still run: its core goes on with what the slice has for it now.
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
    fn cores(node: u32, layout: &Layout) -> std::ops::Range<u32> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, sends};

    /// A core prefers the orders of a restarted scheduler, regardless of how many the earlier epoch gave.
    #[test]
    fn orders_of_a_new_life_are_newer() {
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
        let mut bench = Harness::new(layout.clone(), node, 1, Box::new(super::super::node::GangNode::new(1)));
        bench.receive(me, order(0, 1 << 26));
        let sent = sends(&bench.step(Input::Down { actor: me }));
        assert_eq!(sent.len(), 1, "it forgets what the dead scheduler wanted");
        let sent = bench.receive(me, order(1, 0));
        assert_eq!(sent, [(worker, crate::message::Core::run(JobId(1).task(0).copy(0)).into())]);
    }
}
