//! A central scheduler's estimate of the work ahead of a new task at every node: the estimates of the tasks sent to the
//! node, less the done part of running tasks.

use std::collections::VecDeque;

use super::min_wait_index::MinWaitIndex;
use crate::base::{Rng, Span, TaskId, Time};
use crate::layout::Layout;

/// The key of an idle node, which precedes all other keys.
const IDLE: i64 = i64::MIN / 2;

#[derive(Clone, Copy, Debug)]
struct Sent {
    task: TaskId,
    estimate: Span,
    /// Time at which the task began, as far as this scheduler can tell; `None` if it has not begun.
    began: Option<Time>,
}

#[derive(Clone, Debug, Default)]
struct NodeBacklog {
    sent: VecDeque<Sent>,
    /// Sum of the estimates of the node's tasks.
    work: Span,
}

impl NodeBacklog {
    /// Marks the first tasks, one per core, as running.
    fn begin(&mut self, cores: u32, now: Time) {
        for sent in self.sent.iter_mut().take(cores as usize) {
            sent.began = sent.began.or(Some(now));
        }
    }

    /// Time at which the work ahead of a new task will be done. A task that has overrun its estimate adds no work.
    fn end(&self, cores: u32, now: Time) -> i64 {
        if self.sent.is_empty() {
            return IDLE;
        }
        let done = |sent: &Sent| sent.began.map_or(Span::ZERO, |began| now.since(began).min(sent.estimate));
        let done = self.sent.iter().take(cores as usize).fold(Span::ZERO, |sum, sent| sum + done(sent));
        let wait = Span(self.work.saturating_sub(done).0 / u64::from(cores));
        i64::try_from((now + wait).0).unwrap_or(i64::MAX)
    }
}

/// The estimated wait at each node, with a fast query of the minimum.
///
/// The key of a node is its expected finish time, which stays constant while tasks take as long as estimated. If a task
/// overruns, the key is too low. It is recomputed when the node comes first, before the node is chosen.
#[derive(Clone, Debug)]
pub struct Backlogs {
    nodes: Vec<NodeBacklog>,
    cores: Vec<u32>,
    ends: MinWaitIndex,
}

impl Backlogs {
    /// An index of all nodes of a layout, all of them idle.
    pub fn new(layout: &Layout) -> Self {
        let nodes = layout.nodes();
        let mut ends = MinWaitIndex::new(nodes, Vec::new());
        (0..nodes).for_each(|node| ends.set(node, IDLE));
        let cores = (0..nodes).map(|node| layout.cores(node)).collect();
        Self { nodes: vec![NodeBacklog::default(); nodes as usize], cores, ends }
    }

    /// A node with the least wait, idle nodes first, ties broken evenly; `None` if no node is reachable.
    pub fn pick(&mut self, now: Time, rng: &mut Rng) -> Option<u32> {
        let (nodes, cores) = (&self.nodes, &self.cores);
        self.ends
            .pick_updated(|ends| ends.pick(rng), |node| nodes[node as usize].end(cores[node as usize], now))
    }

    /// Adds a task that was sent to a node.
    pub fn add(&mut self, node: u32, task: TaskId, estimate: Span, now: Time) {
        let backlog = &mut self.nodes[node as usize];
        backlog.sent.push_back(Sent { task, estimate, began: None });
        backlog.work += estimate;
        backlog.begin(self.cores[node as usize], now);
        self.update(node, now);
    }

    /// Removes a task from a node; ignored if the node does not have the task.
    pub fn remove(&mut self, node: u32, task: TaskId, now: Time) {
        let backlog = &mut self.nodes[node as usize];
        let Some(at) = backlog.sent.iter().position(|sent| sent.task == task) else { return };
        if let Some(sent) = backlog.sent.remove(at) {
            backlog.work = backlog.work.saturating_sub(sent.estimate);
        }
        backlog.begin(self.cores[node as usize], now);
        self.update(node, now);
    }

    /// Removes all tasks of a node.
    pub fn clear(&mut self, node: u32) {
        self.nodes[node as usize] = NodeBacklog::default();
        self.ends.set(node, IDLE);
    }

    /// Whether a node has no task of this scheduler.
    pub fn is_idle(&self, node: u32) -> bool {
        self.nodes[node as usize].sent.is_empty()
    }

    /// Excludes a node from the choice, or readmits it.
    pub fn reach(&mut self, node: u32, can: bool) {
        self.ends.reach(node, can);
    }

    fn update(&mut self, node: u32, now: Time) {
        let end = self.nodes[node as usize].end(self.cores[node as usize], now);
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

    /// Waits are estimates less the done part of the running task, never below zero. A node with an overdue task has no
    /// wait, but is not idle.
    #[test]
    fn waits_are_estimates_minus_the_done_part_of_running_tasks() {
        let layout = Layout::new(1, 0, [1, 1, 1]);
        let mut backlogs = Backlogs::new(&layout);
        let mut rng = Rng::new(1, 1, 1);
        let mut best = |backlogs: &mut Backlogs, now| backlogs.pick(at(now), &mut rng);
        backlogs.add(0, task(0), Span::from_secs(4), at(0));
        backlogs.add(0, task(1), Span::from_secs(5), at(0));
        backlogs.add(1, task(2), Span::from_secs(10), at(0));
        assert_eq!(best(&mut backlogs, 1), Some(2), "node 2 is idle");
        backlogs.reach(2, false);
        assert_eq!(best(&mut backlogs, 1), Some(0), "waits are 9 − 1 and 10 − 1");
        // The first task takes twice as long as estimated, so 5 s are ahead at node 0 from second 4 on.
        assert_eq!(best(&mut backlogs, 6), Some(1), "waits are 5 and 10 − 6");
        backlogs.remove(0, task(0), at(8));
        assert_eq!(best(&mut backlogs, 8), Some(1), "waits are 5 and 10 − 8");
        backlogs.add(1, task(3), Span::from_secs(4), at(8));
        assert_eq!(best(&mut backlogs, 8), Some(0), "waits are 5 and 14 − 8");
        // The running tasks are long overdue, so only waiting tasks are ahead.
        assert_eq!(best(&mut backlogs, 100), Some(0), "waits are 0 and 4");
        backlogs.clear(1);
        assert_eq!(best(&mut backlogs, 100), Some(1), "an idle node comes before an overdue one");
        assert!(backlogs.is_idle(1) && !backlogs.is_idle(0));
    }

    #[test]
    fn waits_are_divided_by_the_number_of_cores() {
        let layout = Layout::new(1, 0, [2, 1]);
        let mut backlogs = Backlogs::new(&layout);
        let mut rng = Rng::new(1, 1, 1);
        (0..4).for_each(|i| backlogs.add(0, task(i), Span::from_secs(2), at(0)));
        backlogs.add(1, task(9), Span::from_secs(5), at(0));
        assert_eq!(backlogs.pick(at(0), &mut rng), Some(0), "waits are 8 / 2 and 5");
        assert_eq!(backlogs.pick(at(1), &mut rng), Some(0), "waits are (8 − 2) / 2 and 4");
        backlogs.add(0, task(4), Span::from_secs(3), at(1));
        assert_eq!(backlogs.pick(at(1), &mut rng), Some(1), "waits are 9 / 2 and 4");
    }
}
