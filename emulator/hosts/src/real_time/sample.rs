//! Samples of a shard in real time while it runs: messages, lateness, and the load of its process.

use std::time::{Duration, Instant};

use volary_engine::shard::Shard;
use volary_experiment::fidelity::gauge::SpanHistogram;
use volary_experiment::observer::{LateSoFar, ShardSample};

use super::event_loop::RealTimeObserver;
use super::host_stats::VitalsMeter;

/// Real time between two samples. A sample takes some tens of microseconds.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// The lateness that a histogram holds.
fn late_so_far(late: &SpanHistogram) -> LateSoFar {
    LateSoFar { p50_s: late.quantile_s(0.5), p99_s: late.quantile_s(0.99), max_s: late.max_s() }
}

/// Takes a sample of a shard from time to time.
#[derive(Debug)]
pub struct ShardSampler {
    due: Instant,
    meter: Option<VitalsMeter>,
}

impl ShardSampler {
    /// A sampler that reports the vitals of the process, or leaves them to another shard's.
    pub fn new(with_vitals: bool) -> Self {
        Self { due: Instant::now() + SAMPLE_INTERVAL, meter: with_vitals.then(VitalsMeter::start) }
    }

    /// The next sample, if one is due.
    pub fn sample(&mut self, shard: &Shard<'_, RealTimeObserver>) -> Option<ShardSample> {
        let now = Instant::now();
        if now < self.due {
            return None;
        }
        self.due = now + SAMPLE_INTERVAL;
        let (traffic, gauge) = (shard.traffic(), &shard.observer.gauge);
        Some(ShardSample {
            by_kind: traffic.by_kind.to_vec(),
            dropped: traffic.dropped,
            pending: shard.pending() as u64,
            deliveries: late_so_far(&gauge.deliveries),
            timers: late_so_far(&gauge.timers),
            vitals: self.meter.as_mut().map(VitalsMeter::sample),
        })
    }
}
