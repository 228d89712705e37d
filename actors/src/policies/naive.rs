//! Speculative execution of the first Hadoop.

use super::policy::{BuildContext, Policy, Traits, check_scaled, reporting};
use crate::base::{Span, parameters};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::node::ProgressErrors;
use crate::roles::speculation::{Action, CopyBinding, JobView, Rule, speculate};

parameters! {
    /// Parameters of naive speculation.
    struct Naive {
        /// Time for which a copy runs before it can be a straggler (as the LATE paper says).
        running: Span = Span::from_secs(60),
        /// Difference by which a straggler's score is below the mean score of its job's tasks (as the LATE paper says).
        behind: f64 = 0.2 => 0.0..=1.0,
        /// Period at which nodes report the progress of their copies, and the scheduler looks for stragglers of a job
        /// (Hadoop's nodes report and ask for work every 3 s).
        report: Span = Span::from_secs(3),
        /// Errors of the reported progress.
        progress: ProgressErrors = ProgressErrors::default(),
        /// Factor on all durations above, which suit tasks of minutes; use 0.01 for tasks of a second.
        scale: f64 = 1.0 => 1e-6..=1e6,
        /// The nodes to which copies are sent.
        binding: CopyBinding = CopyBinding::Central,
    }
}

impl Policy for Naive {
    const ABOUT: &'static str = "Naive speculation (Hadoop 1, as Zaharia et al., OSDI 2008, describe it)\n\
        A queue of tasks, by default a central one. A task whose only copy has run for a minute and is a fifth of its \
        work behind the mean of its job gets a second copy when a core is free and no task waits for it; the first \
        result counts, the other copy is stopped. Tasks that have not begun count in the mean with no work done.";

    fn traits(&self) -> Traits<'_> {
        reporting(self.report, self.running.max(self.report), &self.progress, self.scale, self.binding)
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_scaled(&self.progress, self.scale, &[("report", self.report)])
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        speculate(self.clone(), self.binding, context.layout, true, context.lossy)
    }
}

impl Rule for Naive {
    fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>) {
        if view.cluster.free > 0 {
            let (running, mean) = (self.running.scale(self.scale), view.score() / f64::from(view.tasks));
            let slow = view.attempts.alone().filter(|attempt| {
                view.now.since(attempt.since) >= running && attempt.score.share() < mean - self.behind
            });
            actions.extend(slow.map(|attempt| Action::Backup(attempt.task)));
        }
    }

    fn pause(&self, _: bool) -> Option<Span> {
        Some(self.report.scale(self.scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::speculation::rule::fixture::Table;

    const NO_TASK: [u32; 0] = [];

    /// Five of ten tasks have finished, four are halfway, and one has some score s, so the mean is 0.7 + s / 10.
    fn look(score: f64, ran: u64) -> Vec<u32> {
        let mut table = Table::new(10).finished(5, 30).at(100);
        for task in 5..9 {
            table = table.running(task, 70, 0.5);
        }
        table.running(9, 100 - ran, score).look(&mut Naive::default())
    }

    #[test]
    fn a_task_a_fifth_behind_the_mean_is_backed_up_after_a_minute() {
        assert_eq!(look(0.1, 60), [9]);
        assert_eq!(look(0.1, 59), NO_TASK);
        // 0.7 + s / 10 − 0.2 > s holds for s below 5/9.
        assert_eq!((look(0.555, 60), look(0.556, 60)), (vec![9], vec![]));
    }

    #[test]
    fn a_task_gets_one_backup_and_none_without_a_free_core() {
        let mut rule = Naive::default();
        let table = Table::new(2).finished(1, 30).at(100).running(1, 0, 0.1);
        assert_eq!(table.look(&mut rule), [1]);
        assert_eq!(table.clone().free(0).look(&mut rule), NO_TASK);
        assert_eq!(table.backup(1, 90, 0.0).look(&mut rule), NO_TASK);
    }
}
