//! Jobs with deadlines and preferred nodes: exact times, runs that are cut, history, several shards.

use volary_actors::base::{JobId, Span};
use volary_actors::catalog::Catalog;
use volary_actors::machine::{Effects, Input, Machine};
use volary_actors::message::{Job, Launch, Message, Row};
use volary_actors::roles::job_table::{JobTable, OpenJob};
use volary_engine::metrics::Recording;
use volary_engine::metrics::RunConfig;
use volary_engine::results::Measured;
use volary_engine::shard::{Placement, Shard};
use volary_engine::virtual_time::measure;
use volary_engine::world::World;

use crate::common::{FAULTY, poisson, run, with, world};
use crate::sharding::lockstep;

/// Recording options that keep every execution.
fn recording() -> Recording {
    Recording { one_in: Some(1), ..Recording::default() }
}

fn cut(world: &World, until: Span) -> Measured {
    measure("test", world, &RunConfig { until: Some(until), recording: recording() }, &()).unwrap()
}

/// The run time of a copy follows from the preference of its job and the kind of its node.
#[test]
fn copies_take_longer_on_nodes_that_their_job_does_not_prefer() {
    let slo = "workload.synthetic.slo={ share = 0.7, slack = 1, preference = { kinds = 3, of = 1, slowdown = 2.5 } }";
    let text = with(&poisson(10, 300, 4, 0.8, "random = {}"), &[slo]);
    let world = world(&text);
    let config = RunConfig { until: None, recording: recording() };
    let measured = measure("test", &world, &config, &()).unwrap();
    let (workload, layout) = (world.workload(), world.layout());
    assert_eq!((layout.kinds(), layout.kind(7)), (3, 1));
    let mut slowed = [0, 0];
    for row in &measured.copies {
        let job = JobId(row.job);
        let copy = job.task(row.task).copy(row.attempt);
        let kind = layout.kind(layout.node_of_core(row.core));
        let factor = if workload.preference(job).includes(kind) { 1.0 } else { 2.5 };
        let expected = factor * workload.work(copy).as_secs_f64();
        assert!((row.end - row.start - expected).abs() < 1e-8 * (1.0 + expected), "{row:?} for {expected} s");
        slowed[usize::from(factor > 1.0)] += 1;
    }
    // Seven in ten jobs prefer one of the three kinds of nodes.
    let part = f64::from(slowed[1]) / f64::from(slowed[0] + slowed[1]);
    assert!((part - 0.7 * 2.0 / 3.0).abs() < 0.1, "{slowed:?}");
}

/// A scheduler that starts each job on the first nodes at once, and states in the launch if the job does not prefer all
/// of these nodes.
#[derive(Clone, Debug)]
struct FirstNodes(JobTable<OpenJob>);

impl Machine for FirstNodes {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        let Input::Deliver { msg, .. } = input else { return };
        if let Message::Launch(Launch::Completed { copy }) = msg {
            self.0.complete(copy.task, |open| open, fx);
        } else if let Message::Job(Job::Submit { job, round }) = msg {
            let mut open = self.0.admit(job, round, fx.catalog()).unwrap();
            let (attempt, tasks) = (open.attempts(1), fx.catalog().tasks(job));
            let (layout, preference) = (fx.layout(), fx.catalog().preference(job));
            let elsewhere = (0..tasks).any(|node| !preference.includes(layout.kind(node)));
            for index in 0..tasks {
                let row = Row::single(job.task(index).copy(attempt)).in_gang(elsewhere);
                fx.send(layout.node(index), Launch::Row(row));
            }
            self.0.open(job, open);
        }
    }
}

/// All tasks of a gang take longer if the scheduler says that a task runs elsewhere, and they start and end together.
#[test]
fn all_tasks_of_a_gang_are_slowed_down_together() {
    let slo = "slo = { share = true, slack = 1, preference = { kinds = 4, of = 3, slowdown = 1.5 } }";
    let text = format!(
        "seed = 3\ncluster = {{ nodes = 8 }}\n[workload.synthetic]\njobs = 60\ngang = true\n{slo}\ninterarrival = \
         \"100s\"\ntasks = {{ uniform = {{ low = 1, high = 6 }} }}\n[service]\ndemand = {{ uniform = {{ low = \"1s\", \
         high = \"9s\" }} }}\n[[policy]]\nrandom = {{}}\n"
    );
    let world = world(&text);
    let mut shard = Shard::new(world.parts(Placement::ALONE, false).unwrap(), world.recorder(recording()));
    shard.install(world.layout().scheduler(0), Box::new(FirstNodes(JobTable::default())));
    shard.start();
    while !shard.observer.all_finished() && shard.advance() {}
    let now = shard.now();
    let accounts = shard.observer.close(now);
    let (workload, mut seen) = (world.workload(), [0, 0]);
    for row in &accounts.rows {
        let preference = workload.preference(JobId(row.job));
        let elsewhere = (0..row.tasks).any(|node| !preference.includes(world.layout().kind(node)));
        let expected = row.longest * if elsewhere { 1.5 } else { 1.0 };
        let copies: Vec<_> = accounts.sample.iter().filter(|copy| copy.job == row.job).collect();
        assert_eq!(copies.len() as u32, row.tasks);
        assert!(
            copies.iter().all(|copy| (copy.end - copy.start - expected).abs() < 1e-8),
            "{row:?} {copies:?}"
        );
        assert!((row.response - expected).abs() < 1e-8, "{row:?}");
        let estimate = workload.job_estimate(JobId(row.job)).as_secs_f64();
        assert_eq!(row.longest, estimate, "its tasks are alike");
        seen[usize::from(elsewhere)] += 1;
    }
    assert!(seen[0] > 5 && seen[1] > 5, "{seen:?}");
    let found = accounts.deadlines.unwrap();
    assert_eq!((found.slo, found.met, found.missed), (60, 60, 0), "a slack of 1 covers half as long again");
}

