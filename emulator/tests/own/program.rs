//! Tests of the example's program: every command, in every runtime.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::binary::text;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/reserved")
}

/// Runs the example's program in a folder, with arguments separated by spaces; returns its standard output and error.
/// `cargo test --workspace` or `cargo build --example reserved` builds the program.
fn reserved(folder: &Path, args: &str, status: i32) -> (String, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_volary")).with_file_name("examples").join("reserved");
    let output = Command::new(&program)
        .current_dir(folder)
        .args(args.split_whitespace())
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}; cargo build --example reserved", program.display()));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{args}\n{out}\n{err}");
    (out, err)
}

/// Runs an experiment of the example; returns the lines of results of its policy.
fn summaries(args: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = example().join(args.split_whitespace().next().unwrap());
    let options = args.split_once(' ').map_or("", |(_, options)| options);
    let run = format!("run {} {options} --json --check --out runs", file.display());
    let (out, _) = reserved(folder.path(), &run, 0);
    let lines = out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["policy"] == "reserved" && line["jobs"].is_object()).collect()
}

#[test]
fn commands_accept_and_describe_the_policy() {
    let here = example();
    assert!(reserved(&here, "policies", 0).0.contains("reserved"));
    assert!(reserved(&here, "policies reserved", 0).0.contains("probe_timeout = \"1s\""));
    assert!(reserved(&here, "schema experiment", 0).0.contains("\"reserved\""));
    assert!(reserved(&here, "schema experiment --text", 0).0.contains("reserved.ask"));
    let wrong = |args: &str, words: [&str; 2]| {
        let said = reserved(&here, args, 2).1;
        assert!(words.iter().all(|word| said.contains(word)), "{args}: {said}");
    };
    wrong("policies reservd", ["there is no policy `reservd`", "did you mean `reserved`?"]);
    wrong("plan experiment.toml --set policy.reserved.probe=2", ["probe", "did you mean `probes`?"]);
    wrong("plan experiment.toml --set policy.reserved.probes=0", ["`reserved`: probes", "between 1 and 100"]);
    wrong("plan experiment.toml --set policy.reserved.expiry=3", ["reserved.expiry", "10ms"]);
    wrong("policies new reserved", ["`reserved` is taken", "choose another"]);
}

#[test]
fn volary_without_the_crate_refuses_the_policy() {
    let output = crate::binary::volary(&example(), "plan experiment.toml");
    assert!(text(&output.stderr).contains("unknown name `reserved`"), "{}", text(&output.stderr));
}

/// Messages of the policy are counted by name, and equal seeds give equal runs.
#[test]
fn the_experiment_runs_in_virtual_time() {
    let small = "experiment.toml --set workload.synthetic.jobs=2000";
    let runs = summaries(small);
    let [line] = &runs[..] else { panic!("{} runs", runs.len()) };
    let sent = |kind: &str| line["messages"]["by_kind"][kind].as_u64();
    assert_eq!((sent("reserved.ask"), sent("reserved.length")), (Some(60_000), Some(60_000)));
    assert_eq!(line["jobs"]["finished"], 2000);
    assert_eq!(summaries(small)[0]["engine"]["order_hash"], line["engine"]["order_hash"]);
}

#[test]
fn the_experiment_runs_in_real_time_and_on_hosts() {
    let small = "--set workload.synthetic.jobs=20 --set run.speed=20 --json --out runs";
    for runtime in ["--runtime local", "--runtime hosts --spawn 2"] {
        let folder = tempfile::tempdir().unwrap();
        let file = example().join("experiment.toml");
        let run = format!("run {} --policy reserved {small} {runtime}", file.display());
        let (out, _) = reserved(folder.path(), &run, 0);
        let lines = out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let finished: Vec<_> = lines.filter_map(|line| line["jobs"]["finished"].as_u64()).collect();
        assert_eq!(finished, [20], "{runtime}: {out}");
    }
}

/// Every job finishes under loss, duplication, crashes of nodes and of a scheduler, and a partition. A claim of the
/// experiment states this.
#[test]
fn every_job_finishes_under_faults() {
    let runs = summaries("faults.toml --repeat 30");
    assert_eq!(runs.len(), 30);
    for line in &runs {
        assert_eq!((&line["jobs"]["finished"], &line["jobs"]["failed"]), (&200.into(), &0.into()), "{line}");
    }
    let repaired = |line: &Value| line["messages"]["recovery"].as_u64().unwrap() > 0;
    assert!(runs.iter().all(repaired), "every run must repair a loss, or the faults have no effect");
}
