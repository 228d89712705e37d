//! The construction of a certificate from the measurements of a run, and the histograms of lateness and delay that each
//! shard measures.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use volary_actors::base::{Class, JobId, Span, Time};
use volary_actors::catalog::Catalog;
use volary_engine::metrics::{Accounts, EndReason};
use volary_engine::results::{
    Certificate, ClassFidelity, Compared, DelaySummary, Delays, HostVitals, Late, Lateness, NetworkFidelity,
    Proportion, RealWork, Worked,
};
use volary_engine::world::World;
use volary_engine::world::finalize::{Counters, RealTime};
use volary_netem::{Cause, ClassStats, LinkClass, Network, Stats};

use super::judge::{DELAY_PART, JobsMet, TASK_PART, ZERO_DELAY_PART, judge};
use crate::number;

/// Delays are treated as constant if their middle half is within this part of their median.
const CONSTANT: f64 = 0.2;
/// Share of the most frequent value above which a distribution is treated as stepped.
const STEP: f64 = 0.05;

/// The measurements of a run in real time.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// Emulated seconds per real second.
    pub speed: f64,
    /// Lateness and delays of all shards.
    pub gauge: &'a LatenessHistograms,
    /// Statistics of the emulated network.
    pub stats: &'a Stats,
    /// The configured network.
    pub network: &'a Network,
    /// The link classes, which may differ from `network`.
    pub classes: &'a [LinkClass],
    /// Median run time of copies, s; zero if none ran.
    pub median_copy_s: f64,
    /// Core time spent on copies, s.
    pub busy_s: f64,
    /// Vitals of the hosts, one entry per process.
    pub hosts: Vec<HostVitals>,
    /// Measurements of real cores, if copies burned any.
    pub cores: Option<RealWork>,
    /// Jobs that the run should have had.
    pub jobs: JobsMet,
}

impl JobsMet {
    /// The jobs of a run that ended at `now` for the reason `over`. Jobs that arrive shortly before a cut, within a
    /// second of real time and a tenth of the run, are not missing. If faults stop a client, no job is missing.
    fn of(world: &World, (accounts, over, now): (&Accounts, EndReason, Time), speed: f64) -> Self {
        let (jobs, faults) = (world.workload(), world.faults());
        let (layout, all) = (world.layout(), u64::from(jobs.chains()));
        let is_cut = matches!(over, EndReason::Until | EndReason::Interrupted | EndReason::Broken);
        let client = |client| layout.endpoint(layout.client(client));
        let is_stopped = (0..layout.schedulers()).map(client).any(|client| {
            let crashed = faults.crashes().iter().any(|crash| crash.who == client);
            crashed || !faults.pauses(client).is_empty()
        });
        let slack = Span::from_secs_f64(speed.min(0.1 * now.as_secs_f64()));
        let has_come = |chain: &u32| {
            let first = JobId(jobs.jobs_of(*chain).start);
            jobs.job(first).arrival + slack < now
        };
        let due = match is_cut {
            true => (0..jobs.chains()).filter(has_come).count() as u64,
            false => all,
        };
        let is_lost = faults.crashes().iter().any(|crash| crash.restart.is_none());
        Self {
            due,
            missing: if is_stopped { 0 } else { due.saturating_sub(accounts.jobs.submitted) },
            open: if is_cut || is_lost { 0 } else { accounts.jobs.unfinished },
        }
    }
}

