//! Runs on agents on loopback: their results against virtual time, clocks, lost hosts and controllers, leases.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, EXPERIMENT, LONG, finish, kill};
use crate::common::binary::{expect, lines};
use serde_json::Value;

/// What a machine of two loaded cores may add to a response or makespan, in emulated seconds, which are real ones here.
const MACHINE_BUDGET_S: f64 = 1.0;
/// The largest bound of a clock error on loopback: a round trip that a loaded machine delays.
const CLOCK_BUDGET_S: f64 = 0.1;

/// Checks a time on hosts against the same one in virtual time. Both meet the same jobs; their schedulers draw other
/// nodes when messages come in another order.
fn assert_near(there: &Value, here: &Value, what: impl Fn(&Value) -> f64) {
    let (there, here) = (what(there), what(here));
    assert!(
        there > 0.5 * here && there < 1.5 * here + MACHINE_BUDGET_S,
        "{there} s on hosts, {here} s in virtual time"
    );
}

#[test]
fn the_same_experiment_on_hosts_and_in_virtual_time() {
    let cluster = Cluster::start(&[]);
    let on_hosts = ["--runtime", "hosts", "--hosts", "ids/hosts.toml"];
    let run = |args: &[&str], out: &str| {
        let args = [&["run", "e.toml", "--json", "--quiet", "--out", out], args].concat();
        lines(&expect(cluster.path(), &args, 0).0)
    };
    let (there, here) = (run(&on_hosts, "there"), run(&["--runtime", "virtual"], "here"));
    assert_eq!(there.len(), 2);
    for (there, here) in there.iter().zip(&here) {
        assert_eq!(there["runtime"], "hosts");
        for key in ["policy", "seed", "jobs", "tasks"] {
            assert_eq!(there[key], here[key], "{key}");
        }
        assert!(there["messages"]["total"].as_u64().unwrap() > 0);
        assert!(!there["fidelity"].is_null());
        assert_near(there, here, |run| run["response_s"]["p50"].as_f64().unwrap());
    }
    assert!(cluster.states().iter().all(|state| state == "idle"), "{:?}", cluster.states());
    assert_hosts_are_recorded(&cluster, "there", 2);
    assert!(cluster.manifest("here")["hosts"].is_null());
    for (i, name) in ["h1", "h2", "h3"].iter().enumerate() {
        let log = cluster.log("there", name);
        assert!(log.contains("controller (127.0.0.1:") && log.contains("takes over"), "{log}");
        assert_eq!(
            log.matches(&format!("seed 5, shard {i} of 3: 4 nodes and 1 schedulers")).count(),
            2,
            "{log}"
        );
        assert_eq!(log.matches("over after").count(), 2, "{log}");
    }
}

#[test]
fn what_hosts_were_told_is_replayed() {
    let cluster = Cluster::start(&[]);
    let args = ["run", "e.toml", "--runtime", "hosts", "--hosts", "ids/hosts.toml", "--quiet", "--out", "r"];
    expect(cluster.path(), &[&args[..], &["--set", "run.record.inputs=true"]].concat(), 0);
    let replayed = lines(&expect(cluster.path(), &["replay", "r", "--json"], 0).0);
    assert_eq!(replayed.len(), 2);
    for one in &replayed {
        assert_eq!(
            (&one["shards"], &one["cut"], &one["divergence"]),
            (&3.into(), &false.into(), &Value::Null)
        );
        assert!(one["steps"].as_u64().unwrap() > 1000, "{one}");
        let measured = one["measured"].as_array().unwrap();
        assert!(measured.iter().all(|line| line["replayed"] == line["recorded"]), "{measured:#?}");
        assert!(measured.iter().any(|line| line["what"] == "jobs.finished" && line["replayed"] == 80));
    }
}

/// The manifest names the hosts, what each held in every cell, and how far their clocks can be trusted.
fn assert_hosts_are_recorded(cluster: &Cluster, out: &str, cells: usize) {
    let manifest = cluster.manifest(out);
    let hosts = manifest["hosts"].as_array().unwrap();
    let file = fs::read_to_string(cluster.path().join("ids/hosts.toml")).unwrap();
    for (i, (host, (name, nodes))) in
        hosts.iter().zip([("h1", "0-3"), ("h2", "4-7"), ("h3", "8-11")]).enumerate()
    {
        assert_eq!(host["name"], name);
        assert!(file.contains(host["address"].as_str().unwrap()), "{host}");
        let [held] = &host["held"].as_array().unwrap()[..] else { panic!("placed alike: {host}") };
        assert_eq!((&held["shard"], &held["nodes"]), (&i.into(), &nodes.into()));
        assert_eq!(held["schedulers"], i.to_string());
        assert_eq!(held["cells"].as_array().unwrap().len(), cells);
        assert_eq!(held["cells"], manifest["cells"]);
    }
    let error = manifest["clock_error_s"].as_f64().unwrap();
    assert!(error > 0.0 && error < CLOCK_BUDGET_S, "{error}");
}

