//! The burner and competitor threads of all cores of a shard, and the work of a burner.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use volary_experiment::config::real::Kernel;

use super::calibration::{Calibration, CalibrationOptions, KernelLoad, calibrate};
use super::competitor::{Competed, Competitor, CoreReading};
use super::cpu::{self, BurnError, CpuId, failed, set_idle_priority};
use super::shared::{ChunkEnd, CoreCounters, CoreShared, DegradedSlot};
use crate::real_time::eventfd::EventFd;

/// A burner and a competitor per core, pinned to its CPU. Dropping it stops and joins the threads.
///
/// Methods take the core's index in the `cpus` of [`start`](Self::start), and panic if there is none. A core has one
/// caller at a time: two threads must not run and halt copies on the same core concurrently.
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
    /// When a CPU is not the process's or is given twice, when the system refuses a thread or its priority, or
    /// when a CPU is too busy to be calibrated.
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

    /// Starts a copy with `work`, in time of a healthy core. `ticket`, which must not be zero, identifies it when
    /// it has finished.
    ///
    /// # Panics
    /// When the core runs a copy already.
    pub fn run(&self, core: usize, ticket: u64, work: Duration) {
        let core = &self.cores[core];
        core.shared.start_copy(ticket, core.calibration.rounds(work));
    }

    /// Halts the copy and returns the work left, to the chunk. The burner notices within a chunk, and that chunk is
    /// lost. Zero: there was no copy, or it has finished and is or will be [reported](Self::take_finished).
    pub fn halt(&self, core: usize) -> Duration {
        let core = &self.cores[core];
        core.calibration.work(core.shared.halt())
    }

    /// Work left of the current copy, to the chunk; zero without one.
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

    /// Replaces the coming slots: the core is degraded in them and healthy between and after them. The current slot
    /// continues if one of them is current as well and has the same slowdown; its end becomes that slot's.
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
    /// When one of the threads has.
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

/// Work of a chunk, which a halted copy can lose and which the competitor does not see. Its bookkeeping takes 0.1 µs.
const CHUNK: Duration = Duration::from_micros(20);

/// Rounds of the hash kernel, which leaves memory and caches alone, between checks for a copy: a few µs.
const IDLE_ROUNDS: u64 = 1000;

/// The burner thread of a core: runs copies in chunks, so that a halt takes effect within a chunk.
///
/// Without a copy the thread spins. A CPU that comes and goes is slower than one that stays busy: its clock has to rise
/// again, its caches to fill, and a hypervisor delays its return; a core would lose up to a sixth of its speed when
/// there is little to do. Other threads that wake up on the CPU preempt the burner at once; only threads of the lowest
/// priority, such as burners of another process, share the CPU with it.
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
        // Not before: calibration would wait for every other thread on this CPU.
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
