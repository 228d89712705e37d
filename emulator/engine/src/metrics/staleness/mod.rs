//! Staleness of what schedulers and nodes know.
//!
//! | module | what it holds |
//! |---|---|
//! | `tracker` | caches of the work at every node, compared with the truth, and the decisions made by them |
//! | `view` | the cache of a scheduler and the updates that it lacks |
//! | `copies` | copies of a state that a whole run shares |
//! | `ages` | ages over time |
//! | `instants` | when caches and copies are observed |

mod ages;
mod copies;
mod instants;
mod tracker;
mod view;

pub use copies::CopyTracker;
pub use tracker::Tracker;
