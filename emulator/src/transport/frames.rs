//! Frames out of a stream.

use std::ops::Range;

use quinn::RecvStream;

use super::connection::End;
use crate::wire::{self, PREFIX};

/// Bytes asked of a stream at once.
const READ: usize = 64 << 10;

/// Cuts a stream into frames. Its buffer grows with what arrives, not with what a prefix announces.
#[derive(Debug)]
pub(super) struct FrameReader {
    stream: RecvStream,
    buffer: Vec<u8>,
    /// What of the buffer is read and not yet handed out.
    filled: Range<usize>,
    limit: usize,
}

impl FrameReader {
    /// Frames of at most `limit` bytes.
    pub(super) fn new(stream: RecvStream, limit: usize) -> Self {
        Self { stream, buffer: Vec::new(), filled: 0..0, limit }
    }

    /// Frames of at most `limit` bytes from here on.
    pub(super) fn limited(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// The next frame without its length; `None` where the stream ends between frames. May be cancelled:
    /// nothing is lost.
    pub(super) async fn next(&mut self) -> Result<Option<&[u8]>, End> {
        let bytes = loop {
            let missing = match self.buffer[self.filled.clone()].first_chunk::<PREFIX>() {
                None => PREFIX - self.filled.len(),
                Some(prefix) => {
                    let bytes = wire::length(*prefix, self.limit)?;
                    match (PREFIX + bytes).checked_sub(self.filled.len()) {
                        None | Some(0) => break bytes,
                        Some(missing) => missing,
                    }
                }
            };
            if !self.read(missing).await? {
                return if self.filled.is_empty() {
                    Ok(None)
                } else {
                    Err(wire::WireError::Truncated.into())
                };
            }
        };
        let start = self.filled.start + PREFIX;
        self.filled.start = start + bytes;
        Ok(Some(&self.buffer[start..start + bytes]))
    }

    /// Reads once, with space for what is `missing` but for no more than twice what is there; false at the end.
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
