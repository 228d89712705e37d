//! Broken machines: for each kind of failure a defect of one step of a policy that leads to it.

use volary_actors::base::{JobId, Span, Time};
use volary_actors::layout::Role;
use volary_actors::machine::{Effect, Input, Note, Timer};
use volary_actors::message::{Detect, Gossip, Group, Job, Launch, Message, Row, Standing};

use super::search::explore;
use super::world::{Defect, Failure, Setting, keep_panics};

/// A policy, a world, a defect of the machines, and the failure that it leads to.
type Mutant = (&'static str, &'static str, Defect, fn(&Failure) -> bool);

/// The row of a message that launches one.
fn row_of(effect: &Effect) -> Option<Row> {
    if let Effect::Send { msg: Message::Launch(Launch::Row(row)), .. } = *effect { Some(row) } else { None }
}

/// Replaces the rows that are launched.
fn replace_rows(out: &mut [Effect], by: impl Fn(Row) -> Message) {
    for effect in out {
        if let (Some(row), Effect::Send { msg, .. }) = (row_of(effect), effect) {
            *msg = by(row);
        }
    }
}

/// Appends the effects that `again` derives from the others.
fn repeat(out: &mut Vec<Effect>, again: impl Fn(&Effect) -> Option<Effect>) {
    out.extend(out.iter().filter_map(again).collect::<Vec<_>>());
}

/// Whether an effect sends an update about the end of a task.
fn tells_end(effect: &Effect) -> bool {
    matches!(*effect, Effect::Send { msg, .. } | Effect::Broadcast { msg } if matches!(msg, Message::Gossip(Gossip::Ended(_))))
}

