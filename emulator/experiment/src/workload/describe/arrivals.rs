//! Arrivals of jobs: gaps, a test for a Poisson process, and the hours of the day (Park's thesis, sections 3.3 and
//! 3.4).
//!
//! The test for a Poisson process checks whether the gaps between arrivals can be exponential. The exponential
//! distribution has the mean of these gaps; therefore Kolmogorov's distribution would reject too rarely. Lilliefors'
//! test takes that into account (Journal of the American Statistical Association 64, 1969, pp. 387-389).
//!
//! Times that are rounded, such as to whole seconds, have gaps that no continuous distribution has. Under a Poisson
//! process, the times within a second are independent and uniform, given their number. Each arrival is therefore moved
//! to a random place in its second; a Poisson process stays exactly Poisson. The test then says nothing about arrivals
//! within a second.

use serde::Serialize;
use volary_actors::base::{Address, Purpose, Span, Time};
use volary_engine::workload::{Trace, TraceJob};

use super::quantiles::{Quantiles, share};
use crate::workload::text::percent;

const HOUR_NS: u64 = 3_600_000_000_000;

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Arrivals {
    /// Number of jobs that were submitted before the trace began, at unknown times. These are not arrivals and are left
    /// out of the other numbers.
    pub early: usize,
    /// Time zone of the trace's dates, seconds east of Greenwich; `None` if the zero of its clock has an unknown time
    /// of day.
    pub zone_s: Option<i64>,
    /// Time from the first to the last arrival, s.
    pub span_s: f64,
    /// Gaps between arrivals, s.
    pub gap_s: Quantiles,
    /// Squared coefficient of variation of the gaps: 1 for a Poisson process, above 1 for bursts, 0 for equal gaps.
    pub gap_cv2: f64,
    /// Share of the gaps below one second.
    pub sub_second: f64,
    /// Result of the test whether the gaps can be exponential.
    #[serde(flatten)]
    pub poisson: Poisson,
    /// Jobs submitted in each hour of the day, over the days of the trace.
    pub jobs_by_hour: Vec<Hour>,
    /// Tasks submitted in each hour of the day, over the days of the trace.
    pub tasks_by_hour: Vec<Hour>,
    /// Jobs per hour over all hours.
    pub jobs_per_hour: Quantiles,
    /// Tasks per hour over all hours.
    pub tasks_per_hour: Quantiles,
}

/// One hour of the day over the days of a trace.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Hour {
    /// Hour from 0 to 23 by the trace's clock: the time of day if the trace has dates, otherwise counted from a zero
    /// that need not be midnight.
    pub hour: u8,
    /// First quartile of the days.
    pub p25: f64,
    /// Median of the days.
    pub p50: f64,
    /// Third quartile of the days.
    pub p75: f64,
}

impl Arrivals {
    pub(super) fn of(trace: &Trace) -> Self {
        let jobs = &trace.jobs()[trace.early()..];
        let gaps: Vec<f64> =
            jobs.windows(2).map(|pair| (pair[1].arrival - pair[0].arrival).as_secs_f64()).collect();
        let gap_s = Quantiles::of(gaps.iter().copied());
        let times: Vec<Time> = jobs.iter().map(|job| job.arrival).collect();
        let (jobs_per_hour, tasks_per_hour) = by_hour(jobs);
        let [first, last] = [jobs.first(), jobs.last()].map(|job| Span(job.map_or(0, |job| job.arrival.0)));
        let hour = first.0 / HOUR_NS;
        Self {
            early: trace.early(),
            zone_s: trace.zone(),
            span_s: last.saturating_sub(first).as_secs_f64(),
            gap_cv2: gap_s.cov().powi(2),
            sub_second: share(gaps.iter(), |&&gap| gap < 1.0),
            gap_s,
            poisson: Poisson::of(&times),
            jobs_by_hour: days(&jobs_per_hour, hour),
            tasks_by_hour: days(&tasks_per_hour, hour),
            jobs_per_hour: Quantiles::of(jobs_per_hour),
            tasks_per_hour: Quantiles::of(tasks_per_hour),
        }
    }

