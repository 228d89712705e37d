//! A node of Eagle: the plain one, which turns probes away while it has long work and passes the bitmap on.

use crate::base::{ActorId, Time};
use crate::machine::{Effects, Input, Machine};
use crate::message::{Message, Share, Stamp};
use crate::roles::Node as Plain;
use crate::roles::bits::Bits;
use crate::roles::node::Reservation;

/// A node manager that shares state.
#[derive(Debug)]
pub(super) struct Node {
    plain: Plain,
    bits: Bits,
}

impl Node {
    pub(super) fn new(plain: Plain) -> Self {
        Self { plain, bits: Bits::default() }
    }

    /// Tells a scheduler what it does not know yet.
    fn share(&self, with: ActorId, known: Stamp, repair: bool, fx: &mut Effects<'_>) {
        for part in self.bits.newer(Time::from(known)) {
            fx.send_as(repair, with, Share::Bits(part));
        }
    }

    fn hear(&mut self, from: ActorId, share: Share, fx: &mut Effects<'_>) {
        match share {
            Share::Probe { job, count, round, last, repair, known } => {
                self.share(from, known, repair, fx);
                if !last && self.plain.has_long(fx) {
                    return fx.send_as(repair, from, Share::Rejected { job, count, round, repair });
                }
                fx.send_as(repair, from, Share::Accepted { job });
                self.plain.reserve(Reservation { from, job, group: 0, count, repair }, fx);
            }
            Share::Bits(news) => self.bits.learn(news, fx.layout().nodes()),
            Share::Accepted { .. } | Share::Rejected { .. } => fx.unexpected(&share.into()),
        }
    }
}

impl Machine for Node {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg: Message::Share(share) } => self.hear(from, share, fx),
            _ => self.plain.step(input, fx),
        }
    }
}
