//! The policy Kairos and its central scheduler: one queue of tasks, dealt to the nodes with the fewest copies
//! (algorithm 2).

use super::config::{Kairos, KairosPass, KairosPick};
use super::node::KairosNode;
use crate::base::{ActorId, CopyId, JobId, Rng, Span, TaskId, Time};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Job, Launch, Message, NodeReport};
use crate::policies::policy::{BuildContext, Policy, Traits};
use crate::policies::shared::check_period;
use crate::roles::job_table::{JobTable, OpenJob};
use crate::roles::min_wait_index::MinWaitIndex;
use crate::roles::task_queue::TaskQueue;
use crate::roles::{RETRY_AFTER, resend};

impl Policy for Kairos {
    const ABOUT: &'static str = "Kairos (Delgado, Didona, Dinu and Zwaenepoel, SoCC 2018)\n\
        Needs no run times. A central queue assigns tasks to the nodes with the fewest copies beyond their cores, at \
        most N + Q copies on a node of N cores. A node runs the copies that have attained the least service: a new \
        copy preempts the one that has attained most, which keeps its progress; at the end of each quantum running \
        copies are compared with suspended ones.";

    const VARIANTS: &'static [&'static str] = &[
        r#"{ quantum = "200ms" }"#,
        r#"{ quantum = "1s", pass = "eager", queue = 0 }"#,
        r#"{ quantum = "300ms", pass = "eager", queue = 2, pick = "sum", stretch = 2, missed = 1 }"#,
        r#"{ quantum = "500ms", interval = "100ms", pass = "levels", queue = 8, pick = "random", hysteresis = "500ms", guard = "none" }"#,
        r#"{ quantum = "100ms", pass = "eager", silent = true }"#,
        r#"{ quantum = "2s", interval = "3s", queue = 1, guard = "running", missed = 1, attained = "work" }"#,
    ];

    fn traits(&self) -> Traits<'_> {
        Traits { one_scheduler: true, time_slice: Some(("quantum", self.quantum)), ..Traits::default() }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_period("quantum", self.quantum)?;
        check_period("interval", self.interval)
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(KairosScheduler::new(self, context.layout))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(KairosNode::new(self, context))
    }
}

/// The tick at which tasks are dealt.
const DEAL: u32 = 0;
/// From here on, ticks name nodes that may be tried again.
const NODES: u32 = 1;

/// The one scheduler of a run.
pub(super) struct KairosScheduler {
    interval: Span,
    eager: bool,
    nodes: DealtNodes,
    queue: TaskQueue,
    jobs: JobTable<OpenJob>,
    /// Whether the next round is armed.
    ticking: bool,
}

