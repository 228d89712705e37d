//! Copies on real cores of this machine. No check depends on the speed or load of the machine.

use std::fs;

use volary_engine::results::CoreRow;
use volary_experiment::storage::{load_manifest, load_rows};
use volary_hosts::executor::free_cpus;

use crate::common::binary::{expect, lines};

/// An experiment as small as possible, because a busy machine gives copies little CPU time.
const REAL: &str = r#"
title = "real"
seed = 5
[cluster]
nodes = 1
[workload.synthetic]
jobs = 8
tasks = 2
interarrival = "10ms"
[service]
demand = "4ms"
[network]
one_way = "1ms"
[interference]
bernoulli = { slot = "10ms", probability = 0.5, slowdown = 2 }
[run.real]
kernel = "hash"
[run.record]
inputs = true
[[policy]]
random = {}
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("e.toml"), REAL).unwrap();
    folder
}

/// Asserts properties of a run on real cores that hold on any machine.
fn assert_burnt(run: &serde_json::Value, host: &str) {
    assert_eq!(run["jobs"]["finished"], 8, "{run}");
    let cores = &run["fidelity"]["cores"];
    assert_eq!((&cores["kernel"], &cores["degrade"]), (&"hash".into(), &"threads".into()), "{cores}");
    let [core] = &cores["cores"].as_array().unwrap()[..] else { panic!("{cores}") };
    assert_eq!((&core["core"], &core["host"]), (&0.into(), &host.into()));
    let cpu = core["cpu"].as_u64().unwrap();
    assert!(free_cpus().iter().any(|free| u64::from(free.0) == cpu), "{core}");
    assert!(core["rounds_per_s"].as_f64().unwrap() > 0.0);
    let (copies, asked) = (&cores["copies"], cores["asked_s"].as_f64().unwrap());
    assert_eq!(copies["count"], 16, "{cores}");
    // Each copy takes from 4 to 8 ms.
    assert!((0.0639..0.1281).contains(&asked), "{cores}");
    assert!(
        cores["achieved_s"].as_f64().unwrap() > 0.5 * asked,
        "no core is much faster than calibrated: {cores}"
    );
}

#[test]
fn copies_burn_a_core_of_this_machine_and_are_replayed() {
    let _machine = crate::machine();
    let folder = folder();
    let (out, _) = expect(folder.path(), "run e.toml --runtime local --out r --json", 0);
    assert_burnt(&lines(&out)[0], "local");
    let (table, _) = expect(folder.path(), "report r", 0);
    assert!(table.contains("real cores") || table.contains("DEGRADED"), "{table}");
    let report = fs::read_to_string(folder.path().join("r/report.html")).unwrap();
    assert!(report.contains("<h3>Real cores</h3>"));
    let (out, _) = expect(folder.path(), "replay r", 0);
    assert!(out.contains("effects identical"), "{out}");
    // Virtual time ignores `[run.real]`.
    let (out, _) = expect(folder.path(), "run e.toml --out v --json", 0);
    assert!(lines(&out)[0]["fidelity"].is_null());
    let (out, _) = expect(folder.path(), "plan e.toml", 0);
    assert!(out.contains("calculated or timed here, not burnt"), "{out}");
}

