//! The queues and workers of a master: two queues, the rule by which an idle worker chooses between them, and the state
//! of the workers of the group, with the idle workers in order of idle time.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::config::{GroupWeight, Pigeon};
use super::groups::WorkerGroups;
use crate::base::{CopyId, JobId, is_same_submission};
use crate::layout::Layout;
use crate::message::{Batch, Mirror, Turn};

/// Waiting tasks, with the number of the scheduler that gets their results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiting {
    pub(super) scheduler: u32,
    pub(super) batch: Batch,
}

impl Waiting {
    /// Whether both batches belong to the same submission of a job to one scheduler.
    pub(super) fn has_same_submission(self, other: Self) -> bool {
        self.batch.job == other.batch.job
            && self.scheduler == other.scheduler
            && is_same_submission(self.batch.attempt, other.batch.attempt)
    }
}

/// A copy taken from a queue, with the number of its scheduler.
pub(super) type Next = (CopyId, u32);

/// Queues of short and of long tasks, each in the order of arrival.
#[derive(Clone, Debug)]
pub(super) struct TaskQueues {
    short: VecDeque<Waiting>,
    long: VecDeque<Waiting>,
    /// Number of tasks in both queues.
    waiting: u32,
    weight: GroupWeight,
    /// Number of short tasks given to unreserved workers since the last long task, while long tasks waited.
    count: u32,
    /// Changes that have not been sent to the standby; `None` without a standby.
    unsent: Option<Vec<Mirror>>,
    /// In a standby's copy: number of short and of long tasks whose service arrived before their queueing.
    owed: [u32; 2],
}

impl TaskQueues {
    pub(super) fn new(config: &Pigeon) -> Self {
        let (short, long) = (VecDeque::new(), VecDeque::new());
        Self { short, long, waiting: 0, weight: config.weight, count: 0, unsent: None, owed: [0; 2] }
    }

    /// Number of waiting tasks.
    pub(super) const fn waiting(&self) -> u32 {
        self.waiting
    }

    pub(super) fn has(&self, short: bool) -> bool {
        !(if short { &self.short } else { &self.long }).is_empty()
    }

    fn of(&mut self, short: bool) -> &mut VecDeque<Waiting> {
        if short { &mut self.short } else { &mut self.long }
    }

    /// Appends tasks to the queue of their class.
    pub(super) fn push(&mut self, short: bool, waiting: Waiting) {
        self.of(short).push_back(waiting);
        self.waiting += waiting.batch.len;
        self.log(Mirror::Queued { batch: waiting.batch, short, front: false });
    }

    /// Puts back a task that could not be sent.
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
        if reserved {
            return self.pop(true);
        }
        let (short, long) = (self.has(true), self.has(false));
        let turn = matches!(self.weight, GroupWeight::Tasks(weight) if self.count + 1 >= weight);
        let serve_short = short && !(long && turn);
        self.count = if serve_short && long { self.count.saturating_add(1) } else { 0 };
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
        if self.unsent.is_some() {
            self.set_mirrored(true);
        }
    }

    /// Appends the indices of the waiting tasks of the same submission as `of`.
    pub(super) fn tasks_of(&self, of: Waiting, out: &mut Vec<u32>) {
        let all = self.short.iter().chain(&self.long);
        let same = all.filter(|waiting| waiting.has_same_submission(of));
        out.extend(same.flat_map(|waiting| waiting.batch.indices()));
    }

    /// The position of a job in the queues; after all others if the job does not wait.
    pub(super) fn place(&self, job: JobId) -> usize {
        let mut all = self.short.iter().chain(&self.long);
        all.position(|waiting| waiting.batch.job == job).unwrap_or(usize::MAX)
    }

    /// Starts or stops recording the changes for a standby. The first changes are all waiting tasks.
    pub(super) fn set_mirrored(&mut self, standby: bool) {
        self.unsent = standby.then(|| {
            let queued =
                |short| move |waiting: &Waiting| Mirror::Queued { batch: waiting.batch, short, front: false };
            let short = self.short.iter().map(queued(true));
            std::iter::once(Mirror::Reset).chain(short).chain(self.long.iter().map(queued(false))).collect()
        });
    }

    /// Starts to record the changes for a standby, while nothing waits.
    pub(super) fn mirror_from_now(&mut self) {
        self.unsent = Some(Vec::new());
    }

    fn log(&mut self, change: Mirror) {
        let Some(unsent) = &mut self.unsent else { return };
        if let (Some(Mirror::Served { short, long }), Mirror::Served { short: s, long: l }) =
            (unsent.last_mut(), change)
        {
            *short += s;
            *long += l;
            return;
        }
        unsent.push(change);
    }

    /// Whether changes are recorded for a standby.
    pub(super) const fn is_mirrored(&self) -> bool {
        self.unsent.is_some()
    }

    /// Whether there are changes that the standby has not been sent.
    pub(super) fn has_changes(&self) -> bool {
        self.unsent.as_ref().is_some_and(|unsent| !unsent.is_empty())
    }

    /// Takes the changes that the standby has not been sent.
    pub(super) fn take_changes(&mut self) -> Vec<Mirror> {
        self.unsent.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Applies a change of a master's queues to the copy of its standby.
    pub(super) fn follow(&mut self, change: Mirror) {
        match change {
            Mirror::Reset => {
                self.clear();
                self.owed = [0; 2];
            }
            Mirror::Queued { batch, short, front } => {
                let waiting = Waiting { scheduler: 0, batch };
                if front {
                    self.push_front(short, waiting)
                } else {
                    self.push(short, waiting)
                }
                self.skip(short, 0);
            }
            Mirror::Served { short, long } => {
                self.skip(true, short);
                self.skip(false, long);
            }
        }
    }

    /// Removes `count` tasks of a class from the head. Updates may arrive reordered, so a shortfall is kept as a debt.
    fn skip(&mut self, short: bool, count: u32) {
        let mut left = count.saturating_add(std::mem::take(&mut self.owed[usize::from(!short)]));
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
        self.owed[usize::from(!short)] = left;
    }
}

