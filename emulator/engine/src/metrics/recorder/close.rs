//! The end of recording: the totals of a run, with every sum checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use hdrhistogram::Histogram;
use volary_actors::base::{CopyId, JobId, Span, Time};
use volary_actors::catalog::Catalog;

use super::super::{PolicyMetric, Recording};
use super::Recorder;
use super::fold::{Job, Totals};
use crate::parcel::Delivered;
use crate::results::{
    Brief, ClassResults, CopyCounts, CopyEnd, CopyRow, Deadlines, DepthResults, Distribution, Graphs,
    JobCounts, JobRow, JobTimes, LoadRow, MeasuredWindow, PolicyResults, Unsettled, percentile,
};
use crate::workload::Window;

/// Totals of a run that has ended.
#[derive(Debug)]
pub struct Accounts {
    /// Numbers of jobs of the whole run, by outcome.
    pub jobs: JobCounts,
    /// Numbers of copies of the whole run, by outcome.
    pub copies: CopyCounts,
    /// Counts of the measured jobs.
    pub measured: Totals,
    /// The measured window; `None` if the whole run is measured.
    pub window: Option<MeasuredWindow>,
    /// Length of the time over which results average: of the window, or the makespan, s.
    pub length: f64,
    /// Copies that shared nodes evicted.
    pub evicted: u64,
    /// Times of the measured jobs.
    pub times: ClassResults,
    /// Times of the jobs of each class, by label; empty if there is one class.
    pub classes: BTreeMap<String, ClassResults>,
    /// Outcomes of deadlines; `None` if no job has one.
    pub deadlines: Option<Deadlines>,
    /// Results of jobs with dependencies between stages or steps; `None` if no job has any.
    pub graphs: Option<Graphs>,
    /// First arrival to last completion, s.
    pub makespan: f64,
    /// Last arrival to last completion, s.
    pub drain: f64,
    /// Jobs finished before the last arrival, or in the window, per second; 0 if all arrive at once.
    pub throughput: f64,
    /// The response times of the first and of the last measured jobs, if they differ beyond noise.
    pub unsettled: Option<Unsettled>,
    /// Share of the core time in which cores were busy.
    pub utilization: f64,
    /// Share of the core time that was useful.
    pub goodput: f64,
    /// Measurements that only some policies have.
    pub policy: PolicyResults,
    /// Remarks for the reader of the results.
    pub notes: Vec<String>,
    /// Every job that arrived.
    pub rows: Vec<JobRow>,
    /// Rows of the sampled executions.
    pub sample: Vec<CopyRow>,
    /// One job in this many is sampled.
    pub sampled_one_in: u32,
    /// Executions on the timeline's cores.
    pub timeline: Vec<CopyRow>,
    /// Messages on the timeline, each with the time at which it was handled; and the number of messages left out.
    pub messages: (Vec<(Time, Delivered)>, u64),
    /// Waiting tasks and running copies over the timeline.
    pub load: Vec<LoadRow>,
}

impl Accounts {
    /// Median run time of the sampled copies that finished, s; the mean of all copies if nothing was sampled.
    pub fn median_copy(&self) -> f64 {
        let ended = self.sample.iter().filter(|row| matches!(row.end_kind, CopyEnd::First | CopyEnd::Second));
        let mut lengths: Vec<f64> = ended.map(|row| row.end - row.start).collect();
        lengths.sort_unstable_by(f64::total_cmp);
        if lengths.is_empty() {
            self.copies.busy_s / self.copies.started.max(1) as f64
        } else {
            percentile(&lengths, 0.5)
        }
    }
}

/// Checks that every copy that started has one outcome.
fn check_sum(copies: &CopyCounts) {
    let CopyCounts { started, finished, preempted, lost, in_progress, .. } = *copies;
    assert_eq!(
        started,
        finished + preempted + lost + in_progress,
        "the number of started copies differs from that of their outcomes"
    );
}

