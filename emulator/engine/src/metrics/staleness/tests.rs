//! Tests of the staleness tracker.

use volary_actors::base::Endpoint;
use volary_netem::{FaultSpec, Groups};

use super::super::ages::Lack;
use super::*;
use crate::workload::{NoTraces, Service, Synthetic, WorkloadSpec};

fn one_job() -> Workload {
    let jobs: Synthetic = toml::from_str("jobs = 1\ntasks = 1\ninterarrival = \"1s\"").unwrap();
    let service: Service = toml::from_str("demand = \"100s\"").unwrap();
    Workload::build(&WorkloadSpec::Synthetic(jobs), &service, 1, 1, &NoTraces).unwrap()
}

/// The state of `nodes` nodes and schedulers that are observed every second.
fn state(schedulers: u32, nodes: usize) -> TrackerState {
    let layout = Layout::new(schedulers, 0, vec![1; nodes]);
    let samples = CacheSamples::new(Instants::new(1, Time::ZERO, Span::from_secs(1)));
    TrackerState::new(&layout, layout.nodes(), 1, samples, 1)
}

#[test]
fn long_runs_are_observed_less_often() {
    let mut state = state(20, 1000);
    state.views.made(Time::ZERO, 0, 8, 5_000_000_000);
    state.look(Time(3_000_000_000_000), |_, _| true);
    let samples = state.samples.rows.chunk_by(|a, b| a.time == b.time);
    let intervals: Vec<u32> = samples.map(|look| look[0].time as u32 / 4).collect();
    assert_eq!((state.samples.weight(), state.views.all.len()), (4, 10));
    assert!((0..749).all(|interval| intervals.get(interval) == Some(&(interval as u32))), "{intervals:?}");
    let last = state.samples.rows.last().unwrap();
    assert_eq!((last.in_flight, last.age_max.round()), (1, last.time.round()), "the update never arrives");
    assert_eq!((last.versions, last.out_of_sync), (0.004, 0.004), "one node of 250");
    // Each observation is weighted by the interval it represents, so the mean age of that node is half the observed
    // time.
    let mean = state.ages.summary().age_of_synchronisation_s.mean * 250.0;
    assert!((mean / (0.9 * 1500.0) - 1.0).abs() < 0.01, "{mean}");
}

