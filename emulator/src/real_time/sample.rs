//! Samples of a shard in real time while it runs: messages, lateness, and the load of its process.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use volary_engine::shard::Shard;

use super::event_loop::RealTimeObserver;
use super::host_stats::{VitalsMeter, VitalsSample};
use crate::fidelity::gauge::SpanHistogram;

/// Real time between two samples. A sample takes some tens of microseconds.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// The state of a shard since the start of its run.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct ShardSample {
    /// Messages sent over the network, in the order of [`KINDS`](volary_actors::message::KINDS).
    pub by_kind: Vec<u64>,
    /// Datagrams lost and stream messages returned.
    pub dropped: u64,
    /// Events that are pending: deliveries, timers and ends of copies.
    pub pending: u64,
    /// Lateness of messages when their actors process them.
    pub deliveries: LateSoFar,
    /// Lateness of timers.
    pub timers: LateSoFar,
    /// The process and its machine; `None` if another shard of the process reports them.
    pub vitals: Option<VitalsSample>,
}

/// Lateness since the start of a run, in emulated seconds; all zero if nothing was due.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct LateSoFar {
    /// Median.
    pub p50_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// Maximum.
    pub max_s: f64,
}

impl LateSoFar {
    fn of(late: &SpanHistogram) -> Self {
        Self { p50_s: late.quantile_s(0.5), p99_s: late.quantile_s(0.99), max_s: late.max_s() }
    }
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
            deliveries: LateSoFar::of(&gauge.deliveries),
            timers: LateSoFar::of(&gauge.timers),
            vitals: self.meter.as_mut().map(VitalsMeter::sample),
        })
    }
}
