//! Yaq-d: schedulers that know the state of nodes from their last heartbeats.

use super::policy::{BuildContext, Caches, Policy, Traits, check_bypass, plain};
use crate::base::{ActorId, JobId, Span, TaskId, Time, parameters};
use crate::layout::Layout;
use crate::machine::{CacheNote, Effects, Input, Machine, ServiceOrder, Timer};
use crate::message::{Heartbeat, Launch, Message};
use crate::roles::NodeManager;
use crate::roles::early_binding::{EarlyBinding, PlacementRule};
use crate::roles::heartbeats::Heartbeats;
use crate::roles::membership::Membership;
use crate::roles::min_wait_index::MinWaitIndex;

parameters! {
    /// Parameters of Yaq-d.
    struct YaqD {
        /// Period at which a node reports its wait. The recommended value is 8 s. The Murmuration paper divides it by
        /// the speed-up of its arrivals and has 8 ms (section 6.2). Idle nodes report too.
        heartbeat: Span = Span::from_secs(8) => period,
        /// Whether all nodes report at the same instants, as in the simulators; otherwise reports are evenly spread.
        together: bool = false,
        /// Whether heartbeats that report only the passing of time are left out, as long as no datagram can be lost;
        /// schedulers then reduce the reported waits as time passes. This is for periods too short to send all
        /// heartbeats. It needs nodes of one core, and has no effect on several hosts, between which datagrams can
        /// always be lost. The age of information is that of the sent heartbeats, and grows while nothing happens at
        /// a node.
        silent: bool = false,
        /// Whether the wait that a scheduler expects at a node grows by a random number of whole seconds, at most one
        /// heartbeat period, sampled for each job and node. Equal waits then go to the node with the lowest number.
        /// Both are rules of the authors' simulators. Without effect if heartbeats are shorter than one second.
        jitter: bool = false,
        /// Whether a scheduler counts all tasks that it placed since the node's last heartbeat. Otherwise it counts
        /// only those of the same job, as in the simulators: each job starts from the last heartbeats alone.
        remembers: bool = true,
        /// Share of the nodes, the first ones, that are used. The Murmuration paper's scripts have 0.98.
        #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1.0))]
        nodes: f64 = 1.0,
        /// Whether nodes serve the job with the least work first (SRPT). The work is that of all tasks of the job,
        /// because a node does not know which of them run on other nodes. Otherwise nodes serve tasks in order of
        /// arrival.
        srpt: bool = true,
        /// SRPT: total estimate of the tasks that may overtake a waiting task, as a multiple of the waiting task's
        /// estimate.
        #[schemars(range(min = 0.0))]
        bypass: f64 = 5.0,
    }
}

impl Policy for YaqD {
    const ABOUT: &'static str = "Yaq-d (Rasley et al., EuroSys 2016, as in the Murmuration paper)\n\
        Nodes queue tasks and report to all schedulers periodically how long a new task would wait. A scheduler sends \
        each task of a job to the node with the least wait, counting the tasks that it has placed there since the \
        node's last report, but not those of other schedulers.";

    fn traits(&self) -> Traits<'_> {
        Traits {
            caches: Caches::Snapshots { every: self.heartbeat, nodes: self.nodes },
            lossless: self.silent.then_some("silent"),
            ..Traits::default()
        }
    }

    fn check(&self, layout: &Layout) -> Result<(), String> {
        if self.silent && layout.workers() != layout.nodes() {
            return Err("silent: needs nodes of one core; set cluster.cores = 1, or silent = false".into());
        }
        if !(self.nodes > 0.0 && self.nodes <= 1.0) {
            return Err(format!("nodes: must be above 0 and at most 1, not {}", self.nodes));
        }
        check_bypass(self.bypass)
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(EarlyBinding::new(Snapshot::new(self, context), context.layout))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(HeartbeatNode::new(self, plain(self.srpt, self.bypass, context), context))
    }
}

/// A node manager with heartbeats.
#[derive(Clone, Debug)]
struct HeartbeatNode {
    manager: NodeManager,
    beats: Heartbeats,
    observed: bool,
}

impl HeartbeatNode {
    /// A node manager with heartbeats. A silent node sends every heartbeat if datagrams can be lost, because the last
    /// one may be lost. Schedulers place nothing on nodes beyond `nodes` unless no other node is up, and need no
    /// heartbeats from them.
    fn new(config: &YaqD, manager: NodeManager, context: BuildContext<'_>) -> Self {
        let is_used = context.index < context.layout.nodes_in(config.nodes);
        let index = if config.together { 0 } else { context.index };
        let mut beats = Heartbeats::new(config.heartbeat, index, context.layout.nodes());
        beats.always = is_used && (context.lossy || !config.silent);
        beats.silent = config.silent;
        Self { manager, beats, observed: context.observed }
    }