/// One node and two schedulers, of which `scheduler` is down from 10 s to 20 s.
fn crash_of(scheduler: u32) -> (Layout, Faults) {
    let layout = Layout::new(2, 0, vec![1]);
    let mut groups = Groups::new(layout.endpoints());
    groups.number("scheduler", Endpoint(2), 2);
    let crash =
        format!(r#"[{{ "crash": {{ "who": ["scheduler:{scheduler}"], "at": "10s", "for": "10s" }} }}]"#);
    let crash: Vec<FaultSpec> = serde_json::from_str(&crash).unwrap();
    let faults = Faults::resolve(&crash, &groups, layout.endpoints()).unwrap();
    (layout, faults)
}

/// Two schedulers are observed. The second is down from 10 s to 20 s and has a cache again at 21.5 s.
#[test]
fn actors_that_are_down_are_not_sampled() {
    let (layout, faults) = crash_of(1);
    let workload = one_job();
    let mut tracker = CacheTracker::new(&layout, &workload, &faults, Recording::default(), 1);
    let copy = JobId(0).task(0).copy(0);
    let placed = Note::Cache(CacheNote::Placed { copy, node: 0, believed: 0, order: ServiceOrder::Arrival });
    tracker.note(Time::ZERO, layout.scheduler(0), placed);
    tracker.believes(Time(21_500_000_000), layout.scheduler(1), 0, 0, Time::ZERO);
    let mut results = PolicyResults::default();
    tracker.close(Time::ZERO, Time(30_000_000_000), &mut results);
    let rows = results.looks;
    let samples = |scheduler| -> Vec<f64> {
        rows.iter().filter(|row| row.receiver == scheduler).map(|row| row.time).collect()
    };
    let seconds: Vec<u32> = samples(0).into_iter().map(|time| time as u32).collect();
    assert_eq!(seconds, (0..30).collect::<Vec<_>>());
    let there: Vec<f64> = samples(0).into_iter().filter(|time| !(10.0..21.5).contains(time)).collect();
    assert_eq!(samples(1), there);
}

/// Two updates of equal size concern node 0, and the later update arrives first.
#[test]
fn updates_are_matched_by_origin_and_number() {
    let mut state = state(2, 2);
    let second = |s: u64| Time(s * 1_000_000_000);
    for (made, number) in [(1, 7), (3, 8)] {
        state.views.made(second(made), 0, 0, 5);
        state.views.numbered((0, 0), number, false, |_| false);
    }
    let lack = |state: &TrackerState, node| state.views.lack(1, node, second(10));
    let received = |number| Received { node: 0, change: 5, origin: 0, number, datagram: false };
    assert_eq!(lack(&state, 0), Lack { age: 9.0, versions: 2, placement: true, information: None });
    state.views.learnt(1, received(8));
    assert_eq!(lack(&state, 0), Lack { age: 9.0, versions: 1, placement: true, information: None });
    state.views.learnt(1, received(7));
    assert_eq!((lack(&state, 0).versions, state.views.all[1].in_flight), (0, 0));
    assert_eq!(state.views.lack(0, 0, second(10)).versions, 0, "the scheduler made them");
}

/// The first and the third of some datagrams about two nodes are lost. A lost datagram is pending until a later
/// datagram of the same scheduler arrives, whatever its node. Updates of other schedulers are not affected.
#[test]
fn updates_overtaken_by_a_datagram_are_lost() {
    let mut state = state(3, 2);
    let nodes = [0, 1, 0, 1];
    for (number, node) in (0..).zip(nodes) {
        for origin in [0, 1] {
            state.views.made(Time::ZERO, origin, node, 5);
            state.views.numbered((origin, node), number, true, |_| false);
        }
    }
    let views = &mut state.views;
    let received = |number: u32| {
        let node = nodes[number as usize];
        Received { node, change: 5, origin: 0, number, datagram: true }
    };
    let of_both = |views: &Views| [0, 1].map(|node| views.lack(2, node, Time(1)).versions);
    assert_eq!(of_both(views), [4, 4]);
    views.learnt(2, received(1));
    assert_eq!(of_both(views), [3, 3], "0 and 1 are gone");
    views.learnt(2, received(3));
    assert_eq!((of_both(views), views.all[2].in_flight), ([2, 2], 4), "the other scheduler's remain");
    views.learnt(2, received(2));
    assert_eq!((of_both(views), views.entries(2).next()), ([2, 2], Some((0, 5, 10))), "late, but applied");
}

/// A scheduler crashes before it has numbered a placement, and places the task again. The second placement takes the
/// number, and the first placement counts as lost when the second arrives.
#[test]
fn after_a_crash_the_next_placement_takes_the_number() {
    let (layout, faults) = crash_of(0);
    let workload = one_job();
    let mut tracker = CacheTracker::new(&layout, &workload, &faults, Recording::default(), 1);
    let (second, number) = (|s: u64| Time(s * 1_000_000_000), 1 << 24);
    for (at, attempt) in [(5, 0), (21, 1)] {
        let copy = JobId(0).task(0).copy(attempt);
        let placed =
            Note::Cache(CacheNote::Placed { copy, node: 0, believed: 0, order: ServiceOrder::Arrival });
        tracker.note(second(at), layout.scheduler(0), placed);
    }
    let numbered = Note::Cache(CacheNote::Numbered { node: 0, number, datagram: false });
    tracker.note(second(21), layout.scheduler(0), numbered);
    let versions = |tracker: &CacheTracker<'_>| {
        let views = &tracker.state.as_ref().unwrap().views;
        (views.lack(1, 0, second(30)).versions, views.all[1].in_flight)
    };
    assert_eq!(versions(&tracker), (2, 2));
    let learnt = Note::Cache(CacheNote::Learnt { node: 0, change: 0, origin: 0, number, datagram: false });
    tracker.note(second(25), layout.scheduler(1), learnt);
    assert_eq!(versions(&tracker), (0, 0));
}

