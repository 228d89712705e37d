//! Runs on agents on loopback: their results compared with virtual time, clocks, lost hosts and controllers, leases.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::cluster::{self, Cluster, EXPERIMENT, LONG, finish, interrupt, kill};
use crate::common::binary::{self, expect, lines};
use crate::common::chains::assert_chains;
use crate::common::sharing::assert_sharing;
use serde_json::Value;

/// Maximum time that a machine of two loaded cores adds to a response time or makespan, s. Emulated seconds equal real
/// seconds here.
const MACHINE_BUDGET_S: f64 = 1.0;
/// The largest bound of a clock error on loopback, s: a round trip that a loaded machine delays.
const CLOCK_BUDGET_S: f64 = 0.1;

/// Checks a time on hosts against the time in virtual time. Both runs have the same jobs, but schedulers sample other
/// nodes when messages arrive in another order.
fn assert_near(there: &Value, here: &Value, what: impl Fn(&Value) -> f64) {
    let (there, here) = (what(there), what(here));
    assert!(
        there > 0.5 * here && there < 1.5 * here + MACHINE_BUDGET_S,
        "{there} s on hosts, {here} s in virtual time"
    );
}

/// Jobs have the same deadlines, preferred nodes and history on every host as in virtual time.
#[test]
fn deadlines_on_hosts_equal_those_in_virtual_time() {
    let cluster = Cluster::start("");
    let slo = "{share=0.5,slack=[0.5,20],preference={kinds=4,of=2,slowdown=3}}";
    let jobs = "jobs=80,tasks=4,interarrival=\"50ms\",gang=true,pretrain=20";
    let run = |args: &str| {
        let set = format!("--set policy=[{{random={{}}}}] --set workload.synthetic={{{jobs},slo={slo}}}");
        lines(&expect(cluster.path(), &format!("run e.toml --json --quiet {set} --out {args}"), 0).0)
            .remove(0)
    };
    let there = run("there --runtime hosts --hosts ids/hosts.toml");
    let here = run("here --runtime virtual");
    assert_eq!(there["jobs"]["finished"], 60);
    assert_eq!(there["jobs"], here["jobs"]);
    assert_eq!(there["classes"]["slo"]["jobs"], here["classes"]["slo"]["jobs"]);
    let (found, expected) = (&there["deadlines"], &here["deadlines"]);
    assert_eq!((&found["slo"], &found["open"]), (&expected["slo"], &Value::from(0)));
    // The same jobs ended, whichever of them were late.
    let hours = |run: &Value| run["goodput_h"]["total"].as_f64().unwrap();
    assert!((hours(found) - hours(expected)).abs() < 1e-12, "{found} {expected}");
    assert_near(&there, &here, |run| run["classes"]["slo"]["response_s"]["p50"].as_f64().unwrap());
}

#[test]
fn an_experiment_has_the_same_jobs_on_hosts_and_in_virtual_time() {
    let cluster = Cluster::start("");
    let run =
        |args: &str| lines(&expect(cluster.path(), &format!("run e.toml --json --quiet --out {args}"), 0).0);
    let there = run("there --runtime hosts --hosts ids/hosts.toml --set run.record.inputs=true");
    let here = run("here --runtime virtual");
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
        assert_eq!(log.matches("the run ended after").count(), 2, "{log}");
    }
    let replayed = lines(&expect(cluster.path(), "replay there --json", 0).0);
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