    fn beat(&mut self, fx: &mut Effects<'_>) {
        let (wait, passing) = self.manager.wait(fx);
        for i in 0..fx.layout().schedulers() {
            fx.send(fx.layout().scheduler(i), Heartbeat::Wait { wait, passing, at: fx.now() });
        }
        self.beats.sent();
    }
}

impl Machine for HeartbeatNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        if let Input::Fire(Timer::Beat) = input {
            self.beat(fx);
        } else {
            if let Input::Deliver { msg: Message::Launch(Launch::Row(row)), .. } = input
                && self.observed
            {
                fx.note(CacheNote::Reached { copy: row.copy(0) });
            }
            self.manager.step(input, fx);
            // Every other input means that a task arrived, ended or became void.
            if !matches!(input, Input::Start { .. }) {
                self.beats.changed();
            }
        }
        self.beats.arm(self.manager.is_idle(), fx);
    }
}

/// Key of an idle node with silent heartbeats, which precedes all other keys.
const IDLE: i64 = i64::MIN / 2;

/// A node according to its last heartbeat.
#[derive(Clone, Copy, Debug, Default)]
struct Belief {
    /// Time at which the heartbeat was sent, and time at which it arrived.
    sent: Time,
    came: Time,
    /// The reported wait.
    reported: Span,
    /// The reported wait and the tasks placed since the report.
    wait: Span,
    /// The part of the wait that decreases as time passes.
    passing: Span,
}

impl Belief {
    /// The wait, with `noise` added; with silent heartbeats and no noise, the time at which the wait ends. Noise
    /// applies to one moment, so it is added to the rest of the wait at that moment.
    fn key(&self, silent: bool, noise: Option<Span>, now: Time) -> i64 {
        match (silent, noise) {
            (false, noise) => (self.wait + noise.unwrap_or_default()).signed(),
            (true, Some(noise)) => (self.left(silent, now) + noise).signed(),
            (true, None) if self.wait == Span::ZERO => IDLE,
            (true, None) => Span((now + self.left(silent, now)).0).signed(),
        }
    }

    /// The rest of the wait at `now`.
    fn left(&self, silent: bool, now: Time) -> Span {
        let passed = if silent { now.since(self.came).min(self.passing) } else { Span::ZERO };
        self.wait.saturating_sub(passed)
    }
}

/// The last heartbeats, and the tasks placed since.
#[derive(Clone, Debug)]
struct Snapshot {
    beliefs: Vec<Belief>,
    /// The nodes by [key](Belief::key).
    ranks: MinWaitIndex,
    silent: bool,
    /// Upper bound of the random additions, s, and the addition of each node for the current job; empty without jitter.
    jitter: u32,
    noise: Vec<Span>,
    remembers: bool,
    job: Option<JobId>,
    /// The nodes on which the current job was placed, unless schedulers remember.
    placed: Vec<u32>,
    /// The work expected ahead of the last placed task, ns; `None` if the task went to any node that is up.
    expected: Option<i64>,
    order: ServiceOrder,
    watched: bool,
}

impl Snapshot {
    fn new(config: &YaqD, context: BuildContext<'_>) -> Self {
        let nodes = context.layout.nodes_in(config.nodes);
        let noise = vec![Span::ZERO; if config.jitter { nodes as usize } else { 0 }];
        let (beliefs, ranks) =
            (vec![Belief::default(); nodes as usize], MinWaitIndex::new(nodes, Vec::new()));
        let (silent, remembers) = (config.silent, config.remembers);
        let jitter = (config.heartbeat.0 / 1_000_000_000).min(u64::from(u32::MAX - 1)) as u32;
        let mut snapshot = Self {
            beliefs,
            ranks,
            silent,
            jitter,
            noise,
            remembers,
            job: None,
            placed: Vec::new(),
            expected: None,
            order: if config.srpt { ServiceOrder::LeastJob } else { ServiceOrder::Arrival },
            watched: context.watched,
        };
        (0..nodes).for_each(|node| snapshot.rank(node, Time::ZERO));
        snapshot
    }

    fn uses(&self, node: u32) -> bool {
        (node as usize) < self.beliefs.len()
    }