impl Evidence<'_> {
    /// The certificate, with its verdict.
    pub fn certificate(self) -> Certificate {
        let gauge = self.gauge;
        let median_delay_s = gauge.asked.quantile_s(0.5);
        let late_beyond_s = if median_delay_s > 0.0 {
            DELAY_PART * median_delay_s
        } else {
            ZERO_DELAY_PART * self.median_copy_s
        };
        let of_copy = TASK_PART * self.median_copy_s;
        // Lateness is exact to a thousandth, so at least a thousandth of the busy time is taken as requested.
        let late_work_s = (gauge.work.mean_s() * gauge.work.len() as f64).min(0.999 * self.busy_s);
        // For real cores, the time of each copy follows from its slots.
        let core_s = match &self.cores {
            None => Compared { asked: self.busy_s - late_work_s, achieved: self.busy_s },
            Some(real) => Compared { asked: real.asked_s, achieved: real.achieved_s + late_work_s },
        };
        let least_loss = self.least_loss();
        let mut certificate = Certificate {
            speed: self.speed,
            median_delay_s,
            median_copy_s: self.median_copy_s,
            late_beyond_s,
            lateness: Lateness {
                deliveries: late(&gauge.deliveries, late_beyond_s),
                timers: late(&gauge.timers, of_copy),
                work: late(&gauge.work, of_copy),
                arrivals: late(&gauge.arrivals, 0.0),
            },
            network: self.network_fidelity(),
            core_s,
            hosts: self.hosts,
            cores: self.cores,
            ..Certificate::default()
        };
        judge(&mut certificate, &self.jobs, least_loss);
        certificate
    }

    fn network_fidelity(&self) -> NetworkFidelity {
        let gauge = self.gauge;
        let Stats { datagram, stream } = self.stats;
        let lost = self.hosts.iter().map(|host| host.datagrams_lost).sum();
        let alike = |probability: f64| (probability == 0.0 || self.classes.len() <= 1).then_some(probability);
        let heard = datagram.sent.saturating_sub(datagram.lost[Cause::Congestion as usize]);
        let delivered = datagram.delivered + stream.delivered;
        let waited_ns = datagram.queueing_ns as f64 + stream.queueing_ns as f64;
        let waited = waited_ns * 1e-9 / delivered.max(1) as f64;
        NetworkFidelity {
            delay: Delays {
                asked: summary(&gauge.asked),
                achieved: summary(&gauge.achieved),
                ks: is_continuous(&gauge.asked).then(|| gauge.asked.distance(&gauge.achieved)),
            },
            datagram: ClassFidelity {
                sent: datagram.sent,
                loss: losses(datagram, self.asked_loss(Class::Datagram), lost),
                duplicate: share(
                    alike(self.network.duplicate.get()),
                    datagram.duplicated,
                    datagram.delivered,
                ),
                reorder: share(alike(self.network.reorder.get()), datagram.reordered, heard),
            },
            stream: ClassFidelity {
                sent: stream.sent,
                loss: losses(stream, self.asked_loss(Class::Stream), 0),
                ..ClassFidelity::default()
            },
            link_wait_s: (waited > 0.0)
                .then(|| Compared { asked: waited, achieved: waited + gauge.deliveries.mean_s() }),
        }
    }

    /// The loss probability of a transmission of a message class on a link.
    fn link_loss(&self, link: &LinkClass, of: Class) -> f64 {
        match link.loss {
            Some(loss) => loss.of(of),
            None if link.local => 0.0,
            None => self.network.loss.of(of),
        }
    }

    /// The smallest nonzero loss probability of a link; zero if no link loses anything. If one link is lossy, policies
    /// repair losses on all links.
    fn least_loss(&self) -> f64 {
        let between = self.classes.iter().filter(|link| !link.local);
        let losses = between.map(|link| self.link_loss(link, Class::Datagram)).filter(|loss| *loss > 0.0);
        let otherwise = || self.asked_loss(Class::Datagram).unwrap_or(0.0);
        losses.min_by(f64::total_cmp).unwrap_or_else(otherwise)
    }

    /// The loss probability of a message class; `None` if links differ.
    fn asked_loss(&self, of: Class) -> Option<f64> {
        let mut losses = self.classes.iter().map(|link| self.link_loss(link, of));
        let first = losses.next().unwrap_or_else(|| self.network.loss.of(of));
        losses.all(|loss| loss == first).then_some(first)
    }
}

