//! Experiments as text, run in virtual time by the engine alone.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use toml::Table;
use volary_engine::cores::{Interference, ScheduledInjection};
use volary_engine::handling::ActorsSection;
use volary_engine::metrics::{Recording, RunConfig};
use volary_engine::results::{Cell, Measured};
use volary_engine::scenario::{Cluster, ClusterSection, Point, PolicyEntry, Resolved};
use volary_engine::virtual_time::measure;
use volary_engine::workload::{Measure, NoTraces, Service, WorkloadSpec};
use volary_engine::world::World;
use volary_netem::Network;

use crate::programs::WithinTest;

/// A small cluster with losses, duplicates, crashes and a pause, without policies.
pub(crate) const FAULTY: &str = include_str!("faulty.toml");

/// The sections of an experiment file that describe a world and its policies.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "title")]
    _title: Option<String>,
    seed: u64,
    cluster: ClusterSection,
    workload: WorkloadSpec,
    #[serde(default)]
    service: Service,
    #[serde(default)]
    network: Network,
    actors: Option<ActorsSection>,
    interference: Option<Interference>,
    policy: Vec<PolicyEntry>,
    measure: Option<Measure>,
}

/// An experiment's text with values set as the command line's `--set` does: `"cluster.nodes=3"`. Keys that no section
/// knows are errors in [`parse`].
pub(crate) fn with(text: &str, set: &[&str]) -> String {
    let mut file: Table = toml::from_str(text).unwrap();
    for set in set {
        let (key, value) = set.split_once('=').unwrap();
        let value = toml::from_str::<Table>(&format!("value = {value}"))
            .map_or_else(|_| value.into(), |mut table| table.remove("value").unwrap());
        let mut path: Vec<_> = key.split('.').collect();
        let last = path.pop().unwrap().to_owned();
        let section = path.into_iter().fold(&mut file, |table, part| {
            table.entry(part).or_insert_with(|| Table::new().into()).as_table_mut().unwrap()
        });
        section.insert(last, value);
    }
    toml::to_string(&file).unwrap()
}

/// The points of an experiment, and their seed.
pub(crate) struct Experiment {
    pub(crate) seed: u64,
    pub(crate) points: Vec<Point>,
}

/// Parses an experiment; panics with the error.
pub(crate) fn parse(text: &str) -> Experiment {
    try_parse(text).unwrap_or_else(|error| panic!("{error}\nin\n{text}"))
}

/// Parses an experiment.
pub(crate) fn try_parse(text: &str) -> Result<Experiment, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let File { seed, cluster, workload, service, network, actors, interference, policy, measure, .. } = file;
    let topology = cluster.topology.as_ref().map(|path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("the topology is there");
        toml::from_str(&text).expect("the topology parses")
    });
    let mut interference = interference;
    let injected = interference.as_mut().map(|table| std::mem::take(&mut table.injection));
    let load = |spec| ScheduledInjection::load(spec, Path::new(""), |_| Err(ErrorKind::NotFound.into()));
    let injections = injected.unwrap_or_default().into_iter().map(load).collect::<Result<_, _>>();
    let interference = interference.map(|table| table.resolve()).transpose();
    let machines = Cluster::new(&cluster, topology, &service, seed).map_err(|error| error.to_string())?;
    let resolved = Arc::new(Resolved {
        cluster: machines
            .for_jobs(&workload, &cluster, actors.as_ref())
            .map_err(|error| error.to_string())?,
        workload,
        trace: None,
        service,
        network,
        actors,
        interference: interference.map_err(|error| error.to_string())?,
        injections: injections.map_err(|error| error.to_string())?,
        measure,
        digest: String::new(),
    });
    resolved.network.check().map_err(|error| error.to_string())?;
    let point = |entry: PolicyEntry| Point {
        cell: Cell::new(),
        label: entry.label().to_owned(),
        program: None,
        policy: entry.spec,
        resolved: Arc::clone(&resolved),
        id: String::new(),
    };
    Ok(Experiment { seed, points: policy.into_iter().map(point).collect() })
}

/// The world of every point of an experiment under its seed.
pub(crate) fn worlds(experiment: &Experiment) -> impl Iterator<Item = World> {
    let seed = experiment.seed;
    experiment
        .points
        .iter()
        .map(move |point| World::build(point, seed, &NoTraces).expect("the world resolves"))
        .map(|world| world.with_launcher(Arc::new(WithinTest)))
}

/// The world of an experiment's first point.
pub(crate) fn world(text: &str) -> World {
    worlds(&parse(text)).next().expect("there is a policy")
}

/// Runs every point of an experiment under its seed, and records all executions.
pub(crate) fn run_all(text: &str) -> Vec<Measured> {
    let recording = Recording { one_in: Some(1), ..Recording::default() };
    let config = RunConfig { recording, ..RunConfig::default() };
    let run = |world| measure("test", &world, &config, &()).expect("the run ends");
    worlds(&parse(text)).map(run).collect()
}

/// Runs the first point of an experiment under its seed.
pub(crate) fn run(text: &str) -> Measured {
    run_all(text).remove(0)
}

/// A cluster of single-core nodes under a Poisson stream of jobs of exponential tasks of mean 1 s.
pub(crate) fn poisson(nodes: u32, jobs: u32, tasks: u32, gap_s: f64, policy: &str) -> String {
    format!(
        r#"
        seed = 3
        [cluster]
        nodes = {nodes}
        [workload.synthetic]
        jobs = {jobs}
        tasks = {tasks}
        interarrival = {{ exponential = {{ mean = "{gap_s}s" }} }}
        [service]
        demand = {{ exponential = {{ mean = "1s" }} }}
        homogeneous = true
        correlated = false
        [[policy]]
        {policy}
        "#
    )
}

/// One job of one task of exactly one second, over links of 10 ms. The job arrives at 1 s, and a policy that binds
/// early launches it at once. The task starts at 1.01 s, ends at 2.01 s, and the client is notified at 2.02 s. `faults`
/// follow the `[network]` table.
pub(crate) fn one_task(nodes: u32, schedulers: u32, policy: &str, faults: &str) -> String {
    format!(
        r#"
        seed = 5
        [cluster]
        nodes = {nodes}
        schedulers = {schedulers}
        [workload.synthetic]
        jobs = 1
        tasks = 1
        interarrival = "1s"
        [service]
        demand = "1s"
        [network]
        one_way = "10ms"
        peer_timeout = "5s"
        {faults}
        [[policy]]
        {policy}
        "#
    )
}
