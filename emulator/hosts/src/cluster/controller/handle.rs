//! `Controller`: the blocking interface through which a runtime executes runs on hosts.
//!
//! The hosts are those of a hosts file, or agents on this machine that are started for one run.
//!
//! Lost datagrams of the real network are counted by sender and path. The sender counts sent datagrams, and the
//! receiver counts gaps in the sequence numbers; losses are computed from both. Datagrams lost at the very end of a run
//! leave no gap and are not counted, unless the run ended because it was idle: then no datagram is on its way, and all
//! missing datagrams are lost.

use std::fs::Permissions;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use volary_actors::base::Span;
use volary_engine::metrics::EndReason;
use volary_engine::results::{HostVitals, Injected, Measured, PathLoss, RealWork, Worked};
use volary_engine::world::World;
use volary_engine::world::finalize::{Counters, FinishedRun};
use volary_experiment::config::{Experiment, RealSection, RunSection};
use volary_experiment::control::{Fleet, RunError, StudyControl};
use volary_experiment::cost;
use volary_experiment::fidelity::measure::{LatenessHistograms, real_time};
use volary_experiment::guard::guard;
use volary_experiment::number::plural;
use volary_experiment::storage::input_log;
use volary_experiment::storage::manifest::HostRecord;

use super::host_pool::HostPool;
use super::injectors::Injectors;
use super::run::ControlledRun;
use crate::cluster::error::HostsError;
use crate::cluster::net::identity::HOSTS;
use crate::cluster::net::issue::{IssueRequest, issue};
use crate::cluster::net::{Host, Hosts, LinkStats};
use crate::cluster::placement::{held, loopback, nothing_held};
use crate::cluster::protocol::{Datagrams, FinalReport};
use crate::executor::{CpuId, free_cpus};

/// Hosts that have planned an experiment, and the threads that talk to them.
#[derive(Debug)]
pub struct Controller {
    pool: HostPool,
    injectors: Injectors,
    /// The injections into the latest run.
    injected: Vec<Injected>,
    runtime: Runtime,
    _spawned: Option<Spawned>,
}

impl Drop for Controller {
    fn drop(&mut self) {
        // The next controller of these hosts listens on the same socket.
        self.injectors.close();
        // Without a close the hosts would stay busy until their leases expire.
        self.runtime.block_on(self.pool.close("the controller has finished"));
    }
}

impl Controller {
    /// Claims every host of a fleet and has it plan the experiment.
    ///
    /// # Errors
    /// When a host cannot be reached, is busy, or has another version; [`HostsError::Interrupted`] if `control` is
    /// stopped.
    pub fn open(fleet: &Fleet, experiment: &Experiment, control: &StudyControl) -> Result<Self, HostsError> {
        let (spawned, file, wait) = match fleet {
            Fleet::Hosts { file, wait } => (None, file.clone(), *wait),
            Fleet::Spawn(count) => {
                let spawned = Spawned::start(*count, experiment)?;
                let file = spawned.hosts_file();
                tracing::info!("the hosts file of these agents is {}", file.display());
                (Some(spawned), file, Span::ZERO)
            }
        };
        let hosts = Hosts::load(&file)?;
        let (file, socket) = (hosts.clone(), hosts.socket(&file));
        let bundle = experiment.bundle()?;
        // The network has its own thread, so that pings are answered while reports are merged and worlds are built.
        let runtime =
            Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(HostsError::System)?;
        let pool = runtime.block_on(HostPool::open(&file, bundle, Duration::from_nanos(wait.0), control))?;
        let injectors = runtime.block_on(async { Injectors::listen(socket) });
        Ok(Self { pool, injectors, injected: Vec::new(), runtime, _spawned: spawned })
    }

    /// Removes the lost hosts, so that the next run is placed on the other hosts; returns whether some were removed.
    pub fn remove_lost_hosts(&mut self) -> bool {
        let lost = self.pool.remove_lost_hosts();
        if !lost.is_empty() {
            let left: Vec<&str> = self.members().iter().map(|member| member.name.as_str()).collect();
            tracing::warn!("the study continues without {}, on {}", lost.join(", "), left.join(", "));
        }
        !lost.is_empty()
    }

