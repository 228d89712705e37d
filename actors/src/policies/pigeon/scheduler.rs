//! The scheduler of Pigeon. It splits the tasks of a job among the masters, by their load if they report it, and counts
//! results.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use super::config::{Pigeon, TaskSplit};
use super::groups::{GroupMasters, MasterClaim, WorkerGroups};
use crate::base::{ActorId, JobId, Rng, Span, Time};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Batch, Group, Job, Launch, Message};
use crate::roles::job_table::{JobTable, OpenJob};
use crate::roles::{RETRY_AFTER, resend};

/// Destination of the last copy of a task, as group and attempt; `None` while no group can be used.
type SentTo = Option<(u32, u32)>;

#[derive(Clone, Debug)]
struct PigeonJob {
    open: OpenJob,
    tasks: Box<[SentTo]>,
}

/// A group as a scheduler sees it.
#[derive(Clone, Debug)]
struct GroupView {
    masters: GroupMasters,
    workers: u32,
    reachable: bool,
    load: GroupLoad,
}

/// A distributed scheduler.
#[derive(Clone, Debug)]
pub(super) struct PigeonScheduler {
    groups: WorkerGroups,
    /// Period at which masters report their lengths; zero disables reports.
    lengths: Span,
    splitter: Splitter,
    views: Box<[GroupView]>,
    /// Nodes that are down.
    down: BTreeSet<u32>,
    jobs: JobTable<PigeonJob>,
}

