//! The `volary agent` command.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tempfile::TempPath;
use volary_actors::base::CoreSet;
use volary_actors::base::Span;
use volary_experiment::program::ProcessLauncher;
use volary_hosts::cluster::agent::{Agent, AgentLog, Settings};
use volary_hosts::cluster::timing::{LONGEST_LEASE, SHORTEST_LEASE};
use volary_hosts::executor::{CpuId, free_cpus};
use volary_hosts::real_time::clock::MonotonicClock;

use super::log::start_with;
use super::output::print;

/// Wait for a controller, and execute this host's part of its runs.
///
/// An agent accepts only peers whose certificates the run's authority has signed. It runs experiments, never commands,
/// and ends on SIGTERM or Ctrl-C.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Address on which the agent listens; port 0 takes a free port.
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    listen: SocketAddr,
    /// This host's folder from `volary certs`, with ca.pem, cert.pem and key.pem.
    #[arg(long, value_name = "DIR")]
    identity: PathBuf,
    /// Write the process id to this file, and remove the file at the end.
    #[arg(long, value_name = "FILE")]
    pidfile: Option<PathBuf>,
    /// Append the log to this file instead of writing it to stderr.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Silence after which a controller or another host is considered lost, 1s to 10min. The controller applies the
    /// same limit to this host; between two hosts the shorter lease applies.
    #[arg(long, value_name = "SPAN", default_value = "10s")]
    lease: Span,
    /// End after serving one controller, or after a minute without a controller and without a status request.
    #[arg(long)]
    once: bool,
    /// Limit on the waiting events of a run; a run that exceeds it ends with an error. Each event takes about 100
    /// bytes.
    #[arg(long, value_name = "N", default_value_t = 16_000_000)]
    events: usize,
    /// CPUs that copies may burn in runs with `run.real`, such as `0,2-5`; if absent, all CPUs that this process may
    /// use. Agents on the same machine need separate lists, or separate masks (`taskset`).
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<Box<[CpuId]>>,
    /// Allow the program of a policy in another language, under the name that experiments use, such as
    /// `mine=/opt/mine`. All other programs are refused, whatever an experiment says.
    #[arg(long = "policy", value_name = "NAME=PATH", value_parser = allowed)]
    policies: Vec<(String, PathBuf)>,
    /// Allow the commands of experiments, started in this folder; for agents that volary starts itself.
    #[arg(long, value_name = "DIR", hide = true, conflicts_with = "policies")]
    programs_in: Option<PathBuf>,
    /// Offset of the clock of this host, to test the effect of a wrong clock.
    #[arg(long, value_name = "SPAN", default_value = "0s", hide = true)]
    clock_ahead: Span,
    /// Drift of the clock of this host, parts per million.
    #[arg(long, value_name = "PPM", default_value_t = 0.0, hide = true, allow_negative_numbers = true)]
    clock_drift: f64,
}

pub(super) fn main(options: &Options, verbose: u8) -> anyhow::Result<ExitCode> {
    let log = AgentLog::default();
    // An agent with `--once` logs less, because it shares the terminal of the process that started it.
    start_with(verbose + u8::from(!options.once), options.log.as_deref(), Some(log.clone()))?;
    let lease = Duration::from_nanos(options.lease.0);
    if !(SHORTEST_LEASE..=LONGEST_LEASE).contains(&lease) {
        anyhow::bail!("--lease: {} is not between 1s and 10min", options.lease);
    }
    let settings = Settings {
        listen: options.listen,
        identity: options.identity.clone(),
        lease: options.lease,
        once: options.once,
        events: options.events,
        cpus: options.cpus.clone().map_or_else(free_cpus, <[_]>::into_vec),
        ticks: MonotonicClock::skewed(options.clock_ahead.0.cast_signed(), options.clock_drift),
        programs: Arc::new(match &options.programs_in {
            Some(folder) => ProcessLauncher::of_experiment(folder.clone()).within_lease(options.lease),
            None => ProcessLauncher::of_host(allowed_once(&options.policies)?).within_lease(options.lease),
        }),
        log,
    };
    let agent = Agent::new(&settings)?;
    let pid = options.pidfile.as_deref().map(pidfile).transpose()?;
    print(&format!("{} listens on {}", agent.name(), agent.address()?))?;
    agent.run()?;
    drop(pid);
    Ok(ExitCode::SUCCESS)
}

/// Parses the address of an agent. Host names are refused, because a name may resolve to several addresses.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is not an address: write IP:PORT, such as 10.77.0.2:4433"))
}

/// The allowed programs by name, each given once.
fn allowed_once(policies: &[(String, PathBuf)]) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let mut allowed = BTreeMap::new();
    for (name, path) in policies {
        if !path.is_file() {
            anyhow::bail!(
                "--policy {name}={0}: there is no file {0}; copy the program to this host first",
                path.display()
            );
        }
        if allowed.insert(name.clone(), path.clone()).is_some() {
            anyhow::bail!("--policy: `{name}` is given twice; leave one out");
        }
    }
    Ok(allowed)
}

/// Parses the name of a program and its absolute path.
fn allowed(text: &str) -> Result<(String, PathBuf), String> {
    let wrong =
        || format!("`{text}` is not NAME=PATH: write a name and an absolute path, such as mine=/opt/mine");
    let (name, path) = text.split_once('=').ok_or_else(wrong)?;
    let path = PathBuf::from(path);
    if name.is_empty() || !path.is_absolute() {
        return Err(wrong());
    }
    Ok((name.to_owned(), path))
}

/// Parses a list of CPUs that this process may use; returns them in ascending order, without duplicates.
pub(super) fn cpus(text: &str) -> Result<Box<[CpuId]>, String> {
    let wrong = |_| format!("`{text}` is not a list of CPUs: write numbers and ranges, such as 0,2-5");
    let numbers: CoreSet = text.parse().map_err(wrong)?;
    let of = |cpu: u32| u16::try_from(cpu).map(CpuId).map_err(|_| format!("there is no CPU {cpu}"));
    let cpus: Box<[_]> = numbers.iter().map(of).collect::<Result<_, _>>()?;
    let free = free_cpus();
    if cpus.is_empty() {
        return Err("name at least one CPU: write numbers and ranges, such as 0,2-5".to_owned());
    }
    if let Some(other) = cpus.iter().find(|cpu| !free.contains(cpu)) {
        let free: Vec<_> = free.iter().map(ToString::to_string).collect();
        return Err(format!("CPU {other} is not among those that this process may use: {}", free.join(",")));
    }
    Ok(cpus)
}

/// Writes the process id to a file that is removed when the value is dropped.
fn pidfile(path: &Path) -> anyhow::Result<TempPath> {
    fs::write(path, format!("{}\n", std::process::id()))
        .with_context(|| format!("cannot write the pidfile {}", path.display()))?;
    Ok(TempPath::try_from_path(path)?)
}