    /// The hosts, in order of shards.
    pub fn members(&self) -> &[Host] {
        &self.pool.members
    }

    /// Records of the hosts before actors are placed on them.
    pub fn unused(&self) -> Vec<HostRecord> {
        nothing_held(self.members())
    }

    /// The actors that each host holds in a run, and the hosts that were lost in the run.
    pub fn held(&self, world: &World, run: &str) -> Vec<HostRecord> {
        let mut records = held(self.members(), world, run);
        self.pool.lost_in(run).for_each(|(host, lost)| records[host].lost.push(lost.clone()));
        records
    }

    /// Takes the injections into the latest run.
    pub fn injected(&mut self) -> Vec<Injected> {
        std::mem::take(&mut self.injected)
    }

    /// Writes the hosts' logs to a folder from now on, `HOST.log` each.
    ///
    /// # Errors
    /// When the folder or a file cannot be written.
    pub fn keep_logs_in(&self, folder: &Path) -> io::Result<()> {
        self.pool.archive.keep_logs_in(folder)
    }

    /// Executes one run on the hosts; their inputs go to `log`.
    ///
    /// # Errors
    /// [`RunError::Interrupted`] if `control` is stopped; [`RunError::Refused`] if the run cannot begin;
    /// [`RunError::Broken`] if a host was lost during the run, or if the run stalled after datagrams had been lost.
    /// `Interrupted` and `Broken` hold the measurements so far.
    ///
    /// # Panics
    /// On a bug in a policy: a job that finishes twice, counts that do not add up.
    pub fn measure(
        &mut self,
        name: &str,
        world: &World,
        point: usize,
        section: &RunSection,
        log: Option<&input_log::RunLog>,
        control: &StudyControl,
    ) -> Result<Measured, RunError> {
        let (clock, cpu) = (Instant::now(), cost::process_cpu_s());
        let run =
            ControlledRun::run(&mut self.pool, &mut self.injectors, world, point, section, log, control);
        let mut run = self.runtime.block_on(run)?;
        run.lose_copies();
        let ControlledRun { pool, aggregator, over, reports, broken, injections, .. } = run;
        let (accounts, now) = aggregator.close();
        // Observers get the ends of injections here, because a run that fails or is interrupted has no record.
        injections.show(pool, control, now);
        let disturbed = injections.record(pool, now);
        self.injected.clone_from(&disturbed.results);
        let lost = if over == EndReason::Idle { unaccounted(&reports) } else { 0 };
        let broken = broken.or_else(|| {
            (lost > 0).then(|| {
                let lost = plural(lost, "datagram");
                format!("the run stalled after the network between the hosts had lost {lost}")
            })
        });
        let hosts = vitals(&pool.members, &reports);
        let (mut tally, mut gauge) = (Counters::default(), LatenessHistograms::default());
        let mut work = None;
        for (member, report) in pool.members.iter().zip(&reports) {
            let Some(report) = report else { continue };
            tally.add(&report.tally);
            gauge.merge(&report.reading);
            if let (Some(real), Some(cores)) = (section.burning(), report.cores.clone()) {
                work.get_or_insert_with(Worked::default).merge(&name_cores(cores, &real, &member.name));
            }
        }
        let hosts_cpu_s = hosts.iter().map(|host| host.cpu_s).sum::<f64>();
        let peak_rss_bytes =
            hosts.iter().map(|host| host.peak_rss_bytes).fold(cost::peak_rss_bytes(), u64::max);
        let finished = FinishedRun {
            experiment: name,
            world,
            recording: section.recording(),
            runtime: "hosts",
            counters: &tally,
            real: Some(real_time(world, section.speed, &tally, &gauge, hosts, work, (&accounts, over, now))),
            injected: Some(&disturbed),
        };
        let mut measured = finished.measured(accounts, now);
        let engine = &mut measured.summary.engine;
        engine.cpu_s = cost::process_cpu_s() - cpu + hosts_cpu_s;
        engine.wall_s = clock.elapsed().as_secs_f64();
        engine.peak_rss_bytes = peak_rss_bytes;
        let lost = pool.lost_in(&pool.run_id);
        measured.notes.extend(lost.map(|(host, lost)| lost.note(&pool.members[host].name)));
        match broken {
            _ if over == EndReason::Interrupted => Err(RunError::Interrupted(Some(Box::new(measured)))),
            Some(why) => Err(RunError::Broken { why, measured: Box::new(measured) }),
            None => Ok(measured),
        }
    }
}

