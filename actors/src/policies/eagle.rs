//! Eagle: a central scheduler for long jobs, distributed ones for short jobs, which avoid nodes with long work.

mod central;
mod node;
mod scheduler;

pub(super) use central::{LeastWait, partition};
pub(super) use scheduler::Hybrid;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::node::Node;
use super::yaq_d::check_bypass;
use super::{Policy, Seat, positive, within};
use crate::base::Span;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::client::Central;
use crate::roles::late::{Form, Sharing, Terms};
use crate::roles::node::Manners;
use crate::roles::queue::Order;
use crate::roles::{Client, Node as Plain};

/// Parameters of Eagle.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Eagle {
    /// Share of the nodes that long tasks may go to, the first ones; short tasks go anywhere. The paper has
    /// 0.98 for Yahoo and Facebook, 0.91 for Cloudera, 0.83 for Google.
    pub big_partition: f64,
    /// Probes per task of a short job.
    pub probe_ratio: f64,
    /// Probes of a short job, at least (the authors' simulator).
    pub min_probes: u32,
    /// Whether a node can be drawn more than once for a job, as in the authors' simulator.
    pub replacement: bool,
    /// Succinct State Sharing: how often a probe that was turned away goes to a node that is free of long work
    /// by the newest bitmap, before it goes to one outside the big partition. 1 by default in the authors'
    /// prototype, 3 in its README.
    pub retry_rounds: u16,
    /// Sticky batch probing: a node that ran a task asks the same scheduler for the next.
    pub sticky: bool,
    /// Short probes of the job with the least work left come first (SRPT); otherwise all in turn.
    pub srpt: bool,
    /// SRPT: a probe lets others past up to this many times its own estimate.
    pub bypass: f64,
    /// Tell nodes to drop probes once a job's last task is launched. The authors let them claim in vain.
    pub cancellation: bool,
    /// First wait before a probe that may have been lost is sent again; doubles each time. Armed only where the
    /// network can lose datagrams.
    pub probe_timeout: Span,
}

impl Default for Eagle {
    fn default() -> Self {
        Self {
            big_partition: 0.98,
            probe_ratio: 2.0,
            min_probes: 20,
            replacement: false,
            retry_rounds: 1,
            sticky: true,
            srpt: true,
            bypass: 5.0,
            cancellation: false,
            probe_timeout: Span::from_secs(1),
        }
    }
}

impl Policy for Eagle {
    const ABOUT: &'static str = "Eagle (Delgado, Didona, Dinu and Zwaenepoel, SoCC 2016)\n\
        Long jobs go to the first scheduler that is up, which sends each task to the node of the big partition \
        with the least wait, together with a bitmap of nodes that have long work. Short jobs go to the \
        scheduler of their client, which probes random nodes as Sparrow does; nodes with long work turn probes \
        away and answer with their bitmap, and the probes go where it says there is none. Nodes serve the \
        short job with the least work left, and ask for another of its tasks when one ends. Which jobs are \
        long is said by `cutoff` of the workload.";

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_probes(self.big_partition, self.probe_ratio, self.probe_timeout)?;
        check_bypass(self.bypass)
    }

    fn client(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        client(seat)
    }

    fn scheduler(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        let terms = Terms {
            replacement: self.replacement,
            cancellation: self.cancellation,
            ..probing(self.probe_ratio, self.min_probes, self.probe_timeout)
        };
        let big = partition(self.big_partition, seat.layout);
        Box::new(Hybrid::new(terms, big, Some(Sharing::new(self.retry_rounds, big)), seat))
    }

    fn node(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        let order = if self.srpt { Order::Least { bypass: self.bypass } } else { Order::Fifo };
        let manners = Manners { order, long_in_turn: true, sticky: self.sticky };
        Box::new(Node::new(Plain::with(manners, seat.layout.cores(seat.index))))
    }
}

/// A client that hands its long jobs to the first scheduler that is up.
pub(super) fn client(seat: Seat<'_>) -> Box<dyn Machine> {
    Box::new(Client::with(seat.index, Central::Long))
}

/// How a hybrid scheduler probes for a short job: in a batch, as Sparrow does.
pub(super) const fn probing(ratio: f64, at_least: u32, timeout: Span) -> Terms {
    Terms { form: Form::Batch, ratio, at_least, replacement: false, group: 1, cancellation: false, timeout }
}

/// Why a hybrid scheduler cannot have these parameters.
pub(super) fn check_probes(big: f64, ratio: f64, timeout: Span) -> Result<(), String> {
    if !(big > 0.0 && big <= 1.0) {
        return Err(format!("big_partition: must be above 0 and at most 1, not {big}"));
    }
    within("probe_ratio", ratio, 1.0..=1000.0)?;
    positive("probe_timeout", timeout)
}

#[cfg(test)]
mod tests;
