//! Runs on many machines: what controller and agents say to each other, and how it travels.

pub mod net;
