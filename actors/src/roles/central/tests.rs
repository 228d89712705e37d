//! Step tests: what the scheduler sends when.

use super::*;
use crate::scripts::{Bench, sends};

const JOB: JobId = JobId(0);

/// Backs up whatever runs alone; looks every second.
#[derive(Debug)]
struct Everything;

impl Rule for Everything {
    fn look(&mut self, view: &View<'_>, wishes: &mut Vec<Wish>) {
        wishes.extend(view.attempts.alone().map(|attempt| Wish::Backup(attempt.task)));
    }

    fn pause(&self, _: bool) -> Option<Span> {
        Some(Span::from_secs(1))
    }
}

fn bench(rule: impl Rule + 'static, tasks: u32, nodes: usize) -> Bench {
    let layout = Layout::new(1, 0, vec![1; nodes]);
    let me = layout.scheduler(0);
    let machine = Box::new(Central::new(rule, &layout));
    Bench::new(layout, me, tasks, machine)
}

fn submit(bench: &mut Bench) -> Vec<(ActorId, Message)> {
    bench.hear(bench.layout.client(0), Job::Submit { job: JOB, round: 0 })
}

fn row(task: u32, attempt: u32) -> Message {
    Launch::Row(Row::single(JOB.task(task).copy(attempt))).into()
}

fn dropped(task: u32, below: u32) -> Message {
    Launch::Drop(Tasks::one(JOB.task(task), below)).into()
}

fn done(bench: &mut Bench, node: u32, task: u32, attempt: u32) -> Vec<(ActorId, Message)> {
    let copy = JOB.task(task).copy(attempt);
    bench.hear(bench.layout.node(node), Launch::Completed { copy })
}

/// Two tasks on four nodes, each with a backup. A backup wins; the first copy is stopped, its late result
/// changes nothing, and both cores are free again.
#[test]
fn the_first_result_counts_and_the_other_copy_is_stopped() {
    let mut bench = bench(Everything, 2, 4);
    let node = |i| bench.layout.node(i);
    let [a, b, c, d] = [node(0), node(1), node(2), node(3)];
    let client = bench.layout.client(0);
    assert_eq!(submit(&mut bench), [(a, row(0, 0)), (b, row(1, 0)), (c, row(0, 1)), (d, row(1, 2))]);
    assert_eq!(done(&mut bench, 2, 0, 1), [(a, dropped(0, 1))]);
    assert_eq!(done(&mut bench, 0, 0, 0), [], "a late duplicate");
    let finished = Job::Finished { job: JOB }.into();
    assert_eq!(done(&mut bench, 1, 1, 0), [(d, dropped(1, 3)), (client, finished)]);
    // Four cores, once each.
    let next = bench.hear(client, Job::Submit { job: JobId(1), round: 0 });
    let nodes: Vec<_> = next.iter().map(|(node, _)| *node).collect();
    assert_eq!(nodes, [c, a, b, d], "in the order in which they became free");
}

/// A backup keeps its task alive when the first copy is lost, and the other way round; with the last copy the
/// task goes back to the queue.
#[test]
fn a_task_is_sent_again_when_its_last_copy_is_lost() {
    let mut bench = bench(Everything, 1, 3);
    let node = |i| bench.layout.node(i);
    let [a, b, c] = [node(0), node(1), node(2)];
    assert_eq!(submit(&mut bench), [(a, row(0, 0)), (b, row(0, 1))]);
    assert_eq!(sends(&bench.step(Input::Down { actor: a })), []);
    let undelivered = Input::Undelivered { to: b, msg: row(0, 1) };
    assert_eq!(sends(&bench.step(undelivered)), [(c, row(0, 2))]);
    assert_eq!(sends(&bench.step(undelivered)), [], "once");
    let client = bench.layout.client(0);
    let finished = Job::Finished { job: JOB }.into();
    assert_eq!(done(&mut bench, 0, 0, 0), [(c, dropped(0, 3)), (client, finished)], "it had ended before");
}

/// First copies come before backups, and a node gets one copy of a task.
#[test]
fn backups_take_what_is_left() {
    let mut bench = bench(Everything, 3, 2);
    let [a, b] = [bench.layout.node(0), bench.layout.node(1)];
    assert_eq!(submit(&mut bench), [(a, row(0, 0)), (b, row(1, 0))]);
    assert_eq!(done(&mut bench, 0, 0, 0), [(a, row(2, 0))]);
    let look = |number| Input::Fire(Timer::Recheck { job: JOB, attempt: number });
    assert_eq!(sends(&bench.step(look(1))), []);
    assert_eq!(done(&mut bench, 0, 2, 0), []);
    assert_eq!(sends(&bench.step(look(2))), [(a, row(1, 1))]);
    assert_eq!(sends(&bench.step(look(2))), [], "of a job submitted before");
}

/// Restarts everything once; without cores to spare.
#[derive(Debug)]
struct Anew;

impl Rule for Anew {
    fn look(&mut self, view: &View<'_>, wishes: &mut Vec<Wish>) {
        let old = view.attempts.all().iter().filter(|a| !view.restarted.contains(&a.task));
        wishes.extend(old.map(|a| Wish::Restart(a.task, a.number)));
    }

    fn pause(&self, _: bool) -> Option<Span> {
        Some(Span::from_secs(1))
    }
}

/// One core, two tasks: the one that is begun anew lets the other one go first.
#[test]
fn what_begins_anew_leaves_its_core_to_the_next_task() {
    let mut bench = bench(Anew, 2, 1);
    let node = bench.layout.node(0);
    let started = submit(&mut bench);
    assert_eq!(started, [(node, row(0, 0)), (node, dropped(0, 1)), (node, row(1, 0))]);
    assert_eq!(done(&mut bench, 0, 1, 0), [(node, row(0, 1))]);
}

/// The newest report counts; one of a copy that ended, or of a time before, changes nothing.
#[test]
fn reports_can_come_late_or_twice() {
    #[derive(Debug)]
    struct Far;
    impl Rule for Far {
        fn look(&mut self, view: &View<'_>, wishes: &mut Vec<Wish>) {
            let far = |a: &&Attempt| a.score == Score(600) && a.heard == Time(2);
            wishes.extend(view.attempts.all().iter().filter(far).map(|a| Wish::Backup(a.task)));
        }
        fn pause(&self, _: bool) -> Option<Span> {
            Some(Span::from_secs(1))
        }
    }
    let mut bench = bench(Far, 1, 2);
    let [a, b] = [bench.layout.node(0), bench.layout.node(1)];
    submit(&mut bench);
    let report =
        |score, at| Progress::Report { copy: JOB.task(0).copy(0), score: Score(score), at: Time(at) };
    for (score, at) in [(600, 2), (500, 1), (600, 2)] {
        assert_eq!(bench.hear(a, report(score, at)), []);
    }
    let other = Progress::Report { copy: JOB.task(0).copy(7), score: Score(900), at: Time(9) };
    assert_eq!(bench.hear(b, other), []);
    let look = bench.step(Input::Fire(Timer::Recheck { job: JOB, attempt: 1 }));
    assert_eq!(sends(&look), [(b, row(0, 1))]);
}
