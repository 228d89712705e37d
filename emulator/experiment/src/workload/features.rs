//! The file with the features of the jobs of a `.tr` file: `X.features.csv` beside `X.tr`.

use std::io::{self, Write};

use volary_actors::base::{Feature, JobId};
use volary_engine::workload::{GOOGLE, TASKS_UNKNOWN, Trace, ZONE};

use super::text::Seconds;

/// The details that a source states about its jobs beside their shape.
pub(super) struct Stated {
    features: Vec<Feature>,
    outcomes: bool,
    cores: bool,
    memory: bool,
    waits: bool,
    /// Comments about the whole trace.
    marks: Vec<String>,
}

/// Properties of the source that later readers of the jobs need.
fn marks(trace: &Trace) -> Vec<String> {
    let unknown = (!trace.counts_tasks()).then(|| TASKS_UNKNOWN.to_owned());
    let google = trace.is_google().then(|| GOOGLE.to_owned());
    let zone = trace.zone().map(|zone| format!("{ZONE}{zone}"));
    [unknown, google, zone].into_iter().flatten().collect()
}

impl Stated {
    pub(super) fn of(trace: &Trace) -> Self {
        let jobs = trace.jobs().len();
        Self {
            features: Feature::ALL.into_iter().filter(|&feature| trace.states(feature)).collect(),
            outcomes: trace.has_outcomes(),
            cores: (0..jobs as u32).any(|job| trace.cores(JobId(job)).is_some()),
            memory: (0..jobs as u32).any(|job| trace.memory(JobId(job)).is_some()),
            waits: trace.unknown_waits() < jobs,
            marks: marks(trace),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        let others = [self.outcomes, self.cores, self.memory, self.waits];
        self.features.is_empty() && self.marks.is_empty() && matches!(others, [false, false, false, false])
    }

    /// Writes comments about the trace, a header and one row per job. Unknown values are blank; words of the source
    /// become numbers, equal for equal words.
    ///
    /// # Errors
    /// Errors of `out`.
    pub(super) fn write(&self, trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
        for mark in &self.marks {
            writeln!(out, "# {mark}")?;
        }
        if self.header().is_empty() {
            return Ok(());
        }
        writeln!(out, "{}", self.header().join(","))?;
        for job in (0..trace.jobs().len() as u32).map(JobId) {
            writeln!(out, "{}", self.row(trace, job).join(","))?;
        }
        Ok(())
    }

    fn header(&self) -> Vec<&'static str> {
        let others = [
            (self.outcomes, "outcome"),
            (self.cores, "cores"),
            (self.memory, "memory"),
            (self.waits, "wait"),
        ];
        let others = others.into_iter().filter(|(stated, _)| *stated).map(|(_, name)| name);
        self.features.iter().map(|feature| feature.name()).chain(others).collect()
    }

    fn row(&self, trace: &Trace, job: JobId) -> Vec<String> {
        let value = |&feature: &Feature| match trace.feature(job, feature) {
            0 => String::new(),
            // Hours are written from 0 to 23.
            hour if feature == Feature::Hour => (hour - 1).to_string(),
            number => number.to_string(),
        };
        let blank = |text: Option<String>| text.unwrap_or_default();
        let mut cells: Vec<String> = self.features.iter().map(value).collect();
        if self.outcomes {
            cells.push(blank(trace.outcome(job).map(|outcome| outcome.to_string())));
        }
        if self.cores {
            cells.push(blank(trace.cores(job).map(|cores| cores.to_string())));
        }
        if self.memory {
            cells.push(blank(trace.memory(job).map(|memory| memory.to_string())));
        }
        if self.waits {
            cells.push(blank(trace.wait(job).map(|wait| Seconds(wait.0).to_string())));
        }
        cells
    }
}
