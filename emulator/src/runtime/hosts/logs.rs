//! What hosts log during a run, as files of its directory.
//!
//! `HOST.log` is what the host's agent logged while it served the run. A file that is full becomes `HOST.log.1`, in
//! the place of an earlier one, so that the latest is there whatever a host says, and no more than twice [`FULL`].

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes after which a log begins anew.
const FULL: u64 = 1 << 20;
/// Bytes that may wait until there is a folder.
const WAITING: usize = 64 << 10;

/// The logs of the hosts of a run. Clones share them.
#[derive(Clone, Default, Debug)]
pub(super) struct Logs(Arc<Mutex<Vec<Log>>>);

#[derive(Debug)]
struct Log {
    host: String,
    state: State,
}

#[derive(Debug)]
enum State {
    /// There is no folder yet.
    Waiting(String),
    Open {
        path: PathBuf,
        file: File,
        bytes: u64,
    },
    /// It could not be written, and the user knows.
    Failed,
}

impl Logs {
    /// Adds a host.
    pub(super) fn add(&self, host: &str) {
        self.each(|logs| logs.push(Log { host: host.to_owned(), state: State::Waiting(String::new()) }));
    }

    /// Keeps from now on, and what has been said so far, in a folder.
    pub(super) fn keep_in(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        self.each(|logs| {
            for log in logs {
                let path = folder.join(format!("{}.log", log.host));
                let file = OpenOptions::new().create(true).append(true).open(&path)?;
                let bytes = file.metadata()?.len();
                let open = State::Open { path, file, bytes };
                if let State::Waiting(text) = std::mem::replace(&mut log.state, open) {
                    log.write(&text);
                }
            }
            Ok(())
        })
    }

    /// Keeps what a host says.
    pub(super) fn write(&self, host: usize, text: &str) {
        self.each(|logs| logs.get_mut(host).map(|log| log.write(text)));
    }

    fn each<T>(&self, work: impl FnOnce(&mut Vec<Log>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Log {
    fn write(&mut self, text: &str) {
        match &mut self.state {
            State::Waiting(waiting) if waiting.len() + text.len() <= WAITING => waiting.push_str(text),
            State::Open { path, file, bytes } => {
                if let Err(error) = append(path, file, bytes, text) {
                    // The run is worth more than its log.
                    tracing::warn!(
                        "cannot keep the log of {} any more: {}: {error}",
                        self.host,
                        path.display()
                    );
                    self.state = State::Failed;
                }
            }
            State::Waiting(_) | State::Failed => {}
        }
    }
}

fn append(path: &Path, file: &mut File, bytes: &mut u64, text: &str) -> io::Result<()> {
    if *bytes > 0 && *bytes + text.len() as u64 > FULL {
        fs::rename(path, path.with_extension("log.1"))?;
        (*file, *bytes) = (File::create(path)?, 0);
    }
    // However much a host says at once.
    let end = text.len().min(FULL as usize);
    file.write_all(&text.as_bytes()[..end])?;
    *bytes += end as u64;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_early_is_kept_and_what_is_too_much_is_not() {
        let (folder, logs) = (tempfile::tempdir().unwrap(), Logs::default());
        logs.add("h1.lab");
        logs.add("h2");
        logs.write(0, "early\n");
        logs.keep_in(&folder.path().join("logs")).unwrap();
        logs.write(0, "late\n");
        logs.write(7, "nobody\n");
        let read = |name: &str| fs::read_to_string(folder.path().join("logs").join(name)).unwrap();
        assert_eq!((read("h1.lab.log").as_str(), read("h2.log").as_str()), ("early\nlate\n", ""));
        let line = "x".repeat(1 << 18);
        for i in 0..20 {
            logs.write(1, &format!("{i} {line}\n"));
        }
        let (now, before) = (read("h2.log"), read("h2.log.1"));
        assert!(now.contains("19 x") && now.len() + before.len() <= 2 * FULL as usize);
        assert!(!before.contains("19 x") && before.starts_with(|c: char| c.is_ascii_digit()));
        // A later run in the same folder goes on.
        let again = Logs::default();
        again.add("h1.lab");
        again.keep_in(&folder.path().join("logs")).unwrap();
        again.write(0, "again\n");
        assert_eq!(read("h1.lab.log"), "early\nlate\nagain\n");
    }
}
