//! The certificate of a real run: requested against achieved behaviour, and a verdict.
//!
//! Times are emulated seconds unless an item says otherwise.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::vitals::HostVitals;
use super::work::RealWork;

/// Departures of a run from the requested behaviour, and a verdict on the validity of its results.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Certificate {
    /// Verdict on the departures.
    pub verdict: Standing,
    /// Reasons for a degraded verdict; empty for a faithful run.
    pub reasons: Vec<Reason>,
    /// Emulated seconds per real second.
    pub speed: f64,
    /// Median of the requested message delays.
    pub median_delay_s: f64,
    /// Median run time of copies.
    pub median_copy_s: f64,
    /// Lateness beyond which a delivery counts as late: a tenth of the median delay, or a hundredth of the median copy
    /// if messages take no time.
    pub late_beyond_s: f64,
    /// Lateness of deliveries, timers and completions.
    pub lateness: Lateness,
    /// Requested and achieved behaviour of the network.
    pub network: NetworkFidelity,
    /// Requested and achieved core time of copies. They differ because ends are noticed late and, on real cores,
    /// because the slowdown of a core is not exact. Real cores count only copies that ran to their end.
    pub core_s: Compared,
    /// The real cores; null where copies are timed.
    pub cores: Option<RealWork>,
    /// Measurements of the hosts.
    pub hosts: Vec<HostVitals>,
}

/// The verdict on a run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// No departure exceeds its threshold.
    #[default]
    Faithful,
    /// Some departure exceeds its threshold.
    Degraded,
}

impl Certificate {
    /// Whether some departure exceeds its threshold.
    pub fn is_degraded(&self) -> bool {
        self.verdict == Standing::Degraded
    }

    /// The distinct remedies. If several remedies advise a speed, only the lowest speed is kept, and comes first.
    pub fn remedies(&self) -> Vec<&str> {
        let slower = self.reasons.iter().filter_map(|reason| Some((reason.speed?, reason.remedy.as_str())));
        let slowest = slower.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, remedy)| remedy);
        let mut remedies: Vec<&str> = slowest.into_iter().collect();
        for reason in self.reasons.iter().filter(|reason| reason.speed.is_none()) {
            if !remedies.contains(&reason.remedy.as_str()) {
                remedies.push(&reason.remedy);
            }
        }
        remedies
    }

    /// 99th percentile of the lateness of a bare timer on the worst host, in emulated seconds.
    pub fn timer_p99_s(&self) -> Option<f64> {
        let timers = self.hosts.iter().filter_map(|host| host.timer);
        timers.map(|timer| timer.p99_s * self.speed).max_by(f64::total_cmp)
    }

    /// The largest bound on a host's clock error, in emulated seconds.
    pub fn clock_bound_s(&self) -> f64 {
        self.hosts.iter().map(|host| host.clock.bound_s * self.speed).fold(0.0, f64::max)
    }
}

/// A departure that exceeds its threshold.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// The kind of departure.
    pub what: Departure,
    /// The host, if the departure concerns one host.
    pub host: Option<String>,
    /// The measured value.
    pub measured: f64,
    /// The maximum value, in the same unit.
    pub threshold: f64,
    /// Both values in words.
    pub says: String,
    /// Advice that would remove the departure.
    pub remedy: String,
    /// The speed that the remedy advises, if any.
    pub speed: Option<f64>,
}

