//! A trace in memory: jobs in order of arrival, durations in one flat vector, and columns beside the shape of the
//! jobs: features, waits, requested times, outcomes, cores and memory. Errors of workloads, each with its remedy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use volary_actors::base::{Feature, JobId, Span, TaskId, Time};

use super::details::{Columns, Details, Outcome, get, put};
use super::graph::{StageGraph, Staging};

/// File format of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// One job per line: arrival, number of tasks, mean duration, then each duration, in seconds. The format of the
    /// Sparrow, Hawk, Eagle, Kairos, Pigeon and Murmuration simulators.
    Tr,
    /// Standard Workload Format of the Parallel Workloads Archive: rigid parallel jobs, 18 columns.
    Swf,
    /// One job per line, below a header that names the columns.
    Csv,
    /// The event tables of Google's cluster data of 2011.
    GoogleEvents,
    /// The batch tables of Alibaba's cluster trace of 2018.
    AlibabaTables,
}

/// A job of a trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TraceJob {
    /// Submission time by the trace's own clock.
    pub arrival: Time,
    /// Mean duration as the trace states it: the estimate of estimate-based policies.
    pub mean: Span,
    /// Number of tasks, at least one.
    pub tasks: u32,
    /// Index of the job's first duration, or [`RIGID`] if every task takes the mean.
    first: u32,
}

/// Maximum number of tasks of a job. Real jobs have up to 52,000; a larger number is a mistake in a distribution or a
/// file that would otherwise appear as a run that never ends.
pub(super) const MOST_TASKS: u32 = 1 << 24;

/// Maximum number of jobs of a trace, which then take 700 MB. A compressed file of a few MB can hold more.
pub(super) const MOST_JOBS: usize = 1 << 24;

/// Maximum number of durations of a trace, which then take 2 GiB.
pub(super) const MOST_DURATIONS: usize = 1 << 29;

const HOUR_NS: u64 = 3_600_000_000_000;

/// Marks a job without durations of its own.
const RIGID: u32 = u32::MAX;

/// A parsed trace. Arrivals and means are exact to the nanosecond up to 13 days, dates since 1970 to 0.2 µs;
/// durations are 32-bit floats of 4 bytes a task, exact to 6 parts in 10⁸ (0.06 µs at 1 s, 4 ms at one day).
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    file: PathBuf,
    format: Format,
    jobs: Vec<TraceJob>,
    durations: Vec<f32>,
    columns: Columns,
    /// Distinct graphs of jobs with dependencies between their tasks, numbered in the order in which they appear.
    graphs: Vec<StageGraph>,
    numbers: BTreeMap<StageGraph, u32>,
    /// For each job with dependencies the number of its graph, then the number of tasks of each of its stages.
    stages: Vec<u32>,
    /// Whether the numbers of tasks are unknown, and each job has one task.
    jobs_only: bool,
    /// Whether this is Google's trace of 2011.
    google: bool,
    /// Zone of the trace's dates, seconds east of Greenwich.
    zone: Option<i64>,
    notes: Vec<String>,
    /// Words of the values of features, from value one on.
    words: BTreeMap<usize, Vec<Box<str>>>,
}

impl Trace {
    /// Creates an empty trace for a reader of `file` to fill.
    pub fn new(file: &Path, format: Format) -> Self {
        Self {
            file: file.to_owned(),
            format,
            jobs: Vec::new(),
            durations: Vec::new(),
            columns: Columns::default(),
            graphs: Vec::new(),
            numbers: BTreeMap::new(),
            stages: Vec::new(),
            jobs_only: false,
            google: false,
            zone: None,
            notes: Vec::new(),
            words: BTreeMap::new(),
        }
    }

