//! What the reference says of cores as a run found them.
//!
//! Real cores are not quite as fast as they were calibrated to be: clocks rise and fall, a hypervisor gives a CPU to
//! others, and actors and timers need the same ones. The run's record says how fast each core was in every
//! stretch of a tenth of a second and in every degraded slot; how much queues make of it, virtual time can tell: in
//! the same world, with cores that are as fast at every moment as those were.

use std::collections::BTreeMap;
use std::path::Path;

use volary_actors::base::{Span, Time};

use super::{Error, Way};
use crate::cores::config::{Trace, TraceRow};
use crate::cores::{Burst, Interference};
use crate::files::{Files, Pack};
use crate::record::cell::CellRecord;
use crate::results::{CoreRow, Summary};
use crate::rundir::load_cores;
use crate::runtime::world::World;
use crate::runtime::{RunError, UnitError, Watch, virtual_time};
use crate::spec::{Experiment, RuntimeKind};

/// Part of a stretch for which there must have been a copy, so that its pace says something.
const TELLING: f64 = 0.05;
/// A core that did next to nothing in a stretch was slower by this.
const STILL: f64 = 1e3;

/// Runs point number `point` of a virtual `experiment` with cores as the `run` in a folder found them; nothing if that
/// burnt none.
///
/// # Errors
/// When the run's record cannot be read, or the reference is interrupted or refused.
pub(super) fn as_found(
    experiment: &Experiment,
    point: usize,
    (folder, run): (&Path, &CellRecord),
    watch: &Watch,
) -> Result<Option<Summary>, Error> {
    let burnt = run.summary.fidelity.as_ref().is_some_and(|certificate| certificate.cores.is_some());
    if !burnt {
        return Ok(None);
    }
    let rows = load_cores(folder, &run.id).map_err(|error| Error::Run(RunError::RunDir(error)))?;
    let seed = experiment.units(None)[point].seed;
    let measured = World::of(experiment, point, seed, &experiment.traces()).and_then(|world| {
        let world = found(world, &rows)?;
        virtual_time::measure(&experiment.name, &world, &experiment.run, watch)
    });
    measured.map(|measured| Some(measured.summary)).map_err(|error: UnitError| Error::Broken {
        way: Way { runtime: RuntimeKind::Virtual, real: None },
        why: error.to_string(),
    })
}

/// The same world with cores as fast as these rows say, and otherwise as they are to be.
fn found(world: World, rows: &[CoreRow]) -> Result<World, UnitError> {
    let last = rows.iter().map(|row| row.end).fold(0.0, f64::max);
    // What is beyond the run's end may come to be within the reference's.
    let end = Time::ZERO + Span::from_secs_f64(2.0 * last + 60.0);
    let mut of_core: BTreeMap<u32, Vec<CoreRow>> = BTreeMap::new();
    rows.iter().for_each(|row| of_core.entry(row.core).or_default().push(*row));
    let mut trace = Vec::new();
    for (core, rows) in of_core {
        let asked: Vec<Burst> = world.cores().bursts(core, Time::ZERO, end).collect();
        trace.extend(course(&rows, &asked, end).map(|(start, end, slowdown)| TraceRow {
            unit: core,
            start: start.since(Time::ZERO),
            end: end.since(Time::ZERO),
            slowdown,
        }));
    }
    // A trace only slows down: the fastest stretch is the core's speed.
    let fastest = trace.iter().map(|row| row.slowdown).fold(1.0, f64::min);
    trace.iter_mut().for_each(|row| row.slowdown = (row.slowdown / fastest).max(1.0));
    if trace.is_empty() {
        return Ok(world);
    }
    let trace = Trace { file: None, rows: trace };
    let profile = Interference { trace: Some(trace), ..Interference::default() }
        .load(&Files::of_pack(Pack::default()), Path::new(""))
        .map_err(|error| UnitError::Refused(error.to_string()))?;
    Ok(world.with_cores(profile, fastest))
}

