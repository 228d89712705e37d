//! Scheduled faults: the tables `[[network.fault]]`, and the schedule made from them, resolved to endpoints.
//!
//! A fault is active from `at` until just before `at + for`, and then heals by itself. A window is the time in which a
//! state applies to a unit, which is an endpoint or a node.

pub mod target;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volary_actors::base::{Endpoint, Span, Time};

use crate::error::Error;
use crate::faults::target::{Groups, Target, resolve_all};
use crate::units::Probability;

/// One `[[network.fault]]`: a one-key table that names the kind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultSpec {
    /// Two groups cannot reach each other.
    Partition(PartitionSpec),
    /// Endpoints stop and lose their state.
    Crash(CrashSpec),
    /// Hosts stall: messages, timers and cores wait.
    Pause(PauseSpec),
    /// Links become slow or lossy.
    Degrade(DegradeSpec),
}

/// A partition between `a` and `b`. Messages in flight at its start are lost as well.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartitionSpec {
    /// Endpoints of one side.
    pub a: Vec<Target>,
    /// Endpoints of the other side. Default: all other endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<Vec<Target>>,
    /// Start of the partition, counted from the run's start.
    pub at: Span,
    /// Duration of the partition.
    #[serde(rename = "for")]
    pub lasting: Span,
    /// Only messages from `a` to `b` are lost; messages from `b` to `a` pass.
    #[serde(default)]
    pub one_way: bool,
}

/// A crash. Messages in flight to a crashing endpoint never reach its next incarnation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrashSpec {
    /// The endpoints that crash.
    pub who: Vec<Target>,
    /// Time of the crash, counted from the run's start.
    pub at: Span,
    /// Time for which the endpoints stay down. Default: for ever.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Span>,
}

/// A pause. Nothing is lost, only delayed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseSpec {
    /// The endpoints that stall.
    pub who: Vec<Target>,
    /// Start of the pause, counted from the run's start.
    pub at: Span,
    /// Duration of the pause.
    #[serde(rename = "for")]
    pub lasting: Span,
}

/// A degradation of the links between `a` and `b`, which slow down or lose more. It affects messages sent while it
/// lasts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DegradeSpec {
    /// Endpoints of one side.
    pub a: Vec<Target>,
    /// Endpoints of the other side. Default: all other endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<Vec<Target>>,
    /// Start of the degradation, counted from the run's start.
    pub at: Span,
    /// Duration of the degradation.
    #[serde(rename = "for")]
    pub lasting: Span,
    /// Factor on propagation delays. Default: 1.
    #[serde(default = "one")]
    pub delay_factor: f64,
    /// Loss in addition to the link's own. Default: 0.
    #[serde(default)]
    pub loss: Probability,
    /// Only messages from `a` to `b` are affected; messages from `b` to `a` are not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_way: bool,
}

/// Limit on the factor on delays; a larger factor would stall a message for the whole run.
const MOST_FACTOR: f64 = 1e9;

const fn one() -> f64 {
    1.0
}

impl FaultSpec {
    /// Kind of the fault, as in the file.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Partition(_) => "partition",
            Self::Crash(_) => "crash",
            Self::Pause(_) => "pause",
            Self::Degrade(_) => "degrade",
        }
    }

    /// Start of the fault, counted from the run's start.
    pub const fn at(&self) -> Span {
        match self {
            Self::Partition(fault) => fault.at,
            Self::Crash(fault) => fault.at,
            Self::Pause(fault) => fault.at,
            Self::Degrade(fault) => fault.at,
        }
    }

    /// Lists of the fault's targets, each with its key below [`kind`](Self::kind).
    pub fn targets(&self) -> impl Iterator<Item = (&'static str, &[Target])> {
        let (first, second) = match self {
            Self::Crash(c) => (("who", &c.who[..]), None),
            Self::Pause(p) => (("who", &p.who[..]), None),
            Self::Partition(p) => (("a", &p.a[..]), p.b.as_deref().map(|b| ("b", b))),
            Self::Degrade(d) => (("a", &d.a[..]), d.b.as_deref().map(|b| ("b", b))),
        };
        std::iter::once(first).chain(second)
    }

    /// Checks that need no resolved targets. Keys are relative to the fault.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let lasts = |kind: &str, span: Span| {
            if span == Span::ZERO {
                return Err(Error::at(format!("{kind}.for"), "`for` is zero", "write for example \"5s\""));
            }
            Ok(())
        };
        match self {
            Self::Partition(p) => lasts("partition", p.lasting),
            Self::Crash(c) => c.lasting.map_or(Ok(()), |span| lasts("crash", span)),
            Self::Pause(p) => lasts("pause", p.lasting),
            Self::Degrade(d) => {
                lasts("degrade", d.lasting)?;
                if !(0.0..=MOST_FACTOR).contains(&d.delay_factor) {
                    return Err(Error::at(
                        "degrade.delay_factor",
                        format!("{} is not a factor between 0 and {MOST_FACTOR:e}", d.delay_factor),
                        "write for example 10",
                    ));
                }
                if d.delay_factor == 1.0 && d.loss.is_zero() {
                    return Err(Error::at("degrade", "no change is given", "set `delay_factor` or `loss`"));
                }
                Ok(())
            }
        }
    }
}

