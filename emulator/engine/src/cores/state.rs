//! The cores of a run: the copy on each core, and its finish time. On shared nodes also the starts, CPU shares and ends
//! of copies.

use std::sync::Arc;

use volary_actors::base::{Span, Time};
use volary_netem::Windows;

use super::injection::{Effect, Injection};
use super::integral::{CoreRate, WorkIntegral};
use super::profile::{Burst, Cursor, SeededProfile, joined};
use super::shares::{Change, CopyShare, Next, SharedUse, Shares};
use super::{CoreTable, Profile};
use crate::prefetch::prefetch;
use crate::workload::{Kinds, Segment};
use volary_actors::base::CoreSet;

/// The cores of a run. Each runs at most one copy.
#[derive(Clone, Debug)]
pub struct Cores {
    pub(super) table: CoreTable,
    pub(super) profile: Option<SeededProfile>,
    /// Injections in the order in which they were made.
    pub(super) injections: Vec<ActiveInjection>,
    /// Pauses of each node, in which its cores do no work.
    pub(super) pauses: Windows,
    /// Whether the rate is always 1, so that a copy takes as long as its work.
    pub(super) plain: bool,
    pub(super) runs: Vec<Run>,
    /// The stretch of each core's process in which its copy started; empty for processes that need no cursor.
    pub(super) cursors: Vec<Cursor>,
    /// Time that a core needs to put a preempted copy away.
    pub(super) preemption: Span,
    /// Time until which each core is putting a copy away, ns; empty if that takes no time.
    pub(super) cleared: Vec<u64>,
    /// Shares of copies in their nodes, if nodes are shared.
    pub(super) shares: Option<Box<Shares>>,
    /// Sensitivity of each class of jobs to each kind of interference; empty if classes do not differ.
    sensitivity: Arc<[Kinds]>,
    /// The class of the copy of each core; empty if classes do not differ.
    classes: Vec<u8>,
}

/// The copy of a core, in 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Start of the running copy; [`IDLE`] without a running copy.
    pub(super) since: u64,
    /// The copy's work, ns.
    pub(super) work: u64,
    /// Time at which the copy finishes.
    pub(super) due: u64,
}

const IDLE: u64 = u64::MAX;
/// The due time of a copy that never finishes.
pub(super) const NEVER: u64 = Time::MAX.0;

const _: () = assert!(size_of::<Run>() + size_of::<Cursor>() <= 64, "an idle core must cost little");

/// Maximum number of slots, or gaps and bursts, that are visited for the effect on the cores of a run.
const MOST_STRETCHES: f64 = 1e6;

impl Cores {
    /// Creates idle cores with the interference of `profile` under `seed`, or without interference.
    pub fn new(profile: Option<&Profile>, table: CoreTable, pauses: Windows, seed: u64) -> Self {
        let profile = profile.map(|profile| SeededProfile::new(profile, seed));
        let cores = table.cores() as usize;
        let remembered = if profile.as_ref().is_some_and(SeededProfile::remembers) { cores } else { 0 };
        Self {
            plain: profile.is_none() && pauses.is_empty() && table.is_uniform(),
            runs: vec![Run { since: IDLE, work: 0, due: 0 }; cores],
            cursors: vec![Cursor::NOWHERE; remembered],
            table,
            profile,
            injections: Vec::new(),
            pauses,
            preemption: Span::ZERO,
            cleared: Vec::new(),
            shares: None,
            sensitivity: Arc::default(),
            classes: Vec::new(),
        }
    }

    /// Sets the sensitivity of each class of jobs to each kind of interference: the fraction of the slowdown above 1
    /// that affects its copies. The sensitivity to a kind that is not listed is 1.
    pub fn with_sensitivity(mut self, classes: Arc<[Kinds]>) -> Self {
        self.classes = vec![0; if classes.is_empty() { 0 } else { self.runs.len() }];
        self.sensitivity = classes;
        self
    }

    /// Sets the class of the copy that `core` runs next. `class` is called only if classes differ in sensitivity.
    pub fn serve(&mut self, core: u32, class: impl FnOnce() -> usize) {
        if let Some(served) = self.classes.get_mut(core as usize) {
            *served = class() as u8;
        }
    }

