//! Hedged requests: a second copy of each task that takes longer than most tasks.

use std::collections::VecDeque;

use super::policy::{BuildContext, Policy, Traits, bound_by};
use crate::base::{Span, parameters};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::speculation::rule::quantile;
use crate::roles::speculation::{Action, CopyBinding, JobView, Rule, speculate};

parameters! {
    /// Parameters of hedging.
    struct Hedged {
        /// Quantile of task times after which a second copy is sent (the paper: 0.95).
        quantile: f64 = 0.95 => 0.0..=1.0,
        /// Number of recently finished tasks over which the quantile is taken. The default is ours.
        #[schemars(range(min = 20))]
        window: u32 = 1000,
        /// Period at which the scheduler checks the tasks of a job. The default is ours.
        scan: Span = Span::from_millis(10) => period,
        /// The nodes to which copies are sent.
        binding: CopyBinding = CopyBinding::Central,
    }
}

impl Policy for Hedged {
    const ABOUT: &'static str = "Hedged requests (Dean and Barroso, CACM 2013)\n\
        A task gets a second copy once its first was sent longer ago than the 95th percentile of the times of recent \
        tasks of its class, if a core is free and no task waits for it; the first result counts, the other copy is \
        stopped. Hedging does not change the percentile: a time that a second copy cuts short was above it already. \
        Nodes need not report progress. Copies go to free cores from a central queue, where they never wait; or, as in \
        the paper, to random nodes whether busy or not, where time in the queue counts; or by Sparrow's reservations.";

    fn traits(&self) -> Traits<'_> {
        bound_by(self.binding)
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        if self.window < LEAST {
            return Err(format!("window: must be {LEAST} or more, not {}", self.window));
        }
        Ok(())
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        speculate(Recent::new(self), self.binding, context.layout, false, context.lossy)
    }
}

/// Number of tasks that must have finished before a quantile is taken.
const LEAST: u32 = 20;

/// Recent task times of a class.
#[derive(Clone, Default, Debug)]
struct RecentTimes {
    took: VecDeque<Span>,
    /// Number of tasks that finished since the quantile was computed.
    since: u32,
    /// The quantile: time after which a second copy is sent.
    after: Option<Span>,
}

/// The rule of hedging, with recent task times by class.
#[derive(Clone, Debug)]
struct Recent {
    terms: Hedged,
    classes: Vec<RecentTimes>,
}

impl Recent {
    fn new(terms: &Hedged) -> Self {
        Self { terms: terms.clone(), classes: Vec::new() }
    }
}

impl Rule for Recent {
    fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>) {
        let after = self.classes.get(usize::from(view.class)).and_then(|recent| recent.after);
        let Some(after) = after.filter(|_| view.cluster.free > 0) else { return };
        let late = view.attempts.alone().filter(|attempt| view.now.since(attempt.since) > after);
        actions.extend(late.map(|attempt| Action::Backup(attempt.task)));
    }

    fn pause(&self, _: bool) -> Option<Span> {
        Some(self.terms.scan)
    }

    /// Records a task time. The quantile is computed again once a twentieth of the window is new.
    fn finished(&mut self, class: u8, time: Span) {
        let class = usize::from(class);
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, RecentTimes::default);
        }
        let recent = &mut self.classes[class];
        if recent.took.len() == self.terms.window as usize {
            recent.took.pop_front();
        }
        recent.took.push_back(time);
        recent.since += 1;
        if recent.since >= LEAST.max(self.terms.window / 20) {
            recent.since = 0;
            let mut times: Vec<f64> = recent.took.iter().map(|time| time.as_secs_f64()).collect();
            recent.after = quantile(&mut times, self.terms.quantile).map(Span::from_secs_f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use crate::roles::speculation::rule::fixture::Table;

    const NO_TASK: [u32; 0] = [];

    /// A hundred tasks took 1 to 100 s: the 95th percentile is 95.05 s.
    #[test]
    fn a_task_that_takes_longer_than_most_gets_a_second_copy() {
        let mut rule = Recent::new(&Hedged { window: 100, ..Hedged::default() });
        let table = Table::new(3).at(200).running(0, 104, 0.0).running(1, 105, 0.0);
        (1..20).for_each(|s| rule.finished(0, Span::from_secs(s)));
        assert_eq!(table.look(&mut rule), NO_TASK, "too few tasks have finished");
        (20..101).for_each(|s| rule.finished(0, Span::from_secs(s)));
        assert_eq!(table.look(&mut rule), [0]);
        assert_eq!(table.clone().free(0).look(&mut rule), NO_TASK);
        assert_eq!(table.backup(0, 190, 0.0).look(&mut rule), NO_TASK, "a task gets only one backup");
    }

    #[test]
    fn task_times_outside_the_window_are_forgotten() {
        let mut rule = Recent::new(&Hedged { window: 20, quantile: 1.0, ..Hedged::default() });
        (0..20).for_each(|_| rule.finished(1, Span::from_secs(9)));
        assert_eq!(rule.classes[1].after, Some(Span::from_secs(9)));
        (0..20).for_each(|_| rule.finished(1, Span::from_secs(3)));
        let recent = &rule.classes[1];
        assert_eq!((recent.after, recent.took.len()), (Some(Span::from_secs(3)), 20));
        assert_eq!(rule.classes[0].after, None, "no task of the other class has finished");
    }

    /// Task times are exponential with a mean of one second. Second copies shorten the longest tasks, but the learned
    /// quantile stays that of the times without second copies, ln 20.
    #[test]
    fn second_copies_do_not_lower_the_learned_quantile() {
        let mut rule = Recent::new(&Hedged::default());
        let mut rng = Rng::new(1, 2, 0);
        let mut draw = || -(1.0 - rng.unit()).ln();
        let (mut sum, mut count) = (0.0, 0.0);
        for task in 0..200_000 {
            let after = rule.classes.first().and_then(|recent| recent.after).map(Span::as_secs_f64);
            let (first, second) = (draw(), draw());
            let cut =
                after.map_or(first, |after| if first > after { first.min(after + second) } else { first });
            rule.finished(0, Span::from_secs_f64(cut));
            if let (Some(after), 2000..) = (after, task) {
                (sum, count) = (sum + after, count + 1.0);
            }
        }
        let (mean, exact): (f64, f64) = (sum / count, 20f64.ln());
        assert!((mean / exact - 1.0).abs() < 0.02, "the mean is {mean}, expected {exact}");
    }
}
