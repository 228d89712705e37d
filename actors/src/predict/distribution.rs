//! Distributions of run times and use: points and uniform intervals, with the operations that schedulers need (Park's
//! thesis, sections 4.2 and 4.3).
//!
//! Distributions come from the streaming histogram of Ben-Haim and Tom-Tov (*A Streaming Parallel Decision Tree
//! Algorithm*, JMLR 11, 2010). It holds at most [`BINS`] pairs of a centre and a weight. A new value becomes its own
//! bin. If there are then too many bins, the two nearest are merged at their weighted mean. Bins are therefore narrow
//! where values are dense, and the extremes are kept, as 3Sigma needs (Park's thesis, section 4.3.1: at most 80 bins).

/// Probability at a point, or spread evenly over an interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Piece {
    /// Lower end.
    pub low: f64,
    /// Upper end; equal to the lower end for a point.
    pub high: f64,
    /// Probability.
    pub mass: f64,
}

impl Piece {
    /// Probability of a value at or below `x`.
    fn upto(&self, x: f64) -> f64 {
        if x >= self.high {
            self.mass
        } else if x < self.low {
            0.0
        } else {
            self.mass * (x - self.low) / (self.high - self.low)
        }
    }

    /// The middle of an interval; the value of a point.
    pub fn middle(&self) -> f64 {
        f64::midpoint(self.low, self.high)
    }
}

/// A distribution of run times, or of the use of CPU or memory, in the unit of its values. The masses of its pieces
/// sum to one.
///
/// A distribution from a histogram has a point for each bin of the streaming histogram. Intervals describe analytic
/// distributions, such as those of the thesis's example (Fig. 4.5).
#[derive(Clone, PartialEq, Debug)]
pub struct Distribution {
    pieces: Vec<Piece>,
}

/// Nodes and weights of Gauss's quadrature with three points on [−1, 1], exact up to degree five.
const GAUSS: [(f64, f64); 3] =
    [(-0.774_596_669_241_483_4, 5.0 / 9.0), (0.0, 8.0 / 9.0), (0.774_596_669_241_483_4, 5.0 / 9.0)];

/// The standard normal distribution function at multiples of a half from 0 on.
const NORMAL: [f64; 7] = [
    0.5,
    0.691_462_461_274_013_1,
    0.841_344_746_068_542_9,
    0.933_192_798_731_141_9,
    0.977_249_868_051_820_8,
    0.993_790_334_674_223_8,
    0.998_650_101_968_369_9,
];

impl Distribution {
    /// All mass at `value`.
    pub fn point(value: f64) -> Self {
        Self { pieces: vec![Piece { low: value, high: value, mass: 1.0 }] }
    }

    /// Even density between `low` and `high`, which must not be below `low`.
    pub fn uniform(low: f64, high: f64) -> Self {
        Self { pieces: vec![Piece { low, high, mass: 1.0 }] }
    }

    /// A normal distribution with this mean and standard deviation, which are not negative. It has intervals of half a
    /// standard deviation up to three deviations from the mean, and nothing below `least`.
    pub fn normal(mean: f64, deviation: f64, least: f64) -> Self {
        let at = |half: i32| (mean + f64::from(half) * deviation / 2.0).max(least);
        let piece = |half: i32| {
            let inner = half.unsigned_abs().min((half + 1).unsigned_abs()) as usize;
            Piece { low: at(half), high: at(half + 1), mass: NORMAL[inner + 1] - NORMAL[inner] }
        };
        let all = || Self::point(mean.max(least));
        if deviation > 0.0 {
            Self::normalised((-6..6).map(piece).collect()).unwrap_or_else(all)
        } else {
            all()
        }
    }

