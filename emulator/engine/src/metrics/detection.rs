//! Detection of failures among the members of a gossip group: how long crashes stay unknown, and which members are
//! wrongly suspected or declared dead.
//!
//! The faults of the experiment say which members are down. A crash is *detected* when another member declares the
//! crashed one dead, or at once if another member already considers it dead. It is *known* when all other members that
//! are up consider the crashed one dead. A suspicion or death is *false* if its subject is up. A member is *sound* if
//! no fault of the run is aimed at it. All of this is counted in the measured part.

use std::collections::BTreeMap;

use volary_actors::base::{ActorId, Time};
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::Note;
use volary_actors::message::Standing;
use volary_netem::Faults;

use super::PolicyMetric;
use super::gauge::Gauge;
use crate::results::{Detection, PolicyResults};
use crate::workload::MeasuredPart;

/// Folds notes about what members believe.
#[derive(Debug)]
pub struct DetectionTracker<'a> {
    layout: &'a Layout,
    faults: &'a Faults,
    part: Option<MeasuredPart>,
    /// Index of the next crash of the faults.
    next: usize,
    /// Members that another member has declared alive, suspected or dead.
    failed: BTreeMap<u32, Failed>,
    /// Number of crashes in the measured part.
    crashes: u64,
    suspected: Gauge,
    detected: Gauge,
    known: Gauge,
    suspicions: u64,
    deaths: u64,
    deaths_of_sound: u64,
    deaths_among_sound: u64,
}

/// The beliefs of other members about a member, and its crashes that they have noticed.
#[derive(Clone, Default, Debug)]
struct Failed {
    /// Members that consider it dead, and since when.
    by: BTreeMap<u32, Time>,
    /// Start of its last crash that another member suspects.
    suspected: Option<Time>,
    /// Start of its last crash that another member has detected.
    detected: Option<Time>,
    /// Start of its last crash that all others know.
    known: Option<Time>,
}

impl<'a> DetectionTracker<'a> {
    /// A tracker of the members of a layout; without a measured part it does nothing.
    pub fn new(layout: &'a Layout, faults: &'a Faults, part: Option<MeasuredPart>) -> Self {
        Self {
            layout,
            faults,
            part,
            next: 0,
            failed: BTreeMap::new(),
            crashes: 0,
            suspected: Gauge::default(),
            detected: Gauge::default(),
            known: Gauge::default(),
            suspicions: 0,
            deaths: 0,
            deaths_of_sound: 0,
            deaths_among_sound: 0,
        }
    }

    /// The start of the outage of a member that is down.
    fn down_since(&self, member: u32, now: Time) -> Option<Time> {
        self.faults.down_since(self.layout.endpoint(self.layout.node(member)), now)
    }

    fn is_sound(&self, member: u32) -> bool {
        !self.faults.strikes(self.layout.endpoint(self.layout.node(member)))
    }

    /// Whether a member that considered another dead at `since` still does at `now`: a restart clears its memory.
    fn remembers(&self, member: u32, since: Time, now: Time) -> bool {
        self.faults.crash_between(self.layout.endpoint(self.layout.node(member)), since, now).is_none()
    }

    /// Whether every other member that is up considers this one dead; false if no other member is up.
    fn is_known(&self, member: u32, now: Time) -> bool {
        let by = &self.failed[&member].by;
        let others = (0..self.layout.nodes()).filter(|other| *other != member);
        let mut up = others.filter(|other| self.down_since(*other, now).is_none()).peekable();
        up.peek().is_some()
            && up.all(|other| by.get(&other).is_some_and(|since| self.remembers(other, *since, now)))
    }

    /// Whether another member considered this one dead when it crashed.
    fn was_held(&self, member: u32, at: Time) -> bool {
        let by = self.failed.get(&member).map(|failed| &failed.by);
        by.into_iter().flatten().any(|(other, since)| *since < at && self.remembers(*other, *since, at))
    }

