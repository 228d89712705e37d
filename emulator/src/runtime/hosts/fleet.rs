//! The controller's side: takes the hosts, gives them the experiment, runs unit after unit, collects.

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout, timeout_at};
use volary_actors::base::Time;

use super::held::{doomed, slowest};
use super::kept::Kept;
use super::line::{Heard, Host, fits};
use super::losses;
use super::protocol::{Assignment, Member, Order, Word};
use super::ran::{Last, Ran, Unsaid, run_number};
use super::sense::believable;
use super::spawn::Spawned;
use super::{Fleet, HostsError, LONGEST_LEASE, SHORTEST_LEASE};
use crate::fidelity::gauge::Gauge;
use crate::record::inputs;
use crate::results::Measured;
use crate::runtime::closing::{Closing, Real, Tally};
use crate::runtime::pool::Watch;
use crate::runtime::real::keeper::{Keeper, Over};
use crate::runtime::real::ticks::Ticks;
use crate::runtime::world::World;
use crate::runtime::{UnitError, cost};
use crate::spec::{Bundle, Experiment, RunSection, RuntimeKind};
use crate::transport::{Hosts, Identity, Options, Transport};

/// How long hosts may take to plan and build.
const BUILDING: Duration = Duration::from_secs(600);
/// How long hosts may take for their last word.
const CLOSING: Duration = Duration::from_secs(15);
/// From the decision to start until the start.
const LEAD: Duration = Duration::from_millis(100);
/// How often hosts learn how far the slowest is.
const ROUND: Duration = Duration::from_millis(20);
/// What was heard and not yet attended to, at most.
const HEARD: usize = 256;

/// Hosts that have planned the experiment and wait for units.
#[derive(Debug)]
pub struct Session {
    party: Party,
    runtime: Runtime,
    _spawned: Option<Spawned>,
}

/// The hosts as the controller sees them.
#[derive(Debug)]
struct Party {
    transport: Transport,
    members: Vec<Member>,
    hosts: Vec<Host>,
    heard: mpsc::Receiver<(usize, Heard)>,
    ticks: Ticks,
    /// Logs and inputs of the hosts.
    kept: Kept,
    /// Tells units of this session from those of any other.
    run: u64,
}

impl Drop for Session {
    fn drop(&mut self) {
        // Hosts are free at once, and need not wait for our silence.
        self.runtime.block_on(self.party.transport.close("the controller is done"));
    }
}

impl Session {
    /// Takes every host of a fleet and has it plan the experiment.
    ///
    /// # Errors
    /// Names the host that cannot be reached, is busy, or is of another version; [`HostsError::Interrupted`] when
    /// told to stop.
    pub fn open(fleet: &Fleet, experiment: &Experiment, watch: &Watch) -> Result<Self, HostsError> {
        let (spawned, file) = match fleet {
            Fleet::Hosts(path) => (None, path.clone()),
            Fleet::Spawn(count) => {
                let spawned = Spawned::start(*count)?;
                let file = spawned.hosts_file();
                (Some(spawned), file)
            }
        };
        let file = Hosts::load(&file)?;
        let bundle = experiment.bundle()?;
        // A thread of its own for the network: it must answer while books are kept and worlds are built.
        let runtime =
            Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(HostsError::System)?;
        let party = runtime.block_on(async {
            let (hear, heard) = mpsc::channel(HEARD);
            let mut party = Party::new(&file, heard)?;
            match party.gather(&file, &bundle, hear, watch).await {
                Ok(()) => Ok(party),
                Err(error) => {
                    // Those that were taken are free at once.
                    party.transport.close("the run does not begin").await;
                    Err(error)
                }
            }
        })?;
        Ok(Self { party, runtime, _spawned: spawned })
    }

