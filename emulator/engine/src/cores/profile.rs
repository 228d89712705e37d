//! A profile under a seed: the interference of every core, stretch by stretch.

use volary_actors::base::{Address, Purpose, Span, Time};

use super::config::{Bernoulli, Renewal, Scope, Scripted};
use super::integral::{CoreRate, WorkIntegral};
use super::load::{self, Profile};
use super::process::{Bursts, Cursor, Process, Runs, Unit};
use super::table::CoreTable;

/// Address of the draw for a unit as a whole; slots and bursts are numbered from zero.
const WHOLE_UNIT: u64 = u64::MAX;

/// A profile under a seed: the interference of a run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SeededProfile {
    kind: Kind,
    base: Address,
    scope: Scope,
    from: u64,
    until: u64,
    affected: f64,
}

#[derive(Clone, PartialEq, Debug)]
enum Kind {
    Bernoulli(Bernoulli),
    Markov(Runs),
    Renewal(Renewal),
    Scripted(Scripted),
    Trace(Bursts),
}

/// Evaluates an expression with the process of any kind. Each arm is compiled for its own process, so that a loop over
/// slots inside it has no branch on the kind.
macro_rules! with {
    ($kind:expr, $process:ident => $body:expr) => {
        match $kind {
            Kind::Bernoulli($process) => $body,
            Kind::Markov($process) => $body,
            Kind::Renewal($process) => $body,
            Kind::Scripted($process) => $body,
            Kind::Trace($process) => $body,
        }
    };
}

impl SeededProfile {
    pub(super) fn new(profile: &Profile, seed: u64) -> Self {
        let kind = match profile.process.clone() {
            load::ProcessConfig::Bernoulli(p) => Kind::Bernoulli(p),
            load::ProcessConfig::Markov(p) => Kind::Markov(Runs::new(p)),
            load::ProcessConfig::Renewal(p) => Kind::Renewal(p),
            load::ProcessConfig::Scripted(p) => Kind::Scripted(p),
            load::ProcessConfig::Trace(rows) => Kind::Trace(Bursts(rows)),
        };
        Self {
            kind,
            base: Address::new(seed, Purpose::Interference),
            scope: profile.scope,
            from: profile.from.0,
            until: profile.until.0,
            affected: profile.affected,
        }
    }

    /// Whether storing cursors makes queries faster.
    pub(super) const fn remembers(&self) -> bool {
        const fn ask<P: Process>(_: &P) -> bool {
            P::REMEMBERS
        }
        with!(&self.kind, process => ask(process))
    }

    /// The unit whose process a core follows; `None` if the unit takes no part.
    pub(super) fn unit(&self, table: &CoreTable, core: u32) -> Option<Unit> {
        let id = match self.scope {
            Scope::Core => core,
            Scope::Node => table.node(core),
            Scope::Rack => table.rack(core),
        };
        let address = self.base.at(u64::from(id));
        let takes_part = self.affected >= 1.0 || address.at(WHOLE_UNIT).unit() < self.affected;
        takes_part.then_some(Unit { id, address })
    }

    /// The stretch of the process at `at` or, outside the window, at its edge. `known` as in [`Process::locate`].
    pub(super) fn locate(&self, unit: Unit, at: u64, known: Cursor) -> Cursor {
        with!(&self.kind, process => process.locate(unit, at.clamp(self.from, self.until), known))
    }

    /// Advances `integral` at the rate of a core until `limit` or until no work is left. `cursor` is the stretch in
    /// which the integral begins, or an earlier one, and is advanced as well.
    pub(super) fn work(
        &self,
        unit: Unit,
        cursor: &mut Cursor,
        rate: CoreRate,
        integral: &mut WorkIntegral,
        limit: u64,
    ) {
        let opens = self.from.min(limit);
        if integral.at < opens {
            integral.work(rate.healthy, opens);
        }
        let closes = self.until.min(limit);
        with!(&self.kind, process => {
            if cursor.end <= integral.at {
                *cursor = process.locate(unit, integral.at, *cursor); // a pause may be in between
            }
            while !integral.done() && integral.at < closes {
                if cursor.end <= integral.at {
                    process.stride(unit, cursor, rate, integral, closes);
                    *cursor = process.follow(unit, cursor);
                }
                integral.work(rate.slowed(cursor.slowdown), cursor.end.clamp(integral.at, closes));
            }
        });
        if !integral.done() && integral.at < limit {
            integral.work(rate.healthy, limit);
        }
    }

    /// The slowdown of a unit at `at`: σ ≥ 1, or 1.
    pub(super) fn slowdown(&self, unit: Unit, at: u64, known: Cursor) -> f64 {
        if (self.from..self.until).contains(&at) { self.locate(unit, at, known).slowdown } else { 1.0 }
    }

    /// The bursts of a unit that overlap [from, to), clipped to it. `known` as in [`Process::locate`].
    pub(super) fn bursts(&self, unit: Unit, known: Cursor, from: Time, to: Time) -> BurstIter<'_> {
        let (at, to) = (from.0.max(self.from), to.0.min(self.until));
        let cursor = if at < to { Some(self.locate(unit, at, known)) } else { None };
        BurstIter { profile: self, unit, at, to, cursor }
    }
}

/// A time in which a core is degraded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Burst {
    /// When it begins.
    pub start: Time,
    /// When it ends.
    pub end: Time,
    /// σ: the core works at 1 / σ of its speed.
    pub slowdown: f64,
}

impl Burst {
    /// Its length.
    #[must_use]
    pub fn length(&self) -> Span {
        self.end - self.start
    }
}

/// Bursts in order of time, neighbours of equal slowdown joined.
#[derive(Clone, Debug)]
pub(super) struct BurstIter<'a> {
    profile: &'a SeededProfile,
    unit: Unit,
    at: u64,
    to: u64,
    /// The current stretch; `None` at the end.
    cursor: Option<Cursor>,
}

impl Iterator for BurstIter<'_> {
    type Item = Burst;

    fn next(&mut self) -> Option<Burst> {
        let mut found: Option<Burst> = None;
        while let Some(cursor) = self.cursor {
            let joins = found.is_none_or(|burst| burst.slowdown == cursor.slowdown);
            if found.is_some() && !joins {
                break;
            }
            let end = cursor.end.min(self.to);
            if cursor.slowdown > 1.0 && end > self.at {
                let start = found.map_or(Time(self.at), |burst| burst.start);
                found = Some(Burst { start, end: Time(end), slowdown: cursor.slowdown });
            }
            self.at = end.max(self.at);
            let ended = cursor.end >= self.to || cursor.end == u64::MAX;
            self.cursor =
                (!ended).then(|| with!(&self.profile.kind, process => process.follow(self.unit, &cursor)));
        }
        found
    }
}
