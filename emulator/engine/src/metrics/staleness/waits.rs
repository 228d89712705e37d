//! Waits at every node, from the remaining work of the tasks there.
//!
//! A node serves its tasks in the order that its scheduler states with each decision. Work is measured on healthy
//! cores. Interference, limits on how often a task is overtaken, and tasks that are placed later are left out.
//!
//! The least wait of all nodes is found without computing the wait at each. A table has lower bounds of the time at
//! which each node could start a task; bounds of nodes that changed are computed again before a search. A search
//! computes the wait at the nodes whose bound is below the least wait so far.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use volary_actors::base::{Span, TaskId, Time};
use volary_actors::layout::Layout;

/// The position of a task in the order of service of its node. The task of least rank is served first, and tasks of
/// equal rank are served in the order of placement.
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
    /// Work of all waiting tasks.
    work: Span,
}

/// The tasks of all nodes.
#[derive(Debug)]
pub(super) struct TrueWaits {
    nodes: Vec<NodeTasks>,
    bounds: Bounds,
}

/// Number of levels of [`Bounds`], which differ in the rank of the tasks that they apply to.
const LEVELS: usize = 8;

/// Lower bound of the first number of the ranks that a level applies to: 0 for level 0, 2²⁰ ns (a millisecond) for
/// level 1, and sixteen times more for each further level.
const fn threshold(level: usize) -> u64 {
    if level == 0 { 0 } else { 1 << (16 + 4 * level) }
}

/// Lower bounds of the time at which each node could start a task, ns.
#[derive(Debug)]
struct Bounds {
    /// By level and node: for tasks whose rank begins with at least the level's [`threshold`].
    levels: [Vec<u64>; LEVELS],
    /// For each node a rank, and a bound for tasks of this rank or a greater one. The rank is that of the node's last
    /// waiting task, or of the task for which a search last computed the wait there.
    known: Vec<(Rank, u64)>,
    /// Nodes whose bounds are outdated, each once.
    changed: Vec<u32>,
    is_changed: Vec<bool>,
}

impl Bounds {
    fn new(nodes: usize) -> Self {
        Self {
            levels: std::array::from_fn(|_| vec![0; nodes]),
            known: vec![((0, Time::ZERO), 0); nodes],
            changed: Vec::new(),
            is_changed: vec![false; nodes],
        }
    }

    /// Marks the bounds of a node as outdated. Nodes that schedulers cannot choose have no bounds.
    fn change(&mut self, node: u32) {
        if let Some(is_changed) = self.is_changed.get_mut(node as usize)
            && !std::mem::replace(is_changed, true)
        {
            self.changed.push(node);
        }
    }

    /// Computes the outdated bounds.
    fn update(&mut self, nodes: &[NodeTasks], now: Time) {
        for node in self.changed.drain(..) {
            let (at, tasks) = (node as usize, &nodes[node as usize]);
            self.is_changed[at] = false;
            let (levels, last) = if tasks.up { tasks.starts(now) } else { ([u64::MAX; LEVELS], u64::MAX) };
            self.levels.iter_mut().zip(levels).for_each(|(level, start)| level[at] = start);
            let greatest = tasks.waiting.last().map_or((0, Time::ZERO), |waiting| waiting.rank);
            self.known[at] = (greatest, last);
        }
    }

    /// The first node, from the node `from` on, with a bound below the instant `below` for a task of this rank.
    fn first(&self, rank: Rank, from: usize, below: u64) -> Option<usize> {
        self.of(rank, from).position(|bound| bound < below).map(|ahead| from + ahead)
    }

    /// The bounds of the nodes from `from` on, for a task of this rank.
    fn of(&self, rank: Rank, from: usize) -> impl Iterator<Item = u64> {
        let level = (1..LEVELS).take_while(|level| threshold(*level) <= rank.0).count();
        let nodes = self.levels[level][from..].iter().zip(&self.known[from..]);
        nodes.map(move |(level, (known, start))| if *known <= rank { *level.max(start) } else { *level })
    }
}

