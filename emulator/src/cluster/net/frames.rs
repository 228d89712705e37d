//! Frames out of a stream.

use std::ops::Range;

use quinn::RecvStream;

use super::connection::End;
use crate::codec::{self, PREFIX};

/// Bytes asked of a stream at once.
const READ: usize = 64 << 10;

/// What is known of the next frame.
enum Announced {
    /// All of its so many bytes have come.
    Whole(usize),
    /// So many of it or of its length have not.
    Missing(usize),
}

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
        loop {
            match self.announced()? {
                Announced::Whole(bytes) => return Ok(Some(self.take(bytes))),
                Announced::Missing(bytes) if self.read(bytes).await? => {}
                Announced::Missing(_) if self.filled.is_empty() => return Ok(None),
                Announced::Missing(_) => return Err(codec::CodecError::Truncated.into()),
            }
        }
    }

    /// The next frame, if all of it has come already.
    pub(super) fn ready(&mut self) -> Result<Option<&[u8]>, End> {
        match self.announced()? {
            Announced::Whole(bytes) => Ok(Some(self.take(bytes))),
            Announced::Missing(_) => Ok(None),
        }
    }

    fn announced(&self) -> Result<Announced, End> {
        let come = self.filled.len();
        let Some(prefix) = self.buffer[self.filled.clone()].first_chunk() else {
            return Ok(Announced::Missing(PREFIX - come));
        };
        let bytes = codec::length(*prefix, self.limit)?;
        Ok(match (PREFIX + bytes).checked_sub(come) {
            None | Some(0) => Announced::Whole(bytes),
            Some(missing) => Announced::Missing(missing),
        })
    }

    fn take(&mut self, bytes: usize) -> &[u8] {
        let start = self.filled.start + PREFIX;
        self.filled.start = start + bytes;
        &self.buffer[start..start + bytes]
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
