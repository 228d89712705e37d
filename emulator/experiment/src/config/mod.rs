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

mod abridge;
mod bundle;
mod checks;
pub mod claims;
pub mod cluster;
pub mod describe;
pub mod document;
pub mod error;
pub mod experiment;
mod explain;
pub mod file;
pub mod identity;
pub mod include;
mod kind;
pub mod load;
pub mod real;
pub mod reference;
mod repeat;
mod resolve;
pub mod schema;
pub mod sweep;
mod warnings;
mod written;

pub use bundle::Bundle;
pub use claims::Claim;
pub use error::ConfigError;
pub use experiment::{CellLoad, Experiment, Overrides, Run};
pub use file::{File, Record, RunSection, RuntimeKind};
pub use identity::id_under;
pub use include::open_profile as profile;
pub use real::RealSection;
pub use repeat::Repeat;