impl NodeTasks {
    fn remove(&mut self, task: TaskId) {
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.task == task) {
            self.work = self.work.saturating_sub(self.waiting.remove(at).work);
        }
        self.running.retain(|(running, _)| *running != task);
    }

    /// Times from which on a core is free, ns: for each level, after the waiting tasks whose rank begins below the
    /// level's threshold; and after all waiting tasks.
    fn starts(&self, now: Time) -> ([u64; LEVELS], u64) {
        let idle = (self.cores as usize).saturating_sub(self.running.len());
        let running = self.running.iter().map(|(_, end)| end.0.max(now.0));
        let mut free: BinaryHeap<_> = running.chain(std::iter::repeat_n(now.0, idle)).map(Reverse).collect();
        let mut first = free.peek().map_or(u64::MAX, |first| first.0);
        let (mut starts, mut level) = ([0; LEVELS], 0);
        for waiting in &self.waiting {
            while level < LEVELS && threshold(level) <= waiting.rank.0 {
                starts[level] = first;
                level += 1;
            }
            if let Some(mut next) = free.peek_mut() {
                next.0 = next.0.saturating_add(waiting.work.0);
            }
            first = free.peek().map_or(u64::MAX, |first| first.0);
        }
        starts[level..].fill(first);
        (starts, first)
    }

    /// The wait of a task of this rank.
    fn wait(&self, rank: Rank, now: Time) -> Span {
        let (before, after) = self.waiting.split_at(self.waiting.partition_point(|task| task.rank <= rank));
        let idle = (self.cores as usize).saturating_sub(self.running.len());
        let running = self.running.iter().map(|(_, end)| end.since(now));
        let mut free = running.chain(std::iter::repeat_n(Span::ZERO, idle));
        if self.cores == 1 && self.running.len() <= 1 {
            // Tasks run one after the other. The shorter part of the queue is summed.
            let sum = |tasks: &[WaitingTask]| tasks.iter().fold(Span::ZERO, |sum, task| sum + task.work);
            let is_early = before.len() <= after.len();
            let work = if is_early { sum(before) } else { self.work.saturating_sub(sum(after)) };
            return free.next().unwrap_or(Span::ZERO) + work;
        }
        let mut free: BinaryHeap<_> = free.map(Reverse).collect();
        for waiting in before {
            if let Some(mut first) = free.peek_mut() {
                first.0 += waiting.work;
            }
        }
        free.peek().map_or(Span::MAX, |first| first.0)
    }
}

impl TrueWaits {
    pub(super) fn new(layout: &Layout, choices: u32) -> Self {
        let node = |node| NodeTasks {
            cores: layout.cores(node),
            up: true,
            running: Vec::new(),
            waiting: Vec::new(),
            work: Span::ZERO,
        };
        Self { nodes: (0..layout.nodes()).map(node).collect(), bounds: Bounds::new(choices as usize) }
    }

    /// The tasks of a node, which are about to change.
    fn change(&mut self, node: u32) -> &mut NodeTasks {
        self.bounds.change(node);
        &mut self.nodes[node as usize]
    }

    /// A task is placed on a node, which its scheduler believes to be up.
    pub(super) fn placed(&mut self, node: u32, task: TaskId, rank: Rank, work: Span) {
        let tasks = self.change(node);
        tasks.up = true;
        let at = tasks.waiting.partition_point(|waiting| waiting.rank <= rank);
        tasks.waiting.insert(at, WaitingTask { rank, task, work });
        tasks.work += work;
    }

    /// A copy of a task starts on a node.
    pub(super) fn started(&mut self, now: Time, node: u32, task: TaskId, work: Span) {
        let tasks = self.change(node);
        tasks.remove(task);
        tasks.running.push((task, now + work));
    }

    /// A task is no longer at a node.
    pub(super) fn left(&mut self, node: u32, task: TaskId) {
        self.change(node).remove(task);
    }

    /// A node crashes, with all its tasks. It cannot be chosen until a task is placed there again.
    pub(super) fn crashed(&mut self, node: u32) {
        let tasks = self.change(node);
        tasks.up = false;
        tasks.running.clear();
        tasks.waiting.clear();
        tasks.work = Span::ZERO;
    }

    /// The wait of a task of this rank at a node.
    pub(super) fn wait(&self, node: u32, rank: Rank, now: Time) -> Span {
        self.nodes[node as usize].wait(rank, now)
    }

    /// Computes the wait of a task of this rank at a node, and keeps it as a bound until the node changes.
    fn search(&mut self, node: usize, rank: Rank, now: Time) -> Span {
        let wait = self.nodes[node].wait(rank, now);
        self.bounds.known[node] = (rank, (now + wait).0);
        wait
    }

