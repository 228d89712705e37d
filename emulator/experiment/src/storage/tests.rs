//! Tests of studies that finish, are interrupted, resumed, or compete for a folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde_json::json;
use volary_engine::results::{
    Cell, Certificate, ClaimResult, CoreRow, JobRow, Origin, RealWork, SCHEMA, Summary, Verdict, run_id,
};

use super::files::append;
use super::manifest::{Failure, Manifest, RunState};
use super::run_record::RunRecord;
use super::slices::{Slices, SweepSlice};
use super::*;
use crate::fidelity::fixture;
use crate::storage::fixture::manifest;
use crate::storage::fixture::measured;

fn names(folder: &Path) -> Vec<String> {
    let entries =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

fn jobs(root: &Path) -> i64 {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    let file = File::open(root.join("jobs.parquet")).unwrap();
    SerializedFileReader::new(file).unwrap().metadata().file_metadata().num_rows()
}

/// The summaries in the summary lines.
fn load_summaries(root: &Path) -> Vec<Summary> {
    let text = fs::read_to_string(root.join(SUMMARY)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn record(run: &StudyDir, id: &str) -> Result<RunRecord, Error> {
    run.records(&[id.to_owned()]).map(|mut records| records.remove(0))
}

#[test]
fn a_finished_run_has_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("deep/run");
    let run = StudyDir::create(&root, manifest(&["b", "a"])).unwrap();
    std::thread::scope(|threads| {
        for (id, policy) in [("a", "first"), ("b", "second")] {
            let run = &run;
            threads.spawn(move || run.store(id, &measured(policy, &[], 1, 1.0, 50)).unwrap());
        }
    });
    let claim = ClaimResult {
        says: "s".into(),
        origin: Origin::Ours,
        tolerance: None,
        verdict: Verdict::Holds,
        measured: [].into(),
    };
    let study = run.finish(RunState::Finished, std::slice::from_ref(&claim), render).unwrap();
    assert_eq!(study.policies(), ["second", "first"], "in the order of the plan");
    let expected = ".lock claims.jsonl decisions.parquet jobs.parquet manifest.json report.html runs.log \
                    slowdowns.parquet staleness.parquet summary.jsonl tasks.parquet timeline.perfetto-trace";
    assert_eq!(names(&root).join(" "), expected);
    assert_eq!(jobs(&root), 100);
    assert_eq!(load_claims(&root).unwrap(), [claim]);
    let summaries = load_summaries(&root);
    assert_eq!(summaries.iter().map(|s| s.policy.as_str()).collect::<Vec<_>>(), ["second", "first"]);
    let manifest = load_manifest(&root).unwrap();
    assert_eq!(manifest.state, RunState::Finished);
    assert!(manifest.ended.is_some());
    assert_eq!(load(&root).unwrap(), study, "the report can be made again");
    assert!(fs::read_to_string(root.join(REPORT)).unwrap().contains("Latin square"));
}

/// The tables are made again from the log of runs. If the log is missing, existing tables are not overwritten.
#[test]
fn lost_tables_are_made_again_from_the_log_of_runs() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    slice(root, &[("1", "p", 1), ("2", "q", 1)], &[]);
    let report = || LockedDir::take(root, &[]).unwrap().write(&load(root).unwrap(), render);
    let tables = ["jobs", "tasks", "staleness"].map(|name| root.join(format!("{name}.parquet")));
    let whole = tables.each_ref().map(|path| fs::read(path).unwrap());
    fs::remove_file(&tables[0]).unwrap();
    fs::write(&tables[1], "PAR1").unwrap();
    report().unwrap();
    assert!(tables.each_ref().map(|path| fs::read(path).unwrap()) == whole);
    fs::remove_file(root.join(RUNS)).unwrap();
    let error = report().unwrap_err().to_string();
    assert!(error.contains(RUNS) && error.contains("--resume") && jobs(root) == 20, "{error}");
}

#[test]
fn rows_of_jobs_are_left_out_if_the_experiment_does_not_record_them() {
    let folder = tempfile::tempdir().unwrap();
    let run = StudyDir::create(folder.path(), manifest(&["a"])).unwrap().with_jobs(false);
    let record = run.store("a", &measured("p", &[], 1, 1.0, 50)).unwrap();
    run.finish(RunState::Finished, &[], |_| RenderedReport::default()).unwrap();
    assert_eq!(jobs(folder.path()), 0);
    let kept = load(folder.path()).unwrap();
    assert_eq!(kept.records().next().unwrap().response, record.response, "charts of responses stay");
}

/// A study that is killed while its final files are written is not marked as finished.
#[test]
fn a_study_is_marked_finished_only_after_its_final_files() {
    let folder = tempfile::tempdir().unwrap();
    let run = StudyDir::create(folder.path(), manifest(&["a"])).unwrap();
    run.store("a", &measured("p", &[], 1, 1.0, 5)).unwrap();
    let render = |study: &Study| {
        let noted = load_manifest(&study.folders[0]).unwrap();
        assert_eq!((noted.state, study.manifest.state), (RunState::Running, RunState::Finished));
        RenderedReport::default()
    };
    run.finish(RunState::Finished, &[], render).unwrap();
    assert_eq!(load_manifest(folder.path()).unwrap().state, RunState::Finished);
}

/// Measurements of real cores are stored for runs whose copies burned real cores.
#[test]
fn only_runs_on_real_cores_write_cores_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let run = StudyDir::create(folder.path(), manifest(&["a", "b"])).unwrap();
    let [mut timed, mut burnt] = ["timed", "burnt"].map(|policy| measured(policy, &[], 1, 1.0, 50));
    timed.cores.clear();
    burnt.summary.fidelity = Some(Certificate { cores: Some(RealWork::default()), ..fixture::faithful() });
    run.store("a", &timed).unwrap();
    run.store("b", &burnt).unwrap();
    run.finish(RunState::Finished, &[], render).unwrap();
    assert!(names(folder.path()).contains(&"cores.parquet".to_owned()));
    assert_eq!(load_rows::<CoreRow>(folder.path(), "b").unwrap(), burnt.cores);
    assert!(load_rows::<CoreRow>(folder.path(), "a").unwrap().is_empty());
    assert!(load_rows::<CoreRow>(folder.path(), "none").is_err());
}

