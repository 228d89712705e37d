//! Gang scheduling: all tasks of a job run in the same time slice, on distinct cores.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Policy, Seat, one_scheduler};
use crate::base::{ActorId, CopyId, JobId, Span};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Core, Gang as Order, Job, Launch, Message};
use crate::roles::jobs::{Completion, JobTable, Open};

/// Parameters of gang scheduling.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gang {
    /// Length of a time slice. The latin-square paper models the limit of short slices (processor sharing)
    /// and gives none.
    pub quantum: Span,
}

impl Default for Gang {
    fn default() -> Self {
        Self { quantum: Span::from_millis(50) }
    }
}

impl Policy for Gang {
    const ABOUT: &'static str = "Gang scheduling (Ousterhout matrix; latin-square paper, section V-A)\n\
        Time is cut into slices; a slice holds jobs whose tasks fit on distinct cores together. Slices take \
        turns, a core resting where its slice has nothing for it; tasks keep their progress between slices. A \
        job with more tasks than cores runs in several slices.";

    fn check(&self, layout: &Layout) -> Result<(), String> {
        if self.quantum == Span::ZERO {
            return Err("quantum: must be longer than zero".into());
        }
        if let Some(node) = (0..layout.nodes()).find(|&node| layout.cores(node) > u32::from(u16::MAX)) {
            return Err(format!("gang orders at most 65535 cores of a node; node {node} has more: split it"));
        }
        one_scheduler(layout, "gang")
    }

    fn scheduler(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        Box::new(Scheduler {
            quantum: self.quantum,
            slices: Vec::new(),
            current: 0,
            ticking: false,
            epoch: 0,
            orders: vec![0; seat.layout.workers() as usize],
            jobs: JobTable::default(),
            alive: vec![true; seat.layout.workers() as usize],
            stranded: Vec::new(),
        })
    }

    fn node(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        Box::new(Node { slots: vec![Slot::default(); seat.layout.cores(seat.index) as usize].into() })
    }
}

/// One row of the matrix: what each core runs in this slice, by core number of the run.
#[derive(Debug, Default)]
struct Slice {
    cells: Vec<(u32, CopyId)>,
}

impl Slice {
    fn at(&self, core: u32) -> Option<CopyId> {
        self.cells.binary_search_by_key(&core, |cell| cell.0).ok().map(|i| self.cells[i].1)
    }

    fn insert(&mut self, core: u32, copy: CopyId) {
        if let Err(i) = self.cells.binary_search_by_key(&core, |cell| cell.0) {
            self.cells.insert(i, (core, copy));
        }
    }
}

/// Bits of an order's number that count the orders to a core; the scheduler's epoch is above them.
const ORDER_BITS: u32 = 26;

#[derive(Debug)]
struct Scheduler {
    quantum: Span,
    slices: Vec<Slice>,
    current: usize,
    /// Whether a tick is armed; none is while one slice or none exists.
    ticking: bool,
    /// How often this scheduler was restarted.
    epoch: u32,
    /// Orders given to each core of the run.
    orders: Vec<u32>,
    jobs: JobTable<Open>,
    /// Cores of the run on nodes believed alive.
    alive: Vec<bool>,
    /// Copies that found no core alive.
    stranded: Vec<CopyId>,
}

