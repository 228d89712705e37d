//! The files that are made from cells, at the end or later.

use std::fs;
use std::path::{Path, PathBuf};

use super::disk::{replace, write};
use super::error::io;
use super::{Error, REPORT, SUMMARY, TIMELINE, part_path};
use crate::record::{parquet, perfetto};
use crate::report::{self, Study};

/// Writes the files that are made from cells: rows, timeline, summary and report.
///
/// The parts of the study's cells are looked for in the folders it was loaded from.
///
/// # Errors
/// The folder cannot be written, or a part is damaged.
pub fn write_outputs(root: &Path, study: &Study) -> Result<(), Error> {
    fs::create_dir_all(root).map_err(io("create", root))?;
    for kind in parquet::Rows::ALL {
        let parts = study.records().filter_map(|record| {
            study.folders.iter().map(|folder| part_path(folder, &record.id, kind)).find(|part| part.exists())
        });
        let parts: Vec<PathBuf> = parts.collect();
        let path = root.join(format!("{}.parquet", kind.name()));
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
