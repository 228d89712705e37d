//! The utility of jobs to a scheduler that plans for deadlines (Park's thesis, sections 4.2.1, 4.3.2 and 5.3.2).

use crate::base::{Time, parameters};
use crate::catalog::JobSpec;
use crate::predict::Distribution;

/// Utility of an SLO job that meets its deadline.
const SLO: f64 = 1.0;

/// Utility of an SLO job that can no longer meet its deadline. The thesis has zero, but then the job would never run.
const LATE: f64 = 0.01;

/// Minimum utility of a best-effort job, relative to its maximum; it makes a long job run eventually.
const LEAST: f64 = 0.01;

parameters! {
    /// The SLO jobs whose utility falls gradually after the deadline instead of dropping to zero.
    enum OverEstimates {
        /// Jobs that seem to be overestimated.
        #[default]
        Adaptive,
        /// All SLO jobs.
        Always,
        /// No job.
        Never,
    }
}

/// Parameters of the utility of jobs, and the handling of over-estimated run times.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Valuation {
    /// The SLO jobs whose utility falls gradually after the deadline.
    pub over: OverEstimates,
    /// With [`OverEstimates::Adaptive`]: the utility falls gradually if P(run time ≤ time from submission to deadline)
    /// is below this limit.
    pub threshold: f64,
    /// Time in which the utility falls to zero after the deadline, relative to the time from submission to deadline.
    pub decay: f64,
    /// Largest utility of a best-effort job, where an SLO job is worth 1.
    pub best_effort: f64,
    /// The time from arrival to completion in which the utility of a best-effort job falls to near zero, s. If absent,
    /// the utility falls with the wait or the run time.
    pub completion: Option<f64>,
}

/// The utility of a job by the time of its end; for best effort, also by its wait or run time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Utility {
    /// `SLO` until the deadline, then falling linearly to zero at `zero`. Both times are in seconds since the run's
    /// start.
    Slo {
        /// The deadline.
        deadline: f64,
        /// Time at which the utility is zero; not before the deadline.
        zero: f64,
    },
    /// `top` for a job that starts or ends now, or that has just arrived; falls linearly with time.
    BestEffort {
        /// Largest utility, in the unit of `SLO`.
        top: f64,
        /// Present if the utility falls with the time to completion.
        completion: Option<Response>,
    },
}

/// The fall of a best-effort job's utility with the time from its arrival to its completion.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Response {
    /// The arrival, in seconds since the run's start.
    arrival: f64,
    /// The time in which the utility falls to near zero, s.
    horizon: f64,
}

impl Utility {
    /// The utility of a job that has the estimated run time `run` on preferred nodes.
    pub fn of(spec: &JobSpec, run: &Distribution, valuation: &Valuation) -> Self {
        let arrival = spec.arrival.as_secs_f64();
        let Some(deadline) = spec.deadline else {
            let completion = valuation.completion.map(|horizon| Response { arrival, horizon });
            return Self::BestEffort { top: valuation.best_effort, completion };
        };
        let window = deadline.since(spec.arrival).as_secs_f64();
        let gradual = match valuation.over {
            OverEstimates::Adaptive => run.cdf(window) < valuation.threshold,
            OverEstimates::Always => true,
            OverEstimates::Never => false,
        };
        let deadline = deadline.as_secs_f64();
        let decay = if gradual { valuation.decay * window } else { 0.0 };
        Self::Slo { deadline, zero: deadline + decay }
    }

    /// The utility as of `now`. An SLO job whose utility has become zero gets a smaller best-effort utility, whatever
    /// its age.
    #[must_use]
    pub fn at(self, now: Time) -> Self {
        match self {
            Self::Slo { zero, .. } if now.as_secs_f64() >= zero => {
                Self::BestEffort { top: LATE, completion: None }
            }
            _ => self,
        }
    }

    /// Expected utility of a start at `start` seconds, `wait` seconds from now, where `run` is the distribution of the
    /// run time and `window` the length of the planning window in seconds (thesis, equation 4.1). The utility of a
    /// best-effort job falls to zero at the end of the window or, if it depends on the completion, to a hundredth.
    pub fn expected_for_start(self, start: f64, (wait, window): (f64, f64), run: &Distribution) -> f64 {
        let soon = 1.0 - wait / window;
        match self {
            Self::BestEffort { top, completion: None } => top * soon,
            Self::BestEffort { top, completion: Some(Response { arrival, horizon }) } => {
                let least = LEAST * soon;
                let kink = arrival + horizon * (1.0 - least) - start;
                top * run.expect(&[kink], |run| (1.0 - (start + run - arrival) / horizon).max(least))
            }
            Self::Slo { deadline, zero } => {
                let (deadline, zero) = (deadline - start, zero - start);
                run.expect(&[deadline, zero], |run| by_deadline(run, deadline, zero))
            }
        }
    }

    /// Utility of a job that starts at `start` seconds and runs for `run` seconds. The utility of a best-effort job
    /// falls to near zero for run times of `horizon` seconds (thesis, Fig. 4.3), or with the time to its completion.
    pub fn for_run_time(self, start: f64, run: f64, horizon: f64) -> f64 {
        match self {
            Self::BestEffort { top, completion } => {
                let age = completion.map_or(0.0, |response| start - response.arrival);
                top * (1.0 - (age + run) / horizon).max(LEAST)
            }
            Self::Slo { deadline, zero } => by_deadline(run, deadline - start, zero - start),
        }
    }
}

