//! Actors that take time for messages, against queueing theory.

use volary_actors::base::Span;
use volary_engine::metrics::RunConfig;
use volary_engine::results::{ActorLoad, Measured};
use volary_engine::virtual_time::measure;

use crate::common::{poisson, run, with, world};

/// A scheduler that gets a job a millisecond, of one task that takes almost no time on one of 50 nodes.
fn scheduler(jobs: u32, handling: &str) -> Measured {
    let text = poisson(50, jobs, 1, 0.001, "random = {}");
    run(&with(&text, &["service.demand=\"1us\"", &format!("actors.handling={{ {handling} }}")]))
}

fn load(run: &Measured, role: &str) -> ActorLoad {
    run.summary.actors[role]
}

fn assert_near(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < tolerance, "{what}: {found} instead of {expected}");
}

/// Waits of M/M/1 are ρ/(μ−λ), and those of M/D/1 half as long.
#[test]
fn a_scheduler_is_a_single_server_with_a_queue() {
    for (time, wait) in [("{ exponential = { mean = \"500us\" } }", 500e-6), ("\"500us\"", 250e-6)] {
        let run = scheduler(1_000_000, &format!("\"job.submit\" = {time}"));
        let ActorLoad { handled, utilization, busiest, wait_s, queue, .. } = load(&run, "scheduler");
        assert_eq!(handled, 1_000_000);
        assert_near(wait_s, wait, 0.01, time);
        assert_near(utilization, 0.5, 0.01, time);
        assert_near(queue, wait * 1000.0, 0.015, time);
        assert!((utilization - busiest).abs() < 1e-12, "there is one scheduler");
    }
}

#[test]
fn an_overloaded_scheduler_handles_as_much_as_it_can_and_the_run_says_so() {
    let run = scheduler(20_000, "\"job.submit\" = \"2ms\"");
    assert_near(20_000.0 / run.summary.makespan_s, 500.0, 0.001, "jobs per second");
    let scheduler = load(&run, "scheduler");
    assert!(scheduler.busiest > 0.999 && scheduler.longest_queue > 9_000, "{scheduler:?}");
    assert!(run.notes.iter().any(|note| note.starts_with("the busiest scheduler")), "{:?}", run.notes);
}

/// A node manager on a core at a quarter of its speed takes four times as long.
#[test]
fn actors_on_cores_are_slowed_by_interference() {
    let text = poisson(1, 1000, 1, 1.0, "random = {}");
    let mean = |on: &str| {
        let run = run(&with(
            &text,
            &[
                "service.demand=\"1us\"",
                "actors.handling={ node = \"10ms\" }",
                &format!("actors.on=\"{on}\""),
                "interference.bernoulli={ probability = 1.0, slot = \"1s\", slowdown = 4.0 }",
            ],
        ));
        load(&run, "node").utilization / load(&run, "node").handled as f64 * run.summary.makespan_s
    };
    assert_near(mean("own"), 0.010, 0.01, "own");
    assert_near(mean("cores"), 0.040, 0.01, "cores");
}

/// A member of a gossip group on a core at a quarter of its speed takes four times as long for an update.
#[test]
fn members_on_cores_are_slowed_by_interference() {
    let slowed = "[interference.bernoulli]\nprobability = 1.0\nslot = \"1s\"\nslowdown = 4.0\n";
    for (interference, expected) in [("", 0.01), (slowed, 0.04)] {
        let measured = run(&format!(
            "title = \"g\"\nseed = 1\n[cluster]\nnodes = 1\n\
             [workload.gossip]\nupdates = {{ every = \"1s\", at = \"source\" }}\nduration = \"100s\"\ndrain = \"1s\"\n\
             [actors]\nhandling = {{ node = \"10ms\" }}\non = \"cores\"\n{interference}[[policy]]\nflood = {{}}\n"
        ));
        let gossip = measured.summary.sections.gossip.unwrap();
        assert_near(gossip.delivery_s.mean, expected, 1e-9, "time to handle an update");
        assert_eq!(gossip.coverage, 1.0);
    }
}

#[test]
fn times_of_kinds_have_precedence_over_those_of_roles() {
    let both = scheduler(1000, "scheduler = \"1ms\", \"job.submit\" = \"2us\", \"launch.row\" = \"3us\"");
    // Of each job the scheduler handles its arrival and its end.
    assert_eq!((load(&both, "scheduler").handled, load(&both, "node").handled), (2000, 1000));
    let busy = load(&both, "scheduler").utilization * both.summary.makespan_s;
    assert_near(busy, 1.002, 0.01, "the end of a job by its role, its arrival by its kind");
}

/// The scheduler crashes with jobs in its queue, which their clients submit again. In another run it is paused with
/// jobs in its queue.
#[test]
fn a_crash_loses_the_queue_of_an_actor_and_a_pause_prolongs_its_work() {
    let text = poisson(5, 100, 2, 0.1, "random = {}");
    let fault = |fault: &str| {
        let set = ["actors.handling={ scheduler = \"40ms\" }", "network.one_way=\"1ms\"", fault];
        run(&with(&text, &[&set[..], &["service.demand=\"1ms\""]].concat()))
    };
    let healthy = fault("network.loss=0.0");
    assert_eq!(healthy.summary.jobs.finished, 100);
    let crash = "network.fault=[{ crash = { who = [\"scheduler:0\"], at = \"4s\", for = \"1s\" } }]";
    let crashed = fault(crash);
    assert_eq!(crashed.summary.jobs.finished, 100);
    assert!(
        crashed.notes.iter().any(|note| note.contains("submissions were repeated")),
        "{:?}",
        crashed.notes
    );
    let paused = fault("network.fault=[{ pause = { who = [\"scheduler:0\"], at = \"4s\", for = \"2s\" } }]");
    let busy = |run: &Measured| load(run, "scheduler").utilization * run.summary.makespan_s;
    assert_eq!((paused.summary.jobs.finished, load(&paused, "scheduler").handled), (100, 300));
    // A pause in the middle of a message is part of the time that it takes.
    assert!(busy(&paused) >= busy(&healthy) - 0.1 && busy(&paused) <= busy(&healthy) + 2.1);
    assert!(load(&paused, "scheduler").longest_wait_s > load(&healthy, "scheduler").longest_wait_s);
}

/// 10,000 messages of 2 ms arrive in ten seconds, of which 5,000 are handled by then. On average 2,500 wait.
#[test]
fn a_run_that_is_cut_counts_what_was_handled_and_the_waits_so_far() {
    let text = poisson(50, 12_000, 1, 0.001, "random = {}");
    let text = with(&text, &["service.demand=\"1us\"", "actors.handling={ \"job.submit\" = \"2ms\" }"]);
    let config = RunConfig { until: Some(Span::from_secs(10)), ..RunConfig::default() };
    let run = measure("test", &world(&text), &config, &()).expect("the run ends");
    let ActorLoad { handled, utilization, queue, longest_wait_s, .. } = load(&run, "scheduler");
    assert_near(handled as f64, 5000.0, 0.01, "handled");
    assert_near(queue, 2500.0, 0.05, "queue");
    assert!(longest_wait_s < 10.0 && utilization > 0.99 && utilization <= 1.0, "{utilization}");
}
