//! Tests that step the scheduler and nodes, and tests of the matrix.

use super::*;
use crate::base::{ActorId, JobId};
use crate::harness::{Harness, sends};
use crate::machine::{Effect, Input, Timer};
use crate::message::{Contention, Core, Launch, Message, Slice, SliceWork};

fn scheduler(nodes: usize, tasks: u32) -> Harness {
    let layout = Layout::new(1, 0, vec![1; nodes]);
    Gang::default().bench(&layout, layout.scheduler(0), tasks)
}

fn running(sent: &[(ActorId, Message)]) -> Vec<Option<u32>> {
    let mut jobs: Vec<_> = sent
        .iter()
        .filter_map(|&(_, msg)| match msg {
            Message::Gang(Slice::Switch { work, .. }) => Some(work.copy().map(|copy| copy.task.job.0)),
            _ => None,
        })
        .collect();
    jobs.sort_unstable();
    jobs
}

#[test]
fn two_jobs_take_turns_and_a_single_job_needs_no_ticks() {
    let mut bench = scheduler(2, 2);
    let first = bench.submit(0);
    assert_eq!(running(&sends(&first)), [Some(0), Some(0)]);
    assert!(!first.iter().any(|effect| matches!(effect, Effect::Arm { .. })), "a single slice arms no timer");
    let second = bench.submit(1);
    assert_eq!(running(&sends(&second)), [], "the second job waits for its slice");
    assert!(second.iter().any(|effect| matches!(effect, Effect::Arm { .. })));
    for job in [1, 0, 1] {
        let tick = bench.step(Input::Fire(Timer::Tick(0)));
        assert_eq!(running(&sends(&tick)), [Some(job), Some(job)]);
    }
    // Job 1, which runs in the current slice, ends: the next slice begins at once.
    let node = bench.layout.node(0);
    bench.receive(node, Launch::Completed { copy: JobId(1).task(0).copy(0) });
    let sent = bench.receive(node, Launch::Completed { copy: JobId(1).task(1).copy(0) });
    assert_eq!(running(&sent), [Some(0), Some(0)]);
}

#[test]
fn jobs_that_fit_share_a_slice_and_wide_jobs_take_several() {
    let mut bench = scheduler(5, 2);
    assert_eq!(running(&sends(&bench.submit(0))), [Some(0), Some(0)]);
    assert_eq!(running(&sends(&bench.submit(1))), [Some(1), Some(1)], "both jobs fit into the same slice");
    let mut wide = scheduler(2, 3);
    assert_eq!(running(&sends(&wide.submit(0))), [Some(0), Some(0)]);
    let tick = wide.step(Input::Fire(Timer::Tick(0)));
    assert_eq!(running(&sends(&tick)), [None, Some(0)], "the third task has a slice of its own");
}

#[test]
fn a_core_keeps_progress_and_runs_no_copy_twice() {
    let layout = Layout::new(1, 0, [1]);
    let (me, scheduler, worker) = (layout.node(0), layout.scheduler(0), layout.worker(0, 0));
    let mut node = Gang::default().bench(&layout, me, 2);
    let [a, b] = [0, 1].map(|job| JobId(job).task(0).copy(0));
    let switch = |work, order| Slice::Switch { core: 0, work, epoch: 0, order, open: JobId(0) };
    let order = |order: Core| (worker, Message::from(order));
    assert_eq!(node.receive(scheduler, switch(SliceWork::Begin(a), 1)), [order(Core::run(a))]);
    let both = [order(Core::Suspend { copy: a }), order(Core::run(b))];
    assert_eq!(node.receive(scheduler, switch(SliceWork::Begin(b), 2)), both);
    let left = Span::from_millis(300);
    node.receive(worker, Core::Suspended { copy: a, left });
    assert_eq!(node.receive(scheduler, switch(SliceWork::Begin(a), 1)), [], "an outdated order is void");
    assert_eq!(node.ended(b), [(scheduler, Launch::Completed { copy: b }.into())]);
    assert_eq!(node.receive(scheduler, switch(SliceWork::GoOn(b), 3)), [], "the copy has ended on this core");
    assert_eq!(
        node.receive(scheduler, switch(SliceWork::GoOn(a), 4)),
        [order(Core::Resume { copy: a, left })]
    );
}

