//! The control stream: typed frames both ways between controller and agent, beside the parcels.

use std::marker::PhantomData;

use bytes::Bytes;
use quinn::SendStream;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::connection::{Connection, Streams};
use super::end::End;
use super::frames::FrameReader;
use crate::codec;

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

    /// Sets the limit of received frames; that of sent frames stays.
    #[must_use]
    pub fn receive_limit(mut self, limit: usize) -> Self {
        self.incoming.frames = self.incoming.frames.limited(limit);
        self
    }

    /// Changes the types of frames, and their limit in both directions.
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
    /// connection as it was. Not cancel-safe: a part of the frame may have been sent.
    pub async fn send(&mut self, frame: &S) -> Result<(), End> {
        codec::encode(frame, self.limit, &mut self.buffer)
            .map_err(|error| End::Broken(format!("cannot send this: {error}")))?;
        let sent = self.stream.write_all(&self.buffer).await;
        self.buffer.clear();
        self.buffer.shrink_to(codec::PARCEL_FRAME);
        Ok(sent?)
    }

    /// Sends an encoded frame without copying it, so that many peers can share it. Otherwise as [`send`](Self::send).
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
