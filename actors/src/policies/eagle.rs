//! Eagle: a central scheduler for long jobs, and distributed ones for short jobs, which avoid nodes with long work.

use crate::base::{ActorId, JobId, Span, TaskId, Time, parameters};
use crate::layout::Layout;
use crate::machine::{CacheNote, Effects, Input, Machine, Timer};
use crate::message::{Job, Launch, Message, Share, Stamp};
use crate::policies::policy::{
    Binds, BuildContext, Caches, Policy, Traits, check_bypass, check_partition, partitions,
};
use crate::roles::NodeManager;
use crate::roles::backlog::Backlogs;
use crate::roles::client::CentralJobs;
use crate::roles::dispatcher::Dispatcher;
use crate::roles::early_binding::{EarlyBinding, PlacementRule};
use crate::roles::late_binding::{LateBinding, ProbeOptions, StateSharing};
use crate::roles::membership::Membership;
use crate::roles::node::{NodeOptions, Reservation};
use crate::roles::node_queue::QueueOrder;
use crate::roles::partitions::{NodeBitmap, Partitions};

parameters! {
    /// Parameters of Eagle.
    struct Eagle {
        /// Share of the nodes that may run long tasks; all nodes may run short tasks. The s other nodes of n are
        /// spread evenly over the cluster: the k-th of them is node ⌈k n / s⌉ − 1. The paper has 0.98 for Yahoo and
        /// Facebook, 0.91 for Cloudera, 0.83 for Google.
        #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1.0))]
        big_partition: f64 = 0.98,
        /// Number of probes per task of a short job.
        probe_ratio: f64 = 2.0 => 1.0..=1000.0,
        /// Least number of probes of a short job (the authors' simulator).
        min_probes: u32 = 20 => 0..=65536,
        /// Whether a node can be sampled more than once for a job, as in the authors' simulator.
        replacement: bool = false,
        /// Succinct State Sharing: number of times that a rejected probe is sent to another node without long work in
        /// the newest bitmap. After that it is sent to a node outside the big partition. The default in the authors'
        /// prototype is 1, its README has 3.
        retry_rounds: u16 = 1,
        /// Whether a probe that led to a task keeps its place in the queue (sticky batch probing). When the probe is
        /// next, the node claims another task with it.
        sticky: bool = true,
        /// Whether short probes of the job with the least remaining work are first (SRPT), as in the authors'
        /// simulator. Otherwise probes are served in order of arrival, as in their prototype.
        srpt: bool = true,
        /// SRPT: the measure of a job's work that nodes compare.
        rank: EagleRank = EagleRank::JobLeftOracle,
        /// SRPT: total estimated work of the probes that may overtake a waiting probe, relative to the waiting
        /// probe's estimate.
        #[schemars(range(min = 0.0))]
        bypass: f64 = 5.0,
        /// Whether the remaining probes of a job are cancelled at the nodes once its last task is launched. In the
        /// authors' simulator, nodes drop these probes with SRPT; without SRPT the probes claim tasks in vain.
        cancellation: bool = true,
        /// First wait before a probe that may have been lost is sent again; the wait doubles each time. It is used only
        /// where the network can lose datagrams.
        probe_timeout: Span = Span::from_secs(1) => period,
    }

    /// The measure of a job's work that nodes compare.
    enum EagleRank {
        /// The estimated work of the job's tasks that have not begun on any node. This is an oracle, not a protocol:
        /// every node knows the state of all others without a message. The authors' simulator reads it from shared
        /// memory 1 ms after a task was claimed, which is when the task begins. Real-time runs use `job` instead.
        #[default]
        JobLeftOracle,
        /// The estimated work of all tasks of the job. For a probe that led to a task on this node, the remaining work
        /// at that time (ours). Available in all runtimes.
        Job,
    }
}

/// Largest number of nodes outside the big partition that causes a remark, if fewer than one in [`SPARSE`] are outside.
const SCARCE: u32 = 2;
const SPARSE: u32 = 10;

