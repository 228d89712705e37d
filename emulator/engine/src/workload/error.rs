//! What can be wrong with a workload, each with its remedy.

use std::path::PathBuf;

/// Why a workload cannot be built or a trace not be read.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A trace that is nowhere to be found.
    #[error(
        "trace or data file `{}` was not found; looked for {}. Traces are published with the papers that use them and in the \
         archives of Google (cluster-data), Alibaba (clusterdata) and the Parallel Workloads Archive; name the \
         folder that holds yours in VOLARY_TRACES (colon-separated), put the file beside the experiment, or set \
         `workload.trace.fallback` to a generator", .file.display(), list(.looked)
    )]
    Missing {
        /// As the experiment names it.
        file: PathBuf,
        /// Every path that was tried.
        looked: Vec<PathBuf>,
    },
    /// The file cannot be opened, read or written.
    #[error("{}: {source}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
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
        /// Last line that could be read whole.
        line: u64,
        /// What the decoder said.
        why: String,
    },
    /// A field that is not what its column says.
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
        /// What is wrong with it and what to do.
        why: String,
    },
    /// A line that is wrong as a whole.
    #[error("{}:{line}: {why}", .file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// Line, from one.
        line: u64,
        /// What is wrong with it and what to do.
        why: String,
    },
    /// A file without a single usable job or value.
    #[error("{}: holds no usable data{why}; check that it is the right file", .file.display())]
    Empty {
        /// The file.
        file: PathBuf,
        /// Rows that were skipped and why, or nothing.
        why: String,
    },
    /// A key of the experiment that does not fit.
    #[error("{key}: {why}")]
    Config {
        /// Dotted key of the experiment file.
        key: String,
        /// What is wrong and what to do.
        why: String,
    },
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ")
}

impl WorkloadError {
    /// A key of the experiment that does not fit.
    pub fn config(key: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Config { key: key.into(), why: why.into() }
    }
}
