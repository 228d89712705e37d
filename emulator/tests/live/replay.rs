//! Replay of input logs: the same effects and results as the run that wrote the log.

use std::fs;
use std::path::Path;

use crate::common::binary::{expect, lines};
use volary::runtime::replay::{Error, Replayed, replay};
use volary::runtime::{self, RunOptions, Watch};
use volary::storage::input_log::{FILE, InputLog, frame, prefix};
use volary_engine::results::Measured;

/// Losses, duplicates, crashes of both sorts, a pause, cores that slow down.
const WORLD: &str = r#"
title = "replay"
seed = 7
[cluster]
nodes = 12
cores = 2
schedulers = 2
[workload.synthetic]
jobs = 80
tasks = 4
interarrival = { exponential = { mean = "50ms" } }
[service]
demand = { exponential = { mean = "100ms" } }
[network]
one_way = { gamma = { shape = 4, mean = "3ms" } }
loss = 0.05
duplicate = 0.05
[[network.fault]]
crash = { who = ["node:3"], at = "1s", for = "700ms" }
[[network.fault]]
crash = { who = ["scheduler:1"], at = "1500ms", for = "900ms" }
[[network.fault]]
pause = { who = ["node:5"], at = "2s", for = "300ms" }
[interference]
bernoulli = { slot = "500ms", probability = 0.1, slowdown = 4 }
[run.record]
inputs = true
"#;

const POLICIES: &str = r"
[[policy]]
latin-square = { order = 2 }
[[policy]]
sparrow = {}
[[policy]]
peacock = {}
[[policy]]
murmuration = {}
[[policy]]
random = {}
";

/// Runs an experiment into a folder and replays every cell of it.
fn run_and_replay(text: &str, out: &Path) -> Vec<Replayed> {
    let options = RunOptions { out: out.to_owned(), threads: Some(2), ..RunOptions::default() };
    let outcome = runtime::run(&crate::common::parse(text), &options, &Watch::default()).unwrap();
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    let mut source = runtime::replay::run(out).unwrap();
    assert!(!source.is_cut() && source.damage().is_none());
    source.cells().iter().map(|cell| source.replay(cell).unwrap()).collect()
}

/// How far a copy is comes from the runtime, and so from the log.
#[test]
fn progress_is_replayed() {
    let _machine = crate::machine();
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{WORLD}[[policy]]\nlate = {{ scale = 0.002 }}\n");
    let text = text.replace("schedulers = 2", "schedulers = 1").replace("scheduler:1", "scheduler:0");
    assert_identical(&run_and_replay(&text, folder.path()), 1);
}

fn assert_identical(replayed: &[Replayed], policies: usize) {
    assert_eq!(replayed.len(), policies);
    for one in replayed {
        assert!(!one.cut && one.is_identical(), "{:#?}", one.divergence);
        assert!(one.steps > 1000, "{}: {} steps", one.policy, one.steps);
        let unlike: Vec<_> = one.measured.iter().filter(|line| !line.is_none()).collect();
        assert!(unlike.is_empty(), "{}: {unlike:#?}", one.policy);
        let finished = one.measured.iter().find(|line| line.what == "jobs.finished").unwrap();
        assert_eq!(finished.replayed, 80, "{}", one.policy);
    }
}

#[test]
fn a_run_in_virtual_time_is_replayed() {
    let _machine = crate::machine();
    let folder = tempfile::tempdir().unwrap();
    assert_identical(&run_and_replay(&format!("{WORLD}{POLICIES}"), folder.path()), 5);
}

#[test]
fn a_run_in_real_time_is_replayed() {
    let _machine = crate::machine();
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{WORLD}{POLICIES}")
        .replace("[run.record]", "[run]\nruntime = \"local\"\nspeed = 5\n[run.record]");
    let replayed = run_and_replay(&text, folder.path());
    assert_identical(&replayed, 5);
    assert!(replayed.iter().all(|one| one.shards == 2));
}

