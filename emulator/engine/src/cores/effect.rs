//! The effect of interference on cores over a length of time.

use super::profile::Burst;

/// The effect of interference on cores.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effect {
    /// Share of the time in which the cores were degraded.
    pub degraded: f64,
    /// Work that the cores could do, relative to healthy cores.
    pub throughput: f64,
}

impl Effect {
    /// The effect of bursts on cores, over `time` seconds of all cores together.
    pub(super) fn of(bursts: impl Iterator<Item = Burst>, time: f64) -> Self {
        let (mut degraded, mut lost) = (0.0, 0.0);
        for burst in bursts {
            let length = burst.length().as_secs_f64();
            degraded += length;
            lost += length * (1.0 - 1.0 / burst.slowdown);
        }
        Self { degraded: degraded / time, throughput: 1.0 - lost / time }
    }
}
