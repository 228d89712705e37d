//! Output for people and programs, and the progress bar.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::hosts::remove_identities;
use anyhow::Context;
use volary_experiment::control::{StudyControl, StudyObserver};
use volary_experiment::storage::{self, Render, Study};
use volary_experiment::{atomic_file, sanitize};
use volary_report::style::folded;

use super::progress::Bar;

/// The control of a study that Ctrl-C stops. Its observers are `observer` and, unless `quiet` is set or log lines are
/// written, a progress bar. Called once per process.
pub(super) fn control(
    quiet: bool,
    observer: Option<Arc<dyn StudyObserver>>,
    pace: Option<f64>,
) -> anyhow::Result<Arc<StudyControl>> {
    let mut observers: Vec<_> = observer.into_iter().collect();
    if !quiet && !tracing::enabled!(tracing::Level::INFO) {
        observers.push(Arc::new(Bar::new(width_of(io::stderr()))));
    }
    let control = Arc::new(StudyControl { observers, pace, ..StudyControl::default() });
    let stop = Arc::clone(&control);
    ctrlc::set_handler(move || {
        // A second signal exits at once, with the status of an interrupted program.
        if stop.stop.swap(true, Ordering::Relaxed) {
            remove_identities();
            std::process::exit(130);
        }
    })?;
    Ok(control)
}

/// The renderer of `report.html`; `None` without the feature `figures`.
#[cfg(feature = "figures")]
pub(super) const RENDER: Option<Render> = Some(volary_report::render);
#[cfg(not(feature = "figures"))]
pub(super) const RENDER: Option<Render> = None;

/// Whether a stream supports colours: a terminal without `NO_COLOR` set.
pub(super) fn colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether stdout supports colours.
pub(super) fn coloured() -> bool {
    colours(&io::stdout())
}

/// Width of stdout in characters: the width of the terminal, or else the value of `COLUMNS`; `None` for no limit.
pub(super) fn width() -> Option<usize> {
    width_of(io::stdout())
}

fn width_of(stream: impl AsFd) -> Option<usize> {
    let of_terminal = rustix::termios::tcgetwinsize(stream).map(|size| usize::from(size.ws_col));
    let asked = || std::env::var("COLUMNS").ok()?.parse().ok();
    of_terminal.ok().or_else(asked).filter(|width| *width > 0)
}

/// Error of writing to stdout.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
pub(super) struct Unwritten(#[from] pub(super) io::Error);

/// Writes text for people to stdout, with a newline at its end.
pub(super) fn print(text: &str) -> Result<(), Unwritten> {
    print_exact(&sanitize::terminal(text))
}

/// Writes text for people to stdout, broken between words to fit the width.
pub(super) fn print_folded(text: &str) -> Result<(), Unwritten> {
    print(&folded(text, width()))
}

/// Writes text for programs to stdout, with a newline at its end.
pub(super) fn print_exact(text: &str) -> Result<(), Unwritten> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Writes text for people to stderr.
pub(super) fn print_note(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(io::stderr(), "{}", sanitize::terminal(text))?)
}

/// Writes a value as indented JSON to stdout.
pub(super) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(print_exact(&serde_json::to_string_pretty(value)?)?)
}

/// Warns of missing runs in a study.
pub(super) fn warn_of_gaps(study: &Study) -> Result<(), storage::Error> {
    storage::gaps(study)?.iter().for_each(|gap| tracing::warn!("{gap}"));
    Ok(())
}

/// Prints a value as JSON, or as text.
pub(super) fn show<S: serde::Serialize>(
    json: bool,
    value: impl FnOnce() -> S,
    text: impl FnOnce() -> String,
) -> anyhow::Result<ExitCode> {
    if json {
        print_json(&value())?
    } else {
        print_folded(&text())?
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a file that an option names. If the new file cannot be completed, an existing file is kept.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    // A pipe or a terminal, such as /dev/stdout, cannot be replaced. A link is kept, and its target is replaced.
    let replaced = match (fs::symlink_metadata(path), fs::canonicalize(path)) {
        (Err(_), _) => replace(path, bytes, None),
        (Ok(_), Ok(target)) if target.is_file() => {
            let permissions = fs::metadata(&target).map(|known| known.permissions());
            replace(&target, bytes, permissions.ok())
        }
        _ => fs::write(path, bytes),
    };
    let written = match replaced {
        // The file may be writable in a folder that is not, or it may be a mount point.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ResourceBusy) => {
            fs::write(path, bytes)
        }
        other => other,
    };
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Replaces a file and keeps its permissions.
fn replace(path: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let fill = |mut file: File| {
        permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
        file.write_all(bytes)
    };
    atomic_file::replace_shared(path, fill).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.svg");
        write_file(&file, b"old").unwrap();
        write_file(&file, b"older").unwrap();
        // Another file has the name of the partial file.
        let partial = folder.path().join(format!("a.svg.{}.partial", std::process::id()));
        fs::create_dir(&partial).unwrap();
        let error = write_file(&file, b"new").unwrap_err().to_string();
        assert!(error.starts_with("cannot write") && error.contains("a.svg"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"older");
        let link = folder.path().join("link.svg");
        std::os::unix::fs::symlink("b.svg", &link).unwrap();
        for bytes in [b"first", b"later"] {
            write_file(&link, bytes).unwrap();
            assert_eq!(fs::read(folder.path().join("b.svg")).unwrap(), bytes, "the link is kept");
        }
        write_file(Path::new("/dev/null"), b"new").unwrap();
    }
}
