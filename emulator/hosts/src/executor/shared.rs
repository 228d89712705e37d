//! The state that the threads of one core share: the current copy, its progress, and the time with a copy.
//!
//! A burner has the lowest priority and may lose its CPU at any instruction. No other thread waits for a burner, and a
//! burner waits for no thread: everything that it reads or writes is a single atomic.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use volary_experiment::guard::guard;

use super::calibration::{Calibration, MAX_ROUNDS};

/// Bits of [`CoreShared::copy`] for the rounds left; the bits above identify the copy.
const ROUND_BITS: u32 = MAX_ROUNDS.count_ones();
/// Bit of [`CoreShared::presence`] that is set while there is a copy.
const PRESENT: u64 = 1 << 63;
/// No edge, or an edge that has been recorded.
const NO_EDGE: u64 = u64::MAX;

/// A time in which a core is degraded, on the monotonic clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DegradedSlot {
    /// Start of the slot.
    pub from: Instant,
    /// End of the slot.
    pub until: Instant,
    /// The configured slowdown σ > 1: work takes σ times as long. Above about 30, σ is limited by the minimum CPU share
    /// that the system leaves to a burner.
    pub slowdown: f64,
}

/// A copy as the burner sees it: its sequence number and its rounds left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CurrentCopy(u64);

impl CurrentCopy {
    pub(super) const fn rounds_left(self) -> u64 {
        self.0 & MAX_ROUNDS
    }
}

/// The state of a copy after a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ChunkEnd {
    /// The copy goes on.
    More(CurrentCopy),
    /// The copy has finished.
    Finished,
    /// The copy was halted in the meantime, and the chunk is lost.
    Halted,
}

/// Counters of a core up to some time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct CoreCounters {
    /// Time with a copy, ns.
    pub(super) busy: u64,
    /// Number of rounds done.
    pub(super) rounds: u64,
}

#[derive(Debug)]
pub(super) struct CoreShared {
    origin: Instant,
    /// The current copy: sequence number and rounds left. There is no copy if no rounds are left.
    copy: AtomicU64,
    ticket: AtomicU64,
    /// If [`PRESENT`] is set, there is a copy, and the other bits are the total time without a copy (ns). Otherwise the
    /// bits are the total time with a copy.
    presence: AtomicU64,
    /// Rounds done in all, lost chunks included.
    rounds: AtomicU64,
    /// Time for which a count of rounds is requested, and the count that [`record_edge`](Self::record_edge) records.
    edge: AtomicU64,
    rounds_at_edge: AtomicU64,
    /// The ticket of the last finished copy, zero if it was taken, and the time of its end in ns since the origin. A
    /// core has one copy at a time, and the next begins only after the last was taken or halted.
    finished_ticket: AtomicU64,
    finished_at: AtomicU64,
    /// Whether the competitor waits for a copy.
    wake_competitor: AtomicBool,
    stopped: AtomicBool,
    /// New slots that the competitor has not yet taken.
    slots: Mutex<Option<Vec<DegradedSlot>>>,
    slots_changed: AtomicBool,
    competitor: OnceLock<Thread>,
}

impl CoreShared {
    pub(super) const fn new(origin: Instant) -> Self {
        Self {
            origin,
            copy: AtomicU64::new(0),
            ticket: AtomicU64::new(0),
            presence: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
            edge: AtomicU64::new(NO_EDGE),
            rounds_at_edge: AtomicU64::new(0),
            finished_ticket: AtomicU64::new(0),
            finished_at: AtomicU64::new(0),
            wake_competitor: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            slots: Mutex::new(None),
            slots_changed: AtomicBool::new(false),
            competitor: OnceLock::new(),
        }
    }

    /// Nanoseconds since the origin.
    pub(super) fn now(&self) -> u64 {
        self.ns(Instant::now())
    }

