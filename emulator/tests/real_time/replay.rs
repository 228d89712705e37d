//! Replay of input logs, which gives the same effects and results as the run that wrote the log.

use std::fs;

use serde_json::Value;
use volary::runtime::replay::{Error, Replayed, replay};
use volary::runtime::{self, RunOptions};
use volary_engine::results::Measured;
use volary_experiment::config::Experiment;
use volary_experiment::control::StudyControl;
use volary_experiment::storage::input_log::{FILE, InputLog, Sink, frame, prefix};

use crate::common::binary::{self, expect, lines};
use crate::common::{FAULTY, plan, worlds};

/// Real time on two shards, faster than the machine can follow, because replays compare effects and not times.
const LOCAL: [&str; 2] = ["run.runtime=local", "run.speed=20"];
const POLICIES: [&str; 5] =
    ["latin-square = { order = 2 }", "sparrow = {}", "peacock = {}", "murmuration = {}", "random = {}"];

/// An experiment with faults, losses and cores that slow down, under some policies.
fn faulty(policies: &[&str], set: &[&str]) -> Experiment {
    let policies: String = policies.iter().map(|policy| format!("[[policy]]\n{policy}\n")).collect();
    let bursts = "interference.bernoulli={slot=\"500ms\", probability=0.1, slowdown=4}";
    plan(&format!("{FAULTY}{policies}"), &[&["run.record.inputs=true", bursts], set].concat())
}

/// Runs an experiment and replays every run of it.
fn run_and_replay(experiment: &Experiment) -> Vec<Replayed> {
    let folder = tempfile::tempdir().unwrap();
    let options = RunOptions { out: folder.path().to_owned(), threads: Some(2), ..RunOptions::default() };
    let outcome = runtime::run(experiment, &options, &StudyControl::default()).unwrap();
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    let mut source = runtime::replay::open(folder.path()).unwrap();
    assert!(!source.is_cut() && source.damage().is_none());
    source.runs().iter().map(|run| source.replay(run).unwrap()).collect()
}

fn assert_identical(replayed: &[Replayed], policies: usize) {
    assert_finished(replayed, policies, 80);
}

fn assert_finished(replayed: &[Replayed], policies: usize, jobs: u64) {
    assert_eq!(replayed.len(), policies);
    for one in replayed {
        assert!(!one.cut && one.is_identical(), "{:#?}", one.divergence);
        assert!(one.steps > 1000, "{}: {} steps", one.policy, one.steps);
        let unlike: Vec<_> = one.measured.iter().filter(|line| !line.is_none()).collect();
        assert!(unlike.is_empty(), "{}: {unlike:#?}", one.policy);
        let finished = one.measured.iter().find(|line| line.what == "jobs.finished").unwrap();
        assert_eq!(finished.replayed, jobs, "{}", one.policy);
    }
}

#[test]
fn runs_in_virtual_and_real_time_are_replayed() {
    let _machine = crate::shared_machine();
    assert_identical(&run_and_replay(&faulty(&POLICIES, &[])), 5);
    let replayed = run_and_replay(&faulty(&POLICIES, &LOCAL));
    assert_identical(&replayed, 5);
    assert!(replayed.iter().all(|one| one.shards == 2));
}

/// Of 80 jobs, the 40 in the middle are measured. A replay uses the window that the first of two passes found.
#[test]
fn measured_windows_are_replayed() {
    let _machine = crate::shared_machine();
    let window = ["run.measure.from=25%", "run.measure.until=75%"];
    assert_finished(&run_and_replay(&faulty(&["sparrow = {}"], &window)), 1, 40);
    assert_finished(&run_and_replay(&faulty(&["sparrow = {}"], &[&window[..], &LOCAL].concat())), 1, 40);
    let auto = faulty(&["sparrow = {}"], &["run.measure=auto", "workload.synthetic.jobs=400"]);
    let [replayed] = &run_and_replay(&auto)[..] else { panic!("one run") };
    assert!(replayed.is_identical() && replayed.is_equal(), "{replayed:#?}");
}

/// The progress of copies comes from the runtime, and therefore from the log.
#[test]
fn progress_of_copies_is_replayed_from_the_log() {
    let _machine = crate::shared_machine();
    let faults = "network.fault=[{crash={who=[\"node:3\"], at=\"1s\", for=\"700ms\"}}, \
                  {crash={who=[\"scheduler:0\"], at=\"1500ms\", for=\"900ms\"}}]";
    let experiment = faulty(&["late = { scale = 0.002 }"], &["cluster.schedulers=1", faults]);
    assert_identical(&run_and_replay(&experiment), 1);
}

