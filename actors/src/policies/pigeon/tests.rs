//! Tests that step schedulers, masters, standbys and workers.

use super::Pigeon;
use super::config::TaskSplit;
use super::ticks::Tick;
use crate::base::{ATTEMPTS_PER_ROUND, ActorId, CopyId, JobId, Span, Time};
use crate::harness::{Harness, sends};
use crate::layout::Layout;
use crate::machine::{Effect, Input, Timer};
use crate::message::{Assignment, Batch, Core, Group, Job, Launch, Message, Stamp, Waiting};
use crate::policies::policy::{Auxiliaries as _, Policy as _};

const LONG: JobId = JobId(1);

/// One scheduler, and groups of four single-core workers, the last of them reserved, with masters and standbys.
fn config() -> Pigeon {
    Pigeon { group: 4, reserved: 0.25, split: TaskSplit::InOrder, standby: true, ..Pigeon::default() }
}

fn bench(me: impl Fn(&Layout) -> ActorId, nodes: usize) -> Harness {
    let layout = config().layout(Layout::new(1, 0, vec![1; nodes]));
    let mut bench = config().bench(&layout, me(&layout), 6).with_long(&[LONG]);
    bench.step(Input::Start { epoch: 0 });
    bench
}

fn batch(job: u32, base: u32, len: u32, attempt: u32) -> Batch {
    Batch { job: JobId(job), base, len, step: 1, attempt }
}

fn tasks(job: u32, base: u32, len: u32) -> Group {
    Group::Tasks(Waiting { scheduler: 0, batch: batch(job, base, len, 0) })
}

fn open(job: u32, base: u32, len: u32) -> Group {
    Group::Open(Waiting { scheduler: 0, batch: batch(job, base, len, 1) })
}

fn copy(job: u32, task: u32, attempt: u32) -> CopyId {
    JobId(job).task(task).copy(attempt)
}

const fn idle(core: u32, count: u32) -> Group {
    Group::Idle { life: 0, count, core }
}

/// The copies that are sent to cores.
fn runs(sent: &[(ActorId, Message)]) -> Vec<(u32, CopyId)> {
    let run = |&(_, msg): &(ActorId, Message)| match msg {
        Message::Group(Group::Run { core, next }) => Some((core, next.copy)),
        _ => None,
    };
    sent.iter().filter_map(run).collect()
}

/// The receivers of messages, with the kinds of messages.
fn kinds(sent: &[(ActorId, Message)]) -> Vec<(ActorId, &'static str)> {
    sent.iter().map(|(to, msg)| (*to, msg.name())).collect()
}

/// The message to a standby that tasks of a job wait.
const fn queued(job: u32, head: u32) -> Group {
    Group::Mirror { job: JobId(job), head: JobId(head) }
}

/// The answers of workers that are asked for their state: they are idle.
fn answers(master: &mut Harness, cores: impl IntoIterator<Item = u32>) -> Vec<(u32, CopyId)> {
    let answer = |core| runs(&master.receive(master.layout.node(core), idle(core, 2)));
    cores.into_iter().flat_map(answer).collect()
}

