//! Tests of runs that stop early, fail in part, or are resumed: results must not depend on this.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::binary::{EXPERIMENT, command, expect, finished, folder, forget, results, text, volary};

fn state(run: &Path) -> String {
    let text = fs::read_to_string(run.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    manifest["state"].as_str().unwrap().to_owned()
}

#[test]
fn threads_and_repetition_do_not_change_results() {
    let folder = folder();
    let run = |out: &str, threads: &str| {
        let args = format!("run e.toml --json --repeat 3 --out {out} --threads {threads}");
        results(&expect(folder.path(), &args, 0).0)
    };
    let first = run("a", "1");
    assert_eq!(first, run("b", "1"));
    assert_eq!(first, run("c", "2"));
}

/// Ctrl-C keeps finished runs. After `--resume`, the results equal those of an undisturbed run.
#[test]
fn an_interrupted_run_is_resumed() {
    let folder = folder();
    let here = folder.path();
    // Two runs are short, and two are so long that the signal always arrives before their end.
    let sweep = "[sweep]\n\"workload.synthetic.jobs\" = [60, 300000]\n";
    fs::write(here.join("e.toml"), format!("{EXPERIMENT}{sweep}")).unwrap();
    let args = "run e.toml --json --quiet --threads 1 --out";
    let child = command(here)
        .args(format!("{args} r").split(' '))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let patience = Instant::now();
    while finished(&here.join("r")).is_empty() {
        assert!(patience.elapsed() < Duration::from_secs(120), "no run ever finished");
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(3));
    let err = text(&ended.stderr);
    let rest = "run e.toml --json --quiet --threads 1 --resume --out r\n";
    assert!(err.contains("to run the rest: ") && err.contains(rest), "{err}");
    assert_eq!(state(&here.join("r")), "interrupted");
    let (table, said) = expect(here, "report r", 0);
    assert!(table.contains("of 4 runs: interrupted"), "{table}");
    assert!(said.contains("to run what is missing: ") && said.contains(rest), "{said}");
    let kept = finished(&here.join("r")).len();
    assert!((1..4).contains(&kept), "{kept} runs of 4");
    let all = |out: &str| results(&expect(here, &format!("{args} {out}"), 0).0);
    let resumed = all("r --resume");
    assert_eq!(state(&here.join("r")), "finished");
    assert_eq!(resumed, all("whole"));
}

/// Several runs start at the same time, as a shell starts them with `&`.
#[test]
fn runs_that_start_together_use_different_folders() {
    let folder = folder();
    let here = folder.path();
    let start = |_| command(here).args(["run", "e.toml", "--quiet"]).stderr(Stdio::piped()).spawn().unwrap();
    let started: Vec<_> = (0..24).map(start).collect();
    for child in started {
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", text(&ended.stderr));
    }
    let folders = fs::read_dir(here.join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<_> = folders.map(|run| (finished(&run).len(), state(&run))).collect();
    assert_eq!(found, vec![(2, "finished".to_owned()); 24]);
}

/// A run that cannot start leaves no folder behind.
#[test]
fn a_run_that_is_refused_leaves_no_folder() {
    let folder = folder();
    expect(folder.path(), "run e.toml --runtime hosts", 2);
    assert!(!folder.path().join("runs").exists());
}

/// A small experiment whose folder contains every kind of data: a sweep, caches, deadlines, a log of inputs, a claim.
const DAMAGED: &str = r#"title = "damaged"
[cluster]
nodes = 5
cores = 2
[workload.synthetic]
jobs = 12
tasks = 4
interarrival = { exponential = { mean = "500ms" } }
cutoff = "1s"
slo = { share = 0.5, slack = 0.5 }
[service]
demand = { exponential = { mean = "1s" } }
[network]
one_way = "10ms"
[sweep]
"network.loss" = [0.0, 0.1]
[run.record]
inputs = true
tasks_one_in = 1
[[policy]]
murmuration = {}
[[policy]]
kairos = { quantum = "300ms" }
[[claim]]
says = "x"
check = ["kairos.response_s.p50 < 10 * murmuration.response_s.p50"]
"#;

/// The contents of the tables of jobs and copies.
fn tables(here: &Path, run: &str) -> [String; 2] {
    expect(here, &format!("export {run} --out tables"), 0);
    ["jobs", "tasks"].map(|name| fs::read_to_string(here.join(format!("tables/{name}.csv"))).unwrap())
}

/// After `--resume`, the results of a run with a damaged file equal those of the undamaged run. A damaged manifest
/// cannot be restored; the message names it, and suggests another folder.
#[test]
fn resuming_restores_a_damaged_file() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("m.toml"), DAMAGED).unwrap();
    let (whole, _) = expect(here, "run m.toml --json --out whole", 0);
    let (whole, rows) = (results(&whole), tables(here, "whole"));
    let mut names: Vec<_> =
        fs::read_dir(here.join("whole")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert!(names.len() > 9, "{names:?}");
    let mut seed = 1_u64;
    let mut draw = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for name in names.iter().filter(|name| *name != ".lock") {
        for truncates in [true, false, false] {
            let _ = fs::remove_dir_all(here.join("d"));
            fs::create_dir(here.join("d")).unwrap();
            for other in &names {
                fs::copy(here.join("whole").join(other), here.join("d").join(other)).unwrap();
            }
            let path = here.join("d").join(name);
            let mut bytes = fs::read(&path).unwrap();
            let at = draw(bytes.len());
            if truncates {
                bytes.truncate(at);
            } else {
                bytes[at] ^= 1 << draw(8);
            }
            fs::write(&path, bytes).unwrap();
            let place = format!("{name:?} {} at {at}", if truncates { "cut" } else { "flipped" });
            let resumed = volary(here, "run m.toml --json --resume --out d");
            let (out, err) = (text(&resumed.stdout), text(&resumed.stderr));
            if name == "manifest.json" && resumed.status.code() == Some(2) {
                assert!(err.contains("another folder") || err.contains("--out"), "{place}: {err}");
                continue;
            }
            assert_eq!(resumed.status.code(), Some(0), "{place}: {err}");
            assert_eq!(results(&out), whole, "{place}: {err}");
            assert!(tables(here, "d") == rows, "{place}: {err}");
        }
    }
}

#[test]
fn resuming_runs_only_missing_runs() {
    let folder = folder();
    let here = folder.path();
    let args = "run e.toml --json --repeat 2 --out r";
    let (before, _) = expect(here, args, 0);
    let runs = finished(&here.join("r"));
    forget(&here.join("r"));
    let (after, err) = expect(here, &format!("{args} --resume"), 0);
    assert!(err.contains("kept 3 of 4 runs, running 1"), "{err}");
    assert_eq!(results(&after), results(&before));
    assert_eq!(finished(&here.join("r")), runs);
}

/// Without `--out`, a second run takes another folder, and `--resume` continues in that folder.
#[test]
fn the_latest_run_is_resumed() {
    let folder = folder();
    let here = folder.path();
    expect(here, "run e.toml --quiet", 0);
    expect(here, "run e.toml --quiet --seed 8", 0);
    let second = here.join("runs/e-2");
    forget(&second);
    let (_, err) = expect(here, "run e.toml --quiet --seed 8 --resume", 0);
    assert!(err.contains("kept 1 of 2 runs, running 1"), "{err}");
    assert_eq!((finished(&here.join("runs/e")).len(), finished(&second).len()), (2, 2));
    assert!(!here.join("runs/e-3").exists());
}

/// A folder with another experiment's results is not resumed, since its report would lose these results.
#[test]
fn another_experiment_is_not_resumed() {
    let folder = folder();
    let here = folder.path();
    expect(here, "run e.toml --quiet --out r", 0);
    let before = fs::read(here.join("r/manifest.json")).unwrap();
    let (_, err) = expect(here, "run e.toml --quiet --out r --set cluster.nodes=9 --resume", 2);
    assert!(err.contains("another experiment") && err.contains("nodes") && err.contains("--out"), "{err}");
    assert_eq!(fs::read(here.join("r/manifest.json")).unwrap(), before);
}

/// Under some seeds a job has more tasks than is possible. This is detected only when the run begins.
#[test]
fn runs_that_fail_are_recorded_and_the_other_runs_finish() {
    let folder = folder();
    let here = folder.path();
    let tasks = "workload.synthetic.tasks={empirical={values=[1,1e9]}}";
    let set = format!("e.toml --set workload.synthetic.jobs=1 --set {tasks} --seed");
    // The plan builds the jobs of the first seed, so this seed must be valid.
    let harmless = |seed: &u32| volary(here, &format!("plan {set} {seed}")).status.success();
    let seed = (0..64).find(harmless).unwrap();
    let (out, err) = expect(here, &format!("run {set} {seed} --json --repeat 12 --out r"), 3);
    assert!(err.contains("failed:") && err.contains("tasks, more than"), "{err}");
    assert_eq!(state(&here.join("r")), "failed");
    let count = finished(&here.join("r")).len();
    assert!((2..24).contains(&count), "{count} runs of 24");
    assert_eq!(results(&out).iter().filter(|line| line.get("policy").is_some()).count(), count);
    assert_eq!(fs::read_dir(here.join("r/failed")).unwrap().count(), 24 - count);
}

#[test]
fn repeat_auto_stops_at_the_precision_and_states_the_interval() {
    let folder = folder();
    let here = folder.path();
    let (out, _) = expect(here, "run e.toml --repeat auto --set precision=0.2 --out r", 0);
    assert!(out.contains('±'), "{out}");
    let found = finished(&here.join("r")).len();
    assert!((4..200).contains(&found), "{found} cells");
}
