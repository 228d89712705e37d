//! The burner thread of a core: runs copies in chunks, so that a halt takes effect within a chunk.
//!
//! Without a copy the thread spins. A CPU that comes and goes is slower than one that stays busy: its clock has to rise
//! again, its caches to fill, and a hypervisor delays its return; a core would lose up to a sixth of its speed when
//! there is little to do. Other threads that wake up on the CPU preempt the burner at once; only threads of the lowest
//! priority, such as burners of another process, share the CPU with it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use super::calibration::{Calibration, CalibrationOptions, KernelLoad, calibrate};
use super::cpu::{BurnError, CpuId, failed, set_idle_priority};
use super::shared::{ChunkEnd, CoreShared};
use crate::config::real::Kernel;
use crate::runtime::live::eventfd::EventFd;

/// Work of a chunk: what a halted copy can lose, and what the competitor does not see. Its bookkeeping takes 0.1 µs.
const CHUNK: Duration = Duration::from_micros(20);

/// Rounds of the hash kernel, which leaves memory and caches alone, between checks for a copy: a few µs.
const IDLE_ROUNDS: u64 = 1000;

pub(super) struct Burner {
    pub(super) shared: Arc<CoreShared>,
    pub(super) kernel: Kernel,
    pub(super) cpu: CpuId,
    pub(super) calibration: CalibrationOptions,
    /// Notified when a copy has finished.
    pub(super) wake: EventFd,
}

impl Burner {
    /// Waits until `start` closes, calibrates, sends the result, and runs copies until the core is stopped.
    pub(super) fn run(self, start: &Receiver<()>, calibrated: &Sender<Result<Calibration, BurnError>>) {
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