    /// The sensitivity of a core's copy.
    fn suffers(&self, core: u32) -> Option<&Kinds> {
        let class = self.classes.get(core as usize)?;
        self.sensitivity.get(usize::from(*class))
    }

    /// Sets the time that a core needs to put a preempted copy away before the next can begin. Pauses and interference
    /// do not prolong it.
    pub fn with_preemption(mut self, takes: Span) -> Self {
        self.preemption = takes;
        self.cleared = vec![0; if takes == Span::ZERO { 0 } else { self.runs.len() }];
        self
    }

    /// Node, rack and speed of every core.
    pub const fn table(&self) -> &CoreTable {
        &self.table
    }

    /// Runs a copy with `work` on `core` from `now` on and returns the exact time at which it finishes, rounded up to
    /// the nanosecond; [`Time::MAX`] if never.
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
            Time(self.work(core, cursor, WorkIntegral::new(begin, work), u64::MAX).at)
        };
        self.runs[core as usize] = Run { since: now.0, work: work.0, due: due.0 };
        due
    }

    /// The time at which `core` would finish `work` begun at `begin` with these pauses, regardless of the copy that
    /// runs there; [`Time::MAX`] if never. Injections made later do not change it.
    pub fn end_of(&self, core: u32, begin: Time, work: Span, pauses: &[(Time, Time)]) -> Time {
        let (cursor, rate) = (self.remembered(core, begin), CoreRate::of(self.table.speed(core)));
        Time(
            self.integrate(core, cursor, (rate, None), WorkIntegral::new(begin.0, work), u64::MAX, pauses).at,
        )
    }

    /// Stops the copy on `core` and returns the work left, in time of a healthy reference core, rounded up to the
    /// nanosecond. The result is zero only if the copy was finished.
    ///
    /// # Panics
    /// When the core is idle.
    pub fn stop(&mut self, core: u32, now: Time) -> Span {
        let left = if self.shares.is_some() { self.leave(core, now, false) } else { self.left(core, now) };
        self.end(core);
        left
    }

    /// [Stops](Self::stop) the copy on `core`. The core then needs [time](Self::with_preemption) to put the copy away.
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

    /// Records that the copy on `core` finished.
    ///
    /// # Panics
    /// When the core is idle, or the copy is not yet due.
    pub fn finished(&mut self, core: u32, now: Time) {
        let due = self.runs[core as usize].due;
        assert!(due != NEVER, "the copy on core {core} never finishes");
        assert!(due <= now.0, "the copy on core {core} finishes at {}, not at {now}", Time(due));
        if self.shares.is_some() {
            self.leave(core, now, true);
        }
        self.end(core);
    }

    /// Prefetches the state of a core.
    pub(crate) fn fetch(&self, core: u32) {
        prefetch(&self.runs[core as usize]);
    }

    /// Work that the copy on `core` has left at `now`, as [`stop`](Self::stop) would return it.
    ///
    /// # Panics
    /// When the core is idle.
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
        if self.shares.is_some() {
            return self.progress(core, now).left();
        }
        let cursor = self.remembered(core, Time(begin));
        self.work(core, cursor, WorkIntegral::new(begin, Span(run.work)), at).left()
    }

    /// Start of the work of a copy that was assigned at `since`. The core may first have to put a preempted copy away.
    pub(super) fn begin(&self, core: u32, since: u64) -> u64 {
        self.cleared.get(core as usize).map_or(since, |&cleared| cleared.max(since))
    }

    /// Time from `now` until `core` can begin a new copy, because it is [putting away](Self::with_preemption) a
    /// preempted copy.
    pub fn clearing(&self, core: u32, now: Time) -> Span {
        Span(self.begin(core, now.0) - now.0)
    }

    /// Whether a copy runs on `core`.
    pub fn is_busy(&self, core: u32) -> bool {
        self.runs[core as usize].since != IDLE
    }

    /// Work `core` does per second at `at`, in units of the healthy reference core.
    pub fn rate(&self, core: u32, at: Time) -> f64 {
        if self.pauses.at(self.table.node(core), at).is_some() {
            return 0.0;
        }
        self.table.speed(core) / self.slowdown(core, at.0)
    }

    /// Frees a core.
    fn end(&mut self, core: u32) {
        assert!(self.is_busy(core), "core {core} runs no copy");
        self.runs[core as usize].since = IDLE;
    }

    /// The stretch of the process of `core` at `now`, stored for later queries.
    pub(super) fn remember(&mut self, core: u32, now: Time) -> Cursor {
        let cursor = self.remembered(core, now);
        if let Some(noted) = self.cursors.get_mut(core as usize) {
            *noted = cursor;
        }
        for injected in self.injections.iter_mut().filter(|injected| injected.concerns(core, now.0)) {
            injected.remember(&self.table, core, now);
        }
        cursor
    }

    /// The stretch of the process of `core` at `at`.
    pub(super) fn remembered(&self, core: u32, at: Time) -> Cursor {
        let known = known(&self.cursors, core);
        match &self.profile {
            None => known,
            Some(profile) => {
                profile.unit(&self.table, core).map_or(known, |unit| profile.locate(unit, at.0, known))
            }
        }
    }

    /// Advances `integral` until `limit`, or until no work is left. `cursor` is the stretch of the process of `core` in
    /// which the integral begins.
    pub(super) fn work(&self, core: u32, cursor: Cursor, integral: WorkIntegral, limit: u64) -> WorkIntegral {
        let pauses = self.pauses.after(self.table.node(core), Time(integral.at));
        let rate = (self.core_rate(core), self.suffers(core));
        self.integrate(core, cursor, rate, integral, limit, pauses)
    }

    /// Advances `integral` until `limit`, or until no work is left, at the rates of a core for a copy of these
    /// sensitivities. No work is done in the pauses.
    fn integrate(
        &self,
        core: u32,
        mut cursor: Cursor,
        (rate, suffers): (CoreRate, Option<&Kinds>),
        mut integral: WorkIntegral,
        limit: u64,
        pauses: &[(Time, Time)],
    ) -> WorkIntegral {
        let profile =
            self.profile.as_ref().and_then(|profile| Some((profile, profile.unit(&self.table, core)?)));
        let mut until = |integral: &mut WorkIntegral, limit: u64| {
            while !integral.done() && integral.at < limit {
                let (injected, end) = self.active_at(core, integral.at);
                let end = end.min(limit);
                match (injected, profile) {
                    (Some(injected), _) => {
                        let rate = injected.profile.felt(rate, suffers);
                        injected.work(&self.table, core, rate, integral, end);
                    }
                    (None, Some((profile, unit))) => {
                        profile.work(unit, &mut cursor, profile.felt(rate, suffers), integral, end);
                    }
                    (None, None) => integral.work(rate.healthy, end),
                }
            }
        };
        let begin = integral.at;
        for &(from, resumes) in pauses.iter().filter(|pause| pause.1.0 > begin) {
            if from.0 >= limit || integral.done() {
                break;
            }
            let paused = from.0.max(integral.at);
            until(&mut integral, paused);
            if !integral.done() {
                integral.rest(resumes.0.min(limit));
            }
        }
        if !integral.done() && integral.at < limit {
            until(&mut integral, limit);
        }
        integral
    }

    /// Overrides the interference profile of some cores. Where injections overlap, the most recent injection applies.
    /// An injection must not begin before the last event; running copies have to be [recomputed](Self::retime). Returns
    /// the number of the injection, for [`lift`](Self::lift).
    pub fn inject(&mut self, injection: &Injection) -> usize {
        self.plain = false;
        self.injections.push(ActiveInjection::new(injection, &self.table));
        self.injections.len() - 1
    }

    /// Ends an injection at `at`, unless it has ended by then. Running copies have to be [recomputed](Self::retime).
    pub fn lift(&mut self, number: usize, at: Time) {
        let until = &mut self.injections[number].until;
        *until = at.0.min(*until);
    }

    /// Recomputes when the copy on a core finishes. Returns the time if it has changed; [`Time::MAX`] means never, as
    /// in [`start`](Self::start).
    pub fn retime(&mut self, core: u32) -> Option<Time> {
        let run = self.runs[core as usize];
        if run.since == IDLE {
            return None;
        }
        let begin = self.begin(core, run.since);
        let cursor = self.remembered(core, Time(begin));
        let due = self.work(core, cursor, WorkIntegral::new(begin, Span(run.work)), u64::MAX).at;
        self.runs[core as usize].due = due;
        (due != run.due).then_some(Time(due))
    }

    /// The bursts that degrade `core` in [from, to), cut at its edges, in order of time. Pauses are not bursts.
    pub fn bursts(&self, core: u32, from: Time, to: Time) -> impl Iterator<Item = Burst> {
        let mut at = from.0;
        let stretches = std::iter::from_fn(move || {
            let (injected, end) = (at < to.0).then(|| self.active_at(core, at))?;
            let start = std::mem::replace(&mut at, end.min(to.0));
            let (profile, known) = self.profile_of(core, injected);
            Some((profile, known, Time(start), Time(at)))
        });
        let bursts = stretches.filter_map(move |(profile, known, from, to)| {
            let profile = profile?;
            Some(profile.bursts(profile.unit(&self.table, core)?, known, from, to))
        });
        joined(bursts.flatten())
    }

    /// The effect of all interference, including injections, from the start of the run until `end`, and the number of
    /// counted cores. Beyond a million slots an evenly spaced sample of the cores is counted. `None` without
    /// interference, without time, or if a single core has more slots.
    pub fn effect(&self, end: Time) -> Option<(Effect, u32)> {
        let injected = self.injections.iter().map(|injected| &injected.profile);
        let stretches = self.profile.iter().chain(injected).map(|profile| profile.stretch_s());
        let time = end.since(Time::ZERO).as_secs_f64();
        let of_core = (time / stretches.reduce(f64::min)?).max(1.0);
        let all = self.table.cores();
        let counted = all.min((MOST_STRETCHES / of_core) as u32);
        if counted == 0 || time <= 0.0 {
            return None;
        }
        let evenly = (0..u64::from(counted)).map(|i| (i * u64::from(all) / u64::from(counted)) as u32);
        let bursts = evenly.flat_map(|core| self.bursts(core, Time::ZERO, end));
        Some((Effect::of(bursts, time * f64::from(counted)), counted))
    }

    /// The injection that applies to a core at `at` (`None` for the experiment's own profile), and the time until which
    /// this injection or profile applies.
    pub(super) fn active_at(&self, core: u32, at: u64) -> (Option<&ActiveInjection>, u64) {
        let mut end = u64::MAX;
        for injected in self.injections.iter().rev().filter(|injected| injected.concerns(core, at)) {
            if injected.from <= at {
                return (Some(injected), end.min(injected.until));
            }
            end = end.min(injected.from);
        }
        (None, end)
    }

    /// The slowdown of a core at `at`; 1 if the core is healthy.
    pub(super) fn slowdown(&self, core: u32, at: u64) -> f64 {
        let (profile, known) = self.profile_of(core, self.active_at(core, at).0);
        profile.map_or(1.0, |profile| {
            profile.unit(&self.table, core).map_or(1.0, |unit| profile.slowdown(unit, at, known))
        })
    }

    /// The profile of a core under an injection, or without one, and the stored stretch of its process.
    fn profile_of<'a>(
        &'a self,
        core: u32,
        injected: Option<&'a ActiveInjection>,
    ) -> (Option<&'a SeededProfile>, Cursor) {
        match injected {
            Some(injected) => (Some(&injected.profile), known(&injected.cursors, core)),
            None => (self.profile.as_ref(), known(&self.cursors, core)),
        }
    }
}

