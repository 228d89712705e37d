//! Rules of speculative execution: which attempts are backed up, and when.

use super::attempts::{Attempt, Attempts};
use crate::base::{Span, Time};

/// A job as a rule sees it.
#[derive(Clone, Copy, Debug)]
pub struct JobView<'a> {
    /// The time of the look.
    pub now: Time,
    /// Class of the job.
    pub class: u8,
    /// Tasks of the job.
    pub tasks: u32,
    /// The number of tasks that have a finished copy.
    pub finished: u32,
    /// The attempts that run or are wanted.
    pub attempts: &'a Attempts,
    /// The times from the sending of a copy to its result, for copies that finished a task.
    pub took: &'a [Span],
    /// Tasks of which the rule stopped a copy, to restart it or because others are faster, once for each time.
    pub stopped: &'a [u32],
    /// The cluster.
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

/// The cluster at the time of a look, as far as the scheduler knows it: its own share of the cores, if it is not the
/// only one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// Cores.
    pub slots: u32,
    /// Cores free for backups; zero while first copies wait. All `slots` if it is not known which cores are free.
    pub free: u32,
    /// Cores in use; copies sent or wanted, if it is not known which cores are free.
    pub busy: u32,
    /// Copies that are known to wait for lack of a free core.
    pub waiting: u32,
    /// Backups of all jobs that run or are wanted.
    pub backups: u32,
}

/// A decision about a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// One more copy of a task, on a node that has none.
    Backup(u32),
    /// Stop this attempt of a task and queue a new one in second place, so that the core it leaves goes to another
    /// task.
    Restart(u32, u32),
    /// Stop this attempt of a task, which has others that are faster.
    Stop(u32, u32),
}

/// A decision rule. One that never looks needs no more than [`look`](Self::look).
pub trait Rule: Send {
    /// Decides about a job, the most urgent first; actions for which there is no node are dropped.
    fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>);

    /// The pause after a look until the next, depending on whether backups were sent; `None`: there is none. The first
    /// look is on arrival of a job, after its copies have been sent.
    fn pause(&self, _sent: bool) -> Option<Span> {
        None
    }

    /// Whether a node may get backups.
    fn serves(&self, _node: u32) -> bool {
        true
    }

    /// Called when a copy on a node has progressed by `gain` billionths; negative if it was stopped.
    fn progressed(&mut self, _node: u32, _gain: i64) {}

    /// Called when a task of a job of that class finished, with the time since the first of its copies that are on
    /// nodes was sent.
    fn finished(&mut self, _class: u8, _after: Span) {}
}

/// The rule without backups.
#[derive(Clone, Copy, Debug)]
pub struct NoBackups;

impl Rule for NoBackups {
    fn look(&mut self, _: &JobView<'_>, _: &mut Vec<Action>) {}
}

/// Mean of some times, s; `None` if there are none.
pub fn mean(times: &[Span]) -> Option<f64> {
    let sum: f64 = times.iter().map(|time| time.as_secs_f64()).sum();
    (!times.is_empty()).then(|| sum / times.len() as f64)
}

/// Mean and population standard deviation of some times, s.
pub fn mean_and_deviation(times: &[Span]) -> Option<(f64, f64)> {
    let mean = mean(times)?;
    let squares: f64 = times.iter().map(|time| (time.as_secs_f64() - mean).powi(2)).sum();
    Some((mean, (squares / times.len() as f64).sqrt()))
}

/// The `p`-quantile of some values, with linear interpolation; `None` if there are none. Sorts the values.
pub fn quantile(values: &mut [f64], p: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let at = p * values.len().checked_sub(1)? as f64;
    let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
    Some(if low == high { low } else { low + (high - low) * at.fract() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_quantiles() {
        let times = [1, 3, 5, 7].map(Span::from_secs);
        assert_eq!(mean_and_deviation(&times), Some((4.0, 5.0f64.sqrt())));
        assert_eq!((mean(&[]), quantile(&mut [], 0.5)), (None, None));
        let mut values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(|p| quantile(&mut values, p)), [1.0, 1.75, 2.5, 4.0].map(Some));
        assert_eq!(quantile(&mut [f64::INFINITY; 2], 0.3), Some(f64::INFINITY));
    }
}
