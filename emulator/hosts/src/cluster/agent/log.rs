//! The log lines of an agent on their way to the controller, which stores them with the run.

use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;
use tracing_subscriber::fmt::MakeWriter;
use volary_experiment::guard::guard;
use volary_experiment::sanitize;

/// Maximum number of bytes that wait to be sent. Further lines are dropped and counted, so that a log cannot fill the
/// agent's memory.
const MAX_WAITING_BYTES: usize = 64 << 10;

/// A writer that keeps log lines during a session. Clones share the lines.
#[derive(Clone, Default, Debug)]
pub struct AgentLog(Arc<SharedLines>);

#[derive(Default, Debug)]
struct SharedLines {
    lines: Mutex<Lines>,
    filled: Notify,
}

#[derive(Default, Debug)]
struct Lines {
    /// Whether a session is open.
    open: bool,
    text: Vec<u8>,
    left_out: u64,
}

impl AgentLog {
    /// Opens a session: keeps lines from now on.
    pub(crate) fn begin(&self) {
        *self.lines() = Lines { open: true, ..Lines::default() };
    }

    /// Ends the session: drops the lines that were not taken, and keeps no more lines.
    pub(crate) fn end(&self) {
        *self.lines() = Lines::default();
    }

    /// Waits until a line has been kept.
    pub(crate) async fn filled(&self) {
        self.0.filled.notified().await;
    }

    /// Takes the lines since the last call; `None` if there are none.
    pub(crate) fn take(&self) -> Option<String> {
        let mut lines = self.lines();
        let left_out = mem::take(&mut lines.left_out);
        let mut text = String::from_utf8_lossy(&mem::take(&mut lines.text)).into_owned();
        if left_out > 0 {
            text.push_str(&format!("({left_out} lines were left out: there were too many at once)\n"));
        }
        (!text.is_empty()).then_some(text)
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        guard(&self.0.lines)
    }
}

impl io::Write for AgentLog {
    /// Keeps one line: the formatter calls this once per line. Line breaks within it come from texts of peers, and are
    /// replaced.
    fn write(&mut self, written: &[u8]) -> io::Result<usize> {
        let line = sanitize::one_line(written);
        let line = line.as_bytes();
        let mut lines = self.lines();
        if lines.open {
            if lines.text.len() + line.len() <= MAX_WAITING_BYTES {
                lines.text.extend_from_slice(line);
            } else {
                lines.left_out += 1;
            }
            self.0.filled.notify_one();
        }
        Ok(written.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for AgentLog {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn log_lines_are_kept_during_a_session_up_to_a_bound() {
        let log = AgentLog::default();
        let say = |line: &str| log.clone().write_all(line.as_bytes()).unwrap();
        say("before\n");
        log.begin();
        assert_eq!(log.take(), None);
        say("one\n");
        say("two: enough\n12:00 forged \u{1b}[2J\n");
        assert_eq!(log.take().as_deref(), Some("one\ntwo: enough\u{fffd}12:00 forged \u{fffd}[2J\n"));
        let long = "x".repeat(1023) + "\n";
        (0..100).for_each(|_| say(&long));
        let text = log.take().unwrap();
        assert!(
            text.len() < MAX_WAITING_BYTES + 100
                && text.ends_with("(36 lines were left out: there were too many at once)\n")
        );
        say("three\n");
        log.end();
        assert_eq!(log.take(), None);
    }
}