/// Long tasks run on unreserved workers only. Short tasks go first to these, then to the reserved worker, and then
/// wait.
#[test]
fn a_master_gives_tasks_to_idle_workers_and_queues_the_rest() {
    let mut master = bench(|layout| layout.auxiliary(0), 4);
    let scheduler = master.layout.scheduler(0);
    let node = |core: u32| master.layout.node(core);
    let [n0, n1, n3] = [node(0), node(1), node(3)];
    let at_long = |task| copy(1, task, 0);
    let sent = master.receive(scheduler, tasks(1, 0, 5));
    assert_eq!(
        runs(&sent),
        [(0, at_long(0)), (1, at_long(1)), (2, at_long(2))],
        "the reserved worker gets no long task"
    );
    let sent = master.receive(scheduler, tasks(0, 0, 3));
    assert_eq!(runs(&sent), [(3, copy(0, 0, 0))]);
    assert_eq!(runs(&master.receive(n3, idle(3, 2))), [(3, copy(0, 1, 0))]);
    assert_eq!(runs(&master.receive(n1, idle(1, 2))), [(1, copy(0, 2, 0))], "the short task comes first");
    assert_eq!(runs(&master.receive(n1, idle(1, 2))), [], "a repeated message changes nothing");
    assert_eq!(runs(&master.receive(n3, idle(3, 4))), [], "the reserved worker gets no long task");
    assert_eq!(runs(&master.receive(n0, idle(0, 2))), [(0, at_long(3))]);
    assert_eq!(runs(&master.receive(scheduler, tasks(2, 0, 1))), [(3, copy(2, 0, 0))]);
    assert_eq!(runs(&master.receive(n1, idle(1, 4))), [(1, at_long(4))]);
}

#[test]
fn the_longest_idle_worker_gets_the_next_task() {
    let mut master = bench(|layout| layout.auxiliary(0), 4);
    let scheduler = master.layout.scheduler(0);
    master.receive(scheduler, tasks(0, 0, 3));
    for core in [2, 0, 1] {
        master.receive(master.layout.node(core), idle(core, 2));
    }
    let cores: Vec<_> = runs(&master.receive(scheduler, tasks(2, 0, 4))).iter().map(|run| run.0).collect();
    assert_eq!(cores, [2, 0, 1, 3]);
}

/// Each of two groups has two workers, one of them reserved. The second master also lists the reserved worker of the
/// first group. After a task the core that it used there returns to the first master, which then has both cores.
#[test]
fn phantom_workers_return_to_the_master_of_their_group() {
    let config = Pigeon { group: 2, reserved: 0.5, phantom_reserved: true, ..Pigeon::default() };
    let layout = Layout::new(1, 2, [1, 2, 1, 1]);
    let start = |number| {
        let mut master = config.bench(&layout, layout.auxiliary(number), 6);
        master.step(Input::Start { epoch: 0 });
        master
    };
    let (mut first, mut second) = (start(0), start(1));
    let scheduler = layout.scheduler(0);
    let cores = |sent: &[(ActorId, Message)]| runs(sent).iter().map(|run| run.0).collect::<Vec<_>>();
    assert_eq!(cores(&second.receive(scheduler, tasks(0, 0, 4))), [3, 2, 4]);
    assert_eq!(cores(&first.receive(scheduler, tasks(0, 0, 1))), [0]);
    assert_eq!(first.receive(layout.node(1), idle(2, 2)), []);
    assert_eq!(second.receive(layout.node(1), idle(2, 2)), [], "the second master no longer lists the core");
    assert_eq!(cores(&first.receive(scheduler, tasks(2, 0, 3))), [1, 2]);
}

/// When a copy cannot be delivered, the master asks all workers for their states and schedulers for open tasks. It
/// asks the unreachable worker again until it answers. Copies that return later are among the open tasks.
#[test]
fn a_master_asks_all_again_when_a_copy_is_undeliverable() {
    let mut master = bench(|layout| layout.auxiliary(0), 4);
    let (scheduler, node) = (master.layout.scheduler(0), master.layout.node(0));
    let run = master.receive(scheduler, tasks(0, 0, 1))[0].1;
    let nodes = (0..4).map(|i| (master.layout.node(i), "group.takes"));
    let asked: Vec<_> = nodes.chain([(scheduler, "group.ask")]).collect();
    let back = sends(&master.step(Input::Undelivered { to: node, msg: run }));
    assert_eq!(kinds(&back), asked);
    let again = sends(&master.step(Input::Undelivered { to: node, msg: back[0].1 }));
    assert_eq!(kinds(&again), [(node, "group.takes")]);
    assert_eq!(sends(&master.step(Input::Undelivered { to: node, msg: run })), [], "all have been asked");
    assert_eq!(master.receive(scheduler, open(0, 0, 1)), []);
    assert_eq!(answers(&mut master, [1, 2, 3, 0]), [(1, copy(0, 0, 1))]);
    let cores: Vec<_> = runs(&master.receive(scheduler, tasks(2, 0, 3))).iter().map(|run| run.0).collect();
    assert_eq!(cores, [2, 0, 3], "worker 0 is idle again");
}

