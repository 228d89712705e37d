//! The latin-square scheduling policy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Policy, Seat};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::redundant::{Design, Drops, Redundant};

/// Parameters of the latin-square policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LatinSquare {
    /// Order v of the square: tasks of a branch, and servers it runs on (section VI-B uses 2). A job whose
    /// task count v does not divide ends with a smaller square.
    pub order: u32,
    /// Stop copies of a task when one finishes (section IV-A). Without it every copy runs to its end.
    pub preemption: bool,
}

impl Default for LatinSquare {
    fn default() -> Self {
        Self { order: 2, preemption: true }
    }
}

impl Policy for LatinSquare {
    const ABOUT: &'static str = "Latin square (Exton and Rodriguez, section IV, Fig. 3, Table II)\n\
        A job's tasks are cut into branches of v. Each branch goes to v distinct random servers; server i runs \
        them in the order of row i of a cyclic latin square, by itself. When a task finishes anywhere, its \
        other copies are stopped or removed, and a server whose current task is unchanged goes on.";

    fn check(&self, layout: &Layout) -> Result<(), String> {
        check_order(self.order, layout)
    }

    fn scheduler(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        let drops = if self.preemption { Drops::PerTask } else { Drops::Never };
        Box::new(Redundant::new(Design { order: self.order, staggered: true, drops }, seat.layout))
    }
}

/// An order must be positive, fit a row, and not exceed the number of servers.
pub(super) fn check_order(order: u32, layout: &Layout) -> Result<(), String> {
    if order == 0 || order > u32::from(u16::MAX) {
        return Err(format!("order: must be between 1 and {}, not {order}", u16::MAX));
    }
    if order > layout.nodes() {
        return Err(format!(
            "order: {order} exceeds the number of servers, {}; lower it or raise cluster.nodes",
            layout.nodes()
        ));
    }
    Ok(())
}
