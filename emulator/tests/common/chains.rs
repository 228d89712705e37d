//! A mix of classes whose jobs are chains or graphs of stages, and invariants of its results in every runtime.

use std::fs;
use std::path::Path;

use volary_engine::results::{CopyRow, JobRow};
use volary_experiment::storage::{load_manifest, load_rows};

use super::binary::{expect, lines};

/// An experiment with three classes of chains and one of graphs, losses and interference, under policies with and
/// without preemption.
const MIX: &str = r#"
title = "chains"
seed = 11
[cluster]
nodes = 6
cores = 2
[workload.mix]
jobs = 40
interarrival = { exponential = { mean = "25ms" } }
class = [
  { name = "pair", weight = 3, stages = [{ tasks = 3, demand = "40ms" }, { tasks = 2, demand = { exponential = { mean = "30ms" } } }] },
  { name = "triple", weight = 2, stages = [{ tasks = 1, demand = "20ms" }, { tasks = 4, demand = "50ms" }, { tasks = 1, demand = "20ms" }] },
  { name = "single", weight = 1, stages = [{ tasks = 2, demand = "300ms" }], long = true },
  { name = "join", weight = 1, stages = [{ tasks = 2, demand = "40ms" }, { tasks = 1, demand = "20ms", after = [] }, { tasks = 3, demand = "20ms", after = [0, 1] }, { tasks = 1, demand = "10ms", after = [0] }] },
]
[network]
one_way = "2ms"
loss = 0.01
[interference]
bernoulli = { slot = "100ms", probability = 0.1, slowdown = 4 }
[[policy]]
kairos = { quantum = "20ms", pass = "eager" }
[[policy]]
label = "work"
kairos = { quantum = "20ms", interval = "50ms", attained = "work" }
[[policy]]
murmuration = { order = "las", quantum = "20ms" }
[[policy]]
sparrow = {}
"#;

/// Number of tasks of a stage, and the stages that it waits for.
type Stage = (u32, &'static [usize]);

/// The stages of each class.
const STAGES: [(&str, &[Stage]); 4] = [
    ("pair", &[(3, &[]), (2, &[0])]),
    ("triple", &[(1, &[]), (4, &[0]), (1, &[1])]),
    ("single", &[(2, &[])]),
    ("join", &[(2, &[]), (1, &[]), (3, &[0, 1]), (1, &[0])]),
];

/// Runs the mix in virtual time and with the arguments `args`. Asserts that both have the same jobs, that all jobs
/// finish, and that no task of a stage begins before the stages that it waits for have ended.
pub fn assert_chains(folder: &Path, args: &str) {
    fs::write(folder.join("mix.toml"), MIX).unwrap();
    let run = |out: &str, args: &str| {
        let (said, _) = expect(folder, &format!("run mix.toml --json --quiet --out {out} {args}"), 0);
        let lines = lines(&said);
        assert_eq!(lines.len(), 4, "{said}");
        assert!(lines.iter().all(|run| run["jobs"]["finished"] == 40), "{said}");
        assert!(lines.iter().all(|run| run["graphs"]["slowdown"]["p50"].as_f64().unwrap() > 1.0), "{said}");
        assert!(lines[..3].iter().all(|run| run["copies"]["suspensions"].as_u64().unwrap() > 0), "{said}");
    };
    run("virtual", "");
    run("real", args);
    let [here, there] = ["virtual", "real"].map(|out| cells(&folder.join(out)));
    for ((expected, _), (jobs, _)) in here.iter().zip(&there) {
        let key = |job: &JobRow| (job.job, job.class.clone(), job.tasks);
        assert!(jobs.iter().map(key).eq(expected.iter().map(key)));
    }
    for (jobs, copies) in here.iter().chain(&there) {
        jobs.iter().for_each(|job| assert_in_order(job, copies));
    }
}

/// The jobs and copies of every cell of a study.
fn cells(root: &Path) -> Vec<(Vec<JobRow>, Vec<CopyRow>)> {
    let ids = load_manifest(root).unwrap().runs;
    ids.iter().map(|id| (load_rows(root, id).unwrap(), load_rows(root, id).unwrap())).collect()
}

fn assert_in_order(job: &JobRow, copies: &[CopyRow]) {
    let (_, stages) = STAGES.iter().find(|(class, _)| *class == &*job.class).unwrap();
    assert_eq!(job.tasks, stages.iter().map(|(tasks, _)| tasks).sum::<u32>(), "{job:?}");
    let mut first = 0;
    let mut ends: Vec<f64> = Vec::new();
    for (tasks, after) in *stages {
        let stage = first..first + tasks;
        let rows = || copies.iter().filter(|row| row.job == job.job && stage.contains(&row.task));
        assert!(stage.clone().all(|task| rows().any(|row| row.task == task)), "{job:?}");
        let begun = rows().map(|row| row.start).fold(f64::INFINITY, f64::min);
        let ended = after.iter().map(|&other| ends[other]).fold(job.arrival, f64::max);
        assert!(begun >= ended, "stage from task {first} begins at {begun} s, after {ended} s: {job:?}");
        ends.push(rows().map(|row| row.end).fold(ended, f64::max));
        first = stage.end;
    }
}
