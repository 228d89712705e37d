//! Columns of tables: the meanings of their names, as headings of published files and as `--columns` states them, and
//! their units.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volary_actors::base::Feature;

use super::time::{TimeUnit, words};

/// The meaning of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    Submit,
    Start,
    End,
    Run,
    Wait,
    Tasks,
    Nodes,
    /// Cores of all tasks of a job.
    Cores,
    /// GPUs of all tasks of a job.
    Gpus,
    /// Memory of all tasks of a job, GiB.
    Memory,
    /// CPU of a task, as a share of Google's largest machine.
    GoogleCpu,
    /// Memory of a task, as a share of the memory of Google's largest machine.
    GoogleMemory,
    Outcome,
    /// Number of the job that the row is about, from one.
    Line,
    /// Name of the job: its id in SLURM, which has a point for a step, such as `17.batch`, or its name in a table with
    /// a row per task.
    Job,
    /// Name of a task within its job.
    Task,
    /// Names of the tasks that a task waits for.
    After,
    /// The stages of a job, such as `20 5_1`.
    Stages,
    Feature(Feature),
}

/// Last words of names that describe cores, GPUs or memory without a unit.
const NO_UNIT: &str = "cpu cpus gpu gpus core procs processors mem memory ram num number count n total \
    request requested req limit alloc allocated used";

/// Names that `--columns` knows, and that headers may use as they are.
const NAMES: [(&str, Meaning); 26] = [
    ("submit", Meaning::Submit),
    ("start", Meaning::Start),
    ("end", Meaning::End),
    ("run", Meaning::Run),
    ("wait", Meaning::Wait),
    ("tasks", Meaning::Tasks),
    ("nodes", Meaning::Nodes),
    ("cores", Meaning::Cores),
    ("gpus", Meaning::Gpus),
    ("memory", Meaning::Memory),
    ("outcome", Meaning::Outcome),
    ("line", Meaning::Line),
    ("job", Meaning::Job),
    ("task", Meaning::Task),
    ("after", Meaning::After),
    ("stages", Meaning::Stages),
    ("user", Meaning::Feature(Feature::User)),
    ("name", Meaning::Feature(Feature::Name)),
    ("lname", Meaning::Feature(Feature::LogicalName)),
    ("queue", Meaning::Feature(Feature::Queue)),
    ("application", Meaning::Feature(Feature::Application)),
    ("priority", Meaning::Feature(Feature::Priority)),
    ("class", Meaning::Feature(Feature::Class)),
    ("size", Meaning::Feature(Feature::Size)),
    ("requested", Meaning::Feature(Feature::Requested)),
    ("hour", Meaning::Feature(Feature::Hour)),
];

impl Meaning {
    pub(super) const fn is_time(self) -> bool {
        matches!(self, Self::Submit | Self::Start | Self::End | Self::Run | Self::Wait)
    }

    /// The number of cores, GPUs or GiB in a unit; `None` for other units and meanings.
    fn scale(self, unit: &str) -> Option<f64> {
        const KIB: f64 = 1024.0;
        let giga = |bytes: f64| bytes / (KIB * KIB * KIB);
        Some(match (self, unit) {
            (Self::Cores | Self::Gpus, "milli" | "millicores") => 1e-3,
            (Self::Cores | Self::Gpus, "percent") => 1e-2,
            (Self::Cores, "cores") | (Self::Gpus, "gpus") => 1.0,
            (Self::Memory, "bytes") => giga(1.0),
            (Self::Memory, "kib") => giga(KIB),
            (Self::Memory, "mib") => giga(KIB * KIB),
            (Self::Memory, "gib") => 1.0,
            (Self::Memory, "tib") => KIB,
            (Self::Memory, "kb") => giga(1e3),
            (Self::Memory, "mb") => giga(1e6),
            (Self::Memory, "gb") => giga(1e9),
            (Self::Memory, "tb") => giga(1e12),
            _ => return None,
        })
    }

    /// The number of cores, GPUs or GiB in the unit that the end of a column's name states, such as `memory_MiB`. It is
    /// one if the name has one word, or ends in a word that states no unit.
    ///
    /// # Errors
    /// The last word, if it may be an unknown unit.
    fn scale_of(self, name: &str) -> Result<f64, String> {
        let words = words(name);
        let Some((last, before)) = words.split_last() else { return Ok(1.0) };
        // The capital of `MiB` or `kB` begins another word.
        let joined = before.last().map(|word| format!("{word}{last}"));
        let known = joined.and_then(|unit| self.scale(&unit)).or_else(|| self.scale(last));
        let has_unit = matches!(self, Self::Cores | Self::Gpus | Self::Memory);
        match known {
            Some(scale) => Ok(scale),
            None if !has_unit || before.is_empty() || NO_UNIT.split(' ').any(|word| word == last) => Ok(1.0),
            None => Err(name
                .rsplit(|c: char| !c.is_alphanumeric())
                .find(|end| !end.is_empty())
                .unwrap_or(name)
                .to_owned()),
        }
    }

