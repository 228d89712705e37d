//! Standard Workload Format: 18 columns, comments and header after `;`.
//!
//! A job is rigid: its fan-out is the number of processors it used, or else requested, and each task takes the job's
//! run time. Rows that describe no complete execution are skipped and counted: jobs that were cancelled before they
//! ran, jobs whose submit time, run time or processors are unknown (−1), and the partial executions (status 2 to 4)
//! that the format lists below the summary line of a checkpointed job. A job that was cancelled while it ran was
//! killed. User, group, program, queue or partition, and requested time are features; a group is a class. Submit times
//! count from `UnixStartTime` of the header; with `TimeZoneString`, or `TimeZone` in seconds east of Greenwich, they
//! are dates. A note states how many rows have more than the 18 fields.

use volary_actors::base::{Feature, Span, Time};

use super::super::trace::{MOST_TASKS, Trace};
use super::lines::{self, BadRows, Lines, Skipped, TraceLine, short};
use super::table::{TOO_LONG, Words};
use super::time::Zone;
use crate::workload::details::{Details, Outcome};
use crate::workload::trace::WorkloadError;

const COLUMNS: usize = 18;
/// The column of waits.
const WAIT: usize = 3;

/// The columns that are used; −1 if unknown.
struct Row {
    submit: f64,
    wait: f64,
    run: f64,
    processors: i64,
    requested: i64,
    /// Run time that the user requested, s.
    limit: f64,
    status: i64,
    /// Values of features; zero if unknown.
    features: [u32; Feature::ALL.len()],
}

impl Row {
    /// The number of processors that the job used or, if unknown, requested.
    const fn tasks(&self) -> i64 {
        if self.processors > 0 { self.processors } else { self.requested }
    }
}

/// Columns of features, with their names. The first known column of a feature is used.
const FEATURES: [(usize, &str, Feature); 6] = [
    (9, "requested time", Feature::Requested),
    (12, "user", Feature::User),
    (13, "group", Feature::Class),
    (14, "application", Feature::Application),
    (15, "queue", Feature::Queue),
    (16, "partition", Feature::Queue),
];

/// Reads up to `limit` jobs.
pub(super) fn read(
    lines: &mut Lines<'_>,
    trace: &mut Trace,
    limit: usize,
    zone: Option<Zone>,
    bad: &mut BadRows,
) -> Result<Skipped, WorkloadError> {
    let (mut skipped, mut words) = (Skipped::default(), Words::default());
    let mut clock = HeaderClock::default();
    let (mut start, mut extra) = (None, ExtraFields::default());
    while trace.jobs().len() < limit {
        let Some(line) = lines.next_row_with_comments(';', |said| clock.note(said))? else { break };
        if start.is_none() && extra.is_header(line) {
            continue;
        }
        let start = *start.get_or_insert_with(|| clock.start(zone));
        let Some(row) = bad.row(row(line, &mut words, &mut extra))? else { continue };
        let reason = match row.status {
            5 if row.run <= 0.0 => Some("cancelled before they ran"),
            2..=4 => Some("partial executions of a job listed above"),
            _ if row.submit < 0.0 => Some("without a submit time"),
            _ if row.run < 0.0 => Some("without a run time"),
            _ if row.tasks() < 1 => Some("without a number of processors"),
            _ => None,
        };
        if let Some(reason) = reason {
            skipped.count(reason);
            continue;
        }
        let tasks = row.tasks() as u32;
        let arrival = Time(Span::from_secs_f64(row.submit).0.saturating_add(start.0));
        trace.push_rigid(arrival, Span::from_secs_f64(row.run), tasks);
        let details = Details {
            features: row.features,
            wait: (row.wait >= 0.0).then(|| Span::from_secs_f64(row.wait)),
            requested: (row.limit > 0.0).then(|| Span::from_secs_f64(row.limit)),
            outcome: match row.status {
                0 => Some(Outcome::Failed),
                1 => Some(Outcome::Finished),
                5 => Some(Outcome::Killed),
                _ => None,
            },
            cores: Some(tasks as f32),
            ..Details::default()
        };
        trace.detail(trace.jobs().len() - 1, &details);
    }
    if let (Some(name), None, None) = (&clock.unknown, clock.named, zone) {
        let why = "is not a name of the IANA database, such as Europe/Stockholm, and is not used; --zone states the zone";
        trace.note(format!("the TimeZoneString `{name}` of the header {why}"));
    }
    match start.and_then(|(_, zone)| zone) {
        Some(zone) => trace.mark_dated(zone),
        None if clock.unix.is_some() => trace.note(
            "UnixStartTime is not used, since the header has no known TimeZoneString: hours count from the first second of the \
             file; --zone Europe/Stockholm, in an experiment `workload.trace.zone`, makes them hours of the day"
                .into(),
        ),
        None => {
            let why = "the header has no UnixStartTime, so that times are no dates";
            zone.into_iter().for_each(|zone| trace.note(format!("the zone {zone} is not used: {why}")));
        }
    }
    extra.note().into_iter().for_each(|note| trace.note(note));
    words.keep(trace);
    Ok(skipped)
}

