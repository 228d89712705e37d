//! The aggregator of a run of several shards: merges their observations in time order, folds them into results, and
//! decides when the run has ended.

use std::collections::VecDeque;

use volary_actors::base::{Span, Time};

use super::{Accounts, Recorder};
use crate::parcel::{Observation, Seen};

/// Reason why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndReason {
    /// Every job has ended.
    Finished,
    /// The emulated time limit has passed.
    Until,
    /// No copy has run for a long time, or copies are stopped again and again and no task finishes.
    Stalled,
    /// No event is pending, and no message is on its way.
    Idle,
    /// The caller stopped the run.
    Interrupted,
    /// The run cannot continue.
    Broken,
}

/// An observation that cannot be true after the observations before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FalseReport {
    /// The shard that reported it.
    pub shard: usize,
    /// The reason why it cannot be true.
    pub why: String,
}

impl FalseReport {
    /// Panics with this error. Where all shards run in this process, a false report is a bug in a policy.
    pub fn bug(self) -> ! {
        panic!("shard {}: {}", self.shard, self.why)
    }
}

/// The recorder of a run, and observations of its shards that are not folded yet.
#[derive(Debug)]
pub struct Aggregator<'a> {
    recorder: Recorder<'a>,
    merge: Merge,
    until: Option<Time>,
    heals_at: Time,
    /// Whether an observation was refused as impossible. All later observations are dropped.
    refused: bool,
    /// The time of the last folded observation.
    now: Time,
    folded: u64,
}

impl<'a> Aggregator<'a> {
    /// An aggregator for `shards` shards. `until` is the emulated time limit, and `heals_at` the end of the last fault.
    pub fn new(recorder: Recorder<'a>, shards: usize, until: Option<Span>, heals_at: Time) -> Self {
        let until = until.map(|span| Time::ZERO + span);
        Self {
            recorder,
            merge: Merge::new(shards),
            until,
            heals_at,
            refused: false,
            now: Time::ZERO,
            folded: 0,
        }
    }

    /// Adds a report: observations in order of time, and the time before which no further observation follows.
    ///
    /// # Errors
    /// The first observation that cannot be true after earlier observations. It and all later observations are dropped.
    pub fn report(
        &mut self,
        shard: usize,
        notes: impl IntoIterator<Item = Observation>,
        mark: Time,
    ) -> Result<(), FalseReport> {
        let refused = self.refused;
        self.merge.push(shard, notes.into_iter().filter(|_| !refused), mark);
        self.fold()
    }

    /// Notes that a shard will not report again.
    ///
    /// # Errors
    /// The errors of [`report`](Self::report).
    pub fn end(&mut self, shard: usize) -> Result<(), FalseReport> {
        self.merge.end(shard);
        self.fold()
    }

    /// Records the copies on these cores as lost with their host.
    pub fn lose(&mut self, cores: impl IntoIterator<Item = u32>) {
        cores.into_iter().for_each(|core| self.recorder.crashed(self.now, core));
    }

    fn fold(&mut self) -> Result<(), FalseReport> {
        while !self.refused
            && !self.recorder.all_finished()
            && let Some((shard, Observation { at, what })) = self.merge.pop()
        {
            if self.until.is_some_and(|until| at > until) {
                return Ok(());
            }
            if let Seen::Note(who, note) = what
                && let Err(why) = self.recorder.check(who, note)
            {
                self.refused = true;
                return Err(FalseReport { shard, why: format!("its report at {at} cannot be true: {why}") });
            }
            // Clocks of two hosts can differ by more than a message's delay. The recorder needs times in ascending
            // order.
            self.now = self.now.max(at);
            self.folded += 1;
            match what {
                Seen::Note(who, note) => self.recorder.note(self.now, who, note),
                Seen::Crashed(core) => self.recorder.crashed(self.now, core),
                Seen::Delivered(what) => self.recorder.delivered(self.now, what),
            }
        }
        Ok(())
    }

    /// The emulated time up to which every shard has reported.
    pub fn complete(&self) -> Time {
        self.merge.complete()
    }

    /// Number of observations that wait for reports of other shards.
    pub fn waiting(&self) -> usize {
        self.merge.waiting()
    }

    /// The shard whose last report is the earliest.
    pub fn slowest(&self) -> usize {
        self.merge.slowest()
    }

