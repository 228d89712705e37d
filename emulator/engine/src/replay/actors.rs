//! The actors of a run, without shards.

use volary_actors::base::{ActorId, Rng, Time};
use volary_actors::layout::Role;
use volary_actors::machine::{Effect, Effects, Input, Machine, Oracle};

use super::{LogEntry, LogEvent};
use crate::shard::{Parts, Placement};
use crate::world::{EngineError, World};

/// The state machine of every actor that has had a step, with its random stream.
pub(super) struct ReplayedActors<'a> {
    parts: Parts<'a>,
    actors: Vec<Option<(Box<dyn Machine>, Rng)>>,
    effects: Vec<Effect>,
    oracle: Option<Oracle>,
    steps: u64,
}

impl<'a> ReplayedActors<'a> {
    pub(super) fn new(world: &'a World, observed: bool, real_time: bool) -> Result<Self, EngineError> {
        let actors = (0..world.layout().actors()).map(|_| None).collect();
        let parts = Parts { oracle: !real_time, ..world.parts(Placement::ALONE, observed)? };
        let oracle = parts.oracle();
        Ok(Self { parts, actors, effects: Vec::new(), oracle, steps: 0 })
    }

    /// Checks that an entry can belong to this world; the error is the reason.
    pub(super) fn check(&self, entry: &LogEntry) -> Result<(), String> {
        let layout = self.parts.layout;
        let (what, id, most) = match entry.what {
            LogEvent::Step { who, .. } => ("actor", who.0, layout.actors()),
            LogEvent::Restarted { who, .. } => ("endpoint", who.0, layout.endpoints()),
            LogEvent::Crashed(core) => ("core", core, layout.workers()),
            LogEvent::End => return Ok(()),
        };
        if id < most {
            return Ok(());
        }
        Err(format!("the log is damaged: it names {what} {id}, of {most} that there are"))
    }

    /// Steps an actor and returns its effects.
    pub(super) fn step(&mut self, at: Time, who: ActorId, input: Input) -> &[Effect] {
        let Parts { workload, layout, seed, .. } = self.parts;
        let fresh = || (self.parts.machine(who), Rng::new(seed, who.0, 0));
        let (machine, rng) = self.actors[who.index()].get_or_insert_with(fresh);
        self.effects.clear();
        let fx = Effects::new(at, who, rng, &mut self.effects, workload, layout);
        machine.step(input, &mut fx.with_oracle(self.oracle.as_ref()));
        if let Some(oracle) = &mut self.oracle {
            for effect in &self.effects {
                if let Effect::Run { copy, left: None, .. } = effect {
                    oracle.begin(copy.task.job);
                }
            }
        }
        self.steps += 1;
        &self.effects
    }

    /// Restarts an endpoint without state. As in a shard, the workers of a node are new and continue their random
    /// streams.
    pub(super) fn restart(&mut self, who: ActorId, epoch: u32) {
        let layout = self.parts.layout;
        let stored = self.actors[who.index()].take().and_then(|(mut machine, _)| machine.stored());
        let mut fresh = self.parts.machine(who);
        if let Some(stored) = stored {
            fresh.restore(stored);
        }
        self.actors[who.index()] = Some((fresh, Rng::new(self.parts.seed, who.0, epoch)));
        let Role::Node(node) = layout.role(who) else { return };
        for worker in (0..layout.cores(node)).map(|core| layout.worker(node, core)) {
            let fresh = self.parts.machine(worker);
            if let Some((machine, _)) = &mut self.actors[worker.index()] {
                *machine = fresh;
            }
        }
    }

    /// The number of steps so far.
    pub(super) const fn steps(&self) -> u64 {
        self.steps
    }
}