impl Policy for Eagle {
    const ABOUT: &'static str = "Eagle (Delgado, Didona, Dinu and Zwaenepoel, SoCC 2016)\n\
        Long jobs go to the first scheduler that is up, which sends each task to the node of the big partition with \
        the least wait, together with a bitmap of nodes that have long work. Short jobs go to the scheduler of their \
        client, which probes random nodes as Sparrow does; nodes with long work reject probes and answer with their \
        bitmap; rejected probes go to nodes that it shows without long work. Nodes serve the short job with the least \
        work left, and ask for another of its tasks when one ends. `cutoff` of the workload, or `long` of a class, \
        decides which jobs are long.";

    fn traits(&self) -> Traits<'_> {
        Traits {
            binds: Binds::ByLength,
            central_jobs: CentralJobs::Long,
            caches: Caches::SharedState,
            oracle: self.ranks_left().then_some("rank"),
            reservations: self.probes(),
            ..Traits::default()
        }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_partition(self.big_partition)?;
        if !self.srpt && self.rank != EagleRank::default() {
            return Err("rank: has no effect with srpt = false; remove either".into());
        }
        check_bypass(self.bypass)
    }

    fn remarks(&self, layout: &Layout, classes: usize) -> Vec<String> {
        let (nodes, small) = (layout.nodes(), partitions(self.big_partition, layout).small());
        let remark = match small {
            _ if classes < 2 => return Vec::new(),
            0 => format!("all {nodes} nodes take long tasks, so short ones can wait behind them anywhere"),
            1..=SCARCE if nodes > SPARSE * small => format!(
                "if all other nodes have long tasks, short tasks wait for {small} of {nodes} nodes, those outside \
                 big_partition"
            ),
            _ => return Vec::new(),
        };
        vec![format!("{remark}; lower big_partition, or use more nodes")]
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let probes = self.probes();
        let partitions = partitions(self.big_partition, context.layout);
        let sharing = StateSharing::new(self.retry_rounds, partitions, context.watched);
        Box::new(Hybrid::new(probes, partitions, Some(sharing), context))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let order = if self.srpt { QueueOrder::Least { bypass: self.bypass } } else { QueueOrder::Fifo };
        let options = NodeOptions {
            order,
            rank_left: self.ranks_left(),
            long_in_turn: true,
            sticky: self.sticky,
            ..NodeOptions::default()
        };
        Box::new(SharingNode::new(NodeManager::with(options, context.layout.cores(context.index))))
    }
}

impl Eagle {
    fn probes(&self) -> ProbeOptions {
        let Self { probe_ratio, min_probes, replacement, cancellation, probe_timeout, .. } = *self;
        ProbeOptions {
            probe_ratio,
            min_probes,
            replacement,
            cancellation,
            probe_timeout,
            ..ProbeOptions::default()
        }
    }

    /// Whether nodes rank jobs by their remaining work.
    fn ranks_left(&self) -> bool {
        self.srpt && self.rank == EagleRank::JobLeftOracle
    }
}

// A scheduler of Eagle or Hawk: it binds short jobs late, and long jobs on their arrival. Long tasks go to the node
// with the least wait within the big partition.

/// The nodes, and the work sent to each of them.
#[derive(Clone, Debug)]
pub(in crate::policies) struct LeastWait {
    backlogs: Backlogs,
    partitions: Partitions,
    /// The bitmap of nodes with long work, if it is shared.
    bits: Option<NodeBitmap>,
    observed: bool,
}

impl LeastWait {
    /// A rule over the nodes of the big partition. With `shares`, long tasks carry the bitmap of nodes with long
    /// work.
    pub(in crate::policies) fn new(context: BuildContext<'_>, partitions: Partitions, shares: bool) -> Self {
        let mut backlogs = Backlogs::new(context.layout);
        (0..partitions.small()).for_each(|nth| backlogs.reach(partitions.small_node(nth), false));
        let bits = shares.then(NodeBitmap::default);
        Self { backlogs, partitions, bits, observed: context.observed }
    }

