//! Comparisons of results: two studies (`volary compare`), and one experiment in several runtimes (`volary validate`).
//!
//! | module | what it holds |
//! |---|---|
//! | [`metrics`] | the compared metrics, their statistics and their format |
//! | [`studies`] | two studies, policy by policy and cell by cell |
//! | `compared_table` | a policy and a cell of both studies, and its table |
//! | [`validate`](mod@validate) | the execution of one experiment in several runtimes |
//! | `against` | one policy in one runtime against the reference; likely causes of a divergence |
//! | [`validation`], [`variant`] | the result of a validation, and its tables; the variants of an experiment and their runs |
//! | [`divergence`] | one metric of a runtime against the reference |
//! | [`policy`] | the metrics that only some policies have |
//! | `cores_as_found` | the reference with cores as fast as a run found them |

mod against;
pub mod compared_table;
mod cores_as_found;
pub mod divergence;
pub mod metrics;
pub mod policy;
pub mod studies;
pub mod validate;
pub mod validation;
pub mod variant;

pub use studies::{StudyComparison, compare};
pub use validate::{ValidateOptions, validate};
pub use validation::{Against, Validation};
pub use variant::{Error, RunVariant};