    /// The bins of a histogram as points at their centres; `None` without values.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        let piece = |&Bin { centre, weight }: &Bin| Piece { low: centre, high: centre, mass: weight };
        Self::normalised(histogram.bins().iter().map(piece).collect())
    }

    /// The pieces with masses that sum to one; `None` if there is no mass.
    fn normalised(mut pieces: Vec<Piece>) -> Option<Self> {
        pieces.retain(|piece| piece.mass > 0.0);
        let total: f64 = pieces.iter().map(|piece| piece.mass).sum();
        for piece in &mut pieces {
            piece.mass /= total;
        }
        (!pieces.is_empty()).then_some(Self { pieces })
    }

    /// The pieces, in order of their lower ends.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Density at `x`. Points have no density: their masses are among the [`pieces`](Self::pieces).
    pub fn pdf(&self, x: f64) -> f64 {
        let covering = self.pieces.iter().filter(|piece| piece.low <= x && x < piece.high);
        covering.map(|piece| piece.mass / (piece.high - piece.low)).sum()
    }

    /// Probability of a value at or below `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        self.pieces.iter().map(|piece| piece.upto(x)).sum::<f64>().min(1.0)
    }

    /// The quantile of a share from 0 to 1: the smallest value whose cumulative probability reaches the share.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut left = share;
        for piece in &self.pieces {
            if left <= piece.mass {
                return piece.low + (piece.high - piece.low) * left / piece.mass;
            }
            left -= piece.mass;
        }
        self.max()
    }

    /// Expected value.
    pub fn mean(&self) -> f64 {
        self.pieces.iter().map(|piece| piece.middle() * piece.mass).sum()
    }

    /// The largest possible value.
    pub fn max(&self) -> f64 {
        self.pieces.iter().map(|piece| piece.high).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The distribution of a job that has run for `elapsed`: 1 − CDF'(t) = (1 − CDF(t)) / (1 − CDF(elapsed)) for t ≥
    /// elapsed (thesis, equation 4.2). `None` if the job has run longer than any value, so that the estimate was too
    /// low.
    pub fn given(&self, elapsed: f64) -> Option<Self> {
        let rest = |piece: &Piece| Piece {
            low: piece.low.max(elapsed),
            high: piece.high,
            mass: piece.mass - piece.upto(elapsed),
        };
        Self::normalised(self.pieces.iter().filter(|piece| piece.high > elapsed).map(rest).collect())
    }

    /// Expected value of `f`, which is smooth except at the `kinks` (in ascending order), where it may jump. The result
    /// is exact where `f` is a polynomial of degree five at most between kinks.
    pub fn expect(&self, kinks: &[f64], f: impl Fn(f64) -> f64) -> f64 {
        let over = |from: f64, to: f64| {
            let (middle, half) = (f64::midpoint(from, to), (to - from) / 2.0);
            GAUSS.iter().map(|(at, weight)| f(middle + half * at) * weight).sum::<f64>() * half
        };
        let piece = |piece: &Piece| {
            if piece.low == piece.high {
                return piece.mass * f(piece.low);
            }
            let inside = kinks.iter().copied().filter(|&kink| piece.low < kink && kink < piece.high);
            let (sum, last) =
                inside.fold((0.0, piece.low), |(sum, from), kink| (sum + over(from, kink), kink));
            piece.mass * (sum + over(last, piece.high)) / (piece.high - piece.low)
        };
        self.pieces.iter().map(piece).sum()
    }

    /// The distribution of `factor` times the value; `factor` is above zero.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let scale =
            |&Piece { low, high, mass }: &Piece| Piece { low: low * factor, high: high * factor, mass };
        Self { pieces: self.pieces.iter().map(scale).collect() }
    }

    /// The distribution of `dividend` divided by the value, where values below `least` are raised to `least`. Both
    /// arguments are above zero. Intervals stay uniform, so the result is exact only for points.
    #[must_use]
    pub fn dividing(&self, dividend: f64, least: f64) -> Self {
        let divide = |&Piece { low, high, mass }: &Piece| Piece {
            low: dividend / high.max(least),
            high: dividend / low.max(least),
            mass,
        };
        Self { pieces: self.pieces.iter().rev().map(divide).collect() }
    }

    /// The distribution of the sum of two independent values, as at most [`BINS`] points. The mean is exact.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut sums = Histogram::default();
        let others = other.points();
        for (a, p) in self.points() {
            for &(b, q) in &others {
                sums.add_weighted(a + b, p * q);
            }
        }
        Self::of(&sums).unwrap_or_else(|| self.clone())
    }

    /// About [`BINS`] points that approximate the distribution; intervals are divided evenly.
    fn points(&self) -> Vec<(f64, f64)> {
        let intervals = self.pieces.iter().filter(|piece| piece.low < piece.high).count();
        let parts = (BINS / intervals.max(1)).max(1);
        let points = |piece: &Piece| {
            let &Piece { low, high, mass } = piece;
            let parts = if low < high { parts } else { 1 };
            let at = move |k: usize| low + (high - low) * (k as f64 + 0.5) / parts as f64;
            (0..parts).map(move |k| (at(k), mass / parts as f64))
        };
        self.pieces.iter().flat_map(points).collect()
    }
}

