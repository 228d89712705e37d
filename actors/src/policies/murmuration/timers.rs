//! The timers of schedulers and nodes. A node with least attained service has further ticks, from four on.

use crate::machine::Timer;

/// A scheduler has decided on a task.
pub(super) const DECIDE: Timer = Timer::Tick(0);

/// A delayed update is due.
pub(super) const SPREAD: Timer = Timer::Tick(1);

/// A restarted scheduler has got no copy of a cache in time.
pub(super) const ASK: Timer = Timer::Tick(2);

/// A delayed copy of a scheduler's cache is due.
pub(super) const ANSWER: Timer = Timer::Tick(3);