/// An injection among the cores of a run.
#[derive(Clone, Debug)]
pub(super) struct ActiveInjection {
    pub(super) profile: SeededProfile,
    cores: CoreSet,
    pub(super) from: u64,
    pub(super) until: u64,
    /// The stretch of each core's process in which its copy started; empty for processes that need no cursor.
    cursors: Vec<Cursor>,
}

impl ActiveInjection {
    pub(super) fn new(injection: &Injection, table: &CoreTable) -> Self {
        let profile = SeededProfile::new(&injection.profile, injection.seed);
        let remembered = if profile.remembers() { table.cores() as usize } else { 0 };
        Self {
            profile,
            cores: injection.cores.clone(),
            from: injection.from.0,
            until: injection.until.0,
            cursors: vec![Cursor::NOWHERE; remembered],
        }
    }

    /// Stores the stretch of the process of `core` at `now`, for later queries.
    pub(super) fn remember(&mut self, table: &CoreTable, core: u32, now: Time) {
        if let Some(unit) = self.profile.unit(table, core)
            && let Some(noted) = self.cursors.get_mut(core as usize)
        {
            *noted = self.profile.locate(unit, now.0.max(self.from), *noted);
        }
    }

    /// Whether the injection can apply to a core after `at`.
    pub(super) fn concerns(&self, core: u32, at: u64) -> bool {
        at < self.until && self.from < self.until && self.cores.contains(core)
    }

