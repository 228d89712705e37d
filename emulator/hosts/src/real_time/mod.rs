//! The event loop and clocks of real time, for the runtime `local` and for agents.
//!
//! | module | what it holds |
//! |---|---|
//! | [`event_loop`] | the event loop of a shard, its observer, its I/O trait and its timer |
//! | [`clock`] | the monotonic clock, and emulated time derived from it |
//! | [`placement`] | the assignment of actors to shards |
//! | [`host_stats`] | processor time, memory and timer lateness of a process; messages, lateness and load of a shard while it runs |

pub mod clock;
pub mod event_loop;
pub mod host_stats;
pub mod monitor;
pub mod placement;