impl PigeonScheduler {
    pub(super) fn new(config: &Pigeon, layout: &Layout) -> Self {
        let groups = WorkerGroups::new(config, layout);
        let view = |group| GroupView {
            masters: GroupMasters::new(groups.master(group, layout), groups.standby(group, layout)),
            workers: groups.workers(group, layout).len() as u32,
            reachable: true,
            load: GroupLoad::default(),
        };
        Self {
            groups,
            lengths: config.lengths,
            splitter: Splitter::new(config.split, groups.count()),
            views: (0..groups.count()).map(view).collect(),
            down: BTreeSet::new(),
            jobs: JobTable::default(),
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let (attempt, count) = (open.attempts(1), open.spec.tasks);
        let mut tasks = vec![None; count as usize].into_boxed_slice();
        let short = open.spec.class == 0;
        let shares = split(&mut self.splitter, &mut self.views, self.lengths, count, fx);
        for &GroupShare { group, base, len, step } in shares {
            let batch = Batch { job, base, len, step, attempt };
            batch.indices().for_each(|index| tasks[index as usize] = Some((group, attempt)));
            send(&self.views[group as usize], batch, short, false, fx);
        }
        self.jobs.open(job, PigeonJob { open, tasks });
    }

    /// Sends the open tasks of a job that no group has to groups.
    fn launch(&mut self, job: JobId, fx: &mut Effects<'_>) {
        if !self.splitter.has_groups() {
            return;
        }
        let Some(PigeonJob { open, tasks }) = self.jobs.get_mut(job) else { return };
        let nowhere = |&index: &u32| tasks[index as usize].is_none() && !open.is_done(index);
        let list: Vec<_> = (0..open.spec.tasks).filter(nowhere).collect();
        if list.is_empty() {
            return;
        }
        let (attempt, short) = (open.attempts(1), open.spec.class == 0);
        let shares = split(&mut self.splitter, &mut self.views, self.lengths, list.len() as u32, fx);
        for &GroupShare { group, base, len, step } in shares {
            let part: Vec<_> = (0..len).map(|i| list[(base + i * step) as usize]).collect();
            part.iter().for_each(|&index| tasks[index as usize] = Some((group, attempt)));
            for batch in batches(job, attempt, &part) {
                send(&self.views[group as usize], batch, short, true, fx);
            }
        }
    }

    /// Marks open tasks that are `lost` as without a group, and sends all tasks without a group.
    fn relaunch(&mut self, lost: impl Fn(JobId, u32, SentTo) -> bool, fx: &mut Effects<'_>) {
        let mut jobs = Vec::new();
        for (job, PigeonJob { open, tasks }) in self.jobs.iter_mut() {
            for (index, sent) in (0..).zip(tasks.iter_mut()) {
                if !open.is_done(index) && lost(job, index, *sent) {
                    *sent = None;
                }
            }
            jobs.push(job);
        }
        jobs.into_iter().for_each(|job| self.launch(job, fx));
    }

    /// Tells a master the open tasks of its group, with fresh attempt numbers.
    fn answer(&mut self, group: u32, master: ActorId, fx: &mut Effects<'_>) {
        let Role::Scheduler(scheduler) = fx.layout().role(fx.me()) else { return };
        for (job, PigeonJob { open, tasks }) in self.jobs.iter_mut() {
            let here = |index: &u32| {
                !open.is_done(*index) && tasks[*index as usize].is_some_and(|(of, _)| of == group)
            };
            let part: Vec<_> = (0..open.spec.tasks).filter(here).collect();
            if part.is_empty() {
                continue;
            }
            let (attempt, short) = (open.attempts(1), open.spec.class == 0);
            part.iter().for_each(|&index| tasks[index as usize] = Some((group, attempt)));
            for batch in batches(job, attempt, &part) {
                fx.recover(master, Group::Open { short, scheduler, batch });
            }
        }
    }

    /// The group of a master; `None` if the actor is not a master.
    fn group_of(&self, actor: ActorId, layout: &Layout) -> Option<u32> {
        match layout.role(actor) {
            Role::Auxiliary(master) => Some(self.groups.group_of_master(master).0),
            Role::Node(node) => Some(self.groups.of(node, layout)),
            _ => None,
        }
    }

    fn receive(&mut self, from: ActorId, msg: Group, fx: &mut Effects<'_>) {
        let Some(group) = self.group_of(from, fx.layout()) else { return };
        match msg {
            Group::Ask => self.answer(group, from, fx),
            Group::Takes { term, at } => {
                let claim = MasterClaim { term, at: at.into(), node: from };
                let is_worker = matches!(fx.layout().role(from), Role::Node(_));
                let masters = &mut self.views[group as usize].masters;
                // A worker repeats its claim, which has already been answered.
                let is_known = is_worker && masters.has(claim);
                if is_worker && !masters.accept(claim) {
                    return;
                }
                let was_reachable = std::mem::replace(&mut self.views[group as usize].reachable, true);
                if !is_known {
                    self.answer(group, from, fx);
                }
                if !(is_known && was_reachable) {
                    self.regroup(fx);
                }
            }
            Group::Lengths { waiting, busy, at } => {
                self.views[group as usize].load.report(waiting.saturating_add(busy), at.into());
            }
            Group::Tasks { .. }
            | Group::Run { .. }
            | Group::Idle { .. }
            | Group::Status { .. }
            | Group::Open { .. }
            | Group::Watch
            | Group::Mirror(_) => fx.unexpected(&msg.into()),
        }
    }

    /// Whether tasks can be sent to a group, which needs a node and a reachable master.
    fn is_usable(&self, group: u32, layout: &Layout) -> bool {
        let view = &self.views[group as usize];
        view.reachable && view.masters.current().is_some() && self.has_nodes(group, layout)
    }

    fn has_nodes(&self, group: u32, layout: &Layout) -> bool {
        let nodes = self.groups.worker_nodes(group, layout);
        let down = self.down.range(nodes.clone()).count();
        down < nodes.len()
    }

    /// Updates the groups in use, and sends tasks that had found no group.
    fn regroup(&mut self, fx: &mut Effects<'_>) {
        self.set_groups(fx.layout());
        self.relaunch(|_, _, _| false, fx);
    }

    fn set_groups(&mut self, layout: &Layout) {
        let usable: Vec<_> =
            (0..self.groups.count()).filter(|&group| self.is_usable(group, layout)).collect();
        self.splitter.set_groups(usable.into_iter());
    }

    /// Sends undelivered tasks to other groups, unless they were handled meanwhile.
    fn refused(&mut self, to: ActorId, batch: Batch, fx: &mut Effects<'_>) {
        let Some(group) = self.group_of(to, fx.layout()) else { return };
        let current = self.views[group as usize].masters.current();
        if current == Some(to) {
            self.views[group as usize].reachable = false;
            fx.arm(Timer::Tick(group), RETRY_AFTER);
        }
        let Some(PigeonJob { open, tasks }) = self.jobs.get_mut(batch.job) else { return };
        for index in batch.indices().filter(|&index| !open.is_done(index)) {
            let sent = &mut tasks[index as usize];
            if *sent == Some((group, batch.attempt)) {
                *sent = None;
            }
        }
        self.set_groups(fx.layout());
        self.launch(batch.job, fx);
    }

    fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        let Some(group) = self.group_of(actor, layout) else { return };
        self.views[group as usize].masters.set(actor, false);
        if let Role::Node(node) = layout.role(actor) {
            self.down.insert(node);
        }
        self.regroup(fx);
        if !self.has_nodes(group, layout) {
            self.relaunch(|_, _, sent| sent.is_some_and(|(of, _)| of == group), fx);
        }
    }

    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        let Some(group) = self.group_of(actor, layout) else { return };
        match layout.role(actor) {
            Role::Node(node) => drop(self.down.remove(&node)),
            _ => drop(self.views[group as usize].masters.set(actor, true)),
        }
        self.regroup(fx);
    }
}

