//! Looking ahead: what the next events need is fetched into the cache before they are due.
//!
//! In a large cluster every event meets an actor that was not met for long, and each look at it (the event, what the
//! shard keeps of the actor, the machine) is a cache miss that waits for the one before. The queue knows a few dozen
//! events in advance; fetched together, their misses overlap.

use volary_actors::base::ActorId;
use volary_actors::layout::Role;
use volary_actors::machine::Effect;

use super::{Observer, Parts, Shard};
use crate::prefetch::prefetch;

/// Actors from which on they do not fit into the cache, and it pays to look ahead.
pub(super) const LARGE: u32 = 20_000;

/// Effects of one step from which on it pays to look at their links first.
const MANY: usize = 4;

impl<O: Observer> Shard<'_, O> {
    /// Fetches what the events that the queue foresees will touch.
    #[inline]
    pub(super) fn look_ahead(&mut self) {
        let Self { parts, queue, residents, ahead, .. } = self;
        queue.foresee(|event| {
            ahead.push(event.to);
            // What one of a node learns it mostly tells the other.
            match parts.layout.role(event.to) {
                Role::Node(node) => ahead.push(parts.layout.worker(node, 0)),
                Role::Worker { node, .. } => ahead.push(parts.layout.node(node)),
                Role::Client(_) | Role::Scheduler(_) | Role::Extra(_) => {}
            }
        });
        for &actor in &*ahead {
            prefetch(&residents[actor.index()]);
            if let Some(core) = parts.layout.core_of(actor) {
                parts.cores.fetch(core);
            }
        }
        for actor in ahead.drain(..) {
            if let Some(machine) = &residents[actor.index()].machine {
                prefetch(&**machine);
            }
        }
    }

    /// Looks at the links that the messages among `effects` will take, if there are many.
    #[inline]
    pub(super) fn look_at_links(&self, me: ActorId, effects: &[Effect]) {
        if effects.len() < MANY || self.residents.len() < LARGE as usize {
            return;
        }
        let Parts { layout, fabric, .. } = &self.parts;
        for effect in effects {
            if let Effect::Send { to, .. } = *effect
                && !layout.local(me, to)
            {
                fabric.touch(layout.endpoint(me), layout.endpoint(to));
            }
        }
    }
}
