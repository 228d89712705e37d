//! Random: each task to a node sampled uniformly.

use super::policy::{BuildContext, Policy, Traits};
use crate::base::{ActorId, TaskId, parameters};
use crate::machine::{Effects, Machine};
use crate::roles::early_binding::{EarlyBinding, PlacementRule};
use crate::roles::membership::Membership;
use crate::roles::node::NodeUsage;

parameters! {
    /// No parameters.
    struct Random {}
}

impl Policy for Random {
    const ABOUT: &'static str = "Random assignment (latin-square paper, section VI)\n\
        Each task goes to a node drawn uniformly, and waits there in a FIFO queue: power-of-k with k = 1. A task that a \
        shared node has evicted is launched again after a second; the wait doubles with each further eviction, up to \
        five minutes.";

    fn traits(&self) -> Traits<'_> {
        Traits { node_usage: Some(NodeUsage::Evictions), ..Traits::default() }
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(EarlyBinding::new(Uniform, context.layout))
    }
}

#[derive(Clone, Debug)]
struct Uniform;

impl PlacementRule for Uniform {
    fn place(&mut self, _: TaskId, members: &Membership, fx: &mut Effects<'_>) -> Option<ActorId> {
        members.pick(fx.rng())
    }
}
