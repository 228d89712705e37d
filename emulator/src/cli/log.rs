//! The log of the command line and of agents.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Context;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::format::{DefaultFields, Format};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use volary_experiment::control::NOTICE;
use volary_experiment::sanitize::{TerminalWriter, one_line};

use super::output::{colours, print_note};

/// Whether the logger reports its own failed writes on stderr. It must not: such a report panics if stderr cannot be
/// written either, for example on a full disk, and would end the run.
const LOG_WRITE_ERRORS: bool = false;

/// Initialises logging to stderr.
pub(super) fn start(verbose: u8) -> anyhow::Result<()> {
    start_with(verbose, None, None::<fn() -> io::Sink>)
}

/// Initialises logging to stderr, or to a file with timestamps, and at level `INFO` also to `copy`.
pub(super) fn start_with<W>(verbose: u8, file: Option<&Path>, copy: Option<W>) -> anyhow::Result<()>
where
    W: for<'w> fmt::MakeWriter<'w> + Send + Sync + 'static,
{
    let level = levels(verbose);
    let file = file.map(LogFile::open).transpose()?;
    let terminal = file.is_none().then(|| {
        let terminal = fmt::layer()
            .with_target(false)
            .log_internal_errors(LOG_WRITE_ERRORS)
            .with_writer(|| TerminalWriter(io::stderr()));
        terminal.with_ansi(colours(&io::stderr())).without_time()
    });
    let file = file.map(|file| plain(Mutex::new(file)));
    let is_copied = copy.is_some();
    let copy = copy.map(plain);
    tracing_subscriber::registry()
        .with(terminal.with_filter(level.clone()))
        .with(file.with_filter(level))
        // At a more detailed level, sending a log line would itself be logged.
        .with(copy.with_filter(levels(u8::from(is_copied))))
        .init();
    Ok(())
}

/// Bytes after which the log file of an agent is renamed to `FILE.1`, replacing an earlier `FILE.1`.
const MOST_LOG_BYTES: u64 = 16 << 20;

/// The log file of an agent. The first line that cannot be written is reported on stderr.
struct LogFile {
    file: File,
    path: PathBuf,
    /// Bytes in the file; `None` for a pipe or a device, which is never renamed.
    bytes: Option<u64>,
    most: u64,
    failed: bool,
}

impl LogFile {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot write the log {}", path.display()))?;
        let bytes = file.metadata().ok().filter(|file| file.is_file()).map(|file| file.len());
        Ok(Self { file, path: path.to_owned(), bytes, most: MOST_LOG_BYTES, failed: false })
    }

    /// Writes a line; if the line does not fit into the current file, a new file is begun.
    fn line(&mut self, line: &str) -> io::Result<()> {
        if self.bytes.is_some_and(|bytes| bytes > 0 && bytes + line.len() as u64 > self.most) {
            let mut earlier = self.path.clone().into_os_string();
            earlier.push(".1");
            fs::rename(&self.path, earlier)?;
            self.file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            self.bytes = Some(0);
        }
        self.file.write_all(line.as_bytes())?;
        self.bytes = self.bytes.map(|bytes| bytes + line.len() as u64);
        Ok(())
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line(&one_line(bytes)).map(|()| bytes.len()).inspect_err(|error| {
            let is_lost = error.kind() != io::ErrorKind::Interrupted;
            if is_lost && !std::mem::replace(&mut self.failed, true) {
                let path = self.path.display();
                let _ = print_note(&format!("warning: cannot write the log {path}: {error}; lines are lost"));
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A layer of lines with timestamps and without colours.
fn plain<S, W>(writer: W) -> fmt::Layer<S, DefaultFields, Format, W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'w> fmt::MakeWriter<'w> + 'static,
{
    fmt::layer().with_target(false).log_internal_errors(LOG_WRITE_ERRORS).with_writer(writer).with_ansi(false)
}

/// Log levels: volary's own modules are more verbose than its dependencies, whose logs would include single packets.
fn levels(verbose: u8) -> Targets {
    let (own, others) = match verbose {
        0 => (Level::WARN, Level::WARN),
        1 => (Level::INFO, Level::INFO),
        2 => (Level::DEBUG, Level::INFO),
        _ => (Level::TRACE, Level::INFO),
    };
    let notices = own.max(Level::INFO);
    Targets::new().with_default(others).with_target(env!("CARGO_PKG_NAME"), own).with_target(NOTICE, notices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_an_agent_is_bounded_and_has_a_line_per_event() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.log");
        let mut log = LogFile { most: 100, ..LogFile::open(&path).unwrap() };
        for i in 0..20 {
            log.write_all(format!("{i:02} a peer says\nforged\n").as_bytes()).unwrap();
        }
        let [now, before] = ["agent.log", "agent.log.1"].map(|name| {
            let text = fs::read_to_string(folder.path().join(name)).unwrap();
            assert!(
                text.len() <= 100 && text.lines().all(|line| line.contains("says\u{fffd}forged")),
                "{text}"
            );
            text
        });
        assert!(now.contains("19 a peer") && before.contains("15 a peer"), "{before}/{now}");
    }

    #[test]
    fn a_verbose_log_has_more_detail_on_volary_than_on_dependencies() {
        let levels: Vec<_> = (0..4).map(levels).collect();
        let of = |target: &str, level| -> Vec<bool> {
            levels.iter().map(|levels| levels.would_enable(target, &level)).collect()
        };
        assert_eq!(of("volary::runtime", Level::INFO), [false, true, true, true]);
        assert_eq!(of(NOTICE, Level::INFO), [true; 4]);
        assert_eq!(of(NOTICE, Level::DEBUG), [false, false, true, true]);
        assert_eq!(of("volary_netem::fabric", Level::DEBUG), [false, false, true, true]);
        assert_eq!(of("volary", Level::TRACE), [false, false, false, true]);
        assert_eq!(of("quinn::connection", Level::WARN), [true; 4]);
        assert_eq!(of("quinn::connection", Level::DEBUG), [false; 4]);
    }
}