/// One node with twice the load that it can serve: response times grow, so all deadlines are missed from some job on.
/// In a run that is cut, deadlines beyond its end are open.
#[test]
fn deadlines_are_met_missed_or_open() {
    let text = "seed = 1\ncluster = { nodes = 1 }\nservice = { demand = \"2s\" }\n[workload.synthetic]\njobs = 100\n\
                tasks = 1\ninterarrival = \"1s\"\nslo = { share = true, slack = 4.5 }\n[[policy]]\nrandom = {}\n";
    // Job i arrives at 1 + i, is due 11 s later, and ends at 3 + 2 i: the first ten meet their deadline.
    let whole = run(text).summary.deadlines.unwrap();
    assert_eq!((whole.slo, whole.met, whole.missed, whole.open), (100, 10, 90, 0));
    assert_eq!((whole.miss_rate, whole.value), (0.9, 10));
    let hours = |found: f64| (found * 1800.0).round();
    let goodput = whole.goodput_h;
    assert_eq!([goodput.slo, goodput.late, goodput.be, goodput.total].map(hours), [10.0, 90.0, 0.0, 100.0]);
    // At 30 s there are 30 jobs, those up to job 18 are due, and job 13 is the last that has ended.
    let measured = cut(&world(text), Span::from_secs(30));
    assert_eq!((measured.summary.jobs.submitted, measured.summary.jobs.finished), (30, 14));
    let at_30 = measured.summary.deadlines.unwrap();
    assert_eq!((at_30.slo, at_30.met, at_30.missed, at_30.open), (30, 10, 9, 11));
    assert_eq!((at_30.miss_rate, at_30.value), (9.0 / 19.0, 10));
    assert_eq!([at_30.goodput_h.slo, at_30.goodput_h.late].map(hours), [10.0, 4.0]);
    let best_effort = with(text, &["workload.synthetic.slo.share=0.5"]);
    let some = run(&best_effort).summary;
    let classes = ["slo", "be"].map(|label| some.classes[label]);
    let found = some.deadlines.unwrap();
    assert_eq!(classes[0].jobs + classes[1].jobs, 100);
    assert_eq!((found.slo, found.be_response_s.mean), (classes[0].jobs, classes[1].times.response_s.mean));
    assert_eq!(hours(found.goodput_h.be), classes[1].jobs as f64);
    assert_eq!(found.value, found.met, "best-effort jobs earn nothing");
    // Without a queue job i ends at 3 + i; at 9 s jobs 0 to 6 have ended, and the first deadline is at 12 s.
    let early =
        cut(&world(&with(text, &["cluster.nodes=100"])), Span::from_secs(9)).summary.deadlines.unwrap();
    assert_eq!((early.slo, early.met, early.missed, early.open), (9, 0, 0, 9));
    assert_eq!(early.value, early.slo - 2, "jobs that ended early earn their utility before their deadline");
}

/// Several shards give the results of one under loss, duplicates, crashes, preferences, history and stages.
#[test]
fn several_shards_agree_on_deadlines_preferences_and_history() {
    let slo = "slo={ share = 0.5, slack = [0.2, 8], preference = { kinds = 4, of = 2, slowdown = 2 } }";
    let set = [format!("workload.synthetic.{slo}"), "workload.synthetic.pretrain=20".to_owned()];
    for policy in ["random = {}", "sparrow = {}", "kairos = {}", "late = {}"] {
        let set = set.each_ref().map(String::as_str);
        let text = with(&format!("{FAULTY}[[policy]]\n{policy}\n"), &set);
        let (world, alone) = (world(&text), run(&text));
        assert_eq!((alone.summary.jobs.finished, world.workload().past()), (60, 20), "{policy}");
        let found = alone.summary.deadlines.unwrap();
        assert!(found.met > 0 && found.missed > 0, "{policy}: {found:?}");
        let (rows, crossed) = lockstep(&world, 3, world.recorder(Recording::default()));
        assert_eq!(rows, alone.jobs, "{policy}");
        assert!(crossed > 0);
    }
}
