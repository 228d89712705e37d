//! Types and constants of the format.

use std::io;

use serde::{Deserialize, Serialize};
use volary_actors::base::{ActorId, Time};
use volary_actors::machine::Input;

use super::check::vocabulary;

/// Name of the log in a run directory.
pub const FILE: &str = "inputs.log";
/// How the file begins.
pub(super) const MAGIC: [u8; 8] = *b"volaryin";
/// Version of the format; raised whenever frames or entries change.
pub const FORMAT: u32 = 2;
/// Bytes of a frame's number within its section.
pub(super) const NUMBER: usize = size_of::<u32>();
/// The section of experiments.
pub(super) const EXPERIMENT: u32 = 0;

/// Which shard of which cell a section is of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The cell's id.
    pub cell: String,
    /// Tells apart the times that the cell was tried; the last one counts.
    pub attempt: u32,
    /// Label of the policy, for messages.
    pub policy: String,
    /// The seed.
    pub seed: u64,
    /// Which shard.
    pub shard: u16,
    /// Of how many.
    pub shards: u16,
}

/// Something that happened on a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LogEntry {
    /// When. In a file: how long after the entry before, or after zero in the first of a frame.
    pub at: Time,
    /// What.
    pub what: LogEvent,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LogEvent {
    /// An actor was stepped.
    Step {
        /// Who.
        who: ActorId,
        /// What it was told.
        input: Input,
        /// What it answered.
        effects: Digest,
    },
    /// The node of a core crashed.
    Crashed(u32),
    /// An endpoint came back, empty, and a node's workers with it.
    Restarted {
        /// Who.
        who: ActorId,
        /// How often it had crashed.
        epoch: u32,
    },
    /// The shard ended in order, and nothing follows.
    End,
}

/// What is kept of the effects of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Digest {
    /// How many there were.
    pub count: u32,
    /// CRC-32 of their encoding.
    pub crc: [u8; 4],
}

/// Why a log cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system refused.
    #[error("cannot {doing} the input log: {source}; check the folder's permissions and space")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The experiment's files are too large to be kept with it.
    #[error(
        "the files of the experiment have {mib} MiB, and {} fit into the input log; use a part of the trace",
        crate::codec::LARGEST_FRAME >> 20
    )]
    Large {
        /// What they take.
        mib: usize,
    },
    /// It is something else.
    #[error("{FILE} is no input log of volary; run again with run.record.inputs = true")]
    Foreign,
    /// Written by another version.
    #[error(
        "{FILE} is of format {found}, this volary reads {ours}; use the volary that wrote it, or run again",
        ours = version_text(FORMAT, vocabulary())
    )]
    Version {
        /// Its format and vocabulary.
        found: String,
    },
    /// Frames were lost on their way to it.
    #[error(
        "{FILE} is incomplete: frames are missing before byte {at} (frame {found} follows where {expected} should); \
         run again with run.record.inputs = true"
    )]
    Missing {
        /// Where.
        at: u64,
        /// Number of the frame that should be there.
        expected: u32,
        /// Number of the frame that is.
        found: u32,
    },
    /// Its content contradicts itself.
    #[error("{FILE} is damaged at byte {at}: {why}; run again with run.record.inputs = true")]
    Damaged {
        /// Where.
        at: u64,
        /// How.
        why: String,
    },
}

pub(super) fn version_text(format: u32, vocabulary: u32) -> String {
    format!("{format} (messages {vocabulary:08x})")
}

pub(super) fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { doing, source }
}
