//! Tests of full disks: the error names the cause, and earlier results are kept.
//!
//! The next file to be written is a link to /dev/full, or the shell limits the size of files, so that the tests need no
//! root privileges.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::Stdio;

use volary_experiment::storage::RunStore;

use crate::common::binary::{command, expect, expect_of, folder, lacks, lines, text, volary};

const FULL: &str = "/dev/full";
/// Override of the speed to faster than real time, which shortens the test.
const FAST: &str = "run.speed=8";

/// Asserts that the second of two runs finds no room for its frame, that the first run is kept, and that a later
/// command continues.
fn breaks_off_and_goes_on(args: &str) {
    let folder = folder();
    let here = folder.path();
    // The log of runs is the largest file, so a limit on the size of files limits it first.
    let set = format!("--set {FAST} --set workload.synthetic.jobs=600 --set run.record.tasks_one_in=1");
    let run = format!("run e.toml --quiet --no-report --threads 1 --out r {set} {args}");
    expect(here, &run, 0);
    let log = fs::read(here.join("r/runs.log")).unwrap();
    let first = RunStore::open(&here.join("r")).unwrap().runs().map(|(_, bytes)| bytes.end).min().unwrap();
    fs::remove_dir_all(here.join("r")).unwrap();
    // The shell counts the limit in blocks.
    let blocks = (first + log.len() as u64) / 2 / 512;
    let mut shell = std::process::Command::new("sh");
    let script = format!("ulimit -f {blocks}; exec \"$0\" {run}");
    shell.current_dir(here).args(["-c", &script, env!("CARGO_BIN_EXE_volary")]);
    let (_, said) = expect_of(&mut shell, 3);
    assert_eq!(
        lacks(&said, "File too large | r/runs.log | ulimit -f | --resume --out r", 0),
        Vec::<&str>::new(),
        "{said}"
    );
    let kept = || {
        let lines = lines(&fs::read_to_string(here.join("r/summary.jsonl")).unwrap());
        lines.into_iter().filter(|line| line.get("policy").is_some()).collect::<Vec<_>>()
    };
    assert!(kept().len() == 1 && kept()[0]["policy"] == "random", "{:?}", kept());
    expect(here, "report r", 0);
    expect(here, &format!("{run} --resume"), 0);
    assert_eq!(kept().len(), 2);
}

#[test]
fn a_run_that_a_file_size_limit_stops_can_be_resumed() {
    breaks_off_and_goes_on("");
}

#[test]
fn a_run_on_hosts_that_a_file_size_limit_stops_can_be_resumed() {
    breaks_off_and_goes_on("--runtime hosts --spawn 2");
}

#[test]
fn results_that_cannot_be_printed_are_kept() {
    let folder = folder();
    let here = folder.path();
    let full = || Stdio::from(File::create(FULL).unwrap());
    let mut run = command(here);
    let run = run.args(["run", "e.toml", "--quiet", "--json", "--out", "r"]);
    let output = run.stdout(full()).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("standard output") && said.contains("No space left on device"), "{said}");
    expect(here, "report r", 0);
    // If the log cannot be written, the run still continues.
    let mut run = command(here);
    let run = run.args(["-vv", "run", "e.toml", "--out", "noisy"]);
    assert!(run.stdout(Stdio::null()).stderr(full()).status().unwrap().success());
}

/// Results can be shown although their files cannot be written again.
#[test]
fn a_report_on_a_full_disk_still_shows_its_table() {
    let folder = folder();
    let here = folder.path();
    let (table, _) = expect(here, "run e.toml --out r", 0);
    let fill = || symlink(FULL, here.join("r/timeline.perfetto-trace.partial")).unwrap();
    fill();
    let (shown, said) = expect(here, "report r", 3);
    let row = table.lines().find(|line| line.contains("sparrow")).unwrap();
    assert!(shown.contains(row), "{shown}");
    assert!(said.contains("timeline.perfetto-trace") && said.contains("No space left on device"), "{said}");
    fill();
    let (lines, _) = expect(here, "report r --json", 3);
    assert!(lines.contains("\"policy\":\"sparrow\""), "{lines}");
}

/// A write beyond the limit on a file's size raises a signal that ends a program by default.
#[test]
fn the_error_at_a_file_size_limit_names_the_file() {
    let folder = folder();
    let here = folder.path();
    let limited = |args: &str, file: &str| {
        let mut shell = std::process::Command::new("sh");
        let script = format!("ulimit -f 1; exec \"$0\" {args}");
        shell.current_dir(here).args(["-c", &script, env!("CARGO_BIN_EXE_volary")]);
        let (_, said) = expect_of(&mut shell, 3);
        assert_eq!(lacks(&said, &format!("{file} | File too large"), 0), Vec::<&str>::new(), "{said}");
        said
    };
    assert!(limited("run e.toml --quiet --out r", "r/manifest.json").contains("ulimit -f"));
    expect(here, "run e.toml --quiet --out r --resume=auto", 0);
    limited("plot r --what cdf --out figure.svg", "figure.svg");
    limited("export r --out tables", "tables/runs.csv");
}

#[test]
fn the_error_names_a_missing_folder_for_temporary_files() {
    let folder = folder();
    let here = folder.path();
    let args = "run e.toml --runtime hosts --spawn 1 --out h";
    let output = command(here).args(args.split(' ')).env("TMPDIR", "/nowhere").output().unwrap();
    let said = text(&output.stderr);
    assert!(!output.status.success());
    assert_eq!(lacks(&said, "/nowhere | TMPDIR", 0), Vec::<&str>::new(), "{said}");
}

#[test]
fn writing_a_figure_to_a_full_disk_gives_status_3() {
    let folder = folder();
    let here = folder.path();
    expect(here, "run e.toml --quiet --out r", 0);
    symlink(FULL, here.join("figure.svg")).unwrap();
    let (_, said) = expect(here, "plot r --what cdf --out figure.svg", 3);
    assert!(said.contains("cannot write figure.svg") && said.contains("No space left on device"), "{said}");
}

/// An agent whose log cannot be written still serves runs.
#[test]
fn an_agent_with_a_full_log_still_serves_runs() {
    let folder = folder();
    let here = folder.path();
    expect(here, "certs ids --host h1=127.0.0.1:1", 0);
    let mut agent = command(here)
        .args(["agent", "--listen", "127.0.0.1:0", "--identity", "ids/h1", "--log", FULL])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(agent.stdout.take().unwrap()), &mut line)
        .unwrap();
    let address = line.trim().rsplit(' ').next().unwrap();
    let hosts = format!("[[host]]\nname = \"h1\"\naddress = \"{address}\"\n");
    fs::write(here.join("ids/hosts.toml"), hosts).unwrap();
    let args = format!("run e.toml --runtime hosts --hosts ids/hosts.toml --set {FAST} --quiet --out");
    // The agent must serve two runs in sequence.
    let runs = ["first", "second"].map(|out| volary(here, &format!("{args} {out}")));
    agent.kill().unwrap();
    let said = text(&agent.wait_with_output().unwrap().stderr);
    assert_eq!(said.matches("cannot write the log /dev/full: No space left").count(), 1, "{said}");
    for run in runs {
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    }
}