impl Scheduler {
    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        // A submission that was under way to an earlier life of this scheduler can come on top.
        if self.jobs.get_mut(job).is_some() {
            return;
        }
        let mut open = Open::new(fx.catalog().job(job), round);
        let (tasks, attempt) = (open.spec.tasks, open.attempts(1));
        self.jobs.open(job, open);
        let copies: Vec<_> = (0..tasks).map(|i| job.task(i).copy(attempt)).collect();
        let width = self.alive.iter().filter(|&&alive| alive).count();
        if width == 0 {
            self.stranded.extend(copies);
            return;
        }
        for gang in copies.chunks(width) {
            self.place(gang, fx);
        }
    }

    /// Puts copies into the first slice with enough free cores, or a new one; among free cores of a slice
    /// the choice is random.
    fn place(&mut self, gang: &[CopyId], fx: &mut Effects<'_>) {
        let width = self.alive.iter().filter(|&&alive| alive).count();
        if width < gang.len() {
            self.stranded.extend_from_slice(gang);
            return;
        }
        let fits = |slice: &Slice| {
            slice.cells.len() + gang.len() <= self.alive.len() && self.free(slice).count() >= gang.len()
        };
        let row = self.slices.iter().position(fits).unwrap_or_else(|| {
            self.slices.push(Slice::default());
            self.slices.len() - 1
        });
        let mut free: Vec<_> = self.free(&self.slices[row]).collect();
        for (i, &copy) in gang.iter().enumerate() {
            let j = i + fx.rng().below((free.len() - i) as u32) as usize;
            free.swap(i, j);
            self.slices[row].insert(free[i], copy);
        }
        if row == self.current {
            for &core in &free[..gang.len()] {
                self.order(core, fx);
            }
        }
        self.keep_ticking(fx);
    }

    fn free<'a>(&'a self, slice: &'a Slice) -> impl Iterator<Item = u32> + 'a {
        let alive = self.alive.iter().enumerate().filter(|(_, alive)| **alive);
        alive.map(|(core, _)| core as u32).filter(|&core| slice.at(core).is_none())
    }

    /// Tells a core what to run in the current slice.
    fn order(&mut self, core: u32, fx: &mut Effects<'_>) {
        let (to, order) = self.next_order(core, fx.layout());
        fx.send(to, order);
    }

    fn next_order(&mut self, core: u32, layout: &Layout) -> (ActorId, Order) {
        let (node, index) = Self::home(core, layout);
        let copy = self.slices.get(self.current).and_then(|slice| slice.at(core));
        let count = &mut self.orders[core as usize];
        *count += 1;
        (node, Order::Switch { core: index, copy, order: self.epoch << ORDER_BITS | *count })
    }

    fn home(core: u32, layout: &Layout) -> (ActorId, u16) {
        let Role::Worker { node, core } = layout.role(layout.worker_of_core(core)) else {
            unreachable!("core numbers belong to workers")
        };
        (layout.node(node), core as u16)
    }

    fn keep_ticking(&mut self, fx: &mut Effects<'_>) {
        if !self.ticking && self.slices.len() > 1 {
            self.ticking = true;
            fx.arm(Timer::Tick(0), self.quantum);
        }
    }

    /// Goes on to slice `next`, telling the cores for which that changes something.
    fn switch(&mut self, next: usize, left: &Slice, fx: &mut Effects<'_>) {
        self.current = next;
        let mut cores: Vec<_> = left.cells.iter().map(|cell| cell.0).collect();
        if let Some(slice) = self.slices.get(next) {
            cores.extend(slice.cells.iter().map(|cell| cell.0));
        }
        cores.sort_unstable();
        cores.dedup();
        for core in cores {
            self.order(core, fx);
        }
    }

    fn tick(&mut self, fx: &mut Effects<'_>) {
        self.ticking = false;
        if self.slices.len() > 1 {
            let next = (self.current + 1) % self.slices.len();
            let left = Slice { cells: self.slices[self.current].cells.clone() };
            self.switch(next, &left, fx);
        }
        self.keep_ticking(fx);
    }

    /// Removes cells from all slices; empty slices go, and the turn passes on if the current one did.
    fn clear(&mut self, mut gone: impl FnMut(u32, CopyId) -> bool, fx: &mut Effects<'_>) {
        let mut row = 0;
        while row < self.slices.len() {
            self.slices[row].cells.retain(|&(core, copy)| !gone(core, copy));
            if !self.slices[row].cells.is_empty() {
                row += 1;
                continue;
            }
            self.slices.remove(row);
            if row < self.current {
                self.current -= 1;
            } else if row == self.current {
                let next = if self.current < self.slices.len() { self.current } else { 0 };
                self.switch(next, &Slice::default(), fx);
            }
        }
    }

    fn completed(&mut self, copy: CopyId, fx: &mut Effects<'_>) {
        let job = copy.task.job;
        let Some(open) = self.jobs.get_mut(job) else { return };
        if open.complete(copy.task.index) == Completion::Job {
            fx.send(fx.layout().client(open.spec.client), Job::Finished { job });
            self.jobs.close(job);
        }
        let mut idle = Vec::new();
        let current = self.slices.get(self.current);
        for &(core, other) in current.iter().flat_map(|slice| &slice.cells) {
            if other.task == copy.task && other != copy {
                idle.push(core);
            }
        }
        self.clear(|_, other| other.task == copy.task, fx);
        // Another copy of the task may still run: its core goes on with what the slice has for it now.
        for core in idle {
            self.order(core, fx);
        }
    }

    fn undelivered(&mut self, to: ActorId, core: u16, order: u32, fx: &mut Effects<'_>) {
        let Role::Node(node) = fx.layout().role(to) else { return };
        let core = fx.layout().core_index(fx.layout().worker(node, u32::from(core)));
        let latest = self.epoch << ORDER_BITS | self.orders[core as usize];
        if self.alive[core as usize] && order == latest {
            let (to, order) = self.next_order(core, fx.layout());
            fx.recover(to, order);
        }
    }

    fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let Role::Node(node) = fx.layout().role(actor) else { return };
        let layout = fx.layout();
        let first = layout.core_index(layout.worker(node, 0));
        let dead = first..first + layout.cores(node);
        for core in dead.clone() {
            self.alive[core as usize] = false;
        }
        let mut lost = Vec::new();
        self.clear(
            |core, copy| {
                let gone = dead.contains(&core);
                if gone {
                    lost.push(copy);
                }
                gone
            },
            fx,
        );
        self.again(lost, fx);
    }

    /// Places copies again, each by itself and with a new attempt number.
    fn again(&mut self, copies: Vec<CopyId>, fx: &mut Effects<'_>) {
        for copy in copies {
            if let Some(open) = self.jobs.get_mut(copy.task.job)
                && !open.is_done(copy.task.index)
            {
                let fresh = copy.task.copy(open.attempts(1));
                self.place(&[fresh], fx);
            }
        }
    }
}

