//! Rules of speculative execution, which decide which attempts are backed up, and when.

use std::fmt::Debug;

use dyn_clone::DynClone;

use crate::base::{ActorId, Score, Span, Time};

/// A job as a rule sees it.
#[derive(Clone, Copy, Debug)]
pub struct JobView<'a> {
    /// The time of the check.
    pub now: Time,
    /// Class of the job.
    pub class: u8,
    /// Number of tasks of the job.
    pub tasks: u32,
    /// Number of tasks with a finished copy.
    pub finished: u32,
    /// The running and wanted attempts of the job.
    pub attempts: &'a Attempts,
    /// The times from the sending of a copy to its result, for copies that finished a task.
    pub took: &'a [Span],
    /// Tasks whose copies the rule stopped, because the task restarts or other copies are faster; one entry for each
    /// copy.
    pub stopped: &'a [u32],
    /// The state of the cluster.
    pub cluster: Cluster,
}

impl JobView<'_> {
    /// The attempt with the most progress of each running task.
    pub fn farthest(&self) -> impl Iterator<Item = &Attempt> {
        (0..self.tasks).filter_map(|task| self.attempts.of(task).max_by_key(|attempt| attempt.score))
    }

    /// The progress of the job, in tasks.
    pub fn score(&self) -> f64 {
        f64::from(self.finished) + self.farthest().map(|attempt| attempt.score.share()).sum::<f64>()
    }
}

/// The cluster at the time of a check, as far as the scheduler knows it. One of several schedulers sees only its share
/// of the cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// Number of cores.
    pub slots: u32,
    /// Number of cores free for backups; zero while first copies wait. Equals `slots` if the free cores are not known.
    pub free: u32,
    /// Number of cores in use; if the free cores are not known, number of copies sent or wanted.
    pub busy: u32,
    /// Number of copies that are known to wait for a free core.
    pub waiting: u32,
    /// Number of backups of all jobs that run or are wanted.
    pub backups: u32,
}

/// A decision about a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Send one more copy of a task, to a node without a copy of it.
    Backup(u32),
    /// Stop this attempt of a task and queue a new one in second place, so that another task gets the freed core.
    Restart(u32, u32),
    /// Stop this attempt of a task, which has other and faster attempts.
    Stop(u32, u32),
}

/// A decision rule. Only [`look`](Self::look) is required.
pub trait Rule: DynClone + Debug + Send {
    /// Decides on actions for a job, the most urgent first; actions without a node to carry them out are dropped.
    fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>);

    /// The pause until the next check, depending on whether this check sent backups; `None` for no further check. The
    /// first check is on arrival of a job, after its copies have been sent.
    fn pause(&self, _sent: bool) -> Option<Span> {
        None
    }

    /// Whether a node may get backups.
    fn serves(&self, _node: u32) -> bool {
        true
    }

    /// Called when a copy on a node has progressed by `gain` billionths; `gain` is negative if the copy was stopped.
    fn progressed(&mut self, _node: u32, _gain: i64) {}

    /// Called when a task of a job of this class finished, the time `after` the first of its current copies was sent.
    fn finished(&mut self, _class: u8, _after: Span) {}
}

dyn_clone::clone_trait_object!(Rule);

/// The rule without backups.
#[derive(Clone, Copy, Debug)]
pub struct NoBackups;

impl Rule for NoBackups {
    fn look(&mut self, _: &JobView<'_>, _: &mut Vec<Action>) {}
}

/// Mean of some times, s; `None` without times.
pub fn mean(times: &[Span]) -> Option<f64> {
    let sum: f64 = times.iter().map(|time| time.as_secs_f64()).sum();
    (!times.is_empty()).then(|| sum / times.len() as f64)
}

/// Mean and population standard deviation of some times, s; `None` without times.
pub fn mean_and_deviation(times: &[Span]) -> Option<(f64, f64)> {
    let mean = mean(times)?;
    let squares: f64 = times.iter().map(|time| (time.as_secs_f64() - mean).powi(2)).sum();
    Some((mean, (squares / times.len() as f64).sqrt()))
}

/// The `p`-quantile of some values, with linear interpolation; `None` without values. Sorts the values.
pub fn quantile(values: &mut [f64], p: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let at = p * values.len().checked_sub(1)? as f64;
    let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
    Some(if low == high { low } else { low + (high - low) * at.fract() })
}

// The running attempts of a job, as its scheduler knows them.

/// A copy that is wanted or running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// Index of the task.
    pub task: u32,
    /// Attempt number of the copy.
    pub number: u32,
    /// Node of the copy; `None` until a node has claimed it.
    pub node: Option<ActorId>,
    /// Whether the copy has yet to start, as far as is known. Either no node has claimed it, or it waits at its node,
    /// which will report the start.
    pub waits: bool,
    /// Time at which the copy started, if reported; else time at which it was sent.
    pub since: Time,
    /// Last reported progress of the copy.
    pub score: Score,
    /// Time of the last report; before the first report, time at which the copy was sent.
    pub reported_at: Time,
    /// Whether the task had another attempt when this one was requested.
    pub backup: bool,
}

