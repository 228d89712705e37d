//! Virtual time: the clock jumps from event to event, as fast as the processor goes.

use std::time::Instant;

use volary_actors::base::{Endpoint, Span, Time};
use volary_actors::message::KINDS;
use volary_netem::{Fabric, Faults};

use super::cost;
use super::pool::Watch;
use crate::cores::{Cores, Pause, Pauses};
use crate::record::fold::{Books, Limits, Recorder};
use crate::results::{Engine, Measured, Messages, Summary};
use crate::shard::{Parts, Placement, Shard, Traffic};
use crate::spec::{Machines, Point, RunSection};
use crate::workload::Workload;

/// Emulated time without a copy starting or ending, with nothing left to arrive, after which the jobs that
/// are open are given up as unfinished. Longer than any repair takes.
const STALLED: Span = Span::from_secs(24 * 3600);
/// Events between two looks at the clock on the wall and at the wish to stop.
const SLICE: u64 = 1 << 14;

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum UnitError {
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// The experiment cannot be run with this seed.
    #[error("{0}")]
    Refused(String),
}

/// Runs one point under one seed, from the first arrival to the last completion.
///
/// # Errors
/// [`UnitError::Interrupted`] when told to stop; [`UnitError::Refused`] for what only shows under this seed.
///
/// # Panics
/// On a bug in a policy: a job that finishes twice, books that do not close.
pub fn measure(
    name: &str,
    point: &Point,
    seed: u64,
    run: &RunSection,
    workload: &Workload,
    watch: &Watch,
) -> Result<Measured, UnitError> {
    let clock = Instant::now();
    let cpu = cost::thread_cpu_s();
    point.resolved.cluster.check(seed).map_err(UnitError::Refused)?;
    let machines = point.resolved.cluster.machines(0, seed);
    let parts = parts(point, seed, &machines, workload)?;
    let recorder = Recorder::new(&machines.layout, workload, limits(run));
    let mut shard = Shard::new(parts, recorder);
    drive(&mut shard, run.until, watch)?;
    let now = shard.now();
    let bursts = timeline_bursts(&shard, run);
    let engine = Engine {
        events: shard.events(),
        order_hash: format!("{:016x}", shard.order_hash()),
        cpu_s: 0.0,
        wall_s: 0.0,
        peak_rss_bytes: 0,
    };
    let messages = messages(shard.traffic());
    let mut notes = fault_notes(&shard);
    let books = shard.observer.close(now);
    notes.extend(books.notes.iter().cloned());
    notes.extend(workload.warnings().iter().cloned());
    let summary = Summary {
        engine: Engine {
            cpu_s: cost::thread_cpu_s() - cpu,
            wall_s: clock.elapsed().as_secs_f64(),
            peak_rss_bytes: cost::peak_rss_bytes(),
            ..engine
        },
        ..summary(name, point, seed, &books, messages)
    };
    Ok(Measured {
        summary,
        jobs: books.rows,
        copies: books.sample,
        sampled_one_in: books.sampled_one_in,
        timeline: books.timeline,
        bursts,
        notes,
    })
}

/// Everything a shard is made of.
fn parts<'a>(
    point: &'a Point,
    seed: u64,
    machines: &'a Machines,
    workload: &'a Workload,
) -> Result<Parts<'a>, UnitError> {
    let refused = |error: &dyn std::fmt::Display| UnitError::Refused(error.to_string());
    let resolved = &point.resolved;
    let layout = &machines.layout;
    let faults = Faults::resolve(&resolved.network.fault, &machines.groups, layout.endpoints())
        .map_err(|error| refused(&error))?;
    let pauses = (0..layout.nodes()).flat_map(|node| {
        let windows = faults.pauses(Endpoint(layout.node(node).0));
        windows.iter().map(move |&(from, until)| Pause { node, from, until })
    });
    let pauses = Pauses::new(pauses);
    let any_pause = (0..layout.endpoints()).any(|endpoint| !faults.pauses(Endpoint(endpoint)).is_empty());
    let cores = Cores::new(resolved.interference.as_ref(), machines.cores.clone(), pauses, seed);
    let hubs = 2 * layout.schedulers();
    let fabric =
        Fabric::new(&resolved.network, machines.links.clone(), layout.endpoints(), hubs, faults, seed)
            .map_err(|error| refused(&error))?;
    Ok(Parts {
        layout,
        workload,
        policy: &point.policy,
        seed,
        lossy: fabric.loses_datagrams(),
        pauses: any_pause,
        peer_timeout: resolved.network.peer_timeout,
        fabric,
        cores,
        placement: Placement::ALONE,
    })
}

