//! The standard node manager.

mod manager;
mod reports;
mod row_state;
mod tick;
mod usage;

pub use self::manager::{NodeManager, NodeOptions};
pub use self::reports::{ProgressErrors, ReportOptions};
pub use self::row_state::Reservation;
pub use self::usage::{NodeUsage, UsageOptions};