    fn rank(&mut self, node: u32, now: Time) {
        let noise = self.noise.get(node as usize).copied();
        self.ranks.set(node, self.beliefs[node as usize].key(self.silent, noise, now));
    }

    /// Drops the placements of the previous job, and samples the additions of this job.
    fn begin(&mut self, job: JobId, fx: &mut Effects<'_>) {
        if self.job.replace(job) == Some(job) {
            return;
        }
        while let Some(node) = self.placed.pop() {
            let belief = &mut self.beliefs[node as usize];
            belief.wait = belief.reported;
            self.rank(node, fx.now());
        }
        for node in 0..self.noise.len() {
            let seconds = fx.rng().below(self.jitter + 1);
            self.noise[node] = Span::from_secs(seconds.into());
            self.rank(node as u32, fx.now());
        }
    }
}

impl PlacementRule for Snapshot {
    fn place(&mut self, task: TaskId, members: &Membership, fx: &mut Effects<'_>) -> Option<ActorId> {
        self.begin(task.job, fx);
        self.expected = None;
        // With silent heartbeats the key of a node is the end of its wait. If a task overruns, the key is too low until
        // the node comes first and is recomputed.
        let (now, beliefs, noise) = (fx.now(), &self.beliefs, &self.noise);
        let key = |node: u32| beliefs[node as usize].key(self.silent, noise.get(node as usize).copied(), now);
        let pick = |ranks: &mut MinWaitIndex| match noise.is_empty() {
            true => ranks.pick(fx.rng()),
            false => ranks.pick_first(),
        };
        let Some(node) = self.ranks.pick_updated(pick, key) else { return members.pick(fx.rng()) };
        if !self.remembers {
            self.placed.push(node);
        }
        let cores = u64::from(fx.layout().cores(node));
        let estimate = fx.catalog().job_estimate(task.job).0 / cores;
        let belief = &mut self.beliefs[node as usize];
        self.expected = Some(Span(belief.left(self.silent, fx.now()).0.saturating_mul(cores)).signed());
        belief.wait += Span(estimate);
        self.rank(node, fx.now());
        Some(fx.layout().node(node))
    }

    fn expected(&self) -> Option<(i64, ServiceOrder)> {
        self.expected.map(|work| (work, self.order))
    }

    fn crashed(&mut self, node: ActorId, back: bool, fx: &mut Effects<'_>) {
        let node = fx.layout().node_number(node);
        if self.uses(node) {
            let belief = &mut self.beliefs[node as usize];
            *belief = Belief { sent: belief.sent, ..Belief::default() };
            self.ranks.reach(node, back);
            self.rank(node, fx.now());
        }
    }

    fn reach(&mut self, node: ActorId, can: bool, fx: &mut Effects<'_>) -> bool {
        let node = fx.layout().node_number(node);
        if self.uses(node) {
            self.ranks.reach(node, can);
        }
        true
    }

