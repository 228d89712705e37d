//! Steps of the scheduler, the choice of nodes, and the queue of pods.

use super::{Kubernetes, Retry, *};
use crate::base::{JobId, Rng};
use crate::harness::{Harness, sends};
use crate::machine::{Effect, Input};
use crate::message::{Launch, Message, Row};

fn bench(config: &Kubernetes, cores: &[u32], tasks: u32) -> Harness {
    let layout = Layout::new(1, 0, cores.iter().copied());
    config.bench(&layout, layout.scheduler(0), tasks)
}

fn instant(retry: Retry) -> Kubernetes {
    Kubernetes { retry, attempt: Span::ZERO, ..Kubernetes::default() }
}

fn fired(timer: Timer) -> Input {
    Input::Fire(timer)
}

fn done(bench: &mut Harness, node: u32, job: u32, task: u32) -> Vec<(ActorId, Message)> {
    let node = bench.layout.node(node);
    bench.receive(node, Launch::Completed { copy: JobId(job).task(task).copy(0) })
}

fn row(job: u32, task: u32) -> Message {
    Launch::Row(Row::single(JobId(job).task(task).copy(0))).into()
}

/// The cause of the long tail: capacity that is freed while an earlier task waits goes to a later one.
#[test]
fn room_freed_while_a_task_waits_goes_to_a_later_one() {
    let mut bench = bench(&instant(Retry::Timer), &[1], 1);
    assert_eq!(sends(&bench.submit(0)), [(bench.layout.node(0), row(0, 0))]);
    let waits = bench.submit(1);
    assert_eq!(waits, [Effect::Arm { timer: WAKE, after: Span::from_secs(30) }]);
    bench.now += Span::from_secs(10);
    assert_eq!(done(&mut bench, 0, 0, 0).len(), 1, "only the end of the job is reported");
    assert_eq!(sends(&bench.submit(2)), [(bench.layout.node(0), row(2, 0))]);
    bench.now += Span::from_secs(20);
    assert_eq!(sends(&bench.step(fired(WAKE))), [], "no room again");
    bench.now += Span::from_secs(30);
    done(&mut bench, 0, 2, 0);
    assert_eq!(sends(&bench.step(fired(WAKE))), [(bench.layout.node(0), row(1, 0))]);
}

#[test]
fn with_events_freed_room_goes_to_the_earlier_task() {
    let mut bench = bench(&instant(Retry::Events), &[1], 1);
    bench.submit(0);
    assert_eq!(sends(&bench.submit(1)), []);
    bench.now += Span::from_secs(10);
    assert_eq!(done(&mut bench, 0, 0, 0)[1], (bench.layout.node(0), row(1, 0)));
}

/// Attempts follow one another and take 5 ms each.
#[test]
fn attempts_take_time_one_after_the_other() {
    let config = Kubernetes { retry: Retry::Tail, ..Kubernetes::default() };
    let mut bench = bench(&config, &[2], 3);
    let attempt = Effect::Arm { timer: DECIDE, after: Span::from_millis(5) };
    assert_eq!(bench.submit(0), [attempt]);
    for task in [0, 1] {
        let effects = bench.step(fired(DECIDE));
        assert_eq!(sends(&effects), [(bench.layout.node(0), row(0, task))]);
        assert_eq!(effects.last(), Some(&attempt));
    }
    assert_eq!(bench.step(fired(DECIDE)), [attempt], "no room: it is tried again and again");
    assert_eq!(done(&mut bench, 0, 0, 1), []);
    assert_eq!(sends(&bench.step(fired(DECIDE))), [(bench.layout.node(0), row(0, 2))]);
}

