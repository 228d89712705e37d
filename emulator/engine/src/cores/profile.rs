//! Profiles: the processes x_i(t), degraded and healthy stretches of each unit, with their window and under a seed.
//!
//! A process is a pure function of (seed, unit, k), where k counts slots or bursts. A [`Cursor`] stored between queries
//! only saves counting again from the start.

use std::io;
use std::iter;
use std::path::Path;
use std::sync::Arc;

use volary_actors::base::{Address, DistributionSpec, Purpose, Span, Time};

use super::config::{
    Bernoulli, Interference, MOST_SLOWDOWN, Markov, ProfileError, Renewal, Scope, Scripted, TraceRow,
};
use super::integral::{CoreRate, WorkIntegral};
use super::table::CoreTable;
use crate::workload::Kinds;

/// The unit of a process: a core, a node or a rack.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScopeUnit {
    pub(super) id: u32,
    pub(super) address: Address,
    /// Offset into a trace that repeats, ns: the unit reads the trace at `at + ahead`.
    ahead: u64,
}

/// A stretch of time in which the slowdown of a unit does not change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Cursor {
    /// Number of the slot, run or burst, as the process counts them.
    index: u64,
    /// The stretch is [start, end), in ns; `end` is the maximum if no stretch follows.
    pub(super) start: u64,
    pub(super) end: u64,
    /// Slowdown σ; 1 in a healthy stretch.
    pub(super) slowdown: f64,
}

impl Cursor {
    /// The initial cursor, later than every query, so that the first query counts from the start.
    pub(super) const NOWHERE: Self = Self { index: 0, start: u64::MAX, end: u64::MAX, slowdown: 1.0 };

    const fn healthy(index: u64, start: u64, end: u64) -> Self {
        Self { index, start, end, slowdown: 1.0 }
    }
}

/// A process of one kind; `at`, `start` and `end` are nanoseconds since the run's start.
pub(super) trait Process {
    /// Whether locating a stretch is slow without the cursor of an earlier stretch.
    const REMEMBERS: bool;

    /// The stretch that contains `at`. `known` is any stretch of this unit, or [`Cursor::NOWHERE`].
    fn locate(&self, unit: ScopeUnit, at: u64, known: Cursor) -> Cursor;

    /// The stretch that follows `cursor`.
    fn follow(&self, unit: ScopeUnit, cursor: &Cursor) -> Cursor {
        self.locate(unit, cursor.end, *cursor)
    }

    /// Advances through many stretches at once. `integral` is at the end of `cursor`; both may be moved to the end of a
    /// later stretch if neither the work nor `limit` ends before it.
    fn stride(&self, _: ScopeUnit, _: &mut Cursor, _: CoreRate, _: &mut WorkIntegral, _limit: u64) {}
}

/// A process of any kind.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum AnyProcess {
    Bernoulli(Bernoulli),
    Markov(Runs),
    Renewal(Renewal),
    Scripted(Scripted),
    Trace(Bursts),
}

/// Evaluates an expression with the process of any kind. Each arm is compiled for its own process, so that a loop over
/// slots inside it has no branch on the kind.
macro_rules! with {
    ($any:expr, $process:ident => $body:expr) => {
        match $any {
            AnyProcess::Bernoulli($process) => $body,
            AnyProcess::Markov($process) => $body,
            AnyProcess::Renewal($process) => $body,
            AnyProcess::Scripted($process) => $body,
            AnyProcess::Trace($process) => $body,
        }
    };
}

/// The slowdown σ of slot, run or burst k. The address differs from those of other draws for k.
fn sample(distribution: &DistributionSpec<f64>, unit: ScopeUnit, k: u64) -> f64 {
    // Skips computing the address of a draw that is not needed.
    if let DistributionSpec::Constant(value) = distribution {
        return *value;
    }
    distribution.sample(&mut unit.address.at(k).at(1).draw()).clamp(1.0, MOST_SLOWDOWN)
}

/// Slot k with the given slowdown.
const fn slot(k: u64, length: Span, slowdown: f64) -> Cursor {
    let start = k * length.0;
    Cursor { index: k, start, end: start.saturating_add(length.0), slowdown }
}

/// Strides shorter than this many slots are not worth setting up.
const STRIDE: u64 = 4;

impl Bernoulli {
    fn is_degraded(&self, unit: ScopeUnit, k: u64) -> bool {
        unit.address.at(k).unit() < self.probability
    }

