//! Tests of the binary through its streams, exit status and files.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::common::binary::{
    EXPERIMENT, changed, command, expect, expect_of, folder, forget, lacks, lines, refuses_all, results,
};

const PROFILE: &str = "bernoulli = { slot = \"1s\", probability = 0.5, slowdown = 2 }\n";
const STAR: &str = "title = \"s\"\nshape = { star = { nodes = 3 } }\n[link.rack]\none_way = \"1ms\"\n";

#[test]
fn a_run_prints_lines_writes_files_and_can_be_resumed() {
    let folder = folder();
    let here = folder.path();
    let (out, err) = expect(here, "run e.toml --json --check --out r --repeat 2", 0);
    let found = lines(&out);
    assert_eq!((found.len(), err.as_str()), (5, ""));
    assert_eq!(found[0]["seed"], 3);
    assert_eq!(found[4]["claims"][0]["verdict"], "holds");
    for file in ["manifest.json", "summary.jsonl", "report.html"] {
        assert!(here.join("r").join(file).exists(), "{file}");
    }
    // A repeated command needs --resume. It then runs nothing, and prints the same lines.
    let (_, err) = expect(here, "run e.toml --out r", 2);
    assert!(err.contains("--resume"), "{err}");
    let (again, _) = expect(here, "run e.toml --json --out r --resume --repeat 2", 0);
    assert_eq!(again, out);
    let (table, _) = expect(here, "report r", 0);
    assert!(table.contains("sparrow") && table.contains("time passes"), "{table}");
    // A truncated summary file is not needed: the runs are read from the log of runs.
    fs::write(here.join("r/summary.jsonl"), &out[..out.len() / 2]).unwrap();
    let (reported, _) = expect(here, "report r --json", 0);
    assert_eq!(reported, out);
    let (compared, _) = expect(here, "compare r r", 0);
    assert!(compared.contains("response_s"), "{compared}");
}

#[test]
fn report_writes_the_missing_report_of_a_run() {
    let folder = folder();
    let here = folder.path();
    let (out, _) = expect(here, "run e.toml --out r --no-report", 0);
    assert!(out.contains("results: r") && !out.contains("report:"), "{out}");
    assert!(!here.join("r/report.html").exists() && here.join("r/jobs.parquet").exists());
    expect(here, "report r --quiet", 0);
    assert!(here.join("r/report.html").exists());
    expect(here, "run e.toml --quiet --out r --no-report --resume", 0);
    assert!(!here.join("r/report.html").exists(), "the old report belongs to other results");
}

#[test]
fn merged_slices_equal_the_whole_study() {
    let folder = folder();
    let here = folder.path();
    let claim =
        "[[claim]]\nsays = \"both\"\ncheck = [\"random.response_s.mean > 0 * sparrow.response_s.mean\"]\n";
    fs::write(here.join("e.toml"), format!("{EXPERIMENT}\n{claim}")).unwrap();
    let (whole, _) = expect(here, "run e.toml --json --out whole", 0);
    let (one, _) = expect(here, "run e.toml --json --out a --slice 1/2", 0);
    assert_eq!(lines(&one).last().unwrap()["claims"][1]["verdict"], "not-tested");
    expect(here, "run e.toml --json --out b --slice 2/2", 0);
    let (merged, _) = expect(here, "report a b --json", 0);
    assert_eq!(results(&merged), results(&whole));

    // The folder with all slices is a study directory in the order of the experiment.
    let (_, err) = expect(here, "report b a --out all", 0);
    assert!(!err.contains("missing"), "{err}");
    let (merged, _) = expect(here, "report all --json", 0);
    assert_eq!(results(&merged), results(&whole));
    assert!(expect(here, "compare all whole", 0).0.contains("equal seeds"));
    let (_, err) = expect(here, "compare a b", 2);
    let ran = ["only the first ran random", "only the second ran sparrow"];
    assert!(err.contains("no policy and cell in common") && ran.iter().all(|ran| err.contains(ran)), "{err}");
    let (out, _) = expect(here, "compare a b --json", 2);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&out).unwrap()["points"], serde_json::json!([]));
    let (_, err) = expect(here, "run e.toml --quiet --resume --out all", 0);
    assert!(err.contains("running 0"), "{err}");
    let (_, err) = expect(here, "report a --out whole", 2);
    assert!(err.contains("is not among those named"), "{err}");
}

