//! The standard node manager.

mod manager;
mod row_state;

pub use self::manager::{NodeManager, NodeOptions, Reservation};