#[test]
fn a_wrong_clock_is_seen_through() {
    // Without correction every message to and from h2 would be a quarter of an hour early or late.
    let cluster = Cluster::start(&["--clock-ahead", "15min", "--clock-drift", "200"]);
    let args = ["run", "e.toml", "--runtime", "hosts", "--hosts", "ids/hosts.toml", "--policy", "sparrow"];
    let (there, _) = expect(cluster.path(), &[&args[..], &["--json", "--quiet", "--out", "r"]].concat(), 0);
    let args = ["run", "e.toml", "--policy", "sparrow", "--json", "--quiet", "--out", "v"];
    let (here, _) = expect(cluster.path(), &args, 0);
    let (there, here) = (&lines(&there)[0], &lines(&here)[0]);
    assert_eq!(there["jobs"]["finished"], 80);
    assert_near(there, here, |run| run["makespan_s"].as_f64().unwrap());
}

#[test]
fn a_host_that_dies_ends_the_run_with_what_was_measured() {
    let mut cluster = Cluster::start(&[]);
    let run = cluster.run("r", &LONG);
    cluster.until_running();
    cluster.reached("r", &[0, 1, 2], 1);
    cluster.agents[1].kill().unwrap();
    let said = finish(run, 3);
    assert!(said.contains("host h2 was lost in mid-run"), "{said}");
    let kept = fs::read_dir(cluster.path().join("r/cells")).unwrap();
    let kept: Vec<PathBuf> = kept.map(|entry| entry.unwrap().path()).collect();
    let failed = kept.iter().find(|path| path.to_string_lossy().ends_with(".failed.json")).unwrap();
    let failed: Value = serde_json::from_slice(&fs::read(failed).unwrap()).unwrap();
    assert!(failed["summary"]["jobs"]["submitted"].as_u64().unwrap() > 0, "{failed}");
    cluster.until(|states| states[0] == "idle" && states[2] == "idle");
    // What it said and what it was told until then is there.
    assert!(cluster.log("r", "h2").contains("shard 1 of 3") && cluster.log("r", "h3").contains("over after"));
    let (replayed, _) = expect(cluster.path(), &["replay", "r"], 3);
    assert!(replayed.contains("effects identical") && !replayed.contains("shard 0"), "{replayed}");
    assert!(replayed.contains("the log of shard 1 of 3, host h2, ends early, at "), "{replayed}");
    // With the host back, all three serve the next run.
    let hosts = fs::read_to_string(cluster.path().join("ids/hosts.toml")).unwrap();
    let address = hosts.split('"').find(|word| word.starts_with("127.0.0.2:")).unwrap();
    cluster.agent("h2", address, &[]);
    finish(cluster.run("again", &[]), 0);
}

/// The lease of an agent without `--lease`.
const DEFAULT_LEASE: Duration = Duration::from_secs(10);

/// The controller has no limit of its own: a host that is silent for longer than the default lease is not lost.
#[test]
#[ignore = "nightly: it waits for 12 s of silence"]
fn a_lease_is_as_long_as_its_agent_says() {
    let mut cluster = Cluster { folder: tempfile::tempdir().unwrap(), agents: Vec::new() };
    let path = cluster.path().to_owned();
    fs::write(path.join("e.toml"), EXPERIMENT).unwrap();
    expect(&path, &["certs", "ids", "--host", "h1=127.0.0.1:1"], 0);
    let address = cluster.agent("h1", "127.0.0.1:0", &["--lease", "60s"]);
    fs::write(path.join("ids/hosts.toml"), format!("[[host]]\nname = \"h1\"\naddress = \"{address}\"\n"))
        .unwrap();
    let longer = ["--set", "workload.synthetic.jobs=300", "--set", "run.record.inputs=true"];
    let mut run = cluster.run("r", &longer);
    cluster.reached("r", &[0], 1);
    let agent = cluster.agents[0].id().to_string();
    let signal = |name: &str| assert!(Command::new("kill").args([name, &agent]).status().unwrap().success());
    signal("-STOP");
    let silent = Instant::now();
    while silent.elapsed() < DEFAULT_LEASE + Duration::from_secs(2) {
        assert!(run.try_wait().unwrap().is_none(), "it is given up too early");
        std::thread::sleep(Duration::from_millis(50));
    }
    signal("-CONT");
    finish(run, 0);
}

