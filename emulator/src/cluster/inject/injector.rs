//! The injector: asks the agents what they run, has all of them inject from one moment on, and waits.

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use volary_actors::base::{Span, Time};

use super::line::{Line, scene};
use super::words::{Aimed, Dose, Reply, Request, Running};
use crate::cluster::net::{End, Hosts, Identity, Transport};
use crate::cluster::protocol::InjectionNotice;
use crate::cluster::{HostsError, allowing, socket_options};
use crate::cores::injection::Effect;
use crate::cores::{CoreSet, CoreTable, Injection, Profile};

/// Silence after which agents take an injection back.
pub const LEASE: Duration = Duration::from_secs(3);
/// From the decision to begin until the begin, at least, and in round trips.
const LEAD: (Duration, u32) = (Duration::from_millis(100), 4);

/// What is to be injected, and where.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The hosts file.
    pub hosts: PathBuf,
    /// What is to rule.
    pub profile: Profile,
    /// The seed of its slots; the run's own if absent.
    pub seed: Option<u64>,
    /// Nodes, as faults name them: the cores of any of them.
    pub targets: Vec<String>,
    /// Cores by number.
    pub cores: CoreSet,
    /// Hosts: all cores that they hold.
    pub on: Vec<String>,
    /// For how long at most, in emulated time; as long as the injector lives if absent.
    pub lasting: Option<Span>,
}

/// Why nothing was injected, or no more.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// The hosts cannot be used.
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// What was asked for cannot be.
    #[error("{0}")]
    Wrong(String),
    /// No cell is being run.
    #[error("{0}")]
    Nobody(String),
    /// A host did not do what it should.
    #[error("host {host}: {why}")]
    Host {
        /// Its name.
        host: String,
        /// What is wrong.
        why: String,
    },
}

impl InjectError {
    /// Whether what the user gave is to blame, and not the hosts.
    #[must_use]
    pub const fn is_input(&self) -> bool {
        match self {
            Self::Wrong(_) => true,
            Self::Hosts(error) => error.is_input(),
            Self::Nobody(_) | Self::Host { .. } => false,
        }
    }
}

/// What an injection would be, or is.
#[derive(Clone, Debug)]
pub struct Aim {
    /// The cell.
    pub running: Running,
    /// The injection as a whole.
    pub injection: Injection,
    /// Which core is where.
    pub table: CoreTable,
    /// The cores that it aims at, by host; hosts without any are left out.
    pub shares: Vec<(String, CoreSet)>,
}

/// What a host did of an injection.
#[derive(Clone, PartialEq, Debug)]
pub struct Done {
    /// The host.
    pub host: String,
    /// Its cores that were aimed at.
    pub cores: CoreSet,
    /// From when.
    pub from: Time,
    /// Until when, as far as is known.
    pub until: Option<Time>,
    /// Why it ended.
    pub why: String,
    /// What it did to the cores; `None` if that is not known.
    pub effect: Option<Effect>,
}

/// An injector that has found a run and knows where to aim.
#[derive(Debug)]
pub struct Injector {
    runtime: Runtime,
    _transport: Transport,
    lines: Vec<Line>,
    plan: Plan,
    aim: Aim,
}

impl Injector {
    /// Asks the agents of a hosts file what they run, and which cores are meant. Nothing is touched.
    ///
    /// # Errors
    /// When hosts cannot be reached, run nothing, or what is aimed at does not exist.
    pub fn open(plan: Plan) -> Result<Self, InjectError> {
        let file = Hosts::load(&plan.hosts).map_err(HostsError::from)?;
        if let Some(odd) = plan.on.iter().find(|name| file.hosts.iter().all(|host| host.name != **name)) {
            let known: Vec<_> = file.hosts.iter().map(|host| host.name.as_str()).collect();
            let (path, known) = (plan.hosts.display(), known.join(", "));
            return Err(InjectError::Wrong(format!("--host {odd}: {path} has {known}")));
        }
        let identity = Identity::load(&file.controller(), SystemTime::now()).map_err(HostsError::from)?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(HostsError::System)?;
        let (transport, lines, aim) = runtime.block_on(async {
            let local = (Ipv4Addr::UNSPECIFIED, 0).into();
            let transport =
                Transport::connector(&identity, local, &socket_options(LEASE)).map_err(HostsError::from)?;
            let mut lines = Vec::new();
            for host in &file.hosts {
                lines.push(Line::open(&transport, host).await?);
            }
            let aim = aim(&mut lines, &plan).await?;
            Ok::<_, InjectError>((transport, lines, aim))
        })?;
        Ok(Self { runtime, _transport: transport, lines, plan, aim })
    }

