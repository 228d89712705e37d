//! A node of Yaq-d: the standard one, with heartbeats.

use super::YaqD;
use crate::base::Span;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::Heartbeat;
use crate::policies::policy::BuildContext;
use crate::roles::NodeManager;

/// A node manager with heartbeats.
#[derive(Debug)]
pub(super) struct HeartbeatNode {
    manager: NodeManager,
    every: Span,
    /// Offset of heartbeats from the multiples of `every`.
    phase: Span,
    /// Whether an idle node continues: its last heartbeat may have been lost.
    always: bool,
    /// Whether a node to which nothing happened is silent.
    silent: bool,
    /// Whether anything happened since the last heartbeat.
    changed: bool,
    beating: bool,
}

impl HeartbeatNode {
    pub(super) fn new(config: &YaqD, manager: NodeManager, context: BuildContext<'_>) -> Self {
        let nodes = u64::from(context.layout.nodes());
        let spread = u128::from(config.heartbeat.0) * u128::from(context.index) / u128::from(nodes);
        let phase = if config.together { Span::ZERO } else { Span(spread as u64) };
        Self {
            manager,
            every: config.heartbeat,
            phase,
            always: context.lossy,
            silent: config.silent,
            changed: false,
            beating: false,
        }
    }

    /// Arms the next heartbeat, unless schedulers already know the state.
    fn keep_beating(&mut self, fx: &mut Effects<'_>) {
        let due = self.always || self.changed || !self.silent && !self.manager.is_idle();
        if !self.beating && due {
            self.beating = true;
            let since = (u128::from(fx.now().0) + u128::from(self.every.0) - u128::from(self.phase.0))
                % u128::from(self.every.0);
            fx.arm(Timer::Tick(0), Span(self.every.0 - since as u64));
        }
    }

    fn beat(&mut self, fx: &mut Effects<'_>) {
        let (wait, passing) = self.manager.wait(fx);
        for i in 0..fx.layout().schedulers() {
            fx.send(fx.layout().scheduler(i), Heartbeat::Wait { wait, passing, at: fx.now() });
        }
        (self.beating, self.changed) = (false, false);
    }
}

impl Machine for HeartbeatNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        if let Input::Fire(Timer::Tick(_)) = input {
            self.beat(fx);
        } else {
            self.manager.step(input, fx);
            // Every other input means that a task came, ended or is void.
            self.changed |= !matches!(input, Input::Start { .. });
        }
        self.keep_beating(fx);
    }
}
