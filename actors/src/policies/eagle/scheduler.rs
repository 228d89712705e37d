//! A scheduler of Eagle or Hawk: it binds short jobs late, and long ones early when they come to it. Long tasks go to
//! the node with the least wait within the big partition.

use crate::base::{ActorId, JobId, Span, TaskId, Time};
use crate::machine::{Effects, Input, Machine, Note, Timer};
use crate::message::{Job, Launch, Message, Share};
use crate::policies::policy::BuildContext;
use crate::roles::backlog::Backlogs;
use crate::roles::early_binding::{EarlyBinding, PlacementRule};
use crate::roles::late_binding::{LateBinding, ProbeOptions, StateSharing};
use crate::roles::membership::Membership;
use crate::roles::node_bitmap::NodeBitmap;
use crate::roles::partitions::Partitions;

/// The nodes and the work sent there.
pub(in crate::policies) struct LeastWait {
    backlogs: Backlogs,
    partitions: Partitions,
    /// The bitmap of nodes with long work, if it is shared.
    bits: Option<NodeBitmap>,
    observed: bool,
}

impl LeastWait {
    /// Among the nodes of the big partition; `shares` the bitmap with them.
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
            fx.note(Note::Changed);
        }
    }
}

impl PlacementRule for LeastWait {
    fn place(&mut self, task: TaskId, members: &Membership, fx: &mut Effects<'_>) -> Option<ActorId> {
        let now = fx.now();
        let Some(node) = self.backlogs.pick(now, fx.rng()) else {
            // None of them can be reached: any live node is better than none.
            return members.pick(fx.rng());
        };
        self.backlogs.add(node, task, fx.catalog().job_estimate(task.job), now);
        self.mark(node, fx);
        Some(fx.layout().node(node))
    }

    fn sent(&mut self, _: TaskId, node: ActorId, fx: &mut Effects<'_>) {
        if let Some(bits) = &mut self.bits {
            // Tasks of one job leave at one instant; a later bitmap has a later stamp all the same, because receivers
            // keep the newest.
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

/// Both schedulers in one machine: any can become the central one.
pub(in crate::policies) struct Hybrid {
    short: LateBinding,
    long: EarlyBinding<LeastWait>,
}

impl Hybrid {
    /// Long tasks go to the nodes of the big partition.
    pub(in crate::policies) fn new(
        options: ProbeOptions,
        partitions: Partitions,
        sharing: Option<StateSharing>,
        context: BuildContext<'_>,
    ) -> Self {
        let central = LeastWait::new(context, partitions, sharing.is_some());
        Self {
            short: LateBinding::new(options, sharing, context.layout, context.lossy),
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
            Input::Undelivered { msg: Message::Launch(_), .. } | Input::Fire(Timer::Tick(_)) => true,
            // Failure notifications concern both.
            Input::Down { .. } | Input::Up { .. } | Input::Start { .. } => {
                self.long.step(input, fx);
                false
            }
            _ => false,
        };
        if long { self.long.step(input, fx) } else { self.short.step(input, fx) }
    }
}
