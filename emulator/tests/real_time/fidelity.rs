//! Runs in real time, compared with their configuration and their certificates. On a slow machine the certificate must
//! say so, and comparisons of timing are skipped beyond a stated budget.

use volary::comparison::Validation;
use volary_engine::results::{Certificate, Departure, Late, Measured, Proportion};
use volary_experiment::config::Experiment;
use volary_experiment::control::StudyControl;
use volary_experiment::stats::dkw;
use volary_hosts::local;

use crate::common::binary::{self, expect, volary};
use crate::common::chains::assert_chains;
use crate::common::sharing::assert_sharing;
use crate::common::{LATENESS_BUDGET_S, plan, run, within_budget, worlds};

/// Jobs of about two seconds on a small cluster.
const WORLD: &str = r#"
title = "real time"
seed = 5
[cluster]
nodes = 20
cores = 2
schedulers = 2
[workload.synthetic]
jobs = 100
tasks = 4
interarrival = { exponential = { mean = "20ms" } }
[service]
demand = { exponential = { mean = "60ms" } }
"#;

fn experiment(policies: &str, network: &str, speed: f64) -> Experiment {
    let (policies, network) = (format!("policy=[{policies}]"), format!("network={{{network}}}"));
    plan(WORLD, &[&policies, &network, &format!("run.speed={speed}")])
}

/// Runs every point in real time on two shards.
fn local(experiment: &Experiment) -> Vec<Measured> {
    let run = |world| {
        local::measure("test", "test", world, &experiment.run, 2, None, &StudyControl::default())
            .expect("the run ends")
    };
    worlds(experiment).map(run).collect()
}

fn certificate(run: &Measured) -> &Certificate {
    let certificate = run.summary.fidelity.as_ref().unwrap();
    assert_consistent(certificate);
    certificate
}

/// Asserts properties of certificates that hold on any machine.
fn assert_consistent(certificate: &Certificate) {
    assert_eq!(certificate.is_degraded(), !certificate.reasons.is_empty());
    for reason in &certificate.reasons {
        assert!(reason.measured > reason.threshold && !reason.remedy.is_empty(), "{reason:?}");
    }
    let lateness = &certificate.lateness;
    for late in [&lateness.deliveries, &lateness.timers, &lateness.work, &lateness.arrivals] {
        let Late { p50_s, p99_s, max_s, late_share, .. } = *late;
        assert!(p50_s <= p99_s && p99_s <= max_s && (0.0..=1.0).contains(&late_share), "{late:?}");
    }
    let delay = &certificate.network.delay;
    assert_eq!(delay.asked.count, lateness.deliveries.count);
    assert_eq!(delay.achieved.count, lateness.deliveries.count);
    // Lateness is the growth of a delay; the histograms have three digits.
    let grown = delay.achieved.mean_s - delay.asked.mean_s;
    assert!((grown - lateness.deliveries.mean_s).abs() < 2e-3 * delay.achieved.mean_s + 1e-9, "{delay:?}");
    assert!(certificate.core_s.achieved >= certificate.core_s.asked && certificate.core_s.asked > 0.0);
    let [host] = &certificate.hosts[..] else { panic!("{:?}", certificate.hosts) };
    assert!(host.name == "local" && host.wall_s > 0.0 && host.cpu_s > 0.0 && host.cores > 0, "{host:?}");
    assert_eq!((host.datagrams_lost, host.clock.bound_s), (0, 0.0), "nothing real is between the shards");
}

#[test]
fn chains_of_stages_run_in_order_in_real_time() {
    let _machine = crate::machine();
    let folder = tempfile::tempdir().unwrap();
    assert_chains(folder.path(), "--runtime local");
}

#[test]
fn shared_nodes_keep_their_limits_in_real_time() {
    let _machine = crate::machine();
    let folder = tempfile::tempdir().unwrap();
    assert_sharing(folder.path(), "--runtime local");
}

#[test]
fn real_time_runs_have_the_same_jobs_as_virtual_time() {
    let _machine = crate::machine();
    let policies = "{sparrow={}}, {latin-square={order=2}}";
    let experiment = experiment(policies, "one_way={gamma={shape=9, mean=\"5ms\"}}", 1.0);
    for (virtually, really) in run(&experiment).iter().zip(local(&experiment)) {
        let (a, b) = (&virtually.summary, &really.summary);
        assert_eq!((a.jobs, a.tasks), (b.jobs, b.tasks), "{}", a.policy);
        assert_eq!(b.jobs.finished, 100);
        let draws = |run: &Measured| -> Vec<_> {
            run.jobs
                .iter()
                .map(|job| (job.job, job.arrival, job.longest, job.tasks, job.class.clone()))
                .collect()
        };
        assert_eq!(draws(virtually), draws(&really), "{}", a.policy);
        assert!(really.jobs.iter().all(|job| job.response > job.longest), "nothing ends before it can");
        let certificate = certificate(&really);
        assert!(a.fidelity.is_none() && certificate.speed == 1.0);
        assert!(certificate.lateness.deliveries.count >= 800, "{certificate:?}");
        assert!(certificate.lateness.work.count >= 400, "every copy that ended");
    }
}

