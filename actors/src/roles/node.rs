//! The standard node manager: cores, and a FIFO of rows (tasks bound to this node) and reservations (places
//! kept for a scheduler that binds late).
//!
//! It runs a row by itself, task after task, without waiting for the scheduler; a `Drop` removes tasks that
//! need no copy any more, stops one that runs, and leaves every other core and task alone. A reservation at
//! the head holds its core while it asks the scheduler for a task.

mod held;

use std::collections::VecDeque;

use self::held::Held;
use crate::base::{ActorId, CopyId, JobId};
use crate::layout::Role;
use crate::machine::{Effects, Input, Machine};
use crate::message::{Core, Launch, Message, Probe, Row, Tasks};

#[derive(Debug)]
enum Entry {
    Row(Held),
    Reservation { from: ActorId, job: JobId, group: u32, count: u32, repair: bool },
}

impl Entry {
    /// Whether it keeps places for that group of a scheduler's job.
    fn is_reservation(&self, by: ActorId, about: JobId, which: u32) -> bool {
        matches!(*self, Self::Reservation { from, job, group, .. } if (from, job, group) == (by, about, which))
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
    queue: VecDeque<Entry>,
    early: VecDeque<Tasks>,
}

impl Node {
    /// A node with `cores` cores.
    #[must_use]
    pub fn new(cores: u32) -> Self {
        let slots = (0..cores).map(|_| Slot::Idle).collect();
        Self { slots, queue: VecDeque::new(), early: VecDeque::new() }
    }

    fn worker(core: usize, fx: &Effects<'_>) -> ActorId {
        match fx.layout().role(fx.me()) {
            Role::Node(node) => fx.layout().worker(node, core as u32),
            role => unreachable!("a node manager runs as {role:?}"),
        }
    }

    /// Gives idle cores the entries at the head of the queue.
    fn fill(&mut self, fx: &mut Effects<'_>) {
        while !self.queue.is_empty() {
            let Some(core) = self.slots.iter().position(|slot| matches!(slot, Slot::Idle)) else { return };
            match self.queue.front_mut() {
                Some(Entry::Reservation { from, job, group, count, repair }) => {
                    let (from, job, group, repair) = (*from, *job, *group, *repair);
                    *count -= 1;
                    if *count == 0 {
                        self.queue.pop_front();
                    }
                    self.slots[core] = Slot::Claiming { from, job, group };
                    fx.send_as(repair, from, Probe::Claim { job, group, repair });
                }
                _ => {
                    if let Some(Entry::Row(held)) = self.queue.pop_front() {
                        self.run(core, held, fx);
                    }
                }
            }
        }
    }

