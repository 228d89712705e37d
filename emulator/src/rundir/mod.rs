//! The run directory: one folder that a run owns, fills cell by cell, and can take up again.
//!
//! ```text
//! manifest.json               what is run, and how far it came
//! summary.jsonl               a line per cell and seed as they finish; in the manifest's order at the end
//! cells/<id>.json             one finished cell; its presence says that the cell is complete
//! cells/<id>.jobs.parquet     its rows (also .tasks.parquet, .staleness.parquet, .cores.parquet): parts of those below
//! cells/<id>.failed.json      a cell that could not finish, with its log
//! jobs.parquet tasks.parquet staleness.parquet timeline.perfetto-trace report.html
//!                             written at the end, from the cells
//! cores.parquet               the same, if copies burnt real cores
//! inputs.log                  what every actor was told, in all cells, if run.record.inputs is set
//! logs/<host>.log             what each host's agent logged during a run on hosts; the latest 1 MiB, and up to 1 MiB
//!                             before that in <host>.log.1
//! .lock                       locked while a run owns the folder
//! ```
//!
//! A file appears under a temporary name and is renamed, so whatever is there is whole, with these exceptions:
//! `summary.jsonl` grows by lines while the run lasts, `inputs.log` is whole up to its last frame, the files in `logs/`
//! grow, `.lock` is written in place, and so is the end of a run in `manifest.json` where the disk has no room for a
//! second one. A run that was interrupted, even killed, loses the cells that were under way and nothing else. The parts
//! stay after the end: a later run in the same folder may add cells, and the merged files are made from them.

mod differ;
mod disk;
mod error;
mod hosts;
mod load;
mod merge;
mod outputs;
mod place;

pub use error::Error;
pub use load::{
    load, load_claims, load_copies, load_cores, load_failures, load_jobs, load_manifest, load_records,
    load_summaries,
};
pub use merge::{MergeError, merge};
pub use outputs::Hold;
pub use place::{fresh, latest};

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use self::disk::{append, lock, read, remove, replace, write, write_json};
use self::error::{damaged, io};
use self::outputs::write_outputs;
use crate::guard::guard;
use crate::record::cell::CellRecord;
use crate::record::manifest::{Failure, Manifest, State, utc_now};
use crate::record::parquet;
use crate::report::Study;
use crate::results::{ClaimResult, Measured, Summary};

/// Name of the manifest.
pub const MANIFEST: &str = "manifest.json";
/// Name of the summary lines.
pub const SUMMARY: &str = "summary.jsonl";
/// Name of the report.
pub const REPORT: &str = "report.html";
/// Name of the timeline.
pub const TIMELINE: &str = "timeline.perfetto-trace";
const CELLS: &str = "cells";
const LOGS: &str = "logs";

/// A run directory that this process owns. May be shared between threads.
#[derive(Debug)]
pub struct RunDir {
    root: PathBuf,
    /// As it was last written.
    manifest: Mutex<Manifest>,
    /// Held open and locked for as long as the run lasts; its writes are the running summary.
    summary: Mutex<File>,
    _lock: File,
}

impl RunDir {
    /// Takes a folder that holds no run yet; it is made if it does not exist.
    ///
    /// # Errors
    /// [`Error::Occupied`], [`Error::Foreign`], [`Error::Locked`], or the folder cannot be written.
    pub fn create(root: &Path, manifest: Manifest) -> Result<Self, Error> {
        disk::check_own(root)?;
        let lock = lock(root)?;
        if root.join(MANIFEST).exists() {
            let old: Manifest = read(&root.join(MANIFEST))?;
            // The lock is ours, so whoever ran in it has gone.
            let state = old.state.without_its_process();
            return Err(Error::Occupied { path: root.to_owned(), experiment: old.experiment, state });
        }
        Self::take(root, manifest, lock)
    }

    /// Takes a folder to go on with what it holds, or [`create`](Self::create)s it.
    ///
    /// Cells that finished are kept whatever the manifest says: their ids are hashes of what they depend on.
    ///
    /// # Errors
    /// [`Error::Another`], [`Error::Foreign`], [`Error::Locked`], [`Error::Schema`], or the folder cannot be read or
    /// written.
    pub fn open(root: &Path, mut manifest: Manifest) -> Result<Self, Error> {
        disk::check_own(root)?;
        let lock = lock(root)?;
        if root.join(MANIFEST).exists() {
            let old = load_manifest(root)?;
            if let Some(differs) = differ::another(&old, &manifest) {
                return Err(Error::Another { path: root.to_owned(), differs });
            }
            hosts::unite(&mut manifest, &old);
            manifest.started = old.started;
        }
        Self::take(root, manifest, lock)
    }

