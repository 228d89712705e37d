//! The view of a run that has ended, from its record.

use volary_engine::metrics::SoFar;
use volary_engine::results::{HostVitals, Late, Summary};
use volary_experiment::observer::LateSoFar;
use volary_experiment::observer::VitalsSample;
use volary_experiment::storage::run_record::RunRecord;

use super::disturbances;
use super::snapshot::{Counts, RunView, ShardView};

/// The view of an ended run. It has neither cores nor a history; the faults are left to the caller.
pub(super) fn view(record: &RunRecord) -> RunView {
    let summary = &record.summary;
    RunView {
        run: record.id.clone(),
        policy: summary.policy.clone(),
        seed: summary.seed,
        running: false,
        at_s: summary.makespan_s,
        counts: counts(summary),
        messages: summary.messages.by_kind.clone(),
        dropped: summary.messages.dropped,
        looks: record.looks.clone(),
        shards: shards(summary),
        disturbances: summary.injections.iter().map(disturbances::injected).collect(),
        ..RunView::default()
    }
}

fn counts(summary: &Summary) -> Counts {
    let &Summary { jobs, tasks, copies, .. } = summary;
    Counts::new(jobs.submitted, SoFar { jobs, tasks, copies, running: 0, waiting: 0 })
}

/// A row for the lateness of the whole run, which was measured over all hosts, and one for the vitals of each host.
fn shards(summary: &Summary) -> Vec<ShardView> {
    let Some(certificate) = &summary.fidelity else { return Vec::new() };
    let late = |late: &Late| Some(LateSoFar { p50_s: late.p50_s, p99_s: late.p99_s, max_s: late.max_s });
    let all = ShardView {
        name: "all".to_owned(),
        deliveries: late(&certificate.lateness.deliveries),
        timers: late(&certificate.lateness.timers),
        vitals: None,
    };
    let host = |host: &HostVitals| ShardView {
        name: host.name.clone(),
        deliveries: None,
        timers: None,
        vitals: Some(VitalsSample {
            cpu_share: host.cpu_share,
            machine_share: host.machine_share,
            steal_share: host.steal_share,
            peak_rss_bytes: host.peak_rss_bytes,
        }),
    };
    std::iter::once(all).chain(certificate.hosts.iter().map(host)).collect()
}
