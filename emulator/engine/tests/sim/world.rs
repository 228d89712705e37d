//! The world of an experiment, which is the same for all policies; and the order of events, which the seed determines.

use volary_actors::base::{Class, Endpoint, JobId, Time};
use volary_actors::catalog::Catalog;
use volary_actors::policies::{Caches, PolicySpec};
use volary_engine::results::PolicySections;
use volary_engine::workload::{NoTraces, Workload};
use volary_netem::Fabric;

use crate::common::{parse, poisson, run, run_all, with};

/// Several policies in one file, under interference and a lossy network.
fn everyone() -> String {
    let set = [
        "service.correlated=0.5",
        "policy=[{random={}}, {latin-square={order=3}}, {sparrow={}}, {round-robin={}}, {peacock={}}, {gang={}}, \
         {central-queue={}}]",
        "network.one_way={gamma={shape=4, mean=\"10ms\"}}",
        "network.loss=0.05",
        "interference.markov={slot=\"100ms\", p_on=0.05, p_off=0.2, slowdown={uniform={low=2, high=6}}}",
    ];
    with(&poisson(20, 60, 5, 0.8, "random = {}"), &set)
}

/// All policies of an experiment get the same arrivals, homes and sizes of jobs, the same work of every copy, the same
/// bursts on every core, and the same delay and fate of the n-th message of each link.
#[test]
fn policies_of_an_experiment_meet_the_same_world() {
    let experiment = parse(&everyone());
    let mut worlds = Vec::new();
    for point in &experiment.points {
        let r = &point.resolved;
        let seed = experiment.seed;
        let workload =
            Workload::build(&r.workload, &r.service, seed, r.cluster.schedulers, &NoTraces).unwrap();
        let machines = r.cluster.machines(&point.policy, seed);
        let jobs: Vec<_> = (0..workload.jobs()).map(|j| workload.job(JobId(j))).collect();
        let copies: Vec<_> = (0..workload.jobs())
            .flat_map(|j| (0..5).flat_map(move |t| (0..3).map(move |a| JobId(j).task(t).copy(a))))
            .map(|copy| workload.work(copy))
            .collect();
        let pauses = volary_netem::Windows::default();
        let cores = volary_engine::cores::Cores::new(r.interference.as_ref(), machines.cores, pauses, seed);
        let end = Time(60_000_000_000);
        let bursts: Vec<_> = (0..20)
            .flat_map(|core| cores.bursts(core, Time::ZERO, end).collect::<Vec<_>>())
            .map(|burst| (burst.start, burst.end, burst.slowdown.to_bits()))
            .collect();
        let faults = volary_netem::Faults::default();
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

/// A central policy has the same events in an experiment with three schedulers as in one with a single scheduler.
#[test]
fn central_policies_use_one_scheduler_whatever_the_others_have() {
    for policy in PolicySpec::defaults().iter().filter(|spec| spec.traits().one_scheduler) {
        let text = with(
            &poisson(6, 100, 3, 0.6, &format!("{} = {{}}", policy.name())),
            &["workload.synthetic.cutoff=\"2s\""],
        );
        let [one, three] =
            ["cluster.schedulers=1", "cluster.schedulers=3"].map(|set| run(&with(&text, &[set])).summary);
        assert_eq!(one.engine.order_hash, three.engine.order_hash, "{}", policy.name());
        assert_eq!((one.unused_schedulers, three.unused_schedulers), (None, Some(2)));
    }
}

#[test]
fn equal_seeds_give_equal_orders_of_events_and_other_seeds_differ() {
    let hashes = |text: &str| -> Vec<String> {
        run_all(text).into_iter().map(|measured| measured.summary.engine.order_hash).collect()
    };
    let text = everyone();
    let first = hashes(&text);
    assert_eq!(first, hashes(&text));
    let other = hashes(&with(&text, &["seed=4"]));
    assert!(first.iter().zip(&other).all(|(a, b)| a != b));
}

/// Plans warn about exactly the numbers that runs lack.
#[test]
fn policies_have_the_numbers_that_their_traits_state() {
    for card in PolicySpec::cards().into_iter().filter(|card| card.runs_alone) {
        let text = poisson(8, 60, 2, 0.8, &format!("{} = {{}}", card.name));
        let set = ["cluster.schedulers=2", "workload.synthetic.cutoff=\"1s\"", "network.one_way=\"50ms\""];
        let experiment = parse(&with(&text, &set));
        let policy = &experiment.points[0].policy;
        let summary = run_all(&with(&text, &set)).remove(0).summary;
        assert_eq!(
            summary.sections.staleness.is_some(),
            policy.traits().caches != Caches::None,
            "{}",
            card.name
        );
        let staleness = serde_json::to_value(summary.sections.staleness).unwrap();
        for (number, value) in staleness.as_object().into_iter().flatten() {
            let found = value.as_f64().or_else(|| value.get("mean")?.as_f64());
            let measured = PolicySections::lacks(&["staleness", number], &policy.traits()).is_none();
            // Ages are means over what happened, and in a short run no copy of a shared state may have been received.
            let is_sure = policy.traits().caches != Caches::SharedState && number != "age_out_of_sync_s";
            assert!(measured || found.is_none(), "{}: {number}", card.name);
            assert!(found.is_some() || !measured || !is_sure, "{}: {number}", card.name);
        }
        assert_eq!(summary.sections.planning.is_some(), policy.traits().plans(), "{}", card.name);
        assert!(policy.traits().plans() || summary.sections.prediction.is_none(), "{}", card.name);
    }
}
