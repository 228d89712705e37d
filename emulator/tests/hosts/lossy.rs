//! Runs on two agents whose UDP datagrams go through proxies that lose, repeat and delay them.
//!
//! The emulated network of these runs loses nothing, so that all losses are those of the real network.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use std::{fs, thread};

use tokio::net::UdpSocket;
use tokio::runtime::{Builder, Runtime};
use volary::runtime::{self, Outcome, RunOptions, pool};
use volary_actors::base::{Rng, Span};
use volary_actors::policies::{Card, PolicySpec};
use volary_engine::results::Summary;
use volary_experiment::config::{Experiment, Overrides, RuntimeKind};
use volary_experiment::control::{Fleet, StudyControl};
use volary_experiment::storage::manifest::RunState;
use volary_hosts::cluster::agent::{Agent, AgentLog, Settings};
use volary_hosts::real_time::clock::MonotonicClock;

use crate::common::worlds;
use crate::drawn;
use crate::net::{Net, anywhere};

/// The treatment of UDP datagrams on a path, in per cent of all datagrams.
#[derive(Clone, Copy)]
struct Weather {
    lost: u32,
    repeated: u32,
    /// Datagrams held back for up to 5 ms, so that later datagrams overtake them.
    held: u32,
}

const FAIR: Weather = Weather { lost: 3, repeated: 5, held: 20 };
const FOUL: Weather = Weather { lost: 25, repeated: 5, held: 20 };

/// The paths to and from one agent.
struct Paths {
    weather: Weather,
    dice: Mutex<Rng>,
}

impl Paths {
    /// Sends each copy of a datagram that arrives, after a delay.
    fn pass(&self, socket: &Arc<UdpSocket>, to: SocketAddr, datagram: &[u8]) {
        let mut dice = self.dice.lock().unwrap();
        let copies = 1 + u32::from(dice.below(100) < self.weather.repeated);
        for _ in 0..copies {
            if dice.below(100) < self.weather.lost {
                continue;
            }
            let delay = if dice.below(100) < self.weather.held { dice.below(5_000) } else { 0 };
            let (socket, datagram) = (Arc::clone(socket), datagram.to_vec());
            tokio::spawn(async move {
                if delay > 0 {
                    tokio::time::sleep(Duration::from_micros(delay.into())).await;
                }
                // A datagram that cannot be sent is lost.
                let _ = socket.send_to(&datagram, to).await;
            });
        }
    }
}

/// A proxy in front of an agent; returns its address. Each peer has a socket of its own towards the agent.
async fn proxy(agent: SocketAddr, weather: Weather, seed: u64) -> SocketAddr {
    let front = Arc::new(UdpSocket::bind(anywhere()).await.unwrap());
    let address = front.local_addr().unwrap();
    let paths = Arc::new(Paths { weather, dice: Mutex::new(Rng::new(seed, 0, 0)) });
    tokio::spawn(async move {
        let (mut peers, mut bytes) = (BTreeMap::new(), vec![0; 1 << 16]);
        loop {
            let Ok((length, peer)) = front.recv_from(&mut bytes).await else { continue };
            let back = match peers.entry(peer) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let back = Arc::new(UdpSocket::bind(anywhere()).await.unwrap());
                    tokio::spawn(answers(Arc::clone(&back), Arc::clone(&front), peer, Arc::clone(&paths)));
                    entry.insert(back)
                }
            };
            paths.pass(back, agent, &bytes[..length]);
        }
    });
    address
}

async fn answers(back: Arc<UdpSocket>, front: Arc<UdpSocket>, peer: SocketAddr, paths: Arc<Paths>) {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let Ok((length, _)) = back.recv_from(&mut bytes).await else { continue };
        paths.pass(&front, peer, &bytes[..length]);
    }
}

/// Deadline of one run of an experiment; no duration is measured with it.
const PATIENCE: Duration = Duration::from_secs(900);

/// Two agents, which the controller and the other agent reach through proxies.
struct Pair {
    net: Net,
    runs: AtomicU64,
    _proxies: Runtime,
}

