//! Copies on cores: start, halt, progress, completion, and interference injected during a run.

use volary_actors::base::{ActorId, CopyId, Endpoint, Score, Span, Time};
use volary_actors::layout::Role;
use volary_actors::machine::Input;

use super::event_loop::{Event, EventKind, no_copies};
use super::executor::ExecutorState;
use super::{CoreExecutor, Observer, Shard};
use crate::cores::{CoreSet, Injection};
use crate::results::Worked;

impl<O: Observer> Shard<'_, O> {
    /// Runs a copy from the beginning, or the work `left` of a suspended one. `elsewhere` says that another task of its
    /// gang runs on a node that the job does not prefer.
    pub(super) fn start_copy(&mut self, me: ActorId, copy: CopyId, left: Option<Span>, elsewhere: bool) {
        if let (Some(oracle), None) = (&mut self.oracle, left) {
            oracle.begin(copy.task.job);
        }
        let core = self.parts.layout.core_index(me);
        if let Some(slowed) = &mut self.elsewhere {
            slowed[core as usize] = elsewhere;
        }
        if self.share_changes.is_some() {
            return self.start_shared_copy(core, copy, self.work_on(core, copy), left);
        }
        let work = left.unwrap_or_else(|| self.work_on(core, copy));
        let end = self.parts.cores.start(core, self.now, work);
        if let Some(executor) = &mut self.executor {
            return executor.run(&self.parts.cores, core, self.now, copy, work, end);
        }
        if let Some(copies) = &mut self.copies {
            copies[core as usize] = Some(copy);
        }
        self.schedule_completion(me, copy, end);
    }

    /// The work of a copy on the core that runs it.
    fn work_on(&self, core: u32, copy: CopyId) -> Span {
        let elsewhere = self.elsewhere.as_ref().is_some_and(|slowed| slowed[core as usize]);
        let layout = self.parts.layout;
        self.parts.workload.work_on(copy, layout.kind(layout.node_of_core(core)), elsewhere)
    }

    pub(super) fn schedule_completion(&mut self, me: ActorId, copy: CopyId, end: Time) {
        // A copy that never ends stays until it is halted.
        if end < Time::MAX {
            let kind = EventKind::Input(Input::Done { copy });
            self.push(end, me, Event { to: me, stamp: self.epoch(me), kind });
        }
    }

    pub(super) fn halt_copy(&mut self, me: ActorId, copy: CopyId) {
        let core = self.parts.layout.core_index(me);
        let left = self.parts.cores.preempt(core, self.now);
        let now = self.now;
        let left = self.executor.as_mut().map_or(left, |executor| executor.stop(core, now, left));
        self.actors[me.index()].epoch += 1;
        // Ahead of other local inputs: the core may be given new work in the same step.
        self.local_queue.push_front((me, Input::Halted { copy, left }));
        if self.share_changes.is_some() {
            self.plan_sharing(core);
        }
    }

    pub(super) fn query_progress(&mut self, me: ActorId, copy: CopyId) {
        let core = self.parts.layout.core_index(me);
        let left = match &self.executor {
            Some(executor) => executor.left(core),
            None => self.parts.cores.left(core, self.now),
        };
        let work = self.work_on(core, copy);
        let (score, done) = (Score::of(work, left), work.saturating_sub(left));
        self.local_queue.push_front((me, Input::Progress { copy, score, done }));
    }

    /// Records the loss of the copy on a core in a crash.
    pub(super) fn lose_copy(&mut self, core: u32) {
        self.parts.cores.stop(core, self.now);
        if let Some(executor) = &mut self.executor {
            executor.halt(core);
        }
    }

    /// Handles the completion of the copy on a core.
    pub(super) fn complete_copy(&mut self, core: u32) {
        match &mut self.executor {
            None => self.parts.cores.finished(core, self.now),
            // A real core may finish earlier or later than the emulated one would.
            Some(executor) => {
                executor.completed(core);
                self.parts.cores.stop(core, self.now);
            }
        }
    }

    /// Enables [`inject`](Self::inject), which needs to know the copy on every core. Must be called before
    /// [`start`](Self::start).
    pub fn expect_injections(&mut self) {
        self.copies = Some(no_copies(self.parts.layout));
    }

    /// Overrides the interference profile of some cores when the clock shows `clock`. The injection begins at that time
    /// at the earliest, because the past is fixed; an injection that ends before it never applies. Returns its number
    /// and when it begins.
    ///
    /// # Panics
    /// Without [`expect_injections`](Self::expect_injections).
    pub fn inject(&mut self, clock: Time, mut injection: Injection) -> (usize, Time) {
        injection.from = injection.from.max(clock).max(self.now);
        injection.until = injection.until.max(injection.from);
        let number = self.parts.cores.inject(&injection);
        self.reschedule_completions(&injection.cores);
        (number, injection.from)
    }

    /// Ends an injection into `cores` when the clock shows `clock`, unless it has ended. Returns the latest time at
    /// which it ends.
    pub fn lift(&mut self, clock: Time, number: usize, cores: &CoreSet) -> Time {
        let at = clock.max(self.now);
        self.parts.cores.lift(number, at);
        self.reschedule_completions(cores);
        at
    }

    /// Recomputes the ends of copies. Completions queued for another time become void.
    fn reschedule_completions(&mut self, cores: &CoreSet) {
        if let Some(executor) = &mut self.executor {
            executor.slowdowns_changed();
        }
        if self.share_changes.is_some() {
            return self.retime_shared(cores);
        }
        for core in cores.iter() {
            let Some(end) = self.parts.cores.retime(core) else { continue };
            if let Some(executor) = &mut self.executor {
                executor.set_due(core, end);
                continue;
            }
            let worker = self.parts.layout.worker_of_core(core);
            self.actors[worker.index()].epoch += 1;
            let copies = self.copies.as_ref().expect("injections were expected");
            if let Some(copy) = copies[core as usize] {
                self.schedule_completion(worker, copy, end);
            }
        }
    }
}

