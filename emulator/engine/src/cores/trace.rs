//! Traces of bursts: the formats of their files, and their mismatches with a run.
//!
//! A file holds bursts, or samples of the slowdown of each core, which are read as bursts that last until the next
//! sample of the same core. A header line names the columns; without a header they are `unit start_s end_s slowdown`.
//! The cells of a line are separated by its commas, or else by its tabs, and may be empty. Blanks separate the cells of
//! a line without commas and tabs.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use volary_actors::base::Span;

use super::config::{BurstTrace, SHORTEST, Scope, TraceRow};
use super::profile::{AnyProcess, Bursts};
use super::{CoreTable, Profile, ProfileError};
use crate::workload::{cells, separator};

/// A mismatch between a trace of bursts and a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TraceGap {
    /// Units of the cluster that the trace does not name; they are never degraded.
    Unnamed {
        /// Kind of the units: cores, nodes or racks.
        scope: Scope,
        /// Number of units of the cluster that the trace names.
        named: u32,
        /// Number of units of the cluster.
        units: u32,
    },
    /// Units of the trace that the cluster lacks; their bursts degrade nothing.
    Absent {
        /// Kind of the units: cores, nodes or racks.
        scope: Scope,
        /// Number of units that the cluster lacks.
        absent: u32,
        /// Highest number of a unit that the cluster lacks.
        last: u32,
        /// Number of units of the cluster.
        units: u32,
    },
    /// No burst begins before the end of the run.
    Later {
        /// Start of the first burst.
        first: Span,
        /// Upper bound of the end of the run.
        run: Span,
    },
    /// The trace ends before the run does.
    Over {
        /// Start of the first burst of the trace.
        first: Span,
        /// End of the last burst of the trace.
        last: Span,
        /// The length of the run, or of the time in which jobs arrive.
        run: Span,
    },
}

/// Times from here on are assumed to count from 1970.
const EPOCH: Span = Span::from_secs(1_000_000_000);

impl fmt::Display for TraceGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interference.trace ")?;
        match *self {
            Self::Unnamed { scope, named, units } => {
                let what = scope.name();
                write!(f, "has rows of {named} of {units} {what}s; the other {what}s are never degraded")
            }
            Self::Absent { scope, absent, last, units } => write!(
                f,
                "names {} that the cluster lacks, up to number {last}; the cluster has {}, numbered from 0",
                plural(absent as usize, "unit"),
                plural(units as usize, scope.name())
            ),
            Self::Later { first, run } => {
                let clock = if first >= EPOCH { ", as by a clock that counts from 1970" } else { "" };
                write!(
                    f,
                    "begins at {first}{clock}, and the run is over by {}: no core is ever degraded; times count from \
                     the start of the run, and `offset = \"{first}\"` begins the trace there",
                    seconds(run)
                )
            }
            Self::Over { first, last, run } => write!(
                f,
                "covers {} to {} of {}: afterwards all cores are healthy; `repeat = true` starts it again",
                seconds(first),
                seconds(last),
                seconds(run)
            ),
        }
    }
}

/// A length of time, rounded to four significant digits.
fn seconds(time: Span) -> String {
    let step = 10u64.pow(time.0.max(1).ilog10().saturating_sub(3));
    let rounded = Span(time.0.saturating_add(step / 2) / step * step);
    if rounded == Span::ZERO { "0s".to_owned() } else { rounded.to_string() }
}

/// `1 core`, `2 cores`.
fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Bounds of the length of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RunLength {
    /// Lower bound of the length.
    pub least: Span,
    /// Approximate upper bound of the length.
    pub most: Span,
}

impl Profile {
    /// Mismatches between a trace of bursts and a run on these cores; empty for other processes.
    pub fn trace_gaps(&self, table: &CoreTable, run: RunLength) -> Vec<TraceGap> {
        let AnyProcess::Trace(Bursts { rows, period, spread }) = &self.process else { return Vec::new() };
        let scope = self.scope;
        let units = scope.units(table);
        let traced: BTreeSet<u32> = rows.iter().map(|row| row.unit).collect();
        let named = traced.range(..units).count() as u32;
        let (traced, last_unit) = (traced.len() as u32, traced.last().copied().unwrap_or(0));
        let unnamed =
            (named < units && spread.is_none()).then_some(TraceGap::Unnamed { scope, named, units });
        let absent = TraceGap::Absent { scope, absent: traced - named, last: last_unit, units };
        let absent = (named < traced).then_some(absent);
        let first = rows.iter().map(|row| row.start).min().unwrap_or(Span::ZERO);
        let last = rows.iter().map(|row| row.end).max().unwrap_or(Span::ZERO);
        let ends = run.least.min(Span(self.until.0));
        let time = match *period {
            _ if first >= run.most => Some(TraceGap::Later { first, run: run.most }),
            None if last < ends => Some(TraceGap::Over { first, last, run: ends }),
            None | Some(_) => None,
        };
        [unnamed, absent, time].into_iter().flatten().collect()
    }
}