    /// The hours of the day with the highest and the lowest median number of jobs; `None` if the trace does not cover
    /// every hour twice.
    pub fn peak_and_trough(&self) -> Option<(Hour, Hour)> {
        let two_days = 48.0 * 3600.0;
        let by = |a: &&Hour, b: &&Hour| a.p50.total_cmp(&b.p50);
        let hours = || self.jobs_by_hour.iter().filter(|_| self.span_s >= two_days);
        Some((*hours().max_by(by)?, *hours().min_by(by)?))
    }
}

/// Limit on the number of hours that are counted: a single wrong arrival must not allocate memory for centuries.
const MOST_HOURS: u64 = 24 * 366 * 30;

/// Jobs and tasks in each hour, from the first arrival to the last.
fn by_hour(jobs: &[TraceJob]) -> (Vec<f64>, Vec<f64>) {
    let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else {
        return (Vec::new(), Vec::new());
    };
    let first = first.arrival.0 / HOUR_NS;
    let hours = (last.arrival.0 / HOUR_NS - first + 1).min(MOST_HOURS) as usize;
    let (mut of_jobs, mut of_tasks) = (vec![0.0; hours], vec![0.0; hours]);
    for job in jobs {
        let hour = (job.arrival.0 / HOUR_NS - first) as usize;
        if hour < hours {
            of_jobs[hour] += 1.0;
            of_tasks[hour] += f64::from(job.tasks);
        }
    }
    (of_jobs, of_tasks)
}

/// Quartiles of the counts in each hour of the day; `first` is the number of the first hour.
fn days(per_hour: &[f64], first: u64) -> Vec<Hour> {
    (0..24u8)
        .filter_map(|hour| {
            let start = ((24 + u64::from(hour) - first % 24) % 24) as usize;
            let counts: Vec<f64> = per_hour.iter().skip(start).step_by(24).copied().collect();
            let q = Quantiles::of(counts.iter().copied());
            (!counts.is_empty()).then_some(Hour { hour, p25: q.p25, p50: q.p50, p75: q.p75 })
        })
        .collect()
}

/// The result of the test for a Poisson process.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Poisson {
    /// Largest distance between the distribution of the gaps and the exponential distribution with the same mean.
    pub ks: Option<f64>,
    /// Probability of a distance at least this large if the gaps were exponential, by Lilliefors' test.
    pub ks_p: Option<f64>,
    /// Unit to which times are rounded and within which arrivals were moved, s; `None` if times are exact.
    pub resolution_s: Option<f64>,
    /// The reason why there is no result.
    pub not_tested: Option<String>,
}

/// Minimum number of gaps, and of distinct times, that the test needs.
const FEWEST: usize = 10;

/// Units to which times may be rounded, largest first: ns and name.
const UNITS: [(u64, &str); 4] = [
    (60_000_000_000, "whole minutes"),
    (1_000_000_000, "whole seconds"),
    (1_000_000, "whole milliseconds"),
    (1_000, "whole microseconds"),
];

/// Share of gaps that are multiples of a unit above which this is no coincidence.
const MIXED: f64 = 0.1;

impl Poisson {
    /// Tests the arrivals of jobs, which are sorted.
    pub(super) fn of(arrivals: &[Time]) -> Self {
        let not_tested = |why: String| Self { not_tested: Some(why), ..Self::default() };
        let gaps: Vec<u64> = arrivals.windows(2).map(|pair| pair[1].since(pair[0]).0).collect();
        let different = gaps.iter().filter(|gap| **gap > 0).count() + 1;
        if gaps.len() < FEWEST {
            return not_tested(format!("{} gaps are too few for the test, which needs 10", gaps.len()));
        }
        if different == 1 {
            return not_tested("all jobs arrive at one instant".to_owned());
        }
        if different < FEWEST {
            return not_tested(format!("the jobs arrive at {different} different times; 10 are needed"));
        }
        // The unit to which times are rounded: all gaps are multiples of it.
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

    /// The name of the unit within which arrivals were moved.
    pub(super) fn unit(&self) -> Option<&'static str> {
        let unit = (self.resolution_s? * 1e9).round() as u64;
        UNITS.into_iter().find(|(known, _)| *known == unit).map(|(_, name)| name)
    }
}

/// Arrivals at random places within their unit, sorted.
fn within(arrivals: &[Time], unit: u64) -> Vec<Time> {
    let place = Address::new(0, Purpose::Tool);
    let moved = (0..).zip(arrivals).map(|(k, at)| Time(at.0 + (place.at(k).unit() * unit as f64) as u64));
    let mut moved: Vec<Time> = moved.collect();
    moved.sort_unstable();
    moved
}

