//! Hawk: a central scheduler for long jobs, distributed ones for short jobs, and idle nodes that steal.

use std::collections::VecDeque;

use super::eagle::Hybrid;
use super::policy::{Binds, BuildContext, Policy, Traits, check_partition, partitions};
use crate::base::{ActorId, Span, parameters};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine};
use crate::message::{Message, Probe, Steal};
use crate::roles::NodeManager;
use crate::roles::client::CentralJobs;
use crate::roles::late_binding::ProbeOptions;
use crate::roles::node::Reservation;
use crate::roles::partitions::Partitions;

parameters! {
    /// Parameters of Hawk.
    struct Hawk {
        /// Share of the nodes that may run long tasks; all nodes may run short tasks. The s other nodes of n are
        /// spread evenly over the cluster: the k-th of them is node ⌈k n / s⌉ − 1.
        #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1.0))]
        big_partition: f64 = 0.98,
        /// Number of probes per task of a short job.
        probe_ratio: f64 = 2.0 => 1.0..=1000.0,
        /// Least number of probes of a short job (Eagle's simulator).
        min_probes: u32 = 20 => 0..=65536,
        /// Whether a node can be sampled more than once for a job, as in Eagle's simulator.
        replacement: bool = false,
        /// Number of random nodes of the big partition that an idle node asks for probes that wait behind a long task;
        /// 0 disables stealing.
        steal_attempts: u32 = 10 => 0..=65536,
        /// First wait before a probe that may have been lost is sent again; the wait doubles each time. It is used only
        /// where the network can lose datagrams.
        probe_timeout: Span = Span::from_secs(1) => period,
    }
}

impl Policy for Hawk {
    const ABOUT: &'static str = "Hawk (Delgado, Dinu, Kermarrec and Zwaenepoel, USENIX ATC 2015)\n\
        Long jobs go to the first scheduler that is up, which sends each task to the node of the big partition with \
        the least wait. Short jobs go to the scheduler of their client, which probes random nodes as Sparrow does. A \
        node that becomes idle asks others for the short probes that wait behind their first long task. `cutoff` of \
        the workload, or `long` of a class, decides which jobs are long.";

    fn traits(&self) -> Traits<'_> {
        Traits {
            binds: Binds::ByLength,
            central_jobs: CentralJobs::Long,
            reservations: self.probes(),
            ..Traits::default()
        }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_partition(self.big_partition)
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let probes = self.probes();
        Box::new(Hybrid::new(probes, partitions(self.big_partition, context.layout), None, context))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let partitions = partitions(self.big_partition, context.layout);
        Box::new(StealingNode::new(context, partitions, self.steal_attempts))
    }
}

impl Hawk {
    fn probes(&self) -> ProbeOptions {
        let Self { probe_ratio, min_probes, replacement, probe_timeout, .. } = *self;
        ProbeOptions {
            probe_ratio,
            min_probes,
            replacement,
            // In Eagle's simulator nodes claim in vain, because its settings for Hawk have no SRPT.
            cancellation: false,
            probe_timeout,
            ..ProbeOptions::default()
        }
    }
}

/// A node manager that, when idle, steals reservations from other nodes.
#[derive(Clone, Debug)]
struct StealingNode {
    manager: NodeManager,
    index: u32,
    partitions: Partitions,
    attempts: u32,
    /// Number of nodes that this node may still ask in its current idle period.
    left: u32,
    idle: bool,
    /// Reservations that were stolen from this node. The scheduler still expects this node to claim them and the
    /// thief may crash, so the node claims them once it has nothing else to do.
    stolen: VecDeque<Reservation>,
    /// Buffer for stolen reservations, kept to reuse its memory.
    loot: Vec<Reservation>,
}

impl StealingNode {
    fn new(context: BuildContext<'_>, partitions: Partitions, attempts: u32) -> Self {
        Self {
            manager: NodeManager::new(context.layout.cores(context.index)),
            index: context.index,
            partitions,
            attempts,
            left: 0,
            idle: true,
            stolen: VecDeque::new(),
            loot: Vec::new(),
        }
    }

