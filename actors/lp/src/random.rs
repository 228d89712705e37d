//! Pseudo-random numbers for the search: the same ones in every call.
//!
//! The crate has no dependencies and a plan is a function of its problem, so the numbers come from neither a caller nor
//! the addressed draws of `volary-actors`.

/// The generator SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct SplitMix(u64);

impl SplitMix {
    /// A generator from a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (((self.bits() >> 32) * end as u64) >> 32) as usize
    }
}