    fn regards(&mut self, now: Time, by: u32, member: u32, standing: Standing) {
        let Some(part) = self.part else { return };
        let failed = self.failed.entry(member).or_default();
        match standing {
            Standing::Dead => failed.by.insert(by, now),
            Standing::Alive | Standing::Suspected => failed.by.remove(&by),
        };
        if standing == Standing::Alive {
            return;
        }
        let Some(at) = self.down_since(member, now) else {
            if part.contains(now) {
                let is_dead = u64::from(standing == Standing::Dead);
                let of_sound = is_dead * u64::from(self.is_sound(member));
                self.suspicions += 1 - is_dead;
                self.deaths += is_dead;
                self.deaths_of_sound += of_sound;
                self.deaths_among_sound += of_sound * u64::from(self.is_sound(by));
            }
            return;
        };
        let Some(failed) = self.failed.get_mut(&member).filter(|_| part.contains(at)) else { return };
        first(&mut failed.suspected, &mut self.suspected, at, now);
        if standing == Standing::Dead {
            first(&mut failed.detected, &mut self.detected, at, now);
            self.learn(member, now);
        }
    }

    /// Records that a crash is known, if the member is down and all others consider it dead.
    fn learn(&mut self, member: u32, now: Time) {
        let Some(at) = self.down_since(member, now) else { return };
        if self.part.is_some_and(|part| part.contains(at))
            && self.is_known(member, now)
            && let Some(failed) = self.failed.get_mut(&member)
        {
            first(&mut failed.known, &mut self.known, at, now);
        }
    }

    /// Processes the crashes until now. A crash is detected at once if another member already considers the crashed one
    /// dead. It can also make earlier crashes known, because the crashed member no longer has to know of them.
    fn crash(&mut self, until: Time) {
        let Some(part) = self.part else { return };
        while let Some(crash) = self.faults.crashes().get(self.next).filter(|crash| crash.at <= until) {
            self.next += 1;
            let Role::Node(member) = self.layout.role(ActorId(crash.who.0)) else { continue };
            let at = crash.at;
            self.crashes += u64::from(part.contains(at));
            if part.contains(at)
                && self.was_held(member, at)
                && let Some(failed) = self.failed.get_mut(&member)
            {
                first(&mut failed.suspected, &mut self.suspected, at, at);
                first(&mut failed.detected, &mut self.detected, at, at);
            }
            for other in self.failed.keys().copied().collect::<Vec<_>>() {
                self.learn(other, at);
            }
        }
    }
}

/// Records the time from a crash until now, once for each crash.
fn first(seen: &mut Option<Time>, gauge: &mut Gauge, crash: Time, now: Time) {
    if *seen != Some(crash) {
        *seen = Some(crash);
        gauge.add(now.since(crash).as_secs_f64(), 1);
    }
}

