//! The policy 3Sigma.

use super::config::{RunTimeEstimates, ThreeSigma};
use super::planner::SigmaPlanner;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::policies::policy::{BuildContext, Policy, Traits};
use crate::policies::shared::check_period;
use crate::roles::planning::PlanningScheduler;

impl Policy for ThreeSigma {
    const ABOUT: &'static str = "3Sigma (Park, Tumanov, Jiang, Kozuch and Ganger, EuroSys 2018; Park's thesis, \
        chapter 4)\n\
        A central scheduler expects a distribution of run times of each job, from the jobs like it that have ended. \
        Each cycle it plans the starts of waiting jobs over a window of slots so that their expected utility is \
        largest: an SLO job is worth something until its deadline, a best-effort job less the later it starts. A job \
        counts on each slot by the probability that it still runs then. What starts now is launched, all tasks \
        together on free cores; the rest is planned again. Best-effort jobs are preempted where that pays.\n\
        PointPerfEst is { estimates = \"perfect\", over = \"never\" }, PointRealEst { estimates = \"point\", over = \
        \"never\" }, NoDist { estimates = \"point\" }, NoOE { over = \"never\" }, NoAdapt { over = \"always\" }. A \
        job with more tasks than there are cores alive runs as many at a time as there are.";

    const VARIANTS: &'static [&'static str] = &[
        "{}",
        r#"{ cycle = "100ms", slot = "500ms" }"#,
        r#"{ cycle = "200ms", slot = "500ms", slots = 8, estimates = "point", samples = 5, over = "never" }"#,
        r#"{ cycle = "100ms", slot = "250ms", estimates = "perfect", decide = "50ms" }"#,
        r#"{ cycle = "250ms", slot = "1s", estimates = "normal", shift = 0.3, cov = 0.5, over = "always" }"#,
        r#"{ cycle = "500ms", slot = "500ms", slots = 10, samples = 10, preempt = false }"#,
        r#"{ cycle = "500ms", slot = "1s", slots = 6, consider = 2, price = 3.0 }"#,
    ];

    fn traits(&self) -> Traits<'_> {
        Traits { one_scheduler: true, plans: true, ..Traits::default() }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_period("cycle", self.cycle)?;
        check_period("slot", self.slot)?;
        let window = self.slot.0.saturating_mul(u64::from(self.slots));
        if window < self.cycle.0 {
            return Err(format!(
                "slots: {} slots of {} are shorter than the cycle of {}; plan at least one cycle ahead",
                self.slots, self.slot, self.cycle
            ));
        }
        Ok(())
    }

    fn remarks(&self, _: &Layout, _: usize) -> Vec<String> {
        let mut remarks = Vec::new();
        let normal = self.estimates == RunTimeEstimates::Normal;
        if self.samples > 0 && (normal || self.estimates == RunTimeEstimates::Perfect) {
            remarks.push("samples has no effect: nothing is taken from the history".to_owned());
        }
        let default = Self::default();
        for (key, given) in [("shift", self.shift != default.shift), ("cov", self.cov != default.cov)] {
            if given && !normal {
                remarks.push(format!("{key} has no effect without estimates = \"normal\""));
            }
        }
        remarks
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(PlanningScheduler::new(self.cycle, SigmaPlanner::new(self), context.layout))
    }
}
