//! The utility of jobs by the time of their start.

use super::config::{OverEstimates, ThreeSigma};
use crate::base::Time;
use crate::catalog::JobSpec;
use crate::predict::Distribution;

/// Utility of an SLO job that meets its deadline.
const SLO: f64 = 1.0;

/// The utility of a job by the time of its end, or, for best effort, of its start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Utility {
    /// [`SLO`] until the deadline, then falling linearly to zero at `zero`; both in seconds since the run's start.
    Slo {
        /// The deadline.
        deadline: f64,
        /// Not before it.
        zero: f64,
    },
    /// `top` for a start now, falling linearly to zero for one at the end of the window.
    BestEffort {
        /// In the unit of [`SLO`].
        top: f64,
    },
}

impl Utility {
    /// The utility of a job of which `run` is expected on the nodes that it prefers.
    pub(super) fn of(spec: &JobSpec, run: &Distribution, config: &ThreeSigma) -> Self {
        let Some(deadline) = spec.deadline else { return Self::BestEffort { top: config.best_effort } };
        let window = deadline.since(spec.arrival).as_secs_f64();
        let gradual = match config.over {
            OverEstimates::Adaptive => run.cdf(window) < config.threshold,
            OverEstimates::Always => true,
            OverEstimates::Never => false,
        };
        let deadline = deadline.as_secs_f64();
        let decay = if gradual { config.decay * window } else { 0.0 };
        Self::Slo { deadline, zero: deadline + decay }
    }

    /// The utility as of `now`: that of an SLO job whose utility has become zero is that of best effort, but less.
    pub(super) fn at(self, now: Time, config: &ThreeSigma) -> Self {
        match self {
            Self::Slo { zero, .. } if now.as_secs_f64() >= zero => Self::BestEffort { top: config.late },
            _ => self,
        }
    }

    /// Expected utility of a start at `start` seconds, which is `wait` seconds from now, if `run` is expected and the
    /// window has a length of `window` (thesis, equation 4.1).
    pub(super) fn of_start(self, start: f64, (wait, window): (f64, f64), run: &Distribution) -> f64 {
        match self {
            Self::BestEffort { top } => top * (1.0 - wait / window),
            Self::Slo { deadline, zero } => {
                let (deadline, zero) = (deadline - start, zero - start);
                let utility = |run: f64| {
                    if run <= deadline {
                        SLO
                    } else if run < zero {
                        SLO * (zero - run) / (zero - deadline)
                    } else {
                        0.0
                    }
                };
                run.expect(&[deadline, zero], utility)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Span;

    fn job(deadline: Option<u64>) -> JobSpec {
        let deadline = deadline.map(|seconds| Time::ZERO + Span::from_secs(seconds));
        JobSpec { arrival: Time::ZERO, tasks: 1, client: 0, class: 0, deadline }
    }

    fn starts(utility: Utility, run: &Distribution) -> [f64; 8] {
        [0.0, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5].map(|at| utility.of_start(at, (at, 20.0), run))
    }

    /// The thesis's example (O-T1): a deadline of 15 and a window of 20.
    #[test]
    fn expected_utilities_of_the_example() {
        let config = ThreeSigma::default();
        let first = Distribution::uniform(0.0, 10.0);
        let slo = Utility::of(&job(Some(15)), &first, &config);
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
        let expected = [1.0, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0];
        assert!(starts(slo, &first).iter().zip(&expected).all(close));
        let second = Distribution::uniform(2.5, 7.5);
        let expected = [1.0, 1.0, 1.0, 1.0, 0.5, 0.0, 0.0, 0.0];
        assert!(starts(slo, &second).iter().zip(&expected).all(close));
        let effort = Utility::of(&job(None), &first, &config);
        let expected = [0.2, 0.175, 0.15, 0.125, 0.1, 0.075, 0.05, 0.025];
        assert!(starts(effort, &first).iter().zip(&expected).all(close));
    }

    /// Of a job that seems to need 12 s and has 10 s, with half of it gone or not.
    #[test]
    fn the_utility_of_overestimated_jobs_falls_gradually() {
        let run = Distribution::point(12.0);
        let of = |over, decay, start| {
            let config = ThreeSigma { over, decay, ..ThreeSigma::default() };
            Utility::of(&job(Some(10)), &run, &config).of_start(start, (0.0, 60.0), &run)
        };
        assert_eq!(of(OverEstimates::Never, 1.0, 0.0), 0.0);
        assert_eq!(of(OverEstimates::Adaptive, 1.0, 0.0), 0.8);
        assert_eq!(of(OverEstimates::Always, 2.0, 4.0), 0.7);
        assert_eq!(of(OverEstimates::Always, 0.0, 0.0), 0.0);
        let likely = Distribution::point(10.0);
        let config = ThreeSigma::default();
        let steep = Utility::of(&job(Some(10)), &likely, &config);
        assert_eq!(steep, Utility::Slo { deadline: 10.0, zero: 10.0 }, "it can meet the deadline");
        let late = Utility::BestEffort { top: config.late };
        assert_eq!(steep.at(Time::ZERO + Span::from_secs(10), &config), late);
        assert_eq!(steep.at(Time::ZERO + Span::from_secs(9), &config), steep);
    }
}
