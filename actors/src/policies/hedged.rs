//! Hedged requests: a second copy of what takes longer than most.

use std::collections::VecDeque;

use super::policy::{BuildContext, Policy};
use super::shared::positive;
use crate::base::{Span, parameters};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::central_queue::rule::quantile;
use crate::roles::central_queue::{Action, CentralScheduler, JobView, Rule};

parameters! {
    /// Parameters of hedging.
    struct Hedged {
        /// The quantile of the times that tasks take after which a second copy is sent (the paper: 0.95).
        quantile: f64 = 0.95 => 0.0..=1.0,
        /// Of how many of the tasks that finished last the quantile is taken. Our default.
        #[schemars(range(min = 20))]
        window: u32 = 1000,
        /// How often the scheduler looks at the tasks of a job. Our default.
        scan: Span = Span::from_millis(10),
    }
}

impl Policy for Hedged {
    const ABOUT: &'static str = "Hedged requests (Dean and Barroso, CACM 2013)\n\
        A central queue of tasks. One that has run for longer than 95 % of the tasks that finished lately took, \
        of whatever job, gets a second copy when a core is free for which nothing waits; the first result \
        counts, the other copy is stopped. Nobody needs to know how far a copy is.";

    const VARIANTS: &'static [&'static str] = &["{ quantile = 0.6, window = 20 }"];

    const ONE_SCHEDULER: bool = true;

    fn check(&self, _: &Layout) -> Result<(), String> {
        if self.window < LEAST {
            return Err(format!("window: must be {LEAST} or more, not {}", self.window));
        }
        positive("scan", self.scan)
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(CentralScheduler::new(Recent::new(self), context.layout))
    }
}

/// How many tasks must have finished before a quantile is taken.
const LEAST: u32 = 20;

/// How long tasks took lately.
struct Recent {
    terms: Hedged,
    took: VecDeque<Span>,
    /// Tasks that finished since the quantile was taken.
    since: u32,
    /// The quantile.
    after: Option<Span>,
}

impl Recent {
    fn new(terms: &Hedged) -> Self {
        Self { terms: terms.clone(), took: VecDeque::new(), since: 0, after: None }
    }
}

impl Rule for Recent {
    fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>) {
        let Some(after) = self.after.filter(|_| view.cluster.free > 0) else { return };
        let late = view.attempts.alone().filter(|attempt| view.now.since(attempt.since) > after);
        actions.extend(late.map(|attempt| Action::Backup(attempt.task)));
    }

    fn pause(&self, _: bool) -> Option<Span> {
        Some(self.terms.scan)
    }

    /// The quantile is taken again once a twentieth of the window is new.
    fn finished(&mut self, time: Span) {
        if self.took.len() == self.terms.window as usize {
            self.took.pop_front();
        }
        self.took.push_back(time);
        self.since += 1;
        if self.since >= LEAST.max(self.terms.window / 20) {
            self.since = 0;
            let mut times: Vec<f64> = self.took.iter().map(|time| time.as_secs_f64()).collect();
            self.after = quantile(&mut times, self.terms.quantile).map(Span::from_secs_f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::central_queue::fixture::Table;

    const NOBODY: [u32; 0] = [];

    /// A hundred tasks took 1 to 100 s: the 95th percentile is 95.05 s.
    #[test]
    fn what_takes_longer_than_most_gets_a_second_copy() {
        let mut rule = Recent::new(&Hedged { window: 100, ..Hedged::default() });
        let table = Table::new(3).at(200).running(0, 104, 0.0).running(1, 105, 0.0);
        (1..20).for_each(|s| rule.finished(Span::from_secs(s)));
        assert_eq!(table.look(&mut rule), NOBODY, "too few have finished");
        (20..101).for_each(|s| rule.finished(Span::from_secs(s)));
        assert_eq!(table.look(&mut rule), [0]);
        assert_eq!(table.clone().free(0).look(&mut rule), NOBODY);
        assert_eq!(table.backup(0, 190, 0.0).look(&mut rule), NOBODY, "one is enough");
    }

    #[test]
    fn old_times_are_forgotten() {
        let mut rule = Recent::new(&Hedged { window: 20, quantile: 1.0, ..Hedged::default() });
        (0..20).for_each(|_| rule.finished(Span::from_secs(9)));
        assert_eq!(rule.after, Some(Span::from_secs(9)));
        (0..20).for_each(|_| rule.finished(Span::from_secs(3)));
        assert_eq!((rule.after, rule.took.len()), (Some(Span::from_secs(3)), 20));
    }
}
