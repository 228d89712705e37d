//! LATE: backups of the tasks that are expected to end last.

use super::policy::{BuildContext, Policy, Traits, check_scaled, reporting};
use crate::base::{Span, parameters};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::node::ProgressErrors;
use crate::roles::speculation::rule::quantile;
use crate::roles::speculation::{Action, Attempt, CopyBinding, JobView, Rule, speculate};

parameters! {
    /// Parameters of LATE. Names and defaults are the paper's, except for `report`.
    struct LatePolicy {
        /// Time for which a copy runs before it can be a straggler.
        running: Span = Span::from_secs(60),
        /// SpeculativeCap: share of the cluster's cores that may run backups.
        cap: f64 = 0.1 => 0.0..=1.0,
        /// SlowNodeThreshold: the quantile of nodes below which a node gets no backups. Nodes are ranked by the work
        /// that they have done on finished and running copies since the run began.
        slow_node: f64 = 0.25 => 0.0..=1.0,
        /// SlowTaskThreshold: the quantile of a job's tasks, by progress per second, below which a task is backed up.
        slow_task: f64 = 0.25 => 0.0..=1.0,
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

impl Policy for LatePolicy {
    const ABOUT: &'static str = "LATE (Zaharia, Konwinski, Joseph, Katz and Stoica, OSDI 2008)\n\
        A queue of tasks, by default a central one. When cores are free and no task waits for them, the tasks that \
        will take longest at the rate seen so far get a second copy: only tasks in the slowest quarter of their job, \
        not on nodes in the quarter that has done the least work, and on a tenth of the cores at most. The \
        first result counts, the other copy is stopped.";

    fn traits(&self) -> Traits<'_> {
        reporting(self.report, self.running.max(self.report), &self.progress, self.scale, self.binding)
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_scaled(&self.progress, self.scale, &[("report", self.report)])
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let rule = Longest::new(self, context.layout.nodes());
        speculate(rule, self.binding, context.layout, true, context.lossy)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Longest {
    terms: LatePolicy,
    running: Span,
    /// Work that each node has done on finished and running copies, in billionths of a copy.
    done: Vec<i64>,
    /// Work that a node must have done to get backups.
    least: f64,
}

impl Longest {
    pub(super) fn new(terms: &LatePolicy, nodes: u32) -> Self {
        let running = terms.running.scale(terms.scale);
        Self { terms: terms.clone(), running, done: vec![0; nodes as usize], least: 0.0 }
    }

    /// The rate below which tasks of a job are slow, over finished tasks and running tasks with a report.
    fn slow(&self, view: &JobView<'_>) -> Option<f64> {
        let finished = view.took.iter().map(|took| 1.0 / took.as_secs_f64());
        let running = view.farthest().map(|attempt| attempt.rate(view.now)).filter(|&rate| rate > 0.0);
        quantile(&mut finished.chain(running).collect::<Vec<_>>(), self.terms.slow_task)
    }

    /// Number of further backups that may run.
    fn room(&self, view: &JobView<'_>) -> usize {
        let most = (self.terms.cap * f64::from(view.cluster.slots)).ceil() as u32;
        view.cluster.free.min(most.saturating_sub(view.cluster.backups)) as usize
    }
}

impl Rule for Longest {
    fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>) {
        let room = self.room(view);
        let old = |attempt: &&Attempt| view.now.since(attempt.since) >= self.running;
        let mut slow: Vec<&Attempt> = view.attempts.alone().filter(old).collect();
        if room == 0 || slow.is_empty() {
            return;
        }
        let Some(rate) = self.slow(view) else { return };
        slow.retain(|attempt| attempt.rate(view.now) < rate);
        if slow.is_empty() {
            return;
        }
        slow.sort_by(|a, b| b.left(view.now).total_cmp(&a.left(view.now)).then(a.task.cmp(&b.task)));
        actions.extend(slow.iter().take(room).map(|attempt| Action::Backup(attempt.task)));
        let mut done: Vec<f64> = self.done.iter().map(|&done| done as f64).collect();
        self.least = quantile(&mut done, self.terms.slow_node).unwrap_or(0.0);
    }

    fn pause(&self, _: bool) -> Option<Span> {
        Some(self.terms.report.scale(self.terms.scale))
    }

    fn serves(&self, node: u32) -> bool {
        self.done[node as usize] as f64 >= self.least
    }

    fn progressed(&mut self, node: u32, gain: i64) {
        self.done[node as usize] += gain;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Score;
    use crate::roles::speculation::rule::fixture::Table;

    fn rule() -> Longest {
        Longest::new(&LatePolicy::default(), 4)
    }

    /// Eight tasks of a job at 100 s. Four finished in 50 s, two run at the same rate, and one at a quarter of it.
    /// The last is even slower, but has done more because it has run for longer.
    fn table() -> Table {
        Table::new(8)
            .finished(4, 50)
            .at(100)
            .running(4, 80, 0.4)
            .running(5, 80, 0.4)
            .running(6, 20, 0.4)
            .running(7, 0, 0.4)
    }

    #[test]
    fn the_slow_task_with_the_most_left_comes_first() {
        // The rates are 0.02 six times, 0.005 and 0.004; the 25th percentile is 0.02 − 0.25 · 0.015.
        assert!((rule().slow(&table().view()).unwrap() - 0.016_25).abs() < 1e-12);
        // Task 6 has 120 s left, task 7 has 150 s.
        assert_eq!(table().look(&mut rule()), [7, 6]);
        assert_eq!(table().free(1).look(&mut rule()), [7]);
    }

    #[test]
    fn backups_stop_at_the_speculative_cap() {
        let slots = |slots, backups| table().slots(slots, backups).look(&mut rule());
        assert_eq!((slots(20, 0), slots(20, 1), slots(20, 2)), (vec![7, 6], vec![7], vec![]));
    }

    #[test]
    fn a_task_that_has_just_begun_or_has_a_backup_gets_no_backup() {
        assert_eq!(table().backup(7, 99, 0.0).look(&mut rule()), [6]);
        let young = |since| Table::new(4).finished(3, 10).at(100).running(3, since, 0.01).look(&mut rule());
        assert_eq!((young(40), young(41)), (vec![3], vec![]));
    }

    /// A node below the 25th percentile of work done gets no backups; the work of stopped copies is subtracted.
    #[test]
    fn slow_nodes_get_no_backups() {
        let mut rule = rule();
        for node in 0..4 {
            rule.progressed(node, i64::from(Score::ALL.0) * i64::from(node + 1));
        }
        rule.progressed(3, -3 * i64::from(Score::ALL.0));
        table().look(&mut rule);
        // The nodes have done 1, 2, 3 and 1; the 25th percentile is 1.
        assert_eq!([0, 1, 2, 3].map(|node| rule.serves(node)), [true; 4]);
        rule.progressed(0, -1);
        table().look(&mut rule);
        assert_eq!([0, 1, 2, 3].map(|node| rule.serves(node)), [false, true, true, true]);
    }
}
