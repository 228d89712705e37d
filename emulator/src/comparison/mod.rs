//! Comparisons of results: two studies (`volary compare`), and one experiment in several runtimes (`volary validate`).
//!
//! | module | what it holds |
//! |---|---|
//! | [`metrics`] | the metrics that are compared, their statistics, and how they are shown |
//! | [`studies`] | two studies, policy by policy and cell by cell |
//! | [`compared_point`], `compared_table` | a policy and a cell of both studies, and its table |
//! | [`validate`](mod@validate) | the execution of one experiment in several runtimes |
//! | `against` | one policy in one runtime against the reference |
//! | [`validation`], [`variant`] | the result of a validation; the variants of an experiment and their runs |
//! | [`divergence`] | one metric of a runtime against the reference |
//! | [`policy`] | the metrics that only some policies have |
//! | `causes` | likely causes of a divergence |
//! | `cores_as_found` | the reference with cores as fast as a run found them |
//! | `text` | a validation as tables |

mod against;
mod causes;
pub mod compared_point;
mod compared_table;
mod cores_as_found;
pub mod divergence;
pub mod metrics;
pub mod policy;
pub mod studies;
mod text;
pub mod validate;
pub mod validation;
pub mod variant;

pub use studies::{StudyComparison, compare};
pub use validate::{ValidateOptions, validate};
pub use validation::{Against, Validation};
pub use variant::{Error, RunVariant};

#[cfg(test)]
mod tests;
