//! The cells of a row of a table without a header, whose columns are fixed.

use super::super::error::WorkloadError;
use super::lines::{At, TraceLine, short};

/// The cells of a row of `COLUMNS` columns, trimmed.
pub(super) struct Cells<'a, const COLUMNS: usize> {
    pub(super) at: At<'a>,
    pub(super) texts: [&'a str; COLUMNS],
}

impl<'a, const COLUMNS: usize> Cells<'a, COLUMNS> {
    /// The cells of a line, separated by commas.
    pub(super) fn of(line: TraceLine<'a>) -> Result<Self, WorkloadError> {
        let mut texts = [""; COLUMNS];
        let mut count = 0;
        for cell in line.text.split(',') {
            if let Some(text) = texts.get_mut(count) {
                *text = cell.trim();
            }
            count += 1;
        }
        if count == COLUMNS {
            return Ok(Self { at: line.at, texts });
        }
        let why = format!(
            "has {count} of the {COLUMNS} columns of this table; is the file cut off, or another table?"
        );
        Err(line.at.wrong(why))
    }

    /// A whole number.
    pub(super) fn whole(&self, column: usize, name: &str) -> Result<u64, WorkloadError> {
        self.texts[column].parse().map_err(|_| {
            let text = short(self.texts[column]);
            self.at.field(column + 1, name, format!("`{text}` is not a whole number of at least zero"))
        })
    }
}