    fn mark(&mut self, node: u32, fx: &mut Effects<'_>) {
        if let Some(bits) = &mut self.bits
            && bits.set(node, !self.backlogs.is_idle(node), fx.layout().nodes())
            && self.observed
        {
            fx.note(CacheNote::Changed);
        }
    }
}

impl PlacementRule for LeastWait {
    fn place(&mut self, task: TaskId, members: &Membership, fx: &mut Effects<'_>) -> Option<ActorId> {
        let now = fx.now();
        let Some(node) = self.backlogs.pick(now, fx.rng()) else {
            // No node of the big partition can be reached: any live node is better than none.
            return members.pick(fx.rng());
        };
        self.backlogs.add(node, task, fx.catalog().job_estimate(task.job), now);
        self.mark(node, fx);
        Some(fx.layout().node(node))
    }

    fn sent(&mut self, _: TaskId, node: ActorId, fx: &mut Effects<'_>) {
        if let Some(bits) = &mut self.bits {
            // The tasks of a job leave at one instant. Each bitmap still needs a later stamp than the last one, because
            // receivers keep the newest.
            bits.stamp(fx.now().max(bits.newest() + Span(1)));
            for part in bits.newer(Time::ZERO) {
                fx.send(node, Share::Bits(part));
            }
        }
    }

    fn left(&mut self, task: TaskId, node: ActorId, fx: &mut Effects<'_>) {
        let number = fx.layout().node_number(node);
        self.backlogs.remove(number, task, fx.now());
        self.mark(number, fx);
    }

    fn crashed(&mut self, node: ActorId, back: bool, fx: &mut Effects<'_>) {
        let number = fx.layout().node_number(node);
        self.backlogs.clear(number);
        self.reach(node, back, fx);
        self.mark(number, fx);
    }

    fn reach(&mut self, node: ActorId, can: bool, fx: &mut Effects<'_>) -> bool {
        let number = fx.layout().node_number(node);
        self.backlogs.reach(number, can && self.partitions.is_big(number));
        true
    }
}

/// The central and the distributed scheduler in one machine, because any scheduler can become the central one.
#[derive(Clone, Debug)]
pub(in crate::policies) struct Hybrid {
    short: Dispatcher<LateBinding>,
    long: EarlyBinding<LeastWait>,
}

impl Hybrid {
    /// A scheduler whose long tasks go to the nodes of the big partition.
    pub(in crate::policies) fn new(
        options: ProbeOptions,
        partitions: Partitions,
        sharing: Option<StateSharing>,
        context: BuildContext<'_>,
    ) -> Self {
        let central = LeastWait::new(context, partitions, sharing.is_some());
        Self {
            short: Dispatcher::with(LateBinding::new(options, sharing, context.lossy), context.layout),
            long: EarlyBinding::new(central, context.layout),
        }
    }
}

fn is_long(job: JobId, fx: &Effects<'_>) -> bool {
    fx.catalog().class(job) > 0
}

impl Machine for Hybrid {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        let long = match input {
            Input::Deliver { msg: Message::Job(Job::Submit { job, .. }), .. } => is_long(job, fx),
            Input::Deliver { msg: Message::Launch(Launch::Completed { copy }), .. } => {
                is_long(copy.task.job, fx)
            }
            // Inputs for long jobs only: early binding launches rows and, for a while, avoids unreachable nodes.
            Input::Undelivered { msg: Message::Launch(_), .. } | Input::Fire(Timer::Node(_)) => true,
            // Failure notifications concern both schedulers.
            Input::Down { .. } | Input::Up { .. } | Input::Start { .. } => {
                self.long.step(input, fx);
                false
            }
            _ => false,
        };
        if long { self.long.step(input, fx) } else { self.short.step(input, fx) }
    }
}

// Eagle's node manager: rejects probes while it has long work, and shares its bitmap.

