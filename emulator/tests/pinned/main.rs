//! Tests that results of every experiment file (shortened) and of 300 drawn worlds equal pinned results to the bit.
//!
//! `experiments.tsv` and `swarm.tsv` hold one line per run: experiment, policy, number of the run, order hash, events,
//! and a digest of the whole summary without the cost of the run. A refactoring must not change any line. After
//! a change of the definition of a number, this command with `VOLARY_TRACES` set writes the files again:
//! `VOLARY_PIN=write cargo test -p volary --test pinned -- --include-ignored --test-threads 1`. `VOLARY=PATH` checks
//! another binary.
//!
//! The tests run only on Linux on x86-64: logarithms and powers come from the platform's libm, and their last bits
//! differ.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

/// Number of jobs to which an experiment file is shortened, if not 40; 0 leaves the number unchanged.
const JOBS: &[(&str, u32)] = &[
    // All jobs except the last hundred are history.
    ("3sigma/bursts", 3100),
    ("3sigma/e2e", 3100),
    ("3sigma/fig4-10", 3100),
    ("3sigma/fig4-11", 3100),
    ("3sigma/fig4-12", 3100),
    ("3sigma/fig4-5", 0),
    ("3sigma/fig4-7", 3100),
    ("3sigma/fig4-8", 3100),
    ("3sigma/fig4-9", 3100),
    ("3sigma/history", 3100),
    ("3sigma/late", 3100),
    ("3sigma/sensitivity", 3100),
    ("distsched/fig5-10", 3100),
    ("distsched/fig5-5", 3100),
    ("distsched/fig5-7", 3100),
    ("distsched/fig5-9", 3100),
    ("distsched/max", 3100),
    ("faults/detector", 600),
    ("faults/injection", 600),
    ("faults/schedulers", 600),
    ("google/eagle", 500),
    ("hosts/first", 0),
    ("hosts/gossip", 0),
    ("hosts/placements", 500),
    ("kairos/centre", 500),
    ("kairos/fig8", 500),
    ("kairos/fig8-subtrace", 500),
    ("kairos/fig9", 500),
    ("kairos/quantum", 2000),
    ("latin-square/fig4", 2000),
    ("latin-square/fig4-gang", 1000),
    ("latin-square/fig4-heavy", 5000),
    ("latin-square/fig5-6", 200),
    ("latin-square/fig7", 200),
    ("latin-square/table2", 0),
    ("latin-square/table5", 200),
    ("latin-square/table5-drain", 200),
    ("kairos/bursts", 100),
    ("murmuration/drift", 600),
    ("murmuration/fig3-4", 1000),
    ("murmuration/fig7", 0),
    ("murmuration/fig8", 0),
    ("murmuration/fig9-10", 500),
    ("murmuration/fig11", 50),
    ("murmuration/fig12", 200),
    ("murmuration/fig13", 200),
    ("murmuration/fig14", 200),
    ("murmuration/fig15", 50),
    ("murmuration/fig16", 100),
    ("murmuration/messages", 0),
    ("murmuration/prototype", 500),
    ("murmuration/staleness/delay", 400),
    ("murmuration/staleness/fan-out", 200),
    ("murmuration/staleness/loss", 300),
    ("murmuration/staleness/schedulers", 200),
    ("pigeon/failover", 2500),
    ("pigeon/failover-both", 0),
    ("queues", 500),
    ("quickstart", 1000),
    ("stragglers/real-cores", 0),
    ("yahoo/baselines", 500),
    ("yahoo/hybrid", 500),
];

/// Experiments that read published traces.
const PUBLISHED: &[&str] = &[
    "google/eagle",
    "kairos/fig8-subtrace",
    "kairos/fig9",
    "murmuration/fig12",
    "murmuration/fig13",
    "murmuration/fig14",
    "murmuration/fig15",
    "murmuration/fig16",
    "murmuration/prototype",
    "pigeon/fig5",
    "pigeon/fig6-7",
    "pigeon/fig6-7-cloudera",
    "pigeon/fig8",
    "pigeon/weight",
    "traces/dependencies",
    "yahoo/baselines",
    "yahoo/hybrid",
];

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pinned")
}

