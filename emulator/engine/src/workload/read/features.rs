//! Features of the jobs of another file, one row a job in its order: `X.features.csv` beside `X.tr`.

use super::super::columns::Details;
use super::super::error::WorkloadError;
use super::super::trace::Trace;
use super::lines::Lines;
use super::table::{Header, Meaning, Words};

/// Adds the rows to the jobs of a trace that is not sorted yet. With `all`, each job must have a row.
pub(super) fn read(lines: &mut Lines<'_>, trace: &mut Trace, all: bool) -> Result<(), WorkloadError> {
    let jobs = trace.jobs().len();
    let Some(line) = lines.next_row('#')? else {
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
            "{}: has {rows} rows for the {jobs} jobs of `{}`; one row a job is needed",
            lines.file().display(),
            trace.file().display()
        )));
    }
    Ok(())
}
