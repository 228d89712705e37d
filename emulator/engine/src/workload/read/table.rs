//! Columns of `.csv` files: the meanings of their names, their cells, and the numbering of their words.

use std::borrow::Cow;
use std::collections::BTreeMap;

use volary_actors::base::{Feature, Span};

use super::lines::{At, TraceLine, cells, short};
use super::time::{SECONDS, TimeUnit, instant};
use crate::workload::trace::{Details, Outcome, WorkloadError};

/// Capacities in Google's trace are relative to the largest machine. The most frequent machine has half of its
/// capacity, and has two sockets of four cores (Park's thesis, section 2.4.1).
pub(super) const CORES_OF_GOOGLE_MACHINE: f32 = 16.0;
/// Memory of the largest machine, which is not published: 4 GiB a core are assumed.
pub(super) const GIB_OF_GOOGLE_MACHINE: f32 = 64.0;

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
    Cores,
    /// Memory of all tasks of a job, GiB.
    Memory,
    /// CPU of a task, as a share of Google's largest machine.
    GoogleCpu,
    /// Memory of a task, as a share of the memory of Google's largest machine.
    GoogleMemory,
    Outcome,
    /// Number of the job that the row is about, from one.
    Line,
    Feature(Feature),
}

/// Names that `--columns` knows, and that headers may use as they are.
const NAMES: [(&str, Meaning); 21] = [
    ("submit", Meaning::Submit),
    ("start", Meaning::Start),
    ("end", Meaning::End),
    ("run", Meaning::Run),
    ("wait", Meaning::Wait),
    ("tasks", Meaning::Tasks),
    ("nodes", Meaning::Nodes),
    ("cores", Meaning::Cores),
    ("memory", Meaning::Memory),
    ("outcome", Meaning::Outcome),
    ("line", Meaning::Line),
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
    const fn is_time(self) -> bool {
        matches!(self, Self::Submit | Self::Start | Self::End | Self::Run | Self::Wait)
    }

    /// Name of the meaning in `--columns`, or the only heading with this meaning.
    fn name(self) -> &'static str {
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
const SECOND_CHOICE: [(&str, Meaning); 2] =
    [("queue_time", Meaning::Submit), ("dispatch_time", Meaning::Start)];

/// The user's names of columns by meaning, such as `--columns user=user_ID,submit=submit_time`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnNames(Vec<(Meaning, String)>);

impl std::str::FromStr for ColumnNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || NAMES.map(|(name, _)| name).join(", ");
        let pair = |part: &str| -> Result<(Meaning, String), String> {
            let (name, column) = part.split_once('=').ok_or_else(|| {
                format!("`{part}` is not a pair; write for example user=user_ID,submit=submit_time")
            })?;
            let (_, meaning) = NAMES
                .into_iter()
                .find(|(known, _)| *known == name.trim())
                .ok_or_else(|| format!("`{}` is not a known column: {}", name.trim(), known()))?;
            Ok((meaning, column.trim().to_owned()))
        };
        let mut pairs: Vec<(Meaning, String)> = Vec::new();
        for part in text.split(',') {
            let (meaning, column) = pair(part)?;
            if let Some((_, other)) = pairs.iter().find(|(known, _)| *known == meaning) {
                let name = meaning.name();
                return Err(format!("`{name}` is given twice, as `{other}` and `{column}`; name one column"));
            }
            pairs.push((meaning, column));
        }
        Ok(Self(pairs))
    }
}

/// A column that is read.
struct Column {
    meaning: Meaning,
    /// Position of the column in a row, from zero.
    index: usize,
    name: String,
    /// The unit of the column's times; an error with the end of the column's name, if that end is not a unit.
    unit: Result<&'static TimeUnit, String>,
}

/// A column's name and the unit behind a colon, as `--columns run=took:min` states it.
fn split_unit(name: &str) -> Option<(&str, &'static TimeUnit)> {
    let (name, unit) = name.rsplit_once(':')?;
    Some((name.trim_end(), TimeUnit::called(unit.trim())?))
}

/// Limit on the columns of a file: a compressed header of commas must not fill the memory.
const MOST_COLUMNS: usize = 4096;

