//! The possible next events of a world, and their effects.

use volary_actors::base::{ActorId, Span, Time};
use volary_actors::layout::Role;
use volary_actors::machine::{Input, Timer};
use volary_actors::message::{Gossip, KINDS, Message};

use super::{Failure, Flying, Health, LAST, Row, Setting, World, hash_of};

/// One possible next event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Move {
    /// The message in flight with this index arrives. An undeliverable message returns to its sender instead, before
    /// the peer timeout, because its receiver restarted.
    Deliver(usize),
    /// An undeliverable message returns to its sender after the peer timeout.
    Return(usize),
    /// A stream message that waits for the end of a cut is given up.
    GiveUp(usize),
    /// The message is lost.
    Lose(usize),
    /// The message arrives, and a duplicate remains in flight.
    Duplicate(usize),
    /// A timer fires.
    Fire(ActorId, Timer),
    /// A core ends its copy.
    End(u32),
    /// An actor crashes.
    Crash(ActorId),
    /// The failure detector reports the crash.
    Report(ActorId),
    /// The actor comes back. If its crash was not reported, it is reported first.
    Restart(ActorId),
    /// The link between two actors is cut.
    Cut(ActorId, ActorId),
    /// The link from the first actor to the second is cut, in this direction.
    CutOneWay(ActorId, ActorId),
    /// The link works again.
    Heal,
    /// The last job arrives.
    Last,
}

impl<'a> World<'a> {
    /// The world after a history without failure.
    pub(crate) fn after(setting: &'a Setting, path: &[(Move, u64)]) -> Self {
        let mut world = Self::new(setting).unwrap_or_else(|failure| panic!("{failure:?}"));
        for &(step, stream) in path {
            world.make(step, stream).unwrap_or_else(|failure| panic!("{failure:?}"));
        }
        world
    }

    /// The world after a history in [printed](Self::describe) lines, each with the number of its random stream.
    pub(crate) fn repeat(setting: &'a Setting, lines: &[&str]) -> Self {
        let mut world = Self::after(setting, &[]);
        for line in lines {
            let (stream, text) = line.split_once(' ').expect("a line begins with a stream");
            let kind = [world.kind_move(true), world.kind_move(false), world.last_move()];
            let mut moves = world.moves().into_iter().chain(kind.into_iter().flatten());
            let step = moves.find(|step| world.describe(*step) == text);
            let step = step.unwrap_or_else(|| panic!("{text}: impossible here; record the history again"));
            let made = world.make(step, stream.parse().expect("a stream is a number"));
            made.unwrap_or_else(|failure| panic!("{text}: {failure:?}"));
        }
        world
    }

    /// Whether the link from one actor to another is cut.
    pub(super) fn is_cut(&self, from: ActorId, to: ActorId) -> bool {
        self.cut.is_some_and(|(a, b, both)| (a, b) == (from, to) || both && (b, a) == (from, to))
    }

    /// Time at which the next timer fires, copy ends or undeliverable message returns.
    fn due(&self) -> Option<Time> {
        let timers = self.timers.iter().map(|timer| timer.0).filter(|due| *due < LAST);
        let returns = self.flying.iter().filter_map(|message| message.returned);
        timers.chain(returns).chain(self.cores.iter().flatten().map(|&(_, end)| end)).min()
    }

    /// Returns, timers and ends of copies that are next, by time.
    fn next(&self) -> Vec<Move> {
        let Some(due) = self.due() else { return Vec::new() };
        let timers = self.timers.iter();
        let returns = |message: &Flying| message.returned == Some(due);
        let mut next: Vec<_> =
            (0..self.flying.len()).filter(|at| returns(&self.flying[*at])).map(Move::Return).collect();
        for &(_, actor, timer) in timers.filter(|timer| timer.0 == due) {
            // Timers of one actor fire in the order in which they were armed.
            if !next.iter().any(|other| matches!(other, Move::Fire(of, _) if *of == actor)) {
                next.push(Move::Fire(actor, timer));
            }
        }
        let ending = |core: &u32| self.cores[*core as usize].is_some_and(|(_, end)| end == due);
        next.extend((0..self.cores.len() as u32).filter(ending).map(Move::End));
        next
    }

    /// Whether a message in flight may arrive now.
    fn arrives(&self, message: &Flying) -> bool {
        message.returned.is_none() && self.up(message.to) && !self.is_cut(message.from, message.to)
    }

    /// Whether a message in flight may arrive before time goes on.
    pub(super) fn is_talking(&self) -> bool {
        self.flying.iter().any(|message| self.arrives(message))
    }

