//! Parts of a trace against the whole: whether a month is representative (Park's thesis, section 3.7).

use serde::Serialize;
use volary_actors::base::Span;
use volary_engine::workload::Trace;

/// A part of a trace, with averages relative to those of the whole trace (Fig. 3.11).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Period {
    /// Its number, from one.
    pub number: u32,
    pub jobs: u64,
    /// Mean gap between arrivals over that of the trace.
    pub gap: f64,
    /// Mean duration of jobs over that of the trace.
    pub duration: f64,
}

const DAY: u64 = Span::from_secs(86_400).0;
/// Limit on parts: a single wrong arrival must not make millions.
const MOST: usize = 5_000;

/// The complete parts of `days` days of a trace that has two at least, from the first arrival on. `durations` are those
/// of its jobs, s.
pub(super) fn periods(trace: &Trace, durations: &[f64], days: u64) -> Vec<Period> {
    let (jobs, durations) = (&trace.jobs()[trace.early()..], &durations[trace.early()..]);
    let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else { return Vec::new() };
    let span = last.arrival.since(first.arrival).0;
    let count = (span / (days * DAY)) as usize;
    if !(2..=MOST).contains(&count) {
        return Vec::new();
    }
    let mut parts = vec![(0u64, 0.0); count];
    for (job, duration) in jobs.iter().zip(durations) {
        let at = (job.arrival.since(first.arrival).0 / (days * DAY)) as usize;
        if let Some((jobs, sum)) = parts.get_mut(at) {
            *jobs += 1;
            *sum += duration;
        }
    }
    let gap = span as f64 / (jobs.len() - 1) as f64;
    let mean = durations.iter().sum::<f64>() / durations.len() as f64;
    let part = |(number, (jobs, sum)): (u32, (u64, f64))| Period {
        number,
        jobs,
        gap: (days * DAY) as f64 / jobs as f64 / gap,
        duration: if mean > 0.0 { sum / jobs as f64 / mean } else { 0.0 },
    };
    (1..).zip(parts).filter(|(_, (jobs, _))| *jobs > 0).map(part).collect()
}
