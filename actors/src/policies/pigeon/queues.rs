//! The two queues of a master, and the rule by which an idle worker chooses between them.

use std::collections::VecDeque;

use super::config::{GroupWeight, Pigeon, WeightRule};
use crate::base::{CopyId, JobId};
use crate::message::{Batch, Mirror};

/// Tasks that wait, with the number of the scheduler that gets their results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiting {
    pub(super) scheduler: u32,
    pub(super) batch: Batch,
}

/// A copy taken from a queue, with the number of its scheduler.
pub(super) type Next = (CopyId, u32);

/// Queues of short and of long tasks, each in the order of arrival.
#[derive(Debug)]
pub(super) struct TaskQueues {
    short: VecDeque<Waiting>,
    long: VecDeque<Waiting>,
    /// Tasks in both.
    waiting: u32,
    weight: GroupWeight,
    rule: WeightRule,
    /// Short tasks since the last long one, as the rule counts them.
    count: u32,
    /// What a standby has not been told, if there is one.
    untold: Option<Vec<Mirror>>,
}

impl TaskQueues {
    pub(super) fn new(config: &Pigeon) -> Self {
        let Pigeon { weight, rule, .. } = *config;
        let (short, long) = (VecDeque::new(), VecDeque::new());
        Self { short, long, waiting: 0, weight, rule, count: 0, untold: None }
    }

    /// Tasks that wait.
    pub(super) const fn waiting(&self) -> u32 {
        self.waiting
    }

    pub(super) fn has(&self, short: bool) -> bool {
        !(if short { &self.short } else { &self.long }).is_empty()
    }

    fn of(&mut self, short: bool) -> &mut VecDeque<Waiting> {
        if short { &mut self.short } else { &mut self.long }
    }

    /// Appends tasks.
    pub(super) fn push(&mut self, short: bool, waiting: Waiting) {
        self.of(short).push_back(waiting);
        self.waiting += waiting.batch.len;
        self.log(Mirror::Queued { batch: waiting.batch, short, front: false });
    }

    /// Puts a task back that could not be sent.
    pub(super) fn push_front(&mut self, short: bool, waiting: Waiting) {
        self.of(short).push_front(waiting);
        self.waiting += waiting.batch.len;
        self.log(Mirror::Queued { batch: waiting.batch, short, front: true });
    }

    /// The next task of a class.
    pub(super) fn pop(&mut self, short: bool) -> Option<Next> {
        let queue = self.of(short);
        let head = queue.front_mut()?;
        let next = (head.batch.take_first(), head.scheduler);
        if head.batch.len == 0 {
            queue.pop_front();
        }
        self.waiting -= 1;
        self.log(Mirror::Served { short: short.into(), long: (!short).into() });
        Some(next)
    }

    /// The next task for an idle worker.
    pub(super) fn next(&mut self, reserved: bool) -> Option<Next> {
        let (short, long) = (self.has(true), self.has(false));
        if reserved {
            self.count += u32::from(short && self.rule == WeightRule::Released);
            return self.pop(true);
        }
        let turn = match (self.weight, self.rule) {
            (GroupWeight::Strict(_), _) => false,
            (GroupWeight::Tasks(weight), WeightRule::Paper) => self.count + 1 >= weight,
            (GroupWeight::Tasks(weight), WeightRule::Released) => self.count > weight,
        };
        let serve_short = short && !(long && turn);
        let counts = self.rule == WeightRule::Released || long;
        self.count = if serve_short && counts { self.count.saturating_add(1) } else { 0 };
        self.pop(serve_short)
    }

    /// Forgets the tasks of a scheduler.
    pub(super) fn forget(&mut self, scheduler: u32) {
        for queue in [&mut self.short, &mut self.long] {
            queue.retain(|waiting| waiting.scheduler != scheduler);
        }
        self.recount();
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.short.clear();
        self.long.clear();
        self.recount();
    }

    fn recount(&mut self) {
        self.waiting = self.short.iter().chain(&self.long).map(|waiting| waiting.batch.len).sum();
        if self.untold.is_some() {
            self.tell(true);
        }
    }

    /// Appends the indices of the tasks of a job that wait.
    pub(super) fn tasks_of(&self, job: JobId, out: &mut Vec<u32>) {
        let of = self.short.iter().chain(&self.long).filter(|waiting| waiting.batch.job == job);
        out.extend(of.flat_map(|waiting| waiting.batch.indices()));
    }

    /// The place of a job in the queues; behind all others if it has none.
    pub(super) fn place(&self, job: JobId) -> usize {
        let mut all = self.short.iter().chain(&self.long);
        all.position(|waiting| waiting.batch.job == job).unwrap_or(usize::MAX)
    }

    /// Begins to keep what a standby must be told, with all that waits now, or ends it.
    pub(super) fn tell(&mut self, standby: bool) {
        self.untold = standby.then(|| {
            let queued =
                |short| move |waiting: &Waiting| Mirror::Queued { batch: waiting.batch, short, front: false };
            let short = self.short.iter().map(queued(true));
            std::iter::once(Mirror::Reset).chain(short).chain(self.long.iter().map(queued(false))).collect()
        });
    }

