//! The study directory: filled by a run, or locked while its final files are written again.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{io, iter, slice};

use volary_engine::results::{Cell, ClaimResult, Injected, Measured, Summary};

use super::error::{Error, io as failed, rows};
use super::files::{
    append, check_own, is_same, json_line, lock, read, remove, replace, set_aside, write, write_json,
    write_manifest,
};
use super::hosts::{self, HostRecord};
use super::labels::Labels;
use super::load::{load, load_manifest, records_of};
use super::manifest::{Failure, Manifest, RunState, utc_now};
use super::paths::{
    CELLS, CLAIMS, LOGS, MANIFEST, RECORDS, SUMMARY, TIMELINE, failure_path, part_path, record_path,
    table_path,
};
use super::records::{forget, others, pack, records, salvage};
use super::rendered::Render;
use super::rows::{RowIndex, has_rows};
use super::study::{Study, summary_lines};
use super::tables::{TableKind, row_sums};
use super::{perfetto, spec_diff};
use crate::guard::guard;
use crate::number::plural;
use crate::storage::run_record::RunRecord;

/// A study directory that this process owns. May be shared between threads.
#[derive(Debug)]
pub struct StudyDir {
    root: PathBuf,
    /// As last written.
    manifest: Mutex<Manifest>,
    /// Kept open and locked during the run; summary lines are appended to it.
    summary: Mutex<File>,
    /// The finished runs, by id.
    finished: Mutex<BTreeMap<String, Summary>>,
    /// The offered load of each cell.
    loads: HashMap<Cell, Option<f64>>,
    _lock: File,
}

impl StudyDir {
    /// Takes ownership of a folder without a run, and creates it if needed.
    ///
    /// # Errors
    /// [`Error::Occupied`], [`Error::Foreign`], [`Error::Collection`], [`Error::Locked`], or the folder cannot be
    /// written.
    pub fn create(root: &Path, manifest: Manifest) -> Result<Self, Error> {
        check_own(root, &[])?;
        let lock = lock(root)?;
        if root.join(MANIFEST).exists() {
            let old: Manifest = read(&root.join(MANIFEST))?;
            // Since the lock is ours, the earlier process has ended.
            let state = old.state.without_its_process();
            return Err(Error::Occupied { path: root.to_owned(), experiment: old.experiment, state });
        }
        Self::take(root, manifest, lock)
    }

    /// Takes ownership of a folder to continue its run, or [`create`](Self::create)s it.
    ///
    /// Finished runs are kept independent of the manifest: their ids are hashes of what they depend on.
    ///
    /// # Errors
    /// [`Error::Another`], [`Error::Foreign`], [`Error::Collection`], [`Error::Locked`], [`Error::Schema`], or the
    /// folder cannot be read or written.
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
        let cells = root.join(CELLS);
        fs::create_dir_all(&cells).map_err(failed("create", &cells))?;
        manifest.state = RunState::Running;
        manifest.ended = None;
        write_manifest(root, &manifest)?;
        let path = root.join(SUMMARY);
        let (mut finished, mut lines) = (BTreeMap::new(), BTreeMap::new());
        for record in undamaged(root, &manifest.runs)? {
            lines.insert(record.id.clone(), json_line(&path, &record.line())?);
            finished.insert(record.id, record.summary);
        }
        let lines: String = manifest.runs.iter().filter_map(|id| lines.remove(id)).collect();
        write(&path, lines.as_bytes())?;
        remove(&root.join(CLAIMS))?;
        let summary = OpenOptions::new().append(true).open(&path).map_err(failed("open", &path))?;
        let loads = manifest.loads.iter().map(|of| (of.cell.clone(), of.load)).collect();
        let (manifest, summary, finished) = (Mutex::new(manifest), Mutex::new(summary), Mutex::new(finished));
        Ok(Self { root: root.to_owned(), manifest, summary, finished, loads, _lock: lock })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the run is finished; one whose record was damaged when the run began is not.
    pub fn has(&self, id: &str) -> bool {
        guard(&self.finished).contains_key(id)
    }

