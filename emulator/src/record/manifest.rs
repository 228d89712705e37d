//! `manifest.json`: what a run directory holds, and how far it came.

use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
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

/// A cell's id: a hash of what it depends on, 16 hex digits; equal JSON values have equal ids.
///
/// FNV-1a over the canonical text (object keys are sorted): ids name files, they guard against nothing.
#[must_use]
pub fn cell_id(depends_on: &Value) -> String {
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for byte in depends_on.to_string().bytes() {
        hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    format!("{:016x}", (hash >> 64) as u64 ^ hash as u64)
}

/// The present, UTC, RFC 3339 to the second.
#[must_use]
pub fn utc_now() -> String {
    DateTime::<Utc>::from(SystemTime::now()).to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_depend_on_everything_and_on_no_order() {
        let id = cell_id(&json!({"policy": "a", "seed": 1}));
        assert_eq!(id, cell_id(&serde_json::from_str(r#"{"seed":1,"policy":"a"}"#).unwrap()));
        assert_ne!(id, cell_id(&json!({"policy": "a", "seed": 2})));
        assert_eq!(id.len(), 16);
        // The hash is written into folders: it must not change. FNV-1a 128 of `1`, folded.
        assert_eq!(cell_id(&json!(1)), "aab9e0197150c2fb");
    }

    #[test]
    fn dates_are_rfc_3339() {
        let now = utc_now();
        assert!(now.len() == 20 && now.ends_with('Z') && now.starts_with("20"), "{now}");
    }
}
