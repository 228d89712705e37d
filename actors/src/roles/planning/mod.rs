//! A central scheduler that decides in cycles which jobs run: all tasks of a job start together, on idle cores alone,
//! and jobs can be preempted. A [`Planner`] makes the decisions.

mod planner;
mod pool;
mod scheduler;
mod utility;

pub use planner::{Decision, JobRun, LaunchOrder, Planner, Situation, TaskPlaces};
pub use planner::{HeldCore, PlannedJob};
pub use pool::CorePool;
pub use scheduler::PlanningScheduler;
pub use utility::{OverEstimates, Utility, Valuation};
