//! Tests of injections that an experiment schedules.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::binary::{expect, folder, lines};

/// An experiment with two policies on eight cores, all of which the jobs need.
const EXPERIMENT: &str = r#"title = "schedule"
seed = 3
[cluster]
nodes = 4
cores = 2
[workload.synthetic]
jobs = 120
tasks = 2
interarrival = { exponential = { mean = "60ms" } }
[service]
demand = { exponential = { mean = "150ms" } }
[network]
one_way = "1ms"
[[policy]]
random = {}
[[policy]]
kairos = {}
[[claim]]
says = "a claim"
check = ["kairos.response_s.p99 < random.response_s.p99"]
"#;
const BURSTS: &str = "markov = { slot = \"50ms\", p_on = 0.2, p_off = 0.3, slowdown = 4 }\n";

/// Runs the experiment with the text `added` in the folder `at`; returns its JSON lines.
fn run(at: &Path, added: &str, args: &str) -> Vec<Value> {
    fs::write(at.join("e.toml"), format!("{EXPERIMENT}{added}")).unwrap();
    fs::write(at.join("p.toml"), BURSTS).unwrap();
    lines(&expect(at, &format!("run e.toml --json {args}"), 0).0)
}

/// A schedule, from a file or written in the experiment, has the same results as `[interference]` with a window, to the
/// nanosecond. This holds for unshared cores and for shared nodes.
#[test]
fn a_schedule_equals_interference_with_a_window() {
    let at = folder();
    let shared = "--set cluster={nodes=4,schedulers=1,shared=true,cpu=2,pods=4} --set policy=[{random={}}] --set claim=[]";
    for args in ["", shared] {
        let window = format!("[interference]\nfrom = \"2s\"\nuntil = \"4s\"\n{BURSTS}");
        let file = "[[interference.injection]]\nprofile = \"p.toml\"\nat = \"2s\"\nfor = \"2s\"\n";
        let keys = format!("[[interference.injection]]\nat = \"2s\"\nfor = \"2s\"\nprofile.{BURSTS}");
        let [window, file, keys, none] = [&window, file, &keys, ""]
            .map(|added| run(at.path(), added, &format!("--out r{}-{} {args}", added.len(), args.len())));
        for (i, line) in window.iter().enumerate().filter(|(_, line)| line["policy"].is_string()) {
            for other in [&file[i], &keys[i]] {
                for key in ["response_s", "slowdown", "interference", "copies", "jobs", "messages"] {
                    assert_eq!(line[key], other[key], "{args}: {key}");
                }
                let span = &other["scheduled"][0];
                assert_eq!((&span["from_s"], &span["until_s"]), (&2.0.into(), &4.0.into()), "{other}");
                assert!(other.get("injections").is_none() && line.get("scheduled").is_none());
                assert_ne!(other["run"], none[i]["run"], "the schedule is a part of the identity");
                assert_ne!(other["response_s"], none[i]["response_s"]);
            }
            assert_eq!(file[i]["run"], keys[i]["run"], "the id must not depend on the file");
        }
    }
}

/// All policies have the same schedule, so verdicts and stars are shown as without injections.
#[test]
fn policies_with_the_same_scheduled_injections_are_compared() {
    let at = folder();
    let added = "[[interference.injection]]\nprofile = \"p.toml\"\nwho = [\"nodes:1-2\"]\ncores = \"0\"\nat = \"1s\"\n";
    let found = run(at.path(), added, "--out r --set run.record.inputs=true");
    assert_eq!(found[0]["scheduled"][0]["cores"], "0,2-5");
    assert_ne!(found[2]["claims"][0]["verdict"], "not-tested");
    let (text, _) = expect(at.path(), "report r", 0);
    assert!(text.contains('*') && !text.contains("INJECTED") && !text.contains("UNEQUAL"), "{text}");
    let page = fs::read_to_string(at.path().join("r/report.html")).unwrap();
    assert!(page.contains("class=\"injected\""), "the timeline must show the injection");
    let (plan, _) = expect(at.path(), "plan e.toml", 0);
    assert!(plan.contains("injection") && plan.contains("nodes:1-2"), "{plan}");
    let replayed = lines(&expect(at.path(), "replay r --json", 0).0);
    for replayed in replayed {
        assert_eq!(replayed["divergence"], Value::Null);
        assert!(
            replayed["measured"].as_array().unwrap().iter().all(|line| line["replayed"] == line["recorded"])
        );
    }
}

/// In real time, the same cores are slow at the same emulated times as in virtual time.
#[test]
fn a_schedule_slows_the_same_cores_in_virtual_and_real_time() {
    let at = folder();
    let added = "[[interference.injection]]\nprofile = \"p.toml\"\nwho = [\"nodes:1-2\"]\nat = \"1s\"\nfor = \"1500ms\"\n";
    let found = ["virtual", "local"].map(|runtime| {
        run(
            at.path(),
            added,
            &format!("--out {runtime} --runtime {runtime} --set run.record.timeline=2500ms"),
        )
    });
    assert_eq!(found[0][0]["scheduled"], found[1][0]["scheduled"]);
    assert_eq!(found[0][0]["scheduled"][0]["until_s"], 2.5);
    let bursts = ["virtual", "local"].map(|runtime| {
        let path = at.path().join(runtime);
        let manifest: Value = serde_json::from_slice(&fs::read(path.join("manifest.json")).unwrap()).unwrap();
        let id = manifest["runs"][0].as_str().unwrap().to_owned();
        let record =
            serde_json::to_value(&volary_experiment::storage::records_of(&path, &[id]).unwrap()[0]).unwrap();
        record["bursts"].clone()
    });
    assert!(bursts[0].as_array().is_some_and(|bursts| bursts.len() > 10), "{bursts:?}");
    assert_eq!(bursts[0], bursts[1]);
}
