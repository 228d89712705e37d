//! What an agent logs while it serves a controller, which keeps it with the run.

use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;
use tracing_subscriber::fmt::MakeWriter;

use crate::guard::guard;

/// Bytes that may wait to be sent. What does not fit is left out and counted: a log must not fill an agent's memory.
const WAITING: usize = 64 << 10;

/// A writer of log lines that keeps them while a controller is served. Its clones share them.
#[derive(Clone, Default, Debug)]
pub struct RunLog(Arc<Shared>);

#[derive(Default, Debug)]
struct Shared {
    lines: Mutex<Lines>,
    filled: Notify,
}

#[derive(Default, Debug)]
struct Lines {
    /// Whether somebody is served.
    open: bool,
    text: Vec<u8>,
    left_out: u64,
}

impl RunLog {
    /// A controller comes: lines are kept from now on.
    pub(crate) fn begin(&self) {
        *self.lines() = Lines { open: true, ..Lines::default() };
    }

    /// It is gone, and with it what it did not take.
    pub(crate) fn end(&self) {
        *self.lines() = Lines::default();
    }

    /// Waits for a line.
    pub(crate) async fn filled(&self) {
        self.0.filled.notified().await;
    }

    /// Takes the lines since the last time, if there are.
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

impl io::Write for RunLog {
    /// Takes a line, as the log's formatter writes it: at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut lines = self.lines();
        if lines.open {
            if lines.text.len() + line.len() <= WAITING {
                lines.text.extend_from_slice(line);
            } else {
                lines.left_out += 1;
            }
            self.0.filled.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for RunLog {
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
    fn lines_are_kept_while_a_controller_is_there_and_bounded() {
        let log = RunLog::default();
        let say = |line: &str| log.clone().write_all(line.as_bytes()).unwrap();
        say("before\n");
        log.begin();
        assert_eq!(log.take(), None);
        say("one\n");
        say("two\n");
        assert_eq!(log.take().as_deref(), Some("one\ntwo\n"));
        let long = "x".repeat(1023) + "\n";
        (0..100).for_each(|_| say(&long));
        let text = log.take().unwrap();
        assert!(
            text.len() < WAITING + 100
                && text.ends_with("(36 lines were left out: there were too many at once)\n")
        );
        say("three\n");
        log.end();
        assert_eq!(log.take(), None);
    }
}
