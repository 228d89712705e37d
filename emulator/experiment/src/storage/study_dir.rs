//! The study directory: filled by a study, or locked while its final files are written again.
//!
//! The report consists of a page, and of files with cells, which the page loads when a reader opens them. The default
//! study directory is `runs/<experiment>`, with a number if this name is taken.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use volary_engine::results::{Cell, ClaimResult, Injected, Measured, Summary};

use super::export::{ExportFormat, Labels, write_rows};
use super::files::{
    CLAIMS, Error, FAILED, LOGS, MANIFEST, REPORT, REPORT_CELLS, RUNS, SUMMARY, TIMELINE, append, check_own,
    failure_path, io, io as failed, is_same, json_line, lock, read, remove, replace, write, write_manifest,
};
use super::load::{load_manifest, load_stored};
use super::manifest::{self, Failure, HostRecord, Manifest, RunState, utc_now};
use super::run_record::{RunHead, RunRecord};
use super::run_store::{EncodedRun, RunStore, gather};
use super::study::{Study, summary_lines};
use super::tables::TableKind;
use super::{perfetto, spec_diff};
use crate::guard::guard;
use crate::number::plural;

/// A study directory that this process owns. It can be shared between threads.
#[derive(Debug)]
pub struct StudyDir {
    root: PathBuf,
    /// The manifest as last written.
    manifest: Mutex<Manifest>,
    /// The log of finished runs.
    runs: Mutex<RunStore>,
    /// The file of summary lines; a finished run appends its line.
    summary: Mutex<File>,
    /// The finished runs, by id.
    finished: Mutex<BTreeMap<String, Summary>>,
    /// The offered load of each cell.
    loads: HashMap<Cell, Option<f64>>,
    /// Whether rows of jobs are stored (`run.record.jobs`).
    jobs: bool,
    _lock: File,
}

impl StudyDir {
    /// Takes ownership of a folder without a study, and creates it if needed.
    ///
    /// # Errors
    /// [`Error::Occupied`], [`Error::Foreign`], [`Error::Collection`], [`Error::Locked`], or an error of writing the
    /// folder.
    pub fn create(root: &Path, manifest: Manifest) -> Result<Self, Error> {
        check_own(root, &[])?;
        let lock = lock(root)?;
        if root.join(MANIFEST).exists() {
            let old: Manifest = read(&root.join(MANIFEST))?;
            // The earlier process has ended, since this process has the lock.
            let state = old.state.without_its_process();
            return Err(Error::Occupied { path: root.to_owned(), experiment: old.experiment, state });
        }
        Self::take(root, manifest, lock)
    }

    /// Takes ownership of a folder to continue its study, or [`create`](Self::create)s it.
    ///
    /// Finished runs are kept whatever the manifest states, since their ids are hashes of everything their results
    /// depend on.
    ///
    /// # Errors
    /// [`Error::Another`], [`Error::Foreign`], [`Error::Collection`], [`Error::Locked`], [`Error::Schema`], or an error
    /// of reading or writing the folder.
    pub fn open(root: &Path, mut manifest: Manifest) -> Result<Self, Error> {
        check_own(root, &[])?;
        let lock = lock(root)?;
        if root.join(MANIFEST).exists() {
            let old = load_manifest(root)?;
            if let Some(differs) = spec_diff::another(&old, &manifest) {
                return Err(Error::Another { path: root.to_owned(), differs });
            }
            manifest.unite(&old);
            manifest.started = old.started;
        }
        Self::take(root, manifest, lock)
    }