/// The work of a copy that is suspended on one core and continues on another core is done once. Two cores do the work
/// of all copies, and at most a chunk more per suspension.
#[test]
fn suspended_copies_lose_no_work() {
    let _machine = crate::machine();
    if free_cpus().len() < 2 {
        return; // the run would be refused, as tested below
    }
    let folder = folder();
    let set = [
        "cluster.cores=2",
        "workload.synthetic.tasks=3",
        "service.demand=40ms",
        "interference.bernoulli.probability=0",
        "policy=[{kairos={quantum=\"5ms\",pass=\"eager\",queue=8}}]",
    ];
    let set: String = set.iter().map(|set| format!(" --set {set}")).collect();
    let run = format!("run e.toml --runtime local --out r --json{set}");
    let (out, _) = expect(folder.path(), &run, 0);
    let (line, root) = (&lines(&out)[0], folder.path().join("r"));
    let copies = &line["copies"];
    assert_eq!((&line["jobs"]["finished"], &line["tasks"]["finished"]), (&8.into(), &24.into()), "{line}");
    assert_eq!((&copies["started"], &copies["finished"]), (&24.into(), &24.into()), "{line}");
    let suspensions = copies["suspensions"].as_f64().unwrap();
    assert!(suspensions > 20.0, "{line}");
    let run = &load_manifest(&root).unwrap().runs[0];
    let cores: Vec<CoreRow> = load_rows(&root, run).unwrap();
    assert!(cores.iter().any(|row| row.core == 0) && cores.iter().any(|row| row.core == 1), "{cores:?}");
    // Measured by the rounds that the burners counted, independent of the time they took.
    let done: f64 = cores.iter().map(|row| row.done).sum();
    let work = 24.0 * 0.04;
    assert!(done > 0.98 * work && done < 1.02 * work, "{done} s of {work} s in {suspensions} suspensions");
    let (out, _) = expect(folder.path(), "replay r", 0);
    assert!(out.contains("effects identical"), "{out}");
}

#[test]
fn copies_burn_real_cores_of_hosts() {
    let _machine = crate::machine();
    let folder = folder();
    let (out, _) = expect(folder.path(), "run e.toml --runtime hosts --spawn 1 --out r --json", 0);
    assert_burnt(&lines(&out)[0], "local1");
    let (out, _) = expect(folder.path(), "replay r", 0);
    assert!(out.contains("effects identical"), "{out}");
}

#[test]
fn real_and_timed_copies_are_compared_in_one_command() {
    let _machine = crate::machine();
    let folder = folder();
    let (out, _) = expect(folder.path(), "validate e.toml --runtimes virtual,local --out r --quiet", 0);
    for words in ["local timed", "local burnt", "8 jobs with equal arrivals and demands"] {
        assert!(out.contains(words), "{words} is not in\n{out}");
    }
    assert!(folder.path().join("r/local-burnt-1/summary.jsonl").exists());
    let timed = fs::read_to_string(folder.path().join("r/local-timed-1/summary.jsonl")).unwrap();
    assert!(lines(&timed)[0]["fidelity"]["cores"].is_null());
}

#[test]
fn too_few_cpus_are_refused_with_a_remedy() {
    let _machine = crate::machine();
    assert!(free_cpus().len() < 900, "this machine has CPUs for what should be too much");
    let folder = folder();
    let local = "run e.toml --runtime local --out r --set";
    let (_, err) = expect(folder.path(), &format!("{local} cluster.nodes=900"), 2);
    assert!(err.contains("real work takes a CPU for each emulated core: 900 cores there"), "{err}");
    assert!(!folder.path().join("r").exists());
    let (_, err) = expect(folder.path(), &format!("{local} run.real.spare=900"), 2);
    assert!(err.contains("run.real.spare") && err.contains("and 0 CPUs free"), "{err}");
    if free_cpus().len() < 64 {
        let (_, err) = expect(folder.path(), "run e.toml --runtime hosts --spawn 64", 2);
        assert!(err.contains("agents on one machine need CPUs of their own"), "{err}");
    }
    for (key, value, known) in [("kernel", "sha1", "hash"), ("degrade", "quota", "threads")] {
        let (_, err) = expect(folder.path(), &format!("run e.toml --set run.real.{key}={value}"), 2);
        assert!(err.contains(value) && err.contains(known), "{err}");
    }
    for (cpus, words) in [
        ("2-1", "is not a list of CPUs"),
        ("x", "is not a list of CPUs"),
        ("65535", "not among those that this process may use"),
    ] {
        let (_, err) =
            expect(folder.path(), &format!("agent --listen 127.0.0.1:0 --identity . --cpus {cpus}"), 2);
        assert!(err.contains(words), "{cpus}: {err}");
    }
}