/// Fields behind the 18 of the format, which are not read.
#[derive(Default)]
struct ExtraFields {
    /// Names of all fields, if the first row has them.
    names: Vec<String>,
    /// Largest number of fields of a row.
    most: usize,
    /// Number of rows with extra fields, and the extra fields of the first such row.
    rows: u64,
    first: Vec<String>,
}

impl ExtraFields {
    /// Number of fields that the note quotes.
    const TOLD: usize = 10;

    /// Whether a line has names of fields in place of numbers.
    fn is_header(&mut self, line: TraceLine<'_>) -> bool {
        let mut fields = line.text.split_ascii_whitespace();
        let is_header = fields.clone().count() >= COLUMNS
            && fields.all(|field| field.starts_with(|c: char| c.is_ascii_alphabetic()));
        if is_header {
            self.names = line.text.split_ascii_whitespace().map(short).collect();
        }
        is_header
    }

    /// A remark that names the fields.
    fn note(self) -> Option<String> {
        let Self { names, most, rows, first } = self;
        let which = match names.get(COLUMNS..) {
            Some(names) if !names.is_empty() => names[..names.len().min(Self::TOLD)].join(", "),
            _ => format!("in the first such row {}", first.join(" ")),
        };
        let told = "rows with fields behind the 18 of the format, which are not read";
        (rows > 0).then(|| format!("{told}: {rows}, with up to {most} fields ({which})"))
    }
}

/// The clock of submit times, as the header states it.
#[derive(Default)]
struct HeaderClock {
    /// Unix time of second zero of the file.
    unix: Option<i64>,
    /// Time zone of the file, in seconds east of Greenwich.
    zone: Option<i64>,
    /// Time zone of the file by its name, which the format prefers.
    named: Option<Zone>,
    /// A name of a zone that is not known.
    unknown: Option<String>,
}

impl HeaderClock {
    /// Reads a comment such as `UnixStartTime: 1038088800`.
    fn note(&mut self, said: &str) {
        let Some((name, value)) = said.split_once(':') else { return };
        let number = || value.split_whitespace().next()?.parse::<i64>().ok();
        match name.trim().to_ascii_lowercase().as_str() {
            "unixstarttime" => self.unix = self.unix.or_else(number).filter(|&unix| unix > 0),
            "timezone" => self.zone = self.zone.or_else(number).filter(|zone| zone.abs() <= 14 * 3600),
            "timezonestring" => match value.trim().parse() {
                Ok(zone) => self.named = self.named.or(Some(zone)),
                Err(_) => self.unknown = Some(short(value.trim())),
            },
            _ => {}
        }
    }

