//! Task scheduling as in section 2.2 of the paper: the division of a job's tasks among the masters, a master's two
//! lists of idle workers, and its two queues under weighted fair queuing.
//!
//! The paper's high priority tasks are those of short jobs, its low priority tasks those of long jobs. Its high
//! priority workers are the reserved ones, which serve short tasks only.
//!
//! The paper leaves open which tasks a master gets, which of W tasks is the long one, and which idle worker gets a
//! task; the comments of the functions state our choices. One rule differs: while no unreserved worker of a group is
//! up, its reserved workers serve both queues (`Workers::is_reserved`), since long tasks would wait for ever.

use std::collections::VecDeque;

use super::config::{QueueWeight, TaskSplit};
use crate::base::{JobId, Rng};
use crate::machine::Effects;
use crate::message::{Assignment, Waiting};

/// Whether a job is short: one of the first class by the `cutoff` of the workload.
pub(super) fn is_short(job: JobId, fx: &Effects<'_>) -> bool {
    fx.catalog().class(job) == 0
}

// The scheduler's part.

/// A group, and the tasks of a job that its master gets: `len` tasks of a list, each `step` after its predecessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GroupShare {
    pub(super) group: u32,
    pub(super) base: usize,
    pub(super) len: usize,
    pub(super) step: usize,
}

/// The division of tasks among the masters.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    split: TaskSplit,
    /// The groups in use; draws shuffle them in place.
    pub(super) groups: Vec<u32>,
    /// `in-order`: position of the master at which the larger shares of the next job begin.
    next: usize,
}

impl Splitter {
    pub(super) fn new(split: TaskSplit, groups: u32) -> Self {
        Self { split, groups: (0..groups).collect(), next: 0 }
    }

    /// Uses these groups from now on, in ascending order.
    pub(super) fn set_groups(&mut self, groups: Vec<u32>) {
        (self.groups, self.next) = (groups, 0);
    }

    /// Divides F = `tasks` tasks among N_g masters: each gets S = ⌊F / N_g⌋ tasks, and r = F mod N_g of them one more.
    /// The paper draws the r masters at random. It does not say which tasks a master gets.
    pub(super) fn even(&mut self, tasks: usize, rng: &mut Rng) -> Vec<GroupShare> {
        let masters = self.groups.len();
        if masters == 0 {
            return Vec::new();
        }
        let (each, rest) = (tasks / masters, tasks % masters);
        let first_larger = match self.split {
            TaskSplit::Blocks if each > 0 => masters - rest,
            TaskSplit::Blocks | TaskSplit::RoundRobin => 0,
            TaskSplit::InOrder => self.next,
        };
        if self.split == TaskSplit::InOrder {
            self.next = (self.next + rest) % masters;
        } else {
            self.shuffle(tasks.min(masters), rng);
        }
        let larger = first_larger..first_larger + rest;
        self.shares(|at| each + usize::from(larger.contains(&at) || larger.contains(&(at + masters))))
    }

    /// The shares of these lengths: contiguous blocks of tasks, or every N_g-th task.
    pub(super) fn shares(&self, len: impl Fn(usize) -> usize) -> Vec<GroupShare> {
        let mut end = 0;
        let share = |(at, &group)| {
            let len = len(at);
            end += len;
            match self.split {
                TaskSplit::RoundRobin => GroupShare { group, base: at, len, step: self.groups.len() },
                TaskSplit::Blocks | TaskSplit::InOrder => GroupShare { group, base: end - len, len, step: 1 },
            }
        };
        (0..).zip(&self.groups).map(share).filter(|share| share.len > 0).collect()
    }

    /// Moves `count` random groups to the front.
    pub(super) fn shuffle(&mut self, count: usize, rng: &mut Rng) {
        for i in 0..count {
            let j = i + rng.below((self.groups.len() - i) as u32) as usize;
            self.groups.swap(i, j);
        }
    }
}

// The master's part.

/// The idle lists of reserved (high priority) and of unreserved (low priority) workers, each in order of idle time: the
/// longest idle worker is first.
#[derive(Clone, Debug, Default)]
pub(super) struct IdleWorkers {
    reserved: VecDeque<u32>,
    unreserved: VecDeque<u32>,
}

