//! Connections to peers that have proved their identity, their close codes, and the reasons why they ended.

use std::time::Duration;

use quinn::{ConnectionError, ReadError, TransportErrorCode, VarInt, WriteError};
use thiserror::Error;
use volary_experiment::codec::CodecError;
use volary_experiment::sanitize;

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

    /// Number of UDP datagrams received, which grows while the peer is alive.
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
            self.close(Close::Protocol, &format!("invalid data: {error}"));
        }
        end
    }
}

/// The code of a close frame, beside its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Close {
    /// Normal end. Not 0, which QUIC sends for a connection that was dropped without a close.
    Done = 1,
    /// The certificate names no host.
    Certificate = 2,
    /// The hello did not match.
    Hello = 3,
    /// A frame broke the protocol.
    Protocol = 4,
    /// This side failed.
    Failed = 5,
    /// The peer took too long.
    Late = 6,
}

/// The reason for the end of a connection.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum End {
    /// This side closed the connection.
    #[error("this side closed the connection")]
    Here,
    /// The peer closed the connection with [`Close::Done`].
    #[error("the peer closed the connection normally")]
    Done,
    /// The peer closed the connection without a reason: it ended, or it cancelled the handshake in favour of another
    /// handshake.
    #[error("the peer closed the connection without a reason")]
    Dropped,
    /// The peer closed the connection with another code and this text; control characters are removed.
    #[error("the peer closed the connection: {0}")]
    Peer(String),
    /// The peer cancelled the handshake in favour of another handshake, or is ending.
    #[error("the peer accepts no connection now: it is ending, or too many peers connect; try again")]
    Full,
    /// Nothing arrived for the idle timeout.
    #[error("nothing arrived from the peer within the idle timeout")]
    Silent,
    /// The peer broke the protocol.
    #[error("the peer sent invalid data: {0}")]
    Protocol(#[from] CodecError),
    /// The peer ended a stream that lasts as long as the connection.
    #[error("the peer ended its stream")]
    Stream,
    /// TLS or QUIC failed.
    #[error("{0}")]
    Broken(String),
}

impl From<ConnectionError> for End {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::LocallyClosed => Self::Here,
            ConnectionError::TimedOut | ConnectionError::Reset => Self::Silent,
            ConnectionError::ApplicationClosed(close) => match close.error_code.into_inner() {
                0 => Self::Dropped,
                code if code == Close::Done as u64 => Self::Done,
                _ => Self::Peer(sanitize::line(&String::from_utf8_lossy(&close.reason)).into_owned()),
            },
            ConnectionError::ConnectionClosed(ref close) => match close.error_code {
                // During the handshake QUIC sends a close by the application as APPLICATION_ERROR, without its reason.
                TransportErrorCode::CONNECTION_REFUSED | TransportErrorCode::APPLICATION_ERROR => Self::Full,
                code => Self::Broken(explain(code, &error, Rejected::Own)),
            },
            ConnectionError::TransportError(ref failure) => {
                Self::Broken(explain(failure.code, &error, Rejected::Theirs))
            }
            ConnectionError::VersionMismatch | ConnectionError::CidsExhausted => {
                Self::Broken(error.to_string())
            }
        }
    }
}

/// The side whose certificate was rejected: ours by the peer, or the peer's by this side.
#[derive(Clone, Copy)]
enum Rejected {
    Own,
    Theirs,
}

impl Rejected {
    /// The certificate, and the clock that was used to check its validity.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Own => ("cert.pem of this side's identity", "the other side's clock"),
            Self::Theirs => ("cert.pem of the other side's identity", "this machine's clock"),
        }
    }
}

/// The remedy for a failed handshake. QUIC carries TLS alerts as 0x100 + alert (RFC 9001, section 4.8). The peer may
/// have written a part of the error's text.
fn explain(code: TransportErrorCode, error: &ConnectionError, rejected: Rejected) -> String {
    let (certificate, clock) = rejected.names();
    let hint = match u64::from(code).checked_sub(0x100) {
        Some(45) => &format!(
            "{certificate} is not valid now by {clock}: set that clock, or issue new identities with `volary certs`"
        ),
        Some(42) if error.to_string().contains("not valid for name") => {
            "another host is at this address: check the hosts file and the agent's --identity"
        }
        Some(48 | 51) => &format!(
            "{certificate} was issued by another authority: give both sides identities made by the same `volary certs`"
        ),
        Some(42 | 46) => &format!("{certificate} was rejected"),
        Some(116) => match rejected {
            Rejected::Own => "this side showed no certificate",
            Rejected::Theirs => "the other side showed no certificate",
        },
        Some(120) => "the other side is not volary, or runs another version",
        Some(_) => "the handshake failed",
        None => return sanitize::line(&error.to_string()).into_owned(),
    };
    sanitize::line(&format!("{hint} ({error})")).into_owned()
}

impl From<ReadError> for End {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::ConnectionLost(error) => error.into(),
            ReadError::Reset(_) | ReadError::ClosedStream => Self::Stream,
            ReadError::IllegalOrderedRead | ReadError::ZeroRttRejected => Self::Broken(error.to_string()),
        }
    }
}

impl From<WriteError> for End {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::ConnectionLost(error) => error.into(),
            WriteError::Stopped(_) | WriteError::ClosedStream => Self::Stream,
            WriteError::ZeroRttRejected => Self::Broken(error.to_string()),
        }
    }
}
