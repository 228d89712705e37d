//! `inputs.log`: what every actor of a run was told, and a digest of what it answered.
//!
//! `volary replay` steps the same machines through it. One file serves all cells and shards of a run directory:
//!
//! ```text
//! magic 8 bytes, format u32, vocabulary u32
//! frame*     length u32, crc32 u32, section u32, payload        the checksum covers section and payload
//! ```
//!
//! Integers are little endian. Frames of section 0 hold the experiment with its files, as it was planned; what
//! follows belongs to it. Every other section is one shard of one cell: its first frame is its [`Header`], the
//! others hold their own number, from zero, as a u32, and [`Entry`]s. Sections are interleaved as shards fill their
//! frames, and a frame needs no other to be read, so what a killed run leaves is readable up to its last whole frame.
//! Shards on other machines send their frames here while they run, so what a lost host leaves is readable likewise.
//!
//! | module | what it holds |
//! |---|---|
//! | `check` | digests of effects, checksums of frames |
//! | `write` | [`Sink`], the thread that writes, and [`Section`], where a shard puts its steps |
//! | `read` | [`Log`], which finds the sections and reads their entries |

mod check;
mod read;
mod write;

use std::io;

use serde::{Deserialize, Serialize};
use volary_actors::base::{ActorId, Time};
use volary_actors::machine::Input;

pub use check::Digester;
pub use read::{Cursor, Found, Log};
pub use write::{Carried, Relay, Section, Sink, Unit, frame, prefix};

/// Name of the log in a run directory.
pub const FILE: &str = "inputs.log";
/// How the file begins.
const MAGIC: [u8; 8] = *b"volaryin";
/// Version of the format; raised whenever frames or entries change.
pub const FORMAT: u32 = 2;
/// Bytes of a frame's number within its section.
const NUMBER: usize = size_of::<u32>();
/// The section of experiments.
const EXPERIMENT: u32 = 0;

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
pub struct Entry {
    /// When. In a file: how long after the entry before, or after zero in the first of a frame.
    pub at: Time,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum What {
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
        ours = version_text(FORMAT, check::vocabulary())
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

fn version_text(format: u32, vocabulary: u32) -> String {
    format!("{format} (messages {vocabulary:08x})")
}

fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { doing, source }
}

#[cfg(test)]
mod tests;
