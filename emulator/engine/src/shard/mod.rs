//! The event loop over a partition of the actors, and the state it acts on.
//!
//! | module | what it holds |
//! |---|---|
//! | `event_loop` | [`Shard`]: events, the loop |
//! | `actors` | machines, random streams and counts of the actors |
//! | `faults` | crashes, restarts, the failure detector |
//! | `broadcasts` | the log of broadcasts |
//! | `effects` | messages and copies of a shard: delivery, copies on emulated, real and shared cores, injected interference |
//! | `executor` | [`CoreExecutor`]: real cores |
//! | `observer` | [`Observer`]: callbacks of a shard; [`Outbox`]: messages to other shards; [`Traffic`] and [`WindowTally`]: counters |
//! | `handling` | inputs of actors that take time for messages |
//! | `servers` | the queues of these actors |
//! | `parts` | the parts that a shard is built from; [`Stopwatch`]: the CPU time of planning |
//! | `window` | the counters at the bounds of the measured window |

mod actors;
mod broadcasts;
mod effects;
mod event_loop;
mod executor;
mod faults;
mod handling;
mod observer;
mod parts;
mod servers;
mod window;

pub use event_loop::Shard;
pub use executor::CoreExecutor;
pub use observer::{Due, Observer, Outbox, Traffic, WindowTally};
pub use parts::{Parts, Placement, Stopwatch, ThreadClock};
