//! Ages of the copies that receivers hold of sources, over time.

use super::super::gauge::Gauge;
use super::view::Lack;
use crate::results::Staleness;

/// Ages over time, receivers and sources.
#[derive(Debug)]
pub(super) struct Ages {
    synchronisation: Gauge,
    /// Ages of copies that are out of sync.
    out_of_sync: Gauge,
    versions: Gauge,
    information: Gauge,
    /// Ages of information just before a snapshot replaces an earlier snapshot.
    peaks: Gauge,
}

impl Ages {
    pub(super) fn new() -> Self {
        Self {
            synchronisation: Gauge::new(),
            out_of_sync: Gauge::new(),
            versions: Gauge::new(),
            information: Gauge::new(),
            peaks: Gauge::new(),
        }
    }

    /// Adds the updates that a receiver lacks of a source.
    pub(super) fn add(&mut self, lack: Lack, weight: u32) {
        self.synchronisation.add(lack.age, weight);
        if lack.versions > 0 {
            self.out_of_sync.add(lack.age, weight);
        }
        self.versions.add(lack.versions as f64, weight);
        if let Some(age) = lack.information {
            self.information.add(age, weight);
        }
    }

    /// Notes that a snapshot replaces a snapshot of this age, s.
    pub(super) fn peak(&mut self, age: f64) {
        self.peaks.add(age, 1);
    }

    /// The figures of the summary. Figures other than ages are not measured.
    pub(super) fn summary(&self) -> Staleness {
        Staleness {
            age_of_synchronisation_s: self.synchronisation.spread(),
            out_of_sync: self.out_of_sync.weight() / self.synchronisation.weight(),
            age_out_of_sync_s: self.out_of_sync.spread(),
            version_age: self.versions.spread(),
            age_of_information_s: self.information.spread(),
            peak_age_of_information_s: self.peaks.spread(),
            ..Staleness::UNMEASURED
        }
    }
}
