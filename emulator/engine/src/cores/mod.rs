//! Interference, and the exact time a core needs for work.
//!
//! A copy of work w that starts at t₀ on core i ends at the first t with ∫ speed_i · r_i dt = w, where the
//! rate r_i is 1 on a healthy core, 1 / σ while x_i(t) = 1, and 0 while its node stands still. [`Cores`]
//! integrates that exactly; nothing happens per tick, only when a copy starts or is stopped.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | the `[interference]` table and profile files |
//! | [`load`] | reading them: files, checks |
//! | [`table`] | node, rack and speed of every core |
//! | [`pauses`] | times in which a node stands still |
//! | [`show`] | what a profile does, before any run |
//! | [`injection`] | another profile for some cores and a time, in mid-run |
//! | [`set`] | some of the cores of a run |
//! | `process` | x_i(t) of each kind, stretch by stretch |
//! | `course` | a profile under a seed |
//! | `work` | exact arithmetic of work |

pub mod config;
mod course;
pub mod injection;
pub mod load;
pub mod pauses;
mod process;
pub mod set;
pub mod show;
pub mod table;
mod work;

pub use config::{Interference, Scope};
pub use course::Burst;
pub use injection::Injection;
pub use load::{Profile, ProfileError};
pub use pauses::{Pause, Pauses};
pub use set::CoreSet;
pub use table::CoreTable;

use course::Course;
use injection::Injected;
use process::Cursor;
use volary_actors::base::{Span, Time};
use work::{Leg, Pace};

use crate::prefetch::prefetch;

/// The cores of a run and what they are doing. Each runs at most one copy.
#[derive(Clone, Debug)]
pub struct Cores {
    table: CoreTable,
    course: Option<Course>,
    /// What was injected, in the order in which it was.
    injections: Vec<Injected>,
    pauses: Pauses,
    /// Nothing ever changes the rate, and it is 1: work takes as long as it is.
    plain: bool,
    runs: Vec<Run>,
    /// Where the process of a core stood when its copy started; empty when that is found without.
    cursors: Vec<Cursor>,
    /// How long it takes a core to put a preempted copy away.
    preemption: Span,
    /// Until when each core does that, ns; empty if it takes no time.
    cleared: Vec<u64>,
    totals: Totals,
}

/// What a core does, in 32 bytes.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Start of the running copy, [`IDLE`] when there is none.
    since: u64,
    /// Its work, ns.
    work: u64,
    /// When it will be finished.
    due: u64,
    /// How long earlier copies have kept the core busy, ns.
    busy: u64,
}

const IDLE: u64 = u64::MAX;
/// A finish that lies beyond time.
const NEVER: u64 = Time::MAX.0;

const _: () = assert!(size_of::<Run>() + size_of::<Cursor>() <= 64, "an idle core must cost little");

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    /// Core time of copies that ended, ns.
    busy: u128,
    /// Work those copies got done, ns of the reference core.
    work: u128,
    /// Copies running now, and the sum of their starts.
    running: u64,
    starts: u128,
}