impl BurstTrace {
    /// The size of the trace in words, once it is loaded: `32 units, 253 bursts, 0s to 120s`.
    pub fn describe(&self) -> String {
        let units: BTreeSet<u32> = self.rows.iter().map(|row| row.unit).collect();
        let bursts = self.rows.iter().filter(|row| row.slowdown > 1.0).count();
        let first = self.rows.iter().map(|row| row.start).min().unwrap_or(Span::ZERO);
        let last = self.rows.iter().map(|row| row.end).max().unwrap_or(Span::ZERO);
        let again = if self.repeat { ", again and again" } else { "" };
        let (units, bursts) = (plural(units.len(), "unit"), plural(bursts, "burst"));
        let first = if first == Span::ZERO { "0s".to_owned() } else { first.to_string() };
        format!("{units}, {bursts}, {first} to {last}{again}")
    }

    /// The process of the loaded trace.
    pub(super) fn process(&self) -> Bursts {
        let end = self.rows.iter().map(|row| row.end).max().filter(|_| self.repeat);
        let units = self.rows.iter().map(|row| row.unit.saturating_add(1)).max().filter(|_| self.spread);
        Bursts { rows: self.rows.clone(), period: end, spread: units }
    }

    /// Reads the file into the rows, if a file is named; sorts and checks the rows, and applies the offset.
    pub(super) fn load(
        &mut self,
        folder: &Path,
        read: impl FnOnce(&Path) -> io::Result<Arc<[u8]>>,
    ) -> Result<(), ProfileError> {
        if self.rows.is_empty() == self.file.is_none() {
            return Err(ProfileError::Keys("trace needs one of `file` and `rows`; give one".into()));
        }
        self.rows = match self.file.take() {
            None => {
                let rows = self.rows.iter().enumerate().map(|(i, &row)| (i, row)).collect();
                sorted(rows).map_err(|(i, why)| ProfileError::Keys(format!("trace row {i}: {why}")))?
            }
            Some(file) => read_file(&folder.join(file), read)?,
        };
        self.shift()?;
        let shortest = self.rows.iter().map(|row| Span(row.end.0 - row.start.0)).min();
        match shortest.filter(|&shortest| self.repeat && shortest < SHORTEST) {
            Some(shortest) => Err(ProfileError::Keys(format!(
                "a trace that repeats has a burst of {shortest}; make all last {SHORTEST} or longer"
            ))),
            None => Ok(()),
        }
    }

    /// Moves the bursts so that the offset becomes time 0, and drops bursts that have ended by then.
    fn shift(&mut self) -> Result<(), ProfileError> {
        let Some(offset) = self.offset.take() else { return Ok(()) };
        let last = self.rows.iter().map(|row| row.end).max().unwrap_or(Span::ZERO);
        self.rows.retain(|row| row.end > offset);
        if self.rows.is_empty() {
            let why = format!("the trace ends at {last}, before its `offset` of {offset}; lower `offset`");
            return Err(ProfileError::Keys(why));
        }
        for row in &mut self.rows {
            row.start = Span(row.start.0.saturating_sub(offset.0));
            row.end = Span(row.end.0 - offset.0);
        }
        Ok(())
    }
}

/// A value, and the line of a file or number of a row where it stands.
type Placed<T> = (usize, T);

fn read_file(
    path: &Path,
    read: impl FnOnce(&Path) -> io::Result<Arc<[u8]>>,
) -> Result<Vec<TraceRow>, ProfileError> {
    let name = path.display();
    let wrong = |(line, message)| ProfileError::File(format!("{name}:{line}: {message}"));
    let unreadable = |source: io::Error| ProfileError::File(format!("cannot read {name}: {source}"));
    let bytes = read(path).map_err(unreadable)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| unreadable(io::ErrorKind::InvalidData.into()))?;
    let rows = parse(text).map_err(wrong)?;
    if rows.is_empty() {
        return Err(ProfileError::File(format!("{name}: the trace lists no burst; leave interference out")));
    }
    let rows = sorted(rows).map_err(wrong)?;
    if rows.iter().all(|row| row.slowdown <= 1.0) {
        return Err(ProfileError::File(format!(
            "{name}: no row has a slowdown above 1; leave interference out"
        )));
    }
    Ok(rows)
}

