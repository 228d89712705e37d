//! Shared checks and machine factories of several policies.

use super::policy::{BuildContext, Traits};
use crate::base::{JobId, Span};
use crate::catalog::Catalog;
use crate::layout::Layout;
use crate::roles::NodeManager;
use crate::roles::node::{NodeOptions, ProgressErrors, ReportOptions};
use crate::roles::node_queue::QueueOrder;
use crate::roles::partitions::Partitions;
use crate::roles::speculation::CopyBinding;

/// The shortest period: shorter ones are finer than any delay or task, and a run with them makes no headway.
const SHORTEST: Span = Span(1_000);

/// Checks that a period is not shorter than [`SHORTEST`].
pub(super) fn check_period(key: &str, period: Span) -> Result<(), String> {
    if period < SHORTEST { Err(format!("{key}: must be {SHORTEST} or longer, not {period}")) } else { Ok(()) }
}

/// The estimate of a job's longest task.
pub(super) fn longest_task(job: JobId, catalog: &dyn Catalog) -> Span {
    let tasks = (0..catalog.tasks(job)).map(|task| catalog.estimate(job.task(task)));
    tasks.max().unwrap_or(Span::ZERO)
}

/// The partitions of a hybrid scheduler, by the share of the big one.
pub(super) fn partitions(big: f64, layout: &Layout) -> Partitions {
    Partitions::new(layout.nodes(), layout.nodes_in(big))
}

/// Checks the parameters of a hybrid scheduler.
pub(super) fn check_probes(big: f64, timeout: Span) -> Result<(), String> {
    if !(big > 0.0 && big <= 1.0) {
        return Err(format!("big_partition: must be above 0 and at most 1, not {big}"));
    }
    check_period("probe_timeout", timeout)
}

/// The node manager of Yaq-c, and of Yaq-d without its heartbeats.
pub(super) fn plain(srpt: bool, bypass: f64, context: BuildContext<'_>) -> NodeManager {
    let order = if srpt { QueueOrder::Least { bypass } } else { QueueOrder::Fifo };
    NodeManager::with(NodeOptions { order, ..NodeOptions::default() }, context.layout.cores(context.index))
}

/// Checks the limit on overtaking in a queue.
pub(super) fn check_bypass(bypass: f64) -> Result<(), String> {
    if bypass >= 0.0 && bypass.is_finite() {
        return Ok(());
    }
    Err(format!("bypass: must be a number from 0 on, not {bypass}"))
}

/// Checks that the scaled periods of a speculating policy are not too short.
pub(super) fn check_scaled(scale: f64, periods: &[(&str, Span)]) -> Result<(), String> {
    periods.iter().try_for_each(|&(key, period)| check_period(key, period.scale(scale)))
}

/// Traits of a speculating policy whose nodes report progress every `every`, from values before scaling. Starts are
/// reported where copies wait at their nodes.
pub(super) fn reporting<'a>(
    every: Span,
    patience: Span,
    errors: &ProgressErrors,
    scale: f64,
    binding: CopyBinding,
) -> Traits<'a> {
    let errors = ProgressErrors { delay: errors.delay.scale(scale), ..errors.clone() };
    let starts = binding == CopyBinding::Random;
    Traits {
        one_scheduler: binding == CopyBinding::Central,
        patience: Some(patience.scale(scale)),
        reports: Some(ReportOptions { every: every.scale(scale), starts, errors }),
        ..Traits::default()
    }
}
