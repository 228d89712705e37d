//! Shared nodes in whole runs: processor sharing, evictions, several shards.

use volary_engine::metrics::Recording;
use volary_engine::results::Measured;
use volary_engine::shard::{Placement, Shard};

use crate::common::{FAULTY, run, with, world};
use crate::sharding::lockstep;

/// Runs jobs of one task that share a node of one core, under a load of 0.6.
fn processor_sharing(demand: &str) -> Measured {
    run(&format!(
        "seed = 3\ncluster = {{ nodes = 1, shared = true, cpu = 1, pods = 400 }}\n[workload.synthetic]\njobs = \
         100_000\ntasks = 1\ninterarrival = {{ exponential = {{ mean = \"1s\" }} }}\n[service]\ndemand = \
         {demand}\n[network]\none_way = \"0s\"\n[[policy]]\nrandom = {{}}\n"
    ))
}

/// The mean response of M/G/1 under processor sharing is E[S] / (1 - ρ), whatever the distribution of service
/// (Kleinrock, Queueing Systems II, section 4.4).
#[test]
fn processor_sharing_is_insensitive_to_the_distribution_of_service() {
    for demand in [
        "\"600ms\"",
        "{ exponential = { mean = \"600ms\" } }",
        "{ hyperexponential = { means = [\"200ms\", \"2200ms\"], weights = [4, 1] } }",
    ] {
        let measured = processor_sharing(demand);
        let mean = measured.summary.times.response_s.mean;
        assert!((mean / 1.5 - 1.0).abs() < 0.05, "{demand}: {mean} s for 1.5 s");
        let shared = measured.summary.shared.unwrap();
        assert!((shared.cpu - 0.6).abs() < 0.02, "{shared:?}");
        assert_eq!((shared.wasted_core_h, shared.evictions), (0.0, 0));
        // On average ρ / (1 - ρ) copies run, and exactly one copy runs with probability ρ (1 - ρ).
        assert!((shared.throttled - 0.84).abs() < 0.02, "{shared:?}");
    }
}

/// Small nodes with enough memory for two or three copies each, under a policy that places at random.
fn short_of_memory() -> String {
    let text = with(
        FAULTY,
        &[
            "cluster={ nodes = 12, schedulers = 3, shared = true, cpu = 2, memory = \"4 GiB\", pods = 6, report = \"1s\" }",
            "service.demand={ exponential = { mean = \"600ms\" } }",
            "service.usage={ cpu = 0.7, memory = { exponential = { mean = 1 } }, variation = 0.5, segment = \"300ms\", request = { lognormal = { median = 4.2, sigma = 2.23 } } }",
        ],
    );
    format!("{text}[[policy]]\nrandom = {{}}\n")
}

/// Under losses, crashes and a pause, every job finishes although copies are evicted.
#[test]
fn evicted_copies_are_launched_again() {
    let measured = run(&short_of_memory());
    let shared = measured.summary.shared.unwrap();
    assert_eq!(measured.summary.jobs.unfinished, 0);
    assert!(shared.evictions > 5 && shared.wasted_core_h > 0.0, "{shared:?}");
    let kinds = &measured.summary.messages.by_kind;
    assert!(!kinds.contains_key("usage.report"), "no policy reads it: {kinds:?}");
    assert!(kinds["usage.evicted"] >= shared.evictions, "{kinds:?}");
}

/// The two copies swap uses of 6 and 4 GiB at one instant, and later swap back. A node of 10 GiB always has enough
/// memory.
#[test]
fn simultaneous_changes_of_use_are_one_change() {
    let run = |memory: u32| {
        let measured = run(&format!(
            "seed = 3\n[cluster]\nnodes = 1\nshared = true\ncpu = 8\nmemory = \"{memory} MiB\"\nthreshold = 1\n\
             [workload.synthetic]\njobs = 2\ntasks = 1\ninterarrival = \"10s\"\n[service]\ndemand = \"40s\"\n\
             [service.usage]\nseries = [[\"10s\", 1, 6], [\"10s\", 1, 4], [\"10s\", 1, 6], [\"10s\", 1, 4]]\n\
             [network]\none_way = \"0s\"\n[[policy]]\nrandom = {{}}\n"
        ));
        assert_eq!(measured.summary.jobs.unfinished, 0);
        (measured.summary.shared.unwrap().evictions, measured.summary.makespan_s)
    };
    assert_eq!(run(10 << 10), (0, 50.0));
    assert!(run((10 << 10) - 1).0 > 0, "a MiB less is not enough");
}

/// An eviction takes no time, so at the end of every instant each node has memory enough.
#[test]
fn no_node_stays_above_its_memory() {
    let world = world(&with(&short_of_memory(), &["network.fault=[]"]));
    let mut shard =
        Shard::new(world.parts(Placement::ALONE, false).unwrap(), world.recorder(Recording::default()));
    shard.start();
    let (layout, mut most) = (world.layout(), 0);
    while !shard.observer.all_finished() && shard.advance() {
        if shard.next().is_some_and(|next| next <= shard.now()) {
            continue;
        }
        for node in 0..layout.nodes() {
            let used = shard.cores().memory(node);
            assert!(used <= layout.memory_limit(node), "node {node} uses {used} bytes at {}", shard.now());
            most = most.max(used);
        }
    }
    assert!(most > layout.memory_limit(0) * 9 / 10, "{most}: memory is short");
}

#[test]
fn several_shards_agree_on_shared_nodes() {
    let world = world(&short_of_memory());
    let alone = run(&short_of_memory());
    for shards in [2, 5] {
        let (rows, crossed) = lockstep(&world, shards, world.recorder(Recording::default()));
        assert_eq!(rows, alone.jobs, "{shards} shards");
        assert!(crossed > 0);
    }
}

/// The only node with memory enough for the tasks is down for good. The tasks are launched and evicted elsewhere until
/// the run is given up, and the run's notes say so.
#[test]
fn a_run_is_given_up_if_no_live_node_has_memory_for_a_task() {
    for policy in ["random", "round-robin", "distsched"] {
        let text = format!(
            "seed = 1\n[cluster]\nschedulers = 1\nshared = true\n[[cluster.kind]]\nnodes = 4\ncpu = 2\nmemory = \"4 \
             GiB\"\n[[cluster.kind]]\nnodes = 1\ncpu = 2\nmemory = \"16 GiB\"\n[workload.synthetic]\njobs = 3\ntasks = \
             1\ninterarrival = \"1s\"\n[service]\ndemand = \"10s\"\nusage = {{ cpu = 0.5, memory = 8, request = 0.4 \
             }}\n[network]\none_way = \"1ms\"\n[[network.fault]]\ncrash = {{ who = [\"node:4\"], at = \"0s\" \
             }}\n[[policy]]\n{policy} = {{}}\n"
        );
        let measured = run(&text);
        assert_eq!(measured.summary.jobs.unfinished, 3, "{policy}");
        let notes = measured.notes;
        assert!(notes.iter().any(|note| note.starts_with("the run was given up")), "{policy}: {notes:?}");
    }
}
