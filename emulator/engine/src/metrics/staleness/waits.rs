//! Waits at every node, from the remaining work of the tasks there.
//!
//! A node serves its tasks in the order that its scheduler states with each decision. Work is that of healthy cores:
//! interference, limits to how often a task is passed by others, and tasks that are placed later are not counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use volary_actors::base::{Span, TaskId, Time};
use volary_actors::layout::Layout;

/// The place of a task among those of its node. The task of least rank is served first, and tasks of equal rank are
/// served in the order of placement.
pub(super) type Rank = (u64, Time);

/// A task that waits at a node, or is on its way there.
#[derive(Clone, Copy, Debug)]
struct WaitingTask {
    rank: Rank,
    task: TaskId,
    work: Span,
}

#[derive(Debug)]
struct NodeTasks {
    cores: u32,
    up: bool,
    /// The running tasks, each with its end on a healthy core.
    running: Vec<(TaskId, Time)>,
    /// The waiting tasks, in the order of service.
    waiting: Vec<WaitingTask>,
}

/// The tasks of all nodes.
#[derive(Debug)]
pub(super) struct TrueWaits {
    nodes: Vec<NodeTasks>,
    /// Number of nodes that schedulers choose among, from node 0 on.
    choices: usize,
}

impl NodeTasks {
    fn remove(&mut self, task: TaskId) {
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.task == task) {
            self.waiting.remove(at);
        }
        self.running.retain(|(running, _)| *running != task);
    }

    /// The wait of a task of this rank; `None` if not less than `limit`.
    fn wait(&self, rank: Rank, now: Time, limit: Span) -> Option<Span> {
        let before = self.waiting.partition_point(|waiting| waiting.rank <= rank);
        let idle = (self.cores as usize).saturating_sub(self.running.len());
        if idle > before {
            return (limit > Span::ZERO).then_some(Span::ZERO);
        }
        let running = self.running.iter().map(|(_, end)| end.since(now));
        let mut free: BinaryHeap<_> =
            running.chain(std::iter::repeat_n(Span::ZERO, idle)).map(Reverse).collect();
        for waiting in &self.waiting[..before] {
            let mut first = free.peek_mut()?;
            if first.0 >= limit {
                return None;
            }
            first.0 += waiting.work;
        }
        free.peek().map(|first| first.0).filter(|wait| *wait < limit)
    }
}

impl TrueWaits {
    pub(super) fn new(layout: &Layout, choices: u32) -> Self {
        let node = |node| NodeTasks {
            cores: layout.cores(node),
            up: true,
            running: Vec::new(),
            waiting: Vec::new(),
        };
        Self { nodes: (0..layout.nodes()).map(node).collect(), choices: choices as usize }
    }

    /// A task is placed on a node, which its scheduler believes to be up.
    pub(super) fn placed(&mut self, node: u32, task: TaskId, rank: Rank, work: Span) {
        let tasks = &mut self.nodes[node as usize];
        tasks.up = true;
        let at = tasks.waiting.partition_point(|waiting| waiting.rank <= rank);
        tasks.waiting.insert(at, WaitingTask { rank, task, work });
    }

    /// A copy of a task starts on a node.
    pub(super) fn started(&mut self, now: Time, node: u32, task: TaskId, work: Span) {
        let tasks = &mut self.nodes[node as usize];
        tasks.remove(task);
        tasks.running.push((task, now + work));
    }

    /// A task is no longer at a node.
    pub(super) fn left(&mut self, node: u32, task: TaskId) {
        self.nodes[node as usize].remove(task);
    }

    /// A node crashes, with all its tasks. It cannot be chosen until a task is placed there again.
    pub(super) fn crashed(&mut self, node: u32) {
        let tasks = &mut self.nodes[node as usize];
        tasks.up = false;
        tasks.running.clear();
        tasks.waiting.clear();
    }

    /// The wait of a task of this rank at a node.
    pub(super) fn wait(&self, node: u32, rank: Rank, now: Time) -> Span {
        self.nodes[node as usize].wait(rank, now, Span::MAX).unwrap_or(Span::MAX)
    }

    /// The node where a task of this rank would wait least, and that wait, if it is less than `limit`.
    pub(super) fn least(&self, rank: Rank, now: Time, limit: Span) -> Option<(u32, Span)> {
        let mut least = None;
        let mut limit = limit;
        for (node, tasks) in (0..).zip(&self.nodes[..self.choices]).filter(|(_, tasks)| tasks.up) {
            if let Some(wait) = tasks.wait(rank, now, limit) {
                (least, limit) = (Some((node, wait)), wait);
            }
            if limit == Span::ZERO {
                break;
            }
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use volary_actors::base::JobId;

    use super::*;

    fn task(job: u32) -> TaskId {
        JobId(job).task(0)
    }

    fn second(s: u64) -> Time {
        Time::ZERO + Span::from_secs(s)
    }

    /// On one core a task waits for the rest of the running task and for tasks served before it, in order of placement
    /// or by rank.
    #[test]
    fn a_task_waits_for_the_tasks_served_before_it() {
        let mut waits = TrueWaits::new(&Layout::new(1, 0, [1, 1]), 2);
        for (job, rank) in [(0, 9), (1, 5), (2, 2)] {
            waits.placed(0, task(job), (rank, Time::ZERO), Span::from_secs(10 + u64::from(job)));
        }
        waits.started(second(1), 0, task(0), Span::from_secs(10));
        let wait = |rank: u64| waits.wait(0, (rank, Time::ZERO), second(4)).0 / 1_000_000_000;
        assert_eq!([1, 2, 5, 9].map(wait), [7, 19, 30, 30]);
        let limit = Span::from_secs(30);
        assert_eq!(waits.least((9, Time::ZERO), second(4), limit), Some((1, Span::ZERO)));
        waits.choices = 1;
        assert_eq!(waits.least((9, Time::ZERO), second(4), limit), None, "the idle node is no choice");
        waits.choices = 2;
        waits.crashed(1);
        assert_eq!(waits.least((9, Time::ZERO), second(4), limit), None);
        waits.left(0, task(1));
        assert_eq!(waits.wait(0, (9, Time::ZERO), second(40)), Span::from_secs(12), "it overran");
    }

    /// Each of two cores takes a waiting task as soon as the core is free.
    #[test]
    fn cores_share_the_waiting_tasks() {
        let mut waits = TrueWaits::new(&Layout::new(1, 0, [2]), 1);
        let rank = (0, Time::ZERO);
        waits.placed(0, task(0), rank, Span::from_secs(3));
        assert_eq!(waits.wait(0, rank, second(0)), Span::ZERO, "one core for each");
        for (job, seconds) in [(1, 9), (2, 4), (3, 5)] {
            waits.placed(0, task(job), rank, Span::from_secs(seconds));
        }
        // 3 and 9 at once, 4 after 3, 5 after 7: cores are free at 12 and 9.
        assert_eq!(waits.wait(0, rank, second(0)), Span::from_secs(9));
    }
}
