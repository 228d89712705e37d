//! The fields of custom messages, as bytes.

use super::protocol::Run;
use crate::base::{ActorId, CopyId, JobId, Span, TaskId, Time};

/// Bytes of a payload.
pub const PAYLOAD: usize = 24;

/// A value that a custom message can have: little endian, of a fixed length.
pub trait Field: Copy {
    /// Its length, bytes.
    const BYTES: usize;

    /// Appends it to a payload.
    fn write(self, payload: &mut PayloadWriter);

    /// Reads it from a payload; `None` if the bytes are invalid.
    fn read(payload: &mut PayloadReader<'_>) -> Option<Self>;

    /// Whether it names something that exists in a run. Numbers that index tables of a machine are checked by the
    /// bounds of the message.
    fn is_within(&self, _run: &Run<'_>) -> bool {
        true
    }

    /// The job that it names, if it names one.
    fn job(self) -> Option<JobId> {
        None
    }
}

/// A payload that is being filled.
#[derive(Clone, Copy, Debug, Default)]
pub struct PayloadWriter {
    bytes: [u8; PAYLOAD],
    used: usize,
}

impl PayloadWriter {
    /// Adds a field. A message with more fields than fit does not compile.
    #[must_use]
    pub fn put(mut self, field: impl Field) -> Self {
        field.write(&mut self);
        self
    }

    fn append<const N: usize>(&mut self, bytes: [u8; N]) {
        self.bytes[self.used..self.used + N].copy_from_slice(&bytes);
        self.used += N;
    }

    pub(super) const fn finish(self) -> [u8; PAYLOAD] {
        self.bytes
    }
}

/// A payload that is being read.
#[derive(Clone, Copy, Debug)]
pub struct PayloadReader<'a> {
    rest: &'a [u8],
}

impl<'a> PayloadReader<'a> {
    pub(super) const fn new(payload: &'a [u8; PAYLOAD]) -> Self {
        Self { rest: payload }
    }

    /// The next field; `None` if the bytes are invalid.
    pub fn take<F: Field>(&mut self) -> Option<F> {
        F::read(self)
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    /// Whether the remaining bytes are zero, as they are behind the last field.
    pub fn is_blank(&self) -> bool {
        self.rest.iter().all(|byte| *byte == 0)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Field for $number {
            const BYTES: usize = size_of::<$number>();

            fn write(self, payload: &mut PayloadWriter) {
                payload.append(self.to_le_bytes());
            }

            fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
                payload.bytes().map(Self::from_le_bytes)
            }
        })*
    };
}
numbers!(u8, u16, u32, u64, i8, i16, i32, i64);

/// Fields that are written as one or two others, with their conditions in a run.
macro_rules! composed {
    ($($type:ty = ($($part:ty),*): |$whole:ident| ($($get:expr),*), |$($name:ident),*| $make:expr,
        |$at:ident, $run:ident| $within:expr $(=> $job:expr)?;)*) => {
        $(impl Field for $type {
            const BYTES: usize = 0 $(+ <$part as Field>::BYTES)*;

            fn write(self, payload: &mut PayloadWriter) {
                let $whole = self;
                $(payload.append(<$part>::to_le_bytes($get));)*
            }

            fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
                $(let $name = payload.take::<$part>()?;)*
                Some($make)
            }

            fn is_within(&self, $run: &Run<'_>) -> bool {
                let $at = *self;
                $within
            }

            $(fn job(self) -> Option<JobId> {
                let $at = self;
                Some($job)
            })?
        })*
    };
}
composed! {
    JobId = (u32): |job| (job.0), |job| Self(job), |job, run| run.has_job(job) => job;
    TaskId = (u32, u32): |task| (task.job.0, task.index), |job, index| JobId(job).task(index),
        |task, run| run.has_task(task) => task.job;
    CopyId = (u32, u32, u32): |copy| (copy.task.job.0, copy.task.index, copy.attempt),
        |job, index, attempt| JobId(job).task(index).copy(attempt), |copy, run| run.has_task(copy.task) => copy.task.job;
    ActorId = (u32): |actor| (actor.0), |actor| Self(actor), |actor, run| actor.0 < run.layout.actors();
    Span = (u64): |span| (span.0), |span| Self(span), |_span, _run| true;
    Time = (u64): |time| (time.0), |time| Self(time), |_time, _run| true;
}

/// One byte, 0 or 1.
impl Field for bool {
    const BYTES: usize = 1;

    fn write(self, payload: &mut PayloadWriter) {
        payload.append([self.into()]);
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        match payload.bytes()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}
