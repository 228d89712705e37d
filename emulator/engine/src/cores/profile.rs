//! Profiles: `[interference]` tables after their checks, with all files read, and their bursts under a seed.

use std::io;
use std::path::Path;
use std::sync::Arc;

use volary_actors::base::{Address, Law, Purpose, Span, Time};

use super::config::{Interference, SHORTEST, Scope};
use super::integral::{CoreRate, WorkIntegral};
use super::process::{AnyProcess, Cursor, Process, Runs, Unit, with};
use super::table::CoreTable;

/// Why an interference profile cannot be used. Messages name the file, the line or key, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// A trace file that cannot be read, is malformed or empty.
    #[error("{0}")]
    File(String),
    /// Keys that contradict each other.
    #[error("{0}")]
    Keys(String),
}

/// One checked interference process, with everything read that it refers to.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// The same profile as a table that refers to no file.
    pub table: Interference,
    pub(super) process: AnyProcess,
    pub(super) scope: Scope,
    /// Units are healthy outside [from, until).
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

    /// Number of units, which count from 0.
    pub(super) fn units(self, table: &CoreTable) -> u32 {
        match self {
            Self::Core => table.cores(),
            Self::Node => table.nodes(),
            Self::Rack => table.racks(),
        }
    }

    /// What its unit is, in the singular.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Node => "node",
            Self::Rack => "rack",
        }
    }
}

impl Interference {
    /// Shortest interference, or its mean length where lengths are drawn; `None` for a trace.
    pub fn slot(&self) -> Option<Span> {
        let bernoulli = self.bernoulli.as_ref().map(|process| process.slot);
        let markov = self.markov.as_ref().map(|process| process.slot);
        let renewal = self.renewal.as_ref().map(|process| Span::from_secs_f64(process.burst.mean()));
        let scripted = self.scripted.as_ref().map(|process| process.slot);
        bernoulli.or(markov).or(renewal).or(scripted)
    }

    /// Checks this table and reads its trace, relative to `folder`, with `read`. The profile and the values of
    /// empirical laws have been inserted before.
    ///
    /// # Errors
    /// When the trace cannot be read or parsed, when not exactly one process is named, or when keys contradict
    /// each other.
    pub fn load(
        mut self,
        folder: &Path,
        read: impl FnOnce(&Path) -> io::Result<Arc<[u8]>>,
    ) -> Result<Profile, ProfileError> {
        let keys = |message: &str| Err(ProfileError::Keys(message.into()));
        if self.profile.is_some() {
            return keys(match self.processes() {
                0 => "a profile cannot name another profile; write its process here",
                _ => "give either `profile` or a process, not both; keep one",
            });
        }
        if self.processes() != 1 {
            return keys(
                "not exactly one process is named; keep one of `bernoulli`, `markov`, `renewal`, `scripted`, `trace`, \
                 or name a `profile`",
            );
        }
        if self.has_unread_laws() {
            return keys("the file of an empirical law was not read; give its `values`");
        }
        if let Some(trace) = &mut self.trace {
            trace.load(folder, read)?;
        }
        let process = match &self {
            Self { bernoulli: Some(p), .. } => AnyProcess::Bernoulli(p.clone()),
            Self { markov: Some(p), .. } => AnyProcess::Markov(Runs::new(p.clone())),
            Self { renewal: Some(p), .. } => AnyProcess::Renewal(p.clone()),
            Self { scripted: Some(p), .. } => AnyProcess::Scripted(p.clone()),
            Self { trace: Some(p), .. } => AnyProcess::Trace(p.process()),
            Self { .. } => return keys("no process is named"),
        };
        if let AnyProcess::Renewal(renewal) = &process
            && renewal.gap.mean() + renewal.burst.mean() < SHORTEST.as_secs_f64()
        {
            return Err(ProfileError::Keys(format!(
                "a gap and a burst of the renewal together last less than {SHORTEST} in the mean; make them longer"
            )));
        }
        if let AnyProcess::Scripted(scripted) = &process
            && scripted.rows.iter().all(Vec::is_empty)
        {
            return keys("scripted lists no slot; write rows such as [[0, 1, 1]], or leave interference out");
        }
        let (from, until) = (self.from.unwrap_or(Span::ZERO), self.until.unwrap_or(Span::MAX));
        if from >= until {
            let why = format!("`from` ({from}) is not earlier than `until` ({until}); move one of them");
            return Err(ProfileError::Keys(why));
        }
        Ok(Profile {
            process,
            scope: self.scope.unwrap_or_default(),
            from: Time(from.0),
            until: Time(until.0),
            affected: self.affected.unwrap_or(1.0),
            table: self,
        })
    }

    /// Like [`load`](Self::load), for a table that refers to no file.
    ///
    /// # Errors
    /// Like [`load`](Self::load).
    pub fn resolve(self) -> Result<Profile, ProfileError> {
        self.load(Path::new(""), |_| Err(io::ErrorKind::NotFound.into()))
    }

    fn processes(&self) -> usize {
        [
            self.bernoulli.is_some(),
            self.markov.is_some(),
            self.renewal.is_some(),
            self.scripted.is_some(),
            self.trace.is_some(),
        ]
        .into_iter()
        .filter(|&named| named)
        .count()
    }

    fn has_unread_laws(&self) -> bool {
        let slowdowns = [
            self.bernoulli.as_ref().map(|p| &p.slowdown),
            self.markov.as_ref().map(|p| &p.slowdown),
            self.renewal.as_ref().map(|p| &p.slowdown),
            self.scripted.as_ref().map(|p| &p.slowdown),
        ];
        let lengths = self.renewal.iter().flat_map(|p| [&p.gap, &p.burst]);
        slowdowns.into_iter().flatten().any(Law::is_unread) || lengths.into_iter().any(Law::is_unread)
    }
}

/// Address of the draw for a unit as a whole; slots and bursts are numbered from zero.
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

    /// The unit whose process a core follows; `None` if the unit takes no part.
    pub(super) fn unit(&self, table: &CoreTable, core: u32) -> Option<Unit> {
        let id = self.profile.scope.unit(table, core);
        let address = self.base.at(u64::from(id));
        let takes_part =
            self.profile.affected >= 1.0 || address.at(WHOLE_UNIT).unit() < self.profile.affected;
        takes_part.then_some(Unit { id, address })
    }

    /// The stretch of the process at `at` or, outside the window, at its edge. `known` as in [`Process::locate`].
    pub(super) fn locate(&self, unit: Unit, at: u64, known: Cursor) -> Cursor {
        with!(&self.profile.process, process => process.locate(unit, at.clamp(self.profile.from.0, self.profile.until.0), known))
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

    /// The slowdown of a unit at `at`: σ ≥ 1, or 1.
    pub(super) fn slowdown(&self, unit: Unit, at: u64, known: Cursor) -> f64 {
        if (self.profile.from.0..self.profile.until.0).contains(&at) {
            self.locate(unit, at, known).slowdown
        } else {
            1.0
        }
    }

    /// The bursts of a unit that overlap [from, to), clipped to it. `known` as in [`Process::locate`].
    pub(super) fn bursts(&self, unit: Unit, known: Cursor, from: Time, to: Time) -> BurstIter<'_> {
        let (at, to) = (from.max(self.profile.from).0, to.min(self.profile.until).0);
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
            self.cursor = (!ended)
                .then(|| with!(&self.profile.profile.process, process => process.follow(self.unit, &cursor)));
        }
        found
    }
}
