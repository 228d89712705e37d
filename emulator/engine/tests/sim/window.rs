//! The measured window of a run: the jobs and times that it counts, unchanged events, and closed forms that hold in
//! short runs.

use std::cell::Cell;

use volary_actors::base::Time;
use volary_engine::metrics::{Recorder, Recording, RunConfig};
use volary_engine::results::{CopyEnd, Measured, Summary};
use volary_engine::shard::Traffic;
use volary_engine::virtual_time::{Progress, measure};
use volary_engine::workload::NoTraces;
use volary_engine::world::World;

use crate::common::{FAULTY, parse, poisson, run, with, world};

/// A run with this window, all of whose executions are sampled.
fn measured(text: &str, window: &str) -> Measured {
    let text = if window.is_empty() { text.to_owned() } else { with(text, &[&format!("measure={window}")]) };
    let recording = Recording { one_in: Some(1), ..Recording::default() };
    measure("test", &world(&text), &RunConfig { until: None, recording }, &()).expect("the run ends")
}

fn assert_near(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found - expected).abs() <= tolerance * expected, "{what}: {found} instead of {expected}");
}

/// The results of a window follow from the jobs and the executions of the same run without one.
#[test]
fn a_window_counts_the_jobs_that_arrive_in_it_and_the_core_time_within_it() {
    let las = "murmuration = { order = \"las\", quantum = \"50ms\" }";
    for policy in ["sparrow = {}", "latin-square = { order = 2 }", las] {
        let text = format!("{FAULTY}[[policy]]\n{policy}\n");
        let (whole, some) = (measured(&text, ""), measured(&text, "{ from = \"25 %\", until = \"2.5s\" }"));
        let (summary, window) = (&some.summary, some.summary.window.expect("there is a window"));
        assert_eq!((&some.jobs, &some.copies), (&whole.jobs, &whole.copies), "{policy}");
        assert_eq!(summary.engine.order_hash, whole.summary.engine.order_hash, "{policy}");
        assert_eq!(summary.makespan_s, whole.summary.makespan_s, "{policy}");
        assert_eq!((window.from_s, window.until_s), (whole.jobs[20].arrival, 2.5), "{policy}");
        let jobs: Vec<_> = whole.jobs[20..].iter().filter(|job| job.arrival < 2.5).collect();
        let counted = jobs.len() as u64;
        assert_eq!(
            (window.warm_up, window.after, summary.jobs.finished),
            (20, 60 - counted, counted),
            "{policy}"
        );
        assert_eq!((summary.tasks.submitted, summary.tasks.finished), (4 * counted, 4 * counted), "{policy}");
        let mean = jobs.iter().map(|job| job.response).sum::<f64>() / counted as f64;
        assert_near(summary.times.response_s.mean, mean, 1e-9, policy);
        let of_jobs = whole.copies.iter().filter(|copy| summary.measures(copy.job));
        let busy: f64 = of_jobs.map(|copy| copy.end - copy.start).sum();
        assert_near(summary.copies.busy_s, busy, 1e-9, policy);
        let within = |kind: fn(CopyEnd) -> bool| {
            let copies = whole.copies.iter().filter(|copy| kind(copy.end_kind));
            let times = copies.map(|copy| (copy.end.min(2.5) - copy.start.max(window.from_s)).max(0.0));
            times.sum::<f64>() / (24.0 * (2.5 - window.from_s))
        };
        assert_near(summary.utilization, within(|_| true), 1e-9, policy);
        assert!(summary.goodput >= within(|kind| kind == CopyEnd::First) - 1e-9, "{policy}");
        let ended = whole.jobs.iter().map(|job| job.arrival + job.response);
        let ended = ended.filter(|end| (window.from_s..=2.5).contains(end)).count() as f64;
        assert_near(summary.throughput_per_s, ended / (2.5 - window.from_s), 1e-9, policy);
    }
}

/// Messages, samples of caches and decisions of three consecutive windows add up to those of the whole run.
#[test]
fn consecutive_windows_add_up_to_the_run() {
    let text =
        with(&format!("{FAULTY}[[policy]]\nyaq-d = {{}}\n"), &["actors.handling={ node = \"100us\" }"]);
    let windows = [
        "{ from = \"0s\", until = \"1s\" }",
        "{ from = \"1s\", until = \"2s\" }",
        "{ from = \"2s\", until = \"1h\" }",
    ];
    let (whole, parts) = (measured(&text, "").summary, windows.map(|window| measured(&text, window).summary));
    let sum = |number: fn(&Summary) -> u64| parts.iter().map(number).sum::<u64>();
    assert_eq!(sum(|s| s.jobs.finished), whole.jobs.finished);
    assert_eq!(sum(|s| s.copies.started), whole.copies.started);
    assert_eq!(sum(|s| s.messages.total), whole.messages.total);
    assert_eq!(sum(|s| s.messages.by_kind.values().sum()), whole.messages.by_kind.values().sum::<u64>());
    assert_eq!(sum(|s| s.messages.dropped), whole.messages.dropped);
    assert_eq!(sum(|s| s.actors["node"].handled), whole.actors["node"].handled);
    assert!(parts.iter().all(|part| part.messages.total > 0 && part.actors["node"].handled > 0));
    let busy = |s: &Summary| {
        let window = s.window.expect("there is a window");
        s.utilization * (window.until_s - window.from_s)
    };
    assert_near(parts.iter().map(busy).sum(), whole.utilization * whole.makespan_s, 1e-9, "core time");
}

