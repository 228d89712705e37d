//! Connections to peers that have proved their identity.

use std::time::Duration;

use quinn::VarInt;

use super::end::{Close, End};

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

    /// Number of UDP datagrams received, which grows as long as the peer is there.
    pub fn received(&self) -> u64 {
        self.quic.stats().udp_rx.datagrams
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
