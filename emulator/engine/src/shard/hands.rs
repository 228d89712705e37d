//! Copies that real cores run.
//!
//! `Cores` says when a copy should end, to the nanosecond, and nothing happens in between. Where copies burn real cores
//! it says the same, as what was asked; when a copy does end, the [`Hands`] that do the work tell. Whoever runs the
//! shard lets it [attend](super::Shard::attend) to them.

use volary_actors::base::{ActorId, CopyId, Endpoint, Span, Time};
use volary_actors::layout::Role;
use volary_actors::machine::Input;

use super::event_loop::{Event, What};
use super::{Observer, Shard};
use crate::cores::Cores;
use crate::results::{RealWork, Worked};

/// Real cores, of which each runs one copy at a time. Work is that of a healthy reference core, in emulated time.
pub trait Hands {
    /// Has a core that does nothing do work, and remembers the ticket.
    fn run(&mut self, core: u32, ticket: u64, work: Span);
    /// Stops what a core does, and says how much is left: zero only if it was finished.
    fn halt(&mut self, core: u32) -> Span;
    /// How much is left of what a core does.
    fn left(&self, core: u32) -> Span;
    /// Some core and ticket of which the work is finished, and since when.
    fn finished(&mut self) -> Option<(u32, u64, Time)>;
    /// Has cores slowed down as `cores` has it, from `now` on and some time ahead: when that is over, or at once if
    /// something has changed, `anew`.
    fn degrade(&mut self, cores: &Cores, now: Time, anew: bool);
    /// Ends; says what the cores did, but for the copies.
    fn end(&mut self) -> Worked;
}

/// What the cores of a shard run in reality.
pub(super) struct Labour {
    hands: Box<dyn Hands>,
    runs: Vec<Option<Running>>,
    tickets: u64,
    /// Whether cores are to be slowed down otherwise than they were told.
    stale: bool,
    /// How long copies took that ended by themselves.
    took: RealWork,
}

struct Running {
    copy: CopyId,
    ticket: u64,
    /// Its own work; to put another copy away before is work as well.
    work: Span,
    since: Time,
    /// When it should end.
    due: Time,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Works,
    /// It is finished since then.
    Done(Time),
    /// Its node stands still.
    Stands(Span),
}

/// Work from which on the pace of a copy that was stopped tells something.
const TELLING: Span = Span::from_millis(1);

impl Labour {
    fn new(hands: Box<dyn Hands>, cores: u32) -> Self {
        let runs = (0..cores).map(|_| None).collect();
        Self { hands, runs, tickets: 0, stale: false, took: RealWork::default() }
    }

    /// Runs a copy that should end at `due`.
    pub(super) fn run(&mut self, cores: &Cores, core: u32, now: Time, copy: CopyId, work: Span, due: Time) {
        self.tickets += 1;
        let running = Running { copy, ticket: self.tickets, work, since: now, due, state: State::Works };
        self.runs[core as usize] = Some(running);
        let before = cores.clearing(core, now).as_secs_f64() * cores.table().speed(core);
        self.hands.run(core, self.tickets, work + Span::from_secs_f64(before));
    }

    /// What a core runs should end at `due` instead.
    pub(super) fn retime(&mut self, core: u32, due: Time) {
        if let Some(running) = &mut self.runs[core as usize] {
            running.due = due;
        }
    }

    /// Cores are to be slowed down otherwise than they were told.
    pub(super) const fn slots_changed(&mut self) {
        self.stale = true;
    }

    /// Stops a copy and says how much of it is left.
    pub(super) fn halt(&mut self, core: u32) -> Span {
        let Some(Running { work, state, .. }) = self.runs[core as usize].take() else { return Span::ZERO };
        match state {
            State::Works => self.hands.halt(core).min(work),
            State::Stands(left) => left.min(work),
            State::Done(_) => Span::ZERO,
        }
    }