    /// The hosts, in order of shards.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.party.members
    }

    /// Keeps the hosts' logs in a folder, `HOST.log` each.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_logs_in(&self, folder: &Path) -> io::Result<()> {
        self.party.kept.keep_logs_in(folder)
    }

    /// Runs one unit on the hosts, whose inputs go to `log`.
    ///
    /// # Errors
    /// [`UnitError::Interrupted`] when told to stop; [`UnitError::Refused`] when it cannot begin;
    /// [`UnitError::Broken`] when a host was lost in mid-run, with what had been measured.
    ///
    /// # Panics
    /// On a bug in a policy: a job that finishes twice, books that do not close.
    pub fn measure(
        &mut self,
        name: &str,
        world: &World,
        point: usize,
        run: &RunSection,
        log: Option<&inputs::Unit>,
        watch: &Watch,
    ) -> Result<Measured, UnitError> {
        let (clock, cpu) = (Instant::now(), cost::process_cpu_s());
        let ran = self.runtime.block_on(self.party.unit(world, point, run, log, watch))?;
        let Ran { keeper, over, last, broken, .. } = ran;
        let accounts: Vec<_> = last.into_iter().map(|last| last.and_then(Last::account)).collect();
        let hosts = losses::vitals(&self.party.members, &accounts);
        if over == Over::Interrupted {
            return Err(UnitError::Interrupted);
        }
        let (mut tally, mut gauge) = (Tally::default(), Gauge::default());
        let ended = accounts.iter().flatten();
        ended.for_each(|account| {
            tally.add(&account.tally);
            gauge.merge(&account.reading);
        });
        let (books, now) = keeper.close();
        let closing = Closing {
            experiment: name,
            world,
            run,
            runtime: RuntimeKind::Hosts,
            tally: &tally,
            cpu_s: cost::process_cpu_s() - cpu + hosts.iter().map(|host| host.cpu_s).sum::<f64>(),
            wall_s: clock.elapsed().as_secs_f64(),
            peak_rss_bytes: hosts
                .iter()
                .map(|host| host.peak_rss_bytes)
                .fold(cost::peak_rss_bytes(), u64::max),
            real: Some(Real { gauge: &gauge, hosts }),
        };
        let measured = closing.measured(books, now)?;
        match broken {
            Some(why) => Err(UnitError::Broken { why, measured: Box::new(measured) }),
            None => Ok(measured),
        }
    }
}

impl Party {
    fn new(file: &Hosts, heard: mpsc::Receiver<(usize, Heard)>) -> Result<Self, HostsError> {
        let identity = Identity::load(&file.controller(), SystemTime::now())?;
        // How long silence may last is the hosts' to say, each by its own lease: the shorter limit counts.
        let timing = Options { idle: LONGEST_LEASE, keep_alive: SHORTEST_LEASE / 5, ..Options::default() };
        let transport = Transport::connector(&identity, (Ipv4Addr::UNSPECIFIED, 0).into(), &timing)?;
        let (members, hosts) = (Vec::new(), Vec::new());
        let kept = Kept::default();
        Ok(Self { transport, members, hosts, heard, ticks: Ticks::new(), kept, run: run_number() })
    }

    /// Takes the hosts of a file and has them plan.
    async fn gather(
        &mut self,
        file: &Hosts,
        bundle: &Bundle,
        hear: mpsc::Sender<(usize, Heard)>,
        watch: &Watch,
    ) -> Result<(), HostsError> {
        let names: Vec<_> = file.hosts.iter().map(|host| host.name.clone()).collect();
        let load = Order::Load { bundle: Box::new(bundle.clone()), hosts: names };
        fits(&load)?;
        for (i, host) in file.hosts.iter().enumerate() {
            let member =
                Member { name: host.name.clone(), address: host.address, weight: f64::from(host.weight) };
            self.kept.add(&member.name);
            let taken = tokio::select! {
                taken = Host::take(i, &member, &self.transport, self.ticks, &self.kept, &hear) => taken?,
                () = stopped(watch) => return Err(HostsError::Interrupted),
            };
            taken.tell(load.clone()).await;
            self.hosts.push(taken);
            self.members.push(member);
        }
        drop(hear);
        let planned = |word: &Word| matches!(word, Word::Loaded);
        Ok(self.all(0, "plan the experiment", planned, watch).await?)
    }

