//! The measurement of a trace.

use std::collections::BTreeMap;

use volary_actors::base::{Feature, JobId, Span};
use volary_engine::workload::{Format, Trace, TraceJob};

use super::arrivals::Arrivals;
use super::description::{Classes, Description, Reference, Sizes, Users, WithinJob};
use super::outcomes::Outcomes;
use super::periods::periods;
use super::published::{against, cutoff_of, resembling};
use super::quantiles::{Quantiles, share};

/// Jobs with fewer tasks are left out of the spread within jobs.
const ENOUGH_TASKS: u32 = 15;

/// Measures a trace. It is compared with `reference`, or otherwise with the published trace that it resembles; jobs
/// are split into classes at `cutoff`, or otherwise at the boundary published for that trace.
pub fn describe(trace: &Trace, reference: Option<Reference>, cutoff: Option<Span>) -> Description {
    let each = Measured::of(trace);
    let works: Vec<f64> = each.iter().map(|job| job.work).collect();
    let durations: Vec<f64> = each.iter().map(|job| job.longest).collect();
    let arrivals = Arrivals::of(trace);
    let work_s: f64 = works.iter().sum();
    let mut description = Description {
        file: trace.file().to_owned(),
        jobs: trace.jobs().len(),
        tasks: trace.tasks(),
        work_s,
        offered_cores: if arrivals.span_s > 0.0 { work_s / arrivals.span_s } else { 0.0 },
        counts_tasks: trace.counts_tasks(),
        fan_out: Quantiles::of(each.iter().map(|job| job.tasks)),
        cores: cores(trace),
        mean_s: Quantiles::of(trace.jobs().iter().map(|job| job.mean.as_secs_f64())),
        duration_s: Quantiles::of(each.iter().map(|job| job.longest)),
        task_s: task_durations(trace),
        outcomes: Outcomes::of(trace, &works),
        weeks: periods(trace, &durations, 7),
        months: periods(trace, &durations, 29),
        job_work_s: Quantiles::of(works),
        single_task: share(each.iter(), |job| job.tasks == 1.0),
        under_12min: share(each.iter(), |job| job.longest < 720.0),
        under_2h: share(each.iter(), |job| job.longest < 7200.0),
        arrivals,
        within_job: within_job(&each),
        users: users(trace, &each),
        sizes: sizes(trace, &each),
        mean_error: mean_error(trace),
        classes: None,
        reference: None,
        comparison: Vec::new(),
        notes: trace.notes().to_vec(),
    };
    description.reference = reference.or_else(|| recognised(trace, &description));
    // The published boundaries are of mean durations of tasks.
    let published = || description.reference.filter(|_| trace.counts_tasks()).and_then(cutoff_of);
    let cutoff = cutoff.or_else(published);
    description.classes = cutoff.map(|cutoff| classes(trace, cutoff, &each));
    let comparable = description.reference.filter(|&known| is_read_as_published(trace, known));
    description.comparison = comparable.map_or_else(Vec::new, |known| against(known, &description));
    description
}

/// The published trace that it is or resembles: Google's and Alibaba's tables by the form of the file, others by their
/// averages. Traces of rigid parallel jobs are never recognised as one of these, even with similar averages.
fn recognised(trace: &Trace, description: &Description) -> Option<Reference> {
    match trace.format() {
        _ if trace.is_google() => Some(Reference::Google),
        Format::AlibabaTables => Some(Reference::Alibaba),
        Format::Swf => None,
        Format::Tr | Format::Csv | Format::GoogleEvents => resembling(description),
    }
}

/// Whether the facts about a published trace are of jobs and tasks as they are read here. Those about Alibaba's do not
/// count each instance as a task, which the reader of its tables does.
fn is_read_as_published(trace: &Trace, known: Reference) -> bool {
    trace.format() != Format::AlibabaTables || known != Reference::Alibaba
}

fn task_durations(trace: &Trace) -> Quantiles {
    let of = |index: usize| {
        let job = trace.jobs()[index];
        let own = trace.durations(JobId(index as u32));
        let rigid = own.is_none().then_some((job.mean.as_secs_f64(), job.tasks));
        own.unwrap_or_default().iter().map(|&x| (f64::from(x), 1)).chain(rigid)
    };
    Quantiles::weighted((0..trace.jobs().len()).flat_map(of))
}

/// Cores per job, over the jobs that have some.
fn cores(trace: &Trace) -> Option<Quantiles> {
    let cores: Vec<f64> =
        (0..).map(JobId).take(trace.jobs().len()).filter_map(|job| trace.cores(job)).map(f64::from).collect();
    (!cores.is_empty()).then(|| Quantiles::of(cores))
}

/// |duration / mean − 1| of every task of a job with tasks of their own.
fn mean_error(trace: &Trace) -> Option<Quantiles> {
    let of = |job: JobId| {
        let durations = trace.durations(job).unwrap_or_default();
        let mean = durations.iter().map(|&x| f64::from(x)).sum::<f64>() / durations.len().max(1) as f64;
        let errors = durations.iter().map(move |&x| (f64::from(x) / mean - 1.0).abs());
        errors.filter(|error| error.is_finite())
    };
    let errors: Vec<f64> = (0..trace.jobs().len() as u32).map(JobId).flat_map(of).collect();
    (!errors.is_empty()).then(|| Quantiles::of(errors))
}

