//! Nodes shared by tasks and short of memory, and invariants of their results in every runtime.

use std::fs;
use std::path::Path;

use serde_json::Value;
use volary_engine::results::{CopyRow, JobRow};
use volary_experiment::storage::{load_manifest, load_rows};

use super::binary::{expect, lines};

/// Maximum number of copies that a node runs at once.
const PODS: usize = 6;

/// An experiment in which users request half of the memory that tasks use, so that nodes get more tasks than fit. It
/// has losses and interference.
const WORLD: &str = r#"
title = "shared nodes"
seed = 11
[cluster]
nodes = 6
schedulers = 1
shared = true
cpu = 2
memory = "4GiB"
pods = 6
report = "100ms"
[workload.synthetic]
jobs = 60
tasks = 4
interarrival = { exponential = { mean = "30ms" } }
[service]
demand = { exponential = { mean = "40ms" } }
[service.usage]
cpu = 0.7
memory = { exponential = { mean = 1 } }
variation = 0.5
segment = "10ms"
request = 0.5
[network]
one_way = "1ms"
loss = 0.01
[interference]
bernoulli = { slot = "100ms", probability = 0.1, slowdown = 4 }
[[policy]]
random = {}
[[policy]]
distsched = { cycle = "50ms" }
"#;

/// Runs the world in virtual time and with the arguments `args`. Asserts that both have the same jobs and all finish,
/// that some copies are throttled and some evicted, that no node exceeds its number of copies, and that completed
/// copies do the same work.
pub fn assert_sharing(folder: &Path, args: &str) {
    fs::write(folder.join("shared.toml"), WORLD).unwrap();
    let run = |out: &str, args: &str| {
        let (said, _) = expect(folder, &format!("run shared.toml --json --quiet --out {out} {args}"), 0);
        let found = lines(&said);
        assert_eq!(found.len(), 2, "{said}");
        found.iter().for_each(assert_shared);
        found
    };
    // Six times as fast as real time, since a task is not placed on the node that evicted it for a minute.
    let (here, there) = (run("virtual", ""), run("real", &format!("{args} --set run.speed=6")));
    for (expected, run) in here.iter().zip(&there) {
        let (useful, expected) = (useful_core_h(run), useful_core_h(expected));
        // In real time a segment ends late, and its copy keeps the segment's usage until then. A usage differs
        // from the mean by at most half (`variation`), up or down, so the changes of CPU-time almost cancel out over
        // 240 copies.
        assert!((useful / expected - 1.0).abs() < 0.05, "{useful} core-hours instead of {expected}: {run}");
    }
    for out in ["virtual", "real"] {
        let root = folder.join(out);
        for id in load_manifest(&root).unwrap().runs {
            assert_eq!(load_rows::<JobRow>(&root, &id).unwrap().len(), 60);
            assert_within_pods(&load_rows(&root, &id).unwrap());
        }
    }
}

fn assert_shared(run: &Value) {
    let shared = &run["shared"];
    assert_eq!(run["jobs"]["finished"], 60, "{run}");
    assert!(shared["evictions"].as_u64().unwrap() > 0, "{run}");
    let throttled = shared["throttled"].as_f64().unwrap();
    assert!(throttled > 0.0 && throttled < 1.0, "{run}");
    assert!(run["messages"]["by_kind"]["usage.evicted"].as_u64().unwrap() > 0, "{run}");
}

/// CPU-time of the copies that ran to their end, core-hours.
fn useful_core_h(run: &Value) -> f64 {
    let hours = |key: &str| run["shared"][key].as_f64().unwrap();
    hours("used_core_h") - hours("wasted_core_h")
}

/// Asserts that no node exceeds its number of copies. A copy that begins when another copy ends does not overlap with
/// it.
fn assert_within_pods(copies: &[CopyRow]) {
    let begun = copies.iter().map(|copy| (copy.start, 1, copy.core));
    let ended = copies.iter().map(|copy| (copy.end, -1, copy.core));
    let mut changes: Vec<(f64, i32, u32)> = begun.chain(ended).collect();
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut running = [0; 6];
    for (at, change, core) in changes {
        let node = core as usize / PODS;
        running[node] += change;
        assert!(running[node] <= PODS as i32, "{} copies on node {node} at {at} s", running[node]);
    }
    assert!(copies.iter().all(|copy| copy.core < 36), "cores are numbered by pod slots");
}