/// A killed study leaves complete runs, perhaps an incomplete run, and a summary that may end within a line.
#[test]
fn a_killed_study_is_resumed_without_loss_of_finished_runs() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let run = StudyDir::create(root, manifest(&["a", "b", "c"])).unwrap();
    let first = measured("first", &[], 1, 1.0, 50);
    run.store("a", &first).unwrap();
    assert_eq!(load_manifest(root).unwrap().state, RunState::Running);
    drop(run);
    let mut log = OpenOptions::new().append(true).open(root.join(RUNS)).unwrap();
    log.write_all(b"half of b").unwrap();
    let mut lines = OpenOptions::new().append(true).open(root.join(SUMMARY)).unwrap();
    lines.write_all(b"{\"experiment\":\"pa").unwrap();
    assert_eq!(load_manifest(root).unwrap().state, RunState::Interrupted, "the process of the run has ended");

    let run = StudyDir::open(root, manifest(&["a", "b", "c"])).unwrap();
    assert_eq!(["a", "b", "c"].map(|id| run.has(id)), [true, false, false]);
    assert_eq!(load_summaries(root), std::slice::from_ref(&first.summary), "the torn line is gone");
    assert_eq!(record(&run, "a").unwrap().summary, first.summary, "the record equals the stored one");
    run.store("b", &measured("second", &[], 1, 1.0, 30)).unwrap();
    run.store("c", &measured("third", &[], 1, 1.0, 20)).unwrap();
    let study = run.finish(RunState::Finished, &[], render).unwrap();
    assert_eq!((study.missing, jobs(root)), (0, 100));
}

