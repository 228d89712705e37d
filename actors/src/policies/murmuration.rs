//! Murmuration: schedulers that each keep a cache of the work at every node and broadcast their placements.
//!
//! | file | contents |
//! |---|---|
//! | `placement` | Algorithm 1: the queue of a scheduler, placement of tasks, updates about placements |
//! | `cache` | the resource cache of a scheduler: expected waits, choice of a node (lines 8 and 9), updates received |
//! | `node` | the node manager: its queue, updates about ends (lines 18 to 21); least attained service (ours) |
//! | `copying` | a restarted scheduler copies the cache of another (section 4.2, Fault Tolerance) |
//! | `disseminator` | sending of updates: streams with a delay (section 6.2.3), datagrams or epidemic spread (ours) |
//! | `numbering` | numbers of the updates already applied, since streams are not perfect here |
//! | `recovery` | crashes, returned messages, and reports of nodes, which the paper does not have |
//! | `scheduler` | the state of a scheduler and its inputs |
//! | `timers`, `messages`, `config` | timers, messages (a part of `crate::message`) and parameters |
//!
//! The values that reproduce the authors' simulator are `wait = "clock"` (in `cache`), `ties = "lowest"`, `bypass = 5`
//! and `rank = "job-left-oracle"` (in `node`).

mod cache;
mod config;
mod copying;
mod disseminator;
mod node;
mod numbering;
mod placement;
mod recovery;
mod scheduler;
mod timers;

use config::Copying;
pub use config::{
    Murmuration, MurmurationNews, MurmurationOrder, MurmurationRank, MurmurationSpread, MurmurationTies,
    MurmurationWait,
};
use node::MurmurationNode;
use scheduler::MurmurationRule;

use crate::base::Span;
use crate::layout::Layout;
use crate::machine::{Machine, ServiceOrder};
use crate::policies::policy::{BuildContext, Caches, Policy, Traits, check_period};
use crate::roles::dispatcher::Dispatcher;

impl Policy for Murmuration {
    const ABOUT: &'static str = "Murmuration (Vijayakumar, Madhavapeddy and Kalyvianaki, SoCC 2024)\n\
        Each scheduler keeps a cache of the work expected at every node and sends every task of a job to the node with \
        the least. Placements are immediate and never revised. Schedulers broadcast placements and nodes broadcast \
        ends of tasks to all schedulers, so caches differ only by updates in flight. Conflicting placements queue at \
        the node. A restarted scheduler copies the cache of another. With order = \"las\" (ours; Kairos, SoCC 2018) \
        nodes run the copies with the least attained service and suspend the rest.";

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
        let numbered = self.repair > Span::ZERO || self.spread == MurmurationSpread::Epidemic;
        if numbered && self.copy == Copying::Naive {
            return Err("copy: with `repair` or spread = \"epidemic\" each update is applied once, but \"naive\" applies \
                        some twice; use copy = \"numbered\", or remove `repair` and `spread`"
                .into());
        }
        if self.repair == Span::ZERO {
            return Ok(());
        }
        check_period("repair", self.repair)?;
        if self.update_delay > self.repair {
            return Err(format!(
                "update_delay: {} is longer than repair, {}: reports would overwrite updates that are not sent yet; \
                 lower update_delay or raise repair",
                self.update_delay, self.repair
            ));
        }
        Ok(())
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(Dispatcher::with(MurmurationRule::new(self, context), context.layout))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(MurmurationNode::new(self, context))
    }
}

impl Murmuration {
    /// The order in which a node serves waiting tasks, for measurements of decisions; `None` under LAS, where no task
    /// waits.
    const fn service(&self) -> Option<ServiceOrder> {
        match (self.order, self.rank) {
            (MurmurationOrder::Las, _) => None,
            (MurmurationOrder::Fcfs, _) => Some(ServiceOrder::OldestJob),
            (MurmurationOrder::Srjf, MurmurationRank::Task) => Some(ServiceOrder::LeastTask),
            // The remaining work of the job when its task is served is not known yet.
            (MurmurationOrder::Srjf, _) => Some(ServiceOrder::LeastJob),
        }
    }

    /// Refuses parameters that the chosen order does not use.
    fn check_order(&self) -> Result<(), String> {
        let (default, order) = (Self::default(), format!("{:?}", self.order).to_lowercase());
        let needs = [
            ("rank", "srjf", self.rank != default.rank),
            ("bypass", "srjf", self.bypass < default.bypass),
            ("preemptive", "srjf", self.preemptive),
            ("quantum", "las", self.quantum != default.quantum),
        ];
        for (key, needed, given) in needs {
            if given && needed != order {
                return Err(format!(
                    "{key}: has no effect with order = \"{order}\"; add order = \"{needed}\" or remove {key}"
                ));
            }
        }
        if self.order == MurmurationOrder::Las && self.wait == MurmurationWait::Clock {
            return Err("wait: \"clock\" expects a node to serve tasks one after the other, and with order = \"las\" \
                        it does not; use wait = \"per-core\" or \"work\""
                .into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
