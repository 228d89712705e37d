//! Speculative execution of Hadoop 2.

use super::policy::{BuildContext, Policy, Traits, check_scaled, reporting};
use crate::base::{Span, parameters};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::node::ProgressErrors;
use crate::roles::speculation::rule::mean_and_deviation;
use crate::roles::speculation::{Action, Attempt, CopyBinding, JobView, Rule, speculate};

parameters! {
    /// Parameters of Hadoop 2's speculator. Defaults and names in brackets are from `MRJobConfig`, `DefaultSpeculator`
    /// and `StartEndTimesBase` of Hadoop 2.7.
    struct Hadoop2 {
        /// A task is slow from this number of standard deviations above the mean time of finished tasks on
        /// (`slowtaskthreshold`).
        slow: f64 = 1.0 => 0.0..=1000.0,
        /// Smallest limit on the backups that a job may have at once (`minimum-allowed-tasks`).
        allowed: u32 = 10,
        /// Backups that a job may have at once, as a share of its tasks (`speculative-cap-total-tasks`).
        allowed_of_tasks: f64 = 0.01 => 0.0..=1.0,
        /// Backups that a job may have at once, as a share of its running tasks (`speculative-cap-running-tasks`).
        allowed_of_running: f64 = 0.1 => 0.0..=1.0,
        /// Time between checks of a job while there is nothing to back up (`retry-after-no-speculate`).
        scan: Span = Span::from_secs(1),
        /// Time to the next check after a backup was sent (`retry-after-speculate`).
        rest: Span = Span::from_secs(15),
        /// Period at which nodes report the progress of their copies (Hadoop's tasks: 3 s).
        report: Span = Span::from_secs(3),
        /// Errors of the reported progress.
        progress: ProgressErrors = ProgressErrors::default(),
        /// Factor on all durations above, which suit tasks of minutes; use 0.01 for tasks of a second.
        scale: f64 = 1.0 => 1e-6..=1e6,
        /// The nodes to which copies are sent.
        binding: CopyBinding = CopyBinding::Central,
    }
}

impl Policy for Hadoop2 {
    const ABOUT: &'static str = "Hadoop 2 (DefaultSpeculator of Hadoop 2.7)\n\
        A queue of tasks, by default a central one. Once a twentieth of a job has finished, each check finds the task \
        whose copy is expected to end longest after a new one would; if a core is free and no task waits for it, the \
        task gets a second copy. The next check is after a second, or after fifteen if a copy was sent. The first \
        result counts, the other copy is stopped.";

    fn traits(&self) -> Traits<'_> {
        reporting(self.report, self.report, &self.progress, self.scale, self.binding)
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        let periods = [("report", self.report), ("rest", self.rest), ("scan", self.scan)];
        check_scaled(&self.progress, self.scale, &periods)
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        speculate(self.clone(), self.binding, context.layout, true, context.lossy)
    }
}

/// Share of a job's tasks that must have finished before any task is backed up (`MINIMUM_COMPLETE_PROPORTION`).
const FINISHED: f64 = 0.05;

/// Time without reports, times `scale`, after which a copy is treated as having made no progress since its last
/// report (`notHeartbeatedInAWhile`).
const SILENCE: Span = Span::from_secs(9);

/// Lower bound of the progress of an attempt (`LegacyTaskRuntimeEstimator`).
const LEAST_PROGRESS: f64 = 0.0001;

impl Hadoop2 {
    /// Mean and standard deviation of the times of finished tasks, s; `None` if too few have finished.
    fn usual(&self, view: &JobView<'_>) -> Option<(f64, f64)> {
        let share = f64::from(view.finished) / f64::from(view.tasks);
        if share >= FINISHED { mean_and_deviation(view.took) } else { None }
    }

    /// Expected total duration of an attempt, s.
    fn estimate(&self, attempt: &Attempt, view: &JobView<'_>) -> f64 {
        let silent = view.now.since(attempt.reported_at) > SILENCE.scale(self.scale);
        let until = if silent { view.now } else { attempt.reported_at };
        attempt.ran(until) / attempt.score.share().max(LEAST_PROGRESS)
    }

    /// Time between the expected ends of an attempt and of a new copy, s; `None` unless the attempt is slow.
    fn value(&self, attempt: &Attempt, view: &JobView<'_>) -> Option<f64> {
        let (mean, deviation) = self.usual(view)?;
        let takes = self.estimate(attempt, view);
        let value = takes - attempt.ran(view.now) - mean;
        (takes > mean + self.slow * deviation && value > 0.0).then_some(value)
    }

    /// Maximum number of backups that the job may have at once.
    fn most(&self, running: u32, view: &JobView<'_>) -> f64 {
        let of_tasks = self.allowed_of_tasks * f64::from(view.tasks);
        let of_running = self.allowed_of_running * f64::from(running);
        f64::from(self.allowed).max(of_tasks.floor()).max(of_running)
    }
}

