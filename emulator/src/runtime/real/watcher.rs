//! What a shard of a real run reports: its observations, and how late it was.

use volary_actors::base::{ActorId, Span, Time};
use volary_actors::machine::Note;

use crate::fidelity::gauge::Gauge;
use crate::parcel::{Observation, Seen};
use crate::shard::{Due, Observer};

/// Collects what the shard observes until it is sent off.
#[derive(Debug, Default)]
pub struct Watcher {
    /// Observations since the last report, in order of time.
    pub notes: Vec<Observation>,
    /// How late things were.
    pub gauge: Gauge,
}

impl Observer for Watcher {
    fn note(&mut self, now: Time, who: ActorId, note: Note) {
        self.notes.push(Observation { at: now, what: Seen::Note(who, note) });
    }

    fn crashed(&mut self, now: Time, core: u32) {
        self.notes.push(Observation { at: now, what: Seen::Crashed(core) });
    }

    fn due(&mut self, what: Due, late: Span) {
        match what {
            Due::Delivery { asked } => {
                self.gauge.deliveries.add(late);
                self.gauge.asked.add(asked);
                self.gauge.achieved.add(asked + late);
            }
            Due::Timer => self.gauge.timers.add(late),
            Due::Work => self.gauge.work.add(late),
        }
    }

    fn received(&mut self, late: Span) {
        if late != Span::ZERO {
            self.gauge.arrivals.add(late);
        }
    }
}