/// The configured delays follow the distribution of the file. The achieved delays differ from it by no more than the
/// lateness budget allows.
#[test]
fn delays_follow_the_distribution_within_the_lateness_budget() {
    let _machine = crate::machine();
    for (mean, text, speed) in [(0.001, "1ms", 2.0), (0.01, "10ms", 0.5), (0.1, "100ms", 2.0)] {
        let network = format!("one_way={{gamma={{shape=4, mean=\"{text}\"}}}}");
        let experiment = experiment("{sparrow={}}", &network, speed);
        let run = local(&experiment).remove(0);
        let certificate = certificate(&run);
        let delay = &certificate.network.delay;
        let n = delay.asked.count as f64;
        // A gamma distribution of shape 4 has a standard deviation of half its mean.
        let sampling = 5.0 * 0.5 * mean / n.sqrt();
        assert!((delay.asked.mean_s - mean).abs() < sampling + 2e-6, "{text}: {delay:?}");
        let budget = LATENESS_BUDGET_S.0 * speed;
        // The density is below 0.9 over the mean, which bounds the change of the distribution function by a shift.
        let most = 0.01 + 0.9 * budget / mean + 2.0 * dkw(delay.asked.count);
        // A budget as long as the delay itself would bound nothing.
        if budget < mean / 5.0 && within_budget(&format!("achieved delays of {text}"), certificate) {
            let ks = delay.ks.unwrap();
            assert!(most < 0.5 && (0.0..=most).contains(&ks), "{text}: {ks} above {most}: {delay:?}");
            let longer = delay.achieved.mean_s - delay.asked.mean_s;
            assert!((-2e-3 * mean..=budget).contains(&longer), "{text}: longer by {longer}: {delay:?}");
        }
    }
}

#[test]
fn losses_and_duplicates_have_the_requested_rates_in_each_class() {
    let _machine = crate::machine();
    let network = "one_way=\"2ms\", loss=0.1, duplicate=0.2, reorder=0.3";
    let experiment = experiment("{sparrow={}}", network, 2.0);
    let run = local(&experiment).remove(0);
    assert_eq!(run.summary.jobs.finished, 100, "losses are repaired");
    let network = &certificate(&run).network;
    let within = |share: Proportion, p: f64, what: &str| {
        assert_eq!(share.asked, Some(p), "{what}");
        assert!(share.trials > 300, "{what}: {share:?}");
        let apart = (share.achieved.unwrap() - p).abs();
        assert!(apart < 5.0 * (p * (1.0 - p) / share.trials as f64).sqrt(), "{what}: {share:?}");
    };
    within(network.datagram.loss, 0.1, "loss of datagrams");
    within(network.stream.loss, 0.1, "loss of streams");
    within(network.datagram.duplicate, 0.2, "duplicates");
    within(network.datagram.reorder, 0.3, "reordering");
    assert_eq!(network.stream.duplicate, Proportion::default(), "a stream has none");
    assert!(network.delay.ks.is_none(), "a constant distribution");
}

/// At a million emulated seconds per second, even the fastest machine is late.
#[test]
fn an_overloaded_run_is_marked_degraded() {
    let _machine = crate::machine();
    let experiment = experiment("{random={}}", "one_way=\"1ms\"", 1e6);
    let run = local(&experiment).remove(0);
    assert_eq!(run.summary.jobs.finished, 100, "late, but complete");
    let certificate = certificate(&run);
    assert!(certificate.is_degraded());
    let what: Vec<_> = certificate.reasons.iter().map(|reason| reason.what).collect();
    assert!(what.contains(&Departure::LateDeliveries) && what.contains(&Departure::LongerDelays), "{what:?}");
    assert!(certificate.remedies()[0].starts_with("--set run.speed=100000 "), "{:?}", certificate.remedies());
}

#[test]
fn table_results_and_report_show_the_certificate() {
    let _machine = crate::machine();
    let folder = binary::folder();
    let at = folder.path();
    let (out, _) = expect(at, "run e.toml --runtime local --set run.speed=20 --out r", 0);
    assert!(out.contains("fidelity"), "{out}");
    let (json, _) = expect(at, "report r --json", 0);
    let lines = binary::lines(&json);
    for line in &lines[..2] {
        let certificate: Certificate = serde_json::from_value(line["fidelity"].clone()).unwrap();
        assert_consistent(&certificate);
        assert_eq!(certificate.speed, 20.0);
    }
    let page = std::fs::read_to_string(at.join("r/report.html")).unwrap();
    assert!(page.contains("Fidelity: asked against achieved"));
    let degraded = page.contains("✗ degraded");
    assert_eq!(
        degraded,
        page.contains("departed from the configuration"),
        "the overview names degraded runs"
    );
}

