//! Traces of jobs on disk: where they are, what they are like, how they are written.
//!
//! | module | what it holds |
//! |---|---|
//! | `library` | where traces are, and those already parsed |
//! | [`describe`], `convert` | `volary trace describe` and `volary trace convert` |

mod convert;
pub mod describe;
mod library;

pub use convert::{write, write_lines};
pub use describe::{Description, Reference, describe};
pub use library::{Traces, read};
pub use volary_engine::workload::*;

#[cfg(test)]
mod real;
