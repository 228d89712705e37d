//! The schedule of faults of a run, resolved to endpoints.

use volary_actors::base::{Endpoint, Span, Time};

use super::windows::Windows;
use super::{DegradeSpec, FaultSpec, PartitionSpec};
use crate::error::Error;
use crate::target::{Places, Target, resolve_all};

/// One outage of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crash {
    /// The endpoint that crashes.
    pub who: Endpoint,
    /// When it goes down.
    pub at: Time,
    /// When it comes back, empty; `None` if never.
    pub restart: Option<Time>,
}

/// All faults of a run. It is known from the start, so what happens to a message can be decided when it is
/// sent, even if the fault begins while the message is under way.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Faults {
    /// The number of endpoints it was resolved for.
    endpoints: u32,
    crashes: Vec<Crash>,
    outages: Windows,
    pauses: Windows,
    cuts: Vec<Cut>,
    degrades: Vec<Degrade>,
    heals_at: Time,
    /// Faults of the table that concern no endpoint.
    skipped: Vec<usize>,
}

/// The side of each endpoint in a partition or degradation: bit 0 for `a`, bit 1 for `b`.
type Sides = Vec<u8>;

#[derive(Clone, PartialEq, Debug)]
struct Cut {
    from: Time,
    until: Time,
    sides: Sides,
    one_way: bool,
}

#[derive(Clone, PartialEq, Debug)]
struct Degrade {
    from: Time,
    until: Time,
    sides: Sides,
    one_way: bool,
    effect: Degraded,
}

/// The effect of degradations on a transmission.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Degraded {
    /// Factor on the propagation delay.
    pub(crate) factor: f64,
    /// Probability of extra loss.
    pub(crate) loss: f64,
}

impl Faults {
    /// Resolves the faults of a `[network]` table for a run with that many endpoints. A fault that names only kinds
    /// that [are absent](Places::is_absent), or has a side of only such, is [skipped](Self::skipped).
    ///
    /// # Errors
    /// A target that matches nothing, an empty side, or an endpoint on both sides; keys start at `network`.
    pub fn resolve(specs: &[FaultSpec], places: &dyn Places, endpoints: u32) -> Result<Self, Error> {
        let mut faults = Self { endpoints, ..Self::default() };
        let (mut outages, mut pauses) = (Vec::new(), Vec::new());
        for (i, spec) in specs.iter().enumerate() {
            let key = format!("network.fault[{i}]");
            spec.check().map_err(|error| error.below(&key))?;
            let before = faults.cuts.len() + faults.degrades.len() + outages.len() + pauses.len();
            match spec {
                FaultSpec::Partition(p) => {
                    faults.cuts.extend(cut(p, places, endpoints, &format!("{key}.partition"))?);
                }
                FaultSpec::Degrade(d) => {
                    faults.degrades.extend(degrade(d, places, endpoints, &format!("{key}.degrade"))?);
                }
                FaultSpec::Crash(c) => {
                    let until = c.lasting.map_or(Time::MAX, |span| start(c.at) + span);
                    let who = resolve_all(places, &c.who, &format!("{key}.crash.who"))?;
                    outages.extend(who.into_iter().map(|who| (who.0, start(c.at), until)));
                }
                FaultSpec::Pause(p) => {
                    let who = resolve_all(places, &p.who, &format!("{key}.pause.who"))?;
                    pauses.extend(who.into_iter().map(|who| (who.0, start(p.at), start(p.at) + p.lasting)));
                }
            }
            if faults.cuts.len() + faults.degrades.len() + outages.len() + pauses.len() == before {
                faults.skipped.push(i);
                continue;
            }
            // A permanent crash has no end; nothing changes after its beginning.
            faults.heals_at = faults.heals_at.max(start(spec.at()));
        }
        faults.outages = Windows::new(outages, endpoints);
        faults.pauses = Windows::new(pauses, endpoints);
        faults.finish(endpoints);
        Ok(faults)
    }

    /// Derives the other fields from the windows.
    fn finish(&mut self, endpoints: u32) {
        for who in (0..endpoints).map(Endpoint) {
            for &(at, until) in self.outages.of(who.0) {
                self.crashes.push(Crash { who, at, restart: (until != Time::MAX).then_some(until) });
            }
        }
        self.crashes.sort_by_key(|crash| (crash.at, crash.who));
        let windows = self.outages.all().iter().chain(self.pauses.all()).map(|w| w.1);
        let ends =
            windows.chain(self.cuts.iter().map(|c| c.until)).chain(self.degrades.iter().map(|d| d.until));
        let last = ends.filter(|&end| end != Time::MAX).max();
        self.heals_at = self.heals_at.max(last.unwrap_or_default());
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.outages.is_empty() && self.pauses.is_empty() && self.cuts.is_empty() && self.degrades.is_empty()
    }