/// Reports from before a node's crash are no longer true of its cores after its return.
#[test]
fn messages_from_before_a_crash_are_ignored() {
    let mut master = bench(|layout| layout.auxiliary(0), 4);
    let (scheduler, node) = (master.layout.scheduler(0), master.layout.node(0));
    master.receive(scheduler, tasks(0, 0, 5));
    master.step(Input::Down { actor: node });
    assert_eq!(master.receive(node, idle(0, 2)), []);
    assert_eq!(kinds(&sends(&master.step(Input::Up { actor: node }))), [(node, "group.takes")]);
}

/// After the crash of a worker the master asks workers and schedulers. Waiting tasks keep their places. Tasks that no
/// worker has run after them, with a fresh attempt.
#[test]
fn tasks_of_a_dead_worker_are_run_again() {
    let mut master = bench(|layout| layout.auxiliary(0), 4);
    let (scheduler, node) = (master.layout.scheduler(0), master.layout.node(1));
    master.receive(scheduler, tasks(0, 0, 4));
    master.receive(scheduler, tasks(3, 0, 1));
    master.receive(scheduler, tasks(2, 0, 1));
    let sent = sends(&master.step(Input::Down { actor: node }));
    let asked = [0, 2, 3].map(|i| (master.layout.node(i), "group.takes"));
    assert_eq!(kinds(&sent), [&asked[..], &[(scheduler, "group.ask")]].concat());
    for waiting in [open(0, 0, 4), open(2, 0, 1), open(3, 0, 1)] {
        assert_eq!(master.receive(scheduler, waiting), []);
    }
    for core in [0, 2, 3] {
        let running = Assignment { copy: copy(0, core, 0), scheduler: 0 };
        let status = Group::Status { life: 0, count: 1, core, running };
        assert_eq!(master.receive(master.layout.node(core), status), []);
    }
    let next = answers(&mut master, [0, 2, 3]);
    assert_eq!(next, [(0, copy(3, 0, 0)), (2, copy(2, 0, 0)), (3, copy(0, 1, 1))]);
    assert_eq!(runs(&sends(&master.step(Input::Up { actor: node }))), [], "nothing waits");
}

/// A copy for a crashed scheduler, or of an earlier submission, is not mistaken for the task of a later submission.
#[test]
fn each_submission_of_a_job_is_run() {
    let layout = config().layout(Layout::new(2, 0, [1; 4]));
    let mut master = config().bench(&layout, layout.auxiliary(0), 1);
    master.step(Input::Start { epoch: 0 });
    let [first, other] = [layout.scheduler(0), layout.scheduler(1)];
    let submitted = |scheduler, attempt| Group::Tasks(Waiting { scheduler, batch: batch(0, 0, 1, attempt) });
    let round = ATTEMPTS_PER_ROUND;
    assert_eq!(runs(&master.receive(first, submitted(0, 0))), [(0, copy(0, 0, 0))]);
    assert_eq!(
        runs(&master.receive(other, submitted(1, 1))),
        [(1, copy(0, 0, 1))],
        "another scheduler's copy"
    );
    assert_eq!(
        runs(&master.receive(first, submitted(0, round))),
        [(2, copy(0, 0, round))],
        "a new submission"
    );
    assert_eq!(runs(&master.receive(first, submitted(0, round + 1))), [], "the task runs already");
}

