//! Virtual time: the clock jumps from event to event, as fast as the processor goes.

use std::time::Instant;

use volary_actors::base::{Span, Time};

use super::closing::{Closing, Tally};
use super::cost;
use super::error::UnitError;
use super::watch::Watch;
use super::world::World;
use crate::record::fold::Recorder;
use crate::results::Measured;
use crate::shard::{Observer, Parts, Placement, Shard};
use crate::spec::{RunSection, RuntimeKind};
use crate::storage::input_log::{self, Section, What};

/// Events between two looks at the clock on the wall and at the wish to stop.
const SLICE: u64 = 1 << 14;

/// Runs one point under one seed, from the first arrival to the last completion.
///
/// # Errors
/// [`UnitError::Interrupted`] when told to stop; [`UnitError::Refused`] for what only shows under this seed.
///
/// # Panics
/// On a bug in a policy: a job that finishes twice, books that do not close.
pub fn measure(name: &str, world: &World, run: &RunSection, watch: &Watch) -> Result<Measured, UnitError> {
    measure_with(name, world, run, world.recorder(run), watch)
}

/// As [`measure`], and logs what every actor is told.
///
/// # Errors
/// As [`measure`].
pub fn measure_logged(
    name: &str,
    world: &World,
    run: &RunSection,
    log: &input_log::Unit,
    watch: &Watch,
) -> Result<Measured, UnitError> {
    measure_with(name, world, run, (world.recorder(run), log.section(0, 1)), watch)
}

/// An observer that keeps the books.
trait Keeps<'a>: Observer {
    fn books(&self) -> &Recorder<'a>;
    /// The run ended at `now`.
    fn end(self, now: Time) -> Recorder<'a>;
}

impl<'a> Keeps<'a> for Recorder<'a> {
    fn books(&self) -> &Self {
        self
    }
    fn end(self, _: Time) -> Self {
        self
    }
}

impl<'a> Keeps<'a> for (Recorder<'a>, Section) {
    fn books(&self) -> &Recorder<'a> {
        &self.0
    }
    fn end(mut self, now: Time) -> Recorder<'a> {
        self.1.put(now, What::End);
        self.0
    }
}

fn measure_with<'a, O: Keeps<'a>>(
    name: &str,
    world: &'a World,
    run: &RunSection,
    observer: O,
    watch: &Watch,
) -> Result<Measured, UnitError> {
    let clock = Instant::now();
    let cpu = cost::thread_cpu_s();
    let parts = Parts { shared: true, ..world.parts(Placement::ALONE)? };
    let mut shard = Shard::new(parts, observer);
    let cut = drive(&mut shard, run.until, watch)?;
    let (now, tally) = (cut.unwrap_or_else(|| shard.now()), Tally::of(&shard));
    let recorder = shard.observer.end(now);
    let books = if cut.is_some() { recorder.cut(now) } else { recorder.close(now) };
    let closing = Closing {
        injected: None,
        experiment: name,
        world,
        run,
        runtime: RuntimeKind::Virtual,
        tally: &tally,
        cpu_s: cost::thread_cpu_s() - cpu,
        wall_s: clock.elapsed().as_secs_f64(),
        peak_rss_bytes: cost::peak_rss_bytes(),
        real: None,
    };
    closing.measured(books, now)
}

/// Steps until every job has ended, or nothing more can happen, or until the run was to end: then says when.
fn drive<'a, O: Keeps<'a>>(
    shard: &mut Shard<'a, O>,
    until: Option<Span>,
    watch: &Watch,
) -> Result<Option<Time>, UnitError> {
    // Looking at the next event costs a little: only where something depends on it.
    let over = |shard: &Shard<'_, O>| {
        until.is_some_and(|span| shard.next().is_none_or(|due| due > Time::ZERO + span))
    };
    let mut told = 0;
    shard.start();
    loop {
        for _ in 0..SLICE {
            let cut = over(shard);
            if shard.observer.books().all_finished() || cut || !shard.advance() {
                watch.bar.inc(shard.observer.books().finished_jobs() - told);
                return Ok(until.filter(|_| cut).map(|span| Time::ZERO + span));
            }
        }
        let finished = shard.observer.books().finished_jobs();
        watch.bar.inc(finished - told);
        told = finished;
        if watch.stopped() {
            return Err(UnitError::Interrupted);
        }
        let idle = shard.now().since(shard.observer.books().last_progress());
        let healed = shard.now() > shard.fabric().faults().heals_at();
        if idle > World::STALLED && !shard.observer.books().is_active() && healed {
            return Ok(None);
        }
    }
}
