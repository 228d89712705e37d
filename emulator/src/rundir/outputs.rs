//! The files that are made from cells, at the end or later.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::disk::{lock, remove, replace, write};
use super::error::io;
use super::{Error, REPORT, SUMMARY, TIMELINE, part_path};
use crate::record::{parquet, perfetto};
use crate::report::{self, Study};

/// A folder that nobody runs in as long as this lives.
#[derive(Debug)]
pub struct Hold {
    root: PathBuf,
    _lock: File,
}

impl Hold {
    /// Takes the folder, making it if needed: before what is to be written again is read there.
    ///
    /// # Errors
    /// [`Error::Locked`], or the folder cannot be written.
    pub fn take(root: &Path) -> Result<Self, Error> {
        Ok(Self { root: root.to_owned(), _lock: lock(root)? })
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Writes the files that are made from cells: rows, timeline, summary and report.
    ///
    /// # Errors
    /// The folder cannot be written, or a part is damaged.
    pub fn write(&self, study: &Study) -> Result<(), Error> {
        write_outputs(&self.root, study)
    }
}

/// The parts of the study's cells are looked for in the folders it was loaded from.
pub(super) fn write_outputs(root: &Path, study: &Study) -> Result<(), Error> {
    for kind in parquet::Rows::ALL {
        let parts = study.records().filter_map(|record| {
            study.folders.iter().map(|folder| part_path(folder, &record.id, kind)).find(|part| part.exists())
        });
        let parts: Vec<PathBuf> = parts.collect();
        let path = root.join(format!("{}.parquet", kind.name()));
        if kind == parquet::Rows::Cores && parts.is_empty() {
            remove(&path)?;
            continue;
        }
        replace(&path, |file| kind.merge(file, &parts))
            .map_err(io("create", &path))?
            .map_err(|source| Error::Rows { path, source })?;
    }
    let path = root.join(TIMELINE);
    replace(&path, |file| perfetto::write(file, study.records(), perfetto::CAP_BYTES))
        .map_err(io("create", &path))?
        .map_err(io("write", &path))?;
    write(&root.join(SUMMARY), report::table::json_lines(study).as_bytes())?;
    write(&root.join(REPORT), report::html(study).as_bytes())
}
