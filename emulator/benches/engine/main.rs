//! The tables of `docs/src/benchmarks.md` about virtual time: events per CPU-second, alone and in whole experiments,
//! what is spent around the engine, and the cost of size.
//!
//! `cargo bench -p volary --bench engine [-- phold | experiments | studies | sizes]`. CPU time is that of the thread or
//! the process, so other load on the machine disturbs little. Compared candidates take turns, and medians are reported.
//! Traces are searched in the folders of `VOLARY_TRACES`; a generator takes the place of one that is not found.

#![allow(clippy::print_stdout, missing_docs)]

mod experiments;
mod phold;
mod sizes;
mod studies;

use std::cmp::Ordering;
use std::path::Path;

use volary_engine::scenario::Point;
use volary_engine::workload::Workload;
use volary_experiment::config::{Experiment, Overrides, Repeat};
use volary_experiment::workload::Traces;

/// Number of rounds; the median is reported.
const ROUNDS: usize = 5;

/// Runs each candidate once per round, in turn, and takes the median of each; arrays are ordered by their first number.
fn medians<const N: usize, T: Copy + Default + PartialOrd>(mut cell: impl FnMut(usize) -> T) -> [T; N] {
    let mut seen = [[T::default(); ROUNDS]; N];
    for round in 0..ROUNDS {
        for (which, seen) in seen.iter_mut().enumerate() {
            seen[round] = cell(which);
        }
    }
    seen.map(|mut five| {
        five.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        five[ROUNDS / 2]
    })
}

/// A number with two digits that count.
fn number(value: f64) -> String {
    match value {
        ..0.095 => format!("{value:.3}"),
        ..0.995 => format!("{value:.2}"),
        ..9.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A shipped experiment, as `volary run FILE --policy LABEL --repeat N --set KEY=VALUE` reads it.
fn shipped(file: &str, policies: &[&str], repeat: u32, set: &[&str]) -> Experiment {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments").join(file).with_extension("toml");
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let repeat = Some(Repeat::Times(repeat));
    let overrides = Overrides { policies: owned(policies), set: owned(set), repeat, ..Overrides::default() };
    Experiment::load(&path, &overrides).unwrap_or_else(|error| panic!("{error}"))
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
    let tables: [(&str, fn()); 4] = [
        ("phold", phold::run),
        ("experiments", experiments::run),
        ("studies", studies::run),
        ("sizes", sizes::run),
    ];
    for (name, run) in tables {
        if asked.is_empty() || asked.iter().any(|a| a == name) {
            println!("\n`{name}`\n");
            run();
        }
    }
}
