//! Sums of independent uncertain amounts on a fixed grid (thesis, equation 5.2).

use crate::predict::Distribution;

/// Steps of a grid from zero to the capacity of a node.
const STEPS: usize = 256;

/// The last entry: all probability beyond the grid.
const BEYOND: usize = STEPS + 1;

/// Probabilities below this are rounding errors.
const NONE: f64 = 1e-9;

/// A distance from a grid point, in steps, that is a rounding error.
const ROUNDING: f64 = 1e-6;

/// The distribution of a sum of independent amounts, none of them negative. The least value is kept exactly, so that a
/// sum of points is one, and what is above it on a grid. An amount between two grid points counts in part for each, by
/// which the mean is exact. What is more than the grid above the least value counts as above any limit.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct UsageSum {
    step: f64,
    least: f64,
    mean: f64,
    /// Probability by steps above the least value; the last entry is not zero.
    masses: Vec<f64>,
    /// Probability of as many steps or more.
    tails: Vec<f64>,
}

/// Buffers of a convolution.
#[derive(Clone, Debug, Default)]
pub(super) struct Convolution {
    steps: Vec<(usize, f64)>,
    masses: Vec<f64>,
}

impl UsageSum {
    /// The sum of nothing, on a grid up to `capacity`; an infinite one is never reached.
    pub(super) fn new(capacity: f64) -> Self {
        let step = if capacity.is_finite() && capacity > 0.0 { capacity / STEPS as f64 } else { 1.0 };
        Self { step, least: 0.0, mean: 0.0, masses: vec![1.0], tails: vec![1.0] }
    }

    /// Makes it the sum of `copies` times each of some amounts, which are independent of each other.
    pub(super) fn set<'a>(
        &mut self,
        amounts: impl Iterator<Item = (&'a Distribution, u32)>,
        buffers: &mut Convolution,
    ) {
        (self.least, self.mean) = (0.0, 0.0);
        self.masses.clear();
        self.masses.push(1.0);
        for (amount, copies) in amounts {
            self.add(amount, f64::from(copies), buffers);
        }
        self.tails.clear();
        self.tails.extend(self.masses.iter().rev().scan(0.0, |sum, mass| {
            *sum += mass;
            Some(*sum)
        }));
        self.tails.reverse();
    }

    /// Adds an independent amount, times `copies`.
    fn add(&mut self, amount: &Distribution, copies: f64, buffers: &mut Convolution) {
        let pieces = amount.pieces();
        let least = pieces.first().map_or(0.0, |piece| piece.middle());
        self.least += least * copies;
        self.mean += amount.mean() * copies;
        if pieces.len() == 1 {
            return;
        }
        buffers.steps.clear();
        for piece in pieces {
            let above = (piece.middle() - least) * copies / self.step;
            let step = (above as usize).min(BEYOND);
            let upper = if step < BEYOND { above - step as f64 } else { 0.0 };
            buffers.count(step, piece.mass * (1.0 - upper));
            buffers.count(step + 1, piece.mass * upper);
        }
        buffers.convolve(&mut self.masses);
    }

    /// The expected value.
    pub(super) const fn mean(&self) -> f64 {
        self.mean
    }

    /// The probability that the sum is above `limit`.
    pub(super) fn above(&self, limit: f64) -> f64 {
        let steps = ((limit - self.least) / self.step + ROUNDING).floor();
        if steps < 0.0 {
            return 1.0;
        }
        let above = self.tails.get((steps as usize).saturating_add(1)).copied().unwrap_or(0.0);
        if above < NONE { 0.0 } else { above }
    }

    /// The probability that the sum and `copies` times an amount that is independent of it are together above
    /// `capacity` (thesis, equation 5.1); `None` if it is not below `limit`, where a limit of zero takes no risk.
    pub(super) fn over(
        &self,
        (amount, copies): (&Distribution, u32),
        capacity: f64,
        limit: f64,
    ) -> Option<f64> {
        let mut risk = 0.0;
        // Large amounts decide first.
        for piece in amount.pieces().iter().rev() {
            let above = self.above(capacity - f64::from(copies) * piece.middle());
            if above == 0.0 {
                break;
            }
            risk += piece.mass * above;
            if risk >= limit.max(NONE) {
                return None;
            }
        }
        Some(if risk < NONE { 0.0 } else { risk })
    }
}

