//! The binary as a user runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

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

/// A text with pieces changed; panics if one of them is not there.
pub fn changed(text: &str, pieces: &[(&str, &str)]) -> String {
    pieces.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from} is not in\n{text}");
        text.replace(from, to)
    })
}

/// Runs the binary in a folder.
pub fn volary(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_volary"))
        .args(args)
        .current_dir(folder)
        .env_remove("VOLARY_TRACES")
        .output()
        .unwrap()
}

/// As text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs it and asserts the status; returns stdout and stderr.
pub fn expect(folder: &Path, args: &[&str], status: i32) -> (String, String) {
    let output = volary(folder, args);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "volary {args:?}\n{out}\n{err}");
    (out, err)
}

/// A folder with the experiment as `e.toml`.
pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("e.toml"), EXPERIMENT).unwrap();
    folder
}

/// JSON lines.
pub fn lines(out: &str) -> Vec<serde_json::Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The lines of `--json` without what a run cost.
pub fn results(out: &str) -> Vec<serde_json::Value> {
    let mut found = lines(out);
    for line in &mut found {
        if let Some(engine) = line.get_mut("engine") {
            *engine = engine["order_hash"].clone();
        }
    }
    found
}
