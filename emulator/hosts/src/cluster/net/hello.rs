//! The first frames on a connection: name, role and version of each side.
//!
//! The connecting side opens the control stream and sends its hello first. The protocol version is the frame's own
//! (see [`codec`](mod@volary_experiment::codec)); name and role must be those of the certificate.

use std::time::Duration;

use quinn::{RecvStream, SendStream};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use volary_actors::base::Class;
use volary_actors::policies::vocabulary;
use volary_engine::fingerprint::Fingerprint;
use volary_experiment::codec;

use super::end::End;
use super::framed::{FrameReader, Streams};
use super::identity::{Role, Subject};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// See [`engine`]; both sides must run the same machines.
    pub(super) engine: String,
    pub(super) role: Role,
    pub(super) name: String,
}

/// The reason for which a hello was not accepted.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(super) enum HelloError {
    #[error("{0}")]
    Refused(String),
    #[error("no hello within {0:?}")]
    Late(Duration),
    #[error(transparent)]
    End(#[from] End),
}

/// Limit of a hello's frame, bytes.
const HELLO_FRAME: usize = 1024;

/// The version of this volary with a digest of its vocabulary, written like the build of a semantic version. Two builds
/// of one version connect only if their message kinds and their added policies are equal. The digest
/// does not cover the fields of a message: a change there needs a new version.
pub fn engine() -> String {
    format!("{}+{}", env!("CARGO_PKG_VERSION"), digest(&vocabulary()))
}

/// The fingerprint of the names and classes of messages, and of further words without a class, in their order.
fn digest(words: &[(String, Option<Class>)]) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    for (name, class) in words {
        fingerprint.update(name.as_bytes());
        fingerprint.update(&[0, class.map_or(u8::MAX, |class| class as u8)]);
    }
    fingerprint
}

impl Hello {
    pub(super) fn of(subject: &Subject) -> Self {
        Self { engine: engine(), role: subject.role, name: subject.name.clone() }
    }

    /// Checks a peer's hello against ours and the subject of its certificate.
    pub(super) fn check(&self, ours: &Self, subject: &Subject) -> Result<(), HelloError> {
        if (&self.name, self.role) != (&subject.name, subject.role) {
            let why = format!("{} says it is {} ({:?})", subject.name, self.name, self.role);
            return Err(HelloError::Refused(why));
        }
        if self.engine != ours.engine {
            return Err(HelloError::Refused(format!(
                "{} runs volary {} and {} runs volary {}: install one build on all hosts, and start the agents with the program of the run if it has policies of its own",
                self.name, self.engine, ours.name, ours.engine
            )));
        }
        Ok(())
    }

    pub(super) async fn send(&self, stream: &mut SendStream) -> Result<(), End> {
        let mut bytes = Vec::new();
        codec::encode(self, HELLO_FRAME, &mut bytes)?;
        Ok(stream.write_all(&bytes).await?)
    }

    pub(super) async fn receive(send: SendStream, receive: RecvStream) -> Result<(Self, Streams), End> {
        let mut receive = FrameReader::new(receive, HELLO_FRAME);
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
        let digest = |words: &[(&str, Option<Class>)]| {
            digest(&words.iter().map(|(word, class)| ((*word).to_owned(), *class)).collect::<Vec<_>>())
        };
        let (stream, datagram) = (Some(Stream), Some(Datagram));
        let ours = [("job.submit", stream), ("probe.claim", datagram)];
        let others: [&[(&str, Option<Class>)]; 5] = [
            &[("job.submit", stream), ("probe.claim", stream)],
            &[("probe.claim", datagram), ("job.submit", stream)],
            &[("job.submit", stream), ("probe.claims", datagram)],
            &ours[..1],
            &[("job.submit", stream), ("probe.claim", datagram), ("my-own {}", None)],
        ];
        assert!(others.iter().all(|other| digest(other) != digest(&ours)));
        // The same on every machine.
        assert_eq!(digest(&[("a", stream)]).to_string(), "e5d2f8190427081f");
    }
}
