//! Ages of the copies that receivers keep of a source's state: caches of schedulers, copies of a state that a whole run
//! shares, and updates that members have of each other.

use volary_actors::base::Time;

use super::gauge::Gauge;
use crate::results::{CacheRow, Staleness};

/// The updates of a source that a copy lacks at an instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Lack {
    /// Age of synchronisation, s: age of the oldest missing update; zero if none is missing.
    pub(super) age: f64,
    /// Version age: number of missing updates.
    pub(super) versions: u64,
    /// Whether a missing update is about another scheduler's task.
    pub(super) placement: bool,
    /// Age of information, s: time since the newest known state was made; `None` if no state is known.
    pub(super) information: Option<f64>,
}

impl Lack {
    /// The lack of a copy whose source has made no update yet.
    pub(super) const NOTHING: Self = Self { age: 0.0, versions: 0, placement: false, information: None };

    /// The lack of a copy at the instant `at`. `missed` are the times of the missing updates, in order; `newest` is the
    /// time at which the copy's newest state was made.
    pub(super) fn of(missed: impl ExactSizeIterator<Item = Time>, newest: Option<Time>, at: Time) -> Self {
        let since = |made: Time| at.since(made).as_secs_f64();
        let versions = missed.len() as u64;
        let age = { missed }.next().map_or(0.0, since);
        Self { age, versions, placement: false, information: newest.map(since) }
    }
}

/// The row of an observation of a receiver, given the lack of each of its copies. Errors are not measured.
pub(super) fn observed(at: Time, receiver: u32, lacks: &[Lack]) -> CacheRow {
    let count = lacks.len() as f64;
    let (mut information, mut informed, nothing) = (0.0, 0.0, f64::NAN);
    let mut row = CacheRow {
        time: at.as_secs_f64(),
        receiver,
        error: nothing,
        bias: nothing,
        error_max: nothing,
        ..CacheRow::default()
    };
    for lack in lacks {
        row.age += lack.age / count;
        row.versions += lack.versions as f64 / count;
        row.out_of_sync += f64::from(u8::from(lack.versions > 0)) / count;
        row.age_max = row.age_max.max(lack.age);
        row.in_flight += lack.versions;
        if let Some(age) = lack.information {
            information += age;
            informed += 1.0;
        }
    }
    row.information = information / informed;
    row
}

/// Ages over time, receivers and sources.
#[derive(Debug, Default)]
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
