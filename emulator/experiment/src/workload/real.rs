//! Tests of readers and facts on real traces in the folders of `VOLARY_TRACES`. The traces may not be redistributed, so
//! these tests are ignored by default.
//!
//! Some tests check claims of Park's thesis (sections 3.2 and 3.6) on the traces of the ATLAS repository, which are
//! published at ftp.pdl.cmu.edu/pub/datasets/ATLAS. These tests need the files in the folder `atlas` of
//! `VOLARY_TRACES`: `mustang.csv`, `trinity.csv` and `twosigma.csv`, plain or as `.gz`, `.xz` or `.zst`.

use std::env;

use volary_actors::base::{Feature, JobId};
use volary_actors::catalog::Catalog;
use volary_actors::predict::PredictorKind;
use volary_engine::workload::{
    Like, NoTraces, Reading, Service, Trace, TraceSource, Workload, WorkloadError, WorkloadSpec,
};

use super::predict::{Accuracy, Question, evaluate};
use super::*;

fn traces() -> Traces {
    let folders =
        env::var_os("VOLARY_TRACES").expect("set VOLARY_TRACES to the folder of the published traces");
    Traces::new(env::split_paths(&folders).collect())
}

/// The description of a trace.
fn describe(file: &str) -> Description {
    let trace = traces().open(file.as_ref(), &Reading::default()).unwrap_or_else(|error| panic!("{error}"));
    super::describe(&trace, None, None)
}

fn close(what: &str, got: f64, want: f64, tolerance: f64) {
    assert!((got - want).abs() <= tolerance * want.abs(), "{what}: {got}, expected {want}");
}

#[test]
#[ignore = "reads published traces: set VOLARY_TRACES"]
fn the_yahoo_trace_has_the_published_characteristics() {
    let d = describe("yahoo/YH_recon.tr.xz");
    assert_eq!(
        (d.jobs, d.tasks, d.fan_out.max, d.reference),
        (24_262, 968_335, 5900.0, Some(Reference::Yahoo))
    );
    for row in &d.comparison {
        close(row.what, row.measured, row.published, 0.05);
    }
    close("last arrival", d.arrivals.span_s, 181_440.0, 1e-3);
    let classes = d.classes.unwrap();
    close("long tasks", classes.long_tasks, 0.47, 0.01);
    close("short work", 1.0 - classes.long_work, 0.018, 0.03);
    // Arrivals have six digits, so that only the last ones are whole seconds.
    assert_eq!(d.arrivals.poisson.ks_p, None);
    let excerpt = describe("yahoo/YH1_sub.tr.xz");
    assert_eq!((excerpt.jobs, excerpt.reference), (2_910, Some(Reference::Yahoo)));
    assert!(excerpt.notes.is_empty(), "{:?}", excerpt.notes);
}

#[test]
#[ignore = "reads published traces: set VOLARY_TRACES"]
fn the_yahoo_generator_has_the_spread_of_tasks_of_the_trace() {
    let real = describe("yahoo/YH1_sub.tr.xz").within_job.unwrap();
    let spec: Like = toml::from_str("jobs = 24262").unwrap();
    let like = Workload::build(&WorkloadSpec::YahooLike(spec), &Service::default(), 8, 1, &NoTraces).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("like.tr");
    std::fs::write(&file, lines(&like)).unwrap();
    let like = super::describe(&read(&file, &Reading::default()).unwrap(), None, None).within_job.unwrap();
    close("sd / sqrt(mean)", like.std_over_root_mean.p50, real.std_over_root_mean.p50, 0.02);
    close("CoV p50", like.cov.p50, real.cov.p50, 0.06);
    close("CoV p90", like.cov.p90, real.cov.p90, 0.06);
}

/// The jobs of a workload as lines of a `.tr` file.
fn lines(workload: &Workload) -> String {
    let line = |job: JobId| {
        let work = |index| workload.work(job.task(index).copy(0)).as_secs_f64().to_string();
        let durations: Vec<String> = (0..workload.tasks(job)).map(work).collect();
        let (arrival, mean) =
            (workload.job(job).arrival.as_secs_f64(), workload.job_estimate(job).as_secs_f64());
        format!("{arrival} {} {mean} {}\n", durations.len(), durations.join(" "))
    };
    (0..workload.jobs()).map(|job| line(JobId(job))).collect()
}

#[test]
#[ignore = "reads published traces: set VOLARY_TRACES"]
fn both_excerpts_of_the_google_trace_are_recognised() {
    for (file, jobs, tasks, long) in [
        ("google2011/GOOG_subtrace.tr.xz", 10_000, 312_558, 0.0905),
        ("google2011/google2011_first19h.tr.xz", 14_803, 408_867, 0.1004),
    ] {
        let d = describe(file);
        assert_eq!((d.jobs, d.tasks, d.reference), (jobs, tasks, Some(Reference::Google)), "{file}");
        close("long jobs", d.classes.unwrap().long_jobs, long, 0.005);
        assert!(d.arrivals.gap_cv2 > 1.0 && d.arrivals.poisson.ks_p.is_some_and(|p| p < 1e-12), "{file}");
    }
}

