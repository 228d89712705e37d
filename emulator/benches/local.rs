//! The local runtime: messages per CPU-second through its shards, beside bare actix mailboxes; the lateness of
//! deliveries, beside bare timers of the machine; and the cost of a cluster before any event.
//!
//! `cargo bench --bench local [-- messages | lateness | start]`. CPU time is that of the process. Compared candidates
//! take turns, and medians are reported.

#![allow(clippy::print_stdout, missing_docs)]

use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use actix::{Actor, Addr, Context, Handler};
use actix_rt::{Arbiter, System};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use volary_actors::base::{Class, JobId, Rng, Span, Time};
use volary_actors::layout::Layout;
use volary_actors::machine::{Effects, Input, Machine};
use volary_actors::message::Probe;
use volary_engine::cores::{CoreTable, Cores};
use volary_engine::parcel::{Observation, Parcel};
use volary_engine::shard::{Parts, Placement, Shard};
use volary_engine::workload::{Window, Workload};
use volary_engine::world::World;
use volary_experiment::config::{Experiment, Overrides};
use volary_experiment::control::StudyControl;
use volary_experiment::cost::{peak_rss_bytes, process_cpu_s};
use volary_experiment::fidelity::measure::{LatenessHistograms, SpanHistogram};
use volary_hosts::local;
use volary_hosts::local::Mailbox;
use volary_hosts::real_time::clock::{Clock, MonotonicClock};
use volary_hosts::real_time::event_loop::{Inbox, RealTimeObserver, ShardIo, run_shard};
use volary_netem::{Fabric, Faults, Links};

/// Number of rounds; the median is reported.
const ROUNDS: usize = 5;
/// Duration of a round.
const ROUND: Duration = Duration::from_millis(700);
/// Number of messages in flight at any time, per thread.
const BALLS: u32 = 1000;

fn plan(text: &str) -> Experiment {
    Experiment::plan("bench.toml", text, &Overrides::default())
        .unwrap_or_else(|error| panic!("{error}\nin\n{text}"))
}

fn cluster(nodes: u32, one_way: &str) -> Experiment {
    plan(&format!(
        "title = \"bench\"\n[cluster]\nnodes = {nodes}\n[workload.synthetic]\njobs = 1\ntasks = 1\n\
         interarrival = \"1ms\"\n[service]\ndemand = \"1ms\"\n[network]\none_way = {one_way}\n[[policy]]\nrandom = {{}}\n"
    ))
}

// Bare mailboxes.

/// A message as large as a parcel.
#[derive(Clone, Debug)]
struct Ball([u64; 8]);

impl actix::Message for Ball {
    type Result = ();
}

/// Gives an actor the address of its peer.
struct Peer(Addr<Player>);

impl actix::Message for Peer {
    type Result = ();
}

/// Begins the game.
struct Serve;

impl actix::Message for Serve {
    type Result = ();
}

/// Sends each ball to its peer until the game ends.
struct Player {
    peer: Option<Addr<Self>>,
    over: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    mine: u64,
}

impl Actor for Player {
    type Context = Context<Self>;
}

impl Handler<Peer> for Player {
    type Result = ();
    fn handle(&mut self, peer: Peer, _: &mut Context<Self>) {
        self.peer = Some(peer.0);
    }
}

impl Handler<Serve> for Player {
    type Result = ();
    fn handle(&mut self, _: Serve, _: &mut Context<Self>) {
        for n in 0..u64::from(BALLS) {
            self.peer.iter().for_each(|peer| peer.do_send(Ball([n; 8])));
        }
    }
}

impl Handler<Ball> for Player {
    type Result = ();
    fn handle(&mut self, mut ball: Ball, _: &mut Context<Self>) {
        self.mine += 1;
        ball.0[0] += 1;
        match &self.peer {
            Some(peer) if !self.over.load(Ordering::Relaxed) => peer.do_send(ball),
            _ => self.count.store(self.mine, Ordering::Relaxed),
        }
    }
}