    /// Waits until every host has said a certain thing.
    async fn all(
        &mut self,
        run: u64,
        what: &str,
        done: impl Fn(&Word) -> bool,
        watch: &Watch,
    ) -> Result<(), Unsaid> {
        let mut left = vec![true; self.hosts.len()];
        let late = Instant::now() + BUILDING;
        while let Some(slowest) = left.iter().position(|left| *left) {
            let not = |i: usize, why: String| Err(Unsaid::Host(self.members[i].name.clone(), why));
            if watch.stopped() {
                return Err(Unsaid::Interrupted);
            }
            if Instant::now() > late {
                return not(slowest, format!("took longer than {} s to {what}", BUILDING.as_secs()));
            }
            match timeout(ROUND, self.heard.recv()).await {
                Err(_) => {}
                Ok(None) => return not(slowest, "is gone".to_owned()),
                Ok(Some((i, Heard::Word(word)))) if done(&word) => left[i] = false,
                Ok(Some((i, Heard::Word(Word::Refused { run: of, why })))) if of == run || of == 0 => {
                    return not(i, why);
                }
                Ok(Some((i, Heard::Gone(why)))) => {
                    self.hosts[i].lost = Some(why.clone());
                    return not(i, format!("is gone: {why}"));
                }
                // Left over from a unit that was called off.
                Ok(Some((_, Heard::Word(_)))) => {}
            }
        }
        Ok(())
    }

