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
use crate::workload::work::Share;

/// Maximum length of a line, enough for a job of a few million tasks. Without a limit a compressed file could expand to
/// one line that fills the memory.
const LONGEST: usize = 256 << 20;

/// The lines of a file.
pub(super) struct Lines<'a> {
    file: &'a Path,
    input: Box<dyn BufRead>,
    /// The current line.
    text: String,
    number: u64,
    /// Lines with bytes that are not UTF-8, and the first of them.
    not_utf8: (u64, u64),
    /// Whether the current line was only peeked at.
    peeked: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(file: &'a Path, input: impl BufRead + 'static) -> Self {
        Self { file, input: Box::new(input), text: String::new(), number: 0, not_utf8: (0, 0), peeked: false }
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
        // A tab at an end is the separator of an empty cell.
        Ok(Some(TraceLine { at, text: self.text.trim_matches([' ', '\r']) }))
    }

    /// Puts the current line back, so that `next` returns it once more.
    pub(super) const fn unread(&mut self) {
        self.peeked = true;
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

    /// Peeks at the next line that is not blank and for which `wanted` holds; returns whether there is one.
    fn find(&mut self, mut wanted: impl FnMut(&str) -> bool) -> Result<bool, WorkloadError> {
        while std::mem::take(&mut self.peeked) || self.advance()? {
            let text = self.text.trim();
            if !text.is_empty() && wanted(text) {
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
                _ if text.starts_with('{') || text.contains([',', ';', '|']) => Format::Csv,
                _ => Format::Tr,
            };
            true
        })?;
        Ok(format)
    }

    /// Reads the next line. Bytes that are not UTF-8 become `�`, since names and comments may be in any encoding.
    fn advance(&mut self) -> Result<bool, WorkloadError> {
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        let read = self.read_line(&mut bytes)?;
        self.text = String::from_utf8(bytes).unwrap_or_else(|error| {
            let (lines, first) = self.not_utf8;
            self.not_utf8 = (lines + 1, if lines == 0 { self.number } else { first });
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        });
        Ok(read)
    }

    /// Remarks about the lines that were read.
    pub(super) fn note(&self) -> Option<String> {
        let (lines, first) = self.not_utf8;
        (lines > 0).then(|| {
            format!("lines with bytes that are not UTF-8, which are read as `�`: {lines}, the first is line {first}")
        })
    }

    fn read_line(&mut self, bytes: &mut Vec<u8>) -> Result<bool, WorkloadError> {
        bytes.clear();
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(source) if source.kind() == ErrorKind::Interrupted => continue,
                Err(source) => return Err(self.failed(source)),
            };
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let at = At { file: self.file, line: self.number + 1 };
            // Text has no zero bytes, but an archive or a compressed file of zeros has.
            if part.contains(&0) {
                return Err(at.wrong("holds a zero byte, so the file is not text; is this a trace?"));
            }
            if bytes.len() + part.len() > LONGEST {
                return Err(at.wrong("is longer than 256 MiB; is this a trace?"));
            }
            bytes.extend_from_slice(part);
            let (taken, ends) = (part.len() + usize::from(end.is_some()), end.is_some() || chunk.is_empty());
            self.input.consume(taken);
            if ends {
                let read = taken > 0 || !bytes.is_empty();
                self.number += u64::from(read);
                return Ok(read);
            }
        }
    }

    fn failed(&self, source: std::io::Error) -> WorkloadError {
        let file = self.file.to_owned();
        // Decoders report damage with this kind of error; operating systems do not use it.
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
    pub(super) file: &'a Path,
    pub(super) line: u64,
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
        let units = &unit.plural;
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
        let whole = whole(text).and_then(|count| u32::try_from(count).ok());
        whole.filter(|tasks| (1..=MOST_TASKS).contains(tasks)).ok_or_else(|| {
            self.field(
                field,
                column,
                format!("`{}` is not a whole number of tasks from 1 to {MOST_TASKS}", short(text)),
            )
        })
    }
}

