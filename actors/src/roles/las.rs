//! Least attained service on one node: cores, and copies that wait or are suspended (Kairos, section 3.2, algorithm 1).
//!
//! A newcomer takes a free core, or the core of the running copy with the most attained service; this copy is suspended
//! with its progress. A copy that ends leaves its core to the waiting copy with the least attained service. While
//! copies wait, a core compares them with its own copy at the end of every quantum. The discipline sends orders to the
//! workers; the machine that contains it forwards the workers' answers and the discipline's ticks.
//!
//! Service is measured in time on a core, which a node can measure, or in work done, which its workers must report. In
//! the second case the node asks its workers before each decision, and they answer within the same instant.
//!
//! After a suspension, the core gets its next copy when the worker has reported the work left of the suspended copy. If
//! no work is left, the copy ended in the same instant, and keeps the core until its end is reported.

use crate::base::{ActorId, CopyId, Span, Time, parameters};
use crate::layout::Role;
use crate::machine::{Effects, Timer};
use crate::message::Core;

parameters! {
    /// The measure of the service that a copy has attained.
    enum AttainedMeasure {
        /// The time that the copy has spent on cores, however slow they were. Any node can measure it.
        #[default]
        Time,
        /// The work that the copy has done, in time of a healthy core. Cores of the emulation know it at any time. A
        /// real node learns it only from the application or from performance counters.
        Work,
    }

    /// Protection of copies against waiting for ever behind newer copies.
    enum LasGuard {
        /// A copy that every core of the node has passed over at `missed` consecutive ends of quanta runs next,
        /// whatever it has attained. It is then not preempted for `stretch` quanta (Kairos, section 3.2). Among several
        /// such copies the one that has waited longest comes first, which the paper leaves open.
        #[default]
        Promote,
        /// A copy that was suspended more than `missed` times runs on for `stretch` quanta after its next quantum,
        /// without being compared; newcomers can still preempt it. The authors' YARN code does so (with 3 and 2) since
        /// August 2018.
        Running,
        /// No guard, as in the authors' earlier YARN code: a copy can wait for ever.
        None,
    }
}

/// Options of the discipline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LasOptions {
    /// Time for which a core runs a copy before it compares the copy with waiting copies.
    pub quantum: Span,
    /// Least lead in attained service of a waiting copy at the end of a quantum; with zero any positive lead suffices.
    pub hysteresis: Span,
    /// Protection of copies from waiting for ever.
    pub guard: LasGuard,
    /// Number of quanta in which a copy is passed over, or of suspensions, before the guard protects it; at least 1.
    pub missed: u32,
    /// Number of quanta for which the guard protects a copy; at least 1.
    pub stretch: f64,
    /// The measure of attained service.
    pub attained: AttainedMeasure,
}

impl LasOptions {
    /// The options of the Kairos paper (sections 3.2 and 6.2) with a quantum.
    pub const fn with(quantum: Span) -> Self {
        Self {
            quantum,
            hysteresis: Span::ZERO,
            guard: LasGuard::Promote,
            missed: 3,
            stretch: 1.0,
            attained: AttainedMeasure::Time,
        }
    }
}

/// A copy on the node.
#[derive(Clone, Copy, Debug)]
struct ServedCopy {
    copy: CopyId,
    /// The actor that sent the copy.
    from: ActorId,
    /// Service up to `since`. If service is work, the work done since then is not known yet.
    attained: Span,
    /// Work that was left when the copy was suspended; `None` before it first ran.
    left: Option<Span>,
    /// Start of the copy's present run or wait, or time of the last report of its work.
    since: Time,
    /// Number of ends of quanta at which the copy was passed over in this wait. Under `running`, number of its
    /// suspensions since it was last protected.
    missed: u32,
}

#[derive(Clone, Copy, Debug)]
enum CoreUse {
    Idle,
    Running {
        served: ServedCopy,
        /// Whether the copy is protected from preemption until `due`.
        guarded: bool,
        /// The end of the copy's quantum.
        due: Time,
    },
    /// The worker was ordered to suspend the copy and has not answered yet; `next` runs after the answer.
    Leaving {
        served: ServedCopy,
        next: CopyId,
    },
}

#[derive(Clone, Copy, Debug)]
struct LasCore {
    usage: CoreUse,
    /// Number and time of the tick that is armed for this core; earlier ticks are outdated.
    wake: Option<(u32, Time)>,
}

const _: () = assert!(size_of::<LasCore>() <= 104 && size_of::<ServedCopy>() <= 56, "a run has many nodes");

