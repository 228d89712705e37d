//! Real time in one process: a shard on each actix arbiter.
//!
//! An arbiter is a thread with a mailbox. Shards lay what a turn leaves for another shard into that one's tray,
//! all at once, and knock at its mailbox only if it sleeps past the time when the first of it is due: to wake a
//! thread costs a hundred times what a message does, and most messages are due after their receiver has been
//! awake for others.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use actix::{Actor, Addr, Context, Handler, Message};
use actix_rt::{Arbiter, System};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use tokio::sync::oneshot;
use volary_actors::base::{Class, Time};

use super::cost;
use super::error::UnitError;
use super::real::clock::Clock;
use super::real::drive::{Inbox, Post, drive};
use super::real::keeper::{Keeper, Over};
use super::real::labour::{Team, assign};
use super::real::place::place;
use super::real::ticks::Ticks;
use super::real::tray::Tray;
use super::real::vitals::Vitals;
use super::real::watcher::Watcher;
use super::watch::Watch;
use crate::burn::{CpuId, free_cpus};
use crate::config::{RealSection, RunSection};
use crate::fidelity::Worked;
use crate::fidelity::gauge::{Gauge, Reading};
use crate::fidelity::measure::real_time;
use crate::parcel::{Observation, Parcel};
use crate::results::Measured;
use crate::shard::{Placement, Shard};
use crate::storage::input_log;
use volary_engine::finalize::{Counters, FinishedRun};
use volary_engine::world::World;

/// Reports that wait for the keeper at most; a shard that has more to say waits.
const REPORTS: usize = 64;
/// How often the keeper looks whether the run is over.
const LOOK: Duration = Duration::from_millis(20);
/// Real time from the decision to start until the start: every shard is ready by then.
const LEAD: Duration = Duration::from_millis(50);

/// The name of the one host.
const NAME: &str = "local";

/// There is something in the tray that is due before the shard wakes by itself.
struct Knock;

impl Message for Knock {
    type Result = ();
}

/// The mailbox of a shard.
struct Mailbox(Rc<Inbox>);

impl Actor for Mailbox {
    type Context = Context<Self>;
}

impl Handler<Knock> for Mailbox {
    type Result = ();
    fn handle(&mut self, _: Knock, _: &mut Context<Self>) {
        self.0.wake();
    }
}

/// What shards tell the keeper.
enum Report {
    Notes { shard: u16, notes: Vec<Observation>, mark: Time },
    End { shard: u16, tally: Box<Counters>, reading: Box<Reading>, cores: Option<Box<Worked>> },
    Broken(String),
}

/// What the shards of a run share.
struct Shared {
    world: World,
    homes: Vec<u16>,
    speed: f64,
    /// How copies burn cores, and the CPU of each core, if they do.
    real: Option<(RealSection, Vec<CpuId>)>,
    stop: AtomicBool,
    /// Where inputs are logged, if they are.
    log: Option<input_log::Unit>,
    /// How far each has come.
    progress: Vec<AtomicU64>,
    trays: Vec<Tray>,
}

impl Shared {
    /// Those who burn the cores of a shard, calibrated; none if copies are timed.
    fn team(&self, placement: &Placement<'_>) -> Option<Result<Team, String>> {
        let (real, cpus) = self.real.as_ref()?;
        let layout = self.world.layout();
        let mine = |core: &u32| placement.owns(layout.node(layout.node_of_core(*core)).index());
        let cores = (0..layout.workers()).filter(mine).map(|core| (core, cpus[core as usize]));
        Some(Team::start(*real, NAME, cores.collect()))
    }
}

/// The [`Post`] of a shard.
struct Office {
    me: u16,
    shared: Arc<Shared>,
    mailboxes: Vec<Addr<Mailbox>>,
    keeper: Sender<Report>,
}

impl Office {
    fn tray(&self) -> &Tray {
        &self.shared.trays[self.me as usize]
    }
}

impl Post for Office {
    fn send(&mut self, to: u16, _: Class, parcels: &mut Vec<Parcel>) {
        if self.shared.trays[to as usize].put(parcels) {
            self.mailboxes[to as usize].do_send(Knock);
        }
    }

    fn collect(&mut self, parcels: &mut Vec<Parcel>) {
        self.tray().take(parcels);
    }

    fn rest(&mut self, until: Time) -> bool {
        self.tray().rest(until)
    }

    fn rise(&mut self) {
        self.tray().rise();
    }

    fn filled(&self) -> bool {
        self.tray().is_filled()
    }

    fn report(&mut self, notes: Vec<Observation>, mark: Time) {
        // Fails only if the keeper is gone, and then nobody is interested.
        let _ = self.keeper.send(Report::Notes { shard: self.me, notes, mark });
    }

