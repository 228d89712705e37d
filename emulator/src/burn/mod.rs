//! Real work on real cores, and real interference with it.
//!
//! Each emulated core is a CPU of its own. On it a *burner* thread does the work of copies with a kernel whose pace is
//! calibrated, at the lowest priority there is, and a *competitor* thread takes the CPU away from it for
//! the part that a slowdown asks for: work w takes w on a healthy core and σ·w on one degraded by σ, because
//! another thread occupies the CPU and not because the kernel holds itself back.
//!
//! * **Reference work.** All burners calibrate at once, so that a core's pace is that of a machine whose cores are all
//!   at work, and by the thread's own CPU clock, so that others on the machine do not count. One second of
//!   work is what a core does in one second of CPU time, in the mean over two. Between copies competed cores are
//!   kept awake, and as fast as they were then.
//! * **Priorities.** Burners run under `SCHED_IDLE`: whatever wakes up on their CPU, the competitor and the emulator's
//!   own threads alike, preempts them at once. The competitor runs at nice 10: far above a burner, below
//!   everything else. All of it is in one process and so in one autogroup, within which nice counts, and
//!   none of it needs privileges.
//! * **Closed loop.** The competitor steers by what the burner has really done (see [`steer`]), each slot for itself,
//!   so errors do not add up, and what others take of the CPU counts as part of the slowdown. It is only there
//!   while a copy is.
//! * **Read-back.** Per slot and per healthy stretch, [`CoreReading`] says how long there was a copy and how much of it
//!   was done. Burners publish through atomics and never take a lock.
//!
//! No thread outlives its process, and affinity, policy and nice belong to a thread: when a process dies, however it
//! does, nothing of this stays behind. Linux only, as the rest of real time is.
//!
//! | module | what it holds |
//! |---|---|
//! | [`kernel`] | what copies do |
//! | `cpu` | CPUs, priorities, CPU clocks |
//! | `calibrate` | how fast a CPU does it |
//! | `desk` | what the threads of a core share |
//! | `burner` | the thread that works |
//! | `competitor` | the thread that interferes |
//! | [`steer`] | how much it interferes, as arithmetic |
//! | `ledger` | what came of it |

mod burner;
mod calibrate;
mod competitor;
mod cpu;
mod desk;
pub mod kernel;
mod ledger;
pub mod steer;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use cpu::{CpuId, free_cpus};
pub use kernel::Kernel;
pub use ledger::{CoreReading, SlotReading};

use burner::Burner;
use calibrate::{Calibration, Pace};
use competitor::{Account, Competitor};
use desk::{Desk, Sample};

/// What to burn, and where.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What copies do.
    pub kernel: Kernel,
    /// The CPU of each core; no CPU twice.
    pub cpus: Vec<CpuId>,
}

/// A time in which a core is degraded, on the monotonic clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Slot {
    /// Its start.
    pub from: Instant,
    /// Its end.
    pub until: Instant,
    /// The slowdown asked for, σ > 1: work takes σ times as long. Above 30 or so the share of the CPU that the
    /// system leaves to a burner in any case begins to show.
    pub slowdown: f64,
}

/// Called with the core and the ticket of a copy that is finished, on the core's own thread, whose priority is the
/// lowest: it must neither lock nor wait.
pub type Finished = Box<dyn Fn(usize, u64) + Send + Sync>;

/// Why cores cannot be burned.
#[derive(Debug, thiserror::Error)]
pub enum BurnError {
    /// The process may not use a CPU.
    #[error(
        "CPU {cpu} is not among those that this process may use ({free}); name others, or widen its affinity mask (taskset, cpuset)"
    )]
    NotFree {
        /// The CPU.
        cpu: CpuId,
        /// Those it may use.
        free: String,
    },
    /// A CPU was named twice.
    #[error("CPU {cpu} was given to two emulated cores; each needs a CPU of its own")]
    Shared {
        /// The CPU.
        cpu: CpuId,
    },
    /// The system refused something.
    #[error("cannot {doing} for the core on CPU {cpu}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// The CPU.
        cpu: CpuId,
        /// Why it failed.
        source: io::Error,
    },
    /// A CPU is too busy to be measured.
    #[error(
        "CPU {cpu} gave {got:?} of CPU time in {wait:?}, too little to calibrate by; stop what else runs on it, or name another"
    )]
    Busy {
        /// The CPU.
        cpu: CpuId,
        /// CPU time that was had.
        got: Duration,
        /// Real time that passed.
        wait: Duration,
    },
}

/// Makes an error of what the system said.
fn failed(doing: &'static str, cpu: CpuId) -> impl FnOnce(io::Error) -> BurnError {
    move |source| BurnError::System { doing, cpu, source }
}

/// Threads that burn cores: for each core a burner and a competitor, pinned to its CPU. Dropping it stops and joins
/// them.
///
/// A core belongs to one caller at a time: two threads must not run and halt copies on the same core at once.
pub struct Burners {
    cores: Vec<Core>,
    origin: Instant,
}

impl fmt::Debug for Burners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Burners").field("cores", &self.cores.len()).finish_non_exhaustive()
    }
}

/// One core, seen from outside.
struct Core {
    desk: Arc<Desk>,
    pace: Pace,
    cpu: CpuId,
    burner: Option<JoinHandle<Option<()>>>,
    competitor: Option<JoinHandle<Option<Account>>>,
}

