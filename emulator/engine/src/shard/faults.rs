//! Crashes and restarts: machines vanish and come back, and those who watch are told.

use volary_actors::base::{ActorId, Rng, Time};
use volary_actors::layout::Role;
use volary_actors::machine::Input;
use volary_netem::Crash;

use super::event_loop::{Event, What};
use super::{Observer, Shard};

impl<O: Observer> Shard<'_, O> {
    pub(super) fn schedule_faults(&mut self) {
        let crashes: Vec<_> = self.parts.fabric.faults().crashes().to_vec();
        for Crash { who, at, restart } in crashes {
            let actor = ActorId(who.0);
            self.schedule(at, actor, What::Crash);
            let noticed = at + self.parts.peer_timeout;
            match restart {
                Some(back) if back <= noticed => {
                    self.schedule(back, actor, What::Notice);
                    self.schedule(back, actor, What::Restart);
                }
                Some(back) => {
                    self.schedule(noticed, actor, What::Notice);
                    self.schedule(back, actor, What::Restart);
                }
                None => self.schedule(noticed, actor, What::Notice),
            }
        }
    }

    pub(super) fn schedule(&mut self, at: Time, actor: ActorId, what: What) {
        self.push(at, actor, Event { to: actor, stamp: 0, what });
    }

    /// An actor's machine vanishes with all it knew; a node takes its workers and their copies along.
    pub(super) fn crash(&mut self, actor: ActorId) {
        if !self.parts.placement.owns(actor.index()) {
            return;
        }
        self.residents[actor.index()].machine = None;
        self.residents[actor.index()].epoch += 1;
        let Role::Node(node) = self.parts.layout.role(actor) else { return };
        for core in 0..self.parts.layout.cores(node) {
            let worker = self.parts.layout.worker(node, core);
            self.residents[worker.index()].machine = None;
            let core = self.parts.layout.core_index(worker);
            if self.parts.cores.is_busy(core) {
                self.lose(core);
                self.residents[worker.index()].epoch += 1;
            }
            self.observer.crashed(self.now, core);
        }
    }

    /// The actor comes back empty and is announced; whoever heard of its crash learns that it is up.
    pub(super) fn restart(&mut self, actor: ActorId) {
        self.down.retain(|&other| other != actor);
        if self.parts.placement.owns(actor.index()) {
            self.boot(actor);
        }
        self.broadcast(actor, Input::Up { actor });
    }

    /// Builds the machine of an actor anew. It knows nothing of what happened before: who is down now, it
    /// hears first.
    fn boot(&mut self, actor: ActorId) {
        let epoch = self.residents[actor.index()].epoch;
        self.residents[actor.index()].rng = Rng::new(self.parts.seed, actor.0, epoch);
        self.settle(actor);
        self.observer.restarted(self.now, actor, epoch);
        self.dispatch(actor, Input::Start { epoch });
        for other in self.down.clone() {
            if self.hears(actor, other) {
                self.tell(other, actor, Input::Down { actor: other });
            }
        }
    }

    /// The failure detector reports a crash.
    pub(super) fn notice(&mut self, actor: ActorId) {
        self.down.push(actor);
        self.broadcast(actor, Input::Down { actor });
    }

    /// Whether the failure detector tells `who` about `other`: coordinators about anyone, nodes about
    /// coordinators.
    fn hears(&self, who: ActorId, other: ActorId) -> bool {
        who != other && (self.parts.layout.coordinates(who) || self.parts.layout.coordinates(other))
    }

    /// Tells everybody who is up and hears of `about`.
    fn broadcast(&mut self, about: ActorId, input: Input) {
        // Nodes before schedulers before clients: whoever acts on the news by sending finds it known.
        for other in (0..self.parts.layout.endpoints()).rev().map(ActorId) {
            if self.hears(other, about) && self.residents[other.index()].machine.is_some() {
                self.tell(about, other, input);
            }
        }
    }
}
