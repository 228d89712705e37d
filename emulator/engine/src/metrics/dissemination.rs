//! Dissemination of updates among the members of a gossip group: deliveries, coverage, and ages of members' updates.
//!
//! A member *has* an update if it has received it or a newer one of the same origin. Deliveries and coverage count
//! updates made in the measured part of the run. The *version age* of a member is the number of updates of an origin
//! that it lacks (Yates 2021). Its *age of synchronisation* is the age of the oldest of these (Zhong, Yates and
//! Soljanin 2018). Its *age of information* is the age of the newest update that it has (Kaul, Yates and Gruteser
//! 2012). Caches of schedulers have the same measures; here they are integrated exactly over the measured part. Crashed
//! members are assumed to keep their updates, so their ages continue to grow.

use std::collections::BTreeMap;

use volary_actors::base::{ActorId, Time};
use volary_actors::layout::{GossipGroup, Layout, Role};
use volary_actors::machine::Note;
use volary_actors::message::Update;

use super::PolicyMetric;
use super::ages::{Lack, observed};
use super::gauge::Gauge;
use super::instants::{CacheSamples, Instants};
use super::recording::Recording;
use crate::results::{CacheRow, Dissemination, PolicyResults};
use crate::workload::MeasuredPart;

/// Folds notes about updates.
#[derive(Debug)]
pub struct SpreadTracker<'a> {
    layout: &'a Layout,
    part: Option<MeasuredPart>,
    origins: BTreeMap<u32, OriginTrack>,
    members: Vec<MemberAges>,
    /// Observations of some members over time; `None` if there are none.
    samples: Option<CacheSamples>,
    delivery: Gauge,
    full: Gauge,
    half: Gauge,
}

/// The updates of an origin.
#[derive(Debug)]
struct OriginTrack {
    updates: Vec<Spreading>,
    /// Progress of each member through the updates.
    held: Vec<Held>,
    /// Integral of the number of updates over the measured part up to `at`, s.
    versions: f64,
    at: Time,
}

/// An update that spreads among the members.
#[derive(Clone, Copy, Debug)]
struct Spreading {
    arose: Time,
    /// Number of members that have it, without the origin.
    reached: u32,
}

/// The progress of a member through the updates of an origin.
#[derive(Clone, Copy, Default, Debug)]
struct Held {
    number: u32,
    /// Time up to which its ages have been added.
    since: Time,
    /// The value of `OriginTrack::versions` at that time.
    versions: f64,
}

/// Integrals of the ages of a member, over origins.
#[derive(Clone, Copy, Default, Debug)]
struct MemberAges {
    versions: f64,
    synchronisation: f64,
    information: f64,
    informed_s: f64,
}

/// Maximum number of members that are observed over time.
const OBSERVED: u32 = 32;

impl MeasuredPart {
    fn clip(self, at: Time) -> Time {
        at.clamp(self.from, self.until)
    }

    pub(super) fn contains(self, at: Time) -> bool {
        (self.from..self.until).contains(&at)
    }
}

impl OriginTrack {
    fn new(members: u32) -> Self {
        Self {
            updates: Vec::new(),
            held: vec![Held::default(); members as usize],
            versions: 0.0,
            at: Time::ZERO,
        }
    }

    /// The integral of the number of updates up to a time in the measured part.
    fn versions(&self, part: MeasuredPart, at: Time) -> f64 {
        self.versions + self.updates.len() as f64 * at.since(part.clip(self.at)).as_secs_f64()
    }

    /// Adds an update that the origin makes now.
    fn arise(&mut self, part: MeasuredPart, now: Time) {
        (self.versions, self.at) = (self.versions(part, part.clip(now)), now);
        self.updates.push(Spreading { arose: now, reached: 0 });
    }

    /// The updates that a member lacks at an instant.
    fn lack(&self, member: u32, at: Time) -> Lack {
        let (had, missed) = self.updates.split_at(self.held[member as usize].number as usize);
        Lack::of(missed.iter().map(|update| update.arose), had.last().map(|update| update.arose), at)
    }