impl Cores {
    /// Idle cores. Interference is that of `profile` under `seed`; none without one.
    #[must_use]
    pub fn new(profile: Option<&Profile>, table: CoreTable, pauses: Pauses, seed: u64) -> Self {
        let course = profile.map(|profile| Course::new(profile, seed));
        let cores = table.cores() as usize;
        let remembered = if course.as_ref().is_some_and(Course::remembers) { cores } else { 0 };
        Self {
            plain: course.is_none() && pauses.is_empty() && table.is_uniform(),
            runs: vec![Run { since: IDLE, work: 0, due: 0, busy: 0 }; cores],
            cursors: vec![Cursor::NOWHERE; remembered],
            table,
            course,
            injections: Vec::new(),
            pauses,
            preemption: Span::ZERO,
            cleared: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// The same cores, which take so long to put a preempted copy away before the next can begin. Pauses and
    /// interference do not prolong it.
    #[must_use]
    pub fn with_preemption(mut self, takes: Span) -> Self {
        self.preemption = takes;
        self.cleared = vec![0; if takes == Span::ZERO { 0 } else { self.runs.len() }];
        self
    }

    /// Where the cores are and how fast.
    #[must_use]
    pub const fn table(&self) -> &CoreTable {
        &self.table
    }

    /// Runs a copy with `work` on `core` from `now` on, and says exactly when it will be finished, rounded up
    /// to the nanosecond. [`Time::MAX`] is no time but says that it never will be: there is nothing to wait for.
    ///
    /// # Panics
    /// When the core is busy.
    pub fn start(&mut self, core: u32, now: Time, work: Span) -> Time {
        assert!(!self.is_busy(core), "core {core} runs a copy already");
        let begin = self.begin(core, now.0);
        let due = if self.plain {
            Time(begin) + work
        } else {
            let cursor = self.remember(core, Time(begin));
            Time(self.work(core, cursor, Leg::new(begin, work), u64::MAX).at)
        };
        let run = &mut self.runs[core as usize];
        *run = Run { since: now.0, work: work.0, due: due.0, busy: run.busy };
        self.totals.running += 1;
        self.totals.starts += u128::from(now.0);
        due
    }

    /// Stops the copy on `core` and says how much work it has left, in time of a healthy reference core,
    /// rounded up to the nanosecond: zero only if it was finished.
    ///
    /// # Panics
    /// When the core is idle.
    pub fn stop(&mut self, core: u32, now: Time) -> Span {
        let left = self.left(core, now);
        self.end(core, now, left);
        left
    }

    /// [Stops](Self::stop) the copy on `core`, which is [taken up](Self::with_preemption) by that.
    ///
    /// # Panics
    /// When the core is idle.
    pub fn preempt(&mut self, core: u32, now: Time) -> Span {
        let left = self.stop(core, now);
        if let Some(cleared) = self.cleared.get_mut(core as usize) {
            *cleared = (now + self.preemption).0;
        }
        left
    }

    /// The copy on `core` is finished.
    ///
    /// # Panics
    /// When the core is idle, or the copy not yet due or never.
    pub fn finished(&mut self, core: u32, now: Time) {
        let due = self.runs[core as usize].due;
        assert!(due != NEVER, "core {core} never finishes what it runs");
        assert!(due <= now.0, "core {core} is finished at {}, not at {now}", Time(due));
        self.end(core, now, Span::ZERO);
    }

    /// Has what is known of a core brought into the cache.
    pub(crate) fn fetch(&self, core: u32) {
        prefetch(&self.runs[core as usize]);
    }

    /// Work that the copy on `core` has left at `now`, as [`stop`](Self::stop) would say.
    ///
    /// # Panics
    /// When the core is idle.
    #[must_use]
    pub fn left(&self, core: u32, now: Time) -> Span {
        assert!(self.is_busy(core), "core {core} runs no copy");
        let run = self.runs[core as usize];
        if now.0 >= run.due {
            return Span::ZERO;
        }
        let begin = self.begin(core, run.since);
        let at = now.0.max(begin);
        if self.plain {
            return Span(run.due - at);
        }
        let cursor = self.remembered(core, Time(begin));
        self.work(core, cursor, Leg::new(begin, Span(run.work)), at).left()
    }

    /// When a copy that was given to a core at `since` begins: the core may have to put another away before.
    fn begin(&self, core: u32, since: u64) -> u64 {
        self.cleared.get(core as usize).map_or(since, |&cleared| cleared.max(since))
    }

    /// How long a copy that is given to `core` now has to wait until another one is [put away](Self::with_preemption).
    #[must_use]
    pub fn clearing(&self, core: u32, now: Time) -> Span {
        Span(self.begin(core, now.0) - now.0)
    }

    /// Whether a copy runs on `core`.
    #[must_use]
    pub fn is_busy(&self, core: u32) -> bool {
        self.runs[core as usize].since != IDLE
    }

    /// How long `core` has been busy up to `now`.
    #[must_use]
    pub fn busy(&self, core: u32, now: Time) -> Span {
        let run = self.runs[core as usize];
        Span(run.busy) + if run.since == IDLE { Span::ZERO } else { now - Time(run.since) }
    }

    /// How long all cores have been busy up to `now`, which must not be before the last start: core-seconds.
    #[must_use]
    pub fn total_busy(&self, now: Time) -> f64 {
        let Totals { busy, running, starts, .. } = self.totals;
        (busy + u128::from(now.0) * u128::from(running)).saturating_sub(starts) as f64 * 1e-9
    }

    /// Work that finished and stopped copies got done, in seconds of the reference core. What preempted
    /// copies did counts as well.
    #[must_use]
    pub fn total_work(&self) -> f64 {
        self.totals.work as f64 * 1e-9
    }

    /// Number of copies running.
    #[must_use]
    pub const fn running(&self) -> u64 {
        self.totals.running
    }

    /// Work `core` does per second at `at`, in units of the healthy reference core.
    #[must_use]
    pub fn rate(&self, core: u32, at: Time) -> f64 {
        if self.pauses.stopped(self.table.node(core), at) {
            return 0.0;
        }
        self.table.speed(core) / self.slowdown(core, at.0)
    }

    /// Frees a core whose copy has `left` work left.
    fn end(&mut self, core: u32, now: Time, left: Span) {
        let run = &mut self.runs[core as usize];
        assert!(run.since != IDLE, "core {core} runs no copy");
        let busy = now.0.saturating_sub(run.since);
        run.busy += busy;
        self.totals.busy += u128::from(busy);
        self.totals.work += u128::from(run.work - left.0);
        self.totals.running -= 1;
        self.totals.starts -= u128::from(run.since);
        run.since = IDLE;
    }

    /// Where the process of `core` stands at `now`, noted for queries to come.
    fn remember(&mut self, core: u32, now: Time) -> Cursor {
        let cursor = self.remembered(core, now);
        if let Some(noted) = self.cursors.get_mut(core as usize) {
            *noted = cursor;
        }
        self.remember_injected(core, now);
        cursor
    }

    /// Where the process of `core` was last seen to stand.
    fn known(&self, core: u32) -> Cursor {
        self.cursors.get(core as usize).copied().unwrap_or(Cursor::NOWHERE)
    }

    /// Where the process of `core` stands at `at`.
    fn remembered(&self, core: u32, at: Time) -> Cursor {
        let known = self.known(core);
        match &self.course {
            None => known,
            Some(course) => {
                course.unit(&self.table, core).map_or(known, |unit| course.locate(unit, at.0, known))
            }
        }
    }

    /// Works on `leg` until `limit`, or until nothing is left. `cursor` is where the process of `core` stands
    /// when the leg begins.
    fn work(&self, core: u32, mut cursor: Cursor, mut leg: Leg, limit: u64) -> Leg {
        let pace = Pace::of(self.table.speed(core));
        let course = self.course.as_ref().and_then(|course| Some((course, course.unit(&self.table, core)?)));
        let mut until = |leg: &mut Leg, limit: u64| {
            while !leg.done() && leg.at < limit {
                let (injected, end) = self.reign(core, leg.at);
                let end = end.min(limit);
                match (injected, course) {
                    (Some(injected), _) => injected.work(&self.table, core, pace, leg, end),
                    (None, Some((course, unit))) => course.work(unit, &mut cursor, pace, leg, end),
                    (None, None) => leg.work(pace.healthy, end),
                }
            }
        };
        if !self.pauses.is_empty() {
            for pause in self.pauses.after(self.table.node(core), Time(leg.at)) {
                if pause.from.0 >= limit || leg.done() {
                    break;
                }
                let stands_still = pause.from.0.max(leg.at);
                until(&mut leg, stands_still);
                if !leg.done() {
                    leg.rest(pause.until.0.min(limit));
                }
            }
        }
        if !leg.done() && leg.at < limit {
            until(&mut leg, limit);
        }
        leg
    }
}

#[cfg(test)]
mod tests;
