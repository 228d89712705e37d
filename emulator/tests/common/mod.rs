//! Helpers of several tests: experiments as text, run in virtual time; the binary; chains of stages; the live page;
//! shared nodes; the budget of real time.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses some of it")]

pub mod binary;
pub mod chains;
pub mod page;
pub mod sharing;

use std::io::Write;

use volary::runtime::pool::measure;
use volary_engine::results::{Certificate, Measured};
use volary_engine::world::World;
use volary_experiment::config::{Experiment, Overrides};
use volary_experiment::control::StudyControl;
use volary_experiment::workload::Traces;

/// An experiment without policies: a small cluster with losses, duplicates, crashes and a pause.
pub const FAULTY: &str = include_str!("../../engine/tests/sim/faulty.toml");

/// Plans an experiment with `--set` values; panics with the rendered error.
pub fn plan(text: &str, set: &[&str]) -> Experiment {
    let overrides = Overrides { set: set.iter().map(ToString::to_string).collect(), ..Overrides::default() };
    Experiment::plan("test.toml", text, &overrides).unwrap_or_else(|error| panic!("{error}\nin\n{text}"))
}

/// Runs every point of an experiment under its seed in virtual time.
pub fn run(experiment: &Experiment) -> Vec<Measured> {
    let run =
        |world| measure("test", &world, &experiment.run, &StudyControl::default()).expect("the run ends");
    worlds(experiment).map(run).collect()
}

/// The world of every point of an experiment under its seed.
pub fn worlds(experiment: &Experiment) -> impl Iterator<Item = World> {
    experiment.points.iter().map(|point| {
        World::build(point, experiment.seed, &Traces::new(Vec::new())).expect("the world resolves")
    })
}

/// Limits on the lateness of deliveries and timers, s of real time: on the 99th percentile, and on the maximum. A run
/// beyond them is not compared with virtual time.
pub const LATENESS_BUDGET_S: (f64, f64) = (0.002, 0.02);

/// Whether a run on this machine kept within the lateness budget. If not, prints directly to stderr that the comparison
/// is skipped and why, because the test harness captures `println!`; with `VOLARY_REQUIRE_BUDGET=1` it panics.
pub fn within_budget(what: &str, certificate: &Certificate) -> bool {
    let (lateness, speed) = (&certificate.lateness, certificate.speed);
    let p99_s = lateness.deliveries.p99_s.max(lateness.timers.p99_s) / speed;
    let max_s = lateness.deliveries.max_s.max(lateness.timers.max_s) / speed;
    let within = p99_s <= LATENESS_BUDGET_S.0 && max_s <= LATENESS_BUDGET_S.1;
    if !within {
        let (p99, max) = LATENESS_BUDGET_S;
        let late = format!(
            "{what}: this machine was late by {p99_s:.4} s (p99) and {max_s:.4} s (max), budget {p99} and {max}"
        );
        let required = std::env::var("VOLARY_REQUIRE_BUDGET").is_ok_and(|value| value == "1");
        assert!(!required, "{late}");
        let _ = writeln!(std::io::stderr(), "SKIPPED {late}");
    }
    within
}