/// The header of a file.
pub(super) struct Header {
    columns: Vec<Column>,
    /// Number of columns of the file.
    width: usize,
    /// The names as the file has them, for errors.
    names: String,
    /// Whether this is the header of the job table derived from Google's trace.
    is_google: bool,
}

impl Header {
    /// The columns of a header, by `names` or by the names of published files.
    pub(super) fn new(line: TraceLine<'_>, names: Option<&ColumnNames>) -> Result<Self, WorkloadError> {
        let cells: Vec<String> =
            cells(line.text).take(MOST_COLUMNS + 1).map(|cell| cell.into_owned()).collect();
        if cells.len() > MOST_COLUMNS {
            return Err(line.at.wrong(format!("the header has more than {MOST_COLUMNS} columns")));
        }
        let all = cells.join(", ");
        let column = |meaning, index: usize| {
            let name = cells[index].clone();
            let unit = TimeUnit::of(&name);
            Column { meaning, index, name, unit }
        };
        let mut columns: Vec<Column> = Vec::new();
        if let Some(ColumnNames(names)) = names {
            for (meaning, name) in names {
                let stated = split_unit(name).filter(|_| cells.iter().all(|cell| cell != name));
                let mut column =
                    column(*meaning, named(line, &cells, stated.map_or(name, |(name, _)| name))?);
                if let Some((_, unit)) = stated {
                    if !meaning.is_time() {
                        let (name, word) = (short(name), meaning.name());
                        let why =
                            format!("--columns {word}={name}: only times have a unit; leave the unit out");
                        return Err(line.at.wrong(why));
                    }
                    column.unit = Ok(unit);
                }
                columns.push(column);
            }
        } else {
            // In the table derived from Google's trace `end` is the last event; elsewhere it is a time.
            let is_derived = cells.iter().any(|name| name == "run_ms");
            for (index, name) in cells.iter().enumerate() {
                let Some(meaning) = meaning(name, is_derived) else { continue };
                if let Some(other) = columns.iter().find(|column| column.meaning == meaning) {
                    return Err(two_columns(line, other, &column(meaning, index)));
                }
                columns.push(column(meaning, index));
            }
            for (name, meaning) in SECOND_CHOICE {
                let index = cells.iter().position(|cell| cell == name);
                let is_free = columns.iter().all(|column| column.meaning != meaning);
                columns.extend(index.filter(|_| is_free).map(|index| column(meaning, index)));
            }
        }
        let is_google = names.is_none() && is_google(&cells);
        Ok(Self { columns, width: cells.len(), names: brief(&all), is_google })
    }

    /// Whether this is the header of the job table derived from Google's trace, where jobs submitted before the trace
    /// have the time zero.
    pub(super) const fn is_google(&self) -> bool {
        self.is_google
    }

    /// Whether the column of this meaning has this name.
    pub(super) fn is_named(&self, meaning: Meaning, name: &str) -> bool {
        self.columns.iter().any(|column| column.meaning == meaning && column.name == name)
    }

    pub(super) fn has(&self, meaning: Meaning) -> bool {
        self.columns.iter().any(|column| column.meaning == meaning)
    }

    /// Whether the header has no known column.
    pub(super) fn is_empty(&self) -> bool {
        self.columns.iter().all(|column| column.meaning == Meaning::Line)
    }

    /// The names as the file has them.
    pub(super) fn names(&self) -> &str {
        &self.names
    }

    /// The columns of times that are read in minutes, hours or days, for a remark: `min` may stand for a minimum.
    pub(super) fn long_units(&self) -> Option<String> {
        let read = |column: &Column| {
            let unit =
                column.unit.as_ref().ok().filter(|unit| column.meaning.is_time() && unit.ns > SECONDS.ns)?;
            Some(format!("`{}` in {}", short(&column.name), unit.plural))
        };
        let read: Vec<_> = self.columns.iter().filter_map(read).collect();
        (!read.is_empty())
            .then(|| format!("numbers are read by the names of their columns: {}", read.join(", ")))
    }

