//! A central FIFO queue: the M/M/c of the textbooks.

use super::policy::{Binds, BuildContext, Policy, Traits};
use crate::base::parameters;
use crate::machine::Machine;
use crate::roles::speculation::{CopyBinding, NoBackups, speculate};

parameters! {
    /// No parameters.
    struct CentralQueue {}
}

impl Policy for CentralQueue {
    const ABOUT: &'static str = "Central queue (textbook M/G/c)\n\
        One scheduler holds every waiting task in a FIFO queue and knows which cores are free; the core that \
        has been idle longest gets the next task. Without network delay no work-conserving policy without \
        preemption or knowledge of sizes waits less on average.";

    fn traits(&self) -> Traits<'_> {
        Traits { binds: Binds::Central, one_scheduler: true, ..Traits::default() }
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        speculate(NoBackups, CopyBinding::Central, context.layout, false, context.lossy)
    }
}