/// Kinds of departures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Departure {
    /// Jobs that did not arrive or did not end.
    MissingJobs,
    /// Share of late deliveries.
    LateDeliveries,
    /// Share of late timers.
    LateTimers,
    /// Share of copies whose ends were noticed late.
    LateWork,
    /// Mean delay above the requested mean.
    LongerDelays,
    /// Distance between the distributions of requested and achieved delays.
    DistortedDelays,
    /// Core time of copies above the requested time.
    SlowCores,
    /// Slowdown of real cores that differs from the requested slowdown.
    Slowdown,
    /// Slowdown of a real core that was meant to be healthy.
    UnhealthyCore,
    /// Busy share of a host's processors.
    BusyHost,
    /// Processor time that a host's hypervisor gave to other machines.
    Steal,
    /// Messages that the real network lost.
    LostDatagrams,
    /// Bound on a host's clock error.
    ClockBound,
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MissingJobs => "jobs that did not arrive or end",
            Self::LateDeliveries => "late deliveries",
            Self::LateTimers => "late timers",
            Self::LateWork => "work that ends late",
            Self::LongerDelays => "longer delays",
            Self::DistortedDelays => "distorted delays",
            Self::SlowCores => "slower cores",
            Self::Slowdown => "cores with another slowdown than requested",
            Self::UnhealthyCore => "healthy cores that are disturbed",
            Self::BusyHost => "a busy processor",
            Self::Steal => "stolen processor time",
            Self::LostDatagrams => "datagrams lost by the real network",
            Self::ClockBound => "uncertain clocks",
        })
    }
}

/// Lateness by kind of event.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Lateness {
    /// Lateness of deliveries to actors; a delivery counts as late beyond `late_beyond_s`.
    pub deliveries: Late,
    /// Timers that fired after they were due; late beyond a twentieth of the median copy.
    pub timers: Late,
    /// Ends of copies noticed after they were due; late beyond a twentieth of the median copy.
    pub work: Late,
    /// Messages from another shard or host that arrived after they were due; any lateness counts.
    pub arrivals: Late,
}

/// A distribution of lateness.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Late {
    /// Number of measurements.
    pub count: u64,
    /// Mean lateness.
    pub mean_s: f64,
    /// Median lateness.
    pub p50_s: f64,
    /// 99th percentile of lateness.
    pub p99_s: f64,
    /// Maximum lateness.
    pub max_s: f64,
    /// Share of measurements that count as late.
    pub late_share: f64,
}

/// Requested and achieved behaviour of the network.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NetworkFidelity {
    /// Delays of delivered messages, including stream retransmissions and waits at links.
    pub delay: Delays,
    /// Behaviour of datagrams.
    pub datagram: ClassFidelity,
    /// Behaviour of stream messages.
    pub stream: ClassFidelity,
    /// Mean wait and transmission time at links with a rate; null without one.
    pub link_wait_s: Option<Compared>,
}

/// Requested and achieved delays.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Delays {
    /// Delays that the emulated network drew.
    pub asked: DelaySummary,
    /// Delays that the actors observed.
    pub achieved: DelaySummary,
    /// Largest distance between the two distribution functions (Kolmogorov, Smirnov); null where the distribution is
    /// nearly constant or has steps, because any lateness would then give the maximum distance.
    pub ks: Option<f64>,
}

/// A distribution of delays.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DelaySummary {
    /// Number of delays.
    pub count: u64,
    /// Mean delay.
    pub mean_s: f64,
    /// Median delay.
    pub p50_s: f64,
    /// 99th percentile of delays.
    pub p99_s: f64,
    /// Maximum delay.
    pub max_s: f64,
}

/// Requested and achieved behaviour of the messages of one class.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClassFidelity {
    /// Number of messages sent.
    pub sent: u64,
    /// Share of transmissions lost to the distribution and to the real network; losses to faults and full buffers are
    /// excluded.
    pub loss: Proportion,
    /// Share of messages that arrive twice; datagrams only.
    pub duplicate: Proportion,
    /// Share of messages held back; datagrams only.
    pub reorder: Proportion,
}

/// A probability and its achieved frequency.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Share")]
pub struct Proportion {
    /// The probability; null if it differs between links.
    pub asked: Option<f64>,
    /// The achieved share; null without trials.
    pub achieved: Option<f64>,
    /// Number of trials.
    pub trials: u64,
}

/// A requested and an achieved quantity.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Compared {
    /// Requested quantity.
    pub asked: f64,
    /// Achieved quantity.
    pub achieved: f64,
}

impl Compared {
    /// Relative excess of the achieved over the requested quantity; zero if the requested quantity is zero.
    pub fn excess(&self) -> f64 {
        if self.asked > 0.0 { self.achieved / self.asked - 1.0 } else { 0.0 }
    }
}
