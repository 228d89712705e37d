//! Features of jobs: properties that a scheduler knows when a job is submitted, apart from the shape of the job.

use std::fmt;
use std::str::FromStr;

/// A feature by which jobs resemble each other (Park's thesis, section 4.3.1).
///
/// Its value is a number, zero if unknown. Sizes, requested amounts and hours are quantities; values of other features
/// can only be compared for equality.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Feature {
    /// The user who submitted the job.
    User,
    /// The job's name.
    Name,
    /// The logical name, which repetitions of the job share.
    LogicalName,
    /// The queue, partition or group to which the job was submitted.
    Queue,
    /// The program that the job runs.
    Application,
    /// The job's priority.
    Priority,
    /// The job's scheduling class.
    Class,
    /// The number of tasks, nodes or processors.
    Size,
    /// The run time that the job's user requested.
    Requested,
    /// The hour of the day in which the job was submitted, by the trace's clock.
    Hour,
    /// Cores that all tasks request together, in thousandths.
    Cores,
    /// GPUs that all tasks request together, in thousandths.
    Gpus,
    /// Memory that all tasks request together, in MiB.
    Memory,
}

impl Feature {
    /// All features, in the order of their indices.
    pub const ALL: [Self; 13] = [
        Self::User,
        Self::Name,
        Self::LogicalName,
        Self::Queue,
        Self::Application,
        Self::Priority,
        Self::Class,
        Self::Size,
        Self::Requested,
        Self::Hour,
        Self::Cores,
        Self::Gpus,
        Self::Memory,
    ];

    /// Index of the feature in [`ALL`](Self::ALL).
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Name of the feature on the command line and in columns of files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Name => "name",
            Self::LogicalName => "lname",
            Self::Queue => "queue",
            Self::Application => "application",
            Self::Priority => "priority",
            Self::Class => "class",
            Self::Size => "size",
            Self::Requested => "requested",
            Self::Hour => "hour",
            Self::Cores => "cores",
            Self::Gpus => "gpus",
            Self::Memory => "memory",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Feature {
    type Err = ();

    /// Parses the name of a feature.
    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|feature| feature.name() == name).ok_or(())
    }
}
