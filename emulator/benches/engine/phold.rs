//! PHOLD: the number of pending events stays constant, because each event causes one event an exponential time later.
//!
//! Three loops take turns: std's heap alone, with the same payload and random numbers; the shard with a machine per
//! node that arms timers; and the shard with machines that send each message to another node over the emulated network.
//! The first loop is the best that an engine could reach with that heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use volary_actors::base::{ActorId, JobId, Rng, Span, Time};
use volary_actors::layout::Layout;
use volary_actors::machine::{Effects, Input, Machine, Timer};
use volary_actors::message::Probe;
use volary_engine::cores::{CoreTable, Cores};
use volary_engine::metrics::{Recorder, Recording};
use volary_engine::queue::Key;
use volary_engine::scenario::Point;
use volary_engine::shard::{Parts, Placement, Shard};
use volary_engine::workload::{Window, Workload};
use volary_experiment::cost::thread_cpu_s;
use volary_netem::{Fabric, Faults, Links};

use super::{medians, plan, workload};

/// A payload as large as an event of the shard: an input and its destination.
type Payload = [u64; 6];

/// Mean time from an event to the event that it causes.
const MEAN_S: f64 = 1e-3;

/// Events measured per round.
const EVENTS: u64 = 1_000_000;

/// The action of an event.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// Arms a timer for an exponential time.
    Timer,
    /// Sends a message to a random node, which the network delays.
    Anyone,
    /// Sends a message to one of 16 neighbours, like nodes that know each other.
    Neighbour,
    /// Arms a timer for a fixed time, so that all timers fire at one instant.
    Together,
}

/// A node that holds one event.
#[derive(Clone, Debug)]
struct Ball {
    me: u32,
    nodes: u32,
    next: Next,
}

impl Machine for Ball {
    fn step(&mut self, _: Input, fx: &mut Effects<'_>) {
        let to = match self.next {
            Next::Timer => {
                let mean = -(1.0 - fx.rng().unit()).ln() * MEAN_S;
                return fx.arm(Timer::Tick(0), Span::from_secs_f64(mean));
            }
            Next::Together => return fx.arm(Timer::Tick(0), Span::from_millis(1)),
            Next::Anyone => self.me + 1 + fx.rng().below(self.nodes - 1),
            Next::Neighbour => self.me + 1 + fx.rng().below(16),
        };
        let to = fx.layout().node(to % self.nodes);
        fx.send(to, Probe::Claim { job: JobId(0), group: 0, repair: false });
    }
}

/// Million events per CPU-second of a shard of `nodes` balls, after an equal number of events to warm up.
fn shard(point: &Point, workload: &Workload, nodes: u32, next: Next) -> f64 {
    let layout = Layout::new(1, 0, vec![1; nodes as usize]);
    let endpoints = layout.endpoints();
    let (network, links, faults) = (&point.resolved.network, Links::uniform(), Faults::default());
    let fabric = Fabric::new(network, links, endpoints, 2, faults, 1).unwrap_or_else(|e| panic!("{e}"));
    let parts = Parts {
        layout: &layout,
        workload,
        actors: None,
        policy: &point.policy,
        seed: 1,
        fabric,
        cores: Cores::new(None, CoreTable::of(&layout), volary_netem::Windows::default(), 1),
        lossy: false,
        pauses: false,
        peer_timeout: Span::MAX,
        observed: false,
        shared: false,
        oracle: false,
        window: Window::WHOLE,
        placement: Placement::ALONE,
        programs: None,
        stopwatch: None,
    };
    let no_time = Span::ZERO;
    let limits = Recording {
        copies: 0,
        one_in: Some(0),
        timeline_cores: 0,
        timeline: no_time,
        timeline_copies: 0,
        timeline_messages: 0,
        cache_interval: no_time,
        unqueued: None,
        slowdown_bound: Recording::SLOWDOWN_BOUND,
        cached_nodes: None,
        snapshots: false,
        window: None,
        gossip: None,
        quiet: Span::MAX,
    };
    let faults = Faults::default();
    let mut shard = Shard::new(parts, Recorder::new(&layout, workload, &faults, limits, 1));
    for me in 0..nodes {
        shard.install(layout.node(me), Box::new(Ball { me, nodes, next }));
    }
    shard.start();
    // Each ball has a first event, and then a second.
    (0..2 * nodes).for_each(|_| assert!(shard.advance()));
    measure(|| {
        shard.advance();
    })
}

/// Order by key alone.
#[derive(Clone, Debug)]
struct Entry(Key, Payload);

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

/// The bare loop: pop, draw, push.
pub(super) fn heap(nodes: u32, burst: bool) -> f64 {
    let mut rng = Rng::new(1, 0, 0);
    let mut heap = BinaryHeap::with_capacity(nodes as usize);
    let mut after = move || match burst {
        true => Span::from_millis(1),
        false => Span::from_secs_f64(-(1.0 - rng.unit()).ln() * MEAN_S),
    };
    for source in (0..nodes).map(ActorId) {
        let key = Key { due: Time::ZERO + after(), source, count: 0 };
        heap.push(Reverse(Entry(key, [0; 6])));
    }
    let mut step = || {
        let Some(Reverse(Entry(key, mut value))) = heap.pop() else { return };
        value[0] += 1;
        let key = Key { due: key.due + after(), count: key.count + 1, ..key };
        heap.push(Reverse(Entry(key, black_box(value))));
    };
    (0..2 * nodes).for_each(|_| step());
    measure(step)
}

fn measure(mut step: impl FnMut()) -> f64 {
    let start = thread_cpu_s();
    (0..EVENTS).for_each(|_| step());
    EVENTS as f64 / (thread_cpu_s() - start) / 1e6
}

/// Prints the table.
pub(super) fn run() {
    let experiment = plan(&format!(
        r#"
        title = "PHOLD"
        [cluster]
        nodes = 2
        [workload.synthetic]
        jobs = 1
        tasks = 1
        interarrival = "1000000s"
        [service]
        demand = "1s"
        [network]
        one_way = {{ exponential = {{ mean = "{MEAN_S}s" }} }}
        [[policy]]
        random = {{}}
        "#
    ));
    let point = &experiment.points[0];
    let workload = workload(point, 1);
    println!("| pending events | bare heap | timers | to one of 16 neighbours | to any node |");
    println!("|---|--:|--:|--:|--:|");
    for nodes in [10_000, 100_000] {
        let [heap, rates @ ..]: [f64; 4] = medians(|which| match which {
            0 => heap(nodes, false),
            1 => shard(point, &workload, nodes, Next::Timer),
            2 => shard(point, &workload, nodes, Next::Neighbour),
            _ => shard(point, &workload, nodes, Next::Anyone),
        });
        let [timers, near, any] = rates.map(|rate| format!("{rate:.1} ({:.2})", rate / heap));
        println!("| {nodes} | {heap:.1} | {timers} | {near} | {any} |");
    }
    let nodes = 100_000;
    let [heap, timers]: [f64; 2] = medians(|which| match which {
        0 => heap(nodes, true),
        _ => shard(point, &workload, nodes, Next::Together),
    });
    println!("| {nodes}, all at one instant | {heap:.1} | {timers:.1} ({:.2}) | | |", timers / heap);
}
