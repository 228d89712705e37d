//! The experiment file: parsed, overridden, swept, resolved; and the claims it makes.
//!
//! | step | module | what it checks |
//! |---|---|---|
//! | text to document | [`document`] | syntax; keeps the place of every key and value |
//! | overrides and sweep | [`sweep`] | keys exist, values fit; the cartesian product |
//! | document to [`File`] | [`file`](mod@file) | form only: a file that parses on one machine parses on all |
//! | file to [`Experiment`] | [`experiment`] | paths, traces, profiles, cross-field rules |
//! | claims | [`claims`] | grammar, labels, metrics; verdicts over results |
//!
//! Every error is a [`ConfigError`] that names file, line and key, and a remedy. `config` depends on the configuration
//! types of the other crates; `cli`, `runtime`, `cluster` and `comparison` depend on `config`.

mod checks;
pub mod claims;
pub mod describe;
pub mod document;
pub mod error;
pub mod experiment;
mod explain;
pub mod file;
pub mod include;
pub mod load;
pub mod presets;
pub mod reference;
mod resolve;
pub mod sweep;
mod warnings;

pub use claims::Claim;
pub use error::ConfigError;
pub use experiment::{Bundle, CellLoad, Experiment, Overrides, Run, id_under};
pub use file::{File, RealSection, Record, Repeat, RunSection, RuntimeKind};
pub use include::open_profile as profile;