impl IdleWorkers {
    /// Adds a worker that became idle.
    pub(super) fn put(&mut self, core: u32, reserved: bool) {
        if reserved { self.reserved.push_back(core) } else { self.unreserved.push_back(core) }
    }

    /// Removes a worker for a task: an unreserved worker if one is idle, else for a short task a reserved one.
    pub(super) fn take(&mut self, short: bool) -> Option<u32> {
        self.unreserved.pop_front().or_else(|| if short { self.reserved.pop_front() } else { None })
    }

    /// Removes a worker that is not idle.
    pub(super) fn remove(&mut self, core: u32) {
        self.reserved.retain(|&other| other != core);
        self.unreserved.retain(|&other| other != core);
    }

    /// Removes all workers: unreserved ones first, then reserved ones.
    pub(super) fn remove_all(&mut self) -> Vec<u32> {
        self.unreserved.drain(..).chain(self.reserved.drain(..)).collect()
    }
}

/// The queue of short (high priority) tasks and the queue of long (low priority) tasks, each in the order of arrival.
#[derive(Clone, Debug)]
pub(super) struct TaskQueues {
    queues: [VecDeque<Waiting>; 2],
    /// W.
    weight: QueueWeight,
    /// Number of short tasks that unreserved workers got while long tasks waited, since the last long task.
    count: u32,
}

impl TaskQueues {
    pub(super) fn new(weight: QueueWeight) -> Self {
        Self { queues: Default::default(), weight, count: 0 }
    }

    /// The first waiting tasks of a class.
    pub(super) fn first(&self, short: bool) -> Option<&Waiting> {
        self.queues[usize::from(!short)].front()
    }

    pub(super) fn push(&mut self, short: bool, waiting: Waiting) {
        self.queues[usize::from(!short)].push_back(waiting);
    }

    /// The next task of a class.
    pub(super) fn pop(&mut self, short: bool) -> Option<Assignment> {
        let queue = &mut self.queues[usize::from(!short)];
        let head = queue.front_mut()?;
        let next = Assignment { copy: head.batch.take_first(), scheduler: head.scheduler };
        if head.batch.len == 0 {
            queue.pop_front();
        }
        Some(next)
    }

    /// The next task for a worker that became idle. A reserved worker serves the queue of short tasks. For the
    /// others, of every W tasks served while both queues hold tasks, the last one is long. The paper asks for at least
    /// one long task of every W, and says neither which nor that only these tasks count.
    pub(super) fn next(&mut self, reserved: bool) -> Option<Assignment> {
        if reserved {
            return self.pop(true);
        }
        let (short, long) = (self.first(true).is_some(), self.first(false).is_some());
        let turn = matches!(self.weight, QueueWeight::Tasks(weight) if self.count + 1 >= weight);
        let serve_short = short && !(long && turn);
        self.count = if serve_short && long { self.count.saturating_add(1) } else { 0 };
        self.pop(serve_short)
    }

