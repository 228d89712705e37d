//! Division of tasks by reported load, which section 6.2 of the paper proposes for unequal groups and does not
//! evaluate. Masters report their queue lengths, and schedulers fill the groups equally.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::task_scheduling::{GroupShare, Splitter};
use crate::base::{Rng, Span, Time};

/// Number of periods without a report after which a group is treated as idle. A master that has tasks reports in each
/// period. Its last report, which says that the group is idle, can be lost and is not repeated.
const SILENT: u64 = 3;

/// Resolution of the comparison of levels: number of parts into which a worker is divided.
const SCALE: u64 = 1 << 20;

/// Tasks of a group by the newest report, and tasks sent to the group since.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupLoad {
    reported: u32,
    /// Time of the newest report.
    at: Time,
    /// Tasks sent since the report, oldest first.
    sent: VecDeque<(Time, u32)>,
}

impl GroupLoad {
    /// Number of tasks in the group or on their way.
    pub(super) fn tasks(&self) -> u32 {
        self.reported.saturating_add(self.sent.iter().map(|(_, tasks)| tasks).sum())
    }

    /// Records that tasks are sent.
    pub(super) fn send(&mut self, tasks: u32, now: Time) {
        self.sent.push_back((now, tasks));
    }

    /// Records a master's report of its tasks as of `at`. Older reports change nothing.
    pub(super) fn report(&mut self, tasks: u32, at: Time) {
        if self.at < at {
            (self.reported, self.at) = (tasks, at);
            self.sent.retain(|(sent, _)| *sent > at);
        }
    }

    /// After three periods of `every` without a report, treats the group as idle except for the tasks sent since.
    pub(super) fn forget(&mut self, now: Time, every: Span) {
        let silence = Span(every.0.saturating_mul(SILENT));
        if now.since(self.at) > silence {
            self.reported = 0;
            self.sent.retain(|(sent, _)| sent.0 > now.0.saturating_sub(silence.0));
        }
    }
}

impl Splitter {
    /// Divides tasks so that the groups are filled as equally as possible. Each task goes to the group with the least
    /// load per worker, and adds to this load. `load` returns the numbers of tasks and workers of a group.
    pub(super) fn level(
        &mut self,
        tasks: usize,
        load: impl Fn(u32) -> (u32, u32),
        rng: &mut Rng,
    ) -> Vec<GroupShare> {
        self.shuffle(self.groups.len(), rng);
        let loads: Vec<_> = self.groups.iter().map(|&group| load(group)).collect();
        let level = |at: usize, more: usize| {
            let (tasks, workers) = loads[at];
            (u64::from(tasks) + more as u64) * SCALE / u64::from(workers.max(1))
        };
        let mut lens = vec![0; loads.len()];
        // Equal levels are served in the random order from above.
        let mut levels: BinaryHeap<_> = (0..lens.len()).map(|at| Reverse((level(at, 0), at))).collect();
        for _ in 0..tasks {
            let Some(mut least) = levels.peek_mut() else { break };
            let Reverse((_, at)) = *least;
            lens[at] += 1;
            *least = Reverse((level(at, lens[at]), at));
        }
        self.shares(|at| lens[at])
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::TaskSplit;
    use super::*;

    /// Two groups of 8 and 4 workers have room for 6 and 1 tasks; the second is nearly full.
    #[test]
    fn tasks_go_to_the_groups_with_free_workers() {
        let mut splitter = Splitter::new(TaskSplit::Blocks, 2);
        let mut rng = Rng::new(1, 2, 0);
        let lens = |tasks: usize, splitter: &mut Splitter, rng: &mut Rng| {
            let mut lens = [0, 0];
            for share in splitter.level(tasks, |group| [(2, 8), (3, 4)][group as usize], rng) {
                lens[share.group as usize] = share.len;
            }
            lens
        };
        assert_eq!(lens(4, &mut splitter, &mut rng), [4, 0]);
        assert_eq!(lens(7, &mut splitter, &mut rng), [6, 1], "both groups are full");
        assert_eq!(lens(19, &mut splitter, &mut rng), [14, 5], "the larger group has twice as many");
    }

    #[test]
    fn tasks_sent_after_a_report_are_added_to_its_count() {
        let mut load = GroupLoad::default();
        (1..=4).for_each(|t| load.send(10, Time(t * 100)));
        load.report(7, Time(250));
        assert_eq!(load.tasks(), 7 + 20);
        load.report(99, Time(240));
        assert_eq!(load.tasks(), 7 + 20, "an older report changes nothing");
        load.forget(Time(550), Span(100));
        assert_eq!(load.tasks(), 7 + 20, "fewer than three periods have passed");
        load.forget(Time(651), Span(100));
        assert_eq!(load.tasks(), 10, "the report that the group is idle was lost");
    }
}
