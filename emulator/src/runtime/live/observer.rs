//! The observer of a shard in real time: its observations, and how late its events were.

use volary_actors::base::{ActorId, Span, Time};
use volary_actors::machine::{Effect, Input, Note};

use crate::fidelity::gauge::LatenessHistograms;
use crate::storage::input_log::Section;
use volary_engine::parcel::{Observation, Seen};
use volary_engine::replay::LogEvent;
use volary_engine::shard::{Due, Observer};

/// Collects what a shard observes until the next report.
#[derive(Debug, Default)]
pub struct LiveObserver {
    /// Observations since the last report, in order of time.
    pub notes: Vec<Observation>,
    /// Lateness of events.
    pub gauge: LatenessHistograms,
    /// The log of inputs, if there is one.
    pub inputs: Option<Section>,
}

impl LiveObserver {
    /// Ends the log of inputs at `now`.
    pub fn end(&mut self, now: Time) {
        if let Some(mut section) = self.inputs.take() {
            section.put(now, LogEvent::End);
        }
    }
}

impl Observer for LiveObserver {
    fn note(&mut self, now: Time, who: ActorId, note: Note) {
        self.notes.push(Observation { at: now, what: Seen::Note(who, note) });
    }

    fn crashed(&mut self, now: Time, core: u32) {
        self.notes.push(Observation { at: now, what: Seen::Crashed(core) });
        if let Some(section) = &mut self.inputs {
            section.crashed(now, core);
        }
    }

    #[inline]
    fn stepped(&mut self, now: Time, who: ActorId, input: &Input, effects: &[Effect]) {
        if let Some(section) = &mut self.inputs {
            section.stepped(now, who, input, effects);
        }
    }

    fn restarted(&mut self, now: Time, who: ActorId, epoch: u32) {
        if let Some(section) = &mut self.inputs {
            section.restarted(now, who, epoch);
        }
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
