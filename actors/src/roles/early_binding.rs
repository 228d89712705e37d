//! Early binding: each task goes to a node as soon as its job arrives.

use std::fmt::Debug;

use super::dispatcher::{DispatchRule, Dispatcher, OpenTasks};
use super::membership::Membership;
use crate::base::{ActorId, CopyId, TaskId};
use crate::layout::Layout;
use crate::machine::{CacheNote, Effects, ServiceOrder};
use crate::message::Message;

/// A policy's choice of nodes. A policy without knowledge of nodes implements `place` only.
pub trait PlacementRule: Clone + Debug + Send + 'static {
    /// The node of the next task; `None` if no node is alive.
    fn place(&mut self, task: TaskId, members: &Membership, fx: &mut Effects<'_>) -> Option<ActorId>;

    /// The work expected ahead of the task placed last, in ns, and the order in which nodes serve tasks; `None` if no
    /// cache of waits chose the node.
    fn expected(&self) -> Option<(i64, ServiceOrder)> {
        None
    }

    /// Called after the task was sent to the node that was chosen for it.
    fn sent(&mut self, _task: TaskId, _node: ActorId, _fx: &mut Effects<'_>) {}

    /// Called when a task left a node: it ended there, or never reached it.
    fn left(&mut self, _task: TaskId, _node: ActorId, _fx: &mut Effects<'_>) {}

    /// Called when a node crashed, with its tasks, or is back.
    fn crashed(&mut self, _node: ActorId, _back: bool, _fx: &mut Effects<'_>) {}

    /// Called when a node cannot be reached, or may be tried again; returns whether the rule avoids it meanwhile.
    fn reach(&mut self, _node: ActorId, _can: bool, _fx: &mut Effects<'_>) -> bool {
        false
    }

    /// Called with messages other than jobs and results; returns whether the rule handles it.
    fn receive(&mut self, _from: ActorId, _msg: &Message, _fx: &mut Effects<'_>) -> bool {
        false
    }
}

/// A scheduler that binds early.
pub type EarlyBinding<P> = Dispatcher<Early<P>>;

impl<P: PlacementRule> EarlyBinding<P> {
    /// A scheduler that places with `place`.
    pub fn new(place: P, layout: &Layout) -> Self {
        Self::with(Early(place), layout)
    }
}

/// The rule of early binding: a task that is ready is launched at once, or when a node is back.
#[derive(Clone, Debug)]
pub struct Early<P>(P);

impl<P: PlacementRule> DispatchRule for Early<P> {
    fn ready(&mut self, copy: CopyId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let Some(node) = self.0.place(copy.task, tasks.members(), fx) else { return };
        if let Some((believed, order)) = self.0.expected() {
            fx.note(CacheNote::Placed { copy, node: fx.layout().node_number(node), believed, order });
        }
        tasks.launch(copy, node, fx);
        self.0.sent(copy.task, node, fx);
    }

    fn left(&mut self, copy: CopyId, node: ActorId, fx: &mut Effects<'_>) {
        self.0.left(copy.task, node, fx);
    }

    fn crashed(&mut self, node: ActorId, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.0.crashed(node, false, fx);
    }

    fn back(&mut self, node: ActorId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.0.crashed(node, true, fx);
        for copy in tasks.all_waiting() {
            self.ready(copy, tasks, fx);
        }
    }

    fn reach(&mut self, node: ActorId, can: bool, fx: &mut Effects<'_>) -> bool {
        self.0.reach(node, can, fx)
    }

    fn receive(&mut self, from: ActorId, msg: &Message, _: &mut OpenTasks, fx: &mut Effects<'_>) -> bool {
        self.0.receive(from, msg, fx)
    }
}