impl Pair {
    fn new(weather: Weather, seed: u64) -> Self {
        let (net, proxies) =
            (Net::new(), Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());
        let mut file = String::new();
        for name in ["h1", "h2"] {
            let settings = Settings {
                listen: anywhere(),
                identity: net.folder(name),
                // Long enough for a busy machine, and short enough for an agent that missed the end of its controller,
                // which waits for this time.
                lease: Span::from_secs(20),
                once: false,
                events: 1 << 24,
                cpus: Vec::new(),
                programs: Arc::new(volary_experiment::program::ProcessLauncher::of_host(Default::default())),
                log: AgentLog::default(),
                ticks: MonotonicClock::new(),
            };
            let agent = Agent::new(&settings).unwrap();
            let address = proxies.block_on(proxy(agent.address().unwrap(), weather, seed));
            file.push_str(&format!("[[host]]\nname = \"{name}\"\naddress = \"{address}\"\n"));
            // The thread ends with the tests.
            thread::spawn(move || agent.run());
        }
        fs::write(net.folder("lab.toml"), file).unwrap();
        Self { net, runs: AtomicU64::new(0), _proxies: proxies }
    }

    /// Runs an experiment to its end, or until the deadline.
    fn run(&self, text: &str, set: &[&str]) -> Outcome {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let file = self.net.folder(&format!("{number}.toml"));
        fs::write(&file, text).unwrap();
        let set = set.iter().map(ToString::to_string).collect();
        let overrides = Overrides { set, runtime: Some(RuntimeKind::Hosts), ..Overrides::default() };
        let experiment = Experiment::load(&file, &overrides).unwrap();
        let wait = Span::from_secs(600);
        let options = RunOptions {
            out: self.net.folder(&format!("r{number}")),
            fleet: Some(Fleet::Hosts { file: self.net.folder("lab.toml"), wait }),
            ..RunOptions::default()
        };
        let (control, (over, waiting)) = (StudyControl::default(), mpsc::channel::<()>());
        thread::scope(|scope| {
            let control = &control;
            scope.spawn(move || {
                if waiting.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                    control.stop.store(true, Ordering::Relaxed);
                }
            });
            let outcome = runtime::run(&experiment, &options, control).unwrap();
            drop(over);
            outcome
        })
    }

    /// Asserts that a replay of the latest run has the effects of its logs.
    fn replays(&self) {
        let last = self.runs.load(Ordering::Relaxed) - 1;
        let mut source = runtime::replay::open(&self.net.folder(&format!("r{last}"))).unwrap();
        let runs = source.runs();
        assert!(!runs.is_empty());
        for run in runs {
            let replayed = source.replay(&run).unwrap();
            assert!(replayed.is_identical() && replayed.is_equal() && !replayed.cut, "{replayed:#?}");
        }
    }
}

/// Datagrams that the real network lost in a run.
fn lost(summary: &Summary) -> u64 {
    let hosts = summary.fidelity.iter().flat_map(|certificate| &certificate.hosts);
    hosts.map(|host| host.datagrams_lost).sum()
}

/// The error at the end of a run, if any.
fn flaw(outcome: &Outcome) -> Option<String> {
    let open = |run: &&Summary| run.jobs.finished != run.jobs.submitted || run.jobs.unfinished > 0;
    let kept = outcome.study.failures.iter().map(|run| format!("{}: {}", run.name(), run.log));
    let flaws: Vec<_> = kept
        .chain(outcome.summaries.iter().filter(open).map(|run| format!("{}: {:?}", run.name(), run.jobs)))
        .collect();
    (outcome.state != RunState::Finished || !flaws.is_empty())
        .then(|| format!("{}: {}", outcome.state, flaws.join("; ")))
}

/// Number of pairs of agents that run experiments at the same time.
const PAIRS: usize = 4;
const JOBS: u64 = 20;

/// An experiment with some of the policies, and with the given number of schedulers.
fn experiment(schedulers: u32, policies: &[&str]) -> String {
    let policies: String = policies.iter().map(|name| format!("[[policy]]\n{name} = {{}}\n")).collect();
    format!(
        r#"title = "lossy"
seed = 5
[cluster]
nodes = 6
schedulers = {schedulers}
[workload.synthetic]
jobs = {JOBS}
tasks = 3
interarrival = {{ exponential = {{ mean = "500ms" }} }}
cutoff = "1s"
[service]
demand = {{ exponential = {{ mean = "1s" }} }}
[network]
one_way = "50ms"
[run]
speed = 10
record.inputs = true
{policies}"#
    )
}

