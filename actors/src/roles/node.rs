//! The standard node manager: cores, and a queue of rows (tasks bound to this node) and reservations (places
//! kept for a scheduler that binds late), first come first served unless it is built [`with`](Node::with) other
//! manners.
//!
//! It runs a row by itself, task after task, without waiting for the scheduler; a `Drop` removes tasks that
//! need no copy any more, stops one that runs, and leaves every other core and task alone. A reservation at
//! the head holds its core while it asks the scheduler for a task.

mod held;
mod progress;

use std::collections::VecDeque;

use self::held::Held;
use super::queue::{Lot, Order, Queue};
use crate::base::{ActorId, CopyId, JobId, Span, TaskId};
use crate::layout::Role;
use crate::machine::{Effects, Input, Machine};
use crate::message::{Core, Launch, Message, Probe, Row, Tasks};

/// Places kept for a scheduler that binds late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// The scheduler.
    pub from: ActorId,
    /// Its job.
    pub job: JobId,
    /// The group of the job's tasks.
    pub group: u32,
    /// How many places.
    pub count: u32,
    /// Whether it repairs a loss.
    pub repair: bool,
}

#[derive(Debug)]
enum Entry {
    Row(Held),
    Reservation(Reservation),
}

impl Entry {
    /// Whether it keeps places for that group of a scheduler's job.
    fn is_reservation(&self, by: ActorId, about: JobId, which: u32) -> bool {
        matches!(*self, Self::Reservation(Reservation { from, job, group, .. }) if (from, job, group) == (by, about, which))
    }
}

/// How a node manager differs from the plain one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Manners {
    /// What is served first. Ranks are the estimated work of the job's tasks that have not begun.
    pub order: Order,
    /// Whether tasks of long jobs have no rank: they overtake nothing, and are next once they are the head.
    pub long_in_turn: bool,
    /// Whether a reservation that led to a task stays, so that the same scheduler is asked again after it.
    pub sticky: bool,
}

impl Default for Manners {
    fn default() -> Self {
        Self { order: Order::Fifo, long_in_turn: false, sticky: false }
    }
}

/// What a core does.
#[derive(Debug)]
enum Slot {
    Idle,
    /// Held for a scheduler that was asked for a task.
    Claiming {
        from: ActorId,
        job: JobId,
        group: u32,
    },
    Running(Held),
}

/// Drops that overtook the row they are about; a row that ended here leaves some behind, so they are few.
const EARLY_DROPS: usize = 16;

/// The node manager most policies use.
#[derive(Debug)]
pub struct Node {
    slots: Box<[Slot]>,
    manners: Manners,
    queue: Queue<Entry>,
    early: VecDeque<Tasks>,
}

impl Node {
    /// A node with `cores` cores.
    #[must_use]
    pub fn new(cores: u32) -> Self {
        Self::with(Manners::default(), cores)
    }

    /// A node with `cores` cores that does not serve in turn, or asks again.
    #[must_use]
    pub fn with(manners: Manners, cores: u32) -> Self {
        let slots = (0..cores).map(|_| Slot::Idle).collect();
        Self { slots, manners, queue: Queue::new(manners.order), early: VecDeque::new() }
    }

    fn worker(core: usize, fx: &Effects<'_>) -> ActorId {
        match fx.layout().role(fx.me()) {
            Role::Node(node) => fx.layout().worker(node, core as u32),
            role => unreachable!("a node manager runs as {role:?}"),
        }
    }

    /// Gives idle cores the entries that are next.
    fn fill(&mut self, fx: &mut Effects<'_>) {
        while !self.queue.is_empty() {
            let Some(core) = self.slots.iter().position(|slot| matches!(slot, Slot::Idle)) else { return };
            let Some((at, entry)) = self.queue.serve() else { return };
            if let Entry::Reservation(place) = entry {
                place.count -= 1;
                let Reservation { from, job, group, count, repair } = *place;
                if count == 0 {
                    let _ = self.queue.remove(at);
                }
                self.slots[core] = Slot::Claiming { from, job, group };
                fx.send_as(repair, from, Probe::Claim { job, group, repair });
            } else if let Some(Entry::Row(held)) = self.queue.remove(at) {
                self.run(core, held, fx);
            }
        }
    }

    /// Where tasks of a job belong of which `left` have not begun, as far as this node knows.
    fn lot(&self, job: JobId, left: u32, fx: &Effects<'_>) -> Lot {
        let estimate = fx.catalog().job_estimate(job);
        let in_turn = self.manners.long_in_turn && is_long(job, fx);
        Lot { rank: (!in_turn).then(|| Span(estimate.0.saturating_mul(u64::from(left)))), estimate }
    }

    fn enqueue(&mut self, entry: Entry, job: JobId, fx: &Effects<'_>) {
        let lot = match self.manners.order {
            Order::Fifo => Lot::IN_TURN,
            Order::Least { .. } => self.lot(job, fx.catalog().tasks(job), fx),
        };
        self.queue.push(entry, lot);
    }