impl Burners {
    /// Pins a burner to each CPU, calibrates all of them at once, and starts the competitors. Takes about two
    /// seconds, and more on a busy machine.
    ///
    /// # Errors
    /// When a CPU is not the process's or given twice, when the system refuses a thread or its priority, or
    /// when a CPU is so busy that it cannot be calibrated.
    pub fn start(setup: Setup, finished: Finished) -> Result<Self, BurnError> {
        Self::calibrated(&setup, Calibration::STANDARD, finished)
    }

    fn calibrated(setup: &Setup, calibration: Calibration, finished: Finished) -> Result<Self, BurnError> {
        cpu::check(&setup.cpus)?;
        let finished: Arc<Finished> = Arc::new(finished);
        let origin = Instant::now();
        // Whatever goes wrong from here on, dropping this ends the threads that are there.
        let mut burners = Self { cores: Vec::new(), origin };
        let mut starts = Vec::new();
        let mut paces = Vec::new();
        for (number, &cpu) in setup.cpus.iter().enumerate() {
            let desk = Arc::new(Desk::new(origin));
            let (start, started) = channel();
            let (tell, told) = channel();
            let burner = Burner { desk: Arc::clone(&desk), kernel: setup.kernel, cpu, calibration };
            let finished = Arc::clone(&finished);
            let work = move || burner.run(&started, &tell, &|ticket| finished(number, ticket));
            let burner = cpu::spawn(format!("burn-{cpu}"), cpu, None, work)?;
            burners.cores.push(Core {
                desk,
                pace: Pace::UNKNOWN,
                cpu,
                burner: Some(burner),
                competitor: None,
            });
            starts.push(start);
            paces.push(told);
        }
        // All there are: now all at once.
        drop(starts);
        for (number, told) in paces.iter().enumerate() {
            let core = &mut burners.cores[number];
            let gone = |gone| failed("calibrate", core.cpu)(io::Error::other(gone));
            core.pace = told.recv().map_err(gone)??;
            let competitor = Competitor::new(Arc::clone(&core.desk), core.pace);
            let work = move || competitor.run();
            let thread = cpu::spawn(format!("rival-{}", core.cpu), core.cpu, Some(competitor::NICE), work)?;
            core.desk.competitor_is(thread.thread().clone());
            core.competitor = Some(thread);
        }
        Ok(burners)
    }

    /// Cores that there are.
    #[must_use]
    pub const fn cores(&self) -> usize {
        self.cores.len()
    }

    /// The CPU of a core.
    ///
    /// # Panics
    /// Without such a core; so do all that take one.
    #[must_use]
    pub fn cpu(&self, core: usize) -> CpuId {
        self.cores[core].cpu
    }

    /// Begins a copy with so much work, as a healthy core's time; `ticket` is told when it is finished.
    ///
    /// # Panics
    /// When the core runs a copy already.
    pub fn run(&self, core: usize, ticket: u64, work: Duration) {
        let core = &self.cores[core];
        core.desk.begin(ticket, core.pace.rounds(work));
    }

    /// Ends a copy, and says what was left of its work, to the chunk. The thread takes notice within a chunk, and
    /// whatever it did of that chunk is lost. Zero: there was no copy, or it is finished, and that has been or
    /// will be told.
    pub fn halt(&self, core: usize) -> Duration {
        let core = &self.cores[core];
        core.pace.work(core.desk.halt())
    }

    /// What is left of the work of the copy that runs, to the chunk; zero without one.
    #[must_use]
    pub fn left(&self, core: usize) -> Duration {
        let core = &self.cores[core];
        core.pace.work(core.desk.left())
    }

    /// For how long there has been a copy so far, and how much was done in that time.
    #[must_use]
    pub fn progress(&self, core: usize) -> (Duration, Duration) {
        let core = &self.cores[core];
        let Sample { had, done } = core.desk.sample(core.desk.now());
        (Duration::from_nanos(had), core.pace.work(done))
    }

    /// Replaces what is to come: the core will be degraded in these slots and healthy between and after them. A slot
    /// that lasts goes on if one of them lasts as well and slows down as much; its end is that one's.
    ///
    /// # Panics
    /// When slots are empty, overlap or are out of order, or a slowdown is not above 1.
    pub fn degrade(&self, core: usize, slots: Vec<Slot>) {
        let fine = |slot: &Slot| slot.from < slot.until && slot.slowdown > 1.0 && slot.slowdown.is_finite();
        assert!(slots.iter().all(fine), "a slot has a length and slows down: {slots:?}");
        assert!(slots.is_sorted_by(|a, b| a.until <= b.from), "slots come one after the other: {slots:?}");
        self.cores[core].desk.plan(slots);
    }

    /// Stops all threads, copies or not, and says what each core has done.
    ///
    /// # Panics
    /// When one of the threads has: what `finished` called did.
    #[must_use]
    pub fn end(mut self) -> Vec<CoreReading> {
        self.stop();
        let mut readings = Vec::with_capacity(self.cores.len());
        for core in &mut self.cores {
            if let Some(burner) = core.burner.take() {
                join(burner);
            }
            let account = core.competitor.take().and_then(join).unwrap_or_default();
            readings.push(CoreReading {
                cpu: core.cpu,
                rounds_per_s: core.pace.rounds_per_s(),
                competed: account.cpu_time,
                slots: account.ledger.readings(self.origin, core.pace),
            });
        }
        readings
    }

    fn stop(&self) {
        for core in &self.cores {
            core.desk.stop();
        }
    }
}

/// What a thread returned; its panic goes on here.
fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Drop for Burners {
    fn drop(&mut self) {
        self.stop();
        for core in &mut self.cores {
            // A panic in one of them is not told twice.
            let _ = core.burner.take().map(JoinHandle::join);
            let _ = core.competitor.take().map(JoinHandle::join);
        }
    }
}