    /// All events that may come next.
    pub(crate) fn moves(&self) -> Vec<Move> {
        let busy = self.cores.iter().any(Option::is_some);
        if !self.gossips() && self.open_jobs().is_empty() && self.flying.is_empty() && !busy {
            return Vec::new();
        }
        let mut moves = Vec::new();
        for (at, message) in self.flying.iter().enumerate() {
            if !self.flying[..at].contains(message) {
                self.moves_of(at, message, &mut moves);
            }
        }
        if !self.is_talking() || self.budget.overtakes > 0 {
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

    /// The possible next events of a message in flight.
    fn moves_of(&self, at: usize, message: &Flying, moves: &mut Vec<Move>) {
        let Flying { from, to, returned, .. } = *message;
        if returned.is_some() {
            // The receiver restarted, and does not know the stream.
            moves.extend((self.up(to) && !self.is_cut(from, to)).then_some(Move::Deliver(at)));
            return;
        }
        let datagram = message.is_datagram();
        if self.is_cut(from, to) {
            moves.push(Move::GiveUp(at));
        } else {
            moves.push(Move::Deliver(at));
        }
        if datagram && self.budget.losses > 0 {
            moves.push(Move::Lose(at));
        }
        if datagram && self.budget.duplicates > 0 {
            moves.push(Move::Duplicate(at));
        }
        let cuts = [
            (self.budget.partitions, Move::Cut(from.min(to), from.max(to))),
            (self.budget.one_way, Move::CutOneWay(from, to)),
        ];
        for (left, cut) in cuts {
            if left > 0 && self.cut.is_none() && !moves.contains(&cut) {
                moves.push(cut);
            }
        }
    }

    /// The next event without further faults: present faults end, messages arrive in order, then time goes on. If
    /// `down`, nodes that crashed stay down while others are up, and links between members that gossip stay cut.
    pub(crate) fn kind_move(&self, down: bool) -> Option<Move> {
        if self.cut.is_some() && !(down && self.gossips()) {
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
        self.next().first().copied()
    }

    /// Whether a node is down that other nodes can replace, or a link is cut between members that gossip.
    pub(crate) fn lacks_node(&self) -> bool {
        let layout = &self.setting.layout;
        self.gossips() && self.cut.is_some()
            || self.setting.has_spare_node() && (0..layout.nodes()).any(|node| !self.up(layout.node(node)))
    }

    /// The move after all jobs have finished: the last job arrives, once.
    pub(crate) fn last_move(&self) -> Option<Move> {
        let waits = self.timers.iter().any(|timer| timer.0 == LAST);
        waits.then_some(Move::Last)
    }

    /// A description of a move in this state.
    pub(crate) fn describe(&self, step: Move) -> String {
        let name = |actor| self.setting.name(actor);
        let text = |&Flying { from, to, msg, returned, .. }: &Flying| {
            let kind = KINDS[msg.kind() as usize].0;
            let what = if returned.is_some() { "returned " } else { "" };
            format!("{what}{kind} {} to {}", name(from), name(to))
        };
        let message = |at: usize| {
            let text_of_it = text(&self.flying[at]);
            match self.flying[..at].iter().filter(|other| text(other) == text_of_it).count() {
                0 => text_of_it,
                before => format!("{text_of_it}, number {}", before + 1),
            }
        };
        match step {
            Move::Deliver(at) => format!("deliver {}", message(at)),
            Move::Return(at) => format!("after the peer timeout deliver {}", message(at)),
            Move::GiveUp(at) => format!("give up {}", message(at)),
            Move::Lose(at) => format!("lose {}", message(at)),
            Move::Duplicate(at) => format!("duplicate {}", message(at)),
            Move::Fire(actor, timer) => format!("fire {} {timer:?}", name(actor)),
            Move::End(core) => format!("end core {core}"),
            Move::Crash(actor) => format!("crash {}", name(actor)),
            Move::Report(actor) => format!("report {}", name(actor)),
            Move::Restart(actor) => format!("restart {}", name(actor)),
            Move::Cut(a, b) => format!("cut {} and {}", name(a), name(b)),
            Move::CutOneWay(from, to) => format!("cut {} to {}", name(from), name(to)),
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
            Move::GiveUp(at) => {
                let message = self.flying.remove(at);
                self.fail(message);
                Ok(())
            }
            Move::Return(at) => {
                self.overtake();
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
                self.settled = self.timers.is_empty()
                    && if self.setting.conserves { self.is_quiet() && !self.misled } else { !self.faulty };
                self.dispatch(actor, Input::Fire(timer), false)
            }
            Move::Duplicate(at) => {
                self.record(step);
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
                self.budget.partitions -= 1;
                self.cut_link((a, b, true));
                Ok(())
            }
            Move::CutOneWay(from, to) => {
                self.record(step);
                self.budget.one_way -= 1;
                self.cut_link((from, to, false));
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

    fn cut_link(&mut self, link: (ActorId, ActorId, bool)) {
        self.faulty = true;
        self.cut = Some(link);
        for message in std::mem::take(&mut self.flying) {
            // A stream message waits for the end of the cut.
            let lost = message.is_datagram() && self.is_cut(message.from, message.to);
            if !lost {
                self.flying.push(message);
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
        if self.is_talking() {
            self.budget.overtakes = self.budget.overtakes.saturating_sub(1);
        }
    }

    fn crash(&mut self, actor: ActorId) {
        self.budget.crashes -= 1;
        self.faulty = true;
        let placed = |message: &Flying| matches!(message.msg, Message::Gossip(Gossip::Placed(_)));
        self.misled |= self.flying.iter().any(|message| message.from == actor && placed(message));
        let layout = &self.setting.layout;
        let stored = self.machines[actor.index()].take().and_then(|mut machine| machine.stored());
        if let Some(stored) = stored {
            let mut next = self.setting.build(actor);
            next.restore(stored);
            self.successors.push((actor, next));
        }
        self.informed.remove(&actor);
        self.regards.retain(|(of, _), _| *of != actor);
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
        // Schedulers before clients, as in the engine.
        for who in (0..self.setting.layout.endpoints()).rev().map(ActorId) {
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
        // This separates the times of decisions before the restart from the times of decisions after it.
        self.now += Span(1);
        let layout = &self.setting.layout;
        self.health[actor.index()] = Health::Up;
        let stored = self.successors.iter().position(|(of, _)| *of == actor);
        let next = stored.map(|at| self.successors.swap_remove(at).1);
        self.machines[actor.index()] = Some(next.unwrap_or_else(|| self.setting.build(actor)));
        if let Role::Node(node) = layout.role(actor) {
            for worker in (0..layout.cores(node)).map(|core| layout.worker(node, core)) {
                self.machines[worker.index()] = Some(self.setting.build(worker));
                self.texts[worker.index()] = self.machines[worker.index()].as_ref().map_or(0, hash_of);
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