/// Attained service of the copies on a node. The work of a running copy is estimated by the time since its last report.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AttainedService {
    /// Number of copies.
    pub tasks: u32,
    /// Sum of the copies' attained service.
    pub total: Span,
    /// Standard deviation of the copies' attained service.
    pub spread: Span,
}

/// The cores of a node and the copies that wait for them.
#[derive(Clone, Debug)]
pub struct Las {
    options: LasOptions,
    cores: Box<[LasCore]>,
    /// Waiting copies, longest wait first.
    waiting: Vec<ServedCopy>,
    /// Waiting copies that arrived while every core was busy, and may take a core once all cores have reported their
    /// work.
    newcomers: Vec<CopyId>,
    /// Number of the next tick.
    ticks: u32,
}

impl Las {
    /// The lowest number of the discipline's ticks.
    pub const FIRST_TICK: u32 = 4;

    /// A node with `cores` idle cores. The machine that contains it may use ticks below
    /// [`FIRST_TICK`](Self::FIRST_TICK).
    pub fn new(options: LasOptions, cores: u32) -> Self {
        let core = LasCore { usage: CoreUse::Idle, wake: None };
        Self {
            options,
            cores: vec![core; cores as usize].into(),
            waiting: Vec::new(),
            newcomers: Vec::new(),
            ticks: Self::FIRST_TICK,
        }
    }

    /// Number of copies on the node.
    pub fn tasks(&self) -> u32 {
        let busy = self.cores.iter().filter(|core| !matches!(core.usage, CoreUse::Idle)).count();
        (busy + self.waiting.len()) as u32
    }

    /// Attained service of the copies.
    pub fn service(&self, now: Time) -> AttainedService {
        let running = self.cores.iter().filter_map(|core| match core.usage {
            CoreUse::Running { served, .. } => Some(served.attained + now.since(served.since)),
            CoreUse::Leaving { served, .. } => Some(served.attained),
            CoreUse::Idle => None,
        });
        let all = running.chain(self.waiting.iter().map(|waiting| waiting.attained));
        let total = all.clone().fold(Span::ZERO, |sum, attained| sum + attained);
        let tasks = self.tasks();
        let mean = total.as_secs_f64() / f64::from(tasks.max(1));
        let squares: f64 = all.map(|attained| (attained.as_secs_f64() - mean).powi(2)).sum();
        let spread = Span::from_secs_f64((squares / f64::from(tasks.max(1))).sqrt());
        AttainedService { tasks, total, spread }
    }

    /// Accepts a copy, which runs at once unless every core is guarded.
    pub fn arrive(&mut self, from: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let now = fx.now();
        let newcomer = ServedCopy { copy, from, attained: Span::ZERO, left: None, since: now, missed: 0 };
        if let Some(core) = self.cores.iter().position(|core| matches!(core.usage, CoreUse::Idle)) {
            self.start(core, newcomer, false, fx);
        } else {
            self.waiting.push(newcomer);
            match self.options.attained {
                AttainedMeasure::Time => self.preempt_for(copy, fx),
                AttainedMeasure::Work => {
                    self.newcomers.push(copy);
                    (0..self.cores.len()).for_each(|core| self.ask(core, fx));
                }
            }
        }
        self.arm(fx);
    }

    /// Handles a worker's answer: the work that the worker's copy has done, in milliseconds.
    pub fn on_progress(&mut self, worker: ActorId, copy: CopyId, done_ms: u32, fx: &mut Effects<'_>) {
        let (core, now, done) = (core_of(worker, fx), fx.now(), Span::from_millis(u64::from(done_ms)));
        let CoreUse::Running { served, due, .. } = &mut self.cores[core].usage else { return };
        if served.copy != copy {
            return;
        }
        (served.attained, served.since) = (done, now);
        // Whether the end of this core's quantum caused the question, rather than a newcomer alone.
        let over = now >= *due && self.cores[core].wake.is_none();
        // Cores answer in the order in which they were asked.
        let last = self.cores.iter().rposition(|core| matches!(core.usage, CoreUse::Running { .. }));
        if over {
            self.end_quantum(core, done, fx);
        }
        if last == Some(core) {
            for newcomer in std::mem::take(&mut self.newcomers) {
                if self.waits(newcomer) {
                    self.preempt_for(newcomer, fx);
                }
            }
        }
        self.arm(fx);
    }

    /// Handles a worker's report that a copy ended; returns the copy's sender. If a pause held the end back, the node
    /// may have ordered the copy to be suspended meanwhile; the order is then void.
    pub fn ended(&mut self, worker: ActorId, copy: CopyId, fx: &mut Effects<'_>) -> Option<ActorId> {
        let core = core_of(worker, fx);
        let (CoreUse::Running { served, .. } | CoreUse::Leaving { served, .. }) = self.cores[core].usage
        else {
            return None;
        };
        debug_assert_eq!(served.copy, copy, "a core ended a copy that it was not given");
        self.cores[core].usage = CoreUse::Idle;
        self.resume_next(core, fx);
        self.arm(fx);
        Some(served.from)
    }

