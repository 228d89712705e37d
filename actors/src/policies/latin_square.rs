//! The latin-square scheduling policy.

use super::policy::{Binds, BuildContext, Policy, Traits};
use crate::base::{Span, parameters};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::late_binding::ProbeOptions;
use crate::roles::replication::{Design, Drops, Replication};

parameters! {
    /// Parameters of the latin-square policy.
    struct LatinSquare {
        /// Order v of the square: number of tasks of a branch, and of servers that run it (section VI-B uses 2). If v
        /// does not divide a job's number of tasks, the last square of the job is smaller.
        order: u32 = 2 => 1..=65_535,
        /// Number of tasks that each server of a branch holds, the first ones of its row; also the number of copies of
        /// each task. Below the order the design is a Youden rectangle (section VIII-A). Default: the order.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 65_535))]
        columns: Option<u32> = None,
        /// Whether the other copies of a task are stopped when one finishes (section IV-A). Otherwise every copy runs
        /// to its end.
        preemption: bool = true,
        /// Power of k choices (section VIII-A): k nodes are sampled for each server of a branch, and the nodes with
        /// the shortest queues become the servers. With 1, servers are sampled at random, as in the paper.
        choices: u32 = 1 => 1..=64,
        /// Choice of the servers of a branch among the sampled nodes.
        binding: Binding = Binding::Early,
        /// Time for which the scheduler waits for queue lengths. With late binding on a network that can lose
        /// datagrams: time after which a reservation that may have been lost is sent again.
        patience: Span = Span::from_secs(1) => period,
    }

    /// Choice of the servers of a branch among the sampled nodes.
    enum Binding {
        /// Each node is asked for its queue length; the branch goes to the nodes with the shortest queues.
        #[default]
        Early,
        /// Each node queues a reservation, as in Sparrow; the nodes that reach their reservation first get the rows.
        Late,
    }
}

impl Policy for LatinSquare {
    const ABOUT: &'static str = "Latin square (Exton and Rodriguez, section IV, Fig. 3, Table II)\n\
        A job's tasks are cut into branches of v. Each branch goes to v distinct random servers; server i runs \
        them in the order of row i of a cyclic latin square, by itself. When a task finishes anywhere, its \
        other copies are stopped or removed, and a server whose current task is unchanged goes on.";

    fn traits(&self) -> Traits<'_> {
        let reservations = ProbeOptions { probe_ratio: self.choices.into(), ..ProbeOptions::default() };
        let binds = if self.binding == Binding::Late { Binds::Late } else { Binds::Early };
        Traits { binds, reservations, ..Traits::default() }
    }

    fn check(&self, layout: &Layout) -> Result<(), String> {
        check_order(self.order, layout)?;
        if self.binding == Binding::Late && self.choices == 1 {
            return Err("choices: late binding needs at least 2 nodes for a server, not 1".into());
        }
        match self.columns {
            Some(columns) if columns == 0 || columns > self.order => {
                Err(format!("columns: must be between 1 and the order, {}, not {columns}", self.order))
            }
            _ => Ok(()),
        }
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let drops = if self.preemption { Drops::PerTask } else { Drops::Never };
        let columns = self.columns.unwrap_or(self.order);
        let Self { order, choices, patience, .. } = *self;
        let late = self.binding == Binding::Late;
        let design = Design { order, columns, staggered: true, drops, choices, late, patience };
        Box::new(Replication::new(design, context.layout, context.lossy))
    }
}

/// Returns an error if an order exceeds the number of servers.
pub(super) fn check_order(order: u32, layout: &Layout) -> Result<(), String> {
    if order > layout.nodes() {
        return Err(format!(
            "order: {order} exceeds the number of servers, {}; lower it or raise cluster.nodes",
            layout.nodes()
        ));
    }
    Ok(())
}
