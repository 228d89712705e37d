//! The standard node manager.

mod manager;
mod reports;
mod row_state;

pub use self::manager::{NodeManager, NodeOptions, Reservation};
pub use self::reports::{ProgressErrors, ReportOptions};