    fn progress(&mut self, mine: Time) -> Time {
        let all = &self.shared.progress;
        all[self.me as usize].store(mine.0, Ordering::Relaxed);
        let others = all.iter().enumerate().filter(|(i, _)| *i != self.me as usize);
        Time(others.map(|(_, at)| at.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX / 2))
    }

    fn stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }
}

/// Runs one point under one seed in real time on `threads` shards.
///
/// # Errors
/// [`UnitError::Interrupted`] when told to stop; [`UnitError::Refused`] for what only shows under this seed or
/// what the system refuses.
///
/// # Panics
/// On a bug in a policy: a job that finishes twice, books that do not close.
pub fn measure(
    name: &str,
    world: World,
    run: &RunSection,
    threads: usize,
    log: Option<input_log::Unit>,
    watch: &Watch,
) -> Result<Measured, UnitError> {
    let clock = Instant::now();
    let cpu = cost::process_cpu_s();
    let shards = threads.clamp(1, world.layout().nodes().max(1) as usize) as u16;
    let heals_at = world.faults().heals_at();
    let cores = world.layout().workers() as usize;
    let cpus = |real: RealSection| Ok((real, assign(&real, cores, &free_cpus())?));
    let real = run.burning().map(cpus).transpose().map_err(UnitError::Refused)?;
    let shared = Arc::new(Shared {
        homes: place(world.layout(), &world.machines().links, &vec![1.0; shards as usize]),
        speed: run.speed,
        real,
        stop: AtomicBool::new(false),
        log,
        progress: (0..shards).map(|_| AtomicU64::new(0)).collect(),
        trays: (0..shards).map(|_| Tray::default()).collect(),
        world,
    });
    let mut keeper =
        Keeper::new(shared.world.recorder(run.recording()), shards as usize, run.until, heals_at);
    let (send, receive) = bounded(REPORTS);
    let arbiters = launch(&shared, shards, &send)?;
    drop(send);
    let vitals = Vitals::begin(NAME);
    let result = attend(&mut keeper, receive, &shared, shards, watch);
    let vitals = vitals.end();
    shared.stop.store(true, Ordering::Relaxed);
    drop(arbiters);
    let Ended { over, tally, gauge, cores } = result?;
    if over == Over::Interrupted {
        return Err(UnitError::Interrupted);
    }
    let (books, now) = keeper.close();
    let finished = FinishedRun {
        experiment: name,
        world: &shared.world,
        recording: run.recording(),
        runtime: "local",
        counters: &tally,
        real: Some(real_time(&shared.world, run.speed, &tally, &gauge, vec![vitals], cores, &books)),
        injected: None,
    };
    let mut measured = finished.measured(books, now);
    let engine = &mut measured.summary.engine;
    engine.cpu_s = cost::process_cpu_s() - cpu;
    engine.wall_s = clock.elapsed().as_secs_f64();
    engine.peak_rss_bytes = cost::peak_rss_bytes();
    Ok(measured)
}

