//! The only source of randomness.
//!
//! Randomness of the *world* is addressed: a [`Draw`] is a short stream that depends only on the seed, a [`Purpose`]
//! and ids, not on earlier draws. Policies compared in one experiment therefore meet the same world, whatever they do,
//! and an additional draw does not change other draws. Decisions of an *actor* draw from its own [`Rng`], seeded by
//! (seed, actor).
//!
//! Both are SplitMix64 from `rand_xoshiro`, whose output is fixed by its definition. Its state is eight bytes, so a
//! million actors cost eight megabytes.

use rand::SeedableRng;
use rand::rand_core::{Infallible, TryRng};
use rand_xoshiro::SplitMix64;

/// The purpose of a world draw; each purpose has its own family of draws. The numbers are part of every seed's meaning:
/// append, never renumber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Purpose {
    /// The gap before a job's arrival.
    Arrival = 1,
    /// The shape of a job: tasks, class, deadline.
    Shape = 2,
    /// The work of a job, task or copy.
    Work = 3,
    /// The error of an estimate.
    Estimate = 4,
    /// The client at which a job arrives.
    Home = 5,
    /// Delay of the n-th message of a link.
    Delay = 6,
    /// Loss of the n-th message of a link.
    Loss = 7,
    /// Duplication of the n-th message of a link.
    Duplicate = 8,
    /// Reordering of the n-th message of a link.
    Reorder = 9,
    /// Interference in slot or burst `k` of core `i`.
    Interference = 10,
    /// An actor's own stream.
    Actor = 11,
    /// Draws of tests and tools.
    Tool = 12,
    /// Static properties of the cluster, such as node speeds.
    Cluster = 13,
    /// Samples for results.
    Sample = 14,
    /// The use of shared nodes by tasks, and their requests.
    Usage = 15,
    /// The time that an actor takes for its n-th message.
    Handling = 16,
    /// The graph of the members of a gossip group.
    Topology = 17,
    /// The gap before an update of a gossip group.
    Update = 18,
}

/// Folds a seed, a purpose and ids into the state of a [`Draw`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address(u64);