    /// Name of the meaning in `--columns`, or the only heading with this meaning.
    pub(super) fn name(self) -> &'static str {
        let named = |names: &[(&'static str, Self)]| {
            names.iter().find(|(_, meaning)| *meaning == self).map(|(name, _)| *name)
        };
        named(&NAMES).or_else(|| named(&HEADINGS)).unwrap_or_default()
    }
}

/// Headings of published files: the job level of the simulators' traces, the tables derived from Google's trace, and
/// the ATLAS repository of LANL.
const HEADINGS: [(&str, Meaning); 22] = [
    ("arrival_s", Meaning::Submit),
    ("ntasks", Meaning::Tasks),
    ("ntasks_SYNTHETIC", Meaning::Tasks),
    ("mean_s", Meaning::Run),
    ("submit_ms", Meaning::Submit),
    ("delay_ms", Meaning::Wait),
    ("sched_delay_ms", Meaning::Wait),
    ("run_ms", Meaning::Run),
    ("job_end", Meaning::Outcome),
    ("sched_class", Meaning::Feature(Feature::Class)),
    ("cpu_req", Meaning::GoogleCpu),
    ("ram_req", Meaning::GoogleMemory),
    ("user_ID", Meaning::Feature(Feature::User)),
    ("group_ID", Meaning::Feature(Feature::Queue)),
    ("submit_time", Meaning::Submit),
    ("start_time", Meaning::Start),
    ("end_time", Meaning::End),
    ("wallclock_limit", Meaning::Feature(Feature::Requested)),
    ("job_status", Meaning::Outcome),
    ("node_count", Meaning::Nodes),
    ("tasks_requested", Meaning::Tasks),
    ("logical_name", Meaning::Feature(Feature::LogicalName)),
];

/// Headings of OpenTrinity, used where no other column has their meaning.
pub(super) const SECOND_CHOICE: [(&str, Meaning); 2] =
    [("queue_time", Meaning::Submit), ("dispatch_time", Meaning::Start)];

/// Names of columns by meaning, such as `--columns user=user_ID,submit=submit_time`, or the columns of a known table,
/// such as `--columns philly`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(
    with = "String",
    description = "columns of a table, such as \"submit=at,run=took:min,user=who\", or the name of a known table"
)]
pub struct ColumnNames {
    pub(super) named: Vec<Named>,
    pub(super) set: Option<&'static ColumnSet>,
}

/// The columns of a published table.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct ColumnSet {
    pub(super) name: &'static str,
    /// Columns by which the table is recognised.
    pub(super) required: &'static str,
    /// Columns that some editions have. If several have one meaning, the first is used.
    pub(super) optional: &'static str,
    /// A remark about what the reader assumes.
    pub(super) note: &'static str,
    /// Whether negative times mark jobs from before the table began, which are left out.
    pub(super) begins_earlier: bool,
    /// Whether the set applies only by its name, since other tables have its columns in other units.
    pub(super) by_name_only: bool,
    /// Name and header of a file that is published without its header.
    pub(super) bare: Option<(&'static str, &'static str)>,
}

/// A column that has a meaning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Named {
    pub(super) meaning: Meaning,
    /// Name of the column, and its unit behind a colon.
    pub(super) column: String,
    /// Whether a table may lack the column.
    pub(super) is_optional: bool,
}

impl Named {
    /// A pair such as `run=took:min`.
    pub(super) fn new(pair: &str, is_optional: bool) -> Result<Self, String> {
        let (name, column) = pair.split_once('=').ok_or_else(|| {
            format!("`{pair}` is not a pair; write for example user=user_ID,submit=submit_time")
        })?;
        let known = NAMES.into_iter().find(|(known, _)| *known == name.trim());
        let Some((_, meaning)) = known else {
            let all = NAMES.map(|(name, _)| name).join(", ");
            return Err(format!("`{}` is not a known column: {all}", name.trim()));
        };
        Ok(Self { meaning, column: column.trim().to_owned(), is_optional })
    }

    /// Whether this is a column of the header, with or without a unit.
    pub(super) fn is_in(&self, cells: &[String]) -> bool {
        let is = |name: &str| cells.iter().any(|cell| cell == name);
        is(&self.column) || self.column.rsplit_once(':').is_some_and(|(name, _)| is(name))
    }
}