    /// The recorder, with the observations folded so far.
    pub const fn recorder(&self) -> &Recorder<'a> {
        &self.recorder
    }

    /// The time of the last folded observation.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Number of observations folded so far.
    pub const fn folded(&self) -> u64 {
        self.folded
    }

    /// Jobs finished so far.
    pub const fn finished_jobs(&self) -> u64 {
        self.recorder.finished_jobs()
    }

    /// Whether every fault has healed, no job is yet to arrive and no copy is running.
    pub fn is_quiet(&self) -> bool {
        !self.recorder.is_active() && self.complete() > self.heals_at
    }

    /// The reason for the end of the run; `None` while it continues. `stopped` says that the caller has stopped it.
    pub fn end_reason(&self, stopped: bool) -> Option<EndReason> {
        let complete = self.complete();
        if self.recorder.all_finished() {
            Some(EndReason::Finished)
        } else if stopped {
            Some(EndReason::Interrupted)
        } else if self.until.is_some_and(|until| complete > until) {
            Some(EndReason::Until)
        } else {
            // `Time::MAX`: every shard has ended.
            let stalled = complete == Time::MAX || self.recorder.is_stalled(complete);
            stalled.then_some(EndReason::Stalled)
        }
    }

    /// Closes the recorder at the time of the last observation, at the time limit, or when the run was given up;
    /// returns that time as well.
    pub fn close(self) -> (Accounts, Time) {
        match self.until {
            Some(until) if !self.recorder.all_finished() && self.merge.complete() > until => {
                (self.recorder.cut(until), until)
            }
            Some(_) | None => {
                let complete = self.merge.complete();
                let stuck = complete < Time::MAX && self.recorder.is_stalled(complete);
                let now = if stuck { complete } else { self.now };
                (self.recorder.close(now), now)
            }
        }
    }
}

/// Observations of several shards, merged in order of time. A shard's watermark is the time before which it reports
/// nothing more; observations before all watermarks are in their final order.
#[derive(Debug)]
struct Merge {
    streams: Vec<Stream>,
}

#[derive(Debug, Default)]
struct Stream {
    waiting: VecDeque<Observation>,
    mark: Time,
}

impl Merge {
    fn new(shards: usize) -> Self {
        Self { streams: (0..shards).map(|_| Stream::default()).collect() }
    }

    fn push(&mut self, shard: usize, observations: impl IntoIterator<Item = Observation>, mark: Time) {
        let stream = &mut self.streams[shard];
        stream.waiting.extend(observations);
        stream.mark = stream.mark.max(mark);
    }

    fn end(&mut self, shard: usize) {
        self.streams[shard].mark = Time::MAX;
    }

    fn complete(&self) -> Time {
        self.streams.iter().map(|stream| stream.mark).min().unwrap_or(Time::MAX)
    }

    fn slowest(&self) -> usize {
        let marks = self.streams.iter().enumerate().map(|(shard, stream)| (stream.mark, shard));
        marks.min().map_or(0, |(_, shard)| shard)
    }

    /// The next observation whose place in the order is final.
    fn pop(&mut self) -> Option<(usize, Observation)> {
        let complete = self.complete();
        let streams = self.streams.iter_mut().enumerate();
        let heads = streams.filter_map(|(shard, stream)| Some((stream.waiting.front()?.at, shard, stream)));
        let (at, shard, stream) = heads.min_by_key(|(at, ..)| *at)?;
        let is_final = at < complete || complete == Time::MAX;
        if is_final { Some((shard, stream.waiting.pop_front()?)) } else { None }
    }

    fn waiting(&self) -> usize {
        self.streams.iter().map(|stream| stream.waiting.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seen(at: u64, core: u32) -> Observation {
        Observation { at: Time(at), what: Seen::Crashed(core) }
    }

    #[test]
    fn observations_wait_for_the_slowest_shard() {
        let mut merge = Merge::new(2);
        merge.push(0, [seen(1, 0), seen(5, 0)], Time(6));
        assert_eq!((merge.waiting(), merge.slowest()), (2, 1));
        assert_eq!(merge.pop(), None, "the other shard may still report something earlier");
        merge.push(1, [seen(2, 1)], Time(4));
        assert_eq!(merge.pop(), Some((0, seen(1, 0))));
        assert_eq!(merge.pop(), Some((1, seen(2, 1))));
        assert_eq!(merge.pop(), None);
        merge.end(1);
        assert_eq!(merge.pop(), Some((0, seen(5, 0))));
        assert_eq!((merge.pop(), merge.waiting()), (None, 0));
    }

    proptest! {
        /// Every observation is returned once and in order, for all batch boundaries.
        #[test]
        fn observations_of_shards_are_merged_in_order(batches in prop::collection::vec((0..3usize, prop::collection::vec(0..50u64, 0..5)), 0..40)) {
            let mut merge = Merge::new(3);
            let mut clock = [0u64; 3];
            let (mut out, mut count) = (Vec::new(), 0);
            for (shard, steps) in batches {
                let mut report = Vec::new();
                for step in steps {
                    clock[shard] += step;
                    report.push(seen(clock[shard], shard as u32));
                }
                count += report.len();
                merge.push(shard, report, Time(clock[shard]));
                while let Some((_, observation)) = merge.pop() { out.push(observation.at); }
            }
            (0..3).for_each(|shard| merge.end(shard));
            while let Some((_, observation)) = merge.pop() { out.push(observation.at); }
            prop_assert_eq!(out.len(), count);
            prop_assert!(out.is_sorted());
        }
    }
}