const MUTANTS: &[Mutant] = &[
    (
        "random = {}",
        "no fault, one scheduler",
        |role, input, _| {
            let ended =
                matches!(input, Input::Deliver { msg: Message::Launch(Launch::Completed { .. }), .. });
            assert!(!ended || !matches!(role, Role::Scheduler(_)), "broken");
        },
        |failure| matches!(failure, Failure::Panicked(text) if text.starts_with("broken")),
    ),
    (
        "random = {}",
        "no fault, one scheduler",
        |_, _, out| replace_rows(out, |row| Launch::Task { copy: row.copy(0), at: Time::ZERO }.into()),
        |failure| matches!(failure, Failure::Unexpected("launch.row")),
    ),
    (
        "random = {}",
        "no fault, one scheduler",
        |_, _, out| {
            repeat(out, |effect| Some(*effect).filter(|e| matches!(e, Effect::Note(Note::Finished { .. }))))
        },
        |failure| matches!(failure, Failure::FinishedTwice(_)),
    ),
    (
        "random = {}",
        "no fault, one scheduler",
        |_, input, out| {
            if let Input::Deliver { from, msg: Message::Job(Job::Submit { job, .. }) } = input {
                out.push(Effect::Send {
                    to: from,
                    msg: Job::Finished { job, killed: false }.into(),
                    recovery: false,
                });
            }
        },
        |failure| matches!(failure, Failure::FinishedWithout(_)),
    ),
    (
        "random = {}",
        "no fault, one scheduler",
        |_, _, out| repeat(out, |effect| Some(*effect).filter(|e| matches!(e, Effect::Run { .. }))),
        |failure| matches!(failure, Failure::BusyCore(_)),
    ),
    (
        "random = {}",
        "no fault, two cores",
        |_, _, out| repeat(out, |effect| row_of(effect).map(|_| *effect)),
        |failure| matches!(failure, Failure::StartedTwice(_)),
    ),
    (
        "random = {}",
        "no fault, one scheduler",
        |_, input, out| {
            if let Input::Done { copy } = input {
                out.push(Effect::Halt { copy });
            }
        },
        |failure| matches!(failure, Failure::IdleCore(_)),
    ),
    (
        "random = {}",
        "no fault, one scheduler",
        |_, _, out| replace_rows(out, |row| Launch::Row(Row { job: JobId(99), ..row }).into()),
        |failure| matches!(failure, Failure::NotChecked(_)),
    ),
    // A scheduler that forgets a launch.
    (
        "random = {}",
        "no fault, one scheduler",
        |_, _, out| out.retain(|effect| row_of(effect).is_none()),
        |failure| matches!(failure, Failure::Stuck(_)),
    ),
    // A node that does not repeat an undelivered result.
    (
        "random = {}",
        "one cut in one direction",
        |role, input, out| {
            if let (Role::Node(_), Input::Undelivered { .. }) = (role, input) {
                out.clear();
            }
        },
        |failure| matches!(failure, Failure::Stuck(_)),
    ),
    // A client that does not submit the second stage of a chain.
    (
        "random = {}",
        "one crash, stages",
        |role, input, out| {
            if let (Role::Client(_), Input::Deliver { .. }) = (role, input) {
                out.retain(|effect| !matches!(effect, Effect::Send { .. }));
            }
        },
        |failure| matches!(failure, Failure::Stuck(_)),
    ),
    // A client that submits a stage when the first of the stages that it waits for has ended.
    (
        "random = {}",
        "one crash, graph of stages",
        |role, input, out| {
            let first = Message::from(Job::Finished { job: JobId(0), killed: false });
            if let (Role::Client(_), Input::Deliver { from, msg }) = (role, input)
                && msg == first
            {
                let msg = Job::Submit { job: JobId(2), round: 0 }.into();
                out.push(Effect::Send { to: from, msg, recovery: false });
            }
        },
        |failure| matches!(failure, Failure::TooEarly(_)),
    ),
    // A scheduler that waits for a node and never asks it.
    (
        "random = {}",
        "no fault, one scheduler",
        |role, input, out| {
            let waits = out.iter().any(|effect| row_of(effect).is_some())
                || matches!(input, Input::Fire(Timer::Tick(9)));
            if matches!(role, Role::Scheduler(_)) && waits {
                *out = vec![Effect::Arm { timer: Timer::Tick(9), after: Span::from_secs(1) }];
            }
        },
        |failure| matches!(failure, Failure::Endless(_)),
    ),
    // A core that does not report that it stopped a copy.
    (
        "latin-square = {}",
        "no fault, one scheduler",
        |_, _, out| out.retain(|effect| !matches!(effect, Effect::Note(Note::Preempted { .. }))),
        |failure| matches!(failure, Failure::NoEnd(_)),
    ),
    (
        "kubernetes = {}",
        "no fault, one scheduler",
        |_, _, out| {
            repeat(out, |effect| {
                let Effect::Send { to, recovery, .. } = *effect else { return None };
                let row = row_of(effect)?;
                let msg = Launch::Row(Row { attempt: row.attempt + 1, ..row }).into();
                Some(Effect::Send { to, msg, recovery })
            });
        },
        |failure| matches!(failure, Failure::NoPlace(_)),
    ),
    (
        "murmuration = {}",
        "no fault, one scheduler",
        |_, _, out| out.retain(|effect| !tells_end(effect)),
        |failure| matches!(failure, Failure::Unbalanced(..)),
    ),
    // A node that does not report the end of a crashed scheduler's tasks.
    (
        "murmuration = {}",
        "one crash, two schedulers",
        |_, input, out| {
            if let Input::Down { .. } = input {
                out.retain(|effect| !tells_end(effect));
            }
        },
        |failure| matches!(failure, Failure::Unbalanced(..)),
    ),
    // A scheduler that does not withdraw an undelivered placement.
    (
        "murmuration = {}",
        "one partition, two schedulers",
        |_, input, out| {
            if let Input::Undelivered { msg: Message::Launch(_), .. } = input {
                out.retain(|effect| !matches!(effect, Effect::Send { msg: Message::Gossip(_), .. }));
            }
        },
        |failure| matches!(failure, Failure::Unbalanced(..)),
    ),
    (
        "pigeon = { group = 2 }",
        "no fault, one scheduler",
        |_, _, out| {
            let runs = |effect: &Effect| {
                matches!(effect, Effect::Send { msg: Message::Group(Group::Run { .. }), .. })
                    .then_some(*effect)
            };
            repeat(out, runs);
        },
        |failure| matches!(failure, Failure::NotIdle(_)),
    ),
    (
        "push = { aligned = true }",
        "members, no fault",
        |_, _, out| out.retain(|effect| !matches!(effect, Effect::Send { .. })),
        |failure| matches!(failure, Failure::Uninformed(_)),
    ),
    // Members that refute no statement: a restarted member stays dead.
    (
        "swim = { aligned = true, suspicion = 1.0, indirect = 1 }",
        "members, one crash",
        |_, _, out| {
            let refutes =
                |msg| matches!(msg, Message::Detect(Detect::News { standing: Standing::Alive, .. }));
            out.retain(|effect| !matches!(*effect, Effect::Send { msg, .. } if refutes(msg)));
        },
        |failure| matches!(failure, Failure::Wrong(_, _, Standing::Dead)),
    ),
    // Members that do not ask others to ping: a member is declared dead because one of its links is cut.
    (
        "lifeguard = { aligned = true, suspicion = 1.0, indirect = 1, health = 0 }",
        "members, one partition",
        |_, _, out| {
            let asks = |msg| matches!(msg, Message::Detect(Detect::Ask { .. }));
            out.retain(|effect| !matches!(*effect, Effect::Send { msg, .. } if asks(msg)));
        },
        |failure| matches!(failure, Failure::Wrong(..)),
    ),
];

#[test]
fn each_kind_of_failure_is_found_in_a_broken_machine() {
    keep_panics();
    for (at, (policy, world, defect, fails)) in MUTANTS.iter().enumerate() {
        let policy = toml::from_str(policy).unwrap();
        let sound = Setting::new(&policy, super::world(world)).unwrap();
        let broken = Setting { defect: Some(*defect), ..sound };
        let failure = explore(&broken, 20_000).failure.map(|(failure, _)| failure);
        assert!(failure.as_ref().is_some_and(fails), "mutant {at} of {policy:?} in {world}: {failure:?}");
    }
}
