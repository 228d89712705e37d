//! CPUs, the affinity and priority of threads on them, and thread CPU clocks.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id, thread_schedule_policy,
};

/// The reason why burners cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum BurnError {
    #[error(
        "CPU {cpu} is not among those that this process may use ({free}); name others, or widen its affinity mask (taskset, cpuset)"
    )]
    NotFree { cpu: CpuId, free: String },
    #[error("CPU {cpu} was given to two emulated cores; each needs a CPU of its own")]
    Shared { cpu: CpuId },
    #[error("cannot {doing} for the core on CPU {cpu}: {source}")]
    System { doing: &'static str, cpu: CpuId, source: io::Error },
    #[error(
        "CPU {cpu} gave {got:?} of CPU time in {wait:?}, too little to calibrate it; stop other programs on it, or name another CPU"
    )]
    Busy {
        cpu: CpuId,
        /// CPU time during calibration.
        got: Duration,
        /// Real time of the calibration.
        wait: Duration,
    },
    #[error("cannot create an event descriptor: {0}")]
    Event(io::Error),
}

/// Makes an error of a refused system call.
pub(super) fn failed(doing: &'static str, cpu: CpuId) -> impl FnOnce(io::Error) -> BurnError {
    move |source| BurnError::System { doing, cpu, source }
}

/// A CPU by its system number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CpuId(pub u16);

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for CpuId {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// The CPUs in the calling thread's affinity mask, in order; empty if the system call fails.
pub fn free_cpus() -> Vec<CpuId> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| CpuId(cpu as u16)).collect()
}

/// Checks that the process may use these CPUs, and that none is named twice.
pub(super) fn check(cpus: &[CpuId]) -> Result<(), BurnError> {
    let free = free_cpus();
    for (n, &cpu) in cpus.iter().enumerate() {
        if cpus[..n].contains(&cpu) {
            return Err(BurnError::Shared { cpu });
        }
        if !free.contains(&cpu) {
            let free = free.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(BurnError::NotFree { cpu, free });
        }
    }
    Ok(())
}

/// Starts a thread pinned to a CPU, with the given nice value. The thread returns the result of `work`.
pub(super) fn spawn<T: Send + 'static>(
    name: String,
    cpu: CpuId,
    nice: Option<i32>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<Option<T>>, BurnError> {
    let (send, receive) = channel();
    let thread = std::thread::Builder::new().name(name).spawn(move || {
        let pinned = pin(cpu, nice);
        let pinned_ok = pinned.is_ok();
        // Cannot fail: the receiver below waits.
        let _ = send.send(pinned);
        pinned_ok.then(work)
    });
    let thread = thread.map_err(failed("start a thread", cpu))?;
    receive.recv().unwrap_or_else(|gone| Err(io::Error::other(gone))).map_err(failed("pin a thread", cpu))?;
    Ok(thread)
}

fn pin(cpu: CpuId, nice: Option<i32>) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(usize::from(cpu.0));
    sched_setaffinity(None, &set)?;
    if let Some(nice) = nice {
        // On Linux a thread id addresses only that thread. A higher nice value is kept.
        let mine = rustix::process::getpriority_process(Some(gettid()))?;
        setpriority_process(Some(gettid()), nice.max(mine))?;
    }
    Ok(())
}

/// Puts the calling thread under `SCHED_IDLE`: any other thread that wakes up preempts it at once.
pub(super) fn set_idle_priority() -> io::Result<()> {
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let asked = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
    // The call also sets the nice value, which has no meaning here and may be refused: only the policy matters.
    match thread_schedule_policy() {
        Ok(policy) if policy == idle => Ok(()),
        Ok(_) | Err(_) => Err(io::Error::other(format!("{asked:?}"))),
    }
}

/// CPU time of the calling thread.
pub(super) fn thread_cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec as u32)
}
