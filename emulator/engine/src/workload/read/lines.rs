//! Lines of a trace, and their fields, with positions for errors. Commas separate the cells of a row; a table without a
//! header has a fixed number of cells.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, ErrorKind};
use std::path::Path;
use std::str::SplitAsciiWhitespace;

use volary_actors::base::Span;

use super::super::trace::{Format, MOST_TASKS};
use super::time::{SECONDS, TimeUnit};
use crate::workload::trace::WorkloadError;

/// Maximum length of a line, enough for a job of a few million tasks. Without a limit a compressed file could expand to
/// one line that fills the memory.
const LONGEST: usize = 256 << 20;

/// The lines of a file.
pub(super) struct Lines<'a> {
    file: &'a Path,
    input: Box<dyn BufRead>,
    buffer: Vec<u8>,
    number: u64,
    /// Whether the current line was only peeked at.
    peeked: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(file: &'a Path, input: impl BufRead + 'static) -> Self {
        Self { file, input: Box::new(input), buffer: Vec::new(), number: 0, peeked: false }
    }

    /// The name of the file.
    pub(super) const fn file(&self) -> &'a Path {
        self.file
    }

    /// The next line without its end, or `None` after the last line.
    pub(super) fn next(&mut self) -> Result<Option<TraceLine<'_>>, WorkloadError> {
        if !std::mem::take(&mut self.peeked) && !self.advance()? {
            return Ok(None);
        }
        let at = At { file: self.file, line: self.number };
        match std::str::from_utf8(&self.buffer) {
            Ok(text) => Ok(Some(TraceLine { at, text: text.trim() })),
            Err(_) => Err(at.wrong(
                "is not text in UTF-8; if this is a trace in another encoding, convert it, for example with `iconv -f \
                 latin1 -t utf-8`",
            )),
        }
    }

    /// The next line that is neither blank nor a comment.
    pub(super) fn next_row(&mut self, comment: char) -> Result<Option<TraceLine<'_>>, WorkloadError> {
        self.next_row_with_comments(comment, |_| ())
    }

    /// The next line that is neither blank nor a comment; `note` is given the comments before it.
    pub(super) fn next_row_with_comments(
        &mut self,
        comment: char,
        mut note: impl FnMut(&str),
    ) -> Result<Option<TraceLine<'_>>, WorkloadError> {
        self.next_that(|text| match text.strip_prefix(comment) {
            Some(said) => {
                note(said.trim());
                false
            }
            None => true,
        })
    }

    /// The next line that is not blank, of a format without comments.
    pub(super) fn next_record(&mut self) -> Result<Option<TraceLine<'_>>, WorkloadError> {
        self.next_that(|_| true)
    }

    /// The next line that is not blank and for which `wanted` holds.
    fn next_that(
        &mut self,
        wanted: impl FnMut(&str) -> bool,
    ) -> Result<Option<TraceLine<'_>>, WorkloadError> {
        if self.find(wanted)? { self.next() } else { Ok(None) }
    }

    /// Peeks at the next line that is not blank and for which `wanted` holds; returns whether there is one. Skipped
    /// lines, such as comments, may be in another encoding.
    fn find(&mut self, mut wanted: impl FnMut(&str) -> bool) -> Result<bool, WorkloadError> {
        while std::mem::take(&mut self.peeked) || self.advance()? {
            let text = String::from_utf8_lossy(&self.buffer);
            if !text.trim().is_empty() && wanted(text.trim()) {
                self.peeked = true;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Guesses the format from the first line with content, for a file without a known suffix.
    pub(super) fn guess(&mut self) -> Result<Format, WorkloadError> {
        let mut format = Format::Tr;
        self.find(|text| {
            format = match text {
                _ if text.starts_with('#') => return false,
                _ if text.starts_with(';') => Format::Swf,
                _ if text.contains(',') => Format::Csv,
                _ => Format::Tr,
            };
            true
        })?;
        Ok(format)
    }

    fn advance(&mut self) -> Result<bool, WorkloadError> {
        self.buffer.clear();
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(source) if source.kind() == ErrorKind::Interrupted => continue,
                Err(source) => return Err(self.failed(source)),
            };
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let at = At { file: self.file, line: self.number + 1 };
            // No text holds them, but an archive or a compressed file of zeros does.
            if part.contains(&0) {
                return Err(at.wrong("holds a zero byte, so the file is not text; is this a trace?"));
            }
            if self.buffer.len() + part.len() > LONGEST {
                return Err(at.wrong("is longer than 256 MiB; is this a trace?"));
            }
            self.buffer.extend_from_slice(part);
            let (taken, ends) = (part.len() + usize::from(end.is_some()), end.is_some() || chunk.is_empty());
            self.input.consume(taken);
            if ends {
                let read = taken > 0 || !self.buffer.is_empty();
                self.number += u64::from(read);
                return Ok(read);
            }
        }
    }

    fn failed(&self, source: std::io::Error) -> WorkloadError {
        let file = self.file.to_owned();
        // A decoder's report of damage; no operating system gives this kind.
        if source.kind() == ErrorKind::InvalidData {
            return WorkloadError::Trace(format!(
                "{}: the compressed data breaks off or is damaged after line {} ({source}); fetch the file again or \
                 check it with `xz -t`, `zstd -t` or `gzip -t`",
                file.display(),
                self.number
            ));
        }
        WorkloadError::Io { file, source }
    }
}