    /// Advances `integral` until `limit`, which is not after the end of the injection.
    pub(super) fn work(
        &self,
        table: &CoreTable,
        core: u32,
        rate: CoreRate,
        integral: &mut WorkIntegral,
        limit: u64,
    ) {
        match self.profile.unit(table, core) {
            None => integral.work(rate.healthy, limit),
            Some(unit) => {
                let mut cursor = self.profile.locate(unit, integral.at, known(&self.cursors, core));
                self.profile.work(unit, &mut cursor, rate, integral, limit);
            }
        }
    }
}

/// The stored stretch of the process of `core`.
fn known(cursors: &[Cursor], core: u32) -> Cursor {
    cursors.get(core as usize).copied().unwrap_or(Cursor::NOWHERE)
}

impl Cores {
    /// Makes the nodes shared: the copies of node n share its CPU, `cpu[n]` thousandths of a core. Speed and
    /// interference change the work that a copy does with its CPU, not the CPU that it is given: a copy that is given
    /// its full demand is as fast as on a core of its own.
    pub fn with_shares(mut self, cpu: Vec<u32>) -> Self {
        self.plain = false;
        self.shares = Some(Box::new(Shares::new(cpu, self.table.cores())));
        self
    }

    /// Whether nodes are shared.
    pub const fn is_shared(&self) -> bool {
        self.shares.is_some()
    }