/// One outage of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crash {
    /// The endpoint that crashes.
    pub who: Endpoint,
    /// Time at which the endpoint goes down.
    pub at: Time,
    /// Time at which the endpoint comes back, without state; `None` if it never does.
    pub restart: Option<Time>,
}

/// All faults of a run. They are known from the start. The fate of a message can therefore be decided when it is sent,
/// even if a fault begins while it is in flight.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Faults {
    /// The number of endpoints for which the faults were resolved.
    endpoints: u32,
    crashes: Vec<Crash>,
    outages: Windows,
    pauses: Windows,
    cuts: Vec<Cut>,
    degrades: Vec<Degrade>,
    heals_at: Time,
    /// Indices of the configured faults that affect no endpoint.
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
    /// Resolves the faults of a `[network]` table for a run with this number of endpoints. A fault is
    /// [skipped](Self::skipped) if it, or one of its sides, names only kinds that [are absent](Groups::is_absent).
    ///
    /// # Errors
    /// An [`Error`] for a target that does not exist, an empty side, or an endpoint on both sides. Keys start at
    /// `network`.
    pub fn resolve(specs: &[FaultSpec], places: &Groups, endpoints: u32) -> Result<Self, Error> {
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
            // A permanent crash has no end, and nothing changes after its start.
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
        let windows = self.outages.windows.iter().chain(&self.pauses.windows).map(|w| w.1);
        let ends =
            windows.chain(self.cuts.iter().map(|c| c.until)).chain(self.degrades.iter().map(|d| d.until));
        let last = ends.filter(|&end| end != Time::MAX).max();
        self.heals_at = self.heals_at.max(last.unwrap_or_default());
    }

    /// Whether there are no faults.
    pub const fn is_empty(&self) -> bool {
        self.outages.is_empty() && self.pauses.is_empty() && self.cuts.is_empty() && self.degrades.is_empty()
    }

    /// Indices of the configured faults that affect no endpoint of this run.
    pub fn skipped(&self) -> &[usize] {
        &self.skipped
    }

    /// The number of endpoints for which the faults were resolved; `None` if there are no faults, which fits any
    /// number.
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

    /// The time at which an endpoint that is paused at `t` resumes; `t` itself if it is not paused.
    #[inline]
    pub fn resumes(&self, who: Endpoint, t: Time) -> Time {
        self.pauses.at(who.0, t).map_or(t, |(_, until)| until)
    }

    /// Whether an endpoint is up at `t`. It is down from the moment of a crash until just before its restart.
    #[inline]
    pub fn alive(&self, who: Endpoint, t: Time) -> bool {
        self.outages.at(who.0, t).is_none()
    }

    /// Start of the outage of an endpoint that is down at `t`.
    pub fn down_since(&self, who: Endpoint, t: Time) -> Option<Time> {
        self.outages.at(who.0, t).map(|(from, _)| from)
    }

    /// Whether a fault is aimed at an endpoint: it crashes or pauses, or is in `a` of a partition or degradation.
    pub fn strikes(&self, who: Endpoint) -> bool {
        let mut sides = self.cuts.iter().map(|cut| &cut.sides).chain(self.degrades.iter().map(|d| &d.sides));
        !self.outages.of(who.0).is_empty()
            || !self.pauses.of(who.0).is_empty()
            || sides.any(|sides| sides[who.index()] & A != 0)
    }

    /// Time at which the last fault has ended; the run's start if there are no faults. After this time only permanently
    /// crashed endpoints are missing.
    pub const fn heals_at(&self) -> Time {
        self.heals_at
    }

    /// The first outage that begins after `after` and not later than `until`: its start and end.
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

    /// The combination of all degradations, an upper bound for every link at any time.
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

