//! Steps of members of a gossip group, and of its source.

use super::*;
use crate::base::Time;
use crate::harness::Harness;
use crate::layout::Neighbours;
use crate::machine::Effect;

const SECOND: DistributionSpec<Span> = DistributionSpec::Constant(Span::from_secs(1));
const AT_ONCE: DistributionSpec<Span> = DistributionSpec::Constant(Span::ZERO);

fn layout(members: u32, origin: Origin) -> Layout {
    let until = Time::ZERO + Span::from_secs(10);
    let group = GossipGroup::new(members, Neighbours::Complete, SECOND, origin, until, 1);
    Layout::new(1, 0, vec![0; members as usize]).with_gossip(group)
}

/// Member 0, or another actor, of a group of five in which member 0 originates updates.
fn actor(exchange: Exchange, role: Role) -> Harness {
    let layout = layout(5, Origin::Member(0));
    let me = match role {
        Role::Node(node) => layout.node(node),
        _ => layout.scheduler(0),
    };
    let machine = Gossiper::boxed(exchange, role, &layout);
    Harness::new(layout, me, 1, machine)
}

fn periodic(push: Option<u32>, pull: Option<bool>) -> Exchange {
    Exchange::Periodic(Periodic { period: SECOND, aligned: true, fan_out: 2, push, pull })
}

const fn flood(check: DistributionSpec<Span>) -> Exchange {
    Exchange::Flood { fan_out: 0, check, prepare: AT_ONCE }
}

fn sent(effects: &[Effect]) -> Vec<(u32, Message)> {
    let sent = effects.iter().filter_map(|effect| match effect {
        Effect::Send { to, msg, .. } => Some((to.0 - 2, *msg)),
        _ => None,
    });
    sent.collect()
}

const fn update(origin: u32, number: u32) -> Update {
    Update { origin, number }
}

fn push(origin: u32, number: u32) -> Message {
    Spread::Push { update: update(origin, number), more: false }.into()
}

#[test]
fn a_member_pushes_an_update_to_different_neighbours_for_some_periods() {
    let mut member = actor(periodic(Some(2), None), Role::Node(0));
    assert!(sent(&member.step(Input::Start { epoch: 0 })).is_empty());
    assert_eq!(sent(&member.step(Input::Fire(PERIOD))), [], "nothing is known");
    member.now = Time::ZERO + Span::from_secs(1);
    let arisen = member.step(Input::Fire(ARISE));
    assert!(arisen.contains(&Effect::Note(Note::Informed { update: update(0, 1) })));
    assert!(arisen.contains(&Effect::Arm { timer: ARISE, after: Span::from_secs(1) }));
    for pushed in [2, 2, 0] {
        let messages = sent(&member.step(Input::Fire(PERIOD)));
        assert!(messages.len() == pushed && messages.iter().all(|(_, msg)| *msg == push(0, 1)));
        assert!(pushed == 0 || messages[0].0 != messages[1].0 && messages.iter().all(|(to, _)| *to > 0));
    }
}

#[test]
fn the_gaps_between_updates_do_not_depend_on_the_exchange() {
    let gaps = |exchange: Exchange, seed| {
        let every: DistributionSpec<Span> = toml::from_str("uniform = { low = '1s', high = '2s' }").unwrap();
        let group = GossipGroup::new(5, Neighbours::Complete, every, Origin::Members, Time::MAX, seed);
        let layout = Layout::new(1, 0, [0; 5]).with_gossip(group);
        let (me, role) = (layout.node(1), Role::Node(1));
        let machine = Gossiper::boxed(exchange.clone(), role, &layout);
        let mut member = Harness::new(layout, me, 1, machine);
        let mut gaps = Vec::new();
        let mut last = member.step(Input::Start { epoch: 0 });
        for _ in 0..5 {
            gaps.extend(last.iter().filter_map(|effect| match effect {
                Effect::Arm { timer: ARISE, after } => Some(*after),
                _ => None,
            }));
            if matches!(exchange, Exchange::Periodic(_)) {
                member.step(Input::Fire(PERIOD));
            }
            last = member.step(Input::Fire(ARISE));
        }
        assert_eq!(gaps.len(), 5);
        gaps
    };
    let pushed = gaps(periodic(Some(0), None), 1);
    for exchange in [periodic(None, Some(true)), periodic(Some(2), Some(true)), flood(SECOND)] {
        assert_eq!(gaps(exchange, 1), pushed);
    }
    assert_ne!(gaps(flood(AT_ONCE), 2), pushed);
    assert!(pushed.windows(2).all(|two| two[0] != two[1]));
}