    /// Handles a worker's report that it suspended a copy.
    pub fn suspended(&mut self, worker: ActorId, copy: CopyId, left: Span, fx: &mut Effects<'_>) {
        let core = core_of(worker, fx);
        let CoreUse::Leaving { served, next } = self.cores[core].usage else { return };
        debug_assert_eq!(served.copy, copy, "a core suspended a copy that it was not given");
        let served = ServedCopy { left: Some(left), since: fx.now(), ..served };
        self.cores[core].usage = CoreUse::Idle;
        if left == Span::ZERO {
            self.start(core, served, false, fx);
        } else {
            let next = self.waiting.iter().position(|waiting| waiting.copy == next);
            self.waiting.push(served);
            match next {
                Some(at) => self.resume(core, at, fx),
                None => self.resume_next(core, fx),
            }
        }
        self.arm(fx);
    }

    /// Handles a tick of this discipline.
    pub fn fire(&mut self, tick: u32, fx: &mut Effects<'_>) {
        let mine = |core: &LasCore| core.wake.is_some_and(|(number, _)| number == tick);
        let Some(core) = self.cores.iter().position(mine) else { return };
        self.cores[core].wake = None;
        if let CoreUse::Running { served, due, .. } = self.cores[core].usage
            && fx.now() >= due
        {
            match self.options.attained {
                AttainedMeasure::Time => {
                    self.end_quantum(core, served.attained + fx.now().since(served.since), fx);
                }
                // The quantum ends when the worker answers.
                AttainedMeasure::Work => return self.ask(core, fx),
            }
        }
        self.arm(fx);
    }

    /// Drops the copies of a crashed scheduler, because another scheduler launches them again.
    pub fn forget(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.waiting.retain(|waiting| waiting.from != actor);
        for core in 0..self.cores.len() {
            if let CoreUse::Running { served, .. } = self.cores[core].usage
                && served.from == actor
            {
                fx.send(fx.worker(core), Core::Stop { copy: served.copy });
                self.cores[core].usage = CoreUse::Idle;
            }
        }
        for core in 0..self.cores.len() {
            if matches!(self.cores[core].usage, CoreUse::Idle) {
                self.resume_next(core, fx);
            }
        }
        self.arm(fx);
    }

    /// The core that runs the preemptable copy with the most attained service.
    fn oldest(&self, now: Time) -> Option<usize> {
        let mut oldest: Option<(usize, Span)> = None;
        for (at, core) in self.cores.iter().enumerate() {
            let CoreUse::Running { served, guarded, due } = core.usage else { continue };
            let attained = served.attained + now.since(served.since);
            if !(guarded && now < due) && oldest.is_none_or(|(_, most)| attained > most) {
                oldest = Some((at, attained));
            }
        }
        oldest.map(|(at, _)| at)
    }

    /// Whether a copy runs next because every core has passed it over in `missed` quanta.
    const fn is_starved(&self, waiting: &ServedCopy) -> bool {
        matches!(self.options.guard, LasGuard::Promote)
            && waiting.missed >= self.options.missed.saturating_mul(self.cores.len() as u32)
    }

    /// The index in `waiting` of the copy that runs next: a starved copy, else the copy that has attained least. Among
    /// equals the one that has waited longest comes first.
    fn next(&self) -> Option<usize> {
        if self.is_starved(self.waiting.first()?) {
            return Some(0);
        }
        (0..self.waiting.len())
            .min_by_key(|&at| (!self.is_starved(&self.waiting[at]), self.waiting[at].attained))
    }

    /// Under the guard `running`, protects a running copy for the next quanta if it was suspended too often. Returns
    /// whether the copy is now protected.
    fn protect(&mut self, core: usize, now: Time) -> bool {
        let LasOptions { guard, missed, stretch, quantum, .. } = self.options;
        if let CoreUse::Running { served, due, .. } = &mut self.cores[core].usage
            && guard == LasGuard::Running
            && served.missed > missed
        {
            (served.missed, *due) = (0, now + quantum.scale(stretch));
            return true;
        }
        false
    }