    /// Begins to keep what a standby must be told that knows of nothing, while nothing waits.
    pub(super) fn tell_from_now(&mut self) {
        self.untold = Some(Vec::new());
    }

    fn log(&mut self, change: Mirror) {
        let Some(untold) = &mut self.untold else { return };
        if let (Some(Mirror::Served { short, long }), Mirror::Served { short: s, long: l }) =
            (untold.last_mut(), change)
        {
            *short += s;
            *long += l;
            return;
        }
        untold.push(change);
    }

    /// Whether a standby must be told something.
    pub(super) fn has_untold(&self) -> bool {
        self.untold.as_ref().is_some_and(|untold| !untold.is_empty())
    }

    /// What a standby must be told.
    pub(super) fn take_untold(&mut self) -> Vec<Mirror> {
        self.untold.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Follows a change of the queues of a master.
    pub(super) fn follow(&mut self, change: Mirror) {
        match change {
            Mirror::Reset => self.clear(),
            Mirror::Queued { batch, short, front } => {
                let waiting = Waiting { scheduler: 0, batch };
                if front { self.push_front(short, waiting) } else { self.push(short, waiting) }
            }
            Mirror::Served { short, long } => {
                self.skip(true, short);
                self.skip(false, long);
            }
        }
    }

    /// Drops so many tasks of a class; changes can arrive in another order, so there may be fewer.
    fn skip(&mut self, short: bool, count: u32) {
        let mut left = count;
        while left > 0
            && let Some(head) = self.of(short).front_mut()
        {
            let some = left.min(head.batch.len);
            left -= some;
            head.batch.len -= some;
            if head.batch.len > 0 {
                head.batch.base += some * head.batch.step;
            } else {
                self.of(short).pop_front();
            }
            self.waiting -= some;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues with many tasks of both classes.
    fn loaded(weight: GroupWeight, rule: WeightRule) -> TaskQueues {
        let mut queues = TaskQueues::new(&Pigeon { weight, rule, ..Pigeon::default() });
        for (job, short) in [(0, true), (1, false)] {
            let batch = Batch { job: JobId(job), base: 0, len: 1000, step: 1, attempt: 0 };
            queues.push(short, Waiting { scheduler: 0, batch });
        }
        queues
    }

    /// The short tasks before each long one, for idle unreserved workers.
    fn runs_of_short(queues: &mut TaskQueues, long: usize) -> Vec<u32> {
        let mut runs = vec![0];
        while runs.len() <= long {
            match queues.next(false).unwrap().0.task.job {
                JobId(0) => *runs.last_mut().unwrap() += 1,
                _ => runs.push(0),
            }
        }
        runs.pop();
        runs
    }

    /// O-P6: the paper's rule serves W − 1 short tasks for a long one, 19 of 20 by default; the authors' counter W + 1.
    #[test]
    fn weights_share_the_workers_exactly() {
        let tasks = GroupWeight::Tasks;
        assert_eq!(runs_of_short(&mut loaded(tasks(20), WeightRule::Paper), 5), [19; 5]);
        assert_eq!(runs_of_short(&mut loaded(tasks(2), WeightRule::Paper), 5), [1; 5]);
        assert_eq!(runs_of_short(&mut loaded(tasks(20), WeightRule::Released), 5), [21; 5]);
        let mut strict =
            loaded(GroupWeight::Strict(super::super::config::StrictPriority::Strict), WeightRule::Paper);
        assert_eq!(runs_of_short(&mut strict, 1), [1000]);
    }

    /// Short tasks count while a long one waits, and only those of unreserved workers.
    #[test]
    fn reserved_workers_do_not_count_and_run_no_long_task() {
        let mut queues = loaded(GroupWeight::Tasks(3), WeightRule::Paper);
        for _ in 0..10 {
            assert_eq!(queues.next(true).unwrap().0.task.job, JobId(0));
        }
        assert_eq!(runs_of_short(&mut queues, 2), [2, 2]);
        while queues.pop(true).is_some() {}
        assert_eq!(queues.next(true), None);
        assert_eq!(queues.next(false).unwrap().0.task.job, JobId(1));
        let mut released = loaded(GroupWeight::Tasks(3), WeightRule::Released);
        for _ in 0..3 {
            released.next(true);
        }
        assert_eq!(runs_of_short(&mut released, 2), [1, 4], "the authors' counter counts them");
    }

    #[test]
    fn a_standby_follows_the_queues() {
        let mut queues = loaded(GroupWeight::Tasks(3), WeightRule::Paper);
        queues.tell(true);
        let mut mirror = TaskQueues::new(&Pigeon::default());
        let copy = queues.next(false).unwrap().0;
        for _ in 0..7 {
            queues.next(false);
        }
        queues.push_front(true, Waiting { scheduler: 0, batch: Batch::single(copy) });
        queues.next(true);
        queues.take_untold().into_iter().for_each(|change| mirror.follow(change));
        assert_eq!(queues.take_untold(), []);
        assert_eq!((&mirror.short, &mirror.long), (&queues.short, &queues.long));
        queues.forget(0);
        queues.take_untold().into_iter().for_each(|change| mirror.follow(change));
        assert_eq!((mirror.waiting(), queues.waiting(), mirror.has(true)), (0, 0, false));
    }
}