    fn take(root: &Path, mut manifest: Manifest, lock: File) -> Result<Self, Error> {
        let cells = root.join(CELLS);
        fs::create_dir_all(&cells).map_err(io("create", &cells))?;
        manifest.state = State::Running;
        manifest.ended = None;
        disk::write_manifest(root, &manifest)?;
        let lines = lines(&manifest.cells, |id| summary_of(&record_path(root, id)))?;
        let path = root.join(SUMMARY);
        write(&path, lines.as_bytes())?;
        let summary = OpenOptions::new().append(true).open(&path).map_err(io("open", &path))?;
        let (manifest, summary) = (Mutex::new(manifest), Mutex::new(summary));
        Ok(Self { root: root.to_owned(), manifest, summary, _lock: lock })
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the cell is there, finished and readable.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        let path = record_path(&self.root, id);
        path.exists() && load_record(&path).inspect_err(|error| tracing::warn!("{error}")).is_ok()
    }

    /// The record of a cell that is there.
    ///
    /// # Errors
    /// It is missing or damaged.
    pub fn record(&self, id: &str) -> Result<CellRecord, Error> {
        load_record(&record_path(&self.root, id))
    }

    /// Adds cells to those to run, as a stopping rule asks for more replications.
    ///
    /// # Errors
    /// The manifest cannot be written.
    pub fn expect<I: IntoIterator<Item = String>>(&self, ids: I) -> Result<(), Error> {
        self.note(|manifest| {
            for id in ids {
                if !manifest.cells.contains(&id) {
                    manifest.cells.push(id);
                }
            }
        })
    }

    /// Changes the manifest, if it can be written.
    fn note(&self, change: impl FnOnce(&mut Manifest)) -> Result<(), Error> {
        let mut kept = guard(&self.manifest);
        let mut manifest = kept.clone();
        change(&mut manifest);
        disk::write_manifest(&self.root, &manifest)?;
        *kept = manifest;
        Ok(())
    }

    /// Keeps a finished cell. What it had left behind when it failed before is removed.
    ///
    /// # Errors
    /// The folder cannot be written; the cell then counts as missing.
    pub fn store(&self, id: &str, measured: &Measured) -> Result<(), Error> {
        let labels = parquet::Labels::new(id, &measured.summary);
        for kind in parquet::Rows::ALL.into_iter().filter(|kind| kind.concerns(measured)) {
            let path = part_path(&self.root, id, kind);
            replace(&path, |file| kind.write(file, &labels, measured))
                .map_err(io("create", &path))?
                .map_err(|source| Error::Rows { path, source })?;
        }
        self.clock_error(&measured.summary)?;
        let record = CellRecord::new(id, measured);
        write_json(&record_path(&self.root, id), &record)?;
        remove(&failure_path(&self.root, id))?;
        let mut line = serde_json::to_string(&record.summary).map_err(damaged(&self.root.join(SUMMARY)))?;
        line.push('\n');
        let path = self.root.join(SUMMARY);
        append(&mut guard(&self.summary), line.as_bytes()).map_err(io("write", &path))
    }

    /// Keeps the log of a cell that could not finish.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn fail(&self, failure: &Failure) -> Result<(), Error> {
        failure.summary.as_ref().map_or(Ok(()), |summary| self.clock_error(summary))?;
        write_json(&failure_path(&self.root, &failure.id), failure)
    }

    /// Makes the final files from all cells that are there, and closes the manifest.
    ///
    /// A run that ends early is closed as well: every file is then made of what had finished.
    ///
    /// # Errors
    /// The folder cannot be written; the cells stay, so `volary report` can make the files later.
    pub fn finish(&self, state: State, claims: &[ClaimResult]) -> Result<Study, Error> {
        self.note(|manifest| {
            manifest.state = state;
            manifest.ended = Some(utc_now());
        })?;
        let mut study = load(&self.root)?;
        study.claims = claims.to_vec();
        write_outputs(&self.root, &study)?;
        Ok(study)
    }
}

fn record_path(root: &Path, id: &str) -> PathBuf {
    root.join(CELLS).join(format!("{id}.json"))
}

/// Where a cell that could not finish is kept.
#[must_use]
pub fn failure_path(root: &Path, id: &str) -> PathBuf {
    root.join(CELLS).join(format!("{id}.failed.json"))
}

fn part_path(root: &Path, id: &str, kind: parquet::Rows) -> PathBuf {
    root.join(CELLS).join(format!("{id}.{}.parquet", kind.name()))
}

fn load_record(path: &Path) -> Result<CellRecord, Error> {
    read(path)
}

/// The summary of a cell as a line, if the cell is there; a damaged one is left to be run again.
fn summary_of(path: &Path) -> Option<Summary> {
    path.exists()
        .then(|| load_record(path).inspect_err(|error| tracing::warn!("{error}")).ok())?
        .map(|r| r.summary)
}

fn lines(ids: &[String], summary: impl Fn(&str) -> Option<Summary>) -> Result<String, Error> {
    let mut text = String::new();
    for summary in ids.iter().filter_map(|id| summary(id)) {
        text.push_str(&serde_json::to_string(&summary).map_err(damaged(Path::new(SUMMARY)))?);
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