    /// Ends the quantum of a running copy that has attained this service.
    fn end_quantum(&mut self, core: usize, attained: Span, fx: &mut Effects<'_>) {
        let now = fx.now();
        if self.protect(core, now) {
            return;
        }
        if let Some(at) = self.next() {
            let next = self.waiting[at];
            let lead = attained.saturating_sub(next.attained);
            let swaps = self.is_starved(&next) || lead > Span::ZERO && lead >= self.options.hysteresis;
            for (other, waiting) in self.waiting.iter_mut().enumerate() {
                let passed_over = !swaps || other != at;
                waiting.missed += u32::from(passed_over && self.options.guard != LasGuard::Running);
            }
            if swaps {
                return self.suspend(core, next.copy, fx);
            }
        }
        if let CoreUse::Running { guarded, due, .. } = &mut self.cores[core].usage {
            (*guarded, *due) = (false, now + self.options.quantum);
        }
    }

    /// Asks the worker of a core how much work its running copy has done.
    fn ask(&self, core: usize, fx: &mut Effects<'_>) {
        if let CoreUse::Running { served, .. } = self.cores[core].usage {
            fx.send(fx.worker(core), Core::Ask { copy: served.copy });
        }
    }

    /// Whether a copy waits and has not been promised a core.
    fn waits(&self, copy: CopyId) -> bool {
        let promised = |core: &LasCore| matches!(core.usage, CoreUse::Leaving { next, .. } if next == copy);
        self.waiting.iter().any(|waiting| waiting.copy == copy) && !self.cores.iter().any(promised)
    }

    /// Gives a newcomer the core of the copy with the most attained service.
    fn preempt_for(&mut self, newcomer: CopyId, fx: &mut Effects<'_>) {
        if let Some(core) = self.oldest(fx.now()) {
            self.suspend(core, newcomer, fx);
        }
    }

    /// Orders a busy core to suspend its copy and run `next` after it.
    fn suspend(&mut self, core: usize, next: CopyId, fx: &mut Effects<'_>) {
        let CoreUse::Running { mut served, .. } = self.cores[core].usage else { return };
        served.attained += fx.now().since(served.since);
        served.missed += u32::from(self.options.guard == LasGuard::Running);
        fx.send(fx.worker(core), Core::Suspend { copy: served.copy });
        self.cores[core].usage = CoreUse::Leaving { served, next };
    }

    /// Gives a free core to the next copy, if a copy waits.
    fn resume_next(&mut self, core: usize, fx: &mut Effects<'_>) {
        if let Some(at) = self.next() {
            self.resume(core, at, fx);
        }
    }

    /// Gives a free core to a waiting copy.
    fn resume(&mut self, core: usize, at: usize, fx: &mut Effects<'_>) {
        let next = self.waiting.remove(at);
        let starved = self.is_starved(&next);
        self.start(core, next, starved, fx);
    }

    fn start(&mut self, core: usize, next: ServedCopy, guarded: bool, fx: &mut Effects<'_>) {
        let (copy, now, quantum) = (next.copy, fx.now(), self.options.quantum);
        let order = next.left.map_or_else(|| Core::run(copy), |left| Core::Resume { copy, left });
        fx.send(fx.worker(core), order);
        let quantum = if guarded { quantum.scale(self.options.stretch) } else { quantum };
        let missed = if self.options.guard == LasGuard::Running { next.missed } else { 0 };
        let served = ServedCopy { since: now, missed, ..next };
        self.cores[core].usage = CoreUse::Running { served, guarded, due: now + quantum };
    }

    /// Arms ticks: while copies wait, each busy core has a tick at the end of its quantum or before. A quantum that
    /// ended without a tick, because no copy waited, is replaced by the current one.
    fn arm(&mut self, fx: &mut Effects<'_>) {
        if self.waiting.is_empty() {
            return;
        }
        let (now, quantum) = (fx.now(), self.options.quantum.0);
        for core in &mut self.cores {
            let CoreUse::Running { guarded, due, .. } = &mut core.usage else { continue };
            if core.wake.is_some_and(|(_, at)| at <= *due) {
                continue;
            }
            if *due <= now {
                let over = now.since(*due).0 / quantum + 1;
                (*guarded, *due) = (false, *due + Span(quantum.saturating_mul(over)));
            }
            core.wake = Some((self.ticks, *due));
            fx.arm(Timer::Tick(self.ticks), due.since(now));
            self.ticks = self.ticks.checked_add(1).unwrap_or(Self::FIRST_TICK);
        }
    }
}

/// The number of a worker's core within its node.
fn core_of(worker: ActorId, fx: &Effects<'_>) -> usize {
    match fx.layout().role(worker) {
        Role::Worker { core, .. } => core as usize,
        role => unreachable!("{role:?} is not a core"),
    }
}

#[cfg(test)]
mod tests;
