//! Vitals of a host in a real run: measurements that explain the departures of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One process that took part in a run, and the machine it ran on, from the common start to the end.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostVitals {
    /// The host's name; `local` if there is only one.
    pub name: String,
    /// Real time of the run, s.
    pub wall_s: f64,
    /// CPU time of the process, s.
    pub cpu_s: f64,
    /// Processors that the process may use.
    pub cores: u32,
    /// CPU time of the process over wall time × processors.
    pub cpu_share: f64,
    /// Busy share of all processors of the machine. Other processes and the time that the hypervisor took are included;
    /// niced work is excluded, because it yields. Null where the system does not report it.
    pub machine_share: Option<f64>,
    /// Share of processor time that the hypervisor gave to other machines. Null where the system does not report it.
    pub steal_share: Option<f64>,
    /// Peak resident memory of the process so far, bytes.
    pub peak_rss_bytes: u64,
    /// Number of times that a thread of the process was preempted.
    pub involuntary_switches: u64,
    /// Lateness of a bare timer on this host during the run. Null if it never fired.
    pub timer: Option<TimerProbe>,
    /// Messages that this host had to send to other hosts as datagrams.
    pub datagrams_sent: u64,
    /// Number of datagrams that the real network lost, or did not accept fast enough.
    pub datagrams_lost: u64,
    /// Losses by receiving host; hosts without losses are omitted.
    pub lost_to: Vec<PathLoss>,
    /// Messages from other hosts that arrived after they were due.
    pub parcels_late: u64,
    /// Error of the host's view of the common clock.
    pub clock: ClockError,
    /// Whether the host's processors were kept from sleeping; null if `run.awake` did not ask for it.
    pub awake: Option<bool>,
    /// Reason why the processors could not be kept from sleeping.
    pub awake_refused: Option<String>,
}

impl HostVitals {
    /// Lower bound of the host's load, from the run and from other work that does not yield to it.
    pub fn busy(&self) -> f64 {
        self.machine_share.map_or(self.cpu_share, |all| all.max(self.cpu_share))
    }
}

/// Messages from one host to another that the real network lost.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PathLoss {
    /// The receiving host.
    pub to: String,
    /// Number of datagrams sent to the receiving host.
    pub sent: u64,
    /// Number of sent datagrams that were lost.
    pub lost: u64,
}

/// Lateness of a timer on which nothing depends, in real time: the precision of the machine's timers.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TimerProbe {
    /// Number of firings.
    pub count: u64,
    /// Median lateness, s.
    pub p50_s: f64,
    /// 99th percentile of lateness, s.
    pub p99_s: f64,
    /// Maximum lateness, s.
    pub max_s: f64,
}

/// A host's clock relative to the common clock. All fields are zero in one process.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClockError {
    /// Offset of the host's clock, by which times are corrected, s.
    pub offset_s: f64,
    /// Maximum error of the corrected clock, s of real time.
    pub bound_s: f64,
    /// Drift: excess of the rate of the host's clock, in parts per million.
    pub drift_ppm: f64,
}
