//! A node manager that reports how far its copies are.

use super::Node;
use crate::base::Span;
use crate::machine::{Effects, Input, Machine, Timer};

/// The plain node manager; while cores are busy it reports from time to time how far they are.
#[derive(Debug)]
pub struct Reporter {
    plain: Node,
    every: Span,
    armed: bool,
}

impl Reporter {
    /// A node of `cores` cores that reports on each every so often, first so long after it was idle.
    #[must_use]
    pub fn new(cores: u32, every: Span) -> Self {
        Self { plain: Node::new(cores), every, armed: false }
    }
}

impl Machine for Reporter {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        if let Input::Fire(Timer::Tick(_)) = input {
            self.armed = false;
            self.plain.ask(fx);
        } else {
            self.plain.step(input, fx);
        }
        if !self.armed && self.plain.is_running() {
            self.armed = true;
            fx.arm(Timer::Tick(0), self.every);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{JobId, Score, Time};
    use crate::layout::Layout;
    use crate::machine::Effect;
    use crate::message::{Core, Launch, Progress, Row};
    use crate::scripts::{Bench, sends};

    #[test]
    fn busy_cores_are_reported_until_they_are_idle() {
        let layout = Layout::new(1, 0, [2]);
        let (me, scheduler, worker) = (layout.node(0), layout.scheduler(0), layout.worker(0, 0));
        let every = Span::from_secs(3);
        let mut node = Bench::new(layout, me, 3, Box::new(Reporter::new(2, every)));
        let tick = Effect::Arm { timer: Timer::Tick(0), after: every };
        let copy = JobId(3).task(1).copy(2);
        let row = Input::Deliver { from: scheduler, msg: Launch::Row(Row::single(copy)).into() };
        assert_eq!(node.step(row).last(), Some(&tick));
        let fired = node.step(Input::Fire(Timer::Tick(0)));
        assert_eq!(sends(&fired), [(worker, Core::Ask { copy }.into())], "the idle core is not asked");
        assert_eq!(fired.last(), Some(&tick));
        node.now = Time::ZERO + every;
        let report = Progress::Report { copy, score: Score(7), at: node.now };
        assert_eq!(node.hear(worker, Core::Score { copy, score: Score(7) }), [(scheduler, report.into())]);
        node.ended(copy);
        assert_eq!(node.step(Input::Fire(Timer::Tick(0))), [], "nothing runs, nothing is armed");
    }
}
