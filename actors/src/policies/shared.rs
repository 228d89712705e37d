//! Shared checks and machine factories of several policies.

use super::policy::BuildContext;
use crate::base::Span;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::client::CentralJobs;
use crate::roles::late_binding::{ProbeOptions, SamplingForm};
use crate::roles::node::NodeOptions;
use crate::roles::node_queue::QueueOrder;
use crate::roles::{Client, NodeManager, ReportingNode};

/// Checks that a duration is not zero.
pub(super) fn positive(key: &str, value: Span) -> Result<(), String> {
    if value == Span::ZERO { Err(format!("{key}: must be longer than zero")) } else { Ok(()) }
}

/// Checks that a number lies within a range.
pub(super) fn within(key: &str, value: f64, range: std::ops::RangeInclusive<f64>) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(format!("{key}: must be between {} and {}, not {value}", range.start(), range.end()))
}

/// The number of nodes in a share of them, at least one.
pub(super) fn partition(share: f64, layout: &Layout) -> u32 {
    let nodes = layout.nodes();
    ((share * f64::from(nodes)).ceil() as u32).clamp(1, nodes.max(1))
}

/// A client that submits its long jobs to the first scheduler that is up.
pub(super) fn client(context: BuildContext<'_>) -> Box<dyn Machine> {
    Box::new(Client::with(context.index, CentralJobs::Long))
}

/// Options of a hybrid scheduler's probes for short jobs: batch sampling, as in Sparrow.
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

/// Checks the parameters of a hybrid scheduler.
pub(super) fn check_probes(big: f64, ratio: f64, timeout: Span) -> Result<(), String> {
    if !(big > 0.0 && big <= 1.0) {
        return Err(format!("big_partition: must be above 0 and at most 1, not {big}"));
    }
    within("probe_ratio", ratio, 1.0..=1000.0)?;
    positive("probe_timeout", timeout)
}

/// The node manager of Yaq-c, and of Yaq-d without its heartbeats.
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

/// Checks the scale of a speculating policy, and that its periods are not zero at that scale.
pub(super) fn check_scaled(scale: f64, periods: &[(&str, Span)]) -> Result<(), String> {
    within("scale", scale, 1e-6..=1e6)?;
    periods.iter().try_for_each(|&(key, period)| positive(key, period.scale(scale)))
}

/// The node manager of a speculating policy: it reports progress once every `period`.
pub(super) fn reporting_node(period: Span, context: BuildContext<'_>) -> Box<dyn Machine> {
    Box::new(ReportingNode::new(context.layout.cores(context.index), period))
}