/// A node manager with Succinct State Sharing.
#[derive(Clone, Debug)]
pub(super) struct SharingNode {
    manager: NodeManager,
    bits: NodeBitmap,
}

impl SharingNode {
    pub(super) fn new(manager: NodeManager) -> Self {
        Self { manager, bits: NodeBitmap::default() }
    }

    /// Sends a scheduler the blocks of the bitmap that are newer than `known`.
    fn share(&self, with: ActorId, known: Stamp, repair: bool, fx: &mut Effects<'_>) {
        for part in self.bits.newer(Time::from(known)) {
            fx.send_as(repair, with, Share::Bits(part));
        }
    }

    fn receive(&mut self, from: ActorId, share: Share, fx: &mut Effects<'_>) {
        match share {
            Share::Probe { job, count, round, last, repair, known } => {
                self.share(from, known, repair, fx);
                if !last && self.manager.has_long() {
                    return fx.send_as(repair, from, Share::Rejected { job, count, round, repair });
                }
                fx.send_as(repair, from, Share::Accepted { job });
                let place = Reservation { from, job, group: 0, count, repair };
                self.manager.reserve(place, round > 0, fx);
            }
            Share::Bits(blocks) => self.bits.learn(blocks, fx.layout().nodes()),
            Share::Accepted { .. } | Share::Rejected { .. } => fx.unexpected(&share.into()),
        }
    }
}

