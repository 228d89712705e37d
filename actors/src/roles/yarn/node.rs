//! YARN's node manager, which runs containers, suspends and resumes them on order, and may report its room with
//! heartbeats.

use std::collections::{BTreeMap, VecDeque};

use crate::base::{ActorId, CopyId, Span};
use crate::layout::Role;
use crate::machine::{Effects, Input, Machine, Note, Timer};
use crate::message::{Core, Launch, Message, NodeReport, Preemption, Row, TaskRange};
use crate::roles::heartbeats::Heartbeats;

/// A container on the node.
#[derive(Clone, Copy, Debug)]
struct HeldCopy {
    copy: CopyId,
    from: ActorId,
    /// Number of the last order about the container.
    turn: u32,
    /// Work that was left at the suspension; `None` before the copy first ran.
    left: Option<Span>,
    /// The flag of the copy's [row](crate::message::Row::elsewhere).
    elsewhere: bool,
}

#[derive(Clone, Copy, Debug)]
enum Held {
    Idle,
    Running(HeldCopy),
    /// The worker was ordered to suspend the copy and has not answered yet. It answers before the node's next message.
    Leaving(HeldCopy),
}

/// A node manager of YARN.
#[derive(Clone, Debug)]
pub struct ContainerNode {
    cores: Box<[Held]>,
    /// Copies that arrived, or are to resume, while all cores were busy, because the manager did not know of some
    /// copies.
    waiting: VecDeque<HeldCopy>,
    suspended: Vec<HeldCopy>,
    /// The newest order about each copy that has not arrived: its turn, or [`DROP`].
    early: BTreeMap<CopyId, u32>,
    /// `None` if the scheduler does not need to know the node's room.
    beats: Option<Heartbeats>,
}

/// The turn that stands for a drop: the copy is not wanted any more.
const DROP: u32 = u32::MAX;

/// Capacity for early orders. Orders about ended copies are kept as well, so those about the oldest jobs are discarded.
const EARLY: usize = 1024;

impl ContainerNode {
    /// A node with `cores` containers and these heartbeats, if any.
    pub fn new(beats: Option<Heartbeats>, cores: u32) -> Self {
        let cores = vec![Held::Idle; cores as usize].into();
        Self { cores, waiting: VecDeque::new(), suspended: Vec::new(), early: BTreeMap::new(), beats }
    }

    /// Number of containers that fit beside the running ones.
    fn room(&self) -> u32 {
        let idle = self.cores.iter().filter(|held| matches!(held, Held::Idle)).count();
        idle.saturating_sub(self.waiting.len()) as u32
    }

    /// Gives idle cores the waiting copies.
    fn fill(&mut self, fx: &mut Effects<'_>) {
        while let Some(core) = self.cores.iter().position(|held| matches!(held, Held::Idle))
            && let Some(next) = self.waiting.pop_front()
        {
            let HeldCopy { copy, left, elsewhere, .. } = next;
            let order = left.map_or(Core::Run { copy, elsewhere }, |left| Core::Resume { copy, left });
            fx.send(fx.worker(core), order);
            self.cores[core] = Held::Running(next);
        }
    }

    fn ended(&mut self, core: usize, copy: CopyId, fx: &mut Effects<'_>) {
        // A copy that has ended can no longer be suspended: the order is void.
        let held = std::mem::replace(&mut self.cores[core], Held::Idle);
        if let Held::Running(held) | Held::Leaving(held) = held {
            debug_assert_eq!(held.copy, copy, "a core ended a copy that it was not given");
            fx.send(held.from, Launch::Completed { copy });
        }
        self.fill(fx);
    }

    /// Carries out an order to suspend a copy. A copy that waits for a core is put aside unchanged.
    fn suspend(&mut self, copy: CopyId, turn: u32, fx: &mut Effects<'_>) {
        let known = |held: &HeldCopy| held.copy == copy && held.turn < turn;
        for core in 0..self.cores.len() {
            if let Held::Running(held) = self.cores[core]
                && known(&held)
            {
                fx.send(fx.worker(core), Core::Suspend { copy });
                self.cores[core] = Held::Leaving(HeldCopy { turn, ..held });
                return;
            }
        }
        if let Some(at) = self.waiting.iter().position(known)
            && let Some(held) = self.waiting.remove(at)
        {
            self.suspended.push(HeldCopy { turn, ..held });
        } else {
            self.keep(copy, turn);
        }
    }

    /// Keeps an order about a copy that has not arrived.
    fn keep(&mut self, copy: CopyId, turn: u32) {
        if self.holds(copy) {
            return;
        }
        let newest = self.early.entry(copy).or_default();
        *newest = turn.max(*newest);
        if self.early.len() > EARLY {
            let _ = self.early.pop_first();
        }
    }

    fn holds(&self, copy: CopyId) -> bool {
        let of_core = |held: &Held| match *held {
            Held::Running(held) | Held::Leaving(held) => held.copy == copy,
            Held::Idle => false,
        };
        self.cores.iter().any(of_core)
            || self.waiting.iter().chain(&self.suspended).any(|held| held.copy == copy)
    }