    /// The summary of a finished run.
    pub fn summary(&self, id: &str) -> Option<Summary> {
        guard(&self.finished).get(id).cloned()
    }

    /// The records of those of the runs `ids` that have finished, in this order.
    ///
    /// # Errors
    /// A record is damaged.
    pub fn records(&self, ids: &[String]) -> Result<Vec<RunRecord>, Error> {
        records_of(&self.root, ids)
    }

    /// Adds runs to the plan, when a stopping rule asks for more replications.
    ///
    /// # Errors
    /// The manifest cannot be written.
    pub fn expect(&self, ids: Vec<String>) -> Result<(), Error> {
        let found = undamaged(&self.root, &ids)?.into_iter().map(|record| (record.id, record.summary));
        guard(&self.finished).extend(found);
        self.note(|manifest| manifest.expect(ids))
    }

    /// Changes the manifest, if it can be written.
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
    /// The folder cannot be written. The run counts as missing, unless only its line in the summary is.
    pub fn store(&self, id: &str, measured: &Measured) -> Result<RunRecord, Error> {
        for kind in TableKind::ALL {
            let path = part_path(&self.root, id, *kind);
            if kind.concerns(measured) {
                replace(&path, |file| kind.write(file, measured), rows(&path))?;
            } else {
                remove(&path)?; // of an attempt before a crash
            }
        }
        self.clock_error(&measured.summary)?;
        let load = self.loads.get(&measured.summary.cell).copied().flatten();
        let record = RunRecord { load, rows: row_sums(measured), ..RunRecord::new(id, measured) };
        write_json(&record_path(&self.root, id), &record)?;
        remove(&failure_path(&self.root, id))?;
        let path = self.root.join(SUMMARY);
        let line = json_line(&path, &record.line())?;
        append(&mut guard(&self.summary), line.as_bytes()).map_err(failed("write", &path))?;
        guard(&self.finished).insert(id.to_owned(), record.summary.clone());
        Ok(record)
    }

    /// Stores the log of a run that could not finish.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn fail(&self, failure: &Failure) -> Result<(), Error> {
        failure.summary.as_ref().map_or(Ok(()), |summary| self.clock_error(summary))?;
        write_json(&failure_path(&self.root, &failure.id), failure)
    }

    /// Writes the final files from all finished runs and closes the manifest; `render` makes the report.
    ///
    /// This also applies to a run that ends early: its files contain the finished runs. The manifest comes last: a run
    /// that is killed before has been interrupted.
    ///
    /// # Errors
    /// The folder cannot be written; the runs stay, so `volary report` can make the files later.
    pub fn finish(&self, state: RunState, claims: &[ClaimResult], render: Render) -> Result<Study, Error> {
        let ended = Some(utc_now());
        let write = || -> Result<Study, Error> {
            let mut study = load(&self.root)?;
            study.claims = claims.to_vec();
            (study.manifest.state, study.manifest.ended) = (state, ended.clone());
            write_final_files(&self.root, &study, render)?;
            Ok(study)
        };
        let study = write();
        self.note(|manifest| (manifest.state, manifest.ended) = (state, ended))?;
        study
    }

    /// Stores the logs of hosts in the folder's `logs/`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_logs(&self, keep_in: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Error> {
        let logs = self.root.join(LOGS);
        keep_in(&logs).map_err(failed("write", &logs))
    }

    /// Records the actors that hosts hold in a run, and the hosts lost in it so far.
    ///
    /// # Errors
    /// The manifest cannot be written.
    pub fn held(&self, hosts: &[HostRecord]) -> Result<(), Error> {
        self.note(|manifest| hosts::add(manifest.hosts.get_or_insert_default(), hosts))
    }

    /// Records the injections into a run, replacing those of an earlier attempt.
    ///
    /// # Errors
    /// The manifest cannot be written.
    pub fn injected(&self, cell: &str, injections: Vec<Injected>) -> Result<(), Error> {
        if injections.is_empty() && !self.is_injected(cell) {
            return Ok(());
        }
        self.note(|manifest| {
            manifest.injections.insert(cell.to_owned(), injections);
            manifest.injections.retain(|_, of| !of.is_empty());
        })
    }

    /// Whether something was injected into a run.
    pub fn is_injected(&self, cell: &str) -> bool {
        guard(&self.manifest).injections.contains_key(cell)
    }

    /// Records the bound of the clock error in a run on hosts.
    pub(super) fn clock_error(&self, summary: &Summary) -> Result<(), Error> {
        let on_hosts = guard(&self.manifest).hosts.is_some();
        let Some(certificate) = summary.fidelity.as_ref().filter(|_| on_hosts) else { return Ok(()) };
        let bounds = certificate.hosts.iter().map(|host| host.clock.bound_s);
        self.note(|manifest| {
            manifest.clock_error_s = bounds.chain(manifest.clock_error_s).reduce(f64::max);
        })
    }
}

