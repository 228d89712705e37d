//! `manifest.json`: what a run directory holds, and how far it came.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::results::Cell;

/// What was run, when, and how it ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the results schema.
    pub schema: u32,
    /// Version of volary.
    pub version: String,
    /// Experiment file without folder `experiments` and suffix.
    pub experiment: String,
    /// Its title.
    pub title: String,
    /// The paper, section or figure it reproduces, if any.
    pub source: Option<String>,
    /// `virtual`, `local` or `hosts`.
    pub runtime: String,
    /// Seed of the first replication.
    pub seed: u64,
    /// The resolved experiment.
    pub spec: Value,
    /// The command line.
    pub argv: Vec<String>,
    /// Hosts that took part, for `hosts` runs.
    pub hosts: Option<Value>,
    /// Bound on the clock offset between hosts, s.
    pub clock_error_s: Option<f64>,
    /// Ids of the cells to run, in the order in which they are shown.
    pub cells: Vec<String>,
    /// How far it came.
    pub state: State,
    /// When it started, UTC, RFC 3339.
    pub started: String,
    /// When it ended.
    pub ended: Option<String>,
}

/// How far a run came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Under way, or killed without notice.
    Running,
    /// Every cell is there.
    Finished,
    /// Stopped by its user; what had finished is there.
    Interrupted,
    /// Some cell failed; its log is in `cells/`.
    Failed,
}

/// A cell that could not finish.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Hash of what the cell depends on.
    pub id: String,
    /// Label of the policy.
    pub policy: String,
    /// Values of the swept keys.
    pub cell: Cell,
    /// Seed.
    pub seed: u64,
    /// What went wrong, and the last it said.
    pub log: String,
}

/// The present, UTC, RFC 3339 to the second.
#[must_use]
pub fn utc_now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    utc(since.as_secs())
}

/// Seconds since 1970 as RFC 3339.
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days to a civil date by eras of 400 years that begin on 1 March, so leap days come last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_civil() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }
}