    /// Begins a copy on a core of a shared node, with this `request` in thousandths of a core. `left` is the part of
    /// `work` that the copy has yet to do, and `segment` is its use at that point. The copy does nothing until the CPU
    /// is [shared out](Self::share_out).
    ///
    /// # Panics
    /// When the core is busy, or nodes are not shared.
    pub fn begin_shared(
        &mut self,
        core: u32,
        now: Time,
        (work, left): (Span, Span),
        request: u32,
        segment: Segment,
    ) {
        assert!(!self.is_busy(core), "core {core} runs a copy already");
        let begin = self.begin(core, now.0);
        self.remember(core, Time(begin));
        self.runs[core as usize] = Run { since: now.0, work: left.0, due: NEVER };
        let node = self.table.node(core);
        self.shares_mut().begin(core, node, CopyShare::new(begin, work, left, request, segment));
    }

    /// Changes the segment of the copy of a core at `now`. `next` gets the work that the copy has done, and returns the
    /// new segment. The shares of the node are out of date until [`share_out`](Self::share_out).
    pub fn use_as(&mut self, core: u32, now: Time, next: impl FnOnce(Span) -> Segment) {
        let left = self.settle(core, now);
        let slot = &mut self.shares_mut().slots[core as usize];
        slot.use_as(next(Span(slot.work.saturating_sub(left.0))));
    }

    /// Marks the shares of a node as outdated. Returns whether they already were.
    pub fn note_sharing(&mut self, node: u32) -> bool {
        std::mem::replace(&mut self.shares_mut().due[node as usize], true)
    }