/// The state of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WorkerState {
    /// The worker's node is down.
    Down,
    /// The worker has not reported.
    Unknown,
    Idle,
    Running(Next),
}

/// The workers of a group.
#[derive(Clone, Debug)]
pub(super) struct Workers {
    /// The cores of the group.
    range: Range<u32>,
    /// First reserved core of the group; all cores after it are reserved as well.
    first_reserved: u32,
    states: Box<[(WorkerState, Turn)]>,
    /// Copies given to reserved workers of other groups.
    lent: BTreeMap<u32, Next>,
    idle_reserved: VecDeque<u32>,
    idle_others: VecDeque<u32>,
    /// Number of unreserved workers whose nodes are up. If there are none, reserved workers serve both queues.
    unreserved_up: u32,
    /// Number of workers of the group that run a copy.
    running: u32,
    /// Number of workers of the group whose nodes are up but which have not reported.
    unknown: u32,
    /// Number of workers of the group whose nodes are down.
    down: u32,
}

impl Workers {
    /// The workers of a group, all idle if `known`, else in an unknown state. The node of a phantom core reports its
    /// state after another master has used the core.
    pub(super) fn new(groups: &WorkerGroups, group: u32, known: bool, layout: &Layout) -> Self {
        let range = groups.workers(group, layout);
        let first_reserved = groups.first_reserved(group, layout).max(range.start);
        let mut workers = Self {
            first_reserved,
            states: vec![(WorkerState::Unknown, Turn::default()); range.len()].into(),
            lent: BTreeMap::new(),
            idle_reserved: VecDeque::new(),
            idle_others: VecDeque::new(),
            unreserved_up: first_reserved - range.start,
            running: 0,
            unknown: range.len() as u32,
            down: 0,
            range,
        };
        if known {
            let mut idle: Vec<_> = (workers.range.start..first_reserved).collect();
            groups.reserved_cores(group, layout, &mut idle);
            for core in idle {
                workers.set(core, WorkerState::Idle);
                workers.put(core);
            }
        }
        workers
    }

    fn at(&self, core: u32) -> Option<usize> {
        self.range.contains(&core).then(|| (core - self.range.start) as usize)
    }

    /// The state of a worker of the group, and the turn of its report.
    fn state(&self, core: u32) -> Option<(WorkerState, Turn)> {
        self.at(core).map(|at| self.states[at])
    }

    /// Changes the state of a worker of the group; returns the previous state.
    fn set(&mut self, core: u32, state: WorkerState) -> Option<WorkerState> {
        let at = self.at(core)?;
        let before = std::mem::replace(&mut self.states[at].0, state);
        if let Some(count) = self.count(before) {
            *count -= 1;
        }
        if let Some(count) = self.count(state) {
            *count += 1;
        }
        if core < self.first_reserved && (before == WorkerState::Down) != (state == WorkerState::Down) {
            self.unreserved_up =
                if state == WorkerState::Down { self.unreserved_up - 1 } else { self.unreserved_up + 1 };
            self.regroup();
        }
        Some(before)
    }