    /// Adds the ages of a member up to a time to `ages`.
    fn age(&mut self, part: MeasuredPart, member: usize, now: Time, ages: &mut MemberAges) {
        let Held { number, since, versions } = self.held[member];
        let (from, to) = (part.clip(since), part.clip(now));
        let lasted = to.since(from).as_secs_f64();
        let all = self.versions(part, to);
        ages.versions += all - versions - f64::from(number) * lasted;
        // The integral of the age of an update over [from, to].
        let aged = |update: &Spreading| {
            let [from, to] = [from, to].map(|at| at.since(update.arose).as_secs_f64());
            (to * to - from * from) / 2.0
        };
        let number = number as usize;
        ages.synchronisation += self.updates.get(number).map_or(0.0, aged);
        if let Some(newest) = number.checked_sub(1).map(|at| &self.updates[at]) {
            ages.information += aged(newest);
            ages.informed_s += lasted;
        }
        self.held[member].since = now;
        self.held[member].versions = all;
    }
}

impl<'a> SpreadTracker<'a> {
    /// A tracker of the group of a layout, in the measured part of a run with a seed; without a group or a measured
    /// part it does nothing.
    pub fn new(layout: &'a Layout, recording: Recording, seed: u64) -> Self {
        let part = recording.gossip;
        let members = if part.is_some() { layout.nodes() } else { 0 };
        let samples =
            |part: MeasuredPart| CacheSamples::new(Instants::new(seed, part.from, recording.cache_interval));
        Self {
            layout,
            part,
            origins: BTreeMap::new(),
            members: vec![MemberAges::default(); members as usize],
            samples: part.filter(|_| recording.observes_caches()).map(samples),
            delivery: Gauge::default(),
            full: Gauge::default(),
            half: Gauge::default(),
        }
    }

    fn number(&self, group: &GossipGroup, who: ActorId) -> Option<u32> {
        match self.layout.role(who) {
            Role::Node(number) => Some(number),
            Role::Scheduler(_) => Some(group.source()),
            Role::Client(_) | Role::Auxiliary(_) | Role::Worker { .. } => None,
        }
    }

    /// Checks that an actor can have an update; the error is the reason.
    pub fn check(&self, who: ActorId, update: Update) -> Result<(), String> {
        let Update { origin, number } = update;
        let newest = self.origins.get(&origin).map_or(0, |track| track.updates.len() as u32);
        let by = self.layout.gossip().and_then(|group| self.number(group, who));
        let can = match by {
            None => false,
            Some(by) if by == origin => number == newest + 1,
            Some(_) => (1..=newest).contains(&number),
        };
        if !can {
            return Err(format!("actor {} has update {number} of {origin}, which cannot be true", who.0));
        }
        Ok(())
    }

    /// The observations so far.
    pub(super) fn samples(&self) -> &[CacheRow] {
        self.samples.as_ref().map_or(&[], |samples| &samples.rows)
    }

    /// Observes members at the instants that are due.
    fn look(&mut self, now: Time) {
        let (Some(part), Some(group)) = (self.part, self.layout.gossip()) else { return };
        let Some(samples) = &mut self.samples else { return };
        let members = self.members.len() as u32;
        let step = members.div_ceil(OBSERVED) as usize;
        while let Some(at) = samples.due(now) {
            for member in (0..members).step_by(step).filter(|_| part.contains(at)) {
                let others = self.origins.iter().filter(|(origin, _)| **origin != member);
                let mut lacks: Vec<Lack> = others.map(|(_, track)| track.lack(member, at)).collect();
                // Means cover all origins, including those without an update so far.
                lacks.resize(
                    (group.origins() - u32::from(group.makes_updates(member))) as usize,
                    Lack::NOTHING,
                );
                samples.rows.extend((!lacks.is_empty()).then(|| observed(at, member, &lacks)));
            }
            samples.advance((members as usize).div_ceil(step));
        }
    }