    fn receive(&mut self, from: ActorId, steal: Steal, fx: &mut Effects<'_>) {
        match steal {
            Steal::Ask => self.give(from, fx),
            Steal::Loot { scheduler, job, count, repair } => {
                let from = fx.layout().scheduler(scheduler);
                self.manager.reserve(Reservation { from, job, group: 0, count, repair }, false, fx);
            }
            Steal::Nothing => {
                if self.idle {
                    self.ask(fx);
                }
            }
        }
    }

    /// Gives `to` the first contiguous reservations behind a long task.
    fn give(&mut self, to: ActorId, fx: &mut Effects<'_>) {
        self.manager.take_behind_long(&mut self.loot);
        if self.loot.is_empty() {
            return fx.send(to, Steal::Nothing);
        }
        for place in self.loot.drain(..) {
            if let Role::Scheduler(scheduler) = fx.layout().role(place.from) {
                let Reservation { job, count, repair, .. } = place;
                fx.send_as(repair, to, Steal::Loot { scheduler, job, count, repair });
            }
            self.stolen.push_back(place);
        }
    }

    /// Asks another node of the big partition, if the node may still ask one.
    fn ask(&mut self, fx: &mut Effects<'_>) {
        let (partitions, is_big) = (self.partitions, self.partitions.is_big(self.index));
        let others = partitions.big() - u32::from(is_big);
        if self.left == 0 || others == 0 {
            return;
        }
        self.left -= 1;
        let draw = fx.rng().below(others);
        let nth = draw + u32::from(is_big && draw >= partitions.big_before(self.index));
        fx.send(fx.layout().node(partitions.big_node(nth)), Steal::Ask);
    }

    /// Ends a step: a node with nothing else to do claims stolen reservations, or steals.
    fn settle(&mut self, fx: &mut Effects<'_>) {
        while self.manager.is_idle()
            && let Some(place) = self.stolen.pop_front()
        {
            self.manager.reserve(place, false, fx);
        }
        let was = std::mem::replace(&mut self.idle, self.manager.is_idle());
        if self.idle && !was {
            self.left = self.attempts;
            self.ask(fx);
        }
    }
}

