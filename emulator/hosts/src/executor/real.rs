//! The executor of a shard on real cores: copies run on [`Burners`], the burner and competitor threads of all its
//! cores, and the event loop receives their ends.
//!
//! Emulated cores take the highest CPUs that the process may use, one each, in order. The work of an emulated second
//! takes 1 / `run.speed` seconds on a healthy core, and more or less on a core of another speed. Degraded slots are
//! those of virtual time under the same seed. Because the common clock is corrected during a run, slots are converted
//! to real time only a few seconds ahead.
//!
//! An eventfd wakes the shard, which costs one system call and takes no lock. Burner threads have the lowest priority
//! and may lose their CPU at any instruction, so they must not hold a lock that a shard waits for.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, io};

use rustix::event::{EventfdFlags, eventfd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use volary_actors::base::{Span, Time};
use volary_engine::cores::{Burst, CoreTable, Cores};
use volary_engine::results::{CoreRow, MOST_STRETCHES, RealCore, RealWork, Samples, Worked};
use volary_engine::shard::CoreExecutor;
use volary_experiment::config::file::{Kernel, RealSection};
use volary_experiment::number::{self, plural};

use super::calibration::{Calibration, CalibrationOptions, KernelLoad, calibrate};
use super::competitor::{Competed, Competitor, CoreReading, SlotReading};
use super::cpu::{self, BurnError, CpuId, failed, set_idle_priority};
use super::shared::{ChunkEnd, CoreCounters, CoreShared, DegradedSlot};
use crate::real_time::clock::Clock;

/// Real time for which burners know their slots in advance; slots are updated when half of this time has passed.
const HORIZON: Duration = Duration::from_secs(3);

/// Length from which a degraded stretch is accurate to a hundredth even if it was cut short.
const LONG: Duration = Duration::from_millis(200);

/// Share of a degraded stretch during which a core must have had a copy for the stretch to be evaluated.
const MIN_BUSY: f64 = 0.75;
/// Amount of healthy work that is evaluated as one sample: healthy stretches end at every slot and are often short.
const HEALTHY_SAMPLE: Duration = Duration::from_millis(100);

/// A core is starved if it does less than this share of a healthy core's work, and less than a tenth of the work that
/// its largest slowdown allows.
const STARVED: f64 = 0.02;

/// Selects the CPUs of `cores` emulated cores out of the `free` ones of a host.
///
/// # Errors
/// When there are too few, with the remedy.
pub fn assign_cpus(real: &RealSection, cores: usize, free: &[CpuId]) -> Result<Vec<CpuId>, String> {
    let spare = (real.spare as usize).min(free.len());
    let available = free.len() - spare;
    if cores <= available {
        return Ok(free[free.len() - cores..].to_vec());
    }
    let left =
        if spare > 0 { format!(" without the {} of run.real.spare", real.spare) } else { String::new() };
    Err(format!(
        "real work takes a CPU for each emulated core: {} there, and {} free{left}; emulate fewer cores, use more \
         hosts, or leave out [run.real]",
        plural(cores as u64, "core"),
        plural(available as u64, "CPU"),
    ))
}

/// An emulated core on its CPU.
struct ExecutorCore {
    core: u32,
    cpu: CpuId,
    /// Real time per emulated time of work on a healthy core.
    real_per_work: f64,
    /// [Progress](Burners::progress) at the last update of the slots.
    progress: (Duration, Duration),
    warned: bool,
    /// The largest slowdown of the slots since that update.
    slowest: f64,
}

impl ExecutorCore {
    /// Warns once if other processes leave almost none of the CPU to copies: the run is slow, not hung.
    fn warn_if_starved(&mut self, (busy, done): (Duration, Duration)) {
        let before = std::mem::replace(&mut self.progress, (busy, done));
        let (busy, done) = (busy.saturating_sub(before.0), done.saturating_sub(before.1));
        if !self.warned && busy >= HORIZON / 3 && done < busy.mul_f64(STARVED.min(0.1 / self.slowest)) {
            self.warned = true;
            let part = number::percent(done.as_secs_f64() / busy.as_secs_f64());
            tracing::warn!(
                "copies get {part} of CPU {}: another program keeps it busy, and copies have the lowest priority; stop \
                 that program, or use other CPUs (taskset, --cpus)",
                self.cpu
            );
        }
    }
}

/// The executor of a shard on real cores.
pub struct RealExecutor {
    real: RealSection,
    host: String,
    /// `None` after the end.
    burners: Option<Burners>,
    cores: Vec<ExecutorCore>,
    /// The index in `cores` of each emulated core on this host.
    indices: Vec<usize>,
    clock: Rc<Clock>,
    /// The time up to which burners have been sent their slots.
    planned: Option<Time>,
}

impl RealExecutor {
    /// Creates an executor of these emulated cores, in the same order as the CPUs of `burners`.
    pub fn new(
        real: RealSection,
        host: &str,
        burners: Burners,
        cores: &[u32],
        clock: Rc<Clock>,
        table: &CoreTable,
    ) -> Self {
        let mut indices = Vec::new();
        for (index, core) in cores.iter().map(|core| *core as usize).enumerate() {
            indices.resize(indices.len().max(core + 1), usize::MAX);
            indices[core] = index;
        }
        let core = |(index, &core): (usize, &u32)| ExecutorCore {
            core,
            cpu: burners.cpu(index),
            real_per_work: 1.0 / (clock.speed() * table.speed(core)),
            progress: (Duration::ZERO, Duration::ZERO),
            warned: false,
            slowest: 1.0,
        };
        let cores = cores.iter().enumerate().map(core).collect();
        let host = host.to_owned();
        Self { real, host, burners: Some(burners), cores, indices, clock, planned: None }
    }

    fn burners(&self) -> &Burners {
        self.burners.as_ref().unwrap_or_else(|| unreachable!("no copy runs after the end"))
    }

    /// Converts real time to work of a core.
    fn work(&self, index: usize, real: Duration) -> Span {
        Span((real.as_nanos() as f64 / self.cores[index].real_per_work).ceil() as u64)
    }
}

impl CoreExecutor for RealExecutor {
    fn run(&mut self, core: u32, ticket: u64, work: Span) {
        let index = self.indices[core as usize];
        let real = Duration::from_nanos((work.0 as f64 * self.cores[index].real_per_work) as u64);
        self.burners().run(index, ticket, real);
    }

    fn halt(&mut self, core: u32) -> Span {
        let index = self.indices[core as usize];
        self.work(index, self.burners().halt(index))
    }

    fn left(&self, core: u32) -> Span {
        let index = self.indices[core as usize];
        self.work(index, self.burners().left(index))
    }

    fn finished(&mut self) -> Option<(u32, u64, Time)> {
        self.cores.iter().enumerate().find_map(|(index, core)| {
            let (ticket, at) = self.burners().take_finished(index)?;
            Some((core.core, ticket, self.clock.at(at)))
        })
    }

    fn degrade(&mut self, cores: &Cores, now: Time, changed: bool) {
        let fresh = |planned: Time| planned >= now + self.clock.emulated(HORIZON / 2);
        let Some(burners) = self.burners.as_ref().filter(|_| changed || !self.planned.is_some_and(fresh))
        else {
            return;
        };
        let until = now + self.clock.emulated(HORIZON);
        for (index, core) in self.cores.iter_mut().enumerate() {
            core.warn_if_starved(burners.progress(index));
            // The current slot continues. A slot that the horizon cuts is updated before its end.
            let bursts = cores.bursts(core.core, now, until);
            let slots: Vec<_> = bursts.filter_map(|burst| real_slot(&self.clock, &burst)).collect();
            core.slowest = slots.iter().map(|slot| slot.slowdown).fold(1.0, f64::max);
            burners.degrade(index, slots);
        }
        self.planned = Some(until);
    }

    fn end(&mut self) -> Worked {
        let mut work = RealWork {
            kernel: self.real.kernel.to_string(),
            degrade: self.real.degrade.to_string(),
            ..RealWork::default()
        };
        let (mut stretches, mut cut) = (Vec::new(), false);
        let most = MOST_STRETCHES / self.cores.len().max(1);
        let readings = self.burners.take().map(Burners::end).unwrap_or_default();
        for (core, reading) in self.cores.iter().zip(&readings) {
            let healthy = evaluate(reading, &mut work, self.clock.speed());
            let (host, cpu, rounds_per_s) = (self.host.clone(), u32::from(core.cpu.0), reading.rounds_per_s);
            work.cores.push(RealCore { core: core.core, host, cpu, rounds_per_s, healthy });
            let row = |slot: &SlotReading| row(&self.clock, core.core, slot);
            stretches.extend(reading.slots.iter().take(most).map(row));
            cut |= reading.slots.len() > most;
        }
        Worked { work, stretches, cut }
    }
}

/// A burst in real time; `None` if it is shorter than the clock's resolution.
fn real_slot(clock: &Clock, burst: &Burst) -> Option<DegradedSlot> {
    let (from, until) = (clock.instant(burst.start), clock.instant(burst.end));
    (from < until).then_some(DegradedSlot { from, until, slowdown: burst.slowdown })
}

/// A stretch of a core, in emulated time.
fn row(clock: &Clock, core: u32, slot: &SlotReading) -> CoreRow {
    let [start, end] = [slot.from, slot.until].map(|at| clock.at(at).as_secs_f64());
    let [had, done] = [slot.busy, slot.done].map(|length| length.as_secs_f64() * clock.speed());
    CoreRow { core, start, end, asked: slot.asked, had, done }
}

/// Adds the degraded stretches of a core to `work`, and returns the speeds of its healthy stretches.
fn evaluate(reading: &CoreReading, work: &mut RealWork, speed: f64) -> Samples {
    let mut healthy = Samples::default();
    let (mut busy, mut done) = (Duration::ZERO, Duration::ZERO);
    for slot in &reading.slots {
        let (length, pace) = (slot.until - slot.from, slot.done.as_secs_f64() / slot.busy.as_secs_f64());
        if slot.asked == 1.0 {
            busy += slot.busy;
            done += slot.done;
            if busy >= HEALTHY_SAMPLE {
                let (busy, done) = (std::mem::take(&mut busy), std::mem::take(&mut done));
                healthy.add(&Samples::one(done.as_secs_f64() / busy.as_secs_f64()));
            }
        } else if (slot.whole || length >= LONG) && slot.busy.as_secs_f64() >= MIN_BUSY * length.as_secs_f64()
        {
            work.slot(slot.asked, length.as_secs_f64() * speed, pace);
        }
    }
    healthy
}

/// A burner and a competitor per core, pinned to the core's CPU. Dropping the value stops and joins the threads.
///
/// Methods take the core's index in the `cpus` of [`start`](Self::start), and panic if there is no such core. A core
/// has one caller at a time: two threads must not run and halt copies on the same core concurrently.
pub struct Burners {
    cores: Vec<BurnedCore>,
    origin: Instant,
    wake: EventFd,
}

impl fmt::Debug for Burners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Burners").field("cores", &self.cores.len()).finish_non_exhaustive()
    }
}