#[test]
fn an_interrupted_study_is_closed_with_its_finished_runs() {
    let folder = tempfile::tempdir().unwrap();
    let run = StudyDir::create(folder.path(), manifest(&["a", "b"])).unwrap();
    run.store("b", &measured("second", &[], 1, 1.0, 30)).unwrap();
    let study = run.finish(RunState::Interrupted, &[], render).unwrap();
    assert_eq!((study.missing, jobs(folder.path())), (1, 30));
    assert!(fs::read_to_string(folder.path().join(REPORT)).unwrap().contains("second"));
    // A later plan adds and drops runs: only runs of the latest plan are shown.
    drop(run);
    let run = StudyDir::open(folder.path(), manifest(&["b"])).unwrap();
    run.expect(vec!["c".to_owned(), "b".to_owned()]).unwrap();
    run.store("c", &measured("third", &[], 1, 1.0, 5)).unwrap();
    let study = run.finish(RunState::Finished, &[], render).unwrap();
    assert_eq!((study.policies(), jobs(folder.path())), (vec!["second", "third"], 35));
    // A finished run that the plan lacks is kept for the next plan.
    drop(run);
    let run = StudyDir::open(folder.path(), manifest(&["c"])).unwrap();
    run.finish(RunState::Finished, &[], render).unwrap();
    assert_eq!((jobs(folder.path()), load_rows::<JobRow>(folder.path(), "b").unwrap().len()), (5, 30));
    drop(run);
    let run = StudyDir::open(folder.path(), manifest(&["b", "c"])).unwrap();
    let study = run.finish(RunState::Finished, &[], render).unwrap();
    assert_eq!((study.policies(), jobs(folder.path())), (vec!["second", "third"], 35));
}

/// If the disk has no room for a second manifest, the existing manifest is overwritten with the final state.
#[test]
fn the_final_state_is_written_on_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let run = StudyDir::create(folder.path(), manifest(&["a"])).unwrap();
    let partial = folder.path().join(format!("{MANIFEST}.partial"));
    fs::create_dir(&partial).unwrap();
    let many = (0..100).map(|i| format!("a run that came later, {i}")).collect();
    assert!(run.expect(many).is_err(), "only the final state overwrites the manifest");
    run.finish(RunState::Failed, &[], render).unwrap();
    drop(run);
    let manifest = load_manifest(folder.path()).unwrap();
    assert_eq!((manifest.state, manifest.runs.len()), (RunState::Failed, 1));
    assert!(manifest.ended.is_some());
}

/// A reader of a run holds the lock for a moment. This must not prevent a run from starting.
#[test]
fn a_reader_does_not_prevent_a_run_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    drop(StudyDir::create(folder.path(), manifest(&["a"])).unwrap());
    let lock = File::open(folder.path().join(".lock")).unwrap();
    lock.try_lock_shared().unwrap();
    std::thread::scope(|threads| {
        let opened = threads.spawn(|| StudyDir::open(folder.path(), manifest(&["a"])).map(drop));
        std::thread::sleep(std::time::Duration::from_millis(20));
        drop(lock);
        opened.join().unwrap().unwrap();
    });
}

fn failure(cell: &Cell) -> Failure {
    let failure = json!({ "run": "a", "policy": "p", "cell": cell, "seed": 1, "log": "it broke" });
    serde_json::from_value(failure).unwrap()
}

#[test]
fn a_failed_run_keeps_its_log_until_it_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let run = StudyDir::create(folder.path(), manifest(&["a"])).unwrap();
    let failure = failure(&[("load".to_owned(), json!(0.5))].into());
    run.fail(&failure).unwrap();
    assert!(!run.has("a"), "a failed run is executed again");
    let study = run.finish(RunState::Failed, &[], render).unwrap();
    assert_eq!((study.failures.as_slice(), study.missing), ([failure].as_slice(), 0));
    drop(run);
    let run = StudyDir::open(folder.path(), manifest(&["a"])).unwrap();
    run.store("a", &measured("p", &[], 1, 1.0, 5)).unwrap();
    let manifest = load_manifest(folder.path()).unwrap();
    assert!(load_failures(folder.path(), &manifest).unwrap().is_empty());
}

