//! The expected utility of a placement (thesis, section 5.2.1).

use super::load::{NodeLoad, TaskUse};
use super::placement::PlacementView;

/// Steps between the least part of the CPU that a throttled task can get and all of it.
const LEVELS: u32 = 8;

/// The least CPU that a task is expected to use, cores: none would take for ever.
pub(super) const LEAST_CPU: f64 = 0.001;

/// Tasks of a job on a node.
#[derive(Clone, Copy)]
struct NodeShare<'a> {
    node: &'a NodeLoad,
    copies: u32,
}

/// The expected utility of a placement, if every node is given one task for each time that it occurs among `chosen`:
/// the probability that none of them is evicted times the expected utility of the time of the last one (equation 5.3).
/// `utility` returns that of a job whose last task takes this many seconds per core-second of work.
pub(super) fn expected(
    view: &PlacementView<'_>,
    chosen: &[u32],
    tasks: &TaskUse,
    utility: impl Fn(f64) -> f64,
) -> f64 {
    let mut sorted = chosen.to_vec();
    sorted.sort_unstable();
    let share = |group: &[u32]| {
        let (node, own) = view.node(group[0]);
        NodeShare { node, copies: own + group.len() as u32 }
    };
    let shares: Vec<_> = sorted.chunk_by(|a, b| a == b).map(share).collect();
    let stays: f64 = shares.iter().map(|share| share.stays(tasks)).product();
    let in_time: f64 = tasks
        .cpu
        .pieces()
        .iter()
        .map(|piece| piece.mass * given_cpu(&shares, piece.middle(), tasks, &utility))
        .sum();
    // A job that will surely be evicted is still launched if nothing else is.
    stays.max(f64::MIN_POSITIVE) * in_time
}

