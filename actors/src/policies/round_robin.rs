//! Round-robin: each task to the next node of a fixed cycle.

use super::policy::{BuildContext, Policy, Traits};
use crate::base::{ActorId, TaskId, parameters};
use crate::machine::{Effects, Machine};
use crate::roles::early_binding::{EarlyBinding, PlacementRule};
use crate::roles::membership::Membership;
use crate::roles::node::NodeUsage;

parameters! {
    /// No parameters.
    struct RoundRobin {}
}

impl Policy for RoundRobin {
    const ABOUT: &'static str = "Round-robin assignment (latin-square paper, section VI)\n\
        Each task goes to the next node in a cycle that goes on across jobs, and waits there in a FIFO queue. \
        Schedulers start at evenly spaced points of the cycle. A task that a shared node has evicted is launched \
        again after a second; the wait doubles with each further eviction, up to five minutes.";

    fn traits(&self) -> Traits<'_> {
        Traits { node_usage: Some(NodeUsage::Evictions), ..Traits::default() }
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let start = u64::from(context.index) * u64::from(context.layout.nodes())
            / u64::from(context.layout.schedulers());
        Box::new(EarlyBinding::new(Cycle { pointer: start as u32 }, context.layout))
    }
}

#[derive(Clone, Debug)]
struct Cycle {
    pointer: u32,
}

impl PlacementRule for Cycle {
    fn place(&mut self, _: TaskId, members: &Membership, _: &mut Effects<'_>) -> Option<ActorId> {
        members.next(&mut self.pointer)
    }
}
