//! Experiments as text, run in virtual time.
#![allow(dead_code, reason = "each test binary uses some of it")]

use volary::results::Measured;
use volary::runtime::virtual_time::{Watch, measure};
use volary::spec::Experiment;

/// Parses an experiment; panics with the rendered error.
pub fn parse(text: &str) -> Experiment {
    Experiment::parse("test", text).unwrap_or_else(|error| panic!("{error}\nin\n{text}"))
}

/// Runs every point of an experiment under its seed.
pub fn run(text: &str) -> Vec<Measured> {
    let experiment = parse(text);
    experiment
        .points
        .iter()
        .map(|point| {
            let workload = point.workload(experiment.seed).expect("the workload builds");
            measure("test", point, experiment.seed, &experiment.run, &workload, &Watch::default())
                .expect("the run ends")
        })
        .collect()
}

/// A cluster of single-core nodes under a Poisson stream of jobs of exponential tasks of mean 1 s.
pub fn poisson(nodes: u32, jobs: u32, tasks: u32, gap_s: f64, policy: &str) -> String {
    format!(
        r#"
        title = "test"
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
