//! Tables of attempts for tests of rules, in seconds.

use super::rule::{Action, Cluster, JobView, Rule};
use super::{Attempt, Attempts};
use crate::base::{ActorId, Score, Span, Time};

/// A job as a rule sees it.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    now: Time,
    tasks: u32,
    attempts: Attempts,
    took: Vec<Span>,
    stopped: Vec<u32>,
    cluster: Cluster,
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

impl Table {
    /// A job of `tasks` tasks on a cluster of a hundred cores, of which ten are free.
    pub(crate) fn new(tasks: u32) -> Self {
        let cluster = Cluster { slots: 100, free: 10, busy: 90, waiting: 0, backups: 0 };
        let (attempts, took, stopped) = (Attempts::new(tasks), Vec::new(), Vec::new());
        Self { now: at(0), tasks, attempts, took, stopped, cluster }
    }

    /// The time of the look, and of the last reports of attempts added after this.
    pub(crate) fn at(mut self, seconds: u64) -> Self {
        self.now = at(seconds);
        self
    }

    /// `count` more tasks have finished, in that time each.
    pub(crate) fn finished(mut self, count: usize, took: u64) -> Self {
        self.took.extend(std::iter::repeat_n(Span::from_secs(took), count));
        self
    }

    pub(crate) fn running(self, task: u32, since: u64, score: f64) -> Self {
        let reported_at = self.now;
        self.add(task, since, score, reported_at, false)
    }

    pub(crate) fn backup(self, task: u32, since: u64, score: f64) -> Self {
        let reported_at = self.now;
        self.add(task, since, score, reported_at, true)
    }

    /// A further attempt that no node has claimed.
    pub(crate) fn waiting(mut self, task: u32) -> Self {
        let number = self.attempts.copies(task);
        self.attempts.add(Attempt::new(task, number, None, self.now, true));
        self
    }

    /// An attempt whose last report is older.
    pub(crate) fn silent(self, task: u32, since: u64, score: f64, reported_at: u64) -> Self {
        self.add(task, since, score, at(reported_at), false)
    }

    pub(crate) fn slots(mut self, slots: u32, backups: u32) -> Self {
        (self.cluster.slots, self.cluster.backups) = (slots, backups);
        self
    }

    pub(crate) fn free(mut self, free: u32) -> Self {
        (self.cluster.free, self.cluster.busy) = (free, self.cluster.slots - free);
        self
    }

    /// No core is free, and a task waits for one.
    pub(crate) fn crowded(mut self) -> Self {
        self.cluster.waiting = 1;
        self.free(0)
    }

    pub(crate) fn stopped(mut self, task: u32) -> Self {
        self.stopped.push(task);
        self
    }

    pub(crate) fn view(&self) -> JobView<'_> {
        let Self { now, tasks, attempts, took, stopped, cluster } = self;
        let finished = took.len() as u32;
        JobView { now: *now, class: 0, tasks: *tasks, finished, attempts, took, stopped, cluster: *cluster }
    }

    pub(crate) fn actions(&self, rule: &mut impl Rule) -> Vec<Action> {
        let mut actions = Vec::new();
        rule.look(&self.view(), &mut actions);
        actions
    }

    /// Tasks that a rule wants backed up.
    pub(crate) fn look(&self, rule: &mut impl Rule) -> Vec<u32> {
        let task = |action| match action {
            Action::Backup(task) => task,
            Action::Restart(task, _) => panic!("task {task} is to begin anew"),
            Action::Stop(task, number) => panic!("attempt {number} of task {task} is to stop"),
        };
        self.actions(rule).into_iter().map(task).collect()
    }

    fn add(mut self, task: u32, since: u64, score: f64, reported_at: Time, backup: bool) -> Self {
        let number = self.attempts.copies(task);
        let mut attempt = Attempt::new(task, number, Some(ActorId(task)), at(since), backup);
        (attempt.score, attempt.reported_at) = (Score((score * 1e9) as u32), reported_at);
        self.attempts.add(attempt);
        self
    }
}
