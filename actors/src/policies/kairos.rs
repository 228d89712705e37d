//! Kairos: a central scheduler deals tasks to nodes, which run the copies with the least attained service.
//!
//! The scheduler has one queue of tasks, dealt to the nodes with the fewest copies (algorithm 2). The node manager runs
//! the copies with the least attained service, and reports this service to the central scheduler.

use crate::base::{ActorId, CopyId, Span, Time, parameters};
use crate::layout::Layout;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Core, Launch, Message, NodeReport};
use crate::policies::policy::{Binds, BuildContext, Policy, Traits};
use crate::roles::dispatcher::{DispatchRule, Dispatcher, OpenTasks};
use crate::roles::heartbeats::Heartbeats;
use crate::roles::las::{AttainedMeasure, Las, LasGuard, LasOptions};
use crate::roles::ranked_nodes::{NodeRank, RankedNodes};
use crate::roles::task_queue::TaskQueue;

parameters! {
    /// Parameters of Kairos.
    struct Kairos {
        /// W: time for which a core runs a copy before it compares the copy with the suspended ones (section 3.2). The
        /// test bed has 50 s, the simulations 100 s (Yahoo) and 10,000 s (Google).
        quantum: Span = Span::from_secs(50) => period,
        /// Q: number of copies that a node takes beyond its number of cores N (section 3.3). The test bed has 4, the
        /// simulations 2.
        queue: u32 = 4,
        /// Δ: period at which the central scheduler deals tasks, and nodes with copies report their attained service.
        /// The paper states no value; YARN's heartbeats are sent every second.
        interval: Span = Span::from_secs(1) => period,
        /// Times at which the central scheduler deals tasks, and the number of tasks that a node gets at once.
        pass: KairosPass = KairosPass::One,
        /// Choice among the nodes with the fewest copies for the next task (sections 3.3.3 and 5.3.2).
        pick: KairosPick = KairosPick::Var,
        /// Minimum lead in attained service with which a suspended copy takes the core at the end of a quantum. With
        /// zero any positive lead suffices (algorithm 1 also accepts a tie). The authors' YARN code has half a quantum.
        hysteresis: Span = Span::ZERO,
        /// Protection of copies against waiting for ever behind newer ones.
        guard: LasGuard = LasGuard::Promote,
        /// Quanta passed over (`promote`) or suspensions (`running`) before the guard protects a copy (section 6.2: 3).
        missed: u32 = 3 => 1..=1000000,
        /// Number of quanta for which the guard protects a copy (section 3.2: a multiple of W).
        stretch: f64 = 1.0 => 1.0..=1000000.0,
        /// Measure of attained service: time on cores, which a node can measure, or work done, which the emulated
        /// cores report. The two differ where cores are degraded or of unequal speed. The paper has time.
        attained: AttainedMeasure = AttainedMeasure::Time,
        /// Whether nodes report only after a task arrived or ended, for clusters in which a report of every node in
        /// every interval costs too much. The scheduler then knows the attained service as of the last such event.
        silent: bool = false,
    }

    /// Times at which tasks are dealt, always to the nodes with the fewest copies first.
    enum KairosPass {
        /// At multiples of `interval`, at most one task to each node (algorithm 2; the authors' YARN does the same).
        #[default]
        One,
        /// At multiples of `interval`, until no task waits or all nodes are full.
        Levels,
        /// Like `levels`, and also as soon as the scheduler learns that a task ended or a job arrived.
        Eager,
    }

    /// The tie-break among nodes with equally many copies, relative to their cores.
    enum KairosPick {
        /// The least variance of the attained service of a node's copies, as last reported; copies dealt since count as
        /// zero.
        #[default]
        Var,
        /// The least total attained service of a node's copies, as last reported.
        Sum,
        /// A random choice.
        Random,
    }
}

impl Kairos {
    const fn las(&self) -> LasOptions {
        LasOptions {
            quantum: self.quantum,
            hysteresis: self.hysteresis,
            guard: self.guard,
            missed: self.missed,
            stretch: self.stretch,
            attained: self.attained,
        }
    }
}

impl Policy for Kairos {
    const ABOUT: &'static str = "Kairos (Delgado, Didona, Dinu and Zwaenepoel, SoCC 2018)\n\
        Needs no run times. A central queue assigns tasks to the nodes with the fewest copies beyond their cores, at \
        most N + Q copies on a node of N cores. A node runs the copies that have attained the least service: a new \
        copy preempts the one that has attained most, which keeps its progress; at the end of each quantum running \
        copies are compared with suspended ones.";

    fn traits(&self) -> Traits<'_> {
        Traits {
            binds: Binds::Central,
            one_scheduler: true,
            time_slice: Some(("quantum", self.quantum)),
            ..Traits::default()
        }
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(Dispatcher::with(KairosRule::new(self, context.layout), context.layout))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(KairosNode::new(self, context))
    }
}

/// The tick at which tasks are dealt.
const DEAL: Timer = Timer::Tick(0);