    fn receive(&mut self, from: ActorId, msg: &Message, fx: &mut Effects<'_>) -> bool {
        let Message::Heartbeat(Heartbeat::Wait { wait, passing, at }) = *msg else { return false };
        let node = fx.layout().node_number(from);
        if self.uses(node) && at > self.beliefs[node as usize].sent {
            let came = fx.now();
            self.beliefs[node as usize] = Belief { sent: at, came, reported: wait, wait, passing };
            self.rank(node, came);
            if self.watched {
                fx.note(CacheNote::Snapshot { node, at });
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, sends};
    use crate::machine::Effect;
    use crate::message::Row;

    const JOB: JobId = JobId(0);

    fn scheduler(tasks: u32) -> Harness {
        let layout = Layout::new(2, 0, [1, 1, 1]);
        YaqD::default().bench(&layout, layout.scheduler(0), tasks)
    }

    fn placed(bench: &mut Harness, job: JobId) -> Vec<u32> {
        let sent = sends(&bench.submit(job.0));
        sent.iter().map(|s| bench.layout.node_number(s.0)).collect()
    }

    fn beat(wait: u64, at: u64) -> Message {
        Heartbeat::Wait { wait: Span::from_secs(wait), passing: Span::ZERO, at: Time(at) }.into()
    }

    /// Nodes have waits of 0, 2 and 9 s, tasks take 1 s. The first node takes tasks until its wait is as long as the
    /// second's.
    #[test]
    fn tasks_go_to_the_least_wait_of_the_last_heartbeats() {
        let mut scheduler = scheduler(5);
        let [a, b, c] = [0, 1, 2].map(|i| scheduler.layout.node(i));
        for (node, wait) in [(a, 0), (b, 2), (c, 9)] {
            assert_eq!(scheduler.receive(node, beat(wait, 1)), []);
        }
        let nodes = placed(&mut scheduler, JOB);
        assert_eq!(nodes[..2], [0, 0]);
        let count = |node| nodes.iter().filter(|&&n| n == node).count();
        assert!(count(2) == 0 && count(1) >= 1, "{nodes:?}");
        // The next heartbeat replaces the counted tasks. An older heartbeat that arrives late does not.
        scheduler.receive(a, beat(30, 3));
        scheduler.receive(b, beat(30, 3));
        scheduler.receive(a, beat(0, 2));
        assert_eq!(placed(&mut scheduler, JobId(1)), [2; 5]);
    }

    /// Two jobs of one task arrive before the next heartbeat. Both go to the idle node if the first is forgotten.
    #[test]
    fn a_scheduler_that_forgets_its_placements_starts_each_job_from_the_last_heartbeats() {
        for (remembers, second) in [(true, 1), (false, 0)] {
            let layout = Layout::new(1, 0, [1, 1]);
            let config = YaqD { remembers, ..YaqD::default() };
            let mut scheduler = config.bench(&layout, layout.scheduler(0), 1);
            let wait = Span::from_millis(500);
            let late = Heartbeat::Wait { wait, passing: Span::ZERO, at: Time(1) };
            scheduler.receive(scheduler.layout.node(1), late);
            assert_eq!(placed(&mut scheduler, JOB), [0], "the idle node has 0 s, the other 0.5 s");
            assert_eq!(placed(&mut scheduler, JobId(1)), [second], "1 s or again 0 s, against 0.5 s");
        }
    }

    /// Twenty jobs of one task arrive before the next heartbeat of two idle nodes, and each is forgotten. With
    /// additions sampled for each job both nodes get some of them. Additions of up to 8 s never hide a wait of 50 s.
    #[test]
    fn jitter_is_sampled_for_each_job() {
        for silent in [false, true] {
            let layout = Layout::new(1, 0, [1, 1, 1]);
            let config = YaqD { remembers: false, jitter: true, silent, ..YaqD::default() };
            let mut scheduler = config.bench(&layout, layout.scheduler(0), 1);
            scheduler.receive(layout.node(2), beat(50, 1));
            let nodes: Vec<u32> = (0..20).flat_map(|job| placed(&mut scheduler, JobId(job))).collect();
            assert!(nodes.contains(&0) && nodes.contains(&1) && !nodes.contains(&2), "{nodes:?}");
        }
    }

    #[test]
    fn an_unreachable_node_is_avoided_for_a_while() {
        let mut scheduler = scheduler(1);
        let a = scheduler.layout.node(0);
        for node in [1, 2] {
            scheduler.receive(scheduler.layout.node(node), beat(50, 1));
        }
        assert_eq!(placed(&mut scheduler, JOB), [0]);
        let row = Launch::Row(Row::single(JOB.task(0).copy(0))).into();
        let again = scheduler.step(Input::Undelivered { to: a, msg: row });
        assert_ne!(sends(&again)[0].0, a);
        assert!(again.contains(&Effect::Arm { timer: Timer::Node(0), after: Span::from_secs(1) }));
        scheduler.step(Input::Fire(Timer::Node(0)));
        assert_eq!(placed(&mut scheduler, JobId(1)), [0], "its one second is the least again");
    }

    /// An undelivered row changes nothing if its node was reported down and its task has been placed again since.
    #[test]
    fn a_late_refusal_of_an_earlier_attempt_is_ignored() {
        let mut scheduler = scheduler(1);
        let [a, b, c] = [0, 1, 2].map(|i| scheduler.layout.node(i));
        assert_eq!(scheduler.receive(b, beat(50, 1)), []);
        assert_eq!(scheduler.receive(c, beat(50, 1)), []);
        assert_eq!(placed(&mut scheduler, JOB), [0]);
        scheduler.step(Input::Down { actor: b });
        scheduler.step(Input::Down { actor: c });
        assert_eq!(scheduler.step(Input::Down { actor: a }), []);
        let again = Launch::Row(Row::single(JOB.task(0).copy(1))).into();
        assert_eq!(sends(&scheduler.step(Input::Up { actor: a })), [(a, again)]);
        let row = Launch::Row(Row::single(JOB.task(0).copy(0))).into();
        assert_eq!(scheduler.step(Input::Undelivered { to: a, msg: row }), []);
    }

    /// Two tasks are estimated at 1 s, so after half a second the wait is 1.5 s. An idle node reports equally often,
    /// also before its first task.
    #[test]
    fn a_node_reports_to_all_schedulers_in_every_period() {
        let layout = Layout::new(2, 0, [1, 1]);
        let config = YaqD { heartbeat: Span::from_millis(500), ..YaqD::default() };
        let mut node = config.bench(&layout, layout.node(0), 2);
        let beats = Effect::Arm { timer: Timer::Beat, after: Span::from_millis(500) };
        assert_eq!(node.step(Input::Start { epoch: 0 }), [beats]);
        let rows = [0, 1].map(|i| Launch::Row(Row::single(JOB.task(i).copy(0))));
        node.deliver(layout.scheduler(0), rows[0]);
        node.receive(layout.scheduler(0), rows[1]);
        node.now = Time::ZERO + Span::from_millis(500);
        let told = node.step(Input::Fire(Timer::Beat));
        let wait = Span::from_millis(1500);
        let wait = Heartbeat::Wait { wait, passing: Span::from_millis(500), at: node.now };
        let all = [layout.scheduler(0), layout.scheduler(1)].map(|to| (to, Message::from(wait)));
        assert_eq!((sends(&told), told.last()), (all.to_vec(), Some(&beats)));
        node.ended(JOB.task(0).copy(0));
        node.ended(JOB.task(1).copy(0));
        for _ in 0..2 {
            let told = node.step(Input::Fire(Timer::Beat));
            assert_eq!((sends(&told).len(), told.last()), (2, Some(&beats)));
        }
    }

    #[test]
    fn an_idle_node_that_no_scheduler_uses_reports_nothing() {
        let layout = Layout::new(1, 0, [1, 1]);
        let config = YaqD { nodes: 0.5, ..YaqD::default() };
        for (node, effects) in [(0, 1), (1, 0)] {
            let mut node = config.bench(&layout, layout.node(node), 1);
            assert_eq!(node.step(Input::Start { epoch: 0 }).len(), effects);
        }
    }

    /// The notes say from which time on a heartbeat contains a copy, in observed runs only.
    #[test]
    fn a_node_of_an_observed_run_notes_the_copies_that_reach_it() {
        let layout = Layout::new(1, 0, [1]);
        let copy = JOB.task(0).copy(0);
        let notes = |observed| {
            let machine = Policy::machine(&YaqD::default(), layout.node(0), &layout, false, observed);
            let mut node = Harness::new(layout.clone(), layout.node(0), 1, machine);
            let effects = node.deliver(layout.scheduler(0), Launch::Row(Row::single(copy)));
            effects
                .iter()
                .filter(|&effect| *effect == Effect::Note(CacheNote::Reached { copy }.into()))
                .count()
        };
        assert_eq!((notes(false), notes(true)), (0, 1));
    }

    /// A node to which nothing happens sends no heartbeats. Schedulers reduce its wait as time passes, but only by
    /// the estimate of the tasks that run there.
    #[test]
    fn schedulers_reduce_the_wait_of_a_silent_node_as_time_passes() {
        let config = YaqD { silent: true, heartbeat: Span::from_millis(500), ..YaqD::default() };
        let layout = Layout::new(2, 0, [1, 1]);
        let mut node = config.bench(&layout, layout.node(0), 2);
        node.receive(layout.scheduler(0), Launch::Row(Row::single(JOB.task(0).copy(0))));
        assert_eq!(node.step(Input::Fire(Timer::Beat)).len(), 2, "two schedulers, no further beat");
        let mut scheduler = config.bench(&layout, layout.scheduler(0), 1);
        let beat = |wait, passing| Heartbeat::Wait {
            wait: Span::from_secs(wait),
            passing: Span::from_secs(passing),
            at: Time(1),
        };
        scheduler.receive(layout.node(0), beat(9, 9));
        scheduler.receive(layout.node(1), beat(6, 2));
        scheduler.now = Time::ZERO + Span::from_secs(4);
        assert_eq!(placed(&mut scheduler, JOB), [1], "the wait is 4 against 5");
        assert_eq!(placed(&mut scheduler, JobId(1)).len(), 1, "the wait is 5 against 5");
        scheduler.now = Time::ZERO + Span::from_secs(9);
        assert_eq!(placed(&mut scheduler, JobId(2)), [0], "the wait is 0 or 1 against 5 or 6");
    }
}
