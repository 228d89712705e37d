//! The event tables of Google's cluster data of 2011 (Reiss, Wilkes, Hellerstein: *Google cluster-usage traces: format
//! + schema*): `job_events` and, if there is one, `task_events`.
//!
//! A job or task runs from its last SCHEDULE to the event that ends it. Tasks that never ran are left out.
//! Times are microseconds; 0 stands for a time before the trace and 2⁶³ − 1 for a time after it.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use volary_actors::base::{Feature, Span, Time};

use super::super::trace::{Format, MOST_JOBS, Trace};
use super::lines::{Cells, Lines, Skipped, short};
use super::table::{CORES_OF_GOOGLE_MACHINE, GIB_OF_GOOGLE_MACHINE, TOO_LONG, Words};
use crate::workload::details::{Details, Outcome};
use crate::workload::trace::WorkloadError;

/// A part of a table: its name and its content.
pub type Part = Result<(PathBuf, Box<dyn BufRead>), WorkloadError>;

/// Columns of a row of `job_events`.
const JOB_COLUMNS: usize = 8;
/// Columns of a row of `task_events`.
const TASK_COLUMNS: usize = 13;
/// Maximum number of tasks of a job; real jobs have up to 52,000.
const MOST_TASKS: u32 = 1 << 20;

/// Limit on the tasks of all jobs, which then take 800 MB; the whole trace has 25 million.
const MOST_SLOTS: usize = 1 << 25;
/// Marks an event after the end of the trace.
const AFTER: u64 = i64::MAX as u64;

/// An event of a job or a task.
enum GoogleEvent {
    Submit,
    Schedule,
    End(Outcome),
    /// A change of the constraints of a job or task.
    Update,
}

/// A job while its events are read. Times are in µs.
#[derive(Default)]
struct JobState {
    submit: Option<u64>,
    schedule: Option<u64>,
    end: Option<(u64, Outcome)>,
    details: Details,
    /// CPU that each task requests, as a share of the largest machine.
    cpu: f32,
    /// Memory that each task requests, as a share of the largest machine.
    memory: f32,
    tasks: Vec<TaskState>,
}

/// A task while its events are read.
#[derive(Clone, Copy, Default)]
struct TaskState {
    /// Start of the current run, µs.
    start: Option<u64>,
    /// Duration of the last run, s.
    duration: Option<f32>,
}

/// The jobs by their ids.
#[derive(Default)]
struct GoogleJobs {
    index: BTreeMap<u64, u32>,
    states: Vec<JobState>,
    words: Words,
    /// Number of tasks of all jobs.
    slots: usize,
}

impl Trace {
    /// Reads the parts of the tables of Google's trace of 2011, in their order, for the first `limit` jobs, all if
    /// `None`. Without `tasks` each job counts as one task.
    ///
    /// # Errors
    /// When a part cannot be read, is damaged or malformed, or no job has ended.
    pub fn parse_google(
        name: &Path,
        jobs: impl Iterator<Item = Part>,
        tasks: Option<impl Iterator<Item = Part>>,
        limit: Option<u32>,
    ) -> Result<Self, WorkloadError> {
        let mut known = GoogleJobs::default();
        for part in jobs {
            let (file, input) = part?;
            known.read_jobs(&mut Lines::new(&file, input))?;
        }
        let mut skipped = Skipped::default();
        let with_tasks = tasks.is_some();
        for part in tasks.into_iter().flatten() {
            let (file, input) = part?;
            known.read_tasks(&mut Lines::new(&file, input), &mut skipped)?;
        }
        let mut trace = Self::new(name, Format::GoogleEvents);
        trace.mark_google();
        if !with_tasks {
            trace.without_tasks();
            trace.note("there is no task_events: each job counts as one task".into());
        }
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        known.words.keep(&mut trace);
        known.states.sort_by_key(|job| job.submit);
        for job in known.states {
            if trace.jobs().len() == limit {
                break;
            }
            job.push(&mut trace, &mut skipped)?;
        }
        trace.checked(&skipped, MOST_JOBS)
    }
}

impl GoogleJobs {
    fn read_jobs(&mut self, lines: &mut Lines<'_>) -> Result<(), WorkloadError> {
        while let Some(line) = lines.next_record()? {
            let cells = Cells::<JOB_COLUMNS>::of(line)?;
            let (time, event) = (cells.time()?, cells.event(3)?);
            let next = self.states.len() as u32;
            let index = *self.index.entry(cells.id()?).or_insert(next);
            if index == next {
                if self.states.len() >= MOST_JOBS {
                    return Err(line
                        .at
                        .wrong(format!("brings the table above the limit of {MOST_JOBS} jobs")));
                }
                self.states.push(JobState::default());
            }
            let job = &mut self.states[index as usize];
            job.happened(time, &event);
            let columns =
                [(4, Feature::User), (5, Feature::Class), (6, Feature::Name), (7, Feature::LogicalName)];
            for (column, feature) in columns {
                if !cells.texts[column].is_empty() {
                    let number = self.words.number(feature, &cells.texts[column]);
                    job.details.features[feature.index()] =
                        number.ok_or_else(|| line.at.field(column + 1, feature.name(), TOO_LONG))?;
                }
            }
        }
        Ok(())
    }