/// Whether a link leads from one side to the other: from `a` to `b`, or, unless the fault is `one_way`, from `b` to
/// `a`.
fn crosses(sides: &[u8], one_way: bool, src: Endpoint, dst: Endpoint) -> bool {
    let (s, d) = (sides[src.index()], sides[dst.index()]);
    (s & A != 0 && d & B != 0) || (!one_way && s & B != 0 && d & A != 0)
}

/// An offset from the run's start as an instant.
const fn start(at: Span) -> Time {
    Time(at.0)
}

fn cut(spec: &PartitionSpec, places: &Groups, endpoints: u32, key: &str) -> Result<Option<Cut>, Error> {
    let sides = sides(&spec.a, spec.b.as_deref(), places, endpoints, key)?;
    let from = start(spec.at);
    Ok(sides.map(|sides| Cut { from, until: from + spec.lasting, sides, one_way: spec.one_way }))
}

fn degrade(spec: &DegradeSpec, places: &Groups, endpoints: u32, key: &str) -> Result<Option<Degrade>, Error> {
    let sides = sides(&spec.a, spec.b.as_deref(), places, endpoints, key)?;
    let from = start(spec.at);
    let effect = Degraded { factor: spec.delay_factor, loss: spec.loss.get() };
    Ok(sides.map(|sides| Degrade { from, until: from + spec.lasting, sides, one_way: spec.one_way, effect }))
}

/// Marks the side of each endpoint; `None` if one side is absent. No endpoint may be on both sides, because the
/// partition would separate it from itself.
fn sides(
    a: &[Target],
    b: Option<&[Target]>,
    places: &Groups,
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
            "an endpoint is on both sides",
            "name disjoint groups, or remove `b` to select all other endpoints",
        ));
    }
    if !sides.contains(&B) {
        return Err(Error::at(
            format!("{key}.a"),
            "no endpoint is left for the other side",
            "name a smaller group",
        ));
    }
    Ok(Some(sides))
}

/// Disjoint windows [from, until) of each unit in order; empty if no unit has any.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Windows {
    /// Index of each unit's first window; the last entry is the number of windows.
    first: Vec<u32>,
    windows: Vec<(Time, Time)>,
}

impl Windows {
    /// Sorts windows of units below `units` by unit and time, and joins windows that overlap or touch.
    pub fn new(all: impl IntoIterator<Item = (u32, Time, Time)>, units: u32) -> Self {
        let mut all: Vec<_> = all.into_iter().collect();
        if all.is_empty() {
            return Self::default();
        }
        all.sort_unstable();
        all.dedup_by(|next, kept| {
            let touches = next.0 == kept.0 && next.1 <= kept.2;
            if touches {
                kept.2 = kept.2.max(next.2);
            }
            touches
        });
        let first = (0..=units).map(|unit| all.partition_point(|window| window.0 < unit) as u32).collect();
        Self { first, windows: all.into_iter().map(|(_, from, until)| (from, until)).collect() }
    }

    /// The windows of a unit.
    #[inline]
    pub fn of(&self, unit: u32) -> &[(Time, Time)] {
        if self.windows.is_empty() {
            return &[];
        }
        let unit = unit as usize;
        &self.windows[self.first[unit] as usize..self.first[unit + 1] as usize]
    }

    /// The windows of a unit that end after `t`.
    #[inline]
    pub fn after(&self, unit: u32, t: Time) -> &[(Time, Time)] {
        let windows = self.of(unit);
        &windows[windows.partition_point(|window| window.1 <= t)..]
    }

    /// The window that contains `t`.
    #[inline]
    pub fn at(&self, unit: u32, t: Time) -> Option<(Time, Time)> {
        self.after(unit, t).first().copied().filter(|window| window.0 <= t)
    }

    /// Whether no unit has a window.
    pub const fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }
}

#[cfg(test)]
mod tests;