impl Machine for StealingNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg: Message::Steal(steal) } => self.receive(from, steal, fx),
            Input::Deliver { from, msg: Message::Probe(Probe::Cancel { job, .. }) } => {
                self.stolen.retain(|place| (place.from, place.job) != (from, job));
                self.manager.step(input, fx);
            }
            Input::Down { actor } => {
                self.stolen.retain(|place| place.from != actor);
                self.manager.step(input, fx);
            }
            _ => self.manager.step(input, fx),
        }
        self.settle(fx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::JobId;
    use crate::harness::Harness;
    use crate::message::{Core, Launch, Row};

    const LONG: JobId = JobId(1);

    fn node(index: u32) -> Harness {
        let layout = Layout::new(1, 0, vec![1; 4]);
        Hawk::default().bench(&layout, layout.node(index), 3).with_long(&[LONG])
    }

    fn reserve(job: u32) -> Message {
        Probe::Reserve { job: JobId(job), group: 0, count: 1, repair: false }.into()
    }

    fn loot(job: u32) -> Message {
        Steal::Loot { scheduler: 0, job: JobId(job), count: 1, repair: false }.into()
    }

    /// Two of ten nodes, with numbers 4 and 9, are for short tasks only.
    #[test]
    fn an_idle_node_asks_exactly_the_other_nodes_of_the_big_partition() {
        for index in [0, 4, 5, 9] {
            let layout = Layout::new(1, 0, vec![1; 10]);
            let hawk = Hawk { big_partition: 0.8, steal_attempts: 1000, ..Hawk::default() };
            let mut thief = hawk.bench(&layout, layout.node(index), 3).with_long(&[LONG]);
            let first = JobId(0).task(0).copy(0);
            thief.receive(layout.scheduler(0), Launch::Row(Row::single(first)));
            let mut sent = thief.receive(layout.worker(index, 0), Core::Ended { copy: first });
            sent.remove(0);
            let mut asked = std::collections::BTreeSet::new();
            while let [(victim, _)] = sent[..] {
                asked.insert(layout.node_number(victim));
                sent = thief.receive(victim, Steal::Nothing);
            }
            let others = [0, 1, 2, 3, 5, 6, 7, 8].into_iter().filter(|&node| node != index);
            assert_eq!(asked, others.collect(), "the asking node is {index}");
        }
    }

    /// The first contiguous short probes behind a long task are stolen. Probes before this task and after the next
    /// long task stay.
    #[test]
    fn probes_behind_a_long_task_are_stolen_once() {
        let mut victim = node(0);
        let (scheduler, thief) = (victim.layout.scheduler(0), victim.layout.node(3));
        let long = |index| Message::from(Launch::Row(Row::single(LONG.task(index).copy(0))));
        assert_eq!(victim.receive(thief, Steal::Ask), [(thief, Steal::Nothing.into())]);
        victim.receive(scheduler, reserve(2));
        for msg in [reserve(3), long(0), reserve(4), reserve(5), long(1), reserve(6)] {
            assert_eq!(victim.receive(scheduler, msg), []);
        }
        assert_eq!(victim.receive(thief, Steal::Ask), [(thief, loot(4)), (thief, loot(5))]);
        assert_eq!(victim.receive(thief, Steal::Ask), [(thief, loot(6))]);
        assert_eq!(victim.receive(thief, Steal::Ask), [(thief, Steal::Nothing.into())]);
    }

    /// The reservation behind a running long task is stolen. When the long task ends, the victim is idle and claims
    /// the stolen reservation too, because the thief may have crashed.
    #[test]
    fn stolen_reservations_are_claimed_when_nothing_else_is_left() {
        let mut victim = node(0);
        let (scheduler, thief) = (victim.layout.scheduler(0), victim.layout.node(3));
        let long = LONG.task(0).copy(0);
        victim.receive(scheduler, Launch::Row(Row::single(long)));
        victim.receive(scheduler, reserve(2));
        assert_eq!(victim.receive(thief, Steal::Ask), [(thief, loot(2))]);
        let sent = victim.ended(long);
        let claim = Probe::Claim { job: JobId(2), group: 0, repair: false };
        assert_eq!(sent[1..], [(scheduler, claim.into())]);
        let idle = victim.receive(scheduler, Probe::Nothing { job: JobId(2), group: 0 });
        assert_eq!(idle.len(), 1, "then the node itself steals: {idle:?}");
        assert_eq!(idle[0].1, Steal::Ask.into());
    }

    #[test]
    fn an_idle_node_asks_ten_others_and_runs_stolen_tasks() {
        let mut thief = node(3);
        let scheduler = thief.layout.scheduler(0);
        let first = JobId(0).task(0).copy(0);
        thief.receive(scheduler, Launch::Row(Row::single(first)));
        let mut sent = thief.receive(thief.layout.worker(3, 0), Core::Ended { copy: first });
        sent.remove(0);
        for _ in 1..10 {
            let [(victim, msg)] = sent[..] else { panic!("{sent:?}") };
            assert!(victim != thief.me && msg == Steal::Ask.into());
            sent = thief.receive(victim, Steal::Nothing);
        }
        let victim = sent[0].0;
        let claim = Message::from(Probe::Claim { job: JobId(7), group: 0, repair: false });
        assert_eq!(thief.receive(victim, loot(7)), [(scheduler, claim)]);
        assert_eq!(thief.receive(victim, loot(8)), [], "the core is held");
        let next = thief.receive(scheduler, Probe::Nothing { job: JobId(7), group: 0 });
        assert_eq!(next.len(), 1, "{next:?}");
        let asked = thief.receive(scheduler, Probe::Nothing { job: JobId(8), group: 0 });
        assert_eq!(asked.len(), 1, "the idle node asks again: {asked:?}");
        let mut sent = asked;
        for _ in 0..9 {
            sent = thief.receive(sent[0].0, Steal::Nothing);
        }
        assert_eq!(thief.receive(sent[0].0, Steal::Nothing), [], "the node asks at most ten others");
    }
}