/// Backs up the task whose copy is expected to end longest after a new copy would.
impl Rule for Hadoop2 {
    fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>) {
        let alone = view.attempts.alone().count() as u32;
        let copied =
            view.attempts.all().iter().filter(|a| view.attempts.copies(a.task) > 1).count() as u32 / 2;
        if view.cluster.free == 0 || f64::from(copied) >= self.most(alone + copied, view) {
            return;
        }
        let values = view.attempts.alone().filter_map(|a| Some((self.value(a, view)?, a.task)));
        // Ties go to the first task.
        let best = values.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        actions.extend(best.map(|(_, task)| Action::Backup(task)));
    }

    fn pause(&self, sent: bool) -> Option<Span> {
        Some(if sent { self.rest } else { self.scan }.scale(self.scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::speculation::rule::fixture::Table;

    const NO_TASK: [u32; 0] = [];

    fn look(table: &Table) -> Vec<u32> {
        table.look(&mut Hadoop2::default())
    }

    /// Four tasks finished in 10, 10, 20 and 20 s: mean 15 s, deviation 5 s. A new copy at 100 s would end at 115 s.
    fn table(tasks: u32) -> Table {
        Table::new(tasks).finished(2, 10).finished(2, 20).at(100)
    }

    #[test]
    fn the_task_that_ends_longest_after_a_new_copy_is_backed_up() {
        // The running copies are expected to end at 90 + 10 / 0.25 = 130, at 80 + 20 / 0.5 = 120, and at 84 + 16 / 0.5
        // = 116.
        let rule = Hadoop2::default();
        let three = table(7).running(4, 90, 0.25).running(5, 80, 0.5).running(6, 84, 0.5);
        let view = three.view();
        let values: Vec<_> = view.attempts.all().iter().map(|a| rule.value(a, &view)).collect();
        assert_eq!(values, [Some(15.0), Some(5.0), Some(1.0)]);
        assert_eq!(look(&three), [4], "one backup per check");
        assert_eq!(look(&three.clone().backup(4, 99, 0.0)), [5]);
        assert_eq!(look(&three.free(0)), NO_TASK);
    }

    #[test]
    fn tasks_that_are_not_slow_or_end_early_get_no_backup() {
        // The task takes 20 s in all, not more than mean plus deviation.
        assert_eq!(look(&table(5).running(4, 90, 0.5)), NO_TASK);
        // The task takes 40 s in all, but it ends at 110 s.
        assert_eq!(look(&table(5).running(4, 70, 0.75)), NO_TASK);
        assert_eq!(look(&table(5).running(4, 70, 0.5)), [4]);
    }

    #[test]
    fn no_backup_is_sent_until_a_twentieth_of_tasks_finished() {
        let table = |tasks| Table::new(tasks).finished(1, 10).at(100).running(9, 50, 0.1);
        assert_eq!((look(&table(20)), look(&table(21))), (vec![9], vec![]));
        assert_eq!(look(&Table::new(10).at(100).running(9, 50, 0.1)), NO_TASK);
    }

    /// The copy is half done after 20 s of 40 s and would end at 100 s. A report from 9 s ago is recent enough, a
    /// report from 10 s ago is not.
    #[test]
    fn a_copy_without_recent_reports_is_treated_as_making_no_progress() {
        let silent =
            |reported_at| look(&table(5).at(reported_at + 9).silent(4, reported_at - 20, 0.5, reported_at));
        assert_eq!(silent(80), NO_TASK);
        assert_eq!(look(&table(5).at(90).silent(4, 60, 0.5, 80)), [4], "30 s for half of it: 60 s in all");
        // After 9 s without reports the copy is treated as making no progress.
        assert_eq!(look(&table(5).silent(4, 91, 0.0, 91)), NO_TASK);
        assert_eq!(look(&table(5).silent(4, 90, 0.0, 90)), [4]);
    }

    /// The cap is the largest of ten backups, 1 % of 2000 tasks, and a tenth of 150 running tasks.
    #[test]
    fn backups_are_limited_to_the_largest_of_three_caps() {
        let rule = Hadoop2::default();
        let allowed = |tasks, running| rule.most(running, &Table::new(tasks).view());
        assert_eq!([allowed(50, 40), allowed(2000, 40), allowed(500, 150)], [10.0, 20.0, 15.0]);
        let copied = (0..10).fold(table(30), |table, task| table.running(task, 0, 0.1).backup(task, 90, 0.1));
        assert_eq!(look(&copied.running(20, 0, 0.1)), NO_TASK);
    }

    #[test]
    fn a_check_that_sent_a_backup_is_followed_by_the_longer_pause() {
        let rule = Hadoop2 { scale: 0.01, ..Hadoop2::default() };
        assert_eq!(
            [false, true].map(|sent| rule.pause(sent)),
            [10, 150].map(|ms| Some(Span::from_millis(ms)))
        );
    }
}