    /// The faults of the table, by index, that concern no endpoint of this run.
    pub fn skipped(&self) -> &[usize] {
        &self.skipped
    }

    /// The number of endpoints it was resolved for; `None` if there are no faults, which fits any number.
    pub(crate) fn endpoints(&self) -> Option<u32> {
        (!self.is_empty()).then_some(self.endpoints)
    }

    /// Every outage, by time and endpoint. Outages of an endpoint that overlap or touch are one.
    pub fn crashes(&self) -> &[Crash] {
        &self.crashes
    }

    /// The pauses of an endpoint: disjoint windows [from, until) in order.
    #[inline]
    pub fn pauses(&self, who: Endpoint) -> &[(Time, Time)] {
        self.pauses.of(who.0)
    }

    /// When an endpoint that is paused at `t` goes on; `t` itself if it is not paused.
    #[inline]
    pub fn resumes(&self, who: Endpoint, t: Time) -> Time {
        self.pauses.at(who.0, t).map_or(t, |(_, until)| until)
    }

    /// Whether an endpoint is up at `t`. It is down from the moment of a crash until just before its restart.
    #[inline]
    pub fn alive(&self, who: Endpoint, t: Time) -> bool {
        self.outages.at(who.0, t).is_none()
    }

    /// When the last fault has ended; the run's start if there are none. After it only endpoints that crashed
    /// for good are missing.
    pub const fn heals_at(&self) -> Time {
        self.heals_at
    }

    /// The first outage that begins after `after` and not later than `until`: its beginning and end.
    #[inline]
    pub fn crash_between(&self, who: Endpoint, after: Time, until: Time) -> Option<(Time, Time)> {
        let windows = self.outages.of(who.0);
        let next = windows.partition_point(|w| w.0 <= after);
        windows.get(next).copied().filter(|w| w.0 <= until)
    }

    /// Whether a partition separates `src` from `dst` at some moment of a transmission.
    pub(crate) fn cut(&self, src: Endpoint, dst: Endpoint, sent: Time, arrives: Time) -> bool {
        self.cuts
            .iter()
            .any(|c| c.from <= arrives && sent < c.until && crosses(&c.sides, c.one_way, src, dst))
    }

    /// The effect of degradations on a transmission sent at `t`, if any is active on the link.
    pub(crate) fn degraded(&self, src: Endpoint, dst: Endpoint, t: Time) -> Option<Degraded> {
        let mut sum: Option<Degraded> = None;
        for d in &self.degrades {
            if d.from <= t && t < d.until && crosses(&d.sides, d.one_way, src, dst) {
                let before = sum.unwrap_or(Degraded { factor: 1.0, loss: 0.0 });
                sum = Some(Degraded {
                    factor: before.factor * d.effect.factor,
                    loss: 1.0 - (1.0 - before.loss) * (1.0 - d.effect.loss),
                });
            }
        }
        sum
    }

    /// All degradations at once: no link is ever worse.
    pub(crate) fn worst(&self) -> Degraded {
        self.degrades.iter().fold(Degraded { factor: 1.0, loss: 0.0 }, |worst, d| Degraded {
            factor: worst.factor * d.effect.factor.max(1.0),
            loss: 1.0 - (1.0 - worst.loss) * (1.0 - d.effect.loss),
        })
    }

    /// Whether some degradation draws random numbers, so that messages must be counted.
    pub(crate) fn draws(&self) -> bool {
        self.degrades.iter().any(|d| d.effect.loss > 0.0)
    }
}

const A: u8 = 1;
const B: u8 = 2;

/// Whether a link leads from one side to the other: from `a` to `b`, or back unless only one way is meant.
fn crosses(sides: &[u8], one_way: bool, src: Endpoint, dst: Endpoint) -> bool {
    let (s, d) = (sides[src.index()], sides[dst.index()]);
    (s & A != 0 && d & B != 0) || (!one_way && s & B != 0 && d & A != 0)
}

/// An offset from the run's start as an instant.
const fn start(at: Span) -> Time {
    Time(at.0)
}

fn cut(spec: &PartitionSpec, places: &dyn Places, endpoints: u32, key: &str) -> Result<Option<Cut>, Error> {
    let sides = sides(&spec.a, spec.b.as_deref(), places, endpoints, key)?;
    let from = start(spec.at);
    Ok(sides.map(|sides| Cut { from, until: from + spec.lasting, sides, one_way: spec.one_way }))
}