#[test]
fn updates_are_created_when_due_until_the_end_of_the_measured_part() {
    let mut member = actor(periodic(Some(0), None), Role::Node(0));
    let arms = |effects: &[Effect]| {
        effects.iter().find_map(|effect| match effect {
            Effect::Arm { timer: ARISE, after } => Some(*after),
            _ => None,
        })
    };
    assert_eq!(arms(&member.step(Input::Start { epoch: 0 })), Some(Span::from_secs(1)));
    for second in 1..9 {
        // The member is 0.3 s late, and the next update is still due on time.
        member.now = Time::ZERO + Span::from_secs(second) + Span::from_millis(300);
        assert_eq!(arms(&member.step(Input::Fire(ARISE))), Some(Span::from_millis(700)));
    }
    member.now = Time::ZERO + Span::from_secs(9);
    assert_eq!(arms(&member.step(Input::Fire(ARISE))), None, "10 s is the end");
}

#[test]
fn a_member_is_informed_by_newer_updates_only() {
    let mut member = actor(periodic(Some(0), None), Role::Node(1));
    let from = member.layout.node(2);
    let informed = |number| vec![Effect::Note(Note::Informed { update: update(0, number) })];
    assert_eq!(member.deliver(from, push(0, 2)), informed(2));
    for old in [1, 2] {
        assert_eq!(member.deliver(from, push(0, old)), []);
    }
    assert_eq!(member.deliver(from, push(0, 3)), informed(3));
}

#[test]
fn a_member_answers_a_pull_unless_both_have_the_same_updates() {
    let mut asking = actor(periodic(None, Some(true)), Role::Node(1));
    let mut asked = actor(periodic(None, Some(true)), Role::Node(2));
    let (from, other) = (asking.layout.node(1), asking.layout.node(2));
    asked.deliver(from, push(0, 1));
    asked.deliver(from, push(3, 4));
    let mut question = || sent(&asking.step(Input::Fire(PERIOD)))[0].1;
    let answers = sent(&asked.deliver(from, question()));
    let expected = [(update(0, 1), false), (update(3, 4), true)];
    assert_eq!(answers, expected.map(|(update, more)| (1, Spread::Answer { update, more }.into())));
    for (_, answer) in answers {
        asking.deliver(other, answer);
    }
    let question = sent(&asking.step(Input::Fire(PERIOD)))[0].1;
    assert_eq!(asked.deliver(from, question), []);
    assert_eq!(sent(&asked.deliver(from, Spread::Ask { digest: UNKNOWN })).len(), 2);
}

#[test]
fn a_flooding_member_forwards_an_update_once_and_not_to_its_sender() {
    let mut member = actor(flood(AT_ONCE), Role::Node(1));
    let from = member.layout.node(2);
    let to: Vec<_> = sent(&member.deliver(from, push(0, 1))).into_iter().map(|(to, _)| to).collect();
    assert_eq!(to, [0, 3, 4]);
    assert_eq!(member.deliver(member.layout.node(3), push(0, 1)), []);
}

#[test]
fn a_flooding_member_checks_one_update_after_the_other() {
    let mut member = actor(flood(SECOND), Role::Node(1));
    let from = member.layout.node(2);
    let check = Effect::Arm { timer: HANDLED, after: Span::from_secs(1) };
    assert_eq!(member.deliver(from, push(0, 1)), [check]);
    assert_eq!(member.deliver(from, push(0, 2)), []);
    assert_eq!(member.deliver(member.layout.node(3), push(0, 1)), [], "it waits already");
    for number in [1, 2] {
        let done = member.step(Input::Fire(HANDLED));
        assert_eq!(done[0], Effect::Note(Note::Informed { update: update(0, number) }));
        assert_eq!(done.contains(&check), number == 1);
    }
}

#[test]
fn the_source_sends_to_members_and_asks_none() {
    let layout = layout(5, Origin::Source);
    let source = layout.scheduler(0);
    let machine = Gossiper::boxed(periodic(Some(0), Some(true)), Role::Scheduler(0), &layout);
    let mut source = Harness::new(layout, source, 1, machine);
    source.step(Input::Fire(ARISE));
    let messages = sent(&source.step(Input::Fire(PERIOD)));
    assert!(messages.len() == 2 && messages.iter().all(|(_, msg)| *msg == push(5, 1)), "{messages:?}");
}

#[test]
fn a_member_that_crashes_continues_its_numbers() {
    let mut member = actor(periodic(Some(0), None), Role::Node(0));
    member.step(Input::Fire(ARISE));
    let next = Gossiper::boxed(periodic(Some(0), None), Role::Node(0), &member.layout);
    let mut member = member.crash(next);
    let arisen = member.step(Input::Fire(ARISE));
    assert!(arisen.contains(&Effect::Note(Note::Informed { update: update(0, 2) })));
}
