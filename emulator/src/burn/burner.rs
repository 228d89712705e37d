//! The thread that works: chunk by chunk, so that it notices within one that its copy is gone.
//!
//! Without a copy it works for nothing. A CPU that comes and goes is slower than one
//! that stays: its clock has to rise again, its caches to fill, and a hypervisor that took it away is in no hurry to
//! give it back. So a core would be the slower the less there is to do, by up to a sixth. Who wakes up on that CPU
//! gets it at once all the same; only others of the lowest priority, such as burners of another process, share it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use super::calibrate::{Calibration, Pace, calibrate};
use super::cpu::{CpuId, yield_to_all};
use super::desk::{Chunk, Desk};
use super::kernel::{Kernel, Load};
use super::{BurnError, failed};

/// Work of a chunk: what a halted copy can lose, and what the competitor does not see. Its bookkeeping takes 0.1 µs.
const CHUNK: Duration = Duration::from_micros(20);

/// What keeps a CPU awake, in rounds of the hash kernel, which leaves memory and caches alone: a few µs.
const AWAKE: u64 = 1000;

pub(super) struct Burner {
    pub(super) desk: Arc<Desk>,
    pub(super) kernel: Kernel,
    pub(super) cpu: CpuId,
    pub(super) calibration: Calibration,
}

impl Burner {
    /// Waits until `start` closes, calibrates, tells the pace and burns until it is told to stop.
    pub(super) fn run(
        self,
        start: &Receiver<()>,
        tell: &Sender<Result<Pace, BurnError>>,
        finished: &dyn Fn(u64),
    ) {
        let mut load = Load::new(self.kernel);
        // Nothing is ever sent: all start when the last of them is there.
        let _ = start.recv();
        let pace = match self.calibrate(&mut load) {
            Ok(pace) => pace,
            Err(error) => {
                let _ = tell.send(Err(error));
                return;
            }
        };
        // Nobody listens any more if another core could not be had; then there is a stop.
        let _ = tell.send(Ok(pace));
        self.burn(&mut load, pace, finished);
    }

    fn calibrate(&self, load: &mut Load) -> Result<Pace, BurnError> {
        let wait = self.calibration.patience;
        let pace = calibrate(load, self.calibration);
        let pace = pace.map_err(|got| BurnError::Busy { cpu: self.cpu, got, wait })?;
        // Not before: it would wait for all others on this CPU.
        yield_to_all().map_err(failed("lower the priority of a thread", self.cpu))?;
        Ok(pace)
    }

    fn burn(&self, load: &mut Load, pace: Pace, finished: &dyn Fn(u64)) {
        let desk = &self.desk;
        let most = pace.rounds(CHUNK);
        let mut nothing = Load::new(Kernel::Hash);
        while !desk.is_stopped() {
            let Some((mut copy, ticket)) = desk.take() else {
                nothing.burn(AWAKE);
                continue;
            };
            while !desk.is_stopped() {
                let rounds = most.min(copy.left());
                load.burn(rounds);
                match desk.chunk(copy, rounds, desk.now(), pace) {
                    Chunk::More(rest) => copy = rest,
                    Chunk::Halted => break,
                    Chunk::Finished => {
                        finished(ticket);
                        break;
                    }
                }
            }
        }
    }
}