/// A node crashes after it was first ordered to run a copy, and loses the copy. It reports this, and the scheduler,
/// which does not know of the crash, orders a new copy.
#[test]
fn a_copy_lost_in_a_crash_is_replaced_by_another() {
    let layout = Layout::new(1, 0, [1]);
    let (me, scheduler, worker) = (layout.node(0), layout.scheduler(0), layout.worker(0, 0));
    let mut node = Gang::default().bench(&layout, me, 1);
    let copy = JobId(0).task(0).copy(0);
    let switch = |work, order| Slice::Switch { core: 0, work, epoch: 0, order, open: JobId(0) };
    node.step(Input::Start { epoch: 1 });
    let lost = Contention::Evicted { copy, age_ms: 0, alone: false };
    assert_eq!(node.receive(scheduler, switch(SliceWork::GoOn(copy), 2)), [(scheduler, lost.into())]);
    assert_eq!(
        node.receive(scheduler, switch(SliceWork::Begin(copy), 3)),
        [(worker, Core::run(copy).into())],
        "the copy is new"
    );

    let mut bench = self::scheduler(1, 1);
    let order = |sent: &[(ActorId, Message)]| match sent {
        [(_, Message::Gang(Slice::Switch { work, .. }))] => *work,
        sent => panic!("{sent:?}"),
    };
    assert_eq!(order(&sends(&bench.submit(0))), SliceWork::Begin(copy));
    assert_eq!(order(&bench.receive(me, lost)), SliceWork::Begin(copy.task.copy(1)));
    assert_eq!(bench.receive(me, lost), [], "a new copy is ordered already");
}

/// No scheduler launches one copy on two cores, but even then a node would keep its cores apart.
#[test]
fn an_end_changes_only_the_core_that_reports_it() {
    let layout = Layout::new(1, 0, [2]);
    let (me, scheduler) = (layout.node(0), layout.scheduler(0));
    let workers = [0, 1].map(|core| layout.worker(0, core));
    let mut node = Gang::default().bench(&layout, me, 2);
    let [a, b] = [0, 1].map(|job| JobId(job).task(0).copy(0));
    for core in [0, 1] {
        node.receive(
            scheduler,
            Slice::Switch { core, work: SliceWork::Begin(a), epoch: 0, order: 1, open: JobId(0) },
        );
    }
    node.receive(workers[1], Core::Ended { copy: a });
    let sent = node.receive(
        scheduler,
        Slice::Switch { core: 1, work: SliceWork::Begin(b), epoch: 0, order: 2, open: JobId(0) },
    );
    assert_eq!(sent, [(workers[1], Core::run(b).into())], "the core is idle");
    let sent = node.receive(
        scheduler,
        Slice::Switch { core: 0, work: SliceWork::Rest, epoch: 0, order: 2, open: JobId(0) },
    );
    assert_eq!(sent, [(workers[0], Core::Suspend { copy: a }.into())], "the copy still runs");
}

/// An order names the first open job. A core forgets the finished copies of earlier jobs, which it would otherwise
/// remember for the whole run. It would even run a forgotten copy again, but no scheduler orders this.
#[test]
fn copies_of_closed_jobs_are_forgotten() {
    let layout = Layout::new(1, 0, [1]);
    let (me, from, worker) = (layout.node(0), layout.scheduler(0), layout.worker(0, 0));
    let mut scheduler = scheduler(1, 1);
    let mut order = |job| match sends(&scheduler.submit(job))[..] {
        [(_, Message::Gang(order))] => {
            scheduler.receive(me, Launch::Completed { copy: JobId(job).task(0).copy(0) });
            order
        }
        ref sent => panic!("{sent:?}"),
    };
    let orders = [0, 1].map(&mut order);
    let [Slice::Switch { open: first, .. }, Slice::Switch { open: second, .. }] = orders;
    assert_eq!([first, second], [JobId(0), JobId(1)]);
    let mut node = Gang::default().bench(&layout, me, 1);
    let copy = JobId(0).task(0).copy(0);
    let switch = |order, open| Slice::Switch { core: 0, work: SliceWork::Begin(copy), epoch: 0, order, open };
    let run = (worker, Message::from(Core::run(copy)));
    assert_eq!(node.receive(from, switch(1, first)), [run]);
    node.ended(copy);
    assert_eq!(node.receive(from, switch(2, first)), [], "the copy has ended on this core");
    assert_eq!(node.receive(from, switch(1, second)), [], "an outdated order is void");
    assert_eq!(node.receive(from, switch(3, first)), [], "an outdated order forgets no copies");
    assert_eq!(node.receive(from, switch(4, second)), [run]);
}

/// A core prefers the orders of a restarted scheduler, regardless of the number of orders in the earlier epoch.
#[test]
fn orders_of_a_restarted_scheduler_replace_earlier_orders() {
    let layout = Layout::new(1, 0, [1]);
    let (me, node) = (layout.scheduler(0), layout.node(0));
    let worker = layout.worker(0, 0);
    let order = |epoch, given| {
        let mut scheduler = GangScheduler::new(Span(1), &layout);
        scheduler.orders[0] = given;
        let mut bench = Harness::new(layout.clone(), me, 1, Box::new(scheduler));
        bench.step(Input::Start { epoch });
        let job = JobId(epoch);
        bench.receive(layout.client(0), Job::Submit { job, round: 0 })[0].1
    };
    let mut bench = Harness::new(layout.clone(), node, 1, Box::new(GangNode::new(1)));
    bench.receive(me, order(0, 1 << 26));
    let sent = sends(&bench.step(Input::Down { actor: me }));
    assert_eq!(sent.len(), 1, "the core forgets the dead scheduler's copies");
    let sent = bench.receive(me, order(1, 0));
    assert_eq!(sent, [(worker, crate::message::Core::run(JobId(1).task(0).copy(0)).into())]);
}
