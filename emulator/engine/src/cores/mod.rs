//! Interference, and the exact time a core needs for work.
//!
//! A copy of work w that starts at t₀ on core i ends at the first t with ∫ speed_i · r_i dt = w, where the rate r_i is
//! 1 on a healthy core, 1 / σ while x_i(t) = 1, and 0 while its node is paused. [`Cores`] integrates that exactly.
//! Nothing happens per tick, only when a copy starts or is stopped.
//!
//! | module | what it holds |
//! |---|---|
//! | `state` | [`Cores`]: the copy on every core, and when it finishes |
//! | [`config`] | the `[interference]` table and profile files |
//! | [`table`] | node, rack and speed of every core |
//! | [`show`] | pictures of a profile, without a run |
//! | [`injection`] | another profile for some cores and a limited time, during a run |
//! | [`set`] | sets of cores |
//! | `process` | x_i(t) of each kind, stretch by stretch |
//! | `profile` | checks of that table; a profile under a seed |
//! | `integral` | exact arithmetic of work |

pub mod config;
pub mod injection;
mod integral;
mod process;
mod profile;
pub mod set;
pub mod show;
mod state;
pub mod table;

pub use config::{Interference, Scope};
pub use injection::Injection;
pub use profile::{Burst, Profile, ProfileError};
pub use set::CoreSet;
pub use state::Cores;
pub use table::CoreTable;

#[cfg(test)]
mod tests;