/// A reserved worker also runs long tasks when all unreserved workers of the group are down.
#[test]
fn reserved_workers_run_long_tasks_if_no_others_are_up() {
    let mut master = bench(|layout| layout.auxiliary(0), 4);
    let scheduler = master.layout.scheduler(0);
    for node in 0..3 {
        master.step(Input::Down { actor: master.layout.node(node) });
    }
    assert_eq!(answers(&mut master, [3]), []);
    assert_eq!(runs(&master.receive(scheduler, tasks(1, 0, 2))), [(3, copy(1, 0, 0))]);
    assert_eq!(runs(&master.receive(master.layout.node(3), idle(3, 4))), [(3, copy(1, 1, 0))]);
    master.receive(master.layout.node(3), idle(3, 6));
    let back = Input::Up { actor: master.layout.node(0) };
    assert_eq!(kinds(&sends(&master.step(back))), [(master.layout.node(0), "group.takes")]);
    assert_eq!(answers(&mut master, [0]), []);
    assert_eq!(
        runs(&master.receive(scheduler, tasks(1, 2, 2))),
        [(0, copy(1, 2, 0))],
        "the worker is reserved again"
    );
}

#[test]
fn the_queues_are_mirrored_periodically() {
    let mut master = bench(|layout| layout.auxiliary(0), 4);
    let (scheduler, standby) = (master.layout.scheduler(0), master.layout.auxiliary(1));
    let push = Effect::Arm { timer: Timer::Tick(0), after: Span::from_millis(100) };
    let deliver = |msg: Group| Input::Deliver { from: scheduler, msg: msg.into() };
    assert!(!master.step(deliver(tasks(0, 0, 4))).contains(&push), "nothing waits");
    assert!(master.step(deliver(tasks(1, 0, 3))).contains(&push));
    assert!(!master.step(deliver(tasks(2, 0, 2))).contains(&push), "the timer is armed already");
    assert_eq!(runs(&master.receive(master.layout.node(0), idle(0, 2))), [(0, copy(2, 0, 0))]);
    let told = sends(&master.step(Input::Fire(Timer::Tick(0))));
    let mirror = |msg: Group| (standby, Message::from(msg));
    assert_eq!(told, [queued(1, 1), queued(2, 2)].map(mirror));
    master.step(Input::Down { actor: standby });
    master.receive(scheduler, tasks(3, 0, 1));
    assert_eq!(sends(&master.step(Input::Up { actor: standby })), []);
    let told = sends(&master.step(Input::Fire(Timer::Tick(0))));
    assert_eq!(told, [queued(2, 2), queued(3, 2), queued(1, 1)].map(mirror), "it gets the whole queue");
}

/// A master with work reports its waiting tasks and busy workers at each period, and stops when it has nothing to
/// report.
#[test]
fn a_master_reports_its_lengths_while_it_has_work() {
    let (every, layout) = (Span::from_millis(500), Layout::new(1, 2, [1; 8]));
    let config = Pigeon { group: 4, lengths: every, ..config() };
    let mut master = Pigeon { standby: false, ..config }.bench(&layout, layout.auxiliary(0), 6);
    let (scheduler, timer) = (layout.scheduler(0), Tick::Report.timer(0));
    let armed = |effects: &[Effect]| effects.contains(&Effect::Arm { timer, after: every });
    assert!(!armed(&master.step(Input::Start { epoch: 0 })), "the master has no work");
    assert!(armed(&master.deliver(scheduler, tasks(0, 0, 6))));
    master.now = Time::ZERO + every;
    let fired = master.step(Input::Fire(timer));
    let lengths = Group::Lengths { waiting: 2, busy: 4, at: Stamp::from(master.now) };
    assert_eq!(sends(&fired), [(scheduler, lengths.into())]);
    assert!(armed(&fired));
    for (core, count) in [(0, 2), (1, 2), (2, 2), (3, 2), (0, 4), (1, 4)] {
        master.receive(layout.node(core), idle(core, count));
    }
    let fired = master.step(Input::Fire(timer));
    assert_eq!(kinds(&sends(&fired)), [(scheduler, "group.lengths")], "the group is idle now");
    assert!(!armed(&fired));
}

