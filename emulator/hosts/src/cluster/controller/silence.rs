//! The silence of each host: the time that it has been connected without a report.
//!
//! A host in a run reports twenty times a second, whether or not anything happens. One that is stopped or cut off is
//! given up by its lease; one whose machine answers and that does not report would hold the run for ever.

use std::time::{Duration, Instant};

use volary_actors::base::Time;

/// Silence after which a host is given up, while its machine answers.
pub(super) const REPORT_LIMIT: Duration = Duration::from_secs(20);
/// Interval of checks. A longer pause, in which this process was stopped itself, counts as one interval.
const LOOK: Duration = Duration::from_secs(1);

/// The silence of each host.
#[derive(Debug)]
pub(super) struct Silence {
    hosts: Vec<SilentHost>,
    looked: Instant,
}

#[derive(Clone, Default, Debug)]
struct SilentHost {
    /// UDP datagrams received from it by the last check.
    received: u64,
    /// The emulated time up to which it has reported.
    mark: Time,
    silence: Duration,
}

impl Silence {
    pub(super) fn new(hosts: usize, now: Instant) -> Self {
        Self { hosts: vec![SilentHost::default(); hosts], looked: now }
    }

    /// A host has reported up to `mark`. A report that goes no further than the one before does not count.
    pub(super) fn reported(&mut self, host: usize, mark: Time) {
        let host = &mut self.hosts[host];
        if mark > host.mark {
            (host.mark, host.silence) = (mark, Duration::ZERO);
        }
    }

    /// A host that has been silent for too long, if a check is due; its silence begins again. `received` is the number
    /// of UDP datagrams that came from each host, `None` for a lost host.
    pub(super) fn look(
        &mut self,
        now: Instant,
        received: impl Iterator<Item = Option<u64>>,
    ) -> Option<usize> {
        if now.saturating_duration_since(self.looked) < LOOK {
            return None;
        }
        self.looked = now;
        for (host, received) in self.hosts.iter_mut().zip(received) {
            if let Some(received) = received.filter(|received| *received != host.received) {
                (host.received, host.silence) = (received, host.silence + LOOK);
            }
        }
        let silent = self.hosts.iter().position(|host| host.silence > REPORT_LIMIT)?;
        self.hosts[silent].silence = Duration::ZERO;
        Some(silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_whose_machine_answers_is_given_up_for_its_silence() {
        let begin = Instant::now();
        let (looks, mut silence) = (REPORT_LIMIT.as_secs() as u32 + 1, Silence::new(4, begin));
        let look = |silence: &mut Silence, i: u32| {
            silence.reported(0, Time(i.into()));
            silence.reported(3, Time(7));
            let packets = u64::from(i);
            // The second has stopped, the third was lost, and the last one reports the same again and again.
            silence.look(begin + LOOK * i, [Some(packets), Some(1), None, Some(packets)].into_iter())
        };
        for i in 1..looks {
            assert_eq!(look(&mut silence, i), None, "after {i} s");
        }
        let found = [looks, looks + 1, looks + 2].map(|i| look(&mut silence, i));
        assert_eq!(found, [Some(3), None, None]);
    }

    #[test]
    fn a_controller_that_was_stopped_itself_gives_up_no_host() {
        let begin = Instant::now();
        let mut silence = Silence::new(1, begin);
        assert_eq!(silence.look(begin + 10 * REPORT_LIMIT, [Some(9)].into_iter()), None);
        assert_eq!(silence.look(begin + 10 * REPORT_LIMIT, [Some(10)].into_iter()), None, "no look is due");
    }
}