impl Machine for Scheduler {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { msg, .. } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => self.completed(copy, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Fire(Timer::Tick(_)) => self.tick(fx),
            Input::Undelivered { to, msg } => match msg {
                // Say what is true now, unless it was said since; the peer timeout paces the repetition.
                Message::Gang(Order::Switch { core, order, .. }) => self.undelivered(to, core, order, fx),
                Message::Job(finished) => fx.recover(to, finished),
                _ => {}
            },
            Input::Down { actor } => self.down(actor, fx),
            Input::Up { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    for core in 0..fx.layout().cores(node) {
                        let core = fx.layout().core_index(fx.layout().worker(node, core));
                        self.alive[core as usize] = true;
                    }
                    let stranded = std::mem::take(&mut self.stranded);
                    self.again(stranded, fx);
                }
            }
            Input::Start { epoch } => self.epoch = epoch,
            Input::Fire(_) | Input::Done { .. } | Input::Halted { .. } => {}
        }
    }
}

/// A core of a gang-scheduled node.
#[derive(Clone, Debug, Default)]
struct Slot {
    running: Option<CopyId>,
    /// Scheduler the copies belong to, once one has spoken.
    owner: Option<ActorId>,
    suspended: Vec<(CopyId, Span)>,
    /// Copies that ended here lately: the scheduler may order one again before it learns.
    ended: VecDeque<CopyId>,
    /// Number of the last order.
    order: u32,
}

/// How many ended copies a core remembers.
const REMEMBERED: usize = 16;

/// A node manager that does what the slice says.
#[derive(Debug)]
struct Node {
    slots: Box<[Slot]>,
}