/// The scheduler fills the group that has room, by the newest report and the tasks sent since. Both groups have four
/// workers.
#[test]
fn tasks_go_to_the_group_that_has_room_by_its_report() {
    let layout = Layout::new(1, 2, [1; 8]);
    let config = Pigeon { standby: false, lengths: Span::from_millis(500), ..config() };
    let mut scheduler = config.bench(&layout, layout.scheduler(0), 6);
    let report = |waiting, at| Group::Lengths { waiting, busy: 4, at: Stamp::from(Time(at)) };
    let sent = |effects: &[Effect]| {
        let mut of = [0, 0];
        for (to, msg) in sends(effects) {
            if let Message::Group(Group::Tasks(Waiting { batch, .. })) = msg {
                of[usize::from(to == layout.auxiliary(1))] += batch.len;
            }
        }
        of
    };
    scheduler.receive(layout.auxiliary(0), report(6, 2_000));
    assert_eq!(sent(&scheduler.submit(0)), [0, 6], "ten tasks are in the first group");
    scheduler.receive(layout.auxiliary(0), report(0, 1_000));
    assert_eq!(sent(&scheduler.submit(2)), [1, 5], "an older report changes nothing");
    scheduler.receive(layout.auxiliary(1), report(20, 3_000));
    assert_eq!(sent(&scheduler.submit(3)), [6, 0]);
}

/// A standby asks workers and schedulers. It queues the tasks that no worker has in the order of its copy of the queue.
#[test]
fn a_standby_takes_over_the_queue_of_a_crashed_master() {
    let mut standby = bench(|layout| layout.auxiliary(1), 4);
    let (scheduler, master) = (standby.layout.scheduler(0), standby.layout.auxiliary(0));
    // Job 6 has been served, and job 4 as well when it waits a second time.
    for change in [queued(6, 6), queued(4, 6), queued(3, 4), queued(2, 3), queued(4, 3)] {
        standby.receive(master, change);
    }
    let passed = standby.receive(scheduler, tasks(0, 0, 1));
    assert_eq!(kinds(&passed), [(master, "group.tasks")], "the master is up");
    standby.now = Time::ZERO + Span::from_secs(9);
    let sent = sends(&standby.step(Input::Down { actor: master }));
    let takes = Message::from(Group::Takes { term: 0, at: Stamp::from(standby.now) });
    let told: Vec<_> =
        (0..4).map(|i| standby.layout.node(i)).chain([scheduler]).map(|to| (to, takes)).collect();
    assert_eq!(sent, told);
    assert_eq!(runs(&standby.receive(standby.layout.node(2), idle(2, 6))), []);
    assert_eq!(
        runs(&standby.receive(scheduler, tasks(5, 0, 1))),
        [(2, copy(5, 0, 0))],
        "new tasks need not wait"
    );
    for msg in [open(2, 0, 2), open(3, 0, 1), open(5, 0, 1), open(4, 0, 1)] {
        assert_eq!(standby.receive(scheduler, msg), []);
    }
    for (core, running) in [(0, copy(4, 0, 0)), (1, copy(2, 0, 0))] {
        let running = Assignment { copy: running, scheduler: 0 };
        let status = Group::Status { life: 0, count: 3, core, running };
        assert_eq!(standby.receive(standby.layout.node(core), status), []);
    }
    // In the last answer job 3 was queued first, job 2 has one task left, and jobs 4 and 5 run.
    assert_eq!(runs(&standby.receive(standby.layout.node(3), idle(3, 8))), [(3, copy(3, 0, 1))]);
    assert_eq!(runs(&standby.receive(standby.layout.node(0), idle(0, 4))), [(0, copy(2, 1, 1))]);
    assert_eq!(runs(&standby.receive(standby.layout.node(1), idle(1, 4))), []);
    standby.step(Input::Up { actor: master });
    let passed = standby.receive(standby.layout.node(2), idle(2, 8));
    assert_eq!(kinds(&passed), [(master, "group.idle")], "the standby has handed over");
}