    /// An instant as nanoseconds since the origin.
    pub(super) fn ns(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.origin).as_nanos() as u64
    }

    // Called by the owner of the core.

    /// Starts a copy.
    pub(super) fn start_copy(&self, ticket: u64, rounds: u64) {
        let last = self.copy.load(Ordering::Acquire);
        assert!(last & MAX_ROUNDS == 0, "the core runs a copy already");
        self.ticket.store(ticket, Ordering::Release);
        let sequence = (last >> ROUND_BITS).wrapping_add(1);
        let now = self.now();
        self.copy.store(sequence << ROUND_BITS | rounds, Ordering::SeqCst);
        self.update_presence(now);
        if self.wake_competitor.swap(false, Ordering::SeqCst) {
            self.unpark_competitor();
        }
    }

    /// Halts the copy; returns the rounds left.
    pub(super) fn halt(&self) -> u64 {
        let left = self.copy.fetch_and(!MAX_ROUNDS, Ordering::SeqCst) & MAX_ROUNDS;
        // Updated here because the burner may notice the halt much later.
        self.update_presence(self.now());
        left
    }

    pub(super) fn rounds_left(&self) -> u64 {
        self.copy.load(Ordering::SeqCst) & MAX_ROUNDS
    }

    /// Takes the ticket of a finished copy, and the time of its end.
    pub(super) fn take_finished(&self) -> Option<(u64, Instant)> {
        // The load avoids a write in the common case that no copy has finished.
        if self.finished_ticket.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let ticket = self.finished_ticket.swap(0, Ordering::Acquire);
        let at = self.origin + Duration::from_nanos(self.finished_at.load(Ordering::Relaxed));
        (ticket != 0).then_some((ticket, at))
    }

    /// Replaces the coming slots.
    pub(super) fn set_slots(&self, slots: Vec<DegradedSlot>) {
        *guard(&self.slots) = Some(slots);
        self.slots_changed.store(true, Ordering::Release);
        self.unpark_competitor();
    }

    /// Stops both threads.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.unpark_competitor();
    }

    /// Sets the thread to unpark when slots change. Called once.
    pub(super) fn set_competitor(&self, thread: Thread) {
        let _ = self.competitor.set(thread);
    }

    fn unpark_competitor(&self) {
        self.competitor.get().into_iter().for_each(Thread::unpark);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    // Called by the burner.

    /// The current copy and its ticket.
    pub(super) fn current_copy(&self) -> Option<(CurrentCopy, u64)> {
        loop {
            let copy = self.copy.load(Ordering::SeqCst);
            if copy & MAX_ROUNDS == 0 {
                return None;
            }
            let ticket = self.ticket.load(Ordering::Acquire);
            // If the copy has changed, the ticket may be that of the next one.
            if self.copy.load(Ordering::SeqCst) == copy {
                return Some((CurrentCopy(copy), ticket));
            }
        }
    }

    /// Counts a chunk that ended at `now`.
    pub(super) fn end_chunk(
        &self,
        copy: CurrentCopy,
        rounds: u64,
        now: u64,
        calibration: Calibration,
    ) -> ChunkEnd {
        let total = self.rounds.load(Ordering::Relaxed) + rounds;
        self.rounds.store(total, Ordering::Release);
        self.record_edge(total, rounds, now, calibration);
        let rest = CurrentCopy(copy.0 - rounds);
        match self.copy.compare_exchange(copy.0, rest.0, Ordering::SeqCst, Ordering::SeqCst) {
            Err(_) => ChunkEnd::Halted,
            Ok(_) if rest.rounds_left() > 0 => ChunkEnd::More(rest),
            Ok(_) => {
                self.update_presence(now);
                ChunkEnd::Finished
            }
        }
    }

    /// Publishes that the copy with this ticket has finished.
    pub(super) fn publish_finished(&self, ticket: u64) {
        self.finished_at.store(self.now(), Ordering::Relaxed);
        self.finished_ticket.store(ticket, Ordering::Release);
    }

    /// Records the rounds done at the edge, when the first chunk after it ends. The competitor may wake much later.
    fn record_edge(&self, total: u64, rounds: u64, now: u64, calibration: Calibration) {
        let edge = self.edge.load(Ordering::Acquire);
        if now >= edge {
            let after = calibration.rounds_in((now - edge) as f64).min(rounds);
            self.rounds_at_edge.store(total - after, Ordering::Relaxed);
            // Fails if the competitor has set another edge, and no longer needs this one.
            let _ = self.edge.compare_exchange(edge, NO_EDGE, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Records whether there is a copy from `now` on. Every thread that changes the presence of a copy calls this. Of
    /// two concurrent calls, the slower one notices that its record is out of date, and tries again.
    fn update_presence(&self, now: u64) {
        loop {
            let present = self.rounds_left() > 0;
            let update = |presence: u64| {
                let (busy, idle) = (presence, presence & !PRESENT);
                match (presence & PRESENT != 0, present) {
                    (false, true) => Some(PRESENT | now.saturating_sub(busy)),
                    (true, false) => Some(now.saturating_sub(idle)),
                    (true, true) | (false, false) => None,
                }
            };
            // Fails if it is recorded already.
            let _ = self.presence.fetch_update(Ordering::SeqCst, Ordering::SeqCst, update);
            if (self.rounds_left() > 0) == present {
                return;
            }
        }
    }

    // Called by the competitor.

    /// Whether there is a copy.
    pub(super) fn is_busy(&self) -> bool {
        self.presence.load(Ordering::SeqCst) & PRESENT != 0
    }

    /// Requests to be unparked when a copy starts. Returns whether there is still no copy.
    pub(super) fn request_wake(&self) -> bool {
        self.wake_competitor.store(true, Ordering::SeqCst);
        !self.is_busy()
    }

    /// The new slots, if there are any.
    pub(super) fn take_slots(&self) -> Option<Vec<DegradedSlot>> {
        if self.slots_changed.swap(false, Ordering::AcqRel) { guard(&self.slots).take() } else { None }
    }

    /// Whether the competitor must stop occupying the CPU, because slots have changed or the core is stopped.
    pub(super) fn is_interrupted(&self) -> bool {
        self.slots_changed.load(Ordering::Relaxed) || self.is_stopped()
    }

    /// Requests the counters at `edge`, a future time.
    pub(super) fn set_edge(&self, edge: u64) {
        self.edge.store(edge, Ordering::Release);
    }

    /// The counters at the requested edge, which has passed.
    pub(super) fn counters_at_edge(&self, edge: u64) -> CoreCounters {
        let recorded = self.edge.load(Ordering::Acquire) == NO_EDGE;
        // Without a record no chunk has ended since the edge, so the current count is the count at the edge.
        let rounds = if recorded { &self.rounds_at_edge } else { &self.rounds };
        CoreCounters { busy: self.busy(edge), rounds: rounds.load(Ordering::Acquire) }
    }

    /// The current counters.
    pub(super) fn counters(&self, now: u64) -> CoreCounters {
        CoreCounters { busy: self.busy(now), rounds: self.rounds.load(Ordering::Acquire) }
    }

    /// Time with a copy up to `at`, which is close to now, in ns.
    fn busy(&self, at: u64) -> u64 {
        let presence = self.presence.load(Ordering::SeqCst);
        if presence & PRESENT == 0 { presence } else { at.saturating_sub(presence & !PRESENT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core() -> CoreShared {
        CoreShared::new(Instant::now())
    }

    #[test]
    fn time_with_a_copy_is_counted() {
        let core = core();
        let set = |copy: u64| core.copy.store(copy, Ordering::SeqCst);
        core.update_presence(50);
        assert!(!core.is_busy());
        set(1);
        core.update_presence(100);
        assert_eq!((core.busy(150), core.busy(250)), (50, 150));
        core.update_presence(200);
        assert_eq!(core.busy(250), 150, "it was recorded already");
        set(0);
        core.update_presence(300);
        assert_eq!((core.busy(300), core.busy(1000), core.is_busy()), (200, 200, false));
        core.update_presence(500);
        set(1);
        core.update_presence(1000);
        assert_eq!((core.busy(1001), core.is_busy()), (201, true));
    }

    /// Presence is correct in the end, however the end of a copy and the start of the next copy interleave.
    #[test]
    fn concurrent_ends_and_starts_of_copies_leave_a_correct_presence() {
        let (core, calibration) = (core(), Calibration::new(1.0));
        let deadline = Instant::now() + Duration::from_secs(300);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !core.is_stopped() {
                    if let Some((copy, _)) = core.current_copy() {
                        core.end_chunk(copy, copy.rounds_left(), core.now(), calibration);
                    }
                }
            });
            for ticket in 0..1_000 {
                core.start_copy(ticket, 1);
                if ticket % 3 == 0 {
                    core.halt();
                }
                while core.rounds_left() > 0 && Instant::now() < deadline {
                    std::thread::yield_now();
                }
            }
            core.stop();
        });
        assert!(Instant::now() < deadline && !core.is_busy());
        core.start_copy(0, 1);
        assert!(core.is_busy());
        assert_eq!((core.halt(), core.is_busy()), (1, false), "at once");
    }

    #[test]
    fn a_chunk_counts_for_its_own_copy_only() {
        let (core, calibration) = (core(), Calibration::new(1.0));
        assert_eq!(core.current_copy(), None);
        core.start_copy(7, 100);
        let (copy, ticket) = core.current_copy().unwrap();
        assert_eq!((copy.rounds_left(), ticket), (100, 7));
        let ChunkEnd::More(rest) = core.end_chunk(copy, 60, 1, calibration) else { panic!() };
        assert_eq!((rest.rounds_left(), core.rounds_left()), (40, 40));
        // During a chunk the copy is halted, and another one starts with as much work.
        assert_eq!(core.halt(), 40);
        core.start_copy(8, 40);
        assert_eq!(core.end_chunk(rest, 40, 2, calibration), ChunkEnd::Halted);
        let (copy, ticket) = core.current_copy().unwrap();
        assert_eq!((copy.rounds_left(), ticket), (40, 8));
        assert_eq!(core.end_chunk(copy, 40, 3, calibration), ChunkEnd::Finished);
        assert_eq!((core.current_copy(), core.halt(), core.counters(0).rounds), (None, 0, 140));
    }

    /// Rounds at an edge are exact, however late they are read.
    #[test]
    fn the_first_chunk_after_an_edge_records_the_edge() {
        let (core, calibration) = (core(), Calibration::new(2.0));
        core.start_copy(1, 1000);
        let (copy, _) = core.current_copy().unwrap();
        core.set_edge(100);
        let ChunkEnd::More(copy) = core.end_chunk(copy, 50, 99, calibration) else { panic!() };
        assert_eq!(core.counters_at_edge(100).rounds, 50, "no chunk has ended since");
        let ChunkEnd::More(copy) = core.end_chunk(copy, 50, 110, calibration) else { panic!() };
        let ChunkEnd::More(copy) = core.end_chunk(copy, 50, 135, calibration) else { panic!() };
        assert_eq!((core.counters_at_edge(100).rounds, core.counters(135).rounds), (100 - 20, 150));
        // No more than the whole chunk is attributed to the time after the edge.
        core.set_edge(140);
        core.end_chunk(copy, 50, 10_000, calibration);
        assert_eq!(core.counters_at_edge(140).rounds, 150);
    }
}
