//! The processes x_i(t): degraded and healthy stretches of each unit.
//!
//! A process is a pure function of (seed, unit, k), where k counts slots or bursts. A [`Cursor`] stored between queries
//! only saves counting again from the start.

use volary_actors::base::{Address, Law, Span};

use super::config::{Bernoulli, MOST_SLOWDOWN, Markov, Renewal, Scripted, TraceRow};
use super::integral::{CoreRate, WorkIntegral};

/// The unit of a process: a core, a node or a rack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) id: u32,
    pub(super) address: Address,
}

/// A stretch of time in which the slowdown of a unit does not change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Cursor {
    /// Number of the slot, run or burst, as the process counts them.
    index: u64,
    /// The stretch is [start, end), in ns; `end` is the maximum when nothing follows.
    pub(super) start: u64,
    pub(super) end: u64,
    /// σ, 1 when healthy.
    pub(super) slowdown: f64,
}

impl Cursor {
    /// The initial cursor: later than every query, so that the first one counts from the start.
    pub(super) const NOWHERE: Self = Self { index: 0, start: u64::MAX, end: u64::MAX, slowdown: 1.0 };

    const fn healthy(index: u64, start: u64, end: u64) -> Self {
        Self { index, start, end, slowdown: 1.0 }
    }
}

/// A process of one kind; `at`, `start` and `end` are nanoseconds since the run's start.
pub(super) trait Process {
    /// Whether locating a stretch is slow without the cursor of an earlier one.
    const REMEMBERS: bool;

    /// The stretch that contains `at`. `known` is any stretch of this unit, or [`Cursor::NOWHERE`].
    fn locate(&self, unit: Unit, at: u64, known: Cursor) -> Cursor;

    /// The stretch after one that ends.
    fn follow(&self, unit: Unit, cursor: &Cursor) -> Cursor {
        self.locate(unit, cursor.end, *cursor)
    }

    /// Advances through many stretches at once. `integral` is at the end of `cursor`; both may be moved to the end of a
    /// later stretch if neither the work nor `limit` ends before it.
    fn stride(&self, _: Unit, _: &mut Cursor, _: CoreRate, _: &mut WorkIntegral, _limit: u64) {}
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
pub(super) use with;

/// σ of slot, run or burst k. Its address differs from those of other draws for k.
fn sample(law: &Law<f64>, unit: Unit, k: u64) -> f64 {
    // Skips computing the address of a draw that is not needed.
    if let Law::Constant(value) = law {
        return *value;
    }
    law.sample(&mut unit.address.at(k).at(1).draw()).clamp(1.0, MOST_SLOWDOWN)
}

/// Slot k with the given slowdown.
const fn slot(k: u64, length: Span, slowdown: f64) -> Cursor {
    let start = k * length.0;
    Cursor { index: k, start, end: start.saturating_add(length.0), slowdown }
}

/// Strides shorter than this many slots are not worth setting up.
const STRIDE: u64 = 4;

impl Bernoulli {
    fn is_degraded(&self, unit: Unit, k: u64) -> bool {
        unit.address.at(k).unit() < self.probability
    }

    fn slot(&self, unit: Unit, k: u64) -> Cursor {
        let slowdown = if self.is_degraded(unit, k) { sample(&self.slowdown, unit, k) } else { 1.0 };
        slot(k, self.slot, slowdown)
    }
}

impl Process for Bernoulli {
    const REMEMBERS: bool = false;

    fn locate(&self, unit: Unit, at: u64, _: Cursor) -> Cursor {
        self.slot(unit, at / self.slot.0)
    }

    fn follow(&self, unit: Unit, cursor: &Cursor) -> Cursor {
        self.slot(unit, cursor.index + 1)
    }

