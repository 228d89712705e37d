//! What a central scheduler reckons is ahead of a new task at every node: the estimates of the tasks it sent
//! there, less what those that run have done.

use std::collections::VecDeque;

use super::min_wait_index::MinWaitIndex;
use crate::base::{Rng, Span, TaskId, Time};
use crate::layout::Layout;

/// What a node with nothing to do is compared by: before all others.
const IDLE: i64 = i64::MIN / 2;

#[derive(Clone, Copy, Debug)]
struct Sent {
    task: TaskId,
    estimate: Span,
    /// When it began, as far as can be known from here; it has not if `None`.
    began: Option<Time>,
}

#[derive(Clone, Debug, Default)]
struct NodeBacklog {
    sent: VecDeque<Sent>,
    /// Sum of the estimates.
    work: Span,
}

impl NodeBacklog {
    /// The first tasks run, one on each core.
    fn begin(&mut self, cores: u32, now: Time) {
        for sent in self.sent.iter_mut().take(cores as usize) {
            sent.began = sent.began.or(Some(now));
        }
    }

    /// Work ahead of a new task, a core. What runs longer than was estimated counts as nothing.
    fn wait(&self, cores: u32, now: Time) -> Span {
        let done = |sent: &Sent| sent.began.map_or(Span::ZERO, |began| now.since(began).min(sent.estimate));
        let done = self.sent.iter().take(cores as usize).fold(Span::ZERO, |sum, sent| sum + done(sent));
        Span(self.work.saturating_sub(done).0 / u64::from(cores))
    }
}

/// The wait at some nodes, the least at hand.
///
/// Nodes are compared by when they will have worked off what they have, which stays the same while all goes as
/// estimated. When it does not, a node is believed better than it is until it comes first; it is then looked at
/// again before it is chosen.
#[derive(Debug)]
pub struct Backlogs {
    nodes: Vec<NodeBacklog>,
    cores: Vec<u32>,
    ends: MinWaitIndex,
}

impl Backlogs {
    /// The first `nodes` nodes, all idle.
    #[must_use]
    pub fn new(layout: &Layout, nodes: u32) -> Self {
        let mut ends = MinWaitIndex::new(nodes, Vec::new());
        (0..nodes).for_each(|node| ends.set(node, IDLE));
        let cores = (0..nodes).map(|node| layout.cores(node)).collect();
        Self { nodes: vec![NodeBacklog::default(); nodes as usize], cores, ends }
    }

    /// A node with the least wait, idle ones first, ties broken evenly; `None` if none is within reach.
    pub fn pick(&mut self, now: Time, rng: &mut Rng) -> Option<u32> {
        loop {
            let node = self.ends.pick(rng)?;
            let believed = self.ends.work(node);
            self.update(node, now);
            if self.ends.work(node) == believed {
                return Some(node);
            }
        }
    }

    /// A task was sent to a node.
    pub fn add(&mut self, node: u32, task: TaskId, estimate: Span, now: Time) {
        let backlog = &mut self.nodes[node as usize];
        backlog.sent.push_back(Sent { task, estimate, began: None });
        backlog.work += estimate;
        backlog.begin(self.cores[node as usize], now);
        self.update(node, now);
    }

    /// A task is not at a node any more. One that never was is ignored.
    pub fn remove(&mut self, node: u32, task: TaskId, now: Time) {
        let Some(backlog) = self.nodes.get_mut(node as usize) else { return };
        let Some(at) = backlog.sent.iter().position(|sent| sent.task == task) else { return };
        if let Some(sent) = backlog.sent.remove(at) {
            backlog.work = backlog.work.saturating_sub(sent.estimate);
        }
        backlog.begin(self.cores[node as usize], now);
        self.update(node, now);
    }

    /// A node lost all it had.
    pub fn clear(&mut self, node: u32) {
        if let Some(backlog) = self.nodes.get_mut(node as usize) {
            *backlog = NodeBacklog::default();
            self.ends.set(node, IDLE);
        }
    }

    /// Whether a node has nothing of ours.
    #[must_use]
    pub fn is_idle(&self, node: u32) -> bool {
        self.nodes.get(node as usize).is_none_or(|backlog| backlog.sent.is_empty())
    }

    /// Takes a node out of reach, or back.
    pub fn reach(&mut self, node: u32, can: bool) {
        if (node as usize) < self.nodes.len() {
            self.ends.reach(node, can);
        }
    }

    fn update(&mut self, node: u32, now: Time) {
        let backlog = &self.nodes[node as usize];
        let end = if backlog.sent.is_empty() {
            IDLE
        } else {
            let end = now + backlog.wait(self.cores[node as usize], now);
            i64::try_from(end.0).unwrap_or(i64::MAX)
        };
        self.ends.set(node, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::JobId;

    fn at(s: u64) -> Time {
        Time::ZERO + Span::from_secs(s)
    }

    fn task(index: u32) -> TaskId {
        JobId(0).task(index)
    }

    /// Estimates less what is done of the running one, never below nothing: a node that takes longer than
    /// estimated is as good as done, but not as good as idle.
    #[test]
    fn waits_are_estimates_less_what_is_done() {
        let layout = Layout::new(1, 0, [1, 1, 1]);
        let mut backlogs = Backlogs::new(&layout, 3);
        let mut rng = Rng::new(1, 1, 1);
        let mut best = |backlogs: &mut Backlogs, now| backlogs.pick(at(now), &mut rng);
        backlogs.add(0, task(0), Span::from_secs(4), at(0));
        backlogs.add(0, task(1), Span::from_secs(5), at(0));
        backlogs.add(1, task(2), Span::from_secs(10), at(0));
        assert_eq!(best(&mut backlogs, 1), Some(2), "idle");
        backlogs.reach(2, false);
        assert_eq!(best(&mut backlogs, 1), Some(0), "9 − 1 against 10 − 1");
        // The first task takes twice as long as estimated: 5 s are ahead at node 0 from second 4 on.
        assert_eq!(best(&mut backlogs, 6), Some(1), "5 against 10 − 6");
        backlogs.remove(0, task(0), at(8));
        assert_eq!(best(&mut backlogs, 8), Some(1), "5 against 10 − 8");
        backlogs.add(1, task(3), Span::from_secs(4), at(8));
        assert_eq!(best(&mut backlogs, 8), Some(0), "5 against 14 − 8");
        // Long overdue: nothing is ahead but what waits.
        assert_eq!(best(&mut backlogs, 100), Some(0), "0 against 4");
        backlogs.clear(1);
        assert_eq!(best(&mut backlogs, 100), Some(1), "idle before overdue");
        assert!(backlogs.is_idle(1) && !backlogs.is_idle(0));
    }

    #[test]
    fn cores_share_the_work() {
        let layout = Layout::new(1, 0, [2, 1]);
        let mut backlogs = Backlogs::new(&layout, 2);
        let mut rng = Rng::new(1, 1, 1);
        (0..4).for_each(|i| backlogs.add(0, task(i), Span::from_secs(2), at(0)));
        backlogs.add(1, task(9), Span::from_secs(5), at(0));
        assert_eq!(backlogs.pick(at(0), &mut rng), Some(0), "8 / 2 against 5");
        assert_eq!(backlogs.pick(at(1), &mut rng), Some(0), "(8 − 2) / 2 against 4");
        backlogs.add(0, task(4), Span::from_secs(3), at(1));
        assert_eq!(backlogs.pick(at(1), &mut rng), Some(1), "9 / 2 against 4");
    }
}
