//! The messages of Murmuration: updates about placements and ends, and the copying of caches. A part of
//! `crate::message`.
//!
//! Updates travel as streams or, where the policy says so, as rumours: datagrams, which can be lost and may be
//! forwarded. Each origin numbers its updates, so that those contained in a copied cache are not applied twice: the
//! upper byte of a number is the origin's epoch, and the rest is a counter.

use serde::{Deserialize, Serialize};

use crate::base::{JobId, Span, Time};
use crate::layout::Layout;
use crate::message::protocol::{Run, protocol};

/// The kind of a placement update.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PlacementForm {
    /// One task was placed.
    Single,
    /// The tasks of a job were placed; further tasks may follow in [`PlacementForm::Rest`].
    Batch,
    /// A continuation fragment of a batch.
    Rest,
    /// One task never reached its node.
    Withdrawn,
}

/// Tasks of a job bound to nodes. Each task adds the estimate of the job's tasks to its node. The order of the
/// fields, with the flag last, leaves a niche for the enum around it.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlacementUpdate {
    /// Time of the decision.
    pub at: Time,
    /// The job of the placed tasks.
    pub job: JobId,
    /// Node of each placed task; padded with [`PlacementUpdate::NO_NODE`].
    pub nodes: [u32; 2],
    /// Number that the origin gave this update.
    pub number: u32,
    /// The scheduler that made the update.
    pub origin: u32,
    /// Form of the update.
    pub form: PlacementForm,
    /// Whether the update is a rumour.
    pub rumour: bool,
}

impl PlacementUpdate {
    fn fits(&self, run: &Run<'_>) -> bool {
        run.has_scheduler(self.origin)
            && run.has_job(self.job)
            && Self::unpadded(self.nodes).all(|node| run.has_node(node))
    }

    /// Padding in place of a node.
    pub const NO_NODE: u32 = u32::MAX;

    /// The nodes of an update, without the padding.
    pub fn unpadded(nodes: [u32; 2]) -> impl Iterator<Item = u32> + use<> {
        nodes.into_iter().filter(|&node| node != Self::NO_NODE)
    }
}

/// A task that left its node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndUpdate {
    /// The node.
    pub node: u32,
    /// Number that the node gave this update.
    pub number: u32,
    /// Estimate of the task.
    pub estimate: Span,
    /// Time at which the task's placement was decided, so that receivers accept or ignore both updates of a task alike.
    /// With `wait = "clock"`, the time at which the task began to run.
    pub counts_from: Time,
}

/// Total work of all tasks at a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BacklogReport {
    /// Sum of the estimates of the node's tasks.
    pub work: Span,
    /// Time of the observation.
    pub at: Time,
    /// Number of the node's first update that the report does not contain.
    pub number: u32,
    /// Number of tasks that the node received from the receiver of this report.
    pub came: u32,
}

/// Updates, and the copying of caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Gossip {
    /// Scheduler → schedulers: work was added by a placement; Update(+) in the paper.
    Placed(PlacementUpdate),
    /// Node → schedulers: work was removed by the end of a task; Update(−) in the paper.
    Ended(EndUpdate),
    /// `Ended` as a rumour.
    EndedRumour(EndUpdate),
    /// Scheduler → scheduler: request for a copy of the cache.
    Ask {
        /// Epoch of the scheduler that asks.
        epoch: u32,
    },
    /// Scheduler → scheduler: the head of an answer.
    Answer {
        /// Epoch of the scheduler that asked.
        epoch: u32,
        /// The answer continues with this many [`Gossip::Entry`] and [`Gossip::Heard`] messages.
        parts: u32,
    },
    /// A part of an answer: the entry of a node.
    Entry {
        /// Epoch of the scheduler that asked.
        epoch: u32,
        /// The node.
        node: u32,
        /// Work expected at the node, ns.
        wait: i64,
        /// Time at which the node last crashed or came back. Updates decided earlier are outdated.
        renewed: Time,
    },
    /// A part of an answer: the copy contains all updates of this origin below the number.
    Heard {
        /// Epoch of the scheduler that asked.
        epoch: u32,
        /// The origin: schedulers first, then nodes.
        origin: u32,
        /// The number of the first update that the copy does not contain.
        number: u32,
    },
    /// Node → scheduler: the total work at the node. It replaces the receiver's entry, unless the receiver has applied
    /// a newer update.
    Backlog(BacklogReport),
}

