//! FNV-1a fingerprints of files, message kinds and cells. They detect equal contents and are not cryptographic.

use std::fmt;

/// An FNV-1a hash of 64 bits, extended piece by piece; displayed as 16 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// Appends bytes to the hashed input.
    pub fn update(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// FNV-1a of 128 bits, folded to 64, as 16 hex digits.
pub fn folded(bytes: &[u8]) -> String {
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for &byte in bytes {
        hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    format!("{:016x}", (hash >> 64) as u64 ^ hash as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_published_values_also_when_computed_piecewise() {
        // draft-eastlake-fnv, test vectors.
        for (text, hash) in
            [("", "cbf29ce484222325"), ("a", "af63dc4c8601ec8c"), ("foobar", "85944171f73967e8")]
        {
            let mut whole = Fingerprint::default();
            whole.update(text.as_bytes());
            let mut pieces = Fingerprint::default();
            text.bytes().for_each(|byte| pieces.update(&[byte]));
            assert_eq!((whole.to_string().as_str(), pieces), (hash, whole));
        }
    }
}
