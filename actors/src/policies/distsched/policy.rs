//! The policy DistSched.

use super::config::{DistSched, UsageEstimates};
use super::planner::UsagePlanner;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::policies::policy::{BuildContext, Policy, Traits};
use crate::policies::shared::check_period;
use crate::roles::node::NodeUsage;
use crate::roles::planning::PlanningScheduler;

impl Policy for DistSched {
    const ABOUT: &'static str = "DistSched (Park's thesis, chapter 5)\n\
        A central scheduler for shared nodes expects distributions of the CPU, memory and CPU-time of each job's \
        tasks, from the jobs like it that have ended. Each cycle it places one waiting job after the other, the one \
        with the highest expected utility first: a task goes to the node on which memory and CPU are least likely to \
        be over-allocated, and of these to the fullest one. What a job is worth is the probability that none of its \
        tasks is evicted times the expected utility of the end of its last task, as the CPU of a task depends on what \
        else runs on its node. Use that is constantly above what was expected takes its place, and best-effort tasks \
        are preempted on nodes that throttle SLO tasks.\n\
        Actual, Point and Request are { estimates = \"actual\" }, \"point\" and \"request\", each with { over = \
        \"never\", observe = false, preempt = false }; DistMax, ActualMax and PointMax have of = \"max\". NoDist is { \
        estimates = \"point\" }, NoPack { risk = 0.0 }, NoOver { over = \"never\" }, NoObs { observe = false }, \
        NoPreempt { preempt = false }. A task of which more is expected than any node has runs alone on a node, and a \
        job with more tasks than idle nodes would hold runs as many at a time as they do. Where nodes are not shared, \
        each task uses a core.";

    const VARIANTS: &'static [&'static str] = &[
        r#"{ cycle = "500ms" }"#,
        r#"{ cycle = "100ms", estimates = "point", of = "max", risk = 0.0, constantly = "1s" }"#,
        r#"{ cycle = "250ms", estimates = "actual", over = "never", observe = false, preempt = false }"#,
        r#"{ cycle = "200ms", estimates = "request", over = "always" }"#,
        r#"{ cycle = "300ms", of = "max", risk = 0.5, constantly = "500ms", horizon = "10s" }"#,
    ];

    fn traits(&self) -> Traits<'_> {
        Traits { one_scheduler: true, plans: true, node_usage: Some(NodeUsage::Reports), ..Traits::default() }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_period("cycle", self.cycle)?;
        check_period("horizon", self.horizon)
    }

    fn remarks(&self, layout: &Layout, _: usize) -> Vec<String> {
        let mut remarks = Vec::new();
        if layout.sharing().is_none() {
            remarks.push(
                "nodes are not shared, so that each task has a core; set cluster.shared = true for nodes that tasks \
                 share"
                    .to_owned(),
            );
        }
        if self.estimates != UsageEstimates::Dist && self.risk != Self::default().risk && self.risk > 0.0 {
            remarks.push(
                "risk has little effect on points, which are over-allocated for certain or not".to_owned(),
            );
        }
        if layout.kinds() > 1 {
            remarks.push("jobs' preferences of nodes are ignored: nodes are chosen by their load".to_owned());
        }
        remarks
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let planner = UsagePlanner::new(self, context.layout);
        Box::new(PlanningScheduler::new(self.cycle, planner, context.layout))
    }
}
