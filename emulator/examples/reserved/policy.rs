//! The parameters of the policy, and the machines that they make.

use volary_actors::base::Span;
use volary_actors::machine::Machine;
use volary_actors::policies::{BuildContext, Policy};
use volary_actors::roles::dispatcher::Dispatcher;

use crate::node::ReservingNode;
use crate::scheduler::ShortestOfFew;

volary_actors::parameters! {
    /// Parameters of the least loaded of a few nodes, with reservations.
    struct Reserved {
        /// Number of nodes that are asked for each task.
        probes: u32 = 3 => 1..=100,
        /// Lifetime of a reservation. It should be longer than a round trip and a message delay together, but shorter
        /// than a task: otherwise queues of nodes that were not chosen seem longer than they are.
        expiry: Span = Span::from_millis(100),
        /// First wait before nodes are asked again because an answer is missing; it doubles with each question about
        /// the task. Armed only where the network can lose datagrams.
        probe_timeout: Span = Span::from_secs(1) => period,
    }
}

impl Policy for Reserved {
    const ABOUT: &'static str = "Least loaded of three nodes, with reservations that expire (a tutorial of volary)\n\
        For each task its scheduler asks some random nodes how long their queues are, and sends it to the shortest. \
        A node that was asked counts the task in its queue until the task arrives or the reservation expires, so that \
        several schedulers that ask at once do not all choose the same node.";

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let timeout = context.lossy.then_some(self.probe_timeout);
        Box::new(Dispatcher::with(ShortestOfFew::new(self.probes as usize, timeout), context.layout))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(ReservingNode::new(self.expiry, context.layout.cores(context.index)))
    }
}
