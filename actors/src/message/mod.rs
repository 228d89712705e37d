//! The one message vocabulary: a closed enum with a file per conversation.
//!
//! A variant has one meaning in every state of its receiver. Every message names its class and its kind; the
//! codec, the counters and the size assertion find new conversations from here.

mod check;
mod core;
mod gang;
mod gossip;
mod heartbeat;
mod job;
mod launch;
mod probe;
mod progress;
mod ring;
mod share;
mod steal;

pub use self::core::Core;
pub use gang::Gang;
pub use gossip::{Ended, Form, Gossip, Placed};
pub use heartbeat::Heartbeat;
pub use job::Job;
pub use launch::{Launch, Row, Tasks};
pub use probe::Probe;
pub use progress::Progress;
pub use ring::{Ring, Visitor};
pub use share::{Blocks, Share, Stamp};
pub use steal::Steal;

use serde::{Deserialize, Serialize};

use self::check::Envelope;
use crate::base::Class;

/// What one actor can say to another. At most 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Client ↔ scheduler: submission and completion of jobs.
    Job(Job),
    /// Scheduler ↔ node: early binding, completion, removal.
    Launch(Launch),
    /// Node ↔ its own worker.
    Core(Core),
    /// Scheduler ↔ node: reservations, late binding, sampling.
    Probe(Probe),
    /// A probe on Peacock's ring.
    Visitor(Visitor),
    /// What is told along Peacock's ring.
    Ring(Ring),
    /// Gang scheduler ↔ node: time slices.
    Gang(Gang),
    /// Schedulers and nodes that keep caches of expected waits up to date.
    Gossip(Gossip),
    /// Scheduler ↔ node: probes that can be turned away, and a bitmap.
    Share(Share),
    /// Node ↔ node: stealing of reservations.
    Steal(Steal),
    /// Node → scheduler: how long one would wait there.
    Heartbeat(Heartbeat),
    /// Node → scheduler: how far running copies are.
    Progress(Progress),
}

/// A conversation: its variants in a fixed order, each with a name and a class.
pub(crate) trait Conversation {
    /// Names and classes of the variants, in the order of `variant`.
    const VARIANTS: &'static [(&'static str, Class)];
    /// Which variant this is.
    fn variant(&self) -> u8;
    /// Whether it is a part of the message before it, as what is longer than ours may be travels: it has its
    /// bytes, but is no message of its own in the books.
    fn continues(&self) -> bool {
        false
    }
    /// Whether this can be said so, and names what exists.
    fn allowed(&self, envelope: &Envelope<'_>) -> bool;
}

macro_rules! vocabulary {
    ($($conversation:ident)*) => {
        /// Name and class of every kind of message, in the order of [`Message::kind`].
        pub const KINDS: [(&str, Class); COUNT] = {
            let mut all = [("", Class::Stream); COUNT];
            let mut at = 0;
            $({
                let part = <$conversation as Conversation>::VARIANTS;
                let mut i = 0;
                while i < part.len() { all[at] = part[i]; at += 1; i += 1; }
            })*
            assert!(at == COUNT);
            all
        };
        const COUNT: usize = 0 $(+ <$conversation as Conversation>::VARIANTS.len())*;

        impl Message {
            /// Which kind of message this is: an index into [`KINDS`].
            #[must_use]
            pub fn kind(&self) -> u8 {
                let mut base = 0;
                $(
                    if let Self::$conversation(inner) = self { return base + inner.variant(); }
                    base += <$conversation as Conversation>::VARIANTS.len() as u8;
                )*
                base
            }

            /// Whether it is a part of the message before it and not counted as one of its own.
            #[must_use]
            pub fn continues(&self) -> bool {
                match self { $(Self::$conversation(inner) => inner.continues(),)* }
            }

            fn allowed(&self, envelope: &Envelope<'_>) -> bool {
                match self { $(Self::$conversation(inner) => inner.allowed(envelope),)* }
            }
        }

        $(impl From<$conversation> for Message {
            fn from(inner: $conversation) -> Self { Self::$conversation(inner) }
        })*
    };
}
vocabulary!(Job Launch Core Probe Visitor Ring Gang Gossip Share Steal Heartbeat Progress);

impl Message {
    /// How this message travels.
    #[must_use]
    pub fn class(&self) -> Class {
        KINDS[self.kind() as usize].1
    }

    /// Its name, `conversation.variant`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        KINDS[self.kind() as usize].0
    }

    /// Bytes on the wire, headers included, for links with a rate: an encoded message in a QUIC packet of
    /// its own (IPv4 + UDP + short header + tag = 28 + 25, frame header 4) plus its fields.
    #[must_use]
    pub const fn wire_bytes(&self) -> u32 {
        57 + size_of::<Self>() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::JobId;

    #[test]
    fn kinds_name_their_messages() {
        let submit = Message::from(Job::Submit { job: JobId(1), round: 0 });
        assert_eq!(submit.name(), "job.submit");
        let reserve = Message::from(Probe::Reserve { job: JobId(1), group: 0, count: 1, repair: false });
        assert_eq!((reserve.name(), reserve.class()), ("probe.reserve", Class::Datagram));
        let mut names: Vec<_> = KINDS.iter().map(|kind| kind.0).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KINDS.len(), "every kind has a name of its own");
    }
}
