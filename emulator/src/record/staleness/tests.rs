use std::path::Path;

use volary_actors::base::{ActorId, Time};
use volary_actors::machine::Note;

use super::*;
use crate::record::fold::Recorder;
use crate::runtime::world::World;
use crate::shard::{Observer, Parts, Placement, Shard};
use crate::spec::error::Text;
use crate::spec::{Experiment, Overrides};
use crate::workload::{Traces, Workload};

/// Keeps the books and checks after every note that nothing but news explains what a cache says.
struct Audit<'a> {
    books: Recorder<'a>,
    layout: &'a Layout,
    checked: u64,
    beliefs: u64,
}

impl Observer for Audit<'_> {
    fn note(&mut self, now: Time, who: ActorId, note: Note) {
        if let Note::Placed { node, believed, .. } = note
            && let Role::Scheduler(index) = self.layout.role(who)
        {
            // Every scheduler is watched here: what it says of itself is what its notes add up to.
            let nodes = self.layout.nodes();
            let pairs = self.books.caches.pairs();
            if let Some(&(work, ..)) = pairs.get((index * nodes + node) as usize) {
                assert_eq!(believed, work, "scheduler {index} at {now}");
                self.beliefs += 1;
            }
        }
        self.books.note(now, who, note);
        for (work, truth, pending) in self.books.caches.pairs() {
            assert_eq!(work + pending, truth, "after {note:?} of {who} at {now}");
            self.checked += 1;
        }
    }

    fn crashed(&mut self, _: Time, _: u32) {
        unreachable!("nobody crashes here")
    }

    fn watches(&self, scheduler: u32) -> bool {
        self.books.watches(scheduler)
    }
}

/// O-M4: e = −Σ(+x not taken in) + Σ(−x not taken in), exactly, at every event, whatever the delays; and 0 when
/// all is quiet.
#[test]
fn nothing_but_news_separates_caches_from_the_truth() {
    let delays = [
        ("\"500us\"", "update_delay = \"2s\""),
        ("{ exponential = { mean = \"300ms\" } }", "batch = false"),
        ("\"1ms\"", "decision_per_job = \"50ms\", decision_per_task = \"5ms\", order = \"srjf\""),
    ];
    for (one_way, policy) in delays {
        let text = format!(
            "title = \"t\"\nseed = 3\n[cluster]\nnodes = 7\ncores = 2\nschedulers = 3\n[workload.synthetic]\njobs = 60\n\
             tasks = 5\ninterarrival = {{ exponential = {{ mean = \"400ms\" }} }}\n[service]\n\
             demand = {{ exponential = {{ mean = \"1s\" }} }}\n[network]\none_way = {one_way}\n[[policy]]\n\
             murmuration = {{ {policy} }}\n"
        );
        let source = Text { name: "t.toml".into(), text, folder: None };
        let experiment = Experiment::plan(Path::new("t.toml"), source, &Overrides::default()).unwrap();
        let point = &experiment.points[0];
        let r = &point.resolved;
        let traces = Traces::new(Vec::new());
        let workload = Workload::build(&r.workload, &r.service, 3, r.cluster.schedulers, &traces).unwrap();
        let world = World::new(point, 3, workload).unwrap();
        for shared in [true, false] {
            let books = world.recorder(&experiment.run);
            let audit = Audit { books, layout: world.layout(), checked: 0, beliefs: 0 };
            let parts = Parts { shared, ..world.parts(Placement::ALONE).unwrap() };
            let mut shard = Shard::new(parts, audit);
            shard.start();
            while shard.advance() {}
            let audit = shard.observer;
            assert!(audit.books.all_finished() && audit.checked > 20_000 && audit.beliefs > 250);
            let quiet = audit.books.caches.pairs();
            assert!(quiet.iter().all(|&pair| pair == (0, 0, 0)), "{policy}: {quiet:?}");
        }
    }
}

#[test]
fn long_runs_are_looked_at_less_often() {
    let layout = Layout::new(20, 0, vec![1; 1000]);
    let mut books = Books::new(&layout, 1, Time::ZERO);
    books.made(Time::ZERO, Some(0), 8, 5_000_000_000);
    books.look(Time(3_000_000_000_000), Span::from_secs(1));
    let times: Vec<f64> = books.rows.chunk_by(|a, b| a.time == b.time).map(|look| look[0].time).collect();
    assert!((512..=1024).contains(&times.len()), "{}", times.len());
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == f64::from(books.stride)));
    assert_eq!((books.stride, times.last()), (4, Some(&3000.0)));
    assert_eq!(books.views.len(), 10);
    let last = books.rows.last().unwrap();
    assert_eq!((last.in_flight, last.age_max), (1, 3000.0), "it is never taken in");
    // Weighted by how long each look stands for, the mean age of that node is half the time.
    let mean = books.ages.mean() * 250.0;
    assert!((mean / (0.9 * 1500.0) - 1.0).abs() < 0.01, "{mean}");
}