    /// The columns of features.
    fn features(&self) -> impl Iterator<Item = (usize, Feature)> {
        let feature = |(at, column): (usize, &Column)| {
            if let Meaning::Feature(feature) = column.meaning { Some((at, feature)) } else { None }
        };
        self.columns.iter().enumerate().filter_map(feature)
    }

    /// Splits a row into the cells of the known columns. A row with fewer cells than the header was cut off. The cells
    /// of a row with more cells cannot be assigned to columns.
    pub(super) fn row<'a>(&'a self, line: TraceLine<'a>) -> Result<TableRow<'a>, WorkloadError> {
        let mut texts = vec![Cow::Borrowed(""); self.columns.len()];
        let mut count = 0;
        for (index, cell) in cells(line.text).enumerate() {
            count = index + 1;
            if index >= self.width && !cell.is_empty() {
                let why = "put quotes around a cell that holds a comma";
                return Err(line
                    .at
                    .wrong(format!("has more than the {} fields of the header; {why}", self.width)));
            }
            for (text, _) in texts.iter_mut().zip(&self.columns).filter(|(_, column)| column.index == index) {
                text.clone_from(&cell);
            }
        }
        if count < self.width {
            let width = self.width;
            let why = format!("has {count} of the {width} fields of the header; is the file cut off here?");
            return Err(line.at.wrong(why));
        }
        Ok(TableRow { at: line.at, header: self, texts })
    }
}

/// The meaning of a column's name.
fn meaning(name: &str, is_derived: bool) -> Option<Meaning> {
    if name == "end" && is_derived {
        return Some(Meaning::Outcome);
    }
    HEADINGS.iter().chain(&NAMES).find(|(known, _)| *known == name).map(|&(_, meaning)| meaning)
}

/// Whether these are the headings of the table of jobs derived from Google's trace.
fn is_google(cells: &[String]) -> bool {
    let has = |names: &[&str]| cells.iter().any(|cell| names.contains(&cell.as_str()));
    has(&["submit_ms"])
        && has(&["run_ms"])
        && has(&["delay_ms", "sched_delay_ms"])
        && has(&["class", "sched_class"])
}

/// The position of the only column of that name.
fn named(line: TraceLine<'_>, cells: &[String], name: &str) -> Result<usize, WorkloadError> {
    let mut found = cells.iter().enumerate().filter(|(_, cell)| *cell == name).map(|(index, _)| index);
    match (found.next(), found.next()) {
        (Some(index), None) => Ok(index),
        (Some(one), Some(other)) => {
            let (name, one, other) = (short(name), one + 1, other + 1);
            let why =
                format!("fields {one} and {other} are both called `{name}`; give one of them another name");
            Err(line.at.wrong(why))
        }
        (None, _) => {
            let (name, all) = (short(name), brief(&cells.join(", ")));
            Err(line.at.wrong(format!("there is no column `{name}`; the file has {all}")))
        }
    }
}

/// The error about two columns with one meaning.
fn two_columns(line: TraceLine<'_>, one: &Column, other: &Column) -> WorkloadError {
    let name = one.meaning.name();
    let [one, other] = [one, other].map(|c| format!("{} (`{}`)", c.index + 1, short(&c.name)));
    line.at.wrong(format!(
        "fields {one} and {other} both give the `{name}` of a job; rename the other one, or say which columns \
         count: `volary trace convert --columns`, with {name}=COLUMN"
    ))
}

/// At most 300 characters of a list of names.
fn brief(names: &str) -> String {
    let mut text: String = names.chars().take(300).collect();
    if text.len() < names.len() {
        text.push('…');
    }
    text
}

/// A row of a table.
pub(super) struct TableRow<'a> {
    pub(super) at: At<'a>,
    header: &'a Header,
    /// The trimmed cells, one per known column.
    texts: Vec<Cow<'a, str>>,
}

/// A point of time in a table.
#[derive(Clone, Copy)]
pub(super) struct Instant {
    /// Nanoseconds by the file's clock, or of the Unix clock.
    pub(super) ns: u64,
    /// Seconds east of Greenwich, if the time is a date.
    pub(super) zone: Option<i64>,
}

