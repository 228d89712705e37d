//! Authenticated connections, with the identity of the peer.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use quinn::{SendStream, VarInt};

use super::end::{Close, End};
use super::framed::FrameReader;
use super::identity::Role;

/// A peer that proved its identity and sent a valid hello.
#[derive(Debug)]
pub struct Peer {
    pub who: PeerInfo,
    pub connection: Connection,
    /// The stream of the hellos, for a [`Control`](super::Control).
    pub streams: Streams,
}

/// Name and role of a peer, from its certificate, and its address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerInfo {
    /// `controller` for the controller.
    pub name: String,
    pub role: Role,
    pub address: SocketAddr,
}

/// The two directions of the control stream.
#[derive(Debug)]
pub struct Streams {
    pub(super) send: SendStream,
    pub(super) receive: FrameReader,
}

/// A handle on a connection. The connection closes when the last handle, link and control is dropped.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) quic: quinn::Connection,
}

impl Connection {
    /// The path's round-trip time, as QUIC estimates it.
    pub fn round_trip(&self) -> Duration {
        self.quic.rtt()
    }

    /// Closes the connection; the peer receives `reason`.
    pub fn close(&self, code: Close, reason: &str) {
        self.quic.close(VarInt::from_u32(code as u32), reason.as_bytes());
    }

    /// Waits until the connection ends.
    pub async fn ended(&self) -> End {
        self.quic.closed().await.into()
    }

    /// Closes the connection if the peer broke the protocol; returns `end`.
    pub(super) fn fail(&self, end: End) -> End {
        if let End::Protocol(error) = &end {
            self.close(Close::Protocol, &format!("you sent {error}"));
        }
        end
    }
}

impl fmt::Display for PeerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.address)
    }
}
