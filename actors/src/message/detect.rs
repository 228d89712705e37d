//! Messages of members that detect each other's failures. All of them are datagrams.

use serde::{Deserialize, Serialize};

use super::protocol::protocol;

/// The belief of a member about another, from the weakest statement to the strongest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Standing {
    /// The member is up.
    Alive,
    /// The member did not answer; it can refute the suspicion.
    Suspected,
    /// The member has failed.
    Dead,
}

/// Probes of members, and their beliefs about each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Detect {
    /// A probe, which is acknowledged at once.
    Ping {
        /// The number that the probing member gave its probe.
        number: u32,
        /// The probing member: the sender, or the one that asked the sender to ping.
        by: u32,
    },
    /// The request of a probing member to ping another.
    Ask {
        /// The number of the probe.
        number: u32,
        /// The member to ping.
        member: u32,
    },
    /// The acknowledgement of a probe, sent by the pinged member or forwarded by the member that was asked to ping.
    Ack {
        /// The number of the probe.
        number: u32,
        /// The pinged member.
        member: u32,
        /// The probing member.
        by: u32,
    },
    /// The answer of a member that was asked to ping and got no acknowledgement in time.
    Nack {
        /// The number of the probe.
        number: u32,
    },
    /// The sender's belief about a member, piggybacked on the probe, request or answer that is sent right after it.
    News {
        /// The member.
        member: u32,
        /// The incarnation of the member to which this refers.
        incarnation: u32,
        /// The member's standing.
        standing: Standing,
        /// The member that stated this standing first.
        by: u32,
    },
}

protocol! {
    Detect in run (fragments: Self::News { .. });
    Ping = "swim.ping", Datagram, 16, Node -> Node: Self::Ping { by, .. } if run.has_node(by),
    Ask = "swim.ask", Datagram, 16, Node -> Node:
        Self::Ask { member, .. } if run.has_node(member) && run.to != Role::Node(member),
    Ack = "swim.ack", Datagram, 20, Node -> Node:
        Self::Ack { member, by, .. } if run.has_node(member) && run.has_node(by),
    Nack = "swim.nack", Datagram, 12, Node -> Node: Self::Nack { .. },
    News = "swim.news", Datagram, 24, Node -> Node:
        Self::News { member, by, .. } if run.has_node(member) && run.has_node(by),
}
