//! The node: volary's standard one, which also keeps places for tasks that may come.

use std::collections::VecDeque;

use volary_actors::base::{ActorId, Span, TaskId, Time};
use volary_actors::machine::{Effects, Input, Machine};
use volary_actors::message::{CustomProtocol as _, Launch, Message};
use volary_actors::roles::NodeManager;

use crate::messages::Reservation;

/// A node that counts what it was asked about, for a while.
#[derive(Clone, Debug)]
pub(crate) struct ReservingNode {
    node: NodeManager,
    /// Tasks with a place here and when it ends, oldest first.
    places: VecDeque<(TaskId, Time)>,
    expiry: Span,
}

impl ReservingNode {
    /// A node with this many cores.
    pub(crate) fn new(expiry: Span, cores: u32) -> Self {
        Self { node: NodeManager::new(cores), places: VecDeque::new(), expiry }
    }

    /// Answers a question and keeps a place. A question that arrives twice moves the place instead of adding one.
    fn ask(&mut self, from: ActorId, task: TaskId, round: u32, repair: bool, fx: &mut Effects<'_>) {
        self.release(task);
        let length = self.node.length() + self.places.len() as i32;
        self.places.push_back((task, fx.now() + self.expiry));
        fx.send_as(repair, from, Reservation::Length { task, round, length });
    }

    fn release(&mut self, task: TaskId) {
        self.places.retain(|(other, _)| *other != task);
    }

    /// Drops the places that have expired. No timer is needed: nobody sees them between two inputs.
    fn expire(&mut self, now: Time) {
        while self.places.front().is_some_and(|(_, until)| *until <= now) {
            self.places.pop_front();
        }
    }
}

impl Machine for ReservingNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        self.expire(fx.now());
        if let Input::Deliver { from, msg } = input {
            if let Some(Reservation::Ask { task, round, repair }) = Reservation::of(&msg) {
                return self.ask(from, task, round, repair, fx);
            }
            if let Message::Launch(Launch::Row(row)) = msg {
                self.release(row.copy(0).task);
            }
        }
        // Everything else is the standard node's: tasks, its workers, the loss of schedulers, what is unexpected.
        self.node.step(input, fx);
    }
}
