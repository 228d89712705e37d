//! Length-prefixed frames on streams: their reader, the typed control stream, and the first frames on a connection.
//!
//! The first frames are the hellos: name, role and version of each side. The connecting side opens the control stream
//! and sends its hello first. Each frame carries the protocol version itself (see
//! [`codec`](mod@volary_experiment::codec)); name and role must be those of the certificate.

use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use quinn::{RecvStream, SendStream};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use volary_actors::base::Class;
use volary_actors::policies::vocabulary;
use volary_engine::fingerprint::Fingerprint;
use volary_experiment::codec::{self, CodecError, PREFIX};

use super::connection::{Connection, End};
use super::identity::{Role, Subject};

/// Bytes requested from a stream at once.
const READ: usize = 64 << 10;

/// Splits a stream into frames. The buffer grows with the bytes that arrive, not with the announced length.
#[derive(Debug)]
pub(super) struct FrameReader {
    stream: RecvStream,
    buffer: Vec<u8>,
    /// The part of the buffer that was read from the stream and not yet returned.
    filled: Range<usize>,
    limit: usize,
}

impl FrameReader {
    pub(super) fn new(stream: RecvStream, limit: usize) -> Self {
        Self { stream, buffer: Vec::new(), filled: 0..0, limit }
    }

    /// Sets the largest length of a frame.
    fn limited(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// The next frame without its prefix; `None` if the stream ends between frames. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Option<&[u8]>, End> {
        loop {
            match self.missing()? {
                0 => return Ok(Some(self.take())),
                bytes if self.read(bytes).await? => {}
                _ if self.filled.is_empty() => return Ok(None),
                _ => return Err(CodecError::Truncated.into()),
            }
        }
    }

    /// The next frame, if it is complete in the buffer.
    pub(super) fn ready(&mut self) -> Result<Option<&[u8]>, End> {
        Ok(if self.missing()? == 0 { Some(self.take()) } else { None })
    }

    /// Bytes of the next frame, or of its length prefix, that have not arrived.
    fn missing(&self) -> Result<usize, End> {
        let available = self.filled.len();
        Ok(match self.buffer[self.filled.clone()].first_chunk() {
            None => PREFIX - available,
            Some(prefix) => (PREFIX + codec::length(*prefix, self.limit)?).saturating_sub(available),
        })
    }

    /// The next frame, which is complete in the buffer.
    fn take(&mut self) -> &[u8] {
        let start = self.filled.start + PREFIX;
        let prefix = std::array::from_fn(|i| self.buffer[self.filled.start + i]);
        self.filled.start = start + u32::from_le_bytes(prefix) as usize;
        &self.buffer[start..self.filled.start]
    }

    /// Reads once, with space for the `missing` bytes, but at most doubles the buffer; false at the end of the stream.
    async fn read(&mut self, missing: usize) -> Result<bool, End> {
        let kept = self.filled.len();
        if kept == 0 {
            self.filled = 0..0;
            if self.buffer.len() > 4 * READ {
                self.buffer = Vec::new(); // a large frame's memory is not kept
            }
        }
        if self.buffer.len() - self.filled.end < missing.min(READ) {
            self.buffer.copy_within(self.filled.clone(), 0);
            self.filled = 0..kept;
            let needed = kept + missing.min(kept).max(READ);
            self.buffer.resize(self.buffer.len().max(needed), 0);
        }
        let read = self.stream.read(&mut self.buffer[self.filled.end..]).await?;
        self.filled.end += read.unwrap_or(0);
        Ok(read.is_some())
    }
}

/// The two directions of the control stream.
#[derive(Debug)]
pub struct Streams {
    pub(super) send: SendStream,
    pub(super) receive: FrameReader,
}

/// The control stream of a connection: sends `S`, receives `R`. The two halves can be moved apart.
#[derive(Debug)]
pub struct Control<S, R> {
    pub outgoing: ControlSender<S>,
    pub incoming: ControlReceiver<R>,
}

/// The sending half of a [`Control`].
#[derive(Debug)]
pub struct ControlSender<S> {
    stream: SendStream,
    limit: usize,
    buffer: Vec<u8>,
    sends: PhantomData<fn(S)>,
}

/// The receiving half of a [`Control`].
#[derive(Debug)]
pub struct ControlReceiver<R> {
    connection: Connection,
    frames: FrameReader,
    receives: PhantomData<fn() -> R>,
}

impl<S: Serialize, R: DeserializeOwned> Control<S, R> {
    /// Frames on `streams` are at most `limit` bytes in both directions; the largest limit is
    /// [`LARGEST_FRAME`](codec::LARGEST_FRAME).
    pub fn new(connection: &Connection, streams: Streams, limit: usize) -> Self {
        let Streams { send, receive } = streams;
        // Control frames go before parcels. Fails only on a lost connection.
        let _ = send.set_priority(1);
        Self {
            outgoing: ControlSender { stream: send, limit, buffer: Vec::new(), sends: PhantomData },
            incoming: ControlReceiver {
                connection: connection.clone(),
                frames: receive.limited(limit),
                receives: PhantomData,
            },
        }
    }

    /// Sets the limit of received frames; the limit of sent frames stays.
    pub fn receive_limit(mut self, limit: usize) -> Self {
        self.incoming.frames = self.incoming.frames.limited(limit);
        self
    }

