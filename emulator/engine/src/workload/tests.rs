//! Tests of the jobs of a run: distributions of the four models, independence of order, estimates, arrivals, limits.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use volary_actors::base::distribution::{Exponential, Normal, Scaled, Uniform};
use volary_actors::base::{DistributionSpec, JobId, Span, Time};
use volary_actors::catalog::Catalog;

use super::*;

fn exponential() -> DistributionSpec<Span> {
    DistributionSpec::Exponential(Exponential { mean: Span::from_secs(1) })
}

fn synthetic(jobs: u32, tasks: f64) -> Synthetic {
    Synthetic {
        jobs,
        tasks: DistributionSpec::Constant(tasks),
        interarrival: DistributionSpec::Exponential(Exponential { mean: Span::from_millis(20) }),
        speedup: 1.0,
        load: None,
        cutoff: None,
        deadline_slack: None,
        slo: None,
        gang: false,
        filter: false,
        pretrain: 0,
        synchronous: None,
    }
}

fn service(homogeneous: f64, correlated: f64) -> Service {
    Service {
        demand: Some(exponential()),
        homogeneous: Share::new(homogeneous).unwrap(),
        correlated: Share::new(correlated).unwrap(),
        ..Service::default()
    }
}

fn build(spec: &WorkloadSpec, service: &Service, seed: u64) -> Workload {
    Workload::build(spec, service, seed, 4, &NoTraces).unwrap()
}

fn drawn(jobs: u32, tasks: f64, homogeneous: f64, correlated: f64) -> Workload {
    build(&WorkloadSpec::Synthetic(synthetic(jobs, tasks)), &service(homogeneous, correlated), 12_345)
}

fn like(jobs: u32) -> Like {
    Like {
        jobs: Some(jobs),
        speedup: 1.0,
        load: None,
        interarrival: None,
        cutoff: None,
        deadline_slack: None,
        slo: None,
        gang: None,
        filter: false,
        pretrain: 0,
        synchronous: None,
    }
}

/// Mean and second moment of the work of attempt 0 of task 0, one per job.
fn moments(workload: &Workload) -> (f64, f64) {
    let n = f64::from(workload.jobs());
    let work = |job| workload.work(JobId(job).task(0).copy(0)).as_secs_f64();
    let sum = |f: &dyn Fn(f64) -> f64| (0..workload.jobs()).map(|job| f(work(job))).sum::<f64>() / n;
    (sum(&|x| x), sum(&|x| x * x))
}

#[test]
fn the_four_models_of_work_have_the_moments_of_table_4() {
    // Table IV with mean 1; the last row in its reading as a mean. Tolerances are five standard errors, for
    // which the fourth moments are 24, 24, 24 and 24² (a product of two exponentials).
    for (homogeneous, correlated, second, fourth) in
        [(1.0, 1.0, 2.0, 24.0), (0.0, 1.0, 2.0, 24.0), (1.0, 0.0, 2.0, 24.0), (0.0, 0.0, 4.0, 576.0f64)]
    {
        let n: u32 = 200_000;
        let (mean, square) = moments(&drawn(n, 2.0, homogeneous, correlated));
        let error = |variance: f64| 5.0 * (variance / f64::from(n)).sqrt();
        assert!((mean - 1.0).abs() < error(second - 1.0), "mean {mean} of {homogeneous}/{correlated}");
        assert!((square - second).abs() < error(fourth - second * second), "{square} for {second}");
    }
}