    fn informed(&mut self, now: Time, who: ActorId, update: Update) {
        let (Some(part), Some(group)) = (self.part, self.layout.gossip()) else { return };
        self.look(now);
        let Some(member) = self.number(group, who) else { return };
        let members = group.members();
        let track = self.origins.entry(update.origin).or_insert_with(|| OriginTrack::new(members));
        if member == update.origin {
            track.arise(part, now);
            return;
        }
        let (member, had) = (member as usize, track.held[member as usize].number);
        if update.number <= had {
            return;
        }
        track.age(part, member, now, &mut self.members[member]);
        track.held[member].number = update.number;
        let receivers = group.receivers(update.origin);
        for update in &mut track.updates[had as usize..update.number as usize] {
            update.reached += 1;
            if part.contains(update.arose) {
                let after = now.since(update.arose).as_secs_f64();
                self.delivery.add(after, 1);
                if update.reached == receivers.div_ceil(2) {
                    self.half.add(after, 1);
                }
                if update.reached == receivers {
                    self.full.add(after, 1);
                }
            }
        }
    }
}

impl PolicyMetric for SpreadTracker<'_> {
    #[inline]
    fn note(&mut self, now: Time, who: ActorId, note: Note) {
        if let Note::Informed { update } = note {
            self.informed(now, who, update);
        }
    }

    fn close(mut self, _: Time, end: Time, results: &mut PolicyResults) {
        let (Some(part), Some(group)) = (self.part, self.layout.gossip()) else { return };
        self.look(part.clip(end));
        let (mut all, mut measured, mut expected, mut reached) = (0u64, 0u64, 0u64, 0u64);
        for (&origin, track) in &mut self.origins {
            for (member, ages) in self.members.iter_mut().enumerate().filter(|(at, _)| *at as u32 != origin) {
                track.age(part, member, end, ages);
            }
            all += track.updates.len() as u64;
            for update in track.updates.iter().filter(|update| part.contains(update.arose)) {
                measured += 1;
                expected += u64::from(group.receivers(origin));
                reached += u64::from(update.reached);
            }
        }
        let lasted = part.clip(end).since(part.from).as_secs_f64();
        let [mut versions, mut synchronisation, mut information] = <[Gauge; 3]>::default();
        for (member, ages) in (0..).zip(&self.members) {
            let origins = group.origins() - u32::from(group.makes_updates(member));
            if origins > 0 && lasted > 0.0 {
                let each = f64::from(origins) * lasted;
                versions.add(ages.versions / each, 1);
                synchronisation.add(ages.synchronisation / each, 1);
            }
            if ages.informed_s > 0.0 {
                information.add(ages.information / ages.informed_s, 1);
            }
        }
        results.deliveries = self.delivery.counts();
        results.looks = self.samples.map_or_else(Vec::new, |samples| samples.rows);
        results.sections.gossip = Some(Dissemination {
            updates: all,
            measured,
            coverage: reached as f64 / expected as f64,
            complete: self.full.weight() / measured as f64,
            delivery_s: self.delivery.delays(),
            half_s: self.half.spread(),
            full_s: self.full.spread(),
            version_age: versions.spread(),
            age_of_synchronisation_s: synchronisation.spread(),
            age_of_information_s: information.spread(),
            messages: f64::NAN,
            sent_bytes: f64::NAN,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary_actors::base::{DistributionSpec, Span};
    use volary_actors::layout::{Neighbours, Origin};

    /// A member lacks two updates from 1 s and 2 s on, and has both from 4 s on. The measured part is 1 s to 9 s.
    #[test]
    fn ages_are_integrated_over_the_measured_part() {
        let every = DistributionSpec::Constant(Span::from_secs(1));
        let group = GossipGroup::new(2, Neighbours::Complete, every, Origin::Member(0), Time::MAX, 1);
        let layout = Layout::new(1, 0, [0; 2]).with_gossip(group);
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let part = MeasuredPart { from: at(1), until: at(9) };
        let recording = Recording { gossip: Some(part), ..Recording::default() };
        let mut tracker = SpreadTracker::new(&layout, recording, 1);
        let (origin, member) = (layout.node(0), layout.node(1));
        let of = |number| Update { origin: 0, number };
        for (seconds, who, number) in [(1, origin, 1), (2, origin, 2), (4, member, 2), (4, member, 1)] {
            let update = of(number);
            assert_eq!(tracker.check(who, update), Ok(()));
            tracker.note(at(seconds), who, Note::Informed { update });
        }
        for (who, number) in [(member, 0), (member, 3), (origin, 2), (origin, 4), (layout.client(0), 1)] {
            assert!(tracker.check(who, of(number)).is_err());
        }
        let mut results = PolicyResults::default();
        tracker.close(Time::ZERO, at(20), &mut results);
        let found = results.sections.gossip.unwrap();
        assert_eq!((found.updates, found.measured, found.coverage, found.complete), (2, 2, 1.0, 1.0));
        let deliveries: Vec<_> =
            results.deliveries.iter().map(|(after, count)| (after.round(), *count)).collect();
        assert_eq!(deliveries, [(2.0, 1), (3.0, 1)]);
        assert_eq!((found.delivery_s.min, found.delivery_s.max, found.full_s.mean), (2.0, 3.0, 2.5));
        // One update is missing for a second and two for two seconds, of eight.
        assert_eq!(found.version_age.mean, 5.0 / 8.0);
        // The oldest missing update is up to three seconds old.
        assert_eq!(found.age_of_synchronisation_s.mean, 4.5 / 8.0);
        // The age grows from 2 s at 4 s to 7 s at 9 s.
        assert_eq!(found.age_of_information_s.mean, 4.5);
        // An instant of each second is observed; member 0 is the only origin.
        assert_eq!(results.looks.len(), 8);
        for (second, look) in (1_u32..).zip(&results.looks) {
            assert_eq!((look.receiver, look.time.floor()), (1, f64::from(second)));
            let versions = [1, 2, 2].get(second as usize - 1).copied().unwrap_or(0);
            let age = if versions > 0 { look.time - 1.0 } else { 0.0 };
            assert_eq!((look.in_flight, look.versions), (versions, f64::from(versions as u32)));
            assert!((look.age - age).abs() < 1e-9 && look.error.is_nan(), "{look:?}");
            let informed = (second >= 4).then_some(look.time - 2.0);
            assert!(informed.is_none_or(|age| (look.information - age).abs() < 1e-9));
            assert_eq!(look.information.is_nan(), informed.is_none());
        }
    }

    /// The ages of member 0 are means over the three others, two of which make no update.
    #[test]
    fn ages_of_a_member_are_means_over_all_origins() {
        let every = DistributionSpec::Constant(Span::from_secs(1));
        let group = GossipGroup::new(4, Neighbours::Complete, every, Origin::Members, Time::MAX, 1);
        let layout = Layout::new(1, 0, [0; 4]).with_gossip(group);
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let part = MeasuredPart { from: at(1), until: at(9) };
        let recording = Recording { gossip: Some(part), ..Recording::default() };
        let mut tracker = SpreadTracker::new(&layout, recording, 1);
        let update = Update { origin: 1, number: 1 };
        tracker.note(at(3), layout.node(1), Note::Informed { update });
        let mut results = PolicyResults::default();
        tracker.close(Time::ZERO, at(20), &mut results);
        let of_first: Vec<_> = results.looks.iter().filter(|look| look.receiver == 0).collect();
        assert_eq!(of_first.len(), 8);
        for look in of_first {
            let age = (look.time - 3.0).max(0.0) / 3.0;
            assert!((look.age - age).abs() < 1e-9, "{look:?}");
        }
    }
}