/// Spread of durations between the jobs of a size.
fn sizes(trace: &Trace, each: &[Measured]) -> Option<Sizes> {
    let mut of_size: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (job, measured) in (0..).map(JobId).zip(each) {
        let size = size(trace, job);
        of_size.entry(size.to_bits()).or_default().push(measured.longest);
    }
    of_size.retain(|_, durations| durations.len() > 1);
    let known = trace.counts_tasks() || cores(trace).is_some();
    (known && !of_size.is_empty()).then(|| {
        let cov: Vec<f64> =
            of_size.values().map(|durations| Quantiles::of(durations.iter().copied()).cov()).collect();
        Sizes {
            sizes: of_size.len(),
            highly_variable: share(cov.iter(), |&&cov| cov > 1.0),
            duration_cov: Quantiles::of(cov),
        }
    })
}

/// Cores of a job, or its tasks if they are unknown.
fn size(trace: &Trace, job: JobId) -> f64 {
    let tasks = f64::from(trace.jobs()[job.index()].tasks);
    trace.cores(job).map_or(tasks, f64::from)
}

fn classes(trace: &Trace, cutoff: Span, each: &[Measured]) -> Classes {
    let part = |what: &dyn Fn(&Measured) -> f64| {
        let all: f64 = each.iter().map(what).sum();
        let long = trace.jobs().iter().zip(each).filter(|(job, _)| job.mean >= cutoff);
        let long: f64 = long.map(|(_, measured)| what(measured)).sum();
        if all > 0.0 { long / all } else { 0.0 }
    };
    Classes {
        cutoff,
        long_jobs: part(&|_| 1.0),
        long_tasks: part(&|job| job.tasks),
        long_work: part(&|job| job.work),
    }
}

fn users(trace: &Trace, each: &[Measured]) -> Option<Users> {
    let mut jobs_of: BTreeMap<u32, Vec<(&Measured, f64)>> = BTreeMap::new();
    for (job, measured) in (0..).map(JobId).zip(each) {
        let user = trace.feature(job, Feature::User);
        if user > 0 {
            jobs_of.entry(user).or_default().push((measured, size(trace, job)));
        }
    }
    jobs_of.retain(|_, jobs| jobs.len() > 1);
    let cov = |what: fn(&Measured) -> f64| -> Vec<f64> {
        jobs_of.values().map(|jobs| Quantiles::of(jobs.iter().map(|(job, _)| what(job))).cov()).collect()
    };
    let near = |jobs: &Vec<(&Measured, f64)>| {
        let mean = jobs.iter().map(|(_, size)| size).sum::<f64>() / jobs.len() as f64;
        jobs.iter().map(|(_, size)| (mean / 2.0..=2.0 * mean).contains(size)).collect::<Vec<_>>()
    };
    let near: Vec<bool> = jobs_of.values().flat_map(near).collect();
    let (fan_outs, durations) = (cov(|job| job.tasks), cov(|job| job.longest));
    (!jobs_of.is_empty()).then(|| Users {
        users: jobs_of.len(),
        highly_variable: highly_variable(jobs_of.values()),
        near_mean_size: share(near.iter(), |&&near| near),
        fan_out_cov: Quantiles::of(fan_outs),
        duration_cov: Quantiles::of(durations),
    })
}

/// Share of the users with at least three jobs whose durations have a CoV above 1. Deviations are those of samples:
/// with that of the population, the CoV of two jobs is never above 1.
fn highly_variable<'a>(jobs_of: impl Iterator<Item = &'a Vec<(&'a Measured, f64)>>) -> f64 {
    let cov = |jobs: &Vec<(&Measured, f64)>| {
        let count = jobs.len() as f64;
        Quantiles::of(jobs.iter().map(|(job, _)| job.longest)).cov() * (count / (count - 1.0)).sqrt()
    };
    let cov: Vec<f64> = jobs_of.filter(|jobs| jobs.len() > 2).map(cov).collect();
    share(cov.iter(), |&&cov| cov > 1.0)
}

/// Measurements of one job.
struct Measured {
    tasks: f64,
    /// Duration of its longest task, s.
    longest: f64,
    /// Work in core-seconds.
    work: f64,
    /// Quantiles of its tasks' durations, if the trace has them and there are enough tasks.
    spread: Option<Quantiles>,
}

impl Measured {
    fn of(trace: &Trace) -> Vec<Self> {
        let one = |(index, job): (usize, &TraceJob)| {
            let tasks = f64::from(job.tasks);
            let Some(durations) = trace.durations(JobId(index as u32)) else {
                let mean = job.mean.as_secs_f64();
                return Self { tasks, longest: mean, work: mean * tasks, spread: None };
            };
            let durations = || durations.iter().map(|&x| f64::from(x));
            Self {
                tasks,
                longest: durations().fold(0.0, f64::max),
                work: durations().sum(),
                spread: (job.tasks >= ENOUGH_TASKS).then(|| Quantiles::of(durations())),
            }
        };
        trace.jobs().iter().enumerate().map(one).collect()
    }
}

fn within_job(each: &[Measured]) -> Option<WithinJob> {
    let spreads: Vec<Quantiles> =
        each.iter().filter_map(|job| job.spread).filter(|spread| spread.mean > 0.0).collect();
    (!spreads.is_empty()).then(|| WithinJob {
        jobs: spreads.len(),
        cov: Quantiles::of(spreads.iter().map(Quantiles::cov)),
        std_over_root_mean: Quantiles::of(spreads.iter().map(|spread| spread.std / spread.mean.sqrt())),
    })
}