/// The wait for a worker that never answers is bounded.
#[test]
fn a_returning_master_does_not_wait_for_ever_for_silent_workers() {
    let layout = Layout::new(1, 2, [1; 4]);
    let mut master = config().bench(&layout, layout.auxiliary(0), 6);
    let start = master.step(Input::Start { epoch: 1 });
    assert_eq!(sends(&start).len(), 5);
    let (settle, after) = (Tick::Settle.timer(1), Span::from_secs(5));
    assert!(start.contains(&Effect::Arm { timer: settle, after }));
    for core in 0..3 {
        master.receive(layout.node(core), idle(core, 2));
    }
    assert_eq!(master.receive(layout.scheduler(0), open(0, 2, 2)), []);
    assert_eq!(sends(&master.step(Input::Fire(settle))), [], "this timer is from before");
    master.now = Time::ZERO + after;
    assert_eq!(runs(&sends(&master.step(Input::Fire(settle)))), [(0, copy(0, 2, 1)), (1, copy(0, 3, 1))]);
}

/// A node that crashes while answers are missing may have been given tasks that are not in the answers.
#[test]
fn a_crash_during_a_recovery_makes_the_master_ask_again() {
    let layout = Layout::new(1, 2, [1; 4]);
    let scheduler = layout.scheduler(0);
    let mut master = config().bench(&layout, layout.auxiliary(0), 6);
    master.step(Input::Start { epoch: 1 });
    master.receive(layout.node(1), idle(1, 2));
    assert_eq!(runs(&master.receive(scheduler, tasks(0, 0, 1))), [(1, copy(0, 0, 0))]);
    let sent = sends(&master.step(Input::Down { actor: layout.node(1) }));
    assert_eq!(kinds(&sent).last(), Some(&(scheduler, "group.ask")));
    assert_eq!(master.receive(scheduler, open(0, 0, 1)), [], "the other workers have not answered");
    assert_eq!(sends(&master.step(Input::Down { actor: layout.node(0) })), [], "its state is unknown");
    assert_eq!(answers(&mut master, [2, 3]), [(2, copy(0, 0, 1))]);
}

#[test]
fn a_worker_reports_to_scheduler_and_master() {
    let mut node = bench(|layout| layout.node(0), 4);
    let (scheduler, master, worker) =
        (node.layout.scheduler(0), node.layout.auxiliary(0), node.layout.worker(0, 0));
    let assigned = |job| Assignment { copy: copy(job, 0, 0), scheduler: 0 };
    let run = |job| Group::Run { core: 0, next: assigned(job) };
    let begins = |job| (worker, Message::from(Core::run(copy(job, 0, 0))));
    let done = |job| (scheduler, Message::from(Launch::Completed { copy: copy(job, 0, 0) }));
    assert_eq!(node.receive(master, run(0)), [begins(0)]);
    assert_eq!(node.ended(copy(0, 0, 0)), [done(0), (master, idle(0, 2).into())]);
    assert_eq!(node.receive(master, run(2)), [begins(2)]);
    assert_eq!(node.receive(master, run(3)), [], "the copy is kept until the first has ended");
    assert_eq!(node.ended(copy(2, 0, 0)), [done(2), begins(3)]);
    let status = Group::Status { life: 0, count: 5, core: 0, running: assigned(3) };
    let takes = Group::Takes { term: 0, at: Stamp::from(Time(1)) };
    assert_eq!(node.receive(master, takes), [(master, status.into())]);
    let stop = (worker, Message::from(Core::Stop { copy: copy(3, 0, 0) }));
    assert_eq!(sends(&node.step(Input::Down { actor: scheduler })), [stop, (master, idle(0, 6).into())]);
    assert_eq!(node.receive(master, run(4)), [(master, idle(0, 8).into())], "the copy's scheduler is dead");
    let lost = |count| Input::Undelivered { to: master, msg: idle(0, count).into() };
    assert_eq!(sends(&node.step(lost(8))), [(master, idle(0, 8).into())]);
    assert_eq!(sends(&node.step(lost(6))), [], "the core has reported a newer state since");
}

