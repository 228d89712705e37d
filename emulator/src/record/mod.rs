//! Observations folded into results, and the files of a run directory.
//!
//! | module | what it writes |
//! |---|---|
//! | [`cell`] | `cells/<id>.json`: one cell's summary and enough of its shape to draw it again |
//! | [`hosts`] | (in the manifest: which host held what) |
//! | [`manifest`] | `manifest.json`: what was run, when and by whom |
//! | [`parquet`] | `jobs.parquet`, `tasks.parquet`, `staleness.parquet` and `cores.parquet` |
//! | [`read`] | (nothing: it reads those rows back) |
//! | [`fold`] | (nothing: it folds notes into one run's results) |
//! | [`inputs`] | `inputs.log`: what every actor was told, for `volary replay` |
//! | [`staleness`] | (nothing: it folds notes about caches) |
//! | [`placements`] | (nothing: it folds notes about placements) |
//! | [`perfetto`] | `timeline.perfetto-trace` |

pub mod cell;
#[cfg(test)]
pub(crate) mod fixture;
pub mod fold;
mod gauge;
pub mod hosts;
pub mod inputs;
pub mod manifest;
pub mod parquet;
pub mod perfetto;
pub mod placements;
pub mod read;
pub mod staleness;