/// Messages per CPU-second of two actors on one or two arbiters.
fn mailboxes(arbiters: usize) -> f64 {
    System::new().block_on(async {
        let arbiters: Vec<_> = (0..arbiters).map(|_| Arbiter::new()).collect();
        let over = Arc::new(AtomicBool::new(false));
        let counts = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let start = |i: usize| {
            let (over, count) = (Arc::clone(&over), Arc::clone(&counts[i]));
            Player::start_in_arbiter(&arbiters[i % arbiters.len()].handle(), move |_| Player {
                peer: None,
                over,
                count,
                mine: 0,
            })
        };
        let (one, two) = (start(0), start(1));
        let cpu = process_cpu_s();
        one.do_send(Peer(two.clone()));
        two.do_send(Peer(one.clone()));
        one.do_send(Serve);
        two.do_send(Serve);
        actix_rt::time::sleep(ROUND).await;
        over.store(true, Ordering::Relaxed);
        actix_rt::time::sleep(Duration::from_millis(50)).await;
        let cpu = process_cpu_s() - cpu;
        let count: u64 = counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        arbiters.into_iter().for_each(|arbiter| {
            arbiter.stop();
            let _ = arbiter.join();
        });
        count as f64 / cpu
    })
}

// Shards.

/// A node that sends each message on to its neighbour, which is on another shard if there are several shards.
#[derive(Clone, Debug)]
struct Thrower {
    nodes: u32,
}

impl Machine for Thrower {
    fn step(&mut self, _: Input, fx: &mut Effects<'_>) {
        let mine = fx.me().0 - fx.layout().node(0).0;
        // Neighbours alternate between the shards.
        let to = fx.layout().node((mine + 1) % self.nodes);
        fx.send(to, Probe::Claim { job: JobId(0), group: 0, repair: false });
    }
}

struct Wake;

impl actix::Message for Wake {
    type Result = ();
}

struct WakeActor(Rc<Inbox>);

impl Actor for WakeActor {
    type Context = Context<Self>;
}

impl Handler<Wake> for WakeActor {
    type Result = ();
    fn handle(&mut self, _: Wake, _: &mut Context<Self>) {
        self.0.wake();
    }
}

/// State that the shards of a game share.
struct Game {
    layout: Layout,
    homes: Vec<u16>,
    experiment: Experiment,
    workload: Workload,
    mailboxes: Vec<Mailbox>,
    over: AtomicBool,
}

impl Game {
    fn new(shards: u16, nodes: u32, one_way: &str) -> Self {
        let experiment = cluster(2, one_way);
        let resolved = &experiment.points[0].resolved;
        let workload = Workload::build(&resolved.workload, &resolved.service, 1, 1, &experiment.traces())
            .unwrap_or_else(|error| panic!("{error}"));
        let layout = Layout::new(1, 0, vec![1; nodes as usize]);
        let first = layout.node(0).0;
        let homes = (0..layout.endpoints()).map(|e| (e.saturating_sub(first) % u32::from(shards)) as u16);
        let (homes, mailboxes) = (homes.collect(), (0..shards).map(|_| Mailbox::default()).collect());
        Self { homes, mailboxes, layout, experiment, workload, over: AtomicBool::new(false) }
    }

    fn parts(&self, me: u16) -> Parts<'_> {
        let point = &self.experiment.points[0];
        let (network, links, faults) = (&point.resolved.network, Links::uniform(), Faults::default());
        let fabric = Fabric::new(network, links, self.layout.endpoints(), 2, faults, 1)
            .unwrap_or_else(|error| panic!("{error}"));
        Parts {
            layout: &self.layout,
            workload: &self.workload,
            actors: None,
            policy: &point.policy,
            seed: 1,
            fabric,
            cores: Cores::new(None, CoreTable::of(&self.layout), volary_netem::Windows::default(), 1),
            lossy: false,
            pauses: false,
            peer_timeout: Span::MAX,
            observed: false,
            shared: false,
            oracle: false,
            window: Window::WHOLE,
            placement: Placement::new(&self.homes, me, self.mailboxes.len() as u16),
            programs: None,
            stopwatch: None,
        }
    }
}

struct BenchIo {
    me: usize,
    game: Arc<Game>,
    wakes: Vec<Addr<WakeActor>>,
}

impl ShardIo for BenchIo {
    fn send(&mut self, to: u16, _: Class, parcels: &mut Vec<Parcel>) {
        if self.game.mailboxes[to as usize].put(parcels) {
            self.wakes[to as usize].do_send(Wake);
        }
    }
    fn report(&mut self, _: Vec<Observation>, _: Time) {}
    fn progress(&mut self, mine: Time) -> Time {
        mine
    }
    fn collect(&mut self, parcels: &mut Vec<Parcel>) {
        self.game.mailboxes[self.me].take(parcels);
    }
    fn park_until(&mut self, until: Time) -> bool {
        self.game.mailboxes[self.me].park_until(until)
    }
    fn unpark(&mut self) {
        self.game.mailboxes[self.me].unpark();
    }
    fn has_incoming(&self) -> bool {
        self.game.mailboxes[self.me].is_filled()
    }
    fn stopped(&self) -> bool {
        self.game.over.load(Ordering::Relaxed)
    }
}

