//! Mantri: copies that are expected to save core time.

use super::policy::{BuildContext, Policy, Traits, check_scaled, reporting};
use crate::base::{Score, Span, parameters};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::node::ProgressErrors;
use crate::roles::speculation::rule::mean;
use crate::roles::speculation::{Action, Attempt, CopyBinding, JobView, Rule, speculate};

parameters! {
    /// Parameters of Mantri. Letters and defaults are the paper's.
    struct Mantri {
        /// δ: required probability that one more copy lowers the total time of all copies.
        delta: f64 = 0.25 => 0.0..=1.0,
        /// Δ: period at which nodes report progress and the scheduler checks a job. A copy without a report is
        /// treated as a fresh copy. A copy is stopped and restarted only if it takes Δ longer than a fresh one.
        report: Span = Span::from_secs(10),
        /// γ: maximum number of copies of a task that are stopped, whether to restart the task or because other
        /// copies are faster. The number is limited because estimates can be wrong.
        restarts: u32 = 3,
        /// Errors of the reported progress.
        progress: ProgressErrors = ProgressErrors::default(),
        /// Factor on the duration above, which suits tasks of minutes; use 0.01 for tasks of a second.
        scale: f64 = 1.0 => 1e-6..=1e6,
        /// The nodes to which copies are sent.
        binding: CopyBinding = CopyBinding::Central,
    }
}

impl Policy for Mantri {
    const ABOUT: &'static str = "Mantri (Ananthanarayanan et al., OSDI 2010)\n\
        A queue of tasks, by default a central one. A task with c running copies gets one more if, with probability δ, \
        its remaining time exceeds (c + 1) / c times a new run: then less core time is expected in all. The times of \
        new runs are those of the job's finished tasks. No copy is sent while one waits, or while a second copy has \
        run for less than Δ. Of the copies that have run for Δ, all but the two fastest are stopped, so that at most \
        three run (section 5.1). After γ stops of a task no copy of it is stopped, and none added beyond three. Copies \
        go to free cores for which no task of the job waits. While tasks wait for a core, which only a central queue \
        knows, a copy that takes clearly longer than a new run is stopped and begun again elsewhere. The first result \
        counts, and the other copies are stopped.";

    fn traits(&self) -> Traits<'_> {
        reporting(self.report, self.report, &self.progress, self.scale, self.binding)
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_scaled(&self.progress, self.scale, &[("report", self.report)])
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        speculate(self.clone(), self.binding, context.layout, true, context.lossy)
    }
}

/// Number of copies of a task that are kept when they can be compared.
const FASTEST: usize = 2;

impl Mantri {
    fn every(&self) -> Span {
        self.report.scale(self.scale)
    }

    /// Remaining time of an attempt, s, at its rate up to the last report; before the first report, the time of a
    /// fresh copy. After two missing reports the attempt is treated as having made no progress since.
    fn left(&self, attempt: &Attempt, fresh: f64, view: &JobView<'_>) -> f64 {
        let silence = view.now.since(attempt.reported_at);
        let late = self.progress.delay.scale(self.scale);
        if !attempt.waits && silence >= self.every() + self.every() + late {
            return attempt.left(view.now);
        }
        if attempt.score > Score::NONE {
            return (attempt.left(attempt.reported_at) - silence.as_secs_f64()).max(0.0);
        }
        (fresh - attempt.ran(view.now)).max(0.0)
    }

    /// The probability that one more copy of a task lowers the total core time, with `copies` running and `left`
    /// seconds to the first result: P(left > (c + 1) / c · new).
    fn gain(copies: u32, left: f64, took: &[Span]) -> f64 {
        let c = f64::from(copies);
        let lower = took.iter().filter(|new| left > (c + 1.0) / c * new.as_secs_f64()).count();
        lower as f64 / took.len() as f64
    }

    /// Whether a copy has not run for Δ yet.
    fn is_recent(&self, attempt: &Attempt, view: &JobView<'_>) -> bool {
        attempt.waits || view.now.since(attempt.since) < self.every()
    }

    /// Whether one more copy of a task may be sent, whatever it saves: no copy waits, and none of several copies is
    /// recent.
    fn may_add(&self, task: u32, view: &JobView<'_>) -> bool {
        let copies = view.attempts.copies(task) as usize;
        // A copy that is slower than the two fastest is stopped in this check.
        copies <= FASTEST + usize::from(self.stops_left(task, view) > 0)
            && view.attempts.of(task).all(|copy| !(copy.waits || copies > 1 && self.is_recent(copy, view)))
    }

