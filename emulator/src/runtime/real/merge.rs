//! One stream of observations out of several.

use std::collections::VecDeque;

use volary_actors::base::Time;

use crate::parcel::Observation;

/// Observations of several shards, merged in order of time. A shard's watermark says that it will report
/// nothing earlier any more; what lies before every watermark is in its final order.
#[derive(Debug)]
pub struct Merge {
    streams: Vec<Stream>,
}

#[derive(Debug, Default)]
struct Stream {
    waiting: VecDeque<Observation>,
    mark: Time,
}

impl Merge {
    /// For so many shards.
    #[must_use]
    pub fn new(shards: usize) -> Self {
        Self { streams: (0..shards).map(|_| Stream::default()).collect() }
    }

    /// Takes in what a shard reports, in order of time, and its watermark.
    pub fn push(&mut self, shard: usize, observations: impl IntoIterator<Item = Observation>, mark: Time) {
        let stream = &mut self.streams[shard];
        stream.waiting.extend(observations);
        stream.mark = stream.mark.max(mark);
    }

    /// A shard will report nothing any more.
    pub fn end(&mut self, shard: usize) {
        self.streams[shard].mark = Time::MAX;
    }

    /// The time up to which all shards have reported.
    #[must_use]
    pub fn complete(&self) -> Time {
        self.streams.iter().map(|stream| stream.mark).min().unwrap_or(Time::MAX)
    }

    /// The shard that has reported least.
    #[must_use]
    pub fn slowest(&self) -> usize {
        let marks = self.streams.iter().enumerate().map(|(shard, stream)| (stream.mark, shard));
        marks.min().map_or(0, |(_, shard)| shard)
    }

    /// The next observation whose place is certain.
    pub fn pop(&mut self) -> Option<Observation> {
        let complete = self.complete();
        let heads = self.streams.iter_mut().filter_map(|stream| Some((stream.waiting.front()?.at, stream)));
        let (at, stream) = heads.min_by_key(|(at, _)| *at)?;
        if at < complete || complete == Time::MAX { stream.waiting.pop_front() } else { None }
    }

    /// Observations that wait for others.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.streams.iter().map(|stream| stream.waiting.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parcel::Seen;

    fn seen(at: u64, core: u32) -> Observation {
        Observation { at: Time(at), what: Seen::Crashed(core) }
    }

    #[test]
    fn waits_for_the_slowest() {
        let mut merge = Merge::new(2);
        merge.push(0, [seen(1, 0), seen(5, 0)], Time(6));
        assert_eq!((merge.waiting(), merge.slowest()), (2, 1));
        assert_eq!(merge.pop(), None, "the other shard may still report something earlier");
        merge.push(1, [seen(2, 1)], Time(4));
        assert_eq!(merge.pop(), Some(seen(1, 0)));
        assert_eq!(merge.pop(), Some(seen(2, 1)));
        assert_eq!(merge.pop(), None);
        merge.end(1);
        assert_eq!(merge.pop(), Some(seen(5, 0)));
        assert_eq!((merge.pop(), merge.waiting()), (None, 0));
    }

    proptest! {
        /// Whatever the batches, everything comes out once and in order.
        #[test]
        fn merges_in_order(batches in prop::collection::vec((0..3usize, prop::collection::vec(0..50u64, 0..5)), 0..40)) {
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
                while let Some(observation) = merge.pop() { out.push(observation.at); }
            }
            (0..3).for_each(|shard| merge.end(shard));
            while let Some(observation) = merge.pop() { out.push(observation.at); }
            prop_assert_eq!(out.len(), count);
            prop_assert!(out.is_sorted());
        }
    }
}