/// Splits tasks among the groups in use.
fn split<'a>(
    splitter: &'a mut Splitter,
    views: &mut [GroupView],
    lengths: Span,
    tasks: u32,
    fx: &mut Effects<'_>,
) -> &'a [GroupShare] {
    if lengths == Span::ZERO {
        return splitter.even(tasks, fx.rng());
    }
    let now = fx.now();
    views.iter_mut().for_each(|view| view.load.forget(now, lengths));
    let (workers, load) = (|group| views[group as usize].workers, |group| views[group as usize].load.tasks());
    let shares = splitter.level(tasks, workers, load, fx.rng());
    for share in shares {
        views[share.group as usize].load.send(share.len, now);
    }
    shares
}

/// Sends tasks to the master of a group.
fn send(view: &GroupView, batch: Batch, short: bool, recovery: bool, fx: &mut Effects<'_>) {
    if let (Some(master), Role::Scheduler(scheduler)) = (view.masters.current(), fx.layout().role(fx.me())) {
        fx.send_as(recovery, master, Group::Tasks { short, scheduler, batch });
    }
}

/// Divides tasks into as few batches as consecutive equal distances allow.
fn batches(job: JobId, attempt: u32, tasks: &[u32]) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    for &index in tasks {
        match batches.last_mut() {
            Some(last) if last.len == 1 => {
                last.step = index - last.base;
                last.len = 2;
            }
            Some(last) if index == last.base + last.len * last.step => last.len += 1,
            _ => batches.push(Batch::single(job.task(index).copy(attempt))),
        }
    }
    batches
}

impl Machine for PigeonScheduler {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => {
                    self.jobs.complete(copy.task, |job| &mut job.open, fx);
                }
                Message::Group(msg) => self.receive(from, msg, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg } => match msg {
                Message::Group(Group::Tasks { batch, .. } | Group::Open { batch, .. }) => {
                    self.refused(to, batch, fx);
                }
                _ => drop(resend(to, msg, fx)),
            },
            Input::Fire(Timer::Tick(group)) => {
                self.views[group as usize].reachable = true;
                self.regroup(fx);
            }
            Input::Down { actor } => self.down(actor, fx),
            Input::Up { actor } => self.up(actor, fx),
            // A start needs no action; only ticks are armed; the other inputs are for workers.
            _ => {}
        }
    }
}

// The split of a job's tasks among groups.

/// Consecutive or equidistant positions of a list of tasks, and the group that gets them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GroupShare {
    pub(super) group: u32,
    pub(super) base: u32,
    pub(super) len: u32,
    pub(super) step: u32,
}

/// Splits tasks among groups.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    split: TaskSplit,
    /// The groups in use; draws shuffle it in place.
    groups: Vec<u32>,
    /// `in-order`: index of the group that gets the next larger block.
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

    /// Whether there is a group in use.
    pub(super) fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Splits `tasks` tasks evenly: each of N groups gets ⌊F/N⌋ of the F tasks, and F mod N groups get one more.
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

    /// Splits `tasks` tasks so that the groups are filled as equally as possible. Each task goes to the group with the
    /// least `load` per worker, and counts there. Groups get contiguous blocks.
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

/// Number of parts of a worker in which levels are compared.
const SCALE: u64 = 1 << 20;

/// Draws the first `count` elements.
fn shuffle(list: &mut [u32], count: u32, rng: &mut Rng) {
    for i in 0..count as usize {
        let j = i + rng.below((list.len() - i) as u32) as usize;
        list.swap(i, j);
    }
}

