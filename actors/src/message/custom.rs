//! Messages of policies in other crates. A message has a number, whose meaning each process defines for itself, and
//! its fields as bytes, which are opaque to this crate.

use std::sync::OnceLock;

use serde::{Deserialize, Deserializer, Serialize};

use super::protocol::{Protocol, Run};
use crate::base::{ActorId, Class, CopyId, JobId, Span, TaskId, Time};

/// Maximum number of kinds of stream messages in a program, and of kinds of datagrams.
const NUMBERS: usize = 16;

/// A message of a policy in another crate; [`custom_messages!`](crate::custom_messages) converts it from and to a type
/// of that crate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Custom {
    /// Index of the message's kind: the numbers of streams, then those of datagrams.
    #[serde(deserialize_with = "known")]
    kind: u8,
    payload: [u8; PAYLOAD],
}

fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let kind = u8::deserialize(deserializer)?;
    if usize::from(kind) < 2 * NUMBERS {
        return Ok(kind);
    }
    let kind = serde::de::Unexpected::Unsigned(kind.into());
    Err(serde::de::Error::invalid_value(kind, &"the number of a custom message"))
}

/// The index of a number among the kinds.
const fn index(number: u8, class: Class) -> u8 {
    match class {
        Class::Stream => number,
        Class::Datagram => number + NUMBERS as u8,
    }
}

impl Custom {
    /// A message of the kind with this number.
    pub fn new(number: u8, class: Class, fields: PayloadWriter) -> Self {
        debug_assert!(usize::from(number) < NUMBERS, "custom messages have numbers below {NUMBERS}");
        Self { kind: index(number, class), payload: fields.finish() }
    }

    /// Whether there is a message of each class with this number.
    pub const fn has_number(number: u8) -> bool {
        (number as usize) < NUMBERS
    }

    /// Whether the message is of the kind with this number.
    pub const fn is(&self, number: u8, class: Class) -> bool {
        self.kind == index(number, class)
    }

    /// Whether no crate of this program uses the number of the message. The message then belongs to a program in
    /// another language, and only that program knows its fields.
    pub fn is_of_program(&self) -> bool {
        installed()[usize::from(self.kind)].is_none()
    }

    /// The message's fields.
    pub const fn fields(&self) -> PayloadReader<'_> {
        PayloadReader::new(&self.payload)
    }
}

/// A kind of custom messages.
#[derive(Clone, Copy, Debug)]
pub struct CustomKind {
    /// Name of the kind, `protocol.kind`.
    pub name: &'static str,
    /// Delivery class of the kind.
    pub class: Class,
    /// Length of an encoded message in bytes, without the unused part of its payload.
    pub bytes: u32,
    /// Whether sender and receiver have the roles of this kind, and the fields are within the bounds of the run.
    pub check: fn(&Custom, &Run<'_>) -> bool,
    /// The job that a message concerns, if any: the first job that its fields name.
    pub job: fn(&Custom) -> Option<JobId>,
}

/// Names of the numbers that no crate of this program uses. Messages of programs in other languages have these names.
#[rustfmt::skip]
const NAMES: [&str; 2 * NUMBERS] = [
    "custom.stream.0", "custom.stream.1", "custom.stream.2", "custom.stream.3",
    "custom.stream.4", "custom.stream.5", "custom.stream.6", "custom.stream.7",
    "custom.stream.8", "custom.stream.9", "custom.stream.10", "custom.stream.11",
    "custom.stream.12", "custom.stream.13", "custom.stream.14", "custom.stream.15",
    "custom.datagram.0", "custom.datagram.1", "custom.datagram.2", "custom.datagram.3",
    "custom.datagram.4", "custom.datagram.5", "custom.datagram.6", "custom.datagram.7",
    "custom.datagram.8", "custom.datagram.9", "custom.datagram.10", "custom.datagram.11",
    "custom.datagram.12", "custom.datagram.13", "custom.datagram.14", "custom.datagram.15",
];

impl Protocol for Custom {
    const KINDS: &'static [(&'static str, Class)] = &{
        let mut kinds = [("", Class::Stream); 2 * NUMBERS];
        let mut at = 0;
        while at < kinds.len() {
            kinds[at] = (NAMES[at], if at < NUMBERS { Class::Stream } else { Class::Datagram });
            at += 1;
        }
        kinds
    };

    const BYTES: &'static [u32] = &[HEAD + PAYLOAD as u32; 2 * NUMBERS];

    #[inline]
    fn kind(&self) -> u8 {
        self.kind
    }

    #[inline]
    fn is_fragment(&self) -> bool {
        false
    }

    fn job(&self) -> Option<JobId> {
        installed()[usize::from(self.kind)].and_then(|kind| (kind.job)(self))
    }

    fn check(&self, run: &Run<'_>) -> bool {
        installed()[usize::from(self.kind)].is_some_and(|kind| (kind.check)(self, run))
    }
}

/// The first number of a class after all numbers that crates of this program use. Messages of programs in other
/// languages are numbered from it on. `None` if no number is left.
pub(crate) fn first_unused(class: Class) -> Option<u8> {
    let used = |number: &u8| installed()[usize::from(index(*number, class))].is_some();
    let first = (0..NUMBERS as u8).rev().find(used).map_or(0, |last| last + 1);
    Custom::has_number(first).then_some(first)
}

pub(super) type Table = [Option<CustomKind>; 2 * NUMBERS];

static TABLE: OnceLock<Table> = OnceLock::new();

/// The kinds of messages in this process, in the order of [`Custom`]'s kinds.
pub(super) fn installed() -> &'static Table {
    const NONE: Table = [None; 2 * NUMBERS];
    TABLE.get().unwrap_or(&NONE)
}

/// Assigns kinds of messages to numbers in this process; may be called once.
///
/// # Errors
/// If a number is above the largest possible number, or messages are installed already.
pub(crate) fn install(kinds: &[(u8, CustomKind)]) -> Result<(), String> {
    let mut table = [None; 2 * NUMBERS];
    for &(number, kind) in kinds {
        if usize::from(number) >= NUMBERS {
            return Err(format!(
                "the message `{}` has number {number}, above the last number {}; write a lower number after `from`",
                kind.name,
                NUMBERS - 1
            ));
        }
        table[usize::from(index(number, kind.class))] = Some(kind);
    }
    TABLE.set(table).map_err(|_| "the messages are installed already".to_owned())
}

/// Bytes of a payload.
pub const PAYLOAD: usize = 24;

/// Bytes of an encoded message before its payload: the variant of [`Message`](super::Message), and the kind.
pub const HEAD: u32 = 5;

/// A value that a custom message can contain: little endian, of a fixed length.
pub trait Field: Copy {
    /// Length of the value, bytes.
    const BYTES: usize;

    /// Appends the value to a payload.
    fn write(self, payload: &mut PayloadWriter);

    /// Reads a value from a payload; `None` if the bytes are invalid.
    fn read(payload: &mut PayloadReader<'_>) -> Option<Self>;

    /// Whether the value names something that exists in a run. The bounds of the message check numbers that index
    /// tables of a machine.
    fn is_within(&self, _run: &Run<'_>) -> bool {
        true
    }

    /// The job that the value names, if any.
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

    /// Whether all remaining bytes are zero, as after the last field.
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

/// Implements fields that are written as one or two other fields, with their conditions in a run.
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

/// A boolean is one byte, 0 or 1.
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
