//! One job under every policy of a cell, on one axis of time.

use std::collections::BTreeSet;
use std::str::FromStr;

use volary_engine::results::{CopyRow, JobRow, MOST_SLOW, SlowRow};
use volary_experiment::storage::Error;
use volary_experiment::storage::run_record::RunRecord;
use volary_experiment::storage::study::{CellGroup, PolicyRuns};

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

/// The recorded rows of one job under one policy.
struct JobRows<'a> {
    policy: &'a str,
    job: Option<JobRow>,
    copies: Vec<CopyRow>,
    slow: Vec<SlowRow>,
    /// Whether slow stretches were left out of the record before the end of the job.
    is_cut: bool,
}

impl<'a> JobRows<'a> {
    fn read(run: &'a RunRecord, number: u32) -> Result<Self, Error> {
        let job = run.rows.read::<JobRow>()?.into_iter().find(|row| row.job == number);
        let copies: Vec<CopyRow> =
            run.rows.read::<CopyRow>()?.into_iter().filter(|copy| copy.job == number).collect();
        let mut slow: Vec<SlowRow> = run.rows.read()?;
        let last = slow.last().map_or(0.0, |row| row.end);
        let is_cut = slow.len() >= MOST_SLOW && copies.iter().any(|copy| copy.end > last);
        let cores: BTreeSet<u32> = copies.iter().map(|copy| copy.core).collect();
        slow.retain(|row| cores.contains(&row.core));
        Ok(Self { policy: &run.summary.policy, job, copies, slow, is_cut })
    }

    fn course(&self, arrival: f64) -> JobCourse<'_> {
        let response = self.job.as_ref().map_or(f64::NAN, |job| job.response);
        JobCourse { arrival, response, copies: &self.copies, slow: &self.slow }
    }
}

/// The pictures of a job under each policy of a cell, with the first seed that all policies have, `wide` px wide; or
/// the reason why there is none.
pub(crate) fn courses(group: &CellGroup, choice: JobChoice, wide: f64) -> Result<Vec<Picture>, String> {
    let Some((first, others)) = group.policies.split_first() else { return Err(NO_RUN.to_owned()) };
    let with = |policy: &'_ PolicyRuns, seed| policy.runs.iter().position(|run| run.summary.seed == seed);
    let mut seeds = first.runs.iter().map(|run| run.summary.seed);
    let common = seeds.find(|seed| others.iter().all(|policy| with(policy, *seed).is_some()));
    let seed = common.ok_or_else(|| "no seed has results under every policy".to_owned())?;
    let runs: Vec<&RunRecord> =
        group.policies.iter().filter_map(|policy| policy.runs.get(with(policy, seed)?)).collect();
    let said = |error: Error| error.to_string();
    let jobs: Vec<JobRow> = runs[0].rows.read().map_err(said)?;
    let recorded = runs[0].rows.read::<CopyRow>().map_err(said)?.iter().map(|copy| copy.job).collect();
    let (number, chosen) = choose(&jobs, &recorded, &|job| runs[0].summary.measures(job), choice)?;
    let arrival = jobs.iter().find(|row| row.job == number).map_or(0.0, |row| row.arrival);
    let rows: Vec<JobRows<'_>> =
        runs.iter().map(|run| JobRows::read(run, number)).collect::<Result<_, _>>().map_err(said)?;
    let end = rows.iter().map(|rows| rows.course(arrival).length()).fold(0.0, f64::max);
    let pictures = rows.iter().enumerate().map(|(i, rows)| {
        let chosen = if i == 0 { format!("{chosen}, seed {seed}") } else { String::new() };
        let cut = if rows.is_cut { ", slow stretches cut" } else { "" };
        job(&format!("{}: job {number}{chosen}{cut}", rows.policy), rows.course(arrival), end, wide)
    });
    Ok(pictures.collect())
}

const NO_RUN: &str = "no run has results";

/// The number of the chosen job of the first policy, and the choice in words.
///
/// `measures` returns whether results include a job. A job that they leave out can be chosen by its number only.
fn choose(
    jobs: &[JobRow],
    recorded: &BTreeSet<u32>,
    measures: &dyn Fn(u32) -> bool,
    choice: JobChoice,
) -> Result<(u32, String), String> {
    const REMEDY: &str = "`run.record.tasks_one_in = 1` records the executions of all jobs";
    if jobs.is_empty() {
        return Err("no jobs are recorded; `run.record.jobs = true` records them".to_owned());
    }
    if let JobChoice::Number(number) = choice {
        return match jobs.iter().any(|row| row.job == number) {
            _ if recorded.contains(&number) => Ok((number, String::new())),
            true => Err(format!("no executions of job {number} are recorded; {REMEDY}")),
            false => Err(format!("the run has no job {number}; its {} jobs are numbered from 0", jobs.len())),
        };
    }
    let drawable =
        |row: &&JobRow| recorded.contains(&row.job) && row.response.is_finite() && measures(row.job);
    let mut finished: Vec<&JobRow> = jobs.iter().filter(drawable).collect();
    finished.sort_by(|a, b| a.response.total_cmp(&b.response));
    let (place, word) = match choice {
        JobChoice::Median => (finished.len() / 2, "median"),
        JobChoice::Slowest | JobChoice::Number(_) => (finished.len().saturating_sub(1), "slowest"),
    };
    let row =
        finished.get(place).ok_or_else(|| format!("no finished job has recorded executions; {REMEDY}"))?;
    Ok((row.job, format!(", {word} of {}", finished.len())))
}

#[cfg(test)]
mod tests {
    use volary_experiment::storage::fixture::measured;

    use super::*;

    #[test]
    fn a_job_is_chosen_by_number_or_by_its_response_time() {
        assert_eq!("17".parse(), Ok(JobChoice::Number(17)));
        assert_eq!(("slowest".parse(), "median".parse()), (Ok(JobChoice::Slowest), Ok(JobChoice::Median)));
        assert!("fastest".parse::<JobChoice>().unwrap_err().contains("`slowest` or `median`"));
        let mut jobs = measured("a", &[], 1, 1.0, 5).jobs;
        for (row, response) in jobs.iter_mut().zip([5.0, 1.0, f64::NAN, 9.0, 3.0]) {
            row.response = response;
        }
        let number = |of: usize| jobs[of].job;
        // Job `number(3)` is the slowest, and has no recorded executions.
        let recorded = [0, 1, 2, 4].map(number).into();
        let chosen = |choice| choose(&jobs, &recorded, &|_| true, choice).map(|(job, _)| job);
        assert_eq!(chosen(JobChoice::Slowest), Ok(number(0)));
        assert_eq!(chosen(JobChoice::Median), Ok(number(4)));
        let others = |job| job != number(0);
        let (slowest, _) = choose(&jobs, &recorded, &others, JobChoice::Slowest).unwrap();
        assert_ne!(slowest, number(0), "a job of the warm-up is not chosen");
        assert_eq!(chosen(JobChoice::Number(number(1))), Ok(number(1)));
        assert!(chosen(JobChoice::Number(number(3))).unwrap_err().contains("run.record.tasks_one_in"));
        assert!(chosen(JobChoice::Number(1_000)).unwrap_err().contains("no job 1000"));
        assert!(choose(&jobs, &BTreeSet::new(), &|_| true, JobChoice::Slowest).is_err());
    }
}