/// A whole number, which may be written with decimals that are zero.
pub(super) fn whole(text: &str) -> Option<i64> {
    let decimal = || text.parse().ok().filter(|number: &f64| number.fract() == 0.0 && number.abs() < 1e15);
    text.parse().ok().or_else(|| decimal().map(|number| number as i64))
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

/// Rows that describe no job, by reason.
#[derive(Debug, Default)]
pub(super) struct Skipped(BTreeMap<&'static str, u64>);

/// Rows that are malformed, if the reader may leave out some of them.
#[derive(Debug)]
pub(super) struct BadRows {
    /// Largest share of the rows that may be left out.
    most: Share,
    rows: u64,
    bad: u64,
    /// The first errors.
    first: Vec<String>,
    /// Numbers of the rows that make no job, from zero, in rising order, where features need them.
    pub(super) without_job: Vec<u64>,
}

impl BadRows {
    /// Number of errors that the note quotes.
    const TOLD: usize = 10;

    pub(super) const fn new(most: Share) -> Self {
        Self { most, rows: 0, bad: 0, first: Vec::new(), without_job: Vec::new() }
    }

    /// The result of a row; `None` if the row is malformed and left out.
    ///
    /// # Errors
    /// The error of the row if no row may be left out.
    pub(super) fn row<T>(&mut self, row: Result<T, WorkloadError>) -> Result<Option<T>, WorkloadError> {
        self.rows += 1;
        let why = match row {
            Ok(row) => return Ok(Some(row)),
            Err(WorkloadError::Trace(why)) => why,
            Err(error) => return Err(error),
        };
        // An error that names an option concerns the whole table, and states its own remedy.
        if self.most == Share::NONE && (why.contains("--zone") || why.contains("--columns")) {
            return Err(WorkloadError::Trace(why));
        }
        if self.most == Share::NONE {
            let remedy =
                "`--skip-bad 1%`, in an experiment `workload.trace.skip_bad = 0.01`, leaves out such rows";
            return Err(WorkloadError::Trace(format!("{why}; {remedy}")));
        }
        self.bad += 1;
        if self.quotes() {
            self.first.push(why);
        }
        Ok(None)
    }

    /// The result of a job of several rows, which were counted before; like [`row`](Self::row).
    pub(super) fn job<T>(&mut self, job: Result<T, WorkloadError>) -> Result<Option<T>, WorkloadError> {
        let rows = self.rows;
        let job = self.row(job);
        self.rows = rows;
        job
    }

    /// Whether the next error is quoted.
    pub(super) const fn quotes(&self) -> bool {
        self.first.len() < Self::TOLD
    }

    /// Notes that the last row makes no job.
    pub(super) fn keep_number(&mut self) {
        self.without_job.push(self.rows - 1);
    }

    /// A remark about the rows that were left out.
    ///
    /// # Errors
    /// When they are more than the allowed share.
    pub(super) fn finish(&self, file: &Path) -> Result<Option<String>, WorkloadError> {
        let Self { most, rows, bad, first, .. } = self;
        let (rows, bad) = (*rows, *bad);
        let others = if bad > first.len() as u64 { "; …" } else { "" };
        let told = format!("malformed rows, of {rows}: {bad} ({}{others})", first.join("; "));
        if bad as f64 > most.part() * rows as f64 {
            let why = format!("{told}; these are more than --skip-bad {} %", 100.0 * most.part());
            return Err(WorkloadError::Trace(format!("{}: {why}; is this the right file?", file.display())));
        }
        Ok((bad > 0).then(|| format!("left out as --skip-bad allows, {told}")))
    }
}

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
        for cell in cells(line.text, ',') {
            if let Some(text) = texts.get_mut(count) {
                *text = cell;
            }
            count += 1;
        }
        if count == COLUMNS {
            return Ok(Self { at: line.at, texts });
        }
        let why = format!(
            "has {count} of the {COLUMNS} columns of this table; is the file cut off? If it is another table, give it another name"
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

/// The cells of a row, trimmed. A cell in quotes may hold separators; two quotes in such a cell stand for one quote.
pub(crate) fn cells(text: &str, separator: char) -> impl Iterator<Item = Cow<'_, str>> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?.trim_start_matches(' ');
        if let Some(quoted) = text.strip_prefix('"')
            && let Some(end) = closing(quoted)
        {
            rest = quoted[end + 1..].split_once(separator).map(|(_, rest)| rest);
            return Some(quoted[..end].replace("\"\"", "\"").trim().to_owned().into());
        }
        let (cell, tail) = match text.split_once(separator) {
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

/// The separators of cells, with their names.
const SEPARATORS: [(char, &str); 4] = [(',', "commas"), (';', "`;`"), ('|', "`|`"), ('\t', "tabs")];

/// The separator that splits a header into the most cells, with its name.
pub(crate) fn separator(header: &str) -> (char, &'static str) {
    let [first, others @ ..] = SEPARATORS;
    let cells = |separator| cells(header, separator).count();
    others.into_iter().fold(first, |best, other| if cells(other.0) > cells(best.0) { other } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_split_at_commas_outside_of_quotes() {
        let split = |text| cells(text, ',').map(|cell| cell.into_owned()).collect::<Vec<_>>();
        assert_eq!(split("a, b ,,c"), ["a", "b", "", "c"]);
        assert_eq!(split(r#""a, b","say ""x""",c"#), ["a, b", "say \"x\"", "c"]);
        assert_eq!(split(r#""never closed,b"#), ["\"never closed", "b"]);
        assert_eq!(split(""), [""]);
        assert_eq!(cells("a;\"b;c\"", ';').collect::<Vec<_>>(), ["a", "b;c"]);
    }

    #[test]
    fn the_separator_that_gives_the_most_cells_is_chosen() {
        for (header, found) in
            [("a", ','), ("a,b;c,d", ','), ("a;b,c;d", ';'), ("a|b|c|", '|'), ("a\tb", '\t')]
        {
            assert_eq!(separator(header).0, found, "{header}");
        }
    }
}
