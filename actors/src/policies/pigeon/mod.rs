//! Pigeon: schedulers deal tasks out to the masters of groups of workers, which queue them and give them to idle
//! workers.

mod claim;
mod config;
mod groups;
mod load;
mod master;
mod master_seat;
mod node;
mod policy;
mod queues;
mod scheduler;
mod split;
#[cfg(test)]
mod tests;
mod tick;
mod workers;

pub use config::Pigeon;
