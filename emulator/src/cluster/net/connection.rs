//! One connection: who is at its other end, and why it ended.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quinn::{ConnectionError, ReadError, SendStream, TransportErrorCode, VarInt, WriteError};
use thiserror::Error;

use super::admission::Seat;
use super::frames::FrameReader;
use super::identity::Role;
use super::plain::plain;
use super::refusals::{Blotter, Refusal};
use crate::codec::CodecError;

/// A peer that proved who it is and said a proper hello.
#[derive(Debug)]
pub struct Peer {
    /// Who it is.
    pub who: PeerInfo,
    /// The connection, for a [`Link`](super::Link) and to end it.
    pub connection: Connection,
    /// The stream of the hellos, for a [`Control`](super::Control).
    pub streams: Streams,
}

/// Who is at the other end: name and role are its certificate's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerInfo {
    /// Its name, `controller` for the controller.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Where it is.
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
    /// Where it is counted if its peer breaks the protocol.
    refusals: Blotter,
    /// Its place among the connections of its peer's name, if the peer called.
    _seat: Option<Arc<Seat>>,
}

/// What a closing side tells the other, beside words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Close {
    /// All was done. Not 0: that is what QUIC says of a connection whose program just went away.
    Done = 1,
    /// The peer is not on the list.
    Unlisted = 2,
    /// The hello did not fit.
    Hello = 3,
    /// A frame broke the protocol.
    Protocol = 4,
    /// This side failed.
    Failed = 5,
    /// What was to be said took too long.
    Late = 6,
    /// There are too many.
    Full = 7,
}

/// Why a connection ended.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum End {
    /// This side closed it.
    #[error("closed here")]
    Here,
    /// The peer closed it, all being done.
    #[error("the peer is done")]
    Done,
    /// The peer closed it, and says why.
    #[error("the peer closed: {0}")]
    Peer(String),
    /// The peer has no place for one more just now.
    #[error("too many connect to it at once")]
    Full,
    /// The peer gave the handshake up; until it is over there is no way to say why.
    #[error("the peer called the handshake off")]
    CalledOff,
    /// Nothing was heard for the idle time.
    #[error("the peer fell silent")]
    Silent,
    /// The peer broke the protocol.
    #[error("the peer sent {0}")]
    Protocol(#[from] CodecError),
    /// The peer ended a stream that lasts as long as the connection.
    #[error("the peer ended its stream")]
    Stream,
    /// The connection could not be made or kept: certificates, or QUIC itself.
    #[error("{0}")]
    Broken(String),
}

impl Connection {
    pub(super) const fn new(quic: quinn::Connection, refusals: Blotter) -> Self {
        Self { quic, refusals, _seat: None }
    }

    pub(super) fn seated(self, seat: Seat) -> Self {
        Self { _seat: Some(Arc::new(seat)), ..self }
    }

    /// How long a question and its answer take on this path, as far as it is known.
    #[must_use]
    pub fn round_trip(&self) -> Duration {
        self.quic.rtt()
    }

    /// Ends it; the peer reads `words`.
    pub fn close(&self, code: Close, words: &str) {
        self.quic.close(VarInt::from_u32(code as u32), words.as_bytes());
    }

    /// Waits until it ends.
    pub async fn ended(&self) -> End {
        self.quic.closed().await.into()
    }

    /// Ends it because of what the peer did, and gives that reason back.
    pub(super) fn fail(&self, end: End) -> End {
        if let End::Protocol(error) = &end {
            self.close(Close::Protocol, &format!("you sent {error}"));
            self.refusals.note(self.quic.remote_address(), &Refusal::Protocol(end.clone()));
        }
        end
    }
}

impl fmt::Display for PeerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.address)
    }
}

impl From<ConnectionError> for End {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::LocallyClosed => Self::Here,
            ConnectionError::TimedOut | ConnectionError::Reset => Self::Silent,
            ConnectionError::ApplicationClosed(close) => match close.error_code.into_inner() {
                0 => Self::Peer("without a reason".to_owned()),
                code if code == Close::Done as u64 => Self::Done,
                code if code == Close::Full as u64 => Self::Full,
                _ => Self::Peer(plain(&String::from_utf8_lossy(&close.reason))),
            },
            ConnectionError::ConnectionClosed(ref close) => match close.error_code {
                TransportErrorCode::CONNECTION_REFUSED => Self::Full,
                // What a program says to a peer whose keys are not there yet (RFC 9000, section 10.2.3).
                TransportErrorCode::APPLICATION_ERROR => Self::CalledOff,
                code => Self::Broken(explain(code, &error)),
            },
            ConnectionError::TransportError(ref failure) => Self::Broken(explain(failure.code, &error)),
            ConnectionError::VersionMismatch | ConnectionError::CidsExhausted => {
                Self::Broken(error.to_string())
            }
        }
    }
}

/// What a failed handshake means for whoever set up the hosts. QUIC carries TLS alerts as 0x100 + alert (RFC 9001,
/// section 4.8). The peer may have written a part of it.
fn explain(code: TransportErrorCode, error: &ConnectionError) -> String {
    let hint = match u64::from(code).checked_sub(0x100) {
        Some(45) => "a certificate expired: issue new identities with `volary certs`",
        Some(42 | 46 | 48 | 51) => {
            "one side's certificate is not of the other's run: copy identities of one `volary certs`"
        }
        Some(116) => "one side showed no certificate",
        Some(120) => "the other side is not volary, or another version",
        Some(_) => "the handshake failed",
        None => return plain(&error.to_string()),
    };
    plain(&format!("{hint} ({error})"))
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quinn::{ApplicationClose, ConnectionClose};

    use super::*;

    /// Anybody can close a connection with any words, with QUIC's own close before a certificate was asked for.
    #[test]
    fn the_words_of_strangers_do_not_steer_a_terminal() {
        let reason = Bytes::from_static("\u{1b}[2J\u{1b}]0;all is well\u{7}\nh1 idle \u{202e}".as_bytes());
        let close = |code: TransportErrorCode| {
            ConnectionError::ConnectionClosed(ConnectionClose {
                error_code: code,
                frame_type: None,
                reason: reason.clone(),
            })
        };
        let application = ApplicationClose { error_code: VarInt::from_u32(5), reason: reason.clone() };
        for error in [
            close(TransportErrorCode::PROTOCOL_VIOLATION),
            close(TransportErrorCode::crypto(42)),
            ConnectionError::ApplicationClosed(application),
        ] {
            let said = End::from(error).to_string();
            assert!(said.contains("]0;all is well\u{fffd}\u{fffd}h1 idle \u{fffd}"), "{said:?}");
            assert!(!said.contains(|c: char| c.is_control() || c == '\u{202e}'), "{said:?}");
        }
    }
}