    /// Runs the next task of a row on an idle core; the core stays idle if none is left.
    fn run(&mut self, core: usize, mut held: Held, fx: &mut Effects<'_>) {
        self.slots[core] = match held.seek() {
            Some(copy) => {
                fx.send(Self::worker(core, fx), Core::Run { copy });
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
        self.queue.push_back(Entry::Row(held));
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
            held.at += 1;
            self.run(core, held, fx);
        }
        self.fill(fx);
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
            Entry::Row(_) | Entry::Reservation { .. } => true,
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
    fn reserve(&mut self, new: Entry, fx: &mut Effects<'_>) {
        let Entry::Reservation { from, job, group, .. } = new else { return };
        let waits = self.queue.iter().any(|entry| entry.is_reservation(from, job, group));
        if !waits && self.claiming(from, job, group).is_none() {
            self.queue.push_back(new);
            self.fill(fx);
        }
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
                self.reserve(Entry::Reservation { from, job, group, count, repair }, fx);
            }
            Probe::Grant { row, group } => match self.claiming(from, row.job, group) {
                Some(core) => {
                    self.run(core, Held::new(from, row), fx);
                    self.fill(fx);
                }
                // The claim was given up meanwhile; the work is taken all the same, nothing may be lost.
                None => self.row(from, row, fx),
            },
            Probe::Nothing { job, group } => self.release(from, job, group, fx),
            Probe::Cancel { job, group } => {
                self.queue.retain(|entry| !entry.is_reservation(from, job, group));
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
        self.queue.retain(|entry| match entry {
            Entry::Row(held) => held.from != actor,
            Entry::Reservation { from, .. } => *from != actor,
        });
        self.fill(fx);
    }
}

impl Machine for Node {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Launch(Launch::Row(row)) => self.row(from, row, fx),
                Message::Launch(Launch::Drop(tasks)) => self.drop_tasks(tasks, fx),
                Message::Core(Core::Ended { copy }) => self.ended(from, copy, fx),
                Message::Probe(probe) => self.probe(from, probe, fx),
                Message::Job(_)
                | Message::Launch(_)
                | Message::Core(_)
                | Message::Visitor(_)
                | Message::Ring(_)
                | Message::Gang(_)
                | Message::Gossip(_) => {
                    fx.unexpected(&msg);
                }
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
            | Input::Halted { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::scripts::Bench;

    const JOB: JobId = JobId(3);

    fn bench(cores: u32) -> (Bench, ActorId) {
        let layout = Layout::new(1, 0, [cores]);
        let (me, scheduler) = (layout.node(0), layout.scheduler(0));
        (Bench::new(layout, me, 3, Box::new(Node::new(cores))), scheduler)
    }

    fn row(turn: u16) -> Row {
        Row { job: JOB, base: 0, len: 3, turn, attempt: u32::from(turn) }
    }

    fn one(index: u32) -> Tasks {
        Tasks::one(JOB.task(index), 9)
    }

    fn run(copy: CopyId) -> Message {
        Core::Run { copy }.into()
    }

    /// Table II of the latin-square paper, as server s2 sees it: row [1, 2, 0] (tasks from zero), task 0
    /// completes on s1, then 1 on s2 itself, then 2 on s3.
    #[test]
    fn table_ii_on_the_second_server() {
        let (mut node, scheduler) = bench(1);
        let worker = node.layout.worker(0, 0);
        assert_eq!(node.hear(scheduler, Launch::Row(row(1))), [(worker, run(row(1).copy(0)))]);
        // Its head is unchanged: it must not be restarted.
        assert_eq!(node.hear(scheduler, Launch::Drop(one(0))), []);
        let done = Launch::Completed { copy: row(1).copy(0) }.into();
        assert_eq!(node.ended(row(1).copy(0)), [(scheduler, done), (worker, run(row(1).copy(1)))]);
        // Task 2 completes on s3: its copy here stops, and nothing is left.
        let stop = Core::Stop { copy: row(1).copy(1) }.into();
        assert_eq!(node.hear(scheduler, Launch::Drop(one(2))), [(worker, stop)]);
    }

    #[test]
    fn a_drop_that_overtakes_its_row_is_remembered() {
        let (mut node, scheduler) = bench(1);
        let worker = node.layout.worker(0, 0);
        assert_eq!(node.hear(scheduler, Launch::Drop(one(0))), []);
        assert_eq!(node.hear(scheduler, Launch::Row(row(0))), [(worker, run(row(0).copy(1)))]);
    }

    #[test]
    fn a_drop_in_the_queue_removes_only_its_task() {
        let (mut node, scheduler) = bench(1);
        let worker = node.layout.worker(0, 0);
        let first = Row::single(JobId(1).task(0).copy(0));
        node.hear(scheduler, Launch::Row(first));
        assert_eq!(node.hear(scheduler, Launch::Row(row(2))), []);
        assert_eq!(node.hear(scheduler, Launch::Drop(one(2))), []);
        let sent = node.ended(first.copy(0));
        assert_eq!(sent[1], (worker, run(row(2).copy(1))), "task 2 is skipped, task 0 runs");
    }

    #[test]
    fn a_reservation_holds_its_core_until_answered() {
        let (mut node, scheduler) = bench(2);
        let reserve = |job| Probe::Reserve { job: JobId(job), group: 0, count: 1, repair: false };
        let claim = |job| (scheduler, Probe::Claim { job: JobId(job), group: 0, repair: false }.into());
        assert_eq!(node.hear(scheduler, reserve(1)), [claim(1)]);
        assert_eq!(node.hear(scheduler, reserve(1)), [], "a repeated reservation is known");
        assert_eq!(node.hear(scheduler, reserve(2)), [claim(2)]);
        assert_eq!(node.hear(scheduler, reserve(3)), [], "both cores are held");
        let length = Probe::Length { task: JOB.task(0), length: 3 }.into();
        assert_eq!(
            node.hear(scheduler, Probe::Sample { task: JOB.task(0), repair: false }),
            [(scheduler, length)]
        );
        assert_eq!(node.hear(scheduler, Probe::Nothing { job: JobId(2), group: 0 }), [claim(3)]);
        let granted = Row::single(JobId(1).task(4).copy(0));
        let sent = node.hear(scheduler, Probe::Grant { row: granted, group: 0 });
        assert_eq!(sent, [(node.layout.worker(0, 0), run(granted.copy(0)))]);
    }

    #[test]
    fn a_dead_scheduler_is_forgotten() {
        let (mut node, scheduler) = bench(1);
        node.hear(scheduler, Launch::Row(row(0)));
        node.hear(scheduler, Probe::Reserve { job: JobId(9), group: 0, count: 2, repair: false });
        let stop = Core::Stop { copy: row(0).copy(0) }.into();
        let worker = node.layout.worker(0, 0);
        assert_eq!(crate::scripts::sends(&node.step(Input::Down { actor: scheduler })), [(worker, stop)]);
    }
}
