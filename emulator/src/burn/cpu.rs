//! CPUs, what threads on them yield to, and how much of them a thread has had.

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

use super::{BurnError, failed};

/// A CPU by the system's number.
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

/// The CPUs that the calling thread may use, in order: all of the process's, unless the thread was pinned. Empty where
/// the system does not say.
#[must_use]
pub fn free_cpus() -> Vec<CpuId> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| CpuId(cpu as u16)).collect()
}

/// Whether burners may be put on these CPUs.
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

/// Starts a thread on a CPU, with this nice value if there is one. It returns what `work` does.
pub(super) fn spawn<T: Send + 'static>(
    name: String,
    cpu: CpuId,
    nice: Option<i32>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<Option<T>>, BurnError> {
    let (tell, told) = channel();
    let thread = std::thread::Builder::new().name(name).spawn(move || {
        let placed = place(cpu, nice);
        let fine = placed.is_ok();
        // Whoever waits for it cannot be gone, and would only miss an error.
        let _ = tell.send(placed);
        fine.then(work)
    });
    let thread = thread.map_err(failed("start a thread", cpu))?;
    told.recv().unwrap_or_else(|gone| Err(io::Error::other(gone))).map_err(failed("pin a thread", cpu))?;
    Ok(thread)
}

fn place(cpu: CpuId, nice: Option<i32>) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(usize::from(cpu.0));
    sched_setaffinity(None, &set)?;
    if let Some(nice) = nice {
        // On Linux this is the thread's alone. Who is nicer already stays so.
        let mine = rustix::process::getpriority_process(Some(gettid()))?;
        setpriority_process(Some(gettid()), nice.max(mine))?;
    }
    Ok(())
}

/// Puts the calling thread below all that are not idle themselves: whoever wakes up preempts it at once.
pub(super) fn yield_to_all() -> io::Result<()> {
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let asked = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
    // It also sets the nice value, which means nothing here and may be refused: the policy is what counts.
    match thread_schedule_policy() {
        Ok(policy) if policy == idle => Ok(()),
        Ok(_) | Err(_) => Err(io::Error::other(format!("{asked:?}"))),
    }
}

/// CPU time of the calling thread.
pub(super) fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec as u32)
}
