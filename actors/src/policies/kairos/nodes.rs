//! The nodes as the central scheduler knows them, by the number of their copies.

use super::config::{Kairos, KairosPass, KairosPick};
use crate::base::{CopyId, Rng, Time};
use crate::layout::Layout;
use crate::roles::min_wait_index::MinWaitIndex;

/// A node.
#[derive(Clone, Debug)]
struct DealtNode {
    /// Copies dealt to it that are not known to have ended, and when; never more than it may hold.
    copies: Vec<(CopyId, Time)>,
    /// What it last reported: its copies, the sum of what they had attained, ms, and its standard deviation.
    report: (u32, u32, u32),
    /// When that was sent.
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

    /// How many copies it has: those of its last report and those dealt since, of which some may have ended.
    fn count(&self) -> u32 {
        self.report.0.saturating_add(self.since()).min(self.copies.len() as u32)
    }

    /// What distinguishes it among nodes of equal count. Copies dealt since its last report have attained nothing.
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
    /// Nodes that have got theirs.
    served: Vec<u32>,
    nodes: Vec<DealtNode>,
    /// Those with room, by count less cores, then by measure.
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
    /// such copies, and so on. Copies of before the report are in it; those of its very instant cannot be.
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
    fn a_report_replaces_the_count_and_adds_what_was_dealt_since() {
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
    fn free_cores_come_first_and_lost_nodes_not_at_all() {
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