fn degrade(
    spec: &DegradeSpec,
    places: &dyn Places,
    endpoints: u32,
    key: &str,
) -> Result<Option<Degrade>, Error> {
    let sides = sides(&spec.a, spec.b.as_deref(), places, endpoints, key)?;
    let from = start(spec.at);
    let effect = Degraded { factor: spec.delay_factor, loss: spec.loss.get() };
    Ok(sides.map(|sides| Degrade { from, until: from + spec.lasting, sides, one_way: spec.one_way, effect }))
}

/// Marks the side of each endpoint; `None` if one side is absent. No endpoint may be on both sides: the partition would
/// separate it from itself.
fn sides(
    a: &[Target],
    b: Option<&[Target]>,
    places: &dyn Places,
    endpoints: u32,
    key: &str,
) -> Result<Option<Sides>, Error> {
    let mut sides = vec![0; endpoints as usize];
    let a = resolve_all(places, a, &format!("{key}.a"))?;
    let b = b.map(|b| resolve_all(places, b, &format!("{key}.b"))).transpose()?;
    if a.is_empty() || b.as_ref().is_some_and(Vec::is_empty) {
        return Ok(None);
    }
    a.iter().for_each(|who| sides[who.index()] = A);
    match b {
        None => sides.iter_mut().filter(|side| **side == 0).for_each(|side| *side = B),
        Some(b) => b.iter().for_each(|who| sides[who.index()] |= B),
    }
    if sides.contains(&(A | B)) {
        return Err(Error::at(
            format!("{key}.b"),
            "someone is on both sides",
            "name disjoint groups, or leave `b` out for everyone else",
        ));
    }
    if !sides.contains(&B) {
        return Err(Error::at(
            format!("{key}.a"),
            "nobody is left for the other side",
            "name a smaller group",
        ));
    }
    Ok(Some(sides))
}

#[cfg(test)]
mod tests {
    use super::super::{CrashSpec, PauseSpec};
    use super::*;
    use crate::target::Groups;
    use crate::units::Probability;

    fn s(seconds: u64) -> Span {
        Span::from_secs(seconds)
    }

    fn t(seconds: u64) -> Time {
        Time::ZERO + s(seconds)
    }

    fn who(text: &str) -> Vec<Target> {
        vec![text.parse().unwrap()]
    }

    fn groups() -> Groups {
        let mut groups = Groups::new(6);
        groups.number("scheduler", Endpoint(0), 2);
        groups.number("node", Endpoint(2), 4);
        groups
    }

    fn resolve(specs: &[FaultSpec]) -> Result<Faults, Error> {
        Faults::resolve(specs, &groups(), 6)
    }

