//! The split of a job's tasks among groups.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::config::TaskSplit;
use crate::base::Rng;

/// Consecutive or equidistant positions of a list of tasks, and the group that gets them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GroupShare {
    pub(super) group: u32,
    pub(super) base: u32,
    pub(super) len: u32,
    pub(super) step: u32,
}

/// Splits tasks among groups.
#[derive(Debug)]
pub(super) struct Splitter {
    split: TaskSplit,
    /// The groups in use; draws shuffle it in place.
    groups: Vec<u32>,
    /// `in-order`: the position that gets the next larger block.
    next: usize,
    shares: Vec<GroupShare>,
}

impl Splitter {
    pub(super) fn new(split: TaskSplit, groups: u32) -> Self {
        Self { split, groups: (0..groups).collect(), next: 0, shares: Vec::new() }
    }

    /// Uses these groups from now on, in ascending order.
    pub(super) fn set_groups(&mut self, groups: impl Iterator<Item = u32>) {
        self.groups.clear();
        self.groups.extend(groups);
        self.next = 0;
    }

    /// Whether there is a group to use.
    pub(super) fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Splits `tasks` tasks evenly: each of N groups gets ⌊F/N⌋ of them, and F mod N groups one more.
    pub(super) fn even(&mut self, tasks: u32, rng: &mut Rng) -> &[GroupShare] {
        self.shares.clear();
        let count = self.groups.len() as u32;
        if count == 0 {
            return &self.shares;
        }
        let (each, more) = (tasks / count, tasks % count);
        if self.split == TaskSplit::InOrder {
            self.in_order(each, more as usize);
            return &self.shares;
        }
        let used = tasks.min(count);
        shuffle(&mut self.groups, used, rng);
        let mut base = 0;
        for (at, &group) in (0..used).zip(&self.groups) {
            let share = match self.split {
                TaskSplit::RoundRobin => {
                    GroupShare { group, base: at, len: each + u32::from(at < more), step: count }
                }
                TaskSplit::Blocks | TaskSplit::InOrder => {
                    let len = each + u32::from(each == 0 || at >= count - more);
                    GroupShare { group, base, len, step: 1 }
                }
            };
            base += share.len;
            self.shares.push(share);
        }
        &self.shares
    }

    fn in_order(&mut self, each: u32, more: usize) {
        let count = self.groups.len();
        let mut base = 0;
        for (at, &group) in self.groups.iter().enumerate() {
            let larger = (at + count - self.next) % count < more;
            let len = each + u32::from(larger);
            if len > 0 {
                self.shares.push(GroupShare { group, base, len, step: 1 });
            }
            base += len;
        }
        self.next = (self.next + more) % count;
    }

    /// Splits `tasks` tasks so that the groups are as equally filled as can be: each goes to the one with the least
    /// `load` per worker, and counts there. Groups get contiguous blocks.
    pub(super) fn level(
        &mut self,
        tasks: u32,
        workers: impl Fn(u32) -> u32,
        load: impl Fn(u32) -> u32,
        rng: &mut Rng,
    ) -> &[GroupShare] {
        let count = self.groups.len() as u32;
        shuffle(&mut self.groups, count, rng);
        self.shares.clear();
        let none = |&group: &u32| GroupShare { group, base: 0, len: 0, step: 1 };
        self.shares.extend(self.groups.iter().map(none));
        // Equal levels are served in the order drawn above.
        let level = |group, more| {
            (u64::from(load(group)) + u64::from(more)) * SCALE / u64::from(workers(group).max(1))
        };
        let mut levels: BinaryHeap<_> =
            (0..).zip(&self.groups).map(|(at, &group)| Reverse((level(group, 0), at))).collect();
        for _ in 0..tasks {
            let Some(mut least) = levels.peek_mut() else { break };
            let Reverse((_, at)) = *least;
            let share: &mut GroupShare = &mut self.shares[at as usize];
            share.len += 1;
            *least = Reverse((level(share.group, share.len), at));
        }
        drop(levels);
        let mut base = 0;
        for share in &mut self.shares {
            share.base = base;
            base += share.len;
        }
        self.shares.retain(|share| share.len > 0);
        &self.shares
    }
}

