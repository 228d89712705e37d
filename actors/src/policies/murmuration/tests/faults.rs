//! What becomes of caches when somebody crashes or cannot be reached.

use super::*;

#[test]
fn what_cannot_work_is_refused() {
    let layout = Layout::new(2, 0, [1]);
    let wrong = |config: Murmuration| config.check(&layout).unwrap_err();
    let spread = Spread::Epidemic;
    for fan_out in [0, u32::MAX] {
        let error = wrong(Murmuration { spread, fan_out, ..unbatched() });
        assert!(error.starts_with("fan_out: must be from 1 to 65536"), "{error}");
    }
    let (repair, update_delay) = (Span::from_secs(1), Span::from_secs(2));
    let error = wrong(Murmuration { repair, update_delay, ..unbatched() });
    assert!(error.starts_with("update_delay: 2s is longer than repair, 1s"), "{error}");
}

/// A node that comes back counts anew what it is sent, whatever is believed of it: its reports are taken in.
#[test]
fn a_backlog_counts_from_the_nodes_last_crash() {
    for forget_dead in [true, false] {
        let config = Murmuration { repair: Span::from_secs(5), forget_dead, ..unbatched() };
        let layout = Layout::new(1, 0, [1]);
        let mut s1 = scheduler(&config, 0, &layout, 1);
        submit(&mut s1, 5);
        s1.now = Time(7);
        s1.step(Input::Down { actor: layout.node(0) });
        s1.step(Input::Up { actor: layout.node(0) });
        s1.now = Time(9);
        let (work, at, number) = (Span::from_secs(2), s1.now, 1 << 24);
        hear(&mut s1, layout.node(0), Gossip::Backlog { work, at, number, came: 1 });
        assert_eq!(placements(&submit(&mut s1, 1)), [(0, 2)], "{forget_dead}");
    }
}

/// A task that never reached its node is taken back everywhere and placed anew.
#[test]
fn what_is_undelivered_is_withdrawn() {
    let layout = Layout::new(2, 0, [1, 1]);
    let mut s1 = scheduler(&unbatched(), 0, &layout, 1);
    let (to, msg) = sends(&submit(&mut s1, 5))[0];
    let back = s1.step(Input::Undelivered { to, msg });
    let told: Vec<_> = sends(&back).iter().map(|(_, msg)| msg.name()).collect();
    assert_eq!(told, ["gossip.withdrawn", "launch.row", "gossip.placed"]);
}

/// The work of a node that crashed is forgotten and placed elsewhere; what is told of its earlier life later
/// is ignored.
#[test]
fn a_dead_node_is_forgotten() {
    let layout = Layout::new(2, 0, [1, 1]);
    let mut s1 = scheduler(&unbatched(), 0, &layout, 2);
    submit(&mut s1, 6);
    s1.now = Time(1_000_000_000);
    let again = s1.step(Input::Down { actor: layout.node(0) });
    assert_eq!(placements(&again), [(1, 6)]);
    let late = Placed {
        at: Time(500_000_000),
        job: JobId(9),
        nodes: [0, 1],
        number: 0,
        maker: 1,
        form: Form::Batch,
        rumour: false,
    };
    s1.step(Input::Up { actor: layout.node(0) });
    let heard = hear(&mut s1, layout.scheduler(1), Gossip::Placed(late));
    assert_eq!(learnt(&heard), [(1, 9)], "what was placed before the crash is gone");
    assert_eq!(placements(&submit(&mut s1, 1)), [(0, 0), (0, 1)]);
}

/// Who was down hears what it missed; who is only cut off hears it again.
#[test]
fn missed_news_is_said_again() {
    let layout = Layout::new(3, 0, [1, 1]);
    let mut s1 = scheduler(&unbatched(), 0, &layout, 1);
    let (cut, dead) = (layout.scheduler(1), layout.scheduler(2));
    let news = tells(&submit(&mut s1, 5))[0];
    assert_eq!(sends(&s1.step(Input::Undelivered { to: cut, msg: news })), [(cut, news)]);
    s1.step(Input::Down { actor: dead });
    assert_eq!(s1.step(Input::Undelivered { to: dead, msg: news }), []);
    let later = sends(&submit(&mut s1, 6))[1];
    assert_eq!((later.0, later.1.name()), (cut, "gossip.placed"), "only those alive");
    assert_eq!(sends(&s1.step(Input::Up { actor: dead })), [(dead, news), (dead, later.1)]);
}
