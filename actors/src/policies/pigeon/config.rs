//! Parameters of Pigeon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::{Span, parameters};

parameters! {
    /// Parameters of Pigeon.
    struct Pigeon {
        /// Workers of a group (the paper recommends 50 to 100). The cores of a node belong to one group, so groups of
        /// larger nodes are only about as large; the last group has what is left.
        group: u32 = 100 => 1..=16_777_216,
        /// Share of the workers of each group that run short tasks only, the last ones; rounded, at least one if above
        /// 0, and never all. The paper has 0.02 for the Yahoo trace, 0.08 for Cloudera, 0.09 for Google.
        #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
        reserved: f64 = 0.02,
        /// Of this many tasks that unreserved workers get while both queues hold some, the last one is long;
        /// `"strict"`: long tasks run when no short one waits. The paper has 20 in simulations and strict priority on
        /// EC2.
        weight: GroupWeight = GroupWeight::Tasks(20),
        /// Which tasks go to which master.
        split: TaskSplit = TaskSplit::Blocks,
        /// The defect of the authors' simulator: the list of reserved workers is not cleared between groups, so the
        /// i-th master begins with those of all groups up to its own, and a reserved worker runs as many tasks at once
        /// as it is listed. After a task it is listed by the master of its own group only. In the run a reserved worker
        /// has a core for each master that lists it; utilization counts these cores. Nodes must have one core.
        phantom_reserved: bool = false,
        /// A second master for each group, which takes over when the first crashes (section 6.1). Faults name masters
        /// as `"master:3"`; the standby of master i has number groups + i.
        standby: bool = false,
        /// How often a master tells its standby how its queues changed.
        push: Span = Span::from_millis(100),
        /// How long a group is without a master before a worker declares itself one: the one with the earliest claim,
        /// which it makes after this time and up to a quarter more. A new master waits as long for workers that do not
        /// answer, and a worker that is the master repeats so often that it is. Section 6.1 gives no times.
        declare_after: Span = Span::from_secs(5),
        /// How often masters report their queues to the schedulers, which then send tasks so that the groups have
        /// equally many for each of their workers (section 6.2 proposes reports and does not evaluate them). Zero:
        /// never, and all groups get equal shares. With reports `split` is not read.
        lengths: Span = Span::ZERO,
        /// The first worker of each group runs nothing, because the master is there, as on EC2 in the paper.
        master_on_worker: bool = false,
    }

    /// Which tasks go to which master. Each gets ⌊F/N⌋ of F tasks, and F mod N of the N masters one more.
    enum TaskSplit {
        /// Contiguous tasks; the order of masters is drawn for each job, and the last blocks are the larger ones.
        #[default]
        Blocks,
        /// Task i goes to master i mod N, in an order of masters that is drawn for each job.
        RoundRobin,
        /// Contiguous tasks in the order of masters, without draws; the masters with one task more take turns.
        InOrder,
    }

    /// The weight that excludes long tasks while a short one waits.
    enum StrictPriority {
        /// Long tasks run when no short one waits.
        #[default]
        Strict,
    }
}

/// Relative service of the two queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a whole number from 2 on, or \"strict\"")]
#[schemars(description = "whole number from 2 on, or \"strict\"")]
pub enum GroupWeight {
    /// One of this many tasks is long, at least 2.
    Tasks(u32),
    /// Short tasks first.
    Strict(StrictPriority),
}