/// A core from the run's start to `end`, piece by piece: its slowdown, as it was where it had work and otherwise as it
/// was to be, times what its healthy stretches had in the mean.
fn course(rows: &[CoreRow], asked: &[Burst], end: Time) -> impl Iterator<Item = (Time, Time, f64)> {
    let healthy = rows.iter().filter(|row| row.asked == 1.0);
    let (had, done) = healthy.fold((0.0, 0.0), |(had, done), row| (had + row.had, done + row.done));
    let usual = if done > 0.0 { had / done } else { 1.0 };
    let mut pieces = Vec::new();
    let mut at = Time::ZERO;
    for row in rows {
        let [from, until] = [row.start, row.end].map(|s| Time::ZERO + Span::from_secs_f64(s));
        let (from, until) = (from.max(at), until.min(end));
        if from < until {
            due(asked, at, from, usual, &mut pieces);
            let tells = row.had >= TELLING * (row.end - row.start);
            let otherwise = if row.asked == 1.0 { usual } else { row.asked };
            pieces.push((from, until, if tells { row.achieved().min(STILL * row.asked) } else { otherwise }));
            at = until;
        }
    }
    due(asked, at, end, usual, &mut pieces);
    pieces.into_iter()
}

/// What a core is to be between two times.
fn due(asked: &[Burst], from: Time, until: Time, usual: f64, pieces: &mut Vec<(Time, Time, f64)>) {
    let mut at = from;
    let first = asked.partition_point(|burst| burst.end <= from);
    for burst in asked[first..].iter().take_while(|burst| burst.start < until) {
        pieces.push((at, burst.start, usual));
        pieces.push((burst.start.max(at), burst.end.min(until), burst.slowdown));
        at = burst.end;
    }
    pieces.push((at, until, usual));
    pieces.retain(|(from, until, _)| from < until);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn row(from: u64, until: u64, asked: f64, had: f64, achieved: f64) -> CoreRow {
        let [start, end] = [from, until].map(|ms| ms as f64 / 1e3);
        let had = had * (end - start);
        CoreRow { core: 0, start, end, asked, had, done: had / achieved }
    }

    fn pieces(rows: &[CoreRow], asked: &[(u64, u64)], end: u64) -> Vec<(u64, u64, f64)> {
        let burst = |&(start, end): &(u64, u64)| Burst { start: at(start), end: at(end), slowdown: 4.0 };
        let asked: Vec<_> = asked.iter().map(burst).collect();
        let round = |slowdown: f64| (slowdown * 1e6).round() / 1e6;
        let ms = |at: Time| at.0 / 1_000_000;
        course(rows, &asked, at(end)).map(|(from, until, s)| (ms(from), ms(until), round(s))).collect()
    }

    /// Where there was work, cores are as they were; where there was none, as they were to be, and as slow in health as
    /// they were otherwise.
    #[test]
    fn a_course_has_no_gaps_and_what_was_found() {
        let rows =
            [row(100, 200, 1.0, 1.0, 1.1), row(200, 250, 4.0, 1.0, 4.2), row(400, 500, 1.0, 0.5, 1.04)];
        let usual = 0.15 / (0.1 / 1.1 + 0.05 / 1.04);
        let usual = (usual * 1e6_f64).round() / 1e6;
        assert_eq!(
            pieces(&rows, &[(200, 250), (300, 350), (480, 520)], 600),
            [
                (0, 100, usual),
                (100, 200, 1.1),
                (200, 250, 4.2),
                (250, 300, usual),
                (300, 350, 4.0),
                (350, 400, usual),
                (400, 500, 1.04),
                (500, 520, 4.0),
                (520, 600, usual)
            ]
        );
    }

    /// A moment of work says nothing of a stretch, nor does a stretch in which nothing was done stop the core for good.
    #[test]
    fn what_says_nothing_is_left_out() {
        let rows = [row(0, 100, 1.0, 1.0, 1.0), row(100, 200, 1.0, 0.01, 7.0), row(200, 300, 4.0, 0.04, 1.0)];
        let found = pieces(&rows, &[(200, 300)], 300);
        let usual = (0.101_f64 / (0.1 + 0.001 / 7.0) * 1e6).round() / 1e6;
        assert_eq!(found, [(0, 100, 1.0), (100, 200, usual), (200, 300, 4.0)]);
        assert_eq!(pieces(&[row(0, 100, 1.0, 1.0, f64::INFINITY)], &[], 100), [(0, 100, STILL)]);
        assert_eq!(pieces(&[], &[(10, 20)], 30), [(0, 10, 1.0), (10, 20, 4.0), (20, 30, 1.0)]);
        // Clocks are corrected as a run goes on: stretches may overlap by a little.
        let rows = [row(0, 101, 1.0, 1.0, 1.0), row(100, 200, 4.0, 1.0, 4.0)];
        assert_eq!(pieces(&rows, &[(100, 200)], 200), [(0, 101, 1.0), (101, 200, 4.0)]);
    }
}
