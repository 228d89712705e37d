//! Full repetition: the latin square without the stagger.

use super::latin_square;
use super::policy::{BuildContext, Policy};
use crate::base::{Span, parameters};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::replication::{Design, Drops, Replication};

parameters! {
    /// Parameters of full repetition.
    struct FullRepetition {
        /// Number of tasks of a branch, and of servers that run it, as in the latin square.
        order: u32 = 2 => 1..=65_535,
        /// Event at which copies are dropped.
        preempt: Preempt = Preempt::Branch,
    }

    /// Event at which copies are dropped.
    enum Preempt {
        /// All remaining copies of a branch are dropped when its last task finishes, as in the latin-square paper's
        /// simulator.
        #[default]
        Branch,
        /// The other copies of a task are dropped when one finishes, which isolates the effect of the stagger.
        Task,
    }
}

impl Policy for FullRepetition {
    const ABOUT: &'static str = "Full repetition (simulator of the latin-square paper)\n\
        Every server of a branch runs all its tasks, in the same order; the rest is stopped when the branch \
        ends. The non-staggered counterpart of the latin square.";

    fn check(&self, layout: &Layout) -> Result<(), String> {
        latin_square::check_order(self.order, layout)
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let drops = match self.preempt {
            Preempt::Branch => Drops::PerGroup,
            Preempt::Task => Drops::PerTask,
        };
        let (order, columns) = (self.order, self.order);
        let design =
            Design { order, columns, staggered: false, drops, choices: 1, late: false, patience: Span::ZERO };
        Box::new(Replication::new(design, context.layout, context.lossy))
    }
}
