//! Round-robin: each task to the next node of a fixed cycle.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Policy, Seat};
use crate::base::{ActorId, TaskId};
use crate::machine::{Effects, Machine};
use crate::roles::early::{Early, Place};
use crate::roles::members::Members;

/// No parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoundRobin {}

impl Policy for RoundRobin {
    const ABOUT: &'static str = "Round-robin assignment (latin-square paper, section VI)\n\
        Each task goes to the next node in a cycle that goes on across jobs, and waits there in a FIFO queue. \
        Schedulers start at evenly spaced points of the cycle.";

    fn scheduler(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        let start =
            u64::from(seat.index) * u64::from(seat.layout.nodes()) / u64::from(seat.layout.schedulers());
        Box::new(Early::new(Cycle { pointer: start as u32 }, seat.layout))
    }
}

#[derive(Debug)]
struct Cycle {
    pointer: u32,
}

impl Place for Cycle {
    fn place(&mut self, _: TaskId, members: &Members, _: &mut Effects<'_>) -> Option<ActorId> {
        members.next(&mut self.pointer)
    }
}
