//! Arrivals of jobs: gaps, a test for a Poisson process, and the hours of the day (Park's thesis, sections 3.3 and
//! 3.4).

use serde::Serialize;
use volary_actors::base::{Span, Time};
use volary_engine::workload::{Trace, TraceJob};

use super::poisson::Poisson;
use super::quantiles::{Quantiles, share};

const HOUR_NS: u64 = 3_600_000_000_000;

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Arrivals {
    /// Jobs that were submitted before the trace began, at unknown times: they are not arrivals, and are not counted
    /// here.
    pub early: usize,
    /// Zone of the trace's dates, seconds east of Greenwich; `None` if its clock counts from a zero of its own, whose
    /// time of day is unknown.
    pub zone_s: Option<i64>,
    /// From the first to the last arrival, s.
    pub span_s: f64,
    /// Gaps between arrivals, s.
    pub gap_s: Quantiles,
    /// Squared coefficient of variation of the gaps: 1 for a Poisson process, above 1 for bursts, 0 for equal gaps.
    pub gap_cv2: f64,
    /// Share of the gaps below one second.
    pub sub_second: f64,
    /// Whether the gaps can be exponential.
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
    /// 0 to 23 by the trace's clock: the time of day where it has dates, otherwise from a zero that need not be
    /// midnight.
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

    /// The hours of the day with the highest and the lowest median of jobs, if the trace covers every hour twice.
    pub fn peak_and_trough(&self) -> Option<(Hour, Hour)> {
        let two_days = 48.0 * 3600.0;
        let by = |a: &&Hour, b: &&Hour| a.p50.total_cmp(&b.p50);
        let hours = || self.jobs_by_hour.iter().filter(|_| self.span_s >= two_days);
        Some((*hours().max_by(by)?, *hours().min_by(by)?))
    }
}

/// Limit in hours on a trace that is counted by the hour: a single wrong arrival must not allocate centuries.
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

/// Quartiles of each hour of the day; `first` is the number of the first hour.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use volary_actors::base::{Address, Purpose};

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
    fn a_poisson_process_is_distinguished_from_periodic_and_bursty_ones() {
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

    /// Google's trace gives the time zero to jobs that were there when it began.
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
        // All of them: nothing arrives.
        assert_eq!(of("submit_ms,delay_ms,run_ms,class\n0,,9,0\n".to_owned()).span_s, 0.0);
    }

    #[test]
    fn hours_of_the_day_are_kept_apart() {
        // Three days that begin at hour 22: ten jobs in hour 3 of each day, one in every other hour.
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
}