/// The mean over many short runs, each with its own seed: without a window they contain the filling of an empty system
/// and its draining.
fn means(text: &str, runs: u64) -> [f64; 3] {
    let experiment = parse(text);
    let runs = (0..runs).map(|seed| {
        let world = World::build(&experiment.points[0], seed, &NoTraces).expect("the world resolves");
        measure("test", &world, &RunConfig::default(), &()).expect("the run ends").summary
    });
    let mut sums = [(0.0, 0.0); 3];
    for run in runs {
        let age = run.sections.staleness.map_or(0.0, |found| found.age_of_information_s.mean);
        // Weighted by jobs, because runs with many jobs in their window have long responses.
        let jobs = run.jobs.finished as f64;
        for ((sum, weights), (number, weight)) in
            sums.iter_mut().zip([(run.times.response_s.mean, jobs), (run.utilization, 1.0), (age, 1.0)])
        {
            *sum += weight * number;
            *weights += weight;
        }
    }
    sums.map(|(sum, weights)| sum / weights)
}

/// M/M/1 at a load of 0.5: the mean response is 2 s.
#[test]
fn short_runs_with_a_window_match_the_closed_form_of_mm1() {
    let text = poisson(1, 150, 1, 2.0, "random = {}");
    let [response, utilization, _] =
        means(&with(&text, &["measure={ from = \"100s\", until = \"200s\" }"]), 6000);
    assert_near(response, 2.0, 0.01, "mean response");
    assert_near(utilization, 0.5, 0.01, "utilization");
    let short = poisson(1, 30, 1, 2.0, "random = {}");
    let [response, utilization, _] = means(&short, 6000);
    assert!(
        response < 0.95 * 2.0 && utilization > 1.02 * 0.5,
        "{response} s, {utilization}: no window is needed"
    );
}

/// A node sends a heartbeat every second, which takes 300 ms: its age is between 0.3 and 1.3 s, 0.8 s on average.
#[test]
fn short_runs_with_a_window_match_the_closed_form_of_an_age() {
    let text = with(
        &poisson(4, 200, 1, 0.1, "yaq-d = { heartbeat = \"1s\" }"),
        &["service.demand=\"10ms\"", "network.one_way=\"300ms\"", "network.loss=1e-12"],
    );
    let [_, _, age] = means(&with(&text, &["measure={ from = \"3s\", until = \"15s\" }"]), 40);
    assert_near(age, 0.8, 0.01, "mean age of information");
}

/// Progress that never falls.
#[derive(Default)]
struct Rising(Cell<u64>);

impl Progress for Rising {
    fn look(&self, _: Time, recorder: &Recorder<'_>, _: &Traffic) {
        let before = self.0.replace(recorder.finished_jobs());
        assert!(before <= self.0.get(), "{before} jobs had finished, and now {}", self.0.get());
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

#[test]
fn only_the_second_pass_is_shown() {
    let text = with(&poisson(10, 10_000, 1, 0.2, "random = {}"), &["measure=\"auto\""]);
    let progress = Rising::default();
    measure("test", &world(&text), &RunConfig::default(), &progress).expect("the run ends");
    assert_eq!(progress.0.get(), 10_000);
}

/// The first of two passes finds the end of the warm-up, and changes nothing else.
#[test]
fn an_automatic_window_begins_after_the_warm_up() {
    let text = poisson(1, 3000, 1, 1.25, "random = {}");
    let (whole, auto) = (measured(&text, ""), measured(&text, "\"auto\""));
    let window = auto.summary.window.expect("there is a window");
    assert!(window.auto && (1..=1500).contains(&window.warm_up) && window.after == 0, "{window:?}");
    assert_eq!(window.until_s, whole.jobs[2999].arrival);
    let again = measured(&text, &format!("{{ from = \"{}s\" }}", window.from_s));
    assert_eq!(auto.summary.times, again.summary.times);
    assert_eq!(auto.summary.engine.order_hash, whole.summary.engine.order_hash);
}

/// A core gets ten jobs of 2 s a second: waits grow to the end.
#[test]
fn a_run_whose_response_times_grow_is_unsettled() {
    let growing = run(&with(&poisson(1, 1000, 1, 0.1, "random = {}"), &["service.demand=\"2s\""]));
    let found = growing.summary.unsettled.expect("waits grow");
    assert!(found.last_s > 10.0 * found.first_s, "{found:?}");
    // M/M/1 at a load of 0.5. One of many draws may differ from the others by six standard errors.
    let settled = |seed: &i32| {
        let text = with(&poisson(10, 4000, 1, 0.2, "random = {}"), &[&format!("seed={seed}")]);
        run(&text).summary.unsettled.is_none()
    };
    assert!((0..20).filter(settled).count() >= 19);
}
