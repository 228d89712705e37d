//! The command line: one file per subcommand.
//!
//! Results and tables go to stdout, logs and progress to stderr. Exit status: 0 success; 1 success, but a claim failed
//! with `--check`; 2 invalid usage or input; 3 the run could not finish.

mod agent;
mod certs;
mod compare;
mod completions;
mod inject;
mod plan;
mod policies;
mod profile;
mod replay;
mod report;
mod run;
mod schema;
mod status;
mod topology;
mod trace;
mod validate;

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use clap::{Args, Parser, Subcommand};
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::cluster::Fleet;
use crate::cluster::agent::RunLog;
use crate::cluster::error::InjectError;
use crate::config::{ConfigError, Experiment, Overrides, Repeat, RuntimeKind, describe};
use crate::report::style::Style;
use crate::runtime::{RunError, Watch};
use crate::storage;
use crate::storage::input_log;

/// Emulates datacenter job schedulers: actors, seeded faults and interference, one experiment file.
#[derive(Debug, Parser)]
#[command(name = "volary", version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Say more on stderr, or in an agent's log; up to three times.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Options),
    Plan(plan::Options),
    Report(report::Options),
    Compare(compare::Options),
    Replay(replay::Options),
    Inject(inject::Options),
    Validate(validate::Options),
    Policies(policies::Options),
    Profile(profile::Options),
    Trace(trace::Options),
    Topology(topology::Options),
    Schema(schema::Options),
    Certs(certs::Options),
    Agent(agent::Options),
    Status(status::Options),
    Completions(completions::Options),
}

/// Which experiment, and what is changed about it.
#[derive(Debug, Args)]
struct ExperimentArgs {
    /// The experiment file.
    experiment: PathBuf,
    /// Change a key of the file, such as `network.loss=0.01`; a swept key is pinned to the value.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Run only the policies with these labels.
    #[arg(long, value_name = "LABEL")]
    policy: Vec<String>,
    /// The seed, of several replications the first's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl ExperimentArgs {
    fn overrides(&self) -> Overrides {
        let Self { set, policy, seed, .. } = self;
        Overrides { set: set.clone(), policies: policy.clone(), seed: *seed, ..Overrides::default() }
    }

    /// Whether the command line selects only part of the experiment.
    fn narrows(&self) -> bool {
        !(self.set.is_empty() && self.policy.is_empty())
    }
}

/// The same, and how often it is run and where.
#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    of: ExperimentArgs,
    /// Replications: a number, or `auto` until the file's `precision` is reached.
    #[arg(long, value_name = "N", value_parser = repeat)]
    repeat: Option<Repeat>,
    /// Which clock moves the run: virtual, local or hosts.
    #[arg(long, value_parser = runtime)]
    runtime: Option<RuntimeKind>,
}

impl RunArgs {
    fn load(&self) -> Result<Experiment, ConfigError> {
        let overrides = Overrides { repeat: self.repeat, runtime: self.runtime, ..self.of.overrides() };
        let experiment = Experiment::load(&self.of.experiment, &overrides)?;
        for warning in &experiment.warnings {
            tracing::warn!("{warning}");
        }
        Ok(experiment)
    }

    /// Loads an experiment to run, and prints the warnings that the report will contain.
    fn prepare(&self) -> Result<Experiment, ConfigError> {
        let mut experiment = self.load()?;
        if let Some(warning) = describe::overload(&experiment) {
            tracing::warn!("{warning}");
            experiment.warnings.push(warning);
        }
        Ok(experiment)
    }
}

/// The machines of a run with `--runtime hosts`.
#[derive(Debug, Args)]
struct FleetArgs {
    /// The hosts file, as `volary certs` writes it; an agent runs on each host.
    #[arg(long, value_name = "FILE", conflicts_with = "spawn")]
    hosts: Option<PathBuf>,
    /// Start so many agents on this machine instead, with identities that are thrown away.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    spawn: Option<u16>,
}

impl FleetArgs {
    fn fleet(&self) -> Option<Fleet> {
        self.hosts.clone().map(Fleet::Hosts).or_else(|| self.spawn.map(Fleet::Spawn))
    }
}

/// Parses the address of an agent. Certificates and hosts files contain addresses, since a name may resolve to
/// several.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is no address: write IP:PORT, such as 10.77.0.2:4433"))
}

