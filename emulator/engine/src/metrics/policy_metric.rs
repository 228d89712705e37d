//! The trait of metrics that only some policies have.

use volary_actors::base::{ActorId, CopyId, Time};
use volary_actors::machine::Note;

use crate::results::PolicyResults;
use crate::workload::Window;

/// A metric folded from notes that only some policies emit. It costs nothing under other policies.
pub trait PolicyMetric {
    /// An actor emitted a note.
    fn note(&mut self, now: Time, who: ActorId, note: Note);

    /// The first finished copy of a task ended. Its job was submitted at `arrived`, and it started at `start`.
    fn finished(&mut self, _copy: CopyId, _arrived: Time, _start: Time, _now: Time) {}

    /// The node of a core crashed.
    fn crashed(&mut self, _now: Time, _core: u32) {}

    /// Whether the notes of a scheduler are needed, so that it must read broadcasts by [`reads_by`](Self::reads_by).
    fn watches(&self, _scheduler: u32) -> bool {
        false
    }

    /// The time by which the notes about all earlier events must have arrived. Until then, notes of a scheduler about
    /// its cache may arrive late, but never after its next decision.
    fn reads_by(&self) -> Time {
        Time::MAX
    }

    /// Adds the measurements to the results of a run from its `first` arrival to `end`.
    fn close(self, first: Time, end: Time, results: &mut PolicyResults);
}

/// Two metrics, each of which gets every call.
impl<A: PolicyMetric, B: PolicyMetric> PolicyMetric for (A, B) {
    #[inline]
    fn note(&mut self, now: Time, who: ActorId, note: Note) {
        self.0.note(now, who, note);
        self.1.note(now, who, note);
    }

    fn finished(&mut self, copy: CopyId, arrived: Time, start: Time, now: Time) {
        self.0.finished(copy, arrived, start, now);
        self.1.finished(copy, arrived, start, now);
    }

    fn crashed(&mut self, now: Time, core: u32) {
        self.0.crashed(now, core);
        self.1.crashed(now, core);
    }

    fn watches(&self, scheduler: u32) -> bool {
        self.0.watches(scheduler) || self.1.watches(scheduler)
    }

    #[inline]
    fn reads_by(&self) -> Time {
        self.0.reads_by().min(self.1.reads_by())
    }

    fn close(self, first: Time, end: Time, results: &mut PolicyResults) {
        self.0.close(first, end, results);
        self.1.close(first, end, results);
    }
}

/// A metric of the notes in the measured window.
#[derive(Debug)]
pub struct Within<M>(pub Window, pub M);

impl<M: PolicyMetric> PolicyMetric for Within<M> {
    #[inline]
    fn note(&mut self, now: Time, who: ActorId, note: Note) {
        if self.0.spans(now) {
            self.1.note(now, who, note);
        }
    }

    fn close(self, first: Time, end: Time, results: &mut PolicyResults) {
        self.1.close(first, end, results);
    }
}
