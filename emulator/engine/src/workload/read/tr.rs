//! `.tr`: `arrival_s num_tasks mean_s dur_1 … dur_n`, one job per line, separated by white space.

use volary_actors::base::{Span, Time};

use super::super::trace::Trace;
use super::lines::{BadRows, Lines, Skipped, TraceLine};
use crate::workload::trace::WorkloadError;

/// Reads up to `limit` jobs.
pub(super) fn read(
    lines: &mut Lines<'_>,
    trace: &mut Trace,
    limit: usize,
    bad: &mut BadRows,
) -> Result<Skipped, WorkloadError> {
    let (mut durations, mut skipped) = (Vec::new(), Skipped::default());
    let mut other_means = OtherMeans::default();
    while trace.jobs().len() < limit {
        let Some(line) = lines.next_row('#')? else { break };
        durations.clear();
        let number = line.text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        let words = trace.jobs().is_empty() && !number;
        let job = job(line, &mut durations).map_err(|error| if words { other_format(error) } else { error });
        let Some(job) = bad.row(job)? else {
            bad.keep_number();
            continue;
        };
        let Some((arrival, mean)) = job else {
            bad.keep_number();
            skipped.count("without a run time");
            continue;
        };
        other_means.count(line, mean, &durations);
        trace.push(arrival, mean, &durations).map_err(|why| line.at.wrong(why))?;
    }
    other_means.note().into_iter().for_each(|note| trace.note(note));
    Ok(skipped)
}

/// Lines whose stated mean differs from the mean of their durations.
#[derive(Default)]
struct OtherMeans {
    lines: u64,
    /// The first such line, with both means.
    first: String,
}

impl OtherMeans {
    /// The largest difference, as a share of the mean, that counts as rounding.
    const MOST: f64 = 0.01;

    fn count(&mut self, line: TraceLine<'_>, stated: Span, durations: &[f32]) {
        let sum: f64 = durations.iter().copied().map(f64::from).sum();
        let mean = sum / durations.len() as f64;
        let written = line.text.split_ascii_whitespace().nth(2).unwrap_or_default();
        if (stated.as_secs_f64() - mean).abs() <= Self::MOST * mean + last_place(written) {
            return;
        }
        self.lines += 1;
        if self.lines == 1 {
            let why = format!("states a mean of {written} s, but its durations have a mean of {mean:.3} s");
            self.first = line.at.wrong(why).to_string();
        }
    }

    fn note(self) -> Option<String> {
        let others = match self.lines {
            0 => return None,
            1 => String::new(),
            lines => format!(" ({lines} lines are like this)"),
        };
        Some(format!("{}{others}; estimates of policies are the stated means", self.first))
    }
}

/// The unit of the last place of a decimal number.
fn last_place(number: &str) -> f64 {
    let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    0.1f64.powi(decimals as i32)
}

/// The error of a first line that does not begin with a number.
fn other_format(error: WorkloadError) -> WorkloadError {
    let WorkloadError::Trace(why) = error else { return error };
    WorkloadError::Trace(format!(
        "{why}. A line of a .tr file is `arrival_s num_tasks mean_s dur_1 … dur_n`; if the file has another format, end its \
         name in .csv or .swf"
    ))
}

/// Arrival and mean of a job; `None` if its mean or a duration is −1, which stands for unknown.
fn job(line: TraceLine<'_>, durations: &mut Vec<f32>) -> Result<Option<(Time, Span)>, WorkloadError> {
    let mut fields = line.fields();
    let at = line.at;
    let known = |field, column, text: &str| match text.parse() == Ok(-1.0) {
        true => Ok(None),
        false => at.seconds(field, column, text).map(Some),
    };
    let arrival = at.seconds(1, "arrival_s", fields.need("arrival_s")?)?;
    let tasks = at.count(2, "num_tasks", fields.need("num_tasks")?)?;
    let mean = known(3, "mean_task_duration_s", fields.need("mean_task_duration_s")?)?;
    let mut is_unknown = false;
    while let Some(text) = fields.take() {
        let duration = known(fields.taken(), "task duration", text)?;
        is_unknown |= duration.is_none();
        durations.push(duration.unwrap_or_default() as f32);
    }
    if durations.len() != tasks as usize {
        let why = format!(
            "says {tasks} tasks but lists {} durations; a line holds arrival, number of tasks, mean, and one \
             duration per task",
            durations.len()
        );
        return Err(at.wrong(why));
    }
    let mean = mean.filter(|_| !is_unknown);
    Ok(mean.map(|mean| (Time(Span::from_secs_f64(arrival).0), Span::from_secs_f64(mean))))
}
