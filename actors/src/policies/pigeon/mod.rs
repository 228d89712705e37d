//! Pigeon: schedulers deal tasks out to the masters of groups of workers, which queue them and give them to idle
//! workers.

mod config;
mod groups;
mod master;
mod node;
mod policy;
mod queues;
mod scheduler;
#[cfg(test)]
mod tests;
mod workers;

pub use config::Pigeon;