/// A copied failure is removed when the run has finished elsewhere and is merged again.
#[test]
fn a_merge_drops_failures_of_runs_that_have_finished() {
    let folder = tempfile::tempdir().unwrap();
    let [part, whole] = ["part", "whole"].map(|name| folder.path().join(name));
    let run = StudyDir::create(&part, manifest(&["a"])).unwrap();
    let failure = failure(&[].into());
    run.fail(&failure).unwrap();
    run.finish(RunState::Failed, &[], render).unwrap();
    drop(run);
    let gather = || {
        let study = merge(std::slice::from_ref(&part)).unwrap();
        LockedDir::take(&whole, &study.folders).unwrap().write(&study, render).unwrap();
        load_failures(&whole, &load_manifest(&whole).unwrap()).unwrap().len()
    };
    assert_eq!(gather(), 1);
    let run = StudyDir::open(&part, manifest(&["a"])).unwrap();
    run.store("a", &measured("p", &[], 1, 1.0, 5)).unwrap();
    run.finish(RunState::Finished, &[], render).unwrap();
    drop(run);
    assert_eq!(gather(), 0);
}

#[test]
fn two_runs_cannot_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let run = StudyDir::create(folder.path(), manifest(&[])).unwrap();
    let error = StudyDir::open(folder.path(), manifest(&[])).unwrap_err();
    let pid = std::process::id().to_string();
    assert!(matches!(&error, Error::Locked { pid: other, .. } if *other == pid), "{error}");
    assert!(matches!(LockedDir::take(folder.path(), &[]), Err(Error::Locked { .. })), "a run has a lock");
    drop(run);
    let report = LockedDir::take(folder.path(), &[]).unwrap();
    assert!(matches!(StudyDir::open(folder.path(), manifest(&[])), Err(Error::Locked { .. })));
    drop(report);
    let error = StudyDir::create(folder.path(), manifest(&[])).unwrap_err();
    assert!(error.to_string().contains("--resume") && error.to_string().contains("interrupted"), "{error}");
    StudyDir::open(folder.path(), manifest(&[])).unwrap();
}

#[test]
fn errors_of_study_directories_name_place_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let error = load_manifest(folder.path()).unwrap_err().to_string();
    assert!(error.contains("is not a study directory"), "{error}");
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = StudyDir::create(&file.join("run"), manifest(&[])).unwrap_err().to_string();
    assert!(error.contains("cannot create") && error.contains("--out"), "{error}");
    let mut old = manifest(&[]);
    old.schema = SCHEMA + 1;
    fs::write(folder.path().join(MANIFEST), serde_json::to_string(&old).unwrap()).unwrap();
    let error = StudyDir::open(folder.path(), manifest(&[])).unwrap_err().to_string();
    assert!(error.contains("another folder"), "{error}");
    fs::write(folder.path().join(MANIFEST), "{").unwrap();
    let error = load_manifest(folder.path()).unwrap_err().to_string();
    assert!(error.contains(MANIFEST) && error.contains("line 1"), "{error}");
}

#[test]
fn a_run_writes_nothing_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let [root, victim] = ["run", "victim"].map(|name| folder.path().join(name));
    fs::create_dir(&root).unwrap();
    fs::write(&victim, "mine").unwrap();
    std::os::unix::fs::symlink(&victim, root.join("manifest.json.partial")).unwrap();
    drop(StudyDir::create(&root, manifest(&["a"])).unwrap());
    fs::remove_file(root.join(".lock")).unwrap();
    std::os::unix::fs::symlink(&victim, root.join(".lock")).unwrap();
    let error = StudyDir::open(&root, manifest(&["a"])).unwrap_err().to_string();
    assert!(error.contains(".lock") && error.contains("link"), "{error}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
}

/// A report that contains the title and the policies.
fn render(study: &Study) -> RenderedReport {
    let page = format!("{}: {:?}", study.manifest.title, study.policies());
    RenderedReport { page, ..RenderedReport::default() }
}

/// Writes one slice of an experiment with the runs `cells` and the verdicts `claims`.
fn slice(root: &Path, cells: &[(&str, &str, u64)], claims: &[ClaimResult]) {
    let ids: Vec<&str> = cells.iter().map(|cell| cell.0).collect();
    let run = StudyDir::create(root, manifest(&ids)).unwrap();
    for (id, policy, seed) in cells {
        run.store(id, &measured(policy, &[], *seed, 1.0, 10)).unwrap();
    }
    run.finish(RunState::Finished, claims, render).unwrap();
}

