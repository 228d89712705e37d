//! Crashes, restarts, and the failure detector that reports them.

use volary_actors::base::{ActorId, Rng, Time};
use volary_actors::layout::Role;
use volary_actors::machine::Input;
use volary_netem::Crash;

use super::event_loop::{Event, EventKind, Stamp};
use super::{Observer, Shard};

impl<O: Observer> Shard<'_, O> {
    pub(super) fn schedule_faults(&mut self) {
        let crashes: Vec<_> = self.parts.fabric.faults().crashes().to_vec();
        for Crash { who, at, restart } in crashes {
            let actor = ActorId(who.0);
            self.schedule(at, actor, EventKind::Crash);
            let detected = at + self.parts.peer_timeout;
            match restart {
                Some(back) if back <= detected => {
                    self.schedule(back, actor, EventKind::CrashDetected);
                    self.schedule(back, actor, EventKind::Restart);
                }
                Some(back) => {
                    self.schedule(detected, actor, EventKind::CrashDetected);
                    self.schedule(back, actor, EventKind::Restart);
                }
                None => self.schedule(detected, actor, EventKind::CrashDetected),
            }
        }
    }

    pub(super) fn schedule(&mut self, at: Time, actor: ActorId, kind: EventKind) {
        self.push(at, actor, Event { to: actor, stamp: Stamp::NONE, kind });
    }

    /// Drops the machine of an actor with all state that it has not stored. For a node, its workers and their copies
    /// are dropped too.
    pub(super) fn crash(&mut self, actor: ActorId) {
        if !self.parts.placement.owns(actor.index()) {
            return;
        }
        let stored = self.actors.slot(actor).machine.take().and_then(|mut machine| machine.stored());
        self.stored.extend(stored.map(|stored| (actor, stored)));
        self.actors.begin_epoch(actor);
        self.lose_queue(actor);
        let Role::Node(node) = self.parts.layout.role(actor) else { return };
        for core in 0..self.parts.layout.cores(node) {
            let worker = self.parts.layout.worker(node, core);
            let core = self.parts.layout.core_index(worker);
            self.actors.set_worker(core, None);
            if self.parts.cores.is_busy(core) {
                self.lose_copy(core);
                self.actors.begin_epoch(worker);
            }
            self.observer.crashed(self.now, core);
        }
    }

    /// Restarts an actor without its state, and reports it to every actor that was notified of its crash.
    pub(super) fn restart(&mut self, actor: ActorId) {
        self.down.retain(|&other| other != actor);
        if self.parts.placement.owns(actor.index()) {
            self.boot(actor);
        }
        self.notify_all(actor, Input::Up { actor });
    }

    /// Rebuilds the machine of an actor. Right after its start it is notified of the actors that are down.
    fn boot(&mut self, actor: ActorId) {
        let epoch = self.actors.epoch(actor);
        self.actors.slot(actor).rng = Rng::new(self.parts.seed, actor.0, epoch);
        self.build_machines(actor);
        self.restore(actor);
        self.observer.restarted(self.now, actor, epoch);
        self.dispatch(actor, Input::Start { epoch });
        for other in self.down.clone() {
            if self.is_notified_of(actor, other) {
                self.dispatch_when_running(other, actor, Input::Down { actor: other });
            }
        }
    }

    /// Gives a new machine the state that its predecessor has stored.
    fn restore(&mut self, actor: ActorId) {
        if let Some(at) = self.stored.iter().position(|(of, _)| *of == actor)
            && let Some(machine) = &mut self.actors.slot(actor).machine
        {
            machine.restore(self.stored.swap_remove(at).1);
        }
    }

    /// The failure detector reports a crash.
    pub(super) fn detect_crash(&mut self, actor: ActorId) {
        self.down.push(actor);
        self.notify_all(actor, Input::Down { actor });
    }

    /// Whether the failure detector reports `other` to `who`. Coordinators are notified of any endpoint, and nodes are
    /// notified of coordinators.
    fn is_notified_of(&self, who: ActorId, other: ActorId) -> bool {
        who != other && (self.parts.layout.coordinates(who) || self.parts.layout.coordinates(other))
    }

    /// Passes a report of the failure detector about an actor to every actor that is up and must be notified.
    fn notify_all(&mut self, about: ActorId, input: Input) {
        // Auxiliary actors and nodes before schedulers before clients: by the time a receiver reacts with a message,
        // the actors it contacts have been notified.
        for other in (0..self.parts.layout.endpoints()).rev().map(ActorId) {
            if self.is_notified_of(other, about) && self.actors.is_up(other) {
                self.dispatch_when_running(about, other, input);
            }
        }
    }
}
