//! Speculation under every rule and binding: copies and messages of a task are bounded, also when messages are lost.

use std::collections::BTreeMap;

use volary_engine::metrics::Recording;
use volary_engine::metrics::RunConfig;
use volary_engine::results::Measured;
use volary_engine::virtual_time::measure;

use crate::common::world;

/// Each policy that speculates, with the most copies of one task that it runs at once.
const POLICIES: [(&str, usize); 6] =
    [("naive", 2), ("late", 2), ("hadoop2", 2), ("mantri", 3), ("dolly", 4), ("hedged", 2)];

/// Runs jobs whose tasks take about a second and queue, on nodes that report often.
fn run(policy: &str, binding: &str, (nodes, jobs, tasks): (u32, u32, u32), loss: f64, seed: u64) -> Measured {
    let scale = match policy {
        "dolly" | "hedged" => "",
        _ => "scale = 0.05, ",
    };
    let text = format!(
        "seed = {seed}\n[cluster]\nnodes = {nodes}\n[workload.synthetic]\njobs = {jobs}\ntasks = {tasks}\n\
         interarrival = \"1s\"\n[service]\ndemand = {{ exponential = {{ mean = \"1s\" }} }}\nhomogeneous = false\n\
         [network]\none_way = {{ exponential = {{ mean = \"5ms\" }} }}\nloss = {loss}\n\
         [interference]\nbernoulli = {{ slot = \"2s\", probability = 0.2, slowdown = 10 }}\n\
         [[policy]]\n{policy} = {{ {scale}binding = \"{binding}\" }}\n"
    );
    let recording = Recording { one_in: Some(1), timeline_cores: 0, ..Recording::default() };
    measure(policy, &world(&text), &RunConfig { until: None, recording }, &()).expect("the run ends")
}

/// The most copies of one task that ran at the same time.
fn most_at_once(measured: &Measured) -> usize {
    let mut tasks: BTreeMap<(u32, u32), Vec<(f64, f64)>> = BTreeMap::new();
    for row in &measured.copies {
        tasks.entry((row.job, row.task)).or_default().push((row.start, row.end));
    }
    let at_once = |copies: &Vec<(f64, f64)>| {
        let running = |at: f64| copies.iter().filter(|(start, end)| *start <= at && at < *end).count();
        copies.iter().map(|&(start, _)| running(start)).max().unwrap_or(0)
    };
    tasks.values().map(at_once).max().unwrap_or(0)
}

/// Number of messages of one kind per task.
fn each(measured: &Measured, kind: &str) -> f64 {
    let count = measured.summary.messages.by_kind.get(kind).copied().unwrap_or(0);
    count as f64 / measured.summary.tasks.submitted as f64
}

/// The cases have full queues, idle nodes, and losses. An order to stop is under way for less than a period of reports,
/// or for less than two periods where transmissions are lost. In this time the same number of further copies can run.
#[test]
fn copies_and_reservations_of_a_task_are_bounded() {
    for (policy, most) in POLICIES {
        for binding in ["central", "sparrow", "random"] {
            for (size, seed) in [((4, 3, 100), 1), ((20, 2, 1), 2), ((20, 10, 20), 3)] {
                for loss in [0.0, 0.1, 0.4] {
                    let measured = run(policy, binding, size, loss, seed);
                    let what = format!("{policy} bound {binding}, {size:?}, loss {loss}");
                    assert_eq!(measured.summary.jobs.unfinished, 0, "{what}");
                    let found = most_at_once(&measured);
                    assert!(
                        found <= most + if loss > 0.0 { 2 } else { 1 },
                        "{what}: {found} copies of a task at once"
                    );
                    let reserved = each(&measured, "probe.reserve");
                    assert!(reserved < 5.0, "{what}: {reserved} reservations for each task");
                    let copies =
                        measured.summary.copies.started as f64 / measured.summary.tasks.submitted as f64;
                    assert!(copies < 2.5, "{what}: {copies} copies of each task");
                }
            }
        }
    }
}
