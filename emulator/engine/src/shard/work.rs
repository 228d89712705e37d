//! Copies on cores: begun, stopped, asked how far they are, slowed down in mid-run.

use volary_actors::base::{ActorId, CopyId, Score, Span, Time};
use volary_actors::machine::Input;

use super::event_loop::{Event, What};
use super::{Observer, Shard};
use crate::cores::{CoreSet, Injection};

impl<O: Observer> Shard<'_, O> {
    pub(super) fn run(&mut self, me: ActorId, copy: CopyId, left: Option<Span>) {
        let core = self.parts.layout.core_index(me);
        let work = left.unwrap_or_else(|| self.parts.workload.work(copy));
        let end = self.parts.cores.start(core, self.now, work);
        if let Some(labour) = &mut self.labour {
            return labour.run(&self.parts.cores, core, self.now, copy, work, end);
        }
        if let Some(copies) = &mut self.copies {
            copies[core as usize] = Some(copy);
        }
        self.ends(me, copy, end);
    }

    /// A copy will be finished at `end`.
    fn ends(&mut self, me: ActorId, copy: CopyId, end: Time) {
        // One that never ends waits for somebody to halt it.
        if end < Time::MAX {
            let stamp = self.residents[me.index()].epoch;
            self.push(end, me, Event { to: me, stamp, what: What::Input(Input::Done { copy }) });
        }
    }

    pub(super) fn halt(&mut self, me: ActorId, copy: CopyId) {
        let core = self.parts.layout.core_index(me);
        let left = self.parts.cores.preempt(core, self.now);
        let now = self.now;
        let left = self.labour.as_mut().map_or(left, |labour| labour.stop(core, now, left));
        self.residents[me.index()].epoch += 1;
        // Before anything else is said to this core: it may be given new work in the same step.
        self.lane.push_front((me, Input::Halted { copy, left }));
    }

    pub(super) fn gauge(&mut self, me: ActorId, copy: CopyId) {
        let core = self.parts.layout.core_index(me);
        let left = match &self.labour {
            Some(labour) => labour.left(core),
            None => self.parts.cores.left(core, self.now),
        };
        let score = Score::of(self.parts.workload.work(copy), left);
        self.lane.push_front((me, Input::Progress { copy, score }));
    }

    /// The copy on a core is lost.
    pub(super) fn lose(&mut self, core: u32) {
        self.parts.cores.stop(core, self.now);
        if let Some(labour) = &mut self.labour {
            labour.halt(core);
        }
    }

    /// The copy on a core has ended by itself.
    pub(super) fn ended(&mut self, core: u32) {
        match &mut self.labour {
            None => self.parts.cores.finished(core, self.now),
            // It ends when it ends.
            Some(labour) => {
                labour.ended(core);
                self.parts.cores.stop(core, self.now);
            }
        }
    }

    /// Gets ready for [`inject`](Self::inject), which must know what every core runs; before [`start`](Self::start).
    pub fn expect_injections(&mut self) {
        self.copies = Some(vec![None; self.parts.layout.workers() as usize].into());
    }

    /// Has another profile rule some cores, when the clock shows `clock`: from then on at the earliest, since what
    /// happened before is known. One that is over by then never rules. Returns the injection's number, and from when
    /// it rules.
    ///
    /// # Panics
    /// When nobody [expected](Self::expect_injections) it.
    pub fn inject(&mut self, clock: Time, mut injection: Injection) -> (usize, Time) {
        injection.from = injection.from.max(clock).max(self.now);
        injection.until = injection.until.max(injection.from);
        let number = self.parts.cores.inject(&injection);
        self.retime(&injection.cores);
        (number, injection.from)
    }

    /// Ends an injection into `cores` when the clock shows `clock`, unless it is over. Returns when that is at the
    /// latest.
    pub fn lift(&mut self, clock: Time, number: usize, cores: &CoreSet) -> Time {
        let at = clock.max(self.now);
        self.parts.cores.lift(number, at);
        self.retime(cores);
        at
    }

    /// Works out anew when copies end; ends that were foreseen for another time are void.
    fn retime(&mut self, cores: &CoreSet) {
        if let Some(labour) = &mut self.labour {
            labour.slots_changed();
        }
        for core in cores.iter() {
            let Some(end) = self.parts.cores.retime(core) else { continue };
            if let Some(labour) = &mut self.labour {
                labour.retime(core, end);
                continue;
            }
            let worker = self.parts.layout.worker_of_core(core);
            self.residents[worker.index()].epoch += 1;
            let copies = self.copies.as_ref().expect("injections were expected");
            if let Some(copy) = copies[core as usize] {
                self.ends(worker, copy, end);
            }
        }
    }
}
