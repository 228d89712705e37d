//! A test for a Poisson process: whether the gaps between arrivals can be exponential.
//!
//! The mean of the exponential distribution is that of the gaps, so that Kolmogorov's distribution would reject too
//! rarely: Lilliefors' test takes that into account (Journal of the American Statistical Association 64, 1969, pp.
//! 387-389).
//!
//! Times that are rounded, such as to whole seconds, have gaps that no continuous distribution has. Under a Poisson
//! process the times within a second are independent and uniform, given their number. So each arrival is moved to a
//! random place in its second, after which a Poisson process is one again, exactly. Arrivals within a second are then
//! not tested.

use serde::Serialize;
use volary_actors::base::{Address, Purpose, Time};

use super::quantiles::share;
use crate::workload::text::percent;

/// The result of the test.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Poisson {
    /// Largest distance between the distribution of the gaps and the exponential one with the same mean.
    pub ks: Option<f64>,
    /// Probability of a distance at least this large if the gaps were exponential, by Lilliefors' test.
    pub ks_p: Option<f64>,
    /// The unit that all times are whole numbers of, s, if arrivals were moved within it; `None` if times are exact.
    pub resolution_s: Option<f64>,
    /// The reason for which there is no result.
    pub not_tested: Option<String>,
}

/// The fewest gaps, and the fewest different times, that are tested.
const FEWEST: usize = 10;

/// Units that times may be rounded to, ns and name, the largest first.
const UNITS: [(u64, &str); 4] = [
    (60_000_000_000, "whole minutes"),
    (1_000_000_000, "whole seconds"),
    (1_000_000, "whole milliseconds"),
    (1_000, "whole microseconds"),
];

/// A share of gaps in a larger unit than the others that is no coincidence.
const MIXED: f64 = 0.1;

impl Poisson {
    /// Tests the arrivals of jobs, which are in order.
    pub(super) fn of(arrivals: &[Time]) -> Self {
        let not_tested = |why: String| Self { not_tested: Some(why), ..Self::default() };
        let gaps: Vec<u64> = arrivals.windows(2).map(|pair| pair[1].since(pair[0]).0).collect();
        let different = gaps.iter().filter(|gap| **gap > 0).count() + 1;
        if gaps.len() < FEWEST {
            return not_tested(format!("{} gaps are too few, 10 are needed", gaps.len()));
        }
        if different == 1 {
            return not_tested("all jobs arrive at one instant".to_owned());
        }
        if different < FEWEST {
            return not_tested(format!("the jobs arrive at {different} different times, 10 are needed"));
        }
        // Rounded to: what all gaps are multiples of.
        let unit = UNITS.into_iter().find(|(unit, _)| gaps.iter().all(|gap| gap % unit == 0));
        let positive = || gaps.iter().filter(|gap| **gap > 0);
        let larger =
            UNITS.into_iter().take(2).filter(|(larger, _)| unit.is_none_or(|(unit, _)| *larger > unit));
        for (larger, name) in larger {
            let of = share(positive(), |gap| *gap % larger == 0);
            if of >= MIXED {
                return not_tested(format!("{} of the gaps are {name}, the others are not", percent(of)));
            }
        }
        let moved = unit.map_or_else(|| arrivals.to_vec(), |(unit, _)| within(arrivals, unit));
        let (ks, ks_p) =
            lilliefors(moved.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64()).collect());
        let resolution_s = unit.map(|(unit, _)| unit as f64 * 1e-9);
        Self { ks: Some(ks), ks_p: Some(ks_p), resolution_s, not_tested: None }
    }

    /// The name of the unit that arrivals were moved within.
    pub(super) fn unit(&self) -> Option<&'static str> {
        let unit = (self.resolution_s? * 1e9).round() as u64;
        UNITS.into_iter().find(|(known, _)| *known == unit).map(|(_, name)| name)
    }
}

/// Arrivals at random places within their unit, in order.
fn within(arrivals: &[Time], unit: u64) -> Vec<Time> {
    let place = Address::new(0, Purpose::Tool);
    let moved = (0..).zip(arrivals).map(|(k, at)| Time(at.0 + (place.at(k).unit() * unit as f64) as u64));
    let mut moved: Vec<Time> = moved.collect();
    moved.sort_unstable();
    moved
}

/// The distance of at least ten gaps, not all zero, to the exponential distribution with their mean, and its
/// probability.
fn lilliefors(mut gaps: Vec<f64>) -> (f64, f64) {
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let distance = gaps.iter().enumerate().fold(0.0f64, |worst, (i, &gap)| {
        let distribution = -(-gap / mean).exp_m1();
        worst.max(distribution - i as f64 / n).max((i as f64 + 1.0) / n - distribution)
    });
    (distance, probability((distance - 0.2 / n) * (n.sqrt() + 0.26 + 0.5 / n.sqrt())))
}

/// Percentage points of Lilliefors' distance as Stephens modifies it, (D − 0.2/n)(√n + 0.26 + 0.5/√n), which makes them
/// nearly the same for every n (Journal of the American Statistical Association 69, 1974, pp. 730-737): the means over
/// 10, 30, 100 and 1000 gaps of simulations with 40,000 to 400,000 samples each. Stephens gives 0.926, 0.990, 1.094,
/// 1.190 and 1.308 for 0.15 to 0.01.
const POINTS: [(f64, f64); 14] = [
    (0.0, 1.0),
    (0.440, 0.95),
    (0.515, 0.85),
    (0.592, 0.7),
    (0.687, 0.5),
    (0.833, 0.25),
    (0.922, 0.15),
    (0.987, 0.1),
    (1.089, 0.05),
    (1.179, 0.025),
    (1.293, 0.01),
    (1.370, 0.005),
    (1.468, 0.002),
    (1.537, 0.001),
];

