//! Profiles: `[interference]` tables after their checks, with all files read, and their bursts under a seed.

use std::io;
use std::path::Path;
use std::sync::Arc;

use volary_actors::base::{Address, Law, Purpose, Span, Time};

use super::config::{BurstTrace, Interference, SHORTEST, Scope, TraceRow};
use super::integral::{CoreRate, WorkIntegral};
use super::process::{AnyProcess, Bursts, Cursor, Process, Runs, Unit, with};
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
            load_trace(trace, folder, read)?;
        }
        let process = match &self {
            Self { bernoulli: Some(p), .. } => AnyProcess::Bernoulli(p.clone()),
            Self { markov: Some(p), .. } => AnyProcess::Markov(Runs::new(p.clone())),
            Self { renewal: Some(p), .. } => AnyProcess::Renewal(p.clone()),
            Self { scripted: Some(p), .. } => AnyProcess::Scripted(p.clone()),
            Self { trace: Some(p), .. } => AnyProcess::Trace(Bursts(p.rows.clone())),
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

/// Reads the trace file into the rows, sorts them, and refuses overlaps.
fn load_trace(
    trace: &mut BurstTrace,
    folder: &Path,
    read: impl FnOnce(&Path) -> io::Result<Arc<[u8]>>,
) -> Result<(), ProfileError> {
    if trace.rows.is_empty() == trace.file.is_none() {
        return Err(ProfileError::Keys("trace needs one of `file` and `rows`; give one".into()));
    }
    let Some(file) = trace.file.take() else {
        let rows = trace.rows.iter().enumerate().map(|(i, &row)| (i, row)).collect();
        trace.rows = sorted(rows).map_err(|(i, why)| ProfileError::Keys(format!("trace row {i}: {why}")))?;
        return Ok(());
    };
    let path = folder.join(file);
    let name = path.display();
    let wrong = |(line, message)| ProfileError::File(format!("{name}:{line}: {message}"));
    let unreadable = |source: io::Error| ProfileError::File(format!("cannot read {name}: {source}"));
    let bytes = read(&path).map_err(unreadable)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| unreadable(io::ErrorKind::InvalidData.into()))?;
    let mut rows = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default().trim();
        if !content.is_empty() {
            rows.push((i + 1, parse_row(content).map_err(|message| wrong((i + 1, message)))?));
        }
    }
    if rows.is_empty() {
        return Err(ProfileError::File(format!("{name}: lists no burst; leave interference out")));
    }
    trace.rows = sorted(rows).map_err(wrong)?;
    Ok(())
}

/// Sorts rows, each with its position, by unit and time; on failure returns the position of the faulty row and the
/// reason.
fn sorted(mut rows: Vec<(usize, TraceRow)>) -> Result<Vec<TraceRow>, (usize, String)> {
    for &(place, row) in &rows {
        if row.start >= row.end {
            return Err((
                place,
                format!("the burst ends at {}, not after its start at {}", row.end, row.start),
            ));
        }
        if !(row.slowdown.is_finite() && row.slowdown >= 1.0) {
            let why = format!("slowdown {} is below 1 and would speed the core up", row.slowdown);
            return Err((place, why));
        }
    }
    rows.sort_by_key(|(_, row)| (row.unit, row.start));
    for pair in rows.windows(2) {
        let [(first, before), (second, after)] = [pair[0], pair[1]];
        if before.unit == after.unit && after.start < before.end {
            let why = format!("the burst starts before that of {first} has ended, and is of the same unit");
            return Err((second, why));
        }
    }
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// One line `unit start_s end_s slowdown`.
fn parse_row(content: &str) -> Result<TraceRow, String> {
    let fields: Vec<&str> =
        content.split(|c: char| c == ',' || c.is_whitespace()).filter(|f| !f.is_empty()).collect();
    let &[unit, start, end, slowdown] = fields.as_slice() else {
        return Err(format!("expected `unit start_s end_s slowdown`, found {} fields", fields.len()));
    };
    let number = |name: &str, text: &str| {
        text.parse::<f64>()
            .ok()
            .filter(|x| x.is_finite() && *x >= 0.0)
            .ok_or_else(|| format!("{name} `{text}` is not a number of at least zero"))
    };
    Ok(TraceRow {
        unit: unit.parse().map_err(|_| format!("unit `{unit}` is not a number counted from zero"))?,
        start: Span::from_secs_f64(number("start_s", start)?),
        end: Span::from_secs_f64(number("end_s", end)?),
        slowdown: number("slowdown", slowdown)?,
    })
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

    /// The unit whose process a core follows; `None` if the unit takes no part.
    pub(super) fn unit(&self, table: &CoreTable, core: u32) -> Option<Unit> {
        let id = match self.profile.scope {
            Scope::Core => core,
            Scope::Node => table.node(core),
            Scope::Rack => table.rack(core),
        };
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