/// The measurements of a host's cores, with the host's name and the run's settings filled in.
fn name_cores(mut worked: Worked, real: &RealSection, host: &str) -> Worked {
    worked.work.cores.iter_mut().for_each(|core| host.clone_into(&mut core.host));
    let (kernel, degrade) = (real.kernel.to_string(), real.degrade.to_string());
    Worked { work: RealWork { kernel, degrade, ..worked.work }, ..worked }
}

impl Datagrams {
    /// The counters of a link.
    pub(crate) const fn of(link: &LinkStats) -> Self {
        Self {
            sent: link.datagram_sent + link.datagram_dropped,
            dropped: link.datagram_dropped,
            missing: link.datagram_missing,
            received: link.datagram_received,
        }
    }
}

/// The vitals of the hosts that sent a report, with the losses of the datagrams that each of them sent.
fn vitals(members: &[Host], reports: &[Option<Box<FinalReport>>]) -> Vec<HostVitals> {
    let between = |from: usize, to: usize| {
        let report = reports.get(from).and_then(Option::as_ref);
        report.and_then(|report| report.datagrams.get(to)).copied().unwrap_or_default()
    };
    let of = |(from, report): (usize, &Option<Box<FinalReport>>)| {
        let path = |(to, member): (usize, &Host)| PathLoss {
            to: member.name.clone(),
            sent: between(from, to).sent,
            // Bounded by the datagrams sent, because the two counters are read at different times.
            lost: (between(from, to).dropped.saturating_add(between(to, from).missing))
                .min(between(from, to).sent),
        };
        let paths: Vec<_> = members.iter().enumerate().map(path).collect();
        Some(HostVitals {
            name: members[from].name.clone(),
            datagrams_sent: sum(&paths, |path| path.sent),
            datagrams_lost: sum(&paths, |path| path.lost),
            lost_to: paths.into_iter().filter(|path| path.lost > 0).collect(),
            ..report.as_ref()?.vitals.clone()
        })
    };
    reports.iter().enumerate().filter_map(of).collect()
}

/// Number of datagrams that were sent and not received, including datagrams on their way.
fn unaccounted(reports: &[Option<Box<FinalReport>>]) -> u64 {
    let between = |from: usize, to: usize| {
        let one = |of: usize, with: usize| reports[of].as_ref()?.datagrams.get(with).copied();
        Some(one(from, to)?.sent.saturating_sub(one(to, from)?.received))
    };
    let pairs = (0..reports.len()).flat_map(|from| (0..reports.len()).map(move |to| (from, to)));
    pairs.filter_map(|(from, to)| between(from, to)).fold(0, u64::saturating_add)
}

fn sum(paths: &[PathLoss], count: impl Fn(&PathLoss) -> u64) -> u64 {
    paths.iter().fold(0, |sum, path| count(path).saturating_add(sum))
}

/// Agents that this process started. They end when this value is dropped, and when this process dies.
#[derive(Debug)]
struct Spawned {
    /// Identities of the agents, readable only by this user; removed when this value is dropped.
    folder: TempDir,
    agents: Vec<Child>,
}

/// Validity of identities in days, longer than any sweep. Identities are removed with their folder at the end of a
/// sweep.
const DAYS: u32 = 3650;

/// The folders of identities in use.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the identities of agents that this process started. Must be called before an exit that drops no values; the
/// agents end with this process.
pub fn remove_identities() {
    for folder in guard(&FOLDERS).drain(..) {
        // Nothing more can be done about a failure.
        let _ = std::fs::remove_dir_all(folder);
    }
}