/// A replay has the deadlines, preferences and history of its run, in virtual and real time, even if the run is cut
/// off.
#[test]
fn deadlines_and_history_are_replayed() {
    let _machine = crate::shared_machine();
    let preference = "preference = { kinds = 4, of = 2, slowdown = 2 }";
    let slo = format!("workload.synthetic.slo={{ share = 0.6, slack = [0.2, 9], {preference} }}");
    let goals = [slo.as_str(), "workload.synthetic.pretrain=20"];
    for set in [&[][..], &["run.until=1800ms"], &LOCAL, &[LOCAL[0], LOCAL[1], "run.until=1800ms"]] {
        let replayed = run_and_replay(&faulty(&["sparrow = {}"], &[&goals[..], set].concat()));
        let [one] = &replayed[..] else { panic!("{replayed:?}") };
        assert!(!one.cut && one.is_identical() && one.is_equal(), "{one:#?}");
        let number =
            |what: &str| one.measured.iter().find(|line| line.what == what).unwrap().replayed.as_u64();
        let [slo, met, missed, open] =
            ["slo", "met", "missed", "open"].map(|part| number(&format!("deadlines.{part}")).unwrap());
        assert!(slo > 0 && slo == met + missed + open, "{set:?}: {slo} = {met} + {missed} + {open}");
        assert_eq!(open > 0, set.contains(&"run.until=1800ms"), "{set:?}");
        assert!(number("jobs.submitted").unwrap() <= 60, "20 of 80 are history");
    }
}

/// Copies that are open when a run is cut off are cut off in the replay as well.
#[test]
fn a_run_that_is_cut_off_is_replayed() {
    let _machine = crate::shared_machine();
    for runtime in [&[][..], &LOCAL] {
        let set = [&["run.until=1800ms"], runtime].concat();
        let replayed = run_and_replay(&faulty(&["sparrow = {}"], &set));
        let [one] = &replayed[..] else { panic!("{replayed:?}") };
        assert!(!one.cut && one.is_identical() && one.is_equal(), "{one:#?}");
        let unfinished = one.measured.iter().find(|line| line.what == "jobs.unfinished").unwrap();
        assert_ne!(unfinished.replayed, 0, "{runtime:?}: nothing was cut off");
    }
}