impl Machine for SharingNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg: Message::Share(share) } => self.receive(from, share, fx),
            _ => self.manager.step(input, fx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{ActorId, JobId};
    use crate::harness::{Harness, sends};
    use crate::machine::{Effect, Input, Oracle};
    use crate::message::{Blocks, Core, Launch, Message, Probe, Row, Share, Stamp};

    const SHORT: JobId = JobId(0);
    const LONG: JobId = JobId(1);

    #[test]
    fn one_or_two_nodes_outside_the_big_partition_cause_a_remark() {
        let remarks = |nodes, big_partition, classes| {
            Eagle { big_partition, ..Eagle::default() }.remarks(&layout(nodes), classes)
        };
        assert!(
            remarks(50, 0.98, 2)[0]
                .starts_with("if all other nodes have long tasks, short tasks wait for 1 of 50 nodes")
        );
        assert!(remarks(40, 0.98, 2)[0].starts_with("all 40 nodes take long tasks"));
        assert_eq!(remarks(50, 0.98, 1), [""; 0], "all jobs are short");
        assert_eq!(remarks(50, 0.9, 2), [""; 0]);
        assert_eq!(remarks(10, 0.83, 2), [""; 0], "a tenth of the nodes is enough");
    }

    fn layout(nodes: usize) -> Layout {
        Layout::new(1, 0, vec![1; nodes])
    }

    fn scheduler(config: &Eagle, tasks: u32, nodes: usize) -> Harness {
        let layout = layout(nodes);
        config.bench(&layout, layout.scheduler(0), tasks).with_long(&[LONG])
    }

    fn node(tasks: u32) -> Harness {
        let layout = layout(4);
        Eagle::default().bench(&layout, layout.node(0), tasks).with_long(&[LONG])
    }

    fn probe(job: JobId, last: bool) -> Message {
        let known = Stamp::from(Time::ZERO);
        Share::Probe { job, count: 1, round: 0, last, repair: false, known }.into()
    }

    fn bits(first: u32) -> Blocks {
        Blocks { first: 0, len: 1, bits: [first, 0, 0], at: Time(1).into() }
    }

    /// Probed nodes, each with the round and the flag that it must accept.
    fn probes(sent: &[(ActorId, Message)]) -> Vec<(ActorId, u16, bool)> {
        let is_probe = |&(to, msg): &(ActorId, Message)| match msg {
            Message::Share(Share::Probe { round, last, .. }) => Some((to, round, last)),
            _ => None,
        };
        sent.iter().filter_map(is_probe).collect()
    }

    /// The big partition has two of four nodes. A launch on the first one is undeliverable, and goes to the other one.
    /// When it is undeliverable there too, the first one may be tried again.
    #[test]
    fn a_node_that_could_not_be_reached_gets_long_tasks_again_after_a_while() {
        let mut central = scheduler(&Eagle { big_partition: 0.5, ..Eagle::default() }, 1, 4);
        let launch = |effects: &[Effect]| {
            let sent = sends(effects);
            sent.into_iter().find(|(_, msg)| msg.name() == "launch.row").unwrap()
        };
        let (first, msg) = launch(&central.submit(LONG.0));
        let (second, again) = launch(&central.step(Input::Undelivered { to: first, msg }));
        assert_ne!(first, second);
        let timer = Timer::Node(central.layout.node_number(first));
        assert_eq!(central.step(Input::Fire(timer)), []);
        assert_eq!(launch(&central.step(Input::Undelivered { to: second, msg: again })).0, first);
    }

    /// The big partition has 98 of 100 nodes. Each of them gets one or two of 120 tasks; the other two nodes, which are
    /// spread evenly, get none. One node of the big partition has been down.
    #[test]
    fn long_tasks_go_to_the_least_wait_of_the_big_partition() {
        let mut central = scheduler(&Eagle::default(), 120, 100);
        let actor = central.layout.node(49);
        central.step(Input::Down { actor });
        central.step(Input::Up { actor });
        let rows: Vec<_> =
            sends(&central.submit(LONG.0)).into_iter().filter(|s| s.1.name() == "launch.row").collect();
        assert_eq!(rows.len(), 120);
        let mut count = [0; 100];
        rows.iter().for_each(|(to, _)| count[central.layout.node_number(*to) as usize] += 1);
        let busy = (0..).zip(count).filter_map(|(node, n)| (node != 49 && node != 99).then_some(n));
        assert!((count[49], count[99]) == (0, 0) && busy.min() == Some(1), "idle nodes first: {count:?}");
        assert_eq!(count.iter().max(), Some(&2), "{count:?}");
    }

    /// A long task carries the bitmap, which shows the nodes among 0 to 3 that have been sent a long task so far.
    #[test]
    fn a_long_task_carries_the_bitmap() {
        let mut central = scheduler(&Eagle { big_partition: 0.75, ..Eagle::default() }, 2, 4);
        central.now = Time(1);
        let sent = sends(&central.submit(LONG.0));
        let of = |msg: Message| match msg {
            Message::Share(Share::Bits(Blocks { bits, .. })) => Some(bits[0]),
            _ => None,
        };
        let [a, b] = [sent[0].0, sent[2].0].map(|node| central.layout.node_number(node));
        assert_eq!(of(sent[1].1), Some(1 << a));
        assert_eq!(of(sent[3].1), Some(1 << a | 1 << b));
        assert!(a != b && a < 3 && b < 3);
        // The node's long backlog is done: its bit is clear in the next bitmap.
        let done = Launch::Completed { copy: LONG.task(0).copy(0) };
        assert_eq!(central.receive(sent[0].0, done), []);
        let again =
            Harness::receive(&mut central, sent[2].0, Launch::Completed { copy: LONG.task(1).copy(0) });
        assert_eq!(again.last().map(|s| s.1.name()), Some("job.finished"));
    }

    #[test]
    fn a_node_with_long_work_rejects_probes_and_returns_its_bitmap() {
        let mut node = node(3);
        let scheduler = node.layout.scheduler(0);
        let long = LONG.task(0).copy(0);
        node.receive(scheduler, Launch::Row(Row::single(long)));
        node.receive(scheduler, Share::Bits(bits(0b101)));
        let rejected = Share::Rejected { job: SHORT, count: 1, round: 0, repair: false };
        let sent = node.receive(scheduler, probe(SHORT, false));
        assert_eq!(sent, [(scheduler, Share::Bits(bits(0b101)).into()), (scheduler, rejected.into())]);
        // A scheduler that has the same bitmap gets only the rejection.
        let known = bits(0).at;
        let informed = Share::Probe { job: SHORT, count: 1, round: 0, last: false, repair: false, known };
        assert_eq!(node.receive(scheduler, informed), [(scheduler, rejected.into())]);
        // A probe that must be accepted is accepted.
        let taken = node.receive(scheduler, probe(SHORT, true));
        assert_eq!(taken.last().map(|s| s.1.name()), Some("share.accepted"));
        let sent = node.ended(long);
        assert_eq!(sent[1].1, Probe::Claim { job: SHORT, group: 0, repair: false }.into());
    }

    /// Round 1 goes to nodes that the bitmap shows without long work. Probes that are rejected again go outside the big
    /// partition, where nodes must accept them.
    #[test]
    fn rejected_probes_go_to_other_nodes() {
        let config = Eagle { big_partition: 0.75, min_probes: 0, ..Eagle::default() };
        let mut scheduler = scheduler(&config, 1, 4);
        let first = probes(&sends(&scheduler.submit(SHORT.0)));
        assert_eq!(first.len(), 2);
        assert!(first.iter().all(|&(_, round, last)| round == 0 && !last));
        let node = first[0].0;
        assert_eq!(scheduler.receive(node, Share::Bits(bits(0b1011))), []);
        let rejected = |round| Share::Rejected { job: SHORT, count: 1, round, repair: false };
        let second = probes(&scheduler.receive(node, rejected(0)));
        let free = scheduler.layout.node(2);
        assert_eq!(second, [(free, 1, false)], "the only node whose bit is clear");
        let third = probes(&scheduler.receive(free, rejected(1)));
        assert_eq!(third, [(scheduler.layout.node(3), 2, true)]);
        assert_eq!(scheduler.receive(scheduler.layout.node(2), rejected(1)), [], "no probe of ours is left");
    }

    fn claim(job: u32) -> Message {
        Probe::Claim { job: JobId(job), group: 0, repair: false }.into()
    }

    fn grant(job: u32, task: u32) -> Probe {
        Probe::Grant { row: Row::single(JobId(job).task(task).copy(0)), group: 0 }
    }

    /// A node with a bypass of 1 that runs job 0. The oracle knows, for some jobs of three tasks, the number of tasks
    /// begun.
    fn busy_node(begun: &[(u32, u32)]) -> (Harness, ActorId) {
        let layout = layout(4);
        let mut node = Eagle { bypass: 1.0, ..Eagle::default() }.bench(&layout, layout.node(0), 3);
        let mut oracle = Oracle::new(10);
        begun.iter().for_each(|&(job, tasks)| (0..tasks).for_each(|_| oracle.begin(JobId(job))));
        node.oracle = Some(oracle);
        let scheduler = layout.scheduler(0);
        assert_eq!(node.receive(scheduler, probe(SHORT, false)).last(), Some(&(scheduler, claim(0))));
        node.receive(scheduler, grant(0, 0));
        (node, scheduler)
    }

    /// Jobs 5 and 4 have one task left. Job 6 arrived first and has three left. One task of either job may overtake
    /// it.
    #[test]
    fn a_denied_claim_does_not_count_as_overtaking() {
        let (mut node, scheduler) = busy_node(&[(0, 3), (4, 2), (5, 2)]);
        for job in [6, 5, 4] {
            node.receive(scheduler, probe(JobId(job), false));
        }
        assert_eq!(node.ended(SHORT.task(0).copy(0))[1..], [(scheduler, claim(4))]);
        let nothing = Probe::Nothing { job: JobId(4), group: 0 };
        assert_eq!(
            node.receive(scheduler, nothing),
            [(scheduler, claim(5))],
            "job 6 has let nothing past yet"
        );
        node.receive(scheduler, grant(5, 2));
        let sent = node.ended(JobId(5).task(2).copy(0));
        assert_eq!(sent[1..], [(scheduler, claim(6))], "job 6 lets nothing more past");
    }

    /// The probe of job 4 stays ahead of the probe of job 3, which has less work left and overtakes it only once.
    #[test]
    fn a_sticky_probe_keeps_its_place_and_its_remaining_bypass() {
        let (mut node, scheduler) = busy_node(&[(0, 3), (3, 2)]);
        node.receive(scheduler, probe(JobId(4), false));
        assert_eq!(node.ended(SHORT.task(0).copy(0))[1..], [(scheduler, claim(4))]);
        node.receive(scheduler, grant(4, 0));
        node.receive(scheduler, probe(JobId(3), false));
        let sent = node.ended(JobId(4).task(0).copy(0));
        assert_eq!(
            sent[1..],
            [(scheduler, claim(3))],
            "job 3 has less left, and job 4 lets 3 s of its 4 s past"
        );
        node.receive(scheduler, grant(3, 2));
        for task in [1, 2] {
            let sent = node.ended(if task == 1 { JobId(3).task(2) } else { JobId(4).task(1) }.copy(0));
            assert_eq!(sent[1..], [(scheduler, claim(4))], "job 4 lets 1 s past, at task {task} too");
            node.receive(scheduler, grant(4, task));
        }
    }

    /// The tasks of job 6, of 6 s each, begin while its probe waits, so job 6 then has less work left than job 4.
    #[test]
    fn probes_rank_by_the_work_left_of_their_jobs_when_a_core_is_free() {
        for (begin, next) in [(0, 4), (2, 6)] {
            let (mut node, scheduler) = busy_node(&[(0, 3)]);
            for job in [6, 4] {
                node.receive(scheduler, probe(JobId(job), false));
            }
            if let Some(oracle) = &mut node.oracle {
                (0..begin).for_each(|_| oracle.begin(JobId(6)));
            }
            assert_eq!(
                node.ended(SHORT.task(0).copy(0))[1..],
                [(scheduler, claim(next))],
                "{begin} tasks have begun"
            );
        }
        assert_eq!(Eagle { srpt: false, ..Eagle::default() }.traits().oracle, None);
        assert_eq!(Eagle::default().traits().oracle, Some("rank"));
    }

    /// The node asks the same scheduler again until no task is left, and then the scheduler of the next job.
    #[test]
    fn a_sticky_probe_claims_tasks_until_none_is_left() {
        let mut node = node(3);
        let (scheduler, worker) = (node.layout.scheduler(0), node.layout.worker(0, 0));
        node.receive(scheduler, probe(SHORT, false));
        node.receive(scheduler, probe(JobId(2), false));
        for task in [0, 2] {
            let run = Core::run(SHORT.task(task).copy(0));
            assert_eq!(node.receive(scheduler, grant(0, task)), [(worker, run.into())]);
            let sent = node.ended(SHORT.task(task).copy(0));
            assert_eq!(sent[1], (scheduler, claim(0)), "job 0 has less work left than the other job");
        }
        let next = node.receive(scheduler, Probe::Nothing { job: SHORT, group: 0 });
        assert_eq!(next, [(scheduler, claim(2))]);
    }

    /// After its second task job 4 has one task of 4 s left, of 12 s in all. Job 2 has 6 s.
    #[test]
    fn without_an_oracle_a_sticky_probe_ranks_by_remaining_work() {
        for rank in [EagleRank::JobLeftOracle, EagleRank::Job] {
            let layout = layout(4);
            let mut node = Eagle { rank, bypass: 1e9, ..Eagle::default() }.bench(&layout, layout.node(0), 3);
            let scheduler = layout.scheduler(0);
            node.receive(scheduler, probe(JobId(4), false));
            node.receive(scheduler, grant(4, 1));
            node.receive(scheduler, probe(JobId(2), false));
            let sent = node.ended(JobId(4).task(1).copy(0));
            assert_eq!(sent[1..], [(scheduler, claim(4))], "{rank:?}");
        }
    }
}