    /// With equal slowdowns only the number of degraded slots matters, and counting them needs no branch: a slot costs
    /// one hash.
    fn stride(
        &self,
        unit: Unit,
        cursor: &mut Cursor,
        rate: CoreRate,
        integral: &mut WorkIntegral,
        limit: u64,
    ) {
        let (Law::Constant(slowdown), length) = (&self.slowdown, self.slot.0) else { return };
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
    fn slot(&self, unit: Unit, k: u64) -> Cursor {
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

    fn locate(&self, unit: Unit, at: u64, _: Cursor) -> Cursor {
        self.slot(unit, at / self.slot.0)
    }

    fn follow(&self, unit: Unit, cursor: &Cursor) -> Cursor {
        self.slot(unit, cursor.index + 1)
    }
}

/// A Markov chain as alternating runs of geometric length, so that the cost is that of runs and not of slots.
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

    /// Whether run 0 is degraded: the chain starts in its stationary law; a chain that never moves starts healthy.
    fn starts_degraded(&self, unit: Unit) -> bool {
        let Markov { p_on, p_off, .. } = self.chain;
        p_on > 0.0 && unit.address.at(0).unit() * (p_on + p_off) < p_on
    }

    /// Run `k`, which starts at `start`. Run k draws at k + 1, the initial state at 0.
    fn run(&self, unit: Unit, k: u64, start: u64, degraded: bool) -> Cursor {
        // Geometric on 1, 2, …: a chain that stays with probability 1 has 1 / ln 1 = −∞, one that leaves at once has 1
        // / ln 0 = −0.
        let stays = (-unit.address.at(k + 1).unit()).ln_1p() * self.inverse_log[usize::from(degraded)];
        let slots = if stays.is_nan() { u64::MAX } else { (stays as u64).saturating_add(1) };
        let end = start.saturating_add(slots.saturating_mul(self.chain.slot.0));
        let slowdown = if degraded { sample(&self.chain.slowdown, unit, k + 1) } else { 1.0 };
        Cursor { index: k, start, end, slowdown }
    }
}

impl Process for Runs {
    const REMEMBERS: bool = true;

    fn locate(&self, unit: Unit, at: u64, known: Cursor) -> Cursor {
        let mut cursor =
            if known.start <= at { known } else { self.run(unit, 0, 0, self.starts_degraded(unit)) };
        while cursor.end <= at && cursor.end < u64::MAX {
            cursor = self.follow(unit, &cursor);
        }
        cursor
    }

    fn follow(&self, unit: Unit, cursor: &Cursor) -> Cursor {
        let k = cursor.index + 1;
        // Not derived from the cursor's slowdown, which may be 1 in a burst.
        let degraded = self.starts_degraded(unit) ^ (k % 2 == 1);
        self.run(unit, k, cursor.end, degraded)
    }
}

impl Renewal {
    /// Stretch `k`, which starts at `start`: even ones are gaps, odd ones bursts.
    fn stretch(&self, unit: Unit, k: u64, start: u64) -> Cursor {
        let burst = k % 2 == 1;
        let law = if burst { &self.burst } else { &self.gap };
        let length = law.sample(&mut unit.address.at(k).draw());
        let slowdown = if burst { sample(&self.slowdown, unit, k) } else { 1.0 };
        Cursor { index: k, start, end: start.saturating_add(length.0), slowdown }
    }
}

impl Process for Renewal {
    const REMEMBERS: bool = true;

    fn locate(&self, unit: Unit, at: u64, known: Cursor) -> Cursor {
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
    /// Sorted by (unit, start) and without overlaps.
    pub(super) rows: Vec<TraceRow>,
    /// The time after which they begin again; no row ends later. `None` if they do not.
    pub(super) period: Option<Span>,
}

impl Bursts {
    /// Mean time that a unit takes for a gap and a burst, s; infinite for bursts that do not repeat, which are few.
    pub(super) fn stretch_s(&self) -> f64 {
        let units = self.rows.chunk_by(|a, b| a.unit == b.unit);
        let most = units.map(<[TraceRow]>::len).max().unwrap_or(0);
        self.period.map_or(f64::INFINITY, |period| period.as_secs_f64() / most as f64)
    }

    /// The largest slowdown.
    pub(super) fn most_slowdown(&self) -> f64 {
        self.rows.iter().map(|row| row.slowdown).fold(1.0, f64::max)
    }

    /// The beginning of the round of the bursts that contains `at`.
    fn round(&self, at: u64) -> u64 {
        self.period.map_or(0, |period| at / period.0 * period.0)
    }

    /// The end of a healthy stretch after the last of the rows before `i`, which are those of a unit or of lower ones.
    fn round_end(&self, unit: Unit, i: usize, round: u64) -> u64 {
        let is_named = i.checked_sub(1).is_some_and(|last| self.rows[last].unit == unit.id);
        let period = self.period.filter(|_| is_named);
        period.map_or(u64::MAX, |period| round.saturating_add(period.0))
    }
}

impl Process for Bursts {
    const REMEMBERS: bool = false;

    fn locate(&self, unit: Unit, at: u64, _: Cursor) -> Cursor {
        let round = self.round(at);
        let i = self.rows.partition_point(|row| (row.unit, row.end.0) <= (unit.id, at - round));
        let index = i as u64;
        match self.rows.get(i).filter(|row| row.unit == unit.id) {
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
        }
    }
}
