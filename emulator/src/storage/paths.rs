//! Names of the files of a study directory.

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
/// Name of the folder of finished runs, while the study goes on.
pub const CELLS: &str = "cells";
/// Name of the file with the records of a run that has ended.
pub const RECORDS: &str = "records.jsonl.zst";
pub(super) const LOGS: &str = "logs";

/// The path of the record of a finished run, while the run goes on.
pub(super) fn record_path(root: &Path, id: &str) -> PathBuf {
    root.join(CELLS).join(format!("{id}.json"))
}

/// The id of the finished run whose record a file in `cells/` is, by its name.
pub(super) fn record_id(name: &str) -> Option<&str> {
    name.strip_suffix(".json").filter(|id| !id.ends_with(".failed"))
}

/// The path of the record of a run that could not finish.
pub fn failure_path(root: &Path, id: &str) -> PathBuf {
    root.join(CELLS).join(format!("{id}.failed.json"))
}

/// The path of the rows of a finished run, while the run goes on.
pub(super) fn part_path(root: &Path, id: &str, kind: TableKind) -> PathBuf {
    root.join(CELLS).join(format!("{id}{}", part_suffix(kind)))
}

/// The end of the name of a part of a table, behind the id of the run.
pub(super) fn part_suffix(kind: TableKind) -> String {
    format!(".{}.parquet", kind.name())
}

/// The path of a table.
pub(super) fn table_path(root: &Path, kind: TableKind) -> PathBuf {
    root.join(format!("{}.parquet", kind.name()))
}
