//! Agents on this machine, started for one run.

use std::fs::Permissions;
use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::SystemTime;

use tempfile::{Builder, TempDir};
use volary_experiment::guard::guard;

use crate::cluster::HostsError;
use crate::cluster::net::identity::HOSTS;
use crate::cluster::net::issue::{IssueRequest, issue};
use crate::cluster::net::{Host, Hosts};
use crate::executor::{CpuId, free_cpus};

/// Started agents. They end when this is dropped, and when this process dies.
#[derive(Debug)]
pub(crate) struct Spawned {
    /// Their identities, readable only by this user; removed when this is dropped.
    folder: TempDir,
    agents: Vec<Child>,
}

/// Days for which identities are valid: longer than any sweep. They are removed with their folder at its end.
const DAYS: u32 = 3650;

/// The folders of identities in use.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes all identities. The agents then end as when this process dies. Must be called before an exit that drops
/// nothing.
pub fn remove_identities() {
    for folder in guard(&FOLDERS).drain(..) {
        // Nothing more can be done about a failure.
        let _ = std::fs::remove_dir_all(folder);
    }
}

impl Spawned {
    /// Starts agents on loopback with temporary identities. With `real`, each gets CPUs of its own.
    pub(crate) fn start(count: u16, real: bool) -> Result<Self, HostsError> {
        let mut spawned = Self::new().map_err(HostsError::System)?;
        // Ports are known once the agents listen; identities do not depend on them.
        let host = |i: u16| Host::new(format!("local{i}"), (Ipv4Addr::LOCALHOST, i).into());
        let mut hosts: Vec<_> = (1..=count).map(host).collect();
        issue(&spawned.identities(), &request(&hosts))?;
        let shares = shares(&if real { free_cpus() } else { Vec::new() }, hosts.len());
        for (host, cpus) in hosts.iter_mut().zip(shares) {
            host.address = spawned.agent(&host.name, &cpus)?;
        }
        let text = Hosts { identities: ".".into(), hosts }.text();
        std::fs::write(spawned.hosts_file(), text).map_err(HostsError::System)?;
        Ok(spawned)
    }

    /// No agents yet.
    fn new() -> io::Result<Self> {
        let mut folder = Builder::new();
        let folder = folder.prefix("volary-").permissions(Permissions::from_mode(0o700)).tempdir().map_err(|error| {
            let why = format!("cannot make a folder for identities: {error}; name a folder that can be written with TMPDIR");
            io::Error::new(error.kind(), why)
        })?;
        guard(&FOLDERS).push(folder.path().to_owned());
        Ok(Self { folder, agents: Vec::new() })
    }

    /// The hosts file of these agents.
    pub(crate) fn hosts_file(&self) -> PathBuf {
        self.identities().join(HOSTS)
    }

    /// The folder that `issue` creates.
    fn identities(&self) -> PathBuf {
        self.folder.path().join("hosts")
    }

    /// Starts an agent, with CPUs of its own if there are any; returns its address.
    fn agent(&mut self, name: &str, cpus: &str) -> Result<SocketAddr, HostsError> {
        let program = std::env::current_exe().map_err(HostsError::System)?;
        let mut command = Command::new(program);
        command.arg("agent");
        if !cpus.is_empty() {
            command.args(["--cpus", cpus]);
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

/// The CPUs in equal shares, as lists.
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

    use super::*;
    use crate::cluster::net::Identity;

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
    fn cpus_are_shared_out() {
        let cpus: Vec<CpuId> = [0, 2, 3, 7, 8].map(CpuId).into();
        assert_eq!(shares(&cpus, 2), ["0,2", "3,7,8"]);
        assert_eq!(shares(&cpus[..1], 2), ["", "0"]);
        assert_eq!(shares(&[], 3), [""; 3]);
    }
}
