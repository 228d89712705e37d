//! The `volary agent` command.

use std::fs::{self, OpenOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use volary_actors::base::Span;

use super::args::address;
use super::output::print;
use crate::cluster::agent::RunLog;
use crate::cluster::agent::{Agent, Settings};
use crate::cluster::timing::{LONGEST_LEASE, SHORTEST_LEASE};
use crate::runtime::executor::{CpuId, free_cpus};
use crate::runtime::live::clock::MonotonicClock;
use volary_engine::cores::CoreSet;

/// Take part in runs on several machines: wait for a controller and run what it says.
///
/// An agent talks only to those whose certificates the run's authority has signed, runs experiments and never
/// commands, and ends on SIGTERM or Ctrl-C.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Where to listen; port 0 takes a free one. Nothing else is listened to.
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    listen: SocketAddr,
    /// The host's folder of those that `volary certs` made: ca.pem, cert.pem, key.pem.
    #[arg(long, value_name = "DIR")]
    identity: PathBuf,
    /// Write the process id there, and remove it at the end.
    #[arg(long, value_name = "FILE")]
    pidfile: Option<PathBuf>,
    /// Append the log there instead of writing it to stderr.
    #[arg(long, value_name = "FILE")]
    pub(super) log: Option<PathBuf>,
    /// Give up a controller or host that has been silent for so long, 1s to 10min. The controller gives this host
    /// up after the same time; of two hosts the shorter lease counts.
    #[arg(long, value_name = "SPAN", default_value = "10s")]
    lease: Span,
    /// End after one controller has come and gone.
    #[arg(long)]
    pub(super) once: bool,
    /// Give a run up when so many of its events wait here; each takes about 100 bytes.
    #[arg(long, value_name = "N", default_value_t = 16_000_000)]
    events: usize,
    /// CPUs that copies may burn in runs with `run.real`, such as `0,2-5`; all that this process may use if absent.
    /// Agents that share a machine need lists of their own, or masks of their own (`taskset`).
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<CpuList>,
    /// Let this host's clock be ahead by so much, to see what a wrong clock does.
    #[arg(long, value_name = "SPAN", default_value = "0s", hide = true)]
    clock_ahead: Span,
    /// Let this host's clock run too fast by so many millionths.
    #[arg(long, value_name = "PPM", default_value_t = 0.0, hide = true, allow_negative_numbers = true)]
    clock_drift: f64,
}

pub(super) fn main(options: &Options, log: &RunLog) -> anyhow::Result<ExitCode> {
    let lease = Duration::from_nanos(options.lease.0);
    if !(SHORTEST_LEASE..=LONGEST_LEASE).contains(&lease) {
        anyhow::bail!("--lease: {} is not in 1s to 10min", options.lease);
    }
    let settings = Settings {
        listen: options.listen,
        identity: options.identity.clone(),
        lease: options.lease,
        once: options.once,
        events: options.events,
        cpus: options.cpus.clone().map_or_else(free_cpus, |CpuList(cpus)| cpus),
        ticks: MonotonicClock::skewed(options.clock_ahead.0.cast_signed(), options.clock_drift),
        log: log.clone(),
    };
    let agent = Agent::new(&settings)?;
    let pid = options.pidfile.as_deref().map(Pidfile::write).transpose()?;
    print(&format!("{} listens on {}", agent.name(), agent.address()?))?;
    agent.run()?;
    drop(pid);
    Ok(ExitCode::SUCCESS)
}

/// CPUs in ascending order, without duplicates.
#[derive(Clone, Debug)]
struct CpuList(Vec<CpuId>);

/// Parses a list of CPUs that this process may use.
fn cpus(text: &str) -> Result<CpuList, String> {
    let wrong = |_| format!("`{text}` is no CPU or list of some: write numbers and ranges, such as 0,2-5");
    let numbers: CoreSet = text.parse().map_err(wrong)?;
    let of = |cpu: u32| u16::try_from(cpu).map(CpuId).map_err(|_| format!("there is no CPU {cpu}"));
    let cpus: Vec<_> = numbers.iter().map(of).collect::<Result<_, _>>()?;
    let free = free_cpus();
    if cpus.is_empty() {
        return Err("an agent without CPUs burns nothing: write numbers and ranges, such as 0,2-5".to_owned());
    }
    if let Some(other) = cpus.iter().find(|cpu| !free.contains(cpu)) {
        let free: Vec<_> = free.iter().map(ToString::to_string).collect();
        return Err(format!("CPU {other} is none that this process may use: {}", free.join(",")));
    }
    Ok(CpuList(cpus))
}

/// A file with the process id, removed when the value is dropped.
struct Pidfile(PathBuf);

impl Pidfile {
    fn write(path: &Path) -> anyhow::Result<Self> {
        fs::write(path, format!("{}\n", std::process::id()))
            .with_context(|| format!("cannot write the pidfile {}", path.display()))?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        // Fails if the file was already removed.
        let _ = fs::remove_file(&self.0);
    }
}

/// Opens the log file given by `--log`.
pub(super) fn log_file(path: &Path) -> anyhow::Result<fs::File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot write the log {}", path.display()))
}
