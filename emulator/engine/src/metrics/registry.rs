//! The registry of policy metrics.

use volary_actors::base::Span;
use volary_actors::layout::Layout;
use volary_netem::Faults;

use super::placements::Binder;
use super::staleness::{CopyTracker, Tracker};
use crate::workload::Workload;

/// The metrics of all policies.
pub type PolicyMetrics<'a> = (Tracker<'a>, (CopyTracker<'a>, Binder<'a>));

/// Creates the metrics of all policies. Caches are observed at an interval, or not at all if it
/// is zero; `seed` is that of the run.
pub fn policy_metrics<'a>(
    layout: &'a Layout,
    workload: &'a Workload,
    faults: &'a Faults,
    interval: Span,
    seed: u64,
) -> PolicyMetrics<'a> {
    let caches = Tracker::new(layout, workload, faults, interval, seed);
    (caches, (CopyTracker::new(layout, faults, interval, seed), Binder::new(workload)))
}
