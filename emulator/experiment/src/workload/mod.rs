//! Traces of jobs on disk: their location, description and conversion.
//!
//! | module | what it holds |
//! |---|---|
//! | `library`, `input`, `parquet` | the search for traces, the cache of parsed traces, decompression, rows of Parquet |
//! | [`mod@describe`] | `volary trace describe` |
//! | `convert` | `volary trace convert`: conversion of jobs and their features |
//! | `google`, `alibaba` | folders with Google's trace of 2011, and with Alibaba's trace of 2018 |
//! | [`predict`] | `volary trace predict` |
//! | [`sources`] | where traces are published: `volary trace sources` |
//! | `text` | tables and numbers in reports about traces |

mod alibaba;
mod convert;
pub mod describe;
mod google;
mod input;
mod library;
mod parquet;
pub mod predict;
pub mod sources;
mod text;

pub use convert::write;
pub use describe::{Description, Reference, describe};
pub use input::decompress;
pub use library::{Traces, is_trace_folder, read};

#[cfg(test)]
mod real;
