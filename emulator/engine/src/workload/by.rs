//! `workload.trace.by`: the classes of jobs in results are the values of a feature, such as their users.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volary_actors::base::{Feature, JobId};

use super::trace::{Trace, WorkloadError};

/// Maximum number of values of a feature that have a class of their own.
const MOST: usize = 20;

/// Class of jobs without the feature.
const UNKNOWN: &str = "unknown";

/// Class of the jobs whose values have no class of their own.
pub const OTHER: &str = "other";

/// A feature of the jobs of a trace by which results can be split.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The user who submitted the job.
    User,
    /// The queue or partition to which the job was submitted.
    Queue,
    /// The program.
    Application,
    /// The priority.
    Priority,
    /// The scheduling class of the trace; in an `.swf` file the group.
    Class,
}

impl By {
    const ALL: [(Self, Feature); 5] = [
        (Self::User, Feature::User),
        (Self::Queue, Feature::Queue),
        (Self::Application, Feature::Application),
        (Self::Priority, Feature::Priority),
        (Self::Class, Feature::Class),
    ];

    const fn feature(self) -> Feature {
        Self::ALL[self as usize].1
    }
}

/// The classes of jobs by a feature.
#[derive(Debug)]
pub(super) struct Split {
    pub(super) feature: Feature,
    /// Index of the class of each value.
    classes: Vec<u8>,
    /// Labels of the classes: values in the order of their numbers of jobs, the most first.
    pub(super) labels: Vec<Arc<str>>,
}

impl Split {
    /// Splits the jobs of `trace` from number `first` on.
    ///
    /// # Errors
    /// When the trace does not state the feature.
    pub(super) fn of(by: By, trace: &Trace, first: u32) -> Result<Self, WorkloadError> {
        let feature = by.feature();
        if !trace.states(feature) {
            let why = format!("`{}` states no {feature} of its jobs", trace.file().display());
            let known = By::ALL.into_iter().map(|(_, known)| known).filter(|&known| trace.states(known));
            let known: Vec<&str> = known.map(Feature::name).collect();
            let help = match known.as_slice() {
                [] => "leave the key out, or for a table name a column: workload.trace.columns = \"user=COLUMN,…\""
                    .to_owned(),
                known => format!("it states {}", known.join(", ")),
            };
            return Err(WorkloadError::config("workload.trace.by", format!("{why}; {help}")));
        }
        let mut jobs_of: Vec<(u64, u32)> = Vec::new();
        for job in first..trace.jobs().len() as u32 {
            let value = trace.feature(JobId(job), feature);
            let known = jobs_of.len() as u32;
            jobs_of.extend((known..=value).map(|value| (0, value)));
            jobs_of[value as usize].0 += 1;
        }
        let mut classes = vec![0; jobs_of.len()];
        jobs_of.retain(|(jobs, _)| *jobs > 0);
        jobs_of.sort_by_key(|&(jobs, value)| (Reverse(jobs), value));
        let mut labels: Vec<Arc<str>> = Vec::new();
        let mut used: BTreeSet<Arc<str>> = [OTHER.into()].into();
        for (rank, &(_, value)) in jobs_of.iter().enumerate() {
            classes[value as usize] = rank.min(MOST) as u8;
            if rank < MOST {
                let mut label: Arc<str> = label(trace, feature, value).into();
                while !used.insert(Arc::clone(&label)) {
                    label = format!("{label}-{value}").into();
                }
                labels.push(label);
            }
        }
        if jobs_of.len() > MOST {
            labels.push(OTHER.into());
        }
        Ok(Self { feature, classes, labels })
    }

    /// Index of the class of jobs whose feature has this value.
    pub(super) fn class(&self, value: u32) -> usize {
        self.classes[value as usize].into()
    }
}

/// The label of a value, in a form that claims can name. Words that do not begin with a letter follow the name of the
/// feature, and characters other than letters, digits, `-` and `_` become `_`.
fn label(trace: &Trace, feature: Feature, value: u32) -> String {
    if value == 0 {
        return UNKNOWN.to_owned();
    }
    let number = value.to_string();
    let word = trace.word(feature, value).unwrap_or(&number);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let plain: String = word.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    if plain.starts_with(|first: char| first.is_ascii_alphabetic()) {
        plain
    } else {
        format!("{feature}-{plain}")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::path::Path;

    use super::*;

    fn split(rows: &str) -> Split {
        let text = format!("submit_ms,run_ms,user\n{rows}");
        let trace = Trace::parse(Path::new("a.csv"), Cursor::new(text), None).unwrap();
        Split::of(By::User, &trace, 0).unwrap()
    }

    #[test]
    fn users_are_classes_by_their_numbers_of_jobs() {
        let split = split("1,9,ann\n2,9,bob smith\n3,9,bob smith\n4,9,\n5,9,7\n6,9,bob smith\n7,9,7\n");
        assert_eq!(
            split.labels.iter().map(|label| &**label).collect::<Vec<_>>(),
            ["bob_smith", "user-7", "unknown", "ann"]
        );
        assert_eq!([0, 1, 2, 3].map(|value| split.class(value)), [2, 3, 0, 1]);
    }

    #[test]
    fn users_beyond_twenty_are_one_class_and_labels_are_distinct() {
        let users = (0..22).map(|user| format!("{user},9,u{user}\n")).collect::<String>();
        let split = split(&format!("{users}30,9,a b\n31,9,a_b\n32,9,a b\n33,9,a_b\n"));
        assert_eq!(split.labels.len(), 21);
        assert_eq!([&*split.labels[0], &*split.labels[1], &*split.labels[20]], ["a_b", "a_b-24", "other"]);
        assert_eq!(split.class(22), 20, "the 21st of the users");
    }

    #[test]
    fn a_trace_without_users_is_refused() {
        let text = "submit_ms,run_ms,queue\n1,2,a\n";
        let trace = Trace::parse(Path::new("a.csv"), Cursor::new(text), None).unwrap();
        let why = Split::of(By::User, &trace, 0).unwrap_err().to_string();
        assert!(
            why.contains("workload.trace.by")
                && why.contains("`a.csv` states no user")
                && why.contains("it states queue"),
            "{why}"
        );
    }
}