    /// Appends a job whose tasks have durations of their own, in seconds.
    ///
    /// # Errors
    /// When the trace would have more tasks than can be addressed.
    pub fn push(&mut self, arrival: Time, mean: Span, durations: &[f32]) -> Result<(), String> {
        let first = u32::try_from(self.durations.len())
            .ok()
            .filter(|_| self.durations.len() + durations.len() <= MOST_DURATIONS)
            .ok_or_else(|| {
                format!("more than {MOST_DURATIONS} tasks are too many for one trace; split the file")
            })?;
        self.durations.extend_from_slice(durations);
        self.jobs.push(TraceJob { arrival, mean, tasks: durations.len() as u32, first });
        Ok(())
    }

    /// Appends a job of `tasks` tasks that all take `duration`.
    pub fn push_rigid(&mut self, arrival: Time, duration: Span, tasks: u32) {
        self.jobs.push(TraceJob { arrival, mean: duration, tasks, first: RIGID });
    }

    /// Adds details of the job that was pushed as number `row`, before the jobs are sorted.
    pub fn detail(&mut self, row: usize, details: &Details) {
        self.columns.set(row, details);
    }

    /// Divides the tasks of the job that was pushed as number `row`, in their order, into stages with these numbers of
    /// tasks, which add up to all tasks of the job.
    pub(super) fn depend(&mut self, row: usize, graph: StageGraph, tasks: &[u32]) {
        let number = self.numbers.get(&graph).copied().unwrap_or_else(|| {
            let next = self.graphs.len() as u32;
            self.graphs.push(graph.clone());
            self.numbers.insert(graph, next);
            next
        });
        put(&mut self.columns.stages, row, Some(self.stages.len() as u32 + 1));
        self.stages.push(number);
        self.stages.extend_from_slice(tasks);
    }

    /// Whether tasks of some job wait for others.
    pub const fn has_dependencies(&self) -> bool {
        !self.columns.stages.is_empty()
    }

    /// The graph of a job with dependencies, and the numbers of tasks of its stages.
    fn stages(&self, job: JobId) -> Option<(u32, &[u32])> {
        let at = get(&self.columns.stages, job.index()).checked_sub(1)? as usize;
        let (number, rest) = self.stages[at..].split_first()?;
        let mut left = self.jobs[job.index()].tasks;
        let count = rest.iter().take_while(|&&tasks| {
            let is_own = left > 0;
            left = left.saturating_sub(tasks);
            is_own
        });
        Some((*number, &rest[..count.count()]))
    }

    /// The stages of a job with dependencies as text, in the form of tables of features: for each stage its number of
    /// tasks and the numbers of the earlier stages that it waits for, from 1, such as `20 5_1 1_1_2`.
    pub fn stages_text(&self, job: JobId) -> Option<String> {
        let (number, tasks) = self.stages(job)?;
        Some(self.graphs[number as usize].text(tasks))
    }

    /// Depth and critical path of a job with dependencies: the largest number of stages on a path of dependent
    /// stages, and the largest sum of the longest tasks of the stages on such a path.
    pub fn longest_paths(&self, job: JobId) -> Option<(u32, Span)> {
        let (number, tasks) = self.stages(job)?;
        let graph = &self.graphs[number as usize];
        let mut first = 0;
        let longest = tasks.iter().map(|&tasks| {
            let own = self.durations(job).map(|all| &all[first as usize..][..tasks as usize]);
            first += tasks;
            let all = own.map(|own| own.iter().copied().fold(0.0, f32::max));
            all.map_or_else(|| self.jobs[job.index()].mean, |longest| Span::from_secs_f64(f64::from(longest)))
        });
        let longest: Vec<Span> = longest.collect();
        Some((graph.depth(), graph.critical_path(|stage| longest[stage as usize])))
    }

    /// The stages of all jobs; `None` if no job has dependencies.
    pub(super) fn staging(&self) -> Option<Staging> {
        if !self.has_dependencies() {
            return None;
        }
        let (mut graphs, single) = (self.graphs.clone(), self.graphs.len() as u32);
        graphs.push(StageGraph::new(&[Vec::new()]));
        let mut staging = Staging::new(graphs);
        for (job, row) in self.jobs.iter().enumerate() {
            let (graph, tasks) =
                self.stages(JobId(job as u32)).unwrap_or_else(|| (single, std::slice::from_ref(&row.tasks)));
            staging.add(graph, tasks.iter().copied());
        }
        Some(staging)
    }

