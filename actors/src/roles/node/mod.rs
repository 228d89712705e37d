//! The standard node manager.

mod manager;
mod progress;
mod row_state;

pub use self::manager::{NodeManager, NodeOptions, Reservation};
