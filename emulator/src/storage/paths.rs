//! Names of the files of a run directory.

use std::path::{Path, PathBuf};

use super::cell::CellRecord;
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
/// Name of the timeline.
pub const TIMELINE: &str = "timeline.perfetto-trace";
/// Name of the folder of cells.
pub const CELLS: &str = "cells";
pub(super) const LOGS: &str = "logs";

pub(super) fn record_path(root: &Path, id: &str) -> PathBuf {
    root.join(CELLS).join(format!("{id}.json"))
}

/// The path of the record of a cell that could not finish.
pub fn failure_path(root: &Path, id: &str) -> PathBuf {
    root.join(CELLS).join(format!("{id}.failed.json"))
}

/// The parts of a table, in the order of a study's runs, from the folders that it was loaded from.
pub(super) fn parts(study: &Study, kind: TableKind) -> Vec<(&CellRecord, PathBuf)> {
    let part = |record: &CellRecord| {
        let mut parts = study.folders.iter().map(|folder| part_path(folder, &record.id, kind));
        parts.find(|part| part.exists())
    };
    study.records().filter_map(|record| Some((record, part(record)?))).collect()
}

pub(super) fn part_path(root: &Path, id: &str, kind: TableKind) -> PathBuf {
    root.join(CELLS).join(format!("{id}.{}.parquet", kind.name()))
}
