//! Options of the resource manager.

use crate::base::Span;

/// Options of the resource manager.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct YarnOptions {
    /// Whether an application master keeps a container for the life of its job.
    pub masters: bool,
    /// Two queues, and how containers are taken back from them; `None` for one queue.
    pub reclaiming: Option<Reclaiming>,
}

/// Two queues with shares, for short and for long jobs, and how a queue over its share is cut back
/// (`ProportionalCapacityPreemptionPolicy` of Hadoop, as Big-C has it).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reclaiming {
    /// The share of the containers that is guaranteed to short jobs; the rest is for long ones.
    pub short_share: f64,
    /// How often queues are looked at.
    pub every: Span,
    /// How far a queue must be over its share, as a part of it.
    pub over: f64,
    /// The part of all containers that is taken back at once, at most.
    pub round: f64,
    /// The part of what is to be taken back that is taken at once.
    pub damping: f64,
    /// Whether containers are killed instead of suspended.
    pub kill: bool,
}
