//! A central FIFO queue: the M/M/c of the textbooks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Policy, Seat, one_scheduler};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::central::{Central, Never};

/// No parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CentralQueue {}

impl Policy for CentralQueue {
    const ABOUT: &'static str = "Central queue (textbook M/G/c)\n\
        One scheduler holds every waiting task in a FIFO queue and knows which cores are free; the core that \
        has been idle longest gets the next task. Without network delay no work-conserving policy without \
        preemption or knowledge of sizes waits less on average.";

    fn check(&self, layout: &Layout) -> Result<(), String> {
        one_scheduler(layout, "central-queue")
    }

    fn scheduler(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        Box::new(Central::new(Never, seat.layout))
    }
}