struct BurnedCore {
    shared: Arc<CoreShared>,
    calibration: Calibration,
    cpu: CpuId,
    burner: Option<JoinHandle<Option<()>>>,
    competitor: Option<JoinHandle<Option<Competed>>>,
}

impl Burners {
    /// Pins a burner to each CPU, calibrates all of them at once, and starts the competitors. Takes about two
    /// seconds, and more on a busy machine.
    ///
    /// # Errors
    /// When the process may not use a CPU, a CPU is given twice or is too busy to be calibrated, or the system refuses
    /// a thread or its priority.
    pub fn start(kernel: Kernel, cpus: &[CpuId]) -> Result<Self, BurnError> {
        Self::start_with(kernel, cpus, CalibrationOptions::STANDARD)
    }

    pub(super) fn start_with(
        kernel: Kernel,
        cpus: &[CpuId],
        calibration: CalibrationOptions,
    ) -> Result<Self, BurnError> {
        cpu::check(cpus)?;
        let wake = EventFd::new().map_err(BurnError::Event)?;
        let origin = Instant::now();
        // On an error below, dropping this ends the threads that exist by then.
        let mut burners = Self { cores: Vec::new(), origin, wake: wake.clone() };
        let mut starts = Vec::new();
        let mut results = Vec::new();
        for &cpu in cpus {
            let shared = Arc::new(CoreShared::new(origin));
            let (start, started) = channel();
            let (send, calibrated) = channel();
            let burner = Burner { shared: Arc::clone(&shared), kernel, cpu, calibration, wake: wake.clone() };
            let burner = cpu::spawn(format!("burn-{cpu}"), cpu, None, move || burner.run(&started, &send))?;
            burners.cores.push(BurnedCore {
                shared,
                calibration: Calibration::UNKNOWN,
                cpu,
                burner: Some(burner),
                competitor: None,
            });
            starts.push(start);
            results.push(calibrated);
        }
        // All burners calibrate from now on.
        drop(starts);
        for (core, calibrated) in burners.cores.iter_mut().zip(results) {
            let gone = |gone| failed("calibrate", core.cpu)(io::Error::other(gone));
            core.calibration = calibrated.recv().map_err(gone)??;
            let competitor = Competitor::new(Arc::clone(&core.shared), core.calibration);
            let name = format!("rival-{}", core.cpu);
            let thread = cpu::spawn(name, core.cpu, Some(Competitor::NICE), move || competitor.run())?;
            core.shared.set_competitor(thread.thread().clone());
            core.competitor = Some(thread);
        }
        Ok(burners)
    }