/// Copies on real cores.
impl<O: Observer> Shard<'_, O> {
    /// Runs copies on real cores from now on. Must be called before [`start`](Self::start).
    pub fn set_executor(&mut self, executor: Box<dyn CoreExecutor>) {
        self.executor = Some(ExecutorState::new(executor, self.parts.layout.workers()));
        for node in 0..self.parts.layout.nodes() {
            let node = self.parts.layout.node(node);
            if self.parts.placement.owns(node.index()) {
                let pauses = self.parts.fabric.faults().pauses(Endpoint(node.0)).to_vec();
                for (from, until) in pauses {
                    self.schedule(from, node, EventKind::Pause);
                    self.schedule(until, node, EventKind::Resume);
                }
            }
        }
    }

    /// Handles the copies that the executor has finished and keeps its slowdown plan up to date. Must be called
    /// repeatedly; does nothing without an executor.
    pub fn poll_executor(&mut self, now: Time) {
        let Some(state) = &mut self.executor else { return };
        state.degrade(&self.parts.cores, now);
        while let Some((core, copy, at)) = self.executor.as_mut().and_then(ExecutorState::finished) {
            let me = self.parts.layout.worker_of_core(core);
            let kind = EventKind::Input(Input::Done { copy });
            self.push(at, me, Event { to: me, stamp: self.epoch(me), kind });
        }
    }

    /// Detaches the executor and returns the work of its cores; `None` without one.
    pub fn take_executor(&mut self) -> Option<Worked> {
        self.executor.take().map(ExecutorState::end)
    }

    /// Pauses or resumes the real cores of a node.
    pub(super) fn set_executor_paused(&mut self, actor: ActorId, paused: bool) {
        let Some(state) = &mut self.executor else { return };
        let Role::Node(node) = self.parts.layout.role(actor) else { return };
        for core in 0..self.parts.layout.cores(node) {
            let worker = self.parts.layout.worker(node, core);
            state.set_paused(self.parts.layout.core_index(worker), paused);
        }
    }
}