/// With --as-recorded the nodes of each host are as slow as the recording of this host says. The host's cores take the
/// CPUs of the recording in turn.
#[test]
fn nodes_are_as_slow_as_the_recordings_of_their_hosts() {
    let folder = binary::folder();
    let here = folder.path();
    fs::write(here.join("e.toml"), EXPERIMENT).unwrap();
    let run =
        "run e.toml --policy sparrow --json --quiet --runtime hosts --spawn 2 --out r --as-recorded rec";
    let (_, said) = expect(here, run, 2);
    let missing = ["--as-recorded: rec/local1.csv", "volary profile record --out local1.csv"];
    assert!(missing.iter().all(|words| said.contains(words)), "{said}");
    fs::create_dir(here.join("rec")).unwrap();
    fs::write(here.join("rec/local1.csv"), "0 0 1000 4\n1 0 1000 1\n").unwrap();
    fs::write(here.join("rec/local2.csv"), "0 0 1000 2\n").unwrap();
    let summary = lines(&expect(here, run, 0).0).remove(0);
    assert_eq!(summary["jobs"]["finished"], 80);
    // Three of the first host's six nodes lose three quarters of their work, and all nodes of the second host lose
    // half.
    let [degraded, lost] =
        ["degraded", "work_lost"].map(|key| summary["interference"][key].as_f64().unwrap());
    assert!((degraded - 0.75).abs() < 1e-9 && (lost - 0.4375).abs() < 1e-9, "{}", summary["interference"]);
    let scheduled = summary["scheduled"].as_array().unwrap();
    assert_eq!(scheduled.len(), 2, "{scheduled:?}");
    let alone = run.replace("--runtime hosts --spawn 2", "--runtime virtual").replace("--out r", "--out v");
    let (_, said) = expect(here, &alone, 2);
    assert!(said.contains("--as-recorded needs hosts"), "{said}");
    let other = format!(
        "{} --set interference.injection=[{{profile=\"bursts\",at=\"1s\"}}]",
        run.replace("--out r", "--out o")
    );
    let (_, said) = expect(here, &other, 2);
    assert!(said.contains("the experiment schedules injections"), "{said}");
}

/// Checks that the manifest names the hosts, the actors of each in every run, and the bound of their clock errors.
fn assert_hosts_are_recorded(cluster: &Cluster, out: &str, runs: usize) {
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
        assert_eq!(held["runs"].as_array().unwrap().len(), runs);
        assert_eq!(held["runs"], manifest["runs"]);
    }
    let error = manifest["clock_error_s"].as_f64().unwrap();
    assert!(error > 0.0 && error < CLOCK_BUDGET_S, "{error}");
}

#[test]
fn chains_of_stages_run_in_order_on_hosts() {
    let folder = tempfile::tempdir().unwrap();
    assert_chains(folder.path(), "--runtime hosts --spawn 3");
}

#[test]
fn shared_nodes_keep_their_limits_on_hosts() {
    let folder = tempfile::tempdir().unwrap();
    assert_sharing(folder.path(), "--runtime hosts --spawn 3");
}

/// Masters of groups and their standbys are on the hosts of their groups' nodes. One master crashes and recovers.
#[test]
fn masters_are_placed_on_the_hosts_of_their_nodes() {
    let cluster = Cluster::start("");
    let crash = "network.fault=[{crash={who=[\"master:1\"],at=\"1s\",for=\"1500ms\"}}]";
    let pigeon = "policy=[{pigeon={group=4,standby=true}},{random={}}]";
    let set = format!("--set {pigeon} --set {crash} --set network.peer_timeout=500ms");
    let run = |args: &str| {
        lines(&expect(cluster.path(), &format!("run e.toml --json --quiet --out {args} {set}"), 0).0)
    };
    let there = run("there --runtime hosts --hosts ids/hosts.toml --set run.record.inputs=true");
    let here = run("here");
    for (there, here) in there.iter().zip(&here) {
        assert_eq!((&there["jobs"]["finished"], &there["jobs"]), (&80.into(), &here["jobs"]));
        assert_near(there, here, |run| run["response_s"]["p50"].as_f64().unwrap());
    }
    let hosts = cluster.manifest("there")["hosts"].clone();
    for (host, masters) in hosts.as_array().unwrap().iter().zip(["0,3", "1,4", "2,5"]) {
        let held = host["held"].as_array().unwrap();
        assert_eq!(held[0]["extras"], format!("masters {masters}"), "{hosts}");
        assert!(held[1].get("extras").is_none(), "the other policy has none: {hosts}");
        assert_eq!(held[0]["nodes"], held[1]["nodes"]);
    }
    let log = cluster.log("there", "h2");
    assert!(log.contains("4 nodes and 1 schedulers, 2 masters; "), "{log}");
    let replayed = lines(&expect(cluster.path(), "replay there --json", 0).0);
    assert_eq!(replayed.len(), 2);
    assert!(replayed.iter().all(|one| one["divergence"].is_null() && one["shards"] == 3), "{replayed:#?}");
}

