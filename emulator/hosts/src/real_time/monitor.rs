//! The monitor of a run in real time: its observers, the samples of its shards, and its end when nothing is pending.

use std::time::{Duration, Instant};

use volary_engine::metrics::{Aggregator, EndReason};
use volary_engine::world::World;
use volary_experiment::control::{Counted, RunObserver, ShardSample, StudyControl};

/// Real time without any observation after which a run ends if no event is pending; otherwise a warning is logged. A
/// message between two hosts arrives within this time, or their link ends.
const QUIET: Duration = Duration::from_secs(60);

/// The observers and the samples of a run in real time, and the detection of a run in which nothing is pending.
#[derive(Debug)]
pub struct Monitor<'a> {
    /// The last count of observations, and the real time at which it last grew.
    folded: (u64, Instant),
    warned: bool,
    /// The last time at which an event was pending.
    pending: Instant,
    observers: Vec<Box<dyn RunObserver + 'a>>,
    /// The latest sample of each shard, with its name.
    samples: Vec<(String, Option<ShardSample>)>,
}

impl<'a> Monitor<'a> {
    /// A monitor of the run with this id, whose shards have these names.
    pub fn new(
        control: &'a StudyControl,
        run: &str,
        world: &'a World,
        shards: impl Iterator<Item = String>,
    ) -> Self {
        Self {
            folded: (0, Instant::now()),
            warned: false,
            pending: Instant::now(),
            observers: control.of_run(run, world),
            samples: shards.map(|name| (name, None)).collect(),
        }
    }

    /// Keeps the latest sample of a shard.
    pub fn sampled(&mut self, shard: usize, sample: ShardSample) {
        if sample.pending > 0 {
            self.pending = Instant::now();
        }
        if let Some((_, latest)) = self.samples.get_mut(shard) {
            *latest = Some(sample);
        }
    }

    /// Records that a shard has ended: no event is pending there.
    pub fn ended(&mut self, shard: usize) {
        if let Some((_, latest)) = self.samples.get_mut(shard) {
            latest.get_or_insert_default().pending = 0;
        }
    }

    /// The reason why the run has ended, or `None` while it continues. Also calls the observers.
    pub fn end_reason(&mut self, aggregator: &Aggregator<'_>, control: &StudyControl) -> Option<EndReason> {
        for observer in &mut self.observers {
            let samples = || self.samples.iter().map(|(name, sample)| (name.clone(), sample.as_ref()));
            observer.look(aggregator.now(), aggregator.recorder(), &|| Counted::of_shards(samples()));
        }
        if aggregator.folded() > self.folded.0 {
            self.folded = (aggregator.folded(), Instant::now());
        }
        let reason = aggregator.end_reason(control.stopped());
        let quiet = reason.is_none() && aggregator.is_quiet() && self.folded.1.elapsed() > QUIET;
        if quiet && self.is_idle() {
            return Some(EndReason::Idle);
        }
        if quiet && !self.warned {
            self.warned = true;
            tracing::warn!(
                "nothing has happened for {} s; Ctrl-C ends the run, and keeps its measurements",
                QUIET.as_secs()
            );
        }
        reason
    }

    /// Whether no shard has had a pending event for so long that nothing will happen any more.
    fn is_idle(&self) -> bool {
        let is_empty = |(_, sample): &(String, Option<ShardSample>)| {
            sample.as_ref().is_some_and(|sample| sample.pending == 0)
        };
        self.pending.elapsed() > QUIET && self.samples.iter().all(is_empty)
    }
}

#[cfg(test)]
mod tests {
    use volary_actors::base::{JobId, Time};
    use volary_actors::machine::Note;
    use volary_engine::metrics::Recording;
    use volary_engine::parcel::{Observation, Seen};
    use volary_experiment::config::{Experiment, Overrides};
    use volary_experiment::workload::Traces;

    use super::*;

    /// A job waits, and no shard has a pending event: in virtual time such a run ends at once.
    #[test]
    fn a_quiet_run_ends_if_nothing_is_pending() {
        let text = "title = \"t\"\n[cluster]\nnodes = 2\n[workload.synthetic]\njobs = 1\ntasks = 1\n\
                    interarrival = \"1s\"\n[service]\ndemand = \"1s\"\n[[policy]]\nrandom = {}\n";
        let experiment = Experiment::plan("quiet.toml", text, &Overrides::default()).unwrap();
        let world = World::build(&experiment.points[0], 1, &Traces::new(Vec::new())).unwrap();
        let mut aggregator = Aggregator::new(world.recorder(Recording::default()), 1, None, Time::ZERO);
        let arrived = Seen::Note(world.layout().client(0), Note::Arrived { job: JobId(0) });
        aggregator.report(0, [Observation { at: Time(1), what: arrived }], Time(2)).unwrap();
        let control = StudyControl::default();
        let mut monitor = Monitor::new(&control, "r", &world, ["s".to_owned()].into_iter());
        assert_eq!(monitor.end_reason(&aggregator, &control), None);
        let long_ago = Instant::now().checked_sub(QUIET + Duration::from_secs(1)).unwrap();
        monitor.sampled(0, ShardSample { pending: 1, ..ShardSample::default() });
        (monitor.folded.1, monitor.pending) = (long_ago, long_ago);
        assert_eq!(monitor.end_reason(&aggregator, &control), None, "a timer is armed");
        monitor.sampled(0, ShardSample::default());
        assert_eq!(monitor.end_reason(&aggregator, &control), Some(EndReason::Idle));
        monitor.sampled(0, ShardSample { pending: 1, ..ShardSample::default() });
        monitor.sampled(0, ShardSample::default());
        assert_eq!(monitor.end_reason(&aggregator, &control), None, "something was pending a moment ago");
    }
}
