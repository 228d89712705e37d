//! The error of a table that lacks the rows of a run.

use ::parquet::errors::ParquetError;

/// A run has no rows in a table, although its record says that it has some.
#[derive(Clone, Debug, thiserror::Error)]
#[error("has no rows of run {0}")]
pub struct LostRows(pub(super) String);

impl LostRows {
    /// As an error of a table.
    pub(super) fn of(run: &str) -> ParquetError {
        ParquetError::External(Box::new(Self(run.to_owned())))
    }

    /// Those of an error, if it is one.
    pub(super) fn in_error(error: &ParquetError) -> Option<Self> {
        if let ParquetError::External(source) = error { source.downcast_ref::<Self>().cloned() } else { None }
    }
}
