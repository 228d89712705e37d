//! Counters of a shard in the measured window: their values at its end minus those at its start.

use volary_actors::base::Time;

use super::{Observer, Shard, WindowTally};
use crate::handling::RoleLoad;

impl<O: Observer> Shard<'_, O> {
    /// Keeps the counters at the bounds that have passed, before the first event after them.
    #[cold]
    pub(super) fn pass_bounds(&mut self) {
        while self.bounds.next <= self.now && self.bounds.next < Time::MAX {
            let at = self.bounds.next;
            let tally = Some(Box::new(self.tally(at)));
            if self.bounds.begin.is_none() {
                // Maxima cannot be subtracted, so the loads of actors are counted from here on.
                self.servers.iter_mut().for_each(|servers| servers.reset(at));
                (self.bounds.begin, self.bounds.next) = (tally, self.bounds.window.until);
            } else {
                (self.bounds.end, self.bounds.next) = (tally, Time::MAX);
            }
        }
    }

    /// The counters until `at`.
    fn tally(&self, at: Time) -> WindowTally {
        WindowTally {
            traffic: self.traffic.clone(),
            bytes: self.parts.fabric.stats().bytes(),
            loads: self
                .servers
                .as_ref()
                .map_or_else(Vec::new, |servers| servers.loads(at, self.parts.layout)),
            shared: self.parts.cores.shared_use(at),
        }
    }

    /// The counters in the measured window, as far as it has passed.
    pub fn measured(&self) -> WindowTally {
        let mut tally = self.bounds.end.as_deref().cloned().unwrap_or_else(|| self.tally(self.now));
        if self.bounds.window.is_whole() {
            return tally;
        }
        let begin = self.bounds.begin.as_deref().unwrap_or(&tally).clone();
        if self.bounds.begin.is_none() {
            tally.loads = vec![RoleLoad::default(); tally.loads.len()];
        }
        tally.traffic.subtract(&begin.traffic);
        tally.bytes -= begin.bytes;
        if let (Some(shared), Some(begin)) = (&mut tally.shared, &begin.shared) {
            shared.subtract(begin);
        }
        tally
    }
}
