//! Messages of policies in other crates: an opaque payload with a number, whose meaning each process defines.

use std::sync::OnceLock;

use serde::{Deserialize, Deserializer, Serialize};

use super::field::{PAYLOAD, PayloadReader, PayloadWriter};
use super::protocol::{Protocol, Run};
use crate::base::{Class, JobId};

/// The numbers that kinds of messages can have in a program; each is a stream message or a datagram.
const NUMBERS: usize = 16;

/// A message of a policy in another crate; [`custom_messages!`](crate::custom_messages) converts it from and to a type
/// of that crate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Custom {
    /// Its index in [`Custom`]'s kinds: the numbers of streams, then those of datagrams.
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

/// The place of a number among the kinds.
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

    /// Whether it is of the kind with this number.
    pub const fn is(&self, number: u8, class: Class) -> bool {
        self.kind == index(number, class)
    }

    /// Its fields.
    pub const fn fields(&self) -> PayloadReader<'_> {
        PayloadReader::new(&self.payload)
    }
}

/// A kind of custom messages.
#[derive(Clone, Copy, Debug)]
pub struct CustomKind {
    /// Its name, `protocol.kind`.
    pub name: &'static str,
    /// Its delivery class.
    pub class: Class,
    /// Whether sender and receiver have the roles of this kind, and the fields are within the bounds of the run.
    pub check: fn(&Custom, &Run<'_>) -> bool,
    /// The job that a message is about, if it is about one: the first that its fields name.
    pub job: fn(&Custom) -> Option<JobId>,
}

/// The names of numbers that no policy uses.
const UNUSED: &str = "custom";

impl Protocol for Custom {
    const KINDS: &'static [(&'static str, Class)] = &{
        let mut kinds = [(UNUSED, Class::Stream); 2 * NUMBERS];
        let mut at = NUMBERS;
        while at < kinds.len() {
            kinds[at].1 = Class::Datagram;
            at += 1;
        }
        kinds
    };

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

pub(super) type Table = [Option<CustomKind>; 2 * NUMBERS];

static TABLE: OnceLock<Table> = OnceLock::new();

/// The kinds of messages in this process, in the order of [`Custom`]'s kinds.
pub(super) fn installed() -> &'static Table {
    const NONE: Table = [None; 2 * NUMBERS];
    TABLE.get().unwrap_or(&NONE)
}

/// Gives numbers a meaning in this process, once.
///
/// # Errors
/// When there are more numbers than are possible.
pub(crate) fn install(kinds: &[(u8, CustomKind)]) -> Result<(), String> {
    let mut table = [None; 2 * NUMBERS];
    for &(number, kind) in kinds {
        if usize::from(number) >= NUMBERS {
            return Err(format!(
                "the message `{}` has number {number}, and the last is {}: begin with a lower one behind `from`",
                kind.name,
                NUMBERS - 1
            ));
        }
        table[usize::from(index(number, kind.class))] = Some(kind);
    }
    TABLE.set(table).map_err(|_| "the messages are installed already".to_owned())
}