impl Spawned {
    /// Starts agents on loopback with temporary identities. If copies burn cores, each agent gets CPUs of its own.
    fn start(count: u16, experiment: &Experiment) -> Result<Self, HostsError> {
        let real = experiment.run.burning().is_some();
        let programs = experiment.has_programs().then(|| experiment.folder());
        let mut spawned = Self::new().map_err(HostsError::System)?;
        // Ports are known once the agents listen; identities do not depend on them.
        let mut hosts = loopback(count);
        issue(&spawned.identities(), &request(&hosts))?;
        let shares = shares(&if real { free_cpus() } else { Vec::new() }, hosts.len());
        for (host, cpus) in hosts.iter_mut().zip(shares) {
            host.address = spawned.agent(&host.name, &cpus, programs)?;
        }
        let text = Hosts { identities: ".".into(), hosts }.text();
        std::fs::write(spawned.hosts_file(), text).map_err(HostsError::System)?;
        Ok(spawned)
    }

    /// Makes the folder of identities, without agents.
    fn new() -> io::Result<Self> {
        let mut folder = tempfile::Builder::new();
        let folder = folder.prefix("volary-").permissions(Permissions::from_mode(0o700)).tempdir().map_err(|error| {
            let why = format!("cannot make a folder for identities: {error}; set TMPDIR to a folder that this process can write to");
            io::Error::new(error.kind(), why)
        })?;
        guard(&FOLDERS).push(folder.path().to_owned());
        Ok(Self { folder, agents: Vec::new() })
    }

    /// The hosts file of these agents.
    fn hosts_file(&self) -> PathBuf {
        self.identities().join(HOSTS)
    }

    /// The folder that `issue` creates.
    fn identities(&self) -> PathBuf {
        self.folder.path().join("hosts")
    }

    /// Starts an agent, with CPUs of its own unless `cpus` is empty; returns its address.
    fn agent(&mut self, name: &str, cpus: &str, programs: Option<&Path>) -> Result<SocketAddr, HostsError> {
        let program = std::env::current_exe().map_err(HostsError::System)?;
        let mut command = Command::new(program);
        command.arg("agent");
        if !cpus.is_empty() {
            command.args(["--cpus", cpus]);
        }
        if let Some(folder) = programs {
            let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            command.arg("--programs-in").arg(here);
        }
        let mut child = command
            .args(["--once", "--listen", "127.0.0.1:0", "--identity"])
            .arg(self.identities().join(name))
            // Ctrl-C does not reach the agents: they end when the controller disconnects.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(HostsError::System)?;
        let out = child.stdout.take();
        self.agents.push(child);
        let mut line = String::new();
        if let Some(out) = out {
            BufReader::new(out).read_line(&mut line).map_err(HostsError::System)?;
        }
        let address = line.trim().rsplit(' ').next().and_then(|address| address.parse().ok());
        address.ok_or_else(|| HostsError::Host {
            host: name.to_owned(),
            why: "the agent did not start; its log is above".to_owned(),
        })
    }
}

/// The identities of agents on this machine.
fn request(hosts: &[Host]) -> IssueRequest {
    IssueRequest { hosts: hosts.to_vec(), days: DAYS, keep_ca: false, now: SystemTime::now() }
}

/// The CPUs in `count` equal shares, each as a comma-separated list.
fn shares(cpus: &[CpuId], count: usize) -> Vec<String> {
    let share = |i: usize| &cpus[i * cpus.len() / count..(i + 1) * cpus.len() / count];
    let list = |cpus: &[CpuId]| cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    (0..count).map(|i| list(share(i))).collect()
}