/// Finaliser of SplitMix64: a bijection in which every input bit affects every output bit.
#[inline]
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Address {
    /// The family of draws of `purpose` under `seed`.
    #[inline]
    pub const fn new(seed: u64, purpose: Purpose) -> Self {
        Self(mix(seed ^ mix(purpose as u64)))
    }

    /// Narrows the address by one id; the order of ids matters.
    #[inline]
    pub const fn at(self, id: u64) -> Self {
        Self(mix(self.0.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ mix(id.wrapping_add(0xd1b5_4a32_d192_ed03))))
    }

    /// The stream at this address.
    #[inline]
    pub fn draw(self) -> Draw {
        Draw(SplitMix64::seed_from_u64(self.0))
    }

    /// A uniform number in [0, 1) at this address: one draw without a stream.
    #[inline]
    pub const fn unit(self) -> f64 {
        (mix(self.0.wrapping_add(0x9e37_79b9_7f4a_7c15)) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// The address as a seed for another generator.
    pub const fn seed(self) -> u64 {
        self.0
    }
}

/// A short stream at an [`Address`]; lives for one draw of the world.
#[derive(Clone, Debug)]
pub struct Draw(SplitMix64);

/// An actor's own stream, seeded by (seed, actor).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream of actor number `actor` under `seed`; `epoch` counts its restarts.
    pub fn new(seed: u64, actor: u32, epoch: u32) -> Self {
        let address = Address::new(seed, Purpose::Actor).at(u64::from(actor)).at(u64::from(epoch));
        Self(address.0)
    }

    /// The state of the stream: a SplitMix64 with this seed continues it.
    pub const fn state(&self) -> u64 {
        self.0
    }

    /// A short stream for one draw from a distribution.
    pub fn draw(&mut self) -> Draw {
        Address(self.next()).draw()
    }

    /// A uniform integer below `bound`, which must be positive; without bias (Lemire's method).
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        debug_assert!(bound > 0, "an empty range has no element");
        let bound = u64::from(bound);
        loop {
            let wide = (self.next() >> 32) * bound;
            let low = wide & 0xffff_ffff;
            if low >= bound || low >= (1u64 << 32) % bound {
                return (wide >> 32) as u32;
            }
        }
    }

    /// A uniform number in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Up to `count` different numbers below `end` that are not in the sorted list `left_out`; each set is equally
    /// likely (Floyd's algorithm).
    pub fn different(&mut self, count: u32, end: u32, left_out: &[u32]) -> Vec<u32> {
        let there = end - left_out.len() as u32;
        let nth = |i: u32| left_out.iter().fold(i, |i, &out| i + u32::from(i >= out));
        if count >= there {
            return (0..there).map(nth).collect();
        }
        let mut drawn: Vec<u32> = Vec::with_capacity(count as usize);
        for most in there - count..there {
            let i = self.below(most + 1);
            drawn.push(if drawn.contains(&i) { most } else { i });
        }
        drawn.into_iter().map(nth).collect()
    }

    /// The next number of SplitMix64.
    #[inline]
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

/// A draw is an ordinary generator, usable with every distribution of `rand_distr`.
impl TryRng for Draw {
    type Error = Infallible;
    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32()
    }
    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64()
    }
    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
        self.0.try_fill_bytes(dst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_stable_and_distinct() {
        let a = Address::new(1, Purpose::Work).at(2).at(3);
        assert_eq!(a, Address::new(1, Purpose::Work).at(2).at(3));
        assert_ne!(a, Address::new(1, Purpose::Work).at(3).at(2));
        assert_ne!(a, Address::new(1, Purpose::Delay).at(2).at(3));
        assert_ne!(a, Address::new(2, Purpose::Work).at(2).at(3));
        // Golden value: a change here changes every seeded result ever published.
        assert_eq!(Address::new(12345, Purpose::Work).at(1).at(2).seed(), GOLDEN);
    }

    #[test]
    fn an_actor_draws_the_numbers_of_split_mix() {
        use rand::Rng as _;
        let mut ours = Rng::new(7, 8, 9);
        let mut theirs = SplitMix64::seed_from_u64(ours.state());
        assert!((0..1000).all(|_| ours.next() == theirs.next_u64()));
    }

    const GOLDEN: u64 = 263_538_120_280_109_605;

    #[test]
    fn unit_draws_are_uniform_over_consecutive_ids() {
        let base = Address::new(7, Purpose::Interference).at(5);
        let n = 100_000u32;
        let mut buckets = [0u32; 10];
        for k in 0..n {
            buckets[(base.at(u64::from(k)).unit() * 10.0) as usize] += 1;
        }
        let expected = f64::from(n) / 10.0;
        let chi2: f64 = buckets.iter().map(|&b| (f64::from(b) - expected).powi(2) / expected).sum();
        assert!(chi2 < 27.9, "chi2 {chi2} with 9 degrees of freedom exceeds its 0.1 % point");
    }

    #[test]
    fn bounded_draws_cover_their_range_evenly() {
        let mut rng = Rng::new(3, 9, 0);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[rng.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (9_600..10_400).contains(&n)), "{seen:?}");
    }

    #[test]
    fn different_numbers_are_uniform_among_those_not_left_out() {
        let mut rng = Rng::new(3, 9, 0);
        let mut seen = [0u32; 8];
        for _ in 0..50_000 {
            let drawn = rng.different(2, 8, &[0, 3, 4]);
            assert!(drawn.len() == 2 && drawn[0] != drawn[1]);
            drawn.iter().for_each(|&i| seen[i as usize] += 1);
        }
        assert!((0..8).all(|i| [0, 3, 4].contains(&i) || (19_600..20_400).contains(&seen[i])), "{seen:?}");
        assert_eq!((seen[0], seen[3], seen[4]), (0, 0, 0));
        assert_eq!(rng.different(9, 5, &[1, 2]), [0, 3, 4]);
        assert!(rng.different(9, 2, &[0, 1]).is_empty());
    }
}