fn experiments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments")
}

/// Experiment files by name, without profiles, topologies and classes of jobs, and without programs in other languages.
fn files(folder: &Path, found: &mut BTreeMap<String, PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.strip_prefix(experiments()).unwrap().with_extension("").display().to_string();
        if path.is_dir() && !["mixes", "profiles", "rigid", "topologies"].contains(&name.as_str()) {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.insert(name, path);
        }
    }
}

/// Writes every number of a summary, with keys in order, except the keys named below.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            out.push('{');
            for (key, value) in map.iter().collect::<BTreeMap<_, _>>() {
                // Left out if zero: the pinned digests of runs without suspensions or work in progress are older than
                // these keys.
                let counted = ["suspensions", "suspended_s", "in_progress", "in_progress_s"];
                let none = counted.contains(&key.as_str()) && value.as_f64() == Some(0.0);
                // The first six keys are cost, id and sampling. The others follow from pinned numbers, and are newer
                // than the digests:
                // - interference: from the profile
                // - over_10x, job_wait_s, bounded_slowdown, unsettled: from the times of jobs
                // - graphs: from times and stages
                // - bytes: from the kinds of messages
                let besides = [
                    "cpu_s",
                    "planning_cpu_s",
                    "wall_s",
                    "peak_rss_bytes",
                    "run",
                    "sampled_one_in",
                    "interference",
                    "over_10x",
                    "job_wait_s",
                    "bounded_slowdown",
                    "graphs",
                    "unsettled",
                    "bytes",
                ];
                if !none && !besides.contains(&key.as_str()) {
                    write!(out, "{key:?}:").unwrap();
                    canonical(value, out);
                    out.push(',');
                }
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

/// FNV-1a, 64 bits.
fn digest(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// One line per run of an experiment file.
fn lines(name: &str, file: &Path, set: &[String]) -> Vec<String> {
    let out = tempfile::tempdir().unwrap();
    let binary = env::var("VOLARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_volary").to_owned());
    let mut command = Command::new(binary);
    command.arg("run").arg(file).args(["--runtime", "virtual", "--repeat", "1", "--threads", "1"]);
    command.args(["--json", "--quiet", "--no-report", "--out"]).arg(out.path().join("run"));
    let ran = command.args(set.iter().flat_map(|set| ["--set", set])).output().unwrap();
    assert!(ran.status.success(), "{name}: {}", String::from_utf8_lossy(&ran.stderr));
    let mut lines = Vec::new();
    for line in String::from_utf8(ran.stdout).unwrap().lines() {
        let mut summary: Value = serde_json::from_str(line).unwrap();
        // The load follows from the experiment, and earlier versions did not state it.
        summary.as_object_mut().unwrap().remove("load");
        let Some(policy) = summary["policy"].as_str() else { continue };
        let mut text = String::new();
        canonical(&summary, &mut text);
        let engine = &summary["engine"];
        let (hash, events) = (engine["order_hash"].as_str().unwrap(), &engine["events"]);
        lines.push(format!("{name}\t{policy}\t{}\t{hash}\t{events}\t{:016x}", lines.len(), digest(&text)));
    }
    assert!(!lines.is_empty(), "{name} printed no result");
    lines
}

/// Compares runs with the pinned lines of the experiments for which `mine` is true, or writes these lines.
fn check(kind: &str, mine: impl Fn(&str) -> bool, ran: &[String]) {
    let path = home().join(format!("{kind}.tsv"));
    let name = |line: &str| line.split('\t').next().unwrap().to_owned();
    let text = fs::read_to_string(&path).unwrap();
    let (pinned, others): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| mine(&name(line)));
    if env::var("VOLARY_PIN").is_ok_and(|mode| mode == "write") {
        let mut lines: Vec<&str> = others.iter().copied().chain(ran.iter().map(String::as_str)).collect();
        if !others.is_empty() {
            lines.sort_by_key(|line| name(line));
        }
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        return;
    }
    let moved: Vec<_> = pinned.iter().zip(ran).filter(|(pinned, ran)| **pinned != ran.as_str()).collect();
    let shown: Vec<_> = moved.iter().take(10).map(|(pinned, ran)| format!("- {pinned}\n+ {ran}")).collect();
    assert!(moved.is_empty(), "{} of {} runs moved:\n{}", moved.len(), ran.len(), shown.join("\n"));
    assert_eq!(pinned.len(), ran.len(), "the number of runs differs from the pinned number");
}

