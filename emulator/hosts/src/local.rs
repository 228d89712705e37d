//! The runtime `local`: real time in one process, with a shard on each actix arbiter.
//!
//! After each slice of events a shard puts all parcels for another shard into that shard's [`Mailbox`] at once. It
//! wakes the other shard only if that shard would sleep past the due time of the first parcel. Waking a thread costs a
//! hundred times as much as a message, and most messages are due after their receiver has woken for others.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actix::{Actor, Addr, Context, Handler, Message};
use actix_rt::{Arbiter, System};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use tokio::sync::oneshot;
use volary_actors::base::{Class, Time};
use volary_engine::metrics::{Aggregator, EndReason, MessageWindow, Recording};
use volary_engine::parcel::{Observation, Parcel};
use volary_engine::results::{Measured, Worked};
use volary_engine::shard::{Parts, Placement, Shard};
use volary_engine::world::World;
use volary_engine::world::finalize::{Counters, FinishedRun};
use volary_experiment::config::{RealSection, RunSection};
use volary_experiment::control::{RunError, ShardSample, StudyControl};
use volary_experiment::cost;
use volary_experiment::fidelity::measure::{LatenessHistograms, Reading, real_time};
use volary_experiment::guard::guard;
use volary_experiment::storage::input_log;

use crate::awake::Attempt;
use crate::executor::{Burners, CpuId, RealExecutor, assign_cpus, free_cpus};
use crate::real_time::clock::{Clock, MonotonicClock};
use crate::real_time::event_loop::{Inbox, RealTimeObserver, ShardIo, run_shard};
use crate::real_time::host_stats::{HostStats, ShardSampler};
use crate::real_time::monitor::Monitor;
use crate::real_time::placement::place;

/// Capacity of the channel to the aggregator, in reports; a shard waits while it is full.
const REPORTS: usize = 64;
/// Interval of the check whether the run is over.
const END_CHECK: Duration = Duration::from_millis(20);
/// Real time between the decision to start and the common start, within which every shard becomes ready.
const START_DELAY: Duration = Duration::from_millis(50);

/// The name of the only host.
const NAME: &str = "local";

/// Wakes a shard: its mailbox holds a parcel that is due before its timer expires.
struct Wake;

impl Message for Wake {
    type Result = ();
}

/// The actix actor of a shard, which receives wake-ups from other threads.
struct WakeActor(Rc<Inbox>);

impl Actor for WakeActor {
    type Context = Context<Self>;
}

impl Handler<Wake> for WakeActor {
    type Result = ();
    fn handle(&mut self, _: Wake, _: &mut Context<Self>) {
        self.0.wake();
    }
}

/// Reports of shards to the aggregator.
enum Report {
    Notes { shard: u16, notes: Vec<Observation>, mark: Time },
    Sample { shard: u16, sample: Box<ShardSample> },
    End { shard: u16, tally: Box<Counters>, reading: Box<Reading>, cores: Option<Box<Worked>> },
    Broken(String),
}

/// The state that the shards of a run share.
struct LocalRun {
    world: World,
    homes: Vec<u16>,
    speed: f64,
    recording: Recording,
    /// `[run.real]` and the CPU of each core, if copies burn cores.
    real: Option<(RealSection, Vec<CpuId>)>,
    stop: AtomicBool,
    /// The log of inputs, if there is one.
    log: Option<input_log::RunLog>,
    /// The emulated time that each shard has reached.
    progress: Vec<AtomicU64>,
    mailboxes: Vec<Mailbox>,
}

impl LocalRun {
    /// Calibrated burners for the cores of a shard, and the cores; `None` if copies are timed.
    fn burners(&self, placement: &Placement<'_>) -> Option<Result<(Burners, Vec<u32>), String>> {
        let (real, cpus) = self.real.as_ref()?;
        let layout = self.world.layout();
        let mine = |core: &u32| placement.owns(layout.node(layout.node_of_core(*core)).index());
        let cores: Vec<u32> = (0..layout.workers()).filter(mine).collect();
        let cpus: Vec<_> = cores.iter().map(|core| cpus[*core as usize]).collect();
        let burners = Burners::start(real.kernel, &cpus).map_err(|error| error.to_string());
        Some(burners.map(|burners| (burners, cores)))
    }
}

