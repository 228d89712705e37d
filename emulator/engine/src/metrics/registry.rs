//! The registry of policy metrics.

use volary_actors::layout::{Layout, Origin};
use volary_netem::Faults;

use super::CacheTracker;
use super::detection::DetectionTracker;
use super::dissemination::SpreadTracker;
use super::placements::Binder;
use super::planning::PlanCounter;
use super::policy_metric::Within;
use super::recording::Recording;
use super::values::ValueGauges;
use crate::workload::Workload;

/// The metrics of all policies.
pub type PolicyMetrics<'a> = (
    CacheTracker<'a>,
    (Binder<'a>, (Within<(PlanCounter, ValueGauges)>, (SpreadTracker<'a>, DetectionTracker<'a>))),
);

/// Creates the metrics of all policies; `seed` is the seed of the run.
pub fn policy_metrics<'a>(
    layout: &'a Layout,
    workload: &'a Workload,
    faults: &'a Faults,
    recording: Recording,
    seed: u64,
) -> PolicyMetrics<'a> {
    let caches = CacheTracker::new(layout, workload, faults, recording, seed);
    let detects = layout.gossip().is_some_and(|group| group.origin == Origin::Nowhere);
    let spreads = Recording { gossip: recording.gossip.filter(|_| !detects), ..recording };
    let spread = SpreadTracker::new(layout, spreads, seed);
    let detection = DetectionTracker::new(layout, faults, recording.gossip.filter(|_| detects));
    let plans = Within(recording.measured(), Default::default());
    (caches, (Binder::new(workload, recording.measured()), (plans, (spread, detection))))
}
