//! Murmuration: schedulers that each keep a cache of the work at every node and broadcast their placements.
//!
//! | module | what it holds |
//! |---|---|
//! | `config` | parameters |
//! | `scheduler` | the policy; the queue of jobs, placement, and recovery of both when something is lost |
//! | `cache` | expected waits: choosing a node, applying updates |
//! | `disseminator` | numbering updates and sending them; the numbers of those already applied |
//! | `boot` | a restarted scheduler copies the cache of another |
//! | `node` | the node manager; the tasks of a node, their order and their cores |

mod boot;
mod cache;
mod config;
mod disseminator;
mod node;
mod scheduler;
#[cfg(test)]
mod tests;

pub use config::{
    Murmuration, MurmurationNews, MurmurationOrder, MurmurationRank, MurmurationSpread, MurmurationTies,
    MurmurationWait,
};