/// Lilliefors' test of at least ten gaps, not all zero: their distance to the exponential distribution with their mean,
/// and the p-value.
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

/// Percentage points of Lilliefors' distance in Stephens' modified form, (D − 0.2/n)(√n + 0.26 + 0.5/√n), which makes
/// them nearly the same for every n (Journal of the American Statistical Association 69, 1974, pp. 730-737). The points
/// are means over 10, 30, 100 and 1000 gaps of simulations with 40,000 to 400,000 samples each. Stephens gives 0.926,
/// 0.990, 1.094, 1.190 and 1.308 for 0.15 to 0.01.
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

/// The probability of a modified distance. The logarithm of the probability is interpolated over the square of the
/// distance, because the two are proportional in the tail.
fn probability(distance: f64) -> f64 {
    let square = distance.max(0.0).powi(2);
    let next = POINTS.iter().position(|(point, _)| *point > distance).unwrap_or(POINTS.len() - 1).max(1);
    let [(x0, p0), (x1, p1)] = [POINTS[next - 1], POINTS[next]];
    let slope = (p1.ln() - p0.ln()) / (x1 * x1 - x0 * x0);
    (p0.ln() + slope * (square - x0 * x0)).exp().min(1.0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use volary_actors::base::{Address, Purpose, Span};
    use volary_engine::workload::Format;

    use super::*;

    fn arriving(times: impl IntoIterator<Item = f64>) -> Trace {
        let mut trace = Trace::new(Path::new("a.tr"), Format::Tr);
        for time in times {
            trace.push_rigid(Time(Span::from_secs_f64(time).0), Span::from_secs(1), 2);
        }
        trace.finish()
    }

    #[test]
    fn a_poisson_process_is_distinguished_from_periodic_and_bursty_arrivals() {
        let unit = |k: u64| Address::new(4, Purpose::Tool).at(k).unit();
        let sum = |gap: &dyn Fn(u64) -> f64| {
            let step = |now: &mut f64, k| {
                *now += gap(k);
                Some(*now)
            };
            Arrivals::of(&arriving((0..20_000).scan(0.0, step)))
        };
        let poisson = sum(&|k| -3.0 * (1.0 - unit(k)).ln());
        assert!(poisson.poisson.ks_p.unwrap() > 0.01 && (poisson.gap_cv2 - 1.0).abs() < 0.06, "{poisson:?}");
        assert!((poisson.sub_second - 0.2835).abs() < 0.013);
        let periodic = sum(&|k| 7.48 + 0.1 * unit(k));
        assert!(
            periodic.poisson.ks_p.unwrap() < 1e-12 && periodic.gap_cv2 < 0.01 && periodic.sub_second == 0.0
        );
        let bursty = sum(&|k| if unit(k) < 0.9 { 0.01 } else { 30.0 });
        assert!(bursty.poisson.ks_p.unwrap() < 1e-12 && bursty.gap_cv2 > 5.0);
    }

    /// Google's trace gives the time zero to jobs that were running when it began.
    #[test]
    fn jobs_from_before_the_trace_are_not_arrivals() {
        let rows = |early: &str| {
            format!("submit_ms,delay_ms,run_ms,class\n{early}600000,,1,0\n600500,,1,0\n605000,,1,0\n")
        };
        let of = |text: String| {
            let trace = Trace::parse(Path::new("a.csv"), std::io::Cursor::new(text), None).unwrap();
            Arrivals::of(&trace)
        };
        let early = of(rows("0,,9,0\n0,,9,0\n"));
        assert_eq!((early.early, early.span_s, early.sub_second), (2, 5.0, 0.5));
        assert_eq!(Arrivals { early: 0, ..early }, of(rows("")));
        // If all jobs are early, the trace has no arrivals.
        assert_eq!(of("submit_ms,delay_ms,run_ms,class\n0,,9,0\n".to_owned()).span_s, 0.0);
    }

    #[test]
    fn jobs_are_counted_by_hour_of_the_day() {
        // Three days begin at hour 22. Ten jobs arrive in hour 3 of each day, and one job in every other hour.
        let hours = (22..22 + 72).flat_map(|hour| {
            let jobs = if hour % 24 == 3 { 10 } else { 1 };
            (0..jobs).map(move |k| f64::from(hour) * 3600.0 + f64::from(k))
        });
        let arrivals = Arrivals::of(&arriving(hours));
        assert_eq!(arrivals.jobs_by_hour.len(), 24);
        let (peak, trough) = arrivals.peak_and_trough().unwrap();
        assert_eq!((peak.hour, peak.p50, trough.p50), (3, 10.0, 1.0));
        assert_eq!((arrivals.tasks_by_hour[3].p50, arrivals.tasks_by_hour[4].p75), (20.0, 2.0));
        assert_eq!((arrivals.tasks_per_hour.max, arrivals.jobs_per_hour.max), (20.0, 10.0));
        assert_eq!(Arrivals::of(&arriving([5.0])).peak_and_trough(), None);
    }

    /// Arrivals of a Poisson process whose gaps have this mean, in seconds; draws depend on `sample`.
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

    /// The test rejects as large a share of Poisson samples as the significance level states, even if times are
    /// rounded.
    #[test]
    fn a_poisson_process_is_rejected_as_often_as_the_level_states() {
        const SAMPLES: u64 = 4000;
        for (jobs, mean, unit) in
            [(12, 5.0, 1), (200, 5.0, 1), (200, 5.0, 1_000_000_000), (300, 0.4, 1_000_000_000)]
        {
            let p = |sample| Poisson::of(&rounded(&poisson(sample, jobs, mean), unit)).ks_p.unwrap();
            let all: Vec<f64> = (0..SAMPLES).map(p).collect();
            for level in [0.01, 0.05, 0.1] {
                let size = all.iter().filter(|p| **p < level).count() as f64 / SAMPLES as f64;
                // Besides chance, a tenth of the level is allowed, since percentage points are interpolated and equal
                // for all n.
                let chance = 4.0 * (level * (1.0 - level) / SAMPLES as f64).sqrt();
                assert!(
                    (size - level).abs() < 0.1 * level + chance,
                    "{jobs} jobs, unit {unit} ns: {size} at {level}"
                );
            }
        }
    }

    #[test]
    fn percentage_points_agree_with_the_table_of_stephens() {
        for (point, p) in [(0.926, 0.15), (0.990, 0.10), (1.094, 0.05), (1.190, 0.025), (1.308, 0.01)] {
            assert!((probability(point) / p - 1.0).abs() < 0.15, "{point}: {} for {p}", probability(point));
        }
        assert_eq!(probability(-0.1), 1.0);
        assert!(probability(2.5) < 1e-7 && probability(9.0) < 1e-50);
    }

    #[test]
    fn rounding_to_seconds_does_not_change_the_verdict_on_a_poisson_process() {
        let exact = poisson(1, 5000, 7.0);
        for (unit, name) in [(1_000_000_000, "whole seconds"), (60_000_000_000, "whole minutes")] {
            let test = Poisson::of(&rounded(&exact, unit));
            assert!(test.ks_p.unwrap() > 0.01 && test.unit() == Some(name), "{test:?}");
        }
        // Not Poisson processes: arrivals in pairs, and periodic arrivals.
        let twice: Vec<Time> = poisson(2, 2000, 7.0).iter().flat_map(|at| [*at; 2]).collect();
        let periodic: Vec<Time> = (0..2000).map(|k| Time(k * 7_000_000_000)).collect();
        for other in [&twice, &rounded(&twice, 1_000_000_000), &periodic] {
            assert!(Poisson::of(other).ks_p.unwrap() < 1e-6);
        }
    }

    #[test]
    fn the_reason_why_arrivals_cannot_be_tested_is_stated() {
        let mixed: Vec<Time> = {
            let mut some = rounded(&poisson(3, 500, 7.0), 1_000_000_000);
            some.extend(poisson(4, 500, 7.0));
            some.sort_unstable();
            some
        };
        let seconds = |k: u64| Time(k * 1_000_000_000);
        // The first half of the times are whole seconds; most of the second half are not.
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
        // If both kinds of times alternate, a quarter of the gaps lies between whole seconds.
        let said = Poisson::of(&mixed).not_tested.unwrap();
        assert!(said.contains("of the gaps are whole seconds"), "{said}");
    }
}