impl TableRow<'_> {
    /// The column of a meaning and its text, unless it is blank or −1, which stands for unknown in numeric columns.
    fn cell(&self, meaning: Meaning) -> Option<(&Column, &str)> {
        let at = self.header.columns.iter().position(|column| column.meaning == meaning)?;
        let text: &str = &self.texts[at];
        let is_unknown = text.is_empty() || meaning != Meaning::Outcome && text.parse() == Ok(-1.0);
        (!is_unknown).then_some((&self.header.columns[at], text))
    }

    /// A length of time.
    pub(super) fn span(&self, meaning: Meaning) -> Result<Option<Span>, WorkloadError> {
        self.cell(meaning).map(|(column, text)| self.number(column, text).map(Span)).transpose()
    }

    /// A point of time: a number or a date with a zone.
    pub(super) fn instant(&self, meaning: Meaning) -> Result<Option<Instant>, WorkloadError> {
        let Some((column, text)) = self.cell(meaning) else { return Ok(None) };
        let is_date = text.contains(':') || text.matches('-').count() > 1;
        if !is_date {
            return Ok(Some(Instant { ns: self.number(column, text)?, zone: None }));
        }
        let (ns, zone) =
            instant(text).map_err(|why| self.wrong(column, &format!("`{}` {why}", short(text))))?;
        Ok(Some(Instant { ns, zone: Some(zone) }))
    }

    /// A number of tasks, nodes or processors.
    pub(super) fn count(&self, meaning: Meaning) -> Result<Option<u32>, WorkloadError> {
        let Some((column, text)) = self.cell(meaning) else { return Ok(None) };
        self.at.count(column.index + 1, &column.name, text).map(Some)
    }

    /// The number of the job that the row is about.
    pub(super) fn line(&self) -> Result<Option<u64>, WorkloadError> {
        let Some((column, text)) = self.cell(Meaning::Line) else { return Ok(None) };
        text.parse()
            .map(Some)
            .map_err(|_| self.wrong(column, &format!("`{}` is not a whole number", short(text))))
    }

    /// Features, outcome, cores and memory; `tasks` is the number of tasks that share them.
    pub(super) fn details(&self, words: &mut Words, tasks: u32) -> Result<Details, WorkloadError> {
        let mut details = Details { outcome: self.outcome()?, ..Details::default() };
        for (at, feature) in self.header.features() {
            let text: &str = &self.texts[at];
            if !text.is_empty() {
                details.features[feature.index()] =
                    self.feature(&self.header.columns[at], feature, text, words)?;
            }
        }
        let cpu = |share: f32| share * CORES_OF_GOOGLE_MACHINE * tasks as f32;
        details.cores = match self.decimal(Meaning::Cores)? {
            None => self.decimal(Meaning::GoogleCpu)?.map(cpu),
            cores => cores,
        };
        let memory = |share: f32| share * GIB_OF_GOOGLE_MACHINE * tasks as f32;
        details.memory = match self.decimal(Meaning::Memory)? {
            None => self.decimal(Meaning::GoogleMemory)?.map(memory),
            memory => memory,
        };
        Ok(details)
    }

    /// The value of a feature: a number of tasks, an hour of the day counted from one, or the number of a word.
    fn feature(
        &self,
        column: &Column,
        feature: Feature,
        text: &str,
        words: &mut Words,
    ) -> Result<u32, WorkloadError> {
        if feature == Feature::Size {
            return self.at.count(column.index + 1, &column.name, text);
        }
        if feature == Feature::Hour {
            let hour = text.parse().ok().filter(|hour: &u32| *hour < 24).map(|hour| hour + 1);
            let wrong = || format!("`{}` is not an hour of the day from 0 to 23", short(text));
            return hour.ok_or_else(|| self.wrong(column, &wrong()));
        }
        words.number(feature, text).ok_or_else(|| self.wrong(column, TOO_LONG))
    }

    /// Whether the row says that its job had not ended.
    pub(super) fn is_unfinished(&self) -> bool {
        self.cell(Meaning::Outcome).is_some_and(|(_, text)| Outcome::is_pending(text))
    }

    fn outcome(&self) -> Result<Option<Outcome>, WorkloadError> {
        let Some((column, text)) = self.cell(Meaning::Outcome) else { return Ok(None) };
        Outcome::of(text).map(Some).ok_or_else(|| {
            let why = "is not an outcome; known are F K X E L (finished, killed, failed, evicted, lost) and the states \
                       of SLURM and MOAB, such as COMPLETED, FAILED, CANCELLED, TIMEOUT";
            self.wrong(column, &format!("`{}` {why}", short(text)))
        })
    }

    fn decimal(&self, meaning: Meaning) -> Result<Option<f32>, WorkloadError> {
        let Some((column, text)) = self.cell(meaning) else { return Ok(None) };
        match text.parse::<f32>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(Some(number)),
            _ => Err(self.wrong(column, &format!("`{}` is not a number of at least zero", short(text)))),
        }
    }

    /// A time in nanoseconds: exact where the file has whole numbers of its unit.
    fn number(&self, column: &Column, text: &str) -> Result<u64, WorkloadError> {
        let unit = column.unit.as_ref().map_err(|end| {
            let (name, meaning) = (short(&column.name), column.meaning.name());
            let why = format!(
                "its name ends in `{end}`, which is no unit of time that is known (s, ms, us, ns, min, h, d); state the \
                 unit of its numbers: `volary trace convert --columns` with {meaning}={name}:UNIT, such as \
                 {meaning}={name}:s"
            );
            self.wrong(column, &why)
        })?;
        if let Some(exact) = text.parse::<u64>().ok().and_then(|whole| whole.checked_mul(unit.ns)) {
            return Ok(exact);
        }
        let seconds = self.at.time(column.index + 1, &column.name, text, unit)?;
        Ok(Span::from_secs_f64(seconds).0)
    }

    fn wrong(&self, column: &Column, why: &str) -> WorkloadError {
        self.at.field(column.index + 1, &column.name, why)
    }
}