/// A locked folder, which no run can take.
#[derive(Debug)]
pub struct LockedDir {
    root: PathBuf,
    _lock: File,
}

impl LockedDir {
    /// Locks the folder, and creates it if needed. Must be called before files that are to be rewritten are read. The
    /// study directories `kept` may be in it.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::Foreign`], [`Error::Collection`], or the folder cannot be written.
    pub fn take(root: &Path, kept: &[PathBuf]) -> Result<Self, Error> {
        check_own(root, kept)?;
        Ok(Self { root: root.to_owned(), _lock: lock(root)? })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Writes the files that are made from runs: rows, timeline, summary and report. If the runs are in other
    /// folders, they and the manifest are copied first, so that the folder is a study directory.
    ///
    /// # Errors
    /// The folder cannot be written, or holds something else, or a part is damaged.
    pub fn write(&self, study: &Study, render: Render) -> Result<(), Error> {
        let is_own = |folder: &PathBuf| is_same(folder, &self.root);
        if study.folders.iter().all(is_own) {
            self.check_records(study)?;
            return write_final_files(&self.root, study, render);
        }
        if !study.folders.iter().any(is_own) {
            self.check_free(study)?;
        }
        self.gather_failures(study)?;
        // It has ended when all its files are there.
        let unfinished = Manifest { state: RunState::Interrupted, ended: None, ..study.manifest.clone() };
        write_manifest(&self.root, &unfinished)?;
        write_final_files(&self.root, study, render)?;
        write_manifest(&self.root, &study.manifest)
    }
}

impl LockedDir {
    /// Refuses a folder whose tables have rows and that has no record, since they would be lost.
    fn check_records(&self, study: &Study) -> Result<(), Error> {
        let is_empty = study.records().next().is_none();
        let path = table_path(&self.root, TableKind::Jobs);
        if is_empty && has_rows(&path).map_err(rows(&path))? {
            return Err(Error::Merge(format!(
                "{} is missing, and {} has rows: restore it, or run again with --resume",
                self.root.join(RECORDS).display(),
                path.display()
            )));
        }
        Ok(())
    }

