//! Traces of jobs on disk: their location, description and conversion.
//!
//! | module | what it holds |
//! |---|---|
//! | `library` | the search for traces, their decompression, and parsed ones |
//! | [`mod@describe`], `convert` | `volary trace describe` and `volary trace convert` |

mod convert;
pub mod describe;
mod library;

pub use convert::{write, write_lines};
pub use describe::{Description, Reference, describe};
pub use library::{Traces, decompress, read};

#[cfg(test)]
mod real;
