//! Values to bytes and back, digests, checksums.

use std::io;

use flate2::Crc;
use serde::Serialize;
use serde::de::DeserializeOwned;
use volary_actors::machine::Effect;
use volary_actors::message::KINDS;

use super::Digest;

/// Most bytes that a value may claim while it is read: an experiment with all its files.
const LIMIT: usize = (1 << 30) + (1 << 24);

/// Appends a value.
///
/// # Errors
/// For what has no encoding, such as a path that is not UTF-8.
pub(super) fn put<T: Serialize>(value: &T, out: &mut Vec<u8>) -> io::Result<()> {
    bincode::serde::encode_into_std_write(value, out, bincode::config::standard())
        .map(|_| ())
        .map_err(io::Error::other)
}

/// Takes a value off the front of `bytes`.
///
/// # Errors
/// Why these bytes are no such value.
pub(super) fn take<T: DeserializeOwned>(bytes: &mut &[u8]) -> Result<T, String> {
    let config = bincode::config::standard().with_limit::<LIMIT>();
    let (value, used) =
        bincode::serde::decode_from_slice(bytes, config).map_err(|error| error.to_string())?;
    *bytes = &bytes[used..];
    Ok(value)
}

/// CRC-32 of a frame.
pub(super) fn checksum(section: u32, payload: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(&section.to_le_bytes());
    crc.update(payload);
    crc.sum()
}

/// Fingerprint of the message vocabulary: the encoding of a message is its place in it.
pub(super) fn vocabulary() -> u32 {
    let mut crc = Crc::new();
    for (name, _) in KINDS {
        crc.update(name.as_bytes());
        crc.update(&[0]);
    }
    crc.sum()
}

/// Digests effects, in a buffer that it reuses.
#[derive(Debug, Default)]
pub struct Digester(Vec<u8>);

impl Digester {
    /// The digest of the effects of a step.
    #[must_use]
    pub fn digest(&mut self, effects: &[Effect]) -> Digest {
        self.0.clear();
        for effect in effects {
            // Effects are plain numbers: they always have an encoding.
            let _ = put(effect, &mut self.0);
        }
        let mut crc = Crc::new();
        crc.update(&self.0);
        Digest { count: effects.len() as u32, crc: crc.sum().to_le_bytes() }
    }
}
