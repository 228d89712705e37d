//! The policy Murmuration.

use super::config::{Murmuration, MurmurationOrder, MurmurationRank, MurmurationSpread, MurmurationWait};
use super::node::MurmurationNode;
use super::scheduler::MurmurationScheduler;
use crate::base::Span;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::policies::policy::{BuildContext, Caches, Policy, Traits};
use crate::policies::shared::check_period;

/// Upper bound of `fan_out`.
const MOST_FAN_OUT: u32 = 1 << 16;

impl Policy for Murmuration {
    const ABOUT: &'static str = "Murmuration (Vijayakumar, Madhavapeddy and Kalyvianaki, SoCC 2024)\n\
        Each scheduler keeps a cache of the work expected at every node and sends every task of a job to the \
        node with the least. Placements are immediate and never revised. Schedulers broadcast placements and \
        nodes broadcast ends of tasks to all schedulers, so caches differ only by updates in flight. \
        Conflicting placements queue at the node. A restarted scheduler copies the cache of another. With \
        order = \"las\" (ours; Kairos, SoCC 2018) nodes run what has attained least service and suspend the rest.";

    const VARIANTS: &'static [&'static str] = &[
        "{}",
        r#"{ batch = false, update_delay = "300ms", ask_timeout = "100ms", answer_delay = "200ms" }"#,
        r#"{ order = "srjf", decision_per_job = "20ms", decision_per_task = "5ms" }"#,
        r#"{ order = "srjf", rank = "job", bypass = 5, preemptive = true, decision_per_job = "20ms", decision_per_task = "5ms", news = "between-tasks" }"#,
        r#"{ order = "srjf", rank = "job-left-oracle", bypass = 5, ties = "lowest" }"#,
        r#"{ order = "las", quantum = "300ms" }"#,
        r#"{ order = "las", quantum = "1s", batch = false, repair = "5s" }"#,
        r#"{ wait = "clock", copy = "naive" }"#,
        r#"{ spread = "datagrams", repair = "2s" }"#,
        r#"{ spread = "epidemic", fan_out = #, repair = "5s" }"#,
    ];

    fn traits(&self) -> Traits<'_> {
        Traits {
            caches: Caches::Updates,
            time_slice: (self.order == MurmurationOrder::Las).then_some(("quantum", self.quantum)),
            oracle: (self.rank == MurmurationRank::JobLeftOracle).then_some("rank"),
            ..Traits::default()
        }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        self.check_order()?;
        check_period("ask_timeout", self.ask_timeout)?;
        check_period("quantum", self.quantum)?;
        if self.repair > Span::ZERO {
            check_period("repair", self.repair)?;
        }
        if self.spread == MurmurationSpread::Epidemic && !(1..=MOST_FAN_OUT).contains(&self.fan_out) {
            return Err(format!(
                "fan_out: must be from 1 to {MOST_FAN_OUT}, not {}; spread = \"datagrams\" sends to every scheduler",
                self.fan_out
            ));
        }
        if self.repair > Span::ZERO && self.update_delay > self.repair {
            return Err(format!(
                "update_delay: {} is longer than repair, {}: reports would overwrite updates that are not sent yet; \
                 lower update_delay or raise repair",
                self.update_delay, self.repair
            ));
        }
        Ok(())
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(MurmurationScheduler::new(self, context))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(MurmurationNode::new(self, context))
    }
}

impl Murmuration {
    /// Refuses parameters of an order where nothing reads them.
    fn check_order(&self) -> Result<(), String> {
        let default = Self::default();
        let unread = [
            (MurmurationOrder::Srjf, "rank", self.rank != default.rank),
            (MurmurationOrder::Srjf, "bypass", self.bypass < default.bypass),
            (MurmurationOrder::Srjf, "preemptive", self.preemptive),
            (MurmurationOrder::Las, "quantum", self.quantum != default.quantum),
        ];
        if let Some((order, key, _)) = unread.iter().find(|(order, _, given)| *given && *order != self.order)
        {
            let (needed, order) = (order.name(), self.order.name());
            return Err(format!(
                "{key}: has no effect with order = \"{order}\"; add order = \"{needed}\" or remove {key}"
            ));
        }
        if self.order == MurmurationOrder::Las && self.wait == MurmurationWait::Clock {
            return Err("wait: \"clock\" expects a node to serve tasks one after the other, and with order = \"las\" \
                        it does not; use wait = \"per-core\" or \"work\""
                .into());
        }
        Ok(())
    }
}

impl MurmurationOrder {
    const fn name(self) -> &'static str {
        match self {
            Self::Fcfs => "fcfs",
            Self::Srjf => "srjf",
            Self::Las => "las",
        }
    }
}
