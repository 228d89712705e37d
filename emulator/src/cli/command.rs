//! The commands: parsing, dispatch, and the exit status of errors.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use volary_actors::policies::Registry;
use volary_experiment::config::error::nearest;
use volary_experiment::storage;
use volary_experiment::storage::input_log;

use super::output::{Unwritten, print_note};
#[cfg(feature = "hosts")]
use super::{agent, certs, inject, status};
use super::{
    compare, completions, export, log, plan, policies, profile, replay, report, run, schema, topology, trace,
    validate,
};
#[cfg(feature = "figures")]
use super::{plot, watch};
use crate::hosts::InjectError;
use crate::runtime::StudyError;

/// Emulator of datacenter job schedulers: actors, seeded faults and interference, one experiment file.
#[derive(Debug, Parser)]
#[command(name = "volary", version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Log more to stderr, or to the log of an agent; up to three times.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Options),
    Plan(plan::Options),
    Report(report::Options),
    Compare(compare::Options),
    #[cfg(feature = "figures")]
    Plot(plot::Options),
    Export(export::Options),
    #[cfg(feature = "figures")]
    Watch(watch::Options),
    Replay(replay::Options),
    #[cfg(feature = "hosts")]
    Inject(inject::Options),
    Validate(validate::Options),
    Policies(policies::Options),
    Profile(profile::Options),
    Trace(trace::Options),
    Topology(topology::Options),
    Schema(schema::Options),
    #[cfg(feature = "hosts")]
    Certs(certs::Options),
    #[cfg(feature = "hosts")]
    Agent(agent::Options),
    #[cfg(feature = "hosts")]
    Status(status::Options),
    Completions(completions::Options),
}

/// The `volary` program: parses the command line, executes it, and reports errors on stderr.
pub fn main() -> ExitCode {
    main_with(Registry::ours())
}

/// The `volary` program with another registry of policies, which all commands use, including `volary agent`.
///
/// ```no_run
/// # use volary_actors::policies::{Registry, random::Random as Own};
/// # fn main() -> std::process::ExitCode {
/// volary::cli::main_with(Registry::ours().with::<Own>("own"))
/// # }
/// ```
pub fn main_with(registry: Registry) -> ExitCode {
    if let Err(why) = registry.install() {
        let _ = writeln!(io::stderr(), "error: {why}");
        return ExitCode::from(2);
    }
    if let Err(error) = notice_limits() {
        let _ = writeln!(io::stderr(), "error: cannot handle signals: {error}");
        return ExitCode::from(2);
    }
    let cli = Cli::try_parse().unwrap_or_else(|error| suggested(error).exit());
    match dispatch(&cli) {
        Ok(status) => status,
        Err(error) if broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = print_note(&format!("error: {}", error_text(&error)));
            ExitCode::from(exit_status(&error))
        }
    }
}

/// The signal that a write beyond the file size limit raises on Linux (except MIPS), macOS and the BSDs.
const SIGXFSZ: i32 = 25;

/// Makes a write beyond the file size limit (`ulimit -f`) fail with an error that is reported. Without a handler, the
/// signal would end the process without a message.
fn notice_limits() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    // The handler stays when the handle is dropped.
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}

/// The error with the most similar command added, if clap suggests none.
fn suggested(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let is_first = { words }.find(|word| !word.starts_with('-')).as_ref() == Some(name);
    if is_first && error.get(ContextKind::SuggestedSubcommand).is_none() {
        let commands = Cli::command();
        if let Some(near) = nearest(name, commands.get_subcommands().map(clap::Command::get_name)) {
            let near = ContextValue::Strings(vec![near.to_owned()]);
            error.insert(ContextKind::SuggestedSubcommand, near);
        }
    }
    error
}

