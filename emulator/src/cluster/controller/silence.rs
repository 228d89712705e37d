//! The silence of each host: how long it has been connected and has reported nothing.
//!
//! A host in a cell reports twenty times a second, whether or not anything happens. One that is stopped or cut off is
//! given up by its lease; one whose machine answers and that does not report would hold the cell for ever.

use std::time::{Duration, Instant};

/// Silence after which a host is given up, while its machine answers.
pub(super) const REPORT_LIMIT: Duration = Duration::from_secs(20);
/// Interval of looks. A longer pause, in which this process was stopped itself, counts as one interval.
const LOOK: Duration = Duration::from_secs(1);

/// The silence of each host.
#[derive(Debug)]
pub(super) struct Silence {
    /// UDP datagrams received from each host at the last look, and its silence.
    hosts: Vec<(u64, Duration)>,
    looked: Instant,
}

impl Silence {
    pub(super) fn new(hosts: usize, now: Instant) -> Self {
        Self { hosts: vec![(0, Duration::ZERO); hosts], looked: now }
    }

    /// A host has reported.
    pub(super) fn reported(&mut self, host: usize) {
        self.hosts[host].1 = Duration::ZERO;
    }

    /// A host that has been silent for too long, if a look is due. `received` says how many UDP datagrams each host has
    /// sent, and nothing of those that were lost.
    pub(super) fn look(
        &mut self,
        now: Instant,
        received: impl Iterator<Item = Option<u64>>,
    ) -> Option<usize> {
        if now.saturating_duration_since(self.looked) < LOOK {
            return None;
        }
        self.looked = now;
        for ((before, silence), received) in self.hosts.iter_mut().zip(received) {
            if let Some(received) = received.filter(|received| received != before) {
                (*before, *silence) = (received, *silence + LOOK);
            }
        }
        self.hosts.iter().position(|(_, silence)| *silence > REPORT_LIMIT)
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
            silence.reported(0);
            let packets = u64::from(i);
            // The second has stopped, the third was lost.
            silence.look(begin + LOOK * i, [Some(packets), Some(1), None, Some(packets)].into_iter())
        };
        for i in 1..looks {
            assert_eq!(look(&mut silence, i), None, "after {i} s");
        }
        assert_eq!(look(&mut silence, looks), Some(3));
    }

    #[test]
    fn a_controller_that_was_stopped_itself_blames_nobody() {
        let begin = Instant::now();
        let mut silence = Silence::new(1, begin);
        assert_eq!(silence.look(begin + 10 * REPORT_LIMIT, [Some(9)].into_iter()), None);
        assert_eq!(silence.look(begin + 10 * REPORT_LIMIT, [Some(10)].into_iter()), None, "no look is due");
    }
}
