//! The standard node manager with periodic progress reports.

use super::NodeManager;
use crate::base::Span;
use crate::machine::{Effects, Input, Machine, Timer};

/// The manager node manager; while cores are busy it reports from time to time how far they are.
pub struct ReportingNode {
    manager: NodeManager,
    every: Span,
    armed: bool,
}

impl ReportingNode {
    /// A node of `cores` cores that reports every `every`, beginning that long after it was idle.
    pub fn new(cores: u32, every: Span) -> Self {
        Self { manager: NodeManager::new(cores), every, armed: false }
    }
}

impl Machine for ReportingNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        if let Input::Fire(Timer::Tick(_)) = input {
            self.armed = false;
            self.manager.ask(fx);
        } else {
            self.manager.step(input, fx);
        }
        if !self.armed && self.manager.is_running() {
            self.armed = true;
            fx.arm(Timer::Tick(0), self.every);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{JobId, Score, Time};
    use crate::harness::{Harness, sends};
    use crate::layout::Layout;
    use crate::machine::Effect;
    use crate::message::{Core, Launch, Progress, Row};

    #[test]
    fn busy_cores_are_reported_until_they_are_idle() {
        let layout = Layout::new(1, 0, [2]);
        let (me, scheduler, worker) = (layout.node(0), layout.scheduler(0), layout.worker(0, 0));
        let every = Span::from_secs(3);
        let mut node = Harness::new(layout, me, 3, Box::new(ReportingNode::new(2, every)));
        let tick = Effect::Arm { timer: Timer::Tick(0), after: every };
        let copy = JobId(3).task(1).copy(2);
        let row = Input::Deliver { from: scheduler, msg: Launch::Row(Row::single(copy)).into() };
        assert_eq!(node.step(row).last(), Some(&tick));
        let fired = node.step(Input::Fire(Timer::Tick(0)));
        assert_eq!(sends(&fired), [(worker, Core::Ask { copy }.into())], "the idle core is not asked");
        assert_eq!(fired.last(), Some(&tick));
        node.now = Time::ZERO + every;
        let report = Progress::Report { copy, score: Score(7), at: node.now };
        assert_eq!(node.receive(worker, Core::Score { copy, score: Score(7) }), [(scheduler, report.into())]);
        node.ended(copy);
        assert_eq!(node.step(Input::Fire(Timer::Tick(0))), [], "nothing runs, nothing is armed");
    }
}
