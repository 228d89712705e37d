//! What a scheduler of Yaq-d believes of nodes.

use crate::base::{ActorId, Span, TaskId, Time};
use crate::machine::Effects;
use crate::message::{Heartbeat, Message};
use crate::roles::early::Place;
use crate::roles::members::Members;
use crate::roles::waits::Waits;

/// The last heartbeats, and what was placed since.
#[derive(Debug)]
pub(super) struct Snapshot {
    waits: Waits,
    /// When the last heartbeat of each node was sent.
    heard: Vec<Time>,
    /// The most that is added to what a node says.
    jitter: Option<Span>,
}

impl Snapshot {
    pub(super) fn new(nodes: u32, jitter: Option<Span>) -> Self {
        Self { waits: Waits::new(nodes, Vec::new()), heard: vec![Time::ZERO; nodes as usize], jitter }
    }

    fn uses(&self, node: u32) -> bool {
        (node as usize) < self.heard.len()
    }
}

impl Place for Snapshot {
    fn place(&mut self, task: TaskId, members: &Members, fx: &mut Effects<'_>) -> Option<ActorId> {
        let Some(node) = self.waits.pick(fx.rng()) else { return members.pick(fx.rng()) };
        let estimate = fx.catalog().job_estimate(task.job).0 / u64::from(fx.layout().cores(node));
        self.waits.add(node, i64::try_from(estimate).unwrap_or(i64::MAX));
        Some(fx.layout().node(node))
    }

    fn crashed(&mut self, node: ActorId, back: bool, fx: &mut Effects<'_>) {
        let node = fx.layout().node_number(node);
        if self.uses(node) {
            self.waits.reach(node, back);
            self.waits.set(node, 0);
        }
    }

    fn reach(&mut self, node: ActorId, can: bool, fx: &mut Effects<'_>) -> bool {
        let node = fx.layout().node_number(node);
        if self.uses(node) {
            self.waits.reach(node, can);
        }
        true
    }

    fn hear(&mut self, from: ActorId, msg: &Message, fx: &mut Effects<'_>) -> bool {
        let Message::Heartbeat(Heartbeat::Wait { wait, at }) = *msg else { return false };
        let node = fx.layout().node_number(from);
        if self.uses(node) && at > self.heard[node as usize] {
            self.heard[node as usize] = at;
            let jitter = self.jitter.map_or(Span::ZERO, |most| most.scale(fx.rng().unit()));
            self.waits.set(node, i64::try_from((wait + jitter).0).unwrap_or(i64::MAX));
        }
        true
    }
}