    fn take(root: &Path, mut manifest: Manifest, lock: File) -> Result<Self, Error> {
        // An existing log is opened first: if this fails, the folder stays unchanged. Without a log, the manifest is
        // written first, because it identifies the experiment.
        let there = root.join(RUNS).exists().then(|| RunStore::open_to_write(root)).transpose()?;
        manifest.state = RunState::Running;
        manifest.ended = None;
        write_manifest(root, &manifest)?;
        let runs = there.map_or_else(|| RunStore::open_to_write(root), Ok)?;
        let path = root.join(SUMMARY);
        let (mut finished, mut lines) = (BTreeMap::new(), String::new());
        for head in runs.parts_of_records::<RunHead>(&manifest.runs) {
            let head = head?;
            lines += &json_line(&path, &head.line())?;
            finished.insert(head.id, head.summary);
        }
        write(&path, lines.as_bytes())?;
        remove(&root.join(CLAIMS))?;
        let summary = OpenOptions::new().append(true).open(&path).map_err(failed("open", &path))?;
        let loads = manifest.loads.iter().map(|of| (of.cell.clone(), of.load)).collect();
        Ok(Self {
            root: root.to_owned(),
            manifest: Mutex::new(manifest),
            runs: Mutex::new(runs),
            summary: Mutex::new(summary),
            finished: Mutex::new(finished),
            loads,
            jobs: true,
            _lock: lock,
        })
    }

    /// Sets whether rows of jobs are stored.
    #[must_use]
    pub fn with_jobs(self, jobs: bool) -> Self {
        Self { jobs, ..self }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the run is finished.
    pub fn has(&self, id: &str) -> bool {
        guard(&self.finished).contains_key(id)
    }

    /// The summary of a finished run.
    pub fn summary(&self, id: &str) -> Option<Summary> {
        guard(&self.finished).get(id).cloned()
    }

    /// The records of the finished runs among `ids`, in the order of `ids`.
    ///
    /// # Errors
    /// When a record is damaged.
    pub fn records(&self, ids: &[String]) -> Result<Vec<RunRecord>, Error> {
        guard(&self.runs).records(ids).collect()
    }

    /// Adds runs to the plan when a stopping rule needs more replications.
    ///
    /// # Errors
    /// When the manifest cannot be written.
    pub fn expect(&self, ids: Vec<String>) -> Result<(), Error> {
        for head in guard(&self.runs).parts_of_records::<RunHead>(&ids) {
            let head = head?;
            guard(&self.finished).insert(head.id, head.summary);
        }
        self.note(|manifest| manifest.expect(ids))
    }

    /// Changes the manifest and writes it; if writing fails, the manifest stays unchanged.
    fn note(&self, change: impl FnOnce(&mut Manifest)) -> Result<(), Error> {
        let mut kept = guard(&self.manifest);
        let mut manifest = kept.clone();
        change(&mut manifest);
        write_manifest(&self.root, &manifest)?;
        *kept = manifest;
        Ok(())
    }

    /// Stores a finished run and removes the log of an earlier failure; returns the record.
    ///
    /// # Errors
    /// When the folder cannot be written. The run is then missing, unless only its summary line could not be written.
    pub fn store(&self, id: &str, measured: &Measured) -> Result<RunRecord, Error> {
        self.clock_error(&measured.summary)?;
        let load = self.loads.get(&measured.summary.cell).copied().flatten();
        let mut record = RunRecord { load, ..RunRecord::new(id, measured) };
        let path = self.root.join(RUNS);
        let encoded = EncodedRun::new(&record, measured, self.jobs).map_err(failed("write", &path))?;
        guard(&self.runs).append(&encoded, &mut record)?;
        remove(&failure_path(&self.root, id))?;
        let path = self.root.join(SUMMARY);
        let line = json_line(&path, &record.line())?;
        append(&guard(&self.summary), line.as_bytes()).map_err(failed("write", &path))?;
        guard(&self.finished).insert(id.to_owned(), record.summary.clone());
        Ok(record)
    }

    /// Stores the log of a run that could not finish.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn fail(&self, failure: &Failure) -> Result<(), Error> {
        failure.summary.as_ref().map_or(Ok(()), |summary| self.clock_error(summary))?;
        let path = failure_path(&self.root, &failure.id);
        make_failed(&self.root)?;
        write(&path, json_line(&path, failure)?.as_bytes())
    }