/// The timers that were armed.
fn armed(effects: &[Effect]) -> Vec<(Timer, Span)> {
    let arm = |effect: &Effect| {
        if let Effect::Arm { timer, after } = *effect { Some((timer, after)) } else { None }
    };
    effects.iter().filter_map(arm).collect()
}

/// With both masters down a worker becomes master, until one of them is back or another worker has claimed earlier.
#[test]
fn a_worker_declares_itself_master() {
    let mut node = bench(|layout| layout.node(2), 4);
    let layout = node.layout.clone();
    let (scheduler, first, standby) = (layout.scheduler(0), layout.auxiliary(0), layout.auxiliary(1));
    assert_eq!(armed(&node.step(Input::Down { actor: first })), [], "the standby is up");
    let [(claim, after)] = armed(&node.step(Input::Down { actor: standby }))[..] else {
        panic!("no claim is armed")
    };
    let least = Span::from_secs(5);
    assert!(after >= least && after <= least + Span::from_millis(1250));
    node.now = Time::ZERO + after;
    let sent = sends(&node.step(Input::Fire(claim)));
    let takes = |at: Time| Message::from(Group::Takes { term: 1, at: at.into() });
    let others: Vec<_> = (0..4).map(|i| layout.node(i)).chain([scheduler]).collect();
    assert_eq!(sent, others.iter().map(|&to| (to, takes(node.now))).collect::<Vec<_>>());
    // The worker that is the master answers itself like the other workers.
    assert_eq!(node.receive(layout.node(2), Group::Takes { term: 1, at: node.now.into() }).len(), 1);
    assert_eq!(node.receive(layout.node(2), idle(2, 0)), []);
    assert_eq!(runs(&node.receive(scheduler, tasks(0, 0, 1))), [(2, copy(0, 0, 0))]);
    // Another node comes back without the copies that it was given.
    node.receive(layout.node(0), idle(0, 4));
    assert_eq!(runs(&node.receive(scheduler, tasks(3, 0, 1))), [(0, copy(3, 0, 0))]);
    let reborn = Group::Idle { life: 1, count: 0, core: 0 };
    let asked = kinds(&node.receive(layout.node(0), reborn));
    assert_eq!(
        asked,
        others
            .iter()
            .zip(["group.takes"; 4].into_iter().chain(["group.ask"]))
            .map(|(&to, kind)| (to, kind))
            .collect::<Vec<_>>()
    );
    let later = Group::Takes { term: 1, at: Time(node.now.0 + 1).into() };
    assert_eq!(
        node.receive(layout.node(0), later),
        [(layout.node(0), takes(node.now))],
        "a later claim is void"
    );
    let earlier = Group::Takes { term: 1, at: Time(node.now.0 - 1).into() };
    assert_eq!(kinds(&node.receive(layout.node(3), earlier)), [(layout.node(3), "group.idle")]);
    let passed = node.receive(scheduler, tasks(2, 0, 1));
    assert_eq!(kinds(&passed), [(layout.node(3), "group.tasks")]);
    let back = node.step(Input::Up { actor: first });
    assert_eq!(sends(&back), [], "the returned master is asked");
    assert_eq!(kinds(&node.receive(scheduler, tasks(2, 1, 1))), [(first, "group.tasks")]);
}

