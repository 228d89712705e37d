use super::*;
use crate::machine::Effect;
use crate::scripts::{Bench, sends};

fn bench(config: &Kubernetes, cores: &[u32], tasks: u32) -> Bench {
    let layout = Layout::new(1, 0, cores.iter().copied());
    let me = layout.scheduler(0);
    let machine = config.scheduler(Seat { me, index: 0, layout: &layout, lossy: false, watched: false });
    Bench::new(layout, me, tasks, machine)
}

fn submit(bench: &mut Bench, job: u32) -> Vec<Effect> {
    let msg = Job::Submit { job: JobId(job), round: 0 }.into();
    bench.step(Input::Deliver { from: bench.layout.client(0), msg })
}

fn instant(retry: Retry) -> Kubernetes {
    Kubernetes { retry, attempt: Span::ZERO, ..Kubernetes::default() }
}

fn tick(tick: u32) -> Input {
    Input::Fire(Timer::Tick(tick))
}

fn done(bench: &mut Bench, node: u32, job: u32, task: u32) -> Vec<(ActorId, Message)> {
    let node = bench.layout.node(node);
    bench.hear(node, Launch::Completed { copy: JobId(job).task(task).copy(0) })
}

fn row(job: u32, task: u32) -> Message {
    Launch::Row(Row::single(JobId(job).task(task).copy(0))).into()
}

/// What makes its tail long: capacity freed while an earlier task waits goes to a later one.
#[test]
fn a_later_task_takes_what_an_earlier_one_waits_for() {
    let mut bench = bench(&instant(Retry::Timer), &[1], 1);
    assert_eq!(sends(&submit(&mut bench, 0)), [(bench.layout.node(0), row(0, 0))]);
    let waits = submit(&mut bench, 1);
    assert_eq!(waits, [Effect::Arm { timer: Timer::Tick(WAKE), after: Span::from_secs(30) }]);
    bench.now += Span::from_secs(10);
    assert_eq!(done(&mut bench, 0, 0, 0).len(), 1, "the job is reported, and nothing else happens");
    assert_eq!(sends(&submit(&mut bench, 2)), [(bench.layout.node(0), row(2, 0))]);
    bench.now += Span::from_secs(20);
    assert_eq!(sends(&bench.step(tick(WAKE))), [], "no room again");
    bench.now += Span::from_secs(30);
    done(&mut bench, 0, 2, 0);
    assert_eq!(sends(&bench.step(tick(WAKE))), [(bench.layout.node(0), row(1, 0))]);
}

#[test]
fn with_events_the_earlier_task_gets_it() {
    let mut bench = bench(&instant(Retry::Events), &[1], 1);
    submit(&mut bench, 0);
    assert_eq!(sends(&submit(&mut bench, 1)), []);
    bench.now += Span::from_secs(10);
    assert_eq!(done(&mut bench, 0, 0, 0)[1], (bench.layout.node(0), row(1, 0)));
}

/// One after the other, 5 ms each.
#[test]
fn attempts_take_their_time() {
    let config = Kubernetes { retry: Retry::Tail, ..Kubernetes::default() };
    let mut bench = bench(&config, &[2], 3);
    let attempt = Effect::Arm { timer: Timer::Tick(DECIDE), after: Span::from_millis(5) };
    assert_eq!(submit(&mut bench, 0), [attempt]);
    for task in [0, 1] {
        let effects = bench.step(tick(DECIDE));
        assert_eq!(sends(&effects), [(bench.layout.node(0), row(0, task))]);
        assert_eq!(effects.last(), Some(&attempt));
    }
    assert_eq!(bench.step(tick(DECIDE)), [attempt], "no room: it is tried again and again");
    assert_eq!(done(&mut bench, 0, 0, 1), []);
    assert_eq!(sends(&bench.step(tick(DECIDE))), [(bench.layout.node(0), row(0, 2))]);
}

#[test]
fn tasks_of_a_dead_node_are_bound_again_elsewhere() {
    let mut bench = bench(&instant(Retry::Timer), &[4, 4], 2);
    let sent = sends(&submit(&mut bench, 0));
    assert_ne!(sent[0].0, sent[1].0, "evenly");
    let again = bench.step(Input::Down { actor: sent[0].0 });
    let copy = JobId(0).task(0).copy(1);
    let expected = Effect::Send { to: sent[1].0, msg: Launch::Row(Row::single(copy)).into(), recovery: true };
    assert_eq!(again, [Effect::Note(Note::Bound { copy }), expected]);
    // Out of reach instead: the other one is dead, so it waits until this one may be tried again.
    let back = Input::Undelivered { to: sent[1].0, msg: Launch::Row(Row::single(copy)).into() };
    assert_eq!(sends(&bench.step(back)), []);
    bench.now += Span::from_secs(30);
    let node = NODES + bench.layout.node_number(sent[1].0);
    bench.step(tick(node));
    assert_eq!(sends(&bench.step(tick(WAKE))).len(), 1);
}

/// A node that dies with a task is reported down first, and the row may come back after that: the task was bound
/// anew already, be it to the same node, and stays where it is.
#[test]
fn what_is_lost_and_then_refused_is_bound_again_once() {
    let mut bench = bench(&instant(Retry::Timer), &[1], 1);
    let node = bench.layout.node(0);
    submit(&mut bench, 0);
    assert_eq!(sends(&bench.step(Input::Down { actor: node })), []);
    let back = bench.step(Input::Up { actor: node });
    assert_eq!(sends(&back), [], "a task that found no room waits for its time");
    bench.now += Span::from_secs(30);
    let again = Launch::Row(Row::single(JobId(0).task(0).copy(1))).into();
    assert_eq!(sends(&bench.step(tick(WAKE))), [(node, again)]);
    assert_eq!(bench.step(Input::Undelivered { to: node, msg: row(0, 0) }), []);
    bench.now += Span::from_secs(30);
    assert_eq!(sends(&bench.step(tick(WAKE))), [], "it is bound");
    assert_eq!(sends(&submit(&mut bench, 1)), [], "there is no room for another");
}

/// Of two timers that wake at the same time the second does nothing.
#[test]
fn a_wake_that_is_not_due_is_ignored() {
    let mut bench = bench(&instant(Retry::Events), &[1], 1);
    submit(&mut bench, 0);
    let armed = |effects: &[Effect]| {
        effects.iter().filter(|effect| matches!(effect, Effect::Arm { timer: Timer::Tick(WAKE), .. })).count()
    };
    bench.now += Span::from_secs(29);
    assert_eq!(armed(&submit(&mut bench, 1)), 1, "looked at after half a minute");
    bench.now += Span::from_secs(1);
    assert_eq!(armed(&bench.step(tick(WAKE))), 1, "and again after another");
    assert_eq!(bench.step(tick(WAKE)), []);
}
