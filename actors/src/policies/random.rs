//! Random: each task to a node drawn uniformly.

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
pub struct Random {}

impl Policy for Random {
    const ABOUT: &'static str = "Random assignment (latin-square paper, section VI)\n\
        Each task goes to a node drawn uniformly, and waits there in a FIFO queue: power-of-k with k = 1.";

    fn scheduler(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        Box::new(Early::new(Uniform, seat.layout))
    }
}

#[derive(Debug)]
struct Uniform;

impl Place for Uniform {
    fn place(&mut self, _: TaskId, members: &Members, fx: &mut Effects<'_>) -> Option<ActorId> {
        members.pick(fx.rng())
    }
}