    /// Where it aims, if it began now.
    #[must_use]
    pub const fn aim(&self) -> &Aim {
        &self.aim
    }

    /// Has the agents inject, until the time is over, somebody interrupts it, or the cell ends. `begun` is called when
    /// all of them do, with what each does.
    ///
    /// # Errors
    /// When not all of them can; then none does.
    pub fn inject(self, begun: impl FnOnce(&Aim, &[Done])) -> Result<Vec<Done>, InjectError> {
        let Self { runtime, _transport, lines, plan, aim } = self;
        runtime.block_on(inject(lines, &plan, aim, begun))
    }
}

/// Finds out which cores are meant, and who holds them.
async fn aim(lines: &mut [Line], plan: &Plan) -> Result<Aim, InjectError> {
    let running = scene(lines).await?;
    let mut answers: Vec<Aimed> = Vec::new();
    for line in lines.iter_mut() {
        let request = Request::Aim { run: running.run, targets: plan.targets.clone() };
        match line.ask(&request).await? {
            Reply::Aimed(aimed) => answers.push(*aimed),
            Reply::Scene(_) | Reply::Begun { .. } | Reply::Over { .. } | Reply::Refused { .. } => {
                return Err(line.odd());
            }
        }
    }
    let table = answers.first().and_then(|aimed| CoreTable::of_outline(&aimed.nodes));
    let table = table.ok_or_else(|| lines[0].odd())?;
    if let Some(last) = plan.cores.last().filter(|&last| last >= table.cores()) {
        let (cores, most) = (table.cores(), table.cores().saturating_sub(1));
        return Err(InjectError::Wrong(format!("--core {last}: the cluster has {cores} cores, 0 to {most}")));
    }
    let mut cores = plan.cores.clone();
    if !plan.targets.is_empty() || (plan.cores.is_empty() && plan.on.is_empty()) {
        cores = answers.iter().fold(cores, |cores, aimed| cores.union(&aimed.cores));
    }
    for (line, aimed) in lines.iter().zip(&answers) {
        if plan.on.contains(&line.host) {
            cores = cores.union(&aimed.held);
        }
    }
    let share = |(line, aimed): (&Line, &Aimed)| (line.host.clone(), aimed.held.intersection(&cores));
    let shares: Vec<_> =
        lines.iter().zip(&answers).map(share).filter(|(_, cores)| !cores.is_empty()).collect();
    let injection = Injection {
        profile: plan.profile.clone(),
        seed: plan.seed.unwrap_or(running.seed),
        cores,
        from: Time::ZERO,
        until: Time::MAX,
    };
    let mut aim = Aim { running, injection, table, shares };
    aim.begin(lines, plan);
    Ok(aim)
}

impl Aim {
    /// Sets the time to begin a little ahead: every host hears of it before.
    fn begin(&mut self, lines: &[Line], plan: &Plan) {
        let furthest = lines.iter().map(|line| line.round_trip).max().unwrap_or_default();
        let lead = allowing(LEAD, furthest).as_secs_f64() * self.running.speed;
        self.injection.from = self.running.now + Span::from_secs_f64(lead);
        self.injection.until = plan.lasting.map_or(Time::MAX, |lasting| self.injection.from + lasting);
    }
}