#[test]
#[ignore = "reads published traces: set VOLARY_TRACES"]
fn the_cloudera_trace_is_read_from_a_csv_of_jobs() {
    let d = describe("cloudera_c/cc_c_jobs_first10000_synthfanout.csv.xz");
    assert_eq!((d.jobs, d.reference), (10_000, Some(Reference::Cloudera)));
    close("mean p50", d.mean_s.p50, 47.79, 0.001);
    close("mean p99", d.mean_s.p99, 2514.66, 0.01);
    close("gap p50", d.arrivals.gap_s.p50, 12.3, 0.01);
    close("gap p99", d.arrivals.gap_s.p99, 13.0, 0.05);
    let error = traces()
        .open("cloudera_c/cc_c_jobs_first10000.csv.xz".as_ref(), &Reading::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains(":1:") && error.contains("`ntasks`"), "{error}");
}

#[test]
#[ignore = "reads published traces: set VOLARY_TRACES"]
fn traces_of_alibaba_and_swf_are_read_completely() {
    let d = describe("alibaba2018/alibaba_10k_HEAD.tr.xz");
    assert_eq!((d.jobs, d.tasks, d.reference), (10_000, 86_583, Some(Reference::Alibaba)));
    assert_eq!((d.fan_out.p50, d.fan_out.p90), (3.0, 3.0));
    let d = describe("swf/NASA-iPSC-1993-3.1-cln.swf.xz");
    assert_eq!((d.jobs, d.fan_out.max, d.reference), (18_239, 128.0, None));
    assert!(d.users.unwrap().users > 30);
    // The hours are counted by the log, which begins at midnight and has no Unix time.
    let (peak, trough) = d.arrivals.peak_and_trough().unwrap();
    assert!((8..18).contains(&peak.hour) && !(8..18).contains(&trough.hour), "{peak:?} {trough:?}");
}

/// Park's thesis states: 86 % of the estimates are within a factor of two (section 3.6), 92 % for jobs that finished
/// (section 4.1), and 11.7 % are under half; 80 % of the jobs last under 12 min, 44 to 62 % of the gaps are under one
/// second, 58 % of the jobs finished.
#[test]
#[ignore = "reads published traces: set VOLARY_TRACES"]
fn google_jobs_are_as_predictable_as_published() {
    let trace = traces()
        .open("google2011/google2011_jobs_29d_features.csv.xz".as_ref(), &Reading::default())
        .unwrap();
    let question = |features: &[Feature], only_finished| Question {
        predictor: PredictorKind::JvuPredict,
        features: features.to_vec(),
        only_finished,
        by_week: false,
    };
    let within =
        |what: &str, got: f64, want: f64| assert!((got - want).abs() < 0.01, "{what}: {got} for {want}");
    let all = [Feature::User, Feature::Name, Feature::LogicalName, Feature::Class];
    let every = evaluate(&trace, &question(&all, false)).overall;
    assert_eq!(every.jobs + every.without_estimate, 668_085);
    within("all jobs", every.within_factor_two, 0.857);
    within("under half", every.under_half, 0.077);
    within("finished jobs", evaluate(&trace, &question(&all, true)).overall.within_factor_two, 0.904);
    let d = super::describe(&trace, None, None);
    within("under 12 min", d.under_12min, 0.817);
    within("gaps under 1 s", d.arrivals.sub_second, 0.513);
    within("distance", d.arrivals.poisson.ks.unwrap(), 0.43);
    within("finished", d.outcomes.unwrap().successful, 0.577);
    assert_eq!((d.reference, d.arrivals.early), (Some(Reference::Google), 1_655), "recognised by its form");
    within("users", d.users.unwrap().highly_variable, 0.61);
}

#[test]
#[ignore = "reads published traces: set VOLARY_TRACES"]
fn features_beside_the_google_excerpt_are_read() {
    let trace = traces().open("google2011/google2011_first19h.tr.xz".as_ref(), &Reading::default()).unwrap();
    for feature in [Feature::User, Feature::Name, Feature::LogicalName, Feature::Priority, Feature::Class] {
        assert!(trace.features().contains(&feature), "{feature}");
    }
    // Fig. 3.1: nine of ten jobs request 16 cores or fewer.
    assert!(super::describe(&trace, None, None).cores.unwrap().p90 < 32.0);
}