impl Drop for Spawned {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            // Fails if the agent has ended already.
            let _ = agent.kill();
            let _ = agent.wait();
        }
        guard(&FOLDERS).retain(|folder| folder != self.folder.path());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use volary_engine::world::finalize::Counters;
    use volary_experiment::fidelity::measure::LatenessHistograms;

    use super::*;
    use crate::cluster::net::Identity;

    fn report(name: &str, datagrams: &[(u64, u64, u64)]) -> Option<Box<FinalReport>> {
        let of =
            |&(sent, dropped, missing): &(u64, u64, u64)| Datagrams { sent, dropped, missing, received: 0 };
        Some(Box::new(FinalReport {
            tally: Counters::default(),
            reading: LatenessHistograms::default().reading(),
            vitals: HostVitals { name: name.to_owned(), ..HostVitals::default() },
            datagrams: datagrams.iter().map(of).collect(),
            cores: None,
        }))
    }

    #[test]
    fn vitals_have_the_names_of_hosts_and_losses_are_bounded() {
        let address = ([127, 0, 0, 1], 1).into();
        let members = ["h1", "h2"].map(|name| Host::new(name.to_owned(), address));
        let reports = [report("h2", &[(0, 0, 0), (7, 1, 0)]), report("h2", &[(0, 0, u64::MAX), (0, 0, 0)])];
        let [h1, _] = &vitals(&members, &reports)[..] else { panic!("two reports") };
        assert_eq!((h1.name.as_str(), h1.datagrams_sent, h1.datagrams_lost), ("h1", 7, 7));
    }

    #[test]
    fn datagrams_sent_but_not_received_are_counted() {
        let counts =
            |sent, received| vec![Datagrams::default(), Datagrams { sent, received, ..Datagrams::default() }];
        let mut reports = [report("h1", &[]), report("h2", &[])];
        reports[0].as_mut().unwrap().datagrams = counts(7, 5);
        reports[1].as_mut().unwrap().datagrams = counts(5, 6).into_iter().rev().collect();
        assert_eq!(unaccounted(&reports), 1);
        reports[1] = None;
        assert_eq!(unaccounted(&reports), 0, "what a lost host received is not known");
    }

    #[test]
    fn a_loss_is_counted_for_its_sender() {
        let address = ([127, 0, 0, 1], 1).into();
        let members = ["h1", "h2", "h3"].map(|name| Host::new(name.to_owned(), address));
        // h1 sends a hundred datagrams to h2 and drops one; h2 misses four. h3 sends no report.
        let reports = [
            report("h1", &[(0, 0, 0), (100, 1, 0), (50, 2, 9)]),
            report("h2", &[(80, 0, 4), (0, 0, 0), (30, 0, 0)]),
            None,
        ];
        let [h1, h2] = &vitals(&members, &reports)[..] else { panic!("two reports") };
        assert_eq!((h1.name.as_str(), h1.datagrams_sent, h1.datagrams_lost), ("h1", 150, 7));
        let paths: Vec<_> = h1.lost_to.iter().map(|path| (path.to.as_str(), path.sent, path.lost)).collect();
        assert_eq!(paths, [("h2", 100, 5), ("h3", 50, 2)]);
        assert_eq!((h2.datagrams_sent, h2.datagrams_lost, h2.lost_to.len()), (110, 0, 0));
    }

    #[test]
    fn identities_can_be_removed_before_an_exit() {
        let (first, second) = (Spawned::new().unwrap(), Spawned::new().unwrap());
        let (ended, running) = (first.folder.path().to_owned(), second.folder.path().to_owned());
        drop(first);
        assert!(!ended.exists() && running.exists());
        std::fs::write(running.join("key.pem"), "secret").unwrap();
        remove_identities();
        assert!(!running.exists());
    }

    #[test]
    fn identities_outlast_any_sweep() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("hosts");
        issue(&dir, &request(&[Host::new("local1".to_owned(), ([127, 0, 0, 1], 1).into())])).unwrap();
        let later = SystemTime::now() + Duration::from_secs(365 * 86_400);
        for name in ["local1", "controller"] {
            let identity = Identity::load(&dir.join(name), later).unwrap();
            assert_eq!(identity.subject.warning(later), None);
        }
    }

    #[test]
    fn cpus_are_divided_equally() {
        let cpus: Vec<CpuId> = [0, 2, 3, 7, 8].map(CpuId).into();
        assert_eq!(shares(&cpus, 2), ["0,2", "3,7,8"]);
        assert_eq!(shares(&cpus[..1], 2), ["", "0"]);
        assert_eq!(shares(&[], 3), [""; 3]);
    }
}
