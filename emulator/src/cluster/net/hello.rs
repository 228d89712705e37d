//! The first words on a connection: who speaks, and which volary it is.
//!
//! The connecting side opens the control stream and speaks first. The version of the protocol is the frame's
//! own (see [`wire`](mod@crate::codec)); name and role must be those of the certificate.

use std::time::Duration;

use quinn::{RecvStream, SendStream};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use volary_actors::base::Class;
use volary_actors::message::KINDS;

use super::connection::{End, Streams};
use super::frames::FrameReader;
use super::identity::{Role, Subject};
use super::plain;
use crate::codec;

/// What each side says first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// What the speaker runs, see [`engine`]: both sides must run the same machines.
    #[serde(deserialize_with = "plain::words")]
    pub(super) engine: String,
    /// What the speaker is.
    pub(super) role: Role,
    /// Its name.
    #[serde(deserialize_with = "plain::words")]
    pub(super) name: String,
}

/// Why a hello was not accepted.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(super) enum HelloError {
    /// The other side runs another version.
    #[error(
        "{name} runs volary {theirs} and this is volary {ours}: install the same version on all hosts, of one build"
    )]
    Engine {
        /// Who.
        name: String,
        /// What it runs.
        theirs: String,
        /// What runs here.
        ours: String,
    },
    /// It says it is somebody else than its certificate says.
    #[error("{certified} says it is {said}")]
    Impostor {
        /// Name in its certificate.
        certified: String,
        /// Name and role in its hello.
        said: String,
    },
    /// It did not come.
    #[error("no hello within {0:?}")]
    Late(Duration),
    /// The connection ended, or what came was no hello.
    #[error(transparent)]
    End(#[from] End),
}

/// A hello is a name and a version.
const MOST: usize = 1024;

/// The version of this volary with a digest of the kinds of its messages, as semantic versions write builds: two
/// builds of one version do not talk if an actor of one could say what those of the other do not know. What a message
/// of a kind carries the digest does not tell: that is the version's to change.
#[must_use]
pub fn engine() -> String {
    format!("{}+{:016x}", env!("CARGO_PKG_VERSION"), digest(&KINDS))
}

/// FNV-1a over names and classes of messages, in their order.
fn digest(kinds: &[(&str, Class)]) -> u64 {
    let bytes = kinds.iter().flat_map(|(name, class)| name.bytes().chain([0, *class as u8]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Hello {
    /// What `subject` says with this version of volary.
    pub(super) fn of(subject: &Subject) -> Self {
        Self { engine: engine(), role: subject.role, name: subject.name.clone() }
    }

    /// Whether one can talk to who says this, having shown a certificate for `subject`.
    pub(super) fn check(&self, ours: &Self, subject: &Subject) -> Result<(), HelloError> {
        if (&self.name, self.role) != (&subject.name, subject.role) {
            let (certified, said) = (subject.name.clone(), format!("{} ({:?})", self.name, self.role));
            return Err(HelloError::Impostor { certified, said });
        }
        if self.engine != ours.engine {
            let (theirs, ours) = (self.engine.clone(), ours.engine.clone());
            return Err(HelloError::Engine { name: self.name.clone(), theirs, ours });
        }
        Ok(())
    }

    pub(super) async fn say(&self, send: &mut SendStream) -> Result<(), End> {
        let mut bytes = Vec::new();
        codec::encode(self, MOST, &mut bytes)?;
        Ok(send.write_all(&bytes).await?)
    }

    pub(super) async fn hear(send: SendStream, receive: RecvStream) -> Result<(Self, Streams), End> {
        let mut receive = FrameReader::new(receive, MOST);
        let hello = codec::decode(receive.next().await?.ok_or(End::Stream)?)?;
        Ok((hello, Streams { send, receive }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_messages_are_another_build() {
        use Class::{Datagram, Stream};
        let ours = [("job.submit", Stream), ("probe.claim", Datagram)];
        let others: [&[(&str, Class)]; 4] = [
            &[("job.submit", Stream), ("probe.claim", Stream)],
            &[("probe.claim", Datagram), ("job.submit", Stream)],
            &[("job.submit", Stream), ("probe.claims", Datagram)],
            &ours[..1],
        ];
        assert!(others.iter().all(|other| digest(other) != digest(&ours)));
        // The same on every machine.
        assert_eq!(digest(&[("a", Stream)]), 0xe5d2_f819_0427_081f);
    }
}