    async fn unit<'a>(
        &mut self,
        world: &'a World,
        point: usize,
        run: &RunSection,
        log: Option<&inputs::Unit>,
        watch: &Watch,
    ) -> Result<Ran<'a>, UnitError> {
        if let Some(i) = self.hosts.iter().position(|host| host.lost.is_some()) {
            let why = self.hosts[i].lost.as_deref().unwrap_or_default();
            let name = &self.members[i].name;
            return Err(UnitError::Refused(format!("host {name} is gone since an earlier run: {why}")));
        }
        let heals_at = world.faults()?.heals_at();
        let doomed = doomed(world, &self.members)?;
        self.run += 1;
        let id = world.point().id_under(world.seed(), run);
        for (me, host) in self.hosts.iter().enumerate() {
            let assignment = Assignment {
                run: self.run,
                point: point as u32,
                seed: world.seed(),
                id: id.clone(),
                members: self.members.clone(),
                me: me as u16,
            };
            host.tell(Order::Prepare(Box::new(assignment))).await;
        }
        let this = self.run;
        let ready = |word: &Word| matches!(word, Word::Ready { run, .. } if *run == this);
        if let Err(unsaid) = self.all(self.run, "prepare a run", ready, watch).await {
            self.order(&Order::Stop).await;
            return Err(unsaid.into());
        }
        // Hosts send inputs as soon as they start.
        self.kept.begin(log, self.hosts.len());
        let mut ran = Ran {
            world,
            keeper: Keeper::new(world.recorder(run), self.hosts.len(), run.until, heals_at),
            over: Over::Interrupted,
            last: self.hosts.iter().map(|_| None).collect(),
            broken: None,
            accused: None,
            begun: Instant::now(),
            speed: run.speed,
        };
        self.order(&Order::Start { at: self.ticks.now() + LEAD.as_nanos() as i64 }).await;
        ran.over = self.attend(&mut ran, &doomed, watch).await;
        self.order(&Order::Stop).await;
        self.collect(&mut ran).await;
        self.kept.end();
        Ok(ran)
    }

    /// Keeps the books until the run is over.
    async fn attend(&mut self, ran: &mut Ran<'_>, doomed: &[Option<Time>], watch: &Watch) -> Over {
        let mut progress = vec![Time::ZERO; self.hosts.len()];
        let mut round = tokio::time::interval(ROUND);
        let dead = |ran: &Ran<'_>, host: usize| doomed[host].is_some_and(|at| ran.keeper.complete() >= at);
        loop {
            let heard = tokio::select! {
                heard = self.heard.recv() => heard,
                _ = round.tick() => {
                    let slowest = slowest(&progress, doomed);
                    self.order(&Order::Progress { slowest }).await;
                    if let Some(over) = ran.keeper.over(watch) {
                        return over;
                    }
                    continue;
                }
            };
            let Some((i, heard)) = heard else {
                ran.broken = Some("no host is left".to_owned());
                return Over::Broken;
            };
            let (host, why) = match heard {
                Heard::Word(Word::Notes { notes, mark, progress: at }) => match ran.report(i, notes, mark) {
                    Ok(()) => {
                        progress[i] = at;
                        continue;
                    }
                    Err((host, why)) => (host.unwrap_or(i), why),
                },
                Heard::Word(Word::Refused { run, why }) if run == self.run => {
                    ran.refused(i, &self.members[i].name, &why);
                    return Over::Broken;
                }
                Heard::Word(Word::Lost { peer, why }) => match self.index(&peer) {
                    // It was to die. Whether it has, our own line to it says.
                    Some(lost) if dead(ran, lost) => continue,
                    Some(lost) => {
                        ran.accused = Some(lost);
                        (lost, format!("{} lost it: {why}", self.members[i].name))
                    }
                    None => (i, format!("it says that it lost {peer}, which is no host of this run")),
                },
                Heard::Word(_) => continue,
                Heard::Gone(why) => {
                    self.hosts[i].lost = Some(why.clone());
                    if dead(ran, i) {
                        ran.keeper.end(i);
                        progress[i] = Time::MAX;
                        continue;
                    }
                    (i, why)
                }
            };
            let name = &self.members[host].name;
            ran.broken = Some(format!("host {name} was lost in mid-run: {why}"));
            return Over::Broken;
        }
    }

    /// Waits for the last word of every host that is there.
    async fn collect(&mut self, ran: &mut Ran<'_>) {
        let late = tokio::time::Instant::now() + CLOSING;
        let missing = |party: &Self, ran: &Ran<'_>| {
            party.hosts.iter().zip(&ran.last).position(|(host, last)| host.lost.is_none() && last.is_none())
        };
        while let Some(slowest) = missing(self, ran) {
            // However much there is to hear: one that talks on and on does not hold up the end.
            let heard = match tokio::time::Instant::now() < late {
                true => timeout_at(late, self.heard.recv()).await.ok().flatten(),
                false => None,
            };
            let (host, why) = match heard {
                Some((i, Heard::Word(Word::Account(account)))) => {
                    ran.keeper.end(i);
                    match believable(&account, self.members.len()) {
                        true => ran.last[i] = Some(Last::Account(account)),
                        false => ran.refused(i, &self.members[i].name, "its account is of what cannot be"),
                    }
                    continue;
                }
                Some((i, Heard::Word(Word::Refused { run, why }))) if run == self.run => {
                    ran.refused(i, &self.members[i].name, &why);
                    continue;
                }
                Some((i, Heard::Word(Word::Notes { notes, mark, .. }))) => match ran.report(i, notes, mark) {
                    Ok(()) => continue,
                    Err((host, why)) => (host.unwrap_or(i), why),
                },
                Some((_, Heard::Word(_))) => continue,
                Some((i, Heard::Gone(why))) => (i, why),
                None => (slowest, "no last word".to_owned()),
            };
            let name = &self.members[host].name;
            ran.broken.get_or_insert_with(|| format!("host {name} was lost in the end: {why}"));
            self.hosts[host].lost = Some(why);
        }
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|member| member.name == name)
    }

    async fn order(&self, order: &Order) {
        for host in self.hosts.iter().filter(|host| host.lost.is_none()) {
            host.tell(order.clone()).await;
        }
    }
}

async fn stopped(watch: &Watch) {
    while !watch.stopped() {
        sleep(ROUND).await;
    }
}
