//! Standard Workload Format: 18 columns, comments and header after `;`.
//!
//! A job is rigid: its fan-out is the number of processors it used, and each task takes the job's run time. Rows that
//! describe no complete execution are skipped and counted: cancelled jobs, jobs whose submit time, run time or
//! processors are unknown (−1), and the partial executions (status 2 to 4) that the format lists below the summary line
//! of a checkpointed job.

use std::num::NonZeroU32;

use volary_actors::base::{Span, Time};

use super::super::error::WorkloadError;
use super::super::trace::{MOST_TASKS, Trace};
use super::lines::{Lines, Skipped, TraceLine, short};

const COLUMNS: usize = 18;

/// The columns that describe a job's shape.
struct Row {
    submit: f64,
    run: f64,
    processors: i64,
    status: i64,
    user: i64,
}

/// Reads up to `limit` jobs.
pub(super) fn read(lines: &mut Lines<'_>, trace: &mut Trace, limit: usize) -> Result<Skipped, WorkloadError> {
    let mut skipped = Skipped::default();
    while trace.jobs().len() < limit {
        let Some(line) = lines.next_row(';')? else { break };
        let row = row(line)?;
        let reason = match row.status {
            5 => Some("cancelled"),
            2..=4 => Some("partial executions of a job listed above"),
            _ if row.submit < 0.0 => Some("without a submit time"),
            _ if row.run < 0.0 => Some("without a run time"),
            _ if row.processors < 1 => Some("without a number of processors"),
            _ => None,
        };
        if let Some(reason) = reason {
            skipped.count(reason);
            continue;
        }
        let tasks =
            u32::try_from(row.processors).ok().filter(|&tasks| tasks <= MOST_TASKS).ok_or_else(|| {
                line.at.field(5, "processors used", format!("{} processors are too many", row.processors))
            })?;
        let user = u32::try_from(row.user).ok().and_then(NonZeroU32::new);
        let arrival = Time(Span::from_secs_f64(row.submit).0);
        trace.push_rigid(arrival, Span::from_secs_f64(row.run), tasks, user);
    }
    Ok(skipped)
}

fn row(line: TraceLine<'_>) -> Result<Row, WorkloadError> {
    let mut row = Row { submit: -1.0, run: -1.0, processors: -1, status: -1, user: -1 };
    let mut fields = line.fields();
    while let Some(text) = fields.take() {
        match fields.taken() {
            2 => row.submit = time(line, 2, "submit time", text)?,
            4 => row.run = time(line, 4, "run time", text)?,
            5 => row.processors = whole(line, 5, "processors used", text)?,
            11 => row.status = whole(line, 11, "status", text)?,
            12 => row.user = whole(line, 12, "user", text)?,
            _ => {}
        }
    }
    if fields.taken() < COLUMNS {
        let why = format!("has {} of the {COLUMNS} columns of the Standard Workload Format", fields.taken());
        return Err(line.at.wrong(why));
    }
    Ok(row)
}

/// A time in seconds; −1 means unknown.
fn time(line: TraceLine<'_>, field: usize, column: &'static str, text: &str) -> Result<f64, WorkloadError> {
    if text.parse() == Ok(-1.0) { Ok(-1.0) } else { line.at.seconds(field, column, text) }
}

fn whole(line: TraceLine<'_>, field: usize, column: &'static str, text: &str) -> Result<i64, WorkloadError> {
    text.parse().map_err(|_| line.at.field(field, column, format!("`{}` is not a whole number", short(text))))
}
