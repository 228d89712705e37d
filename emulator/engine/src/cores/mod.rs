//! Interference, and the exact time a core needs for work.
//!
//! A copy of work w that starts at t₀ on core i ends at the first t with ∫ speed_i · r_i dt = w, where the rate r_i is
//! 1 on a healthy core, 1 / σ while x_i(t) = 1, and 0 while its node is paused. [`Cores`] integrates that exactly.
//! There are no ticks: computation happens only when a copy starts or is stopped.
//!
//! | module | what it holds |
//! |---|---|
//! | `state` | [`Cores`]: the copy on every core, and its finish time |
//! | [`config`] | the `[interference]` table and profile files, and their checks |
//! | [`table`] | node, rack and speed of every core |
//! | [`show`] | pictures of a profile, without a run |
//! | [`summary`] | quantiles of speed, lost work and burst lengths of a profile or a recording |
//! | [`injection`] | another profile for some cores and a limited time, during a run or scheduled; its effect |
//! | `trace` | files of observed bursts, and their mismatches with a run |
//! | `profile` | the processes x_i(t) of each kind, stretch by stretch; a profile under a seed |
//! | `integral` | exact arithmetic of work |
//! | `shares` | nodes whose copies share the CPU |

pub mod config;
pub mod injection;
mod integral;
mod profile;
mod shares;
pub mod show;
mod state;
pub mod summary;
pub mod table;
mod trace;

pub use config::{InjectionSpec, Interference, ProfileError, Scope};
pub use injection::{Effect, Injection, ScheduledInjection};
pub use profile::{Burst, Profile};
pub use shares::{Change, Next, SharedUse};
pub use state::Cores;
pub use table::CoreTable;
pub use trace::{RunLength, TraceGap};

#[cfg(test)]
mod tests;
