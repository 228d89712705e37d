//! The codec: the only file that knows bincode.
//!
//! A frame is a length of four bytes, little-endian, and as many bytes of a value. Lengths and collections are
//! limited before anything is allocated, so bytes from anywhere can be decoded: the worst they cause is an
//! error.

use bincode::config::{self, Configuration, LittleEndian, Varint};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Version of everything that is said between hosts; two that differ do not talk.
pub const PROTOCOL: u32 = 1;

/// Bytes of the length before a value.
pub const PREFIX: usize = 4;

/// Bytes of a small value.
const SMALL: usize = 1 << 16;
/// Most bytes that a larger value may claim: an experiment with all its files.
const LARGE: usize = 1 << 31;

/// Why bytes are no value.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// A value cannot be written.
    #[error("cannot encode: {0}")]
    Encode(#[from] bincode::error::EncodeError),
    /// The bytes are not of such a value.
    #[error("garbage: {0}")]
    Garbage(#[from] bincode::error::DecodeError),
    /// There is more than the value.
    #[error("garbage: {0} bytes behind the value")]
    Trailing(usize),
    /// A frame is longer than allowed.
    #[error("a frame of {length} bytes, where {limit} are allowed")]
    Oversize {
        /// Its length.
        length: usize,
        /// The most that is allowed.
        limit: usize,
    },
}

const fn plain() -> Configuration<LittleEndian, Varint> {
    config::standard()
}

/// Adds a frame with `value` to `out`.
///
/// # Errors
/// [`WireError::Oversize`] beyond `limit` bytes.
pub fn frame(value: &impl Serialize, limit: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX]);
    let length = append(value, out)?;
    if length > limit {
        out.truncate(start);
        return Err(WireError::Oversize { length, limit });
    }
    out[start..start + PREFIX].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(())
}

/// The length that a prefix announces.
///
/// # Errors
/// [`WireError::Oversize`] beyond `limit` bytes.
pub fn length(prefix: [u8; PREFIX], limit: usize) -> Result<usize, WireError> {
    let length = u32::from_le_bytes(prefix) as usize;
    if length > limit { Err(WireError::Oversize { length, limit }) } else { Ok(length) }
}

/// Adds the bytes of `value` to `out`; returns how many.
///
/// # Errors
/// When the value cannot be written.
pub fn append(value: &impl Serialize, out: &mut Vec<u8>) -> Result<usize, WireError> {
    Ok(bincode::serde::encode_into_std_write(value, out, plain())?)
}

/// Reads a value that takes all of `bytes`.
///
/// # Errors
/// [`WireError::Garbage`] and [`WireError::Trailing`].
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    let (value, used) = take(bytes)?;
    if used < bytes.len() { Err(WireError::Trailing(bytes.len() - used)) } else { Ok(value) }
}

/// Reads a value at the beginning of `bytes`; returns how many bytes it took.
///
/// # Errors
/// [`WireError::Garbage`].
pub fn take<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), WireError> {
    // A text that claims to be longer than all of memory must fail before it gets it. No number is encoded in
    // less than a sixteenth of its size. The limit is part of the configuration's type, so there are two.
    let taken = if bytes.len() <= SMALL {
        bincode::serde::decode_from_slice(bytes, plain().with_limit::<{ 16 * SMALL }>())
    } else {
        bincode::serde::decode_from_slice(bytes, plain().with_limit::<LARGE>())
    };
    Ok(taken?)
}
