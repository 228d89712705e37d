//! Crashes and restarts: machines vanish and come back, and those who watch are told.

use volary_actors::base::{ActorId, Rng, Time};
use volary_actors::layout::Role;
use volary_actors::machine::Input;
use volary_netem::Crash;

use super::{Event, Shard, What};

impl Shard<'_> {
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

    fn schedule(&mut self, at: Time, actor: ActorId, what: What) {
        self.push(at, actor, Event { to: actor, stamp: 0, what });
    }

    /// An actor's machine vanishes with all it knew; a node takes its workers and their copies along.
    pub(super) fn crash(&mut self, actor: ActorId) {
        self.residents[actor.index()].machine = None;
        self.residents[actor.index()].epoch += 1;
        let Role::Node(node) = self.parts.layout.role(actor) else { return };
        for core in 0..self.parts.layout.cores(node) {
            let worker = self.parts.layout.worker(node, core);
            self.residents[worker.index()].machine = None;
            let core = self.parts.layout.core_index(worker);
            if self.parts.cores.is_busy(core) {
                self.parts.cores.stop(core, self.now);
                self.residents[worker.index()].epoch += 1;
            }
            self.recorder.crashed(self.now, core);
        }
    }

    /// The actor comes back empty and is announced; whoever heard of its crash learns that it is up.
    pub(super) fn restart(&mut self, actor: ActorId) {
        let epoch = self.residents[actor.index()].epoch;
        self.residents[actor.index()].rng = Rng::new(self.parts.seed, actor.0, epoch);
        self.settle(actor);
        self.dispatch(actor, Input::Start { epoch });
        self.broadcast(actor, Input::Up { actor });
    }

    /// Tells everybody the failure detector reports to: coordinators of anyone, nodes of coordinators.
    pub(super) fn broadcast(&mut self, about: ActorId, input: Input) {
        let layout = self.parts.layout;
        let to_nodes = layout.coordinates(about);
        for other in (0..layout.endpoints()).map(ActorId) {
            let told = layout.coordinates(other) || to_nodes;
            if told && other != about && self.residents[other.index()].machine.is_some() {
                self.dispatch(other, input);
            }
        }
    }
}
