//! Helpers that start the binary like a user does.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use volary_experiment::storage::{RUNS, RunStore};

/// A small experiment of two policies with a claim.
pub const EXPERIMENT: &str = r#"title = "small"
seed = 3

[cluster]
nodes = 8

[workload.synthetic]
jobs = 60
tasks = 2
interarrival = "200ms"

[service]
demand = { exponential = { mean = "100ms" } }

[network]
one_way = "1ms"

[[policy]]
random = {}

[[policy]]
sparrow = {}

[[claim]]
says = "time passes"
check = ["random.makespan_s > 0", "sparrow.jobs.finished == 60"]
"#;

/// A text with pieces replaced; panics if the text lacks one of the pieces.
pub fn changed(text: &str, pieces: &[(&str, &str)]) -> String {
    pieces.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from} is not in\n{text}");
        text.replace(from, to)
    })
}

/// The command that starts the binary in a folder, without the user's traces.
pub fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_volary"));
    command.current_dir(folder).env_remove("VOLARY_TRACES");
    command
}

/// Runs the binary in a folder, with arguments that are separated by spaces.
pub fn volary(folder: &Path, args: &str) -> Output {
    command(folder).args(args.split_whitespace()).output().unwrap()
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs the binary in a folder and asserts its status; returns stdout and stderr.
pub fn expect(folder: &Path, args: &str, status: i32) -> (String, String) {
    expect_of(command(folder).args(args.split_whitespace()), status)
}

/// Runs a command and asserts its status; returns stdout and stderr.
pub fn expect_of(command: &mut Command, status: i32) -> (String, String) {
    let output = command.output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{command:?}\n{out}\n{err}");
    (out, err)
}

/// Ids of the finished runs in a folder.
pub fn finished(run: &Path) -> Vec<String> {
    let summary = fs::read_to_string(run.join("summary.jsonl")).unwrap_or_default();
    // A line that is still being written does not end with a line break.
    let lines = summary.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let id = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["run"].as_str().map(str::to_owned)
    };
    lines.filter_map(id).collect()
}

/// Removes the last finished run from a folder; returns the id of the run.
pub fn forget(run: &Path) -> String {
    let (path, last) = (run.join(RUNS), finished(run).pop().unwrap());
    let store = RunStore::open(run).unwrap();
    let (_, frame) = store.runs().find(|(id, _)| *id == last).unwrap();
    let mut log = fs::read(&path).unwrap();
    log.drain(frame.start as usize..frame.end as usize);
    fs::write(run.join("without"), log).unwrap();
    fs::rename(run.join("without"), path).unwrap();
    last
}

/// The words in a row of a table, from column `number` on, that a text lacks.
pub fn lacks<'a>(text: &str, row: &'a str, number: usize) -> Vec<&'a str> {
    row.split(" | ").skip(number).filter(|word| !text.contains(word)).collect()
}

/// Runs the binary with the arguments in each row of a table. Asserts the status and the words of the message in the
/// row.
pub fn refuses_all(folder: &Path, table: &str) {
    for row in table.trim().lines() {
        let columns: Vec<_> = row.split(" | ").collect();
        let (out, err) = expect(folder, columns[0], columns[1].parse().unwrap());
        assert_eq!((&*out, lacks(&err, row, 2)), ("", Vec::new()), "{row}\n{err}");
    }
}

/// A new folder with the experiment as `e.toml`.
pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("e.toml"), EXPERIMENT).unwrap();
    folder
}

/// Parses JSON lines.
pub fn lines(out: &str) -> Vec<serde_json::Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Parses the lines of `--json`, and removes the cost of each run.
pub fn results(out: &str) -> Vec<serde_json::Value> {
    let mut found = lines(out);
    for line in &mut found {
        if let Some(engine) = line.get_mut("engine") {
            *engine = engine["order_hash"].clone();
        }
    }
    found
}
