//! What copies do: three reference kernels, each in rounds so small that a thread can stop after any number of them.

use std::hint::black_box;

/// What a copy does with its core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kernel {
    /// Integer hashing in registers, as the Murmuration prototype's copies hash zeros: only the CPU's time counts.
    Hash,
    /// Reads and writes 64 MiB from end to end, again and again: memory bandwidth counts, and whoever else uses it.
    Memory,
    /// Reads and writes 1 MiB at random, each place found by what the last one held: caches count, and whoever
    /// shares them.
    Cache,
}

impl Kernel {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Hash, Self::Memory, Self::Cache];

    /// Its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::Memory => "memory",
            Self::Cache => "cache",
        }
    }
}

/// 64-bit words in a cache line, which is a round of the memory kernel.
const LINE: usize = 8;
/// Words of the memory kernel: beyond any core's share of the last cache.
const STREAM: usize = (64 << 20) / size_of::<u64>();
/// Words of the cache kernel: a core's own caches hold them, if nobody else fills those.
const POOL: usize = (1 << 20) / size_of::<u64>();

/// A kernel and the memory it works on. The thread that burns makes it, so that the memory is near its CPU.
pub(super) enum Load {
    /// Four hashes at a time, which keep the multiplier busy.
    Hash([u64; 4]),
    /// The stream and where in it the next line begins.
    Memory(Vec<u64>, usize),
    /// The pool and the last hash.
    Cache(Vec<u64>, u64),
}

impl Load {
    pub(super) fn new(kernel: Kernel) -> Self {
        // Not zeros: those are pages that the system has yet to find.
        let words = |count| (0..count as u64).map(mix).collect::<Vec<_>>();
        match kernel {
            Kernel::Hash => Self::Hash([1, 2, 3, 4]),
            Kernel::Memory => Self::Memory(words(STREAM), 0),
            Kernel::Cache => Self::Cache(words(POOL), 1),
        }
    }

    /// Does so many rounds. Compiled once: what is calibrated must be what is run, to the alignment of its loops.
    #[inline(never)]
    pub(super) fn burn(&mut self, rounds: u64) {
        match self {
            Self::Hash(lanes) => {
                let mut hashes = *lanes;
                for _ in 0..rounds {
                    hashes = hashes.map(mix);
                }
                *lanes = black_box(hashes);
            }
            Self::Memory(words, next) => {
                for _ in 0..rounds {
                    words[*next..*next + LINE].iter_mut().for_each(|word| *word = word.wrapping_add(1));
                    *next = (*next + LINE) % STREAM;
                }
                black_box(words);
            }
            Self::Cache(words, hash) => {
                for _ in 0..rounds {
                    let word = &mut words[(*hash % POOL as u64) as usize];
                    *hash = mix(*hash ^ *word);
                    *word = *hash;
                }
                black_box(words);
            }
        }
    }
}

/// The finaliser of MurmurHash3, on a number that is never fixed.
const fn mix(hash: u64) -> u64 {
    let hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(load: &Load) -> (u64, usize) {
        let fold = |words: &[u64]| words.iter().fold(0, |sum, &word| mix(sum ^ word));
        match load {
            Load::Hash(lanes) => (fold(lanes), 0),
            Load::Memory(words, next) => (fold(words), *next),
            Load::Cache(words, hash) => (fold(words) ^ hash, 0),
        }
    }

    /// Work is work however it is cut, and no round is skipped.
    #[test]
    fn rounds_add_up() {
        for kernel in Kernel::ALL {
            let (mut whole, mut cut) = (Load::new(kernel), Load::new(kernel));
            let fresh = state(&whole);
            whole.burn(100_000);
            for part in [1, 49_999, 0, 50_000] {
                cut.burn(part);
            }
            assert!(state(&whole) == state(&cut) && state(&whole) != fresh, "{kernel:?}");
            cut.burn(1);
            assert!(state(&whole) != state(&cut), "{kernel:?}");
        }
    }

    /// The memory kernel comes round.
    #[test]
    fn the_stream_has_no_end() {
        let mut load = Load::new(Kernel::Memory);
        load.burn((STREAM / LINE) as u64 + 3);
        assert_eq!(state(&load).1, 3 * LINE);
    }
}
