//! Parameters of Pigeon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::{Span, parameters};

parameters! {
    /// Parameters of Pigeon.
    struct Pigeon {
        /// Workers per group (the paper recommends 50 to 100). All cores of a node belong to one group, so the size is
        /// approximate with larger nodes. The last group has the remaining nodes.
        group: u32 = 100 => 1..=16_777_216,
        /// Share of the workers of each group that run short tasks only: the last workers of the group. Their number is
        /// rounded, but at least one if the share is above 0, and never all. The paper has 0.02 for the Yahoo trace,
        /// 0.08 for Cloudera, 0.09 for Google.
        #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
        reserved: f64 = 0.02,
        /// W: while both queues hold tasks, unreserved workers get W − 1 short tasks and then a long one. With
        /// `"strict"`, long tasks run only when no short task waits. The paper has 20 in simulations and strict
        /// priority on EC2.
        weight: QueueWeight = QueueWeight::Tasks(20),
        /// Assignment of tasks to masters.
        split: TaskSplit = TaskSplit::Blocks,
        /// Reproduces a defect of the authors' simulator: the list of reserved workers is not cleared between groups.
        /// The i-th master begins with the reserved workers of all groups up to its own, and a reserved worker runs
        /// one task at once for each master that lists it. After a task a reserved worker is listed only by the
        /// master of its own group. It has a core for each master that lists it at first, and utilization counts
        /// these cores. Nodes must have one core.
        phantom_reserved: bool = false,
        /// Whether each group has a second master, which takes over when the first crashes (section 6.1). Faults name
        /// masters in the form `"master:3"`; the standby of master i has number groups + i.
        standby: bool = false,
        /// Period at which a master sends its standby the changes of its queues.
        push: Span = Span::from_millis(100) => period,
        /// Time without a master after which the workers of a group claim the role. Each worker waits up to a quarter
        /// longer, and the earliest claim wins. A new master waits this time for workers that do not answer, and a
        /// worker that is the master announces itself at this period. Section 6.1 gives no times.
        declare_after: Span = Span::from_secs(5) => period,
        /// Period at which masters report their queue lengths to the schedulers, which then send tasks so that all
        /// groups have equally many per worker (section 6.2 proposes reports and does not evaluate them). Zero disables
        /// reports, and all groups get equal shares. With reports `split` has no effect.
        lengths: Span = Span::ZERO,
        /// Whether the first worker of each group runs no tasks, because the master runs on its node, as on EC2 in
        /// the paper.
        master_on_worker: bool = false,
    }

    /// Assignment of tasks to masters. Each of the N masters gets ⌊F/N⌋ of F tasks, and F mod N of them get one more.
    enum TaskSplit {
        /// Contiguous blocks of tasks. The order of masters is random for each job, and the last blocks are the
        /// larger ones.
        #[default]
        Blocks,
        /// Task i goes to master i mod N, in an order of masters that is random for each job.
        RoundRobin,
        /// Contiguous blocks in the order of masters, without randomness. Masters take turns in getting one task
        /// more.
        InOrder,
    }

    /// The weight that excludes long tasks while a short task waits.
    enum StrictPriority {
        /// Long tasks run only when no short task waits.
        #[default]
        Strict,
    }
}

/// Relative service of the two queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a whole number from 2 on, or \"strict\"")]
#[schemars(description = "whole number from 2 on, or \"strict\"")]
pub enum QueueWeight {
    /// One of this number of tasks is long; at least 2.
    Tasks(u32),
    /// Short tasks always come first.
    Strict(StrictPriority),
}
