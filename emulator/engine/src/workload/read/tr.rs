//! `.tr`: `arrival_s num_tasks mean_s dur_1 … dur_n`, one job a line, separated by white space.

use volary_actors::base::{Span, Time};

use super::super::error::WorkloadError;
use super::super::trace::Trace;
use super::lines::{Lines, Skipped, TraceLine};

/// Reads up to `limit` jobs.
pub(super) fn read(lines: &mut Lines<'_>, trace: &mut Trace, limit: usize) -> Result<Skipped, WorkloadError> {
    let mut durations = Vec::new();
    while trace.jobs().len() < limit {
        let Some(line) = lines.next_row('#')? else { break };
        durations.clear();
        let number = line.text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        let words = trace.jobs().is_empty() && !number;
        let (arrival, mean) =
            job(line, &mut durations).map_err(|error| if words { other_format(error) } else { error })?;
        trace.push(arrival, mean, &durations).map_err(|why| line.at.wrong(why))?;
    }
    Ok(Skipped::default())
}

/// The error of a first line that does not begin with a number.
fn other_format(error: WorkloadError) -> WorkloadError {
    let WorkloadError::Trace(why) = error else { return error };
    WorkloadError::Trace(format!(
        "{why}. A line of a .tr file is `arrival_s num_tasks mean_s dur_1 … dur_n`; if the file has another format, end its \
         name in .csv or .swf"
    ))
}

fn job(line: TraceLine<'_>, durations: &mut Vec<f32>) -> Result<(Time, Span), WorkloadError> {
    let mut fields = line.fields();
    let at = line.at;
    let arrival = at.seconds(1, "arrival_s", fields.need("arrival_s")?)?;
    let tasks = at.count(2, "num_tasks", fields.need("num_tasks")?)?;
    let mean = at.seconds(3, "mean_task_duration_s", fields.need("mean_task_duration_s")?)?;
    while let Some(text) = fields.take() {
        durations.push(at.seconds(fields.taken(), "task duration", text)? as f32);
    }
    if durations.len() != tasks as usize {
        let why = format!(
            "says {tasks} tasks but lists {} durations; a line holds arrival, number of tasks, mean, and one \
             duration per task",
            durations.len()
        );
        return Err(at.wrong(why));
    }
    let arrival = Span::from_secs_f64(arrival);
    Ok((Time(arrival.0), Span::from_secs_f64(mean)))
}
