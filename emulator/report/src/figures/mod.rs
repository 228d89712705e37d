//! Figures of a study, which are the same in the report and in files.
//!
//! | module | what it draws |
//! |---|---|
//! | `distribution` | distributions of response times, their tails, and their percentiles |
//! | [`job`] | one job under every policy |
//! | [`sweep`] | a number over swept keys, as curves and as a shaded table |
//! | `over_time` | caches over time, and timelines of cores |
//! | [`plot`] | the figure of `volary plot` |

pub(super) mod distribution;
pub mod job;
pub(crate) mod over_time;
pub mod plot;
pub mod sweep;
