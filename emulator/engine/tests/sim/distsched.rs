//! DistSched on shared nodes: schedules worked out by hand, and runs whose nodes evict copies and lose no job.

use volary_engine::results::Measured;

use crate::common::{FAULTY, run, with};

/// Runs three jobs of 30 s that arrive at 1, 2 and 3 s at a node of 4 cores. Each job uses 2 cores.
fn three_jobs(request: &str, policy: &str) -> Measured {
    run(&format!(
        "seed = 5\ncluster = {{ nodes = 1, schedulers = 1, shared = true, cpu = 4 }}\n[workload.synthetic]\njobs = \
         3\ntasks = 1\ninterarrival = \"1s\"\n[service]\ndemand = \"30s\"\nusage = {{ cpu = 2, request = {request} \
         }}\n[network]\none_way = \"10ms\"\n[[policy]]\ndistsched = {policy}\n"
    ))
}

/// Cycles end every 15 s. Two jobs fit at once by their use, and one job fits by its request, which is a whole node.
/// Without a history the estimates follow the requests.
#[test]
fn estimates_decide_how_many_jobs_share_a_node() {
    let both = (14.0 + 13.0 + 57.0) / 3.0 + 30.02;
    let each = (14.0 + 58.0 + 102.0) / 3.0 + 30.02;
    for (request, policy, expected) in [
        ("2", "{ estimates = \"actual\" }", both),
        ("2", "{ estimates = \"request\" }", each),
        ("2", "{}", each),
        ("1", "{}", both),
        ("1", "{ risk = 0.0, of = \"max\" }", both),
    ] {
        let mean = three_jobs(request, policy).summary.times.response_s.mean;
        assert!((mean - expected).abs() < 1e-9, "{policy}: {mean} instead of {expected}");
    }
}

/// Users request half of the memory that tasks use, so twice as many tasks are placed as fit. Every job finishes under
/// losses, crashes and a pause.
#[test]
fn jobs_finish_although_their_memory_was_underestimated() {
    for policy in ["{ cycle = \"200ms\" }", "{ cycle = \"200ms\", estimates = \"request\", observe = false }"]
    {
        let text = with(
            &FAULTY.replace("scheduler:1", "scheduler:0"),
            &[
                "cluster={ nodes = 12, schedulers = 1, shared = true, cpu = 4, memory = \"4 GiB\", pods = 6, report = \"200ms\" }",
                "service.demand={ exponential = { mean = \"600ms\" } }",
                "service.usage={ cpu = 0.4, memory = 1.5, request = 0.5 }",
            ],
        );
        let measured = run(&format!("{text}[[policy]]\ndistsched = {policy}\n"));
        let shared = measured.summary.shared.unwrap();
        assert_eq!(measured.summary.jobs.unfinished, 0, "{policy}");
        assert!(shared.evictions > 5, "{policy}: {shared:?}");
    }
}

/// Most tasks fit on only one node of four, although several are expected to fit on each other node. Nodes that have
/// evicted a task are avoided for a while.
#[test]
fn tasks_finish_on_the_few_nodes_that_fit_them() {
    for (seed, policy) in [(1, "{}"), (2, "{}"), (3, "{}"), (4, "{ cycle = \"1s\" }")] {
        let text = format!(
            "seed = {seed}\n[cluster]\nshared = true\n[[cluster.kind]]\nnodes = 3\ncpu = 1\nmemory = \"4 \
             GiB\"\n[[cluster.kind]]\nnodes = 1\ncpu = 2\n[workload.synthetic]\njobs = 32\ntasks = 7\ninterarrival \
             = {{ exponential = {{ mean = \"800ms\" }} }}\n[service]\ndemand = \"700ms\"\n[service.usage]\ncpu = {{ \
             uniform = {{ low = 0.01, high = 0.5 }} }}\nmemory = {{ exponential = {{ mean = 3 }} \
             }}\nrequest = 0.3\n[[policy]]\ndistsched = {policy}\n"
        );
        let measured = run(&text);
        assert_eq!(measured.summary.jobs.unfinished, 0, "seed {seed}, {policy}");
        assert!(measured.summary.shared.unwrap().evictions > 5, "seed {seed}, {policy}");
    }
}
