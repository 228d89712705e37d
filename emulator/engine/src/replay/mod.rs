//! The replay of a run: its actors process logged inputs again and must produce the same effects.
//!
//! Time is taken from the log, so a replay is only as long as the computation; network, cores and clocks are not
//! involved, because their effects are part of the inputs.
//!
//! | module | what it holds |
//! |---|---|
//! | `run` | [`replay`], which steps the shards of a run in order of time, and [`Replayed`] |
//! | `entry` | [`LogEntry`]: an entry of the log of a shard |
//! | `actors` | the actors of a run, without shards |
//! | `results` | the results of a replay, compared with those of the run |

mod actors;
mod entry;
mod results;
mod run;

pub use entry::{Digest, LogEntry, LogEvent};
pub use results::Difference;
pub use run::{Cut, Divergence, Logged, Replayed, replay};