/// The [`ShardIo`] of a shard: mailboxes in memory.
struct LocalIo {
    me: u16,
    run: Arc<LocalRun>,
    wakes: Vec<Addr<WakeActor>>,
    aggregator: Sender<Report>,
    sampler: ShardSampler,
}

impl LocalIo {
    fn mailbox(&self) -> &Mailbox {
        &self.run.mailboxes[self.me as usize]
    }
}

impl ShardIo for LocalIo {
    fn send(&mut self, to: u16, _: Class, parcels: &mut Vec<Parcel>) {
        if self.run.mailboxes[to as usize].put(parcels) {
            self.wakes[to as usize].do_send(Wake);
        }
    }

    fn collect(&mut self, parcels: &mut Vec<Parcel>) {
        self.mailbox().take(parcels);
    }

    fn park_until(&mut self, until: Time) -> bool {
        self.mailbox().park_until(until)
    }

    fn unpark(&mut self) {
        self.mailbox().unpark();
    }

    fn has_incoming(&self) -> bool {
        self.mailbox().is_filled()
    }

    fn report(&mut self, notes: Vec<Observation>, mark: Time) {
        // Fails only if the aggregator is gone, because the run is over.
        let _ = self.aggregator.send(Report::Notes { shard: self.me, notes, mark });
    }

    fn look(&mut self, shard: &Shard<'_, RealTimeObserver>) {
        if let Some(sample) = self.sampler.sample(shard) {
            let _ = self.aggregator.send(Report::Sample { shard: self.me, sample: Box::new(sample) });
        }
    }

    fn progress(&mut self, mine: Time) -> Time {
        let all = &self.run.progress;
        all[self.me as usize].store(mine.0, Ordering::Relaxed);
        let others = all.iter().enumerate().filter(|(i, _)| *i != self.me as usize);
        Time(others.map(|(_, at)| at.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX / 2))
    }

    fn stopped(&self) -> bool {
        self.run.stop.load(Ordering::Relaxed)
    }
}

/// Runs one point under one seed in real time on `threads` shards; `id` identifies the run.
///
/// # Errors
/// [`RunError::Interrupted`] when stopped, with the measurements so far; [`RunError::Refused`] for errors that
/// appear only under this seed, and for resources that the system refuses.
///
/// # Panics
/// On a bug in a policy: a job that finishes twice, counters that do not add up.
pub fn measure(
    name: &str,
    id: &str,
    world: World,
    run: &RunSection,
    threads: usize,
    log: Option<input_log::RunLog>,
    control: &StudyControl,
) -> Result<Measured, RunError> {
    let clock = Instant::now();
    let cpu = cost::process_cpu_s();
    let shards = threads.clamp(1, world.layout().nodes().max(1) as usize) as u16;
    let heals_at = world.faults().heals_at();
    let cores = world.layout().workers() as usize;
    let cpus = |real: RealSection| Ok((real, assign_cpus(&real, cores, &free_cpus())?));
    let real = run.burning().map(cpus).transpose().map_err(RunError::Refused)?;
    let shared = Arc::new(LocalRun {
        homes: place(world.machines(), &vec![1.0; shards as usize]),
        speed: run.speed,
        recording: run.recording(),
        real,
        stop: AtomicBool::new(false),
        log,
        progress: (0..shards).map(|_| AtomicU64::new(0)).collect(),
        mailboxes: (0..shards).map(|_| Mailbox::default()).collect(),
        world,
    });
    let mut aggregator = Aggregator::new(
        shared.world.recorder(run.recording()),
        shards as usize,
        shared.world.limit(run.until),
        heals_at,
    );
    let (send, receive) = bounded(REPORTS);
    let awake = Attempt::begin(run.keeps_awake());
    let arbiters = launch(&shared, shards, &send)?;
    drop(send);
    let stats = HostStats::begin(NAME);
    let names = (0..shards).map(|shard| format!("{NAME}, shard {shard}"));
    let monitor = Monitor::new(control, id, &shared.world, names);
    let result = aggregate(&mut aggregator, receive, &shared, monitor, control);
    let stats = awake.end(stats.end());
    shared.stop.store(true, Ordering::Relaxed);
    drop(arbiters);
    let EndedRun { reason, tally, gauge, cores } = result?;
    let (accounts, now) = aggregator.close();
    let finished = FinishedRun {
        experiment: name,
        world: &shared.world,
        recording: run.recording(),
        runtime: "local",
        counters: &tally,
        real: Some(real_time(
            &shared.world,
            run.speed,
            &tally,
            &gauge,
            vec![stats],
            cores,
            (&accounts, reason, now),
        )),
        injected: None,
    };
    let mut measured = finished.measured(accounts, now);
    let engine = &mut measured.summary.engine;
    engine.cpu_s = cost::process_cpu_s() - cpu;
    engine.wall_s = clock.elapsed().as_secs_f64();
    engine.peak_rss_bytes = cost::peak_rss_bytes();
    if reason == EndReason::Interrupted {
        return Err(RunError::Interrupted(Some(Box::new(measured))));
    }
    Ok(measured)
}