#[test]
fn a_folder_of_other_files_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(RUNS), "mine").unwrap();
    assert!(matches!(StudyDir::create(folder.path(), manifest(&["a"])), Err(Error::Foreign { .. })));
    fs::remove_file(folder.path().join(RUNS)).unwrap();
    fs::write(folder.path().join("jobs.parquet"), "mine").unwrap();
    let error = StudyDir::create(folder.path(), manifest(&["a"])).unwrap_err();
    assert!(matches!(&error, Error::Foreign { file, .. } if file == "jobs.parquet"), "{error}");
    assert!(StudyDir::open(folder.path(), manifest(&["a"])).is_err());
    assert_eq!(names(folder.path()), ["jobs.parquet"], "and nothing is added");
    fs::rename(folder.path().join("jobs.parquet"), folder.path().join("notes.txt")).unwrap();
    let error = StudyDir::create(folder.path(), manifest(&["a"])).unwrap_err();
    assert!(matches!(&error, Error::Foreign { file, .. } if file == "notes.txt"), "{error}");
    let error = LockedDir::take(folder.path(), &[]).unwrap_err();
    assert!(matches!(&error, Error::Foreign { .. }), "{error}");
    assert_eq!(names(folder.path()), ["notes.txt"], "and nothing is added");
    // The input log is the only log that a new run would overwrite.
    fs::rename(folder.path().join("notes.txt"), folder.path().join(input_log::FILE)).unwrap();
    assert!(matches!(StudyDir::create(folder.path(), manifest(&["a"])), Err(Error::Foreign { .. })));
}

#[test]
fn the_error_for_a_file_in_place_of_the_folder_names_it() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = StudyDir::create(file.path(), manifest(&["a"])).unwrap_err().to_string();
    assert!(error.contains("a file is in the way"), "{error}");
}

/// A folder that holds only the beginnings of a study, or is the root of a new file system, is treated as empty.
#[test]
fn a_folder_with_only_the_beginnings_of_a_run_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("lost+found")).unwrap();
    for begun in [".lock", ".gitkeep", "manifest.json.partial", "controller.log"] {
        fs::write(folder.path().join(begun), "").unwrap();
    }
    StudyDir::create(folder.path(), manifest(&["a"])).unwrap();
}

/// A run in a folder of study directories would hide these.
#[test]
fn a_folder_of_study_directories_is_refused_for_a_run() {
    let folder = tempfile::tempdir().unwrap();
    slice(&folder.path().join("part"), &[("1", "p", 1)], &[]);
    let refused =
        |made: Result<StudyDir, Error>| matches!(made, Err(Error::Collection { run, .. }) if run == "part");
    assert!(refused(StudyDir::create(folder.path(), manifest(&["a"]))));
    assert!(refused(StudyDir::open(folder.path(), manifest(&["a"]))));
    assert_eq!(names(folder.path()), ["part"], "and nothing is added");
}