    fn slot(&self, unit: ScopeUnit, k: u64) -> Cursor {
        let slowdown = if self.is_degraded(unit, k) { sample(&self.slowdown, unit, k) } else { 1.0 };
        slot(k, self.slot, slowdown)
    }
}

impl Process for Bernoulli {
    const REMEMBERS: bool = false;

    fn locate(&self, unit: ScopeUnit, at: u64, _: Cursor) -> Cursor {
        self.slot(unit, at / self.slot.0)
    }

    fn follow(&self, unit: ScopeUnit, cursor: &Cursor) -> Cursor {
        self.slot(unit, cursor.index + 1)
    }

    /// With equal slowdowns only the number of degraded slots matters, and counting them needs no branch: a slot costs
    /// one hash.
    fn stride(
        &self,
        unit: ScopeUnit,
        cursor: &mut Cursor,
        rate: CoreRate,
        integral: &mut WorkIntegral,
        limit: u64,
    ) {
        let (DistributionSpec::Constant(slowdown), length) = (&self.slowdown, self.slot.0) else { return };
        loop {
            let count = integral.fit(length, rate.healthy).min((limit - integral.at) / length);
            if count < STRIDE {
                return;
            }
            let first = cursor.index + 1;
            let slow = (first..first + count).map(|k| u64::from(self.is_degraded(unit, k))).sum();
            integral.stride(length, (count, rate.healthy), (slow, rate.slowed(*slowdown)));
            *cursor = slot(first + count - 1, self.slot, 1.0);
        }
    }
}

impl Scripted {
    fn slot(&self, unit: ScopeUnit, k: u64) -> Cursor {
        let row = self.rows.get(unit.id as usize).map_or(&[][..], Vec::as_slice);
        let bit = match row.len() as u64 {
            0 => None,
            n if self.repeat => Some(row[(k % n) as usize]),
            n if k < n => Some(row[k as usize]),
            _ => None,
        };
        match bit {
            None => Cursor::healthy(k, k * self.slot.0, u64::MAX),
            Some(0) => slot(k, self.slot, 1.0),
            Some(_) => slot(k, self.slot, sample(&self.slowdown, unit, k)),
        }
    }
}

impl Process for Scripted {
    const REMEMBERS: bool = false;

    fn locate(&self, unit: ScopeUnit, at: u64, _: Cursor) -> Cursor {
        self.slot(unit, at / self.slot.0)
    }

    fn follow(&self, unit: ScopeUnit, cursor: &Cursor) -> Cursor {
        self.slot(unit, cursor.index + 1)
    }
}

/// A Markov chain, kept as alternating runs of geometric length. Its cost grows with runs and not with slots.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Runs {
    pub(super) chain: Markov,
    /// 1 / ln(1 − p) for the end of a healthy run and of a burst.
    inverse_log: [f64; 2],
}

impl Runs {
    pub(super) fn new(chain: Markov) -> Self {
        let inverse_log = [chain.p_on, chain.p_off].map(|p| (-p).ln_1p().recip());
        Self { chain, inverse_log }
    }

    /// Whether run 0 is degraded: the chain starts in its stationary distribution; a chain that never moves starts
    /// healthy.
    fn starts_degraded(&self, unit: ScopeUnit) -> bool {
        let Markov { p_on, p_off, .. } = self.chain;
        p_on > 0.0 && unit.address.at(0).unit() * (p_on + p_off) < p_on
    }

    /// Run `k`, which starts at `start`. Run k draws at k + 1, the initial state at 0.
    fn run(&self, unit: ScopeUnit, k: u64, start: u64, degraded: bool) -> Cursor {
        // The length is geometric on 1, 2, …. A chain that stays with probability 1 has 1 / ln 1 = −∞, and a chain that
        // leaves at once has 1 / ln 0 = −0.
        let stays = (-unit.address.at(k + 1).unit()).ln_1p() * self.inverse_log[usize::from(degraded)];
        let slots = if stays.is_nan() { u64::MAX } else { (stays as u64).saturating_add(1) };
        let end = start.saturating_add(slots.saturating_mul(self.chain.slot.0));
        let slowdown = if degraded { sample(&self.chain.slowdown, unit, k + 1) } else { 1.0 };
        Cursor { index: k, start, end, slowdown }
    }
}

