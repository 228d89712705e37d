//! A node of Yaq-d: the plain one, with heartbeats.

use super::YaqD;
use crate::base::Span;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::Heartbeat;
use crate::policies::policy::BuildContext;
use crate::roles::NodeManager;

/// A node manager that tells how it is.
#[derive(Debug)]
pub(super) struct HeartbeatNode {
    manager: NodeManager,
    every: Span,
    /// Heartbeats are due so long after each multiple of `every`.
    phase: Span,
    /// Whether even an idle node goes on: what it said last may have been lost.
    always: bool,
    /// Whether a node to which nothing happened is silent.
    silent: bool,
    /// Whether anything happened since the last heartbeat.
    news: bool,
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
            news: false,
            beating: false,
        }
    }

    /// Arms the next heartbeat, unless there is nothing that schedulers do not know.
    fn keep_beating(&mut self, fx: &mut Effects<'_>) {
        let due = self.always || self.news || !self.silent && !self.manager.is_idle();
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
        (self.beating, self.news) = (false, false);
    }
}

impl Machine for HeartbeatNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        if let Input::Fire(Timer::Tick(_)) = input {
            self.beat(fx);
        } else {
            self.manager.step(input, fx);
            // Whatever it hears of is a task that came, ended or is void.
            self.news |= !matches!(input, Input::Start { .. });
        }
        self.keep_beating(fx);
    }
}
