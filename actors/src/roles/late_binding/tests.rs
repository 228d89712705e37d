//! Step tests of late binding and of Succinct State Sharing.

use super::*;
use crate::base::{Rng, Time};
use crate::harness::{Harness, Jobs};
use crate::layout::Layout;
use crate::machine::Effect;

/// A job ends and is submitted again while the timer of its first submission is armed. Only the timer of the second
/// submission repeats its probes.
#[test]
fn a_job_that_is_submitted_again_is_repeated_by_one_timer() {
    let layout = Layout::new(1, 0, [1; 4]);
    let machine = Box::new(LateBinding::new(ProbeOptions::default(), None, &layout, true));
    let mut bench = Harness::new(layout.clone(), layout.scheduler(0), 1, machine);
    let (job, client, node) = (JobId(0), layout.client(0), layout.node(0));
    let armed = |effects: &[Effect]| {
        let after = |effect: &Effect| match *effect {
            Effect::Arm { timer: Timer::Recheck { .. }, after } => Some(after),
            _ => None,
        };
        effects.iter().filter_map(after).collect::<Vec<_>>()
    };
    let look = Input::Fire(Timer::Recheck { job, attempt: 0 });
    let [timeout] = armed(&bench.submit(0))[..] else { panic!("not exactly one timer is armed") };
    bench.now += timeout.scale(0.5);
    bench.receive(node, Launch::Completed { copy: job.task(0).copy(0) });
    assert_eq!(armed(&bench.deliver(client, Job::Submit { job, round: 1 })), [timeout]);
    bench.now += timeout.scale(0.5);
    assert_eq!(bench.step(look), [], "the timer of the first submission is void");
    bench.now += timeout.scale(0.5);
    assert_eq!(armed(&bench.step(look)), [timeout.scale(2.0)]);
}

/// The search finds each wanted live node and no other node, both by draws and by a scan of all nodes.
#[test]
fn the_search_finds_the_wanted_live_nodes() {
    let layout = Layout::new(1, 0, vec![1; 100]);
    let (mut rng, mut effects, jobs) = (
        Rng::new(1, 2, 0),
        Vec::new(),
        Jobs { tasks: 1, long: Vec::new(), deadlines: Vec::new(), stages: 1 },
    );
    type Search<'a> = &'a dyn Fn(&Membership, &mut Effects<'_>) -> Option<ActorId>;
    let mut assert_found = |members: &Membership, wanted: &dyn Fn(u32) -> bool, search: Search<'_>| {
        let mut found: Vec<u32> = (0..2000)
            .filter_map(|_| {
                let me = layout.scheduler(0);
                let mut fx = Effects::new(Time::ZERO, me, &mut rng, &mut effects, &jobs, &layout);
                search(members, &mut fx).map(|node| layout.node_number(node))
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        let live = (0..100).filter(|&node| wanted(node) && members.has(layout.node(node), &layout));
        assert_eq!(found, live.collect::<Vec<_>>());
    };
    for dead in [&[][..], &[1, 33, 99]] {
        let mut members = Membership::new(&layout);
        dead.iter().for_each(|&node| members.down(layout.node(node), &layout));
        for free in [vec![0, 1, 2, 31, 32, 33, 64, 98, 99], vec![98], vec![33], (0..100).collect()] {
            let mut bits = NodeBitmap::default();
            for node in 0..100 {
                bits.set(node, !free.contains(&node), 100);
            }
            assert_found(&members, &|node| free.contains(&node), &|members, fx| {
                super::free(&bits, members, fx)
            });
        }
        for big in [1, 33, 98, 99, 100] {
            let of = Partitions::new(100, big);
            assert_found(&members, &|node| !of.is_big(node), &|members, fx| for_short(of, members, fx));
        }
    }
}