/// Levels are compared in these parts of a worker.
const SCALE: u64 = 1 << 20;

/// Draws the first `count` elements.
fn shuffle(list: &mut [u32], count: u32, rng: &mut Rng) {
    for i in 0..count as usize {
        let j = i + rng.below((list.len() - i) as u32) as usize;
        list.swap(i, j);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks of each group, in its order.
    fn dealt(shares: &[GroupShare], groups: u32, tasks: u32) -> Vec<Vec<u32>> {
        let mut of = vec![Vec::new(); groups as usize];
        for share in shares {
            let tasks = (0..share.len).map(|i| share.base + i * share.step);
            of[share.group as usize].extend(tasks);
        }
        let mut all: Vec<_> = of.iter().flatten().copied().collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..tasks), "each task once");
        of
    }

    /// O-P4: 5,900 tasks over 30 masters are 196 or 197 each, 50,000 over 200 are 250; fewer tasks than masters go to
    /// distinct ones.
    #[test]
    fn every_master_gets_the_floor_and_the_rest_go_to_distinct_ones() {
        let mut rng = Rng::new(1, 2, 0);
        for split in [TaskSplit::Blocks, TaskSplit::RoundRobin, TaskSplit::InOrder] {
            for (tasks, groups) in [(5_900, 30), (50_000, 200), (7, 30), (30, 30), (1, 1), (9, 4), (3, 4)] {
                let mut splitter = Splitter::new(split, groups);
                for _ in 0..20 {
                    let of = dealt(splitter.even(tasks, &mut rng), groups, tasks);
                    let larger = of.iter().filter(|of| of.len() as u32 == tasks / groups + 1).count();
                    let even = of.iter().all(|of| of.len() as u32 - tasks / groups <= 1);
                    assert!(even && larger as u32 == tasks % groups, "{split:?}: {tasks} over {groups}");
                    let contiguous = |of: &Vec<u32>| of.windows(2).all(|pair| pair[1] == pair[0] + 1);
                    assert!(split == TaskSplit::RoundRobin || of.iter().all(contiguous));
                }
            }
        }
    }

    #[test]
    fn larger_blocks_fall_evenly_on_all_masters() {
        for split in [TaskSplit::Blocks, TaskSplit::RoundRobin, TaskSplit::InOrder] {
            let (mut splitter, mut rng) = (Splitter::new(split, 5), Rng::new(1, 2, 0));
            let mut larger = [0u32; 5];
            for _ in 0..5000 {
                for (group, tasks) in dealt(splitter.even(12, &mut rng), 5, 12).iter().enumerate() {
                    larger[group] += u32::from(tasks.len() == 3);
                }
            }
            assert!(larger.iter().all(|&n| n.abs_diff(2000) < 150), "{split:?}: {larger:?}");
        }
    }

    /// Room of 6 and 1 workers in groups of 8 and 4, of which the second is nearly full.
    #[test]
    fn tasks_go_where_there_is_room() {
        let mut splitter = Splitter::new(TaskSplit::Blocks, 2);
        let mut rng = Rng::new(1, 2, 0);
        let lens = |tasks, splitter: &mut Splitter, rng: &mut Rng| {
            let load = |group| [2, 3][group as usize];
            let shares = splitter.level(tasks, |group| [8, 4][group as usize], load, rng);
            dealt(shares, 2, tasks).iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(lens(4, &mut splitter, &mut rng), [4, 0]);
        assert_eq!(lens(7, &mut splitter, &mut rng), [6, 1], "both are full");
        assert_eq!(lens(19, &mut splitter, &mut rng), [14, 5], "twice as many in the larger one");
    }
}