    /// All waiting tasks: the short ones, then the long ones.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.queues.iter().flatten()
    }

    /// Drops the waiting tasks for which `keep` returns false.
    pub(super) fn retain(&mut self, keep: impl Fn(&Waiting) -> bool) {
        self.queues.iter_mut().for_each(|queue| queue.retain(&keep));
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::StrictPriority;
    use super::*;
    use crate::message::Batch;

    fn push(queues: &mut TaskQueues, job: u32, short: bool, len: u32) {
        let batch = Batch { job: JobId(job), base: 0, len, step: 1, attempt: 0 };
        queues.push(short, Waiting { scheduler: 0, batch });
    }

    /// Queues with many tasks of both classes.
    fn loaded(weight: QueueWeight) -> TaskQueues {
        let mut queues = TaskQueues::new(weight);
        push(&mut queues, 0, true, 1000);
        push(&mut queues, 1, false, 1000);
        queues
    }

    /// The numbers of short tasks before each long task, for idle unreserved workers.
    fn runs_of_short(queues: &mut TaskQueues, long: usize) -> Vec<u32> {
        let mut runs = vec![0];
        while runs.len() <= long {
            match queues.next(false).unwrap().copy.task.job {
                JobId(0) => *runs.last_mut().unwrap() += 1,
                _ => runs.push(0),
            }
        }
        runs.pop();
        runs
    }

    /// W − 1 short tasks run for each long task, by default 19 of 20.
    #[test]
    fn weights_divide_the_workers_exactly_between_the_classes() {
        let tasks = QueueWeight::Tasks;
        assert_eq!(runs_of_short(&mut loaded(tasks(20)), 5), [19; 5]);
        assert_eq!(runs_of_short(&mut loaded(tasks(2)), 5), [1; 5]);
        let mut strict = loaded(QueueWeight::Strict(StrictPriority::Strict));
        assert_eq!(runs_of_short(&mut strict, 1), [1000]);
    }

    /// Short tasks count towards W only while a long task waits, and only on unreserved workers.
    #[test]
    fn reserved_workers_run_no_long_task_and_do_not_count_towards_the_weight() {
        let mut queues = loaded(QueueWeight::Tasks(3));
        for _ in 0..10 {
            assert_eq!(queues.next(true).unwrap().copy.task.job, JobId(0));
        }
        assert_eq!(runs_of_short(&mut queues, 2), [2, 2]);
        while queues.pop(true).is_some() {}
        assert_eq!(queues.next(true), None);
        assert_eq!(queues.next(false).unwrap().copy.task.job, JobId(1));
    }

    #[test]
    fn short_tasks_do_not_count_towards_the_weight_while_no_long_one_waits() {
        let mut queues = TaskQueues::new(QueueWeight::Tasks(3));
        push(&mut queues, 0, true, 3);
        for _ in 0..3 {
            queues.next(false).unwrap();
        }
        assert_eq!(queues.next(false), None);
        push(&mut queues, 0, true, 100);
        push(&mut queues, 1, false, 100);
        assert_eq!(runs_of_short(&mut queues, 1), [2]);
    }

    /// The tasks that each group gets.
    fn dealt(splitter: &mut Splitter, groups: usize, tasks: u32, rng: &mut Rng) -> Vec<Vec<u32>> {
        let mut of = vec![Vec::new(); groups];
        for GroupShare { group, base, len, step } in splitter.even(tasks as usize, rng) {
            of[group as usize] = (base as u32..).step_by(step).take(len).collect();
        }
        let mut all: Vec<_> = of.iter().flatten().copied().collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..tasks), "each task is dealt once");
        of
    }

    /// 5,900 tasks over 30 masters are 196 or 197 for each, 50,000 over 200 are 250. If there are fewer tasks
    /// than masters, the tasks go to distinct masters.
    #[test]
    fn every_master_gets_the_rounded_down_share_and_distinct_masters_the_rest() {
        let mut rng = Rng::new(1, 2, 0);
        for split in [TaskSplit::Blocks, TaskSplit::RoundRobin, TaskSplit::InOrder] {
            for (tasks, groups) in [(5_900, 30), (50_000, 200), (7, 30), (30, 30), (1, 1), (9, 4), (3, 4)] {
                let mut splitter = Splitter::new(split, groups);
                for _ in 0..20 {
                    let of = dealt(&mut splitter, groups as usize, tasks, &mut rng);
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
    fn every_master_gets_a_larger_block_equally_often() {
        for split in [TaskSplit::Blocks, TaskSplit::RoundRobin, TaskSplit::InOrder] {
            let (mut splitter, mut rng) = (Splitter::new(split, 5), Rng::new(1, 2, 0));
            let mut larger = [0u32; 5];
            for _ in 0..5000 {
                for (group, tasks) in dealt(&mut splitter, 5, 12, &mut rng).iter().enumerate() {
                    larger[group] += u32::from(tasks.len() == 3);
                }
            }
            assert!(larger.iter().all(|&n| n.abs_diff(2000) < 150), "{split:?}: {larger:?}");
        }
    }
}
