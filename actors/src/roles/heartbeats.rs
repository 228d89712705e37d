//! The heartbeats of a node, at multiples of a period while the node has something to report, spread evenly over nodes.

use crate::base::Span;
use crate::machine::{Effects, Timer};

/// The heartbeats of a node.
#[derive(Clone, Debug)]
pub struct Heartbeats {
    every: Span,
    /// Offset of heartbeats from the multiples of `every`.
    phase: Span,
    /// Whether an idle node continues to send heartbeats.
    pub always: bool,
    /// Whether a busy node is silent while nothing happens to it.
    pub silent: bool,
    /// Whether anything happened since the last heartbeat.
    changed: bool,
    beating: bool,
}

impl Heartbeats {
    /// Heartbeats of node `index`; the heartbeats of all `nodes` nodes are spread over the period. An idle node is
    /// silent once it has reported that it is idle.
    pub fn new(every: Span, index: u32, nodes: u32) -> Self {
        let spread = u128::from(every.0) * u128::from(index) / u128::from(nodes);
        Self {
            every,
            phase: Span(spread as u64),
            always: false,
            silent: false,
            changed: false,
            beating: false,
        }
    }

    /// Records an event that the next heartbeat reports.
    pub const fn changed(&mut self) {
        self.changed = true;
    }

    /// Records that the heartbeat that was due is sent.
    pub const fn sent(&mut self) {
        (self.beating, self.changed) = (false, false);
    }

    /// Arms the next heartbeat, unless its receivers already know the state.
    pub fn arm(&mut self, idle: bool, fx: &mut Effects<'_>) {
        let due = self.always || self.changed || !self.silent && !idle;
        if !self.beating && due {
            self.beating = true;
            let since = (u128::from(fx.now().0) + u128::from(self.every.0) - u128::from(self.phase.0))
                % u128::from(self.every.0);
            fx.arm(Timer::Beat, Span(self.every.0 - since as u64));
        }
    }
}