fn dispatch(cli: &Cli) -> anyhow::Result<ExitCode> {
    #[cfg(feature = "hosts")]
    let is_agent = matches!(cli.command, Command::Agent(_));
    #[cfg(not(feature = "hosts"))]
    let is_agent = false;
    if !is_agent {
        log::start(cli.verbose)?;
    }
    match &cli.command {
        Command::Run(options) => run::main(options),
        Command::Plan(options) => plan::main(options),
        Command::Report(options) => report::main(options),
        Command::Compare(options) => compare::main(options),
        #[cfg(feature = "figures")]
        Command::Plot(options) => plot::main(options),
        Command::Export(options) => export::main(options),
        #[cfg(feature = "figures")]
        Command::Watch(options) => watch::main(options),
        Command::Replay(options) => replay::main(options),
        #[cfg(feature = "hosts")]
        Command::Inject(options) => inject::main(options),
        Command::Validate(options) => validate::main(options),
        Command::Policies(options) => policies::main(options),
        Command::Profile(options) => profile::main(options),
        Command::Trace(options) => trace::main(options),
        Command::Topology(options) => topology::main(options),
        Command::Schema(options) => schema::main(options),
        #[cfg(feature = "hosts")]
        Command::Certs(options) => certs::main(options),
        #[cfg(feature = "hosts")]
        Command::Agent(options) => agent::main(options, cli.verbose),
        #[cfg(feature = "hosts")]
        Command::Status(options) => status::main(options),
        Command::Completions(options) => completions::main(options, Cli::command()),
    }
}

/// The text of an error and its causes, without causes whose text it already contains.
fn error_text(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// The exit status: 3 if a run stopped early, or a disk or a limit is full; 2 for invalid usage or input.
fn exit_status(error: &anyhow::Error) -> u8 {
    // `FileTooLarge` without an error number is volary's own error about an input.
    let is_full = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            || error.kind() == io::ErrorKind::FileTooLarge && error.raw_os_error().is_some()
    };
    if error.chain().any(|cause| cause.downcast_ref().is_some_and(is_full)) {
        return 3;
    }
    let broken = match error.downcast_ref() {
        Some(validate::Error::Broken { .. }) => true,
        Some(validate::Error::Run(error)) => is_broken(error),
        Some(validate::Error::Spec(_) | validate::Error::Alone(_)) => false,
        None if error.is::<Unwritten>() => true,
        None => {
            error.downcast_ref::<InjectError>().is_some_and(|error| !error.is_input())
                || error.downcast_ref().is_some_and(is_broken)
        }
    };
    if broken { 3 } else { 2 }
}

fn is_broken(error: &StudyError) -> bool {
    match error {
        StudyError::StudyDir(error) => {
            matches!(error, storage::Error::Io { .. } | storage::Error::Rows { .. })
        }
        StudyError::Inputs(error) => matches!(error, input_log::Error::Io { .. }),
        StudyError::Hosts(error) => !error.is_input(),
        StudyError::Folder(storage::Error::Io { source, .. }) => {
            // An unusable folder is an error of usage, but a file server that is gone is not.
            source.kind() == io::ErrorKind::StaleNetworkFileHandle
        }
        StudyError::Folder(_) | StudyError::Unsupported(_) | StudyError::Bundle(_) => false,
    }
}

/// Whether the reader of volary's output closed the pipe; this is not an error.
fn broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Unwritten>().is_some_and(|error| error.0.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn clap_accepts_the_definition_of_the_command_line() {
        Cli::command().debug_assert();
    }

    /// Every `volary …` and `cargo run … -- …` line in the shell blocks of README and documentation must parse.
    #[test]
    fn the_documentation_names_commands_that_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let pages = std::fs::read_dir(root.join("docs/src")).unwrap().map(|entry| entry.unwrap().path());
        let pages = pages.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
        for path in pages.chain([root.join("README.md")]) {
            let text = std::fs::read_to_string(&path).unwrap();
            let parsed = commands_parse(&path.display().to_string(), &text);
            assert!(parsed > 0 || !path.ends_with("README.md"), "{} has no command", path.display());
        }
    }

    /// Parses the commands in the shell blocks of a text; returns their number.
    fn commands_parse(name: &str, text: &str) -> usize {
        let shell = text.split("```").filter_map(|block| block.strip_prefix("sh\n"));
        let mut count = 0;
        for line in shell.flat_map(str::lines) {
            let line = line.split('#').next().unwrap_or_default().trim();
            let Some(rest) = line.strip_prefix("volary ").or_else(|| {
                line.strip_prefix("cargo run ").and_then(|rest| rest.split_once("-- ")).map(|p| p.1)
            }) else {
                continue;
            };
            let words = std::iter::once("volary").chain(rest.split_whitespace());
            let parsed = Cli::try_parse_from(words);
            assert!(
                parsed.is_ok(),
                "{name}: {line}\n{}",
                parsed.err().map(|e| e.to_string()).unwrap_or_default()
            );
            count += 1;
        }
        count
    }
}