impl KairosScheduler {
    pub(super) fn new(config: &Kairos, layout: &Layout) -> Self {
        Self {
            interval: config.interval,
            eager: config.pass == KairosPass::Eager,
            nodes: DealtNodes::new(config, layout),
            queue: TaskQueue::default(),
            jobs: JobTable::default(),
            ticking: false,
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let attempt = open.attempts(1);
        self.queue.add(job, 0..open.spec.tasks, attempt);
        self.jobs.open(job, open);
    }

    /// Deals tasks now, or at the end of the interval if there will be something to do.
    fn proceed(&mut self, fx: &mut Effects<'_>) {
        if self.eager {
            self.deal(fx);
        } else if !self.ticking && !self.queue.is_empty() && self.nodes.has_room() {
            self.ticking = true;
            let since = fx.now().0 % self.interval.0;
            fx.arm(Timer::Tick(DEAL), Span(self.interval.0 - since));
        }
    }

    /// Deals tasks until none waits or no node may get one.
    fn deal(&mut self, fx: &mut Effects<'_>) {
        while !self.queue.is_empty()
            && self.nodes.has_room()
            && let Some(copy) = self.pop()
            && let Some(node) = self.nodes.next(fx.rng())
        {
            self.nodes.deal(node, copy, fx.now());
            let repeated =
                self.jobs.get_mut(copy.task.job).is_some_and(|open| open.is_repeated(copy.attempt));
            fx.send_as(repeated, fx.layout().node(node), Launch::Task { copy, at: fx.now() });
        }
        self.nodes.end_round();
    }

    /// The next task without a finished copy.
    fn pop(&mut self) -> Option<CopyId> {
        loop {
            let copy = self.queue.pop()?;
            let TaskId { job, index } = copy.task;
            if self.jobs.get_mut(job).is_some_and(|open| !open.is_done(index)) {
                return Some(copy);
            }
        }
    }

    fn completed(&mut self, from: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        self.nodes.release(fx.layout().node_number(from), copy);
        self.jobs.complete(copy.task, |open| open, fx);
    }

    /// Queues a lost task again.
    fn again(&mut self, task: TaskId) {
        if let Some(open) = self.jobs.get_mut(task.job)
            && !open.is_done(task.index)
        {
            let attempt = open.attempts(1);
            self.queue.add_copy(task.copy(attempt));
        }
    }

    /// Queues a task again that could not be delivered, and avoids its node for a while.
    fn refused(&mut self, node: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let number = fx.layout().node_number(node);
        // Otherwise the node was reported down meanwhile, and its tasks are queued again already.
        if self.nodes.release(number, copy) {
            self.nodes.avoid(number, true);
            fx.arm(Timer::Tick(NODES + number), RETRY_AFTER);
            self.again(copy.task);
        }
    }

    fn deliver(&mut self, from: ActorId, msg: &Message, fx: &mut Effects<'_>) {
        match *msg {
            Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
            Message::Launch(Launch::Completed { copy }) => self.completed(from, copy, fx),
            Message::NodeReport(NodeReport::Service { tasks, attained_ms, spread_ms, at }) => {
                self.nodes.report(fx.layout().node_number(from), (tasks, attained_ms, spread_ms), at);
            }
            _ => fx.unexpected(msg),
        }
    }
}

impl Machine for KairosScheduler {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => self.deliver(from, &msg, fx),
            Input::Undelivered { to, msg: Message::Launch(Launch::Task { copy, .. }) } => {
                self.refused(to, copy, fx);
            }
            Input::Undelivered { to, msg } => {
                let _ = resend(to, msg, fx);
            }
            Input::Down { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    for (copy, _) in self.nodes.down(node, fx.now()) {
                        self.again(copy.task);
                    }
                }
            }
            Input::Up { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    self.nodes.up(node);
                }
            }
            Input::Fire(Timer::Tick(DEAL)) => {
                self.ticking = false;
                self.deal(fx);
            }
            Input::Fire(Timer::Tick(node)) => self.nodes.avoid(node - NODES, false),
            // A start needs no action; only ticks are armed; the other inputs are a worker's.
            _ => {}
        }
        self.proceed(fx);
    }
}

// The nodes as the central scheduler knows them, by the number of their copies.

/// A node.
#[derive(Clone, Debug)]
struct DealtNode {
    /// Copies dealt to it that are not known to have ended, and when; never more than it may hold.
    copies: Vec<(CopyId, Time)>,
    /// Its last report: the number of its copies, the sum of their attained service, ms, and its standard deviation.
    report: (u32, u32, u32),
    /// When that report was sent.
    reported: Time,
    cores: u32,
    up: bool,
    /// Whether it gets no more tasks in this round.
    served: bool,
    /// Whether it could not be reached lately.
    avoided: bool,
}

impl DealtNode {
    /// Copies dealt to it that its last report cannot contain, because they came after it.
    fn since(&self) -> u32 {
        self.copies.iter().filter(|(_, dealt)| *dealt >= self.reported).count() as u32
    }

    /// Number of its copies: those of its last report and those dealt since, of which some may have ended.
    fn count(&self) -> u32 {
        self.report.0.saturating_add(self.since()).min(self.copies.len() as u32)
    }

    /// The tie-break among nodes of equal count. Copies dealt since its last report have attained nothing.
    fn measure(&self, pick: KairosPick) -> u32 {
        let (tasks, attained_ms, spread_ms) = self.report;
        match pick {
            _ if self.copies.is_empty() => 0,
            KairosPick::Var => {
                let (reported, spread) = (f64::from(tasks), f64::from(spread_ms));
                let all = reported + f64::from(self.since());
                let mean = |of: f64| f64::from(attained_ms) / of.max(1.0);
                let squares = reported * (spread.powi(2) + mean(reported).powi(2));
                (squares / all.max(1.0) - mean(all).powi(2)).max(0.0).sqrt().round() as u32
            }
            KairosPick::Sum => attained_ms,
            KairosPick::Random => 0,
        }
    }
}

/// All nodes.
pub(super) struct DealtNodes {
    pick: KairosPick,
    queue: u32,
    /// Whether a node gets one task in a round.
    one: bool,
    /// Nodes that got a task in this round.
    served: Vec<u32>,
    nodes: Vec<DealtNode>,
    /// Nodes with room, by count less cores, then by measure.
    ranks: MinWaitIndex,
}