impl Gossip {
    /// The update about the end of a task.
    pub const fn ended(rumour: bool, ended: EndUpdate) -> Self {
        if rumour { Self::EndedRumour(ended) } else { Self::Ended(ended) }
    }

    /// Whether the message is an update that travels as a rumour.
    pub const fn is_rumour(&self) -> bool {
        matches!(self, Self::EndedRumour(_) | Self::Placed(PlacementUpdate { rumour: true, .. }))
    }

    /// The origin of an update, schedulers first, and its number.
    pub fn origin(&self, layout: &Layout) -> Option<(u32, u32)> {
        match *self {
            Self::Placed(placed) => Some((placed.origin, placed.number)),
            Self::Ended(ended) | Self::EndedRumour(ended) => {
                Some((layout.schedulers() + ended.node, ended.number))
            }
            Self::Ask { .. }
            | Self::Answer { .. }
            | Self::Entry { .. }
            | Self::Heard { .. }
            | Self::Backlog(_) => None,
        }
    }
}

// Placements and ends have a kind for each delivery class. The parts of an answer after the first are its fragments.
protocol! {
    Gossip in run (fragments: Self::Placed(PlacementUpdate { form: PlacementForm::Rest, .. })
        | Self::Entry { .. } | Self::Heard { .. });
    Placed = "gossip.placed", Stream, 41, Scheduler -> Scheduler:
        Self::Placed(update @ PlacementUpdate { form: PlacementForm::Single, rumour: false, .. }) if update.fits(run) => update.job,
    Batch = "gossip.batch", Stream, 41, Scheduler -> Scheduler:
        Self::Placed(
            update @ PlacementUpdate { form: PlacementForm::Batch | PlacementForm::Rest, rumour: false, .. }
        ) if update.fits(run) => update.job,
    Withdrawn = "gossip.withdrawn", Stream, 41, Scheduler -> Scheduler:
        Self::Placed(update @ PlacementUpdate { form: PlacementForm::Withdrawn, rumour: false, .. })
        if update.fits(run) => update.job,
    Ended = "gossip.ended", Stream, 32, Node -> Scheduler: Self::Ended(update) if run.has_node(update.node),
    RumourPlaced = "rumour.placed", Datagram, 41, Scheduler -> Scheduler:
        Self::Placed(update @ PlacementUpdate { form: PlacementForm::Single, rumour: true, .. }) if update.fits(run) => update.job,
    RumourBatch = "rumour.batch", Datagram, 41, Scheduler -> Scheduler:
        Self::Placed(
            update @ PlacementUpdate { form: PlacementForm::Batch | PlacementForm::Rest, rumour: true, .. }
        ) if update.fits(run) => update.job,
    RumourWithdrawn = "rumour.withdrawn", Datagram, 41, Scheduler -> Scheduler:
        Self::Placed(update @ PlacementUpdate { form: PlacementForm::Withdrawn, rumour: true, .. })
        if update.fits(run) => update.job,
    RumourEnded = "rumour.ended", Datagram, 32, Node -> Scheduler | Scheduler -> Scheduler:
        Self::EndedRumour(update) if run.has_node(update.node),
    Ask = "cache.ask", Stream, 12, Scheduler -> Scheduler: Self::Ask { .. },
    Answer = "cache.answer", Stream, 16, Scheduler -> Scheduler: Self::Answer { .. },
    Entry = "cache.entry", Stream, 32, Scheduler -> Scheduler: Self::Entry { node, .. } if run.has_node(node),
    Heard = "cache.heard", Stream, 20, Scheduler -> Scheduler: Self::Heard { origin, .. }
        if origin < run.layout.schedulers() + run.layout.nodes(),
    Backlog = "gossip.backlog", Datagram, 32, Node -> Scheduler: Self::Backlog(_),
}
