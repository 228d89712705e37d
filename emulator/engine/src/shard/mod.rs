//! The event loop over a partition of the actors, and the state it acts on.
//!
//! | module | what it holds |
//! |---|---|
//! | `event_loop` | [`Shard`]: events, actor slots, the loop |
//! | `delivery` | messages: to the same node, over the network, to other shards, to all schedulers |
//! | `outbox` | [`Outbox`]: messages to other shards; [`Traffic`] |
//! | `broadcast` | messages to all schedulers as one event: their log |
//! | `copies` | copies on emulated and real cores; injected interference |
//! | `executor` | [`CoreExecutor`]: real cores |
//! | `faults` | crashes, restarts, the failure detector |
//! | `observer` | [`Observer`]: callbacks of a shard |
//! | `parts` | the parts that a shard is built from |
//! | `prefetch` | cache prefetch of upcoming events |
//! | `sharing` | copies on shared nodes |
//! | `stopwatch` | [`Stopwatch`]: the CPU time of planning |

mod broadcast;
mod copies;
mod delivery;
mod event_loop;
mod executor;
mod faults;
mod observer;
mod outbox;
mod parts;
mod prefetch;
mod sharing;
mod stopwatch;

pub use event_loop::Shard;
pub use executor::CoreExecutor;
pub use observer::{Due, Observer};
pub use outbox::{Outbox, Traffic};
pub use parts::{Parts, Placement};
pub use stopwatch::{Stopwatch, ThreadClock};
