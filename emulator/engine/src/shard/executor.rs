//! Copies on real cores.
//!
//! [`Cores`] computes when a copy should end, to the nanosecond. Where copies burn real cores that time is only the
//! target; the copy ends when the [`CoreExecutor`] reports it. The runtime polls the executor through
//! [`Shard::poll_executor`](super::Shard::poll_executor).

use volary_actors::base::{CopyId, Span, Time};

use crate::cores::Cores;
use crate::results::{RealWork, Worked};

/// Real cores, each of which runs at most one copy. Work is measured in emulated time of a healthy reference core.
pub trait CoreExecutor {
    /// Starts work on an idle core. The ticket identifies the work in [`finished`](Self::finished).
    fn run(&mut self, core: u32, ticket: u64, work: Span);
    /// Stops the work of a core and returns the remainder, which is zero only if the work was finished.
    fn halt(&mut self, core: u32) -> Span;
    /// Remaining work of a core.
    fn left(&self, core: u32) -> Span;
    /// The next core and ticket whose work is finished, and the time at which it finished.
    fn finished(&mut self) -> Option<(u32, u64, Time)>;
    /// Slows the cores down as `cores` says, for some time from `now` on. The plan is renewed after this time, or at
    /// once if the plan has `changed`.
    fn degrade(&mut self, cores: &Cores, now: Time, changed: bool);
    /// Ends all work and returns the work of the cores, without the copies.
    fn end(&mut self) -> Worked;
}

/// The executor of a shard, and the copies that it runs.
pub(super) struct ExecutorState {
    executor: Box<dyn CoreExecutor>,
    runs: Vec<Option<RunningCopy>>,
    tickets: u64,
    /// Whether the slowdown plan has changed and must be passed to the executor again.
    changed: bool,
    /// Target and achieved core time of copies that ran to their end.
    measured: RealWork,
}

struct RunningCopy {
    copy: CopyId,
    ticket: u64,
    /// The work of the copy alone, without the time to put a preempted copy away.
    work: Span,
    since: Time,
    /// Time at which the copy should end.
    due: Time,
    state: RunState,
}

#[derive(Clone, Copy)]
enum RunState {
    Running,
    /// The copy finished at this time.
    Finished(Time),
    /// The node is paused with this much work left.
    Paused(Span),
}

/// Minimum work of a stopped copy for its rate to be measured.
const LEAST_MEASURED: Span = Span::from_millis(1);

impl ExecutorState {
    pub(super) fn new(executor: Box<dyn CoreExecutor>, cores: u32) -> Self {
        let runs = (0..cores).map(|_| None).collect();
        Self { executor, runs, tickets: 0, changed: false, measured: RealWork::default() }
    }

    /// Starts a copy that should end at `due`.
    pub(super) fn run(&mut self, cores: &Cores, core: u32, now: Time, copy: CopyId, work: Span, due: Time) {
        self.tickets += 1;
        let state = RunState::Running;
        self.runs[core as usize] =
            Some(RunningCopy { copy, ticket: self.tickets, work, since: now, due, state });
        let before = cores.clearing(core, now).as_secs_f64() * cores.table().speed(core);
        self.executor.run(core, self.tickets, work + Span::from_secs_f64(before));
    }

    /// Changes the time at which the copy on a core should end.
    pub(super) fn set_due(&mut self, core: u32, due: Time) {
        if let Some(running) = &mut self.runs[core as usize] {
            running.due = due;
        }
    }

    /// Notes that the slowdown plan has changed.
    pub(super) const fn slowdowns_changed(&mut self) {
        self.changed = true;
    }

    /// Stops a copy and returns the work left.
    pub(super) fn halt(&mut self, core: u32) -> Span {
        let Some(RunningCopy { work, state, .. }) = self.runs[core as usize].take() else {
            return Span::ZERO;
        };
        match state {
            RunState::Running => self.executor.halt(core).min(work),
            RunState::Paused(left) => left.min(work),
            RunState::Finished(_) => Span::ZERO,
        }
    }

    /// Stops a copy that should have `expected` work left at `now`, and returns the work left.
    pub(super) fn stop(&mut self, core: u32, now: Time, expected: Span) -> Span {
        let running = self.runs[core as usize].as_ref().map(|run| (run.since, run.work, run.state));
        let left = self.halt(core);
        if let Some((since, work, RunState::Running)) = running {
            let done = |left: Span| work.0.saturating_sub(left.0) as f64;
            let (achieved, asked) = (done(left), done(expected));
            if achieved.min(asked) >= LEAST_MEASURED.0 as f64 {
                // The requested time is that in which the achieved work should have been done.
                let kept = now.since(since).as_secs_f64();
                self.measured.copy(kept * achieved / asked, kept);
            }
        }
        left
    }

    pub(super) fn left(&self, core: u32) -> Span {
        let Some(running) = &self.runs[core as usize] else { return Span::ZERO };
        match running.state {
            RunState::Running => self.executor.left(core).min(running.work),
            RunState::Paused(left) => left.min(running.work),
            RunState::Finished(_) => Span::ZERO,
        }
    }

    /// Handles the end of the copy on a core.
    pub(super) fn completed(&mut self, core: u32) {
        if let Some(RunningCopy { since, due, state: RunState::Finished(at), .. }) =
            self.runs[core as usize].take()
            && due < Time::MAX
        {
            self.measured.copy(due.since(since).as_secs_f64(), at.since(since).as_secs_f64());
        }
    }

    pub(super) fn set_paused(&mut self, core: u32, paused: bool) {
        let Some(running) = &mut self.runs[core as usize] else { return };
        match running.state {
            RunState::Running if paused => {
                let left = self.executor.halt(core);
                // If nothing is left, the executor reports the copy as finished.
                if left > Span::ZERO {
                    running.state = RunState::Paused(left);
                }
            }
            RunState::Paused(left) if !paused => {
                running.state = RunState::Running;
                self.executor.run(core, running.ticket, left);
            }
            RunState::Running | RunState::Paused(_) | RunState::Finished(_) => {}
        }
    }

    /// Passes the slowdown plan to the executor.
    pub(super) fn degrade(&mut self, cores: &Cores, now: Time) {
        self.executor.degrade(cores, now, std::mem::take(&mut self.changed));
    }

    /// The core and copy of the next work that the executor has finished, and the time at which it finished.
    pub(super) fn finished(&mut self) -> Option<(u32, CopyId, Time)> {
        while let Some((core, ticket, at)) = self.executor.finished() {
            // A copy halted in the meantime has another ticket or none.
            if let Some(running) = self.runs[core as usize].as_mut().filter(|run| run.ticket == ticket) {
                running.state = RunState::Finished(at);
                return Some((core, running.copy, at));
            }
        }
        None
    }

    /// Ends all work and returns the work of the cores.
    pub(super) fn end(mut self) -> Worked {
        let mut worked = self.executor.end();
        let RealWork { copies, asked_s, achieved_s, .. } = self.measured;
        worked.work = RealWork { copies, asked_s, achieved_s, ..worked.work };
        worked
    }
}
