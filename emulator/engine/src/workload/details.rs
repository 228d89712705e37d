//! Details of the jobs of a trace beside their shape: features, outcomes, waits and requests.

use std::fmt;
use std::num::NonZeroU64;

use volary_actors::base::{Feature, Span};

/// The outcome of a job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// The job completed.
    Finished,
    /// The job ended by an error of its own or of a machine.
    Failed,
    /// The job's user or a program stopped it, or a job that it depended on ended.
    Killed,
    /// The job was evicted in favour of other jobs.
    Evicted,
    /// The record of the job's end is missing.
    Lost,
    /// The job exceeded the time that its user requested.
    TimedOut,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 6] =
        [Self::Finished, Self::Failed, Self::Killed, Self::Evicted, Self::Lost, Self::TimedOut];

    /// Name of the outcome in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Killed => "killed",
            Self::Evicted => "evicted",
            Self::Lost => "lost",
            Self::TimedOut => "timed out",
        }
    }

    /// The outcome that a file states: as a letter (F K X E L), or as an event name of SLURM, MOAB or Google.
    pub(super) fn of(text: &str) -> Option<Self> {
        Some(match state(text).as_str() {
            "F" | "FINISH" | "FINISHED" | "COMPLETED" | "COMPLETE" | "SUCCESS" | "SUCCEED" | "SUCCEEDED"
            | "TERMINATED" | "JOBEND" => Self::Finished,
            "X" | "FAIL" | "FAILED" | "FAILURE" | "NODE_FAIL" | "OUT_OF_MEMORY" | "BOOT_FAIL" => Self::Failed,
            "K" | "KILL" | "KILLED" | "CANCELLED" | "CANCELED" | "ABORTED" | "JOBCANCEL" | "REMOVED" => {
                Self::Killed
            }
            "E" | "EVICT" | "EVICTED" | "PREEMPTED" => Self::Evicted,
            "L" | "LOST" | "UNKNOWN" => Self::Lost,
            "T" | "TIMEOUT" | "TIMEDOUT" | "TIMED" | "DEADLINE" => Self::TimedOut,
            _ => return None,
        })
    }

    /// Whether a state of SLURM or MOAB says that the job had not ended when the file was written.
    pub(super) fn is_pending(text: &str) -> bool {
        const PENDING: [&str; 16] = [
            "PENDING",
            "WAITING",
            "PROCESSING",
            "RUNNING",
            "SUSPENDED",
            "COMPLETING",
            "CONFIGURING",
            "REQUEUED",
            "REQUEUE_HOLD",
            "RESIZING",
            "STOPPED",
            "STAGE_OUT",
            "IDLE",
            "QUEUED",
            "STARTING",
            "HELD",
        ];
        PENDING.contains(&state(text).as_str())
    }
}

/// The first word in capitals; SLURM appends the user who cancelled a job.
fn state(text: &str) -> String {
    text.split([' ', '+', ':']).next().unwrap_or_default().to_ascii_uppercase()
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The known details of one job.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Details {
    /// Values of features by [`Feature::index`]; zero if unknown.
    pub features: [u32; Feature::ALL.len()],
    /// Time from submission to start.
    pub wait: Option<Span>,
    /// Run time that the job's user requested, above zero.
    pub requested: Option<Span>,
    /// Outcome of the job.
    pub outcome: Option<Outcome>,
    /// Cores of all tasks of the job together.
    pub cores: Option<f32>,
    /// Memory of all tasks of the job together, GiB.
    pub memory: Option<f32>,
    /// GPUs of all tasks of the job together.
    pub gpus: Option<f32>,
}

/// The details of all jobs, a column each. A column without values takes no memory, and rows without a value at the end
/// of a column are not stored.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Columns {
    features: [Vec<u32>; Feature::ALL.len()],
    /// Waits in nanoseconds plus one; `None` if unknown.
    waits: Vec<Option<NonZeroU64>>,
    /// Requested run times in nanoseconds; `None` if unknown.
    requested: Vec<Option<NonZeroU64>>,
    outcomes: Vec<Option<Outcome>>,
    /// Cores of each job; zero if unknown.
    cores: Vec<f32>,
    /// Memory of each job; zero if unknown.
    memory: Vec<f32>,
    /// GPUs of each job; zero if unknown.
    gpus: Vec<f32>,
    /// Position of each job's graph in `Trace::stages` plus one; zero for a job without dependencies.
    pub(super) stages: Vec<u32>,
}

