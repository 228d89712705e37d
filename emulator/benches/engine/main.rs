//! The engine: events per CPU-second, alone and in whole experiments, and the cost of size.
//!
//! `cargo bench --bench engine [-- phold | cells | sizes]`. CPU time is that of the thread, so other load on the
//! machine disturbs little. Compared candidates take turns, and medians are reported.

#![allow(clippy::print_stdout, missing_docs)]

mod cells;
mod phold;
mod sizes;

use volary_engine::scenario::Point;
use volary_engine::workload::Workload;
use volary_experiment::config::{Experiment, Overrides};
use volary_experiment::workload::Traces;

/// Number of rounds; the median is reported.
const ROUNDS: usize = 5;

/// Runs each candidate once per round, in turn, and takes the median of each.
fn medians<const N: usize>(mut cell: impl FnMut(usize) -> f64) -> [f64; N] {
    let mut seen = [[0.0; ROUNDS]; N];
    for round in 0..ROUNDS {
        for (which, seen) in seen.iter_mut().enumerate() {
            seen[round] = cell(which);
        }
    }
    seen.map(|mut five| {
        five.sort_by(f64::total_cmp);
        five[ROUNDS / 2]
    })
}

/// Parses an experiment given as text.
fn plan(text: &str) -> Experiment {
    Experiment::plan("bench.toml", text, &Overrides::default())
        .unwrap_or_else(|error| panic!("{error}\nin\n{text}"))
}

/// The jobs of a point.
fn workload(point: &Point, seed: u64) -> Workload {
    let resolved = &point.resolved;
    let schedulers = resolved.cluster.schedulers;
    let traces = Traces::new(Vec::new());
    Workload::build(&resolved.workload, &resolved.service, seed, schedulers, &traces)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn main() {
    if sizes::is_child() {
        return;
    }
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for (name, run) in [("phold", phold::run as fn()), ("cells", cells::run), ("sizes", sizes::run)] {
        if asked.is_empty() || asked.iter().any(|a| a == name) {
            run();
        }
    }
}