#[test]
fn a_comparison_shows_the_requested_policies_and_cells() {
    let folder = folder();
    let here = folder.path();
    let text = changed(
        EXPERIMENT,
        &[("random = {}", "murmuration = {}"), ("random.makespan_s > 0", "sparrow.makespan_s > 0")],
    );
    let text = format!("{text}\n[run.record]\nstaleness = \"1s\"\n[sweep]\n\"network.loss\" = [0.0, 0.1]\n");
    fs::write(here.join("e.toml"), text).unwrap();
    expect(here, "run e.toml --quiet --out r", 0);
    let (all, _) = expect(here, "compare r r", 0);
    for measured in ["age_of_synchronisation_s.mean", "error_s.mean", "regret_s.mean"] {
        assert_eq!(
            all.matches(&format!("staleness.{measured}")).count(),
            2,
            "one policy in two cells is compared: {all}"
        );
    }
    expect(here, "plot r --what staleness --out s.svg", 0);
    let figure = fs::read_to_string(here.join("s.svg")).unwrap();
    assert!(figure.contains(">Age of synchronisation: loss = 0.1</text>"), "{figure}");
    let (some, _) = expect(here, "compare r r --policy sparrow --at loss=0.1", 0);
    let named: Vec<&str> = some.lines().filter(|line| line.contains("identical runs")).collect();
    assert_eq!(named, ["sparrow, network.loss = 0.1  (equal seeds, identical runs)"], "{some}");
    let (_, err) = expect(here, "compare r r --policy sparow", 2);
    assert!(err.contains("--policy sparow: the run has no such policy; did you mean `sparrow`?"), "{err}");
}

#[test]
fn an_export_has_a_row_per_run_and_the_tables_of_the_study() {
    let folder = folder();
    let here = folder.path();
    let swept = "[sweep]\n\"cluster.nodes\" = [20, 30]\n";
    fs::write(here.join("e.toml"), format!("{EXPERIMENT}\n{swept}")).unwrap();
    expect(here, "run e.toml --quiet --out r", 0);
    assert_eq!(expect(here, "export r --out t", 0).0, "t/runs.csv\nt/jobs.csv\nt/tasks.csv\n");
    expect(here, "export r --format parquet --out t", 0);
    let runs = fs::read_to_string(here.join("t/runs.csv")).unwrap();
    assert!(runs.starts_with("run,policy,seed,cluster.nodes,"), "{runs}");
    assert_eq!(runs.lines().count(), 5, "the table has a row for each run");
    assert_eq!(
        fs::read(here.join("t/jobs.parquet")).unwrap(),
        fs::read(here.join("r/jobs.parquet")).unwrap()
    );
    for (command, why) in [
        ("export r --out r", "is a study directory"),
        ("export gone --out t", "is not a study directory"),
        ("export r --format xls --out t", "[possible values: csv, parquet]"),
        ("export r", "--out"),
    ] {
        let (_, err) = expect(here, command, 2);
        assert!(err.contains(why), "{command}: {err}");
    }
}