/// The probability of a modified distance: its logarithm is interpolated over the square of the distance, which it is
/// proportional to in the tail.
fn probability(distance: f64) -> f64 {
    let square = distance.max(0.0).powi(2);
    let next = POINTS.iter().position(|(point, _)| *point > distance).unwrap_or(POINTS.len() - 1).max(1);
    let [(x0, p0), (x1, p1)] = [POINTS[next - 1], POINTS[next]];
    let slope = (p1.ln() - p0.ln()) / (x1 * x1 - x0 * x0);
    (p0.ln() + slope * (square - x0 * x0)).exp().min(1.0)
}

#[cfg(test)]
mod tests {
    use volary_actors::base::Span;

    use super::*;

    /// Arrivals of a Poisson process with gaps of that mean, in seconds; draws depend on `sample`.
    fn poisson(sample: u64, jobs: u64, mean: f64) -> Vec<Time> {
        let base = Address::new(sample, Purpose::Arrival);
        let mut now = 0.0;
        let mut next = |k: u64| {
            now -= mean * (1.0 - base.at(k).unit()).ln();
            Time(Span::from_secs_f64(now).0)
        };
        (0..jobs).map(&mut next).collect()
    }

    fn rounded(arrivals: &[Time], unit: u64) -> Vec<Time> {
        arrivals.iter().map(|at| Time(at.0 / unit * unit)).collect()
    }

    /// At each level the test rejects that share of samples of a Poisson process, whether or not their times are
    /// rounded.
    #[test]
    fn the_test_rejects_a_poisson_process_as_often_as_its_level_states() {
        const SAMPLES: u64 = 4000;
        for (jobs, mean, unit) in
            [(12, 5.0, 1), (200, 5.0, 1), (200, 5.0, 1_000_000_000), (300, 0.4, 1_000_000_000)]
        {
            let p = |sample| Poisson::of(&rounded(&poisson(sample, jobs, mean), unit)).ks_p.unwrap();
            let all: Vec<f64> = (0..SAMPLES).map(p).collect();
            for level in [0.01, 0.05, 0.1] {
                let size = all.iter().filter(|p| **p < level).count() as f64 / SAMPLES as f64;
                // Points are interpolated and the same for all n: within a tenth of the level, besides chance.
                let chance = 4.0 * (level * (1.0 - level) / SAMPLES as f64).sqrt();
                assert!(
                    (size - level).abs() < 0.1 * level + chance,
                    "{jobs} jobs, unit {unit} ns: {size} at {level}"
                );
            }
        }
    }

    #[test]
    fn percentage_points_are_those_that_stephens_gives() {
        for (point, p) in [(0.926, 0.15), (0.990, 0.10), (1.094, 0.05), (1.190, 0.025), (1.308, 0.01)] {
            assert!((probability(point) / p - 1.0).abs() < 0.15, "{point}: {} for {p}", probability(point));
        }
        assert_eq!(probability(-0.1), 1.0);
        assert!(probability(2.5) < 1e-7 && probability(9.0) < 1e-50);
    }

    #[test]
    fn a_process_in_whole_seconds_is_tested_like_an_exact_one() {
        let exact = poisson(1, 5000, 7.0);
        for (unit, name) in [(1_000_000_000, "whole seconds"), (60_000_000_000, "whole minutes")] {
            let test = Poisson::of(&rounded(&exact, unit));
            assert!(test.ks_p.unwrap() > 0.01 && test.unit() == Some(name), "{test:?}");
        }
        // The process was never one: two a time, or periodic.
        let twice: Vec<Time> = poisson(2, 2000, 7.0).iter().flat_map(|at| [*at; 2]).collect();
        let periodic: Vec<Time> = (0..2000).map(|k| Time(k * 7_000_000_000)).collect();
        for other in [&twice, &rounded(&twice, 1_000_000_000), &periodic] {
            assert!(Poisson::of(other).ks_p.unwrap() < 1e-6);
        }
    }

    #[test]
    fn arrivals_that_cannot_be_tested_say_why() {
        let mixed: Vec<Time> = {
            let mut some = rounded(&poisson(3, 500, 7.0), 1_000_000_000);
            some.extend(poisson(4, 500, 7.0));
            some.sort_unstable();
            some
        };
        let seconds = |k: u64| Time(k * 1_000_000_000);
        // Half of the times have a fraction, and after them others are whole again.
        let half: Vec<Time> =
            (0..1000u64).map(|k| Time(seconds(7 * k).0 + if k < 500 { 0 } else { k * 12_345_678 })).collect();
        for (arrivals, why) in [
            (vec![Time(5); 10_000], "all jobs arrive at one instant"),
            (poisson(1, 9, 1.0), "8 gaps are too few"),
            ([vec![seconds(0); 50], vec![seconds(3600); 50]].concat(), "at 2 different times"),
            (half, " % of the gaps are whole seconds, the others are not"),
        ] {
            let test = Poisson::of(&arrivals);
            assert_eq!((test.ks, test.ks_p), (None, None));
            let said = test.not_tested.unwrap();
            assert!(said.contains(why), "{said}");
        }
        // Where both kinds alternate, a quarter of the gaps lies between whole seconds.
        let said = Poisson::of(&mixed).not_tested.unwrap();
        assert!(said.contains("of the gaps are whole seconds"), "{said}");
    }
}