    /// Nanoseconds of the local Unix clock at second zero, and its seconds east of Greenwich; zero and `None` if these
    /// are not known. A zone that the user states takes precedence over those of the header.
    fn start(&self, zone: Option<Zone>) -> (u64, Option<i64>) {
        let of = |unix| zone.or(self.named).and_then(|zone| zone.offset(unix)).or(self.zone);
        let local = self.unix.and_then(|unix| {
            let zone = of(unix)?;
            Some((u64::try_from(unix.checked_add(zone)?).ok()?.saturating_mul(1_000_000_000), zone))
        });
        local.map_or((0, None), |(start, zone)| (start, Some(zone)))
    }
}

fn row(line: TraceLine<'_>, words: &mut Words, extra: &mut ExtraFields) -> Result<Row, WorkloadError> {
    let unknown = [0; Feature::ALL.len()];
    let mut row = Row {
        submit: -1.0,
        wait: -1.0,
        run: -1.0,
        processors: -1,
        requested: -1,
        limit: -1.0,
        status: -1,
        features: unknown,
    };
    let mut fields = line.fields();
    while let Some(text) = fields.take() {
        let column = fields.taken();
        match column {
            2 => row.submit = time(line, 2, "submit time", text)?,
            WAIT => row.wait = time(line, WAIT, "wait time", text)?,
            4 => row.run = time(line, 4, "run time", text)?,
            5 => row.processors = whole(line, 5, "processors used", text)?,
            8 => row.requested = whole(line, 8, "processors requested", text)?,
            9 => row.limit = decimal(line, 9, "requested time", text)?,
            11 => row.status = whole(line, 11, "status", text)?,
            _ if column > COLUMNS && column <= COLUMNS + ExtraFields::TOLD && extra.rows == 0 => {
                extra.first.push(short(text))
            }
            _ => {}
        }
        let feature = FEATURES.iter().find(|(known, ..)| *known == column);
        if let Some(&(_, name, feature)) = feature
            && row.features[feature.index()] == 0
            && decimal(line, column, name, text)? >= 0.0
        {
            row.features[feature.index()] =
                words.number(feature, text).ok_or_else(|| line.at.field(column, name, TOO_LONG))?;
        }
    }
    if fields.taken() < COLUMNS {
        let why = format!("has {} of the {COLUMNS} columns of the Standard Workload Format", fields.taken());
        return Err(line.at.wrong(why));
    }
    if row.tasks() > i64::from(MOST_TASKS) {
        let (column, name) =
            if row.processors > 0 { (5, "processors used") } else { (8, "processors requested") };
        return Err(line.at.field(column, name, format!("{} processors are too many", row.tasks())));
    }
    extra.most = extra.most.max(fields.taken());
    extra.rows += u64::from(fields.taken() > COLUMNS);
    Ok(row)
}

/// A time in seconds; −1 means unknown. Any other wait below zero is unknown too, because some logs have jobs that
/// start before their submission.
fn time(line: TraceLine<'_>, field: usize, column: &'static str, text: &str) -> Result<f64, WorkloadError> {
    let is_unknown = match text.parse::<f64>() {
        Ok(number) if field == WAIT => number.is_finite() && number < 0.0,
        number => number == Ok(-1.0),
    };
    if is_unknown { Ok(-1.0) } else { line.at.seconds(field, column, text) }
}

/// A whole number.
fn whole(line: TraceLine<'_>, field: usize, column: &'static str, text: &str) -> Result<i64, WorkloadError> {
    let wrong = || line.at.field(field, column, format!("`{}` is not a whole number", short(text)));
    lines::whole(text).ok_or_else(wrong)
}

/// A number; −1 stands for an unknown number, and requested times may have a fraction.
fn decimal(
    line: TraceLine<'_>,
    field: usize,
    column: &'static str,
    text: &str,
) -> Result<f64, WorkloadError> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| line.at.field(field, column, format!("`{}` is not a number", short(text))))
}