/// A line and its position.
#[derive(Clone, Copy)]
pub(super) struct TraceLine<'a> {
    pub(super) at: At<'a>,
    pub(super) text: &'a str,
}

impl<'a> TraceLine<'a> {
    /// The fields of the line, separated by white space.
    pub(super) fn fields(self) -> Fields<'a> {
        Fields { at: self.at, fields: self.text.split_ascii_whitespace(), taken: 0 }
    }
}

/// A position in a file.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    file: &'a Path,
    line: u64,
}

impl At<'_> {
    /// An error about the line as a whole.
    pub(super) fn wrong(self, why: impl Into<String>) -> WorkloadError {
        WorkloadError::Trace(format!("{}:{}: {}", self.file.display(), self.line, why.into()))
    }

    /// An error about a field, numbered from one.
    pub(super) fn field(self, field: usize, column: &str, why: impl fmt::Display) -> WorkloadError {
        self.wrong(format!("field {field} ({column}): {why}"))
    }

    /// A time in seconds, finite and at least zero.
    pub(super) fn seconds(self, field: usize, column: &str, text: &str) -> Result<f64, WorkloadError> {
        self.time(field, column, text, SECONDS)
    }

    /// A time in seconds, finite and at least zero, from a number of units.
    pub(super) fn time(
        self,
        field: usize,
        column: &str,
        text: &str,
        unit: &TimeUnit,
    ) -> Result<f64, WorkloadError> {
        let units = unit.plural;
        let wrong = |why: String| Err(self.field(field, column, why));
        let Ok(number) = text.parse::<f64>() else {
            return wrong(format!("`{}` is not a number of {units}", short(text)));
        };
        let seconds = number * (unit.ns as f64 / 1e9);
        if !number.is_finite() {
            wrong(format!("{} is not a finite number of {units}", short(text)))
        } else if number < 0.0 {
            wrong(format!(
                "{} is negative; times are {units} from zero on; correct or delete it",
                short(text)
            ))
        } else if seconds >= Span::MAX.as_secs_f64() {
            wrong(format!("{} {units} are longer than 584 years", short(text)))
        } else {
            Ok(seconds)
        }
    }

    /// A number of tasks, at least one and at most [`MOST_TASKS`].
    pub(super) fn count(self, field: usize, column: &str, text: &str) -> Result<u32, WorkloadError> {
        text.parse::<u32>().ok().filter(|tasks| (1..=MOST_TASKS).contains(tasks)).ok_or_else(|| {
            self.field(
                field,
                column,
                format!("`{}` is not a whole number of tasks from 1 to {MOST_TASKS}", short(text)),
            )
        })
    }
}

/// The beginning of a field, short enough for a message on a terminal.
pub(super) fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

/// The fields of a line, each taken once.
pub(super) struct Fields<'a> {
    pub(super) at: At<'a>,
    fields: SplitAsciiWhitespace<'a>,
    taken: usize,
}

impl<'a> Fields<'a> {
    /// The text of the next field; `None` after the last field.
    pub(super) fn take(&mut self) -> Option<&'a str> {
        let field = self.fields.next()?;
        self.taken += 1;
        Some(field)
    }

    /// Number of fields taken.
    pub(super) const fn taken(&self) -> usize {
        self.taken
    }

    /// The next field, which must be there.
    pub(super) fn need(&mut self, column: &str) -> Result<&'a str, WorkloadError> {
        self.take().ok_or_else(|| {
            self.at.field(self.taken + 1, column, "is missing: the line ends before it; is the file cut off?")
        })
    }
}

/// Rows that are well-formed but describe no job, by reason.
#[derive(Debug, Default)]
pub(super) struct Skipped(BTreeMap<&'static str, u64>);

impl Skipped {
    pub(super) fn count(&mut self, reason: &'static str) {
        *self.0.entry(reason).or_default() += 1;
    }

    pub(super) fn text(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let all: u64 = self.0.values().sum();
        let reasons: Vec<String> = self.0.iter().map(|(reason, rows)| format!("{rows} {reason}")).collect();
        let rows = if all == 1 { "row" } else { "rows" };
        format!("{all} {rows} skipped: {}", reasons.join(", "))
    }
}

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

    /// The whole number in a column.
    pub(super) fn whole(&self, column: usize, name: &str) -> Result<u64, WorkloadError> {
        self.texts[column].parse().map_err(|_| {
            let text = short(&self.texts[column]);
            self.at.field(column + 1, name, format!("`{text}` is not a whole number of at least zero"))
        })
    }
}

/// The cells of a row, trimmed. A cell in quotes may hold commas; two quotes in such a cell stand for one quote.
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
