//! What a real run says of itself in its results: asked against achieved, and a verdict.
//!
//! Times are emulated seconds unless an item says otherwise.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::vitals::HostVitals;
use super::work::RealWork;

/// How far a run departed from what was asked, and whether its results can be believed.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Certificate {
    /// Whether the departures are small enough.
    pub verdict: Standing,
    /// Why not; empty for a faithful run.
    pub reasons: Vec<Reason>,
    /// Emulated seconds per real second.
    pub speed: f64,
    /// Median of the delays that messages were to have.
    pub median_delay_s: f64,
    /// Median run time of copies.
    pub median_copy_s: f64,
    /// How late a delivery may be before it counts as late: a tenth of the median delay, or a hundredth of the
    /// median copy if messages take no time.
    pub late_beyond_s: f64,
    /// How late things happened.
    pub lateness: Lateness,
    /// What the network was to do, and did.
    pub network: NetworkFidelity,
    /// Core time that copies were to take, and took: their ends were noticed late. Where copies burn real cores, of
    /// those that ended by themselves: the cores were not exactly as slow as asked, either.
    pub core_s: Compared,
    /// The real cores; null where copies are timed.
    pub cores: Option<RealWork>,
    /// The hosts.
    pub hosts: Vec<HostVitals>,
}

/// The verdict on a run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It did what was asked, within the thresholds.
    #[default]
    Faithful,
    /// It did not.
    Degraded,
}

impl Certificate {
    /// Whether the run did not do what was asked.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.verdict == Standing::Degraded
    }

    /// Every remedy once; of several speeds the lowest, which comes first.
    #[must_use]
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

    /// 99th percentile of what a bare timer achieved on the worst host, in emulated seconds.
    #[must_use]
    pub fn timer_p99_s(&self) -> Option<f64> {
        let timers = self.hosts.iter().filter_map(|host| host.timer);
        timers.map(|timer| timer.p99_s * self.speed).max_by(f64::total_cmp)
    }

    /// The largest bound on a host's clock error, in emulated seconds.
    #[must_use]
    pub fn clock_bound_s(&self) -> f64 {
        self.hosts.iter().map(|host| host.clock.bound_s * self.speed).fold(0.0, f64::max)
    }
}

/// One thing that went too far.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// What.
    pub what: Departure,
    /// Where, if it concerns a host.
    pub host: Option<String>,
    /// The number that was measured.
    pub measured: f64,
    /// What it may be at most, in the same unit.
    pub threshold: f64,
    /// Both in words.
    pub says: String,
    /// What to do about it.
    pub remedy: String,
    /// The speed that the remedy advises, if it does.
    pub speed: Option<f64>,
}

/// What can go too far.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Departure {
    /// Share of late deliveries.
    LateDeliveries,
    /// Share of timers that were late.
    LateTimers,
    /// Share of copies whose ends were noticed late.
    LateWork,
    /// Mean delay against the mean that was asked.
    LongerDelays,
    /// Distance between the laws of delays.
    DistortedDelays,
    /// Core time of copies against what they were to take.
    SlowCores,
    /// Slowdown of real cores against what was asked.
    Slowdown,
    /// Slowdown of a real core of which none was asked.
    UnhealthyCore,
    /// Busy share of a host.
    BusyHost,
    /// Processor time that a host's hypervisor kept.
    Steal,
    /// Messages that the real network lost.
    LostDatagrams,
    /// Bound on a host's clock error.
    ClockBound,
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LateDeliveries => "late deliveries",
            Self::LateTimers => "late timers",
            Self::LateWork => "work that ends late",
            Self::LongerDelays => "longer delays",
            Self::DistortedDelays => "distorted delays",
            Self::SlowCores => "slower cores",
            Self::Slowdown => "cores slowed otherwise than asked",
            Self::UnhealthyCore => "healthy cores that are not left alone",
            Self::BusyHost => "a busy processor",
            Self::Steal => "stolen processor time",
            Self::LostDatagrams => "datagrams lost by the real network",
            Self::ClockBound => "uncertain clocks",
        })
    }
}

/// How late things happened, by kind.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Lateness {
    /// Messages handed to their actors, after they were due; late beyond `late_beyond_s`.
    pub deliveries: Late,
    /// Timers; late beyond a twentieth of the median copy.
    pub timers: Late,
    /// Ends of copies; late beyond a twentieth of the median copy.
    pub work: Late,
    /// Messages that came in from another shard or host when they were due already; late at all.
    pub arrivals: Late,
}

/// A distribution of lateness.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Late {
    /// How many were measured.
    pub count: u64,
    /// Mean.
    pub mean_s: f64,
    /// Median.
    pub p50_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// Maximum.
    pub max_s: f64,
    /// Share that counts as late.
    pub late_share: f64,
}

/// What the network was to do, and did.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NetworkFidelity {
    /// Delays of messages that arrived, repetitions of streams and waits at links included.
    pub delay: Delays,
    /// Datagrams.
    pub datagram: ClassFidelity,
    /// Stream messages.
    pub stream: ClassFidelity,
    /// Mean wait and transmission time at links with a rate; null without one.
    pub link_wait_s: Option<Compared>,
}

/// Delays as they were asked and as they were.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Delays {
    /// What the emulated network decided.
    pub asked: DelaySummary,
    /// What the actors saw.
    pub achieved: DelaySummary,
    /// Largest distance between the two distribution functions (Kolmogorov, Smirnov); null where the law is
    /// nearly constant or has steps, because any lateness is then as far off as can be.
    pub ks: Option<f64>,
}

/// A distribution of delays.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DelaySummary {
    /// How many.
    pub count: u64,
    /// Mean.
    pub mean_s: f64,
    /// Median.
    pub p50_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// Maximum.
    pub max_s: f64,
}

/// What was asked of the messages of one class, and what became of them.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClassFidelity {
    /// Messages sent.
    pub sent: u64,
    /// Share of transmissions lost, by the law and by the real network; faults and full buffers left out.
    pub loss: Share,
    /// Share of messages that arrive twice; datagrams only.
    pub duplicate: Share,
    /// Share of messages held back; datagrams only.
    pub reorder: Share,
}

/// A probability, and how often it came true.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Share {
    /// The probability; null if it differs between links.
    pub asked: Option<f64>,
    /// The share; null if there was nothing to count.
    pub achieved: Option<f64>,
    /// Of how many.
    pub trials: u64,
}

/// A quantity as it was asked, and as it was.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Compared {
    /// Asked.
    pub asked: f64,
    /// Achieved.
    pub achieved: f64,
}

impl Compared {
    /// By which share more was achieved than asked; zero if nothing was asked.
    #[must_use]
    pub fn excess(&self) -> f64 {
        if self.asked > 0.0 { self.achieved / self.asked - 1.0 } else { 0.0 }
    }
}