    /// Runs the next task of a row on an idle core; the core stays idle if none is left.
    fn run(&mut self, core: usize, mut held: Held, fx: &mut Effects<'_>) {
        self.slots[core] = match held.seek() {
            Some(copy) => {
                fx.send(Self::worker(core, fx), Core::Run { copy });
                held.began = fx.now();
                Slot::Running(held)
            }
            None => Slot::Idle,
        };
    }

    fn row(&mut self, from: ActorId, row: Row, fx: &mut Effects<'_>) {
        let mut held = Held::new(from, row);
        self.early.retain(|&tasks| {
            let about = held.overlaps(tasks);
            if about {
                held.remove(tasks);
            }
            !about
        });
        self.enqueue(Entry::Row(held), row.job, fx);
        self.fill(fx);
    }

    fn ended(&mut self, worker: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let Role::Worker { core, .. } = fx.layout().role(worker) else {
            unreachable!("{copy} ended on {worker}, which is no core")
        };
        let core = core as usize;
        if let Slot::Running(mut held) = std::mem::replace(&mut self.slots[core], Slot::Idle) {
            debug_assert_eq!(held.row.copy(held.at), copy, "a core ended what it was not given");
            fx.send(held.from, Launch::Completed { copy });
            self.stick(&held, copy, fx);
            held.at += 1;
            self.run(core, held, fx);
        }
        self.fill(fx);
    }

    /// The reservation that led to a task goes back to where it was. Schedulers hand out the tasks of a job in
    /// order, so the task tells how many are left.
    fn stick(&mut self, held: &Held, copy: CopyId, fx: &Effects<'_>) {
        let (Some(group), TaskId { job, index }) = (held.stick, copy.task) else { return };
        let place = Reservation { from: held.from, job, group, count: 1, repair: false };
        let lot = self.lot(job, fx.catalog().tasks(job) - 1 - index, fx);
        self.queue.push_front(Entry::Reservation(place), lot);
    }

    fn drop_tasks(&mut self, tasks: Tasks, fx: &mut Effects<'_>) {
        let mut found = false;
        for core in 0..self.slots.len() {
            let Slot::Running(held) = &mut self.slots[core] else { continue };
            if !held.overlaps(tasks) {
                continue;
            }
            found = true;
            held.remove(tasks);
            let running = held.row.copy(held.at);
            if tasks.contains(running.task) {
                self.stop(core, running, true, fx);
            }
        }
        self.queue.retain_mut(|entry| match entry {
            Entry::Row(held) if held.overlaps(tasks) => {
                found = true;
                held.remove(tasks);
                held.seek().is_some()
            }
            Entry::Row(_) | Entry::Reservation(_) => true,
        });
        if !found {
            if self.early.len() == EARLY_DROPS {
                self.early.pop_front();
            }
            self.early.push_back(tasks);
        }
        self.fill(fx);
    }

    /// Stops what a core runs; with `proceed` it goes on with the rest of the row.
    fn stop(&mut self, core: usize, running: CopyId, proceed: bool, fx: &mut Effects<'_>) {
        fx.send(Self::worker(core, fx), Core::Stop { copy: running });
        if let Slot::Running(held) = std::mem::replace(&mut self.slots[core], Slot::Idle)
            && proceed
        {
            self.run(core, held, fx);
        }
    }

    /// Queues a reservation, unless it is known: a datagram can come twice, and a scheduler repeats one it
    /// believes lost.
    pub fn reserve(&mut self, place: Reservation, fx: &mut Effects<'_>) {
        let Reservation { from, job, group, count, repair } = place;
        if let Some(Entry::Reservation(known)) =
            self.queue.iter_mut().find(|entry| entry.is_reservation(from, job, group))
        {
            // All places that its scheduler counts here: more than before, if others were lost.
            known.count = known.count.max(count);
        } else if repair || self.claiming(from, job, group).is_none() {
            self.enqueue(Entry::Reservation(place), job, fx);
            self.fill(fx);
        }
    }