    /// Notified when a copy has finished.
    pub fn wake_fd(&self) -> EventFd {
        self.wake.clone()
    }

    /// Number of cores.
    pub const fn cores(&self) -> usize {
        self.cores.len()
    }

    /// The CPU of a core.
    pub fn cpu(&self, core: usize) -> CpuId {
        self.cores[core].cpu
    }

    /// Starts a copy with `work`, in time of a healthy core. `ticket`, which must not be zero, identifies the copy when
    /// it has finished.
    ///
    /// # Panics
    /// When the core runs a copy already.
    pub fn run(&self, core: usize, ticket: u64, work: Duration) {
        let core = &self.cores[core];
        core.shared.start_copy(ticket, core.calibration.rounds(work));
    }

    /// Halts the copy and returns the work left, exact to one chunk. The burner notices within a chunk, whose work is
    /// lost. The result is zero if there was no copy, or if the copy has finished and is or will be
    /// [reported](Self::take_finished).
    pub fn halt(&self, core: usize) -> Duration {
        let core = &self.cores[core];
        core.calibration.work(core.shared.halt())
    }

    /// Work left of the current copy, exact to one chunk; zero if there is no copy.
    pub fn left(&self, core: usize) -> Duration {
        let core = &self.cores[core];
        core.calibration.work(core.shared.rounds_left())
    }

