//! Job-level `.csv`: a header that names at least `arrival_s`, `ntasks` and `mean_s`; other columns are ignored.
//!
//! Every task of a job takes the job's mean. A row with one of the three blank is skipped and counted.

use volary_actors::base::{Span, Time};

use super::super::error::WorkloadError;
use super::super::trace::Trace;
use super::lines::Skipped;
use super::lines::{Lines, TraceLine};

const COLUMNS: [&str; 3] = ["arrival_s", "ntasks", "mean_s"];

/// Reads up to `limit` jobs.
pub(super) fn read(lines: &mut Lines<'_>, trace: &mut Trace, limit: usize) -> Result<Skipped, WorkloadError> {
    let mut skipped = Skipped::default();
    let Some(header) = lines.next_row('#')? else { return Ok(skipped) };
    let columns = columns(header)?;
    while trace.jobs().len() < limit {
        let Some(line) = lines.next_row('#')? else { break };
        let mut cells = [""; 3];
        for (index, cell) in line.text.split(',').enumerate() {
            if let Some(known) = columns.iter().position(|&column| column == index) {
                cells[known] = cell.trim();
            }
        }
        if cells.contains(&"") {
            skipped.count("with a blank cell");
            continue;
        }
        let arrival = line.at.seconds(columns[0] + 1, COLUMNS[0], cells[0])?;
        let tasks = line.at.count(columns[1] + 1, COLUMNS[1], cells[1])?;
        let mean = line.at.seconds(columns[2] + 1, COLUMNS[2], cells[2])?;
        trace.push_rigid(Time(Span::from_secs_f64(arrival).0), Span::from_secs_f64(mean), tasks, None);
    }
    trace.note("the file is job-level: every task of a job takes the job's mean".into());
    Ok(skipped)
}

/// Indices of the columns.
fn columns(header: TraceLine<'_>) -> Result<[usize; 3], WorkloadError> {
    let mut found = [0; 3];
    for (index, name) in found.iter_mut().zip(COLUMNS) {
        // A suffix in capitals describes the origin of a column, such as `ntasks_SYNTHETIC`.
        let named = |cell: &str| {
            let rest = cell.trim().strip_prefix(name);
            rest.is_some_and(|rest| {
                rest.is_empty() || rest.strip_prefix('_').is_some_and(|r| r == r.to_uppercase())
            })
        };
        *index = header.text.split(',').position(named).ok_or_else(|| {
            header.at.wrong(format!("the header names no column `{name}`; it needs {}", COLUMNS.join(", ")))
        })?;
    }
    Ok(found)
}