    /// Refuses a folder with files that are none of the study's.
    fn check_free(&self, study: &Study) -> Result<(), Error> {
        if !self.root.join(MANIFEST).exists() {
            return Ok(());
        }
        let old = load_manifest(&self.root)?;
        if old.runs.iter().all(|id| study.manifest.runs.contains(id)) {
            return Ok(());
        }
        Err(Error::Merge(format!(
            "{} holds a run of `{}` that is none of those named; choose another folder with --out",
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
            let cells = self.root.join(CELLS);
            fs::create_dir_all(&cells).map_err(failed("create", &cells))?;
            remove(&to)?;
            fs::copy(from, &to).map_err(failed("write", &to))?;
        }
        Ok(())
    }
}

/// Writes the files that are made from runs, whose rows are taken from the folders that the study was loaded from, and
/// moves what is in `cells/` there.
fn write_final_files(root: &Path, study: &Study, render: Render) -> Result<(), Error> {
    let labels = Labels::of(study);
    let others = others(root, study)?;
    if !others.is_empty() {
        tracing::warn!(
            "{} of an earlier plan, which this command does not ask for, {} kept in {} and left out of the results",
            plural(others.len() as u64, "finished run"),
            if others.len() == 1 { "is" } else { "are" },
            root.join(CELLS).display()
        );
    }
    for &kind in TableKind::ALL {
        unpack_rows(root, kind, &others)?;
        let ids = study.records().map(|record| record.id.as_str());
        let index = RowIndex::of(&study.folders, kind, ids)?;
        let path = table_path(root, kind);
        if kind == TableKind::Cores && !study.records().any(|record| index.has(&record.id)) {
            remove(&path)?;
            continue;
        }
        replace(&path, |file| index.write(file, Some(&labels), study.records()), rows(&path))?;
    }
    let path = root.join(TIMELINE);
    replace(
        &path,
        |file| perfetto::write(file, study.records(), perfetto::CAP_BYTES),
        failed("write", &path),
    )?;
    write(&root.join(SUMMARY), summary_lines(study).as_bytes())?;
    let path = root.join(CLAIMS);
    if study.claims.is_empty() {
        remove(&path)?;
    } else {
        let lines = study.claims.iter().map(|claim| json_line(&path, claim));
        write(&path, lines.collect::<Result<String, _>>()?.as_bytes())?;
    }
    render(study).write(root)?;
    pack(root, study)
}

/// Writes rows of runs to `cells/` again that are in the folder's table, unless it is damaged.
fn unpack_rows(root: &Path, kind: TableKind, others: &[RunRecord]) -> Result<(), Error> {
    if others.is_empty() {
        return Ok(());
    }
    let (index, _) = RowIndex::of_readable(root, kind, others.iter().map(|other| other.id.as_str()))?;
    for (other, is_whole) in others.iter().zip(index.whole(others)) {
        let path = part_path(root, &other.id, kind);
        if !index.has(&other.id) || path.exists() {
            continue;
        }
        if is_whole {
            replace(&path, |file| index.write(file, None, iter::once(other)), rows(&path))?;
        } else {
            tracing::warn!(
                "rows of run {} of an earlier plan for {} are damaged: it is left out",
                other.id,
                table_path(root, kind).display()
            );
            forget(root, slice::from_ref(other))?;
        }
    }
    Ok(())
}

/// The records, without timelines, of those of the runs `ids` that have finished. Runs whose record or rows are damaged
/// are left to be run again.
fn undamaged(root: &Path, ids: &[String]) -> Result<Vec<RunRecord>, Error> {
    let mut found = undamaged_records(root, ids)?;
    for kind in TableKind::ALL.iter().copied() {
        let ids = found.iter().map(|record| record.id.as_str());
        let (index, is_damaged) = RowIndex::of_readable(root, kind, ids)?;
        let mut wholes = index.whole(&found).into_iter();
        // Of a damaged table, the rows of all runs without a part are missing.
        let is_lost = |record: &RunRecord| is_damaged && !index.has(&record.id) && kind.may_have(record);
        let is_whole = |record: &RunRecord| wholes.next().unwrap_or_default() && !is_lost(record);
        let (whole, lacking): (Vec<_>, Vec<_>) = found.into_iter().partition(is_whole);
        if !lacking.is_empty() {
            let lost = plural(lacking.len() as u64, "run");
            tracing::warn!(
                "rows of {lost} for {} are missing or damaged: run again",
                table_path(root, kind).display()
            );
            forget(root, &lacking)?;
        }
        if is_damaged {
            set_aside(&table_path(root, kind))?;
        }
        found = whole;
    }
    Ok(found)
}

/// The records that can be read. If packed ones are damaged, all others are in `cells/` then.
fn undamaged_records(root: &Path, ids: &[String]) -> Result<Vec<RunRecord>, Error> {
    let (mut found, mut is_damaged) = (Vec::new(), false);
    for record in records(root, ids) {
        match record {
            Ok(mut record) => {
                record.drop_timeline();
                found.push(record);
            }
            Err(error @ (Error::Damaged { .. } | Error::DamagedRecords { .. })) => {
                is_damaged |= matches!(error, Error::DamagedRecords { .. });
                tracing::warn!("{error}");
            }
            Err(error) => return Err(error),
        }
    }
    if is_damaged {
        salvage(root)?;
    }
    Ok(found)
}