/// Utility of an SLO job that takes `run`, where `deadline` and `zero` are relative to its start.
fn by_deadline(run: f64, deadline: f64, zero: f64) -> f64 {
    if run <= deadline {
        SLO
    } else if run < zero {
        SLO * (zero - run) / (zero - deadline)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Span;

    /// The parameters of 3Sigma.
    const VALUATION: Valuation = Valuation {
        over: OverEstimates::Adaptive,
        threshold: 0.05,
        decay: 1.0,
        best_effort: 0.2,
        completion: None,
    };

    fn job(deadline: Option<u64>) -> JobSpec {
        let deadline = deadline.map(|seconds| Time::ZERO + Span::from_secs(seconds));
        JobSpec { arrival: Time::ZERO, tasks: 1, client: 0, class: 0, deadline }
    }

    fn starts(utility: Utility, run: &Distribution) -> [f64; 8] {
        [0.0, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5].map(|at| utility.expected_for_start(at, (at, 20.0), run))
    }

    /// The thesis's example has a deadline of 15 and a window of 20.
    #[test]
    fn expected_utilities_match_the_example_of_the_thesis() {
        let first = Distribution::uniform(0.0, 10.0);
        let slo = Utility::of(&job(Some(15)), &first, &VALUATION);
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
        let expected = [1.0, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0];
        assert!(starts(slo, &first).iter().zip(&expected).all(close));
        let second = Distribution::uniform(2.5, 7.5);
        let expected = [1.0, 1.0, 1.0, 1.0, 0.5, 0.0, 0.0, 0.0];
        assert!(starts(slo, &second).iter().zip(&expected).all(close));
        let effort = Utility::of(&job(None), &first, &VALUATION);
        let expected = [0.2, 0.175, 0.15, 0.125, 0.1, 0.075, 0.05, 0.025];
        assert!(starts(effort, &first).iter().zip(&expected).all(close));
    }

    /// The job has an estimated run time of 12 s, and its deadline is 10 s after its submission.
    #[test]
    fn the_utility_of_overestimated_jobs_falls_gradually() {
        let run = Distribution::point(12.0);
        let of = |over, decay, start| {
            let valuation = Valuation { over, decay, ..VALUATION };
            let utility = Utility::of(&job(Some(10)), &run, &valuation);
            let expected = utility.expected_for_start(start, (0.0, 60.0), &run);
            assert_eq!(utility.for_run_time(start, 12.0, 60.0), expected, "the run time is known");
            expected
        };
        assert_eq!(of(OverEstimates::Never, 1.0, 0.0), 0.0);
        assert_eq!(of(OverEstimates::Adaptive, 1.0, 0.0), 0.8);
        assert_eq!(of(OverEstimates::Always, 2.0, 4.0), 0.7);
        assert_eq!(of(OverEstimates::Always, 0.0, 0.0), 0.0);
        let likely = Distribution::point(10.0);
        let steep = Utility::of(&job(Some(10)), &likely, &VALUATION);
        assert_eq!(steep, Utility::Slo { deadline: 10.0, zero: 10.0 }, "the job can meet the deadline");
        let late = Utility::BestEffort { top: LATE, completion: None };
        assert_eq!(steep.at(Time::ZERO + Span::from_secs(10)), late);
        assert_eq!(steep.at(Time::ZERO + Span::from_secs(9)), steep);
    }

    #[test]
    fn short_best_effort_jobs_have_a_higher_utility() {
        let effort = Utility::BestEffort { top: 0.2, completion: None };
        let of = |run| effort.for_run_time(1000.0, run, 100.0);
        let expected = [0.2, 0.15, 0.1, 0.002, 0.002];
        let found = [0.0, 25.0, 50.0, 100.0, 1e9].map(of);
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    }
    /// The utility of the job falls to zero within 100 s of its arrival. The job has waited for 30 s.
    #[test]
    fn the_utility_of_a_best_effort_job_falls_from_its_arrival_to_its_completion() {
        let valuation = Valuation { completion: Some(100.0), ..VALUATION };
        let effort = Utility::of(&job(None), &Distribution::point(1.0), &valuation);
        let close = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-12, "found {found}, expected {expected}")
        };
        close(effort.for_run_time(30.0, 20.0, 100.0), 0.1);
        close(effort.expected_for_start(30.0, (0.0, 60.0), &Distribution::point(20.0)), 0.1);
        close(effort.expected_for_start(45.0, (15.0, 60.0), &Distribution::point(20.0)), 0.07);
        close(effort.expected_for_start(30.0, (0.0, 60.0), &Distribution::uniform(0.0, 40.0)), 0.1);
        // A job that completes too late is still worth more if it starts early.
        close(effort.for_run_time(30.0, 70.0, 100.0), 0.002);
        close(effort.expected_for_start(30.0, (0.0, 60.0), &Distribution::point(80.0)), 0.002);
        close(effort.expected_for_start(45.0, (15.0, 60.0), &Distribution::point(80.0)), 0.0015);
        // Three quarters of the run times from 20 to 100 s complete in time, to within a hundredth of the horizon.
        let unsure = Distribution::uniform(20.0, 100.0);
        let area = (0.5 * 0.5 * 50.0 - 0.5 * 0.01 * 1.0 + 0.01 * (80.0 - 49.0)) / 80.0;
        close(effort.expected_for_start(30.0, (0.0, 60.0), &unsure), 0.2 * area);
    }
}
