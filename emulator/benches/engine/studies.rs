//! Whole studies, with tables and report: the CPU time that is spent outside the engine, and that of the main thread.

use volary::runtime::{RunOptions, run as run_study};
use volary_experiment::control::StudyControl;
use volary_experiment::cost::{process_cpu_s, thread_cpu_s};

use super::{medians, number, shipped};

/// A thousand runs of 40 jobs of 5 tasks on 20 nodes under Sparrow.
const SMALL: &[&str] = &["cluster.nodes=20", "workload.synthetic.jobs=40", "workload.synthetic.tasks=5"];
/// A row of each execution, and a timeline of each run.
const ALL: &[&str] = &["run.record.tasks_one_in=1", "run.record.timeline=10s"];

/// A study of `quickstart.toml`: name in the table, labels of policies, replications, and values of `--set`.
type Case = (&'static str, &'static [&'static str], u32, &'static [&'static [&'static str]]);

const CASES: [Case; 4] = [
    ("1,000 runs of 40 jobs of 5 tasks", &["sparrow"], 1_000, &[SMALL]),
    ("the same, everything recorded", &["sparrow"], 1_000, &[SMALL, ALL]),
    ("40 runs of 4,000 jobs of 20 tasks", &[], 10, &[]),
    ("the same, everything recorded", &[], 10, &[ALL]),
];

/// Prints the table.
pub(super) fn run() {
    println!("| study, two threads | CPU-s | in the engine | main thread |");
    println!("|---|--:|--:|--:|");
    let costs: [[f64; 3]; CASES.len()] = medians(|which| {
        let (_, policies, repeat, set) = CASES[which];
        cost(policies, repeat, &set.concat())
    });
    for ((name, ..), [process, engine, main]) in CASES.iter().zip(costs) {
        let (engine, main) = (100.0 * engine / process, 100.0 * main / process);
        println!("| {name} | {} | {engine:.0} % | {main:.1} % |", number(process));
    }
}

/// CPU time of one study in s: of the process, in the engine, and of this thread.
fn cost(policies: &[&str], repeat: u32, set: &[&str]) -> [f64; 3] {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let (process, main) = (process_cpu_s(), thread_cpu_s());
    let experiment = shipped("quickstart", policies, repeat, set);
    let options = RunOptions {
        out: folder.path().join("study"),
        threads: Some(2),
        render: Some(volary_report::render),
        ..RunOptions::default()
    };
    let outcome = run_study(&experiment, &options, &StudyControl::default());
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    let engine = outcome.summaries.iter().map(|summary| summary.engine.cpu_s).sum();
    [process_cpu_s() - process, engine, thread_cpu_s() - main]
}