#[test]
fn tasks_of_a_dead_node_are_bound_again_elsewhere() {
    let mut bench = bench(&instant(Retry::Timer), &[4, 4], 2);
    let sent = sends(&bench.submit(0));
    assert_ne!(sent[0].0, sent[1].0, "the tasks go to different nodes");
    let again = bench.step(Input::Down { actor: sent[0].0 });
    let copy = JobId(0).task(0).copy(1);
    let expected = Effect::Send { to: sent[1].0, msg: Launch::Row(Row::single(copy)).into(), recovery: true };
    assert_eq!(again, [Effect::Note(Note::Bound { copy }), expected]);
    // This node is unreachable and the other one dead, so the task waits until this node may be tried again.
    let back = Input::Undelivered { to: sent[1].0, msg: Launch::Row(Row::single(copy)).into() };
    assert_eq!(sends(&bench.step(back)), []);
    bench.now += Span::from_secs(30);
    let node = bench.layout.node_number(sent[1].0);
    bench.step(fired(Timer::Node(node)));
    assert_eq!(sends(&bench.step(fired(WAKE))).len(), 1);
}

/// The failure of a node is reported before its undelivered rows are returned. By then the scheduler has bound
/// their tasks again, possibly to the same node, and must not bind them a third time.
#[test]
fn a_task_lost_and_then_refused_is_bound_again_once() {
    let mut bench = bench(&instant(Retry::Timer), &[1], 1);
    let node = bench.layout.node(0);
    bench.submit(0);
    assert_eq!(sends(&bench.step(Input::Down { actor: node })), []);
    let back = bench.step(Input::Up { actor: node });
    assert_eq!(sends(&back), [], "a task that found no room waits for its time");
    bench.now += Span::from_secs(30);
    let again = Launch::Row(Row::single(JobId(0).task(0).copy(1))).into();
    assert_eq!(sends(&bench.step(fired(WAKE))), [(node, again)]);
    assert_eq!(bench.step(Input::Undelivered { to: node, msg: row(0, 0) }), []);
    bench.now += Span::from_secs(30);
    assert_eq!(sends(&bench.step(fired(WAKE))), [], "it is bound");
    assert_eq!(sends(&bench.submit(1)), [], "there is no room for another");
}

/// The second of two timers that wake at the same time does nothing.
#[test]
fn a_wake_that_is_not_due_is_ignored() {
    let mut bench = bench(&instant(Retry::Events), &[1], 1);
    bench.submit(0);
    let armed = |effects: &[Effect]| {
        effects.iter().filter(|effect| matches!(effect, Effect::Arm { timer: WAKE, .. })).count()
    };
    bench.now += Span::from_secs(29);
    assert_eq!(armed(&bench.submit(1)), 1, "looked at after half a minute");
    bench.now += Span::from_secs(1);
    assert_eq!(armed(&bench.step(fired(WAKE))), 1, "and again after another");
    assert_eq!(bench.step(fired(WAKE)), []);
}

/// Nodes have room for one, two and four tasks. The node with the largest free share is chosen, at random among equals.
#[test]
fn the_least_allocated_node_comes_first() {
    let layout = Layout::new(1, 0, [1, 2, 4]);
    let mut nodes = KubernetesRule::new(&Kubernetes::default(), &layout).nodes;
    let mut rng = Rng::new(1, 1, 1);
    let copy = |task| JobId(0).task(task).copy(0);
    let mut order = Vec::new();
    for i in 0..7 {
        let node = nodes.pick(&mut rng).unwrap();
        nodes.give(node, copy(i), Time::ZERO);
        order.push(node);
    }
    assert_eq!(order[0], 2, "three quarters stay free");
    order[1..3].sort_unstable();
    assert_eq!(order[1..3], [1, 2], "half stays free");
    assert_eq!(order[3], 2, "a quarter stays free");
    assert_eq!(nodes.pick(&mut rng), None, "all nodes are full");
    let one = order.iter().position(|&node| node == 1).unwrap() as u32;
    assert!(!nodes.release(0, copy(one)), "the copy is not on the node");
    assert!(nodes.release(1, copy(one)));
    nodes.avoid(1, true);
    assert_eq!(nodes.pick(&mut rng), None);
    nodes.avoid(1, false);
    assert_eq!(nodes.pick(&mut rng), Some(1));
    nodes.set_up(1, false);
    assert_eq!(nodes.pick(&mut rng), None);
}

fn at(s: u64) -> Time {
    Time::ZERO + Span::from_secs(s)
}