#[test]
fn the_manifest_of_a_run_contains_the_experiment_file() {
    let folder = folder();
    let here = folder.path();
    expect(here, "run e.toml --quiet --out r", 0);
    let text = fs::read_to_string(here.join("e.toml")).unwrap();
    fs::write(here.join("e.toml"), format!("{text}# changed\n")).unwrap();
    expect(here, "run e.toml --quiet --resume --out r", 0);
    let manifest = fs::read_to_string(here.join("r/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let origins = manifest["origins"].as_array().unwrap();
    let texts: Vec<_> = origins.iter().map(|origin| origin["files"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(texts, [format!("{text}# changed\n"), text], "both processes record the file");
    assert_eq!(origins[0]["files"][0]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(origins[0]["machine"], origins[1]["machine"]);
    assert!(origins[0]["machine"]["cores"].as_u64().unwrap() >= 1);
}

#[test]
fn missing_slices_are_named_in_the_report() {
    let folder = folder();
    let here = folder.path();
    let swept = "[sweep]\n\"cluster.nodes\" = [20, 30, 40]\n";
    fs::write(here.join("e.toml"), format!("{EXPERIMENT}\n{swept}")).unwrap();
    for slice in 1..=3 {
        let (shown, _) = expect(here, &format!("run e.toml --out s{slice} --slice {slice}/4"), 0);
        assert!(shown.contains(&format!("This is slice {slice} of 4: ")), "{shown}");
        assert!(!shown.contains(" *"), "a policy alone in its cell is not the best: {shown}");
    }
    let page = |name: &str| fs::read_to_string(here.join(name).join("report.html")).unwrap();
    assert!(page("s1").contains("<dd>1 of 4</dd>") && !page("s1").contains("Which policy when"));
    let (shown, err) = expect(here, "report s1 s3 --out some", 0);
    let missing = "Slices 2, 4 of 4 are missing";
    assert!(
        shown.contains(missing) && err.contains(missing) && page("some").contains(missing),
        "{shown}{err}"
    );
    let (_, err) = expect(here, "report some s2 --out more", 0);
    assert!(err.contains("Slice 4 of 4 is missing"), "{err}");
    let (_, err) = expect(here, "report s1 --out more", 2);
    assert!(err.contains("is not among those named"), "{err}");
    let (shown, err) = expect(here, "run e.toml --resume --out more", 0);
    assert!(
        err.contains("kept 5 of 6 runs") && !shown.contains("hare 4 of 4") && shown.contains(" *"),
        "{err}{shown}"
    );
}

#[test]
fn a_plan_of_a_slice_shows_the_runs_of_the_slice() {
    let folder = folder();
    let here = folder.path();
    let sweep = "[sweep]\n\"network.loss\" = [0.0, 0.1]\n";
    fs::write(here.join("s.toml"), format!("{EXPERIMENT}{sweep}")).unwrap();
    let (first, _) = expect(here, "plan s.toml --slice 1/4", 0);
    let claims = "claims on other policies are tested when the slices are merged";
    assert!(first.contains(&format!("slice         random in 1 of 2 cells; {claims}\n")), "{first}");
    assert!(!first.contains("sparrow = {") && !first.contains("network.loss = 0.1\n"), "{first}");
    let (half, _) = expect(here, "plan s.toml --slice 2/2", 0);
    assert!(half.contains("slice         sparrow in 2 of 2 cells") && !half.contains("random = {"), "{half}");
    let (none, _) = expect(here, "plan s.toml --slice 5/5", 0);
    assert!(none.contains("slice         no run: there are more slices than runs"), "{none}");
    assert!(!expect(here, "plan s.toml", 0).0.contains("slice "));
}

/// The same command begins a slice and resumes it. A merge takes all slices from their common folder.
#[test]
fn repeating_an_array_job_completes_its_slices() {
    let folder = folder();
    let here = folder.path();
    let task =
        |index: u32| format!("run e.toml --quiet --resume=auto --slice {index}+1/2 --out parts/{index}");
    let merge = "report parts --out whole --quiet --complete";
    expect(here, &task(0), 0);
    let (_, err) = expect(here, merge, 3);
    assert!(err.contains("This is slice 1 of 2: 1 of 2 runs are in other slices"), "{err}");
    expect(here, &task(1), 0);
    forget(&here.join("parts/1"));
    let (_, err) = expect(here, merge, 3);
    assert!(err.contains("parts/1 lacks 1 of its 1 run") && !here.join("whole").exists(), "{err}");
    let (_, err) = expect(here, &task(1), 0);
    assert!(err.contains("kept 0 of 1 run"), "{err}");
    for _ in 0..2 {
        let (shown, err) = expect(here, merge, 0);
        assert_eq!((shown.as_str(), err.as_str()), ("", ""));
    }
    let exported = |run: &str| {
        let (_, err) = expect(here, &format!("export {run} --table jobs --out tables"), 0);
        (fs::read_to_string(here.join("tables/jobs.csv")).unwrap(), err)
    };
    assert_eq!(exported("parts"), exported("whole"));
    assert_eq!(exported("parts/0 parts/1"), exported("whole"));
    assert!(exported("parts/0").1.contains("This is slice 1 of 2: 1 of 2 runs are in other slices"));
    let (merged, _) = expect(here, "report whole --json --complete", 0);
    assert_eq!(results(&merged), results(&expect(here, "run e.toml --json --out alone", 0).0));
}

/// A table of arguments, status, and words that the message must contain.
const BAD: &str = r#"
rnu e.toml | 2 | unrecognized subcommand | exists: 'run'
run bad.toml | 2 | error: unknown key `node` | bad.toml:5:1 | did you mean `nodes`?
plan nowhere.toml | 2 | cannot read nowhere.toml
plan f.toml | 2 | cannot read f.toml
run s.toml | 2 | s.toml is a topology, not an experiment | s.toml:1:1 | `volary topology show s.toml` shows it
plan p.toml | 2 | p.toml is an interference profile, not an experiment | p.toml:1:1 | with [interference] profile = "p.toml"
run e.toml --set cluster={topology="p.toml"} | 2 | p.toml is an interference profile, not a topology | --set:1:19
run e.toml --set interference.profile=s.toml | 2 | s.toml is a topology, not an interference profile | --set:1:22
profile show empty.toml | 2 | not exactly one process is named | empty.toml:1:1 | keep one of `bernoulli`, `markov`, `renewal`
profile show azure-chache | 2 | cannot read azure-chache | it is no preset either; did you mean `azure-cache`?
profile show bursts.tml | 2 | . has no similar file
run e.toml --set interference.profile=azure-cach | 2 | --set:1:22 | did you mean `azure-cache`?
plan e.toml --set interference.bernoulli={slot="1s",probability=1,slowdown=2} --set interference.profile=bursts | 2 | --set | has every key of `bernoulli`, so the profile `bursts` has no effect | interference={ profile = "bursts" }
profile record --kernel none | 2 | expected `hash`, `memory` or `cache`
profile record --cpus 9999 | 2 | CPU 9999 is not among those that this process may use
profile record --window 1ms | 2 | --window 1ms: write a time from 10ms to 30s, the length of the recording
profile record --for 50ms | 2 | --window 100ms | 50ms, the length of the recording
profile record --for 1000d | 2 | more than 419430 windows | 16 MiB | record a shorter time
profile record --picture a.jpg | 2 | --picture a.jpg: the name of a figure ends in .svg, .pdf or .png
profile fit t.csv | 2 | t.csv:1: | the header names the columns
profile fit missing.csv | 2 | cannot read missing.csv
profile fit few.csv | 2 | few.csv: 1 burst with 0 gaps before them are too few | record for longer
profile show p.tml | 2 | cannot read p.tml: No such file or directory (os error 2) | . has `p.toml`
run none.toml | 2 | the file lacks `policy` | none.toml:1:1 | sparrow = { probe_ratio = 2 } | `volary policies` lists all
run label.toml | 2 | no policy is named | label.toml:18:1 | `volary policies NAME` explains one
run e.toml --runtime vitual | 2 | expected virtual, local or hosts
run e.toml --slice 3/2 | 2 | I/N
run e.toml --slice 0/4 | 2 | counted from 1 | 0+1/4
run e.toml --slice 4+1/4 | 2 | I/N
run e.toml --resume=sometimes | 2 | sometimes
report e.toml --complete --markdown | 2 | cannot be used with
report empty | 2 | not a study directory
run e.toml --repeat 0 | 2 | at least 1
run | 2 | EXPERIMENT
policies sparow | 2 | did you mean `sparrow`?
report e.toml | 2 | not a study directory
profile show e.toml | 2 | e.toml is an experiment | volary run e.toml
profile show p.toml --until 200000d | 2 | --until  | a shorter
profile show p.toml --until 0s | 2 | --until  | longer time
topology show e.toml | 2 | e.toml is an experiment | volary plan e.toml
trace describe no.tr | 2 | no.tr
trace describe . | 2 | . is a folder | name a trace in it
trace compare t.csv no.tr | 2 | no.tr
trace describe t.csv --html no/d.html | 2 | cannot write no/d.html
trace predict t.csv --features users | 2 | no feature is named `users`; did you mean `user`?
trace predict t.csv --features user,queue | 2 | --features queue: no job of t.csv has this feature | `user`
trace predict t.csv --features user,user | 2 | --features: `user` is named twice
trace predict t.csv --predictor 2sigma | 2 | no predictor is named `2sigma` | `3sigma`
trace predict t.csv --columns user=whom,submit=submit_ms,run=run_ms | 2 | t.csv:1 | no column `whom`
trace compare t.csv t.tr --columns user=user,submit=submit_ms,run=run_ms | 2 | --columns FILE:LIST
trace compare t.csv t.tr --columns u.csv:user=user | 2 | no trace here is called `u.csv` | `t.csv` or `t.tr`
trace describe t.csv --columns user=user,user=run_ms | 2 | `user` is given twice
trace describe t.tr --columns user=user | 2 | --columns is for .csv files
trace convert t.tr t.tr | 2 | t.tr exists and is not overwritten | --force
trace predict mustang.csv.gz | 2 | mustang.csv.gz | ftp.pdl.cmu.edu/pub/datasets/ATLAS
trace sources typo | 2 | no trace is named `typo`; choose `yahoo`
trace describe t.csv --zone CEST | 2 | `CEST` is not a time zone; write UTC
trace describe t.csv --skip-bad 5 | 2 | from 0% to 100%, such as 1%
trace describe t.csv --size memory | 2 | choose gpus or cores
trace describe t.tr --size gpus | 2 | --size is for .csv files
trace describe t.csv --columns phily | 2 | no table is called `phily` | philly
run kind.toml | 2 | kind.toml:26:35 | unknown message kind `foo`
run e.toml --resume | 2 | there is no study of `e` in runs | --out
run e.toml --resume --out typo | 2 | there is no study in typo | leave out --resume
run e.toml --resume --out empty | 2 | there is no study in empty | leave out --resume
agent --listen localhost:1 --identity x | 2 | `localhost:1` is not an address: write IP:PORT, such as 10.77.0.2:4433
schema nothing | 2 | experiment
certs c | 2 | --host
certs c --host h1 | 2 | NAME=ADDRESS:PORT
certs c --host h1=here:1 | 2 | `here:1` is not an address | 10.77.0.2:4433
certs c --host controller=10.0.0.1:1 | 2 | `controller` is the controller's
certs c --host h1=10.0.0.1:1 --days 0 | 2 | --days
"#;

#[test]
fn bad_input_gives_status_2_and_an_explanation_on_stderr() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("bad.toml"), changed(EXPERIMENT, &[("nodes = 8", "node = 8")])).unwrap();
    fs::write(here.join("p.toml"), PROFILE).unwrap();
    fs::write(here.join("t.csv"), "submit_ms,run_ms,user\n1,2,3\n").unwrap();
    fs::write(here.join("t.tr"), "0 1 5 5\n").unwrap();
    let kind = changed(EXPERIMENT, &[("random.makespan_s", "random.messages.by_kind.foo")]);
    fs::write(here.join("kind.toml"), kind).unwrap();
    fs::write(here.join("s.toml"), STAR).unwrap();
    fs::write(here.join("few.csv"), "0 1 2 3\n").unwrap();
    fs::write(here.join("empty.toml"), "scope = \"node\"\n").unwrap();
    let without = EXPERIMENT.split("[[policy]]").next().unwrap();
    fs::write(here.join("none.toml"), without).unwrap();
    fs::write(here.join("label.toml"), format!("{without}[[policy]]\nlabel = \"a\"\n")).unwrap();
    fs::create_dir(here.join("empty")).unwrap();
    refuses_all(here, BAD);
    assert!(!here.join("runs").exists());
}

#[test]
fn certs_makes_identities_once_and_states_the_next_steps() {
    let folder = folder();
    let here = folder.path();
    let (out, err) = expect(here, "certs lab --days 7 --host h1=10.0.0.1:4433 --host h2=10.0.0.2:4433", 0);
    assert!(out.starts_with("valid until 2") && err.is_empty(), "{out}{err}");
    let said: Vec<_> = out.lines().skip(1).collect();
    assert_eq!(
        said,
        [
            "  lab/controller",
            "  lab/h1",
            "  lab/h2",
            "copy each host's folder to that host and start `volary agent --listen ADDR --identity FOLDER`;",
            "then `volary run EXPERIMENT --runtime hosts --hosts lab/hosts.toml`",
        ]
    );
    let file = fs::read_to_string(here.join("lab/hosts.toml")).unwrap();
    assert!(file.contains("name = \"h2\"\naddress = \"10.0.0.2:4433\"\n"), "{file}");
    let (_, err) = expect(here, "certs lab --host h3=10.0.0.3:4433", 2);
    assert!(err.contains("lab exists and is not overwritten"), "{err}");
}

/// A table of arguments, and words that the answer must contain.
const ANSWERS: &str = r#"
plan e.toml | 1 cell × 2 policies | policies      random = {}\n | \nnetwork       one_way = "1ms"\ninterference  none\n
plan e.toml | speed 1.0\nworkload      synthetic = { jobs = 60, tasks = 2.0
plan e.toml --json | "offered"
plan e.toml --set cluster={topology="s.toml"} --set network={loss=0.1} | 1 scheduler, topology: s\n | \nnetwork       link.rack = { one_way = "1ms" }\n              loss = 0.1, unless a link of the topology sets its own\ninterference
policies | latin-square
policies latin-square | order
policies --json | "parameters"
schema experiment | "interarrival"
schema results | "response_s"
profile show p.toml --until 4s | throughput
profile show p.toml --json | start_s
profile show azure-cache --until 60s | speed over time: p0.1
profile list | tail-at-scale      Servers of which
profile list --json | It cannot say
inject azure-cpu --dry-run | core 0
topology show s.toml | 3 nodes
trace describe t.tr | 2
trace describe t.tr --html d.html | 2
trace compare t.tr t.tr --html c.html | majority of jobs are small
trace compare t.tr --json | "criterion"
trace predict t.tr --features size | jvupredict from size, alone and in pairs: 0 values
trace predict t.tr t.tr --predictor 3sigma --by week --json | "within_factor_two"
trace convert t.tr u.tr.gz | 2 jobs, 3 tasks
trace convert t.tr u.tr.gz --force | 2 jobs, 3 tasks
completions bash | _volary
--version | volary
"#;

#[test]
fn commands_print_their_answers_on_stdout() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("p.toml"), PROFILE).unwrap();
    fs::write(here.join("t.tr"), "0.0 2 1.5 1.0 2.0\n1.0 1 3.0 3.0\n").unwrap();
    fs::write(here.join("s.toml"), STAR).unwrap();
    for row in ANSWERS.trim().lines() {
        let row = row.replace("\\n", "\n");
        let args = row.split(" | ").next().unwrap();
        let (out, err) = expect(here, args, 0);
        assert_eq!((lacks(&out, &row, 1), &*err), (Vec::new(), ""), "{args}\n{out}");
    }
    assert!(here.join("u.tr.gz").exists());
}

/// The command keeps the CPU busy, so that the recording finds interference.
#[test]
fn an_interrupted_recording_keeps_its_trace_and_ends_its_command() {
    let folder = folder();
    let loops = "echo $$ > pid; for i in $(seq $(nproc)); do while :; do :; done & done; wait";
    let arguments =
        ["profile", "record", "--for", "600s", "--window", "50ms", "--picture", "p.svg", "--beside", loops];
    let mut started = command(folder.path());
    let mut child = started.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("recording for ") {
        line.clear();
        assert_ne!(err.read_line(&mut line).unwrap(), 0, "it ended before the recording");
    }
    std::thread::sleep(Duration::from_secs(3));
    let id = Pid::from_child(&child);
    kill_process(id, Signal::INT).unwrap();
    line.clear();
    err.read_to_string(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{line}");
    assert!(line.contains("interrupted after"), "{line}");
    let shell: i32 = fs::read_to_string(folder.path().join("pid")).unwrap().trim().parse().unwrap();
    assert!(test_kill_process(Pid::from_raw(shell).unwrap()).is_err(), "the command goes on");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        out.contains("work lost") && out.contains("other programs or a CPU quota took the CPUs"),
        "{out}"
    );
    assert!(fs::read_to_string(folder.path().join("p.svg")).unwrap().contains("Speed of CPUs"));
    let lost = |text: &str| text.split("work lost ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let until = out.split(" to ").nth(1).unwrap().split(',').next().unwrap();
    fs::write(folder.path().join("p.toml"), "trace.file = \"recorded.csv\"\n").unwrap();
    let cpus = std::thread::available_parallelism().unwrap();
    let shown = expect(folder.path(), &format!("profile show p.toml --until {until} --cores {cpus}"), 0).0;
    assert_eq!(lost(&shown), lost(&out), "the trace loses as much work as was recorded");
    // A command that fails at once leaves no trace.
    let failing = ["profile", "record", "--beside", "exit 7", "--out", "f.csv"];
    let said = expect_of(command(folder.path()).args(failing), 2).1;
    assert!(said.contains("`exit 7` failed (exit status: 7)"), "{said}");
    assert!(!folder.path().join("f.csv").exists());
}

#[test]
fn policies_explains_a_policy_and_its_parameters() {
    let folder = folder();
    let here = folder.path();
    insta::assert_snapshot!(expect(here, "policies full-repetition", 0).0, @r#"
    full-repetition: Full repetition (simulator of the latin-square paper)
    Every server of a branch runs all its tasks, in the same order; the rest is stopped when the branch ends. The non-staggered counterpart of the latin square.

    Parameters:
      order = 2  (whole number from 1 to 65535)
          Number of tasks of a branch, and of servers that run it, as in the latin square.
      preempt = "branch"  (a word)
          Event at which copies are dropped.
          "branch": All remaining copies of a branch are dropped when its last task finishes, as in the latin-square paper's simulator.
          "task": The other copies of a task are dropped when one finishes, which isolates the effect of the stagger.
    "#);
}

/// The plan of a wide sweep shows the first loads, the number of overloaded cells, and the range of all loads.
#[test]
fn a_plan_of_many_cells_states_the_range_of_loads() {
    let folder = folder();
    let nodes: Vec<String> = (1..=40).map(|nodes| nodes.to_string()).collect();
    let swept = format!("[sweep]\n\"cluster.nodes\" = [{}]\n", nodes.join(", "));
    fs::write(folder.path().join("w.toml"), format!("{EXPERIMENT}{swept}")).unwrap();
    let (out, _) = expect(folder.path(), "plan w.toml", 0);
    assert!(out.contains("and 16 more cells, 0 of them with ρ ≥ 1"), "{out}");
    assert!(out.contains("from 0.0250 (cluster.nodes = 40) to 1.000 (cluster.nodes = 1)"), "{out}");
}

#[test]
fn overload_is_reported_before_the_run_and_in_its_reports() {
    let folder = folder();
    let here = folder.path();
    let (out, err) = expect(here, "run e.toml --out r --set workload.synthetic.interarrival=10ms", 0);
    assert_eq!(
        err,
        " WARN overload: ρ = 2.50: more work arrives than the cores can do, so queues grow until the last arrival \
         and response times grow with the number of jobs\n"
    );
    let warning = err.trim().trim_start_matches("WARN ");
    assert!(!out.contains(warning), "stdout must not repeat the warning: {out}");
    let (again, _) = expect(here, "report r", 0);
    assert!(again.contains(&format!("warning: {warning}")), "{again}");
    let page = fs::read_to_string(here.join("r/report.html")).unwrap();
    assert!(page.contains(warning), "the page shows the warning");
    // There is no warning for a single job, which has no rate, or for a load of one half.
    for set in ["workload.synthetic.jobs=1", "workload.synthetic.interarrival=50ms"] {
        let (_, err) = expect(here, &format!("run e.toml --out {set} --set {set}"), 0);
        assert_eq!(err, "", "{set}");
    }
}

#[test]
fn verbose_output_has_a_line_per_run() {
    let folder = folder();
    let (_, err) = expect(folder.path(), "-v run e.toml --quiet --threads 1 --out r", 0);
    for word in
        ["e: 2 runs in 1 cell", "run 1 of 2: random, seed 3, 60 jobs", "finished 60 of 60 jobs", "events"]
    {
        assert!(err.contains(word), "{word} is not in\n{err}");
    }
}

#[test]
fn errors_of_the_system_are_printed_once() {
    let folder = folder();
    let here = folder.path();
    expect(here, "run e.toml --quiet --out r", 0);
    fs::write(here.join("busy"), "").unwrap();
    for args in ["run nowhere.toml", "run e.toml --out busy/x", "topology show ."] {
        let (_, err) = expect(here, args, 2);
        assert_eq!(err.matches("os error").count(), 1, "{err}");
    }
    let (_, err) = expect(here, "run e.toml --out r", 2);
    assert!(err.contains("already holds a run of `e` (finished)"), "{err}");
}

#[test]
fn a_run_without_records_still_writes_a_timeline_file() {
    let folder = folder();
    let here = folder.path();
    expect(here, "run e.toml --quiet --out r --set run.until=1ns", 0);
    assert!(fs::metadata(here.join("r/timeline.perfetto-trace")).unwrap().len() > 0);
}

/// An experiment with twice the work that two nodes can do. The run is cut off while copies run.
const CUT: &str = r#"
title = "cut"
seed = 3
cluster = { nodes = 2, schedulers = 1 }
service = { demand = { exponential = { mean = "4s" } } }
run = { until = "60s" }
[workload.synthetic]
jobs = 80
tasks = 1
interarrival = "1s"
slo = { share = 0.5, slack = [2, 8] }
[[policy]]
3sigma = {}
[[policy]]
prio = {}
"#;

/// In a run that is cut off, useful, wasted and unfinished core time add up to the busy time, in JSON lines, table and
/// report. Plans and deadlines are compared as well.
#[test]
fn a_run_that_is_cut_has_work_in_progress() {
    let folder = folder();
    let here = folder.path();
    fs::write(here.join("cut.toml"), CUT).unwrap();
    let (out, _) = expect(here, "run cut.toml --json --out r", 0);
    let runs: Vec<_> = lines(&out).into_iter().filter(|line| line["policy"].is_string()).collect();
    assert_eq!(runs.len(), 2);
    for run in &runs {
        let number = |key: &str| run.pointer(key).and_then(serde_json::Value::as_f64).unwrap();
        assert_eq!(number("/copies/in_progress"), 2.0, "both nodes are busy");
        let [busy, wasted, open] =
            ["busy_s", "wasted_work_s", "in_progress_s"].map(|key| number(&format!("/copies/{key}")));
        let useful = number("/utilization") * (1.0 - (wasted + open) / busy);
        assert!(open > 0.0 && (useful - number("/goodput")).abs() < 1e-9, "{run}");
        assert!(number("/deadlines/value") >= number("/deadlines/met") && number("/deadlines/met") > 0.0);
    }
    let (table, _) = expect(here, "report r", 0);
    assert!(table.contains("in progress"), "{table}");
    let page = fs::read_to_string(here.join("r/report.html")).unwrap();
    for part in
        ["3sigma: in progress", "Deadlines missed", "Node-hours of jobs that ended", "gap p99", "within 2×"]
    {
        assert!(page.contains(part), "{part}");
    }
    let (compared, _) = expect(here, "compare r r", 0);
    for metric in ["copies.in_progress_s", "deadlines.value", "planning.preempted", "prediction.within_2x"] {
        assert!(compared.contains(metric), "{metric}: {compared}");
    }
}
