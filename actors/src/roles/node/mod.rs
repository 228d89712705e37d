//! The standard node manager.

mod manager;
mod reports;
mod row_state;
mod tick;
mod usage;

pub use self::manager::{NodeManager, NodeOptions, Reservation};
pub use self::reports::{ProgressErrors, ReportOptions};
pub use self::usage::{NodeUsage, UsageOptions};