fn repeat(text: &str) -> Result<Repeat, String> {
    text.parse().map_err(|()| "write a number of at least 1, or auto".to_owned())
}

fn runtime(text: &str) -> Result<RuntimeKind, String> {
    match text {
        "virtual" => Ok(RuntimeKind::Virtual),
        "local" => Ok(RuntimeKind::Local),
        "hosts" => Ok(RuntimeKind::Hosts),
        _ => Err("expected virtual, local or hosts".to_owned()),
    }
}

/// Parses the command line, executes it, and reports errors on stderr.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let heard = RunLog::default();
    match log(&cli, &heard).and_then(|()| dispatch(&cli.command, &heard)) {
        Ok(status) => status,
        Err(error) if broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {}", said_once(&error));
            ExitCode::from(status(&error))
        }
    }
}

fn dispatch(command: &Command, heard: &RunLog) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(options) => run::main(options),
        Command::Plan(options) => plan::main(options),
        Command::Report(options) => report::main(options),
        Command::Compare(options) => compare::main(options),
        Command::Replay(options) => replay::main(options),
        Command::Inject(options) => inject::main(options),
        Command::Validate(options) => validate::main(options),
        Command::Policies(options) => policies::main(options),
        Command::Profile(options) => profile::main(options),
        Command::Trace(options) => trace::main(options),
        Command::Topology(options) => topology::main(options),
        Command::Schema(options) => schema::main(options),
        Command::Certs(options) => certs::main(options),
        Command::Agent(options) => agent::main(options, heard),
        Command::Status(options) => status::main(options),
        Command::Completions(options) => completions::main(options),
    }
}

/// An error and its causes, without causes whose text is already part of an earlier one.
fn said_once(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// The exit status: 3 if a run was broken off, 2 for invalid usage or input.
fn status(error: &anyhow::Error) -> u8 {
    let run = match error.downcast_ref::<validate::Error>() {
        Some(validate::Error::Broken { .. }) => return 3,
        Some(validate::Error::Run(error)) => Some(error),
        Some(validate::Error::Spec(_) | validate::Error::Alone(_)) => None,
        None if error.is::<Unwritten>() => return 3,
        None if error.downcast_ref::<InjectError>().is_some_and(|error| !error.is_input()) => return 3,
        None => error.downcast_ref::<RunError>(),
    };
    match run {
        Some(
            RunError::RunDir(storage::Error::Io { .. } | storage::Error::Rows { .. })
            | RunError::Inputs(input_log::Error::Io { .. }),
        ) => 3,
        Some(RunError::Hosts(error)) if !error.is_input() => 3,
        Some(
            RunError::Hosts(_)
            | RunError::RunDir(_)
            | RunError::Folder(_)
            | RunError::Unsupported(_)
            | RunError::Bundle(_)
            | RunError::Inputs(_),
        )
        | None => 2,
    }
}

/// A watch that Ctrl-C stops, with a progress bar unless `quiet`. Called once per process.
fn watch(quiet: bool) -> anyhow::Result<Arc<Watch>> {
    let watch = Arc::new(if quiet { Watch::default() } else { Watch::on_terminal() });
    let stop = Arc::clone(&watch);
    ctrlc::set_handler(move || {
        // A second signal exits at once, with the status of an interrupted program.
        if stop.stop.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })?;
    Ok(watch)
}

/// Whether the reader of our output closed it, which is not an error.
fn broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Unwritten>().is_some_and(|error| error.0.kind() == io::ErrorKind::BrokenPipe)
}

/// A failed write to the log, for example on a full disk, must not end the run.
const COMPLAIN: bool = false;