impl Node {
    fn switch(&mut self, from: ActorId, core: u16, copy: Option<CopyId>, order: u32, fx: &mut Effects<'_>) {
        let Role::Node(node) = fx.layout().role(fx.me()) else { return };
        let worker = fx.layout().worker(node, u32::from(core));
        let slot = &mut self.slots[core as usize];
        // Orders can overtake each other: an older one is void.
        if order < slot.order || slot.running == copy {
            slot.order = slot.order.max(order);
            return;
        }
        slot.order = order;
        slot.owner = Some(from);
        if let Some(running) = slot.running.take() {
            fx.send(worker, Core::Suspend { copy: running });
        }
        if let Some(copy) = copy.filter(|copy| !slot.ended.contains(copy)) {
            slot.running = Some(copy);
            match slot.suspended.iter().position(|(c, _)| *c == copy) {
                Some(i) => {
                    let (_, left) = slot.suspended.swap_remove(i);
                    fx.send(worker, Core::Resume { copy, left });
                }
                None => fx.send(worker, Core::Run { copy }),
            }
        }
    }

    fn ended(&mut self, worker: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let Role::Worker { core, .. } = fx.layout().role(worker) else { return };
        let slot = &mut self.slots[core as usize];
        slot.running = None;
        if slot.ended.len() == REMEMBERED {
            slot.ended.pop_front();
        }
        slot.ended.push_back(copy);
        if let Some(owner) = slot.owner {
            fx.send(owner, Launch::Completed { copy });
        }
    }
}

impl Machine for Node {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Gang(Order::Switch { core, copy, order }) => {
                    self.switch(from, core, copy, order, fx);
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
            Input::Down { actor } => {
                let Role::Node(node) = fx.layout().role(fx.me()) else { return };
                for (core, slot) in self.slots.iter_mut().enumerate() {
                    if slot.owner == Some(actor) {
                        if let Some(copy) = slot.running {
                            fx.send(fx.layout().worker(node, core as u32), Core::Stop { copy });
                        }
                        // Orders of the dead scheduler that are still under way stay void.
                        *slot = Slot { order: slot.order, ..Slot::default() };
                    }
                }
            }
            Input::Start { .. }
            | Input::Up { .. }
            | Input::Undelivered { .. }
            | Input::Fire(_)
            | Input::Done { .. }
            | Input::Halted { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Effect;
    use crate::scripts::{Bench, sends};

    fn seat(layout: &Layout, me: ActorId) -> Seat<'_> {
        Seat { me, index: 0, layout, lossy: false }
    }

    fn scheduler(nodes: usize, tasks: u32) -> Bench {
        let layout = Layout::new(1, 0, vec![1; nodes]);
        let me = layout.scheduler(0);
        let machine = Gang::default().scheduler(seat(&layout, me));
        Bench::new(layout, me, tasks, machine)
    }

    fn running(sent: &[(ActorId, Message)]) -> Vec<Option<u32>> {
        let mut jobs: Vec<_> = sent
            .iter()
            .filter_map(|&(_, msg)| match msg {
                Message::Gang(Order::Switch { copy, .. }) => Some(copy.map(|copy| copy.task.job.0)),
                _ => None,
            })
            .collect();
        jobs.sort_unstable();
        jobs
    }

    fn submit(bench: &mut Bench, job: u32) -> Vec<Effect> {
        let msg = Job::Submit { job: JobId(job), round: 0 }.into();
        bench.step(Input::Deliver { from: bench.layout.client(0), msg })
    }