impl Process for Runs {
    const REMEMBERS: bool = true;

    fn locate(&self, unit: ScopeUnit, at: u64, known: Cursor) -> Cursor {
        let mut cursor =
            if known.start <= at { known } else { self.run(unit, 0, 0, self.starts_degraded(unit)) };
        while cursor.end <= at && cursor.end < u64::MAX {
            cursor = self.follow(unit, &cursor);
        }
        cursor
    }

    fn follow(&self, unit: ScopeUnit, cursor: &Cursor) -> Cursor {
        let k = cursor.index + 1;
        // The slowdown of a burst may be 1, so it does not show whether the run is a burst.
        let degraded = self.starts_degraded(unit) ^ (k % 2 == 1);
        self.run(unit, k, cursor.end, degraded)
    }
}

impl Renewal {
    /// Stretch `k`, which starts at `start`. Even stretches are gaps, odd stretches are bursts.
    fn stretch(&self, unit: ScopeUnit, k: u64, start: u64) -> Cursor {
        let burst = k % 2 == 1;
        let distribution = if burst { &self.burst } else { &self.gap };
        let length = distribution.sample(&mut unit.address.at(k).draw());
        let slowdown = if burst { sample(&self.slowdown, unit, k) } else { 1.0 };
        Cursor { index: k, start, end: start.saturating_add(length.0), slowdown }
    }
}

impl Process for Renewal {
    const REMEMBERS: bool = true;

    fn locate(&self, unit: ScopeUnit, at: u64, known: Cursor) -> Cursor {
        let mut cursor = if known.start <= at { known } else { self.stretch(unit, 0, 0) };
        while cursor.end <= at && cursor.end < u64::MAX {
            cursor = self.stretch(unit, cursor.index + 1, cursor.end);
        }
        cursor
    }
}

/// Bursts of a trace.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Bursts {
    /// All bursts, sorted by (unit, start) and without overlaps.
    pub(super) rows: Vec<TraceRow>,
    /// The time after which the bursts begin again, at or after the end of every row; `None` for bursts without
    /// repetition.
    pub(super) period: Option<Span>,
    /// Number of units of the trace, which the units of the cluster use in turn. `None` if each unit of the cluster
    /// follows the unit of the same number.
    pub(super) spread: Option<u32>,
}

impl Bursts {
    /// Mean time from one burst to the next, s, of the unit with most bursts; infinite without repetition.
    pub(super) fn stretch_s(&self) -> f64 {
        let units = self.rows.chunk_by(|a, b| a.unit == b.unit);
        let most = units.map(<[TraceRow]>::len).max().unwrap_or(0);
        self.period.map_or(f64::INFINITY, |period| period.as_secs_f64() / most as f64)
    }

    /// The largest slowdown.
    pub(super) fn most_slowdown(&self) -> f64 {
        self.rows.iter().map(|row| row.slowdown).fold(1.0, f64::max)
    }

    /// The unit of the trace that a unit of the cluster follows, and its offset into the trace, ns. The units of the
    /// trace are used in turns. Units of the first turn have no offset; units of each later turn share a random offset.
    fn taken(&self, id: u32, base: Address) -> (u32, u64) {
        let Some(units) = self.spread else { return (id, 0) };
        let (turn, period) = (id / units, self.period.unwrap_or(Span::ZERO));
        let moment = if turn == 0 { 0.0 } else { base.at(u64::from(turn)).unit() };
        (id % units, (moment * period.0 as f64) as u64)
    }

    /// Start of the repetition of the trace that contains `at`, ns.
    fn round(&self, at: u64) -> u64 {
        self.period.map_or(0, |period| at / period.0 * period.0)
    }

    /// The end of the healthy stretch after row `i - 1`. All rows before `i` are of this unit or of lower units.
    fn round_end(&self, unit: ScopeUnit, i: usize, round: u64) -> u64 {
        let is_named = i.checked_sub(1).is_some_and(|last| self.rows[last].unit == unit.id);
        let period = self.period.filter(|_| is_named);
        period.map_or(u64::MAX, |period| round.saturating_add(period.0))
    }
}

impl Process for Bursts {
    const REMEMBERS: bool = false;

