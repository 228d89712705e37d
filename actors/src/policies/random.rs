//! Random: each task to a node drawn uniformly.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::{BuildContext, Policy};
use crate::base::{ActorId, TaskId};
use crate::machine::{Effects, Machine};
use crate::roles::early_binding::{EarlyBinding, PlacementRule};
use crate::roles::membership::Membership;

/// No parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Random {}

impl Policy for Random {
    const ABOUT: &'static str = "Random assignment (latin-square paper, section VI)\n\
        Each task goes to a node drawn uniformly, and waits there in a FIFO queue: power-of-k with k = 1.";

    const VARIANTS: &'static [&'static str] = &["{}"];

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(EarlyBinding::new(Uniform, context.layout))
    }
}

#[derive(Debug)]
struct Uniform;

impl PlacementRule for Uniform {
    fn place(&mut self, _: TaskId, members: &Membership, fx: &mut Effects<'_>) -> Option<ActorId> {
        members.pick(fx.rng())
    }
}
