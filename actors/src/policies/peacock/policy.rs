//! Parameters of Peacock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node::PeacockNode;
use super::scheduler::PeacockScheduler;
use crate::base::Span;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::policies::policy::{BuildContext, Policy};
use crate::policies::shared::positive;

/// Parameters of Peacock.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Peacock {
    /// Which of the two published forms.
    pub form: PeacockForm,
    /// `elastic` form: how often a worker passes on the probes it could not keep. The default of 1 s is that
    /// of the authors' code: a probe makes one hop in that time, which is far too slow for tasks of about a
    /// second. Set a small part of the mean task.
    pub interval: Span,
    /// `threshold` form: how long a probe may wait since its job's arrival before it stops moving. The
    /// latin-square paper does not publish the value it used; 1 s, its mean task, is a guess.
    pub threshold: Span,
}

/// The published forms of Peacock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PeacockForm {
    /// The authors': queues bounded by cluster-wide state, probes reordered, rotated at intervals.
    #[default]
    Elastic,
    /// The latin-square paper's simulator: shortest job first, one constant threshold, rotated at once.
    Threshold,
}

impl Default for Peacock {
    fn default() -> Self {
        Self { form: PeacockForm::Elastic, interval: Span::from_secs(1), threshold: Span::from_secs(1) }
    }
}

impl Policy for Peacock {
    const ABOUT: &'static str = "Peacock (Khelghatdoust and Gramoli, Euro-Par 2018)\n\
        One probe per task goes to a random worker. A worker orders its probes by size within what each may \
        still wait, and passes those it cannot serve in time to its successor on a ring. A probe at the head \
        holds the core while its scheduler is asked for the task. Fit its clocks to the tasks: the authors' \
        interval of 1 s, one hop of a probe, is far too slow for tasks of a second, and the waiting threshold \
        of the other form is unpublished.";

    const VARIANTS: &'static [&'static str] = &[r#"{ interval = "500ms" }"#, r#"{ form = "threshold" }"#];

    fn check(&self, layout: &Layout) -> Result<(), String> {
        if layout.schedulers() > u32::from(u16::MAX) {
            return Err("peacock numbers at most 65535 schedulers; lower cluster.schedulers".into());
        }
        positive("interval", self.interval)
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(PeacockScheduler::new(self, context))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(PeacockNode::new(self, context))
    }
}