    fn read_tasks(&mut self, lines: &mut Lines<'_>, skipped: &mut Skipped) -> Result<(), WorkloadError> {
        while let Some(line) = lines.next_record()? {
            let cells = Cells::<TASK_COLUMNS>::of(line)?;
            let (time, event, id) = (cells.time()?, cells.event(5)?, cells.id()?);
            let task = cells.whole(3, "task index")?;
            let task = u32::try_from(task).ok().filter(|&task| task < MOST_TASKS).ok_or_else(|| {
                line.at.field(
                    4,
                    "task index",
                    format!("{task} is too large; jobs have fewer than {MOST_TASKS} tasks"),
                )
            })?;
            let Some(&index) = self.index.get(&id) else {
                skipped.count("of tasks of jobs that job_events does not have");
                continue;
            };
            let job = &mut self.states[index as usize];
            let priority = Feature::Priority.index();
            if job.details.features[priority] == 0 {
                let number = self.words.number(Feature::Priority, &cells.texts[8]);
                job.details.features[priority] =
                    number.ok_or_else(|| line.at.field(9, "priority", TOO_LONG))?;
                job.cpu = cells.share(9, "CPU request")?;
                job.memory = cells.share(10, "memory request")?;
            }
            if job.tasks.len() <= task as usize {
                self.slots += task as usize + 1 - job.tasks.len();
                if self.slots > MOST_SLOTS {
                    let why = format!("brings the tasks of all jobs above {MOST_SLOTS}; read fewer parts");
                    return Err(line.at.field(4, "task index", why));
                }
                job.tasks.resize(task as usize + 1, TaskState::default());
            }
            job.tasks[task as usize].happened(time, &event);
        }
        Ok(())
    }
}

impl JobState {
    fn happened(&mut self, time: u64, event: &GoogleEvent) {
        match event {
            _ if time == AFTER => {}
            GoogleEvent::Submit => {
                self.submit.get_or_insert(time);
                // Submitted again after it was evicted.
                self.end = None;
            }
            GoogleEvent::Schedule => {
                self.schedule = Some(time);
                self.end = None;
            }
            GoogleEvent::End(outcome) => self.end = Some((time, *outcome)),
            GoogleEvent::Update => {}
        }
    }

    fn push(mut self, trace: &mut Trace, skipped: &mut Skipped) -> Result<(), WorkloadError> {
        let (Some(submit), Some((end, outcome))) = (self.submit, self.end) else {
            skipped.count(if self.submit.is_none() {
                "without a submission"
            } else {
                "of jobs that had not ended"
            });
            return Ok(());
        };
        let arrival = Time(micros(submit).0);
        let start = self.schedule.unwrap_or(end).min(end);
        let durations: Vec<f32> = self.tasks.iter().filter_map(|task| task.duration).collect();
        if durations.is_empty() {
            trace.push_rigid(arrival, micros(end - start), 1);
        } else {
            let sum: f64 = durations.iter().map(|&duration| f64::from(duration)).sum();
            let mean = Span::from_secs_f64(sum / durations.len() as f64);
            let pushed = trace.push(arrival, mean, &durations);
            pushed.map_err(|why| WorkloadError::Trace(format!("{}: {why}", trace.file().display())))?;
        }
        let tasks = durations.len().max(1) as f32;
        let stated = |share: f32, machine: f32| (share > 0.0).then_some(share * machine * tasks);
        self.details.cores = stated(self.cpu, CORES_OF_GOOGLE_MACHINE);
        self.details.memory = stated(self.memory, GIB_OF_GOOGLE_MACHINE);
        self.details.outcome = Some(outcome);
        self.details.wait = Some(micros(start.saturating_sub(submit)));
        trace.detail(trace.jobs().len() - 1, &self.details);
        Ok(())
    }
}

impl TaskState {
    fn happened(&mut self, time: u64, event: &GoogleEvent) {
        match event {
            _ if time == AFTER => {}
            GoogleEvent::Schedule => self.start = Some(time),
            GoogleEvent::End(_) => {
                if let Some(start) = self.start.take() {
                    self.duration = Some((time.saturating_sub(start) as f64 / 1e6) as f32);
                }
            }
            GoogleEvent::Submit | GoogleEvent::Update => {}
        }
    }
}

fn micros(time: u64) -> Span {
    Span(time.saturating_mul(1_000))
}

impl<const COLUMNS: usize> Cells<'_, COLUMNS> {
    fn time(&self) -> Result<u64, WorkloadError> {
        self.whole(0, "time")
    }

    fn id(&self) -> Result<u64, WorkloadError> {
        self.whole(2, "job ID")
    }

    fn event(&self, column: usize) -> Result<GoogleEvent, WorkloadError> {
        Ok(match &*self.texts[column] {
            "0" => GoogleEvent::Submit,
            "1" => GoogleEvent::Schedule,
            "2" => GoogleEvent::End(Outcome::Evicted),
            "3" => GoogleEvent::End(Outcome::Failed),
            "4" => GoogleEvent::End(Outcome::Finished),
            "5" => GoogleEvent::End(Outcome::Killed),
            "6" => GoogleEvent::End(Outcome::Lost),
            "7" | "8" => GoogleEvent::Update,
            other => {
                let why = format!("`{}` is not an event from 0 to 8", short(other));
                return Err(self.at.field(column + 1, "event type", why));
            }
        })
    }

    /// A share of the largest machine, zero if the cell is blank.
    fn share(&self, column: usize, name: &str) -> Result<f32, WorkloadError> {
        match &*self.texts[column] {
            "" => Ok(0.0),
            text => text.parse::<f32>().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| {
                self.at.field(column + 1, name, format!("`{}` is not a share from 0 to 1", short(text)))
            }),
        }
    }
}