/// The log of a stopped run has no entries of runs that never began.
#[test]
fn an_interrupted_run_is_reported_to_end_early() {
    let _machine = crate::shared_machine();
    let folder = binary::folder();
    let here = folder.path();
    expect(here, "run e.toml --quiet --out r --set run.record.inputs=true", 0);
    let path = here.join("r/manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["state"] = "interrupted".into();
    manifest["runs"].as_array_mut().unwrap().insert(0, "0123456789abcdef".into());
    fs::write(&path, manifest.to_string()).unwrap();
    let (out, err) = expect(here, "replay r", 3);
    assert_eq!(out.matches("effects identical").count(), 2, "{out}");
    assert!(err.contains("the record ends early: interrupted, and lacks 1 of 3 runs"), "{err}");
}

#[test]
fn a_replay_with_other_parameters_reports_other_effects() {
    let _machine = crate::shared_machine();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let [two, three] = [2, 3].map(|ratio| faulty(&[&format!("sparrow = {{ probe_ratio = {ratio} }}")], &[]));
    let sink = Sink::create(&path, &"none").unwrap();
    let world = worlds(&two).next().unwrap();
    let unit = sink.attempt("run", "sparrow", world.seed());
    let measured: Measured = runtime::pool::measure_observed(
        "test",
        &world,
        &two.run,
        unit.section(0, 1),
        &StudyControl::default(),
    )
    .unwrap();
    drop(unit);
    sink.close().unwrap();
    let mut log = InputLog::new(fs::File::open(&path).unwrap()).unwrap();
    let sections = log.found().to_vec();
    let same = replay(&world, &two.run, &mut log, &sections, Some(&measured.summary)).unwrap();
    assert!(same.is_identical() && same.is_equal() && !same.measured.is_empty());
    let world = worlds(&three).next().unwrap();
    let other = replay(&world, &three.run, &mut log, &sections, Some(&measured.summary)).unwrap();
    let divergence = other.divergence.unwrap();
    assert!(
        divergence.role.starts_with("Scheduler") && divergence.input.contains("Submit"),
        "{divergence:#?}"
    );
    // 4 tasks: 12 probes instead of 8, besides the scheduler's other effects.
    assert_eq!(divergence.effects.len() as u32 - divergence.effects_logged, 4, "{divergence:#?}");
}

/// Writes a log again, with a changed payload of the first entries of a section.
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
fn the_replay_command_reports_identical_damaged_and_truncated_logs() {
    let _machine = crate::shared_machine();
    let folder = binary::folder();
    let at = folder.path();
    let log = at.join("r").join(FILE);
    expect(at, "run e.toml --out none --quiet", 0);
    let (_, err) = expect(at, "replay none", 2);
    assert!(err.contains("run.record.inputs=true"), "{err}");
    expect(at, "replay nowhere", 2);

    // With one thread the first run of the log is known.
    expect(at, "run e.toml --out r --quiet --threads 1 --set run.record.inputs=true", 0);
    let (out, _) = expect(at, "replay r", 0);
    assert_eq!(out.matches("steps replayed, effects identical").count(), 2, "{out}");
    assert!(out.contains("jobs.finished") && !out.contains("differs"), "{out}");
    let (out, _) = expect(at, "replay r --json", 0);
    let runs = lines(&out);
    assert_eq!(runs.len(), 2);
    let run = runs[1]["run"].as_str().unwrap();
    let (one, _) = expect(at, &format!("replay r --json --run {run}"), 0);
    assert_eq!(lines(&one), &runs[1..]);
    let (_, err) = expect(at, "replay r --run 0", 2);
    assert!(err.contains(run), "{err}");

    // The experiment may have changed since the run, so the log contains its own copy.
    fs::remove_file(at.join("e.toml")).unwrap();
    let whole = fs::read(&log).unwrap();
    fs::write(&log, change(&whole, |_| ())).unwrap();
    assert_eq!(fs::read(&log).unwrap(), whole);
    expect(at, "replay r", 0);

    let damaged = |at: usize, with: u8| {
        let mut bytes = whole.clone();
        bytes[at] ^= with;
        bytes
    };
    let other_format = format!("format {}", whole[8] ^ 1);
    for (bytes, status, words) in [
        // The digest of the first actor's effects at its start.
        (change(&whole, |payload| payload[11] ^= 1), 1, ["step 1 differs, at 0", "Client(0)"]),
        // The number of the first frame, as if earlier frames had been lost.
        (change(&whole, |payload| payload[0] = 2), 3, ["frames are missing", ""]),
        (whole[..whole.len() - 3].to_vec(), 3, ["up to where the log ends", "truncated"]),
        (damaged(whole.len() / 2, 4), 3, ["damaged at byte", ""]),
        // The format.
        (damaged(8, 1), 2, [&*other_format, ""]),
    ] {
        fs::write(&log, bytes).unwrap();
        let (out, err) = expect(at, "replay r", status);
        assert!(words.iter().all(|word| (out.clone() + &err).contains(word)), "{words:?}: {out}{err}");
    }

    fs::write(at.join("none").join(FILE), &whole).unwrap();
    let manifest = at.join("none/manifest.json");
    let other = fs::read_to_string(&manifest).unwrap().replace(run, "0123456789abcdef");
    fs::write(manifest, other).unwrap();
    let (_, err) = expect(at, &format!("replay none --run {run}"), 2);
    assert!(err.contains("belongs to another study"), "{err}");
}

#[test]
fn a_resumed_run_continues_its_log() {
    let _machine = crate::shared_machine();
    let folder = tempfile::tempdir().unwrap();
    let experiment = faulty(&POLICIES, &[]);
    let mut options = RunOptions { out: folder.path().to_owned(), resume: true, ..RunOptions::default() };
    options.slice = Some("1/2".parse().unwrap());
    runtime::run(&experiment, &options, &StudyControl::default()).unwrap();
    let log = folder.path().join(FILE);
    // A killed run leaves half a frame behind.
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend_from_slice(&[9; 7]);
    fs::write(&log, bytes).unwrap();
    options.slice = None;
    runtime::run(&experiment, &options, &StudyControl::default()).unwrap();
    let mut source = runtime::replay::open(folder.path()).unwrap();
    let runs = source.runs();
    let replayed: Vec<_> = runs.iter().map(|run| source.replay(run).unwrap()).collect();
    assert_identical(&replayed, 5);
    assert!(matches!(source.replay("0"), Err(Error::NoRun { .. })));
}