    fn locate(&self, unit: ScopeUnit, at: u64, _: Cursor) -> Cursor {
        let at = at.saturating_add(unit.ahead);
        let round = self.round(at);
        let i = self.rows.partition_point(|row| (row.unit, row.end.0) <= (unit.id, at - round));
        let index = i as u64;
        let cursor = match self.rows.get(i).filter(|row| row.unit == unit.id) {
            None => Cursor::healthy(index, at, self.round_end(unit, i, round)),
            Some(row) if at - round < row.start.0 => {
                Cursor::healthy(index, at, round.saturating_add(row.start.0))
            }
            Some(row) => Cursor {
                index,
                start: round + row.start.0,
                end: round.saturating_add(row.end.0),
                slowdown: row.slowdown,
            },
        };
        let end = if cursor.end == u64::MAX { u64::MAX } else { cursor.end - unit.ahead };
        Cursor { start: cursor.start.saturating_sub(unit.ahead), end, ..cursor }
    }
}

/// One checked interference process, with all referenced files read.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// The same profile as a table that refers to no file.
    pub table: Interference,
    pub(super) process: AnyProcess,
    pub(super) scope: Scope,
    /// Start of the interference; `until` is its end.
    pub(super) from: Time,
    pub(super) until: Time,
    pub(super) affected: f64,
}

impl Scope {
    /// The unit of a core.
    pub(super) fn unit(self, table: &CoreTable, core: u32) -> u32 {
        match self {
            Self::Core => core,
            Self::Node => table.node(core),
            Self::Rack => table.rack(core),
        }
    }

    /// Number of units. Units are numbered from 0.
    pub(super) fn units(self, table: &CoreTable) -> u32 {
        match self {
            Self::Core => table.cores(),
            Self::Node => table.nodes(),
            Self::Rack => table.racks(),
        }
    }

    /// Name of the unit, in the singular.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Node => "node",
            Self::Rack => "rack",
        }
    }
}

impl Interference {
    /// Checks this table and reads its trace, relative to `folder`, with `read`. The caller has already inserted the
    /// profile file and the values of empirical distributions.
    ///
    /// # Errors
    /// When the trace cannot be read or parsed, when not exactly one process is named, or when keys contradict
    /// each other.
    pub fn load(
        mut self,
        folder: &Path,
        read: impl FnOnce(&Path) -> io::Result<Arc<[u8]>>,
    ) -> Result<Profile, ProfileError> {
        self.check(folder, read)?;
        let process = match &self {
            Self { bernoulli: Some(p), .. } => AnyProcess::Bernoulli(p.clone()),
            Self { markov: Some(p), .. } => AnyProcess::Markov(Runs::new(p.clone())),
            Self { renewal: Some(p), .. } => AnyProcess::Renewal(p.clone()),
            Self { scripted: Some(p), .. } => AnyProcess::Scripted(p.clone()),
            Self { trace: Some(p), .. } => AnyProcess::Trace(p.process()),
            Self { .. } => return Err(ProfileError::Keys("the profile names no process".into())),
        };
        let (from, until) = self.window();
        Ok(Profile {
            process,
            scope: self.scope.unwrap_or_default(),
            from: Time(from.0),
            until: Time(until.0),
            affected: self.affected.unwrap_or(1.0),
            table: self,
        })
    }

    /// Checks this table, which refers to no file.
    ///
    /// # Errors
    /// When not exactly one process is named, or when keys contradict each other.
    pub fn resolve(self) -> Result<Profile, ProfileError> {
        self.load(Path::new(""), |_| Err(io::ErrorKind::NotFound.into()))
    }
}

/// Address of the draw for a unit as a whole. It differs from the numbers of slots and bursts, which count from zero.
const WHOLE_UNIT: u64 = u64::MAX;

/// A profile under a seed: the interference of a run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SeededProfile {
    profile: Profile,
    base: Address,
}

impl SeededProfile {
    pub(super) fn new(profile: &Profile, seed: u64) -> Self {
        Self { profile: profile.clone(), base: Address::new(seed, Purpose::Interference) }
    }

    /// Whether storing cursors makes queries faster.
    pub(super) const fn remembers(&self) -> bool {
        const fn ask<P: Process>(_: &P) -> bool {
            P::REMEMBERS
        }
        with!(&self.profile.process, process => ask(process))
    }

    /// Mean length of a slot, or of a gap and a burst, s.
    pub(super) fn stretch_s(&self) -> f64 {
        self.profile.stretch_s()
    }