    /// The counter of the workers of the group in such a state; idle workers are not counted.
    const fn count(&mut self, state: WorkerState) -> Option<&mut u32> {
        match state {
            WorkerState::Down => Some(&mut self.down),
            WorkerState::Unknown => Some(&mut self.unknown),
            WorkerState::Running(_) => Some(&mut self.running),
            WorkerState::Idle => None,
        }
    }

    /// Whether a worker runs short tasks only.
    pub(super) fn is_reserved(&self, core: u32) -> bool {
        !self.range.contains(&core) || (core >= self.first_reserved && self.unreserved_up > 0)
    }

    /// Number of workers that run a copy for this master.
    pub(super) fn busy(&self) -> u32 {
        self.running + self.lent.len() as u32
    }

    /// Removes an idle worker for a task.
    pub(super) fn take(&mut self, short: bool) -> Option<u32> {
        self.idle_others.pop_front().or_else(|| if short { self.idle_reserved.pop_front() } else { None })
    }

    /// Adds an idle worker.
    pub(super) fn put(&mut self, core: u32) {
        if self.is_reserved(core) {
            self.idle_reserved.push_back(core)
        } else {
            self.idle_others.push_back(core)
        }
    }

    /// Records that a worker was given a copy.
    pub(super) fn start(&mut self, core: u32, next: Next) {
        if self.set(core, WorkerState::Running(next)).is_none() {
            self.lent.insert(core, next);
        }
    }

    /// Records a worker's report that it is idle or runs a copy; returns whether the worker has become idle. Messages
    /// can overtake each other, so older reports are ignored.
    pub(super) fn reported(&mut self, core: u32, turn: Turn, running: Option<Next>) -> bool {
        let Some(at) = self.at(core) else {
            if running.is_none() {
                self.lent.remove(&core);
            }
            return false;
        };
        let (before, last) = self.states[at];
        let lost = matches!(before, WorkerState::Unknown | WorkerState::Down);
        if turn < last || (turn == last && !lost) {
            return false;
        }
        self.states[at].1 = turn;
        self.set(core, running.map_or(WorkerState::Idle, WorkerState::Running));
        if running.is_some() && before == WorkerState::Idle {
            self.unlist(core);
        }
        running.is_none() && before != WorkerState::Idle
    }

    /// Whether the node of a worker has crashed since the worker last reported.
    pub(super) fn has_restarted(&self, core: u32, turn: Turn) -> bool {
        self.state(core).is_some_and(|(state, last)| {
            matches!(state, WorkerState::Idle | WorkerState::Running(_)) && turn.life > last.life
        })
    }

    /// Records that a copy could not be sent to a worker; returns whether the worker was to run it.
    pub(super) fn refused(&mut self, core: u32, next: Next) -> bool {
        let Some((state, _)) = self.state(core) else {
            return self.lent.get(&core) == Some(&next) && self.lent.remove(&core).is_some();
        };
        let was = state == WorkerState::Running(next);
        if was {
            self.set(core, WorkerState::Unknown);
        }
        was
    }

    /// Marks the workers of a crashed node as down, and drops their copies.
    pub(super) fn down(&mut self, cores: Range<u32>) {
        for core in cores {
            self.lent.remove(&core);
            self.unlist(core);
            self.set(core, WorkerState::Down);
        }
    }

    /// Marks the workers of a node that is back as idle; returns those that were down, in order.
    pub(super) fn up(&mut self, cores: Range<u32>) -> Vec<u32> {
        let is_down = |core: &u32| matches!(self.state(*core), Some((WorkerState::Down, _)));
        let idle: Vec<_> = cores.filter(is_down).collect();
        for &core in &idle {
            self.set(core, WorkerState::Idle);
        }
        idle
    }

    fn unlist(&mut self, core: u32) {
        self.idle_reserved.retain(|&other| other != core);
        self.idle_others.retain(|&other| other != core);
    }

    /// Moves idle workers between their lists after the first unreserved worker came or the last one went.
    fn regroup(&mut self) {
        if self.unreserved_up <= 1 {
            let reserved = std::mem::take(&mut self.idle_reserved);
            let others = std::mem::take(&mut self.idle_others);
            others.into_iter().chain(reserved).for_each(|core| self.put(core));
        }
    }

    /// Whether a worker whose node is up has not reported.
    pub(super) const fn has_unknown(&self) -> bool {
        self.unknown > 0
    }

    /// Whether no node of the group is up.
    pub(super) fn all_down(&self) -> bool {
        self.down as usize == self.states.len()
    }

