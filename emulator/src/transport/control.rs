//! Typed frames on a stream of their own.

use std::marker::PhantomData;

use quinn::{Connection, RecvStream, SendStream};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Error;
use super::endpoint::explain;
use crate::wire;

/// Sends values of one type.
#[derive(Debug)]
pub struct ControlSender<S> {
    connection: Connection,
    stream: SendStream,
    limit: usize,
    buffer: Vec<u8>,
    of: PhantomData<fn(S)>,
}

/// Receives values of one type.
#[derive(Debug)]
pub struct ControlReceiver<R> {
    connection: Connection,
    stream: RecvStream,
    limit: usize,
    of: PhantomData<fn() -> R>,
}

impl<S: Serialize> ControlSender<S> {
    pub(super) const fn new(connection: Connection, stream: SendStream, limit: usize) -> Self {
        Self { connection, stream, limit, buffer: Vec::new(), of: PhantomData }
    }

    pub(super) fn into_stream(self) -> SendStream {
        self.stream
    }

    /// Sends a value; returns when it is on its way.
    ///
    /// # Errors
    /// When it is too large or the connection has ended.
    pub async fn send(&mut self, value: &S) -> Result<(), Error> {
        self.buffer.clear();
        wire::frame(value, self.limit, &mut self.buffer)?;
        self.stream.write_all(&self.buffer).await.map_err(|error| ended(&self.connection, &error))
    }
}

impl<R: DeserializeOwned> ControlReceiver<R> {
    pub(super) const fn new(connection: Connection, stream: RecvStream, limit: usize) -> Self {
        Self { connection, stream, limit, of: PhantomData }
    }

    pub(super) fn into_stream(self) -> RecvStream {
        self.stream
    }

    /// Waits for the next value. Not to be cancelled in between.
    ///
    /// # Errors
    /// When a frame is too long, is no such value, or the connection has ended.
    pub async fn recv(&mut self) -> Result<R, Error> {
        let ended = |error: quinn::ReadExactError| ended(&self.connection, &error);
        let mut prefix = [0; wire::PREFIX];
        self.stream.read_exact(&mut prefix).await.map_err(ended)?;
        let length = wire::length(prefix, self.limit)?;
        // Memory is taken as bytes come, not as they are announced.
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let part = (length - bytes.len()).min(1 << 20);
            let start = bytes.len();
            bytes.resize(start + part, 0);
            self.stream.read_exact(&mut bytes[start..]).await.map_err(ended)?;
        }
        Ok(wire::decode(&bytes)?)
    }
}

/// The end of a stream, in the words of whoever ended the connection.
fn ended(connection: &Connection, error: &dyn std::error::Error) -> Error {
    Error::Ended(connection.close_reason().map_or_else(|| error.to_string(), |reason| explain(&reason)))
}
