//! The logs and input logs of the hosts, on disk.
//!
//! `HOST.log` is the log of the host's agent during the run. A full file is renamed to `HOST.log.1` and replaces the
//! earlier file of that name. The two files hold the latest lines, at most twice [`MAX_LOG_BYTES`] in total.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use volary_experiment::guard::guard;
use volary_experiment::sanitize;
use volary_experiment::storage::input_log::{self, Relay};

/// Bytes after which a log file is rotated.
const MAX_LOG_BYTES: u64 = 1 << 20;
/// Bytes of a log that are kept in memory until there is a folder.
const MAX_EARLY_BYTES: usize = 64 << 10;

/// The logs of hosts, and their inputs during a run that logs them. Clones share the files.
#[derive(Clone, Default, Debug)]
pub(crate) struct Archive {
    logs: Arc<Mutex<Vec<HostLog>>>,
    inputs: Arc<Mutex<InputRelays>>,
}

/// The log of one host.
#[derive(Debug)]
struct HostLog {
    host: String,
    state: LogState,
}

#[derive(Debug)]
enum LogState {
    /// Lines received so far; the folder is not known yet.
    Waiting(String),
    Open {
        path: PathBuf,
        file: File,
        bytes: u64,
    },
    /// The log could not be written; the user was warned.
    Failed,
}

#[derive(Default, Debug)]
struct InputRelays {
    /// The destinations during a run that logs inputs, by slot.
    relays: BTreeMap<usize, Relay>,
    /// Hosts with dropped frames that the user was warned about.
    warned: BTreeSet<usize>,
}

impl Archive {
    /// Adds a host.
    pub(crate) fn add(&self, host: &str) {
        let log = HostLog { host: host.to_owned(), state: LogState::Waiting(String::new()) };
        guard(&self.logs).push(log);
    }

    /// Writes the logs to a folder, including the lines received before.
    pub(crate) fn keep_logs_in(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        guard(&self.logs).iter_mut().try_for_each(|log| log.open(folder))
    }

    /// Appends lines to a host's log. A slow disk does not hold up other work.
    pub(crate) fn log(&self, host: usize, text: &str) {
        let text = sanitize::document(text.to_owned());
        tokio::task::block_in_place(|| guard(&self.logs).get_mut(host).map(|log| log.write(&text)));
    }

    /// Begins a run whose inputs go to `log`. `slots` are the connections of its hosts, by shard.
    pub(crate) fn begin(&self, log: Option<&input_log::RunLog>, slots: &[usize]) {
        let relay = |log: &input_log::RunLog| {
            let relay = |(i, slot): (usize, &usize)| (*slot, log.relay(i as u16, slots.len() as u16));
            slots.iter().enumerate().map(relay).collect()
        };
        guard(&self.inputs).relays = log.map(relay).unwrap_or_default();
    }

    /// Ends the run: later frames are dropped, and the log can be closed.
    pub(crate) fn end(&self) {
        guard(&self.inputs).relays.clear();
    }

    /// Appends a frame to a host's input log. While the disk is slow, only this host waits.
    pub(crate) fn inputs(&self, host: usize, frame: Vec<u8>) {
        let relay = guard(&self.inputs).relays.get(&host).cloned();
        let lost = match relay {
            None => "while no run that logs them is in progress",
            Some(relay) if tokio::task::block_in_place(|| relay.put(frame)) => return,
            Some(_) => "in frames that are too large",
        };
        self.warn(host, lost);
    }

    /// Warns of dropped frames, once per host.
    fn warn(&self, host: usize, why: &str) {
        if guard(&self.inputs).warned.insert(host) {
            let name = |logs: &Vec<HostLog>| logs.get(host).map(|log| log.host.clone()).unwrap_or_default();
            let name = tokio::task::block_in_place(|| name(&guard(&self.logs)));
            tracing::warn!(
                "host {name} sends inputs {why}; these inputs are dropped, and the input log of the run has a gap"
            );
        }
    }
}

impl HostLog {
    fn open(&mut self, folder: &Path) -> io::Result<()> {
        let path = folder.join(format!("{}.log", self.host));
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let bytes = file.metadata()?.len();
        let open = LogState::Open { path, file, bytes };
        if let LogState::Waiting(text) = std::mem::replace(&mut self.state, open) {
            self.write(&text);
        }
        Ok(())
    }