/// The measurements of a real run of `world`, with its certificate. `ended` is the accounts of the run, the reason of
/// its end and the emulated time.
pub fn real_time(
    world: &World,
    speed: f64,
    counters: &Counters,
    gauge: &LatenessHistograms,
    hosts: Vec<HostVitals>,
    cores: Option<Worked>,
    ended: (&Accounts, EndReason, Time),
) -> RealTime {
    let asleep = hosts.iter().filter_map(|host| {
        let why = host.awake_refused.as_ref()?;
        Some(format!("run.awake: the processors of host {} could not be kept awake: {why}", host.name))
    });
    let asleep: Vec<String> = asleep.collect();
    let evidence = Evidence {
        speed,
        gauge,
        stats: &counters.network,
        network: &world.point().resolved.network,
        classes: world.machines().links.classes(),
        median_copy_s: ended.0.median_copy(),
        busy_s: ended.0.copies.busy_s,
        hosts,
        cores: cores.as_ref().map(|cores| cores.work.clone()),
        jobs: JobsMet::of(world, ended, speed),
    };
    let certificate = evidence.certificate();
    let notes = cores.iter().filter_map(cut).chain(asleep).collect();
    RealTime { certificate, cores: cores.map_or_else(Vec::new, |cores| cores.stretches), notes }
}

/// The text about the end of the record of real cores, if the record ends early.
fn cut(worked: &Worked) -> Option<String> {
    let last = worked.stretches.iter().map(|stretch| stretch.end).fold(0.0, f64::max);
    worked.cut.then(|| {
        format!(
            "cores.parquet has only the first stretches of each core, until {} at most",
            number::seconds(last)
        )
    })
}

/// Whether the distance between two distributions is meaningful: for a constant or stepped distribution, any lateness
/// gives the maximal distance.
fn is_continuous(delays: &SpanHistogram) -> bool {
    let at = |q| delays.quantile_s(q);
    at(0.75) - at(0.25) > CONSTANT * at(0.5) && delays.most_frequent() <= STEP
}

fn late(spread: &SpanHistogram, beyond_s: f64) -> Late {
    Late {
        count: spread.len(),
        mean_s: spread.mean_s(),
        p50_s: spread.quantile_s(0.5),
        p99_s: spread.quantile_s(0.99),
        max_s: spread.max_s(),
        late_share: spread.share_above(Span::from_secs_f64(beyond_s)),
    }
}

fn summary(spread: &SpanHistogram) -> DelaySummary {
    DelaySummary {
        count: spread.len(),
        mean_s: spread.mean_s(),
        p50_s: spread.quantile_s(0.5),
        p99_s: spread.quantile_s(0.99),
        max_s: spread.max_s(),
    }
}

/// The transmissions that reached the loss distribution, and those that the distribution or the real network lost.
fn losses(stats: &ClassStats, asked: Option<f64>, really: u64) -> Proportion {
    // Faults and full buffers precede the loss distribution; the extra loss of a degraded link follows it.
    let first = [Cause::Congestion, Cause::Partition, Cause::Crash].map(|cause| stats.lost[cause as usize]);
    let trials = (stats.sent + stats.retransmissions).saturating_sub(first.iter().sum());
    share(asked, stats.lost[Cause::Loss as usize] + really, trials)
}

fn share(asked: Option<f64>, came_true: u64, trials: u64) -> Proportion {
    Proportion { asked, achieved: (trials > 0).then(|| came_true as f64 / trials as f64), trials }
}

/// The serialized form of a histogram of spans: counts by value in nanoseconds of emulated time, to three digits.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Buckets(Vec<(u64, u64)>);

/// A histogram of any number of spans; quantiles are exact to three digits.
#[derive(Clone, Debug)]
pub struct SpanHistogram(Histogram<u64>);

impl Default for SpanHistogram {
    fn default() -> Self {
        Self(Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits are supported")))
    }
}

impl SpanHistogram {
    /// Counts one span.
    #[inline]
    pub fn add(&mut self, span: Span) {
        // The histogram grows as needed; u64 nanoseconds hold any span.
        let _ = self.0.record(span.0);
    }

    /// Adds the measurements of another shard.
    pub fn merge(&mut self, buckets: &Buckets) {
        for &(value, count) in &buckets.0 {
            let _ = self.0.record_n(value, count);
        }
    }

    /// The counts, for serialization.
    pub fn buckets(&self) -> Buckets {
        Buckets(self.0.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect())
    }

    /// Number of spans counted.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether no span was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mean in emulated seconds; zero if empty.
    pub fn mean_s(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.0.mean() * 1e-9 }
    }

    /// A quantile in emulated seconds; zero if empty.
    pub fn quantile_s(&self, q: f64) -> f64 {
        if self.is_empty() { 0.0 } else { self.0.value_at_quantile(q) as f64 * 1e-9 }
    }

