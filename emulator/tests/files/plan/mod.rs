//! Tests of experiment files: valid files, and errors.

mod damaged;
mod files;
mod mistakes;
mod mixes;

use volary_experiment::config::{ConfigError, Experiment, Overrides, Repeat};

use crate::common::binary::changed;

/// A small experiment; tests change some of its lines.
const GOOD: &str = r#"title = "two policies"
seed = 7

[cluster]
nodes = 10
cores = 2

[workload.synthetic]
jobs = 100
tasks = 4
interarrival = { exponential = { mean = "100ms" } }

[service]
demand = { exponential = { mean = "1s" } }

[network]
one_way = "1ms"
loss = 0.01

[interference]
bernoulli = { slot = "100ms", probability = 0.1, slowdown = 4 }

[[policy]]
latin-square = { order = 2 }

[[policy]]
sparrow = { probe_ratio = 2 }

[sweep]
"service.correlated" = [true, false]
"network.loss" = [0.0, 0.01]

[[claim]]
says = "latin square is shorter"
when = { "service.correlated" = false }
check = ["latin-square.response_s.p50 < sparrow.response_s.p50"]
"#;

fn plan_with(text: &str, overrides: &Overrides) -> Result<Experiment, ConfigError> {
    Experiment::plan("e.toml", text, overrides)
}

/// The small experiment with values set.
fn good(set: &[&str]) -> Experiment {
    let overrides = Overrides { set: set.iter().map(ToString::to_string).collect(), ..Overrides::default() };
    plan_with(GOOD, &overrides).unwrap_or_else(|error| panic!("{set:?}: {error}"))
}

fn plan(text: &str) -> Result<Experiment, ConfigError> {
    plan_with(text, &Overrides::default())
}

#[test]
fn points_are_cells_times_policies_in_written_order() {
    let experiment = plan(GOOD).unwrap();
    let points: Vec<_> = experiment
        .points
        .iter()
        .map(|p| (p.cell["service.correlated"].clone(), p.cell["network.loss"].clone(), p.label.as_str()))
        .collect();
    assert_eq!(points.len(), 8);
    assert_eq!(points[0], (true.into(), 0.0.into(), "latin-square"));
    assert_eq!(points[1], (true.into(), 0.0.into(), "sparrow"));
    assert_eq!(points[2].1, 0.01);
    assert_eq!(points[4].0, false);
    assert_eq!(experiment.points[2].resolved.network.loss.mean(), 0.01);
    assert_eq!(experiment.cells().len(), 4);
    assert_eq!(experiment.labels(), ["latin-square", "sparrow"]);
    assert_eq!(experiment.points[0].resolved.cluster.layout(0).workers(), 20);
}

/// A node of 8 cores and 64 GiB that may run 110 tasks at once has CPU for 80 tasks, and memory for 64.
#[test]
fn nodes_run_as_many_tasks_as_cpu_and_memory_allow() {
    let workers = |set: &[&str]| good(set).points[0].resolved.cluster.layout(0).workers();
    let (cores, cpu, memory) = ("cluster.cores=110", "service.cpu=0.1", "cluster.memory=64 GiB");
    assert_eq!(workers(&[cores, cpu, "cluster.cpu=8"]), 10 * 80);
    assert_eq!(workers(&[cores, cpu, "cluster.cpu=8", memory, "service.memory=1 GiB"]), 10 * 64);
    assert_eq!(workers(&[cores, cpu, "cluster.cpu=32"]), 10 * 110);
    assert_eq!(workers(&["cluster.cores=8", memory, "service.memory=20 GiB"]), 10 * 3);
}

#[test]
fn ids_change_only_with_keys_that_results_depend_on() {
    let ids = |experiment: Experiment| -> Vec<String> {
        experiment.runs(None).into_iter().map(|unit| unit.id).collect()
    };
    let base = ids(good(&[]));
    let mut distinct = base.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), base.len());
    // Titles and comments do not change ids.
    let words = changed(GOOD, &[("two policies", "the same"), ("seed = 7", "# more\nseed = 7")]);
    assert_eq!(ids(plan(&words).unwrap()), base);
    // A parameter of a policy changes only the ids of that policy.
    let other = ids(good(&["policy.sparrow.probe_ratio=3"]));
    assert!(base.iter().zip(&other).enumerate().all(|(i, (a, b))| (a == b) == (i % 2 == 0)));
    for set in ["interference.bernoulli.slowdown=5", "cluster.nodes=11", "seed=8"] {
        assert!(base.iter().zip(ids(good(&[set]))).all(|(a, b)| *a != b), "{set}");
    }
    // Replication 1 under seed 7 has the id of replication 0 under seed 8.
    let twice = Overrides { repeat: Some(Repeat::Times(2)), ..Overrides::default() };
    let eight = Overrides { seed: Some(8), ..Overrides::default() };
    let [twice, eight] = [twice, eight].map(|overrides| ids(plan_with(GOOD, &overrides).unwrap()));
    assert_eq!(twice[1], eight[0]);
}