    /// The workers that run a copy, in the order of their cores.
    pub(super) fn running(&self) -> impl Iterator<Item = (u32, Next)> + '_ {
        let own = (self.range.start..).zip(&self.states).filter_map(|(core, (state, _))| match *state {
            WorkerState::Running(next) => Some((core, next)),
            WorkerState::Down | WorkerState::Unknown | WorkerState::Idle => None,
        });
        own.chain(self.lent.iter().map(|(&core, &next)| (core, next)))
    }

    /// Appends the indices of the running tasks of the same submission as `of`.
    pub(super) fn tasks_of(&self, of: Waiting, out: &mut Vec<u32>) {
        let running =
            self.running().map(|(_, (copy, scheduler))| Waiting { scheduler, batch: Batch::single(copy) });
        out.extend(running.filter(|task| task.has_same_submission(of)).map(|task| task.batch.base));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues with many tasks of both classes.
    fn loaded(weight: GroupWeight) -> TaskQueues {
        let mut queues = TaskQueues::new(&Pigeon { weight, ..Pigeon::default() });
        for (job, short) in [(0, true), (1, false)] {
            let batch = Batch { job: JobId(job), base: 0, len: 1000, step: 1, attempt: 0 };
            queues.push(short, Waiting { scheduler: 0, batch });
        }
        queues
    }

    /// The numbers of short tasks before each long task, for idle unreserved workers.
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

    /// O-P6: W − 1 short tasks run for each long task, by default 19 of 20.
    #[test]
    fn weights_divide_the_workers_exactly_between_the_classes() {
        let tasks = GroupWeight::Tasks;
        assert_eq!(runs_of_short(&mut loaded(tasks(20)), 5), [19; 5]);
        assert_eq!(runs_of_short(&mut loaded(tasks(2)), 5), [1; 5]);
        let mut strict = loaded(GroupWeight::Strict(super::super::config::StrictPriority::Strict));
        assert_eq!(runs_of_short(&mut strict, 1), [1000]);
    }

    /// Short tasks count only while a long task waits, and only on unreserved workers.
    #[test]
    fn reserved_workers_do_not_count_and_run_no_long_task() {
        let mut queues = loaded(GroupWeight::Tasks(3));
        for _ in 0..10 {
            assert_eq!(queues.next(true).unwrap().0.task.job, JobId(0));
        }
        assert_eq!(runs_of_short(&mut queues, 2), [2, 2]);
        while queues.pop(true).is_some() {}
        assert_eq!(queues.next(true), None);
        assert_eq!(queues.next(false).unwrap().0.task.job, JobId(1));
    }

    #[test]
    fn short_tasks_do_not_count_while_no_long_one_waits() {
        let mut queues = TaskQueues::new(&Pigeon { weight: GroupWeight::Tasks(3), ..Pigeon::default() });
        let push = |queues: &mut TaskQueues, job, short, len| {
            let batch = Batch { job: JobId(job), base: 0, len, step: 1, attempt: 0 };
            queues.push(short, Waiting { scheduler: 0, batch });
        };
        push(&mut queues, 0, true, 3);
        for _ in 0..3 {
            queues.next(false).unwrap();
        }
        assert_eq!(queues.next(false), None);
        push(&mut queues, 0, true, 100);
        push(&mut queues, 1, false, 100);
        assert_eq!(runs_of_short(&mut queues, 1), [2]);
    }

    /// Two changes arrive in reverse order, so a served task is dropped when it is queued.
    #[test]
    fn a_standby_drops_tasks_served_before_they_were_queued() {
        let mut mirror = TaskQueues::new(&Pigeon::default());
        mirror.follow(Mirror::Served { short: 5, long: 0 });
        let batch = Batch { job: JobId(0), base: 0, len: 7, step: 1, attempt: 0 };
        mirror.follow(Mirror::Queued { batch, short: true, front: false });
        assert_eq!(mirror.waiting(), 2);
        assert_eq!(mirror.pop(true).unwrap().0.task.index, 5);
    }

    #[test]
    fn a_standby_copies_every_change_of_the_queues() {
        let mut queues = loaded(GroupWeight::Tasks(3));
        queues.set_mirrored(true);
        let mut mirror = TaskQueues::new(&Pigeon::default());
        let copy = queues.next(false).unwrap().0;
        for _ in 0..7 {
            queues.next(false);
        }
        queues.push_front(true, Waiting { scheduler: 0, batch: Batch::single(copy) });
        queues.next(true);
        queues.take_changes().into_iter().for_each(|change| mirror.follow(change));
        assert_eq!(queues.take_changes(), []);
        assert_eq!((&mirror.short, &mirror.long), (&queues.short, &queues.long));
        queues.forget(0);
        queues.take_changes().into_iter().for_each(|change| mirror.follow(change));
        assert_eq!((mirror.waiting(), queues.waiting(), mirror.has(true)), (0, 0, false));
    }
}
