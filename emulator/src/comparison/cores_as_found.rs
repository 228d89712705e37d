//! The reference with cores that are as fast as a run measured them to be.
//!
//! Real cores are not always as fast as at their calibration: clock rates rise and fall, a hypervisor gives a CPU to
//! other machines, and actors and timers need the same CPUs. The record of the run holds the speed of each core in
//! every stretch of a tenth of a second and in every degraded slot. Virtual time shows how much queues amplify the
//! deviations: the same world is run with cores that have the recorded speed at every moment.

use std::collections::BTreeMap;

use volary_actors::base::{Span, Time};
use volary_engine::cores::config::{BurstTrace, TraceRow};
use volary_engine::cores::{Burst, Interference};
use volary_engine::results::{CoreRow, STILL, Summary};
use volary_engine::world::World;
use volary_experiment::config::{Experiment, RuntimeKind};
use volary_experiment::control::{RunError, StudyControl};
use volary_experiment::storage::run_record::RunRecord;

use super::variant::{Error, RunVariant};
use crate::runtime::{StudyError, pool};

/// Busy share of a stretch from which its measured slowdown applies to the whole stretch.
const REPRESENTATIVE: f64 = 0.25;
/// Time after the run's end for which bursts of the experiment are added, since the reference may take longer.
const BEYOND: Span = Span::from_secs(60);

/// Runs point number `point` of a virtual `experiment` with cores as the `run` found them. `None` if that run burned no
/// cores, or if interference was injected: the record holds only the part of an injection that copies met.
///
/// # Errors
/// When the run's record cannot be read, or the reference is interrupted or refused.
pub(super) fn as_found(
    experiment: &Experiment,
    point: usize,
    run: &RunRecord,
    control: &StudyControl,
) -> Result<Option<Summary>, Error> {
    if !run.has_burnt() || !run.summary.injections.is_empty() {
        return Ok(None);
    }
    let rows = run.rows.read().map_err(|error| Error::Run(StudyError::StudyDir(error)))?;
    let seed = experiment.runs(None)[point].seed;
    let world = World::build(&experiment.points[point], seed, &experiment.traces());
    let measured = world.map_err(RunError::from).and_then(|world| {
        let world = found(world, &rows)?.with_launcher(experiment.launcher());
        pool::measure(&experiment.name, &world, &experiment.run, control)
    });
    measured.map(|measured| Some(measured.summary)).map_err(|error: RunError| Error::Broken {
        variant: RunVariant { runtime: RuntimeKind::Virtual, real: None },
        why: error.to_string(),
    })
}

/// The same world with cores as fast as in `rows`; at other times cores are as the experiment requests.
fn found(world: World, rows: &[CoreRow]) -> Result<World, RunError> {
    if rows.is_empty() {
        return Ok(world);
    }
    let last = rows.iter().map(|row| row.end).fold(0.0, f64::max);
    let end = Time::ZERO + Span::from_secs_f64(2.0 * last) + BEYOND;
    let mut of_core: BTreeMap<u32, Vec<CoreRow>> = BTreeMap::new();
    rows.iter().for_each(|row| of_core.entry(row.core).or_default().push(*row));
    let mut trace = Vec::new();
    let cores = world.cores();
    for unit in 0..world.layout().workers() {
        let asked: Vec<Burst> = cores.bursts(unit, Time::ZERO, end).collect();
        let pieces = course(&of_core.remove(&unit).unwrap_or_default(), &asked, end);
        trace.extend(pieces.into_iter().map(|(start, end, slowdown)| TraceRow {
            unit,
            start: start.since(Time::ZERO),
            end: end.since(Time::ZERO),
            slowdown,
        }));
    }
    // A trace can only slow a core down, so the core gets the speed of its fastest stretch.
    let fastest = trace.iter().map(|row| row.slowdown).fold(1.0, f64::min);
    trace.iter_mut().for_each(|row| row.slowdown = (row.slowdown / fastest).max(1.0));
    let trace = BurstTrace { rows: trace, ..BurstTrace::default() };
    let profile = Interference { trace: Some(trace), ..Interference::default() }
        .resolve()
        .map_err(|error| RunError::Refused(error.to_string()))?;
    Ok(world.with_cores(profile, fastest))
}

/// A piece of a core's time: start, end, and slowdown.
type Piece = (Time, Time, f64);

/// The slowdown of a core from the start of the run, without gaps. While the core had work, it is as measured. Without
/// work, it is as requested in bursts up to `end`, and the mean of the healthy stretches outside bursts.
fn course(rows: &[CoreRow], asked: &[Burst], end: Time) -> Vec<Piece> {
    let healthy = rows.iter().filter(|row| row.is_healthy());
    let (had, done) = healthy.fold((0.0, 0.0), |(had, done), row| (had + row.had, done + row.done));
    let usual = if done > 0.0 { had / done } else { 1.0 };
    let mut pieces = Vec::new();
    let mut at = Time::ZERO;
    for row in rows {
        let [from, until] = [row.start, row.end].map(|s| Time::ZERO + Span::from_secs_f64(s));
        // Clocks are corrected during a run, so stretches may overlap a little.
        let (from, until) = (from.max(at), until.min(end));
        if from < until {
            add_asked(&mut pieces, asked, (at, from), usual);
            pieces.push((from, until, slowdown(row, usual)));
            at = until;
        }
    }
    add_asked(&mut pieces, asked, (at, end), usual);
    pieces.push((end, Time::MAX, usual));
    pieces
}

