//! Actors that take time for messages, against queueing theory.

use volary_engine::results::{ActorLoad, Measured};

use crate::common::{poisson, run, with};

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
    assert!(
        run.notes.iter().any(|note| note.starts_with("overload: the busiest scheduler")),
        "{:?}",
        run.notes
    );
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

#[test]
fn times_of_kinds_have_precedence_over_those_of_roles() {
    let both = scheduler(1000, "scheduler = \"1ms\", \"job.submit\" = \"2us\", \"launch.row\" = \"3us\"");
    // Of each job the scheduler handles its arrival and its end.
    assert_eq!((load(&both, "scheduler").handled, load(&both, "node").handled), (2000, 1000));
    let busy = load(&both, "scheduler").utilization * both.summary.makespan_s;
    assert!(busy > 0.9 * 1.002, "{busy}");
}
