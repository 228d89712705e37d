//! What an experiment promises whatever the policy: the same world for all, the same order for the same seed.
use crate::common::{parse, poisson, run};
use volary_actors::base::{Class, Endpoint, JobId, Time};
use volary_actors::catalog::Catalog;
use volary_engine::workload::{NoTraces, Workload};
use volary_netem::Fabric;

/// Every policy in one file, under interference and a lossy network.
fn everyone() -> String {
    let text = poisson(20, 60, 5, 0.8, "random = {}").replace("correlated = false", "correlated = 0.5");
    format!(
        "{text}\n[[policy]]\nlatin-square = {{ order = 3 }}\n[[policy]]\nsparrow = {{}}\n[[policy]]\nround-robin = {{}}\n\
         [[policy]]\npeacock = {{}}\n[[policy]]\ngang = {{}}\n[[policy]]\ncentral-queue = {{}}\n\
         [network]\none_way = {{ gamma = {{ shape = 4, mean = \"10ms\" }} }}\nloss = 0.05\n\
         [interference]\nmarkov = {{ slot = \"100ms\", p_on = 0.05, p_off = 0.2, slowdown = {{ uniform = {{ low = 2, high = 6 }} }} }}\n"
    )
}

/// What two policies of one experiment meet, draw by draw: arrivals, homes, sizes, the work of every copy,
/// bursts on every core, delay and fate of the n-th message of each link.
#[test]
fn policies_of_an_experiment_meet_the_same_world() {
    let experiment = parse(&everyone());
    let mut worlds = Vec::new();
    for point in &experiment.points {
        let r = &point.resolved;
        let seed = experiment.seed;
        let workload =
            Workload::build(&r.workload, &r.service, seed, r.cluster.schedulers, &NoTraces).unwrap();
        let machines = r.cluster.machines(0, seed);
        let jobs: Vec<_> = (0..workload.jobs()).map(|j| workload.job(JobId(j))).collect();
        let copies: Vec<_> = (0..workload.jobs())
            .flat_map(|j| (0..5).flat_map(move |t| (0..3).map(move |a| JobId(j).task(t).copy(a))))
            .map(|copy| workload.work(copy))
            .collect();
        let pauses = volary_engine::cores::Pauses::default();
        let cores = volary_engine::cores::Cores::new(r.interference.as_ref(), machines.cores, pauses, seed);
        let end = Time(60_000_000_000);
        let bursts: Vec<_> = (0..20)
            .flat_map(|core| cores.bursts(core, Time::ZERO, end).collect::<Vec<_>>())
            .map(|burst| (burst.start, burst.end, burst.slowdown.to_bits()))
            .collect();
        let faults = volary_netem::Faults::none();
        let mut fabric =
            Fabric::new(&r.network, machines.links, machines.layout.endpoints(), 2, faults, seed).unwrap();
        let messages: Vec<_> = (0..2000)
            .map(|n| fabric.route(Time(n), Endpoint(1), Endpoint(2 + n as u32 % 20), Class::Stream, 60))
            .collect();
        assert!(!bursts.is_empty());
        worlds.push((jobs, copies, bursts, messages));
    }
    assert_eq!(worlds.len(), 7);
    assert!(worlds.windows(2).all(|pair| pair[0] == pair[1]));
}

fn hashes(measured: &[volary_engine::results::Measured]) -> Vec<String> {
    measured.iter().map(|m| m.summary.engine.order_hash.clone()).collect()
}

#[test]
fn the_same_seed_gives_the_same_order_and_another_seed_another() {
    let text = everyone();
    let first = hashes(&run(&text));
    assert_eq!(first, hashes(&run(&text)));
    let other = hashes(&run(&text.replace("seed = 3", "seed = 4")));
    assert!(first.iter().zip(&other).all(|(a, b)| a != b));
}
