//! The policy Kairos.

use super::config::Kairos;
use super::node::KairosNode;
use super::scheduler::KairosScheduler;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::policies::policy::{BuildContext, Policy, Traits};
use crate::policies::shared::check_period;

impl Policy for Kairos {
    const ABOUT: &'static str = "Kairos (Delgado, Didona, Dinu and Zwaenepoel, SoCC 2018)\n\
        Nobody knows run times. A central queue deals tasks to the nodes with the fewest beyond their cores, N + Q at most. Each node \
        runs the copies that have attained the least service: a newcomer preempts the one that has attained most, \
        which keeps its progress, and quanta compare those that run with those that are suspended.";

    const VARIANTS: &'static [&'static str] = &[
        r#"{ quantum = "200ms" }"#,
        r#"{ quantum = "1s", pass = "eager", queue = 0 }"#,
        r#"{ quantum = "300ms", pass = "eager", queue = 2, pick = "sum", stretch = 2, missed = 1 }"#,
        r#"{ quantum = "500ms", interval = "100ms", pass = "levels", queue = 8, pick = "random", hysteresis = "500ms", guard = "none" }"#,
        r#"{ quantum = "100ms", pass = "eager", silent = true }"#,
        r#"{ quantum = "2s", interval = "3s", queue = 1, guard = "running", missed = 1, attained = "work" }"#,
    ];

    fn traits(&self) -> Traits<'_> {
        Traits { one_scheduler: true, time_slice: Some(("quantum", self.quantum)), ..Traits::default() }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_period("quantum", self.quantum)?;
        check_period("interval", self.interval)
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(KairosScheduler::new(self, context.layout))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(KairosNode::new(self, context))
    }
}
