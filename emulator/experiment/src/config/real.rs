//! `[run.real]`: copies that burn real cores.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[run.real]`: each emulated core has a CPU of its host to itself. A copy keeps this CPU busy until its work is done.
/// Work is measured in seconds of the CPU while only copies run on it and on the others; interference takes CPU time
/// away from the copy. Between copies, threads of the lowest priority keep the CPUs awake, so all of them are busy for
/// the whole run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RealSection {
    /// The computation of copies.
    pub kernel: Kernel,
    /// The mechanism that slows a core down.
    pub degrade: Degrade,
    /// Number of CPUs of each host that no emulated core takes, the lowest ones that the process may run on. Schedulers
    /// and node managers have priority over copies, so none is needed; a spare one keeps copies from being interrupted.
    pub spare: u32,
}

/// The mechanism that slows a core down.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Degrade {
    /// A competing thread on the same CPU, which needs no privileges.
    #[default]
    Threads,
}

impl fmt::Display for Degrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The computation of a copy on its core.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Hashes: arithmetic that stays in the core's registers.
    #[default]
    Hash,
    /// Streams through more memory than any cache holds.
    Memory,
    /// Walks through memory that just fits into the core's own cache.
    Cache,
    /// Nothing: copies are timed, as without `[run.real]`.
    None,
}

impl Kernel {
    /// The kernels that burn cores.
    pub const BURNING: [Self; 3] = [Self::Hash, Self::Memory, Self::Cache];
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