#[test]
fn a_wrong_clock_is_corrected() {
    // Without correction every message to and from h2 would be a quarter of an hour early or late.
    let cluster = Cluster::start("--clock-ahead 15min --clock-drift 200");
    let run = "run e.toml --policy sparrow --json --quiet --out";
    let (there, _) = expect(cluster.path(), &format!("{run} r --runtime hosts --hosts ids/hosts.toml"), 0);
    let (here, _) = expect(cluster.path(), &format!("{run} v"), 0);
    let (there, here) = (&lines(&there)[0], &lines(&here)[0]);
    assert_eq!(there["jobs"]["finished"], 80);
    assert_near(there, here, |run| run["makespan_s"].as_f64().unwrap());
}

/// The run begins again on the hosts that are left, and ends with its measurements when it loses another one.
#[test]
fn a_run_that_loses_two_hosts_one_after_the_other_ends_with_its_measurements() {
    let mut cluster = Cluster::start("");
    let run = cluster.run("r", LONG);
    cluster.until_running();
    cluster.reached("r", &[0, 1, 2], 1);
    cluster.agents[1].kill().unwrap();
    let again = |cluster: &Cluster| {
        let at = cluster.hosts()[0]["run"]["at_s"].as_f64();
        cluster.log("r", "h1").contains("shard 0 of 2") && at.is_some_and(|at| at >= 1.0)
    };
    while !again(&cluster) {
        std::thread::sleep(Duration::from_millis(200));
    }
    cluster.agents[2].kill().unwrap();
    let said = finish(run, 3);
    assert!(said.contains("host h2 was lost during the run"), "{said}");
    assert!(said.contains(": the run begins again on the hosts that are left"), "{said}");
    assert!(said.contains("host h3 was lost during the run"), "{said}");
    let failed = fs::read_dir(cluster.path().join("r/failed")).unwrap().next().unwrap().unwrap().path();
    let failed: Value = serde_json::from_slice(&fs::read(failed).unwrap()).unwrap();
    assert!(failed["summary"]["jobs"]["submitted"].as_u64().unwrap() > 0, "{failed}");
    cluster.until(|states| states[0] == "idle");
    // The logs of the lost hosts and the inputs of the last attempt are kept.
    assert!(
        cluster.log("r", "h2").contains("shard 1 of 3") && cluster.log("r", "h3").contains("shard 1 of 2")
    );
    let (replayed, _) = expect(cluster.path(), "replay r", 3);
    assert!(replayed.contains("effects identical"), "{replayed}");
    assert!(replayed.contains("the log of shard 1 of 2, host h3, "), "{replayed}");
    // With the hosts back, all three serve the next run.
    let hosts = fs::read_to_string(cluster.path().join("ids/hosts.toml")).unwrap();
    for (name, begins) in [("h2", "127.0.0.2:"), ("h3", "127.0.0.3:")] {
        let address = hosts.split('"').find(|word| word.starts_with(begins)).unwrap();
        cluster.agent(name, address, "");
    }
    finish(cluster.run("again", ""), 0);
}