impl Columns {
    /// Sets the known details of the job in `row`; its other details keep their values.
    pub(super) fn set(&mut self, row: usize, details: &Details) {
        for (column, &value) in self.features.iter_mut().zip(&details.features) {
            put(column, row, (value > 0).then_some(value));
        }
        let wait = details.wait.and_then(|wait| NonZeroU64::new(wait.0.saturating_add(1)));
        put(&mut self.waits, row, wait.map(Some));
        let requested = details.requested.and_then(|requested| NonZeroU64::new(requested.0));
        put(&mut self.requested, row, requested.map(Some));
        put(&mut self.outcomes, row, details.outcome.map(Some));
        put(&mut self.cores, row, details.cores);
        put(&mut self.memory, row, details.memory);
        put(&mut self.gpus, row, details.gpus);
    }

    pub(super) fn feature(&self, row: usize, feature: Feature) -> u32 {
        get(&self.features[feature.index()], row)
    }

    pub(super) const fn has(&self, feature: Feature) -> bool {
        !self.features[feature.index()].is_empty()
    }

    /// The requested amounts of a feature, and the amount of one of its units: a thousandth of a core or GPU, or 1 MiB.
    pub(super) fn amounts(&self, feature: Feature) -> Option<(&[f32], f32)> {
        let amounts = [
            (Feature::Cores, &self.cores, 1e-3),
            (Feature::Gpus, &self.gpus, 1e-3),
            (Feature::Memory, &self.memory, 1.0 / 1024.0),
        ];
        let found = amounts.into_iter().find(|(of, ..)| *of == feature);
        found.map(|(_, amounts, unit)| (amounts.as_slice(), unit))
    }

    pub(super) fn wait(&self, row: usize) -> Option<Span> {
        get(&self.waits, row).map(|wait| Span(wait.get() - 1))
    }

    /// Number of rows with a wait.
    pub(super) fn known_waits(&self) -> usize {
        self.waits.iter().flatten().count()
    }

    pub(super) fn requested(&self, row: usize) -> Option<Span> {
        get(&self.requested, row).map(|requested| Span(requested.get()))
    }

    pub(super) fn outcome(&self, row: usize) -> Option<Outcome> {
        get(&self.outcomes, row)
    }

    pub(super) fn cores(&self, row: usize) -> Option<f32> {
        let cores = get(&self.cores, row);
        (cores > 0.0).then_some(cores)
    }

    pub(super) fn memory(&self, row: usize) -> Option<f32> {
        let memory = get(&self.memory, row);
        (memory > 0.0).then_some(memory)
    }

    pub(super) fn gpus(&self, row: usize) -> Option<f32> {
        let gpus = get(&self.gpus, row);
        (gpus > 0.0).then_some(gpus)
    }

    /// Puts the rows into the given order of their old indices.
    pub(super) fn reorder(&mut self, order: &[u32]) {
        self.features.iter_mut().for_each(|column| permute(column, order));
        permute(&mut self.waits, order);
        permute(&mut self.requested, order);
        permute(&mut self.outcomes, order);
        permute(&mut self.cores, order);
        permute(&mut self.memory, order);
        permute(&mut self.gpus, order);
        permute(&mut self.stages, order);
    }
}

pub(super) fn put<T: Copy + Default>(column: &mut Vec<T>, row: usize, value: Option<T>) {
    if let Some(value) = value {
        if column.len() <= row {
            column.resize(row + 1, T::default());
        }
        column[row] = value;
    }
}

pub(super) fn get<T: Copy + Default>(column: &[T], row: usize) -> T {
    column.get(row).copied().unwrap_or_default()
}

fn permute<T: Copy + Default>(column: &mut Vec<T>, order: &[u32]) {
    if !column.is_empty() {
        *column = order.iter().map(|&row| get(column, row as usize)).collect();
    }
}
