//! Errors in the data of a problem.

use std::fmt;

/// A problem that cannot be posed: a value that is out of its range, or a name that occurs twice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// The part of the problem, such as `job 7, block 1`.
    pub part: String,
    /// Description of the error.
    pub problem: String,
    /// Remedy.
    pub remedy: String,
}

impl Error {
    /// An error of one part of a problem, with its remedy.
    pub(crate) fn of(part: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { part: part.into(), problem: problem.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}; {}", self.part, self.problem, self.remedy)
    }
}

impl std::error::Error for Error {}