/// Both schedulers place a task on a node at 1 s, and the tasks reach it at 3 s. A snapshot of 2 s contains neither
/// task, so each scheduler lacks both, including its own. A snapshot of 3 s contains both.
#[test]
fn a_snapshot_does_not_contain_tasks_under_way() {
    let mut state = TrackerState { snapshots: true, ..state(2, 1) };
    let second = |s: u64| Time(s * 1_000_000_000);
    let copies = [0, 1].map(|job| JobId(job).task(0).copy(0));
    for (origin, copy) in (0..).zip(copies) {
        state.views.placed(second(1), origin, 0, copy, 5);
    }
    let lack = |state: &TrackerState| [0, 1].map(|at| state.views.lack(at, 0, second(11)));
    let lacks = |state: &TrackerState| lack(state).map(|lack| (lack.versions, lack.age));
    assert_eq!(lacks(&state), [(1, 10.0); 2], "only the other's placement is pending");
    state.views.reached(second(3), 0, copies[0]);
    state.views.reached(second(3), 0, copies[1]);
    (0..2).for_each(|scheduler| state.snapshot(second(4), Some(scheduler), 0, second(2)));
    assert_eq!(lacks(&state), [(2, 10.0); 2]);
    (0..2).for_each(|scheduler| state.snapshot(second(5), Some(scheduler), 0, second(3)));
    assert_eq!(lacks(&state), [(0, 0.0); 2]);
    assert_eq!(state.views.all[0].in_flight, 0);
}

/// A task that never reached a node is placed elsewhere, and its first placement stops being an update.
#[test]
fn void_placements_are_not_pending() {
    let mut state = TrackerState { snapshots: true, ..state(2, 2) };
    let task = JobId(0).task(0);
    state.views.placed(Time(1), 0, 0, task.copy(0), 5);
    state.views.withdrawn(0, task);
    state.views.placed(Time(2), 0, 1, task.copy(1), 5);
    (0..2).for_each(|scheduler| state.snapshot(Time(4), Some(scheduler), 0, Time(3)));
    let versions = |node| [0, 1].map(|at| state.views.lack(at, node, Time(5)).versions);
    assert_eq!((versions(0), versions(1)), ([0, 0], [0, 1]));
    assert_eq!(state.views.all[1].in_flight, 1);
}

/// A task that was given up on node 1 and placed on node 0 ends on node 1 after all: its second launch may have been
/// lost, and is no longer pending.
#[test]
fn a_placement_is_void_once_its_task_has_ended_elsewhere() {
    let (layout, workload, faults) = (Layout::new(2, 0, vec![1; 2]), one_job(), Faults::default());
    let recording = Recording { snapshots: true, ..Recording::default() };
    let mut tracker = CacheTracker::new(&layout, &workload, &faults, recording, 1);
    let copy = |attempt| JobId(0).task(0).copy(attempt);
    for (at, node) in [(1, 1), (2, 0)] {
        let placed = Note::Cache(CacheNote::Placed {
            copy: copy(at),
            node,
            believed: 0,
            order: ServiceOrder::Arrival,
        });
        tracker.note(Time(u64::from(at)), layout.scheduler(0), placed);
    }
    let lacked = |tracker: &CacheTracker<'_>| tracker.state.as_ref().unwrap().views.all[1].in_flight;
    assert_eq!(lacked(&tracker), 1);
    tracker.note(Time(3), layout.worker(1, 0), Note::Started { copy: copy(1), resumed: false });
    tracker.note(Time(4), layout.worker(1, 0), Note::Completed { copy: copy(1) });
    assert_eq!(lacked(&tracker), 0);
}
