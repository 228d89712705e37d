//! Asking a node to keep places, in the words that its policy has for it.

use super::state_sharing::StateSharing;
use crate::base::{ActorId, JobId};
use crate::machine::Effects;
use crate::message::{Probe, Share};

/// Places that a node is asked to keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub job: JobId,
    pub group: u32,
    pub count: u32,
    /// How often they were turned away.
    pub round: u16,
    /// Whether they must not be turned away.
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