    /// Shares out the CPU of a node among its copies at `now`, and appends the changed copies to `changes`.
    pub fn share_out(&mut self, node: u32, now: Time, changes: &mut Vec<Change>) {
        let shares = self.shares_mut();
        shares.due[node as usize] = false;
        let copies = shares.water_fill(node);
        for i in 0..copies {
            let shares = self.shares();
            let (core, given) = (shares.busy[node as usize][i], shares.given[i]);
            let slot = &shares.slots[core as usize];
            if slot.given == given && !slot.changed {
                continue;
            }
            self.settle(core, now);
            let slot = &mut self.shares_mut().slots[core as usize];
            slot.take(given);
            let (claim, memory, before) = (slot.claim, slot.memory, slot.next);
            let throttled = slot.share < 1.0;
            let next = self.time(core);
            self.shares_mut().total.throttles += u64::from(throttled);
            changes.push(Change {
                core,
                next: (next != before).then_some(next),
                demand: claim.demand,
                given: given as u32,
                memory,
            });
        }
    }

    /// Computes the next event of the copy of a core and its time. Returns them if they have changed.
    pub fn retime_shared(&mut self, core: u32) -> Option<(Next, u64)> {
        if !self.is_busy(core) {
            return None;
        }
        let before = self.shares().slots[core as usize].next;
        let next = self.time(core);
        (next != before).then_some(next)
    }

    /// Memory that the copies of a shared node use, bytes.
    ///
    /// # Panics
    /// When nodes are not shared.
    pub fn memory(&self, node: u32) -> u64 {
        let shares = self.shares();
        shares.busy[node as usize].iter().map(|&core| shares.slots[core as usize].memory).sum()
    }

    /// Use of the shared nodes by copies until `now`; `None` if nodes are not shared.
    pub fn shared_use(&self, now: Time) -> Option<SharedUse> {
        let shares = self.shares.as_ref()?;
        let mut total = shares.total;
        for &core in shares.busy.iter().flatten() {
            total.count_running(&shares.slots[core as usize], self.progress(core, now));
        }
        Some(total)
    }

    /// The rate of a core, or of the copy's share on a shared node.
    pub(super) fn core_rate(&self, core: u32) -> CoreRate {
        let speed = self.table.speed(core);
        CoreRate::of(self.shares.as_ref().map_or(speed, |shares| speed * shares.share(core)))
    }

    /// The progress of the copy of a core of a shared node at `now`.
    pub(super) fn progress(&self, core: u32, now: Time) -> WorkIntegral {
        let known = self.shares().slots[core as usize].integral;
        if known.at >= now.0 {
            return known;
        }
        self.work(core, self.remembered(core, Time(known.at)), known, now.0)
    }

    /// Removes the copy from a core of a shared node at `now`; `useful` if it ran to its end. Returns the work left.
    pub(super) fn leave(&mut self, core: u32, now: Time, useful: bool) -> Span {
        let left = self.settle(core, now);
        let node = self.table.node(core);
        self.shares_mut().end(core, node, useful);
        left
    }

    /// Counts the work of the copy of a core until `now`, after which its share may change. Returns the work left.
    fn settle(&mut self, core: u32, now: Time) -> Span {
        let progress = self.progress(core, now);
        self.shares_mut().settle(core, progress);
        self.remember(core, Time(progress.at));
        progress.left()
    }

    /// Computes and stores the next event of the copy of a core.
    fn time(&mut self, core: u32) -> (Next, u64) {
        let slot = self.shares().slots[core as usize];
        let begin = slot.integral.at;
        let cursor = self.remembered(core, Time(begin));
        let ends = |integral: WorkIntegral| self.work(core, cursor, integral, u64::MAX).at;
        let next = if slot.until < slot.work {
            (Next::Segment, ends(slot.integral.until_left(Span(slot.work - slot.until))))
        } else {
            (Next::Done, ends(slot.integral))
        };
        self.shares_mut().slots[core as usize].next = next;
        self.runs[core as usize].due = if next.0 == Next::Done { next.1 } else { NEVER };
        next
    }

    fn shares(&self) -> &Shares {
        self.shares.as_ref().expect("nodes are shared")
    }

    fn shares_mut(&mut self) -> &mut Shares {
        self.shares.as_mut().expect("nodes are shared")
    }
}

#[cfg(test)]
mod tests;