    /// Writes the final files from all finished runs and closes the manifest; `render` makes the report. A study that
    /// ends early also calls this: the files then contain the finished runs. The manifest is written last, so a study
    /// that is killed earlier has the state [`RunState::Interrupted`].
    ///
    /// # Errors
    /// When the folder cannot be written. The runs stay, and `volary report` can write the files later.
    pub fn finish(&self, state: RunState, claims: &[ClaimResult], render: Render) -> Result<Study, Error> {
        let ended = Some(utc_now());
        let write = || -> Result<Study, Error> {
            let runs = guard(&self.runs);
            runs.sync()?;
            let mut study = load_stored(&self.root, load_manifest(&self.root)?, &runs)?;
            study.claims = claims.to_vec();
            (study.manifest.state, study.manifest.ended) = (state, ended.clone());
            write_final_files(&self.root, &runs, &study, render)?;
            Ok(study)
        };
        let study = write();
        self.note(|manifest| (manifest.state, manifest.ended) = (state, ended))?;
        study
    }

    /// Stores the logs of hosts in `logs/` of the folder.
    ///
    /// # Errors
    /// When the logs cannot be written.
    pub fn keep_logs(&self, keep_in: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Error> {
        let logs = self.root.join(LOGS);
        keep_in(&logs).map_err(failed("write", &logs))
    }

    /// Records the actors that hosts hold in a run, and the hosts that the run has lost.
    ///
    /// # Errors
    /// When the manifest cannot be written.
    pub fn held(&self, hosts: &[HostRecord]) -> Result<(), Error> {
        self.note(|manifest| manifest::add(manifest.hosts.get_or_insert_default(), hosts))
    }

    /// Records the injections into a run; they replace the injections of an earlier attempt.
    ///
    /// # Errors
    /// When the manifest cannot be written.
    pub fn injected(&self, cell: &str, injections: Vec<Injected>) -> Result<(), Error> {
        if injections.is_empty() && !self.is_injected(cell) {
            return Ok(());
        }
        self.note(|manifest| {
            manifest.injections.insert(cell.to_owned(), injections);
            manifest.injections.retain(|_, of| !of.is_empty());
        })
    }

    /// Whether interference was injected into a run.
    pub fn is_injected(&self, cell: &str) -> bool {
        guard(&self.manifest).injections.contains_key(cell)
    }

    /// Records the bound of the clock error in a run on hosts.
    fn clock_error(&self, summary: &Summary) -> Result<(), Error> {
        let on_hosts = guard(&self.manifest).hosts.is_some();
        let Some(certificate) = summary.fidelity.as_ref().filter(|_| on_hosts) else { return Ok(()) };
        let bounds = certificate.hosts.iter().map(|host| host.clock.bound_s);
        self.note(|manifest| {
            manifest.clock_error_s = bounds.chain(manifest.clock_error_s).reduce(f64::max);
        })
    }
}

/// A folder that is locked while its files are written again; no study can use it meanwhile.
#[derive(Debug)]
pub struct LockedDir {
    root: PathBuf,
    _lock: File,
}

impl LockedDir {
    /// Locks the folder, and creates it if needed. Must be called before reading files that are to be rewritten. The
    /// folder may hold the study directories `kept`.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::Foreign`], [`Error::Collection`], or an error of writing the folder.
    pub fn take(root: &Path, kept: &[PathBuf]) -> Result<Self, Error> {
        check_own(root, kept)?;
        Ok(Self { root: root.to_owned(), _lock: lock(root)? })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Writes the files that are made from runs: rows, timeline, summary and report. Runs in other folders, and the
    /// manifest, are copied first: afterwards the folder is a study directory.
    ///
    /// # Errors
    /// When the folder cannot be written, holds other files, or a part is damaged.
    pub fn write(&self, study: &Study, render: Render) -> Result<(), Error> {
        let is_own = |folder: &PathBuf| is_same(folder, &self.root);
        if study.folders.iter().all(is_own) {
            self.check_runs()?;
            return write_final_files(&self.root, &RunStore::open(&self.root)?, study, render);
        }
        if !study.folders.iter().any(is_own) {
            self.check_free(study)?;
        }
        gather(&self.root, study.records())?;
        self.gather_failures(study)?;
        // The final state is written only after all files.
        let unfinished = Manifest { state: RunState::Interrupted, ended: None, ..study.manifest.clone() };
        write_manifest(&self.root, &unfinished)?;
        write_final_files(&self.root, &RunStore::open(&self.root)?, study, render)?;
        write_manifest(&self.root, &study.manifest)
    }
}

impl LockedDir {
    /// Refuses a folder that has tables, but no longer the runs from which they were made.
    fn check_runs(&self) -> Result<(), Error> {
        let [log, table] = [RUNS.to_owned(), table_name(TableKind::Jobs)].map(|name| self.root.join(name));
        if log.exists() || !table.exists() {
            return Ok(());
        }
        Err(Error::Merge(format!(
            "{} is missing, and {} would be overwritten: restore the missing file, or run again with --resume",
            log.display(),
            table.display()
        )))
    }