fn pod(job: u32) -> Pod {
    Pod::new(JobId(job).task(0).copy(0), at(u64::from(job)))
}

fn jobs(pending: &mut Pending) -> Vec<u32> {
    std::iter::from_fn(|| pending.pop()).map(|pod| pod.copy.task.job.0).collect()
}

#[test]
fn with_a_timer_a_failed_task_waits_and_keeps_its_place() {
    let mut pending = Pending::new(&Kubernetes::default());
    pending.failed(pod(1), true, at(10));
    pending.failed(pod(2), true, at(12));
    pending.add(pod(3), at(13));
    assert_eq!(pending.wakes(at(13)), Some(at(40)));
    pending.freed(at(20));
    pending.wake(at(40));
    assert_eq!(
        jobs(&mut pending),
        [1, 3],
        "tasks are in order of arrival; the second waits two more seconds"
    );
    pending.wake(at(42));
    assert_eq!((jobs(&mut pending), pending.wakes(at(42))), (vec![2], None));
    let mut pending = Pending::new(&Kubernetes { restamp: true, ..Kubernetes::default() });
    pending.failed(pod(1), true, at(10));
    pending.add(pod(3), at(13));
    pending.wake(at(40));
    assert_eq!(jobs(&mut pending), [3, 1], "tasks are in order of return");
}

#[test]
fn without_a_retry_queue_a_failed_task_goes_to_the_tail() {
    let mut pending = Pending::new(&instant(Retry::Tail));
    (1..4).for_each(|job| pending.add(pod(job), at(3)));
    let first = pending.pop().unwrap();
    pending.failed(first, false, at(4));
    assert_eq!(jobs(&mut pending), [2, 3, 1]);
}

/// Back-offs are 1, 2, 4, 8, 10 and 10 s. When a node becomes free, a task is queued again at once if its back-off is
/// over, and otherwise at the first full second after the back-off. Without an event a task waits for at least a
/// minute, up to the next half minute.
#[test]
fn an_event_queues_failed_tasks_again_after_their_back_off() {
    let waits: Vec<_> =
        (1..7).map(|failures| Pod { failures, ..pod(0) }.back_off().0 / 1_000_000_000).collect();
    assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
    let mut pending = Pending::new(&instant(Retry::Events));
    pending.failed(pod(1), false, at(10));
    assert_eq!(pending.wakes(at(10)), Some(at(30)));
    pending.failed(Pod { failures: 1, ..pod(2) }, false, at(10));
    pending.freed(at(11));
    assert_eq!(jobs(&mut pending), [1], "a back-off of one second is over, one of two is not");
    assert_eq!(pending.wakes(at(11)), Some(at(12)));
    pending.wake(at(12));
    assert_eq!(jobs(&mut pending), [2]);
    pending.failed(pod(3), true, at(20));
    pending.wake(at(21));
    assert_eq!(jobs(&mut pending), [3], "room was freed meanwhile, so the task waits only for its back-off");
    pending.failed(pod(4), false, at(31));
    pending.wake(at(90));
    assert_eq!(jobs(&mut pending), [0; 0]);
    // In real time ticks are a little late.
    pending.wake(at(120) + Span(1));
    assert_eq!(jobs(&mut pending), [4]);
}

/// A job can end while a later copy of its last task is on its way to a node.
#[test]
fn a_launch_that_returns_after_the_end_of_its_job_frees_the_room_of_its_node() {
    let mut bench = bench(&instant(Retry::Timer), &[1, 1], 1);
    let (a, _) = sends(&bench.submit(0))[0];
    let (b, again) = sends(&bench.step(Input::Down { actor: a }))[0];
    assert_ne!(a, b);
    // The first copy had ended before the crash.
    bench.receive(a, Launch::Completed { copy: JobId(0).task(0).copy(0) });
    assert_eq!(sends(&bench.submit(1)), [], "both nodes are taken");
    let returned = bench.step(Input::Undelivered { to: b, msg: again });
    assert_eq!(sends(&returned), []);
    assert_eq!(sends(&bench.submit(2)), [(b, row(2, 0))], "the room is free again");
}