    /// The ticket of a copy that has finished, and the time of its end, once per copy.
    pub fn take_finished(&self, core: usize) -> Option<(u64, Instant)> {
        self.cores[core].shared.take_finished()
    }

    /// Total time with a copy so far, and the work done in that time.
    pub fn progress(&self, core: usize) -> (Duration, Duration) {
        let core = &self.cores[core];
        let CoreCounters { busy, rounds } = core.shared.counters(core.shared.now());
        (Duration::from_nanos(busy), core.calibration.work(rounds))
    }

    /// Replaces the coming slots: the core is degraded in them and healthy between and after them. If a new slot with
    /// the slowdown of the current slot is current as well, the current slot continues until the new slot's end.
    ///
    /// # Panics
    /// When slots are empty, overlap or are out of order, or a slowdown is not above 1.
    pub fn degrade(&self, core: usize, slots: Vec<DegradedSlot>) {
        let valid =
            |slot: &DegradedSlot| slot.from < slot.until && slot.slowdown > 1.0 && slot.slowdown.is_finite();
        assert!(slots.iter().all(valid), "a slot has a length and a slowdown above 1: {slots:?}");
        assert!(slots.is_sorted_by(|a, b| a.until <= b.from), "slots are in order: {slots:?}");
        self.cores[core].shared.set_slots(slots);
    }

    #[cfg(test)]
    pub(super) fn shared(&self, core: usize) -> &Arc<CoreShared> {
        &self.cores[core].shared
    }

    /// Stops all threads, with or without copies, and returns the measurements of each core.
    ///
    /// # Panics
    /// When one of the threads has panicked.
    pub fn end(mut self) -> Vec<CoreReading> {
        self.stop();
        let origin = self.origin;
        let end = |core: &mut BurnedCore| {
            if let Some(burner) = core.burner.take() {
                join(burner);
            }
            let Competed { log, cpu_time } = core.competitor.take().and_then(join).unwrap_or_default();
            let (cpu, calibration) = (core.cpu, core.calibration);
            let slots = log.readings(origin, calibration);
            CoreReading { cpu, rounds_per_s: calibration.rounds_per_s(), competed: cpu_time, slots }
        };
        self.cores.iter_mut().map(end).collect()
    }

    fn stop(&self) {
        self.cores.iter().for_each(|core| core.shared.stop());
    }
}

/// Returns the result of a thread, and propagates its panic.
fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Drop for Burners {
    fn drop(&mut self) {
        self.stop();
        for core in &mut self.cores {
            // A panic in one of them was reported when it happened.
            let _ = core.burner.take().map(JoinHandle::join);
            let _ = core.competitor.take().map(JoinHandle::join);
        }
    }
}

/// Work of a chunk. A halted copy can lose one chunk, and the competitor sees a chunk's work only at the end of the
/// chunk. The bookkeeping of a chunk takes 0.1 µs.
const CHUNK: Duration = Duration::from_micros(20);

