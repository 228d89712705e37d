//! Cache prefetch of the state that upcoming events touch.
//!
//! In a large cluster every event concerns an actor that was last touched long ago, and each access (the event, the
//! actor's slot, its machine) is a cache miss that depends on the previous one. The queue knows a few dozen events in
//! advance; their misses overlap when they are requested together.

use volary_actors::base::ActorId;
use volary_actors::layout::Role;
use volary_actors::machine::Effect;

use super::event_loop::LARGE;
use super::{Observer, Parts, Shard};
use crate::prefetch::prefetch;

/// Number of effects of one step above which it pays to prefetch their links.
const MANY: usize = 4;

impl<O: Observer> Shard<'_, O> {
    /// Prefetches the state that the upcoming events known to the queue touch.
    #[inline]
    pub(super) fn prefetch_upcoming(&mut self) {
        let Self { parts, queue, actors, upcoming, .. } = self;
        queue.foresee(|event| {
            upcoming.push(event.to);
            // A node and its first worker mostly step each other.
            match parts.layout.role(event.to) {
                Role::Node(node) => upcoming.push(parts.layout.worker(node, 0)),
                Role::Worker { node, .. } => upcoming.push(parts.layout.node(node)),
                Role::Client(_) | Role::Scheduler(_) | Role::Auxiliary(_) => {}
            }
        });
        for &actor in &*upcoming {
            prefetch(&actors[actor.index()]);
            if let Some(core) = parts.layout.core_of(actor) {
                parts.cores.fetch(core);
            }
        }
        for &actor in &*upcoming {
            if let Some(machine) = &actors[actor.index()].machine {
                prefetch(&**machine);
            }
        }
        upcoming.clear();
    }

    /// Prefetches the links that the messages among `effects` take, if there are many.
    #[inline]
    pub(super) fn prefetch_links(&self, me: ActorId, effects: &[Effect]) {
        if effects.len() < MANY || self.actors.len() < LARGE as usize {
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
