//! `volary inject` into runs of agents on loopback.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use volary_experiment::storage;

use crate::cluster::{Cluster, LONG, finish, inject, interrupt, kill};
use crate::common::binary::{command, expect, lines, refuses_all};
use crate::common::page;

/// Jobs with copies of 50 ms, on more nodes than they need.
const JOBS: &str =
    "--set cluster={nodes=24,schedulers=3} --set workload.synthetic={jobs=450,tasks=2,interarrival=\"20ms\"}";

/// Slows cores down fourfold without a pause.
const FOURFOLD: &str = r#"bernoulli = { slot = "100ms", probability = 1.0, slowdown = 4.0 }"#;

/// Three hosts, and a profile that slows cores down.
fn cluster() -> Cluster {
    let cluster = Cluster::start("");
    fs::write(cluster.path().join("p.toml"), FOURFOLD).unwrap();
    cluster
}

/// Starts a run, and waits until it has begun.
fn run(cluster: &Cluster) -> Child {
    let run = cluster.run("r", &format!("{LONG} {JOBS}"));
    cluster.reached("r", &[0, 1, 2], 1);
    run
}

/// Waits until a condition holds for the runs of all hosts.
fn until(cluster: &Cluster, holds: impl Fn(&Value) -> bool) {
    let late = Instant::now() + crate::cluster::PATIENCE;
    while !cluster.hosts().iter().all(|host| holds(&host["run"])) {
        assert!(Instant::now() < late, "{:?}", cluster.hosts());
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn summary(cluster: &Cluster) -> Value {
    cluster.summary("r").remove(0)
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn an_injection_slows_cores_down_and_is_recorded() {
    let cluster = cluster();
    let run = run(&cluster);
    let args = "inject p.toml --hosts ids/hosts.toml --node 0-11 --core 20 --for 3s --json";
    let (out, told) = expect(cluster.path(), args, 0);
    assert!(told.contains("p.toml with seed 5 is injected into cores of random (run "), "{told}");
    let done: Value = serde_json::from_str(&out).unwrap();
    finish(run, 0);
    // Each host holds eight of the nodes, of one core each.
    let summary = summary(&cluster);
    let [injected] = &summary["injections"].as_array().unwrap()[..] else { panic!("{summary}") };
    assert_eq!(injected["targets"], serde_json::json!(["nodes:0-11", "cores 20"]));
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
    let run = summary["injections"][0].clone();
    let manifest = cluster.manifest("r");
    assert_eq!(manifest["injections"][manifest["runs"][0].as_str().unwrap()][0], run);
    assert_copies_were_slow(&cluster, &manifest, hosts);
    // The report and a comparison show the injection.
    let report = fs::read_to_string(cluster.path().join("r/report.html")).unwrap();
    assert!(report.contains("Interference was injected into 1 run") && report.contains("class=\"injected\""));
    let (compared, _) = expect(cluster.path(), "compare r r", 0);
    assert!(compared.contains("INJECTED: interference was injected into the first"), "{compared}");
    let mut watching = command(cluster.path());
    let watching = watching.args(["watch", "r"]).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut watching = watching.spawn().unwrap();
    let shown = page::snapshot(&page::address(&mut watching));
    kill(watching);
    let says = shown["runs"][0]["injections"][0]["says"].as_str().unwrap();
    assert!(says.starts_with("cores 0-7 on h1, cores 8-11 on h2, cores 20 on h3, bernoulli = {"), "{says}");
    // The log of inputs contains the injection, so the replay agrees with the record.
    let replayed = lines(&expect(cluster.path(), "replay r --json", 0).0).remove(0);
    assert_eq!((&replayed["cut"], &replayed["divergence"]), (&false.into(), &Value::Null));
    assert!(replayed["measured"].as_array().unwrap().iter().all(|line| line["replayed"] == line["recorded"]));
    assert_eq!(replayed["injections"], summary["injections"]);
    // The run is finished, so `--resume` does not repeat it.
    let said = finish(cluster.run("r", &format!("--resume {LONG} {JOBS}")), 0);
    assert!(
        said.contains("kept 1 of 1 run (1 with injections, which are not repeated), running 0"),
        "{said}"
    );
}

/// Two policies of some seconds each, and a claim about them.
const TWO: &str = "--set policy=[{random={}},{round-robin={}}] --set cluster={nodes=24,schedulers=1} \
    --set workload.synthetic={jobs=400,tasks=2,interarrival=\"20ms\"} \
    --set claim=[{says=\"c\",check=[\"random.response_s.p50<9.9*round-robin.response_s.p50\"]}]";

/// Runs two policies and injects into the first after `second` emulated seconds; returns the injector's output, the
/// results by policy, and the verdict.
fn injected_into_one_of_two(cluster: &Cluster, second: f64, args: &str) -> (String, [Value; 2], Value) {
    let run = cluster.run("r", &format!("{LONG} {TWO}"));
    until(cluster, |run| run["at_s"].as_f64() > Some(second));
    let (_, told) = expect(cluster.path(), &format!("inject p.toml --hosts ids/hosts.toml --json {args}"), 0);
    finish(run, 0);
    let claims = fs::read_to_string(cluster.path().join("r/claims.jsonl")).unwrap();
    (told, cluster.summary("r").try_into().unwrap(), lines(&claims).remove(0))
}

#[test]
fn policies_with_unequal_injections_are_not_compared() {
    let cluster = cluster();
    let (told, runs, claim) = injected_into_one_of_two(&cluster, 0.0, "--host h1 --for 500ms");
    assert!(told.contains("are not compared with this run: use --all-policies"), "{told}");
    assert!(runs[0]["injections"].is_array() && runs[1].get("injections").is_none());
    assert_eq!(claim["verdict"], "not-tested", "{claim}");
    let numbers = claim["measured"].as_object().unwrap().values().next().unwrap();
    assert!(numbers["injected"] == true && numbers["left"].is_number(), "{claim}");
    let why = "interference was injected into random, seed 5 and not into round-robin, seed 5";
    assert_eq!(numbers["why"][0], why);
    let (text, _) = expect(cluster.path(), "report r", 0);
    assert!(text.contains(&format!("UNEQUAL: {why}")) && !text.contains(" *"), "{text}");
}

#[test]
fn an_injection_into_all_policies_is_repeated_in_later_runs() {
    let cluster = cluster();
    // The injection begins 5.5 s after the start of the first run. In the second run it is therefore scheduled 5.5 s
    // ahead, further than times in a host's reports may normally be in the future.
    let args = "--host h1 --for 500ms --all-policies";
    let (told, runs, claim) = injected_into_one_of_two(&cluster, 5.5, args);
    assert!(
        told.contains("later runs of the experiment repeat the injection at the same emulated time"),
        "{told}"
    );
    let [first, second] = [&runs[0], &runs[1]].map(|run| run["injections"][0].clone());
    for key in ["profile", "seed", "targets"] {
        assert_eq!(first[key], second[key], "{key}");
    }
    for key in ["host", "cores", "from_s", "until_s", "degraded"] {
        assert_eq!(first["hosts"][0][key], second["hosts"][0][key], "{key}");
    }
    assert_eq!(claim["verdict"], "holds", "{claim}");
    assert_eq!(claim["measured"].as_object().unwrap().values().next().unwrap()["injected"], true);
    let (text, _) = expect(cluster.path(), "report r", 0);
    assert!(text.contains(" *") && !text.contains("UNEQUAL"), "{text}");
    assert!(text.contains("(measured with injected interference)"), "{text}");
}

/// Runs that had ended before the command cannot be injected into.
#[test]
fn an_injection_into_all_policies_names_the_runs_that_lack_it() {
    let cluster = cluster();
    let run = cluster.run("r", &format!("{LONG} {TWO}"));
    until(&cluster, |run| run["policy"] == "round-robin" && run["at_s"].as_f64() > Some(0.0));
    let args = "inject p.toml --hosts ids/hosts.toml --host h1 --for 200ms --all-policies --json";
    let (_, told) = expect(cluster.path(), args, 0);
    finish(run, 0);
    assert!(
        told.contains(
            "runs that ended without the injection are not compared with the others: random, seed 5"
        ),
        "{told}"
    );
    let claims = lines(&fs::read_to_string(cluster.path().join("r/claims.jsonl")).unwrap());
    assert_eq!(claims[0]["verdict"], "not-tested");
}

/// An experiment's schedule has the same effect on hosts as in virtual time, and is not reported as an injection.
#[test]
fn scheduled_injections_are_the_same_on_hosts_as_in_virtual_time() {
    let cluster = cluster();
    let schedule = "--set interference.injection=[{profile=\"p.toml\",who=[\"nodes:0-11\"],at=\"1s\",for=\"1500ms\"}] \
        --set run.record.timeline=2500ms";
    finish(cluster.run("r", &format!("{LONG} {TWO} {schedule}")), 0);
    expect(cluster.path(), &format!("run e.toml --quiet --out v {LONG} {TWO} {schedule}"), 0);
    let [hosts, virtually] = ["r", "v"].map(|out| cluster.summary(out));
    let bursts = |out: &str, at: usize| {
        let id = cluster.manifest(out)["runs"][at].as_str().unwrap().to_owned();
        let records = storage::records_of(&cluster.path().join(out), &[id]).unwrap();
        serde_json::to_value(&records[0]).unwrap()["bursts"].clone()
    };
    for at in 0..2 {
        assert_eq!(hosts[at]["scheduled"], virtually[at]["scheduled"]);
        assert_eq!(hosts[at]["scheduled"][0]["cores"], "0-11");
        assert!(hosts[at].get("injections").is_none());
        assert_eq!(bursts("r", at), bursts("v", at));
        assert_eq!(bursts("r", at).as_array().unwrap().len(), 12, "one burst of each core");
    }
    let claims = lines(&fs::read_to_string(cluster.path().join("r/claims.jsonl")).unwrap());
    assert_eq!(claims[0]["verdict"], "holds");
}

#[test]
fn an_injection_appears_on_the_live_page() {
    let cluster = cluster();
    let mut run = cluster.run("r", &format!("{LONG} {JOBS} --live"));
    let url = page::address(&mut run);
    cluster.reached("r", &[0, 1, 2], 1);
    assert!(page::snapshot(&url)["runs"][0]["injections"].is_null());
    let injecting = inject(cluster.path(), "--node 0-11");
    let late = Instant::now() + page::PATIENCE;
    let slow = |now: &Value| {
        let cores = now["cell"]["runs"][0]["cores"]["listed"].as_array().cloned().unwrap_or_default();
        cores.iter().filter(|core| core["slowdown"] == 4.0).count()
    };
    let now = loop {
        let now = page::snapshot(&url);
        if slow(&now) == 12 && now["cell"]["runs"][0]["shards"][2]["vitals"].is_object() {
            break now;
        }
        assert!(Instant::now() < late, "{now}");
        std::thread::sleep(Duration::from_millis(100));
    };
    let [injection] = &now["runs"][0]["injections"].as_array().unwrap()[..] else { panic!("{now}") };
    let says = injection["says"].as_str().unwrap();
    assert!(says.starts_with("cores 0-7 on h1, cores 8-11 on h2, bernoulli = {"), "{says}");
    assert_eq!(injection["kind"], "injection");
    assert_eq!(now["cell"]["runs"][0]["shards"][1]["name"], "h2");
    assert!(injection["until_s"].is_null(), "{injection}");
    let events = page::get(&url, "events");
    interrupt(&run);
    finish(run, 3);
    kill(injecting);
    let seen = page::answer(events);
    let last = seen.rsplit("<b>injection</b> at ").next().unwrap();
    assert!(last.split(": cores").next().unwrap().contains(" until "), "the interrupted run ends it: {last}");
}

/// Checks that copies on injected cores took four times as long as others, and that the timeline shows the slots.
fn assert_copies_were_slow(cluster: &Cluster, manifest: &Value, hosts: &[Value]) {
    let id = manifest["runs"][0].as_str().unwrap().to_owned();
    let records = storage::records_of(&cluster.path().join("r"), &[id]).unwrap();
    let record = serde_json::to_value(&records[0]).unwrap();
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

/// Copies that burn a CPU are slowed down for the requested time, and the certificate has the measured slowdown.
#[test]
fn real_cores_are_slowed_down_by_an_injection() {
    let cluster = cluster();
    // One core that always has work, which burns a CPU.
    let burnt = "--set workload.synthetic={jobs=16,tasks=1,interarrival=\"10ms\"} --set service.demand=200ms";
    let run = cluster.run("r", &format!("{LONG} {burnt} --set cluster.nodes=1 --set run.real={{}}"));
    cluster.until_running();
    expect(cluster.path(), "inject p.toml --hosts ids/hosts.toml --node 0 --for 700ms --json", 0);
    finish(run, 0);
    let summary = summary(&cluster);
    assert_eq!(summary["injections"][0]["profile"]["bernoulli"]["slowdown"], 4.0);
    let cores = &summary["fidelity"]["cores"];
    // There are several if the clock was set during the injection.
    let slots = cores["slots"].as_array().unwrap();
    assert!(!slots.is_empty() && slots.iter().all(|slots| slots["asked"] == 4.0), "{cores}");
    let there = &summary["injections"][0]["hosts"][0];
    let length = seconds(&there["until_s"]) - seconds(&there["from_s"]);
    let longest = slots.iter().map(|slots| seconds(&slots["length_s"])).fold(0.0, f64::max);
    assert!(longest < length + 0.01 && length < 0.71, "{cores} {there}");
    let slowest = slots.iter().map(|slots| seconds(&slots["achieved"])).fold(0.0, f64::max);
    assert!(slowest > 2.0, "other load can only add to it: {cores}");
}

#[test]
fn an_injection_can_be_ended_and_ends_with_its_run() {
    let cluster = cluster();
    let run = run(&cluster);
    let first = inject(cluster.path(), "--host h1");
    let second = inject(cluster.path(), "--core 8,23 --seed 9");
    interrupt(&first);
    assert_eq!(first.wait_with_output().unwrap().status.code(), Some(0));
    finish(run, 0);
    assert_eq!(second.wait_with_output().unwrap().status.code(), Some(0));
    let summary = summary(&cluster);
    let ends = |injection: usize| -> Vec<_> {
        let hosts = summary["injections"][injection]["hosts"].as_array().unwrap().iter();
        hosts.map(|host| [&host["cores"], &host["ended"]].map(|value| value.as_str().unwrap())).collect()
    };
    assert_eq!(ends(0), [["0-7", "ended by the injector"]]);
    assert_eq!(ends(1), [["8", "the run was over"], ["23", "the run was over"]]);
}

#[test]
fn a_dry_run_shows_the_slots_and_injects_nothing() {
    let cluster = cluster();
    let slots = |args: &str| expect(cluster.path(), &format!("inject p.toml --dry-run {args}"), 0);
    let (shown, _) = slots("--core 0,3 --for 1s");
    assert!(shown.starts_with("seed 1, 0s to 1s, 100ms a column"), "{shown}");
    assert!(shown.contains("core 0  ██████████  25.0 %") && shown.contains("core 3  ██████████"), "{shown}");
    let (shown, told) = slots("--hosts ids/hosts.toml --json --for 1s");
    assert!(told.contains("is in progress on these hosts"), "{told}");
    let slots_of = |text: &str| serde_json::from_str::<Value>(text).unwrap().as_array().unwrap().clone();
    assert_eq!(slots_of(&shown).len(), 8);
    let run = run(&cluster);
    let (shown, _) = slots("--hosts ids/hosts.toml --json --rack 0 --for 1s");
    let shown = slots_of(&shown);
    assert!(shown.len() == 24 && seconds(&shown[0]["start_s"]) > 1.0, "{shown:?}");
    finish(run, 0);
    assert!(summary(&cluster).get("injections").is_none());
    assert!(cluster.manifest("r").get("injections").is_none());
}

/// Arguments, status, and words that the message must contain, without a run in progress.
const IDLE: &str = r#"
inject p.toml | 2 | --hosts <FILE>
inject none.toml --dry-run | 2 | none.toml
inject odd.toml --dry-run | 2 | odd.toml | probabilty | probability
inject p.toml --dry-run --core 5-3 | 2 | --core | write 3-5
inject p.toml --dry-run --node 3 | 2 | no emulation is running | --hosts FILE
inject p.toml --dry-run --for 9h | 2 | --for 32400s | shorter
inject p.toml --hosts none.toml | 2 | none.toml
inject p.toml --hosts ids/hosts.toml --for 0s | 2 | --for 0s
inject p.toml --hosts ids/hosts.toml --host h9 | 2 | --host h9 | h1, h2, h3
inject p.toml --hosts ids/hosts.toml | 3 | is in progress on these hosts | volary run
"#;
/// Commands that are refused during a run.
const RUNNING: &str = r#"
inject p.toml --hosts ids/hosts.toml --node 24 | 2 | `node:24` | there are 24 nodes, 0 to 23
inject p.toml --hosts ids/hosts.toml --node x | 2 | `node:x`
inject p.toml --hosts ids/hosts.toml --node 1,5-2 | 2 | '5-2' for '--node <NODE>' | runs backwards | 2-5
inject p.toml --hosts ids/hosts.toml --node scheduler:0 | 2 | `scheduler:0` names no node
inject p.toml --hosts ids/hosts.toml --rack 7 | 2 | `rack:7`
inject p.toml --hosts ids/hosts.toml --core 24 | 2 | --core 24 | the cluster has 24 cores, 0 to 23
inject slow.toml --hosts ids/hosts.toml | 2 | a second of work would take 1e10 slots
"#;

#[test]
fn impossible_injections_are_refused() {
    let cluster = cluster();
    let write = |name: &str, text: &str| fs::write(cluster.path().join(name), text).unwrap();
    write("odd.toml", "bernoulli = { slot = \"100ms\", probabilty = 1.0, slowdown = 4.0 }");
    write("slow.toml", "bernoulli = { slot = \"100ms\", probability = 1.0, slowdown = 1e9 }");
    refuses_all(cluster.path(), IDLE);
    let run = run(&cluster);
    refuses_all(cluster.path(), RUNNING);
    finish(run, 0);
    assert!(summary(&cluster).get("injections").is_none(), "none of it took effect");
}

#[test]
fn an_interrupted_run_lists_its_injections() {
    let cluster = cluster();
    let run = run(&cluster);
    let mut injector = inject(cluster.path(), "--core 0-3");
    interrupt(&run);
    finish(run, 3);
    injector.wait().unwrap();
    let manifest = cluster.manifest("r");
    let injected = &manifest["injections"][manifest["runs"][0].as_str().unwrap()][0];
    let [host] = &injected["hosts"].as_array().unwrap()[..] else { panic!("{manifest}") };
    assert_eq!((&host["host"], &host["cores"]), (&"h1".into(), &"0-3".into()));
    assert!(seconds(&host["until_s"]) >= seconds(&host["from_s"]), "{host}");
    // The log of the run is whole up to its early end, and a replay reports the injection.
    let (replayed, _) = expect(cluster.path(), "replay r", 0);
    assert!(replayed.contains("interference was injected"), "{replayed}");
}