#[test]
fn a_host_that_was_to_die_may() {
    // All that lives on the third host: a third of the nodes. They crash for good, and then the host does.
    let crash =
        "network.fault=[{crash={who=[\"node:8\", \"node:9\", \"node:10\", \"node:11\"], at=\"500ms\"}}]";
    let mut cluster = Cluster::start(&[]);
    let faulty = ["--set", crash, "--set", "workload.synthetic.jobs=200"];
    let run = cluster.run("r", &[&LONG[..], &faulty].concat());
    cluster.until_running();
    // The others have gone beyond the crash, which they cannot without it.
    cluster.reached("r", &[0, 1], 2);
    cluster.agents[2].kill().unwrap();
    let said = finish(run, 0);
    let summary = cluster.summary("r");
    assert_eq!(summary[0]["jobs"]["finished"], 200, "{summary:?}");
    // Nothing went wrong, and the user is told all the same.
    let words = "host h3 was lost, after all that it held had crashed for good";
    assert!(said.contains(words), "{said}");
    let hosts = &cluster.manifest("r")["hosts"];
    let [lost] = &hosts[2]["lost"].as_array().unwrap()[..] else { panic!("{hosts}") };
    assert_eq!((&lost["cell"], &lost["expected"]), (&hosts[2]["held"][0]["cells"][0], &true.into()));
    assert!(hosts[0].get("lost").is_none() && hosts[1].get("lost").is_none(), "{hosts}");
}

#[test]
fn a_controller_that_dies_leaves_nobody_busy_and_a_second_one_is_told() {
    let cluster = Cluster::start(&[]);
    let run = cluster.run("r", &LONG);
    cluster.until_running();
    let said = finish(cluster.run("second", &[]), 3);
    assert!(said.contains("busy with a run of the controller"), "{said}");
    assert!(
        !cluster.path().join("second/summary.jsonl").exists(),
        "nothing is left of a run that never began"
    );
    kill(run);
    cluster.until_idle();
}

#[test]
fn agents_of_its_own_need_nothing_but_one_command() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("e.toml"), EXPERIMENT).unwrap();
    let args =
        ["run", "e.toml", "--runtime", "hosts", "--spawn", "2", "--json", "--quiet", "--policy", "sparrow"];
    let (out, _) = expect(folder.path(), &args, 0);
    assert_eq!(lines(&out)[0]["jobs"]["finished"], 80);
}

#[test]
fn bad_input_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("e.toml"), EXPERIMENT).unwrap();
    let hosts = ["run", "e.toml", "--runtime", "hosts", "--quiet", "--out", "r"];
    let says = |args: &[&str], status: i32, words: &[&str]| {
        let (_, err) = expect(path, &[&hosts[..], args].concat(), status);
        for word in words {
            assert!(err.contains(word), "{args:?} says {err}, not {word}");
        }
        assert!(!path.join("r").exists(), "{args:?} leaves a run behind");
    };
    says(&[], 2, &["--hosts FILE", "--spawn N"]);
    says(&["--hosts", "none.toml"], 2, &["none.toml"]);
    fs::write(path.join("odd.toml"), "[[host]]\nname = \"h1\"\nadress = \"127.0.0.1:1\"\n").unwrap();
    says(&["--hosts", "odd.toml"], 2, &["odd.toml", "adress"]);
    expect(path, &["certs", "ids", "--host", "h1=127.0.0.1:9"], 0);
    // Nobody listens there.
    says(&["--hosts", "ids/hosts.toml"], 3, &["h1", "127.0.0.1:9", "volary agent"]);
    let (_, err) = expect(path, &["certs", "ids", "--host", "h1=127.0.0.1:9"], 2);
    assert!(err.contains("ids"), "{err}");
    let (_, err) = expect(path, &["agent", "--listen", "127.0.0.1:0", "--identity", "ids/h9"], 2);
    assert!(err.contains("ids/h9") && err.contains("volary certs"), "{err}");
    let (_, err) = expect(path, &["agent", "--listen", "192.0.2.1:4433", "--identity", "ids/h1"], 2);
    assert!(err.contains("192.0.2.1:4433"), "{err}");
    for lease in ["100ms", "11min"] {
        let agent = ["agent", "--listen", "127.0.0.1:0", "--identity", "ids/h1", "--lease", lease];
        let (_, err) = expect(path, &agent, 2);
        assert!(err.contains("--lease") && err.contains("1s to 10min"), "{err}");
    }
}
