//! `volary inject` into runs of agents on loopback.

use std::fs;
use std::process::Command;

use crate::cluster::{Cluster, finish, inject};
use crate::common::binary::{expect, lines};
use serde_json::Value;

/// Copies of 50 ms on more nodes than they need.
const EXPERIMENT: &str = r#"title = "inject"
seed = 5
[cluster]
nodes = 24
schedulers = 3
[workload.synthetic]
jobs = 450
tasks = 2
interarrival = "20ms"
[service]
demand = "50ms"
[network]
one_way = "5ms"
[[policy]]
random = {}
[run.record]
inputs = true
"#;

/// Slows cores down by four, all the time.
const FOURFOLD: &str = r#"bernoulli = { slot = "100ms", probability = 1.0, slowdown = 4.0 }"#;

const HOSTS: [&str; 2] = ["--hosts", "ids/hosts.toml"];

fn cluster() -> Cluster {
    let cluster = Cluster::start(&[]);
    fs::write(cluster.path().join("e.toml"), EXPERIMENT).unwrap();
    fs::write(cluster.path().join("p.toml"), FOURFOLD).unwrap();
    cluster
}

fn summary(cluster: &Cluster, out: &str) -> Value {
    lines(&fs::read_to_string(cluster.path().join(out).join("summary.jsonl")).unwrap()).remove(0)
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn what_is_injected_slows_cores_down_and_is_on_record() {
    let cluster = cluster();
    let run = cluster.run("e.toml", "r");
    cluster.reached("r", &[0, 1, 2], 1);
    let args =
        [&["inject", "p.toml"], &HOSTS[..], &["--node", "0-11", "--core", "20", "--for", "3s", "--json"]];
    let (out, told) = expect(cluster.path(), &args.concat(), 0);
    assert!(told.contains("p.toml with seed 5 rules cores of random (cell "), "{told}");
    let done: Value = serde_json::from_str(&out).unwrap();
    let (status, said) = finish(run);
    assert_eq!(status, Some(0), "{said}");
    // Each host holds eight of the nodes, of one core each.
    let summary = summary(&cluster, "r");
    let [injected] = &summary["injections"].as_array().unwrap()[..] else { panic!("{summary}") };
    assert_eq!(injected["targets"], serde_json::json!(["node:0-11", "cores 20"]));
    assert_eq!((&injected["seed"], &injected["profile"]["bernoulli"]["slowdown"]), (&5.into(), &4.0.into()));
    let hosts = injected["hosts"].as_array().unwrap();
    for (n, (host, cores)) in [("h1", "0-7"), ("h2", "8-11"), ("h3", "20")].iter().enumerate() {
        let there = &hosts[n];
        assert_eq!((&there["host"], &there["cores"]), (&(*host).into(), &(*cores).into()), "{there}");
        assert_eq!((&there["ended"], &there["degraded"]), (&"its time was over".into(), &1.0.into()));
        for key in ["host", "cores", "from_s", "until_s", "degraded"] {
            assert_eq!(done[n][key], there[key], "{key}");
        }
        assert_eq!(done[n]["throughput"], 0.25);
    }
    let cell = summary["injections"][0].clone();
    let manifest = cluster.manifest("r");
    assert_eq!(manifest["injections"][manifest["cells"][0].as_str().unwrap()][0], cell);
    assert_copies_were_slow(&cluster, &manifest, hosts);
    // People see it wherever they look.
    let report = fs::read_to_string(cluster.path().join("r/report.html")).unwrap();
    assert!(report.contains("Interference was injected into 1 run") && report.contains("class=\"injected\""));
    let (compared, _) = expect(cluster.path(), &["compare", "r", "r"], 0);
    assert!(compared.contains("INJECTED: interference was injected into the first"), "{compared}");
    // All that it did is in the inputs.
    let replayed = lines(&expect(cluster.path(), &["replay", "r", "--json"], 0).0).remove(0);
    assert_eq!((&replayed["cut"], &replayed["divergence"]), (&false.into(), &Value::Null));
    assert!(replayed["measured"].as_array().unwrap().iter().all(|line| line["replayed"] == line["recorded"]));
    assert_eq!(replayed["injections"], summary["injections"]);
    // The cell counts as finished.
    let again = ["run", "e.toml", "--runtime", "hosts", "--quiet", "--resume", "--out", "r"];
    let (_, said) = expect(cluster.path(), &[&again[..], &HOSTS].concat(), 0);
    assert!(said.contains("kept 1 of 1 run (1 of them injected into), running 0"), "{said}");
}

/// Checks that copies on injected cores took four times as long as others, and that the timeline shows the slots.
fn assert_copies_were_slow(cluster: &Cluster, manifest: &Value, hosts: &[Value]) {
    let file = format!("r/cells/{}.json", manifest["cells"][0].as_str().unwrap());
    let record: Value = serde_json::from_slice(&fs::read(cluster.path().join(file)).unwrap()).unwrap();
    let (from, until) = (seconds(&hosts[0]["from_s"]), seconds(&hosts[0]["until_s"]));
    assert!((until - from - 3.0).abs() < 1e-6, "as long as asked: {from} to {until}");
    let ruled = |core: u64| core < 12 || core == 20;
    let (mut slow, mut fast) = (0, 0);
    for slice in record["timeline"].as_array().unwrap() {
        // Job, task, attempt, core, start, end and how it ended.
        let (start, length) = (seconds(&slice[4]), seconds(&slice[5]) - seconds(&slice[4]));
        if ruled(slice[3].as_u64().unwrap()) && start > from && start + length < until {
            assert!(length > 0.1999, "{slice}");
            slow += 1;
        } else if length < 0.1999 {
            fast += 1;
        }
    }
    assert!(slow > 20 && fast > 20, "{slow} slow and {fast} fast copies");
    let bursts = record["bursts"].as_array().unwrap();
    assert!(!bursts.is_empty());
    for burst in bursts {
        assert!(ruled(burst[0].as_u64().unwrap()) && seconds(&burst[3]) == 4.0, "{burst}");
        assert!(
            (seconds(&burst[1]), seconds(&burst[2])) == (from, until),
            "{burst} is not {from} to {until}"
        );
    }
}

/// One core that always has work, which burns a CPU.
const BURNT: &str = r#"title = "inject"
seed = 5
[cluster]
nodes = 1
[workload.synthetic]
jobs = 16
tasks = 1
interarrival = "10ms"
[service]
demand = "200ms"
[network]
one_way = "1ms"
[[policy]]
random = {}
[run.real]
"#;

/// Copies that burn a CPU are slowed down for the requested time, and the certificate has the measured slowdown.
#[test]
fn real_cores_are_slowed_down_by_an_injection() {
    let cluster = Cluster::start(&[]);
    fs::write(cluster.path().join("e.toml"), BURNT).unwrap();
    fs::write(cluster.path().join("p.toml"), FOURFOLD.replace("4.0", "3.0")).unwrap();
    let run = cluster.run("e.toml", "r");
    cluster.until(|states| states.iter().all(|state| state.starts_with("runs for")));
    let args = [&["inject", "p.toml"], &HOSTS[..], &["--node", "0", "--for", "700ms", "--json"]];
    expect(cluster.path(), &args.concat(), 0);
    let (status, said) = finish(run);
    assert_eq!(status, Some(0), "{said}");
    let summary = summary(&cluster, "r");
    assert_eq!(summary["injections"][0]["profile"]["bernoulli"]["slowdown"], 3.0);
    let cores = &summary["fidelity"]["cores"];
    // More than one, if the clock was set meanwhile.
    let slots = cores["slots"].as_array().unwrap();
    assert!(!slots.is_empty() && slots.iter().all(|slots| slots["asked"] == 3.0), "{cores}");
    let there = &summary["injections"][0]["hosts"][0];
    let length = seconds(&there["until_s"]) - seconds(&there["from_s"]);
    let longest = slots.iter().map(|slots| seconds(&slots["length_s"])).fold(0.0, f64::max);
    assert!(longest < length + 0.01 && length < 0.71, "{cores} {there}");
    let slowest = slots.iter().map(|slots| seconds(&slots["achieved"])).fold(0.0, f64::max);
    assert!(slowest > 2.0, "other load can only add to it: {cores}");
}

#[test]
fn an_injector_that_is_killed_takes_what_it_injected_along() {
    let cluster = cluster();
    let long = ["--set", "workload.synthetic.jobs=20000", "--set", "run.until=14s"];
    let run = cluster.run_with("e.toml", "r", &long);
    cluster.until(|states| states.iter().all(|state| state.starts_with("runs for")));
    let mut injector = inject(cluster.path(), &[]);
    injector.kill().unwrap();
    injector.wait().unwrap();
    let (status, said) = finish(run);
    assert_eq!(status, Some(0), "{said}");
    let summary = summary(&cluster, "r");
    let (jobs, copies) = (&summary["jobs"], &summary["copies"]);
    let count = |of: &Value, key: &str| of[key].as_u64().unwrap();
    assert_eq!(count(jobs, "submitted"), count(jobs, "finished") + count(jobs, "unfinished"));
    assert_eq!(
        count(copies, "started"),
        count(copies, "finished") + count(copies, "preempted") + count(copies, "lost")
    );
    let hosts = summary["injections"][0]["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 3, "{summary}");
    for host in hosts {
        let (from, until) = (seconds(&host["from_s"]), seconds(&host["until_s"]));
        // Unless this machine took so long to begin that the run was over before the lease.
        assert!(until < 14.0 || from > 8.0, "{host}");
        assert!(
            until >= 14.0 || host["ended"].as_str().unwrap().contains("whoever injected it is gone"),
            "{host}"
        );
    }
    cluster.until(|states| states.iter().all(|state| state == "idle"));
}

#[test]
fn an_injection_can_be_ended_and_ends_with_its_cell() {
    let cluster = cluster();
    let run = cluster.run("e.toml", "r");
    cluster.until(|states| states.iter().all(|state| state.starts_with("runs for")));
    let first = inject(cluster.path(), &["--host", "h1"]);
    let second = inject(cluster.path(), &["--core", "0,23", "--seed", "9"]);
    assert!(Command::new("kill").args(["-INT", &first.id().to_string()]).status().unwrap().success());
    assert_eq!(first.wait_with_output().unwrap().status.code(), Some(0));
    let (status, said) = finish(run);
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(second.wait_with_output().unwrap().status.code(), Some(0));
    let summary = summary(&cluster, "r");
    let ends: Vec<_> = summary["injections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|injected| {
            let hosts = injected["hosts"].as_array().unwrap();
            hosts
                .iter()
                .map(|host| (host["cores"].as_str().unwrap(), host["ended"].as_str().unwrap()))
                .collect::<Vec<_>>()
        })
        .collect();
    let by_whom = "whoever injected it ended it";
    assert_eq!(ends, [vec![("0-7", by_whom)], vec![("0", "the cell was over"), ("23", "the cell was over")]]);
}

#[test]
fn a_dry_run_touches_nothing() {
    let cluster = cluster();
    let slots =
        |args: &[&str]| expect(cluster.path(), &[&["inject", "p.toml", "--dry-run"], args].concat(), 0);
    let (shown, _) = slots(&["--core", "0,3", "--for", "1s"]);
    assert!(shown.starts_with("seed 1, 0s to 1s, 100ms a column"), "{shown}");
    assert!(shown.contains("core 0  ██████████  25.0 %") && shown.contains("core 3  ██████████"), "{shown}");
    let (shown, told) = slots(&[&HOSTS[..], &["--json", "--for", "1s"]].concat());
    assert!(told.contains("the hosts run nothing"), "{told}");
    let slots_of = |text: &str| serde_json::from_str::<Value>(text).unwrap().as_array().unwrap().clone();
    assert_eq!(slots_of(&shown).len(), 8);
    let run = cluster.run("e.toml", "r");
    cluster.reached("r", &[0, 1, 2], 1);
    let (shown, _) = slots(&[&HOSTS[..], &["--json", "--rack", "0", "--for", "1s"]].concat());
    let shown = slots_of(&shown);
    assert!(shown.len() == 24 && seconds(&shown[0]["start_s"]) > 1.0, "{shown:?}");
    let (status, said) = finish(run);
    assert_eq!(status, Some(0), "{said}");
    assert!(summary(&cluster, "r").get("injections").is_none());
    assert!(cluster.manifest("r").get("injections").is_none());
}

#[test]
fn what_cannot_be_injected_is_refused() {
    let cluster = cluster();
    let path = cluster.path();
    let says = |args: &[&str], status: i32, words: &[&str]| {
        let (_, err) = expect(path, &[&["inject"], args].concat(), status);
        for word in words {
            assert!(err.contains(word), "{args:?} says {err}, not {word}");
        }
    };
    fs::write(path.join("odd.toml"), "bernoulli = { slot = \"100ms\", probabilty = 1.0, slowdown = 4.0 }")
        .unwrap();
    says(&["p.toml"], 2, &["--hosts <FILE>"]);
    says(&["none.toml", "--dry-run"], 2, &["none.toml"]);
    says(&["odd.toml", "--dry-run"], 2, &["odd.toml", "probabilty", "probability"]);
    says(&["p.toml", "--dry-run", "--core", "5-3"], 2, &["--core", "write 3-5"]);
    says(&["p.toml", "--dry-run", "--node", "3"], 2, &["nothing runs", "--hosts FILE"]);
    says(&["p.toml", "--dry-run", "--for", "9h"], 2, &["--for 32400s", "shorter"]);
    says(&["p.toml", "--hosts", "none.toml"], 2, &["none.toml"]);
    let with = |args: &[&'static str]| [&["p.toml"], &HOSTS[..], args].concat();
    says(&with(&["--for", "0s"]), 2, &["--for 0s"]);
    says(&with(&["--host", "h9"]), 2, &["--host h9", "h1, h2, h3"]);
    says(&with(&[]), 3, &["the hosts run nothing", "volary run"]);
    let run = cluster.run("e.toml", "r");
    cluster.reached("r", &[0, 1, 2], 1);
    says(&with(&["--node", "24"]), 2, &["`node:24`", "there are 24 nodes, 0 to 23"]);
    says(&with(&["--node", "x"]), 2, &["`node:x`"]);
    says(&with(&["--node", "scheduler:0"]), 2, &["`scheduler:0` names no node"]);
    says(&with(&["--rack", "7"]), 2, &["`rack:7`"]);
    says(&with(&["--core", "24"]), 2, &["--core 24", "the cluster has 24 cores, 0 to 23"]);
    fs::write(path.join("p.toml"), FOURFOLD.replace("4.0", "1e9")).unwrap();
    says(&with(&[]), 2, &["a second of work would take 1e10 slots"]);
    let (status, said) = finish(run);
    assert_eq!(status, Some(0), "{said}");
    assert!(summary(&cluster, "r").get("injections").is_none(), "none of it took effect");
}

#[test]
fn an_interrupted_run_says_what_was_injected() {
    let cluster = cluster();
    let run = cluster.run("e.toml", "cut");
    cluster.reached("cut", &[0, 1, 2], 1);
    let mut injector = inject(cluster.path(), &["--core", "0-3"]);
    assert!(Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap().success());
    assert_eq!(finish(run).0, Some(3));
    injector.wait().unwrap();
    let manifest = cluster.manifest("cut");
    let injected = &manifest["injections"][manifest["cells"][0].as_str().unwrap()][0];
    let [host] = &injected["hosts"].as_array().unwrap()[..] else { panic!("{manifest}") };
    assert_eq!((&host["host"], &host["cores"]), (&"h1".into(), &"0-3".into()));
    assert!(seconds(&host["until_s"]) >= seconds(&host["from_s"]), "{host}");
    // Its log is whole as far as it goes, and whoever reads it is told.
    let (replayed, _) = expect(cluster.path(), &["replay", "cut"], 0);
    assert!(replayed.contains("interference was injected"), "{replayed}");
}