#[test]
fn slices_merge_into_one_study() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, out] = ["a", "b", "out"].map(|name| folder.path().join(name));
    let claim = |says: &str, verdict| ClaimResult {
        says: says.into(),
        origin: Origin::Ours,
        tolerance: None,
        verdict,
        measured: [].into(),
    };
    let claims =
        |verdicts: [Verdict; 3]| [("x", 0), ("y", 1), ("z", 2)].map(|(says, at)| claim(says, verdicts[at]));
    slice(
        &a,
        &[("1", "p", 1), ("2", "q", 1)],
        &claims([Verdict::OtherSize, Verdict::OtherSize, Verdict::Holds]),
    );
    slice(
        &b,
        &[("2", "q", 1), ("3", "p", 2)],
        &claims([Verdict::Fails, Verdict::NotTested, Verdict::OtherSize]),
    );
    let study = merge(&[a.clone(), b]).unwrap();
    assert_eq!(study.records().count(), 3, "a run in both slices counts once");
    assert_eq!(study.cells[0].policies[0].runs.len(), 2, "two seeds of p");
    assert_eq!(
        study.claims.iter().map(|claim| claim.verdict).collect::<Vec<_>>(),
        [Verdict::Fails, Verdict::NotTested, Verdict::OtherSize]
    );
    LockedDir::take(&out, &study.folders).unwrap().write(&study, render).unwrap();
    assert_eq!(jobs(&out), 30);
    assert_eq!(fs::read_to_string(out.join(SUMMARY)).unwrap().lines().count(), 3);
    assert_eq!(fs::read_to_string(out.join(CLAIMS)).unwrap().lines().count(), 3);

    let c = folder.path().join("c");
    slice(&c, &[("other", "p", 1)], &[]);
    let error = merge(&[a.clone(), c]).unwrap_err().to_string();
    assert!(error.contains("`p, seed 1` under other settings"), "{error}");
    let d = folder.path().join("d");
    let mut local = manifest(&[]);
    local.runtime = "local".into();
    StudyDir::create(&d, local).unwrap().finish(RunState::Finished, &[], render).unwrap();
    let error = merge(&[a, d]).unwrap_err().to_string();
    assert!(error.contains("volary compare") && error.contains("`local`"), "{error}");
    assert!(merge(&[]).is_err());
}

/// Two slices of two runs each; the second slice was run with another seed.
#[test]
fn slices_of_different_plans_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let slice = |index, seed| {
        let root = folder.path().join(format!("{index}-{seed}"));
        let held = vec![SweepSlice { of: 2, index }];
        let mut plan = Manifest { slices: Some(Slices { held, runs: 4 }), ..manifest(&[]) };
        plan.spec = json!({ "seed": seed, "file": format!("{index}.toml") });
        StudyDir::create(&root, plan).unwrap().finish(RunState::Finished, &[], render).unwrap();
        root
    };
    let (first, second, other) = (slice(1, 1), slice(2, 1), slice(2, 5));
    assert!(merge(&[first.clone(), second]).is_ok(), "the paths of files may differ");
    let error = merge(&[first, other]).unwrap_err().to_string();
    assert!(error.contains("another plan") && error.contains("seed: there 1, here 5"), "{error}");
}

#[test]
fn ids_depend_on_all_keys_but_not_on_their_order() {
    let id = run_id(&json!({"policy": "a", "seed": 1}));
    assert_eq!(id, run_id(&serde_json::from_str(r#"{"seed":1,"policy":"a"}"#).unwrap()));
    assert_ne!(id, run_id(&json!({"policy": "a", "seed": 2})));
    assert_eq!(id.len(), 16);
    // The hash is stored in folders and must not change. FNV-1a 128 of `1`, folded.
    assert_eq!(run_id(&json!(1)), "aab9e0197150c2fb");
}

/// Marks the child process of the test below, which runs under the limit, and names the file to write.
const LIMITED: &str = "VOLARY_TEST_LIMITED";

/// At the limit on a file's size, the system cuts a line in the middle. Earlier lines are kept, and the partial line is
/// removed. The limit applies to a process; the test therefore starts itself again with a limit.
#[test]
fn a_line_that_does_not_fit_leaves_no_partial_line() {
    let line = |i: usize| format!("{{\"line\":{i:091}}}\n");
    if let Some(path) = std::env::var_os(LIMITED) {
        let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        let failed = (0..100).find_map(|i| append(&file, line(i).as_bytes()).err());
        assert_eq!(failed.expect("there is no limit").kind(), io::ErrorKind::FileTooLarge);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(SUMMARY);
    // A limit of one block, 512 or 1024 bytes depending on the shell; the signal is ignored.
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact storage::tests::a_line_that_does_not_fit_leaves_no_partial_line";
    let limited = std::process::Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .env(LIMITED, &path)
        .output()
        .unwrap();
    assert!(limited.status.success(), "{limited:?}");
    let summary = fs::read_to_string(&path).unwrap();
    let whole = summary.len() / line(0).len();
    assert!(whole >= 5, "{whole} lines: the process with the limit has not written");
    assert_eq!(summary, (0..whole).map(line).collect::<String>());
}
