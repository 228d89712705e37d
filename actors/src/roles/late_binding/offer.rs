//! A request to a node to reserve places, by the messages of its policy.

use super::state_sharing::StateSharing;
use crate::base::{ActorId, JobId};
use crate::machine::Effects;
use crate::message::{Probe, Share};

/// Places requested from a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub job: JobId,
    pub group: u32,
    pub count: u32,
    /// How often they were rejected.
    pub round: u16,
    /// Whether the node must accept.
    pub last: bool,
    pub repair: bool,
}

impl Offer {
    pub(super) fn send(self, node: ActorId, sharing: Option<&StateSharing>, fx: &mut Effects<'_>) {
        let Self { job, group, count, round, last, repair } = self;
        match sharing {
            None => fx.send_as(repair, node, Probe::Reserve { job, group, count, repair }),
            Some(sharing) => {
                let known = sharing.bits.newest().into();
                fx.send_as(repair, node, Share::Probe { job, count, round, last, repair, known });
            }
        }
    }
}
