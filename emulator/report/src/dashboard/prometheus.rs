//! The snapshot as metrics for Prometheus, in its text format 0.0.4.

use std::collections::BTreeSet;
use std::fmt::{Display, Write};

use volary_engine::results::cell_name;

use super::snapshot::{RunEntry, RunStage, RunView, Snapshot};

/// Media type of the format.
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of a snapshot.
pub(super) fn metrics(snapshot: &Snapshot) -> String {
    let mut text = Metrics::default();
    let policies: BTreeSet<&str> = snapshot.runs.iter().map(|run| run.policy.as_str()).collect();
    let stages = [
        ("waiting", RunStage::Waiting),
        ("running", RunStage::Running),
        ("finished", RunStage::Finished),
        ("failed", RunStage::Failed),
    ];
    text.family("volary_runs", "gauge", "Number of runs of the experiment.");
    for policy in policies {
        for (name, stage) in stages {
            let count = snapshot.runs.iter().filter(|run| run.policy == policy && run.stage == stage).count();
            text.sample("volary_runs", &[("policy", policy), ("stage", name)], count);
        }
    }
    let begun = || {
        snapshot.header.policies.iter().filter_map(|policy| {
            let runs = || snapshot.runs.iter().filter(|run| run.policy == *policy);
            let sum = |of: fn(&RunEntry) -> u64| runs().map(of).sum::<u64>();
            Some((policy, sum(|run| run.jobs), sum(|run| run.finished))).filter(|(_, jobs, _)| *jobs > 0)
        })
    };
    text.family("volary_jobs", "gauge", "Number of jobs of the runs that have begun.");
    begun().for_each(|(policy, jobs, _)| text.sample("volary_jobs", &[("policy", policy)], jobs));
    text.family("volary_jobs_finished", "gauge", "Number of finished jobs of the runs that have begun.");
    begun().for_each(|(policy, _, done)| text.sample("volary_jobs_finished", &[("policy", policy)], done));
    let Some(cell) = &snapshot.cell else { return text.0 };
    let name = cell_name(&cell.cell);
    let labelled = |text: &mut Metrics, metric: &str, run: &RunView, more: &[(&str, &str)], value: f64| {
        let seed = run.seed.to_string();
        let of_run = [("policy", run.policy.as_str()), ("cell", &name), ("seed", &seed)];
        text.sample(metric, &[&of_run[..], more].concat(), value);
    };
    for (metric, kind, help, value) in NUMBERS {
        text.family(metric, kind, help);
        cell.runs.iter().for_each(|run| labelled(&mut text, metric, run, &[], value(snapshot, run)));
    }
    text.family("volary_messages", "counter", "Number of messages of the run.");
    for run in &cell.runs {
        for (kind, count) in &run.messages {
            labelled(&mut text, "volary_messages", run, &[("kind", kind)], *count as f64);
        }
    }
    text.family(
        "volary_process_cpu_share",
        "gauge",
        "CPU time of a host's process as a share of all processors.",
    );
    for run in &cell.runs {
        for (host, vitals) in run.shards.iter().filter_map(|shard| Some((&shard.name, shard.vitals?))) {
            labelled(&mut text, "volary_process_cpu_share", run, &[("host", host)], vitals.cpu_share);
        }
    }
    text.0
}

/// A number of a run: name, type and meaning of the metric, and its value.
type RunNumber = (&'static str, &'static str, &'static str, fn(&Snapshot, &RunView) -> f64);

const NUMBERS: [RunNumber; 7] = [
    ("volary_clock_seconds", "gauge", "Emulated time of the run.", |_, run| run.at_s),
    ("volary_jobs_submitted", "counter", "Number of submitted jobs of the run.", |_, run| {
        run.counts.jobs_submitted as f64
    }),
    ("volary_tasks_finished", "counter", "Number of finished tasks of the run.", |_, run| {
        run.counts.tasks_finished as f64
    }),
    ("volary_tasks_waiting", "gauge", "Number of waiting tasks of the run.", |_, run| {
        run.counts.tasks_waiting as f64
    }),
    ("volary_copies_running", "gauge", "Number of running copies of the run.", |_, run| {
        run.counts.copies_running as f64
    }),
    ("volary_messages_dropped", "counter", "Number of lost datagrams and returned messages.", |_, run| {
        run.dropped as f64
    }),
    (
        "volary_disturbances",
        "gauge",
        "Number of faults and injections of the run that have begun.",
        |snapshot, run| snapshot.disturbances(run).count() as f64,
    ),
];

/// Text of metrics.
#[derive(Default)]
struct Metrics(String);

impl Metrics {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels = labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value)));
        let _ = writeln!(self.0, "{name}{{{}}} {value}", labels.collect::<Vec<_>>().join(","));
    }
}