    /// Whether nothing waits here and no core is busy or held.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.slots.iter().all(|slot| matches!(slot, Slot::Idle))
    }

    /// How long a new task would wait for a core, and how much of that is left of what runs: by the estimates,
    /// shared by the cores.
    #[must_use]
    pub fn wait(&self, fx: &Effects<'_>) -> (Span, Span) {
        let estimate = |held: &Held| fx.catalog().job_estimate(held.row.job);
        let work = |held: &Held, tasks: u32| Span(estimate(held).0.saturating_mul(u64::from(tasks)));
        let (mut waiting, mut running) = (Span::ZERO, Span::ZERO);
        for entry in self.queue.iter() {
            if let Entry::Row(held) = entry {
                waiting += work(held, held.left());
            }
        }
        for slot in &self.slots {
            if let Slot::Running(held) = slot {
                waiting += work(held, held.left() - 1);
                running += estimate(held).saturating_sub(fx.now().since(held.began));
            }
        }
        let share = |work: Span| Span(work.0 / self.slots.len() as u64);
        (share(waiting + running), share(running))
    }

    /// Whether tasks of long jobs wait or run here.
    #[must_use]
    pub fn has_long(&self, fx: &Effects<'_>) -> bool {
        self.runs_long(fx) || self.queue.iter().any(|entry| is_long_row(entry, fx))
    }

    fn runs_long(&self, fx: &Effects<'_>) -> bool {
        self.slots.iter().any(|slot| matches!(slot, Slot::Running(held) if is_long(held.row.job, fx)))
    }

    /// Takes out the first reservations in a row that wait behind a task of a long job.
    pub fn take_behind_long(&mut self, fx: &Effects<'_>, out: &mut Vec<Reservation>) {
        let mut behind = self.runs_long(fx);
        let mut ended = false;
        self.queue.retain_mut(|entry| match entry {
            Entry::Reservation(place) if behind && !ended => {
                out.push(*place);
                false
            }
            Entry::Reservation(_) => true,
            Entry::Row(_) => {
                ended |= !out.is_empty();
                behind |= is_long_row(entry, fx);
                true
            }
        });
    }

    /// The core that is held for this claim.
    fn claiming(&self, by: ActorId, about: JobId, which: u32) -> Option<usize> {
        self.slots.iter().position(|slot| {
            matches!(*slot, Slot::Claiming { from, job, group } if (from, job, group) == (by, about, which))
        })
    }

    fn release(&mut self, from: ActorId, job: JobId, group: u32, fx: &mut Effects<'_>) {
        if let Some(core) = self.claiming(from, job, group) {
            self.slots[core] = Slot::Idle;
            self.fill(fx);
        }
    }

    fn probe(&mut self, from: ActorId, probe: Probe, fx: &mut Effects<'_>) {
        match probe {
            Probe::Reserve { job, group, count, repair } => {
                self.reserve(Reservation { from, job, group, count, repair }, fx);
            }
            Probe::Grant { row, group } => match self.claiming(from, row.job, group) {
                Some(core) => {
                    let mut held = Held::new(from, row);
                    held.stick = self.manners.sticky.then_some(group);
                    self.run(core, held, fx);
                    self.fill(fx);
                }
                // The claim was given up meanwhile; the work is taken all the same, nothing may be lost.
                None => self.row(from, row, fx),
            },
            Probe::Nothing { job, group } => self.release(from, job, group, fx),
            Probe::Cancel { job, group } => {
                self.queue.retain_mut(|entry| !entry.is_reservation(from, job, group));
            }
            Probe::Sample { task, repair } => {
                let busy = self.slots.iter().filter(|slot| !matches!(slot, Slot::Idle)).count();
                let free = self.slots.len() - busy;
                let length = if free > 0 { -(free as i32) } else { (self.queue.len() + busy) as i32 };
                fx.send_as(repair, from, Probe::Length { task, length });
            }
            Probe::Claim { .. } | Probe::Length { .. } => fx.unexpected(&probe.into()),
        }
    }

    /// A coordinator lost its state: what it asked for will be asked for again, elsewhere.
    fn forget(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        for core in 0..self.slots.len() {
            match &mut self.slots[core] {
                Slot::Running(held) if held.from == actor => {
                    let running = held.row.copy(held.at);
                    self.stop(core, running, false, fx);
                }
                Slot::Claiming { from, .. } if *from == actor => self.slots[core] = Slot::Idle,
                Slot::Running(_) | Slot::Claiming { .. } | Slot::Idle => {}
            }
        }
        self.queue.retain_mut(|entry| match entry {
            Entry::Row(held) => held.from != actor,
            Entry::Reservation(place) => place.from != actor,
        });
        self.fill(fx);
    }
}

fn is_long(job: JobId, fx: &Effects<'_>) -> bool {
    fx.catalog().job(job).class > 0
}

fn is_long_row(entry: &Entry, fx: &Effects<'_>) -> bool {
    matches!(entry, Entry::Row(held) if is_long(held.row.job, fx))
}

impl Machine for Node {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Launch(Launch::Row(row)) => self.row(from, row, fx),
                Message::Launch(Launch::Drop(tasks)) => self.drop_tasks(tasks, fx),
                Message::Core(Core::Ended { copy }) => self.ended(from, copy, fx),
                Message::Core(Core::Score { copy, score }) => self.score(from, copy, score, fx),
                Message::Probe(probe) => self.probe(from, probe, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg } => match msg {
                // The peer timeout paces the repetition; a scheduler that died is reported down instead.
                Message::Launch(Launch::Completed { copy }) => fx.recover(to, Launch::Completed { copy }),
                Message::Probe(Probe::Claim { job, group, .. }) => self.release(to, job, group, fx),
                _ => {}
            },
            Input::Down { actor } => self.forget(actor, fx),
            // A scheduler that comes back knows nothing of this node yet; timers and halts are not ours.
            Input::Up { .. }
            | Input::Start { .. }
            | Input::Fire(_)
            | Input::Done { .. }
            | Input::Halted { .. }
            | Input::Gauged { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