/// Threads of a run; stopped and joined when it is over, however it ends.
struct Arbiters {
    system: System,
    arbiters: Vec<Arbiter>,
    thread: Option<std::thread::JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl Drop for Arbiters {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for arbiter in self.arbiters.drain(..) {
            arbiter.stop();
            let _ = arbiter.join();
        }
        self.system.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts a system with an arbiter for each shard, and the shards once all mailboxes are known.
fn launch(shared: &Arc<Shared>, shards: u16, keeper: &Sender<Report>) -> Result<Arbiters, UnitError> {
    let refused = |error: &dyn std::fmt::Display| UnitError::Refused(format!("cannot start actix: {error}"));
    let (tell, hear) = bounded(1);
    let thread = std::thread::Builder::new()
        .name("actix".into())
        .spawn(move || {
            let runner = System::new();
            let _ = tell.send(System::current());
            let _ = runner.run();
        })
        .map_err(|error| refused(&error))?;
    let system = hear.recv().map_err(|error| refused(&error))?;
    System::set_current(system.clone());
    let arbiters: Vec<_> = (0..shards).map(|_| Arbiter::new()).collect();
    let (ready, readies) = bounded(shards as usize);
    let mut starts = Vec::new();
    for (me, arbiter) in arbiters.iter().enumerate() {
        let (shared, keeper, ready) = (Arc::clone(shared), keeper.clone(), ready.clone());
        let (start, started) = oneshot::channel();
        starts.push(start);
        arbiter.spawn_fn(move || {
            let witness = keeper.clone();
            let life = actix_rt::spawn(inhabit(me as u16, shared, keeper, ready, started));
            actix_rt::spawn(async move {
                if let Err(error) = life.await {
                    let _ = witness.send(Report::Broken(format!("shard {me}: {error}")));
                }
            });
        });
    }
    drop(ready);
    let mut mailboxes: Vec<_> = readies.iter().take(shards as usize).collect();
    mailboxes.sort_unstable_by_key(|&(me, _)| me);
    let mailboxes: Vec<_> = mailboxes.into_iter().map(|(_, mailbox)| mailbox).collect();
    let ticks = Ticks::new();
    for start in starts {
        // A shard that could not be built has told the keeper so.
        let _ = start.send((mailboxes.clone(), ticks));
    }
    Ok(Arbiters { system, arbiters, thread: Some(thread), shared: Arc::clone(shared) })
}

/// The life of a shard on its arbiter.
async fn inhabit(
    me: u16,
    shared: Arc<Shared>,
    keeper: Sender<Report>,
    ready: Sender<(u16, Addr<Mailbox>)>,
    started: oneshot::Receiver<(Vec<Addr<Mailbox>>, Ticks)>,
) {
    let inbox = Rc::new(Inbox::default());
    let mailbox = Mailbox(Rc::clone(&inbox)).start();
    let shards = shared.progress.len() as u16;
    let placement = Placement::new(&shared.homes, me, shards);
    let inputs = shared.log.as_ref().map(|log| log.section(me, shards));
    let watcher = Watcher { inputs, ..Watcher::default() };
    let built = shared.world.parts(placement).map(|parts| Shard::new(parts, watcher));
    let team = shared.team(&placement).transpose();
    let _ = ready.send((me, mailbox));
    let (mailboxes, ticks, mut shard, team) = match (started.await, built, team) {
        (Ok((mailboxes, ticks)), Ok(shard), Ok(team)) => (mailboxes, ticks, shard, team),
        (_, _, Err(why)) => return drop(keeper.send(Report::Broken(why))),
        (Err(_), ..) | (_, Err(_), _) => {
            return drop(keeper.send(Report::Broken("a shard could not be built".to_owned())));
        }
    };
    let clock = Rc::new(Clock::new(ticks, LEAD.as_nanos() as i64, shared.speed));
    if let Some(team) = team {
        let woken = Rc::clone(&inbox);
        actix_rt::spawn(team.bell().relay(move || woken.wake()));
        let hands = team.hands(Rc::clone(&clock), shard.cores().table());
        shard.employ(Box::new(hands));
    }
    let mut office = Office { me, shared: Arc::clone(&shared), mailboxes, keeper: keeper.clone() };
    let report = match drive(&mut shard, &clock, &inbox, &mut office).await {
        Ok(()) => {
            let reading = Box::new(shard.observer.gauge.reading());
            let cores = shard.dismiss().map(Box::new);
            Report::End { shard: me, tally: Box::new(Counters::of(&shard)), reading, cores }
        }
        Err(error) => Report::Broken(format!("shard {me}: {error}")),
    };
    let _ = keeper.send(report);
}

/// A run that has ended.
struct Ended {
    over: Over,
    tally: Counters,
    gauge: Gauge,
    cores: Option<Worked>,
}

/// Keeps the books until the run is over and every shard has said its last word. Takes the channel along: whoever
/// still has something to say must not wait for a reader that is gone.
fn attend(
    keeper: &mut Keeper<'_>,
    reports: Receiver<Report>,
    shared: &Shared,
    shards: u16,
    watch: &Watch,
) -> Result<Ended, UnitError> {
    let (tally, gauge) = (Counters::default(), Gauge::default());
    let mut ended = Ended { over: Over::Interrupted, tally, gauge, cores: None };
    let (mut over, mut left) = (None, shards);
    while left > 0 {
        match reports.recv_timeout(LOOK) {
            Ok(Report::Notes { shard, notes, mark }) => keeper.report(shard as usize, notes, mark),
            Ok(Report::End { shard, tally, reading, cores }) => {
                keeper.end(shard as usize);
                ended.tally.add(&tally);
                ended.gauge.merge(&reading);
                if let Some(cores) = cores {
                    ended.cores.get_or_insert_default().merge(&cores);
                }
                left -= 1;
            }
            Ok(Report::Broken(why)) => return Err(UnitError::Refused(why)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(UnitError::Refused("a shard ended without a word".to_owned()));
            }
        }
        if over.is_none() {
            over = keeper.over(watch);
            shared.stop.store(over.is_some(), Ordering::Relaxed);
        }
    }
    ended.over = over.unwrap_or(Over::Interrupted);
    Ok(ended)
}