/// A worker that became master can crash as well, so the other workers watch it.
#[test]
fn workers_watch_a_master_that_declared_itself() {
    let mut node = bench(|layout| layout.node(2), 4);
    let layout = node.layout.clone();
    node.step(Input::Down { actor: layout.auxiliary(0) });
    node.step(Input::Down { actor: layout.auxiliary(1) });
    let claim = Group::Takes { term: 1, at: Stamp::from(Time(7)) };
    let accepted = node.step(Input::Deliver { from: layout.node(0), msg: claim.into() });
    assert_eq!(kinds(&sends(&accepted)), [(layout.node(0), "group.idle")]);
    let [(watch, _)] = armed(&accepted)[..] else { panic!("no watch is armed") };
    let asked = node.step(Input::Fire(watch));
    assert_eq!((kinds(&sends(&asked)), armed(&asked).len()), (vec![(layout.node(0), "group.watch")], 1));
    let lost = node.step(Input::Undelivered { to: layout.node(0), msg: Group::Watch.into() });
    let [(claim, _)] = armed(&lost)[..] else { panic!("no claim is armed") };
    let sent = sends(&node.step(Input::Fire(claim)));
    assert!(
        sent.iter().all(|(_, msg)| matches!(msg, Message::Group(Group::Takes { term: 2, .. }))),
        "{sent:?}"
    );
    assert_eq!(sent.len(), 5);
}

/// The batches that are sent, each with its attempt.
fn dealt(sent: &[(ActorId, Message)]) -> Vec<(ActorId, u32, u32, u32)> {
    let of = |&(to, msg): &(ActorId, Message)| match msg {
        Message::Group(Group::Tasks(Waiting { batch, .. }) | Group::Open(Waiting { batch, .. })) => {
            Some((to, batch.base, batch.len, batch.attempt))
        }
        _ => None,
    };
    sent.iter().filter_map(of).collect()
}

#[test]
fn a_scheduler_deals_tasks_out_and_counts_results() {
    let mut scheduler = bench(|layout| layout.scheduler(0), 8);
    let layout = scheduler.layout.clone();
    let [first, second] = [layout.auxiliary(0), layout.auxiliary(1)];
    let sent = sends(&scheduler.submit(0));
    assert_eq!(dealt(&sent), [(first, 0, 3, 0), (second, 3, 3, 0)]);
    for task in 0..6 {
        let sent = scheduler.receive(layout.node(task), Launch::Completed { copy: copy(0, task, 0) });
        let end = (layout.client(0), Message::from(Job::Finished { job: JobId(0), killed: false }));
        assert_eq!(sent, if task == 5 { vec![end] } else { vec![] });
    }
}

/// Tasks that a master did not get go to another master. A new master's request is answered once, with fresh attempts.
#[test]
fn a_scheduler_sends_tasks_again_that_masters_lost() {
    let mut scheduler = bench(|layout| layout.scheduler(0), 8);
    let layout = scheduler.layout.clone();
    let [first, second] = [layout.auxiliary(0), layout.auxiliary(1)];
    let lost = sends(&scheduler.submit(0))[0];
    scheduler.receive(layout.node(0), Launch::Completed { copy: copy(0, 4, 0) });
    let again = sends(&scheduler.step(Input::Undelivered { to: first, msg: lost.1 }));
    assert_eq!(dealt(&again), [(second, 0, 3, 1)]);
    assert_eq!(
        dealt(&sends(&scheduler.submit(2))),
        [(second, 0, 6, 0)],
        "the first master is avoided for a while"
    );
    scheduler.step(Input::Fire(Timer::Tick(0)));
    let standby = layout.auxiliary(3);
    scheduler.step(Input::Down { actor: second });
    let takes = Group::Takes { term: 0, at: Stamp::from(Time(1)) };
    let told = scheduler.receive(standby, takes);
    assert_eq!(dealt(&told), [(standby, 0, 4, 2), (standby, 5, 1, 2), (standby, 0, 6, 1)]);
    let late = sends(&scheduler.step(Input::Undelivered { to: second, msg: again[0].1 }));
    assert_eq!(late, [], "the standby has the tasks");
}
