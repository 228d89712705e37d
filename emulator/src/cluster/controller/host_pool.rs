//! The hosts of a run as the controller has them: taken, told, and heard.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::archive::Archive;
use super::host_connection::{HostConnection, HostEvent};
use crate::cluster::net::endpoint::ConnectError;
use crate::cluster::net::{Host, Hosts, Identity, Options, Transport};
use crate::cluster::protocol::{AgentMessage, ControllerMessage, Member};
use crate::cluster::{HostsError, LONGEST_LEASE, SHORTEST_LEASE};
use crate::codec::{self, CodecError, LARGEST_FRAME};
use crate::config::Bundle;
use crate::runtime::error::UnitError;
use crate::runtime::live::clock::MonotonicClock;
use crate::runtime::watch::Watch;
use crate::storage::hosts::Lost;

/// How long hosts may take to plan and build.
const BUILDING: Duration = Duration::from_secs(600);
/// How often hosts learn how far the slowest is.
pub(crate) const ROUND: Duration = Duration::from_millis(20);
/// What was heard and not yet attended to, at most.
const HEARD: usize = 256;

/// A host that is asked.
type Claim = JoinHandle<Result<HostConnection, ConnectError>>;

/// Hosts that were taken.
#[derive(Debug)]
pub(crate) struct HostPool {
    transport: Arc<Transport>,
    pub(crate) members: Vec<Member>,
    pub(crate) hosts: Vec<HostConnection>,
    pub(crate) heard: mpsc::Receiver<(usize, HostEvent)>,
    pub(crate) ticks: MonotonicClock,
    /// Logs and inputs of the hosts.
    pub(crate) archive: Archive,
    /// Tells units of this controller from those of any other.
    pub(crate) run: u64,
    /// The latest cell's id.
    pub(crate) cell: String,
}

impl HostPool {
    /// Takes the hosts of a file and has them plan an experiment. If that fails, those that were taken are free at
    /// once.
    pub(crate) async fn gather(file: &Hosts, bundle: Bundle, watch: &Watch) -> Result<Self, HostsError> {
        let (hear, heard) = mpsc::channel(HEARD);
        let load = load(bundle)?;
        let mut pool = Self::new(file, heard)?;
        // Kept until those that were taken are told.
        let mut claims = pool.claim(&load, &hear);
        // Only the hosts hold it now, until they have it.
        drop((hear, load));
        match pool.take(&mut claims, watch).await {
            Ok(()) => Ok(pool),
            Err(error) => {
                pool.leave("the run does not begin").await;
                Err(error)
            }
        }
    }

    fn new(file: &Hosts, heard: mpsc::Receiver<(usize, HostEvent)>) -> Result<Self, HostsError> {
        let identity = Identity::load(&file.controller(), SystemTime::now())?;
        // How long silence may last is the hosts' to say, each by its own lease: the shorter limit counts.
        let timing =
            Options { idle_timeout: LONGEST_LEASE, keep_alive: SHORTEST_LEASE / 5, ..Options::default() };
        let transport = Transport::connector(&identity, (Ipv4Addr::UNSPECIFIED, 0).into(), &timing)?;
        let member = |host: &Host| Member {
            name: host.name.clone(),
            address: host.address,
            weight: f64::from(host.weight),
        };
        let (members, hosts) = (file.hosts.iter().map(member).collect(), Vec::new());
        let (archive, ticks) = (Archive::default(), MonotonicClock::new());
        let (run, cell) = (run_number(), String::new());
        let transport = Arc::new(transport);
        Ok(Self { transport, members, hosts, heard, ticks, archive, run, cell })
    }

    /// Asks all hosts at once.
    fn claim(&self, load: &Bytes, hear: &mpsc::Sender<(usize, HostEvent)>) -> Vec<Claim> {
        let claim = |(i, member): (usize, &Member)| {
            self.archive.add(&member.name);
            let (member, transport, archive) =
                (member.clone(), Arc::clone(&self.transport), self.archive.clone());
            tokio::spawn(HostConnection::take(
                i,
                member,
                transport,
                self.ticks,
                archive,
                hear.clone(),
                load.clone(),
            ))
        };
        self.members.iter().enumerate().map(claim).collect()
    }

    /// Hears their answers in the order of the file: of several that fail the first is named.
    async fn take(&mut self, claims: &mut [Claim], watch: &Watch) -> Result<(), HostsError> {
        for claim in claims {
            let taken = tokio::select! {
                taken = claim => taken,
                () = stopped(watch) => return Err(HostsError::Interrupted),
            };
            self.hosts.push(taken.map_err(|error| HostsError::System(io::Error::other(error)))??);
        }
        let planned = |word: &AgentMessage| matches!(word, AgentMessage::Loaded);
        Ok(self.all(0, "plan the experiment", planned, watch).await?)
    }