    /// Number of copies of a task that may still be stopped.
    fn stops_left(&self, task: u32, view: &JobView<'_>) -> usize {
        let before = view.stopped.iter().filter(|&&stopped| stopped == task).count();
        (self.restarts as usize).saturating_sub(before)
    }

    /// Stops for the slowest copies of a task, all but the fastest [`FASTEST`], as far as stops are left. Copies too
    /// recent to be compared are not counted.
    fn slower(&self, task: u32, fresh: f64, view: &JobView<'_>) -> impl Iterator<Item = Action> {
        let known = view.attempts.of(task).filter(|copy| !self.is_recent(copy, view));
        let mut known: Vec<_> = known.map(|copy| (self.left(copy, fresh, view), copy.number)).collect();
        known.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let spare = known.len().saturating_sub(FASTEST).min(self.stops_left(task, view));
        known.into_iter().rev().take(spare).map(move |(_, number)| Action::Stop(task, number))
    }

    /// The action for a task with the latest copy `attempt`; `placed` says whether every open task has a node.
    fn wish(
        &self,
        attempt: &Attempt,
        left: f64,
        fresh: f64,
        placed: bool,
        view: &JobView<'_>,
    ) -> Option<Action> {
        let copies = view.attempts.copies(attempt.task);
        if view.cluster.free > 0 {
            let running = copies.min(FASTEST as u32);
            let pays = placed
                && self.may_add(attempt.task, view)
                && Self::gain(running, left, view.took) > self.delta;
            return pays.then_some(Action::Backup(attempt.task));
        }
        let clearly = left > fresh + self.every().as_secs_f64() && self.stops_left(attempt.task, view) > 0;
        let anew = view.cluster.waiting > 0 && copies == 1 && clearly;
        anew.then_some(Action::Restart(attempt.task, attempt.number))
    }
}