/// Time from the last arrival to the end, and jobs finished per second in the window or, without one, between the first
/// and the last arrival.
fn flow(rows: &[JobRow], end: f64, window: Option<&MeasuredWindow>) -> (f64, f64) {
    let (first, last) = rows
        .iter()
        .fold((f64::INFINITY, 0f64), |(first, last), row| (first.min(row.arrival), last.max(row.arrival)));
    let (from, until) = window.map_or((first, last), |window| (window.from_s, window.until_s));
    let is_within = |end: f64| from <= end && end <= until;
    let finished = rows.iter().filter(|row| is_within(row.arrival + row.response)).count();
    let throughput = if until > from { finished as f64 / (until - from) } else { 0.0 };
    (end - last, throughput)
}

impl Recorder<'_> {
    /// Closes the recorder of a run that `run.until` stopped at `at`, which may be later than the last event. Makespan
    /// and utilization cover the time up to `at`.
    pub fn cut(mut self, at: Time) -> Accounts {
        self.progress = at;
        self.close(at)
    }

    /// Closes the recorder at `now`: running copies are cut off, and every sum is checked.
    pub fn close(mut self, now: Time) -> Accounts {
        let (busy, stall) = (self.busy > 0, self.stall(now));
        let off =
            |copy: &CopyId, core: &Option<u32>| core.is_some() && self.fate_of(*copy) == CopyEnd::InProgress;
        let suspended = self.suspended.iter().filter(|(copy, held)| off(copy, &held.core)).count();
        let load = self.load.close(now, self.busy);
        self.cut_off(now);
        self.counts.unfinished = self.counts.submitted - self.counts.finished - self.counts.failed;
        self.measured.jobs = self.measured_jobs();
        [self.copies, self.measured.copies].iter().for_each(check_sum);
        // A stuck run is idle until it is given up; this idle time is not part of the run.
        let end = match (self.all_finished(), busy) {
            (true, _) => self.last_finish,
            (false, true) => now,
            (false, false) => self.progress,
        };
        let makespan = end.since(self.first_arrival.unwrap_or(Time::ZERO)).as_secs_f64();
        let all = self.job_rows();
        let [first, after] =
            [self.window.first, self.window.end].map(|chain| all.partition_point(|row| row.job < chain));
        let rows = &all[first..after];
        let window = self.measured_window(&all[..first], &all[after..], end);
        let responses: Vec<f64> =
            rows.iter().map(|row| row.response).filter(|time| time.is_finite()).collect();
        let length = window.map_or(makespan, |window| window.until_s - window.from_s);
        let (drain, throughput) = flow(&all, end.as_secs_f64(), window.as_ref());
        let utilization = self.share(self.in_window.busy_s, length);
        let mut notes = self.notes(stall, suspended, rows);
        if window.is_some() && length <= 0.0 {
            notes.push("the run ended before its measured window began".to_owned());
        }
        let CopyCounts { busy_s, wasted_work_s, in_progress_s, .. } = self.in_window;
        let goodput = self.share((busy_s - wasted_work_s - in_progress_s).max(0.0), length);
        let (labels, recording) = (self.workload.classes(), &self.recording);
        let classes = labels.iter().zip(&self.waits).filter(|_| labels.len() > 1);
        let classes = classes.map(|(label, waits)| {
            let rows = rows.iter().filter(|row| row.class == *label);
            (label.to_string(), times(rows, std::slice::from_ref(waits), recording))
        });
        let classes = classes.collect();
        let (deadlines, graphs) = (self.deadlines(end), self.graphs(rows));
        let mut policy = PolicyResults::default();
        self.metrics.close(self.first_arrival.unwrap_or(Time::ZERO), end, &mut policy);
        Accounts {
            evicted: self.evicted,
            jobs: self.counts,
            copies: self.copies,
            measured: self.measured,
            window,
            length,
            times: times(rows.iter(), &self.waits, recording),
            classes,
            deadlines,
            graphs,
            makespan,
            drain,
            throughput,
            unsettled: Unsettled::of(&responses),
            utilization,
            goodput,
            policy,
            notes,
            rows: all,
            sample: self.sample,
            sampled_one_in: self.sampled_one_in,
            timeline: self.timeline,
            messages: (self.messages, self.messages_left_out),
            load,
        }
    }

    /// Core time as a share of all cores over a length of time.
    fn share(&self, core_s: f64, length: f64) -> f64 {
        if length > 0.0 { core_s / (self.running.len() as f64 * length) } else { 0.0 }
    }

    /// The measured window of a run that ended at `end`, with the jobs before and after it; `None` if the whole run is
    /// measured.
    fn measured_window(&self, before: &[JobRow], after: &[JobRow], end: Time) -> Option<MeasuredWindow> {
        let Window { from, until, auto, .. } = self.window;
        (!self.window.is_whole()).then(|| MeasuredWindow {
            from_s: from.as_secs_f64(),
            until_s: until.min(end).max(from).as_secs_f64(),
            auto,
            warm_up: before.len() as u64,
            after: after.len() as u64,
            unfinished: before.iter().chain(after).filter(|row| row.response.is_nan()).count() as u64,
        })
    }

    /// Numbers of measured jobs, by outcome.
    fn measured_jobs(&self) -> JobCounts {
        let mut counts = JobCounts::default();
        for chain in self.window.chains(self.workload.chains()) {
            let mut stages = self.workload.jobs_of(chain).map(|stage| &self.jobs[stage as usize]);
            let outcome = match (stages.clone().next(), self.left[chain as usize]) {
                (None | Some(Job::Pending), _) => continue,
                (_, 1..) => &mut counts.unfinished,
                _ if stages.any(|stage| matches!(stage, Job::Killed)) => &mut counts.failed,
                _ => &mut counts.finished,
            };
            *outcome += 1;
            counts.submitted += 1;
        }
        counts
    }

    fn job_rows(&self) -> Vec<JobRow> {
        (0..self.workload.chains()).filter_map(|chain| self.job_row(chain)).collect()
    }

    /// The row of a chain, if it has arrived.
    fn job_row(&self, chain: u32) -> Option<JobRow> {
        let workload = self.workload;
        let stages = || workload.jobs_of(chain).map(JobId);
        let first = stages().next()?;
        if matches!(self.jobs[first.index()], Job::Pending) {
            return None;
        }
        let arrival = workload.job(first).arrival;
        let response = self.end_of(chain).map_or(f64::NAN, |at| at.since(arrival).as_secs_f64());
        Some(JobRow {
            job: chain,
            arrival: arrival.as_secs_f64(),
            wait: match stages().map(|job| self.begun[job.index()]).min()? {
                Time::MAX => f64::NAN,
                begun => begun.since(arrival).as_secs_f64(),
            },
            response,
            longest: workload.critical_path(chain).as_secs_f64(),
            alone: workload.alone(first).map(Span::as_secs_f64),
            tasks: stages().map(|job| workload.tasks(job)).sum(),
            class: Arc::clone(&workload.classes()[workload.class_index(first)]),
        })
    }

    /// Results of the jobs with dependencies, given all jobs that arrived.
    fn graphs(&self, rows: &[JobRow]) -> Option<Graphs> {
        if !self.workload.has_dependencies() {
            return None;
        }
        let depths: Vec<(u32, &JobRow)> =
            rows.iter().map(|row| (self.workload.depth(row.job), row)).collect();
        let deep = || depths.iter().filter(|(depth, _)| *depth > 1);
        let mut by_depth: BTreeMap<u32, Vec<&JobRow>> = BTreeMap::new();
        for (depth, row) in depths.iter().filter(|(_, row)| row.response.is_finite()) {
            by_depth.entry(*depth).or_default().push(row);
        }
        let results = |rows: &[&JobRow]| DepthResults {
            jobs: rows.len() as u64,
            critical_path_s: Brief::of(rows.iter().map(|row| row.longest)),
            slowdown: Brief::of(
                rows.iter().filter(|row| row.longest > 0.0).map(|row| row.response / row.longest),
            ),
        };
        let finished: Vec<&JobRow> = by_depth.range(2..).flat_map(|(_, rows)| rows).copied().collect();
        let DepthResults { critical_path_s, slowdown, .. } = results(&finished);
        let slower = |bound: f64| {
            let above = |row: &JobRow| row.response > bound * row.longest + HALF_NS;
            share(finished.iter().copied(), above).unwrap_or(f64::NAN)
        };
        Some(Graphs {
            share: deep().count() as f64 / rows.len().max(1) as f64,
            depth: Brief::of(deep().map(|(depth, _)| f64::from(*depth))),
            critical_path_s,
            slowdown,
            delayed: slower(1.001),
            straggling: slower(1.1),
            by_depth: by_depth.iter().map(|(depth, rows)| (*depth, results(rows))).collect(),
        })
    }

    fn notes(&self, stall: Option<String>, suspended: usize, rows: &[JobRow]) -> Vec<String> {
        let mut notes = Vec::new();
        let waiting = self.open_tasks();
        if let Some(why) = stall.filter(|_| self.counts.unfinished > 0) {
            notes.push(format!("the run was given up, because {why}"));
        } else if self.copies.in_progress == 0 && waiting > 0 {
            notes.push(format!("no copy ran when the run ended, and {waiting} tasks waited"));
        }
        if self.resubmitted > 0 {
            notes.push(format!(
                "{} submissions were repeated because a scheduler was down or cut off",
                self.resubmitted
            ));
        }
        if self.counts.failed > 0 {
            notes.push(format!(
                "{} jobs were killed because they ran longer than requested",
                self.counts.failed
            ));
        }
        let pending = u64::from(self.workload.chains()) - self.counts.submitted;
        if pending > 0 {
            notes.push(format!("{pending} jobs had not arrived when the run ended"));
        }
        for (kind, count) in &self.unexpected {
            notes.push(format!("{count} `{kind}` messages reached actors that do not handle them"));
        }
        if suspended > 0 {
            notes.push(format!("{suspended} tasks were suspended when the run ended"));
        }
        let instant = rows.iter().filter(|row| row.response.is_finite() && row.slowdown().is_none()).count();
        if instant > 0 {
            notes.push(format!("{instant} of the finished jobs have no work, and therefore no slowdown"));
        }
        notes
    }
}

