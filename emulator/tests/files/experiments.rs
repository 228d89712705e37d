//! Tests of small versions of shipped experiments against the claims that they must keep.

use std::path::{Path, PathBuf};

use volary_actors::base::{Feature, JobId};
use volary_actors::catalog::Catalog;
use volary_actors::predict::{Combination, Predictor, PredictorKind};
use volary_engine::results::{Measured, Verdict};
use volary_engine::workload::{NoTraces, Workload};
use volary_experiment::config::{Experiment, Overrides, Repeat};

use crate::common::run;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments")
}

/// A shipped experiment with fewer jobs and one replication.
fn small(file: &str, set: &[&str]) -> Experiment {
    let set = set.iter().map(ToString::to_string).collect();
    let overrides = Overrides { set, repeat: Some(Repeat::Times(1)), ..Overrides::default() };
    Experiment::load(&folder().join(file), &overrides).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs the experiment and asserts the claims whose statement contains one of the texts `of`; all claims if `of` is
/// empty.
fn assert_claims(experiment: &Experiment, of: &[&str]) -> Vec<Measured> {
    let runs = run(experiment);
    let summaries: Vec<_> = runs.iter().map(|run| run.summary.clone()).collect();
    let wanted = |says: &str| of.is_empty() || of.iter().any(|part| says.contains(part));
    let mut judged = 0;
    for claim in experiment.judge(&summaries).into_iter().filter(|claim| wanted(&claim.says)) {
        assert_eq!(claim.verdict, Verdict::Holds, "{}: {:?}", claim.says, claim.measured);
        judged += 1;
    }
    assert!(judged >= of.len().max(1), "{judged} claims for {of:?}");
    for summary in &summaries {
        assert_eq!(summary.jobs.finished, summary.jobs.submitted, "{}", summary.policy);
        let copies = &summary.copies;
        assert_eq!(
            copies.started,
            copies.finished + copies.preempted + copies.lost + copies.in_progress,
            "{}",
            summary.policy
        );
    }
    runs
}

#[test]
fn the_quickstart_keeps_its_claims_with_a_quarter_of_the_jobs() {
    assert_claims(&small("quickstart.toml", &["workload.synthetic.jobs=1000"]), &[]);
}

#[test]
fn the_experiment_of_table_2_keeps_its_claims() {
    assert_claims(&small("latin-square/table2.toml", &[]), &[]);
}

#[test]
fn the_claims_of_murmurations_worked_examples_hold() {
    assert_claims(&small("murmuration/fig7.toml", &[]), &[]);
    assert_claims(&small("murmuration/messages.toml", &[]), &[]);
    let trace = format!("workload.trace.file={}", folder().join("murmuration/fig8.tr").display());
    assert_claims(&small("murmuration/fig8.toml", &[&trace]), &[]);
}

#[test]
fn the_claims_of_the_worked_examples_of_pigeon_and_kairos_hold() {
    let trace = format!("workload.trace.file={}", folder().join("pigeon/example.tr").display());
    assert_claims(&small("pigeon/example.toml", &[&trace]), &[]);
    assert_claims(&small("kairos/table1.toml", &[]), &[]);
}

#[test]
fn gossip_matches_its_closed_forms() {
    assert_claims(&small("gossip/closed-forms-information.toml", &[]), &[]);
    assert_claims(&small("gossip/closed-forms-handling.toml", &[]), &[]);
    // The event loop looks ahead in runs with more than 20,000 actors.
    let set = ["cluster.nodes=25000", "workload.gossip.duration=10s"];
    assert_claims(&small("gossip/closed-forms-coverage.toml", &set), &[]);
    for (name, set, claims) in [
        ("rounds", "cluster.nodes=10", "10 members: 6.047"),
        ("clocks", "cluster.nodes=10", "10 members: 5.092"),
        ("age", "cluster.nodes=8", "8 members, "),
    ] {
        assert_claims(&small(&format!("gossip/closed-forms-{name}.toml"), &[set]), &[claims]);
    }
}

#[test]
fn straggler_experiments_keep_their_claims_on_backups() {
    let experiment = small("stragglers/speculation.toml", &["workload.synthetic.jobs=200"]);
    assert_claims(&experiment, &["long and severe bursts: policies", "LATE has", "clones for all"]);
}

/// The latin square is faster in one cell, with long bursts, and slower in another, with short bursts.
#[test]
fn the_latin_square_is_faster_only_where_bursts_outlast_tasks() {
    let cell = |slot: &str, slowdown: u32| {
        let mut experiment = small("stragglers/bursts.toml", &["workload.synthetic.jobs=1000"]);
        experiment.points.retain(|point| {
            point.cell["interference.bernoulli.slot"] == slot
                && point.cell["interference.bernoulli.slowdown"] == slowdown
                && point.cell["interference.bernoulli.probability"] == 0.05
        });
        let runs = run(&experiment);
        let p99 = |label: &str| {
            let run = runs.iter().find(|run| run.summary.policy == label);
            run.map(|run| run.summary.times.response_s.p99).unwrap()
        };
        p99("latin-square") / p99("sparrow")
    };
    let long = cell("10s", 16);
    assert!(long < 0.8, "long severe bursts: {long}");
    let short = cell("100ms", 4);
    assert!(short > 1.3, "short mild bursts: {short}");
}

#[test]
fn set_refuses_keys_of_classes_in_another_file() {
    let set = vec!["workload.mix.class.k1.weight=2".to_owned()];
    let overrides = Overrides { set, ..Overrides::default() };
    let error = Experiment::load(&folder().join("3sigma/e2e.toml"), &overrides).unwrap_err().to_string();
    for part in ["--set:1:", "are in the file `../mixes/google.toml`", "change a copy of that file"] {
        assert!(error.contains(part), "{error}");
    }
}

/// Jobs from classes fitted to the Google trace are predicted from the jobs that had ended before. The share of
/// predictions within a factor of two of the run time is 86 % in the trace, and from 85 to 95 % here.
#[test]
fn jobs_of_the_google_mix_are_as_predictable_as_the_trace() {
    let text = "title = \"classes\"\nseed = 1\ncluster.nodes = 256\n[workload.mix]\njobs = 3600\npretrain = 3000\n\
                interarrival = \"12s\"\nclasses = \"mixes/google.toml\"\n[[policy]]\nrandom = {}\n";
    let file = folder().join("classes.toml");
    let experiment = Experiment::plan(&file.display().to_string(), text, &Overrides::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let resolved = &experiment.points[0].resolved;
    let mut shares = Vec::new();
    for seed in 1..=5 {
        let site = resolved.cluster.site();
        let jobs = Workload::build(&resolved.workload, &resolved.service, seed, site, &NoTraces).unwrap();
        let kinds = Combination::singles_and_pairs(&[Feature::User, Feature::Name]);
        let mut predictor = Predictor::new(PredictorKind::ThreeSigma, &kinds);
        for past in (0..jobs.past()).map(|number| jobs.past_job(number)) {
            let prediction = predictor.predict(|feature| past.feature(feature));
            predictor.learn(|feature| past.feature(feature), &prediction, past.run.as_secs_f64());
        }
        let mut within = 0;
        for job in (0..jobs.jobs()).map(JobId) {
            let (of, run) = (|feature| jobs.feature(job, feature), jobs.longest(job).as_secs_f64());
            let prediction = predictor.predict(of);
            within += u32::from((0.5..=2.0).contains(&(prediction.point.unwrap() / run)));
            predictor.learn(of, &prediction, run);
        }
        shares.push(f64::from(within) / f64::from(jobs.jobs()));
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((0.85..=0.95).contains(&mean), "{shares:?}");
}