impl Attempt {
    /// An attempt that is sent now, or requested if it has no node yet.
    pub const fn new(task: u32, number: u32, node: Option<ActorId>, now: Time, backup: bool) -> Self {
        let (waits, score) = (node.is_none(), Score::NONE);
        Self { task, number, node, waits, since: now, score, reported_at: now, backup }
    }

    /// Time for which the attempt has run, s.
    pub fn ran(&self, now: Time) -> f64 {
        if self.waits { 0.0 } else { now.since(self.since).as_secs_f64() }
    }

    /// Share of work done per second since the start, by the last report; falls while reports are missing.
    pub fn rate(&self, now: Time) -> f64 {
        let ran = self.ran(now);
        if ran > 0.0 { self.score.share() / ran } else { 0.0 }
    }

    /// Time that the attempt still needs at its present rate, s; infinite before the first progress.
    pub fn left(&self, now: Time) -> f64 {
        let done = self.score.share();
        if done > 0.0 { self.ran(now) * (1.0 - done) / done } else { f64::INFINITY }
    }
}

/// Marks the end of a list of attempts.
const NONE: u32 = u32::MAX;

/// A flat table of attempts, in which the attempts of each task are linked.
#[derive(Clone, Debug)]
pub struct Attempts {
    running: Vec<Attempt>,
    /// Index of the next attempt of the same task, for each running attempt.
    next: Vec<u32>,
    /// Index of the first attempt of each task.
    first: Vec<u32>,
}

impl Attempts {
    /// An empty table for a job of `tasks` tasks.
    pub fn new(tasks: u32) -> Self {
        Self { running: Vec::new(), next: Vec::new(), first: vec![NONE; tasks as usize] }
    }

    /// All attempts, in arbitrary order.
    pub fn all(&self) -> &[Attempt] {
        &self.running
    }

    /// The attempts of a task, the latest first.
    pub fn of(&self, task: u32) -> impl Iterator<Item = &Attempt> {
        let place = |at: u32| (at != NONE).then_some(at as usize);
        std::iter::successors(place(self.first[task as usize]), move |&at| place(self.next[at]))
            .map(|at| &self.running[at])
    }

    /// The number of attempts of a task.
    pub fn copies(&self, task: u32) -> u32 {
        self.of(task).count() as u32
    }

    /// The started attempts that are the only attempts of their tasks.
    pub fn alone(&self) -> impl Iterator<Item = &Attempt> {
        self.running.iter().filter(|attempt| !attempt.waits && self.copies(attempt.task) == 1)
    }

    /// Adds an attempt.
    pub fn add(&mut self, attempt: Attempt) {
        let first = &mut self.first[attempt.task as usize];
        self.next.push(*first);
        *first = self.running.len() as u32;
        self.running.push(attempt);
    }

    /// The attempt of a task with a number, mutable.
    pub fn get_mut(&mut self, task: u32, number: u32) -> Option<&mut Attempt> {
        let at = self.find(task, |attempt| attempt.number == number)?;
        Some(&mut self.running[at])
    }

    /// Removes the latest attempt of a task for which `which` holds.
    pub fn take(&mut self, task: u32, which: impl Fn(&Attempt) -> bool) -> Option<Attempt> {
        let at = self.find(task, which)?;
        let gone = self.running[at];
        self.relink(gone.task, at as u32, self.next[at]);
        self.running.swap_remove(at);
        self.next.swap_remove(at);
        // The last entry has moved to the vacated index.
        if let Some(moved) = self.running.get(at) {
            self.relink(moved.task, self.running.len() as u32, at as u32);
        }
        Some(gone)
    }

    fn find(&self, task: u32, which: impl Fn(&Attempt) -> bool) -> Option<usize> {
        let mut at = *self.first.get(task as usize)?;
        while at != NONE && !which(&self.running[at as usize]) {
            at = self.next[at as usize];
        }
        (at != NONE).then_some(at as usize)
    }

