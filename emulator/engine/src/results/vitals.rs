//! What a host of a real run tells of itself: enough to say why a run departed from what was asked.

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
    /// Busy share of all processors of the machine, whoever kept them busy; niced work is left out, because it
    /// yields. Null where the system does not say.
    pub machine_share: Option<f64>,
    /// Share of processor time that the hypervisor gave to others. Null where the system does not say.
    pub steal_share: Option<f64>,
    /// Peak resident memory of the process so far, bytes.
    pub peak_rss_bytes: u64,
    /// How often a thread of the process was made to wait for another one.
    pub involuntary_switches: u64,
    /// What a bare timer achieved on this host at the same time. Null if it never fired.
    pub timer: Option<TimerProbe>,
    /// Messages that this host was to send other hosts as datagrams.
    pub datagrams_sent: u64,
    /// Of those, messages that the real network lost, or did not take fast enough.
    pub datagrams_lost: u64,
    /// To whom they were lost; hosts to which nothing was lost are left out.
    pub lost_to: Vec<PathLoss>,
    /// Messages from other hosts that came in after they were due.
    pub parcels_late: u64,
    /// How well it knows the common clock.
    pub clock: ClockError,
}

impl HostVitals {
    /// How busy the host was at least: with the run, or with anything that does not yield to it.
    #[must_use]
    pub fn busy(&self) -> f64 {
        self.machine_share.map_or(self.cpu_share, |all| all.max(self.cpu_share))
    }
}

/// Messages from one host to another that the real network lost.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PathLoss {
    /// The host they were for.
    pub to: String,
    /// Messages sent there as datagrams.
    pub sent: u64,
    /// Of those, messages that were lost.
    pub lost: u64,
}

/// How late a timer fired that nothing depended on: what the machine's timers allow. Real time.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TimerProbe {
    /// How often it fired.
    pub count: u64,
    /// Median, s.
    pub p50_s: f64,
    /// 99th percentile, s.
    pub p99_s: f64,
    /// Maximum, s.
    pub max_s: f64,
}

/// A host's clock against the common one. All zero in one process.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClockError {
    /// Offset of its clock, which is corrected for, s.
    pub offset_s: f64,
    /// What the corrected clock is wrong by at most, s of real time.
    pub bound_s: f64,
    /// How much faster its clock runs, in parts per million.
    pub drift_ppm: f64,
}