#[test]
fn validate_compares_runtimes_and_checks_their_differences() {
    let _machine = crate::machine();
    let folder = binary::folder();
    let at = folder.path();
    let validate = "validate e.toml --speed 20 --policy sparrow --runtimes";
    let output = volary(at, &format!("{validate} virtual,local --repeat 3 --json --check --out v"));
    let out = binary::text(&output.stdout);
    let validation: Validation = serde_json::from_str(&out).unwrap();
    let failed = validation.is_void() || !validation.holds();
    assert_eq!(output.status.code(), Some(i32::from(failed)), "{out}");
    assert_eq!((validation.reference.as_str(), validation.points.len()), ("virtual", 1));
    let [against] = &validation.points[0].against[..] else { panic!("{out}") };
    assert_eq!((against.runtime.as_str(), against.runs), ("local", 3));
    assert!(against.accounts.is_empty(), "{:?}", against.accounts);
    assert_eq!((against.draws.jobs, against.draws.different), (60, 0));
    assert!(against.metrics.iter().all(|metric| metric.spread.is_some()), "three runs have a spread");
    for run in ["v/virtual-1", "v/local-3"] {
        assert!(at.join(run).join("report.html").exists(), "{run}");
    }
    std::fs::remove_dir_all(at.join("v/local-2")).unwrap();
    let kept = || {
        ["v/virtual-1", "v/local-1", "v/local-3"]
            .map(|run| std::fs::read(at.join(run).join("summary.jsonl")).unwrap())
    };
    let before = kept();
    let resumed = volary(at, &format!("{validate} virtual,local --repeat 3 --json --out v --resume"));
    let resumed: Validation = serde_json::from_str(&binary::text(&resumed.stdout)).unwrap();
    let accounts = |validation: &Validation| (validation.points.len(), validation.points[0].against[0].runs);
    assert_eq!(accounts(&resumed), accounts(&validation));
    assert!(kept() == before, "runs that are there, with their CPU times, are kept");
    let (_, err) = expect(at, &format!("{validate} virtual,local --out absent --resume"), 2);
    assert!(err.contains("there is no folder absent"), "{err}");
    let (_, err) = expect(at, &format!("{validate} virtual,local --repeat 3 --out v"), 2);
    assert!(err.contains("already holds a run") && err.contains("--resume"), "{err}");
    let (_, err) = expect(at, &format!("{validate} virtual,virtual --out w"), 2);
    assert!(err.contains("nothing to compare"), "{err}");
}

/// A policy with caches has the same jobs in real time as in virtual time, and the same staleness within the lateness
/// budget.
#[test]
fn caches_in_real_time_are_as_stale_as_in_virtual_time() {
    let _machine = crate::machine();
    let set = [
        "cluster={nodes=12, schedulers=3}",
        "workload.synthetic={jobs=150, tasks=3, interarrival={exponential={mean=\"15ms\"}}}",
        "service.demand={exponential={mean=\"20ms\"}}",
        "network.one_way=20ms",
        "run.record.staleness=10ms",
        "policy=[{murmuration={batch=false, update_delay=\"80ms\"}}]",
    ];
    let experiment = plan(WORLD, &set);
    let (virtually, really) = (run(&experiment).remove(0).summary, local(&experiment).remove(0).summary);
    assert_eq!((virtually.jobs, virtually.tasks), (really.jobs, really.tasks));
    let (a, b) = (virtually.sections.staleness.unwrap(), really.sections.staleness.unwrap());
    let certificate = really.fidelity.unwrap();
    assert!((0.08..0.1001).contains(&a.age_of_synchronisation_s.max), "{a:?}");
    assert!(b.age_of_synchronisation_s.max > 0.08, "{b:?}");
    if !within_budget("staleness in real time", &certificate) {
        return;
    }
    // An update passes a timer and two deliveries.
    let late = 3.0 * LATENESS_BUDGET_S.1;
    assert!(b.age_of_synchronisation_s.max < 0.1001 + late, "{b:?}, {certificate:?}");
    for (here, there) in [
        (b.age_of_synchronisation_s, a.age_of_synchronisation_s),
        (b.in_flight, a.in_flight),
        (b.error_s, a.error_s),
    ] {
        let ratio = here.mean / there.mean;
        assert!((0.6..1.5).contains(&ratio), "{here:?} against {there:?}, {certificate:?}");
    }
}