/// Maximum number of bins.
pub const BINS: usize = 80;

/// A bin of a histogram: values near its centre, with their weight.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bin {
    /// Weighted mean of the bin's values.
    pub centre: f64,
    /// Number of the bin's values, or their weight.
    pub weight: f64,
}

/// A histogram of at most [`BINS`] bins of different widths. With up to [`BINS`] distinct values it is exact.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Histogram {
    /// The bins in order of their centres, which differ.
    bins: Vec<Bin>,
    low: f64,
    high: f64,
    /// Whether any bin contains different values.
    approximate: bool,
}

impl Histogram {
    /// Adds a value, which must be finite.
    pub fn add(&mut self, value: f64) {
        self.add_weighted(value, 1.0);
    }

    /// Adds a value with a weight above zero; both must be finite.
    pub fn add_weighted(&mut self, value: f64, weight: f64) {
        self.widen(value, value);
        self.insert(Bin { centre: value, weight });
        self.shrink();
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.bins.is_empty() {
            return;
        }
        self.widen(other.low, other.high);
        self.approximate |= other.approximate;
        for &bin in &other.bins {
            self.insert(bin);
        }
        self.shrink();
    }

    /// The bins in order of their centres.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// Weight of all values; their number if no value was weighted.
    pub fn weight(&self) -> f64 {
        self.bins.iter().map(|bin| bin.weight).sum()
    }

    /// Mean of all values; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.bins.iter().map(|bin| bin.centre * bin.weight).sum();
        (!self.bins.is_empty()).then(|| sum / self.weight())
    }

    /// The smallest and the largest value; `None` without values.
    pub fn range(&self) -> Option<(f64, f64)> {
        (!self.bins.is_empty()).then_some((self.low, self.high))
    }

    /// Share of the values at or below `x`; zero without values.
    ///
    /// The result is exact as long as each bin holds one value. For wider bins it is interpolated: half of the weight
    /// of a bin is below its centre, and the density is linear between the centres of adjacent bins (procedure *Sum* of
    /// the paper), from the smallest to the largest value.
    pub fn cdf(&self, x: f64) -> f64 {
        let Some((low, high)) = self.range() else { return 0.0 };
        if x < low {
            return 0.0;
        }
        if x >= high {
            return 1.0;
        }
        let after = self.bins.partition_point(|bin| bin.centre <= x);
        let below: f64 = self.bins[..after].iter().map(|bin| bin.weight).sum();
        if !self.approximate {
            return below / self.weight();
        }
        let edge = |centre| Bin { centre, weight: 0.0 };
        let left = after.checked_sub(1).map_or_else(|| edge(low), |at| self.bins[at]);
        let right = self.bins.get(after).copied().unwrap_or_else(|| edge(high));
        (below - left.weight / 2.0 + between(left, right, x)) / self.weight()
    }

    fn widen(&mut self, low: f64, high: f64) {
        let empty = self.bins.is_empty();
        self.low = if empty { low } else { self.low.min(low) };
        self.high = if empty { high } else { self.high.max(high) };
    }

    fn insert(&mut self, bin: Bin) {
        let at = self.bins.partition_point(|known| known.centre < bin.centre);
        match self.bins.get_mut(at) {
            Some(known) if known.centre == bin.centre => known.weight += bin.weight,
            _ => self.bins.insert(at, bin),
        }
    }

    /// Merges the nearest bins until there are at most [`BINS`]. Among equal distances the first is used.
    fn shrink(&mut self) {
        while self.bins.len() > BINS {
            let gap = |at: usize| self.bins[at + 1].centre - self.bins[at].centre;
            let mut nearest = 0;
            for at in 1..self.bins.len() - 1 {
                if gap(at) < gap(nearest) {
                    nearest = at;
                }
            }
            let right = self.bins.remove(nearest + 1);
            let left = &mut self.bins[nearest];
            let weight = left.weight + right.weight;
            // The centre is a step from the left centre, which loses less to rounding than a sum of products.
            left.centre += (right.centre - left.centre) * (right.weight / weight);
            left.weight = weight;
            self.approximate = true;
        }
    }
}

/// Weight between the centre of a bin and `x`, which is below the centre of the next bin.
fn between(left: Bin, right: Bin, x: f64) -> f64 {
    if right.centre <= left.centre {
        return 0.0;
    }
    let part = (x - left.centre) / (right.centre - left.centre);
    let at = left.weight + (right.weight - left.weight) * part;
    f64::midpoint(left.weight, at) * part
}