/// The rule of the one scheduler of a run (algorithm 2).
#[derive(Clone, Debug)]
struct KairosRule {
    interval: Span,
    eager: bool,
    nodes: DealtNodes,
    queue: TaskQueue,
    /// Whether the next round is armed.
    ticking: bool,
}

impl KairosRule {
    fn new(config: &Kairos, layout: &Layout) -> Self {
        Self {
            interval: config.interval,
            eager: config.pass == KairosPass::Eager,
            nodes: DealtNodes::new(config, layout),
            queue: TaskQueue::default(),
            ticking: false,
        }
    }

    /// Deals tasks until none waits or no node may get one.
    fn deal(&mut self, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        while !self.queue.is_empty()
            && self.nodes.all.has_room()
            && let Some(copy) = self.pop(tasks)
            && let Some(node) = self.nodes.all.pick(fx.rng())
        {
            self.nodes.deal(node, copy, fx.now());
            tasks.launch_by(Launch::Task { copy, at: fx.now() }, copy, fx.layout().node(node), fx);
        }
        self.nodes.end_round();
    }

    /// The next copy that still waits.
    fn pop(&mut self, tasks: &mut OpenTasks) -> Option<CopyId> {
        std::iter::from_fn(|| self.queue.pop()).find(|copy| tasks.waits(*copy))
    }
}

impl DispatchRule for KairosRule {
    fn submitted(&mut self, first: CopyId, count: u32, _: &mut OpenTasks, _: &mut Effects<'_>) {
        self.queue.add(first.task.job, 0..count, first.attempt);
    }

    fn ready(&mut self, copy: CopyId, _: &mut OpenTasks, _: &mut Effects<'_>) {
        self.queue.add_copy(copy);
    }

    /// Deals tasks now, or at the end of the interval if there will be something to do.
    fn settle(&mut self, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        if self.eager {
            self.deal(tasks, fx);
        } else if !self.ticking && !self.queue.is_empty() && self.nodes.all.has_room() {
            self.ticking = true;
            let since = fx.now().0 % self.interval.0;
            fx.arm(DEAL, Span(self.interval.0 - since));
        }
    }

    fn left(&mut self, copy: CopyId, node: ActorId, fx: &mut Effects<'_>) {
        self.nodes.all.release(fx.layout().node_number(node), copy);
    }

    /// Reports that the node sent before its crash are outdated.
    fn crashed(&mut self, node: ActorId, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        let number = fx.layout().node_number(node);
        self.nodes.all.set_up(number, false);
        self.nodes.all.update(number, |node| (node.reported, node.report) = (fx.now(), (0, 0, 0)));
    }

    fn back(&mut self, node: ActorId, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.nodes.all.set_up(fx.layout().node_number(node), true);
    }

    fn reach(&mut self, node: ActorId, can: bool, fx: &mut Effects<'_>) -> bool {
        self.nodes.all.avoid(fx.layout().node_number(node), !can);
        true
    }

    fn receive(&mut self, from: ActorId, msg: &Message, _: &mut OpenTasks, fx: &mut Effects<'_>) -> bool {
        let Message::NodeReport(NodeReport::Service { tasks, attained_ms, spread_ms, at }) = *msg else {
            return false;
        };
        self.nodes.report(fx.layout().node_number(from), (tasks, attained_ms, spread_ms), at);
        true
    }

    fn fire(&mut self, _: Timer, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.ticking = false;
        self.deal(tasks, fx);
    }
}

// The nodes as the central scheduler knows them, by the number of their copies.

/// A node with its last report.
#[derive(Clone, Debug)]
struct DealtNode {
    pick: KairosPick,
    cores: u32,
    /// Number of copies that the node takes: N + Q.
    most: u32,
    /// The last report: number of copies, and sum and standard deviation of their attained service, ms.
    report: (u32, u32, u32),
    /// Time at which the last report was sent.
    reported: Time,
    /// Whether the node gets no more tasks in this round.
    served: bool,
}

impl DealtNode {
    /// Number of copies dealt to the node that its last report cannot contain, because they arrived later.
    fn since(&self, copies: &[(CopyId, Time)]) -> u32 {
        copies.iter().filter(|(_, dealt)| *dealt >= self.reported).count() as u32
    }

    /// Number of the node's copies: those in its last report and those sent to it since. Some may have ended.
    fn count(&self, copies: &[(CopyId, Time)]) -> u32 {
        self.report.0.saturating_add(self.since(copies)).min(copies.len() as u32)
    }

    /// The tie-break among nodes of equal count. Copies dealt since the node's last report have attained nothing.
    fn measure(&self, copies: &[(CopyId, Time)]) -> u32 {
        let (tasks, attained_ms, spread_ms) = self.report;
        match self.pick {
            KairosPick::Random => 0,
            _ if copies.is_empty() => 0,
            KairosPick::Var => {
                let (reported, spread) = (f64::from(tasks), f64::from(spread_ms));
                let all = reported + f64::from(self.since(copies));
                let mean = |of: f64| f64::from(attained_ms) / of.max(1.0);
                let squares = reported * (spread.powi(2) + mean(reported).powi(2));
                (squares / all.max(1.0) - mean(all).powi(2)).max(0.0).sqrt().round() as u32
            }
            KairosPick::Sum => attained_ms,
        }
    }
}

