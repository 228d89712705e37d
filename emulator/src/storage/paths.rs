//! Names of the files of a run directory.

use std::path::{Path, PathBuf};

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