/// A report of a shard: first its mailbox, and in the end its events and their lateness.
enum Word {
    Ready(usize, Addr<WakeActor>),
    End(u64, Box<LatenessHistograms>),
}

async fn inhabit(
    me: usize,
    game: Arc<Game>,
    words: UnboundedSender<Word>,
    start: tokio::sync::oneshot::Receiver<(Vec<Addr<WakeActor>>, MonotonicClock)>,
) {
    let inbox = Rc::new(Inbox::default());
    let _ = words.send(Word::Ready(me, WakeActor(Rc::clone(&inbox)).start()));
    let mut shard = Shard::new(game.parts(me as u16), RealTimeObserver::default());
    let nodes = game.layout.nodes();
    for node in (0..nodes).map(|n| game.layout.node(n)).filter(|n| game.homes[n.index()] == me as u16) {
        shard.install(node, Box::new(Thrower { nodes }));
    }
    let Ok((wakes, monotonic)) = start.await else { return };
    let mut io = BenchIo { me, game: Arc::clone(&game), wakes };
    let clock = Clock::new(monotonic, 1_000_000, 1.0);
    if let Err(error) = run_shard(&mut shard, &clock, &inbox, &mut io).await {
        panic!("{error}");
    }
    let _ = words.send(Word::End(shard.events(), Box::new(std::mem::take(&mut shard.observer.gauge))));
}

/// Plays for a while; returns messages per CPU-second and their lateness.
fn play(shards: u16, balls: u32, one_way: &str, lasts: Duration) -> (f64, f64, LatenessHistograms) {
    let game = Arc::new(Game::new(shards, balls, one_way));
    System::new().block_on(async {
        let arbiters: Vec<_> = (0..shards).map(|_| Arbiter::new()).collect();
        let (words, mut heard) = unbounded_channel();
        let mut starts = Vec::new();
        for (me, arbiter) in arbiters.iter().enumerate() {
            let (start, started) = tokio::sync::oneshot::channel();
            let (game, words) = (Arc::clone(&game), words.clone());
            arbiter.spawn_fn(move || {
                actix_rt::spawn(inhabit(me, game, words, started));
            });
            starts.push(start);
        }
        let mut mailboxes = Vec::new();
        while mailboxes.len() < shards as usize {
            if let Some(Word::Ready(me, mailbox)) = heard.recv().await {
                mailboxes.push((me, mailbox));
            }
        }
        mailboxes.sort_by_key(|(me, _)| *me);
        let mailboxes: Vec<_> = mailboxes.into_iter().map(|(_, mailbox)| mailbox).collect();
        let (cpu, ticks) = (process_cpu_s(), MonotonicClock::new());
        for start in starts {
            let _ = start.send((mailboxes.clone(), ticks));
        }
        actix_rt::time::sleep(lasts).await;
        game.over.store(true, Ordering::Relaxed);
        let (mut events, mut gauge) = (0, LatenessHistograms::default());
        for _ in 0..shards {
            let Some(Word::End(count, measured)) = heard.recv().await else { panic!("a shard broke off") };
            events += count;
            gauge.merge(&measured.reading());
        }
        let cpu = process_cpu_s() - cpu;
        arbiters.into_iter().for_each(|arbiter| {
            arbiter.stop();
            let _ = arbiter.join();
        });
        (events as f64 / cpu, cpu, gauge)
    })
}

fn median(mut seen: Vec<f64>) -> f64 {
    seen.sort_by(f64::total_cmp);
    seen[seen.len() / 2]
}

fn messages() {
    let mut seen = [(); 4].map(|()| Vec::new());
    for _ in 0..ROUNDS {
        seen[0].push(mailboxes(1));
        seen[1].push(play(1, 2 * BALLS, "\"0s\"", ROUND).0);
        seen[2].push(mailboxes(2));
        seen[3].push(play(2, 2 * BALLS, "\"0s\"", ROUND).0);
    }
    let [within, shard, across, shards] = seen.map(|rates| median(rates) / 1e6);
    println!("messages, million per CPU-second; {BALLS} in flight per thread, no emulated delay");
    println!("{:<24} {:>8} {:>8} {:>8}", "", "actix", "shards", "ratio");
    println!("{:<24} {within:>8.2} {shard:>8.2} {:>8.2}", "within an arbiter", shard / within);
    println!("{:<24} {across:>8.2} {shards:>8.2} {:>8.2}", "between two arbiters", shards / across);
}