    fn write(&mut self, text: &str) {
        match &mut self.state {
            LogState::Waiting(waiting) if waiting.len() + text.len() <= MAX_EARLY_BYTES => {
                waiting.push_str(text)
            }
            LogState::Open { path, file, bytes } => {
                if let Err(error) = append(path, file, bytes, text) {
                    // The run goes on without the log.
                    tracing::warn!(
                        "cannot keep the log of {} any more: {}: {error}",
                        self.host,
                        path.display()
                    );
                    self.state = LogState::Failed;
                }
            }
            LogState::Waiting(_) | LogState::Failed => {}
        }
    }
}

fn append(path: &Path, file: &mut File, bytes: &mut u64, text: &str) -> io::Result<()> {
    if *bytes > 0 && *bytes + text.len() as u64 > MAX_LOG_BYTES {
        fs::rename(path, path.with_extension("log.1"))?;
        (*file, *bytes) = (File::create(path)?, 0);
    }
    // A text longer than a file is cut.
    let fits = |end: &usize| text.is_char_boundary(*end);
    let end = (0..=text.len().min(MAX_LOG_BYTES as usize)).rev().find(fits).unwrap_or(0);
    file.write_all(&text.as_bytes()[..end])?;
    *bytes += end as u64;
    Ok(())
}

#[cfg(test)]
mod tests {
    use volary_actors::base::Time;
    use volary_engine::replay::LogEvent;
    use volary_experiment::storage::input_log::{FILE, Section, Sink};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn early_log_lines_are_kept_and_full_logs_are_rotated() {
        let (folder, archive) = (tempfile::tempdir().unwrap(), Archive::default());
        archive.add("h1.lab");
        archive.add("h2");
        archive.log(0, "early\n");
        archive.keep_logs_in(&folder.path().join("logs")).unwrap();
        archive.log(0, "late\n");
        archive.log(7, "nobody\n");
        archive.log(1, "\u{1b}[2J\u{202e}gone\n");
        let read = |name: &str| fs::read_to_string(folder.path().join("logs").join(name)).unwrap();
        assert_eq!(
            (read("h1.lab.log").as_str(), read("h2.log").as_str()),
            ("early\nlate\n", "\u{fffd}[2J\u{fffd}gone\n")
        );
        let line = "x".repeat(1 << 18);
        for i in 0..20 {
            archive.log(1, &format!("{i} {line}\n"));
        }
        let (now, before) = (read("h2.log"), read("h2.log.1"));
        assert!(now.contains("19 x") && now.len() + before.len() <= 2 * MAX_LOG_BYTES as usize);
        assert!(!before.contains("19 x") && before.starts_with(|c: char| c.is_ascii_digit()));
        // A later archive in the same folder appends to the logs.
        let again = Archive::default();
        again.add("h1.lab");
        again.keep_logs_in(&folder.path().join("logs")).unwrap();
        again.log(0, "again\n");
        assert_eq!(read("h1.lab.log"), "early\nlate\nagain\n");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn frames_are_kept_from_the_beginning_of_a_run_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let sink = Sink::create(&path, &"the experiment").unwrap();
        let unit = sink.attempt("aa", "sparrow", 5);
        let (mut section, carried) = Section::carried();
        (0..3).for_each(|n| section.put(Time(n * 2_000_000_000), LogEvent::Crashed(n as u32)));
        drop(section);
        let frames: Vec<_> = std::iter::from_fn(|| carried.next()).collect();
        let archive = Archive::default();
        archive.add("h1");
        archive.inputs(0, frames[0].clone());
        archive.begin(Some(&unit), &[0]);
        frames.iter().for_each(|frame| archive.inputs(0, frame.clone()));
        archive.end();
        archive.inputs(0, frames[2].clone());
        assert_eq!(guard(&archive.inputs).warned.len(), 1, "one warning");
        drop(unit);
        sink.close().unwrap();
        let mut log = input_log::InputLog::new(File::open(&path).unwrap()).unwrap();
        let mut cursor = log.found()[0].cursor();
        let entries: Vec<_> = std::iter::from_fn(|| log.next(&mut cursor).unwrap()).collect();
        let cores: Vec<_> = entries.iter().map(|entry| entry.what).collect();
        assert_eq!(cores, [0, 1, 2].map(LogEvent::Crashed));
    }
}