impl Convolution {
    /// Counts probability for a step, which is one of the last two or above them.
    fn count(&mut self, step: usize, mass: f64) {
        let step = step.min(BEYOND);
        match self.steps.iter_mut().rev().take(2).find(|(known, _)| *known == step) {
            Some((_, sum)) => *sum += mass,
            None if mass > 0.0 => self.steps.push((step, mass)),
            None => {}
        }
    }

    /// Replaces `masses` by those of the sum with what was counted.
    fn convolve(&mut self, masses: &mut Vec<f64>) {
        let most = self.steps.last().map_or(0, |(step, _)| *step);
        let len = (masses.len() + most).min(BEYOND + 1);
        self.masses.clear();
        self.masses.resize(len, 0.0);
        for &(step, weight) in &self.steps {
            let fit = (len - step).min(masses.len());
            let (within, beyond) = masses.split_at(fit);
            for (sum, mass) in self.masses[step..].iter_mut().zip(within) {
                *sum += mass * weight;
            }
            if !beyond.is_empty() {
                self.masses[len - 1] += beyond.iter().sum::<f64>() * weight;
            }
        }
        std::mem::swap(masses, &mut self.masses);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Address, Draw, Purpose};
    use crate::predict::Histogram;
    use rand::RngExt as _;

    fn of(points: &[(f64, f64)]) -> Distribution {
        let mut histogram = Histogram::default();
        points.iter().for_each(|(value, weight)| histogram.add_weighted(*value, *weight));
        Distribution::of(&histogram).expect("points")
    }

    fn sum(capacity: f64, amounts: &[(&Distribution, u32)]) -> UsageSum {
        let mut sum = UsageSum::new(capacity);
        sum.set(amounts.iter().copied(), &mut Convolution::default());
        sum
    }

    /// Every combination of the values of some amounts, with its probability.
    fn enumerated(amounts: &[(&Distribution, u32)]) -> Vec<(f64, f64)> {
        amounts.iter().fold(vec![(0.0, 1.0)], |sums, (amount, copies)| {
            let pieces = amount.pieces();
            let with = |(sum, mass): &(f64, f64)| {
                pieces
                    .iter()
                    .map(|piece| (sum + f64::from(*copies) * piece.low, mass * piece.mass))
                    .collect::<Vec<_>>()
            };
            sums.iter().flat_map(with).collect()
        })
    }

    fn enumerated_above(combinations: &[(f64, f64)], limit: f64) -> f64 {
        combinations.iter().filter(|(sum, _)| *sum > limit + 1e-9).map(|(_, mass)| mass).sum()
    }

    /// Capacity 8; two tasks that use 1 or 3, and 2 or 5.
    #[test]
    fn sums_of_two() {
        let (a, b) = (of(&[(1.0, 0.5), (3.0, 0.5)]), of(&[(2.0, 0.75), (5.0, 0.25)]));
        let both = sum(8.0, &[(&a, 1), (&b, 1)]);
        assert!((both.mean() - 4.75).abs() < 1e-12);
        let above = [2.9, 3.0, 4.9, 5.0, 6.0, 7.9, 8.0].map(|limit| both.above(limit));
        assert_eq!(above, [1.0, 0.625, 0.625, 0.25, 0.125, 0.125, 0.0]);
        assert_eq!(both.over((&a, 1), 8.0, 1.0), Some(0.5 * 0.25 + 0.5 * 0.125));
        assert_eq!(both.over((&a, 1), 8.0, 0.18), None, "that risk is too high");
        assert_eq!(both.over((&a, 1), 11.0, 0.0), Some(0.0), "all of it fits");
        assert_eq!(both.over((&a, 2), 11.0, 1.0), Some(0.5 * 0.25), "two of a job use alike");
        assert_eq!(both.over((&a, 1), 10.9, 0.0), None);
    }