impl DealtNodes {
    pub(super) fn new(config: &Kairos, layout: &Layout) -> Self {
        let node = |index| DealtNode {
            copies: Vec::new(),
            report: (0, 0, 0),
            reported: Time::ZERO,
            cores: layout.cores(index),
            up: true,
            served: false,
            avoided: false,
        };
        let nodes: Vec<_> = (0..layout.nodes()).map(node).collect();
        let ranks = MinWaitIndex::new(layout.nodes(), Vec::new());
        let mut all = Self {
            pick: config.pick,
            queue: config.queue,
            one: config.pass == KairosPass::One,
            served: Vec::new(),
            nodes,
            ranks,
        };
        (0..layout.nodes()).for_each(|index| all.rank(index));
        all
    }

    /// The node that gets the next task: of those with room the one with the fewest copies, then the least measure,
    /// then chance. A node that gets a task moves to the next level, unless it gets no more in this round.
    pub(super) fn next(&mut self, rng: &mut Rng) -> Option<u32> {
        self.ranks.pick(rng)
    }

    /// Whether any node has room.
    pub(super) fn has_room(&mut self) -> bool {
        self.ranks.least().is_some()
    }

    /// Ends a round: nodes that got a task in it may get one again.
    pub(super) fn end_round(&mut self) {
        for index in std::mem::take(&mut self.served) {
            self.nodes[index as usize].served = false;
            self.rank(index);
        }
    }

    /// Deals a task to a node.
    pub(super) fn deal(&mut self, index: u32, copy: CopyId, now: Time) {
        let node = &mut self.nodes[index as usize];
        node.copies.push((copy, now));
        if self.one {
            node.served = true;
            self.served.push(index);
        }
        self.rank(index);
    }

    /// Removes a copy that left a node; returns whether it was there.
    pub(super) fn release(&mut self, index: u32, copy: CopyId) -> bool {
        let node = &mut self.nodes[index as usize];
        let Some(at) = node.copies.iter().position(|(dealt, _)| *dealt == copy) else { return false };
        node.copies.swap_remove(at);
        self.rank(index);
        true
    }

    /// Takes note of a report, unless it is older than the last one.
    pub(super) fn report(&mut self, index: u32, report: (u32, u32, u32), at: Time) {
        let node = &mut self.nodes[index as usize];
        if at < node.reported {
            return;
        }
        (node.reported, node.report) = (at, report);
        self.rank(index);
    }

    /// Excludes a node, or readmits it.
    pub(super) fn avoid(&mut self, index: u32, avoided: bool) {
        if let Some(node) = self.nodes.get_mut(index as usize) {
            node.avoided = avoided;
            self.rank(index);
        }
    }

    /// Marks a node as down at `now`; returns the copies it had. Reports sent before are of its earlier life.
    pub(super) fn down(&mut self, index: u32, now: Time) -> Vec<(CopyId, Time)> {
        let node = &mut self.nodes[index as usize];
        (node.up, node.reported) = (false, now);
        node.report = (0, 0, 0);
        let lost = std::mem::take(&mut node.copies);
        self.rank(index);
        lost
    }

    /// Marks a node as up, without copies.
    pub(super) fn up(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        (node.up, node.avoided) = (true, false);
        self.rank(index);
    }

