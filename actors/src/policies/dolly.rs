//! Dolly: clones of small jobs from the start.

use super::policy::{BuildContext, Policy, Traits, bound_by};
use crate::base::parameters;
use crate::machine::Machine;
use crate::roles::speculation::{Action, Cluster, CopyBinding, JobView, Rule, speculate};

parameters! {
    /// Parameters of Dolly. Letters and defaults are those of the paper unless stated otherwise.
    struct Dolly {
        /// ε: largest accepted probability that a cloned job has a straggler.
        epsilon: f64 = 0.05 => 1e-9..=0.999_999_999,
        /// p: probability that a copy is a straggler. The paper measures it; the default is ours.
        straggler: f64 = 0.1 => 1e-9..=0.999,
        /// β: share of the cluster's cores that may run clones.
        budget: f64 = 0.05 => 0.0..=1.0,
        /// Share of busy cores, clones included, above which no job is cloned. The default is ours.
        load: f64 = 0.8 => 0.0..=1.0,
        /// Number of tasks of the largest job that is cloned. The paper calls jobs of up to ten tasks small.
        largest: u32 = 10,
        /// The nodes to which copies are sent.
        binding: CopyBinding = CopyBinding::Central,
    }
}

impl Policy for Dolly {
    const ABOUT: &'static str = "Dolly (Ananthanarayanan, Ghodsi, Shenker and Stoica, NSDI 2013)\n\
        A queue of tasks, by default a central one. When a small job arrives each of its n tasks gets c copies at \
        once, the least number with which the job has a straggler with probability ε at most: c = ⌈ln(1 − (1 − \
        ε)^(1/n)) / ln p⌉. This requires that all copies find a core, on nodes of their own, within the budget for \
        clones and the limit on load; otherwise each task gets one copy. The first result counts, other copies are \
        stopped.";

    fn traits(&self) -> Traits<'_> {
        bound_by(self.binding)
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        speculate(self.clone(), self.binding, context.layout, false, context.lossy)
    }
}

impl Dolly {
    /// Smallest number of copies per task with which the probability that the job has a straggler is at most ε.
    fn copies(&self, tasks: u32) -> u32 {
        let task = 1.0 - (1.0 - self.epsilon).powf(1.0 / f64::from(tasks));
        ((task.ln() / self.straggler.ln()).ceil() as u32).max(1)
    }

    /// Whether this number of clones may be sent now.
    fn affords(&self, clones: u32, cluster: Cluster) -> bool {
        let Cluster { slots, free, busy, waiting, backups } = cluster;
        let share = |cores: u32| f64::from(cores) / f64::from(slots);
        waiting == 0
            && clones <= free
            && share(backups + clones) <= self.budget
            && share(busy.saturating_add(clones)) <= self.load
    }
}

impl Rule for Dolly {
    /// Clones or queues every task in the first and only check of a job.
    fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>) {
        let more = if view.tasks > self.largest { 0 } else { self.copies(view.tasks) - 1 };
        if self.affords(more.saturating_mul(view.tasks), view.cluster) {
            actions.extend((0..more).flat_map(|_| (0..view.tasks).map(Action::Backup)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::speculation::rule::fixture::Table;

    const NO_TASK: [u32; 0] = [];

    /// For ε = 0.05, jobs of 1, 5, 10 and 100 tasks accept probabilities of 0.05, 0.0102, 0.00512 and 0.000513 that a
    /// task straggles; p is 0.1.
    #[test]
    fn the_number_of_copies_follows_the_formula() {
        let dolly = Dolly::default();
        assert_eq!([1, 5, 10, 100].map(|tasks| dolly.copies(tasks)), [2, 2, 3, 4]);
        let rare = Dolly { straggler: 0.05, ..Dolly::default() };
        assert_eq!([1, 2, 20, 1000].map(|tasks| rare.copies(tasks)), [1, 2, 2, 4]);
    }

    fn arrival(tasks: u32) -> Table {
        (0..tasks).fold(Table::new(tasks), |table, task| table.running(task, 0, 0.0))
    }

    fn look(table: &Table) -> Vec<u32> {
        table.look(&mut Dolly::default())
    }

    #[test]
    fn small_jobs_are_cloned_as_a_whole() {
        let dolly = &mut Dolly { budget: 0.3, ..Dolly::default() };
        assert_eq!(arrival(2).free(50).look(dolly), [0, 1]);
        assert_eq!(arrival(10).free(50).look(dolly), (0..10).chain(0..10).collect::<Vec<_>>());
        assert_eq!(arrival(11).free(50).look(dolly), NO_TASK);
    }

    /// The cluster has a hundred cores: five may run clones, and eighty may be busy.
    #[test]
    fn jobs_are_cloned_within_the_budget_and_below_the_load_limit() {
        assert_eq!(look(&arrival(5).free(50)).len(), 5);
        assert_eq!(look(&arrival(5).free(50).slots(100, 1)), NO_TASK, "one clone more than the budget");
        assert_eq!(look(&arrival(5).free(25)).len(), 5, "80 of 100 cores are busy");
        assert_eq!(look(&arrival(5).free(24)), NO_TASK, "81 of 100 cores are busy");
        assert_eq!(look(&arrival(5).crowded()), NO_TASK);
    }
}
