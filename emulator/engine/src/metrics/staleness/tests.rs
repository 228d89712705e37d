//! Tests of the staleness tracker.

use volary_actors::base::Endpoint;
use volary_netem::{FaultSpec, Groups};

use super::*;
use crate::workload::{NoTraces, Service, Synthetic, WorkloadSpec};

fn one_job() -> Workload {
    let jobs: Synthetic = toml::from_str("jobs = 1\ntasks = 1\ninterarrival = \"1s\"").unwrap();
    let service: Service = toml::from_str("demand = \"100s\"").unwrap();
    Workload::build(&WorkloadSpec::Synthetic(jobs), &service, 1, 1, &NoTraces).unwrap()
}

#[test]
fn long_runs_are_looked_at_less_often() {
    let layout = Layout::new(20, 0, vec![1; 1000]);
    let mut books = TrackerState::new(&layout, 1, Time::ZERO);
    books.made(Time::ZERO, Some(0), 8, 5_000_000_000);
    books.look(Time(3_000_000_000_000), Span::from_secs(1), |_, _| true);
    let looks = books.rows.chunk_by(|a, b| a.time == b.time);
    let times: Vec<u32> = looks.map(|look| look[0].time.round() as u32).collect();
    assert!((512..=1024).contains(&times.len()), "{}", times.len());
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == books.stride));
    assert_eq!((books.stride, times.last()), (4, Some(&3000)));
    assert_eq!(books.views.len(), 10);
    let last = books.rows.last().unwrap();
    assert_eq!((last.in_flight, last.age_max.round()), (1, 3000.0), "it is never taken in");
    // Each observation is weighted by the interval it represents, so the mean age of that node is half the time.
    let mean = books.ages.mean() * 250.0;
    assert!((mean / (0.9 * 1500.0) - 1.0).abs() < 0.01, "{mean}");
}

/// Returns the seconds at which each of two schedulers was observed. The second is down from 10 s to 20 s and has a
/// cache again at 21.5 s.
#[test]
fn whoever_is_down_is_not_looked_at() {
    let layout = Layout::new(2, 0, vec![1]);
    let mut groups = Groups::new(layout.endpoints());
    groups.number("scheduler", Endpoint(2), 2);
    let crash = r#"[{ "crash": { "who": ["scheduler:1"], "at": "10s", "for": "10s" } }]"#;
    let crash: Vec<FaultSpec> = serde_json::from_str(crash).unwrap();
    let faults = Faults::resolve(&crash, &groups, layout.endpoints()).unwrap();
    let workload = one_job();
    let mut tracker = Tracker::new(&layout, &workload, &faults, Span::from_secs(1));
    tracker.placed(Time::ZERO, layout.scheduler(0), JobId(0).task(0).copy(0), 0, 0);
    tracker.believes(Time(21_500_000_000), layout.scheduler(1), 0, 0, Time::ZERO);
    let mut results = PolicyResults::default();
    tracker.close(Time::ZERO, Time(30_500_000_000), &mut results);
    let rows = results.looks;
    let looks = |scheduler| -> Vec<u32> {
        rows.iter().filter(|row| row.scheduler == scheduler).map(|row| row.time.round() as u32).collect()
    };
    assert_eq!(looks(0), (0..=30).collect::<Vec<_>>());
    assert_eq!(looks(1), (0..10).chain(22..=30).collect::<Vec<_>>());
}
