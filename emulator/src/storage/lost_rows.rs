//! The error of a table that lacks the rows of a run.

use ::parquet::errors::ParquetError;

/// A run has no rows in a table, although its record says that it has some.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "{table}.parquet has no rows of run {run}: it was removed or replaced; put it back, or run again with --resume, which makes it again"
)]
pub struct LostRows {
    pub(super) table: &'static str,
    pub(super) run: String,
}

impl LostRows {
    /// Converts it to an error of a Parquet table.
    pub(super) fn in_table(self) -> ParquetError {
        ParquetError::External(Box::new(self))
    }

    /// Extracts it from an error of a Parquet table.
    pub(super) fn of(error: &ParquetError) -> Option<Self> {
        if let ParquetError::External(source) = error { source.downcast_ref::<Self>().cloned() } else { None }
    }
}