// The load of a group by its master's reports (section 6.2).

/// Number of periods without a report after which a group counts as idle. A master that has tasks reports in each
/// period. Its last report, which says that the group is idle, can be lost and is not repeated.
const SILENT: u64 = 3;

/// Tasks of a group by the newest report, and tasks sent to the group since.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupLoad {
    reported: u32,
    /// Time of the newest report.
    at: Time,
    /// Tasks sent since the report, oldest first.
    sent: VecDeque<(Time, u32)>,
    /// Sum of `sent`.
    since: u32,
}

impl GroupLoad {
    /// Number of tasks in the group or on their way.
    pub(super) const fn tasks(&self) -> u32 {
        self.reported.saturating_add(self.since)
    }

    /// Records that tasks are sent.
    pub(super) fn send(&mut self, tasks: u32, now: Time) {
        self.sent.push_back((now, tasks));
        self.since += tasks;
    }

    /// Records a master's report of its tasks as of `at`. Older reports change nothing.
    pub(super) fn report(&mut self, tasks: u32, at: Time) {
        if self.at < at {
            (self.reported, self.at) = (tasks, at);
            self.drop_until(at);
        }
    }

    /// Forgets the tasks that a master which reports every `every` would have reported by now.
    pub(super) fn forget(&mut self, now: Time, every: Span) {
        let silence = Span(every.0.saturating_mul(SILENT));
        if now.since(self.at) > silence {
            self.reported = 0;
            self.drop_until(Time(now.0.saturating_sub(silence.0)));
        }
    }

    /// Forgets the tasks sent until `then`.
    fn drop_until(&mut self, then: Time) {
        while self.sent.front().is_some_and(|(at, _)| *at <= then)
            && let Some((_, tasks)) = self.sent.pop_front()
        {
            self.since -= tasks;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_sent_in_as_few_batches_as_possible() {
        let of = |tasks: &[u32]| {
            let batches = batches(JobId(0), 7, tasks);
            assert!(batches.iter().flat_map(|batch| batch.indices()).eq(tasks.iter().copied()));
            batches.len()
        };
        assert_eq!([of(&[]), of(&[4]), of(&[4, 5, 6]), of(&[1, 4, 7, 10])], [0, 1, 1, 1]);
        assert_eq!([of(&[0, 1, 5, 6, 7]), of(&[0, 1, 2, 9])], [2, 2]);
    }
}

#[cfg(test)]
mod split_tests {
    use super::*;

    /// Indices of the tasks that each group gets, in the order of `shares`.
    fn dealt(shares: &[GroupShare], groups: u32, tasks: u32) -> Vec<Vec<u32>> {
        let mut of = vec![Vec::new(); groups as usize];
        for share in shares {
            let tasks = (0..share.len).map(|i| share.base + i * share.step);
            of[share.group as usize].extend(tasks);
        }
        let mut all: Vec<_> = of.iter().flatten().copied().collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..tasks), "each task is dealt once");
        of
    }

    /// O-P4: 5,900 tasks over 30 masters are 196 or 197 for each, 50,000 over 200 are 250. If there are fewer tasks
    /// than masters, the tasks go to distinct masters.
    #[test]
    fn every_master_gets_the_floor_and_distinct_masters_get_the_rest() {
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
    fn every_master_gets_a_larger_block_equally_often() {
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

    /// Two groups of 8 and 4 workers have room for 6 and 1 tasks; the second is nearly full.
    #[test]
    fn tasks_go_to_the_groups_with_free_workers() {
        let mut splitter = Splitter::new(TaskSplit::Blocks, 2);
        let mut rng = Rng::new(1, 2, 0);
        let lens = |tasks, splitter: &mut Splitter, rng: &mut Rng| {
            let load = |group| [2, 3][group as usize];
            let shares = splitter.level(tasks, |group| [8, 4][group as usize], load, rng);
            dealt(shares, 2, tasks).iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(lens(4, &mut splitter, &mut rng), [4, 0]);
        assert_eq!(lens(7, &mut splitter, &mut rng), [6, 1], "both groups are full");
        assert_eq!(lens(19, &mut splitter, &mut rng), [14, 5], "the larger group has twice as many");
    }
}

#[cfg(test)]
mod load_tests {
    use super::*;

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