#[test]
fn slices_partition_the_runs() {
    let experiment = plan(GOOD).unwrap();
    let all = experiment.runs(None);
    let mut dealt = Vec::new();
    for index in 1..=3 {
        dealt.extend(experiment.runs(format!("{index}/3").parse().ok()));
    }
    dealt.sort_by_key(|unit| (unit.point, unit.replication));
    assert_eq!(dealt, all);
    // Array jobs that count from zero can write a sum, such as `0+1/3`.
    let runs = |slice: &str| experiment.runs(Some(slice.parse().unwrap()));
    assert_eq!((runs("0+1/3"), runs("2+1/3")), (runs("1/3"), runs("3/3")));
    for bad in
        ["0/3", "4/3", "x", "1/0", "1", "3+1/3", "0+0/3", "1+/3", "+1+1/3", "1+1+1/3", "4294967295+1/3"]
    {
        assert!(bad.parse::<volary_experiment::storage::slices::SweepSlice>().is_err(), "{bad}");
    }
}

#[test]
fn overrides_change_keys_policies_seed_and_repetition() {
    let overrides = Overrides {
        set: ["network.loss=0.01", "policy.sparrow.probe_ratio=3", "cluster.nodes=20", "run.until=5s"]
            .map(String::from)
            .to_vec(),
        policies: vec!["sparrow".into()],
        seed: Some(9),
        repeat: Some(Repeat::Auto),
        runtime: None,
    };
    let experiment = plan_with(GOOD, &overrides).unwrap();
    assert_eq!((experiment.points.len(), experiment.seed, experiment.repeat), (2, 9, Repeat::Auto));
    assert_eq!(experiment.points[0].cell["network.loss"], 0.01);
    assert_eq!(experiment.points[0].resolved.cluster.node_count(), 20);
    assert_eq!(experiment.run.until.unwrap().as_secs_f64(), 5.0);
    assert!(serde_json::to_string(&experiment.points[0].policy).unwrap().contains("\"probe_ratio\":3.0"));
}

#[test]
fn the_offered_load_follows_from_the_distributions() {
    use volary_experiment::config::load::{CapacityBasis, load};
    use volary_experiment::workload::Traces;

    let traces = Traces::new(Vec::new());
    let of = |set: &[&str]| load(&good(set).points[0].resolved, 7, &traces);
    // Each second, 10 jobs with 4 tasks of 1 s arrive on 20 cores, which do 1 − 0.1 · (1 − 1/4) of their work.
    let found = of(&[]).unwrap();
    assert!((found.offered - 40.0 / (20.0 * 0.925)).abs() < 1e-9, "{found:?}");
    // The load of generated jobs is computed from the jobs: about 3/4 by the facts published about Yahoo. Without
    // `service.demand`, the copies of a task cannot differ, so `correlated` must be true.
    let yahoo =
        ["workload={yahoo-like={}}", "service={}", "cluster={nodes=4_500}", "service.correlated=true"];
    let found = of(&yahoo).unwrap();
    assert!((0.5..1.2).contains(&found.offered), "{found:?}");
    // Without a closed form for the slowdowns, the capacity is computed under the seed, or is only a bound.
    let lognormal = "interference.bernoulli.slowdown={lognormal={median=4, sigma=1}}";
    let found = of(&[lognormal]).unwrap();
    assert!((found.offered / (40.0 / (20.0 * 0.93)) - 1.0).abs() < 0.02, "{found:?}");
    assert_eq!(found.basis, CapacityBasis::UntilLastArrival);
    let found = of(&[lognormal, "interference.bernoulli.slot=1us"]).unwrap();
    assert_eq!((found.offered, found.basis), (2.0, CapacityBasis::Healthy));
    assert!(found.says().starts_with("ρ ≥ 2.000 (of healthy cores"), "{}", found.says());
    // Arrivals are scaled to the requested load, also under interference.
    for workload in ["workload.synthetic.load=0.625", "workload={yahoo-like={load=0.625}}"] {
        let set = [workload, "service.correlated=true", "service.homogeneous=true"];
        let found = of(&set).unwrap();
        assert!((found.offered - 0.625).abs() < 1e-6, "{workload}: {found:?}");
    }
    let text = volary_experiment::config::describe::text(&plan(GOOD).unwrap(), None);
    assert!(text.contains("WARNING") && text.contains("ρ = 2.162"), "{text}");
}