    #[test]
    fn two_jobs_take_turns_and_one_needs_no_ticks() {
        let mut bench = scheduler(2, 2);
        let first = submit(&mut bench, 0);
        assert_eq!(running(&sends(&first)), [Some(0), Some(0)]);
        assert!(!first.iter().any(|effect| matches!(effect, Effect::Arm { .. })), "one slice needs no clock");
        let second = submit(&mut bench, 1);
        assert_eq!(running(&sends(&second)), [], "it waits for its slice");
        assert!(second.iter().any(|effect| matches!(effect, Effect::Arm { .. })));
        for job in [1, 0, 1] {
            let tick = bench.step(Input::Fire(Timer::Tick(0)));
            assert_eq!(running(&sends(&tick)), [Some(job), Some(job)]);
        }
        // Job 1, whose turn it is, ends: the turn passes on at once.
        let node = bench.layout.node(0);
        bench.hear(node, Launch::Completed { copy: JobId(1).task(0).copy(0) });
        let sent = bench.hear(node, Launch::Completed { copy: JobId(1).task(1).copy(0) });
        assert_eq!(running(&sent), [Some(0), Some(0)]);
    }

    #[test]
    fn jobs_that_fit_share_a_slice_and_wide_ones_take_several() {
        let mut bench = scheduler(5, 2);
        assert_eq!(running(&sends(&submit(&mut bench, 0))), [Some(0), Some(0)]);
        assert_eq!(running(&sends(&submit(&mut bench, 1))), [Some(1), Some(1)], "the same slice");
        let mut wide = scheduler(2, 3);
        assert_eq!(running(&sends(&submit(&mut wide, 0))), [Some(0), Some(0)]);
        let tick = wide.step(Input::Fire(Timer::Tick(0)));
        assert_eq!(running(&sends(&tick)), [None, Some(0)], "the third task has a slice of its own");
    }

    #[test]
    fn a_core_keeps_progress_and_runs_nothing_twice() {
        let layout = Layout::new(1, 0, [1]);
        let (me, scheduler, worker) = (layout.node(0), layout.scheduler(0), layout.worker(0, 0));
        let machine = Gang::default().node(seat(&layout, me));
        let mut node = Bench::new(layout, me, 2, machine);
        let [a, b] = [0, 1].map(|job| JobId(job).task(0).copy(0));
        let switch = |copy, order| Order::Switch { core: 0, copy, order };
        let order = |order: Core| (worker, Message::from(order));
        assert_eq!(node.hear(scheduler, switch(Some(a), 1)), [order(Core::Run { copy: a })]);
        let both = [order(Core::Suspend { copy: a }), order(Core::Run { copy: b })];
        assert_eq!(node.hear(scheduler, switch(Some(b), 2)), both);
        let left = Span::from_millis(300);
        node.hear(worker, Core::Suspended { copy: a, left });
        assert_eq!(node.hear(scheduler, switch(Some(a), 1)), [], "an order that was overtaken is void");
        assert_eq!(node.ended(b), [(scheduler, Launch::Completed { copy: b }.into())]);
        assert_eq!(node.hear(scheduler, switch(Some(b), 3)), [], "it has ended here");
        assert_eq!(node.hear(scheduler, switch(Some(a), 4)), [order(Core::Resume { copy: a, left })]);
    }

    /// No scheduler gives one copy to two cores; a node told to by somebody else keeps its cores apart.
    #[test]
    fn a_core_ends_what_it_runs_itself() {
        let layout = Layout::new(1, 0, [2]);
        let (me, scheduler) = (layout.node(0), layout.scheduler(0));
        let workers = [0, 1].map(|core| layout.worker(0, core));
        let machine = Gang::default().node(seat(&layout, me));
        let mut node = Bench::new(layout, me, 2, machine);
        let [a, b] = [0, 1].map(|job| JobId(job).task(0).copy(0));
        for core in [0, 1] {
            node.hear(scheduler, Order::Switch { core, copy: Some(a), order: 1 });
        }
        node.hear(workers[1], Core::Ended { copy: a });
        let sent = node.hear(scheduler, Order::Switch { core: 1, copy: Some(b), order: 2 });
        assert_eq!(sent, [(workers[1], Core::Run { copy: b }.into())], "it is idle");
        let sent = node.hear(scheduler, Order::Switch { core: 0, copy: None, order: 2 });
        assert_eq!(sent, [(workers[0], Core::Suspend { copy: a }.into())], "it still runs");
    }
}