impl PolicyMetric for DetectionTracker<'_> {
    #[inline]
    fn note(&mut self, now: Time, who: ActorId, note: Note) {
        if let (Note::Regards { member, standing }, Role::Node(by)) = (note, self.layout.role(who)) {
            self.crash(now);
            self.regards(now, by, member, standing);
        }
    }

    fn close(mut self, _: Time, end: Time, results: &mut PolicyResults) {
        let Some(part) = self.part else { return };
        self.crash(Time(end.0.saturating_sub(1)));
        let hours =
            end.min(part.until).since(part.from).as_secs_f64() / 3600.0 * f64::from(self.layout.nodes());
        let rate = |count: u64| count as f64 / hours;
        results.sections.detection = Some(Detection {
            crashes: self.crashes,
            detected: self.detected.weight() / self.crashes as f64,
            known: self.known.weight() / self.crashes as f64,
            suspected_s: self.suspected.spread(),
            detected_s: self.detected.spread(),
            known_s: self.known.spread(),
            false_suspicions: rate(self.suspicions),
            false_deaths: rate(self.deaths),
            false_deaths_of_sound: rate(self.deaths_of_sound),
            false_deaths_among_sound: rate(self.deaths_among_sound),
            messages: f64::NAN,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary_actors::base::{DistributionSpec, Span};
    use volary_actors::layout::{GossipGroup, Neighbours, Origin};
    use volary_netem::{FaultSpec, Groups};

    /// Detection results of a run of one hour with four members under these faults. A note is (second, observer,
    /// subject, standing).
    fn found(faults: &str, notes: &[(u64, u32, u32, Standing)]) -> Detection {
        let every = DistributionSpec::Constant(Span::ZERO);
        let group = GossipGroup::new(4, Neighbours::Complete, every, Origin::Nowhere, Time::MAX, 1);
        let layout = Layout::new(1, 0, [0; 4]).with_gossip(group);
        let specs: Vec<FaultSpec> = serde_json::from_str(faults).unwrap();
        let mut groups = Groups::new(layout.endpoints());
        groups.number("node", layout.endpoint(layout.node(0)), 4);
        let faults = Faults::resolve(&specs, &groups, layout.endpoints()).unwrap();
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let part = MeasuredPart { from: at(0), until: at(3600) };
        let mut tracker = DetectionTracker::new(&layout, &faults, Some(part));
        for &(seconds, by, member, standing) in notes {
            tracker.note(at(seconds), layout.node(by), Note::Regards { member, standing });
        }
        let mut results = PolicyResults::default();
        tracker.close(Time::ZERO, at(3600), &mut results);
        results.sections.detection.unwrap()
    }

    /// Member 0 is down from 2 s on, member 1 from 6 s to 8 s, and member 3 pauses.
    #[test]
    fn crashes_and_false_deaths_are_counted_separately() {
        let faults = r#"[
            {"crash": {"who": ["node:0"], "at": "2s"}},
            {"crash": {"who": ["node:1"], "at": "6s", "for": "2s"}},
            {"pause": {"who": ["node:3"], "at": "1s", "for": "1s"}}
        ]"#;
        let notes = [
            // False: the subject is member 3, which has a pause, or member 2, which is sound.
            (1, 0, 3, Standing::Suspected),
            (1, 0, 3, Standing::Dead),
            (1, 3, 2, Standing::Dead),
            (1, 1, 2, Standing::Dead),
            (2, 0, 3, Standing::Alive),
            // Members 1 and 3 know of the crash by 5 s, and member 2 at 9 s.
            (3, 1, 0, Standing::Suspected),
            (4, 1, 0, Standing::Dead),
            (5, 3, 0, Standing::Dead),
            // Member 1 has restarted and forgotten the crash.
            (9, 2, 0, Standing::Dead),
            (10, 1, 0, Standing::Dead),
        ];
        let found = found(faults, &notes);
        assert_eq!((found.crashes, found.detected, found.known), (2, 0.5, 0.5));
        assert_eq!((found.suspected_s.max, found.detected_s.max, found.known_s.max), (1.0, 2.0, 8.0));
        // Four members and one hour.
        assert_eq!((found.false_suspicions, found.false_deaths), (0.25, 0.75));
        assert_eq!((found.false_deaths_of_sound, found.false_deaths_among_sound), (0.5, 0.0));
    }

    #[test]
    fn the_crash_of_a_member_declared_dead_is_detected_at_once() {
        let faults = r#"[{"crash": {"who": ["node:2"], "at": "3s"}}]"#;
        let before = (1, 1, 2, Standing::Dead);
        for notes in [vec![before], vec![before, (5, 0, 2, Standing::Suspected)]] {
            let found = found(faults, &notes);
            assert_eq!((found.crashes, found.detected, found.detected_s.max), (1, 1.0, 0.0), "{notes:?}");
        }
        let revised = found(faults, &[before, (2, 1, 2, Standing::Alive), (5, 1, 2, Standing::Dead)]);
        assert_eq!((revised.detected, revised.detected_s.max), (1.0, 2.0));
    }

    #[test]
    fn a_crash_can_become_known_without_a_further_note() {
        let faults = r#"[
            {"crash": {"who": ["node:2"], "at": "3s"}}, {"crash": {"who": ["node:3"], "at": "7s"}}
        ]"#;
        let dead = |at, by, member| (at, by, member, Standing::Dead);
        let of_both = found(faults, &[dead(1, 0, 2), dead(1, 1, 2), dead(8, 0, 3)]);
        assert_eq!(
            (of_both.known, of_both.known_s.max),
            (0.5, 4.0),
            "member 3 did not know of the crash of member 2 when it crashed itself"
        );
        let before = found(faults, &[dead(1, 0, 2), dead(1, 1, 2), dead(2, 3, 2)]);
        assert_eq!((before.known, before.known_s.max), (0.5, 0.0));
    }
}