    /// The rates of a core for a copy with these sensitivities by kind of interference.
    pub(super) fn felt(&self, rate: CoreRate, suffers: Option<&Kinds>) -> CoreRate {
        let kind = self.profile.table.kind.as_deref();
        rate.feeling(suffers.and_then(|kinds| kinds.get(kind?)).copied().unwrap_or(1.0))
    }

    /// The unit whose process a core follows; `None` if the unit is not affected.
    pub(super) fn unit(&self, table: &CoreTable, core: u32) -> Option<ScopeUnit> {
        let id = self.profile.scope.unit(table, core);
        let address = self.base.at(u64::from(id));
        let takes_part =
            self.profile.affected >= 1.0 || address.at(WHOLE_UNIT).unit() < self.profile.affected;
        let (id, ahead) = match &self.profile.process {
            AnyProcess::Trace(bursts) => bursts.taken(id, self.base),
            AnyProcess::Bernoulli(_)
            | AnyProcess::Markov(_)
            | AnyProcess::Renewal(_)
            | AnyProcess::Scripted(_) => (id, 0),
        };
        takes_part.then_some(ScopeUnit { id, address, ahead })
    }

    /// The stretch of the process at `at` or, outside the window, at its edge. [`Process::locate`] describes `known`.
    pub(super) fn locate(&self, unit: ScopeUnit, at: u64, known: Cursor) -> Cursor {
        with!(&self.profile.process, process => process.locate(unit, at.clamp(self.profile.from.0, self.profile.until.0), known))
    }

    /// Advances `integral` at the rate of a core until `limit` or until no work is left. `cursor` is the stretch in
    /// which the integral begins, or an earlier stretch, and is advanced as well.
    pub(super) fn work(
        &self,
        unit: ScopeUnit,
        cursor: &mut Cursor,
        rate: CoreRate,
        integral: &mut WorkIntegral,
        limit: u64,
    ) {
        let opens = self.profile.from.0.min(limit);
        if integral.at < opens {
            integral.work(rate.healthy, opens);
        }
        let closes = self.profile.until.0.min(limit);
        with!(&self.profile.process, process => {
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

    /// The slowdown of a unit at `at`; 1 if the unit is healthy.
    pub(super) fn slowdown(&self, unit: ScopeUnit, at: u64, known: Cursor) -> f64 {
        if (self.profile.from.0..self.profile.until.0).contains(&at) {
            self.locate(unit, at, known).slowdown
        } else {
            1.0
        }
    }

    /// The bursts of a unit in [from, to), cut at its edges, in order of time. Adjacent bursts may have the same
    /// slowdown. [`Process::locate`] describes `known`.
    pub(super) fn bursts(
        &self,
        unit: ScopeUnit,
        known: Cursor,
        from: Time,
        to: Time,
    ) -> impl Iterator<Item = Burst> {
        let (mut at, to) = (from.max(self.profile.from).0, to.min(self.profile.until).0);
        let mut cursor = (at < to).then(|| self.locate(unit, at, known));
        iter::from_fn(move || {
            loop {
                let stretch = cursor?;
                let (start, end) = (at, stretch.end.min(to));
                at = end.max(at);
                cursor = (stretch.end < to)
                    .then(|| with!(&self.profile.process, process => process.follow(unit, &stretch)));
                if stretch.slowdown > 1.0 && end > start {
                    return Some(Burst { start: Time(start), end: Time(end), slowdown: stretch.slowdown });
                }
            }
        })
    }
}

/// A time in which a core is degraded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Burst {
    /// Start of the burst.
    pub start: Time,
    /// End of the burst.
    pub end: Time,
    /// σ: the core works at 1 / σ of its speed.
    pub slowdown: f64,
}

impl Burst {
    /// Length of the interval.
    pub fn length(&self) -> Span {
        self.end - self.start
    }
}

/// Joins adjacent bursts of equal slowdown: an injection may begin or end within one.
pub(super) fn joined(bursts: impl Iterator<Item = Burst>) -> impl Iterator<Item = Burst> {
    let mut bursts = bursts.peekable();
    iter::from_fn(move || {
        let mut burst = bursts.next()?;
        while let Some(next) =
            bursts.next_if(|next| next.start == burst.end && next.slowdown == burst.slowdown)
        {
            burst.end = next.end;
        }
        Some(burst)
    })
}
