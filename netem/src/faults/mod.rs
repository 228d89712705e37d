//! Scheduled faults: the tables `[[network.fault]]`, and the schedule made from them.
//!
//! A fault holds from `at` until just before `at + for` and heals by itself.

mod schedule;
mod spec;
mod windows;

pub(crate) use schedule::Degraded;
pub use schedule::{Crash, Faults};
pub use spec::{CrashSpec, DegradeSpec, FaultSpec, PartitionSpec, PauseSpec};
pub use windows::Windows;
