//! Features of the jobs of another file, one row per job in its order: `X.features.csv` beside `X.tr`.

use super::super::columns::Details;
use super::super::error::WorkloadError;
use super::super::trace::Trace;
use super::lines::Lines;
use super::table::{Header, Meaning, Words};

/// The comment that says that the numbers of tasks are unknown, and each job counts as one.
pub const TASKS_UNKNOWN: &str = "tasks unknown";
/// The comment that says that the jobs are those of Google's trace of 2011.
pub const GOOGLE: &str = "google 2011";
/// The beginning of the comment with the zone of dates, seconds east of Greenwich.
pub const ZONE: &str = "zone ";

/// Applies a comment above the header to the whole trace; returns whether the comment is known.
fn mark(trace: &mut Trace, said: &str) -> bool {
    match (said, said.strip_prefix(ZONE).and_then(|zone| zone.parse().ok())) {
        (_, Some(zone)) => trace.mark_dated(zone),
        (TASKS_UNKNOWN, None) => trace.without_tasks(),
        (GOOGLE, None) => trace.mark_google(),
        _ => return false,
    }
    true
}

/// Adds the rows to the jobs of a trace that is not sorted yet. With `all`, each job must have a row.
pub(super) fn read(lines: &mut Lines<'_>, trace: &mut Trace, all: bool) -> Result<(), WorkloadError> {
    let jobs = trace.jobs().len();
    let mut is_marked = false;
    let marked = lines.next_row_noting('#', |said| is_marked |= mark(trace, said))?;
    let Some(line) = marked else {
        if is_marked {
            return Ok(());
        }
        return Err(WorkloadError::Trace(format!("{}: is empty; delete it", lines.file().display())));
    };
    let header = Header::new(line, None)?;
    if header.is_empty() {
        return Err(line.at.wrong(format!(
            "the header names none of the features user, name, lname, queue, application, priority, class; it has {}",
            header.names()
        )));
    }
    let mut words = Words::default();
    let mut rows = 0;
    while let Some(line) = lines.next_record()? {
        if rows == jobs {
            if all {
                let why = format!("has more rows than `{}` has jobs ({jobs})", trace.file().display());
                return Err(line.at.wrong(format!("{why}; do both belong together?")));
            }
            break;
        }
        let row = header.row(line)?;
        let number = row.line()?.unwrap_or(rows as u64 + 1);
        if number != rows as u64 + 1 {
            let why =
                format!("is about job {number} in the place of job {}; sort the rows by `line`", rows + 1);
            return Err(line.at.wrong(why));
        }
        let tasks = trace.jobs()[rows].tasks;
        let wait = row.span(Meaning::Wait)?;
        trace.detail(rows, &Details { wait, ..row.details(&mut words, tasks)? });
        rows += 1;
    }
    if rows < jobs {
        return Err(WorkloadError::Trace(format!(
            "{}: has {rows} rows for the {jobs} jobs of `{}`; one row per job is needed",
            lines.file().display(),
            trace.file().display()
        )));
    }
    Ok(())
}
