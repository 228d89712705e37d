//! Errors of workloads, each with its remedy.

use std::path::PathBuf;

/// Why a workload cannot be built or a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A trace that was not found.
    #[error(
        "trace or data file `{}` was not found; looked for {}. Traces are published with the papers that use them and in the \
         archives of Google (cluster-data), Alibaba (clusterdata) and the Parallel Workloads Archive; name the \
         folder that holds yours in VOLARY_TRACES (colon-separated), put the file beside the experiment, or set \
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
    /// A compressed stream that ends early or is damaged.
    #[error(
        "{}: the compressed data breaks off or is damaged after line {line} ({why}); fetch the file again or check \
         it with `xz -t`, `zstd -t` or `gzip -t`", .file.display()
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The last line that was read in full.
        line: u64,
        /// The error of the decoder.
        why: String,
    },
    /// A field that does not match its column.
    #[error("{}:{line}: field {field} ({column}): {why}", .file.display())]
    Field {
        /// The file.
        file: PathBuf,
        /// Line, from one.
        line: u64,
        /// Field within the line, from one.
        field: usize,
        /// What the field should hold.
        column: &'static str,
        /// What is wrong, and the remedy.
        why: String,
    },
    /// A malformed line.
    #[error("{}:{line}: {why}", .file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// Line, from one.
        line: u64,
        /// What is wrong, and the remedy.
        why: String,
    },
    /// A file without a single usable job or value.
    #[error("{}: holds no usable data{why}; check that it is the right file", .file.display())]
    Empty {
        /// The file.
        file: PathBuf,
        /// Rows that were skipped and why; may be empty.
        why: String,
    },
    /// An invalid key of the experiment.
    #[error("{key}: {why}")]
    Config {
        /// Dotted key of the experiment file.
        key: String,
        /// What is wrong, and the remedy.
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
