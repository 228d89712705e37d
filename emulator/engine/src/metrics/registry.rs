//! The registry of policy metrics.

use volary_actors::base::Span;
use volary_actors::layout::Layout;
use volary_netem::Faults;

use super::placements::Binder;
use super::staleness::Tracker;
use crate::workload::Workload;

/// The metrics of all policies.
pub type PolicyMetrics<'a> = (Tracker<'a>, Binder<'a>);

/// Creates the metrics of all policies. Caches are observed at an interval, or only at decisions if it is zero.
pub fn policy_metrics<'a>(
    layout: &'a Layout,
    workload: &'a Workload,
    faults: &'a Faults,
    interval: Span,
) -> PolicyMetrics<'a> {
    (Tracker::new(layout, workload, faults, interval), Binder::new(workload))
}