/// The threads of a run, stopped and joined on drop.
struct Arbiters {
    system: System,
    arbiters: Vec<Arbiter>,
    thread: Option<std::thread::JoinHandle<()>>,
    run: Arc<LocalRun>,
}

impl Drop for Arbiters {
    fn drop(&mut self) {
        self.run.stop.store(true, Ordering::Relaxed);
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

/// Starts a system with an arbiter for each shard, and the shards once the addresses of all of them are known.
fn launch(run: &Arc<LocalRun>, shards: u16, aggregator: &Sender<Report>) -> Result<Arbiters, RunError> {
    let refused = |error: &dyn std::fmt::Display| RunError::Refused(format!("cannot start actix: {error}"));
    let (send, receive) = bounded(1);
    let thread = std::thread::Builder::new()
        .name("actix".into())
        .spawn(move || {
            let runner = System::new();
            let _ = send.send(System::current());
            let _ = runner.run();
        })
        .map_err(|error| refused(&error))?;
    let system = receive.recv().map_err(|error| refused(&error))?;
    System::set_current(system.clone());
    let arbiters: Vec<_> = (0..shards).map(|_| Arbiter::new()).collect();
    let (ready, addresses) = bounded(shards as usize);
    let mut starts = Vec::new();
    for (me, arbiter) in arbiters.iter().enumerate() {
        let (run, aggregator, ready) = (Arc::clone(run), aggregator.clone(), ready.clone());
        let (start, started) = oneshot::channel();
        starts.push(start);
        arbiter.spawn_fn(move || {
            let reports = aggregator.clone();
            let task = actix_rt::spawn(run_on_arbiter(me as u16, run, aggregator, ready, started));
            actix_rt::spawn(async move {
                if let Err(error) = task.await {
                    let _ = reports.send(Report::Broken(format!("shard {me}: {error}")));
                }
            });
        });
    }
    drop(ready);
    let mut wakes: Vec<_> = addresses.iter().take(shards as usize).collect();
    wakes.sort_unstable_by_key(|&(me, _)| me);
    let wakes: Vec<_> = wakes.into_iter().map(|(_, address)| address).collect();
    let monotonic = MonotonicClock::new();
    for start in starts {
        // Fails if the shard could not be built, which it has reported already.
        let _ = start.send((wakes.clone(), monotonic));
    }
    Ok(Arbiters { system, arbiters, thread: Some(thread), run: Arc::clone(run) })
}

/// Builds a shard on its arbiter, waits for the start, and runs it.
async fn run_on_arbiter(
    me: u16,
    run: Arc<LocalRun>,
    aggregator: Sender<Report>,
    ready: Sender<(u16, Addr<WakeActor>)>,
    started: oneshot::Receiver<(Vec<Addr<WakeActor>>, MonotonicClock)>,
) {
    let inbox = Rc::new(Inbox::default());
    let address = WakeActor(Rc::clone(&inbox)).start();
    let shards = run.progress.len() as u16;
    let placement = Placement::new(&run.homes, me, shards);
    let inputs = run.log.as_ref().map(|log| log.section(me, shards).with_effects_of(run.world.asked()));
    let messages = MessageWindow::new(run.world.layout(), &run.recording);
    let observer = RealTimeObserver { inputs, messages, ..RealTimeObserver::default() };
    let built = run
        .world
        .parts(placement, run.recording.observes_caches())
        .map(|parts| Shard::new(Parts { oracle: false, ..parts }, observer));
    let burners = run.burners(&placement).transpose();
    let _ = ready.send((me, address));
    let (wakes, monotonic, mut shard, burners) = match (started.await, built, burners) {
        (Ok((wakes, monotonic)), Ok(shard), Ok(burners)) => (wakes, monotonic, shard, burners),
        (_, _, Err(why)) => return drop(aggregator.send(Report::Broken(why))),
        (Err(_), ..) | (_, Err(_), _) => {
            return drop(aggregator.send(Report::Broken("a shard could not be built".to_owned())));
        }
    };
    let clock = Rc::new(Clock::new(monotonic, START_DELAY.as_nanos() as i64, run.speed));
    if let (Some((burners, cores)), Some((real, _))) = (burners, &run.real) {
        let woken = Rc::clone(&inbox);
        actix_rt::spawn(burners.wake_fd().relay(move || woken.wake()));
        let table = shard.cores().table();
        let executor = RealExecutor::new(*real, NAME, burners, &cores, Rc::clone(&clock), table);
        shard.set_executor(Box::new(executor));
    }
    let sampler = ShardSampler::new(me == 0);
    let mut io = LocalIo { me, run: Arc::clone(&run), wakes, aggregator: aggregator.clone(), sampler };
    let report = match run_shard(&mut shard, &clock, &inbox, &mut io).await {
        Ok(()) => {
            let reading = Box::new(shard.observer.gauge.reading());
            let cores = shard.take_executor().map(Box::new);
            Report::End { shard: me, tally: Box::new(Counters::of(&shard)), reading, cores }
        }
        Err(error) => Report::Broken(format!("shard {me}: {error}")),
    };
    let _ = aggregator.send(report);
}

/// The result of all shards.
struct EndedRun {
    reason: EndReason,
    tally: Counters,
    gauge: LatenessHistograms,
    cores: Option<Worked>,
}

/// Passes reports to the aggregator until the run is over and every shard has ended. Owns the channel, so that a shard
/// with another report does not wait for a reader that has ended.
fn aggregate(
    aggregator: &mut Aggregator<'_>,
    reports: Receiver<Report>,
    run: &LocalRun,
    mut monitor: Monitor<'_>,
    control: &StudyControl,
) -> Result<EndedRun, RunError> {
    let (tally, gauge) = (Counters::default(), LatenessHistograms::default());
    let mut ended = EndedRun { reason: EndReason::Interrupted, tally, gauge, cores: None };
    let (mut reason, mut left) = (None, run.progress.len());
    while left > 0 {
        match reports.recv_timeout(END_CHECK) {
            Ok(Report::Notes { shard, notes, mark }) => {
                aggregator.report(shard as usize, notes, mark).unwrap_or_else(|report| report.bug());
            }
            Ok(Report::Sample { shard, sample }) => monitor.sampled(shard as usize, *sample),
            Ok(Report::End { shard, tally, reading, cores }) => {
                aggregator.end(shard as usize).unwrap_or_else(|report| report.bug());
                ended.tally.add(&tally);
                ended.gauge.merge(&reading);
                if let Some(cores) = cores {
                    ended.cores.get_or_insert_default().merge(&cores);
                }
                left -= 1;
            }
            Ok(Report::Broken(why)) => return Err(RunError::Refused(why)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(RunError::Refused("a shard ended without a report".to_owned()));
            }
        }
        if reason.is_none() {
            reason = monitor.end_reason(aggregator, control);
            run.stop.store(reason.is_some(), Ordering::Relaxed);
        }
    }
    ended.reason = reason.unwrap_or(EndReason::Interrupted);
    Ok(ended)
}

/// Parcels for one shard. A sender must wake the shard unless the shard is awake, or the shard's own timer expires
/// before the first parcel is due.
#[derive(Debug, Default)]
pub struct Mailbox {
    parcels: Mutex<Vec<Parcel>>,
    /// Whether there are parcels, for a check without the lock.
    filled: AtomicBool,
    /// Wake-up deadline in ns, 0 while the shard is awake. Written before the queue is checked under its lock, so a
    /// parcel added concurrently is either seen by the parking shard or triggers a wake-up.
    parked_until: AtomicU64,
}

impl Mailbox {
    /// Moves parcels into the mailbox; returns whether the shard must be woken for them.
    pub fn put(&self, parcels: &mut Vec<Parcel>) -> bool {
        let first = parcels.iter().map(|parcel| parcel.due.0).min().unwrap_or(u64::MAX);
        guard(&self.parcels).append(parcels);
        self.filled.store(true, Ordering::Relaxed);
        first < self.parked_until.load(Ordering::Relaxed)
    }

    /// Moves all parcels out.
    pub fn take(&self, into: &mut Vec<Parcel>) {
        if self.filled.swap(false, Ordering::Relaxed) {
            into.append(&mut guard(&self.parcels));
        }
    }

    /// Whether there may be parcels.
    pub fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Relaxed)
    }

