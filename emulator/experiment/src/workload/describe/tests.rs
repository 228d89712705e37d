//! Descriptions of small hand-made traces, and of generated traces against published values.

use std::path::Path;

use volary_actors::base::{JobId, Span, Time};
use volary_actors::catalog::Catalog;
use volary_engine::workload::{Format, Like, NoTraces, Service, Trace, Workload, WorkloadSpec};

use super::quantiles::Quantiles;
use super::*;

fn parse(name: &str, text: &str) -> Trace {
    Trace::parse(Path::new(name), std::io::Cursor::new(text.to_owned()), None).unwrap()
}

#[test]
fn a_small_trace_is_described_exactly() {
    let d = describe(&parse("a.tr", "10 2 3 2 4\n11 1 1000 1000\n14 1 1 1\n24 1 8000 8000\n"), None, None);
    assert_eq!((d.jobs, d.tasks, d.work_s), (4, 5, 9007.0));
    assert_eq!((d.arrivals.span_s, d.offered_cores), (14.0, 9007.0 / 14.0));
    assert_eq!((d.single_task, d.under_12min, d.under_2h), (0.75, 0.5, 0.75));
    assert_eq!((d.fan_out.mean, d.fan_out.max, d.task_s.p50), (1.25, 2.0, 4.0));
    assert_eq!((d.duration_s.max, d.duration_s.min, d.job_work_s.p50), (8000.0, 1.0, 503.0));
    assert_eq!((d.arrivals.gap_s.p50, d.arrivals.gap_s.mean), (3.0, 14.0 / 3.0));
    assert_eq!((d.within_job, d.users, d.classes, d.reference), (None, None, None, None));
    let classes =
        describe(&parse("a.tr", "1 3 1 1 1 1\n2 1 9 9\n"), None, Some(Span::from_secs(9))).classes.unwrap();
    assert_eq!((classes.long_jobs, classes.long_tasks, classes.long_work), (0.5, 0.25, 0.75));
}

#[test]
fn spread_within_jobs_and_users_is_measured() {
    let fifteen: Vec<&str> = ["1", "3"].into_iter().cycle().take(16).collect();
    let d = describe(&parse("a.tr", &format!("1 16 2 {}\n2 1 5 5\n", fifteen.join(" "))), None, None);
    let within = d.within_job.unwrap();
    assert_eq!((within.jobs, within.cov.p50), (1, 0.5));
    // Tasks of 1 and 3 s are 50 % off their mean; the single task of the other job is not off.
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
    // Of processors 4, 4 and 1, 3, the 1 is half of its user's mean.
    assert_eq!(users.near_mean_size, 1.0);
    let d = describe(&parse("a.swf", &text), None, None);
    let sizes = d.sizes.unwrap();
    // Two jobs of 4 processors took 10 and 30 s, two of one took 5 and 1 s.
    assert_eq!((sizes.sizes, sizes.highly_variable), (2, 0.0));
    assert!((sizes.duration_cov.min - 0.5).abs() < 1e-9 && (sizes.duration_cov.max - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!(d.cores.unwrap().mean, 13.0 / 5.0);
}

#[test]
fn outcomes_are_counted_by_jobs_and_by_time() {
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
    // One definition of success: finished, or timed out.
    let groups: Vec<_> = outcomes.by_cpu_hours.iter().map(|g| (g.from_h, g.jobs, g.successful)).collect();
    assert_eq!(groups, [(0.0, 1, 0.0), (1.0, 3, 1.0), (10.0, 1, 0.0)]);
    assert_eq!((outcomes.successful, outcomes.successful_of_longest), (0.6, 0.0));
    // Nothing is said about tasks: no fan-outs, and no core-seconds.
    let text = d.to_string();
    assert!(!d.counts_tasks && !text.contains("jobs of one task") && !text.contains("core-s"), "{text}");
    assert!(text.contains("run time of all jobs"), "{text}");
}

#[test]
fn parts_are_compared_with_the_whole() {
    // Three weeks: a job an hour in the first, one every two hours after it, which take twice as long.
    let times = (0..168).chain((168..504).step_by(2));
    let row = |hour: u32| format!("{} 1 1 {}\n", hour * 3600, if hour < 168 { 60 } else { 120 });
    let d = describe(&parse("a.tr", &times.map(row).collect::<String>()), None, None);
    let weeks: Vec<_> = d.weeks.iter().map(|week| (week.number, week.jobs)).collect();
    assert_eq!(weeks, [(1, 168), (2, 84)], "the third is not complete");
    let gap = 502.0 / 335.0;
    assert!((d.weeks[0].gap - 1.0 / gap).abs() < 1e-9 && (d.weeks[1].gap - 2.0 / gap).abs() < 1e-9);
    assert!((d.weeks[0].duration - 60.0 / 90.0).abs() < 1e-9, "{:?}", d.weeks);
    assert!(d.months.is_empty());
}

#[test]
fn a_described_trace_can_be_empty_of_gaps() {
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
fn generators_are_taken_for_the_traces_they_are_like() {
    let like = Like {
        jobs: Some(24_262),
        speedup: 1.0,
        load: None,
        interarrival: None,
        cutoff: None,
        deadline_slack: None,
        slo: None,
        gang: false,
        filter: false,
        pretrain: 0,
    };
    let yahoo = describe(&generated(&WorkloadSpec::YahooLike(like.clone())), None, None);
    assert_eq!(yahoo.reference, Some(Reference::Yahoo));
    for row in &yahoo.comparison {
        let ratio = row.measured / row.published;
        // The maximum of a heavy-tailed sample says little about its distribution.
        let tolerance = if row.what == "fan-out, max" { 1.0 } else { 0.15 };
        assert!((ratio - 1.0).abs() < tolerance, "{row:?}");
    }
    let within = yahoo.within_job.unwrap();
    assert!((within.std_over_root_mean.p75 - 1.41).abs() < 0.1, "{within:?}");
    assert!(yahoo.arrivals.poisson.ks_p.unwrap() < 1e-12 && (yahoo.arrivals.gap_s.mean - 7.482).abs() < 0.01);

    let cloudera =
        describe(&generated(&WorkloadSpec::ClouderaLike(Like { jobs: Some(10_000), ..like })), None, None);
    assert_eq!(cloudera.reference, Some(Reference::Cloudera));
    assert!(cloudera.to_string().contains("Pigeon, Table 1"));
}
