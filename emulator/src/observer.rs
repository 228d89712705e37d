//! The observer of a study: what runtimes report while it goes on, for the live page or whatever else shows it.

use std::fmt;

use volary_actors::base::Time;
use volary_actors::message::KINDS;
use volary_engine::cores::Injection;
use volary_engine::metrics::Recorder;
use volary_engine::results::Cell;
use volary_engine::shard::Traffic;
use volary_engine::world::World;

use crate::real_time::sample::ShardSample;
use crate::storage::manifest::RunState;
use crate::storage::run_record::RunRecord;

/// A run that has not begun.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedRun<'a> {
    /// Its id.
    pub run: &'a str,
    /// Label of the policy.
    pub policy: &'a str,
    /// Values of the swept keys.
    pub cell: &'a Cell,
    pub seed: u64,
}

/// Observes a study. Calls come from the threads that execute runs, and must return soon.
pub trait StudyObserver: Send + Sync + fmt::Debug {
    /// A stopping rule asks for more runs.
    fn expect(&self, runs: &[ExpectedRun<'_>]);
    /// A run begins, with this many jobs.
    fn begin(&self, run: &str, jobs: u64);
    /// An observer of a run that begins.
    fn of_run<'a>(&'a self, run: &str, world: &'a World) -> Box<dyn RunObserver + 'a>;
    /// Something was injected into the run that began last, or what was injected under this number has another end.
    fn inject(&self, number: String, injection: Injection, says: String);
    /// A run has ended; or had ended before this process began.
    fn finished(&self, record: &RunRecord);
    /// A run has failed.
    fn failed(&self, run: &str, why: &str);
    /// The study has ended, in this state.
    fn over(&self, state: RunState);
}

/// Observes a run while it goes on.
pub trait RunObserver: fmt::Debug {
    /// Looks at what was recorded by `now`. Called often: a look that is not due returns at once, without counting.
    fn look(&mut self, now: Time, recorder: &Recorder<'_>, counted: &dyn Fn() -> Counted);
}

/// What only shards count.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Counted {
    /// Messages sent over the network, in the order of [`KINDS`].
    pub by_kind: Vec<u64>,
    /// Messages that the emulated network lost.
    pub dropped: u64,
    /// The latest sample of each shard, by name; none in virtual time.
    pub shards: Vec<(String, Option<ShardSample>)>,
}

impl Counted {
    /// The counters of the only shard of a run in virtual time.
    pub fn of_traffic(traffic: &Traffic) -> Self {
        Self { by_kind: traffic.by_kind.to_vec(), dropped: traffic.dropped, shards: Vec::new() }
    }

    /// The latest samples of shards in real time, with their names; `None` before the first.
    pub fn of_shards<'a>(samples: impl IntoIterator<Item = (String, Option<&'a ShardSample>)>) -> Self {
        let mut all = Self::default();
        for (name, sample) in samples {
            all.shards.push((name, sample.cloned()));
            let Some(sample) = sample else { continue };
            // Other hosts report these numbers: there may be too many, and the sum must not overflow.
            all.by_kind.resize(KINDS.len(), 0);
            let sums = all.by_kind.iter_mut().zip(&sample.by_kind);
            sums.for_each(|(sum, count)| *sum = sum.saturating_add(*count));
            all.dropped = all.dropped.saturating_add(sample.dropped);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_shards_add_up() {
        let sample = |by_kind: &[u64]| ShardSample {
            by_kind: by_kind.to_vec(),
            dropped: u64::MAX,
            ..ShardSample::default()
        };
        let (one, two) = (sample(&[1, 2]), sample(&[10, 20, 30]));
        let all = Counted::of_shards([
            ("a".to_owned(), Some(&one)),
            ("b".to_owned(), None),
            ("c".to_owned(), Some(&two)),
        ]);
        assert_eq!((&all.by_kind[..4], all.dropped, all.shards.len()), (&[11, 22, 30, 0][..], u64::MAX, 3));
    }
}