    /// Announces that the shard sleeps until `until`; `false` if there are parcels to take first.
    pub fn park_until(&self, until: Time) -> bool {
        self.parked_until.store(until.0, Ordering::Relaxed);
        guard(&self.parcels).is_empty()
    }

    /// Announces that the shard is awake.
    pub fn unpark(&self) {
        self.parked_until.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use volary_actors::base::{ActorId, JobId};
    use volary_actors::message::Probe;

    use super::*;

    fn parcel(due: u64) -> Parcel {
        let msg = Probe::Claim { job: JobId(0), group: 0, repair: false }.into();
        let (from, to) = (ActorId(0), ActorId(1));
        Parcel { sent: Time::ZERO, due: Time(due), from, count: 0, to, msg, returned: false }
    }

    #[test]
    fn a_shard_is_woken_only_for_parcels_that_it_would_miss() {
        let mailbox = Mailbox::default();
        assert!(!mailbox.put(&mut vec![parcel(5)]), "the shard is awake");
        assert!(!mailbox.park_until(Time(100)), "there is a parcel to take first");
        let mut taken = Vec::new();
        mailbox.take(&mut taken);
        assert!(taken.len() == 1 && !mailbox.is_filled() && mailbox.park_until(Time(100)));
        assert!(!mailbox.put(&mut vec![parcel(100), parcel(200)]), "the timer wakes it in time");
        assert!(mailbox.put(&mut vec![parcel(300), parcel(99)]), "the timer is too late");
        mailbox.unpark();
        assert!(!mailbox.put(&mut vec![parcel(1)]));
        mailbox.take(&mut taken);
        assert_eq!(taken.len(), 6);
    }

    #[test]
    fn a_sender_wakes_a_shard_that_sleeps_past_a_parcel() {
        const PARCELS: usize = 20_000;
        let mailbox = Mailbox::default();
        let (wake, wakes) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let wake = wake;
                for due in 0..PARCELS as u64 {
                    if mailbox.put(&mut vec![parcel(due)]) {
                        wake.send(()).unwrap();
                    }
                }
            });
            let mut taken = Vec::new();
            while taken.len() < PARCELS {
                mailbox.take(&mut taken);
                if taken.len() < PARCELS && mailbox.park_until(Time::MAX) {
                    // Fails if the sender ends without the wake-up: it was lost.
                    wakes.recv().unwrap();
                }
                mailbox.unpark();
            }
        });
    }
}
