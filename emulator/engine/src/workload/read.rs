//! Parsers of traces, which read line by line and report errors with file, line and field.

mod alibaba;
mod csv;
mod google;
mod lines;
mod swf;
mod table;
mod time;
mod tr;

use std::io::BufRead;
use std::path::{Path, PathBuf};

pub use csv::{GOOGLE, TASKS_UNKNOWN, ZONE};
pub use google::Part;
use lines::{Lines, Skipped};
pub(crate) use lines::{cells, other_separator};
pub use table::ColumnNames;

use super::trace::{Format, MOST_JOBS, Trace};
use crate::workload::trace::WorkloadError;

/// Options for reading a trace.
#[derive(Default)]
pub struct Reading<'a> {
    /// Number of first jobs to read; all if `None`.
    pub jobs: Option<u32>,
    /// Meanings of the columns of a `.csv` file; if `None`, its header must use known names.
    pub columns: Option<&'a ColumnNames>,
    /// Files with the features of the jobs, one row per job, with the names of the files.
    pub features: Vec<(PathBuf, Box<dyn BufRead>)>,
}

impl Trace {
    /// Reads the first `jobs` jobs of `input`, all if `None`. The format follows from the `name` of the file: `.tr`,
    /// `.swf`, `.csv`, before `.xz`, `.zst` or `.gz`; `batch_task.csv` is Alibaba's table.
    ///
    /// # Errors
    /// When the input cannot be read, is damaged (an error of the kind `InvalidData`), malformed or empty.
    pub fn parse(
        name: &Path,
        input: impl BufRead + 'static,
        jobs: Option<u32>,
    ) -> Result<Self, WorkloadError> {
        Self::parse_with(name, input, Reading { jobs, ..Reading::default() })
    }

    /// Reads a trace like [`parse`](Self::parse), with columns and features.
    ///
    /// # Errors
    /// The errors of [`parse`](Self::parse); also when the format has no named columns, or features do not fit.
    pub fn parse_with(
        name: &Path,
        input: impl BufRead + 'static,
        reading: Reading<'_>,
    ) -> Result<Self, WorkloadError> {
        Self::parse_bounded(name, input, reading, MOST_JOBS)
    }

    /// Reads a trace like [`parse_with`](Self::parse_with), with a limit on the jobs that are held.
    fn parse_bounded(
        name: &Path,
        input: impl BufRead + 'static,
        reading: Reading<'_>,
        most: usize,
    ) -> Result<Self, WorkloadError> {
        let Reading { jobs, columns, features } = reading;
        let mut lines = Lines::new(name, input);
        let format = match Format::of(name) {
            Some(format) => format,
            None => lines.guess()?,
        };
        if columns.is_some() && format != Format::Csv {
            let why = "--columns is for .csv files; the columns of this format are fixed";
            return Err(WorkloadError::Trace(format!("{}: {why}", name.display())));
        }
        let mut trace = Self::new(name, format);
        let limit = jobs.map_or(usize::MAX, |jobs| jobs as usize).min(most + 1);
        let skipped = match format {
            Format::Tr => tr::read(&mut lines, &mut trace, limit)?,
            Format::Swf => swf::read(&mut lines, &mut trace, limit)?,
            Format::AlibabaTables => alibaba::read(&mut lines, None, &mut trace, limit)?,
            Format::Csv | Format::GoogleEvents => csv::read(&mut lines, &mut trace, limit, columns)?,
        };
        for (name, input) in features {
            csv::read_features(&mut Lines::new(&name, input), &mut trace, jobs.is_none())?;
        }
        trace.checked(&skipped, most)
    }

    /// Refuses a trace of no jobs or of too many, and sorts the jobs.
    fn checked(mut self, skipped: &Skipped, most: usize) -> Result<Self, WorkloadError> {
        if self.jobs().len() > most {
            return Err(WorkloadError::Trace(format!(
                "{}: holds more than {most} jobs; split it, or take its first with `workload.trace.jobs`",
                self.file().display()
            )));
        }
        let why = skipped.text();
        if self.jobs().is_empty() {
            let why = if why.is_empty() { why } else { format!(" ({why})") };
            return Err(WorkloadError::Trace(format!(
                "{}: holds no usable data{why}; check that it is the right file",
                self.file().display()
            )));
        }
        if !why.is_empty() {
            self.note(why);
        }
        Ok(self.finish())
    }
}

/// The name of Alibaba's table of tasks, which has no header.
const ALIBABA_TASKS: &str = "batch_task.csv";

impl Format {
    /// The format that a file name indicates, with or without a compression suffix.
    pub fn of(file: &Path) -> Option<Self> {
        let mut name = PathBuf::from(file.file_name()?);
        if matches!(suffix(&name), "xz" | "zst" | "gz") {
            name.set_extension("");
        }
        match suffix(&name) {
            "tr" => Some(Self::Tr),
            "swf" => Some(Self::Swf),
            "csv" if name.as_os_str() == ALIBABA_TASKS => Some(Self::AlibabaTables),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

fn suffix(name: &Path) -> &str {
    name.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