/// Lateness of a thread that sleeps on a timer for exponential times of this mean.
fn bare_timer(mean: Duration, lasts: Duration) -> SpanHistogram {
    let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
    let fd = rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
        .unwrap_or_else(|error| panic!("{error}"));
    let (mut rng, mut late, start) = (Rng::new(1, 0, 0), SpanHistogram::default(), Instant::now());
    let mut due = start;
    while start.elapsed() < lasts {
        due += mean.mul_f64(-(1.0 - rng.unit()).ln());
        let wait = due.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            let it_value = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
            let spec = Itimerspec { it_interval: zero, it_value };
            let set = rustix::time::timerfd_settime(&fd, TimerfdTimerFlags::empty(), &spec);
            let read = set.and_then(|_| rustix::io::read(&fd, &mut [0u8; 8]));
            assert!(read.is_ok(), "a timer must go off");
        }
        late.add(Span(due.elapsed().as_nanos() as u64));
    }
    late
}

fn lateness() {
    println!("lateness, µs; two shards, messages to anyone, exponential delays");
    println!("{:<26} {:>8} {:>8} {:>8} {:>10}", "", "p50", "p99", "max", "CPU share");
    let line = |name: &str, late: &SpanHistogram, share: f64| {
        let us = |s: f64| s * 1e6;
        let (p50, p99, max) = (us(late.quantile_s(0.5)), us(late.quantile_s(0.99)), us(late.max_s()));
        println!("{name:<26} {p50:>8.0} {p99:>8.0} {max:>8.0} {share:>9.0}%");
    };
    let lasts = Duration::from_secs(3);
    for rate in [1_000u32, 10_000, 50_000] {
        let cpu = process_cpu_s();
        let late = bare_timer(Duration::from_secs(2) / rate, lasts);
        line(
            &format!("a bare timer, {}/s", rate / 2),
            &late,
            (process_cpu_s() - cpu) / lasts.as_secs_f64() * 100.0,
        );
        // The mean delay is 20 ms, so this number of messages in flight gives `rate` messages per second.
        let (_, cpu, gauge) = play(2, rate / 50, "{ exponential = { mean = \"20ms\" } }", lasts);
        line(&format!("shards, {rate} messages/s"), &gauge.deliveries, cpu / lasts.as_secs_f64() * 100.0);
    }
}

/// Environment variable that makes a child start this number of nodes.
const NODES: &str = "VOLARY_BENCH_NODES";

fn child(nodes: u32) {
    let mut experiment = cluster(nodes, "\"1ms\"");
    experiment.run.record.jobs = false;
    let before = peak_rss_bytes();
    let clock = Instant::now();
    let world = World::build(&experiment.points[0], 1, &experiment.traces())
        .unwrap_or_else(|error| panic!("{error}"));
    let measured =
        local::measure("bench", "bench", world, &experiment.run, 2, None, &StudyControl::default());
    let wall = clock.elapsed().as_secs_f64();
    let measured = measured.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(measured.summary.jobs.finished, 1);
    println!("{wall} {}", peak_rss_bytes().saturating_sub(before));
}

fn start() {
    println!("start: a whole run of one job of a millisecond, on two shards");
    println!("{:>10} {:>10} {:>12}", "nodes", "wall s", "bytes/node");
    for nodes in [1_000u32, 10_000, 100_000] {
        let this = std::env::current_exe().unwrap_or_else(|error| panic!("{error}"));
        let output = Command::new(this).env(NODES, nodes.to_string()).output();
        let output = output.unwrap_or_else(|error| panic!("{error}"));
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [wall, bytes] = numbers[..] else { panic!("{}", String::from_utf8_lossy(&output.stderr)) };
        println!("{nodes:>10} {wall:>10.3} {:>12.0}", bytes / f64::from(nodes));
    }
}

fn main() {
    if let Some(nodes) = std::env::var(NODES).ok().and_then(|nodes| nodes.parse().ok()) {
        return child(nodes);
    }
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for (name, run) in [("messages", messages as fn()), ("lateness", lateness), ("start", start)] {
        if asked.is_empty() || asked.iter().any(|a| a == name) {
            run();
        }
    }
}
