//! The event loop, clocks and mailboxes of real time, for the runtime `local` and for agents.
//!
//! | module | what it holds |
//! |---|---|
//! | [`event_loop`] | the event loop of a shard, its observer and its I/O trait |
//! | [`clock`] | the monotonic clock, and emulated time derived from it |
//! | [`timerfd`] | a timer with a resolution of microseconds |
//! | [`eventfd`] | a wake-up without a lock |
//! | [`mailbox`] | parcels between shards of one process |
//! | [`placement`] | the assignment of actors to shards |
//! | [`host_stats`] | processor time, memory and timer lateness of a process |
//! | [`sample`] | messages, lateness and load of a shard while it runs |

pub mod clock;
pub mod event_loop;
pub mod eventfd;
pub mod host_stats;
pub mod mailbox;
pub mod monitor;
pub mod placement;
pub mod sample;
pub mod timerfd;