    /// Marks the source as having no numbers of tasks: each job then has one task.
    pub fn without_tasks(&mut self) {
        self.jobs_only = true;
    }

    /// Marks the trace as Google's trace of 2011, whole or in part, as events or as a table of jobs.
    pub fn mark_google(&mut self) {
        self.google = true;
    }

    /// Marks the times of the trace as dates in a zone, given in seconds east of Greenwich.
    pub fn mark_dated(&mut self, zone: i64) {
        self.zone = Some(zone);
    }

    /// Adds a remark about the file for its user.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Sorts the jobs by arrival; jobs of equal arrival keep the order of the file.
    pub fn finish(mut self) -> Self {
        let late = self.jobs.windows(2).filter(|pair| pair[1].arrival < pair[0].arrival).count();
        if late > 0 {
            let mut order: Vec<u32> = (0..self.jobs.len() as u32).collect();
            order.sort_by_key(|&row| self.jobs[row as usize].arrival);
            self.jobs = order.iter().map(|&row| self.jobs[row as usize]).collect();
            self.columns.reorder(&order);
            self.note(format!("out of order: {late} lines; jobs were sorted by arrival"));
        }
        self
    }

    /// A trace of some of the jobs, given their numbers in order, with the durations of all jobs.
    pub(super) fn of(&self, jobs: &[u32]) -> Self {
        let mut some = self.clone();
        some.jobs = jobs.iter().map(|&job| self.jobs[job as usize]).collect();
        some.columns.reorder(jobs);
        some
    }

    /// The file that the trace was read from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The format of the file.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The jobs in order of arrival.
    pub fn jobs(&self) -> &[TraceJob] {
        &self.jobs
    }

    /// Remarks about the file for its user: skipped rows, corrected order.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Durations of a job's tasks in seconds; `None` if every task takes the mean.
    pub fn durations(&self, job: JobId) -> Option<&[f32]> {
        let job = &self.jobs[job.index()];
        (job.first != RIGID).then(|| &self.durations[job.first as usize..][..job.tasks as usize])
    }

    /// Duration of one task.
    pub fn duration(&self, task: TaskId) -> Span {
        let job = &self.jobs[task.job.index()];
        if job.first == RIGID {
            return job.mean;
        }
        assert!(task.index < job.tasks, "a job has no task beyond its last");
        Span::from_secs_f64(f64::from(self.durations[job.first as usize + task.index as usize]))
    }

    /// Duration of a job's longest task: its run time without waiting.
    pub fn run(&self, job: JobId) -> Span {
        match self.durations(job) {
            None => self.jobs[job.index()].mean,
            Some(durations) => Span::from_secs_f64(f64::from(durations.iter().copied().fold(0.0, f32::max))),
        }
    }

    /// The value of a job's feature, zero if it is unknown. Sizes are numbers of tasks, hours are 1 to 24, cores, GPUs
    /// and memory are amounts; other values are numbered from one on in the order in which they appear.
    pub fn feature(&self, job: JobId, feature: Feature) -> u32 {
        if self.columns.has(feature) {
            return self.columns.feature(job.index(), feature);
        }
        if let Some((amounts, unit)) = self.columns.amounts(feature) {
            return (get(amounts, job.index()) / unit).round() as u32;
        }
        let job = &self.jobs[job.index()];
        if feature == Feature::Hour {
            (job.arrival.0 / HOUR_NS % 24) as u32 + 1
        } else if feature == Feature::Size && !self.jobs_only {
            job.tasks
        } else {
            0
        }
    }

    /// Keeps the words of the values of a feature.
    pub(super) fn keep_words(&mut self, feature: Feature, words: Vec<Box<str>>) {
        self.words.insert(feature.index(), words);
    }

    /// The word of a value of a feature, if the source has words and they were kept.
    pub(super) fn word(&self, feature: Feature, value: u32) -> Option<&str> {
        Some(self.words.get(&feature.index())?.get((value as usize).checked_sub(1)?)?)
    }

