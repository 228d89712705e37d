//! Replication: groups of tasks that run on groups of servers, every task on several of them.

mod choice;
mod offers;
mod scheduler;

pub use self::scheduler::{Design, Drops, Replication};
