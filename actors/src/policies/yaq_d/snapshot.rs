//! A scheduler's view of the nodes, as of their last heartbeats.

use super::YaqD;
use crate::base::{ActorId, JobId, Span, TaskId, Time};
use crate::layout::Layout;
use crate::machine::Effects;
use crate::message::{Heartbeat, Message};
use crate::policies::shared::partition;
use crate::roles::early_binding::PlacementRule;
use crate::roles::membership::Membership;
use crate::roles::min_wait_index::MinWaitIndex;

/// The key of an idle node where time passes silently: before all others.
const IDLE: i64 = i64::MIN / 2;

/// A node as of its last heartbeat.
#[derive(Clone, Copy, Debug, Default)]
struct Belief {
    /// When that was sent, and when it came.
    sent: Time,
    came: Time,
    /// The reported wait.
    reported: Span,
    /// The same with what was placed since.
    wait: Span,
    /// How much of it passes by itself.
    passing: Span,
}

/// The last heartbeats, and what was placed since.
#[derive(Debug)]
pub(super) struct Snapshot {
    beliefs: Vec<Belief>,
    /// The waits; where time passes silently, when they will be over.
    ranks: MinWaitIndex,
    silent: bool,
    /// Upper bound of the random addition to a reported wait.
    jitter: Option<Span>,
    remembers: bool,
    /// The job in hand, and the nodes it was placed on: unless schedulers remember.
    job: Option<JobId>,
    placed: Vec<u32>,
}

impl Snapshot {
    pub(super) fn new(config: &YaqD, layout: &Layout) -> Self {
        let nodes = partition(config.nodes, layout);
        let jitter = config.jitter.then_some(config.heartbeat);
        let (beliefs, ranks) =
            (vec![Belief::default(); nodes as usize], MinWaitIndex::new(nodes, Vec::new()));
        let (silent, remembers) = (config.silent, config.remembers);
        let mut snapshot = Self { beliefs, ranks, silent, jitter, remembers, job: None, placed: Vec::new() };
        (0..nodes).for_each(|node| snapshot.rank(node, Time::ZERO));
        snapshot
    }

    fn uses(&self, node: u32) -> bool {
        (node as usize) < self.beliefs.len()
    }

    fn rank(&mut self, node: u32, now: Time) {
        let Belief { came, wait, passing, .. } = self.beliefs[node as usize];
        let left = wait.saturating_sub(now.since(came).min(passing));
        let rank = match (self.silent, wait) {
            (false, wait) => wait.0,
            (true, Span::ZERO) => return self.ranks.set(node, IDLE),
            (true, _) => (now + left).0,
        };
        self.ranks.set(node, i64::try_from(rank).unwrap_or(i64::MAX));
    }

    /// Drops the placements of the job before this one.
    fn begin(&mut self, job: JobId, now: Time) {
        if self.remembers || self.job.replace(job) == Some(job) {
            return;
        }
        while let Some(node) = self.placed.pop() {
            let belief = &mut self.beliefs[node as usize];
            belief.wait = belief.reported;
            self.rank(node, now);
        }
    }

    /// The node with the least wait. Where time passes silently the key of a node is the end of its wait; if a task
    /// overruns, the key is too low until the node comes first and is recomputed.
    fn pick(&mut self, fx: &mut Effects<'_>) -> Option<u32> {
        loop {
            let node = self.ranks.pick(fx.rng())?;
            let believed = self.ranks.work(node);
            self.rank(node, fx.now());
            if self.ranks.work(node) == believed {
                return Some(node);
            }
        }
    }
}

impl PlacementRule for Snapshot {
    fn place(&mut self, task: TaskId, members: &Membership, fx: &mut Effects<'_>) -> Option<ActorId> {
        self.begin(task.job, fx.now());
        let Some(node) = self.pick(fx) else { return members.pick(fx.rng()) };
        if !self.remembers {
            self.placed.push(node);
        }
        let estimate = fx.catalog().job_estimate(task.job).0 / u64::from(fx.layout().cores(node));
        self.beliefs[node as usize].wait += Span(estimate);
        self.rank(node, fx.now());
        Some(fx.layout().node(node))
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
            let jitter = self.jitter.map_or(Span::ZERO, |most| most.scale(fx.rng().unit()));
            let came = fx.now();
            let reported = wait + jitter;
            self.beliefs[node as usize] = Belief { sent: at, came, reported, wait: reported, passing };
            self.rank(node, came);
        }
        true
    }
}