/// Of a run that was stopped, what never began is not in the log.
#[test]
fn a_run_that_was_interrupted_says_that_its_record_ends_early() {
    let _machine = crate::machine();
    let folder = crate::common::binary::folder();
    let here = folder.path();
    expect(here, &["run", "e.toml", "--quiet", "--out", "r", "--set", "run.record.inputs=true"], 0);
    expect(here, &["replay", "r"], 0);
    let manifest = here.join("r/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let text = text.replace("\"finished\"", "\"interrupted\"");
    let text = text.replacen("\"cells\":[", "\"cells\":[\"0123456789abcdef\",", 1);
    fs::write(&manifest, text).unwrap();
    let (out, err) = expect(here, &["replay", "r"], 3);
    assert_eq!(out.matches("effects identical").count(), 2, "{out}");
    assert!(err.contains("the record ends early: interrupted, and without 1 of 3 runs"), "{err}");
}

/// What is open when a run is cut off is cut off in the replay as well.
#[test]
fn a_run_that_is_cut_off_is_replayed() {
    let _machine = crate::machine();
    for runtime in ["", "runtime = \"local\"\nspeed = 5\n"] {
        let folder = tempfile::tempdir().unwrap();
        let run = format!("[run]\nuntil = \"1800ms\"\n{runtime}[run.record]");
        let text = format!("{WORLD}[[policy]]\nsparrow = {{}}\n").replace("[run.record]", &run);
        let replayed = run_and_replay(&text, folder.path());
        let [one] = &replayed[..] else { panic!("{replayed:?}") };
        assert!(!one.cut && one.is_identical() && one.is_equal(), "{one:#?}");
        let unfinished = one.measured.iter().find(|line| line.what == "jobs.unfinished").unwrap();
        assert_ne!(unfinished.replayed, 0, "{runtime}: nothing was cut off");
    }
}

#[test]
fn other_parameters_give_other_effects() {
    let _machine = crate::machine();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let text = |policy: &str| crate::common::parse(&format!("{WORLD}[[policy]]\n{policy}\n"));
    let (two, three) = (text("sparrow = { probe_ratio = 2 }"), text("sparrow = { probe_ratio = 3 }"));
    let sink = volary::storage::input_log::Sink::create(&path, &"none").unwrap();
    let world = crate::common::worlds(&two).next().unwrap();
    let unit = sink.unit("cell", "sparrow", world.seed());
    let measured: Measured =
        runtime::virtual_time::measure_logged("test", &world, &two.run, &unit, &Watch::default()).unwrap();
    drop(unit);
    sink.close().unwrap();
    let mut log = InputLog::new(fs::File::open(&path).unwrap()).unwrap();
    let sections = log.found().to_vec();
    let same = replay(&world, &two.run, &mut log, &sections, Some(&measured.summary)).unwrap();
    assert!(same.is_identical() && same.is_equal() && !same.measured.is_empty());
    let world = crate::common::worlds(&three).next().unwrap();
    let other = replay(&world, &three.run, &mut log, &sections, Some(&measured.summary)).unwrap();
    let divergence = other.divergence.unwrap();
    assert!(
        divergence.role.starts_with("Scheduler") && divergence.input.contains("Submit"),
        "{divergence:#?}"
    );
    // 4 tasks: 8 probes against 12, and what else a scheduler does.
    assert_eq!(divergence.effects.len() as u32 - divergence.effects_logged, 4, "{divergence:#?}");
}

/// Writes a log anew, with the payload of the first entries of a section changed.
fn change(bytes: &[u8], change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut out, mut at, mut seen) = (prefix(), 16, 0);
    while at < bytes.len() {
        let (length, section) = (word(at) as usize, word(at + 8));
        let mut payload = bytes[at + 12..at + 12 + length].to_vec();
        seen += u32::from(section != 0);
        // After the header.
        if seen == 2 {
            change(&mut payload);
        }
        frame(section, &payload, &mut out).unwrap();
        at += 12 + length;
    }
    out
}

