//! Errors of workloads, each with its remedy.

use std::path::PathBuf;

/// An error in building a workload or reading a trace.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A trace that was not found.
    #[error(
        "trace or data file `{}` was not found; looked for {}. Traces are published with the papers that use them and in the \
         archives of Google (cluster-data), Alibaba (clusterdata), the Parallel Workloads Archive and ATLAS (LANL, \
         TwoSigma: ftp.pdl.cmu.edu/pub/datasets/ATLAS); name the folder that holds yours in VOLARY_TRACES (colon-separated), put the file beside the experiment, or set \
         `workload.trace.fallback` to a generator", .file.display(), list(.looked)
    )]
    Missing {
        /// The path in the experiment.
        file: PathBuf,
        /// Every path that was tried.
        looked: Vec<PathBuf>,
    },
    /// The file cannot be opened, read or written.
    #[error("{}: {source}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A trace that is damaged, malformed or empty: the file, with the line, what is wrong, and the remedy.
    #[error("{0}")]
    Trace(String),
    /// An invalid key of the experiment.
    #[error("{key}: {why}")]
    Config {
        /// Dotted key of the experiment file.
        key: String,
        /// The error, and the remedy.
        why: String,
    },
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ")
}

impl WorkloadError {
    /// An invalid key of the experiment.
    pub fn config(key: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Config { key: key.into(), why: why.into() }
    }
}
