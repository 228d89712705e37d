//! The parser of a trace: format, remarks.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use super::super::error::WorkloadError;
use super::super::trace::{Format, MOST_JOBS, Trace};
use super::lines::Lines;
use super::{csv, swf, tr};

impl Trace {
    /// Reads the first `jobs` jobs of `input`, all if `None`. The format follows from the `name` of the file: `.tr`,
    /// `.swf`, `.csv`, before `.xz`, `.zst` or `.gz`.
    ///
    /// # Errors
    /// When the input cannot be read, is damaged (an error of the kind `InvalidData`), malformed or empty.
    pub fn parse(
        name: &Path,
        input: impl BufRead + 'static,
        jobs: Option<u32>,
    ) -> Result<Self, WorkloadError> {
        Self::parse_bounded(name, input, jobs, MOST_JOBS)
    }

    /// Like [`parse`](Self::parse), with a limit on the jobs that are held.
    pub(super) fn parse_bounded(
        name: &Path,
        input: impl BufRead + 'static,
        jobs: Option<u32>,
        most: usize,
    ) -> Result<Self, WorkloadError> {
        let mut lines = Lines::new(name, input);
        let format = match Format::of(name) {
            Some(format) => format,
            None => lines.guess()?,
        };
        let mut trace = Self::new(name, format);
        let limit = jobs.map_or(usize::MAX, |jobs| jobs as usize).min(most + 1);
        let skipped = match format {
            Format::Tr => tr::read(&mut lines, &mut trace, limit)?,
            Format::Swf => swf::read(&mut lines, &mut trace, limit)?,
            Format::Csv => csv::read(&mut lines, &mut trace, limit)?,
        };
        if trace.jobs().len() > most {
            return Err(WorkloadError::Trace(format!(
                "{}: holds more than {most} jobs; split it, or take its first with `workload.trace.jobs`",
                name.display()
            )));
        }
        let why = skipped.text();
        if trace.jobs().is_empty() {
            let why = if why.is_empty() { why } else { format!(" ({why})") };
            return Err(WorkloadError::Trace(format!(
                "{}: holds no usable data{why}; check that it is the right file",
                name.display()
            )));
        }
        if !why.is_empty() {
            trace.note(why);
        }
        Ok(trace.finish())
    }
}

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
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

fn suffix(name: &Path) -> &str {
    name.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default()
}