    /// Refuses a folder with files that do not belong to the study.
    fn check_free(&self, study: &Study) -> Result<(), Error> {
        if !self.root.join(MANIFEST).exists() {
            return Ok(());
        }
        let old = load_manifest(&self.root)?;
        if old.runs.iter().all(|id| study.manifest.runs.contains(id)) {
            return Ok(());
        }
        Err(Error::Merge(format!(
            "{} holds a run of `{}` that is not among those named; choose another folder with --out",
            self.root.display(),
            old.experiment
        )))
    }

    /// Copies the failures of other folders.
    fn gather_failures(&self, study: &Study) -> Result<(), Error> {
        for failure in &study.failures {
            let to = failure_path(&self.root, &failure.id);
            let mut found = study.folders.iter().map(|folder| failure_path(folder, &failure.id));
            let Some(from) = found.find(|path| path.exists()).filter(|from| !is_same(from, &to)) else {
                continue;
            };
            make_failed(&self.root)?;
            remove(&to)?;
            fs::copy(from, &to).map_err(failed("write", &to))?;
        }
        Ok(())
    }
}

/// Creates the folder of failures.
fn make_failed(root: &Path) -> Result<(), Error> {
    let folder = root.join(FAILED);
    fs::create_dir_all(&folder).map_err(failed("create", &folder))
}

fn table_name(kind: TableKind) -> String {
    format!("{}.parquet", kind.name())
}

/// Writes the files that are made from runs. The timeline and the report, which take one processor each, are made beside
/// the tables; the report is written last.
fn write_final_files(root: &Path, runs: &RunStore, study: &Study, render: Render) -> Result<(), Error> {
    say_others(root, runs, study);
    let report = thread::scope(|scope| {
        let report = scope.spawn(|| write_timeline(root, study).map(|()| render(study)));
        let labels = Labels::of(study);
        TableKind::ALL.iter().try_for_each(|&kind| write_table(kind, root, &labels, study))?;
        write(&root.join(SUMMARY), summary_lines(study).as_bytes())?;
        write_claims(root, study)?;
        report.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    // Removes copied failures of runs that have finished since.
    study.records().try_for_each(|record| remove(&failure_path(root, &record.id)))?;
    // Removing fails if the folder is not empty.
    let _ = fs::remove_dir(root.join(FAILED));
    report.write(root)
}

fn write_table(kind: TableKind, root: &Path, labels: &Labels, study: &Study) -> Result<(), Error> {
    let path = root.join(table_name(kind));
    if kind == TableKind::Cores && !study.records().any(RunRecord::has_burnt) {
        return remove(&path);
    }
    let fill = |file| write_rows(kind, ExportFormat::Parquet, (file, &path), labels, study.records());
    replace(&path, fill, |error| error)
}

fn write_timeline(root: &Path, study: &Study) -> Result<(), Error> {
    let path = root.join(TIMELINE);
    let fill = |file| perfetto::write(file, study.records(), perfetto::CAP_BYTES);
    replace(&path, fill, failed("write", &path))
}

fn write_claims(root: &Path, study: &Study) -> Result<(), Error> {
    let path = root.join(CLAIMS);
    if study.claims.is_empty() {
        return remove(&path);
    }
    let lines = study.claims.iter().map(|claim| json_line(&path, claim));
    write(&path, lines.collect::<Result<String, _>>()?.as_bytes())
}

/// Logs the number of finished runs in the folder that belong to an earlier plan.
fn say_others(root: &Path, runs: &RunStore, study: &Study) {
    let kept: BTreeSet<&str> = study.records().map(|record| record.id.as_str()).collect();
    let others = runs.runs().filter(|(id, _)| !kept.contains(id)).count();
    if others > 0 {
        tracing::warn!(
            "{} of an earlier plan {} not part of this plan: kept in {}, but left out of the results",
            plural(others as u64, "finished run"),
            if others == 1 { "is" } else { "are" },
            root.join(RUNS).display()
        );
    }
}

/// Function that renders the report of a study. The renderer is in a crate that depends on this one.
pub type Render = fn(&Study) -> RenderedReport;

/// The report of a study.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RenderedReport {
    /// HTML of the page; empty for no page.
    pub page: String,
    /// Scripts with the cells that do not fit into the page, for the files `report/<n>.js` from 0 on; empty if the page
    /// holds all cells.
    pub cells: Vec<String>,
}

impl RenderedReport {
    /// Writes the report to a study directory in place of an earlier report. A report without a page only removes the
    /// earlier report.
    pub(super) fn write(&self, root: &Path) -> Result<(), Error> {
        let folder = root.join(REPORT_CELLS);
        let file = |number: usize| folder.join(format!("{number}.js"));
        if !self.cells.is_empty() {
            fs::create_dir_all(&folder).map_err(io("create", &folder))?;
        }
        for (number, script) in self.cells.iter().enumerate() {
            write(&file(number), script.as_bytes())?;
        }
        let page = root.join(REPORT);
        if self.page.is_empty() {
            remove(&page)?
        } else {
            write(&page, self.page.as_bytes())?
        }
        for old in (self.cells.len()..).map(file).take_while(|old| old.exists()) {
            remove(&old)?;
        }
        if self.cells.is_empty() {
            // Removing fails if the folder holds other files.
            let _ = fs::remove_dir(&folder);
        }
        Ok(())
    }
}

/// A new folder below `runs` that belongs to this process alone. Dropping this value removes the folder if it is empty.
#[derive(Debug)]
pub struct NewFolder {
    path: PathBuf,
    /// The folder of runs, if it was created with the new folder.
    runs: Option<PathBuf>,
}

impl NewFolder {
    /// Creates the folder of an experiment under the first free name. Processes that do this at the same time get
    /// different folders.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn make(runs: &Path, experiment: &str) -> Result<Self, Error> {
        let (name, is_new) = (folder_name(experiment), !runs.exists());
        let (mut path, mut number) = (runs.join(&name), 1_u64);
        loop {
            fs::create_dir_all(runs).map_err(io("create", runs))?;
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, runs: is_new.then(|| runs.to_owned()) }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    number += 1;
                    path = runs.join(format!("{name}-{number}"));
                }
                // Another process has just removed the folder of runs, which was empty.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(io("create", &path)(error)),
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // Removing fails for folders that are not empty.
        let _ = fs::remove_dir(&self.path);
        self.runs.iter().for_each(|runs| drop(fs::remove_dir(runs)));
    }
}

/// The folder below `runs` with the latest run of an experiment, which `--resume` continues. If runs started in the
/// same second, the folder with the highest number is the latest.
pub fn latest(runs: &Path, experiment: &str) -> Option<PathBuf> {
    let name = folder_name(experiment);
    let number = |path: &Path| -> Option<u32> {
        match path.file_name()?.to_str()?.strip_prefix(name.as_str())? {
            "" => Some(1),
            rest => rest.strip_prefix('-')?.parse().ok(),
        }
    };
    let folders = fs::read_dir(runs).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let ours = folders.filter_map(|path| {
        let number = number(&path)?;
        // Different experiment names can give the same folder name.
        let manifest = load_manifest(&path).ok().filter(|manifest| manifest.experiment == experiment)?;
        Some((manifest.started, number, path))
    });
    ours.max().map(|(.., path)| path)
}

fn folder_name(experiment: &str) -> String {
    experiment.replace(['/', '\\'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::StudyDir;
    use crate::storage::fixture::manifest;

    #[test]
    fn a_report_replaces_an_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let report = |page: &str, cells: &[&str]| RenderedReport {
            page: page.to_owned(),
            cells: cells.iter().map(|&cell| cell.to_owned()).collect(),
        };
        let text = |name: &str| fs::read_to_string(root.join(name)).ok();
        report("wide", &["a", "b", "c"]).write(root).unwrap();
        assert_eq!((text(REPORT).as_deref(), text("report/2.js").as_deref()), (Some("wide"), Some("c")));
        report("less", &["d"]).write(root).unwrap();
        assert_eq!((text("report/0.js").as_deref(), text("report/1.js")), (Some("d"), None));
        report("small", &[]).write(root).unwrap();
        assert!(text(REPORT).as_deref() == Some("small") && !root.join(REPORT_CELLS).exists());
    }

    #[test]
    fn a_new_run_replaces_no_folder_and_the_latest_run_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path();
        let run = |name: &str, experiment: &str, started: &str| {
            let mut manifest = manifest(&[]);
            (manifest.experiment, manifest.started) = (experiment.into(), started.into());
            StudyDir::create(&runs.join(name), manifest).unwrap();
        };
        let fresh = || NewFolder::make(runs, "a/b").unwrap().path().to_owned();
        assert_eq!((latest(runs, "a/b"), fresh()), (None, runs.join("a-b")));
        run("a-b", "a/b", "2024-01-01T00:00:00Z");
        assert_eq!((latest(runs, "a/b"), fresh()), (Some(runs.join("a-b")), runs.join("a-b-2")));
        run("a-b-2", "a/b", "2024-01-02T00:00:00Z");
        run("a-b-10", "a/b", "2024-01-02T00:00:00Z");
        run("a-b-3", "a/b", "2024-01-01T00:00:00Z");
        run("a-b-11", "a-b", "2024-02-01T00:00:00Z");
        run("a-b-late", "a/b", "2024-02-01T00:00:00Z");
        run("a-bc", "a/b", "2024-02-01T00:00:00Z");
        fs::create_dir(runs.join("a-b-12")).unwrap();
        assert_eq!((latest(runs, "a/b"), fresh()), (Some(runs.join("a-b-10")), runs.join("a-b-4")));
        assert_eq!(latest(runs, "a-b"), Some(runs.join("a-b-11")));
    }

    /// Threads that begin together simulate processes.
    #[test]
    fn folders_created_concurrently_differ() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..20 {
            let runs = folder.path().join(format!("runs{round}"));
            let barrier = std::sync::Barrier::new(16);
            let made: Vec<NewFolder> = thread::scope(|scope| {
                let make = || {
                    barrier.wait();
                    NewFolder::make(&runs, "e").unwrap()
                };
                let threads: Vec<_> = (0..16).map(|_| scope.spawn(make)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let paths: BTreeSet<_> = made.iter().map(NewFolder::path).collect();
            assert_eq!(paths.len(), 16, "{paths:?}");
            assert!(paths.iter().all(|path| path.is_dir()));
        }
    }

    #[test]
    fn a_folder_that_stays_empty_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        drop(NewFolder::make(&runs, "e").unwrap());
        assert!(!runs.exists(), "the folder of runs is removed too");
        fs::create_dir(&runs).unwrap();
        drop(NewFolder::make(&runs, "e").unwrap());
        assert!(runs.exists(), "an existing folder of runs is kept");
        let kept = NewFolder::make(&runs, "e").unwrap();
        fs::write(kept.path().join("a"), "").unwrap();
        drop(kept);
        assert!(runs.join("e/a").exists());
    }
}