/// Rounds of the hash kernel, which leaves memory and caches alone, between checks for a copy: a few µs.
const IDLE_ROUNDS: u64 = 1000;

/// The burner thread of a core: runs copies in chunks, so that a halt takes effect within a chunk.
///
/// Without a copy the thread spins. A CPU that idles at times is slower than one that stays busy: its clock has to rise
/// again, its caches have to fill, and a hypervisor delays its return. At low load a core would lose up to a sixth of
/// its speed. Other threads that wake up on the CPU preempt the burner at once; only threads of the lowest priority,
/// such as burners of another process, share the CPU with it.
struct Burner {
    shared: Arc<CoreShared>,
    kernel: Kernel,
    cpu: CpuId,
    calibration: CalibrationOptions,
    /// Notified when a copy has finished.
    wake: EventFd,
}

impl Burner {
    /// Waits until `start` closes, calibrates, sends the result, and runs copies until the core is stopped.
    fn run(self, start: &Receiver<()>, calibrated: &Sender<Result<Calibration, BurnError>>) {
        let mut load = KernelLoad::new(self.kernel);
        // Nothing is sent: the channel closes when all burners have been spawned.
        let _ = start.recv();
        let calibration = self.calibrate(&mut load);
        let known = calibration.as_ref().ok().copied();
        // Sending fails if another core failed; then the core is stopped.
        let _ = calibrated.send(calibration);
        if let Some(calibration) = known {
            self.run_copies(&mut load, calibration);
        }
    }

    fn calibrate(&self, load: &mut KernelLoad) -> Result<Calibration, BurnError> {
        let wait = self.calibration.timeout;
        let calibration = calibrate(load, self.calibration);
        let calibration = calibration.map_err(|got| BurnError::Busy { cpu: self.cpu, got, wait })?;
        // After the calibration, which would otherwise wait for every other thread on this CPU.
        set_idle_priority().map_err(failed("lower the priority of a thread", self.cpu))?;
        Ok(calibration)
    }

    fn run_copies(&self, load: &mut KernelLoad, calibration: Calibration) {
        let shared = &self.shared;
        let chunk = calibration.rounds(CHUNK);
        let mut idle = KernelLoad::new(Kernel::Hash);
        while !shared.is_stopped() {
            let Some((mut copy, ticket)) = shared.current_copy() else {
                idle.burn(IDLE_ROUNDS);
                continue;
            };
            while !shared.is_stopped() {
                let rounds = chunk.min(copy.rounds_left());
                load.burn(rounds);
                match shared.end_chunk(copy, rounds, shared.now(), calibration) {
                    ChunkEnd::More(rest) => copy = rest,
                    ChunkEnd::Halted => break,
                    ChunkEnd::Finished => {
                        shared.publish_finished(ticket);
                        self.wake.notify();
                        break;
                    }
                }
            }
        }
    }
}

/// An eventfd. Clones share the descriptor.
#[derive(Clone, Debug)]
pub struct EventFd(Arc<OwnedFd>);

impl EventFd {
    /// A descriptor that has not been notified.
    ///
    /// # Errors
    /// When the system has no more file descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Notifies the reader, from any thread.
    pub fn notify(&self) {
        // Fails only when the 64-bit counter is full.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Calls `wake` after every notification, forever.
    pub async fn relay(self, wake: impl Fn()) {
        if let Err(error) = self.try_relay(wake).await {
            // The shard also polls at intervals, without notifications.
            tracing::warn!("ends of copies are noticed late: {error}");
        }
    }

    async fn try_relay(self, wake: impl Fn()) -> io::Result<()> {
        #[expect(deprecated, reason = "sound for an owned descriptor; its successor needs unsafe code")]
        let fd = AsyncFd::with_interest(self.0, Interest::READABLE)?;
        loop {
            // The counter is not read: every write wakes the reactor, read or not.
            fd.readable().await?.clear_ready();
            wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;
    use crate::real_time::event_loop::Inbox;

    #[tokio::test]
    async fn every_notification_wakes_its_receiver() {
        let (event, inbox) = (EventFd::new().unwrap(), Rc::new(Inbox::default()));
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let woken = Rc::clone(&inbox);
                let relay = tokio::task::spawn_local(event.clone().relay(move || woken.wake()));
                for _ in 0..100 {
                    let event = event.clone();
                    std::thread::spawn(move || event.notify());
                    tokio::time::timeout(Duration::from_secs(60), inbox.woken()).await.unwrap();
                }
                relay.abort();
            })
            .await;
    }
}