    /// The features that some job has.
    pub fn features(&self) -> Vec<Feature> {
        let known = |&feature: &Feature| {
            let computed = feature == Feature::Hour || feature == Feature::Size && !self.jobs_only;
            let amounts = self.columns.amounts(feature).is_some_and(|(amounts, _)| !amounts.is_empty());
            computed || amounts || self.columns.has(feature)
        };
        Feature::ALL.into_iter().filter(known).collect()
    }

    /// Whether the source states a feature; other features follow from the job's arrival or tasks.
    pub const fn states(&self, feature: Feature) -> bool {
        self.columns.has(feature)
    }

    /// Whether the form of the file shows that the trace is Google's trace of 2011.
    pub const fn is_google(&self) -> bool {
        self.google
    }

    /// Number of the first jobs that were submitted before the trace began, at unknown times: Google's trace gives them
    /// the time zero.
    pub fn early(&self) -> usize {
        let zero = self.jobs.partition_point(|job| job.arrival == Time::ZERO);
        if self.google { zero } else { 0 }
    }

    /// The zone of the trace's dates, seconds east of Greenwich; `None` if the time of day at the zero of its clock is
    /// unknown.
    pub const fn zone(&self) -> Option<i64> {
        self.zone
    }

    /// Time from a job's submission to its start, if the trace states it.
    pub fn wait(&self, job: JobId) -> Option<Span> {
        self.columns.wait(job.index())
    }

    /// Number of jobs with an unknown wait.
    pub fn unknown_waits(&self) -> usize {
        self.jobs.len() - self.columns.known_waits()
    }

    /// The run time that a job's user requested, if the trace states it.
    pub fn requested(&self, job: JobId) -> Option<Span> {
        self.columns.requested(job.index())
    }

    /// Outcome of a job, if the trace states it.
    pub fn outcome(&self, job: JobId) -> Option<Outcome> {
        self.columns.outcome(job.index())
    }

    /// Cores of all tasks of a job together, if the trace states them.
    pub fn cores(&self, job: JobId) -> Option<f32> {
        self.columns.cores(job.index())
    }

    /// Memory that all tasks of a job request together, GiB; `None` if the trace does not state it.
    pub fn memory(&self, job: JobId) -> Option<f32> {
        self.columns.memory(job.index())
    }

    /// GPUs of all tasks of a job together, above zero; `None` if the trace does not state them.
    pub fn gpus(&self, job: JobId) -> Option<f32> {
        self.columns.gpus(job.index())
    }

    /// Whether the numbers of tasks come from the source.
    pub const fn counts_tasks(&self) -> bool {
        !self.jobs_only
    }

    /// Number of tasks of all jobs.
    pub fn tasks(&self) -> u64 {
        self.jobs.iter().map(|job| u64::from(job.tasks)).sum()
    }
}

/// An error in building a workload or reading a trace.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A trace that was not found.
    #[error(
        "trace or data file `{}` was not found; looked for {}. `volary trace sources` lists where traces are published; name \
         the folder that holds yours in VOLARY_TRACES (colon-separated), put the file beside the experiment, or set \
         `workload.trace.fallback` to a generator", .file.display(), list(.looked)
    )]
    Missing {
        /// The path in the experiment.
        file: PathBuf,
        /// Every path that was tried.
        looked: Vec<PathBuf>,
    },
    /// The file cannot be opened, read or written.
    #[error("{}: {source}", .file.display())]
    Io {
        /// Path of the file.
        file: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A trace that is damaged, malformed or empty: the file, with the line, the error, and the remedy.
    #[error("{0}")]
    Trace(String),
    /// An invalid key of the experiment.
    #[error("{key}: {why}")]
    Config {
        /// Dotted key of the experiment file.
        key: String,
        /// The error, and the remedy.
        why: String,
    },
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ")
}

impl WorkloadError {
    /// An invalid key of the experiment.
    pub fn config(key: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Config { key: key.into(), why: why.into() }
    }
}
