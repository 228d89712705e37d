//! Real time: what the runtimes `local` and `hosts` share.
//!
//! | module | what it holds |
//! |---|---|
//! | [`ticks`] | the monotonic clock, and wrong ones for tests |
//! | [`clock`] | emulated time read off a real clock |
//! | [`alarm`] | a timer better than a millisecond |
//! | [`bell`] | what wakes a shard from a thread that must not lock |
//! | [`drive`] | the loop of a shard |
//! | [`labour`] | real cores under a shard |
//! | [`watcher`] | what a shard reports |
//! | [`merge`] | one stream of observations out of several |
//! | [`vitals`] | processors, memory and bare timers of a process |
//! | [`keeper`] | books kept from reports, and when a run is over |
//! | [`tray`] | parcels between shards of one process |
//! | [`place`] | which actors live on which shard |

pub mod alarm;
pub mod bell;
pub mod change;
pub mod clock;
pub mod drive;
pub mod keeper;
pub mod labour;
pub mod merge;
pub mod place;
pub mod ticks;
pub mod tray;
pub mod vitals;
pub mod watcher;
