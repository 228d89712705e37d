//! Names of the files of a study directory.

use std::path::{Path, PathBuf};

/// Name of the manifest.
pub const MANIFEST: &str = "manifest.json";
/// Name of the log of finished runs.
pub const RUNS: &str = "runs.log";
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
/// Name of the folder of runs that could not finish.
pub const FAILED: &str = "failed";
/// Name of the folder of the logs of hosts.
pub(super) const LOGS: &str = "logs";

/// The path of the record of a run that could not finish.
pub fn failure_path(root: &Path, id: &str) -> PathBuf {
    root.join(FAILED).join(format!("{id}.json"))
}
