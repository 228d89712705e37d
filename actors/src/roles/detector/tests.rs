//! Steps of members that detect failures.

use super::*;
use crate::base::DistributionSpec;
use crate::harness::Harness;
use crate::machine::Effect;

const PLAIN: Lifeguard = Lifeguard {
    period: Span::from_secs(1),
    aligned: true,
    random: false,
    timeout: Span::from_millis(500),
    indirect: 2,
    suspicion: 3.0,
    slowest: 5.0,
    confirmations: 1,
    health: 2,
    buddy: true,
    piggyback: 2,
    repeats: 2,
    reconnect: Span::from_secs(7),
};

fn layout() -> Layout {
    let every = DistributionSpec::Constant(Span::ZERO);
    let group = GossipGroup::new(5, Neighbours::Complete, every, Origin::Nowhere, Time::MAX, 1);
    Layout::new(1, 0, [0; 5]).with_gossip(group)
}

/// Member 0 of five, in its first period.
fn member(config: &Lifeguard) -> (Harness, u32) {
    let layout = layout();
    let machine = Detector::boxed(config.clone(), Role::Node(0), &layout);
    let mut member = Harness::new(layout.clone(), layout.node(0), 1, machine);
    assert_eq!(sent(&member.step(Input::Start { epoch: 0 })), []);
    let begun = sent(&member.step(Input::Fire(PERIOD)));
    assert_eq!(begun.len(), 1);
    assert_eq!(begun[0].1, Detect::Ping { number: 1, by: 0 });
    (member, begun[0].0)
}

fn sent(effects: &[Effect]) -> Vec<(u32, Detect)> {
    let sent = effects.iter().filter_map(|effect| match effect {
        Effect::Send { to, msg: Message::Detect(msg), .. } => Some((to.0 - 2, *msg)),
        _ => None,
    });
    sent.collect()
}

fn notes(effects: &[Effect]) -> Vec<(u32, Standing)> {
    let notes = effects.iter().filter_map(|effect| match effect {
        Effect::Note(Note::Regards { member, standing }) => Some((*member, *standing)),
        _ => None,
    });
    notes.collect()
}

fn armed(effects: &[Effect], timer: Timer) -> Vec<Span> {
    let armed = effects.iter().filter_map(|effect| match effect {
        Effect::Arm { timer: of, after } if *of == timer => Some(*after),
        _ => None,
    });
    armed.collect()
}

fn hear(member: &mut Harness, from: u32, news: Detect) -> Vec<Effect> {
    member.deliver(member.layout.node(from), news)
}

const fn news(member: u32, incarnation: u32, standing: Standing, by: u32) -> Detect {
    Detect::News { member, incarnation, standing, by }
}

#[test]
fn a_member_that_acknowledges_no_ping_is_suspected_and_then_dead() {
    let (mut member, target) = member(&PLAIN);
    let asked = sent(&member.step(Input::Fire(LATE)));
    assert!(
        asked.len() == 2
            && asked.iter().all(|(to, msg)| {
                ![0, target].contains(to) && *msg == Detect::Ask { number: 1, member: target }
            })
    );
    member.now = Time::ZERO + Span::from_secs(1);
    let suspects = member.step(Input::Fire(PERIOD));
    assert_eq!(notes(&suspects), [(target, Standing::Suspected)]);
    // No other member suspects the target, so the suspicion lasts five times three periods.
    assert_eq!(armed(&suspects, Timer::Node(target)), [Span::from_secs(15)]);
    // The health is 2: the probe failed, and negative acknowledgements are missing.
    assert_eq!(armed(&suspects, PERIOD), [Span::from_secs(3)]);
    assert!(sent(&suspects).iter().any(|(_, msg)| *msg == news(target, 0, Standing::Suspected, 0)));
    let other = (1..5).find(|other| *other != target).unwrap();
    member.now = Time::ZERO + Span::from_secs(2);
    let confirmed = hear(&mut member, other, news(target, 0, Standing::Suspected, other));
    assert_eq!(armed(&confirmed, Timer::Node(target)), [Span::from_secs(2)]);
    member.now = Time::ZERO + Span::from_secs(3);
    assert_eq!(notes(&member.step(Input::Fire(Timer::Node(target)))), [], "too early");
    member.now = Time::ZERO + Span::from_secs(4);
    assert_eq!(notes(&member.step(Input::Fire(Timer::Node(target)))), [(target, Standing::Dead)]);
    for _ in 0..8 {
        let probed = sent(&member.step(Input::Fire(PERIOD)));
        assert!(probed.iter().all(|(to, _)| *to != target), "dead members are not probed: {probed:?}");
    }
    let again = sent(&member.step(Input::Fire(RECONNECT)));
    assert_eq!(again[0], (target, news(target, 0, Standing::Dead, 0)), "the news to refute comes first");
    assert!(matches!(again.last(), Some((to, Detect::Ping { by: 0, .. })) if *to == target));
}

