//! The CPU time of planning.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use volary_actors::machine::{Effects, Input, Machine, Stored};

/// The CPU time of the calling thread in nanoseconds. The engine reads no clock of its own.
pub type ThreadClock = fn() -> u64;

/// The CPU time that the planning schedulers of a shard have taken.
#[derive(Debug)]
pub struct Stopwatch {
    clock: ThreadClock,
    elapsed: AtomicU64,
}

impl Stopwatch {
    /// Creates a stopwatch at zero.
    pub fn new(clock: ThreadClock) -> Arc<Self> {
        Arc::new(Self { clock, elapsed: AtomicU64::new(0) })
    }

    /// The time so far, in nanoseconds.
    pub fn elapsed(&self) -> u64 {
        self.elapsed.load(Ordering::Relaxed)
    }

    /// Wraps a machine that plans on timers, whose steps on them are timed.
    pub(super) fn time(self: &Arc<Self>, machine: Box<dyn Machine>) -> Box<dyn Machine> {
        Box::new(TimedMachine { machine, stopwatch: Arc::clone(self) })
    }
}

/// A machine with the stopwatch that times it.
struct TimedMachine {
    machine: Box<dyn Machine>,
    stopwatch: Arc<Stopwatch>,
}

impl Machine for TimedMachine {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        if !matches!(input, Input::Fire(_)) {
            return self.machine.step(input, fx);
        }
        let begin = (self.stopwatch.clock)();
        self.machine.step(input, fx);
        let spent = (self.stopwatch.clock)().saturating_sub(begin);
        self.stopwatch.elapsed.fetch_add(spent, Ordering::Relaxed);
    }

    fn stored(&mut self) -> Option<Stored> {
        self.machine.stored()
    }

    fn restore(&mut self, stored: Stored) {
        self.machine.restore(stored);
    }
}