    #[test]
    fn overlapping_outages_are_one() {
        let crash = |w, at, lasting: Option<u64>| {
            FaultSpec::Crash(CrashSpec { who: who(w), at: s(at), lasting: lasting.map(s) })
        };
        let specs = [
            crash("node:1", 20, None),
            crash("node:0", 5, Some(5)),
            crash("node:0", 8, Some(7)),
            crash("node:0", 1, Some(1)),
        ];
        let faults = resolve(&specs).unwrap();
        let crash =
            |who, at, restart: Option<u64>| Crash { who: Endpoint(who), at: t(at), restart: restart.map(t) };
        assert_eq!(faults.crashes(), [crash(2, 1, Some(2)), crash(2, 5, Some(15)), crash(3, 20, None)]);
        assert_eq!(faults.heals_at(), t(20), "a crash for good changes nothing after its beginning");
        let down: Vec<_> = (0..25).filter(|&i| !faults.alive(Endpoint(2), t(i))).collect();
        assert_eq!(down, [1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
        assert!(!faults.alive(Endpoint(3), Time::MAX.min(t(1_000_000))));
        assert!(faults.alive(Endpoint(4), t(7)));
    }

    #[test]
    fn pauses_resume() {
        let pause = |at, lasting| {
            FaultSpec::Pause(PauseSpec { who: who("nodes:0-1"), at: s(at), lasting: s(lasting) })
        };
        let faults = resolve(&[pause(3, 2), pause(5, 1), pause(9, 1)]).unwrap();
        assert_eq!(faults.pauses(Endpoint(3)), [(t(3), t(6)), (t(9), t(10))]);
        assert_eq!(faults.resumes(Endpoint(3), t(4)), t(6));
        assert_eq!(faults.resumes(Endpoint(3), t(6)), t(6));
        assert_eq!(faults.resumes(Endpoint(4), t(4)), t(4), "nodes 2 and 3 are not paused");
        assert_eq!(faults.heals_at(), t(10));
    }

    fn partition(a: &str, b: Option<&str>, one_way: bool) -> FaultSpec {
        FaultSpec::Partition(PartitionSpec { a: who(a), b: b.map(who), at: s(10), lasting: s(5), one_way })
    }

    #[test]
    fn cuts_know_their_direction_and_time() {
        let faults = resolve(&[partition("schedulers", Some("node:0"), true)]).unwrap();
        let (scheduler, node, other) = (Endpoint(1), Endpoint(2), Endpoint(3));
        assert!(faults.cut(scheduler, node, t(10), t(10)));
        assert!(faults.cut(scheduler, node, t(9), t(10)), "what is under way is lost");
        assert!(!faults.cut(scheduler, node, t(8), t(9)) && !faults.cut(scheduler, node, t(15), t(15)));
        assert!(!faults.cut(node, scheduler, t(12), t(12)), "one way only");
        assert!(!faults.cut(scheduler, other, t(12), t(12)));
        let faults = resolve(&[partition("node:0", None, false)]).unwrap();
        assert!(faults.cut(node, other, t(12), t(12)) && faults.cut(other, node, t(12), t(12)));
        assert!(!faults.cut(scheduler, other, t(12), t(12)), "the others still talk");
    }

    fn slow(delay_factor: f64, loss: f64) -> DegradeSpec {
        DegradeSpec {
            a: who("node:0"),
            b: None,
            at: s(1),
            lasting: s(4),
            delay_factor,
            loss: Probability::new(loss).unwrap(),
            one_way: true,
        }
    }

    #[test]
    fn a_degradation_of_one_way_leaves_the_other_alone() {
        let faults = resolve(&[FaultSpec::Degrade(slow(3.0, 0.0))]).unwrap();
        let (node, other) = (Endpoint(2), Endpoint(4));
        assert_eq!(faults.degraded(node, other, t(1)).unwrap().factor, 3.0);
        assert_eq!(faults.degraded(other, node, t(1)), None);
    }

    #[test]
    fn degradations_add_up() {
        let degrade = |factor, loss| FaultSpec::Degrade(DegradeSpec { one_way: false, ..slow(factor, loss) });
        let faults = resolve(&[degrade(3.0, 0.5), degrade(2.0, 0.5)]).unwrap();
        let both = faults.degraded(Endpoint(4), Endpoint(2), t(1)).unwrap();
        assert_eq!((both.factor, both.loss), (6.0, 0.75));
        assert_eq!(faults.degraded(Endpoint(4), Endpoint(2), t(5)), None);
        assert_eq!(faults.degraded(Endpoint(4), Endpoint(3), t(1)), None);
        let error = resolve(&[degrade(1.0, 0.0)]).unwrap_err().to_string();
        assert!(error.starts_with("network.fault[0].degrade: it changes nothing"), "{error}");
    }

    /// A run of a policy that has no masters skips faults that only they would notice.
    #[test]
    fn faults_at_absent_kinds_are_skipped() {
        let mut groups = groups();
        groups.number_some("master", Endpoint(0), 0);
        let crash = |at: &[&str]| {
            let who = at.iter().flat_map(|at| who(at)).collect();
            FaultSpec::Crash(CrashSpec { who, at: s(50), lasting: None })
        };
        let specs = [
            crash(&["master:7"]),
            crash(&["masters", "node:1"]),
            partition("masters", None, false),
            partition("nodes", Some("masters"), false),
            partition("node:0", Some("node:1"), false),
        ];
        let faults = Faults::resolve(&specs, &groups, 6).unwrap();
        assert_eq!(faults.skipped(), [0, 2, 3]);
        assert_eq!((faults.crashes().len(), faults.cuts.len()), (1, 1));
        let none = Faults::resolve(&specs[..1], &groups, 6).unwrap();
        assert!(none.is_empty() && none.heals_at() == Time::ZERO, "it is as if there were none");
    }

    #[test]
    fn invalid_faults_are_refused_with_their_key() {
        for (spec, says) in [
            (
                partition("node:9", None, false),
                "network.fault[0].partition.a: `node:9` names nothing here; there are 4",
            ),
            (
                partition("nodes", Some("node:1"), false),
                "network.fault[0].partition.b: someone is on both sides",
            ),
            (partition("all", None, false), "network.fault[0].partition.a: nobody is left"),
        ] {
            let error = resolve(&[spec]).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
