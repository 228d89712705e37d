//! Step tests of the node manager.

use super::*;
use crate::harness::{Harness, sends};
use crate::layout::Layout;
use crate::machine::Effect;
use crate::message::Progress;

const JOB: JobId = JobId(3);

fn bench(cores: u32) -> (Harness, ActorId) {
    let layout = Layout::new(1, 0, [cores]);
    let (me, scheduler) = (layout.node(0), layout.scheduler(0));
    (Harness::new(layout, me, 3, Box::new(NodeManager::new(cores))), scheduler)
}

fn row(turn: u16) -> Row {
    Row { job: JOB, base: 0, len: 3, turn, width: 3, attempt: u32::from(turn), elsewhere: false }
}

fn one(index: u32) -> TaskRange {
    TaskRange::one(JOB.task(index), 9)
}

fn run(copy: CopyId) -> Message {
    Core::run(copy).into()
}

/// Table II of the latin-square paper, as server s2 sees it. The row is [1, 2, 0] (tasks from zero). Task 0 completes
/// on s1, then task 1 on s2 itself, then task 2 on s3.
#[test]
fn the_second_server_follows_table_ii_of_the_paper() {
    let (mut node, scheduler) = bench(1);
    let worker = node.layout.worker(0, 0);
    assert_eq!(node.receive(scheduler, Launch::Row(row(1))), [(worker, run(row(1).copy(0)))]);
    // The head of the row is unchanged and must not be restarted.
    assert_eq!(node.receive(scheduler, Launch::Drop(one(0))), []);
    let done = Launch::Completed { copy: row(1).copy(0) }.into();
    assert_eq!(node.ended(row(1).copy(0)), [(scheduler, done), (worker, run(row(1).copy(1)))]);
    // Task 2 completes on s3, so its copy on s2 stops, and nothing is left.
    let stop = Core::Stop { copy: row(1).copy(1) }.into();
    assert_eq!(node.receive(scheduler, Launch::Drop(one(2))), [(worker, stop)]);
}

#[test]
fn a_drop_that_overtakes_its_row_is_remembered() {
    let (mut node, scheduler) = bench(1);
    let worker = node.layout.worker(0, 0);
    assert_eq!(node.receive(scheduler, Launch::Drop(one(0))), []);
    assert_eq!(node.receive(scheduler, Launch::Row(row(0))), [(worker, run(row(0).copy(1)))]);
}

#[test]
fn a_drop_in_the_queue_removes_only_its_task() {
    let (mut node, scheduler) = bench(1);
    let worker = node.layout.worker(0, 0);
    let first = Row::single(JobId(1).task(0).copy(0));
    node.receive(scheduler, Launch::Row(first));
    assert_eq!(node.receive(scheduler, Launch::Row(row(2))), []);
    assert_eq!(node.receive(scheduler, Launch::Drop(one(2))), []);
    let sent = node.ended(first.copy(0));
    assert_eq!(sent[1], (worker, run(row(2).copy(1))), "task 2 is skipped, task 0 runs");
}

#[test]
fn a_reservation_holds_its_core_until_answered() {
    let (mut node, scheduler) = bench(2);
    let reserve = |job| Probe::Reserve { job: JobId(job), group: 0, count: 1, repair: false };
    let claim = |job| (scheduler, Probe::Claim { job: JobId(job), group: 0, repair: false }.into());
    assert_eq!(node.receive(scheduler, reserve(1)), [claim(1)]);
    assert_eq!(node.receive(scheduler, reserve(1)), [], "a repeated reservation is known");
    assert_eq!(node.receive(scheduler, reserve(2)), [claim(2)]);
    assert_eq!(node.receive(scheduler, reserve(3)), [], "both cores are busy or held");
    let length = Probe::Length { task: JOB.task(0), length: 3 }.into();
    assert_eq!(
        node.receive(scheduler, Probe::Sample { task: JOB.task(0), repair: false }),
        [(scheduler, length)]
    );
    assert_eq!(node.receive(scheduler, Probe::Nothing { job: JobId(2), group: 0 }), [claim(3)]);
    let granted = Row::single(JobId(1).task(4).copy(0));
    let sent = node.receive(scheduler, Probe::Grant { row: granted, group: 0 });
    assert_eq!(sent, [(node.layout.worker(0, 0), run(granted.copy(0)))]);
}

#[test]
fn a_dead_scheduler_is_forgotten() {
    let (mut node, scheduler) = bench(1);
    node.receive(scheduler, Launch::Row(row(0)));
    node.receive(scheduler, Probe::Reserve { job: JobId(9), group: 0, count: 2, repair: false });
    let stop = Core::Stop { copy: row(0).copy(0) }.into();
    let worker = node.layout.worker(0, 0);
    assert_eq!(sends(&node.step(Input::Down { actor: scheduler })), [(worker, stop)]);
}

#[test]
fn busy_cores_are_reported_until_they_are_idle() {
    let layout = Layout::new(1, 0, [2]);
    let (me, scheduler, worker) = (layout.node(0), layout.scheduler(0), layout.worker(0, 0));
    let every = Span::from_secs(3);
    let reports = Some(ReportOptions { every, ..ReportOptions::default() });
    let options = NodeOptions { reports, ..NodeOptions::default() };
    let mut node = Harness::new(layout, me, 3, Box::new(NodeManager::with(options, 2)));
    let tick = Effect::Arm { timer: reports::PROGRESS, after: every };
    let copy = JobId(3).task(1).copy(2);
    let row = Input::Deliver { from: scheduler, msg: Launch::Row(Row::single(copy)).into() };
    assert_eq!(node.step(row).last(), Some(&tick));
    let fired = node.step(Input::Fire(reports::PROGRESS));
    assert_eq!(sends(&fired), [(worker, Core::Ask { copy }.into())], "the idle core is not asked");
    assert_eq!(fired.last(), Some(&tick));
    node.now = Time::ZERO + every;
    let report = Progress::Report { copy, score: Score(7), at: node.now.into(), age_ms: 3_000 };
    assert_eq!(
        node.receive(worker, Core::Score { copy, score: Score(7), done_ms: 0 }),
        [(scheduler, report.into())]
    );
    node.ended(copy);
    assert_eq!(node.step(Input::Fire(reports::PROGRESS)), [], "nothing runs, so no report is armed");
}