    /// Redirects the link to index `old` to `new`.
    fn relink(&mut self, task: u32, old: u32, new: u32) {
        let mut at = self.first[task as usize];
        if at == old {
            self.first[task as usize] = new;
            return;
        }
        while self.next[at as usize] != old {
            at = self.next[at as usize];
        }
        self.next[at as usize] = new;
    }
}

/// Tables of attempts for tests of rules, in seconds.
#[cfg(test)]
pub(crate) mod fixture {
    use super::{Action, Attempt, Attempts, Cluster, JobView, Rule};
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
        /// A job of `tasks` tasks on a cluster of a hundred cores, ten of them free.
        pub(crate) fn new(tasks: u32) -> Self {
            let cluster = Cluster { slots: 100, free: 10, busy: 90, waiting: 0, backups: 0 };
            let (attempts, took, stopped) = (Attempts::new(tasks), Vec::new(), Vec::new());
            Self { now: at(0), tasks, attempts, took, stopped, cluster }
        }

        /// Sets the time of the check, which is also the time of the last reports of attempts added later.
        pub(crate) fn at(mut self, seconds: u64) -> Self {
            self.now = at(seconds);
            self
        }

        /// Adds `count` finished tasks that took this time.
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

        /// Adds an attempt that no node has claimed.
        pub(crate) fn waiting(mut self, task: u32) -> Self {
            let number = self.attempts.copies(task);
            self.attempts.add(Attempt::new(task, number, None, self.now, true));
            self
        }

        /// Adds an attempt whose last report is older.
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

        /// Sets that no core is free, and a task waits for a core.
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
            JobView {
                now: *now,
                class: 0,
                tasks: *tasks,
                finished,
                attempts,
                took,
                stopped,
                cluster: *cluster,
            }
        }

        pub(crate) fn actions(&self, rule: &mut impl Rule) -> Vec<Action> {
            let mut actions = Vec::new();
            rule.look(&self.view(), &mut actions);
            actions
        }

        /// Tasks that a rule wants to back up.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_deviations_and_quantiles_equal_hand_computed_values() {
        let times = [1, 3, 5, 7].map(Span::from_secs);
        assert_eq!(mean_and_deviation(&times), Some((4.0, 5.0f64.sqrt())));
        assert_eq!((mean(&[]), quantile(&mut [], 0.5)), (None, None));
        let mut values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(|p| quantile(&mut values, p)), [1.0, 1.75, 2.5, 4.0].map(Some));
        assert_eq!(quantile(&mut [f64::INFINITY; 2], 0.3), Some(f64::INFINITY));
    }
}

#[cfg(test)]
mod attempts_tests {
    use super::*;
    use crate::base::{Rng, Span};

    /// The table equals a plain list after random additions and removals.
    #[test]
    fn the_table_equals_a_plain_list() {
        let (mut table, mut list) = (Attempts::new(7), Vec::<Attempt>::new());
        let mut rng = Rng::new(1, 1, 1);
        for number in 0..5000 {
            let task = rng.below(7);
            if rng.below(5) < 2 {
                let attempt = Attempt::new(task, number, Some(ActorId(rng.below(4))), Time::ZERO, false);
                table.add(attempt);
                list.push(attempt);
            } else {
                let node = Some(ActorId(rng.below(4)));
                let expected = list.iter().rposition(|a| a.task == task && a.node == node);
                let gone = table.take(task, |a| a.node == node);
                assert_eq!(gone, expected.map(|at| list.remove(at)));
            }
            for task in 0..7 {
                let linked: Vec<_> = table.of(task).map(|a| a.number).collect();
                let plain: Vec<_> = list.iter().rev().filter(|a| a.task == task).map(|a| a.number).collect();
                assert_eq!(linked, plain);
            }
            assert_eq!(table.all().len(), list.len());
        }
        assert!(table.get_mut(3, u32::MAX).is_none() && table.take(99, |_| true).is_none());
    }

    #[test]
    fn rates_follow_from_the_last_reports() {
        let mut attempt = Attempt::new(0, 0, Some(ActorId(1)), Time::ZERO + Span::from_secs(10), false);
        let at = |s| Time::ZERO + Span::from_secs(s);
        assert_eq!((attempt.rate(at(10)), attempt.left(at(20))), (0.0, f64::INFINITY));
        attempt.score = Score(250_000_000);
        assert_eq!((attempt.rate(at(20)), attempt.left(at(20))), (0.025, 30.0));
        assert_eq!(
            (attempt.rate(at(30)), attempt.left(at(30))),
            (0.0125, 60.0),
            "missing reports lower the rate"
        );
        attempt.waits = true;
        assert_eq!((attempt.ran(at(30)), attempt.rate(at(30))), (0.0, 0.0), "a waiting attempt has not run");
    }
}
