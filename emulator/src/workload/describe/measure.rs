//! The measurement of a trace.

use std::collections::BTreeMap;

use volary_actors::base::{JobId, Span};
use volary_engine::workload::{Format, Trace, TraceJob};

use super::arrivals::Arrivals;
use super::description::{Classes, Description, Reference, Users, WithinJob};
use super::published::{compare, cutoff_of, resembling};
use super::quantiles::{Quantiles, share};

/// Jobs with fewer tasks are left out of the spread within jobs.
const ENOUGH_TASKS: u32 = 15;

/// Measures a trace. It is compared with `reference`, or otherwise with the published trace that it resembles; jobs
/// are split into classes at `cutoff`, or otherwise at the boundary published for that trace.
pub fn describe(trace: &Trace, reference: Option<Reference>, cutoff: Option<Span>) -> Description {
    let each = Measured::of(trace);
    let works: Vec<f64> = each.iter().map(|job| job.work).collect();
    let arrivals = Arrivals::of(trace);
    let work_s: f64 = works.iter().sum();
    let mut description = Description {
        file: trace.file().to_owned(),
        jobs: trace.jobs().len(),
        tasks: trace.tasks(),
        work_s,
        offered_cores: if arrivals.span_s > 0.0 { work_s / arrivals.span_s } else { 0.0 },
        fan_out: Quantiles::of(each.iter().map(|job| job.tasks)),
        mean_s: Quantiles::of(trace.jobs().iter().map(|job| job.mean.as_secs_f64())),
        duration_s: Quantiles::of(each.iter().map(|job| job.longest)),
        task_s: task_durations(trace),
        job_work_s: Quantiles::of(works),
        single_task: share(each.iter(), |job| job.tasks == 1.0),
        under_12min: share(each.iter(), |job| job.longest < 720.0),
        under_2h: share(each.iter(), |job| job.longest < 7200.0),
        arrivals,
        within_job: within_job(&each),
        users: users(trace, &each),
        classes: None,
        reference: None,
        comparison: Vec::new(),
        notes: trace.notes().to_vec(),
    };
    // Traces of rigid parallel jobs are never recognised as one of these, even with similar averages.
    let recognised = (trace.format() != Format::Swf).then(|| resembling(&description)).flatten();
    description.reference = reference.or(recognised);
    let cutoff = cutoff.or_else(|| description.reference.and_then(cutoff_of));
    description.classes = cutoff.map(|cutoff| classes(trace, cutoff, &each));
    description.comparison =
        description.reference.map_or_else(Vec::new, |known| compare(known, &description));
    description
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
    let mut jobs_of: BTreeMap<u32, Vec<&Measured>> = BTreeMap::new();
    for (job, measured) in trace.jobs().iter().zip(each) {
        if let Some(user) = job.user {
            jobs_of.entry(user.get()).or_default().push(measured);
        }
    }
    jobs_of.retain(|_, jobs| jobs.len() > 1);
    let cov = |what: fn(&Measured) -> f64| -> Vec<f64> {
        jobs_of.values().map(|jobs| Quantiles::of(jobs.iter().map(|job| what(job))).cov()).collect()
    };
    let (fan_outs, durations) = (cov(|job| job.tasks), cov(|job| job.longest));
    (!jobs_of.is_empty()).then(|| Users {
        users: jobs_of.len(),
        highly_variable: share(durations.iter(), |&&cov| cov > 1.0),
        fan_out_cov: Quantiles::of(fan_outs),
        duration_cov: Quantiles::of(durations),
    })
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
