//! Digests of effects, and the fingerprint of messages.

use flate2::Crc;
use volary_actors::machine::Effect;
use volary_actors::message::kinds;
use volary_engine::replay::Digest;

use crate::codec;
use crate::storage::frames;

/// Fingerprint of the message types: a message is encoded as its position in them.
pub(super) fn vocabulary() -> u32 {
    frames::vocabulary(kinds().map(|(name, _)| name))
}

/// Computes digests of effects with a reused buffer.
#[derive(Debug, Default)]
pub struct Digester(Vec<u8>);

impl Digester {
    /// The digest of the effects of a step.
    pub fn digest(&mut self, effects: &[Effect]) -> Digest {
        self.0.clear();
        for effect in effects {
            // Effects are plain numbers and can always be encoded.
            let _ = codec::append(effect, &mut self.0);
        }
        let mut crc = Crc::new();
        crc.update(&self.0);
        Digest { count: effects.len() as u32, crc: crc.sum().to_le_bytes() }
    }
}
