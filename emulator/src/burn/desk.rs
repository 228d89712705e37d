//! What the threads of a core share: the copy, how much of it is done, and how long there was one.
//!
//! The burner never waits for anybody and nobody waits for the burner: it may be off its CPU at any instruction, at
//! the lowest priority there is. So what it and others write are single atomics.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::Instant;

use super::Slot;
use super::calibrate::Pace;
use crate::guard::guard;

/// Bits for the rounds of a copy; those above tell one copy from the next.
const ROUNDS: u32 = 48;
/// The most rounds a copy can have: days.
pub(super) const MOST: u64 = (1 << ROUNDS) - 1;
/// Marks in [`Desk::presence`] that there is a copy.
const HERE: u64 = 1 << 63;
/// No edge, or one that is marked.
const NONE: u64 = u64::MAX;

/// A copy as the burner sees it: its turn and what is left of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Work(u64);

impl Work {
    pub(super) const fn left(self) -> u64 {
        self.0 & MOST
    }
}

/// What became of a copy of which a chunk was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Chunk {
    /// So much is left.
    More(Work),
    /// That was the last.
    Finished,
    /// It was halted meanwhile, and the chunk is lost.
    Halted,
}

/// How long there was a copy and how much was done, up to some time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Sample {
    /// Time with a copy, ns.
    pub(super) had: u64,
    /// Rounds done.
    pub(super) done: u64,
}

#[derive(Debug)]
pub(super) struct Desk {
    origin: Instant,
    /// The copy: turn and rounds left; no rounds, no copy.
    copy: AtomicU64,
    ticket: AtomicU64,
    /// With [`HERE`], a copy is there, and the rest is the time so far without one; else the time so far with
    /// one. Both in ns.
    presence: AtomicU64,
    /// Rounds done in all, lost chunks among them.
    done: AtomicU64,
    /// The time for which the competitor wants to know what was done, and that; see [`mark`](Self::mark).
    edge: AtomicU64,
    at_edge: AtomicU64,
    /// The competitor waits for a copy.
    watched: AtomicBool,
    stopped: AtomicBool,
    /// What slots are to come, if that has changed.
    plan: Mutex<Option<Vec<Slot>>>,
    changed: AtomicBool,
    competitor: OnceLock<Thread>,
}

impl Desk {
    pub(super) const fn new(origin: Instant) -> Self {
        Self {
            origin,
            copy: AtomicU64::new(0),
            ticket: AtomicU64::new(0),
            presence: AtomicU64::new(0),
            done: AtomicU64::new(0),
            edge: AtomicU64::new(NONE),
            at_edge: AtomicU64::new(0),
            watched: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            plan: Mutex::new(None),
            changed: AtomicBool::new(false),
            competitor: OnceLock::new(),
        }
    }

    /// Nanoseconds since the origin.
    pub(super) fn now(&self) -> u64 {
        self.ns(Instant::now())
    }