    /// Waits until every host has said a certain thing.
    pub(crate) async fn all(
        &mut self,
        run: u64,
        what: &str,
        done: impl Fn(&AgentMessage) -> bool,
        watch: &Watch,
    ) -> Result<(), WaitError> {
        let mut left = vec![true; self.hosts.len()];
        let late = Instant::now() + BUILDING;
        while let Some(slowest) = left.iter().position(|left| *left) {
            let not = |i: usize, why: String| Err(WaitError::Host(self.members[i].name.clone(), why));
            if watch.stopped() {
                return Err(WaitError::Interrupted);
            }
            if Instant::now() > late {
                return not(slowest, format!("took longer than {} s to {what}", BUILDING.as_secs()));
            }
            match timeout(ROUND, self.heard.recv()).await {
                Err(_) => {}
                Ok(None) => return not(slowest, "is gone".to_owned()),
                Ok(Some((i, HostEvent::Message(word)))) if done(&word) => left[i] = false,
                Ok(Some((i, HostEvent::Message(AgentMessage::Refused { run: of, why }))))
                    if of == run || of == 0 =>
                {
                    return not(i, why);
                }
                Ok(Some((i, HostEvent::Gone(why)))) => {
                    let unsaid = not(i, format!("is gone: {why}"));
                    self.lose(i, &why, false);
                    return unsaid;
                }
                // Left over from a unit that was called off.
                Ok(Some((_, HostEvent::Message(_)))) => {}
            }
        }
        Ok(())
    }

    /// Tells every host that is there.
    pub(crate) async fn order(&self, order: &ControllerMessage) {
        for host in self.hosts.iter().filter(|host| host.lost.is_none()) {
            host.tell(order.clone()).await;
        }
    }

    /// A host is gone, for this unit and all later ones.
    pub(crate) fn lose(&mut self, host: usize, why: &str, expected: bool) {
        let lost = Lost { cell: self.cell.clone(), why: why.to_owned(), expected };
        self.hosts[host].lost.get_or_insert(lost);
    }

    /// Hosts that were lost in a cell, by shard.
    pub(crate) fn lost_in(&self, cell: &str) -> impl Iterator<Item = (usize, &Lost)> {
        let lost = self.hosts.iter().enumerate().filter_map(|(i, host)| Some((i, host.lost.as_ref()?)));
        lost.filter(move |(_, lost)| lost.cell == cell)
    }

    /// The round trip to the furthest of the hosts that are there.
    pub(crate) fn round_trip(&self) -> Duration {
        let there = self.hosts.iter().filter(|host| host.lost.is_none());
        there.map(HostConnection::round_trip).max().unwrap_or_default()
    }

    /// The number of a host.
    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|member| member.name == name)
    }

    /// Hangs up; the hosts read why.
    pub(crate) async fn leave(&self, words: &str) {
        self.transport.close(words).await;
    }
}

/// The order to plan an experiment, as it travels: encoded once for all hosts.
fn load(bundle: Bundle) -> Result<Bytes, HostsError> {
    let mut frame = Vec::new();
    match codec::encode(&ControllerMessage::Load(Box::new(bundle)), LARGEST_FRAME, &mut frame) {
        Ok(()) => Ok(frame.into()),
        Err(CodecError::Oversize { bytes, limit }) => {
            Err(HostsError::Large { mib: bytes.div_ceil(1 << 20), limit: limit >> 20 })
        }
        Err(error) => Err(HostsError::System(io::Error::other(error))),
    }
}

/// Why not every host has said what it should.
pub(crate) enum WaitError {
    Interrupted,
    /// By that host, and why.
    Host(String, String),
}

impl From<WaitError> for HostsError {
    fn from(unsaid: WaitError) -> Self {
        match unsaid {
            WaitError::Interrupted => Self::Interrupted,
            WaitError::Host(host, why) => Self::Host { host, why },
        }
    }
}

impl From<WaitError> for UnitError {
    fn from(unsaid: WaitError) -> Self {
        match unsaid {
            WaitError::Interrupted => Self::Interrupted,
            WaitError::Host(host, why) => Self::Refused(format!("host {host}: {why}")),
        }
    }
}

/// A number that no other controller has: the time, mixed with the process.
fn run_number() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64) << 16 ^ u64::from(std::process::id()) << 8
}

async fn stopped(watch: &Watch) {
    while !watch.stopped() {
        sleep(ROUND).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{PREFIX, decode};
    use crate::config::Overrides;
    use crate::files::Pack;

    #[test]
    fn an_experiment_is_encoded_as_an_order_if_hosts_take_it() {
        let load = |trace: usize| {
            let files = Pack { folders: Vec::new(), files: [("t.tr".into(), vec![7; trace])].into() };
            load(Bundle { experiment: "e.toml".into(), overrides: Overrides::default(), files })
        };
        let order = decode::<ControllerMessage>(&load(1000).unwrap()[PREFIX..]).unwrap();
        assert!(matches!(order, ControllerMessage::Load(bundle) if bundle.files.files.len() == 1));
        let refused = load(LARGEST_FRAME).unwrap_err();
        assert!(matches!(refused, HostsError::Large { mib: 65, limit: 64 }), "{refused}");
    }
}
