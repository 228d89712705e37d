//! The measurement of a trace, published facts about the traces used in papers, and the recognition of these traces.

use std::collections::BTreeMap;

use clap::ValueEnum;
use volary_actors::base::{Feature, JobId, Span};
use volary_engine::workload::{Format, Trace, TraceJob};

use super::arrivals::Arrivals;
use super::description::{
    Classes, Description, Outcomes, PublishedValue, Reference, Sizes, Users, WithinJob, periods,
};
use super::quantiles::{Quantiles, share};

/// Number of tasks below which a job is left out of the spread within jobs.
const ENOUGH_TASKS: u32 = 15;

/// Measures a trace. The trace is compared with `reference`, or else with the published trace that it resembles. Jobs
/// are split into classes at `cutoff`, or else at the boundary published for that trace.
pub fn describe(trace: &Trace, reference: Option<Reference>, cutoff: Option<Span>) -> Description {
    let each = Measured::of(trace);
    let works: Vec<f64> = each.iter().map(|job| job.work).collect();
    let durations: Vec<f64> = each.iter().map(|job| job.longest).collect();
    let arrivals = Arrivals::of(trace);
    let work_s: f64 = works.iter().sum();
    let jobs = (0..trace.jobs().len() as u32).map(JobId);
    let (depths, paths): (Vec<f64>, Vec<f64>) = jobs
        .filter_map(|job| trace.longest_paths(job))
        .map(|(depth, path)| (f64::from(depth), path.as_secs_f64()))
        .unzip();
    let mut description = Description {
        file: trace.file().to_owned(),
        jobs: trace.jobs().len(),
        tasks: trace.tasks(),
        work_s,
        offered_cores: if arrivals.span_s > 0.0 { work_s / arrivals.span_s } else { 0.0 },
        counts_tasks: trace.counts_tasks(),
        fan_out: Quantiles::of(each.iter().map(|job| job.tasks)),
        cores: amounts(trace, |job| trace.cores(job)),
        gpus: amounts(trace, |job| trace.gpus(job)),
        dependent: depths.len() as f64 / trace.jobs().len().max(1) as f64,
        depth: (!depths.is_empty()).then(|| Quantiles::of(depths)),
        critical_path_s: (!paths.is_empty()).then(|| Quantiles::of(paths)),
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

/// The published trace that a trace is or resembles. Google's and Alibaba's tables are recognised by the form of the
/// file, other traces by their averages. Traces of rigid parallel jobs are never recognised, even with similar
/// averages.
fn recognised(trace: &Trace, description: &Description) -> Option<Reference> {
    match trace.format() {
        _ if trace.is_google() => Some(Reference::Google),
        Format::AlibabaTables => Some(Reference::Alibaba),
        Format::Swf => None,
        Format::Tr | Format::Csv | Format::GoogleEvents => resembling(description),
    }
}

/// Whether facts about a published trace count jobs and tasks as the reader does. The reader of Alibaba's tables counts
/// each instance as a task; the published facts do not.
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

/// An amount per job, over the jobs that state it.
fn amounts(trace: &Trace, of: impl Fn(JobId) -> Option<f32>) -> Option<Quantiles> {
    let stated: Vec<f64> = (0..).map(JobId).take(trace.jobs().len()).filter_map(of).map(f64::from).collect();
    (!stated.is_empty()).then(|| Quantiles::of(stated))
}

/// Deviations |duration / mean − 1| of every task, over jobs with durations per task.
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

/// Spread of durations between the jobs of the same size.
fn sizes(trace: &Trace, each: &[Measured]) -> Option<Sizes> {
    let mut of_size: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (job, measured) in (0..).map(JobId).zip(each) {
        let size = size(trace, job);
        of_size.entry(size.to_bits()).or_default().push(measured.longest);
    }
    of_size.retain(|_, durations| durations.len() > 1);
    let known = trace.counts_tasks() || amounts(trace, |job| trace.cores(job)).is_some();
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

/// Cores of a job, or its number of tasks if the cores are unknown.
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

/// Share of the users with at least three jobs whose durations have a coefficient of variation above 1. It uses the
/// sample standard deviation (divisor n − 1).
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
    /// Duration of the longest task, s.
    longest: f64,
    /// Work in core-seconds.
    work: f64,
    /// Quantiles of the durations of the job's tasks, if the trace has durations per task and the job has enough tasks.
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

/// A quantity that papers state about a trace.
struct Measure {
    name: &'static str,
    /// The value of a described trace; `None` if it is unknown.
    of: fn(&Description) -> Option<f64>,
    /// Whether an excerpt has the same value as the whole trace.
    shared: bool,
}

impl Measure {
    const fn whole(name: &'static str, of: fn(&Description) -> Option<f64>) -> Self {
        Self { name, of, shared: false }
    }

    const fn shared(name: &'static str, of: fn(&Description) -> Option<f64>) -> Self {
        Self { name, of, shared: true }
    }
}

const JOBS: Measure = Measure::whole("jobs", |d| Some(d.jobs as f64));
const FAN_OUT_MEAN: Measure = Measure::shared("fan-out, mean", |d| d.counts_tasks.then_some(d.fan_out.mean));
const FAN_OUT_P50: Measure = Measure::shared("fan-out, p50", |d| d.counts_tasks.then_some(d.fan_out.p50));
const FAN_OUT_P90: Measure = Measure::shared("fan-out, p90", |d| d.counts_tasks.then_some(d.fan_out.p90));
const FAN_OUT_P99: Measure = Measure::shared("fan-out, p99", |d| d.counts_tasks.then_some(d.fan_out.p99));
const FAN_OUT_MAX: Measure = Measure::whole("fan-out, max", |d| d.counts_tasks.then_some(d.fan_out.max));
// Without tasks, only the duration of a job is known, not a mean over tasks.
const MEAN_MEAN: Measure =
    Measure::shared("mean duration, mean, s", |d| d.counts_tasks.then_some(d.mean_s.mean));
const MEAN_P50: Measure =
    Measure::shared("mean duration, p50, s", |d| d.counts_tasks.then_some(d.mean_s.p50));
const MEAN_P90: Measure =
    Measure::shared("mean duration, p90, s", |d| d.counts_tasks.then_some(d.mean_s.p90));
const MEAN_P99: Measure =
    Measure::shared("mean duration, p99, s", |d| d.counts_tasks.then_some(d.mean_s.p99));
const GAP_P50: Measure = Measure::whole("gap, p50, s", |d| Some(d.arrivals.gap_s.p50));
const GAP_P99: Measure = Measure::whole("gap, p99, s", |d| Some(d.arrivals.gap_s.p99));
const LONG_JOBS: Measure = Measure::whole("long jobs, share", |d| Some(d.classes?.long_jobs));
const LONG_WORK: Measure = Measure::whole("work of long jobs, share", |d| Some(d.classes?.long_work));
const SINGLE_TASK: Measure =
    Measure::shared("jobs of one task, share", |d| d.counts_tasks.then_some(d.single_task));
const DURATION_P80: Measure = Measure::whole("duration, p80, s", |d| Some(d.duration_s.p80));
const UNDER_12MIN: Measure = Measure::shared("jobs under 12 min, share", |d| Some(d.under_12min));
const SUCCESSFUL: Measure =
    Measure::whole("successful jobs, share", |d| d.outcomes.as_ref().map(|outcomes| outcomes.successful));

/// A quantity, its published value, and the publication.
type Fact = (&'static Measure, f64, &'static str);

const PIGEON: &str = "Pigeon, Table 1";
const MURMURATION: &str = "Murmuration, Table 2";
const KAIROS: &str = "Kairos, Table 2";
const PARK: &str = "Park, chapter 3";

const YAHOO: &[Fact] = &[
    (&JOBS, 24_262.0, KAIROS),
    (&FAN_OUT_MEAN, 39.91, PIGEON),
    (&FAN_OUT_P50, 15.0, MURMURATION),
    (&FAN_OUT_P99, 636.0, MURMURATION),
    (&FAN_OUT_MAX, 5900.0, PIGEON),
    (&MEAN_MEAN, 118.78, PIGEON),
    (&MEAN_P50, 16.0, MURMURATION),
    (&MEAN_P99, 2410.0, MURMURATION),
    (&LONG_JOBS, 0.0941, KAIROS),
    (&LONG_WORK, 0.98, KAIROS),
];

const CLOUDERA: &[Fact] = &[
    (&FAN_OUT_MEAN, 272.93, PIGEON),
    (&FAN_OUT_P50, 126.0, MURMURATION),
    (&FAN_OUT_P99, 3650.0, MURMURATION),
    (&FAN_OUT_MAX, 51_834.0, PIGEON),
    (&MEAN_MEAN, 162.19, PIGEON),
    (&MEAN_P50, 48.0, MURMURATION),
    (&MEAN_P99, 2515.0, MURMURATION),
    (&GAP_P50, 12.0, MURMURATION),
    (&GAP_P99, 13.0, MURMURATION),
];

const GOOGLE: &[Fact] = &[
    (&JOBS, 506_460.0, KAIROS),
    (&FAN_OUT_MEAN, 35.32, PIGEON),
    (&FAN_OUT_MAX, 49_960.0, PIGEON),
    (&MEAN_MEAN, 661.74, PIGEON),
    (&LONG_JOBS, 0.10, KAIROS),
    (&LONG_WORK, 0.83, KAIROS),
    (&SINGLE_TASK, 0.77, PARK),
    (&UNDER_12MIN, 0.80, PARK),
    (&SUCCESSFUL, 0.58, PARK),
];

const ALIBABA: &[Fact] = &[
    (&FAN_OUT_P50, 3.0, MURMURATION),
    (&FAN_OUT_P90, 3.0, MURMURATION),
    (&FAN_OUT_P99, 65.0, MURMURATION),
    (&MEAN_P50, 108.0, MURMURATION),
    (&MEAN_P90, 578.0, MURMURATION),
    (&MEAN_P99, 2608.0, MURMURATION),
];

const TWO_SIGMA: &[Fact] = &[(&DURATION_P80, 2.0 * 3600.0, PARK)];
const MUSTANG: &[Fact] = &[(&DURATION_P80, 3.0 * 3600.0, PARK)];
const OPEN_TRINITY: &[Fact] = &[(&DURATION_P80, 6.0 * 3600.0, PARK)];

/// Largest distance at which a trace is taken for an excerpt of a published trace. The distance is the mean absolute
/// logarithm of the ratios of their fan-outs and durations.
const RESEMBLANCE: f64 = 0.45;

const fn facts(known: Reference) -> &'static [Fact] {
    match known {
        Reference::Yahoo => YAHOO,
        Reference::Cloudera => CLOUDERA,
        Reference::Google => GOOGLE,
        Reference::Alibaba => ALIBABA,
        Reference::TwoSigma => TWO_SIGMA,
        Reference::Mustang => MUSTANG,
        Reference::OpenTrinity => OPEN_TRINITY,
    }
}

/// Boundary between short and long jobs in the papers (Eagle's published settings).
const fn cutoff_of(known: Reference) -> Option<Span> {
    match known {
        Reference::Yahoo => Some(Span(90_581_100_000)),
        Reference::Cloudera => Some(Span(272_783_000_000)),
        Reference::Google => Some(Span(1_129_532_000_000)),
        Reference::Alibaba | Reference::TwoSigma | Reference::Mustang | Reference::OpenTrinity => None,
    }
}

/// The trace with the most similar published fan-outs and durations; `None` if no trace is similar enough.
fn resembling(description: &Description) -> Option<Reference> {
    let known = Reference::value_variants().iter();
    let distances = known.filter_map(|&known| Some((known, distance(known, description)?)));
    let (nearest, distance) = distances.min_by(|a, b| a.1.total_cmp(&b.1))?;
    (distance < RESEMBLANCE).then_some(nearest)
}

/// Mean |ln(measured / published)| over the facts that an excerpt shares with the whole trace; `None` with fewer than
/// three known facts.
fn distance(known: Reference, description: &Description) -> Option<f64> {
    let shared = facts(known).iter().filter(|(measure, ..)| measure.shared);
    let ratio = |(measure, published, _): &Fact| Some(((measure.of)(description)? / published).ln().abs());
    let ratios: Vec<f64> = shared.filter_map(ratio).collect();
    (ratios.len() > 2).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
}

/// The facts about a known trace, each with the value of the described trace.
fn against(known: Reference, description: &Description) -> Vec<PublishedValue> {
    let row = |&(measure, published, source): &Fact| {
        let measured = (measure.of)(description)?;
        Some(PublishedValue { what: measure.name, measured, published, source })
    };
    facts(known).iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use volary_actors::base::{JobId, Span, Time};
    use volary_actors::catalog::Catalog;
    use volary_engine::workload::{Format, Like, NoTraces, Service, Trace, Workload, WorkloadSpec};

    use super::*;
    use crate::workload::describe::quantiles::Quantiles;

    fn parse(name: &str, text: &str) -> Trace {
        Trace::parse(Path::new(name), std::io::Cursor::new(text.to_owned()), None).unwrap()
    }

    #[test]
    fn a_small_trace_is_described_exactly() {
        let d =
            describe(&parse("a.tr", "10 2 3 2 4\n11 1 1000 1000\n14 1 1 1\n24 1 8000 8000\n"), None, None);
        assert_eq!((d.jobs, d.tasks, d.work_s), (4, 5, 9007.0));
        assert_eq!((d.arrivals.span_s, d.offered_cores), (14.0, 9007.0 / 14.0));
        assert_eq!((d.single_task, d.under_12min, d.under_2h), (0.75, 0.5, 0.75));
        assert_eq!((d.fan_out.mean, d.fan_out.max, d.task_s.p50), (1.25, 2.0, 4.0));
        assert_eq!((d.duration_s.max, d.duration_s.min, d.job_work_s.p50), (8000.0, 1.0, 503.0));
        assert_eq!((d.arrivals.gap_s.p50, d.arrivals.gap_s.mean), (3.0, 14.0 / 3.0));
        assert_eq!((d.within_job, d.users, d.classes, d.reference), (None, None, None, None));
        let classes = describe(&parse("a.tr", "1 3 1 1 1 1\n2 1 9 9\n"), None, Some(Span::from_secs(9)))
            .classes
            .unwrap();
        assert_eq!((classes.long_jobs, classes.long_tasks, classes.long_work), (0.5, 0.25, 0.75));
    }

    #[test]
    fn spread_within_jobs_and_users_is_measured() {
        let fifteen: Vec<&str> = ["1", "3"].into_iter().cycle().take(16).collect();
        let d = describe(&parse("a.tr", &format!("1 16 2 {}\n2 1 5 5\n", fifteen.join(" "))), None, None);
        let within = d.within_job.unwrap();
        assert_eq!((within.jobs, within.cov.p50), (1, 0.5));
        // Tasks of 1 and 3 s are 50 % off their mean; the single task of the other job equals its mean.
        let error = d.mean_error.unwrap();
        assert_eq!((error.min, error.p50, error.max), (0.0, 0.5, 0.5));
        assert!((within.std_over_root_mean.p50 - 1.0 / 2f64.sqrt()).abs() < 1e-12);

        let row = |user: u32, run: u32, processors: u32| {
            format!("1 0 -1 {run} {processors} -1 -1 -1 -1 -1 1 {user} 1 -1 -1 -1 -1 -1\n")
        };
        let text = [row(1, 10, 4), row(1, 30, 4), row(2, 5, 1), row(3, 1, 1), row(3, 1, 3)].concat();
        let users = describe(&parse("a.swf", &text), None, None).users.unwrap();
        assert_eq!(users.users, 2);
        assert!((users.duration_cov.max - 0.5).abs() < 1e-9 && (users.fan_out_cov.max - 0.5).abs() < 1e-9);
        assert_eq!(users.highly_variable, 0.0);
        // One user has jobs of 4 and 4 processors, the other of 1 and 3: the 1 is half of the mean of its user.
        assert_eq!(users.near_mean_size, 1.0);
        let d = describe(&parse("a.swf", &text), None, None);
        let sizes = d.sizes.unwrap();
        // Two jobs of 4 processors took 10 and 30 s; two jobs of one processor took 5 and 1 s.
        assert_eq!((sizes.sizes, sizes.highly_variable), (2, 0.0));
        assert!(
            (sizes.duration_cov.min - 0.5).abs() < 1e-9 && (sizes.duration_cov.max - 2.0 / 3.0).abs() < 1e-9
        );
        assert_eq!(d.cores.unwrap().mean, 13.0 / 5.0);
    }

    #[test]
    fn outcomes_are_counted_by_jobs_and_by_cpu_time() {
        let text = "submit_ms,run_ms,end,cores\n\
        0,3600000,F,1\n1,3600000,F,3\n2,3600000,K,20\n3,1000,X,1\n4,7200000,TIMEOUT,1\n";
        let d = describe(&parse("a.csv", text), None, None);
        let outcomes = d.outcomes.as_ref().unwrap();
        let (all, finished) = (24.0 * 3600.0 + 1.0 + 7200.0, 4.0 * 3600.0);
        let share = outcomes.shares[0];
        assert_eq!((share.outcome, share.jobs), ("finished", 0.4));
        assert!((share.cpu_time - finished / all).abs() < 1e-9);
        let (jobs, time) = outcomes.unsuccessful();
        assert!((jobs - 0.4).abs() < 1e-12 && (time - 72_001.0 / all).abs() < 1e-9);
        assert_eq!((outcomes.successful_size.mean, outcomes.unsuccessful_size.mean), (5.0 / 3.0, 10.5));
        // Success has one definition: finished, or timed out.
        let groups: Vec<_> = outcomes.by_cpu_hours.iter().map(|g| (g.from_h, g.jobs, g.successful)).collect();
        assert_eq!(groups, [(0.0, 1, 0.0), (1.0, 3, 1.0), (10.0, 1, 0.0)]);
        assert_eq!((outcomes.successful, outcomes.successful_of_longest), (0.6, 0.0));
        // The text has no numbers about tasks: no fan-outs, and no core-seconds.
        let text = d.to_string();
        assert!(!d.counts_tasks && !text.contains("jobs of one task") && !text.contains("core-s"), "{text}");
        assert!(text.contains("run time of all jobs"), "{text}");
    }

    #[test]
    fn weeks_are_compared_with_the_whole_trace() {
        // Three weeks: the first has a job every hour; the others have a job every two hours, and each job takes twice
        // as long.
        let times = (0..168).chain((168..504).step_by(2));
        let row = |hour: u32| format!("{} 1 1 {}\n", hour * 3600, if hour < 168 { 60 } else { 120 });
        let d = describe(&parse("a.tr", &times.map(row).collect::<String>()), None, None);
        let weeks: Vec<_> = d.weeks.iter().map(|week| (week.number, week.jobs)).collect();
        assert_eq!(weeks, [(1, 168), (2, 84)], "the third week is not complete");
        let gap = 502.0 / 335.0;
        assert!((d.weeks[0].gap - 1.0 / gap).abs() < 1e-9 && (d.weeks[1].gap - 2.0 / gap).abs() < 1e-9);
        assert!((d.weeks[0].duration - 60.0 / 90.0).abs() < 1e-9, "{:?}", d.weeks);
        assert!(d.months.is_empty());
    }

    #[test]
    fn a_trace_without_gaps_is_described() {
        let d = describe(&parse("a.tr", "5 1 1 1\n"), Some(Reference::Google), None);
        assert_eq!(
            (d.offered_cores, d.arrivals.poisson.ks_p, d.arrivals.gap_s),
            (0.0, None, Quantiles::default())
        );
        let text = d.to_string();
        assert!(text.contains("not tested: 0 gaps are too few"), "{text}");
        assert!(text.contains("compared with the Google trace") && !text.contains("-0 s"), "{text}");
    }

    /// The jobs of a generator as a trace.
    fn generated(spec: &WorkloadSpec) -> Trace {
        let workload = Workload::build(spec, &Service::default(), 77, 1, &NoTraces).unwrap();
        let mut trace = Trace::new(Path::new("generated.tr"), Format::Tr);
        for job in (0..workload.jobs()).map(JobId) {
            let durations: Vec<f32> = (0..workload.tasks(job))
                .map(|t| workload.work(job.task(t).copy(0)).as_secs_f64() as f32)
                .collect();
            let arrival: Time = workload.job(job).arrival;
            trace.push(arrival, workload.job_estimate(job), &durations).unwrap();
        }
        trace.finish()
    }

    #[test]
    fn generators_are_recognised_as_the_traces_they_resemble() {
        let like: Like = toml::from_str("jobs = 24262").unwrap();
        let yahoo = describe(&generated(&WorkloadSpec::YahooLike(like.clone())), None, None);
        assert_eq!(yahoo.reference, Some(Reference::Yahoo));
        for row in &yahoo.comparison {
            let ratio = row.measured / row.published;
            // The maximum of a heavy-tailed sample varies widely.
            let tolerance = if row.what == "fan-out, max" { 1.0 } else { 0.15 };
            assert!((ratio - 1.0).abs() < tolerance, "{row:?}");
        }
        let within = yahoo.within_job.unwrap();
        assert!((within.std_over_root_mean.p75 - 1.41).abs() < 0.1, "{within:?}");
        assert!(
            yahoo.arrivals.poisson.ks_p.unwrap() < 1e-12 && (yahoo.arrivals.gap_s.mean - 7.482).abs() < 0.01
        );

        let cloudera = describe(
            &generated(&WorkloadSpec::ClouderaLike(Like { jobs: Some(10_000), ..like })),
            None,
            None,
        );
        assert_eq!(cloudera.reference, Some(Reference::Cloudera));
        assert!(cloudera.to_string().contains("Pigeon, Table 1"));
    }
}
