//! A reader of length-prefixed frames from a stream.

use std::ops::Range;

use quinn::RecvStream;

use super::end::End;
use crate::codec::{self, PREFIX};

/// Bytes requested from a stream at once.
const READ: usize = 64 << 10;

/// State of the next frame in the buffer.
enum Announced {
    /// Complete; its length.
    Whole(usize),
    /// Bytes of the frame, or of its length prefix, that have not arrived.
    Missing(usize),
}

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
    pub(super) fn limited(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// The next frame without its prefix; `None` if the stream ends between frames. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Option<&[u8]>, End> {
        loop {
            match self.announced()? {
                Announced::Whole(bytes) => return Ok(Some(self.take(bytes))),
                Announced::Missing(bytes) if self.read(bytes).await? => {}
                Announced::Missing(_) if self.filled.is_empty() => return Ok(None),
                Announced::Missing(_) => return Err(codec::CodecError::Truncated.into()),
            }
        }
    }

    /// The next frame, if it is complete in the buffer.
    pub(super) fn ready(&mut self) -> Result<Option<&[u8]>, End> {
        match self.announced()? {
            Announced::Whole(bytes) => Ok(Some(self.take(bytes))),
            Announced::Missing(_) => Ok(None),
        }
    }

    fn announced(&self) -> Result<Announced, End> {
        let available = self.filled.len();
        let Some(prefix) = self.buffer[self.filled.clone()].first_chunk() else {
            return Ok(Announced::Missing(PREFIX - available));
        };
        let bytes = codec::length(*prefix, self.limit)?;
        Ok(match (PREFIX + bytes).checked_sub(available) {
            None | Some(0) => Announced::Whole(bytes),
            Some(missing) => Announced::Missing(missing),
        })
    }

    fn take(&mut self, bytes: usize) -> &[u8] {
        let start = self.filled.start + PREFIX;
        self.filled.start = start + bytes;
        &self.buffer[start..start + bytes]
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