    /// The maximum in emulated seconds; zero if empty.
    pub fn max_s(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.0.max() as f64 * 1e-9 }
    }

    /// The share of spans longer than `span`.
    pub fn share_above(&self, span: Span) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let up_to = self.0.count_between(0, span.0);
        1.0 - up_to as f64 / self.len() as f64
    }

    /// The share of the most frequent value, to three digits; zero if empty.
    pub fn most_frequent(&self) -> f64 {
        let most = self.0.iter_recorded().map(|value| value.count_at_value()).max().unwrap_or(0);
        most as f64 / self.len().max(1) as f64
    }

    /// The Kolmogorov-Smirnov distance: the largest difference between this distribution function and the other one.
    /// Zero if one of them is empty.
    pub fn distance(&self, other: &Self) -> f64 {
        if self.is_empty() || other.is_empty() {
            return 0.0;
        }
        let steps = |spread: &Self, sign: f64| {
            let weight = sign / spread.len() as f64;
            let step = |v: hdrhistogram::iterators::IterationValue<u64>| {
                (v.value_iterated_to(), weight * v.count_at_value() as f64)
            };
            spread.0.iter_recorded().map(step).collect::<Vec<_>>()
        };
        let mut all = steps(self, 1.0);
        all.extend(steps(other, -1.0));
        all.sort_unstable_by_key(|&(value, _)| value);
        let (mut apart, mut most) = (0.0f64, 0.0f64);
        for same in all.chunk_by(|a, b| a.0 == b.0) {
            apart += same.iter().map(|(_, step)| step).sum::<f64>();
            most = most.max(apart.abs());
        }
        most
    }
}

macro_rules! gauge {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// Lateness and delays of one shard, or of all shards together.
        #[derive(Clone, Default, Debug)]
        pub struct LatenessHistograms {
            $($(#[$doc])* pub $field: SpanHistogram,)*
        }

        /// The serialized form of a [`LatenessHistograms`].
        #[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
        pub struct Reading {
            $($field: Buckets,)*
        }

        impl Reading {
            /// The counts of all histograms.
            pub fn counts(&self) -> impl Iterator<Item = u64> + '_ {
                [$(&self.$field,)*].into_iter().flat_map(|buckets| buckets.0.iter().map(|(_, count)| *count))
            }
        }

        impl LatenessHistograms {
            /// The measurements, for serialization.
            pub fn reading(&self) -> Reading {
                Reading { $($field: self.$field.buckets(),)* }
            }

            /// Adds the measurements of another shard.
            pub fn merge(&mut self, reading: &Reading) {
                $(self.$field.merge(&reading.$field);)*
            }
        }
    };
}

gauge! {
    /// Lateness of messages when their actors process them.
    deliveries,
    /// Lateness of timers.
    timers,
    /// Lateness of the notice that a copy has ended.
    work,
    /// Lateness of messages from other shards that arrived after they were due.
    arrivals,
    /// Configured delays of messages.
    asked,
    /// Achieved delays of messages.
    achieved,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_round_trip_and_merge() {
        let mut one = LatenessHistograms::default();
        (1..=1000).for_each(|us| one.deliveries.add(Span(us * 1000)));
        let mut sum = LatenessHistograms::default();
        sum.merge(&one.reading());
        sum.merge(&one.reading());
        assert_eq!(sum.deliveries.len(), 2000);
        assert!((sum.deliveries.quantile_s(0.5) - 500e-6).abs() < 2e-6);
        assert!((sum.deliveries.share_above(Span(900_000)) - 0.1).abs() < 0.002);
        assert!(sum.timers.is_empty() && sum.timers.max_s() == 0.0);
    }

    #[test]
    fn the_distance_is_the_kolmogorov_smirnov_statistic() {
        let (mut a, mut b) = (SpanHistogram::default(), SpanHistogram::default());
        (0..1000).for_each(|k| a.add(Span(k * 1000)));
        (0..1000).for_each(|k| b.add(Span((k + 250) * 1000)));
        assert!((a.distance(&b) - 0.25).abs() < 0.003, "{}", a.distance(&b));
        assert!(a.distance(&a) < 1e-9 && a.distance(&SpanHistogram::default()) == 0.0);
    }
}
