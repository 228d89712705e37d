//! Staleness of what schedulers and nodes know.
//!
//! | module | what it holds |
//! |---|---|
//! | `tracker` | caches of the work at every node, compared with the truth, and the decisions made by them |
//! | `view` | the cache of a scheduler and the updates that it lacks |
//! | `decisions` | what schedulers lacked when they decided, and what their choices cost |
//! | `waits` | how long a task would wait at each node |
//! | `copies` | copies of a state that a whole run shares |
//! | `ages` | ages over time |
//! | `instants` | when caches and copies are observed |

mod ages;
mod copies;
mod decisions;
mod instants;
mod tracker;
mod view;
mod waits;

pub use copies::CopyTracker;
pub use tracker::Tracker;