    /// Stops a copy of which `due` should be left at `now`, and says how much is.
    pub(super) fn stop(&mut self, core: u32, now: Time, due: Span) -> Span {
        let running = self.runs[core as usize].as_ref().map(|run| (run.since, run.work, run.state));
        let left = self.halt(core);
        if let Some((since, work, State::Works)) = running {
            let part = |left: Span| work.0.saturating_sub(left.0) as f64;
            let (did, should) = (part(left), part(due));
            if did.min(should) >= TELLING.0 as f64 {
                // What it was to keep the core for is the time in which it was to do so much.
                let kept = now.since(since).as_secs_f64();
                self.took.copy(kept * did / should, kept);
            }
        }
        left
    }

    pub(super) fn left(&self, core: u32) -> Span {
        let Some(running) = &self.runs[core as usize] else { return Span::ZERO };
        match running.state {
            State::Works => self.hands.left(core).min(running.work),
            State::Stands(left) => left.min(running.work),
            State::Done(_) => Span::ZERO,
        }
    }

    /// The copy on a core has ended.
    pub(super) fn ended(&mut self, core: u32) {
        if let Some(Running { since, due, state: State::Done(at), .. }) = self.runs[core as usize].take()
            && due < Time::MAX
        {
            self.took.copy(due.since(since).as_secs_f64(), at.since(since).as_secs_f64());
        }
    }

    /// The node of a core stands still from now on, or goes on.
    fn stall(&mut self, core: u32, stalls: bool) {
        let Some(running) = &mut self.runs[core as usize] else { return };
        match running.state {
            State::Works if stalls => {
                let left = self.hands.halt(core);
                // Finished just now, which the hands will tell.
                if left > Span::ZERO {
                    running.state = State::Stands(left);
                }
            }
            State::Stands(left) if !stalls => {
                running.state = State::Works;
                self.hands.run(core, running.ticket, left);
            }
            State::Works | State::Stands(_) | State::Done(_) => {}
        }
    }
}

impl<O: Observer> Shard<'_, O> {
    /// Has copies run by real cores from now on. To be called before [`start`](Self::start).
    pub fn employ(&mut self, hands: Box<dyn Hands>) {
        self.labour = Some(Labour::new(hands, self.parts.layout.workers()));
        for node in 0..self.parts.layout.nodes() {
            let node = self.parts.layout.node(node);
            if self.parts.placement.owns(node.index()) {
                let pauses = self.parts.fabric.faults().pauses(Endpoint(node.0)).to_vec();
                for (from, until) in pauses {
                    self.schedule(from, node, What::Stall);
                    self.schedule(until, node, What::Resume);
                }
            }
        }
    }

    /// Looks after real cores, if there are any: takes in what they have finished, and has them slowed down as they
    /// should be. To be called again and again.
    pub fn attend(&mut self, now: Time) {
        let Some(labour) = &mut self.labour else { return };
        labour.hands.degrade(&self.parts.cores, now, std::mem::take(&mut labour.stale));
        while let Some(labour) = &mut self.labour
            && let Some((core, ticket, at)) = labour.hands.finished()
        {
            // Of a copy that was halted since, nobody waits for it.
            let Some(running) = labour.runs[core as usize].as_mut().filter(|r| r.ticket == ticket) else {
                continue;
            };
            running.state = State::Done(at);
            let (me, copy) = (self.parts.layout.worker_of_core(core), running.copy);
            let stamp = self.residents[me.index()].epoch;
            self.push(at, me, Event { to: me, stamp, what: What::Input(Input::Done { copy }) });
        }
    }

    /// Ends what real cores do, and says what they did; nothing if there are none.
    pub fn dismiss(&mut self) -> Option<Worked> {
        let mut labour = self.labour.take()?;
        let mut worked = labour.hands.end();
        let RealWork { copies, asked_s, achieved_s, .. } = labour.took;
        worked.work = RealWork { copies, asked_s, achieved_s, ..worked.work };
        Some(worked)
    }

    /// A node stands still, or goes on.
    pub(super) fn stall(&mut self, actor: ActorId, stalls: bool) {
        let Some(labour) = &mut self.labour else { return };
        let Role::Node(node) = self.parts.layout.role(actor) else { return };
        for core in 0..self.parts.layout.cores(node) {
            let worker = self.parts.layout.worker(node, core);
            labour.stall(self.parts.layout.core_index(worker), stalls);
        }
    }
}