/// Runs every policy on pairs of agents at the same time. Policies that accept only one scheduler get one.
fn run_every_policy(weather: Weather, repeat: &str) {
    let cards: Vec<Card> = PolicySpec::cards().into_iter().filter(|card| card.runs_alone).collect();
    let of =
        |one: bool| cards.iter().filter(|card| card.one_scheduler == one).map(|card| card.name).collect();
    let [many, one]: [Vec<&str>; 2] = [of(false), of(true)];
    let texts = many.chunks(7).map(|some| experiment(2, some));
    let texts: Vec<String> = texts.chain(one.chunks(7).map(|some| experiment(1, some))).collect();
    let (next, missed) = (AtomicUsize::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 0..PAIRS as u64 {
            let (next, missed, texts) = (&next, &missed, &texts);
            scope.spawn(move || {
                let pair = Pair::new(weather, seed);
                while let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = pair.run(text, &[repeat]);
                    assert_eq!(flaw(&outcome), None);
                    assert!(
                        outcome.summaries.iter().all(|run| run.jobs.finished == JOBS),
                        "{:?}",
                        outcome.summaries
                    );
                    missed.fetch_add(outcome.summaries.iter().map(lost).sum(), Ordering::Relaxed);
                    pair.replays();
                }
            });
        }
    });
    assert!(missed.into_inner() > 0, "nothing was lost");
}

#[test]
fn every_policy_finishes_over_links_that_lose_a_quarter_of_datagrams() {
    run_every_policy(FOUL, "repeat=1");
}

#[test]
#[ignore = "nightly: three seeds of every policy, under two kinds of weather"]
fn every_policy_finishes_every_job_over_lossy_links_under_many_seeds() {
    run_every_policy(FAIR, "repeat=3");
    run_every_policy(FOUL, "repeat=3");
}

/// Number of drawn worlds that are run on lossy links.
const WORLDS: u64 = 200;
/// Maximum real time of a drawn world without losses, s; worlds that take longer are left out.
const LONGEST: f64 = 30.0;
/// Events of a drawn world per real second: few enough for the agents of all pairs.
const PACE: f64 = 5_000.0;

/// The speed at which a drawn world takes some seconds. `None` if the world has too many events, or cannot run in real
/// time.
fn speed(text: &str) -> Option<f64> {
    let overrides = Overrides { runtime: Some(RuntimeKind::Hosts), ..Overrides::default() };
    let experiment = Experiment::plan("drawn.toml", text, &overrides).ok()?;
    let world = worlds(&experiment).next()?;
    let measured = pool::measure("drawn", &world, &experiment.run, &StudyControl::default());
    let summary = measured.unwrap_or_else(|error| panic!("{error}\n{text}")).summary;
    let real = (summary.engine.events as f64 / PACE).max(2.0);
    (real < LONGEST)
        .then(|| (summary.makespan_s / real).max(1.0))
        .filter(|speed| summary.makespan_s / speed < LONGEST)
}

/// `VOLARY_SWARM_COMMIT` and `VOLARY_SWARM_SEED` have the meaning that they have for the engine's swarm.
#[test]
#[ignore = "nightly: 200 drawn worlds in real time"]
fn drawn_worlds_finish_every_job_over_lossy_links() {
    let only = drawn::seeds::number("VOLARY_SWARM_SEED");
    let (next, left) = (
        AtomicU64::new(only.unwrap_or_else(drawn::seeds::first)),
        AtomicU64::new(only.map_or(WORLDS, |_| 1)),
    );
    let (flaws, missed) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 0..PAIRS as u64 {
            let (next, left, flaws, missed) = (&next, &left, &flaws, &missed);
            scope.spawn(move || {
                let pair = Pair::new(FOUL, seed);
                let one_less = |left: u64| left.checked_sub(1);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
                    let (drawn, text, speed) = loop {
                        let drawn = next.fetch_add(1, Ordering::Relaxed);
                        let text = drawn::experiment(drawn);
                        if let Some(speed) = speed(&text) {
                            break (drawn, text, speed);
                        }
                    };
                    let outcome = pair.run(&text, &[&format!("run.speed={speed:.3}")]);
                    missed.fetch_add(outcome.summaries.iter().map(lost).sum(), Ordering::Relaxed);
                    if let Some(flaw) = flaw(&outcome) {
                        flaws
                            .lock()
                            .unwrap()
                            .push(format!("seed {drawn} at speed {speed:.1}: {flaw}\n{text}"));
                    }
                }
            });
        }
    });
    let flaws = flaws.into_inner().unwrap();
    assert!(flaws.is_empty(), "{} worlds:\n{}", flaws.len(), flaws.join("\n"));
    assert!(missed.into_inner() > 0, "nothing was lost");
}