#[test]
fn the_command_says_what_it_found() {
    let _machine = crate::machine();
    let folder = crate::common::binary::folder();
    let at = folder.path();
    let log = at.join("r").join(FILE);
    expect(at, &["run", "e.toml", "--out", "none", "--quiet"], 0);
    let (_, err) = expect(at, &["replay", "none"], 2);
    assert!(err.contains("run.record.inputs=true"), "{err}");
    expect(at, &["replay", "nowhere"], 2);

    // One thread: which cell comes first in the log is then known.
    let run = ["run", "e.toml", "--out", "r", "--quiet", "--threads", "1", "--set", "run.record.inputs=true"];
    expect(at, &run, 0);
    let (out, _) = expect(at, &["replay", "r"], 0);
    assert_eq!(out.matches("steps replayed, effects identical").count(), 2, "{out}");
    assert!(out.contains("jobs.finished") && !out.contains("differs"), "{out}");
    let (out, _) = expect(at, &["replay", "r", "--json"], 0);
    let cells = lines(&out);
    assert_eq!(cells.len(), 2);
    let cell = cells[1]["cell"].as_str().unwrap();
    let (one, _) = expect(at, &["replay", "r", "--json", "--cell", cell], 0);
    assert_eq!(lines(&one), &cells[1..]);
    let (_, err) = expect(at, &["replay", "r", "--cell", "0"], 2);
    assert!(err.contains(cell), "{err}");

    // The experiment may have changed since: the log has its own.
    fs::remove_file(at.join("e.toml")).unwrap();
    let whole = fs::read(&log).unwrap();
    fs::write(&log, change(&whole, |_| ())).unwrap();
    assert_eq!(fs::read(&log).unwrap(), whole);
    expect(at, &["replay", "r"], 0);

    // The digest of what the first actor answered to its start.
    fs::write(&log, change(&whole, |payload| payload[11] ^= 1)).unwrap();
    let (out, _) = expect(at, &["replay", "r"], 1);
    assert!(out.contains("step 1 differs, at 0") && out.contains("Client(0)"), "{out}");

    // The number of the first frame: as if those before it had been lost.
    fs::write(&log, change(&whole, |payload| payload[0] = 2)).unwrap();
    let (_, err) = expect(at, &["replay", "r"], 3);
    assert!(err.contains("frames are missing"), "{err}");

    fs::write(&log, &whole[..whole.len() - 3]).unwrap();
    let (out, err) = expect(at, &["replay", "r"], 3);
    assert!(out.contains("up to where the log ends") && err.contains("cut"), "{out}{err}");

    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    fs::write(&log, flipped).unwrap();
    let (_, err) = expect(at, &["replay", "r"], 3);
    assert!(err.contains("damaged at byte"), "{err}");

    let mut newer = whole.clone();
    newer[8] += 1;
    fs::write(&log, newer).unwrap();
    let (_, err) = expect(at, &["replay", "r"], 2);
    assert!(err.contains("format 3"), "{err}");

    fs::write(at.join("none").join(FILE), &whole).unwrap();
    let manifest = at.join("none/manifest.json");
    let other = fs::read_to_string(&manifest).unwrap().replace(cell, "0123456789abcdef");
    fs::write(manifest, other).unwrap();
    let (_, err) = expect(at, &["replay", "none", "--cell", cell], 2);
    assert!(err.contains("another run"), "{err}");
}

#[test]
fn a_resumed_run_goes_on_with_its_log() {
    let _machine = crate::machine();
    let folder = tempfile::tempdir().unwrap();
    let experiment = crate::common::parse(&format!("{WORLD}{POLICIES}"));
    let mut options = RunOptions { out: folder.path().to_owned(), resume: true, ..RunOptions::default() };
    options.shard = Some("1/2".parse().unwrap());
    runtime::run(&experiment, &options, &Watch::default()).unwrap();
    let log = folder.path().join(FILE);
    // A killed run leaves half a frame behind.
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend_from_slice(&[9; 7]);
    fs::write(&log, bytes).unwrap();
    options.shard = None;
    runtime::run(&experiment, &options, &Watch::default()).unwrap();
    let mut source = runtime::replay::run(folder.path()).unwrap();
    let cells = source.cells();
    let replayed: Vec<_> = cells.iter().map(|cell| source.replay(cell).unwrap()).collect();
    assert_identical(&replayed, 5);
    assert!(matches!(source.replay("0"), Err(Error::NoCell { .. })));
}
