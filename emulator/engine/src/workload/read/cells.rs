//! Cells of a row: separated by commas, and of a fixed number in a table without a header.

use std::borrow::Cow;

use super::super::error::WorkloadError;
use super::lines::{At, TraceLine, short};

/// The cells of a row of `COLUMNS` columns, trimmed.
pub(super) struct Cells<'a, const COLUMNS: usize> {
    pub(super) at: At<'a>,
    pub(super) texts: [Cow<'a, str>; COLUMNS],
}

impl<'a, const COLUMNS: usize> Cells<'a, COLUMNS> {
    /// The cells of a line, separated by commas.
    pub(super) fn of(line: TraceLine<'a>) -> Result<Self, WorkloadError> {
        let mut texts = [const { Cow::Borrowed("") }; COLUMNS];
        let mut count = 0;
        for cell in cells(line.text) {
            if let Some(text) = texts.get_mut(count) {
                *text = cell;
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
            let text = short(&self.texts[column]);
            self.at.field(column + 1, name, format!("`{text}` is not a whole number of at least zero"))
        })
    }
}

/// The cells of a row, trimmed. A cell in quotes may hold commas; two quotes in it are one.
pub(crate) fn cells(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?.trim_start();
        if let Some(quoted) = text.strip_prefix('"')
            && let Some(end) = closing(quoted)
        {
            rest = quoted[end + 1..].split_once(',').map(|(_, rest)| rest);
            return Some(quoted[..end].replace("\"\"", "\"").trim().to_owned().into());
        }
        let (cell, tail) = match text.split_once(',') {
            Some((cell, tail)) => (cell, Some(tail)),
            None => (text, None),
        };
        rest = tail;
        Some(cell.trim().into())
    })
}

/// The position of the quote that ends a cell.
fn closing(quoted: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + quoted[from..].find('"')?;
        if !quoted[at + 1..].starts_with('"') {
            return Some(at);
        }
        from = at + 2;
    }
}

/// The separator of the cells of a line in place of commas, as some spreadsheets and databases write it.
pub(crate) fn other_separator(text: &str) -> Option<char> {
    [';', '|'].into_iter().find(|&separator| !text.contains(',') && text.contains(separator))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_split_at_commas_outside_of_quotes() {
        let split = |text| cells(text).map(|cell| cell.into_owned()).collect::<Vec<_>>();
        assert_eq!(split("a, b ,,c"), ["a", "b", "", "c"]);
        assert_eq!(split(r#""a, b","say ""x""",c"#), ["a, b", "say \"x\"", "c"]);
        assert_eq!(split(r#""never closed,b"#), ["\"never closed", "b"]);
        assert_eq!(split(""), [""]);
    }
}
