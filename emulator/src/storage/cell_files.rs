//! The files of cells in the run directories that a study was loaded from.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use super::cell::CellRecord;
use super::error::{Error, io};
use super::paths::{CELLS, part_name};
use super::study::Study;
use super::tables::TableKind;

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
