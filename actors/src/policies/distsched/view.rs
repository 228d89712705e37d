//! The nodes as one job sees them.

use super::load::NodeLoad;
use super::sum::Convolution;
use crate::base::JobId;

/// A node that runs tasks of a job.
struct OwnNode {
    node: u32,
    /// Its load without these tasks.
    others: NodeLoad,
    /// How many they are.
    own: u32,
}

/// The loads of the nodes for a job. The tasks of a job use alike, so those that run already are not independent of
/// those to be placed: they count with these.
pub(super) struct PlacementView<'a> {
    nodes: &'a [NodeLoad],
    /// By number.
    own: Vec<OwnNode>,
    /// Nodes that take no further task of the job, by number.
    avoided: &'a [u32],
}

impl<'a> PlacementView<'a> {
    /// The nodes as `job` sees them, which runs tasks on the nodes `held` and takes none of `avoided`, both in order.
    pub(super) fn new(nodes: &'a [NodeLoad], job: JobId, held: &[u32], avoided: &'a [u32]) -> Self {
        let mut buffers = Convolution::default();
        let own = held.iter().filter_map(|&node| {
            let (others, own) = nodes[node as usize].without(job, &mut buffers)?;
            Some(OwnNode { node, others, own })
        });
        Self { nodes, own: own.collect(), avoided }
    }

    /// Number of nodes.
    pub(super) const fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// The load of a node without the tasks of the job, and the number of these.
    pub(super) fn node(&self, number: u32) -> (&NodeLoad, u32) {
        match self.own.binary_search_by_key(&number, |own| own.node) {
            Ok(at) => (&self.own[at].others, self.own[at].own),
            Err(_) => (&self.nodes[number as usize], 0),
        }
    }

    /// Whether a node takes no further task of the job.
    pub(super) fn avoids(&self, number: u32) -> bool {
        self.avoided.binary_search(&number).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::load::TaskUse;
    use super::super::load::tests::{idle, of};
    use super::*;
    use crate::predict::Distribution;

    /// A node of 16 with a task that uses 6 or 10: another one of the same job uses as much, so that both are above 16
    /// with probability 1/2; with one of another job, 1/4.
    #[test]
    fn tasks_of_a_job_use_alike() {
        let memory = of(&[(6.0, 0.5), (10.0, 0.5)]);
        let tasks = Arc::new(TaskUse { cpu: Distribution::point(1.0), memory, request: 1.0 });
        let mut loads = idle(&[(8.0, 16.0), (8.0, 16.0)]);
        loads.add(JobId(3), &[1], &tasks);
        let risk = |job: u32, held: &[u32]| {
            let view = PlacementView::new(loads.nodes(), JobId(job), held, &[]);
            let (node, own) = view.node(1);
            node.risk(&tasks, own + 1, 1.0).unwrap().memory
        };
        assert_eq!(risk(3, &[1]), 0.5);
        assert_eq!(risk(4, &[]), 0.25);
        let view = PlacementView::new(loads.nodes(), JobId(3), &[1], &[0]);
        assert_eq!((view.node(0).1, view.node(1).1), (0, 1));
        assert!(view.avoids(0) && !view.avoids(1));
    }
}
