//! Frames with checksums: the pieces of a file that is only appended to, and valid up to its last whole frame.
//!
//! ```text
//! magic 8 bytes, format u32, vocabulary u32
//! frame*     length u32, crc32 u32, section u32, payload        the checksum covers section and payload
//! ```
//!
//! Integers are little endian. The vocabulary is a fingerprint of the form of payloads. Each file defines the
//! meaning of its sections.

use std::io::{self, Read, Write};

use flate2::Crc;

/// Bytes of the prefix of a file.
pub(super) const PREFIX: u64 = 16;
/// Bytes of a frame before its payload.
pub(super) const HEADER: u64 = 12;
/// Position of the section in a frame.
pub(super) const SECTION: u64 = 8;

/// The result of reading the next frame of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NextFrame {
    /// A whole frame with this section.
    Whole(u32),
    /// The file ends within a frame.
    Cut,
    /// The checksum does not match.
    Damaged,
}

/// The prefix: magic, format, vocabulary.
pub(super) fn prefix(magic: [u8; 8], format: u32, vocabulary: u32) -> Vec<u8> {
    [&magic[..], &format.to_le_bytes(), &vocabulary.to_le_bytes()].concat()
}

/// Reads the prefix of a file of `size` bytes: format and vocabulary, or `None` if the file does not begin with
/// `magic`.
pub(super) fn read_prefix(file: &mut impl Read, size: u64, magic: [u8; 8]) -> io::Result<Option<(u32, u32)>> {
    let mut found = [0; 8];
    if size < PREFIX {
        return Ok(None);
    }
    file.read_exact(&mut found)?;
    let [format, vocabulary] = words(file)?;
    Ok((found == magic).then_some((format, vocabulary)))
}

/// Appends one frame.
///
/// # Errors
/// When the frame cannot be written, or is longer than 4 GiB.
pub fn frame(section: u32, payload: &[u8], out: &mut impl Write) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&checksum(section, payload).to_le_bytes())?;
    out.write_all(&section.to_le_bytes())?;
    out.write_all(payload)
}

/// Reads the next frame, and its payload, from a file of which `left` bytes remain.
pub(super) fn next_frame(file: &mut impl Read, left: u64, payload: &mut Vec<u8>) -> io::Result<NextFrame> {
    payload.clear();
    if left < HEADER {
        return Ok(NextFrame::Cut);
    }
    let [length, crc, section] = words(file)?;
    if left - HEADER < u64::from(length) {
        return Ok(NextFrame::Cut);
    }
    file.take(u64::from(length)).read_to_end(payload)?;
    let is_whole = checksum(section, payload) == crc;
    Ok(if is_whole { NextFrame::Whole(section) } else { NextFrame::Damaged })
}

/// CRC-32 of a frame.
fn checksum(section: u32, payload: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(&section.to_le_bytes());
    crc.update(payload);
    crc.sum()
}

fn words<const N: usize>(file: &mut impl Read) -> io::Result<[u32; N]> {
    let mut words = [0; N];
    for word in &mut words {
        let mut bytes = [0; 4];
        file.read_exact(&mut bytes)?;
        *word = u32::from_le_bytes(bytes);
    }
    Ok(words)
}

/// Fingerprint of a list of names, in their order.
pub(super) fn vocabulary(names: impl Iterator<Item = impl AsRef<str>>) -> u32 {
    let mut crc = Crc::new();
    for name in names {
        crc.update(name.as_ref().as_bytes());
        crc.update(&[0]);
    }
    crc.sum()
}
