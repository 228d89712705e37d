//! Claims of Park's thesis (sections 3.2 and 3.6) about the traces of the ATLAS repository, which are published at
//! ftp.pdl.cmu.edu/pub/datasets/ATLAS. The tests are ignored, and need the files in the folder `atlas` of
//! `VOLARY_TRACES`: `mustang.csv`, `trinity.csv` and `twosigma.csv`, plain or as `.gz`, `.xz` or `.zst`.

use std::env;

use volary_actors::base::Feature;
use volary_actors::predict::PredictorKind;
use volary_engine::workload::{Trace, TraceSource, WorkloadError};

use super::predict::{Accuracy, Question, evaluate};
use super::{Traces, describe};

/// The trace of that name; without it the error says where it is published.
fn open(name: &str) -> std::sync::Arc<Trace> {
    let folders = env::var_os("VOLARY_TRACES").expect("set VOLARY_TRACES to the folders of published traces");
    let traces = Traces::new(env::split_paths(&folders).collect());
    let packed = ["", ".gz", ".xz", ".zst"].map(|suffix| format!("atlas/{name}.csv{suffix}"));
    let is_there = |error: &WorkloadError| !matches!(error, WorkloadError::Missing { .. });
    let mut tries = packed.iter().map(|file| traces.open(file.as_ref(), None));
    let found = tries.find(|trace| trace.as_ref().err().is_none_or(is_there));
    found
        .or_else(|| packed.first().map(|file| traces.open(file.as_ref(), None)))
        .unwrap()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Accuracy of run times predicted from all features but the hour.
fn predicted(trace: &Trace) -> Accuracy {
    let features = trace.features().into_iter().filter(|feature| *feature != Feature::Hour).collect();
    let predictor = PredictorKind::JvuPredict;
    evaluate(trace, &Question { predictor, features, only_finished: false, by_week: false }).overall
}

/// Within five points: the thesis does not list the features that it used.
fn near(what: &str, got: f64, published: f64) {
    assert!((got - published).abs() < 0.05, "{what}: {got}, published {published}");
}

/// The 80th percentile of the durations of jobs, in hours.
fn p80_h(trace: &Trace) -> f64 {
    describe(trace, None, None).duration_s.p80 / 3600.0
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