/// The slowdown of a core in a stretch. If a copy ran only for a short part of the stretch, the rest has the usual
/// slowdown: a stall of some milliseconds does not extend to the whole stretch.
fn slowdown(row: &CoreRow, usual: f64) -> f64 {
    let length = row.end - row.start;
    let most = STILL * row.asked;
    if row.had >= REPRESENTATIVE * length {
        return row.achieved().min(most);
    }
    let otherwise = if row.is_healthy() { usual } else { row.asked };
    (length / (row.done + (length - row.had) / otherwise)).min(most)
}

/// Adds the requested slowdowns from one time to another.
fn add_asked(pieces: &mut Vec<Piece>, asked: &[Burst], (from, until): (Time, Time), usual: f64) {
    let mut add = |piece: Piece| pieces.extend((piece.0 < piece.1).then_some(piece));
    let mut at = from;
    let first = asked.partition_point(|burst| burst.end <= from);
    for burst in asked[first..].iter().take_while(|burst| burst.start < until) {
        add((at, burst.start, usual));
        add((burst.start.max(at), burst.end.min(until), burst.slowdown));
        at = burst.end;
    }
    add((at, until, usual));
}

#[cfg(test)]
mod tests {
    use volary_experiment::config::Overrides;

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
        let mut pieces = course(rows, &asked, at(end));
        let last = pieces.pop().unwrap();
        assert_eq!((last.0, last.1), (at(end), Time::MAX), "the last piece has no end");
        pieces.into_iter().map(|(from, until, s)| (ms(from), ms(until), round(s))).collect()
    }

    /// Cores are as measured while they had work. At other times, bursts are as requested, and healthy times have the
    /// mean of the measured healthy times.
    #[test]
    fn the_course_of_a_core_has_no_gaps_and_the_measured_slowdowns() {
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

    /// The slowdown of a short busy time in a stretch applies only to its own length. The rest of the stretch has the
    /// core's bursts and usual slowdown.
    #[test]
    fn the_slowdown_of_a_short_busy_time_applies_only_to_its_length() {
        let rows = [row(0, 100, 1.0, 1.0, 1.0), row(100, 200, 1.0, 0.01, f64::INFINITY)];
        let usual = 0.101 / 0.1;
        let stalled: f64 = 0.1 / (0.099 / usual);
        let round = |s: f64| (s * 1e6).round() / 1e6;
        assert_eq!(pieces(&rows, &[], 200), [(0, 100, 1.0), (100, 200, round(stalled))]);
        let rows = [row(0, 100, 4.0, 0.05, f64::INFINITY), row(100, 200, 4.0, 0.25, 4.4)];
        let found = pieces(&rows, &[(0, 200)], 200);
        assert_eq!(found, [(0, 100, round(4.0 / 0.95)), (100, 200, 4.4)]);
        assert_eq!(pieces(&[row(0, 100, 1.0, 1.0, f64::INFINITY)], &[], 100), [(0, 100, STILL)]);
        assert_eq!(pieces(&[], &[(10, 20)], 30), [(0, 10, 1.0), (10, 20, 4.0), (20, 30, 1.0)]);
        let rows = [row(0, 101, 1.0, 1.0, 1.0), row(100, 200, 4.0, 1.0, 4.0)];
        assert_eq!(pieces(&rows, &[(100, 200)], 200), [(0, 101, 1.0), (101, 200, 4.0)], "an overlap");
    }

    /// If a run measured the requested speed of its cores, the reference is unchanged up to rounding to nanoseconds. A
    /// slower core changes the reference.
    #[test]
    fn cores_of_the_requested_speed_leave_the_reference_unchanged() {
        let text = r#"
            title = "t"
            seed = 5
            [cluster]
            cores = 2
            schedulers = 1
            nodes = 3
            [workload.synthetic]
            jobs = 200
            tasks = 2
            interarrival = { exponential = { mean = "100ms" } }
            [service]
            demand = { exponential = { mean = "80ms" } }
            [network]
            one_way = "1ms"
            [interference]
            scope = "node"
            markov = { slot = "50ms", p_on = 0.1, p_off = 0.2, slowdown = 3 }
            [[policy]]
            random = {}
        "#;
        let experiment = Experiment::plan("t.toml", text, &Overrides::default()).unwrap();
        let world = || World::build(&experiment.points[0], 5, &experiment.traces()).unwrap();
        let run = |world: &World| {
            pool::measure("t", world, &experiment.run, &StudyControl::default())
                .unwrap()
                .summary
                .times
                .response_s
        };
        let plain = world();
        let end = Time(30_000_000_000);
        // One core has no usable stretches, and one core was slower than requested.
        let stretches = |core: u32, by: f64| {
            let cores = plain.cores();
            let bursts: Vec<Burst> = cores.bursts(core, Time::ZERO, end).collect();
            let stretch = move |(from, until, asked): Piece| {
                let [start, end] = [from, until].map(Time::as_secs_f64);
                CoreRow { core, start, end, asked, had: end - start, done: (end - start) / asked / by }
            };
            let mut pieces = Vec::new();
            add_asked(&mut pieces, &bursts, (Time::ZERO, end), 1.0);
            pieces.into_iter().map(stretch).collect::<Vec<_>>()
        };
        let as_asked: Vec<_> = (0..5).flat_map(|core| stretches(core, 1.0)).collect();
        let (asked, again) = (run(&plain), run(&found(world(), &as_asked).unwrap()));
        for (a, b) in [(asked.p50, again.p50), (asked.p99, again.p99), (asked.mean, again.mean)] {
            assert!((a - b).abs() < 1e-6, "{asked:?} became {again:?}");
        }
        let by = |by: f64| {
            let rows: Vec<_> = (0..6).flat_map(|core| stretches(core, by)).collect();
            run(&found(world(), &rows).unwrap()).mean / asked.mean - 1.0
        };
        assert!(by(1.05) > 0.04 && by(0.9) < -0.08, "{} {}", by(1.05), by(0.9));
    }
}
