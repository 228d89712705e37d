//! The possible next events of a world, and their effects.

use volary_actors::base::{ActorId, Time};
use volary_actors::layout::Role;
use volary_actors::machine::{Input, Timer};
use volary_actors::message::KINDS;

use super::{Failure, Flying, Health, LAST, Row, World, hash_of};

/// One possible next event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Move {
    /// The message in flight with this number arrives.
    Deliver(usize),
    /// The message returns to its sender after the peer timeout.
    Return(usize),
    /// The message is lost.
    Lose(usize),
    /// The message arrives, and a duplicate remains in flight.
    Duplicate(usize),
    /// A timer goes off.
    Fire(ActorId, Timer),
    /// A core ends its copy.
    End(u32),
    /// An actor crashes.
    Crash(ActorId),
    /// The failure detector reports the crash.
    Report(ActorId),
    /// The actor comes back. If its crash was not reported, it is reported before.
    Restart(ActorId),
    /// The link between two actors is cut.
    Cut(ActorId, ActorId),
    /// The link works again.
    Heal,
    /// The last job arrives.
    Last,
}

impl World<'_> {
    /// Whether the link between two actors is cut.
    pub(super) fn is_cut(&self, a: ActorId, b: ActorId) -> bool {
        self.cut == Some((a, b)) || self.cut == Some((b, a))
    }

    /// Time of the next timer or end of a copy.
    fn due(&self) -> Option<Time> {
        let timers = self.timers.iter().map(|timer| timer.0).filter(|due| *due < LAST);
        timers.chain(self.cores.iter().flatten().map(|&(_, end)| end)).min()
    }

    /// The next timers and ends of copies, by time.
    fn next(&self) -> Vec<Move> {
        let Some(due) = self.due() else { return Vec::new() };
        let timers = self.timers.iter();
        let mut next = Vec::new();
        for &(_, actor, timer) in timers.filter(|timer| timer.0 == due) {
            // Timers of one actor go off in the order in which they were armed.
            if !next.iter().any(|other| matches!(other, Move::Fire(of, _) if *of == actor)) {
                next.push(Move::Fire(actor, timer));
            }
        }
        let ending = |core: &u32| self.cores[*core as usize].is_some_and(|(_, end)| end == due);
        next.extend((0..self.cores.len() as u32).filter(ending).map(Move::End));
        next
    }

    /// All events that may come next.
    pub(crate) fn moves(&self) -> Vec<Move> {
        let busy = self.cores.iter().any(Option::is_some);
        if self.open_jobs().is_empty() && self.flying.is_empty() && !busy {
            return Vec::new();
        }
        let mut moves = Vec::new();
        for (at, message) in self.flying.iter().enumerate() {
            if self.flying[..at].contains(message) {
                continue;
            }
            moves.push(Move::Deliver(at));
            if message.returned.is_none() && message.is_datagram() {
                if self.budget.losses > 0 {
                    moves.push(Move::Lose(at));
                }
                if self.budget.duplicates > 0 {
                    moves.push(Move::Duplicate(at));
                }
            }
            let pair = Move::Cut(message.from, message.to);
            if self.budget.partitions > 0
                && self.cut.is_none()
                && message.returned.is_none()
                && !moves.contains(&pair)
            {
                moves.push(pair);
            }
        }
        if self.flying.is_empty() || self.budget.overtakes > 0 {
            moves.extend(self.next());
        }
        let layout = &self.setting.layout;
        for actor in (layout.schedulers()..layout.endpoints()).map(ActorId) {
            match self.health[actor.index()] {
                Health::Up if self.budget.crashes > 0 => moves.push(Move::Crash(actor)),
                Health::Up => {}
                Health::Crashed { reported } => {
                    if !reported {
                        moves.push(Move::Report(actor));
                    }
                    moves.push(Move::Restart(actor));
                }
            }
        }
        moves.extend(self.cut.map(|_| Move::Heal));
        moves
    }

    /// The next event without further faults: faults end, messages arrive in order, then time goes on. If `down` is
    /// set, crashed nodes stay down while others are up.
    pub(crate) fn kind_move(&self, down: bool) -> Option<Move> {
        if self.cut.is_some() {
            return Some(Move::Heal);
        }
        let layout = &self.setting.layout;
        let up = (0..layout.nodes()).any(|node| self.up(layout.node(node)));
        let stays = |actor: &ActorId| down && up && matches!(layout.role(*actor), Role::Node(_));
        let crashed = (0..layout.endpoints()).map(ActorId).filter(|actor| !self.up(*actor));
        if let Some(actor) = crashed.clone().find(|actor| !stays(actor)) {
            return Some(Move::Restart(actor));
        }
        let unreported = |actor: &ActorId| self.health[actor.index()] == Health::Crashed { reported: false };
        if let Some(actor) = { crashed }.find(unreported) {
            return Some(Move::Report(actor));
        }
        if let Some(at) = self.flying.iter().position(|message| message.returned.is_none()) {
            return Some(Move::Deliver(at));
        }
        let returns =
            self.flying.iter().enumerate().filter_map(|(at, message)| Some((message.returned?, at)));
        let back = returns.min();
        let next = self.next();
        match (back, self.due()) {
            (Some((due, at)), other) if other.is_none_or(|other| due <= other) => Some(Move::Return(at)),
            _ => next.first().copied(),
        }
    }

    /// Whether a node is down that other nodes can replace.
    pub(crate) fn lacks_node(&self) -> bool {
        let layout = &self.setting.layout;
        self.setting.has_spare_node() && (0..layout.nodes()).any(|node| !self.up(layout.node(node)))
    }

    /// The move after all jobs have finished: the last job arrives, once.
    pub(crate) fn last_move(&self) -> Option<Move> {
        let waits = self.timers.iter().any(|timer| timer.0 == LAST);
        waits.then_some(Move::Last)
    }

    /// A description of a move in this state.
    pub(crate) fn describe(&self, step: Move) -> String {
        let name = |actor| self.setting.name(actor);
        let message = |at: usize| {
            let Flying { from, to, msg, returned, .. } = self.flying[at];
            let kind = KINDS[msg.kind() as usize].0;
            let what = if returned.is_some() { "returned " } else { "" };
            format!("{what}{kind} {} to {}", name(from), name(to))
        };
        match step {
            Move::Deliver(at) | Move::Return(at) => format!("deliver {}", message(at)),
            Move::Lose(at) => format!("lose {}", message(at)),
            Move::Duplicate(at) => format!("duplicate {}", message(at)),
            Move::Fire(actor, timer) => format!("fire {} {timer:?}", name(actor)),
            Move::End(core) => format!("end core {core}"),
            Move::Crash(actor) => format!("crash {}", name(actor)),
            Move::Report(actor) => format!("report {}", name(actor)),
            Move::Restart(actor) => format!("restart {}", name(actor)),
            Move::Cut(a, b) => format!("cut {} and {}", name(a), name(b)),
            Move::Heal => "heal".to_owned(),
            Move::Last => "last job".to_owned(),
        }
    }

    /// Makes a move; its random draws come from this stream.
    pub(crate) fn make(&mut self, step: Move, stream: u64) -> Result<(), Failure> {
        (self.stream, self.drew) = (stream, false);
        match step {
            Move::Deliver(at) => {
                let message = self.flying.remove(at);
                self.deliver(message)
            }
            Move::Return(at) => {
                let message = self.flying.remove(at);
                self.now = self.now.max(message.returned.unwrap_or_default());
                self.deliver(message)
            }
            Move::Fire(actor, timer) => self.fire(actor, timer),
            Move::End(core) => self.end(core),
            Move::Report(actor) => self.report(actor),
            Move::Restart(actor) => self.restart(actor),
            Move::Last => {
                let Some(at) = self.timers.iter().position(|timer| timer.0 == LAST) else { return Ok(()) };
                let (_, actor, timer) = self.timers.remove(at);
                self.dispatch(actor, Input::Fire(timer), false)
            }
            Move::Duplicate(at) => {
                self.budget.duplicates -= 1;
                self.faulty = true;
                self.deliver(self.flying[at])
            }
            Move::Lose(at) => {
                self.record(step);
                self.budget.losses -= 1;
                self.faulty = true;
                self.flying.remove(at);
                Ok(())
            }
            Move::Crash(actor) => {
                self.record(step);
                self.crash(actor);
                Ok(())
            }
            Move::Cut(a, b) => {
                self.record(step);
                self.cut_link(a, b);
                Ok(())
            }
            Move::Heal => {
                self.record(step);
                self.cut = None;
                Ok(())
            }
        }
    }

    /// Records a fault, which is not an input of any actor.
    fn record(&mut self, step: Move) {
        let row =
            Row { at: self.now, actor: ActorId(u32::MAX), input: self.describe(step), effects: Vec::new() };
        self.history.iter_mut().for_each(|history| history.push(row.clone()));
    }

    fn cut_link(&mut self, a: ActorId, b: ActorId) {
        self.budget.partitions -= 1;
        self.faulty = true;
        self.cut = Some((a, b));
        for message in std::mem::take(&mut self.flying) {
            if message.returned.is_some() || !self.is_cut(message.from, message.to) {
                self.flying.push(message);
            } else {
                self.fail(message);
            }
        }
    }

    fn fire(&mut self, actor: ActorId, timer: Timer) -> Result<(), Failure> {
        self.overtake();
        let armed = self.timers.iter().enumerate().filter(|(_, armed)| (armed.1, armed.2) == (actor, timer));
        let Some((at, &(due, ..))) = armed.min_by_key(|(at, armed)| (armed.0, *at)) else { return Ok(()) };
        self.timers.remove(at);
        self.now = self.now.max(due);
        self.dispatch(actor, Input::Fire(timer), false)
    }

    fn end(&mut self, core: u32) -> Result<(), Failure> {
        self.overtake();
        let Some((copy, end)) = self.cores[core as usize].take() else { return Ok(()) };
        self.now = self.now.max(end);
        self.dispatch(self.setting.layout.worker_of_core(core), Input::Done { copy }, false)
    }

    fn overtake(&mut self) {
        if !self.flying.is_empty() {
            self.budget.overtakes = self.budget.overtakes.saturating_sub(1);
        }
    }

    fn crash(&mut self, actor: ActorId) {
        self.budget.crashes -= 1;
        self.faulty = true;
        let layout = &self.setting.layout;
        let stored = self.machines[actor.index()].take().and_then(|mut machine| machine.stored());
        if let Some(stored) = stored {
            let mut next = self.setting.build(actor);
            next.restore(stored);
            self.successors.push((actor, next));
        }
        self.texts[actor.index()] = 0;
        self.epochs[actor.index()] += 1;
        self.health[actor.index()] = Health::Crashed { reported: false };
        if let Role::Node(node) = layout.role(actor) {
            for core in 0..layout.cores(node) {
                let worker = layout.worker(node, core);
                self.machines[worker.index()] = None;
                self.texts[worker.index()] = 0;
                self.cores[layout.core_index(worker) as usize] = None;
            }
            self.open.retain(|_, at| *at != node);
        }
        let layout = &self.setting.layout;
        self.timers.retain(|(_, of, _)| layout.endpoint(*of) != layout.endpoint(actor));
        for message in std::mem::take(&mut self.flying) {
            if message.receiver() != actor {
                self.flying.push(message);
            } else if message.returned.is_none() {
                self.fail(message);
            }
        }
    }

    /// Whether the failure detector reports `other` to `who`.
    fn is_notified_of(&self, who: ActorId, other: ActorId) -> bool {
        let layout = &self.setting.layout;
        who != other && (layout.coordinates(who) || layout.coordinates(other))
    }

    fn notify_all(&mut self, about: ActorId, input: Input) -> Result<(), Failure> {
        for who in (0..self.setting.layout.endpoints()).map(ActorId) {
            if self.up(who) && self.is_notified_of(who, about) {
                self.dispatch(who, input, false)?;
            }
        }
        Ok(())
    }

    fn report(&mut self, actor: ActorId) -> Result<(), Failure> {
        self.health[actor.index()] = Health::Crashed { reported: true };
        self.notify_all(actor, Input::Down { actor })
    }

    fn restart(&mut self, actor: ActorId) -> Result<(), Failure> {
        if self.health[actor.index()] == (Health::Crashed { reported: false }) {
            self.report(actor)?;
        }
        let layout = &self.setting.layout;
        self.health[actor.index()] = Health::Up;
        let stored = self.successors.iter().position(|(of, _)| *of == actor);
        let next = stored.map(|at| self.successors.swap_remove(at).1);
        self.machines[actor.index()] = Some(next.unwrap_or_else(|| self.setting.build(actor)));
        if let Role::Node(node) = layout.role(actor) {
            for worker in (0..layout.cores(node)).map(|core| layout.worker(node, core)) {
                self.machines[worker.index()] = Some(self.setting.build(worker));
                self.texts[worker.index()] = hash_of(&self.machines[worker.index()]);
            }
        }
        self.dispatch(actor, Input::Start { epoch: self.epochs[actor.index()] }, false)?;
        for other in (0..self.setting.layout.endpoints()).map(ActorId) {
            let reported = self.health[other.index()] == (Health::Crashed { reported: true });
            if reported && self.is_notified_of(actor, other) {
                self.dispatch(actor, Input::Down { actor: other }, false)?;
            }
        }
        self.notify_all(actor, Input::Up { actor })
    }
}
