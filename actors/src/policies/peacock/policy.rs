//! The policy Peacock.

use super::config::{Peacock, PeacockForm};
use super::node::PeacockNode;
use super::scheduler::PeacockScheduler;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::policies::policy::{BuildContext, Caches, Policy, Traits};
use crate::policies::shared::check_period;

impl Policy for Peacock {
    const ABOUT: &'static str = "Peacock (Khelghatdoust and Gramoli, Euro-Par 2018)\n\
        One probe per task goes to a random worker. A worker orders its probes by size within what each may \
        still wait, and passes those it cannot serve in time to its successor on a ring. A probe at the head \
        holds the core while its scheduler is asked for the task. Fit its clocks to the tasks: the authors' \
        interval of 1 s, one hop of a probe, is far too slow for tasks of a second, and the waiting threshold \
        of the other form is unpublished.";

    const VARIANTS: &'static [&'static str] = &[r#"{ interval = "500ms" }"#, r#"{ form = "threshold" }"#];

    fn traits(&self) -> Traits<'_> {
        let caches = match self.form {
            PeacockForm::Elastic => Caches::SharedState,
            PeacockForm::Threshold => Caches::None,
        };
        Traits { caches, ..Traits::default() }
    }

    fn check(&self, layout: &Layout) -> Result<(), String> {
        if layout.schedulers() > u32::from(u16::MAX) {
            return Err("peacock numbers at most 65535 schedulers; lower cluster.schedulers".into());
        }
        check_period("interval", self.interval)
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(PeacockScheduler::new(self, context))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(PeacockNode::new(self, context))
    }
}
