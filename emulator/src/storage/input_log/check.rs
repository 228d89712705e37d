//! Digests and checksums.

use flate2::Crc;
use volary_actors::machine::Effect;
use volary_actors::message::kinds;
use volary_engine::replay::Digest;

use crate::codec;

/// CRC-32 of a frame.
pub(super) fn checksum(section: u32, payload: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(&section.to_le_bytes());
    crc.update(payload);
    crc.sum()
}

/// Fingerprint of the message types: a message is encoded as its position in them.
pub(super) fn vocabulary() -> u32 {
    let mut crc = Crc::new();
    for (name, _) in kinds() {
        crc.update(name.as_bytes());
        crc.update(&[0]);
    }
    crc.sum()
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
