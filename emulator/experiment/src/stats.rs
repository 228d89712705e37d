//! Statistics over replications: means over seeds and paired differences, with 95 % intervals by Student's t.
//!
//! Policies of one experiment run in the same world under the same seed (common random numbers), so the difference of
//! two policies varies much less than either. Intervals are therefore taken over the differences per seed.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean with the half-width of its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// Mean over replications.
    pub mean: f64,
    /// Half-width; `None` with fewer than two replications.
    pub half_width: Option<f64>,
    /// Number of replications.
    pub replications: usize,
}

/// Differences below this share of the values are due to rounding.
const NOISE: f64 = 1e-12;

impl Interval {
    /// The interval of independent values, one per replication. Values that are not finite are left out; `None` if no
    /// value remains.
    pub fn new(values: &[f64]) -> Option<Self> {
        let size =
            values.iter().filter(|value| value.is_finite()).fold(0.0, |most: f64, x| most.max(x.abs()));
        Self::beyond(values, NOISE * size)
    }

    /// The interval of independent values. A half-width of at most `noise` becomes zero, and then a mean of at most
    /// `noise` becomes zero too.
    fn beyond(values: &[f64], noise: f64) -> Option<Self> {
        let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let half_width = (count >= 2).then(|| {
            let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let deviation = (square / (count - 1) as f64).sqrt();
            t_975(count - 1) * deviation / (count as f64).sqrt()
        });
        let half_width = half_width.map(|half| if half <= noise { 0.0 } else { half });
        let mean = if half_width == Some(0.0) && mean.abs() <= noise { 0.0 } else { mean };
        Some(Self { mean, half_width, replications: count })
    }

    /// The interval of the differences `a - b`, one pair per seed.
    pub fn paired(pairs: &[(f64, f64)]) -> Option<Self> {
        let finite = pairs.iter().flat_map(|(a, b)| [a, b]).filter(|value| value.is_finite());
        let size = finite.fold(0.0, |most: f64, value| most.max(value.abs()));
        Self::beyond(&pairs.iter().map(|(a, b)| a - b).collect::<Vec<_>>(), NOISE * size)
    }

    /// Whether the interval excludes zero.
    pub fn excludes_zero(&self) -> bool {
        self.half_width.is_some_and(|half| self.mean.abs() > half)
    }
}

/// The 97.5 % quantile of Student's t, the factor on a standard error for a 95 % interval.
///
/// Infinite for zero degrees of freedom.
pub fn t_975(freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
}

/// Whether replications suffice: the paired 95 % half-width is at most `precision` times the mean of `b`.
///
/// `pairs` holds one (value, reference) per seed: the metric of a policy and that of the policy it is compared with.
/// At least three seeds are required, since two can agree by chance. A reference of zero is never precise enough,
/// because the target is relative to it.
pub fn enough(pairs: &[(f64, f64)], precision: f64) -> bool {
    let reference: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
    let (Some(difference), Some(reference)) = (Interval::paired(pairs), Interval::new(&reference)) else {
        return false;
    };
    difference.replications >= 3
        && difference
            .half_width
            .is_some_and(|half| half <= precision * reference.mean.abs() && reference.mean != 0.0)
}

/// Half-width of the 95 % band around an empirical distribution function of `count` independent values.
///
/// Dvoretzky, Kiefer and Wolfowitz with Massart's constant (Annals of Probability 18(3), 1990): the band covers the
/// whole function simultaneously.
pub fn dkw(count: u64) -> f64 {
    if count == 0 { 1.0 } else { ((2.0_f64 / 0.05).ln() / (2.0 * count as f64)).sqrt().min(1.0) }
}

/// 95 % interval of a share seen in `count` independent trials (Wilson, JASA 22, 1927).
pub fn wilson(share: f64, count: u64) -> (f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    if count == 0 {
        return (0.0, 1.0);
    }
    let n = count as f64;
    let centre = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are from printed tables, two-sided 95 %.
    #[test]
    fn quantiles_of_students_t_agree_with_printed_tables() {
        for (freedom, expected) in
            [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (29, 2.045), (120, 1.980), (10_000, 1.960)]
        {
            let t = t_975(freedom);
            assert!((t - expected).abs() < 6e-4, "{freedom}: {t}, not {expected}");
        }
        assert!(t_975(0).is_infinite());
    }

    #[test]
    fn an_interval_equals_a_calculation_by_hand() {
        // 1 … 5: mean 3, standard deviation sqrt(2.5), half-width 2.7764 × 0.70711.
        let interval = Interval::new(&[1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]).unwrap();
        assert_eq!((interval.mean, interval.replications), (3.0, 5));
        assert!((interval.half_width.unwrap() - 1.963_243).abs() < 1e-5);
        assert!(interval.excludes_zero());
        assert_eq!(Interval::new(&[7.0]).unwrap().half_width, None);
        assert!(Interval::new(&[f64::NAN]).is_none());
    }

    #[test]
    fn rounding_errors_give_a_half_width_of_zero() {
        let interval = Interval::new(&[0.1 + 0.2, 0.3, 0.3]).unwrap();
        assert!((0.3 - interval.mean).abs() < 1e-15 && interval.half_width == Some(0.0));
        let paired = Interval::paired(&[(0.1 + 0.2, 0.3), (0.1 + 0.2, 0.3)]).unwrap();
        assert_eq!((paired.mean, paired.half_width, paired.excludes_zero()), (0.0, Some(0.0), false));
        let constant = Interval::paired(&[(2.0, 1.0), (2.0, 1.0)]).unwrap();
        assert!(constant.excludes_zero(), "a difference that all seeds have");
        assert!(Interval::new(&[1.0, 1.0 + 1e-9]).unwrap().half_width.unwrap() > 0.0);
    }

    /// The seeds differ by far more than the policies do; only the paired interval detects the difference.
    #[test]
    fn pairing_removes_the_variation_between_seeds() {
        let pairs: Vec<(f64, f64)> =
            [1.0, 30.0, 4.0, 12.0].iter().zip([0.1, 0.12, 0.08, 0.1]).map(|(&b, d)| (b + d, b)).collect();
        let paired = Interval::paired(&pairs).unwrap();
        assert!(paired.excludes_zero() && (paired.mean - 0.1).abs() < 1e-9);
        let alone = Interval::new(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>()).unwrap();
        assert!(alone.half_width.unwrap() > 10.0);
    }

    #[test]
    fn replications_stop_at_the_requested_precision() {
        let tight = [(1.10, 1.0), (1.11, 1.0), (1.09, 1.0), (1.10, 1.0)];
        assert!(enough(&tight, 0.05));
        assert!(!enough(&tight, 0.005));
        assert!(!enough(&tight[..2], 1.0), "two seeds never suffice");
        assert!(!enough(&[(0.0, 0.0); 5], 0.1), "no interval is a share of zero");
        assert!(!enough(&[(f64::NAN, 1.0); 5], 0.1));
    }

    #[test]
    fn bands_equal_published_values() {
        assert!((dkw(100) - 0.135_81).abs() < 1e-5);
        assert_eq!(dkw(0), 1.0);
        // 10 of 100: the textbook's 0.0552 to 0.1744.
        let (low, high) = wilson(0.1, 100);
        assert!((low - 0.055_2).abs() < 1e-4 && (high - 0.174_4).abs() < 1e-4, "{low} {high}");
    }
}
