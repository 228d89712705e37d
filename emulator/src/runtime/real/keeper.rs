//! Who keeps the books of a real run: shards report, the keeper merges and folds, and says when it is over.

use std::time::{Duration, Instant};

use volary_actors::base::{Span, Time};

use super::merge::Merge;
use crate::parcel::{Observation, Seen};
use crate::runtime::watch::Watch;
use volary_engine::metrics::{Books, Recorder};

/// Why a run is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// Every job has ended.
    Finished,
    /// The emulated time that was asked for has passed.
    Until,
    /// Nothing has happened for long, and nothing is left to happen.
    Stalled,
    /// Somebody wants it to stop.
    Interrupted,
    /// It cannot go on.
    Broken,
}

/// Real time without anything happening after which the user is told.
const PATIENCE: Duration = Duration::from_secs(60);

/// The books of a run, and what shards have reported for them.
#[derive(Debug)]
pub struct Keeper<'a> {
    recorder: Recorder<'a>,
    merge: Merge,
    until: Option<Time>,
    heals_at: Time,
    /// The time of the last entry.
    now: Time,
    told: u64,
    /// When something last happened, in real time.
    busy: Instant,
    warned: bool,
}

impl<'a> Keeper<'a> {
    /// Empty books for so many shards.
    #[must_use]
    pub fn new(recorder: Recorder<'a>, shards: usize, until: Option<Span>, heals_at: Time) -> Self {
        Self {
            recorder,
            merge: Merge::new(shards),
            until: until.map(|span| Time::ZERO + span),
            heals_at,
            now: Time::ZERO,
            told: 0,
            busy: Instant::now(),
            warned: false,
        }
    }

    /// Takes in a report: observations in order of time, and the time before which no more will come.
    pub fn report(&mut self, shard: usize, notes: impl IntoIterator<Item = Observation>, mark: Time) {
        self.merge.push(shard, notes, mark);
        self.fold();
    }

    /// A shard will report nothing any more.
    pub fn end(&mut self, shard: usize) {
        self.merge.end(shard);
        self.fold();
    }

    /// What these cores ran is lost, because their host is.
    pub fn lose(&mut self, cores: impl IntoIterator<Item = u32>) {
        cores.into_iter().for_each(|core| self.recorder.crashed(self.now, core));
    }

    fn fold(&mut self) {
        while !self.recorder.all_finished()
            && let Some(Observation { at, what }) = self.merge.pop()
        {
            if self.until.is_some_and(|until| at > until) {
                return;
            }
            // Clocks of two hosts can differ by less than a message takes; books need one order.
            self.now = self.now.max(at);
            self.busy = Instant::now();
            match what {
                Seen::Note(who, note) => self.recorder.note(self.now, who, note),
                Seen::Crashed(core) => self.recorder.crashed(self.now, core),
            }
        }
    }

    /// The emulated time up to which every shard has reported.
    #[must_use]
    pub fn complete(&self) -> Time {
        self.merge.complete()
    }

    /// How many observations wait until every shard has reported as much.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.merge.waiting()
    }

    /// The shard that the others wait for.
    #[must_use]
    pub fn slowest(&self) -> usize {
        self.merge.slowest()
    }

    /// Whether the run is over, and why. Moves the progress bar.
    pub fn over(&mut self, watch: &Watch) -> Option<Over> {
        let finished = self.recorder.finished_jobs();
        watch.bar.inc(finished - self.told);
        self.told = finished;
        let complete = self.merge.complete();
        if self.recorder.all_finished() {
            return Some(Over::Finished);
        }
        if watch.stopped() {
            return Some(Over::Interrupted);
        }
        if self.until.is_some_and(|until| complete > until) {
            return Some(Over::Until);
        }
        if complete == Time::MAX {
            // Nobody is left who could report.
            return Some(Over::Stalled);
        }
        if self.recorder.is_stalled(complete, self.heals_at) {
            return Some(Over::Stalled);
        }
        let quiet = !self.recorder.is_active() && complete > self.heals_at;
        if quiet && self.busy.elapsed() > PATIENCE && !self.warned {
            self.warned = true;
            tracing::warn!("nothing has happened for {} s; Ctrl-C ends the run", PATIENCE.as_secs());
        }
        None
    }

    /// Closes the books at the time of the last entry, or when the run was to end, and says which that is.
    #[must_use]
    pub fn close(self) -> (Books, Time) {
        match self.until {
            Some(until) if !self.recorder.all_finished() && self.merge.complete() > until => {
                (self.recorder.cut(until), until)
            }
            Some(_) | None => (self.recorder.close(self.now), self.now),
        }
    }
}
