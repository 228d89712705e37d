//! Checks and machine factories that several policies share.

use super::policy::BuildContext;
use crate::base::Span;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::client::CentralJobs;
use crate::roles::late_binding::{ProbeOptions, SamplingForm};
use crate::roles::node::NodeOptions;
use crate::roles::node_queue::QueueOrder;
use crate::roles::{Client, NodeManager};

/// Why a duration cannot be used, if it cannot.
///
/// # Errors
/// "key: reason and remedy".
pub(super) fn positive(key: &str, value: Span) -> Result<(), String> {
    if value == Span::ZERO { Err(format!("{key}: must be longer than zero")) } else { Ok(()) }
}

/// Why a number cannot be used, if it lies outside a range.
///
/// # Errors
/// "key: reason and remedy".
pub(super) fn within(key: &str, value: f64, range: std::ops::RangeInclusive<f64>) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(format!("{key}: must be between {} and {}, not {value}", range.start(), range.end()))
}

/// How many nodes a share of them is, at least one.
pub(super) fn partition(share: f64, layout: &Layout) -> u32 {
    let nodes = layout.nodes();
    ((share * f64::from(nodes)).ceil() as u32).clamp(1, nodes.max(1))
}

/// A client that hands its long jobs to the first scheduler that is up.
pub(super) fn client(context: BuildContext<'_>) -> Box<dyn Machine> {
    Box::new(Client::with(context.index, CentralJobs::Long))
}

/// How a hybrid scheduler probes for a short job: in a batch, as Sparrow does.
pub(super) const fn probing(ratio: f64, at_least: u32, timeout: Span) -> ProbeOptions {
    ProbeOptions {
        form: SamplingForm::Batch,
        ratio,
        at_least,
        replacement: false,
        group: 1,
        cancellation: false,
        timeout,
    }
}

/// Why a hybrid scheduler cannot have these parameters.
pub(super) fn check_probes(big: f64, ratio: f64, timeout: Span) -> Result<(), String> {
    if !(big > 0.0 && big <= 1.0) {
        return Err(format!("big_partition: must be above 0 and at most 1, not {big}"));
    }
    within("probe_ratio", ratio, 1.0..=1000.0)?;
    positive("probe_timeout", timeout)
}

/// The node manager without the heartbeats: Yaq-c has it too.
pub(super) fn plain(srpt: bool, bypass: f64, context: BuildContext<'_>) -> NodeManager {
    let order = if srpt { QueueOrder::Least { bypass } } else { QueueOrder::Fifo };
    NodeManager::with(NodeOptions { order, ..NodeOptions::default() }, context.layout.cores(context.index))
}

pub(super) fn check_bypass(bypass: f64) -> Result<(), String> {
    if bypass >= 0.0 && bypass.is_finite() {
        return Ok(());
    }
    Err(format!("bypass: must be a number from 0 on, not {bypass}"))
}