    fn rank(&mut self, index: u32) {
        let node = &self.nodes[index as usize];
        let most = node.cores.saturating_add(self.queue) as usize;
        let level = i64::from(node.count()) - i64::from(node.cores);
        self.ranks.set(index, level << 32 | i64::from(node.measure(self.pick)));
        self.ranks.reach(index, node.up && !node.served && !node.avoided && node.copies.len() < most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Time;
    use crate::harness::{Harness, sends};
    use crate::machine::Effect;

    fn bench(config: &Kairos, cores: &[u32], tasks: u32) -> Harness {
        let layout = Layout::new(1, 0, cores.iter().copied());
        config.bench(&layout, layout.scheduler(0), tasks)
    }

    /// The copies that were dealt, by node.
    fn dealt(effects: &[Effect]) -> Vec<(ActorId, CopyId)> {
        let task = |(to, msg)| match msg {
            Message::Launch(Launch::Task { copy, .. }) => Some((to, copy)),
            _ => None,
        };
        sends(effects).into_iter().filter_map(task).collect()
    }

    fn copy(job: u32, task: u32, attempt: u32) -> CopyId {
        JobId(job).task(task).copy(attempt)
    }

    /// One core and Q = 1: two tasks of three are dealt in two rounds, or in one, the third in the one after an end.
    #[test]
    fn tasks_are_dealt_in_rounds() {
        for pass in [KairosPass::One, KairosPass::Levels] {
            tasks_are_dealt_at_the_ends_of_intervals(pass);
        }
    }

    fn tasks_are_dealt_at_the_ends_of_intervals(pass: KairosPass) {
        let config = Kairos { queue: 1, pass, ..Kairos::default() };
        let mut bench = bench(&config, &[1], 3);
        let node = bench.layout.node(0);
        bench.now = Time::ZERO + Span::from_millis(2300);
        let round = |ms| Effect::Arm { timer: Timer::Tick(DEAL), after: Span::from_millis(ms) };
        assert_eq!(bench.submit(0), [round(700)]);
        bench.now = Time::ZERO + Span::from_secs(3);
        let mut sent = bench.step(Input::Fire(Timer::Tick(DEAL)));
        if pass == KairosPass::One {
            assert_eq!(sent.pop(), Some(round(1000)));
            assert_eq!(dealt(&sent), [(node, copy(0, 0, 0))]);
            sent.extend(bench.step(Input::Fire(Timer::Tick(DEAL))));
        }
        assert_eq!(dealt(&sent), [(node, copy(0, 0, 0)), (node, copy(0, 1, 0))]);
        assert_eq!(sent.len(), 2, "the node is full: nothing to wait for but an end");
        let ended = bench.deliver(node, Launch::Completed { copy: copy(0, 1, 0) });
        assert_eq!(ended, [round(1000)]);
        assert_eq!(dealt(&bench.step(Input::Fire(Timer::Tick(DEAL)))), [(node, copy(0, 2, 0))]);
    }

    #[test]
    fn an_eager_scheduler_serves_the_oldest_job() {
        let mut bench = bench(&Kairos { pass: KairosPass::Eager, queue: 0, ..Kairos::default() }, &[1], 2);
        let node = bench.layout.node(0);
        assert_eq!(dealt(&bench.submit(0)), [(node, copy(0, 0, 0))]);
        assert_eq!(dealt(&bench.submit(1)), []);
        let sent = bench.deliver(node, Launch::Completed { copy: copy(0, 0, 0) });
        assert_eq!(dealt(&sent), [(node, copy(0, 1, 0))]);
    }

    /// A node crashes with its task; an undeliverable task goes elsewhere, and its node is avoided for a while.
    #[test]
    fn lost_tasks_are_dealt_again() {
        let mut bench = bench(&Kairos { pass: KairosPass::Eager, queue: 0, ..Kairos::default() }, &[1, 1], 2);
        let first = dealt(&bench.submit(0));
        let [(a, lost), (b, _)] = first[..] else { panic!("{first:?}") };
        assert_eq!(dealt(&bench.step(Input::Down { actor: a })), [], "the other node is full");
        let again = lost.task.copy(1);
        assert_eq!(dealt(&bench.step(Input::Up { actor: a })), [(a, again)]);
        let back = |copy| Input::Undelivered { to: a, msg: Launch::Task { copy, at: Time::ZERO }.into() };
        assert_eq!(bench.step(back(lost)), [], "it is queued already");
        let refused = bench.step(back(again));
        assert_eq!(dealt(&refused), []);
        let number = NODES + bench.layout.node_number(a);
        assert!(refused.contains(&Effect::Arm { timer: Timer::Tick(number), after: RETRY_AFTER }));
        let ended = bench.deliver(b, Launch::Completed { copy: first[1].1 });
        assert_eq!(dealt(&ended), [(b, lost.task.copy(2))]);
        assert_eq!(
            sends(&bench.deliver(b, Launch::Completed { copy: lost.task.copy(2) })).len(),
            1,
            "the job ends"
        );
        assert_eq!(bench.step(Input::Fire(Timer::Tick(number))), []);
    }
}

#[cfg(test)]
mod nodes_tests {
    use super::*;
    use crate::base::{JobId, Span};

    fn copy(task: u32) -> CopyId {
        JobId(0).task(task).copy(0)
    }

    fn nodes(cores: &[u32], queue: u32, pass: KairosPass) -> (DealtNodes, Rng) {
        let config = Kairos { queue, pass, ..Kairos::default() };
        (DealtNodes::new(&config, &Layout::new(1, 0, cores.iter().copied())), Rng::new(1, 2, 3))
    }

    /// Three nodes of one core with Q = 1: a task each, in their order, since none has a copy that could have attained
    /// anything, then another, then no more.
    #[test]
    fn tasks_are_dealt_level_by_level() {
        let (mut nodes, mut rng) = nodes(&[1, 1, 1], 1, KairosPass::Levels);
        let mut order = Vec::new();
        while let Some(index) = nodes.next(&mut rng) {
            nodes.deal(index, copy(order.len() as u32), Time(6));
            order.push(index);
        }
        order.chunks_mut(3).for_each(<[u32]>::sort_unstable);
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
        assert!(!nodes.has_room());
        let first = nodes.nodes[0].copies[0].0;
        assert!(nodes.release(0, first) && !nodes.release(0, first));
        assert_eq!(nodes.next(&mut rng), Some(0));
    }

    /// Algorithm 2 by hand: the node without a task comes first, then those with one by their spreads, and none twice
    /// before the round ends.
    #[test]
    fn a_node_gets_one_task_in_a_round() {
        let (mut nodes, mut rng) = nodes(&[1, 1, 1], 9, KairosPass::One);
        for (index, task) in [(0, 90), (1, 91)] {
            nodes.deal(index, copy(task), Time(1));
        }
        nodes.end_round();
        for (index, tasks, spread) in [(0, 1, 20), (1, 1, 10), (2, 0, 0)] {
            nodes.report(index, (tasks, 0, spread), Time(5));
        }
        let mut round = |first| {
            let mut order = Vec::new();
            while let Some(index) = nodes.next(&mut rng) {
                nodes.deal(index, copy(first + order.len() as u32), Time(6));
                order.push(index);
            }
            assert!(!nodes.has_room());
            nodes.end_round();
            order
        };
        assert_eq!(round(0), [2, 1, 0]);
        assert_eq!(round(10)[0], 2, "one task against two");
    }

    /// Standard deviations by hand, ms: of 4 and 8 s and of them with a copy that has attained nothing, of 30 s and two
    /// such copies, and so on. The report contains copies dealt before it, but not those dealt at its instant.
    #[test]
    fn copies_dealt_since_a_report_have_attained_nothing() {
        for (report, since, spread) in [
            ((2, 12_000, 2_000), 0, 2_000),
            ((2, 12_000, 2_000), 1, 3_266),
            ((2, 10_000, 5_000), 1, 4_714),
            ((1, 30_000, 0), 0, 0),
            ((1, 30_000, 0), 1, 15_000),
            ((1, 30_000, 0), 2, 14_142),
            ((0, 0, 0), 3, 0),
        ] {
            let (mut nodes, _) = nodes(&[1], 9, KairosPass::Levels);
            (0..report.0).for_each(|task| nodes.deal(0, copy(task), Time(4)));
            nodes.report(0, report, Time(5));
            (0..since).for_each(|task| nodes.deal(0, copy(9 + task), Time(5 + u64::from(task))));
            let node = &nodes.nodes[0];
            assert_eq!((node.count(), node.measure(KairosPick::Var)), (report.0 + since, spread));
            assert_eq!(node.measure(KairosPick::Sum), report.1);
        }
    }

    /// A report of one copy, sent between the second and the third assignment, counts two; the older one is ignored.
    #[test]
    fn a_report_replaces_the_count_and_copies_dealt_since_are_added() {
        let (mut nodes, mut rng) = nodes(&[1, 1], 9, KairosPass::Levels);
        for task in 0..3 {
            nodes.deal(0, copy(task), Time(u64::from(task) * 10));
        }
        (3..6).for_each(|task| nodes.deal(1, copy(task), Time(0)));
        nodes.report(0, (1, 0, 0), Time(15));
        nodes.report(0, (3, 0, 0), Time(14));
        assert_eq!(nodes.next(&mut rng), Some(0), "two against three");
        // The end of the first copy was in the report; that of the second is news.
        nodes.release(0, copy(0));
        assert_eq!(nodes.nodes[0].count(), 2);
        nodes.release(0, copy(1));
        assert_eq!(nodes.nodes[0].count(), 1);
        nodes.report(0, (7, 0, 0), Time(0) + Span(20));
        assert_eq!(nodes.nodes[0].count(), 1, "it cannot have more than it was dealt");
    }

    #[test]
    fn free_cores_come_first_and_crashed_nodes_get_nothing() {
        let (mut nodes, mut rng) = nodes(&[1, 3], 1, KairosPass::Levels);
        for task in 0..2 {
            assert_eq!(nodes.next(&mut rng), Some(1));
            nodes.deal(1, copy(task), Time(0));
        }
        nodes.avoid(0, true);
        assert_eq!(nodes.next(&mut rng), Some(1));
        assert_eq!(nodes.down(1, Time(9)).len(), 2);
        assert_eq!(nodes.next(&mut rng), None);
        nodes.up(1);
        assert_eq!(nodes.next(&mut rng), Some(1));
        nodes.avoid(0, false);
        (2..6).for_each(|task| nodes.deal(1, copy(task), Time(0)));
        assert_eq!(nodes.next(&mut rng), Some(0));
    }
}
