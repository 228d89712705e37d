//! Processors kept awake during a run in real time.
//!
//! An idle processor sleeps, and the longer it expects to be idle, the deeper it sleeps. Waking up takes up to
//! milliseconds on virtual machines and delays all work of the processor. Linux can limit this latency: a process
//! writes the maximum in microseconds to `/dev/cpu_dma_latency`, and the limit holds for all processors while the file
//! is open (`Documentation/power/pm_qos_interface.rst`). With a limit of zero, processors poll instead of sleeping,
//! which costs power. `cyclictest` does the same. The limit never outlives the process, because the kernel then closes
//! the file.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use volary_engine::results::HostVitals;

/// The kernel's file for the limit.
const LATENCY: &str = "/dev/cpu_dma_latency";

/// Processors that are kept awake until this value is dropped.
#[derive(Debug)]
pub struct Awake {
    _limit: File,
}

impl Awake {
    /// Keeps the processors of this machine awake.
    ///
    /// # Errors
    /// When the limit cannot be written; the text has the reason and the remedy.
    pub fn hold() -> Result<Self, String> {
        Self::hold_by(Path::new(LATENCY))
    }

    fn hold_by(path: &Path) -> Result<Self, String> {
        let held = OpenOptions::new().write(true).open(path).and_then(|mut file| {
            file.write_all(&0_i32.to_ne_bytes())?;
            Ok(file)
        });
        held.map(|limit| Self { _limit: limit }).map_err(|error| {
            format!(
                "cannot write {}: {error}; run as root, or let a udev rule give the file to your group, or leave out \
                 run.awake",
                path.display()
            )
        })
    }
}

/// The attempt to keep processors awake for a run; `None` unless `run.awake` is set.
#[derive(Debug)]
pub struct Attempt(Option<Result<Awake, String>>);

impl Attempt {
    /// Keeps the processors awake from now on, if `asked`. If the system refuses, the run continues and its results
    /// record the refusal.
    pub fn begin(asked: bool) -> Self {
        let held = asked.then(Awake::hold);
        if let Some(Err(why)) = &held {
            tracing::warn!("run.awake: {why}");
        }
        Self(held)
    }

    /// Ends the attempt, and adds its outcome to the vitals of the run.
    pub fn end(self, vitals: HostVitals) -> HostVitals {
        let refused = self.0.as_ref().and_then(|held| held.as_ref().err().cloned());
        HostVitals { awake: self.0.map(|held| held.is_ok()), awake_refused: refused, ..vitals }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latency_limit_is_written_as_zero_microseconds() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("latency");
        std::fs::write(&file, "").unwrap();
        let held = Awake::hold_by(&file).unwrap();
        assert_eq!(
            std::fs::read(&file).unwrap(),
            [0; 4],
            "four bytes: text would be read as a number in base 16"
        );
        drop(held);
        let refused = Awake::hold_by(&folder.path().join("none/latency")).unwrap_err();
        assert!(refused.contains("none/latency") && refused.contains("udev"), "{refused}");
        let outcome = |held| {
            let vitals = Attempt(held).end(HostVitals::default());
            (vitals.awake, vitals.awake_refused)
        };
        assert_eq!(outcome(None), (None, None));
        assert_eq!(outcome(Some(Awake::hold_by(&file))), (Some(true), None));
        assert_eq!(outcome(Some(Err(refused.clone()))), (Some(false), Some(refused)));
    }
}