async fn inject(
    mut lines: Vec<Line>,
    plan: &Plan,
    mut aim: Aim,
    begun: impl FnOnce(&Aim, &[Done]),
) -> Result<Vec<Done>, InjectError> {
    let mut term = signal(SignalKind::terminate()).map_err(HostsError::System)?;
    // Whoever was asked what would be has taken his time.
    let running = scene(&mut lines).await?;
    if running.run != aim.running.run {
        return Err(InjectError::Nobody("the cell was over before the injection began".to_owned()));
    }
    aim.running = running;
    aim.begin(&lines, plan);
    let notice = InjectionNotice {
        id: number(),
        profile: toml::to_string(&plan.profile.table)
            .map_err(|error| InjectError::Wrong(error.to_string()))?,
        seed: aim.injection.seed,
        targets: plan.words(),
        cores: CoreSet::default(),
        from: aim.injection.from,
        until: aim.injection.until,
    };
    let (mut sent, mut done) = (Vec::new(), Vec::new());
    for mut line in lines {
        let Some((_, cores)) = aim.shares.iter().find(|(host, _)| *host == line.host) else { continue };
        let notice = InjectionNotice { cores: cores.clone(), ..notice.clone() };
        let share = Dose { run: aim.running.run, notice };
        // All hear of it before one has answered.
        let failed = |end: End| InjectError::Host { host: line.host.clone(), why: end.to_string() };
        line.control.send(&Request::Begin(Box::new(share))).await.map_err(failed)?;
        sent.push(line);
    }
    for line in &mut sent {
        // An error leaves: with the connections whatever was injected ends.
        let from = line.begun().await?;
        let cores = aim.shares.iter().find(|(host, _)| *host == line.host).map(|(_, cores)| cores.clone());
        let (host, cores) = (line.host.clone(), cores.unwrap_or_default());
        done.push(Done { host, cores, from, until: None, why: String::new(), effect: None });
    }
    begun(&aim, &done);
    let (end, ended) = watch::channel(false);
    let follow = |(line, done)| tokio::spawn(follow(line, done, ended.clone()));
    let mut following: Vec<_> = sent.into_iter().zip(done).map(follow).collect();
    let mut over = Vec::new();
    for task in &mut following {
        let done = loop {
            tokio::select! {
                done = &mut *task => break done,
                _ = tokio::signal::ctrl_c() => drop(end.send(true)),
                _ = term.recv() => drop(end.send(true)),
            }
        };
        over.push(done.map_err(|bug| HostsError::System(io::Error::other(bug)))?);
    }
    over.iter_mut().for_each(|done| done.tell(&aim));
    Ok(over)
}

/// Waits until a host's part is over, or ends it when that is wanted.
async fn follow(mut line: Line, mut done: Done, mut ended: watch::Receiver<bool>) -> Done {
    let over = tokio::select! {
        over = line.control.receive() => Some(over),
        _ = ended.wait_for(|end| *end) => None,
    };
    let over = match over {
        Some(over) => over,
        None => {
            // If it cannot be told, it is gone, and says no more.
            let _ = line.control.send(&Request::End).await;
            line.control.receive().await
        }
    };
    match over {
        Ok(Reply::Over { until, why }) => (done.until, done.why) = (Some(until), why),
        Ok(Reply::Refused { why, .. }) => done.why = why,
        Ok(Reply::Scene(_) | Reply::Aimed(_) | Reply::Begun { .. }) => done.why = line.odd().to_string(),
        Err(end) => done.why = format!("the host is gone: {end}"),
    }
    done
}

impl Done {
    fn tell(&mut self, aim: &Aim) {
        let Some(until) = self.until else { return };
        let (cores, from) = (self.cores.clone(), self.from);
        self.effect = Injection { cores, from, until, ..aim.injection.clone() }.effect(&aim.table);
    }
}

impl Plan {
    /// Whom it is aimed at, in words.
    fn words(&self) -> Vec<String> {
        let cores = (!self.cores.is_empty()).then(|| format!("cores {}", self.cores));
        let hosts = self.on.iter().map(|host| format!("host {host}"));
        self.targets.iter().cloned().chain(cores).chain(hosts).collect()
    }
}

/// A number that no other injection has: the time, mixed with the process.
fn number() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64).rotate_left(20) ^ u64::from(process::id())
}
