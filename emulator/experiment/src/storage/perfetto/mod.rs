//! The file `timeline.perfetto-trace` for <https://ui.perfetto.dev>.
//!
//! One process per cell, policy and seed. In it are counters (waiting tasks, busy cores, degraded cores among those
//! that are drawn), a group with a track for each actor that sent a message to a drawn node or received one from there,
//! and for each drawn core a track with a slice for every execution, and below it one of the core's degraded intervals.
//! A message is an instant on the track of its sender and one on that of its receiver, joined by a flow; flows also
//! lead from the message that brought a copy to its node to the copy, and from the copy to the message about its end.
//!
//! | module | what it holds |
//! |---|---|
//! | `proto` | the required subset of Perfetto's `trace.proto`, with its field numbers |
//! | `tracks` | the tracks of a run, in the order in which they are shown |
//! | `events` | slices, instants, counters and flows |
//! | `write` | the file, cut to a size that viewers can load |

mod events;
mod proto;
mod tracks;
mod write;

pub(super) use write::RUNS;
pub use write::{CAP_BYTES, write};

#[cfg(test)]
mod tests;
