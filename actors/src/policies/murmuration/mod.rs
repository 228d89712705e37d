//! Murmuration: schedulers that each keep a cache of the work at every node and broadcast their placements.
//!
//! | module | what it holds |
//! |---|---|
//! | `config` | parameters |
//! | `policy` | the factory of the machines |
//! | `scheduler` | the queue of jobs, placement, recovery of both when something is lost |
//! | `cache` | expected waits: choosing a node, applying updates |
//! | `seen_window` | the numbers of the updates already applied |
//! | `disseminator` | numbering updates and sending them |
//! | `boot` | a restarted scheduler copies the cache of another |
//! | `node` | the node manager |
//! | `service` | the tasks of a node: their order, their cores |

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