    /// Changes the types of frames, and their limit in both directions.
    pub fn retype<T, U>(self, limit: usize) -> Control<T, U> {
        let ControlSender { stream, buffer, .. } = self.outgoing;
        let ControlReceiver { connection, frames, .. } = self.incoming;
        Control {
            outgoing: ControlSender { stream, limit, buffer, sends: PhantomData },
            incoming: ControlReceiver { connection, frames: frames.limited(limit), receives: PhantomData },
        }
    }

    /// Sends a frame: see [`ControlSender::send`].
    pub async fn send(&mut self, frame: &S) -> Result<(), End> {
        self.outgoing.send(frame).await
    }

    /// Receives a frame: see [`ControlReceiver::receive`].
    pub async fn receive(&mut self) -> Result<R, End> {
        self.incoming.receive().await
    }
}

impl<S: Serialize> ControlSender<S> {
    /// Sends a frame; waits while the peer does not read. A frame over the limit is an error that leaves the
    /// connection as it was. Not cancel-safe: a part of the frame may have been sent.
    pub async fn send(&mut self, frame: &S) -> Result<(), End> {
        codec::encode(frame, self.limit, &mut self.buffer)
            .map_err(|error| End::Broken(format!("cannot send this frame: {error}")))?;
        let sent = self.stream.write_all(&self.buffer).await;
        self.buffer.clear();
        self.buffer.shrink_to(codec::PARCEL_FRAME);
        Ok(sent?)
    }

    /// Sends an encoded frame without copying it, so that many peers can share it. Otherwise equals
    /// [`send`](Self::send).
    pub async fn pass(&mut self, frame: Bytes) -> Result<(), End> {
        Ok(self.stream.write_chunk(frame).await?)
    }
}

impl<R: DeserializeOwned> ControlReceiver<R> {
    /// The next frame. Cancel-safe. An invalid frame closes the connection.
    pub async fn receive(&mut self) -> Result<R, End> {
        let received = match self.frames.next().await {
            Ok(Some(frame)) => codec::decode(frame).map_err(End::Protocol),
            Ok(None) => Err(End::Stream),
            Err(end) => Err(end),
        };
        received.map_err(|end| self.connection.fail(end))
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Version and digest of the program: see [`engine`]. Both sides must have the same message kinds and policies.
    engine: String,
    role: Role,
    name: String,
}

/// The reason why a hello was not accepted.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(super) enum HelloError {
    #[error("{0}")]
    Refused(String),
    #[error("no hello within {0:?}")]
    Late(Duration),
    #[error(transparent)]
    End(#[from] End),
}

/// Limit of a hello's frame, bytes.
const HELLO_FRAME: usize = 1024;

/// The version of this volary with a digest of its vocabulary, written like the build metadata of a semantic version.
/// Two builds of one version connect only if their message kinds and their added policies are equal. The digest does
/// not cover the fields of a message: changing them needs a new version.
pub fn engine() -> String {
    format!("{}+{}", env!("CARGO_PKG_VERSION"), digest(&vocabulary()))
}

/// The fingerprint of the names and classes of messages, and of further words without a class, in their order.
fn digest(words: &[(String, Option<Class>)]) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    for (name, class) in words {
        fingerprint.update(name.as_bytes());
        fingerprint.update(&[0, class.map_or(u8::MAX, |class| class as u8)]);
    }
    fingerprint
}

impl Hello {
    pub(super) fn of(subject: &Subject) -> Self {
        Self { engine: engine(), role: subject.role, name: subject.name.clone() }
    }

    /// Checks a peer's hello against ours and the subject of its certificate.
    pub(super) fn check(&self, ours: &Self, subject: &Subject) -> Result<(), HelloError> {
        if (&self.name, self.role) != (&subject.name, subject.role) {
            let why = format!("{} claims to be {} ({:?})", subject.name, self.name, self.role);
            return Err(HelloError::Refused(why));
        }
        if self.engine != ours.engine {
            return Err(HelloError::Refused(format!(
                "{} runs volary {} and {} runs volary {}: install one build on all hosts, and start the agents with the program of the run if it has policies of its own",
                self.name, self.engine, ours.name, ours.engine
            )));
        }
        Ok(())
    }

    pub(super) async fn send(&self, stream: &mut SendStream) -> Result<(), End> {
        let mut bytes = Vec::new();
        codec::encode(self, HELLO_FRAME, &mut bytes)?;
        Ok(stream.write_all(&bytes).await?)
    }

    pub(super) async fn receive(send: SendStream, receive: RecvStream) -> Result<(Self, Streams), End> {
        let mut receive = FrameReader::new(receive, HELLO_FRAME);
        let hello = codec::decode(receive.next().await?.ok_or(End::Stream)?)?;
        Ok((hello, Streams { send, receive }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_with_different_messages_have_different_versions() {
        use Class::{Datagram, Stream};
        let digest = |words: &[(&str, Option<Class>)]| {
            digest(&words.iter().map(|(word, class)| ((*word).to_owned(), *class)).collect::<Vec<_>>())
        };
        let (stream, datagram) = (Some(Stream), Some(Datagram));
        let ours = [("job.submit", stream), ("probe.claim", datagram)];
        let others: [&[(&str, Option<Class>)]; 5] = [
            &[("job.submit", stream), ("probe.claim", stream)],
            &[("probe.claim", datagram), ("job.submit", stream)],
            &[("job.submit", stream), ("probe.claims", datagram)],
            &ours[..1],
            &[("job.submit", stream), ("probe.claim", datagram), ("my-own {}", None)],
        ];
        assert!(others.iter().all(|other| digest(other) != digest(&ours)));
        // The digest is the same on every machine.
        assert_eq!(digest(&[("a", stream)]).to_string(), "e5d2f8190427081f");
    }
}