impl NodeRank for DealtNode {
    /// Orders nodes by copies minus cores, then by the tie-break `measure`; a node that gets a task moves to the next
    /// level. `None` if the node gets no task now: it holds `most` copies, or was served in this round.
    fn rank(&self, copies: &[(CopyId, Time)]) -> Option<i64> {
        let level = i64::from(self.count(copies)) - i64::from(self.cores);
        let has_room = !self.served && copies.len() < self.most as usize;
        has_room.then(|| level << 32 | i64::from(self.measure(copies)))
    }
}

/// All nodes, ranked for the next task, and the state of the round.
#[derive(Clone, Debug)]
struct DealtNodes {
    all: RankedNodes<DealtNode>,
    /// Whether a node gets only one task in a round.
    one: bool,
    /// Nodes that got a task in this round.
    served: Vec<u32>,
}

impl DealtNodes {
    fn new(config: &Kairos, layout: &Layout) -> Self {
        let node = |index| DealtNode {
            pick: config.pick,
            cores: layout.cores(index),
            most: layout.cores(index).saturating_add(config.queue),
            report: (0, 0, 0),
            reported: Time::ZERO,
            served: false,
        };
        let all = RankedNodes::new((0..layout.nodes()).map(node));
        Self { all, one: config.pass == KairosPass::One, served: Vec::new() }
    }

    /// Deals a task to a node.
    fn deal(&mut self, index: u32, copy: CopyId, now: Time) {
        self.all.give(index, copy, now);
        if self.one {
            self.all.update(index, |node| node.served = true);
            self.served.push(index);
        }
    }

    /// Ends a round: nodes that got a task in it may get another.
    fn end_round(&mut self) {
        for index in std::mem::take(&mut self.served) {
            self.all.update(index, |node| node.served = false);
        }
    }

    /// Records a report, unless it is older than the last one.
    fn report(&mut self, index: u32, report: (u32, u32, u32), at: Time) {
        if at >= self.all.get(index).0.reported {
            self.all.update(index, |node| (node.reported, node.report) = (at, report));
        }
    }
}

/// A node manager of Kairos.
#[derive(Clone, Debug)]
struct KairosNode {
    las: Las,
    beats: Heartbeats,
}

// A node takes at most 700 bytes of memory in all: with four cores of 104 bytes each, or with one core and six places
// of 56 bytes each for waiting copies.
const _: () = assert!(size_of::<KairosNode>() <= 256, "a run has many nodes");

impl KairosNode {
    fn new(config: &Kairos, context: BuildContext<'_>) -> Self {
        // The last report of an idle node may be lost, and an earlier report would then remain in force.
        let mut beats = Heartbeats::new(config.interval, context.index, context.layout.nodes());
        beats.always = context.lossy && !config.silent;
        beats.silent = config.silent;
        Self { las: Las::new(config.las(), context.layout.cores(context.index)), beats }
    }

    fn beat(&mut self, fx: &mut Effects<'_>) {
        let service = self.las.service(fx.now());
        let report = NodeReport::Service {
            tasks: service.tasks,
            attained_ms: service.total.whole_millis(),
            spread_ms: service.spread.whole_millis(),
            at: fx.now(),
        };
        fx.send(fx.layout().scheduler(0), report);
        self.beats.sent();
    }

    fn deliver(&mut self, input: Input, fx: &mut Effects<'_>) {
        let Input::Deliver { from, msg } = input else { return };
        match msg {
            Message::Launch(Launch::Task { copy, .. }) => {
                self.las.arrive(from, copy, fx);
                self.beats.changed();
            }
            Message::Core(Core::Ended { copy }) => {
                if let Some(scheduler) = self.las.ended(from, copy, fx) {
                    fx.send(scheduler, Launch::Completed { copy });
                }
                self.beats.changed();
            }
            Message::Core(Core::Suspended { copy, left }) => self.las.suspended(from, copy, left, fx),
            Message::Core(Core::Score { copy, done_ms, .. }) => {
                self.las.on_progress(from, copy, done_ms, fx);
            }
            _ => fx.unexpected(&msg),
        }
    }
}

impl Machine for KairosNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { .. } => self.deliver(input, fx),
            Input::Fire(Timer::Beat) => self.beat(fx),
            Input::Fire(Timer::Tick(tick)) => self.las.fire(tick, fx),
            // The peer timeout limits how often this repeats. If the scheduler crashed, `Down` arrives instead.
            Input::Undelivered { to, msg: Message::Launch(Launch::Completed { copy }) } => {
                fx.recover(to, Launch::Completed { copy });
            }
            Input::Down { actor } => {
                self.las.forget(actor, fx);
                self.beats.changed();
            }
            // `Start` and `Up` need no action. Reports are datagrams, which never return as `Undelivered`. No other
            // timer is armed. The remaining inputs go to workers only.
            _ => {}
        }
        self.beats.arm(self.las.tasks() == 0, fx);
    }
}

#[cfg(test)]
mod tests;