#[test]
fn an_acknowledgement_ends_the_probe_and_improves_local_health() {
    for by_other in [false, true] {
        let (mut member, target) = member(&PLAIN);
        hear(&mut member, target, news(0, 0, Standing::Suspected, target));
        member.step(Input::Fire(LATE));
        let from = if by_other { 1 + target % 4 } else { target };
        hear(&mut member, from, Detect::Ack { number: 1, member: target, by: 0 });
        let next = member.step(Input::Fire(PERIOD));
        assert_eq!((notes(&next), armed(&next, PERIOD)), (vec![], vec![Span::from_secs(1)]));
    }
    let (mut member, target) = member(&PLAIN);
    for stale in [
        Detect::Ack { number: 9, member: target, by: 0 },
        Detect::Ack { number: 1, member: 1 + target % 4, by: 0 },
    ] {
        hear(&mut member, target, stale);
    }
    assert_eq!(notes(&member.step(Input::Fire(PERIOD))), [(target, Standing::Suspected)]);
}

#[test]
fn a_member_refutes_suspicions_and_adopts_only_greater_statements() {
    let (mut member, _) = member(&PLAIN);
    hear(&mut member, 1, news(0, 4, Standing::Dead, 2));
    let answer = sent(&hear(&mut member, 1, Detect::Ping { number: 3, by: 1 }));
    assert_eq!(
        answer,
        [(1, news(0, 5, Standing::Alive, 0)), (1, Detect::Ack { number: 3, member: 0, by: 1 })]
    );
    for (incarnation, standing, taken) in [
        (0, Standing::Dead, true),
        (0, Standing::Suspected, false),
        (0, Standing::Alive, false),
        (1, Standing::Alive, true),
        (1, Standing::Suspected, true),
        (1, Standing::Alive, false),
        (1, Standing::Dead, true),
        (2, Standing::Alive, true),
    ] {
        let found = notes(&hear(&mut member, 1, news(3, incarnation, standing, 2)));
        assert_eq!(found, if taken { vec![(3, standing)] } else { vec![] }, "{incarnation} {standing:?}");
    }
}

#[test]
fn a_restarted_member_returns_in_a_later_incarnation() {
    let (mut member, _) = member(&PLAIN);
    hear(&mut member, 1, news(0, 4, Standing::Suspected, 2));
    let mut next = member.crash(Detector::boxed(PLAIN, Role::Node(0), &layout()));
    next.step(Input::Start { epoch: 1 });
    let answer = sent(&hear(&mut next, 1, Detect::Ping { number: 3, by: 1 }));
    assert_eq!(answer[0].1, news(0, 6, Standing::Alive, 0));
}

#[test]
fn a_member_pings_for_another_and_reports_a_missing_acknowledgement() {
    let (mut member, _) = member(&PLAIN);
    let asked = hear(&mut member, 1, Detect::Ask { number: 8, member: 3 });
    assert_eq!(sent(&asked), [(3, Detect::Ping { number: 8, by: 1 })]);
    assert_eq!(armed(&asked, RELAY_LATE), [Span::from_millis(400)]);
    hear(&mut member, 2, Detect::Ask { number: 9, member: 3 });
    let passed = Detect::Ack { number: 8, member: 3, by: 1 };
    assert_eq!(sent(&hear(&mut member, 3, passed)), [(1, passed)]);
    assert_eq!(sent(&member.step(Input::Fire(RELAY_LATE))), []);
    assert_eq!(sent(&member.step(Input::Fire(RELAY_LATE))), [(2, Detect::Nack { number: 9 })]);
}

#[test]
fn news_is_repeated_in_a_limited_number_of_messages_the_least_repeated_first() {
    let (mut member, _) = member(&Lifeguard { buddy: false, ..PLAIN });
    for other in [2, 3, 4] {
        hear(&mut member, 1, news(other, 1, Standing::Alive, other));
    }
    let mut said = vec![0; 5];
    for _ in 0..4 {
        let answer = sent(&hear(&mut member, 1, Detect::Ping { number: 3, by: 1 }));
        for (_, msg) in &answer {
            if let Detect::News { member, .. } = msg {
                said[*member as usize] += 1;
            }
        }
        assert!(answer.len() <= 3);
    }
    // Twice log10 of six, rounded up.
    assert_eq!(said, [0, 0, 2, 2, 2]);
}

#[test]
fn parameters_that_cannot_work_are_refused() {
    let why = |config: Lifeguard| config.check(&layout()).unwrap_err();
    assert_eq!(PLAIN.check(&layout()), Ok(()));
    assert!(why(Lifeguard { timeout: PLAIN.period, ..PLAIN }).starts_with("timeout: must be below"));
    assert!(
        why(Lifeguard { suspicion: 0.5, ..PLAIN }).starts_with("suspicion: 500ms is shorter than a probe")
    );
    assert!(why(Lifeguard { indirect: 4, ..PLAIN }).starts_with("indirect: 4 others cannot include 4"));
}
