//! Eagle's node manager: rejects probes while it has long work, and shares its bitmap.

use crate::base::{ActorId, Time};
use crate::machine::{Effects, Input, Machine};
use crate::message::{Message, Share, Stamp};
use crate::roles::NodeManager;
use crate::roles::node::Reservation;
use crate::roles::node_bitmap::NodeBitmap;

/// A node manager that shares state.
pub(super) struct SharingNode {
    manager: NodeManager,
    bits: NodeBitmap,
}

impl SharingNode {
    pub(super) fn new(manager: NodeManager) -> Self {
        Self { manager, bits: NodeBitmap::default() }
    }

    /// Sends a scheduler the blocks it does not have yet.
    fn share(&self, with: ActorId, known: Stamp, repair: bool, fx: &mut Effects<'_>) {
        for part in self.bits.newer(Time::from(known)) {
            fx.send_as(repair, with, Share::Bits(part));
        }
    }

    fn receive(&mut self, from: ActorId, share: Share, fx: &mut Effects<'_>) {
        match share {
            Share::Probe { job, count, round, last, repair, known } => {
                self.share(from, known, repair, fx);
                if !last && self.manager.has_long() {
                    return fx.send_as(repair, from, Share::Rejected { job, count, round, repair });
                }
                fx.send_as(repair, from, Share::Accepted { job });
                let place = Reservation { from, job, group: 0, count, repair };
                self.manager.reserve(place, round > 0, fx);
            }
            Share::Bits(blocks) => self.bits.learn(blocks, fx.layout().nodes()),
            Share::Accepted { .. } | Share::Rejected { .. } => fx.unexpected(&share.into()),
        }
    }
}

impl Machine for SharingNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg: Message::Share(share) } => self.receive(from, share, fx),
            _ => self.manager.step(input, fx),
        }
    }
}
