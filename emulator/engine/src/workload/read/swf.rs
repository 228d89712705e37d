//! Standard Workload Format: 18 columns, comments and header after `;`.
//!
//! A job is rigid: its fan-out is the number of processors it used, or else requested, and each task takes the job's
//! run time. Rows that describe no complete execution are skipped and counted: jobs that were cancelled before they
//! ran, jobs whose submit time, run time or processors are unknown (−1), and the partial executions (status 2 to 4)
//! that the format lists below the summary line of a checkpointed job. A job that was cancelled while it ran was
//! killed. User, group, program, queue or partition, and requested time are features; a group is a class. Submit times
//! count from `UnixStartTime` of the header; with `TimeZone`, its seconds east of Greenwich, they are dates.

use volary_actors::base::{Feature, Span, Time};

use super::super::trace::{MOST_TASKS, Trace};
use super::lines::{Lines, Skipped, TraceLine, short};
use super::table::{TOO_LONG, Words};
use crate::workload::trace::{Details, Outcome, WorkloadError};

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

/// Columns of features, with their names. The first known column of a feature counts.
const FEATURES: [(usize, &str, Feature); 6] = [
    (9, "requested time", Feature::Requested),
    (12, "user", Feature::User),
    (13, "group", Feature::Class),
    (14, "application", Feature::Application),
    (15, "queue", Feature::Queue),
    (16, "partition", Feature::Queue),
];

/// Reads up to `limit` jobs.
pub(super) fn read(lines: &mut Lines<'_>, trace: &mut Trace, limit: usize) -> Result<Skipped, WorkloadError> {
    let (mut skipped, mut words) = (Skipped::default(), Words::default());
    let mut clock = HeaderClock::default();
    let mut start = None;
    while trace.jobs().len() < limit {
        let Some(line) = lines.next_row_with_comments(';', |said| clock.note(said))? else { break };
        let start = *start.get_or_insert_with(|| clock.start());
        let row = row(line, &mut words)?;
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
        let tasks =
            u32::try_from(row.tasks()).ok().filter(|&tasks| tasks <= MOST_TASKS).ok_or_else(|| {
                let (column, name) =
                    if row.processors > 0 { (5, "processors used") } else { (8, "processors requested") };
                line.at.field(column, name, format!("{} processors are too many", row.tasks()))
            })?;
        let arrival = Time(Span::from_secs_f64(row.submit).0.saturating_add(start));
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
            memory: None,
        };
        trace.detail(trace.jobs().len() - 1, &details);
    }
    match (clock.unix, clock.zone) {
        (Some(_), Some(zone)) => trace.mark_dated(zone),
        (Some(_), None) => trace.note(
            "UnixStartTime is not used, since the header has no TimeZone: hours count from the first second of the file; \
             a line `; TimeZone: SECONDS`, east of Greenwich, makes them hours of the day"
                .into(),
        ),
        (None, _) => {}
    }
    Ok(skipped)
}

/// The clock of submit times, as the header states it.
#[derive(Default)]
struct HeaderClock {
    /// Unix time of second zero of the file.
    unix: Option<i64>,
    /// Time zone of the file, in seconds east of Greenwich.
    zone: Option<i64>,
}

impl HeaderClock {
    /// Reads a comment such as `UnixStartTime: 1038088800`.
    fn note(&mut self, said: &str) {
        let Some((name, value)) = said.split_once(':') else { return };
        let number = || value.split_whitespace().next()?.parse::<i64>().ok();
        match name.trim().to_ascii_lowercase().as_str() {
            "unixstarttime" => self.unix = self.unix.or_else(number).filter(|&unix| unix > 0),
            "timezone" => self.zone = self.zone.or_else(number).filter(|zone| zone.abs() <= 14 * 3600),
            _ => {}
        }
    }

    /// Nanoseconds of the local Unix clock at second zero; zero if that is not known.
    fn start(&self) -> u64 {
        let local = self.unix.zip(self.zone).and_then(|(unix, zone)| unix.checked_add(zone));
        local
            .and_then(|local| u64::try_from(local).ok())
            .map_or(0, |local| local.saturating_mul(1_000_000_000))
    }
}

fn row(line: TraceLine<'_>, words: &mut Words) -> Result<Row, WorkloadError> {
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

/// A whole number, which may be written with decimals that are zero.
fn whole(line: TraceLine<'_>, field: usize, column: &'static str, text: &str) -> Result<i64, WorkloadError> {
    let decimal = || text.parse().ok().filter(|number: &f64| number.fract() == 0.0 && number.abs() < 1e15);
    let number = text.parse().ok().or_else(|| decimal().map(|number| number as i64));
    number.ok_or_else(|| line.at.field(field, column, format!("`{}` is not a whole number", short(text))))
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
