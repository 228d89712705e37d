//! The file `inputs.log`: the inputs of every actor of a run, and digests of the effects.
//!
//! `volary replay` feeds the logged inputs to the same actors. One file of `frames` serves all runs and shards of a
//! study directory. Frames of section 0 hold the experiment with its files, as it was planned; later sections belong to
//! the latest experiment before them. Every other section is one shard of one run: its first frame is its [`Header`];
//! each further frame holds its number within the section, from zero, as a u32, and entries
//! ([`LogEntry`](volary_engine::replay::LogEntry)). Sections are interleaved, because each shard writes a frame when it
//! is full. Each frame can be read alone, so the log of a killed run is readable up to its last whole frame. Shards on
//! other machines send their frames during the run; after the loss of a host, its frames are also readable up to the
//! last whole one.
//!
//! | module | what it holds |
//! |---|---|
//! | `write` | [`Sink`], the thread that writes, and [`Section`], to which a shard adds its steps |
//! | `read` | [`InputLog`], which finds the sections and reads their entries; the format: [`Header`], digests of effects, the fingerprint of messages; [`Error`] |

mod read;
mod write;

pub use super::frames::frame;
pub use read::{Digester, Error, FILE, FORMAT, Header, InputLog, LogCursor, LogSection};
pub use write::{Carried, Relay, RunLog, Section, Sink, prefix};