/// Correlation of two works of each job: the copies `a` and `b`, as (task, attempt).
fn correlation(workload: &Workload, a: (u32, u32), b: (u32, u32)) -> f64 {
    let work = |job: u32, (task, attempt)| workload.work(JobId(job).task(task).copy(attempt)).as_secs_f64();
    let n = f64::from(workload.jobs());
    let (mut sx, mut sy, mut sxx, mut syy, mut sxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for job in 0..workload.jobs() {
        let (x, y) = (work(job, a), work(job, b));
        (sx, sy, sxx, syy, sxy) = (sx + x, sy + y, sxx + x * x, syy + y * y, sxy + x * y);
    }
    (sxy - sx * sy / n) / ((sxx - sx * sx / n) * (syy - sy * sy / n)).sqrt()
}

#[test]
fn correlations_of_copies_and_tasks_follow_the_model() {
    let n = 100_000;
    // (homogeneous, correlated, correlation of two copies, correlation of two tasks). With a mean per task, copies have
    // covariance Var(m) = 1 in a variance of 3.
    for (homogeneous, correlated, copies, tasks) in
        [(1.0, 1.0, 1.0, 1.0), (0.0, 1.0, 1.0, 0.0), (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 1.0 / 3.0, 0.0)]
    {
        let workload = drawn(n, 2.0, homogeneous, correlated);
        let of_copies = correlation(&workload, (0, 0), (0, 1));
        let of_tasks = correlation(&workload, (0, 0), (1, 0));
        assert!((of_copies - copies).abs() < 0.03, "copies of {homogeneous}/{correlated}: {of_copies}");
        assert!((of_tasks - tasks).abs() < 0.02, "tasks of {homogeneous}/{correlated}: {of_tasks}");
        if correlated == 1.0 {
            let task = JobId(7).task(1);
            assert_eq!(workload.work(task.copy(0)), workload.work(task.copy(9)));
        }
    }
}

#[test]
fn shares_between_0_and_1_mix_the_models_of_work() {
    let n = 40_000;
    let workload = drawn(n, 2.0, 0.5, 0.5);
    let mut seen = [0u32; 4];
    for job in (0..n).map(JobId) {
        let work = |task: u32, attempt| workload.work(job.task(task).copy(attempt));
        let same_copies = work(0, 0) == work(0, 1);
        let same_tasks = workload.estimate(job.task(0)) == workload.estimate(job.task(1));
        seen[usize::from(same_copies) * 2 + usize::from(same_tasks)] += 1;
    }
    // Four standard deviations of a binomial share of a quarter.
    assert!(seen.iter().all(|&k| k.abs_diff(n / 4) < 350), "{seen:?}");
}

#[test]
fn work_does_not_depend_on_the_order_of_queries() {
    for (homogeneous, correlated) in [(1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (0.3, 0.7)] {
        let one = drawn(50, 5.0, homogeneous, correlated);
        let other = drawn(50, 5.0, homogeneous, correlated);
        let copies = || {
            let copy = |k: u32| JobId(k / 20 % 50).task(k / 4 % 5).copy(k % 4);
            (0..1000u32).map(copy)
        };
        let forward: Vec<Span> = copies().map(|copy| one.work(copy)).collect();
        let mut backward: Vec<Span> = copies().rev().map(|copy| other.work(copy)).collect();
        backward.reverse();
        assert_eq!(forward, backward);
        // Neither the estimate nor another number of jobs changes a draw.
        let longer = drawn(80, 5.0, homogeneous, correlated);
        assert!(copies().zip(&forward).all(|(copy, &work)| longer.work(copy) == work));
    }
    let other_seed = build(&WorkloadSpec::Synthetic(synthetic(50, 5.0)), &service(1.0, 1.0), 1);
    let copy = JobId(3).task(0).copy(0);
    assert_ne!(other_seed.work(copy), drawn(50, 5.0, 1.0, 1.0).work(copy));
}

#[test]
fn draws_equal_their_golden_values() {
    // Golden values: a change here changes every seeded result ever published.
    let copy = JobId(3).task(1).copy(2);
    let of = |homogeneous, correlated| drawn(5, 4.0, homogeneous, correlated).work(copy).0;
    let drawn_work = [of(1.0, 1.0), of(0.0, 1.0), of(1.0, 0.0), of(0.0, 0.0)];
    let generated = build(&WorkloadSpec::YahooLike(like(5)), &Service::default(), 12_345);
    let generated = (generated.tasks(JobId(3)), generated.work(JobId(3).task(0).copy(0)).0);
    let spec = drawn(5, 4.0, 1.0, 1.0).job(JobId(3));
    let golden =
        ([517_531_819, 63_674_799, 2_006_473_227, 127_761_779], (42, 23_552_317_396), (39_174_019, 0));
    assert_eq!((drawn_work, generated, (spec.arrival.0, spec.client)), golden);
}

#[test]
fn exact_estimates_are_the_work_or_its_expectation() {
    let (task, next) = (JobId(11).task(2), JobId(11).task(3));
    let one = Span::from_secs(1);

    let alike = drawn(20, 6.0, 1.0, 1.0);
    assert_eq!(alike.estimate(task), alike.work(task.copy(0)));
    assert_eq!(alike.job_estimate(task.job), alike.longest(task.job));

    let apart = drawn(20, 6.0, 0.0, 1.0);
    assert_eq!(apart.estimate(task), apart.work(task.copy(5)));
    assert_ne!(apart.estimate(task), apart.estimate(next));
    let mean = (0..6).map(|t| apart.estimate(task.job.task(t)).as_secs_f64()).sum::<f64>() / 6.0;
    assert!((apart.job_estimate(task.job).as_secs_f64() - mean).abs() < 1e-8);
    assert_eq!(apart.longest(task.job), (0..6).map(|t| apart.work(task.job.task(t).copy(0))).max().unwrap());

    assert_eq!(drawn(20, 6.0, 1.0, 0.0).estimate(task), one);
    // A task's own mean: the average of its copies.
    let means = drawn(20, 6.0, 0.0, 0.0);
    let copies = (0..40_000).map(|k| means.work(task.copy(k)).as_secs_f64()).sum::<f64>() / 40_000.0;
    assert!((copies / means.estimate(task).as_secs_f64() - 1.0).abs() < 0.03);
}

#[test]
fn estimates_are_rounded_down_to_their_unit() {
    let spec = WorkloadSpec::Synthetic(synthetic(200, 6.0));
    let exact = build(&spec, &service(0.0, 1.0), 3);
    let unit = Span::from_secs(1);
    let whole = build(&spec, &Service { estimate_unit: unit, ..service(0.0, 1.0) }, 3);
    let floor = |span: Span| Span(span.0 / unit.0 * unit.0);
    let mut cut = 0;
    for job in (0..200).map(JobId) {
        let (task, right) = (job.task(1), exact.estimate(job.task(1)));
        assert_eq!(whole.estimate(task), floor(right));
        assert_eq!(whole.job_estimate(job), floor(exact.job_estimate(job)));
        assert_eq!(whole.work(task.copy(0)), exact.work(task.copy(0)));
        cut += u32::from(whole.estimate(task) < right);
    }
    assert!(cut > 190, "{cut}");
}

#[test]
fn estimates_can_be_means_or_have_errors() {
    let with = |estimate| Service { estimate: Some(estimate), ..service(0.0, 1.0) };
    let spec = WorkloadSpec::Synthetic(synthetic(2_000, 6.0));
    let exact = build(&spec, &with(Estimate::Exact), 3);
    let mean = build(&spec, &with(Estimate::Mean), 3);
    let distribution = DistributionSpec::Uniform(Uniform { low: 0.5, high: 1.5 });
    let wrong = build(&spec, &with(Estimate::Error(distribution)), 3);
    let mut sum = 0.0;
    for job in (0..2_000).map(JobId) {
        assert_eq!(mean.estimate(job.task(1)), exact.job_estimate(job));
        let factor =
            |t| wrong.estimate(job.task(t)).as_secs_f64() / exact.estimate(job.task(t)).as_secs_f64();
        let of_job = wrong.job_estimate(job).as_secs_f64() / exact.job_estimate(job).as_secs_f64();
        assert!((factor(0) - of_job).abs() < 1e-4 && (factor(5) - of_job).abs() < 1e-4);
        assert!((0.5..=1.5).contains(&of_job), "{of_job}");
        assert_eq!(wrong.work(job.task(2).copy(0)), exact.work(job.task(2).copy(0)));
        sum += of_job;
    }
    assert!((sum / 2_000.0 - 1.0).abs() < 5.0 * 0.2887 / 2_000f64.sqrt());
}

#[test]
fn jobs_arrive_in_order_at_clients_sampled_evenly() {
    let workload = drawn(100_000, 3.0, 1.0, 1.0);
    let specs: Vec<_> = (0..100_000).map(|job| workload.job(JobId(job))).collect();
    assert!(specs.windows(2).all(|pair| pair[0].arrival <= pair[1].arrival));
    let last = specs[99_999].arrival.as_secs_f64();
    assert!((last - 2000.0).abs() < 5.0 * 0.02 * 100_000f64.sqrt(), "{last}");
    let mut clients = [0u32; 4];
    for spec in &specs {
        clients[spec.client as usize] += 1;
    }
    assert!(clients.iter().all(|&n| n.abs_diff(25_000) < 600), "{clients:?}");
    assert!(specs.iter().all(|spec| (spec.class, spec.tasks, spec.deadline) == (0, 3, None)));
}

#[test]
fn tasks_classes_and_deadlines_follow_their_keys() {
    let spec = WorkloadSpec::Synthetic(Synthetic {
        tasks: DistributionSpec::Normal(Normal { mean: 2.0, std: 3.0 }),
        cutoff: Some(Span::from_secs(1)),
        deadline_slack: Some(DistributionSpec::Uniform(Uniform { low: 0.2, high: 0.8 })),
        ..synthetic(20_000, 1.0)
    });
    let workload = build(&spec, &service(0.0, 1.0), 9);
    let (mut long, mut fewest) = (0u32, u32::MAX);
    for job in (0..20_000).map(JobId) {
        let spec = workload.job(job);
        fewest = fewest.min(spec.tasks);
        assert_eq!(spec.class == 1, workload.job_estimate(job) >= Span::from_secs(1));
        long += u32::from(spec.class);
        let slack =
            (spec.deadline.unwrap() - spec.arrival).as_secs_f64() / workload.longest(job).as_secs_f64();
        assert!((1.2 - 1e-6..=1.8 + 1e-6).contains(&slack), "{slack}");
    }
    assert_eq!(fewest, 1);
    assert!((6_000..12_000).contains(&long), "{long}");
}

#[test]
fn a_million_jobs_of_a_hundred_tasks_can_be_built() {
    let workload = drawn(1_000_000, 100.0, 0.0, 0.0);
    assert_eq!((workload.jobs(), workload.total_tasks()), (1_000_000, 100_000_000));
    assert!(workload.work(JobId(999_999).task(99).copy(1)) > Span::ZERO);
    assert_eq!(drawn(1_000_000, 100.0, 1.0, 0.0).job_estimate(JobId(999_999)), Span::from_secs(1));
}

#[test]
fn jobs_of_a_generator_have_the_work_of_the_generator() {
    let spec = WorkloadSpec::YahooLike(Like { speedup: 1000.0, ..like(20_000) });
    let workload = build(&spec, &Service::default(), 2);
    let last = workload.job(JobId(19_999)).arrival.as_secs_f64();
    assert!((last - 20.0 * 7.482).abs() < 0.1, "{last}");
    let long = (0..20_000).filter(|&job| workload.job(JobId(job)).class == 1).count();
    assert!((1_600..2_200).contains(&long), "{long}");
    let job = JobId(17);
    let tasks = workload.tasks(job);
    let mean =
        (0..tasks).map(|t| workload.work(job.task(t).copy(0)).as_secs_f64()).sum::<f64>() / f64::from(tasks);
    assert!((workload.job_estimate(job).as_secs_f64() - mean).abs() < 1e-6);
    assert_eq!(workload.estimate(job.task(0)), workload.job_estimate(job));
    assert_eq!(workload.work(job.task(0).copy(0)), workload.work(job.task(0).copy(3)));
    // 39.91 tasks of 118.78 s on average; means and fan-outs are independent only within a class.
    let per_job = workload.total_work() / 20_000.0;
    assert!((20_000.0..32_000.0).contains(&per_job), "{per_job}");

    let bursty = Like { interarrival: Some(exponential()), ..like(20_000) };
    let bursty = build(&WorkloadSpec::ClouderaLike(bursty), &service(1.0, 0.0), 2);
    let last = bursty.job(JobId(19_999)).arrival.as_secs_f64();
    assert!((last - 20_000.0).abs() < 750.0, "{last}");
    assert_eq!(bursty.estimate(JobId(4).task(0)), Span::from_secs(1));
}

/// A trace source with one file.
struct OneFile(&'static str, &'static str);

impl TraceSource for OneFile {
    fn open(&self, file: &Path, reading: &Reading) -> Result<Arc<Trace>, WorkloadError> {
        if file != Path::new(self.0) {
            return NoTraces.open(file, reading);
        }
        Trace::parse_with(file, Cursor::new(self.1), reading, Vec::new()).map(Arc::new)
    }
}

fn trace(file: &str) -> TraceSpec {
    toml::from_str(&format!("file = \"{file}\"")).unwrap()
}

#[test]
fn jobs_of_a_trace_equal_the_jobs_of_the_file() {
    let traces = OneFile("a.tr", "10 2 3.0 2.0 4.0\n11.5 1 7 7.5\n13 1 1 1\n");
    let spec = TraceSpec { jobs: Some(2), cutoff: Some(Span::from_secs(5)), ..trace("a.tr") };
    let spec = WorkloadSpec::Trace(spec);
    let workload = Workload::build(&spec, &Service::default(), 1, 1, &traces).unwrap();
    assert_eq!(workload.jobs(), 2);
    assert_eq!(workload.job(JobId(0)).arrival, Time::ZERO);
    assert_eq!(workload.job(JobId(1)).arrival, Time(1_500_000_000));
    assert_eq!(workload.work(JobId(0).task(1).copy(0)), Span::from_secs(4));
    assert_eq!(workload.longest(JobId(0)), Span::from_secs(4));
    // The stated mean, not the average of the durations.
    assert_eq!(workload.job_estimate(JobId(1)), Span::from_secs(7));
    assert_eq!((workload.job(JobId(0)).class, workload.job(JobId(1)).class), (0, 1));
    assert_eq!(workload.total_work(), 13.5);
    let exact = Service { estimate: Some(Estimate::Exact), ..Service::default() };
    let workload = Workload::build(&spec, &exact, 1, 1, &traces).unwrap();
    assert_eq!(workload.estimate(JobId(0).task(0)), Span::from_secs(2));

    let faster = TraceSpec { speedup: 10.0, ..trace("a.tr") };
    let workload = Workload::build(&WorkloadSpec::Trace(faster), &service(1.0, 0.0), 1, 1, &traces).unwrap();
    assert_eq!(workload.job(JobId(2)).arrival, Time(300_000_000));
    assert_ne!(workload.work(JobId(0).task(0).copy(0)), workload.work(JobId(0).task(0).copy(1)));

    let redrawn =
        TraceSpec { interarrival: Some(DistributionSpec::Constant(Span::from_secs(2))), ..trace("a.tr") };
    let redrawn = Workload::build(&WorkloadSpec::Trace(redrawn), &Service::default(), 1, 1, &traces).unwrap();
    assert_eq!(redrawn.job(JobId(2)).arrival, Time(6_000_000_000));
}

#[test]
fn impossible_dependencies_are_accepted_if_dependencies_are_off() {
    let rows = "submit,run,tasks,job,task,after\n0,5,1,j,a,b\n0,6,2,j,b,a\n";
    let stages = "submit,run,tasks,stages\n0,5,3,9 9_1\n";
    let names = "M1_2,1,j,1,Terminated,3,9,,\nM2_1,2,j,1,Terminated,3,9,,\n";
    for (file, text) in [("p.csv", rows), ("p.csv", stages), ("batch_task.csv", names)] {
        let build = |dependencies| {
            let spec = WorkloadSpec::Trace(TraceSpec { dependencies, ..trace(file) });
            Workload::build(&spec, &Service::default(), 1, 8, &OneFile(file, text))
        };
        assert!(build(true).is_err(), "{text}");
        let workload = build(false).unwrap();
        assert_eq!((workload.jobs(), workload.tasks(JobId(0)), workload.has_dependencies()), (1, 3, false));
    }
}

#[test]
fn the_class_of_a_job_with_stages_follows_the_mean_over_all_its_tasks() {
    let text = "submit,run,job,task,after\n0,2,j,a,\n0,8,j,b,a\n";
    for gang in [false, true] {
        let class = |cutoff| {
            let cutoff = Some(Span::from_secs(cutoff));
            let spec = TraceSpec { cutoff, gang: Some(gang), ..trace("p.csv") };
            let spec = WorkloadSpec::Trace(spec);
            let jobs = Workload::build(&spec, &Service::default(), 1, 8, &OneFile("p.csv", text)).unwrap();
            [0, 1].map(|job| jobs.class(JobId(job)))
        };
        assert_eq!([5, 6].map(class), [[1, 1], [0, 0]], "gangs: {gang}");
    }
}

#[test]
fn gpus_of_a_trace_are_the_tasks_of_gangs() {
    let text = "timestamp,duration,num_gpus\n2017-10-09 07:01:55,66,4\n2017-10-09 07:02:55,6,2\nlater,6,2\n";
    let build = |more: &str| {
        let keys = format!("file = \"p.csv\"\nzone = \"UTC\"\nsize = \"gpus\"\n{more}");
        let spec = WorkloadSpec::Trace(toml::from_str(&keys).unwrap());
        Workload::build(&spec, &Service::default(), 1, 8, &OneFile("p.csv", text))
    };
    let workload = build("skip_bad = 0.5").unwrap();
    let jobs = [0, 1].map(JobId);
    assert_eq!(jobs.map(|job| (workload.tasks(job), workload.is_gang(job))), [(4, true), (2, true)]);
    assert!(workload.warnings().iter().any(|warning| warning.contains("`size` counts their tasks")));
    assert!(!build("skip_bad = 0.5\ngang = false").unwrap().is_gang(JobId(0)));
    let error = build("").unwrap_err().to_string();
    assert!(error.contains("p.csv:4: field 1 (timestamp)") && error.contains("skip_bad"), "{error}");
    let columns = "columns = \"submit=timestamp,run=num_gpus:h,gpus=duration\"";
    let named = build(&format!("skip_bad = 0.5\ngang = false\n{columns}")).unwrap();
    assert_eq!((named.tasks(jobs[0]), named.longest(jobs[0])), (66, Span::from_secs(4 * 3600)));
    let error = toml::from_str::<TraceSpec>("file = \"p.csv\"\ncolumns = \"usr=u\"").unwrap_err().to_string();
    assert!(error.contains("`usr` is not a known column"), "{error}");
    let error = toml::from_str::<TraceSpec>("file = \"p.csv\"\nzone = \"CEST\"").unwrap_err().to_string();
    assert!(error.contains("`CEST` is not a time zone; write UTC"), "{error}");
}

#[test]
fn jobs_of_an_swf_trace_are_gangs_unless_the_section_says_otherwise() {
    let traces = OneFile("a.swf", "1 0 -1 10 4 -1 -1 4 60 -1 1 1 1 -1 -1 -1 -1 -1\n");
    let build = |gang, cores| {
        let spec = WorkloadSpec::Trace(TraceSpec { gang, ..trace("a.swf") });
        let site = Site { schedulers: 1, cores, largest: None };
        Workload::build(&spec, &Service::default(), 1, site, &traces)
    };
    let (gangs, tasks) = (build(None, 4).unwrap(), build(Some(false), 3).unwrap());
    assert!(gangs.is_gang(JobId(0)) && gangs.warnings()[0].contains("workload.trace.gang = false"));
    assert_eq!((tasks.is_gang(JobId(0)), tasks.warnings()), (false, &[][..]));
    assert_eq!([&gangs, &tasks].map(|jobs| jobs.requested(JobId(0))), [Some(Span::from_secs(60)); 2]);
    let error = build(None, 3).unwrap_err().to_string();
    assert!(error.contains("independent by workload.trace.gang = false"), "{error}");
}

#[test]
fn users_request_a_multiple_of_the_longest_task() {
    let spec = WorkloadSpec::Synthetic(synthetic(2_000, 3.0));
    let requested = Some(DistributionSpec::Uniform(Uniform { low: 1.0, high: 3.0 }));
    let with = build(&spec, &Service { requested, ..service(0.0, 1.0) }, 3);
    let without = build(&spec, &service(0.0, 1.0), 3);
    let mut sum = 0.0;
    for job in (0..2_000).map(JobId) {
        let factor = with.requested(job).unwrap().as_secs_f64() / with.longest(job).as_secs_f64();
        assert!((0.999..3.001).contains(&factor), "{factor}");
        assert_eq!((without.requested(job), with.longest(job)), (None, without.longest(job)));
        sum += factor;
    }
    assert!((sum / 2_000.0 - 2.0).abs() < 5.0 * 0.5774 / 2_000f64.sqrt(), "{sum}");
}

#[test]
fn a_missing_trace_falls_back_on_a_generator() {
    let traces = OneFile("a.tr", "");
    let spec = TraceSpec { fallback: Some(Model::YahooLike), jobs: Some(30), ..trace("b.tr.xz") };
    let workload = Workload::build(&WorkloadSpec::Trace(spec), &Service::default(), 1, 1, &traces).unwrap();
    assert_eq!(workload.jobs(), 30);
    assert!(workload.warnings()[0].contains("b.tr.xz") && workload.warnings()[0].contains("yahoo-like"));
    // A file that exists but is malformed is never replaced by the fallback.
    let spec = TraceSpec { fallback: Some(Model::YahooLike), ..trace("a.tr") };
    let error = Workload::build(&WorkloadSpec::Trace(spec), &Service::default(), 1, 1, &traces);
    assert!(matches!(error, Err(WorkloadError::Trace(_))));
}

#[test]
fn contradicting_keys_are_refused() {
    let refuse = |spec: WorkloadSpec, service: Service, schedulers, key: &str| {
        let error = Workload::build(&spec, &service, 1, schedulers, &NoTraces);
        let text = error.unwrap_err().to_string();
        assert!(text.starts_with(key), "{text}");
    };
    let some = || WorkloadSpec::Synthetic(synthetic(1, 1.0));
    refuse(some(), Service::default(), 1, "service.demand");
    refuse(some(), service(1.0, 1.0), 0, "cluster.schedulers");
    let nothing = Service { requested: Some(DistributionSpec::Constant(0.0)), ..service(1.0, 1.0) };
    refuse(some(), nothing, 1, "service.requested");
    refuse(WorkloadSpec::Synthetic(synthetic(0, 1.0)), service(1.0, 1.0), 1, "workload.synthetic.jobs");
    refuse(WorkloadSpec::YahooLike(like(0)), Service::default(), 1, "workload.yahoo-like.jobs");
    let slow = Like { speedup: 0.0, ..like(1) };
    refuse(WorkloadSpec::YahooLike(slow), Service::default(), 1, "workload.yahoo-like.speedup");
    let undrawn = Service { correlated: Share::NONE, ..Service::default() };
    refuse(WorkloadSpec::YahooLike(like(1)), undrawn, 1, "service.correlated");
    let heavy = DistributionSpec::Pareto(Scaled { scale: 100.0, shape: 0.2 });
    let heavy = WorkloadSpec::Synthetic(Synthetic { tasks: heavy, ..synthetic(1000, 1.0) });
    refuse(heavy, service(1.0, 1.0), 1, "workload.synthetic.tasks");
    let endless = DistributionSpec::Pareto(Scaled { scale: Span::from_secs(1), shape: 0.9 });
    refuse(some(), Service { demand: Some(endless), ..service(1.0, 0.0) }, 1, "service.demand");
}

#[test]
fn a_distribution_whose_file_was_not_read_is_refused() {
    let gaps = "jobs = 4\ntasks = 1\ninterarrival = { empirical = { file = \"gaps.txt\" } }";
    let spec = WorkloadSpec::Synthetic(toml::from_str(gaps).unwrap());
    let traces = NoTraces;
    let error = Workload::build(&spec, &service(1.0, 1.0), 1, 1, &traces).unwrap_err().to_string();
    assert!(error.starts_with("workload.synthetic.interarrival") && error.contains("not read"), "{error}");
}

/// A trace in memory, under any name.
struct Held(Arc<Trace>);

impl TraceSource for Held {
    fn open(&self, _: &Path, _: &Reading) -> Result<Arc<Trace>, WorkloadError> {
        Ok(Arc::clone(&self.0))
    }
}

/// If a trace states CPU requests, its tasks have these requests, and the load of shared nodes counts the tasks' CPU.
#[test]
fn tasks_request_the_cpu_that_their_trace_states() {
    let mut stated = Trace::new(Path::new("a.tr"), Format::Tr);
    stated.push_rigid(Time(0), Span::from_secs(1), 4);
    stated.detail(0, &Details { cores: Some(6.0), memory: Some(8.0), ..Details::default() });
    stated.push_rigid(Time(1), Span::from_secs(1), 2);
    let held = Held(Arc::new(stated.finish()));
    let usage = Some(toml::from_str("cpu = 2\nmemory = 1\nrequest = 1.5").unwrap());
    let service = Service { usage, ..Service::default() };
    let largest = Some(LargestNode { cpu: 8000, memory: u64::MAX, evicts: false });
    let site = Site { schedulers: 1, cores: 9, largest };
    let spec = WorkloadSpec::Trace(trace("a.tr"));
    let workload = Workload::build(&spec, &service, 1, site, &held).unwrap();
    assert_eq!([0, 1].map(|job| workload.request(JobId(job)).cpu), [1500, 3000]);
    assert_eq!([0, 1].map(|job| workload.request(JobId(job)).memory), [2 << 30, 3 << 29]);
    assert_eq!(workload.usage(JobId(0)).mean.cpu, 2000);
    assert_eq!(workload.total_work(), 12.0, "six tasks of a second at two cores");
    let error = Workload::build(&spec, &service, 1, 1, &held).unwrap_err().to_string();
    assert!(error.contains("service.usage") && error.contains("cluster.shared = true"), "{error}");
}

#[test]
fn a_series_that_ends_before_the_work_is_warned_about() {
    let warnings = |series: &str, evicts: bool| {
        let largest = Some(LargestNode { cpu: 8000, memory: u64::MAX, evicts });
        let site = Site { schedulers: 1, cores: 9, largest };
        let mut lone = Trace::new(Path::new("a.tr"), Format::Tr);
        lone.push_rigid(Time(0), Span::from_secs(20), 1);
        let held = Held(Arc::new(lone.finish()));
        let usage = Some(toml::from_str(&format!("series = {series}")).unwrap());
        let service = Service { usage, ..Service::default() };
        let workload =
            Workload::build(&WorkloadSpec::Trace(trace("a.tr")), &service, 1, site, &held).unwrap();
        workload.warnings().to_vec()
    };
    let [said] = &warnings("[[\"9s\", 1, 0], [\"10s\", 2, 0]]", false)[..] else { panic!("one warning") };
    let ends = "service.usage.series ends after 19s, before the longest task does (20s)";
    assert!(said.starts_with(ends) && said.contains("its last use holds"), "{said}");
    assert_eq!(warnings("[[\"20s\", 1, 0]]", false), [] as [&str; 0]);
    assert_eq!(warnings("[[\"20s\", 1, 1]]", true), [] as [&str; 0], "a smaller node has memory");
    let [said] = &warnings("[[\"20s\", 1, 1]]", false)[..] else { panic!("one warning") };
    assert!(said.contains("nothing is evicted without cluster.memory"), "{said}");
}

/// A job of n steps has the tasks, deadline, class and client of the same job in one step, and an n-th of its work and
/// its estimates in each step.
#[test]
fn steps_have_equal_parts_of_the_work_of_their_job() {
    let of = |steps, pretrain| {
        let slack = Some(DistributionSpec::Constant(1.0));
        let cutoff = Some(Span::from_secs(1));
        let spec = Synthetic { deadline_slack: slack, cutoff, pretrain, ..synthetic(90, 3.0) };
        let spec = WorkloadSpec::Synthetic(Synthetic { synchronous: steps, ..spec });
        build(&spec, &Service { requested: Some(DistributionSpec::Constant(2.0)), ..service(0.0, 0.0) }, 5)
    };
    for pretrain in [0, 20] {
        let (whole, steps) = (of(None, pretrain), of(Some(7), pretrain));
        assert_eq!((steps.chains(), steps.jobs()), (whole.jobs(), 7 * whole.jobs()));
        assert_eq!((steps.past(), whole.past()), (pretrain, pretrain));
        assert!((steps.total_work() / whole.total_work() - 1.0).abs() < 1e-6);
        let part = |span: Span| Span(span.0 / 7);
        for chain in 0..whole.jobs() {
            let job = JobId(chain);
            let near = steps.critical_path(chain).0.abs_diff(whole.critical_path(chain).0);
            assert!(near < 7 && steps.depth(chain) == 7);
            for (at, step) in steps.jobs_of(chain).map(JobId).enumerate() {
                assert_eq!((steps.chain(step), steps.tasks_before(step)), (chain, 3 * at as u32));
                assert_eq!(steps.job(step), whole.job(job));
                assert_eq!(steps.requested(step), whole.requested(job).map(part));
                assert_eq!(steps.longest(step), part(whole.longest(job)));
                assert_eq!(steps.job_estimate(step), part(whole.job_estimate(job)));
                for (copy, of) in (0..3).map(|task| (step.task(task).copy(1), job.task(task).copy(1))) {
                    assert_eq!(steps.work(copy), part(whole.work(of)));
                    assert_eq!(steps.estimate(copy.task), part(whole.estimate(of.task)));
                }
                let links = steps.links(step);
                assert!(links.predecessors().eq((at > 0).then(|| JobId(step.0 - 1))));
                assert!(links.successors().eq((at < 6).then(|| JobId(step.0 + 1))));
            }
        }
    }
}
