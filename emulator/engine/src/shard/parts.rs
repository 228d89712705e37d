//! The parts that a shard is built from: the world it acts in, the actors it owns, and the stopwatch of the CPU
//! time of planning.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use volary_actors::base::{ActorId, Span};
use volary_actors::catalog::Catalog as _;
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::{Effects, Input, Machine, Oracle, Stored};
use volary_actors::policies::{MachineContext, PolicySpec};
use volary_actors::program::Programs;
use volary_netem::Fabric;

use crate::cores::Cores;
use crate::handling::ActorsSection;
use crate::workload::{Window, Workload};

/// Everything that a shard is built from.
pub struct Parts<'a> {
    /// Ids and roles of the actors.
    pub layout: &'a Layout,
    /// Jobs and their work.
    pub workload: &'a Workload,
    /// The time that actors take; `None` if they take none.
    pub actors: Option<&'a ActorsSection>,
    /// Behaviour of schedulers and nodes.
    pub policy: &'a PolicySpec,
    /// The run's seed.
    pub seed: u64,
    /// The emulated network.
    pub fabric: Fabric,
    /// The emulated cores.
    pub cores: Cores,
    /// Whether the emulated network, or the real network between hosts, can lose datagrams.
    pub lossy: bool,
    /// Whether faults pause any endpoint.
    pub pauses: bool,
    /// Time from a crash until the failure detector reports it, unless the endpoint restarts earlier.
    pub peer_timeout: Span,
    /// Whether caches are observed.
    pub observed: bool,
    /// Whether a broadcast that reaches all schedulers at the same time is handled as one event.
    pub shared: bool,
    /// Whether actors can read the oracle of a policy that asks for it: only in virtual time, where one shard owns all
    /// actors.
    pub oracle: bool,
    /// The measured window.
    pub window: Window,
    /// The actors that the shard owns.
    pub placement: Placement<'a>,
    /// The programs of a policy in another language; `None` for other policies.
    pub programs: Option<Arc<Programs>>,
    /// Times the schedulers of policies that plan; `None` to measure no time.
    pub stopwatch: Option<Arc<Stopwatch>>,
}

impl Parts<'_> {
    /// Builds a machine for an actor, at its start and at each restart.
    pub fn machine(&self, actor: ActorId) -> Box<dyn Machine> {
        let Self { layout, lossy, observed, .. } = *self;
        let run = MachineContext { layout, lossy, observed, programs: self.programs.as_ref() };
        let machine = self.policy.machine_in(run, actor);
        let plans = || self.policy.traits().plans() && matches!(self.layout.role(actor), Role::Scheduler(_));
        match &self.stopwatch {
            Some(stopwatch) if plans() => stopwatch.time(machine),
            _ => machine,
        }
    }

    /// The oracle, if the policy asks for an oracle that exists.
    pub fn oracle(&self) -> Option<Oracle> {
        self.policy.traits().oracle.filter(|_| self.oracle).map(|_| Oracle::new(self.workload.jobs()))
    }
}

/// The partition of endpoints among shards, seen from one shard.
#[derive(Clone, Copy, Debug)]
pub struct Placement<'a> {
    /// The shard of every endpoint; empty if there is only one shard.
    homes: &'a [u16],
    /// Index of this shard.
    me: u16,
    shards: u16,
}

impl<'a> Placement<'a> {
    /// The placement of a single shard that owns everything.
    pub const ALONE: Placement<'static> = Placement { homes: &[], me: 0, shards: 1 };

    /// Creates the placement of shard `me` of `shards`; `homes` holds the shard of every endpoint.
    pub const fn new(homes: &'a [u16], me: u16, shards: u16) -> Self {
        Self { homes, me, shards }
    }

    /// Whether this shard owns an endpoint.
    #[inline]
    pub fn owns(&self, endpoint: usize) -> bool {
        self.homes.is_empty() || self.homes[endpoint] == self.me
    }

    /// The shard of an endpoint.
    pub fn home(&self, endpoint: usize) -> u16 {
        self.homes.get(endpoint).copied().unwrap_or(self.me)
    }

    /// Number of shards.
    pub const fn shards(&self) -> u16 {
        self.shards
    }
}

/// The CPU time of the calling thread in nanoseconds. The engine reads no clock of its own.
pub type ThreadClock = fn() -> u64;

/// The CPU time that the planning schedulers of a shard have taken.
#[derive(Debug)]
pub struct Stopwatch {
    clock: ThreadClock,
    elapsed: AtomicU64,
}

impl Stopwatch {
    /// Creates a stopwatch at zero.
    pub fn new(clock: ThreadClock) -> Arc<Self> {
        Arc::new(Self { clock, elapsed: AtomicU64::new(0) })
    }

    /// The time so far, in nanoseconds.
    pub fn elapsed(&self) -> u64 {
        self.elapsed.load(Ordering::Relaxed)
    }

    /// Wraps a machine that plans on timers, and times its steps on them.
    pub(super) fn time(self: &Arc<Self>, machine: Box<dyn Machine>) -> Box<dyn Machine> {
        Box::new(TimedMachine { machine, stopwatch: Arc::clone(self) })
    }
}

/// A machine with the stopwatch that times it.
#[derive(Clone, Debug)]
struct TimedMachine {
    machine: Box<dyn Machine>,
    stopwatch: Arc<Stopwatch>,
}

impl Machine for TimedMachine {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        if !matches!(input, Input::Fire(_)) {
            return self.machine.step(input, fx);
        }
        let begin = (self.stopwatch.clock)();
        self.machine.step(input, fx);
        let spent = (self.stopwatch.clock)().saturating_sub(begin);
        self.stopwatch.elapsed.fetch_add(spent, Ordering::Relaxed);
    }

    fn stored(&mut self) -> Option<Stored> {
        self.machine.stored()
    }

    fn restore(&mut self, stored: Stored) {
        self.machine.restore(stored);
    }
}
