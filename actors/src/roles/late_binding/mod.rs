//! Late binding: reservations on sampled nodes, and tasks for the nodes that claim first.

mod options;
pub(crate) mod places;
mod scheduler;
mod state_sharing;

pub use self::options::{ProbeOptions, SamplingForm};
pub use self::scheduler::LateBinding;
pub use self::state_sharing::StateSharing;
