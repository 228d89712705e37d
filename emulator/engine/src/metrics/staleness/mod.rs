//! Staleness of the caches of schedulers and nodes.
//!
//! | module | what it holds |
//! |---|---|
//! | `tracker` | the metric: caches of the work at every node, compared with the truth, and the decisions made by them |
//! | `view` | the cache of a scheduler and the updates that it lacks |
//! | `decisions` | updates that schedulers lacked in decisions, and the cost of their choices |
//! | `waits` | the wait of a task at each node |
//! | `copies` | copies of a state that a whole run shares |
//! | `ages` | ages over time |
//! | `instants` | the instants at which caches and copies are observed |

mod ages;
mod copies;
mod decisions;
mod instants;
mod tracker;
mod view;
mod waits;

pub use tracker::Tracker;
