//! The numbers of a node manager's ticks.

/// Reports of progress are due.
pub(super) const PROGRESS: u32 = 0;
/// A delayed report of progress is sent.
pub(super) const SEND: u32 = 1;
/// Reports of use are due.
pub(super) const USE: u32 = 2;
