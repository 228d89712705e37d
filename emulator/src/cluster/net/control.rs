//! Typed frames both ways: what controller and agent say to each other, beside the parcels.

use std::marker::PhantomData;

use bytes::Bytes;
use quinn::SendStream;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::connection::{Connection, End, Streams};
use super::frames::FrameReader;
use crate::codec;

/// The control stream of a connection: sends `S`, receives `R`. Its two halves can go separate ways.
#[derive(Debug)]
pub struct Control<S, R> {
    /// What goes out.
    pub outgoing: ControlSender<S>,
    /// What comes in.
    pub incoming: ControlReceiver<R>,
}

/// The sending half.
#[derive(Debug)]
pub struct ControlSender<S> {
    stream: SendStream,
    limit: usize,
    buffer: Vec<u8>,
    sends: PhantomData<fn(S)>,
}

/// The receiving half.
#[derive(Debug)]
pub struct ControlReceiver<R> {
    connection: Connection,
    frames: FrameReader,
    receives: PhantomData<fn() -> R>,
}

impl<S: Serialize, R: DeserializeOwned> Control<S, R> {
    /// Speaks over `streams` of `connection` in frames of at most `limit` bytes either way, which is at most
    /// [`LARGEST_FRAME`](codec::LARGEST_FRAME).
    #[must_use]
    pub fn new(connection: &Connection, streams: Streams, limit: usize) -> Self {
        let Streams { send, receive } = streams;
        // What controls goes before parcels; on a stream of a lost connection this has no effect.
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

    /// Takes frames of at most `limit` bytes from here on; what it sends may be as long as before.
    #[must_use]
    pub fn receive_limit(mut self, limit: usize) -> Self {
        self.incoming.frames = self.incoming.frames.limited(limit);
        self
    }

    /// Speaks of something else from here on, in frames of at most `limit` bytes either way.
    #[must_use]
    pub fn retype<T, U>(self, limit: usize) -> Control<T, U> {
        let ControlSender { stream, buffer, .. } = self.outgoing;
        let ControlReceiver { connection, frames, .. } = self.incoming;
        Control {
            outgoing: ControlSender { stream, limit, buffer, sends: PhantomData },
            incoming: ControlReceiver { connection, frames: frames.limited(limit), receives: PhantomData },
        }
    }

    /// See [`ControlSender::send`].
    pub async fn send(&mut self, frame: &S) -> Result<(), End> {
        self.outgoing.send(frame).await
    }

    /// See [`ControlReceiver::receive`].
    pub async fn receive(&mut self) -> Result<R, End> {
        self.incoming.receive().await
    }
}

impl<S: Serialize> ControlSender<S> {
    /// Sends a frame; waits while the peer does not read. A frame over the limit is an error that leaves the
    /// connection as it was. Do not cancel it: half a frame may be under way.
    pub async fn send(&mut self, frame: &S) -> Result<(), End> {
        codec::encode(frame, self.limit, &mut self.buffer)
            .map_err(|error| End::Broken(format!("cannot send this: {error}")))?;
        let sent = self.stream.write_all(&self.buffer).await;
        self.buffer.clear();
        self.buffer.shrink_to(codec::PARCEL_FRAME);
        Ok(sent?)
    }

    /// Sends a frame that is encoded already, and may go to others as well: it is not copied. Otherwise as
    /// [`send`](Self::send).
    pub async fn pass(&mut self, frame: Bytes) -> Result<(), End> {
        Ok(self.stream.write_chunk(frame).await?)
    }
}

impl<R: DeserializeOwned> ControlReceiver<R> {
    /// The next frame. May be cancelled: nothing is lost. A peer that sends what is no frame loses its
    /// connection.
    pub async fn receive(&mut self) -> Result<R, End> {
        let received = match self.frames.next().await {
            Ok(Some(frame)) => codec::decode(frame).map_err(End::Protocol),
            Ok(None) => Err(End::Stream),
            Err(end) => Err(end),
        };
        received.map_err(|end| self.connection.fail(end))
    }
}