/// The numbers of words, a series for each feature.
#[derive(Default)]
pub(super) struct Words([WordNumbers; Feature::ALL.len()]);

impl Words {
    /// The number of a word; `None` if it is too long to be kept.
    pub(super) fn number(&mut self, feature: Feature, word: &str) -> Option<u32> {
        self.0[feature.index()].number(word)
    }
}

/// The numbers of words, from one on in the order in which they appear.
#[derive(Default)]
pub(super) struct WordNumbers(BTreeMap<Box<str>, u32>);

/// Maximum length of a word in bytes, since every distinct word is kept in memory.
const MOST_WORD: usize = 1024;

/// The error of a word that has no number.
pub(super) const TOO_LONG: &str = "is longer than 1024 bytes; names are kept in memory";

impl WordNumbers {
    /// The number of a word; `None` if it is too long to be kept.
    pub(super) fn number(&mut self, word: &str) -> Option<u32> {
        if let Some(number) = self.known(word) {
            return Some(number);
        }
        if word.len() > MOST_WORD {
            return None;
        }
        let number = self.0.len() as u32 + 1;
        self.0.insert(word.into(), number);
        Some(number)
    }

    /// The number of a word that appeared.
    pub(super) fn known(&self, word: &str) -> Option<u32> {
        self.0.get(word).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_state_their_unit() {
        let units = |name: &str| TimeUnit::of(name).map(|unit| unit.plural);
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
                assert_eq!(units(name), Ok(unit), "{name}");
            }
        }
        for (name, end) in [("run_ticks", "ticks"), ("run_avg", "avg"), ("jobLength", "length")] {
            assert_eq!(units(name), Err(end.to_owned()), "{name}");
        }
    }

    #[test]
    fn names_on_the_command_line_are_checked() {
        assert!("user=user_ID,submit=at".parse::<ColumnNames>().is_ok());
        let error = "usr=user_ID".parse::<ColumnNames>().unwrap_err();
        assert!(error.contains("`usr`") && error.contains("lname"), "{error}");
        assert!("user".parse::<ColumnNames>().unwrap_err().contains("is not a pair"));
        let error = "user=a,submit=b,user=c".parse::<ColumnNames>().unwrap_err();
        assert!(error.contains("`user` is given twice, as `a` and `c`"), "{error}");
    }
}
