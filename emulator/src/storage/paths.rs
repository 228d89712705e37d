//! Names of the files of a run directory, and the files of cells in several.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use super::cell::CellRecord;
use super::error::{Error, io};
use super::study::Study;
use super::tables::TableKind;

/// Name of the manifest.
pub const MANIFEST: &str = "manifest.json";
/// Name of the summary lines.
pub const SUMMARY: &str = "summary.jsonl";
/// Name of the file of claims with their verdicts.
pub const CLAIMS: &str = "claims.jsonl";
/// Name of the report.
pub const REPORT: &str = "report.html";
/// Name of the folder beside the report with the cells that it has no room for.
pub const REPORT_CELLS: &str = "report";
/// Name of the timeline.
pub const TIMELINE: &str = "timeline.perfetto-trace";
/// Name of the folder of cells.
pub const CELLS: &str = "cells";
pub(super) const LOGS: &str = "logs";

pub(super) fn record_path(root: &Path, id: &str) -> PathBuf {
    root.join(CELLS).join(record_name(id))
}

pub(super) fn record_name(id: &str) -> String {
    format!("{id}.json")
}

/// The path of the record of a cell that could not finish.
pub fn failure_path(root: &Path, id: &str) -> PathBuf {
    root.join(CELLS).join(failure_name(id))
}

pub(super) fn failure_name(id: &str) -> String {
    format!("{id}.failed.json")
}

pub(super) fn part_path(root: &Path, id: &str, kind: TableKind) -> PathBuf {
    root.join(CELLS).join(part_name(id, kind))
}

pub(super) fn part_name(id: &str, kind: TableKind) -> String {
    format!("{id}.{}.parquet", kind.name())
}

/// The files of cells in several run directories, by their names. Of files of the same name, that of the first folder.
pub(super) struct CellFiles(BTreeMap<OsString, PathBuf>);

impl CellFiles {
    /// The files in these folders.
    pub(super) fn of(folders: &[PathBuf]) -> Result<Self, Error> {
        let mut files = BTreeMap::new();
        for folder in folders {
            let cells = folder.join(CELLS);
            if !cells.exists() {
                continue;
            }
            for entry in fs::read_dir(&cells).map_err(io("read", &cells))? {
                let entry = entry.map_err(io("read", &cells))?;
                files.entry(entry.file_name()).or_insert_with(|| entry.path());
            }
        }
        Ok(Self(files))
    }

    pub(super) fn get(&self, name: &str) -> Option<&Path> {
        self.0.get(OsStr::new(name)).map(PathBuf::as_path)
    }

    /// The parts of a table, in the order of a study's runs.
    pub(super) fn parts<'a>(&self, study: &'a Study, kind: TableKind) -> Vec<(&'a CellRecord, PathBuf)> {
        let part = |record: &CellRecord| Some(self.get(&part_name(&record.id, kind))?.to_owned());
        study.records().filter_map(|record| Some((record, part(record)?))).collect()
    }
}