/// The expected utility if each task demands `cpu` cores: the tasks of a job have the same use, and the other loads of
/// different nodes are independent.
///
/// The part of its CPU that a task gets lies between its share of the node and all. It is rounded down to one of a few
/// levels from the least share on any of the nodes up to 1; both ends are exact.
fn given_cpu(shares: &[NodeShare<'_>], cpu: f64, tasks: &TaskUse, utility: &impl Fn(f64) -> f64) -> f64 {
    let cpu = cpu.max(LEAST_CPU);
    let least = shares.iter().map(|share| share.entitled(cpu, tasks.request)).fold(1.0, f64::min);
    let at = |part: f64| utility(1.0 / (cpu * part));
    // The probability that every task gets a part of its CPU, or more.
    let all = |part: f64| shares.iter().map(|share| share.gets(cpu, part, tasks.request)).product::<f64>();
    let unthrottled = all(1.0);
    if least >= 1.0 || unthrottled >= 1.0 {
        return at(1.0);
    }
    let (mut expected, mut reached, mut from) = (0.0, 1.0, least);
    for level in 1..=LEVELS {
        let to = least + (1.0 - least) * f64::from(level) / f64::from(LEVELS);
        let more = if level == LEVELS { unthrottled } else { all(to) };
        expected += (reached - more) * at(from);
        (reached, from) = (more, to);
    }
    expected + reached * at(1.0)
}

impl NodeShare<'_> {
    /// The probability that the node's memory suffices (equation 5.1).
    fn stays(&self, tasks: &TaskUse) -> f64 {
        let Self { node, copies } = *self;
        let over = node.memory.over((&tasks.memory, copies), node.room.memory, f64::INFINITY);
        1.0 - over.unwrap_or(1.0)
    }

    /// The part of `cpu` cores that each task gets whatever the others use: its share of the node by requests.
    fn entitled(&self, cpu: f64, request: f64) -> f64 {
        let own = request * f64::from(self.copies);
        let all = self.node.requests + own;
        let share = if all > 0.0 { own / all } else { 1.0 };
        self.node.room.cpu * share / (cpu * f64::from(self.copies))
    }

    /// The probability that each task gets this part of `cpu` cores, or more: it is entitled to it, or the others leave
    /// as much idle.
    fn gets(&self, cpu: f64, part: f64, request: f64) -> f64 {
        let Self { node, copies } = *self;
        if part <= self.entitled(cpu, request) {
            return 1.0;
        }
        1.0 - node.cpu.above(node.room.cpu - cpu * part * f64::from(copies))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::load::tests::{certain, idle, of};
    use super::*;
    use crate::base::JobId;
    use crate::predict::Distribution;

    fn expected(nodes: &[NodeLoad], chosen: &[u32], tasks: &TaskUse, utility: impl Fn(f64) -> f64) -> f64 {
        super::expected(&PlacementView::new(nodes, JobId(99), &[], &[]), chosen, tasks, utility)
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    /// Tasks of 10 core-seconds, worth the time of the last one.
    fn time(seconds: f64) -> f64 {
        10.0 * seconds
    }

    /// The three rules for the CPU of a task, on a node of 8 cores of which 6 have been requested for others.
    #[test]
    fn the_cpu_of_a_task_depends_on_the_use_of_others() {
        let of = |others: f64, cpu: f64| {
            let mut loads = idle(&[(8.0, 16.0)]);
            let use_of_others = TaskUse { request: 6.0, ..(*certain(others, 1.0)).clone() };
            loads.add(JobId(0), &[0], &Arc::new(use_of_others));
            let tasks = TaskUse { request: 2.0, ..(*certain(cpu, 1.0)).clone() };
            10.0 / expected(loads.nodes(), &[0], &tasks, time)
        };
        close(of(7.9, 2.0), 2.0);
        close(of(7.0, 4.0), 2.0);
        close(of(2.0, 4.0), 4.0);
        close(of(1.0, 20.0), 6.5); // 7 cores are left: 0.35 of 20, rounded down to 0.1 + 2 / 8 × 0.9
    }

    /// Two nodes with tasks that use 2 or 7 of 8 cores, by half; a task on each, or both on one.
    #[test]
    fn the_last_task_decides_the_utility() {
        let mut loads = idle(&[(8.0, 16.0), (8.0, 16.0), (8.0, 16.0)]);
        let unsure =
            TaskUse { cpu: of(&[(2.0, 0.5), (7.0, 0.5)]), memory: Distribution::point(1.0), request: 4.0 };
        let unsure = Arc::new(unsure);
        loads.add(JobId(0), &[0, 1], &unsure);
        let tasks = TaskUse { request: 1.0, ..(*certain(4.0, 1.0)).clone() };
        // Entitled to 8 × 1 / 5 = 1.6 of 4 cores.
        close(expected(loads.nodes(), &[0], &tasks, time), 0.5 * 10.0 / 4.0 + 0.5 * 10.0 / 1.6);
        close(expected(loads.nodes(), &[0, 1], &tasks, time), 0.25 * 10.0 / 4.0 + 0.75 * 10.0 / 1.6);
        close(expected(loads.nodes(), &[0, 2], &tasks, time), 0.5 * 10.0 / 4.0 + 0.5 * 10.0 / 1.6);
        close(expected(loads.nodes(), &[2, 2], &tasks, time), 10.0 / 4.0);
    }

    /// The memory of two tasks is 2 × 4 or 2 × 8 on a node with 10 of 16 left.
    #[test]
    fn evicted_jobs_are_worth_nothing() {
        let mut loads = idle(&[(8.0, 16.0), (8.0, 16.0)]);
        loads.add(JobId(0), &[0], &certain(1.0, 6.0));
        let memory = of(&[(4.0, 0.75), (8.0, 0.25)]);
        let tasks = TaskUse { cpu: Distribution::point(1.0), memory, request: 1.0 };
        let worth = |chosen: &[u32]| expected(loads.nodes(), chosen, &tasks, |_| 1.0);
        close(worth(&[0]), 1.0);
        close(worth(&[0, 0]), 0.75);
        close(worth(&[0, 1, 0, 1, 1]), 0.75 * 0.75);
        close(worth(&[1, 1]), 1.0);
    }

    /// The CPU that others leave varies: equal to the enumeration of all cases, with the CPU rounded down to the
    /// levels, and without.
    #[test]
    fn utilities_are_those_of_an_enumeration() {
        let others = of(&[(0.0, 0.1), (2.0, 0.2), (4.0, 0.3), (5.0, 0.2), (6.0, 0.1), (7.0, 0.1)]);
        let mut loads = idle(&[(8.0, 16.0), (8.0, 16.0)]);
        let load = TaskUse { cpu: others.clone(), memory: Distribution::point(1.0), request: 6.0 };
        loads.add(JobId(0), &[0, 1], &Arc::new(load));
        let cpu = of(&[(1.0, 0.4), (4.0, 0.3), (6.0, 0.3)]);
        let tasks = TaskUse { cpu, memory: Distribution::point(1.0), request: 2.0 };
        let utility = |seconds: f64| (1.0 - time(seconds) / 6.0).max(0.0);
        let found = expected(loads.nodes(), &[0, 1], &tasks, utility);
        let enumerated = |round: &dyn Fn(f64, f64) -> f64| {
            let mut sum = 0.0;
            for piece in tasks.cpu.pieces() {
                let cpu = piece.low;
                for a in others.pieces() {
                    for b in others.pieces() {
                        let part = |used: f64| (2.0_f64.max(8.0 - used) / cpu).min(1.0);
                        let least = (2.0 / cpu).min(1.0);
                        let part = round(part(a.low.max(b.low)), least);
                        sum += piece.mass * a.mass * b.mass * utility(1.0 / (cpu * part));
                    }
                }
            }
            sum
        };
        let down = |part: f64, least: f64| {
            let level =
                if least < 1.0 { ((part - least) / (1.0 - least) * 8.0 + 1e-9).floor() / 8.0 } else { 1.0 };
            least + (1.0 - least) * level
        };
        close(found, enumerated(&down));
        let exact = enumerated(&|part, _| part);
        assert!(found <= exact && exact - found < 0.05, "{found} {exact}");
    }
}
