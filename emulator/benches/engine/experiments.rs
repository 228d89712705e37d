//! Whole experiments beside the bare heap of PHOLD, with 10⁴ pending events, in the same process and in turn.

use volary::runtime::pool::measure;
use volary_engine::world::World;
use volary_experiment::config::Experiment;
use volary_experiment::control::StudyControl;

use super::{medians, number, phold, shipped};

/// A run: its name in the table, an experiment, the label of a policy and values of `--set`.
type Case = (&'static str, &'static str, &'static str, &'static [&'static str]);

/// Sparrow at half load on a thousand nodes.
const SMALL: &[&str] = &[
    "cluster.nodes=1000",
    "workload.synthetic.jobs=5000",
    "workload.synthetic.interarrival={ exponential = { mean = \"200ms\" } }",
];
const WIDE: &[&str] = &["cluster.nodes=15000"];
const WIDE_UNRECORDED: &[&str] = &["cluster.nodes=15000", "run.record.staleness=0s"];

const CASES: [Case; 13] = [
    ("Sparrow, 1,000 nodes, no loss", "latin-square/fig5-6", "sparrow", SMALL),
    ("`quickstart.toml`, Sparrow: loss and interference", "quickstart", "sparrow", &[]),
    ("`quickstart.toml`, latin square", "quickstart", "latin-square", &[]),
    ("`latin-square/fig5-6.toml`, Sparrow, 10,000 nodes", "latin-square/fig5-6", "sparrow", &[]),
    ("`latin-square/fig5-6.toml`, latin square", "latin-square/fig5-6", "latin-square", &[]),
    ("`pigeon/fig6-7.toml`, 3,000 nodes", "pigeon/fig6-7", "pigeon", &[]),
    ("`kairos/fig9.toml`, 4,000 nodes", "kairos/fig9", "kairos-2", &[]),
    ("`stragglers/speculation.toml`, LATE", "stragglers/speculation", "late", &[]),
    ("`murmuration/fig12.toml`, SRJF, 15,000 nodes", "murmuration/fig12", "srjf-authors", WIDE),
    ("the same without staleness", "murmuration/fig12", "srjf-authors", WIDE_UNRECORDED),
    ("`murmuration/fig12.toml`, FCFS, 15,000 nodes", "murmuration/fig12", "fcfs-thinks", WIDE),
    ("the same without staleness", "murmuration/fig12", "fcfs-thinks", WIDE_UNRECORDED),
    ("`3sigma/e2e.toml`, 256 nodes", "3sigma/e2e", "3sigma", &[]),
];

/// Prints the table.
pub(super) fn run() {
    let worlds = CASES.map(|(_, file, policy, set)| {
        let experiment = shipped(file, &[policy], 1, set);
        let world = World::build(&experiment.points[0], experiment.seed, &experiment.traces());
        (world.unwrap_or_else(|error| panic!("{file}: {error}")), experiment)
    });
    let mut events = [0; CASES.len()];
    let mut rate = |case: usize, (world, experiment): &(World, Experiment)| {
        let measured = measure("bench", world, &experiment.run, &StudyControl::default());
        let engine = measured.unwrap_or_else(|error| panic!("{}: {error}", CASES[case].0)).summary.engine;
        events[case] = engine.events;
        engine.events as f64 / engine.cpu_s / 1e6
    };
    let rates: [f64; CASES.len() + 1] = medians(|which| match which.checked_sub(1) {
        None => phold::heap(10_000, false),
        Some(case) => rate(case, &worlds[case]),
    });
    let heap = rates[0];
    println!(
        "| run | million events | CPU-s | million events per CPU-second | of the bare heap ({heap:.1}) |"
    );
    println!("|---|--:|--:|--:|--:|");
    for (((name, ..), rate), events) in CASES.iter().zip(&rates[1..]).zip(events) {
        let (events, ratio) = (events as f64 / 1e6, rate / heap);
        let [events_, cpu_s, rate, ratio] = [events, events / rate, *rate, ratio].map(number);
        println!("| {name} | {events_} | {cpu_s} | {rate} | {ratio} |");
    }
}
