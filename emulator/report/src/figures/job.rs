//! One job under every policy of a cell, on one axis of time.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use volary_engine::results::{CopyRow, JobRow, SlowRow};
use volary_experiment::storage::run_record::RunRecord;
use volary_experiment::storage::study::CellGroup;

use crate::chart::job::{JobCourse, job};
use crate::chart::svg::Picture;

/// The choice of a job among those whose executions are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum JobChoice {
    /// The job with this number.
    Number(u32),
    /// The job with the longest response time under the first policy.
    #[default]
    Slowest,
    /// The job with the median response time under the first policy.
    Median,
}

impl FromStr for JobChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "slowest" => Ok(Self::Slowest),
            "median" => Ok(Self::Median),
            number => number.parse().map(Self::Number).map_err(|_| {
                format!("`{number}` is not the number of a job; expected a number, `slowest` or `median`")
            }),
        }
    }
}

/// The recorded rows of a run that the picture needs.
struct Recorded<'a> {
    run: &'a RunRecord,
    jobs: Vec<JobRow>,
    copies: BTreeMap<u32, Vec<CopyRow>>,
    slow: Vec<SlowRow>,
}

impl<'a> Recorded<'a> {
    fn read(run: &'a RunRecord) -> Result<Self, String> {
        let said = |error: volary_experiment::storage::Error| error.to_string();
        let mut copies: BTreeMap<u32, Vec<CopyRow>> = BTreeMap::new();
        for copy in run.rows.read::<CopyRow>().map_err(said)? {
            copies.entry(copy.job).or_default().push(copy);
        }
        let (jobs, slow) = (run.rows.read().map_err(said)?, run.rows.read().map_err(said)?);
        Ok(Self { run, jobs, copies, slow })
    }

    fn course(&self, number: u32) -> Option<JobCourse<'_>> {
        let row = self.jobs.iter().find(|row| row.job == number)?;
        let (copies, slow) = (self.copies.get(&number)?, &self.slow);
        Some(JobCourse { arrival: row.arrival, response: row.response, copies, slow })
    }
}

/// The pictures of a job in the first replication of each policy of a cell, `wide` px wide; or the reason why there is
/// none.
pub(crate) fn courses(group: &CellGroup, choice: JobChoice, wide: f64) -> Result<Vec<Picture>, String> {
    let runs = group.policies.iter().filter_map(|policy| policy.runs.first());
    let recorded: Vec<Recorded<'_>> = runs.map(Recorded::read).collect::<Result<_, _>>()?;
    let (number, chosen) = choose(&recorded, choice)?;
    let courses = || recorded.iter().filter_map(|of| Some((of, of.course(number)?)));
    let end = courses().map(|(_, course)| course.length()).fold(0.0, f64::max);
    let pictures = courses().enumerate().map(|(i, (of, course))| {
        let chosen = if i == 0 { &chosen } else { "" };
        job(&format!("{}: job {number}{chosen}", of.run.summary.policy), course, end, wide)
    });
    Ok(pictures.collect())
}

/// The number of the chosen job, and the choice in words.
fn choose(recorded: &[Recorded<'_>], choice: JobChoice) -> Result<(u32, String), String> {
    let Some((first, others)) = recorded.split_first() else { return Err("no run has results".to_owned()) };
    let everywhere: BTreeSet<u32> = first.copies.keys().copied().collect();
    let everywhere: BTreeSet<u32> =
        everywhere.into_iter().filter(|job| others.iter().all(|of| of.copies.contains_key(job))).collect();
    let remedy = "`run.record.tasks_one_in = 1` records all jobs";
    if let JobChoice::Number(number) = choice {
        return everywhere.contains(&number).then_some((number, String::new())).ok_or_else(|| {
            let one_in = first.run.sampled_one_in;
            format!(
                "job {number} has no recorded executions: one job in {one_in} has, from job 0 on; {remedy}"
            )
        });
    }
    let mut finished: Vec<&JobRow> =
        first.jobs.iter().filter(|row| everywhere.contains(&row.job) && row.response.is_finite()).collect();
    finished.sort_by(|a, b| a.response.total_cmp(&b.response));
    let (place, word) = match choice {
        JobChoice::Median => (finished.len() / 2, "median"),
        _ => (finished.len().saturating_sub(1), "slowest"),
    };
    let row = finished.get(place).ok_or_else(|| {
        format!("no finished job has recorded executions under every policy; {remedy}, if the run has jobs")
    })?;
    let (count, policy) = (finished.len(), &first.run.summary.policy);
    Ok((row.job, format!(", the {word} of {count} recorded under {policy}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_chosen_by_number_or_by_its_response_time() {
        assert_eq!("17".parse(), Ok(JobChoice::Number(17)));
        assert_eq!(("slowest".parse(), "median".parse()), (Ok(JobChoice::Slowest), Ok(JobChoice::Median)));
        assert!("fastest".parse::<JobChoice>().unwrap_err().contains("`slowest` or `median`"));
    }
}