    /// Values between grid points, as of points, add up exactly.
    #[test]
    fn points_are_exact() {
        let (third, tenth) = (Distribution::point(1.0 / 3.0), Distribution::point(0.1));
        let full = sum(1.0, &[(&third, 2), (&tenth, 3)]);
        assert_eq!(full.above(1.0), 0.0);
        assert_eq!(full.over((&Distribution::point(1.0 / 30.0), 1), 1.0, 0.0), Some(0.0));
        assert_eq!(full.over((&Distribution::point(0.04), 1), 1.0, 1.0), None);
        let none = sum(1.0, &[]);
        assert_eq!(
            none.over((&Distribution::point(1.0), 1), 1.0, 0.0),
            Some(0.0),
            "all of a node is no more"
        );
        assert_eq!(sum(f64::INFINITY, &[(&third, 9)]).above(f64::INFINITY), 0.0);
    }

    fn draw_amount(draw: &mut Draw, step: f64) -> Distribution {
        let points = draw.random_range(1..6);
        let point = |draw: &mut Draw| {
            let value = f64::from(draw.random_range(0..60_u32)) * step;
            (value, f64::from(draw.random_range(1..10_u32)))
        };
        of(&(0..points).map(|_| point(draw)).collect::<Vec<_>>())
    }

    /// Amounts on grid points: equal to the enumeration of all combinations, up to the capacity.
    #[test]
    fn sums_are_those_of_an_enumeration() {
        for seed in 0..300 {
            let mut draw = Address::new(seed, Purpose::Tool).draw();
            let amounts: Vec<_> = (0..draw.random_range(0..6)).map(|_| draw_amount(&mut draw, 0.5)).collect();
            let amounts: Vec<_> =
                amounts.iter().map(|amount| (amount, draw.random_range(1..4_u32))).collect();
            let capacity = 128.0;
            let found = sum(capacity, &amounts);
            let combinations = enumerated(&amounts);
            for limit in (0..=256).map(|half| f64::from(half) / 2.0) {
                let expected = enumerated_above(&combinations, limit);
                let above = found.above(limit);
                assert!((above - expected).abs() < 2e-9, "seed {seed}: {above} and {expected} above {limit}");
            }
            let mean: f64 = combinations.iter().map(|(sum, mass)| sum * mass).sum();
            assert!((found.mean() - mean).abs() < 1e-9);
        }
    }

    /// Amounts anywhere: between the enumerations with limits as far away as the grid is coarse, once for each amount.
    #[test]
    fn sums_off_the_grid_are_close() {
        for seed in 0..300 {
            let mut draw = Address::new(seed, Purpose::Tool).at(1).draw();
            let amounts: Vec<_> =
                (0..draw.random_range(1..6)).map(|_| draw_amount(&mut draw, 0.377)).collect();
            let amounts: Vec<_> = amounts.iter().map(|amount| (amount, 1)).collect();
            let found = sum(128.0, &amounts);
            let combinations = enumerated(&amounts);
            let coarse = 0.5 * (amounts.len() + 1) as f64;
            for limit in (0..128).map(f64::from) {
                let above = found.above(limit);
                let [most, least] =
                    [limit - coarse, limit + coarse].map(|l| enumerated_above(&combinations, l));
                assert!((least - 2e-9..=most + 2e-9).contains(&above), "seed {seed}: {least} {above} {most}");
            }
        }
    }

    #[test]
    fn mass_beyond_the_grid_stays_in_the_last_bin() {
        let wide = of(&[(0.0, 0.5), (1000.0, 0.5)]);
        let found = sum(8.0, &[(&wide, 1), (&wide, 1)]);
        assert_eq!((found.masses.len(), found.above(8.0)), (BEYOND + 1, 0.75));
    }
}