    /// The first of the nodes where a task of this rank would wait least, and that wait, if it is less than `limit`.
    pub(super) fn least(&mut self, rank: Rank, now: Time, mut limit: Span) -> Option<(u32, Span)> {
        if limit == Span::ZERO {
            return None;
        }
        self.bounds.update(&self.nodes, now);
        // In a cluster that is not full, a node where the task need not wait is found at once.
        if let Some(node) = self.bounds.first(rank, 0, now.0.saturating_add(1))
            && self.nodes[node].wait(rank, now) == Span::ZERO
        {
            return Some((node as u32, Span::ZERO));
        }
        // The wait at the node with the least bound is a good limit. An equal wait may be found at an earlier node.
        let (_, likely) = self.bounds.of(rank, 0).zip(0..).min()?;
        limit = limit.min(self.search(likely, rank, now) + Span(1));
        let (mut best, mut from) = (None, 0);
        while limit > Span::ZERO
            && let Some(node) = self.bounds.first(rank, from, (now + limit).0)
        {
            let wait = self.search(node, rank, now);
            if wait < limit {
                (best, limit) = (Some((node as u32, wait)), wait);
            }
            from = node + 1;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
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
        let mut few = TrueWaits::new(&Layout::new(1, 0, [1, 1]), 1);
        few.placed(0, task(0), (9, Time::ZERO), Span::from_secs(30));
        let limit = Span::from_secs(30);
        assert_eq!(few.least((9, Time::ZERO), second(0), limit), None, "the idle node is no choice");
        for (job, rank) in [(0, 9), (1, 5), (2, 2)] {
            waits.placed(0, task(job), (rank, Time::ZERO), Span::from_secs(10 + u64::from(job)));
        }
        waits.started(second(1), 0, task(0), Span::from_secs(10));
        let wait = |rank: u64| waits.wait(0, (rank, Time::ZERO), second(4)).0 / 1_000_000_000;
        assert_eq!([1, 2, 5, 9].map(wait), [7, 19, 30, 30]);
        assert_eq!(waits.least((9, Time::ZERO), second(4), limit), Some((1, Span::ZERO)));
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

    proptest! {
        /// The search by bounds finds the same node and wait as computing the wait at each node.
        #[test]
        fn the_bounded_search_finds_the_least_wait_of_all_nodes(
            cores in prop::collection::vec(1..3u32, 1..6),
            steps in prop::collection::vec((0..8u8, 0..6u32, 0..40u32, 0..5u64, 0..30u64), 1..80),
        ) {
            let nodes = cores.len() as u32;
            let mut waits = TrueWaits::new(&Layout::new(1, 0, cores), nodes);
            let mut now = Time::ZERO;
            for (kind, node, job, seconds, exponent) in steps {
                let (node, work) = (node % nodes, Span::from_millis(100 + 900 * seconds));
                let rank = (if exponent == 0 { 0 } else { 1 << (exponent + 16) }, Time(u64::from(job)));
                match kind {
                    0..=3 => waits.placed(node, task(job), rank, work),
                    4 => waits.started(now, node, task(job), work),
                    5 => waits.left(node, task(job)),
                    6 if exponent == 0 => waits.crashed(node),
                    _ => now += Span::from_millis(500 * seconds),
                }
                for tasks in &waits.nodes {
                    let sum = |tasks: &[WaitingTask]| tasks.iter().fold(Span::ZERO, |sum, task| sum + task.work);
                    prop_assert_eq!(tasks.work, sum(&tasks.waiting));
                    if let (1, [] | [_]) = (tasks.cores, &*tasks.running) {
                        let before = tasks.waiting.iter().filter(|task| task.rank <= rank);
                        let rest = tasks.running.iter().map(|(_, end)| end.since(now));
                        let wait = rest.chain(before.map(|task| task.work)).fold(Span::ZERO, |sum, work| sum + work);
                        prop_assert_eq!(tasks.wait(rank, now), wait);
                    }
                }
                for limit in [Span::MAX, work] {
                    let mut best = None;
                    for (node, tasks) in (0..).zip(&waits.nodes).filter(|(_, tasks)| tasks.up) {
                        let below = best.map_or(limit, |(_, wait)| wait);
                        best = Some((node, tasks.wait(rank, now))).filter(|(_, wait)| *wait < below).or(best);
                    }
                    prop_assert_eq!(waits.least(rank, now, limit), best);
                }
            }
        }
    }
}
