//! Who is backed up, and when: what policies against stragglers differ in.

use super::attempts::{Attempt, Attempts};
use crate::base::{Span, Time};

/// A job as whoever looks for its stragglers sees it.
#[derive(Clone, Copy, Debug)]
pub struct JobView<'a> {
    /// The time of the look.
    pub now: Time,
    /// TaskRange of the job.
    pub tasks: u32,
    /// Of these, how many have a finished copy.
    pub finished: u32,
    /// What runs.
    pub attempts: &'a Attempts,
    /// How long the copies that finished tasks took, from their sending to their result.
    pub took: &'a [Span],
    /// TaskRange whose copy was stopped to begin anew, once for each time.
    pub restarted: &'a [u32],
    /// The cluster.
    pub cluster: Cluster,
}

impl JobView<'_> {
    /// Of each task that runs, the copy that is farthest.
    pub fn farthest(&self) -> impl Iterator<Item = &Attempt> {
        (0..self.tasks).filter_map(|task| self.attempts.of(task).max_by_key(|attempt| attempt.score))
    }

    /// What is done of the job, in tasks.
    #[must_use]
    pub fn score(&self) -> f64 {
        f64::from(self.finished) + self.farthest().map(|attempt| attempt.score.share()).sum::<f64>()
    }
}

/// The cluster at the time of a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// Cores.
    pub slots: u32,
    /// Of these, how many are free; none while first copies wait.
    pub free: u32,
    /// Copies that wait for a core.
    pub waiting: u32,
    /// Backups that run, of all jobs.
    pub backups: u32,
}

/// What a look at a job asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// One more copy of a task, on a node that has none.
    Backup(u32),
    /// Stop this attempt of a task and begin anew; it comes second in the queue, so that the core it leaves
    /// goes to another task.
    Restart(u32, u32),
}

/// A decision rule. One that never looks needs no more than [`look`](Self::look).
pub trait Rule: Send {
    /// What is to be done for a job, the most urgent first; what finds no free core is forgotten.
    fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>);

    /// How long after a look the next one is due, if backups were sent or not; `None`: there is none. The
    /// first look is when a job arrives and what can be sent has been sent.
    fn pause(&self, _sent: bool) -> Option<Span> {
        None
    }

    /// Whether a node may get backups.
    fn serves(&self, _node: u32) -> bool {
        true
    }

    /// A copy on a node has done so much more of its work, in billionths; less, if it was stopped.
    fn progressed(&mut self, _node: u32, _gain: i64) {}

    /// A task finished so long after the first of its copies was sent that ran until then.
    fn finished(&mut self, _after: Span) {}
}

/// No copy but the first.
#[derive(Clone, Copy, Debug)]
pub struct NoBackups;

impl Rule for NoBackups {
    fn look(&mut self, _: &JobView<'_>, _: &mut Vec<Action>) {}
}

/// Mean of some times, s; none of none.
#[must_use]
pub fn mean(times: &[Span]) -> Option<f64> {
    let sum: f64 = times.iter().map(|time| time.as_secs_f64()).sum();
    (!times.is_empty()).then(|| sum / times.len() as f64)
}

/// Mean and standard deviation of some times, s, all of them being known.
#[must_use]
pub fn mean_and_deviation(times: &[Span]) -> Option<(f64, f64)> {
    let mean = mean(times)?;
    let squares: f64 = times.iter().map(|time| (time.as_secs_f64() - mean).powi(2)).sum();
    Some((mean, (squares / times.len() as f64).sqrt()))
}

/// The `p`-quantile of some values, with linear interpolation between neighbours; none of none. Puts them in
/// order.
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