/// The times of jobs, and the waits of their tasks.
fn times<'a>(
    rows: impl Iterator<Item = &'a JobRow> + Clone,
    waits: &[Histogram<u64>],
    recording: &Recording,
) -> ClassResults {
    let bound = recording.slowdown_bound.as_secs_f64();
    let finished = rows.clone().filter(|row| !row.response.is_nan());
    let begun = rows.clone().map(|row| row.wait).filter(|wait| !wait.is_nan());
    ClassResults {
        jobs: rows.clone().count() as u64,
        not_finished: Some(rows.filter(|row| row.response.is_nan()).count() as u64),
        times: JobTimes {
            response_s: Distribution::of(finished.clone().map(|row| row.response)),
            wait_s: brief_of_histograms(waits),
            job_wait_s: Brief::of(begun),
            slowdown: Brief::of(finished.clone().filter_map(JobRow::slowdown)),
            bounded_slowdown: Brief::of(finished.clone().filter_map(|row| row.bounded_slowdown(bound))),
            longest_s: Brief::of(finished.clone().map(|row| row.longest)),
            over_10x: share(finished.clone(), |row| row.response > 10.0 * row.longest + HALF_NS)
                .unwrap_or(f64::NAN),
            unqueued: recording.unqueued.and_then(|bound| {
                let most = bound.as_secs_f64() + HALF_NS;
                share(finished, |row| row.response - row.longest <= most)
            }),
        },
    }
}

/// Half a nanosecond, s. Rows are in seconds, each a whole number of nanoseconds.
const HALF_NS: f64 = 0.5e-9;

/// The share of jobs for which `is` holds; `None` without jobs.
fn share<'a>(rows: impl Iterator<Item = &'a JobRow>, is: impl Fn(&JobRow) -> bool) -> Option<f64> {
    let (jobs, found) = rows.fold((0u64, 0u64), |(jobs, found), row| (jobs + 1, found + u64::from(is(row))));
    (jobs > 0).then(|| found as f64 / jobs as f64)
}

fn brief_of_histograms(waits: &[Histogram<u64>]) -> Brief {
    let mut all = waits[0].clone();
    for more in &waits[1..] {
        // The histogram resizes itself.
        let _ = all.add(more);
    }
    if all.is_empty() {
        return Brief::UNMEASURED;
    }
    let at = |q| all.value_at_quantile(q) as f64 * 1e-6;
    Brief { mean: all.mean() * 1e-6, p50: at(0.5), p90: at(0.9), p99: at(0.99) }
}
