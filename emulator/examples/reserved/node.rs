//! The node: volary's standard node manager, which also keeps reservations for tasks.

use std::collections::BTreeMap;

use volary_actors::base::{Span, TaskId, Time};
use volary_actors::machine::{Effects, Input, Machine};
use volary_actors::message::{CustomProtocol as _, Launch, Message};
use volary_actors::roles::NodeManager;

use crate::messages::Reservation;

/// A node that includes reservations in the length of its queue until they expire.
#[derive(Clone, Debug)]
pub(crate) struct ReservingNode {
    node: NodeManager,
    /// Time at which the reservation of each task expires.
    places: BTreeMap<TaskId, Time>,
    expiry: Span,
}

impl ReservingNode {
    /// A node with this many cores.
    pub(crate) fn new(expiry: Span, cores: u32) -> Self {
        Self { node: NodeManager::new(cores), places: BTreeMap::new(), expiry }
    }
}

impl Machine for ReservingNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        // No timer is needed: reservations have no effect between two inputs.
        self.places.retain(|_, until| *until > fx.now());
        if let Input::Deliver { from, msg } = input {
            if let Some(Reservation::Ask { task, round, repair }) = Reservation::of(&msg) {
                self.places.remove(&task);
                let length = self.node.length() + self.places.len() as i32;
                self.places.insert(task, fx.now() + self.expiry);
                return fx.send_as(repair, from, Reservation::Length { task, round, length });
            }
            if let Message::Launch(Launch::Row(row)) = msg {
                self.places.remove(&row.copy(0).task);
            }
        }
        // The standard node handles everything else: tasks, its workers, the loss of schedulers, unexpected messages.
        self.node.step(input, fx);
    }
}