impl Rule for Mantri {
    fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>) {
        let Some(fresh) = mean(view.took) else { return };
        let (mut slow, mut placed) = (Vec::<(f64, &Attempt)>::new(), 0);
        for attempt in view.attempts.all() {
            // Each task is handled once, at the latest of its copies.
            if view.attempts.of(attempt.task).next() == Some(attempt) {
                let lefts = view.attempts.of(attempt.task).map(|copy| self.left(copy, fresh, view));
                slow.push((lefts.fold(f64::INFINITY, f64::min), attempt));
                placed += u32::from(view.attempts.of(attempt.task).any(|copy| copy.node.is_some()));
            }
        }
        let placed = view.finished + placed == view.tasks;
        slow.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.task.cmp(&b.1.task)));
        for &(_, attempt) in &slow {
            actions.extend(self.slower(attempt.task, fresh, view));
        }
        let wish = |&(left, attempt): &(f64, &Attempt)| self.wish(attempt, left, fresh, placed, view);
        actions.extend(slow.iter().filter_map(wish));
    }

    fn pause(&self, _: bool) -> Option<Span> {
        Some(self.every())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::speculation::rule::fixture::Table;

    const NO_TASK: [u32; 0] = [];

    /// Four tasks finished in 10, 20, 30 and 40 s (mean 25 s). `open` tasks have not finished; the first is number 4.
    fn with(open: u32) -> Table {
        Table::new(4 + open).finished(1, 10).finished(1, 20).finished(1, 30).finished(1, 40).at(100)
    }

    fn table() -> Table {
        with(1)
    }

    #[test]
    fn the_gain_is_the_probability_that_a_copy_saves_core_time() {
        let took = [10, 20, 30, 40].map(Span::from_secs);
        let gain = |copies, left| Mantri::gain(copies, left, &took);
        // One running copy must need more than twice a new run, two copies more than one and a half times.
        assert_eq!([gain(1, 20.0), gain(1, 20.1), gain(1, 40.1), gain(1, 81.0)], [0.0, 0.25, 0.5, 1.0]);
        assert_eq!([gain(2, 15.0), gain(2, 15.1), gain(2, 30.1), gain(2, 61.0)], [0.0, 0.25, 0.5, 1.0]);
    }

    #[test]
    fn a_copy_is_sent_if_the_probability_exceeds_delta() {
        // After 50 s for half of the work 50 s are left, more than twice 10 or 20 s.
        assert_eq!(table().running(4, 50, 0.5).look(&mut Mantri::default()), [4]);
        // 40 s are left, which is more than twice 10 s only.
        assert_eq!(table().running(4, 60, 0.5).look(&mut Mantri::default()), NO_TASK);
        // A fresh copy beside it would take the mean, 25 s. With two copies less than 30 s is not enough.
        assert_eq!(table().running(4, 50, 0.5).backup(4, 100, 0.0).look(&mut Mantri::default()), NO_TASK);
        // A report that is 10 s old leads to the same result: the copy ends at 140 s.
        let old = table().silent(4, 40, 0.5, 90);
        assert_eq!(old.look(&mut Mantri::default()), NO_TASK);
        // A new copy pays if both copies are slow, with 50 s and 40 s left.
        assert_eq!(table().running(4, 50, 0.5).backup(4, 60, 0.5).look(&mut Mantri::default()), [4]);
    }

    #[test]
    fn the_longest_task_comes_first_and_a_silent_task_is_treated_as_endless() {
        let table = with(3).running(4, 50, 0.5).running(5, 40, 0.5).silent(6, 80, 0.0, 80);
        assert_eq!(table.look(&mut Mantri::default()), [6, 5, 4]);
        assert_eq!(
            Table::new(4).at(100).running(0, 0, 0.01).look(&mut Mantri::default()),
            NO_TASK,
            "no copy has a time to compare with"
        );
    }

    /// A task has at most three running copies (section 5.1).
    #[test]
    fn all_but_the_two_fastest_copies_are_stopped() {
        // The copies have 100, 60 and 50 s left, and the latest copy has not run for Δ.
        let three = table().running(4, 50, 1.0 / 3.0).backup(4, 70, 1.0 / 3.0).backup(4, 75, 1.0 / 3.0);
        let four = three.clone().backup(4, 91, 0.0);
        assert_eq!(four.actions(&mut Mantri::default()), [Action::Stop(4, 0)]);
        // The two remaining copies need 50 s, more than one and a half times 10, 20 and 30 s.
        assert_eq!(three.actions(&mut Mantri::default()), [Action::Stop(4, 0), Action::Backup(4)]);
        let two = table().running(4, 50, 1.0 / 3.0).backup(4, 91, 0.0);
        assert_eq!(two.actions(&mut Mantri::default()), [], "a copy was sent less than Δ ago");
    }

    /// Reports can be wrong. If copies could be stopped any number of times, none might ever finish.
    #[test]
    fn after_gamma_stops_no_running_copy_is_stopped() {
        let three = table().running(4, 50, 1.0 / 3.0).backup(4, 70, 1.0 / 3.0).backup(4, 75, 1.0 / 3.0);
        let twice = three.stopped(4).stopped(4);
        assert_eq!(twice.actions(&mut Mantri::default()), [Action::Stop(4, 0), Action::Backup(4)]);
        assert_eq!(twice.stopped(4).actions(&mut Mantri::default()), []);
    }

    #[test]
    fn no_copy_is_sent_while_another_copy_of_the_task_waits() {
        assert_eq!(table().running(4, 50, 0.5).waiting(4).look(&mut Mantri::default()), NO_TASK);
        assert_eq!(table().waiting(4).look(&mut Mantri::default()), NO_TASK);
    }

    /// Another task of the job has no node yet, and its first copy goes before second copies.
    #[test]
    fn no_second_copy_is_sent_while_a_task_has_no_node() {
        let slow = |open| with(open).running(4, 50, 0.5).look(&mut Mantri::default());
        assert_eq!((slow(1), slow(2)), (vec![4], vec![]));
    }

    /// Without free cores a straggler is restarted if it has more than 35 s left, the mean plus Δ, and at most three
    /// times.
    #[test]
    fn while_tasks_wait_a_straggler_is_restarted() {
        let left = |since| table().crowded().running(4, since, 0.5).actions(&mut Mantri::default());
        assert_eq!((left(65), left(64)), (vec![], vec![Action::Restart(4, 0)]));
        let twice = table().crowded().running(4, 50, 0.5).stopped(4).stopped(4).stopped(5);
        assert_eq!(twice.actions(&mut Mantri::default()), [Action::Restart(4, 0)]);
        assert_eq!(twice.stopped(4).actions(&mut Mantri::default()), []);
        assert_eq!(
            table().free(0).running(4, 0, 0.1).actions(&mut Mantri::default()),
            [],
            "no task waits for its core"
        );
        assert_eq!(
            table().crowded().running(4, 0, 0.1).backup(4, 99, 0.0).actions(&mut Mantri::default()),
            []
        );
    }
}