/// A sweep that loses a host has all its results: the interrupted run and all later runs are executed on the remaining
/// hosts.
#[test]
fn a_sweep_continues_on_the_remaining_hosts() {
    let mut cluster = Cluster::start("");
    let sweep = "--policy sparrow --repeat 3 --set workload.synthetic.jobs=120 --set run.record.inputs=true";
    let run = cluster.run("r", sweep);
    cluster.until_running();
    cluster.reached("r", &[0, 1, 2], 1);
    cluster.agents[1].kill().unwrap();
    let said = finish(run, 0);
    assert!(said.contains("host h2 was lost during the run"), "{said}");
    assert!(said.contains("the study continues without h2, on h1, h3"), "{said}");
    let summary = cluster.summary("r");
    let again: Vec<&str> = summary.iter().filter_map(|run| run["executed_again"].as_str()).collect();
    let [again] = again[..] else { panic!("{summary:?}") };
    assert!(
        again.starts_with("host h2 was lost during the run") && again.ends_with("; executed again on h1, h3")
    );
    let (shown, _) = expect(cluster.path(), "report r", 0);
    assert!(shown.contains("EXECUTED AGAIN: sparrow, seed "), "{shown}");
    let names = |run: &Value| -> Vec<String> {
        let hosts = run["fidelity"]["hosts"].as_array().unwrap();
        hosts.iter().map(|host| host["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(summary.len(), 3, "{summary:?}");
    for run in &summary {
        assert_eq!(
            (names(run), &run["jobs"]["finished"]),
            (vec!["h1".to_owned(), "h3".to_owned()], &120.into())
        );
    }
    let manifest = cluster.manifest("r");
    assert_eq!(manifest["hosts"][1]["lost"].as_array().unwrap().len(), 1, "{manifest}");
    assert!(!cluster.path().join("r/failed").exists());
    // The inputs of the attempt that was cut off are kept beside those of the last attempt.
    let (replayed, _) = expect(cluster.path(), "replay r", 0);
    assert!(replayed.contains("effects identical"), "{replayed}");
}

/// `volary status` shows the progress of a run, and a second run waits for the end of that run.
#[test]
fn status_shows_the_progress_of_a_run_and_a_second_run_waits() {
    let cluster = Cluster::start("");
    let set = "--policy sparrow --set workload.synthetic.jobs=200 --set run.record.inputs=true";
    let run = cluster.run("r", set);
    cluster.until_running();
    cluster.reached("r", &[0, 1, 2], 2);
    let second = cluster.run("second", "--wait 2min --policy sparrow --set workload.synthetic.jobs=10");
    let mut shown = cluster.hosts();
    let patience = Instant::now();
    while shown[0]["run"]["late"].is_null() && patience.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(100));
        shown = cluster.hosts();
    }
    for host in &shown {
        let run = &host["run"];
        assert_eq!((&run["experiment"], &run["seed"], &run["jobs"]), (&"e".into(), &5.into(), &200.into()));
        assert!(run["at_s"].as_f64().unwrap() >= 1.0, "{host}");
        assert!(run["finished"].as_u64().unwrap() > 0, "{host}");
        assert!(run["clock_error_s"].as_f64().unwrap() > 0.0, "{host}");
        assert!(run["late"]["p99_s"].as_f64().unwrap() > 0.0, "{host}");
        assert!(host["version"].as_str().unwrap().starts_with(env!("CARGO_PKG_VERSION")), "{host}");
    }
    let (lines, _) = expect(cluster.path(), "status --hosts ids/hosts.toml", 0);
    assert!(lines.contains(" of 200 jobs at ") && lines.contains("clock ± "), "{lines}");
    finish(run, 0);
    let said = finish(second, 0);
    assert!(said.contains("is busy with a run of the controller at ") && said.contains("waiting"), "{said}");
    assert_eq!(cluster.summary("second")[0]["jobs"]["finished"], 10);
    cluster.until_idle();
    assert!(cluster.hosts().iter().all(|host| host["run"].is_null()));
}

/// A free host is not claimed while another host is waited for. It still takes part in the run, even if it serves only
/// one controller.
#[test]
fn free_hosts_are_not_claimed_before_all_are_free() {
    let cluster = Cluster::start("--once");
    let file = fs::read_to_string(cluster.path().join("ids/hosts.toml")).unwrap();
    let first = file.match_indices("[[host]]").nth(1).unwrap().0;
    fs::write(cluster.path().join("ids/one.toml"), &file[..first]).unwrap();
    let busy = cluster::run(cluster.path(), "ids/one.toml", "r", LONG);
    cluster.until(|states| states[0].starts_with("runs for"));
    let mut waiting = cluster.run("second", "--wait 2min --policy sparrow --set workload.synthetic.jobs=10");
    let mut said = BufReader::new(waiting.stderr.take().unwrap());
    let mut line = String::new();
    assert!(said.read_line(&mut line).unwrap() > 0);
    assert!(line.contains("host h1 is busy with a run of the controller at "), "{line}");
    // The waiting run asks the hosts once a second.
    let asked = Instant::now();
    while asked.elapsed() < Duration::from_millis(2_500) {
        assert_eq!(cluster.states()[1..], ["idle", "idle"]);
        std::thread::sleep(Duration::from_millis(50));
    }
    interrupt(&busy);
    finish(busy, 3);
    waiting.stderr = Some(said.into_inner());
    finish(waiting, 0);
    assert_eq!(cluster.summary("second")[0]["jobs"]["finished"], 10);
}

/// The lease of an agent without `--lease`.
const DEFAULT_LEASE: Duration = Duration::from_secs(10);

/// The controller has no limit of its own, so a host that is silent for longer than the default lease is not lost.
#[test]
#[ignore = "nightly: it waits for 12 s of silence"]
fn the_controller_uses_the_lease_that_an_agent_states() {
    let mut cluster = Cluster { folder: tempfile::tempdir().unwrap(), agents: Vec::new() };
    let path = cluster.path().to_owned();
    fs::write(path.join("e.toml"), EXPERIMENT).unwrap();
    expect(&path, "certs ids --host h1=127.0.0.1:1", 0);
    let address = cluster.agent("h1", "127.0.0.1:0", "--lease 60s");
    fs::write(path.join("ids/hosts.toml"), format!("[[host]]\nname = \"h1\"\naddress = \"{address}\"\n"))
        .unwrap();
    let longer = "--set workload.synthetic.jobs=300 --set run.record.inputs=true";
    let mut run = cluster.run("r", longer);
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
fn a_scheduled_crash_of_a_host_does_not_fail_the_run() {
    // All actors of the third host, a third of the nodes, crash for good; then the host is killed.
    let crash = "network.fault=[{crash={who=[\"nodes:8-11\"],at=\"500ms\"}}]";
    let mut cluster = Cluster::start("");
    let run = cluster.run("r", &format!("{LONG} --set {crash} --set workload.synthetic.jobs=200"));
    cluster.until_running();
    // The other hosts have passed the time of the crash. No host can run far ahead, so the third one has passed it too.
    cluster.reached("r", &[0, 1], 2);
    cluster.agents[2].kill().unwrap();
    let said = finish(run, 0);
    let summary = cluster.summary("r");
    assert_eq!(summary[0]["jobs"]["finished"], 200, "{summary:?}");
    // The run does not fail, and the loss of the host is still reported.
    let words = "host h3 was lost, after all of its actors had crashed for good";
    assert!(said.contains(words), "{said}");
    let hosts = &cluster.manifest("r")["hosts"];
    let [lost] = &hosts[2]["lost"].as_array().unwrap()[..] else { panic!("{hosts}") };
    assert_eq!((&lost["run"], &lost["expected"]), (&hosts[2]["held"][0]["runs"][0], &true.into()));
    assert!(hosts[0].get("lost").is_none() && hosts[1].get("lost").is_none(), "{hosts}");
}

#[test]
fn hosts_are_busy_while_their_controller_lives_and_free_after_it_dies() {
    let cluster = Cluster::start("");
    let run = cluster.run("r", LONG);
    cluster.until_running();
    let said = finish(cluster.run("second", ""), 3);
    assert!(said.contains("busy with a run of the controller"), "{said}");
    assert!(
        !cluster.path().join("second/summary.jsonl").exists(),
        "nothing is left of a run that never began"
    );
    kill(run);
    cluster.until_idle();
}

/// Arguments, status, and words that the message must contain.
const BAD: &str = r#"
run e.toml --runtime hosts --out r | 2 | --hosts FILE | --spawn N
run e.toml --runtime hosts --out r --hosts none.toml | 2 | none.toml
run e.toml --runtime hosts --out r --hosts odd.toml | 2 | odd.toml | adress
run e.toml --runtime hosts --out r --hosts ids/hosts.toml --wait soon | 2 | --wait
run e.toml --runtime hosts --out r --spawn 2 --wait 1s | 2 | --spawn
run e.toml --runtime hosts --out r --wait 1s | 2 | --hosts
run e.toml --runtime hosts --out r --hosts ids/hosts.toml | 3 | h1 | 127.0.0.1:9 | volary agent
certs ids --host h1=127.0.0.1:9 | 2 | ids
agent --listen 127.0.0.1:0 --identity ids/h9 | 2 | ids/h9 | volary certs
agent --listen 192.0.2.1:4433 --identity ids/h1 | 2 | 192.0.2.1:4433
agent --listen 127.0.0.1:0 --identity ids/h1 --lease 100ms | 2 | --lease | between 1s and 10min
agent --listen 127.0.0.1:0 --identity ids/h1 --lease 11min | 2 | --lease | between 1s and 10min
"#;

#[test]
fn errors_of_bad_input_name_the_input() {
    let folder = binary::folder();
    let path = folder.path();
    fs::write(path.join("odd.toml"), "[[host]]\nname = \"h1\"\nadress = \"127.0.0.1:1\"\n").unwrap();
    // No process listens at this address.
    expect(path, "certs ids --host h1=127.0.0.1:9", 0);
    binary::refuses_all(path, BAD);
    assert!(!path.join("r").exists(), "a refused run leaves no folder");
}
