//! Types and constants of the format.

use std::io;

use serde::{Deserialize, Serialize};

use super::check::vocabulary;

/// Name of the log in a study directory.
pub const FILE: &str = "inputs.log";
/// The first bytes of the file.
pub(super) const MAGIC: [u8; 8] = *b"volaryin";
/// Version of the format, raised whenever frames or entries change.
pub const FORMAT: u32 = 5;
/// Bytes of a frame's number within its section.
pub(super) const NUMBER: usize = size_of::<u32>();
/// The number of the section of experiments.
pub(super) const EXPERIMENT: u32 = 0;

/// The shard and run of a section.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Header {
    pub run: String,
    /// Distinguishes repeated attempts at the run; the last one counts.
    pub attempt: u32,
    /// Label of the policy, for messages.
    pub policy: String,
    pub seed: u64,
    pub shard: u16,
    /// Number of shards.
    pub shards: u16,
}

/// Why a log cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {doing} the input log: {source}; check the folder's permissions and space")]
    Io { doing: &'static str, source: io::Error },
    /// The experiment's files are too large to be stored with it.
    #[error(
        "the files of the experiment have {mib} MiB, and {} fit into the input log; use a part of the trace",
        crate::codec::LARGEST_FRAME >> 20
    )]
    Large {
        /// Their size.
        mib: usize,
    },
    /// The file is not an input log.
    #[error(
        "{FILE} is no input log of volary; to have one, run with run.record.inputs = true into another folder"
    )]
    Foreign,
    /// The file was written by another version.
    #[error(
        "{FILE} is of format {found}, this volary reads {ours}; use the volary that wrote it, or run into another folder",
        ours = version_text(FORMAT, vocabulary())
    )]
    Version {
        /// Its format and vocabulary.
        found: String,
    },
    /// Frames were lost in transmission.
    #[error(
        "{FILE} is incomplete: frames are missing before byte {at} (frame {found} follows where {expected} should); \
         to have a whole one, run into another folder"
    )]
    Missing {
        at: u64,
        /// The number of the missing frame.
        expected: u32,
        /// The number of the frame found instead.
        found: u32,
    },
    /// The content is inconsistent.
    #[error("{FILE} is damaged at byte {at}: {why}; to have a whole one, run into another folder")]
    Damaged { at: u64, why: String },
}

pub(super) fn version_text(format: u32, vocabulary: u32) -> String {
    format!("{format} (messages {vocabulary:08x})")
}

pub(super) fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { doing, source }
}
