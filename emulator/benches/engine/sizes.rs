//! The cost of size: the same load per node on 10³ to 10⁶ nodes. Each size runs in a process of its own, because the
//! peak of resident memory belongs to a process.

use std::process::Command;
use std::time::Instant;

use volary::runtime::pool::measure;
use volary_engine::results::Engine;
use volary_engine::world::World;
use volary_experiment::control::{RunError, StudyControl};
use volary_experiment::cost::peak_rss_bytes;

use super::{plan, workload};

/// Environment variable that names the case of a child: nodes, jobs and policy.
const CASE: &str = "VOLARY_BENCH_CASE";

/// Tasks of a job.
const TASKS: u32 = 10;

/// A cluster at half load: tasks of one second, ten in a job.
fn experiment(nodes: u32, jobs: u32, policy: &str) -> String {
    let gap = 2.0 * f64::from(TASKS) / f64::from(nodes);
    format!(
        r#"
        title = "size"
        seed = 1
        [cluster]
        nodes = {nodes}
        [workload.synthetic]
        jobs = {jobs}
        tasks = {TASKS}
        interarrival = {{ exponential = {{ mean = "{gap}s" }} }}
        [service]
        demand = {{ exponential = {{ mean = "1s" }} }}
        [network]
        one_way = {{ gamma = {{ shape = 100, mean = "10ms" }} }}
        [[policy]]
        {policy} = {{}}
        "#
    )
}

/// Runs the case that the environment names; returns whether it names one.
pub(super) fn is_child() -> bool {
    let Ok(case) = std::env::var(CASE) else { return false };
    let mut words = case.split(' ');
    let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let (nodes, jobs) = (number(), number());
    let experiment = plan(&experiment(nodes, jobs, words.next().unwrap_or("random")));
    let point = &experiment.points[0];
    let workload = workload(point, 1);
    let before = peak_rss_bytes();
    let clock = Instant::now();
    let measured = World::new(point, 1, workload)
        .map_err(RunError::from)
        .and_then(|world| measure("size", &world, &experiment.run, &StudyControl::default()))
        .unwrap_or_else(|error| panic!("{error}"));
    let Engine { events, cpu_s, .. } = measured.summary.engine;
    let bytes = peak_rss_bytes().saturating_sub(before);
    println!("{events} {cpu_s} {bytes} {}", clock.elapsed().as_secs_f64());
    true
}

/// Measurements of a child.
struct Cost {
    events: f64,
    cpu_s: f64,
    bytes: f64,
    wall_s: f64,
}

fn child(nodes: u32, jobs: u32, policy: &str) -> Cost {
    let this = std::env::current_exe().unwrap_or_else(|error| panic!("{error}"));
    let output = Command::new(this).env(CASE, format!("{nodes} {jobs} {policy}")).output();
    let output = output.unwrap_or_else(|error| panic!("{error}"));
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [events, cpu_s, bytes, wall_s] = numbers[..] else {
        panic!("{}", String::from_utf8_lossy(&output.stderr))
    };
    Cost { events, cpu_s, bytes, wall_s }
}

/// Prints the table. The start is the cost of one job; the cost of an event is the difference to many jobs.
pub(super) fn run() {
    println!(
        "| policy | nodes | start, s | bytes a node | million events | ns an event | of that at 1,000 nodes |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    for policy in ["latin-square", "sparrow", "round-robin"] {
        let mut smallest = None;
        for nodes in [1_000, 10_000, 100_000, 1_000_000] {
            // Two tasks per node, and at a thousand nodes enough to measure.
            let jobs = (2 * nodes / TASKS).max(20_000);
            let idle = child(nodes, 1, policy);
            let mut runs = [(); 3].map(|()| child(nodes, jobs, policy));
            runs.sort_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
            let busy = &runs[1];
            let events = busy.events - idle.events;
            let each = (busy.cpu_s - idle.cpu_s) / events * 1e9;
            let growth = each / *smallest.get_or_insert(each);
            println!(
                "| {policy} | {nodes} | {:.3} | {:.0} | {:.1} | {each:.0} | {growth:.2} |",
                idle.wall_s,
                idle.bytes / f64::from(nodes),
                events / 1e6
            );
        }
    }
}