    /// Accepts a copy, and brings it into the state that the newest order about it requires.
    fn arrive(&mut self, row: Row, from: ActorId, fx: &mut Effects<'_>) {
        let Row { elsewhere, .. } = row;
        let copy = row.copy(0);
        let turn = self.early.remove(&copy).unwrap_or(0);
        let held = HeldCopy { copy, from, turn, left: None, elsewhere };
        if held.turn == DROP {
            return;
        }
        if held.turn % 2 == 1 {
            self.suspended.push(held);
        } else {
            self.waiting.push_back(held);
        }
        self.fill(fx);
    }

    /// Handles the suspension of a copy. A copy without work left ended in the same instant.
    fn put_aside(&mut self, core: usize, left: Span, fx: &mut Effects<'_>) {
        if let Held::Leaving(held) = std::mem::replace(&mut self.cores[core], Held::Idle) {
            let held = HeldCopy { left: Some(left), ..held };
            if left == Span::ZERO {
                self.waiting.push_front(held);
            } else {
                self.suspended.push(held);
            }
        }
        self.fill(fx);
    }

    /// Carries out an order to resume a copy, or records it if the order to suspend the copy has not arrived yet.
    fn resume(&mut self, copy: CopyId, turn: u32, fx: &mut Effects<'_>) {
        let known = |held: &HeldCopy| held.copy == copy && held.turn < turn;
        if let Some(at) = self.suspended.iter().position(known) {
            let held = self.suspended.remove(at);
            self.waiting.push_back(HeldCopy { turn, ..held });
            return self.fill(fx);
        }
        let running = self.cores.iter_mut().filter_map(|held| match held {
            Held::Running(held) => Some(held),
            Held::Idle | Held::Leaving(_) => None,
        });
        if let Some(held) = running.chain(&mut self.waiting).find(|held| known(held)) {
            held.turn = turn;
            return;
        }
        self.keep(copy, turn);
    }

    /// Removes the copies of a task, now or when the newest of them arrives.
    fn drop_task(&mut self, tasks: TaskRange, fx: &mut Effects<'_>) {
        self.keep(tasks.job.task(tasks.base).copy(tasks.below - 1), DROP);
        self.remove(|held| is_dropped(held.copy, tasks), fx);
    }

    /// Removes all copies for which `which` holds.
    fn remove(&mut self, which: impl Fn(&HeldCopy) -> bool, fx: &mut Effects<'_>) {
        for held in self.waiting.iter().chain(&self.suspended) {
            if which(held) && held.left.is_some() {
                fx.note(Note::Discarded { copy: held.copy });
            }
        }
        self.waiting.retain(|held| !which(held));
        self.suspended.retain(|held| !which(held));
        for core in 0..self.cores.len() {
            if let Held::Running(held) = self.cores[core]
                && which(&held)
            {
                fx.send(fx.worker(core), Core::Stop { copy: held.copy });
                self.cores[core] = Held::Idle;
            }
        }
        self.fill(fx);
    }

    fn deliver(&mut self, from: ActorId, msg: &Message, fx: &mut Effects<'_>) {
        let core = match fx.layout().role(from) {
            Role::Worker { core, .. } => core as usize,
            _ => 0,
        };
        match *msg {
            Message::Launch(Launch::Drop(tasks)) => self.drop_task(tasks, fx),
            Message::Launch(launch) if let Some(row) = launch.row() => self.arrive(row, from, fx),
            Message::Preemption(Preemption::Suspend { copy, turn }) => self.suspend(copy, turn, fx),
            Message::Preemption(Preemption::Resume { copy, turn }) => self.resume(copy, turn, fx),
            Message::Core(Core::Ended { copy }) => self.ended(core, copy, fx),
            Message::Core(Core::Suspended { left, .. }) => self.put_aside(core, left, fx),
            _ => fx.unexpected(msg),
        }
    }
}

fn is_dropped(copy: CopyId, tasks: TaskRange) -> bool {
    tasks.contains(copy.task) && tasks.covers(copy.attempt)
}

impl Machine for ContainerNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => self.deliver(from, &msg, fx),
            Input::Fire(Timer::Beat) => {
                fx.send(fx.layout().scheduler(0), NodeReport::Room { slots: self.room(), at: fx.now() });
                self.beats.iter_mut().for_each(Heartbeats::sent);
            }
            // The peer timeout limits how often this repeats. If the scheduler crashed, `Down` arrives instead.
            Input::Undelivered { to, msg: Message::Launch(Launch::Completed { copy }) } => {
                fx.recover(to, Launch::Completed { copy });
            }
            Input::Down { actor } => self.remove(|held| held.from == actor, fx),
            // `Start` leads to the first heartbeat, armed below. `Up` needs no action, since a restarted scheduler
            // knows nothing of this node. Reports are datagrams, which never return. No other timer is armed. The
            // remaining inputs go to workers only.
            _ => {}
        }
        // A node without room has nothing to report.
        let is_full = self.room() == 0;
        if let Some(beats) = &mut self.beats {
            beats.arm(is_full, fx);
        }
    }
}
