//! Step tests: inputs to one machine, and the effects that it requests.

use volary_actors::base::{ActorId, JobId, Span, Time};
use volary_actors::harness::{Harness, sends};
use volary_actors::layout::Layout;
use volary_actors::machine::{Input, Timer};
use volary_actors::message::{CustomProtocol as _, Job, Launch, Message, Row};
use volary_actors::policies::Policy as _;

use crate::messages::Reservation;
use crate::policy::Reserved;

const JOB: JobId = JobId(7);

/// The machine `who` of a cluster with one scheduler and five nodes of one core; jobs have one task.
fn bench(who: impl Fn(&Layout) -> ActorId) -> Harness {
    let layout = Layout::new(1, 0, [1; 5]);
    Reserved::default().bench(&layout, who(&layout), 1)
}

/// The questions among the sent messages: receiver and round of each.
fn asked(sent: &[(ActorId, Message)]) -> Vec<(ActorId, u32)> {
    let round = |msg| match Reservation::of(msg)? {
        Reservation::Ask { round, .. } => Some(round),
        Reservation::Length { .. } => None,
    };
    sent.iter().filter_map(|(to, msg)| Some((*to, round(msg)?))).collect()
}

fn length(round: u32, length: i32) -> Reservation {
    Reservation::Length { task: JOB.task(0), round, length }
}

fn row(attempt: u32) -> Message {
    Launch::Row(Row::single(JOB.task(0).copy(attempt))).into()
}

#[test]
fn the_shortest_of_three_queues_gets_the_task() {
    let mut scheduler = bench(|layout| layout.scheduler(0));
    let nodes = asked(&sends(&scheduler.submit(JOB.0)));
    let [(a, 1), (b, 1), (c, 1)] = nodes[..] else { panic!("{nodes:?}") };
    assert_eq!(scheduler.receive(a, length(1, 4)), []);
    assert_eq!(scheduler.receive(b, length(1, -1)), []);
    assert_eq!(scheduler.receive(b, length(1, -1)), [], "a datagram can arrive twice");
    assert_eq!(scheduler.receive(c, length(1, 2)), [(b, row(0))]);
    let client = scheduler.layout.client(0);
    let completed = Launch::Completed { copy: JOB.task(0).copy(0) };
    assert_eq!(scheduler.receive(b, completed), [(client, Job::Finished { job: JOB, killed: false }.into())]);
    assert_eq!(scheduler.receive(b, completed), [], "a job ends once");
}

#[test]
fn a_task_of_a_crashed_node_is_placed_again() {
    let mut scheduler = bench(|layout| layout.scheduler(0));
    let nodes = asked(&sends(&scheduler.submit(JOB.0)));
    for (at, (node, _)) in (0..).zip(&nodes) {
        scheduler.receive(*node, length(1, at));
    }
    let first = nodes[0].0;
    let again = asked(&sends(&scheduler.step(Input::Down { actor: first })));
    assert_eq!(again.len(), 3);
    assert!(again.iter().all(|(node, round)| *node != first && *round == 2));
    assert_eq!(scheduler.receive(again[0].0, length(1, 0)), [], "an answer to the first question");
    scheduler.receive(again[0].0, length(2, 0));
    scheduler.receive(again[1].0, length(2, 1));
    assert_eq!(scheduler.receive(again[2].0, length(2, 1)), [(again[0].0, row(1))], "another attempt");
}

#[test]
fn a_task_that_could_not_be_delivered_is_placed_again() {
    let mut scheduler = bench(|layout| layout.scheduler(0));
    let nodes = asked(&sends(&scheduler.submit(JOB.0)));
    nodes.iter().for_each(|(node, _)| {
        scheduler.receive(*node, length(1, 0));
    });
    let returned = Input::Undelivered { to: nodes[0].0, msg: row(0) };
    assert_eq!(asked(&sends(&scheduler.step(returned))).len(), 3);
    assert_eq!(sends(&scheduler.step(returned)), [], "it is being placed already");
}

#[test]
fn nodes_are_asked_again_if_answers_are_missing_at_the_timeout() {
    let layout = Layout::new(1, 0, [1; 5]);
    let me = layout.scheduler(0);
    let machine = Reserved::default().machine(me, &layout, true, false);
    let mut scheduler = Harness::new(layout, me, 1, machine);
    let nodes = asked(&sends(&scheduler.submit(JOB.0)));
    let check = Input::Fire(Timer::Task(JOB.task(0)));
    let at = |scheduler: &mut Harness, second| {
        scheduler.now = Time::ZERO + Span::from_secs(second);
        sends(&scheduler.step(check))
    };
    assert_eq!(at(&mut scheduler, 0), [], "the timer is of an earlier question");
    assert_eq!(asked(&at(&mut scheduler, 1)).len(), 3, "nobody answered");
    let second = asked(&at(&mut scheduler, 3));
    scheduler.receive(second[1].0, length(3, 9));
    assert_eq!(at(&mut scheduler, 7), [(second[1].0, row(0))], "one answered");
    assert!(nodes.len() == 3 && second.iter().all(|(_, round)| *round == 3));
}

#[test]
fn a_reservation_counts_until_it_expires_or_its_task_arrives() {
    let mut node = bench(|layout| layout.node(2));
    let scheduler = node.layout.scheduler(0);
    let ask = |job| Reservation::Ask { task: JobId(job).task(0), round: 1, repair: false };
    let length = |node: &mut Harness, job| match Reservation::of(&node.receive(scheduler, ask(job))[0].1) {
        Some(Reservation::Length { length, .. }) => length,
        other => panic!("{other:?}"),
    };
    assert_eq!(length(&mut node, 7), -1, "one core is free");
    assert_eq!(length(&mut node, 8), 0, "and has a task");
    assert_eq!(length(&mut node, 8), 0, "a question that arrives twice keeps one place");
    node.receive(scheduler, row(0));
    assert_eq!(length(&mut node, 9), 2, "one runs, the other may come");
    node.now = Time::ZERO + Span::from_secs(1);
    assert_eq!(length(&mut node, 10), 1, "all but the running one have expired");
}
