//! Copies on real cores, and real interference with them.
//!
//! Each emulated core has a CPU of its own. On it a *burner* thread does the work of copies with a kernel of calibrated
//! speed at the lowest priority, and a *competitor* thread takes the CPU from it for the share of time that a slowdown
//! requires: work w takes w on a healthy core and σ·w on a core degraded by σ, because another thread occupies the CPU
//! and not because the kernel holds itself back.
//!
//! * **Reference work.** All burners calibrate at once, so that the calibrated speed is that of a machine whose cores
//!   are all busy. They use the thread's own CPU clock, so that other processes have no influence. One second of work
//!   is what a core does in one second of CPU time on average. Between copies burners keep their CPU awake at the
//!   calibrated speed.
//! * **Priorities.** Burners run under `SCHED_IDLE`: any thread that wakes up on their CPU, the competitor and the
//!   emulator's own threads included, preempts them at once. The competitor runs at nice 10: far above a burner, below
//!   everything else. All threads are in one process and therefore in one autogroup, within which nice counts. None of
//!   this needs privileges.
//! * **Closed loop.** The competitor steers by the progress of the burner (see `competitor`), each slot by itself, so
//!   errors do not accumulate, and CPU time taken by other programs is part of the slowdown. It competes only while
//!   there is a copy.
//! * **Read-back.** For every slot and healthy stretch, [`CoreReading`] has the time with a copy and the work done.
//!   Burners publish through atomics and never take a lock.
//!
//! Threads end with their process, and affinity, policy and nice belong to a thread: nothing stays behind after a kill.
//! Linux only.
//!
//! | module | what it holds |
//! |---|---|
//! | `real` | [`RealExecutor`]: the executor of a shard; [`Burners`]: the threads of all cores, and what a burner does |
//! | `shared` | the state that the threads of one core share |
//! | `competitor` | the thread that interferes: its control law, and measurements of slots |
//! | `calibration` | the kernels, and their speed on a CPU |
//! | `recorder` | [`Recorder`]: measurements of the speed of CPUs |
//! | `cpu` | CPUs, thread priorities, CPU clocks |

mod calibration;
mod competitor;
mod cpu;
mod real;
mod recorder;
mod shared;

#[cfg(test)]
mod tests;

pub use competitor::{CoreReading, SlotReading};
pub use cpu::{BurnError, CpuId, free_cpus};
pub use real::{Burners, RealExecutor, assign_cpus};
pub use recorder::{CpuRecording, Recorder, SlowdownSample};
pub use shared::DegradedSlot;