const fn limits(run: &RunSection) -> Limits {
    Limits {
        copies: 200_000,
        one_in: run.record.tasks_one_in,
        timeline_cores: run.record.timeline_cores,
        timeline: run.record.timeline,
        timeline_copies: 20_000,
    }
}

/// Steps until every job has ended, or nothing more can happen.
fn drive(shard: &mut Shard<'_, Recorder<'_>>, until: Option<Span>, watch: &Watch) -> Result<(), UnitError> {
    // Looking at the next event costs a little: only where something depends on it.
    let over = |shard: &Shard<'_, Recorder<'_>>| {
        until.is_some_and(|span| shard.next().is_none_or(|due| due > Time::ZERO + span))
    };
    let mut told = 0;
    shard.start();
    loop {
        for _ in 0..SLICE {
            if shard.observer.all_finished() || over(shard) || !shard.advance() {
                watch.bar.inc(shard.observer.finished_jobs() - told);
                return Ok(());
            }
        }
        let finished = shard.observer.finished_jobs();
        watch.bar.inc(finished - told);
        told = finished;
        if watch.stopped() {
            return Err(UnitError::Interrupted);
        }
        let idle = shard.now().since(shard.observer.last_progress());
        if idle > STALLED && !shard.observer.is_active() && shard.now() > shard.fabric().faults().heals_at() {
            return Ok(());
        }
    }
}

fn messages(traffic: &Traffic) -> Messages {
    let sent: u64 = traffic.by_kind.iter().sum();
    Messages {
        total: sent - traffic.recovery,
        dropped: traffic.dropped,
        recovery: traffic.recovery + traffic.retransmissions,
        by_kind: KINDS
            .iter()
            .zip(traffic.by_kind)
            .filter(|(_, count)| *count > 0)
            .map(|((name, _), count)| ((*name).to_owned(), count))
            .collect(),
    }
}

fn summary(name: &str, point: &Point, seed: u64, books: &Books, messages: Messages) -> Summary {
    Summary {
        experiment: name.to_owned(),
        policy: point.label.clone(),
        cell: point.cell.clone(),
        runtime: "virtual".to_owned(),
        seed,
        jobs: books.jobs,
        tasks: books.tasks,
        copies: books.copies,
        response_s: books.response,
        wait_s: books.wait,
        slowdown: books.slowdown,
        makespan_s: books.makespan,
        utilization: books.utilization,
        messages,
        staleness: None,
        fidelity: None,
        engine: Engine::default(),
    }
}

/// Degraded stretches of the cores that the timeline draws, within its window.
fn timeline_bursts(shard: &Shard<'_, Recorder<'_>>, run: &RunSection) -> Vec<(u32, f64, f64, f64)> {
    let window = Time::ZERO + run.record.timeline;
    let end = window.min(shard.now());
    (0..run.record.timeline_cores.min(shard.layout().workers()))
        .flat_map(|core| {
            shard
                .cores()
                .bursts(core, Time::ZERO, end)
                .map(move |burst| (core, burst.start.as_secs_f64(), burst.end.as_secs_f64(), burst.slowdown))
        })
        .collect()
}

/// Which faults fired, for the report.
fn fault_notes(shard: &Shard<'_, Recorder<'_>>) -> Vec<String> {
    let stats = shard.fabric().stats();
    volary_netem::Cause::ALL
        .iter()
        .filter(|cause| stats.lost(**cause) > 0)
        .map(|cause| {
            let at = *cause as usize;
            format!(
                "{cause:?}: {} transmissions failed; {} datagrams never arrived, {} stream messages came back",
                stats.lost(*cause),
                stats.datagram.dropped[at],
                stats.stream.unreachable[at]
            )
        })
        .collect()
}