/// Runs tasks on two threads; each thread takes the next task when it is free. Returns the lines of all tasks in order.
fn both<T: Sync>(tasks: &[T], work: impl Fn(&T) -> Vec<String> + Sync) -> Vec<String> {
    let (next, work) = (AtomicUsize::new(0), &work);
    let mut done: Vec<(usize, Vec<String>)> = thread::scope(|scope| {
        let threads = [(); 2].map(|()| {
            scope.spawn(|| {
                let mine = iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                mine.map_while(|at| Some((at, work(tasks.get(at)?)))).collect::<Vec<_>>()
            })
        });
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().flat_map(|(_, lines)| lines).collect()
}

/// Checks the experiments that read published traces, or all others.
fn check_experiments(published: bool) {
    let mut found = BTreeMap::new();
    files(&experiments(), &mut found);
    let unknown = JOBS.iter().filter(|(name, _)| !found.contains_key(*name)).count();
    assert_eq!(unknown, 0, "an experiment file was renamed");
    found.retain(|name, _| PUBLISHED.contains(&&**name) == published);
    let tasks: Vec<_> = found.iter().collect();
    let ran = both(&tasks, |&(name, path)| {
        let jobs = JOBS.iter().find(|(known, _)| known == name).map_or(40, |(_, jobs)| *jobs);
        let text = fs::read_to_string(path).unwrap();
        if text.contains("[workload.gossip]") {
            let set = ["cluster.nodes=10", "workload.gossip.duration=500s"].map(str::to_owned);
            // The number of nodes is kept where faults name members by number, or members have a fixed number of
            // neighbours.
            let keeps_nodes =
                ["nodes = 1\n", "nodes:", "node:", "regular"].iter().any(|word| text.contains(word));
            return lines(name, path, if keeps_nodes { &set[1..] } else { &set });
        }
        let form = ["trace", "mix"].into_iter().find(|form| text.contains(&format!("[workload.{form}]")));
        let set = (jobs > 0).then(|| format!("workload.{}.jobs={jobs}", form.unwrap_or("synthetic")));
        lines(name, path, &Vec::from_iter(set))
    });
    check("experiments", |name| PUBLISHED.contains(&name) == published, &ran);
}

#[test]
fn experiments_give_the_pinned_results() {
    check_experiments(false);
}

#[test]
#[ignore = "reads published traces, which may not be redistributed: set VOLARY_TRACES"]
fn experiments_on_published_traces_give_the_pinned_results() {
    assert!(
        env::var_os("VOLARY_TRACES").is_some(),
        "set VOLARY_TRACES to the folder of the published traces"
    );
    check_experiments(true);
}

#[test]
fn drawn_worlds_give_the_pinned_results() {
    let text = fs::read_to_string(home().join("swarm.txt")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("topologies")).unwrap();
    for file in fs::read_dir(home().join("topologies")).unwrap().map(|entry| entry.unwrap().path()) {
        fs::copy(&file, folder.path().join("topologies").join(file.file_name().unwrap())).unwrap();
    }
    let worlds: Vec<(String, &str)> = text
        .split("=== ")
        .filter_map(|world| world.split_once('\n'))
        .map(|(name, text)| (name.replace(' ', "-"), text))
        .collect();
    assert_eq!(worlds.len(), 300);
    let ran = both(&worlds, |(name, text)| {
        let path = folder.path().join(format!("{name}.toml"));
        fs::write(&path, text).unwrap();
        lines(name, &path, &[])
    });
    check("swarm", |_| true, &ran);
}
