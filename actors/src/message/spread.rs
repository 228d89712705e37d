//! Messages of members that spread updates without jobs. All of them are datagrams.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;

/// An update of an actor of a gossip group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Update {
    /// The origin: the number of a member, or of the source, which follows the members.
    pub origin: u32,
    /// The number that the origin gave the update, from 1 on.
    pub number: u32,
}

/// Updates, and requests for updates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Spread {
    /// An update that was not requested.
    Push {
        /// The update.
        update: Update,
        /// Whether the update follows another one in the same message.
        more: bool,
    },
    /// A request for updates.
    Ask {
        /// Digest of the sender's updates. The receiver does not answer if its own digest is the same and not 0.
        digest: u64,
    },
    /// An update, in answer to a request.
    Answer {
        /// The update.
        update: Update,
        /// Whether the update follows another one in the same message.
        more: bool,
    },
}

protocol! {
    Spread in run (fragments: Self::Push { more: true, .. } | Self::Answer { more: true, .. });
    Push = "spread.push", Datagram, 17, Node -> Node | Scheduler -> Node:
        Self::Push { update, .. } if update.origin <= run.layout.nodes(),
    Ask = "spread.ask", Datagram, 16, Node -> Node: Self::Ask { .. },
    Answer = "spread.answer", Datagram, 17, Node -> Node:
        Self::Answer { update, .. } if update.origin <= run.layout.nodes(),
}
