//! The virtual-time runtime: its clock jumps from event to event.

use volary_actors::base::{Span, Time};
use volary_actors::message::kind_name;

use crate::metrics::{EndReason, Recorder, Recording, RunConfig};
use crate::results::Measured;
use crate::shard::{Observer, Parts, Placement, Shard, Traffic};
use crate::workload::Window;
use crate::world::finalize::{Counters, FinishedRun};
use crate::world::{EngineError, World};

/// Number of events between two progress reports.
const SLICE: u64 = 1 << 14;

/// Number of pending events above which a run is given up. They take 3 GB, in a vector that has doubled to 6 GB. So
/// many are pending only if events have long caused more than one further event each.
const MOST_PENDING: usize = 1 << 25;

/// Number of events without any progress after which a run is given up. Handling them takes minutes.
const MOST_IDLE: u64 = 1 << 30;

/// Callbacks of a run to its caller.
pub trait Progress {
    /// Shows the state and the counts of messages at `now`. Called every few milliseconds, and at the end of the run.
    fn look(&self, _now: Time, _recorder: &Recorder<'_>, _traffic: &Traffic) {}
    /// Whether the run should stop.
    fn is_stopped(&self) -> bool;
    /// Waits until the next event, due at `due`, may be handled; returns the time up to which further events may be
    /// handled.
    fn wait(&self, _due: Time) -> Time {
        Time::MAX
    }
}

/// Ignores progress and never stops the run.
impl Progress for () {
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Runs a world from the first arrival to the last completion, twice if the first run has to find the measured window.
/// CPU time, wall time and memory are left at zero: the caller measures them.
///
/// # Errors [`EngineError::Interrupted`] when `progress` stops the run, with the measurements so far;
/// [`EngineError::Refused`] for errors that only appear under this seed.
///
/// # Panics
/// On a bug in a policy: a job that finishes twice, totals that do not add up.
pub fn measure(
    name: &str,
    world: &World,
    config: &RunConfig,
    progress: &dyn Progress,
) -> Result<Measured, EngineError> {
    measure_with(name, world, config, (), progress)
}

/// Runs a world like [`measure`], with another observer beside the recorder.
///
/// # Errors
/// The errors of [`measure`].
///
/// # Panics
/// When [`measure`] panics.
pub fn measure_with(
    name: &str,
    world: &World,
    config: &RunConfig,
    observer: impl Observer,
    progress: &dyn Progress,
) -> Result<Measured, EngineError> {
    let Some(window) = world.window() else {
        let first = pass(name, world, config, Window::WHOLE, (), &FirstPass(progress))?;
        return pass(name, world, config, world.settled(&first.jobs)?, observer, progress);
    };
    pass(name, world, config, window, observer, progress)
}

/// Hides the progress of a first pass, because the second pass starts again from time 0.
struct FirstPass<'a>(&'a dyn Progress);

impl Progress for FirstPass<'_> {
    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

/// Runs a world with this measured window.
fn pass(
    name: &str,
    world: &World,
    config: &RunConfig,
    window: Window,
    observer: impl Observer,
    progress: &dyn Progress,
) -> Result<Measured, EngineError> {
    let recording = Recording { window: Some(window), ..config.recording };
    let parts = world.parts(Placement::ALONE, recording.observes_caches())?;
    // If handling takes time, each receiver handles a broadcast separately.
    let parts = Parts { shared: parts.actors.is_none(), window, ..parts };
    let mut shard = Shard::new(parts, (world.recorder(recording), observer));
    let (end, now) = drive(&mut shard, world.limit(config.until), progress)?;
    shard.read_broadcasts();
    let counters = Counters::of(&shard);
    let (recorder, mut observer) = shard.observer;
    let is_interrupted = end == EndReason::Interrupted;
    if !is_interrupted {
        observer.ended(now);
    }
    let accounts = if end == EndReason::Until { recorder.cut(now) } else { recorder.close(now) };
    let run = FinishedRun {
        experiment: name,
        world,
        recording,
        runtime: "virtual",
        counters: &counters,
        real: None,
        injected: None,
    };
    let measured = run.measured(accounts, now);
    if is_interrupted {
        return Err(EngineError::Interrupted(Box::new(measured)));
    }
    Ok(measured)
}

/// Steps until every job has ended, no event is left, `until` has passed, or `progress` stops the run. Returns the
/// reason for the end, and its time.
fn drive<O: Observer>(
    shard: &mut Shard<'_, (Recorder<'_>, O)>,
    until: Option<Span>,
    progress: &dyn Progress,
) -> Result<(EndReason, Time), EngineError> {
    let end = until.map(|span| Time::ZERO + span);
    let (mut idle, mut progressed) = (0, Time::ZERO);
    // The conditions for the end of the run are checked only before events after this time.
    let mut limit = Time::ZERO;
    shard.start();
    loop {
        let mut is_paced = false;
        for _ in 0..SLICE {
            let is_over = shard.observer.0.all_finished();
            if !is_over && shard.advance_by(limit) {
                continue;
            }
            let next = shard.next();
            let due = next.unwrap_or(Time::MAX);
            let how = match end.filter(|&end| due > end) {
                Some(end) => (EndReason::Until, end),
                None if is_over => (EndReason::Finished, shard.now()),
                None if next.is_none() => (EndReason::Idle, shard.now()),
                None if due < Time::MAX && shard.observer.0.is_idle_forever(due) => (EndReason::Stalled, due),
                None => {
                    let allowed = progress.wait(due);
                    limit =
                        shard.observer.0.quiet_until().max(due).min(end.unwrap_or(Time::MAX)).min(allowed);
                    is_paced = allowed < Time::MAX;
                    if is_paced {
                        // A paced run shows every step.
                        break;
                    }
                    continue;
                }
            };
            progress.look(shard.now(), &shard.observer.0, shard.traffic());
            return shard.failure().map_or(Ok(how), |why| Err(EngineError::Refused(why)));
        }
        progress.look(shard.now(), &shard.observer.0, shard.traffic());
        shard.failure().map_or(Ok(()), |why| Err(EngineError::Refused(why)))?;
        if progress.is_stopped() {
            return Ok((EndReason::Interrupted, shard.now()));
        }
        if shard.observer.0.last_progress() > progressed {
            idle = 0;
        } else if !is_paced {
            idle += SLICE;
        }
        progressed = shard.observer.0.last_progress();
        if shard.pending() > MOST_PENDING || idle > MOST_IDLE {
            return Err(EngineError::Refused(flood(shard, idle)));
        }
        if shard.observer.0.is_stalled(shard.now()) {
            return Ok((EndReason::Stalled, shard.now()));
        }
    }
}

/// The activity of a run when it was given up, in words.
fn flood<O: Observer>(shard: &Shard<'_, O>, idle: u64) -> String {
    let most = shard.traffic().by_kind.iter().zip(0..).max_by_key(|(count, _)| **count);
    let most =
        most.map_or_else(String::new, |(count, kind)| format!("; {count} messages were {}", kind_name(kind)));
    format!(
        "no end is in sight: {} events are pending at {}, and the last {idle} events made no progress{most}. Each \
         message causes more than one other, or messages are sent faster than links carry or actors handle them: raise the policy's periods \
         and timeouts or the rate of the network, or lower actors.handling",
        shard.pending(),
        shard.now()
    )
}
