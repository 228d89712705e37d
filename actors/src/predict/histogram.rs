//! The streaming histogram of Ben-Haim and Tom-Tov (*A Streaming Parallel Decision Tree Algorithm*, JMLR 11, 2010).
//!
//! It holds at most [`BINS`] pairs of a centre and a weight. A new value becomes a bin of its own; if there are then
//! too many, the two nearest bins become one at their weighted mean. Bins are therefore narrow where values are dense
//! and the extremes are kept, as 3Sigma needs it (Park's thesis, section 4.3.1: at most 80 bins).

/// Maximum number of bins.
pub const BINS: usize = 80;

/// A bin: values near its centre, with their weight.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bin {
    /// Weighted mean of its values.
    pub centre: f64,
    /// Number of its values, or their weight.
    pub weight: f64,
}

/// A histogram of at most [`BINS`] bins with widths of their own. Up to that number of distinct values it is exact.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Histogram {
    /// In order of their centres, which differ.
    bins: Vec<Bin>,
    low: f64,
    high: f64,
    /// Whether some bin stands for different values.
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

    /// Adds what another histogram has counted.
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

    /// Weight of all values; their number if none was weighted.
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
    /// Exact while each bin is one value. After that half of a bin's weight lies on each side of its centre and the
    /// density is linear between centres (procedure *Sum* of the paper), down to the smallest and up to the largest
    /// value.
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

    /// Unites the nearest bins until there are few enough; of equal distances the first counts.
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
            // Written as a step from the left centre, which loses less to rounding than a sum of products.
            left.centre += (right.centre - left.centre) * (right.weight / weight);
            left.weight = weight;
            self.approximate = true;
        }
    }
}

/// Weight between the centre of a bin and `x`, which lies before the centre of the next one.
fn between(left: Bin, right: Bin, x: f64) -> f64 {
    if right.centre <= left.centre {
        return 0.0;
    }
    let part = (x - left.centre) / (right.centre - left.centre);
    let at = left.weight + (right.weight - left.weight) * part;
    f64::midpoint(left.weight, at) * part
}
