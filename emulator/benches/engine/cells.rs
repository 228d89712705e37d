//! Whole experiments: cells of the latin-square paper's Figs. 5 and 6, two million tasks each, with network,
//! policy and accounts.

use std::path::Path;

use volary::runtime::pool::measure;
use volary_engine::world::World;
use volary_experiment::config::{Experiment, Overrides};
use volary_experiment::control::StudyControl;

use super::workload;

/// Prints the table.
pub(super) fn run() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/latin-square/fig5-6.toml");
    let policies = ["latin-square", "sparrow", "round-robin"].map(str::to_owned).to_vec();
    let overrides = Overrides { policies, ..Overrides::default() };
    let mut experiment = Experiment::load(&file, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let first = experiment.points[0].cell.clone();
    experiment.points.retain(|point| point.cell == first);
    println!("fig5-6, 20 000 jobs of 100 tasks on 10 000 nodes; best of three");
    println!("{:<14} {:>10} {:>8} {:>10}", "policy", "M events", "CPU s", "M/CPU-s");
    for point in &experiment.points {
        let world = World::new(point, experiment.seed, workload(point, experiment.seed))
            .unwrap_or_else(|error| panic!("{error}"));
        let runs = (0..3).map(|_| {
            measure("bench", &world, &experiment.run, &StudyControl::default())
                .unwrap_or_else(|error| panic!("{error}"))
                .summary
                .engine
        });
        let Some(best) = runs.min_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s)) else { continue };
        let events = best.events as f64 / 1e6;
        println!("{:<14} {events:>10.1} {:>8.2} {:>10.1}", point.label, best.cpu_s, events / best.cpu_s);
    }
}