/// Jobs, GPUs and core-seconds equal those of an independent reader of tables.
#[test]
#[ignore = "reads published traces: set VOLARY_TRACES"]
fn published_tables_have_the_counts_of_an_independent_reader() {
    let utc = Reading { zone: Some("UTC".parse().unwrap()), ..Reading::default() };
    for (file, jobs, gpus, work) in [
        ("gpu/philly.csv.xz", 82_247, 107_235.0, 1_080_390_950.0),
        ("gpu/mustang_100k.csv.xz", 100_000, 0.0, 740_780_343.0),
        ("openb/openb_pods.csv.xz", 7_255, 6_571.0, 210_028_342.0),
        ("swf/hpc2n.swf.xz", 3_145, 0.0, 503_655_194.0),
    ] {
        // Only this table is read with named columns (`--columns mustang`).
        let columns = file.contains("mustang").then(|| "mustang".parse().unwrap());
        let reading = Reading { columns, ..utc.clone() };
        let trace = traces().open(file.as_ref(), &reading).unwrap_or_else(|error| panic!("{error}"));
        let of_all: f64 = (0..jobs).filter_map(|job| trace.gpus(JobId(job))).map(f64::from).sum();
        assert_eq!((trace.jobs().len(), of_all), (jobs as usize, gpus), "{file}");
        close(file, super::describe(&trace, None, None).work_s, work, 1e-9);
    }
    let named =
        Reading { columns: Some("submit=start_ts,run=duration".parse().unwrap()), ..Reading::default() };
    assert_eq!(traces().open("bytedance/AR.parquet".as_ref(), &named).unwrap().jobs().len(), 117_216);
}

#[test]
#[ignore = "reads published traces: set VOLARY_TRACES"]
fn a_converted_real_trace_has_the_same_jobs() {
    let file = traces().find("alibaba2018/alibaba_10k_HEAD.tr.xz".as_ref()).unwrap();
    let trace = read(&file, &Reading::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("a.tr.zst");
    write(&trace, &to, false).unwrap();
    let again = read(&to, &Reading::default()).unwrap();
    assert_eq!(again.jobs(), trace.jobs());
    assert!((0..10_000).map(JobId).all(|job| again.durations(job) == trace.durations(job)));
}

/// The trace of this name. If it is missing, the error says where it is published.
fn open(name: &str) -> std::sync::Arc<Trace> {
    let folders = env::var_os("VOLARY_TRACES").expect("set VOLARY_TRACES to the folders of published traces");
    let traces = Traces::new(env::split_paths(&folders).collect());
    let packed = ["", ".gz", ".xz", ".zst"].map(|suffix| format!("atlas/{name}.csv{suffix}"));
    let is_there = |error: &WorkloadError| !matches!(error, WorkloadError::Missing { .. });
    let mut tries = packed.iter().map(|file| traces.open(file.as_ref(), &Reading::default()));
    let found = tries.find(|trace| trace.as_ref().err().is_none_or(is_there));
    found
        .or_else(|| packed.first().map(|file| traces.open(file.as_ref(), &Reading::default())))
        .unwrap()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Accuracy of run times predicted from all features but the hour.
fn predicted(trace: &Trace) -> Accuracy {
    let features = trace.features().into_iter().filter(|feature| *feature != Feature::Hour).collect();
    let predictor = PredictorKind::JvuPredict;
    evaluate(trace, &Question { predictor, features, only_finished: false, by_week: false }).overall
}

/// Asserts equality within five points, since the thesis does not list the features that it used.
fn near(what: &str, got: f64, published: f64) {
    assert!((got - published).abs() < 0.05, "{what}: {got}, published {published}");
}

/// The 80th percentile of the durations of jobs, in hours.
fn p80_h(trace: &Trace) -> f64 {
    super::describe(trace, None, None).duration_s.p80 / 3600.0
}

#[test]
#[ignore = "reads published traces: set VOLARY_TRACES"]
fn mustang_is_as_predictable_as_published() {
    let trace = open("mustang");
    near("within 5 %", predicted(&trace).within_5_percent, 0.38);
    assert!((2.5..3.5).contains(&p80_h(&trace)), "{} h, published 3 h", p80_h(&trace));
}

#[test]
#[ignore = "reads published traces: set VOLARY_TRACES"]
fn open_trinity_is_as_predictable_as_published() {
    let trace = open("trinity");
    let all = predicted(&trace);
    near("below the run time", all.under, 0.55);
    near("below by more than 95 %", all.errors[0].share, 0.24);
    assert!((5.0..7.0).contains(&p80_h(&trace)), "{} h, published 6 h", p80_h(&trace));
}

#[test]
#[ignore = "reads published traces: set VOLARY_TRACES"]
fn two_sigma_is_as_predictable_as_published() {
    let trace = open("twosigma");
    let all = predicted(&trace);
    near("below the run time", all.under, 0.31);
    near("below half of it", all.under_half, 0.15);
    assert!((1.5..2.5).contains(&p80_h(&trace)), "{} h, published 2 h", p80_h(&trace));
}