    /// A time as nanoseconds since the origin.
    pub(super) fn ns(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.origin).as_nanos() as u64
    }

    // The caller's side.

    /// Puts a copy on the desk.
    pub(super) fn begin(&self, ticket: u64, rounds: u64) {
        let last = self.copy.load(Ordering::Acquire);
        assert!(last & MOST == 0, "the core runs a copy already");
        self.ticket.store(ticket, Ordering::Release);
        let turn = (last >> ROUNDS).wrapping_add(1);
        let now = self.now();
        self.copy.store(turn << ROUNDS | rounds, Ordering::SeqCst);
        self.settle(now);
        if self.watched.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Takes the copy off the desk; rounds that were left of it.
    pub(super) fn halt(&self) -> u64 {
        let left = self.copy.fetch_and(!MOST, Ordering::SeqCst) & MOST;
        // Not when the burner notices: that may be much later.
        self.settle(self.now());
        left
    }

    pub(super) fn left(&self) -> u64 {
        self.copy.load(Ordering::SeqCst) & MOST
    }

    /// Tells the competitor what slots are to come.
    pub(super) fn plan(&self, slots: Vec<Slot>) {
        *guard(&self.plan) = Some(slots);
        self.changed.store(true, Ordering::Release);
        self.wake();
    }

    /// Tells the threads to end. The burner must be woken for it.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Who is to be woken for changes of plan.
    pub(super) fn competitor_is(&self, thread: Thread) {
        // There is one competitor in a desk's life.
        let _ = self.competitor.set(thread);
    }

    fn wake(&self) {
        self.competitor.get().into_iter().for_each(Thread::unpark);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    // The burner's side.

    /// The copy on the desk and its ticket.
    pub(super) fn take(&self) -> Option<(Work, u64)> {
        loop {
            let copy = self.copy.load(Ordering::SeqCst);
            if copy & MOST == 0 {
                return None;
            }
            let ticket = self.ticket.load(Ordering::Acquire);
            // Otherwise the ticket may be the next copy's.
            if self.copy.load(Ordering::SeqCst) == copy {
                return Some((Work(copy), ticket));
            }
        }
    }

    /// A chunk of a copy is done at `now`.
    pub(super) fn chunk(&self, copy: Work, rounds: u64, now: u64, pace: Pace) -> Chunk {
        let done = self.done.load(Ordering::Relaxed) + rounds;
        self.done.store(done, Ordering::Release);
        self.mark(done, rounds, now, pace);
        let rest = Work(copy.0 - rounds);
        match self.copy.compare_exchange(copy.0, rest.0, Ordering::SeqCst, Ordering::SeqCst) {
            Err(_) => Chunk::Halted,
            Ok(_) if rest.left() > 0 => Chunk::More(rest),
            Ok(_) => {
                self.settle(now);
                Chunk::Finished
            }
        }
    }

    /// Notes what was done at the edge, when the first chunk ends after it: the competitor may wake much later.
    fn mark(&self, done: u64, rounds: u64, now: u64, pace: Pace) {
        let edge = self.edge.load(Ordering::Acquire);
        if now >= edge {
            let after = pace.rounds_in((now - edge) as f64).min(rounds);
            self.at_edge.store(done - after, Ordering::Relaxed);
            // The competitor may have gone on to another edge; then it does not want this one any more.
            let _ = self.edge.compare_exchange(edge, NONE, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Notes since `now` whether there is a copy. Whoever changes that calls this; where two do at once, the
    /// slower one notices that what it noted is not so any more.
    fn settle(&self, now: u64) {
        loop {
            let is_here = self.left() > 0;
            let note = |presence: u64| {
                let was_here = presence & HERE != 0;
                let (had, since) = (presence, presence & !HERE);
                match (was_here, is_here) {
                    (false, true) => Some(HERE | now.saturating_sub(had)),
                    (true, false) => Some(now.saturating_sub(since)),
                    (true, true) | (false, false) => None,
                }
            };
            // An error says that it is noted already.
            let _ = self.presence.fetch_update(Ordering::SeqCst, Ordering::SeqCst, note);
            if (self.left() > 0) == is_here {
                return;
            }
        }
    }

    // The competitor's side.

    /// Whether there is a copy.
    pub(super) fn is_busy(&self) -> bool {
        self.presence.load(Ordering::SeqCst) & HERE != 0
    }

    /// Whether there is still no copy; if so, the competitor is woken when there is one.
    pub(super) fn watch(&self) -> bool {
        self.watched.store(true, Ordering::SeqCst);
        !self.is_busy()
    }

    /// What slots are to come, if that has changed.
    pub(super) fn new_plan(&self) -> Option<Vec<Slot>> {
        if self.changed.swap(false, Ordering::AcqRel) { guard(&self.plan).take() } else { None }
    }

    /// Whether the competitor should look up from what it does.
    pub(super) fn has_news(&self) -> bool {
        self.changed.load(Ordering::Relaxed) || self.is_stopped()
    }

    /// Wants to know what was done at `edge`, which is to come.
    pub(super) fn await_edge(&self, edge: u64) {
        self.edge.store(edge, Ordering::Release);
    }

    /// How things stood at the edge that was awaited and is over.
    pub(super) fn at_edge(&self, edge: u64) -> Sample {
        let marked = self.edge.load(Ordering::Acquire) == NONE;
        // Unmarked, no chunk has ended since.
        let done = if marked { &self.at_edge } else { &self.done };
        Sample { had: self.had(edge), done: done.load(Ordering::Acquire) }
    }

    /// How things stand now.
    pub(super) fn sample(&self, now: u64) -> Sample {
        Sample { had: self.had(now), done: self.done.load(Ordering::Acquire) }
    }

    /// Time with a copy up to `at`, about now, ns.
    fn had(&self, at: u64) -> u64 {
        let presence = self.presence.load(Ordering::SeqCst);
        if presence & HERE == 0 { presence } else { at.saturating_sub(presence & !HERE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desk() -> Desk {
        Desk::new(Instant::now())
    }

    /// A presence is time without a copy, or with one.
    #[test]
    fn time_with_a_copy_is_counted() {
        let desk = desk();
        let is_here = |here: u64| desk.copy.store(here, Ordering::SeqCst);
        desk.settle(50);
        assert!(!desk.is_busy());
        is_here(1);
        desk.settle(100);
        assert_eq!((desk.had(150), desk.had(250)), (50, 150));
        desk.settle(200);
        assert_eq!(desk.had(250), 150, "it was there already");
        is_here(0);
        desk.settle(300);
        assert_eq!((desk.had(300), desk.had(1000), desk.is_busy()), (200, 200, false));
        desk.settle(500);
        is_here(1);
        desk.settle(1000);
        assert_eq!((desk.had(1001), desk.is_busy()), (201, true));
    }

    /// However a copy's end meets the next one's beginning, the desk knows in the end whether there is one.
    #[test]
    fn a_core_is_known_to_be_busy_or_idle() {
        let (desk, pace) = (desk(), Pace::new(1.0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !desk.is_stopped() {
                    if let Some((copy, _)) = desk.take() {
                        desk.chunk(copy, copy.left(), desk.now(), pace);
                    }
                }
            });
            for ticket in 0..1_000 {
                desk.begin(ticket, 1);
                if ticket % 3 == 0 {
                    desk.halt();
                }
                while desk.left() > 0 {
                    std::thread::yield_now();
                }
            }
            desk.stop();
        });
        assert!(!desk.is_busy());
        desk.begin(0, 1);
        assert!(desk.is_busy());
        assert_eq!((desk.halt(), desk.is_busy()), (1, false), "at once");
    }

    #[test]
    fn chunks_belong_to_the_copy_they_were_done_for() {
        let (desk, pace) = (desk(), Pace::new(1.0));
        assert_eq!(desk.take(), None);
        desk.begin(7, 100);
        let (copy, ticket) = desk.take().unwrap();
        assert_eq!((copy.left(), ticket), (100, 7));
        let Chunk::More(rest) = desk.chunk(copy, 60, 1, pace) else { panic!() };
        assert_eq!((rest.left(), desk.left()), (40, 40));
        // Halted, and another begun with as much work, during a chunk.
        assert_eq!(desk.halt(), 40);
        desk.begin(8, 40);
        assert_eq!(desk.chunk(rest, 40, 2, pace), Chunk::Halted);
        let (copy, ticket) = desk.take().unwrap();
        assert_eq!((copy.left(), ticket), (40, 8));
        assert_eq!(desk.chunk(copy, 40, 3, pace), Chunk::Finished);
        assert_eq!((desk.take(), desk.halt(), desk.sample(0).done), (None, 0, 140));
    }

    /// What was done at an edge is known to the round, however late it is asked for.
    #[test]
    fn an_edge_is_marked_by_the_first_chunk_after_it() {
        let (desk, pace) = (desk(), Pace::new(2.0));
        desk.begin(1, 1000);
        let (copy, _) = desk.take().unwrap();
        desk.await_edge(100);
        let Chunk::More(copy) = desk.chunk(copy, 50, 99, pace) else { panic!() };
        assert_eq!(desk.at_edge(100).done, 50, "nothing has ended since");
        let Chunk::More(copy) = desk.chunk(copy, 50, 110, pace) else { panic!() };
        let Chunk::More(copy) = desk.chunk(copy, 50, 135, pace) else { panic!() };
        assert_eq!((desk.at_edge(100).done, desk.sample(135).done), (100 - 20, 150));
        // A chunk cannot have been done after the edge more than as a whole.
        desk.await_edge(140);
        desk.chunk(copy, 50, 10_000, pace);
        assert_eq!(desk.at_edge(140).done, 150);
    }
}
