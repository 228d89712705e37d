//! Tables: their headers, the cells of their rows, and the numbering of their words. The rows of a table are lines of
//! cells below a header, or JSON objects, a line each.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use volary_actors::base::{Feature, Span};

use super::columns::{Column, ColumnNames, ColumnSet, Meaning, Named, SECOND_CHOICE, known_names, meaning};
use super::dependencies;
use super::lines::{At, TraceLine, cells, separator, short};
use super::sets;
use super::time::{Instant, SECONDS, Zone, instant, length};
use crate::workload::details::{Details, Outcome};
use crate::workload::graph::StageGraph;
use crate::workload::trace::{Trace, WorkloadError};

/// Cores of the largest machine, to which capacities in Google's trace are relative. The most frequent machine has half
/// of that capacity, in two sockets of four cores (Park's thesis, section 2.4.1).
pub(super) const CORES_OF_GOOGLE_MACHINE: f32 = 16.0;
/// Memory of the largest machine, GiB. It is not published; 4 GiB per core are assumed.
pub(super) const GIB_OF_GOOGLE_MACHINE: f32 = 64.0;

/// Limit on the columns of a file, because a compressed header of commas must not fill the memory.
const MOST_COLUMNS: usize = 4096;

/// The header of a table.
pub(super) struct Header {
    columns: Vec<Column>,
    /// Number of columns of the file.
    width: usize,
    /// Separator of the cells of a row, with its name; `None` if rows are JSON objects.
    separator: Option<(char, &'static str)>,
    /// The names as the file has them, for errors.
    names: String,
    /// Whether this is the header of the job table derived from Google's trace.
    is_google: bool,
    /// The known table whose columns these are.
    set: Option<&'static ColumnSet>,
    zone: Option<Zone>,
    /// Names of columns that would be read, but that the first JSON object lacks.
    absent: Vec<String>,
}

impl Header {
    /// The columns of a header, as named by `names`, by a known table, or by the known headings. Dates without a zone
    /// are in `zone`.
    pub(super) fn new(
        line: TraceLine<'_>,
        names: Option<&ColumnNames>,
        zone: Option<Zone>,
    ) -> Result<Self, WorkloadError> {
        if line.text == "["
            || line.text.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with('{'))
        {
            let why = "begins a JSON array, but a table in JSON has one object in each line";
            return Err(line.at.wrong(format!("{why}; `jq -c .[]` writes those of an array")));
        }
        let separator = (!line.text.starts_with('{')).then(|| separator(line.text));
        let cells: Vec<String> = match separator {
            Some((by, _)) => cells(line.text, by).take(MOST_COLUMNS + 1).map(Cow::into_owned).collect(),
            None => object(line)?.into_iter().map(|(key, _)| key).collect(),
        };
        if cells.len() > MOST_COLUMNS {
            return Err(line.at.wrong(format!("the header has more than {MOST_COLUMNS} columns")));
        }
        let all = cells.join(", ");
        let column = |meaning, index: usize| Column::new(meaning, index, &cells[index]);
        let of_set = if names.is_none() { sets::of_header(&cells) } else { None };
        let names_of_columns = names.or(of_set.as_ref());
        let mut columns: Vec<Column> = Vec::new();
        if let Some(names) = names_of_columns {
            for named in &names.named {
                let is_new = columns.iter().all(|column| column.meaning != named.meaning);
                if is_new && (!named.is_optional || named.is_in(&cells)) {
                    columns.push(named_column(line, &cells, named)?);
                }
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
        let is_google = names_of_columns.is_none() && is_google(&cells);
        let set = names_of_columns.and_then(|names| names.set);
        let mut absent = match names_of_columns {
            _ if separator.is_some() => Vec::new(),
            Some(names) => names.named.iter().map(|named| named.column.clone()).collect(),
            None => known_names().map(str::to_owned).collect(),
        };
        absent.retain(|name| !cells.contains(name));
        Ok(Self { columns, width: cells.len(), separator, names: brief(&all), is_google, set, zone, absent })
    }

    /// Whether rows are JSON objects, so that the first line is a row too.
    pub(super) const fn is_json(&self) -> bool {
        self.separator.is_none()
    }

    /// The zone of dates that state none.
    pub(super) const fn zone(&self) -> Option<Zone> {
        self.zone
    }

    /// Remarks about how the table is read: its kind, separators, long units.
    pub(super) fn remarks(&self) -> impl Iterator<Item = String> {
        let set = self.set.map(|set| {
            let assumed = if set.note.is_empty() { String::new() } else { format!("; {}", set.note) };
            format!("the columns are those of `{}`{assumed}", set.name)
        });
        let other = self.separator.filter(|(by, _)| *by != ',' && self.width > 1);
        let separated = other.map(|(_, name)| format!("cells are separated by {name}"));
        [set, separated, self.long_units()].into_iter().flatten()
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
        let no_feature = [Meaning::Line, Meaning::Job, Meaning::Task, Meaning::After];
        self.columns.iter().all(|column| no_feature.contains(&column.meaning))
    }

    /// The names as the file has them.
    pub(super) fn names(&self) -> &str {
        &self.names
    }

    /// The columns of times that are read in minutes, hours or days, for a remark, because `min` can also mean minimum.
    fn long_units(&self) -> Option<String> {
        let read = |column: &Column| {
            let unit =
                column.unit.as_ref().ok().filter(|unit| column.meaning.is_time() && unit.ns > SECONDS.ns)?;
            Some(format!("`{}` in {}", short(&column.name), unit.plural))
        };
        let read: Vec<_> = self.columns.iter().filter_map(read).collect();
        (!read.is_empty())
            .then(|| format!("numbers are read by the units of their columns: {}", read.join(", ")))
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
        let Some((separator, name)) = self.separator else {
            let mut object = object(line)?;
            if let Some(key) = self.absent.iter().find(|key| object.contains_key(*key)) {
                let why = "which the first object lacks; add it there, null if unknown, to make it a column";
                return Err(line.at.wrong(format!("has the key `{}`, {why}", short(key))));
            }
            for (text, column) in texts.iter_mut().zip(&self.columns) {
                let Some(value) = object.get_mut(&column.name) else { continue };
                let cell = json_cell(value).ok_or_else(|| {
                    let why = "is an object or a list of such; write a text, a number, or a list of them";
                    line.at.field(column.index + 1, &column.name, why)
                })?;
                *text = cell.into();
            }
            return Ok(TableRow { at: line.at, header: self, texts });
        };
        let mut count = 0;
        for (index, cell) in cells(line.text, separator).enumerate() {
            count = index + 1;
            if index >= self.width && !cell.is_empty() {
                let width = self.width;
                let why = format!("put quotes around a cell that holds {name}");
                return Err(line.at.wrong(format!("has more than the {width} fields of the header; {why}")));
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

/// Whether these are the headings of the table of jobs derived from Google's trace.
fn is_google(cells: &[String]) -> bool {
    let has = |names: &[&str]| cells.iter().any(|cell| names.contains(&cell.as_str()));
    has(&["submit_ms"])
        && has(&["run_ms"])
        && has(&["delay_ms", "sched_delay_ms"])
        && has(&["class", "sched_class"])
}

/// The keys and values of a row that is a JSON object.
fn object(line: TraceLine<'_>) -> Result<Map<String, Value>, WorkloadError> {
    serde_json::from_str(line.text).map_err(|error| {
        let why = "a table in JSON has one object in each line; `jq -c .[]` writes those of an array";
        line.at.wrong(format!("is not a JSON object ({error}); {why}"))
    })
}

/// The text of a value. Elements of a list are separated by spaces. `None` for objects, and for lists in lists.
fn json_cell(value: &mut Value) -> Option<String> {
    Some(match value {
        Value::String(text) => std::mem::take(text),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null => String::new(),
        Value::Array(list) if !list.iter().any(Value::is_array) => {
            list.iter_mut().map(json_cell).collect::<Option<Vec<_>>>()?.join(" ")
        }
        Value::Array(_) | Value::Object(_) => return None,
    })
}

/// The column that a pair of `--columns` names.
fn named_column(line: TraceLine<'_>, cells: &[String], named: &Named) -> Result<Column, WorkloadError> {
    let (meaning, name) = (named.meaning, &*named.column);
    let stated = name.rsplit_once(':').filter(|(column, _)| {
        let is_cell = |name: &str| cells.iter().any(|cell| cell == name);
        !is_cell(name) && is_cell(column.trim_end())
    });
    let Some((name, unit)) = stated.map(|(name, unit)| (name.trim_end(), unit.trim())) else {
        return Ok(Column::new(meaning, position(line, cells, name)?, name));
    };
    let mut column = Column::new(meaning, position(line, cells, name)?, name);
    if column.set_unit(unit) {
        return Ok(column);
    }
    let (word, name, unit, units) = (meaning.name(), short(name), short(unit), units(meaning));
    Err(line.at.wrong(format!("--columns {word}={name}:{unit}: `{unit}` is not a unit of `{word}`; {units}")))
}

/// The units of columns of a meaning, for errors.
fn units(meaning: Meaning) -> &'static str {
    if meaning.is_time() {
        "units of times are s, ms, us, ns, min, h, d and lengths such as 30ms"
    } else if meaning == Meaning::Memory {
        "units are bytes, kib, mib, gib, tib, kb, mb, gb, tb, for each task mib/task"
    } else if matches!(meaning, Meaning::Cores | Meaning::Gpus) {
        "units are milli and percent, for each task percent/task"
    } else {
        "leave it out"
    }
}

/// The position of the only column of that name.
fn position(line: TraceLine<'_>, cells: &[String], name: &str) -> Result<usize, WorkloadError> {
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
        "fields {one} and {other} both give the `{name}` of a job; rename the one that should not be read, \
         or say which column to use: `volary trace convert --columns`, with {name}=COLUMN"
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

/// Whether a cell stands for unknown: blank, −1 or a word for nothing.
fn is_unknown(text: &str) -> bool {
    const UNKNOWN: [&str; 7] = ["unknown", "none", "null", "nan", "nat", "n/a", "\\n"];
    text.is_empty() || text.parse() == Ok(-1.0) || UNKNOWN.iter().any(|word| text.eq_ignore_ascii_case(word))
}

impl TableRow<'_> {
    /// The column of a meaning and its text; `None` if the text stands for unknown: blank, −1 or a word for nothing.
    fn cell(&self, meaning: Meaning) -> Option<(&Column, &str)> {
        let at = self.header.columns.iter().position(|column| column.meaning == meaning)?;
        let text: &str = &self.texts[at];
        let is_known = !text.is_empty() && (meaning == Meaning::Outcome || !is_unknown(text));
        is_known.then_some((&self.header.columns[at], text))
    }

    /// A length of time: a number, or a clock such as `1-06:53:00`.
    pub(super) fn span(&self, meaning: Meaning) -> Result<Option<Span>, WorkloadError> {
        let Some((column, text)) = self.cell(meaning) else { return Ok(None) };
        match length(text) {
            Some(seconds) => Ok(Some(Span::from_secs(seconds))),
            None => self.number(column, text).map(|ns| Some(Span(ns))),
        }
    }

    /// A point of time: a number, or a date with a zone.
    pub(super) fn instant(&self, meaning: Meaning) -> Result<Option<Instant>, WorkloadError> {
        let Some((column, text)) = self.cell(meaning) else { return Ok(None) };
        let is_date = text.contains(':') || text.matches('-').count() > 1;
        if !is_date {
            let ns = self.number(column, text)?;
            return Ok(Some(Instant { ns, zone: None, is_assumed: false, second_ns: None }));
        }
        let wrong = |why: String| self.wrong(column, &format!("`{}` {why}", short(text)));
        instant(text, self.header.zone).map(Some).map_err(wrong)
    }

    /// Whether the job arrived before the start of the trace, which some tables state by a negative time.
    pub(super) fn is_earlier(&self) -> bool {
        let is_negative = |text: &str| text.parse().is_ok_and(|number: f64| number < 0.0);
        self.header.set.is_some_and(|set| set.begins_earlier)
            && self.cell(Meaning::Submit).is_some_and(|(_, text)| is_negative(text))
    }

    /// Whether the row is a step of a job of another row, as SLURM's accounting has them.
    pub(super) fn is_step(&self) -> bool {
        self.header.set.is_some_and(|set| set.name == "sacct")
            && self.cell(Meaning::Job).is_some_and(|(_, text)| text.contains('.'))
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

    /// The name of a job or a task, by its number in `words`.
    pub(super) fn word(&self, meaning: Meaning, words: &mut WordNumbers) -> Result<u32, WorkloadError> {
        let Some((column, text)) = self.cell(meaning) else {
            let why = "blank, so that no task can wait for others by their names; name the job and the task";
            return Err(self.at.wrong(format!("the {} of the row is {why}", meaning.name())));
        };
        words.number(text).ok_or_else(|| self.wrong(column, TOO_LONG))
    }

    /// The names of the tasks that the task of the row waits for, separated by white space, `;`, `|` or `,`.
    pub(super) fn awaited(&self, words: &mut WordNumbers) -> Result<Vec<u32>, WorkloadError> {
        let Some((column, text)) = self.cell(Meaning::After) else { return Ok(Vec::new()) };
        let names =
            text.split(|c: char| c.is_whitespace() || ";|,".contains(c)).filter(|name| !name.is_empty());
        let mut awaited = Vec::new();
        for name in names {
            let number = words.number(name).ok_or_else(|| self.wrong(column, TOO_LONG))?;
            if awaited.contains(&number) {
                let why = format!("`{}` is named twice; name it once", short(name));
                return Err(self.wrong(column, &why));
            }
            awaited.push(number);
        }
        Ok(awaited)
    }

    /// The stages of the row's job, which has this number of tasks; `None` if no stage waits for another.
    pub(super) fn stages(&self, tasks: u32) -> Result<Option<(StageGraph, Vec<u32>)>, WorkloadError> {
        let Some((column, text)) = self.cell(Meaning::Stages) else { return Ok(None) };
        let (graph, sizes) = dependencies::parse(text, tasks).map_err(|why| self.wrong(column, &why))?;
        Ok(graph.has_links().then_some((graph, sizes)))
    }

    /// Features, outcome, cores and memory; `tasks` is the number of tasks that share them.
    pub(super) fn details(&self, words: &mut Words, tasks: u32) -> Result<Details, WorkloadError> {
        let mut details = Details { outcome: self.outcome()?, ..Details::default() };
        for (at, feature) in self.header.features() {
            let text: &str = &self.texts[at];
            if !is_unknown(text) {
                details.features[feature.index()] =
                    self.feature(&self.header.columns[at], feature, text, words)?;
            }
        }
        let google = |meaning, capacity: f32| {
            Ok::<_, WorkloadError>(self.decimal(meaning)?.map(|share| share * capacity * tasks as f32))
        };
        let amount = |meaning| self.amount(meaning, tasks);
        details.cores = amount(Meaning::Cores)?.or(google(Meaning::GoogleCpu, CORES_OF_GOOGLE_MACHINE)?);
        details.memory = amount(Meaning::Memory)?.or(google(Meaning::GoogleMemory, GIB_OF_GOOGLE_MACHINE)?);
        details.gpus = amount(Meaning::Gpus)?;
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

    /// Cores, GPUs or GiB of all tasks of the job together.
    pub(super) fn amount(&self, meaning: Meaning, tasks: u32) -> Result<Option<f32>, WorkloadError> {
        let Some((column, _)) = self.cell(meaning) else { return Ok(None) };
        let scale = *column.scale.as_ref().map_err(|end| {
            let (name, meaning) = (short(&column.name), column.meaning.name());
            let why = format!(
                "its name ends in `{end}`, which is not the name of a known unit; {}",
                units(column.meaning)
            );
            self.wrong(column, &format!("{why}; state the unit: `--columns` with {meaning}={name}:UNIT"))
        })?;
        let factor = if column.is_each { scale * f64::from(tasks) } else { scale };
        Ok(self.decimal(meaning)?.map(|number| (f64::from(number) * factor) as f32))
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
                "its name ends in `{end}`, which is not a known unit of time (s, ms, us, ns, min, h, d); state the \
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

    /// Stores the words in the trace, except names of jobs, because there may be one for each job.
    pub(super) fn keep(self, trace: &mut Trace) {
        for (feature, words) in Feature::ALL.into_iter().zip(self.0) {
            if !words.0.is_empty() && !matches!(feature, Feature::Name | Feature::LogicalName) {
                let mut numbered: Vec<(Box<str>, u32)> = words.0.into_iter().collect();
                numbered.sort_unstable_by_key(|(_, number)| *number);
                trace.keep_words(feature, numbered.into_iter().map(|(word, _)| word).collect());
            }
        }
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

    /// The word of a number; empty if there is none.
    pub(super) fn word(&self, number: u32) -> &str {
        self.0.iter().find(|(_, known)| **known == number).map_or("", |(word, _)| word)
    }

    /// The number of a word that appeared.
    pub(super) fn known(&self, word: &str) -> Option<u32> {
        self.0.get(word).copied()
    }
}