impl ColumnNames {
    pub(super) const fn of_set(named: Vec<Named>, set: &'static ColumnSet) -> Self {
        Self { named, set: Some(set) }
    }

    /// Whether a header has all columns that must be there.
    pub(super) fn fit(&self, cells: &[String]) -> bool {
        self.named.iter().all(|named| named.is_optional || named.is_in(cells))
    }

    /// Columns that the user names.
    pub(super) fn of_pairs(text: &str) -> Result<Self, String> {
        let mut pairs: Vec<Named> = Vec::new();
        for part in text.split(',') {
            let pair = Named::new(part, false)?;
            if let Some(other) = pairs.iter().find(|known| known.meaning == pair.meaning) {
                let (name, other, column) = (pair.meaning.name(), &other.column, &pair.column);
                return Err(format!("`{name}` is given twice, as `{other}` and `{column}`; name one column"));
            }
            pairs.push(pair);
        }
        Ok(Self { named: pairs, set: None })
    }
}

impl From<ColumnNames> for String {
    /// Text from which these columns can be parsed.
    fn from(columns: ColumnNames) -> Self {
        let pair = |named: &Named| format!("{}={}", named.meaning.name(), named.column);
        let pairs = || columns.named.iter().map(pair).collect::<Vec<_>>().join(",");
        columns.set.map_or_else(pairs, |set| set.name.to_owned())
    }
}

/// A column that is read.
pub(super) struct Column {
    pub(super) meaning: Meaning,
    /// Position of the column in a row, from zero.
    pub(super) index: usize,
    pub(super) name: String,
    /// The unit of the column's times; an error with the end of the column's name, if that end is not a unit.
    pub(super) unit: Result<TimeUnit, String>,
    /// Cores, GPUs or GiB per unit of the column's numbers; the error is as for `unit`.
    pub(super) scale: Result<f64, String>,
    /// Whether the number is per task.
    pub(super) is_each: bool,
}

impl Column {
    /// A column with the unit that its name states.
    pub(super) fn new(meaning: Meaning, index: usize, name: &str) -> Self {
        let scale = meaning.scale_of(name);
        Self { meaning, index, name: name.to_owned(), unit: TimeUnit::of(name), scale, is_each: false }
    }

    /// Sets the unit that the user states, such as `min`, `30ms`, `mib` or `percent/task`; returns whether there is
    /// such a unit of this column.
    pub(super) fn set_unit(&mut self, unit: &str) -> bool {
        if self.meaning.is_time() {
            let unit = TimeUnit::called(unit);
            let is_known = unit.is_some();
            unit.into_iter().for_each(|unit| self.unit = Ok(unit));
            return is_known;
        }
        let (amount, is_each) = unit.strip_suffix("/task").map_or((unit, false), |amount| (amount, true));
        let scale = self.meaning.scale(&amount.to_ascii_lowercase());
        (self.scale, self.is_each) = (Ok(scale.unwrap_or(1.0)), is_each);
        scale.is_some()
    }
}
/// Names of columns that have a meaning without `--columns`.
pub(super) fn known_names() -> impl Iterator<Item = &'static str> {
    HEADINGS.iter().chain(&NAMES).chain(&SECOND_CHOICE).map(|(name, _)| *name)
}

/// The meaning of a column's name.
pub(super) fn meaning(name: &str, is_derived: bool) -> Option<Meaning> {
    if name == "end" && is_derived {
        return Some(Meaning::Outcome);
    }
    HEADINGS.iter().chain(&NAMES).find(|(known, _)| *known == name).map(|&(_, meaning)| meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_state_their_unit() {
        let units = |name: &str| TimeUnit::of(name).map(|unit| unit.plural.into_owned());
        for (names, unit) in [
            (
                &[
                    "took",
                    "elapsed",
                    "at",
                    "mean_s",
                    "submit_time",
                    "job_arrival_stamp",
                    "runSeconds",
                    "",
                    "_",
                ][..],
                "seconds",
            ),
            (&["run_ms", "duration (msec)", "runMs", "RUN.MILLIS"], "milliseconds"),
            (&["run_us", "run_µs", "run_μs"], "microseconds"),
            (&["run_ns", "ns"], "nanoseconds"),
            (&["duration_min", "duration-Minutes", "DurationMin", "minutes"], "minutes"),
            (&["walltime_h", "hrs"], "hours"),
            (&["age_days"], "days"),
        ] {
            for name in names {
                assert_eq!(units(name), Ok(unit.to_owned()), "{name}");
            }
        }
        for (name, end) in [("run_ticks", "ticks"), ("run_avg", "avg"), ("jobLength", "length")] {
            assert_eq!(units(name), Err(end.to_owned()), "{name}");
        }
    }
}