/// Initialises logging to stderr, or to an agent's log file with timestamps. An agent also sends it to its controller.
fn log(cli: &Cli, heard: &RunLog) -> anyhow::Result<()> {
    // An agent that serves one run shares the terminal of the process that started it.
    let agent = matches!(&cli.command, Command::Agent(options) if !options.once);
    let level = levels(cli.verbose + u8::from(agent));
    let Command::Agent(agent) = &cli.command else {
        let terminal = fmt::layer().with_target(false).log_internal_errors(COMPLAIN).with_writer(io::stderr);
        let terminal = terminal.with_ansi(colours(&io::stderr())).without_time();
        tracing_subscriber::registry().with(terminal.with_filter(level)).init();
        return Ok(());
    };
    let file = agent.log.as_deref().map(agent::log_file).transpose()?;
    let file = file.map(|file| {
        fmt::layer()
            .with_target(false)
            .log_internal_errors(COMPLAIN)
            .with_writer(Mutex::new(file))
            .with_ansi(false)
    });
    let terminal = agent.log.is_none().then(|| {
        let terminal = fmt::layer().with_target(false).log_internal_errors(COMPLAIN).with_writer(io::stderr);
        terminal.with_ansi(colours(&io::stderr())).without_time()
    });
    let heard = fmt::layer()
        .with_target(false)
        .log_internal_errors(COMPLAIN)
        .with_writer(heard.clone())
        .with_ansi(false);
    tracing_subscriber::registry()
        .with(file.with_filter(level.clone()))
        .with(terminal.with_filter(level))
        // More detail would include the sending of log lines, which then log again.
        .with(heard.with_filter(levels(1)))
        .init();
    Ok(())
}

/// Log levels: volary's own modules are more verbose than its dependencies, whose logs reach down to single packets.
fn levels(verbose: u8) -> Targets {
    let (own, others) = match verbose {
        0 => (Level::WARN, Level::WARN),
        1 => (Level::INFO, Level::INFO),
        2 => (Level::DEBUG, Level::INFO),
        _ => (Level::TRACE, Level::INFO),
    };
    Targets::new().with_default(others).with_target(env!("CARGO_PKG_NAME"), own)
}

/// Whether a stream supports colours: a terminal without `NO_COLOR` set.
fn colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn style() -> Style {
    if colours(&io::stdout()) { Style::Terminal } else { Style::Plain }
}

/// Writing to stdout failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
struct Unwritten(#[from] io::Error);

/// Writes text to stdout, with a newline at its end.
fn print(text: &str) -> Result<(), Unwritten> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Writes text for people to stderr.
fn aside(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(io::stderr(), "{text}")?)
}

/// Writes a value as indented JSON to stdout.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(print(&serde_json::to_string_pretty(value)?)?)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    #[test]
    fn what_the_system_says_is_said_once() {
        let system = || std::io::Error::from_raw_os_error(2);
        let quoted = anyhow::Error::new(system()).context(format!("cannot read x: {}", system()));
        assert_eq!(super::said_once(&quoted), format!("cannot read x: {}", system()));
        let bare = anyhow::Error::new(system()).context("cannot read x");
        assert_eq!(super::said_once(&bare), format!("cannot read x: {}", system()));
    }

    #[test]
    fn a_log_has_more_of_ours_than_of_what_we_stand_on() {
        use tracing::Level;
        let levels: Vec<_> = (0..4).map(super::levels).collect();
        let of = |target: &str, level| -> Vec<bool> {
            levels.iter().map(|levels| levels.would_enable(target, &level)).collect()
        };
        assert_eq!(of("volary::runtime", Level::INFO), [false, true, true, true]);
        assert_eq!(of("volary_netem::fabric", Level::DEBUG), [false, false, true, true]);
        assert_eq!(of("volary", Level::TRACE), [false, false, false, true]);
        assert_eq!(of("quinn::connection", Level::WARN), [true; 4]);
        assert_eq!(of("quinn::connection", Level::DEBUG), [false; 4]);
    }

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }

    /// Every `volary …` and `cargo run … -- …` line in the README's shell blocks parses.
    #[test]
    fn the_readme_names_commands_that_exist() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
        let readme = std::fs::read_to_string(path).unwrap_or_default();
        let shell = readme.split("```").filter_map(|block| block.strip_prefix("sh\n"));
        for line in shell.flat_map(str::lines) {
            let line = line.split('#').next().unwrap_or_default().trim();
            let Some(rest) = line.strip_prefix("volary ").or_else(|| {
                line.strip_prefix("cargo run ").and_then(|rest| rest.split_once("-- ")).map(|p| p.1)
            }) else {
                continue;
            };
            let words = std::iter::once("volary").chain(rest.split_whitespace());
            let parsed = super::Cli::try_parse_from(words);
            assert!(
                parsed.is_ok(),
                "README: {line}\n{}",
                parsed.err().map(|e| e.to_string()).unwrap_or_default()
            );
        }
    }
}