/// The rows of a file, each with its line.
fn parse(text: &str) -> Result<Vec<Placed<TraceRow>>, Placed<String>> {
    let text = text.trim_start_matches('\u{feff}');
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, fields(line)));
    let is_row = |fields: &Fields<'_>| fields.iter().any(|field| !field.is_empty());
    let mut lines = lines.filter(|(_, fields)| is_row(fields)).peekable();
    let header = lines.next_if(|(_, fields)| fields.iter().all(|field| field.parse::<f64>().is_err()));
    let columns = match header {
        Some((line, names)) => BurstColumns::of(&names).map_err(|why| (line, why))?,
        None => BurstColumns::PLAIN,
    };
    match columns.times {
        TimeColumns::Burst { start, end } => {
            let row = |(line, fields): Placed<Fields<'_>>| {
                let (unit, slowdown) = columns.read(&fields)?;
                let (start, end) = (time("start_s", &fields[start])?, time("end_s", &fields[end])?);
                Ok((line, TraceRow { unit, start, end, slowdown }))
            };
            lines.map(|placed| row((placed.0, placed.1)).map_err(|why| (placed.0, why))).collect()
        }
        TimeColumns::Sample { at } => {
            let sample = |(line, fields): Placed<Fields<'_>>| {
                let (unit, slowdown) = columns.read(&fields)?;
                Ok(Sample { line, unit, at: time("time", &fields[at])?, slowdown })
            };
            let samples = lines.map(|placed| sample((placed.0, placed.1)).map_err(|why| (placed.0, why)));
            lasting(samples.collect::<Result<_, _>>()?)
        }
    }
}

/// The fields of a line.
type Fields<'a> = Vec<Cow<'a, str>>;

/// Splits a line at its commas or, without commas, at its tabs; such fields may be empty. A line without both is split
/// at blanks. `#` starts a comment.
fn fields(line: &str) -> Fields<'_> {
    let content = line.split('#').next().unwrap_or_default();
    let unquoted = |field: &'_ str| -> String { field.trim().trim_matches('"').to_owned() };
    if content.contains(',') {
        cells(content, ',').collect()
    } else if content.trim().contains('\t') {
        content.split('\t').map(|field| unquoted(field).into()).collect()
    } else {
        content.split_whitespace().map(|field| Cow::Borrowed(field.trim_matches('"'))).collect()
    }
}

/// Positions of the columns of a file.
struct BurstColumns {
    /// Whether a header line names the columns.
    header: bool,
    /// Number of columns.
    all: usize,
    unit: usize,
    slowdown: usize,
    times: TimeColumns,
}

enum TimeColumns {
    Burst { start: usize, end: usize },
    Sample { at: usize },
}

/// The columns that a header line must name.
const EXPECTED: &str =
    "`unit`, `start_s`, `end_s` and `slowdown`, or `time`, `core` and `slowdown` for samples";

impl BurstColumns {
    /// The columns of a file without a header line.
    const PLAIN: Self =
        Self { header: false, all: 4, unit: 0, slowdown: 3, times: TimeColumns::Burst { start: 1, end: 2 } };

    /// The columns that a header line names; further columns are not read.
    fn of(names: &[Cow<'_, str>]) -> Result<Self, String> {
        let find = |known: &[&str]| {
            let mut found = (0..names.len()).filter(|&i| known.contains(&names[i].to_lowercase().as_str()));
            match (found.next(), found.next()) {
                (Some(first), Some(second)) => Err(format!(
                    "the header names `{}` and `{}`, which mean the same; keep one",
                    names[first], names[second]
                )),
                (first, _) => Ok(first),
            }
        };
        let (unit, slowdown) = (find(&["unit", "core", "node", "rack"])?, find(&["slowdown", "factor"])?);
        let (start, end) = (find(&["start", "start_s"])?, find(&["end", "end_s"])?);
        let times = match (start, end, find(&["time", "time_s"])?) {
            (Some(start), Some(end), None) => Some(TimeColumns::Burst { start, end }),
            (None, None, Some(at)) => Some(TimeColumns::Sample { at }),
            _ => None,
        };
        let (Some(unit), Some(slowdown), Some(times)) = (unit, slowdown, times) else {
            let names = names.join("`, `");
            let separated = separated(&names).unwrap_or_default();
            return Err(format!(
                "the header names the columns `{names}`; it needs {EXPECTED}, all times in seconds{separated}"
            ));
        };
        Ok(Self { header: true, all: names.len(), unit, slowdown, times })
    }

    /// Unit and slowdown of a line, after a check that it has all columns.
    fn read(&self, fields: &[Cow<'_, str>]) -> Result<(u32, f64), String> {
        if fields.len() != self.all {
            let found = fields.len();
            let separated = separated(&fields.join(" ")).unwrap_or_default();
            return Err(match self.header {
                true => {
                    format!("expected {} fields as in the header, found {found} fields{separated}", self.all)
                }
                false => format!(
                    "expected `unit start_s end_s slowdown`, found {found} fields; samples need a header line, such \
                     as `time,core,slowdown`{separated}"
                ),
            });
        }
        let unit = &*fields[self.unit];
        if unit.is_empty() {
            return Err("the cell of the unit is empty; write its number, counted from zero".to_owned());
        }
        let unit = unit.parse().map_err(|_| format!("unit `{unit}` is not a number counted from zero"))?;
        Ok((unit, number("slowdown", &fields[self.slowdown])?))
    }
}

/// The remedy for a line with an unknown separator.
fn separated(line: &str) -> Option<String> {
    let (_, name) = Some(separator(line)).filter(|(separator, _)| [';', '|'].contains(separator))?;
    Some(format!("; separate cells by commas, tabs or blanks, not by {name}"))
}

fn number(name: &str, text: &str) -> Result<f64, String> {
    if text.is_empty() {
        return Err(format!("the cell of the {name} is empty; write a number"));
    }
    let value = text.parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0);
    value.ok_or_else(|| format!("{name} `{text}` is not a number of at least zero"))
}

fn time(name: &str, text: &str) -> Result<Span, String> {
    Ok(Span::from_secs_f64(number(name, text)?))
}

/// A measurement of the slowdown of a unit.
#[derive(Clone, Copy)]
struct Sample {
    line: usize,
    unit: u32,
    at: Span,
    slowdown: f64,
}

/// Turns samples into rows that last until the next sample of their unit; the last sample only ends the row before it.
/// Equal samples in a row become one row. Samples below 1 are raised to 1, since a healthy core may measure less.
fn lasting(mut samples: Vec<Sample>) -> Result<Vec<Placed<TraceRow>>, Placed<String>> {
    samples.sort_by_key(|sample| (sample.unit, sample.at));
    let mut rows: Vec<Placed<TraceRow>> = Vec::new();
    for of_unit in samples.chunk_by(|a, b| a.unit == b.unit) {
        if let [Sample { line, unit, .. }] = of_unit {
            let why = "has one sample, and a sample lasts until the next sample of its unit; add a sample \
                       at its end";
            return Err((*line, format!("unit {unit} {why}")));
        }
        for pair in of_unit.windows(2) {
            let [Sample { line, unit, at: start, slowdown }, Sample { line: other, at: end, .. }] =
                [pair[0], pair[1]];
            if slowdown <= 0.0 {
                return Err((
                    line,
                    "the slowdown must be above 0; write 1 for a healthy core, 2 for half its speed".into(),
                ));
            }
            if start == end {
                return Err((
                    other,
                    format!("unit {unit} has a sample at {start} already, in line {line}; keep one"),
                ));
            }
            let slowdown = slowdown.max(1.0);
            match rows.last_mut() {
                Some((_, last)) if (last.unit, last.end, last.slowdown) == (unit, start, slowdown) => {
                    last.end = end
                }
                _ => rows.push((line, TraceRow { unit, start, end, slowdown })),
            }
        }
    }
    Ok(rows)
}

/// Sorts rows, each with its position, by unit and time; on failure returns the position of the faulty row and the
/// reason.
fn sorted(mut rows: Vec<Placed<TraceRow>>) -> Result<Vec<TraceRow>, Placed<String>> {
    for &(place, row) in &rows {
        if row.start >= row.end {
            return Err((
                place,
                format!("the burst ends at {}, not after its start at {}", row.end, row.start),
            ));
        }
        if !(row.slowdown.is_finite() && row.slowdown >= 1.0) {
            let why = format!("slowdown {} is below 1 and would speed the core up", row.slowdown);
            return Err((place, why));
        }
    }
    rows.sort_by_key(|(_, row)| (row.unit, row.start));
    for pair in rows.windows(2) {
        let [(first, before), (second, after)] = [pair[0], pair[1]];
        if before.unit == after.unit && after.start < before.end {
            let why = format!(
                "the burst starts before the end of the burst in line or row {first} of the same unit"
            );
            return Err((second, why));
        }
    }
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::Interference;

    fn table(trace: BurstTrace) -> Interference {
        Interference { trace: Some(trace), ..Interference::default() }
    }

    fn load(text: &str, trace: BurstTrace) -> Result<Profile, String> {
        let trace = BurstTrace { file: Some("b.csv".into()), ..trace };
        table(trace).load(Path::new(""), |_| Ok(text.as_bytes().into())).map_err(|error| error.to_string())
    }

    /// Unit, start, end and slowdown of the rows, in seconds.
    fn rows(profile: &Profile) -> Vec<(u32, f64, f64, f64)> {
        let rows = &profile.table.trace.as_ref().unwrap().rows;
        rows.iter()
            .map(|row| (row.unit, row.start.as_secs_f64(), row.end.as_secs_f64(), row.slowdown))
            .collect()
    }

    #[test]
    fn a_header_line_names_the_columns_of_bursts_or_samples() {
        let bursts = [(0, 2.0, 3.0, 4.5), (1, 0.5, 1.5, 2.0)];
        for text in [
            "\u{feff}core,start_s,end_s,slowdown\n1,0.5,1.5,2\n0,2,3,4.5\n",
            "# measured\n\"Slowdown\" host unit end start\n2 h1 1 1.5 0.5\n4.5 h1 0 3 2\n",
        ] {
            assert_eq!(rows(&load(text, BurstTrace::default()).unwrap()), bursts, "{text}");
        }
        let text = "time,core,slowdown\n0,1,1\n0,0,3\n1,0,3\n2,0,0.98\n3,0,7\n0.5,1,2\n1.5,1,9\n";
        let samples = load(text, BurstTrace::default()).unwrap();
        let lasting = [(0, 0.0, 2.0, 3.0), (0, 2.0, 3.0, 1.0), (1, 0.0, 0.5, 1.0), (1, 0.5, 1.5, 2.0)];
        assert_eq!(rows(&samples), lasting);
        assert_eq!(samples.table.trace.unwrap().describe(), "2 units, 2 bursts, 0s to 3s");
    }

    /// Inventories have empty cells, and names with blanks.
    #[test]
    fn an_empty_cell_or_a_blank_within_a_cell_shifts_no_column() {
        let burst = [(0, 1.0, 4.0, 2.0)];
        for text in [
            "host,core,vms,start_s,end_s,slowdown\nnode 1,0,,1,4,2\n",
            "host\tcore\tvms\tstart_s\tend_s\tslowdown\nnode 1\t0\t\t1\t4\t2\n",
            "host, core, vms, start_s, end_s, slowdown\n\"rack 3, node 1\", 0,, 1, 4, 2 # measured\n,,,,,\n",
            "core,start_s,end_s,slowdown,\n0,1,4,2,\n",
            "\"core\"\t\"start_s\"\t\"end_s\"\t\"slowdown\"\n0\t1\t4\t2\n",
            "0 1 4  2\n",
        ] {
            assert_eq!(rows(&load(text, BurstTrace::default()).unwrap()), burst, "{text}");
        }
    }

    #[test]
    fn errors_of_traces_name_the_line_and_the_remedy() {
        for (text, place, words) in [
            ("core,begin,end_s,slowdown\n0,1,2,2\n", "b.csv:1:", "it needs `unit`, `start_s`"),
            ("time,start,end,core,slowdown\n", "b.csv:1:", "it needs `unit`, `start_s`"),
            ("core,node,start,end,slowdown\n", "b.csv:1:", "`core` and `node`, which mean the same"),
            ("time,core,slowdown\n0,0,2\n1,0\n", "b.csv:3:", "expected 3 fields as in the header, found 2"),
            ("0,0,2\n1,0,2\n", "b.csv:1:", "samples need a header line"),
            ("time,core,slowdown\n0,0,2\n1,0,1\n\n0,3,2\n", "b.csv:5:", "unit 3 has one sample"),
            ("time,core,slowdown\n0,0,2\n1,0,1\n1,0,2\n2,0,1\n", "b.csv:4:", "at 1s already, in line 3"),
            ("time,core,slowdown\n0,0,0\n1,0,1\n", "b.csv:2:", "must be above 0; write 1 for a healthy core"),
            ("time,core,slowdown\nx,0,0\n", "b.csv:2:", "time `x`"),
            ("time,core,slowdown\n", "b.csv:", "lists no burst"),
            ("unit,start_s,end_s,slowdown\n0,1,,2\n", "b.csv:2:", "the cell of the end_s is empty"),
            ("unit,start_s,end_s,slowdown\n,1,2,2\n", "b.csv:2:", "the cell of the unit is empty"),
            ("0,1,2\t2\n", "b.csv:1:", "found 3 fields"),
            ("0;1;2;2\n", "b.csv:1:", "separate cells by commas, tabs or blanks, not by `;`"),
            ("unit|start_s|end_s|slowdown\n", "b.csv:1:", "not by `|`"),
            ("0 0 1 1\n0 2 3 1\n", "b.csv:", "no row has a slowdown above 1"),
        ] {
            let error = load(text, BurstTrace::default()).unwrap_err();
            assert!(error.contains(place) && error.contains(words), "{text}: {error}");
        }
        let late = BurstTrace { offset: Some(Span::from_secs(9)), ..BurstTrace::default() };
        assert!(load("0 1 2 2\n", late).unwrap_err().contains("ends at 2s, before its `offset` of 9s"));
        let often = BurstTrace { repeat: true, ..BurstTrace::default() };
        assert!(load("0 0 1e-8 2\n", often).unwrap_err().contains("make all last 1us or longer"));
    }

    #[test]
    fn a_trace_begins_at_its_offset_and_repeats() {
        let trace = BurstTrace { offset: Some(Span::from_secs(100)), repeat: true, ..BurstTrace::default() };
        let profile = load("0 90 99 2\n0 99 101 2\n0 102 103 4\n1 103 104 3\n", trace).unwrap();
        assert_eq!(rows(&profile), [(0, 0.0, 1.0, 2.0), (0, 2.0, 3.0, 4.0), (1, 3.0, 4.0, 3.0)]);
        assert_eq!(
            profile.clone().table.resolve().unwrap(),
            profile,
            "the loaded table needs no file and no offset"
        );
        let cores = crate::cores::Cores::new(
            Some(&profile),
            CoreTable::equal(3, 1),
            volary_netem::Windows::default(),
            1,
        );
        let bursts = |core| {
            let bursts =
                cores.bursts(core, volary_actors::base::Time::ZERO, volary_actors::base::Time(9_000_000_000));
            bursts
                .map(|burst| (burst.start.as_secs_f64(), burst.end.as_secs_f64(), burst.slowdown))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            bursts(0),
            [(0.0, 1.0, 2.0), (2.0, 3.0, 4.0), (4.0, 5.0, 2.0), (6.0, 7.0, 4.0), (8.0, 9.0, 2.0)]
        );
        assert_eq!(bursts(1), [(3.0, 4.0, 3.0), (7.0, 8.0, 3.0)]);
        assert_eq!(bursts(2), []);
    }

    #[test]
    fn mismatches_of_a_trace_are_reported_with_numbers() {
        let gaps = |text: &str, repeat: bool, cores: u32, seconds: f64| {
            let trace = BurstTrace { repeat, ..BurstTrace::default() };
            let run = Span::from_secs_f64(seconds);
            let gaps = load(text, trace)
                .unwrap()
                .trace_gaps(&CoreTable::equal(cores, 1), RunLength { least: run, most: run });
            gaps.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let text = "0 0 60 2\n1 110 120 2\n";
        assert_eq!(gaps(text, false, 2, 120.0), [""; 0]);
        assert_eq!(
            gaps(text, false, 64, 654.321),
            [
                "interference.trace has rows of 2 of 64 cores; the other cores are never degraded",
                "interference.trace covers 0s to 120s of 654.3s: afterwards all cores are healthy; `repeat = true` \
                 starts it again"
            ]
        );
        assert_eq!(gaps(text, true, 2, 654.0), [""; 0]);
        assert_eq!(
            gaps(text, true, 1, 9.0),
            [
                "interference.trace names 1 unit that the cluster lacks, up to number 1; the cluster has 1 core, \
                 numbered from 0"
            ]
        );
        let epoch = gaps("0 1700000000 1700000060 2\n", false, 1, 99.0);
        assert_eq!(
            epoch,
            [
                "interference.trace begins at 1700000000s, as by a clock that counts from 1970, and the run is over \
                 by 99s: no core is ever degraded; times count from the start of the run, and \
                 `offset = \"1700000000s\"` begins the trace there"
            ]
        );
    }
}
