//! Pigeon: schedulers deal tasks out to the masters of groups of workers. Masters queue tasks and give them to idle
//! workers. This file registers the policy.

mod config;
mod groups;
mod master;
mod node;
mod queues;
mod scheduler;

pub use config::Pigeon;
use config::{GroupWeight, TaskSplit};
use groups::WorkerGroups;
use master::MasterSeat;
use node::PigeonNode;
use scheduler::PigeonScheduler;

use crate::base::Span;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::policies::policy::{Auxiliaries, BuildContext, Policy, Traits, check_period};

/// Limit on the cores of a run with phantom reserved workers, whose number grows with the square of the groups.
const MOST_PHANTOM_CORES: u64 = 1 << 25;

impl Policy for Pigeon {
    const ABOUT: &'static str = "Pigeon (Wang et al., SoCC 2019)\n\
        Workers are divided into groups, each with a master. A scheduler deals the tasks of a job out to the masters, \
        as evenly as it can and without asking (section 2.2). A master queues short and long tasks apart and knows its \
        idle workers. Long tasks run on unreserved workers only, short ones on any, and a weight shares the freed \
        workers between the queues. Results go from the worker to the scheduler. `cutoff` of the workload decides \
        which jobs are long. When a master crashes its standby takes over, or a worker (section 6.1; the details are \
        ours). Masters can report the lengths of their queues (section 6.2).";

    const VARIANTS: &'static [&'static str] = &[
        "{ group = # }",
        r#"{ group = #, reserved = 0.3, weight = 5, standby = true, push = "50ms", declare_after = "2s", split = "round-robin" }"#,
        r#"{ group = #, weight = "strict", lengths = "200ms" }"#,
        r#"{ group = #, split = "in-order", master_on_worker = true, declare_after = "1s" }"#,
        "{ group = #, reserved = 0.3, phantom_reserved = true }",
    ];

    fn traits(&self) -> Traits<'_> {
        Traits { auxiliaries: Some(self), ..Traits::default() }
    }

    fn check(&self, layout: &Layout) -> Result<(), String> {
        if !(self.reserved >= 0.0 && self.reserved < 1.0) {
            return Err(format!("reserved: must be at least 0 and below 1, not {}", self.reserved));
        }
        if let GroupWeight::Tasks(weight @ ..2) = self.weight {
            return Err(format!(
                "weight: must be 2 or more, or \"strict\", not {weight}, because below 2 no short task would run"
            ));
        }
        check_period("push", self.push)?;
        check_period("declare_after", self.declare_after)?;
        if self.lengths > Span::ZERO {
            check_period("lengths", self.lengths)?;
            if self.split != TaskSplit::Blocks {
                return Err("split: has no effect with `lengths`; remove one of the two".into());
            }
        }
        self.check_groups(layout)
    }

    fn remarks(&self, layout: &Layout, classes: usize) -> Vec<String> {
        let groups = WorkerGroups::new(self, layout);
        let workers = |group| {
            if self.phantom_reserved { groups.nodes(group, layout) } else { groups.workers(group, layout) }
                .len()
        };
        let mut remarks = Vec::new();
        let (count, last) = (groups.count(), groups.count().saturating_sub(1));
        if count == 1 && u64::from(self.group) > workers(0) as u64 {
            remarks.push(format!("one group of {} workers, fewer than `group`", workers(0)));
        } else if count > 1 && workers(last) < workers(0) {
            remarks.push(format!(
                "the last of {count} groups has {} workers, the first {}",
                workers(last),
                workers(0)
            ));
        }
        if classes < 2 && self.reserved > 0.0 {
            remarks.push(
                "all jobs are short, so reserved workers run what others do: write `reserved = 0`, or state the \
                 workload's `cutoff`"
                    .to_owned(),
            );
        }
        if self.phantom_reserved {
            let cores: u32 = (0..layout.nodes()).map(|node| groups.phantom_cores(node, layout)).sum();
            let workers = layout.nodes();
            remarks.push(format!(
                "`phantom_reserved` gives {workers} workers {cores} cores, and utilization is a share of these cores"
            ));
        }
        remarks
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(PigeonScheduler::new(self, context.layout))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(PigeonNode::new(self, context.index, context.layout))
    }
}

impl Auxiliaries for Pigeon {
    fn name(&self) -> &'static str {
        "master"
    }

    fn layout(&self, cluster: Layout) -> Layout {
        let groups = WorkerGroups::new(self, &cluster);
        let masters = groups.masters();
        if !self.phantom_reserved {
            return cluster.with_auxiliaries(masters);
        }
        let cores: Vec<_> = (0..cluster.nodes()).map(|node| groups.phantom_cores(node, &cluster)).collect();
        cluster.with_cores(cores).with_auxiliaries(masters)
    }

    fn auxiliary(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(MasterSeat::new(self, context.index, context.layout))
    }

    fn beside(&self, number: u32, layout: &Layout) -> Option<u32> {
        let groups = WorkerGroups::new(self, layout);
        let (group, is_standby) = groups.group_of_master(number);
        let nodes = groups.nodes(group, layout);
        Some(if is_standby { nodes.end - 1 } else { nodes.start })
    }
}

impl Pigeon {
    /// Checks that the workers can be divided into these groups.
    fn check_groups(&self, layout: &Layout) -> Result<(), String> {
        let most = (0..layout.nodes()).map(|node| layout.cores(node)).max().unwrap_or(1);
        if self.phantom_reserved {
            if most > 1 {
                return Err(
                    "phantom_reserved: needs nodes of one core, as in the authors' simulator; set cluster.cores = 1"
                        .into(),
                );
            }
            if self.master_on_worker {
                return Err(
                    "phantom_reserved: the authors' simulator has no master_on_worker; remove one".into()
                );
            }
        }
        if most > self.group {
            return Err(format!(
                "group: the cores of a node belong to one group, and a node has {most}; set group = {most} or more"
            ));
        }
        let groups = WorkerGroups::new(self, layout);
        if self.phantom_reserved {
            let phantom = |node| u64::from(groups.phantom_cores(node, layout));
            let cores: u64 = (0..layout.nodes()).map(phantom).sum();
            if cores > MOST_PHANTOM_CORES {
                return Err(format!(
                    "phantom_reserved: {} masters list {cores} workers, more than {MOST_PHANTOM_CORES}; raise group, or \
                     lower reserved",
                    groups.count()
                ));
            }
        }
        let last = groups.count().saturating_sub(1);
        if self.master_on_worker && (0..=last).any(|group| groups.workers(group, layout).is_empty()) {
            return Err(
                "master_on_worker: a group has no worker beside its master; choose another `group`".into()
            );
        }
        if self.lengths > Span::ZERO && groups.count() == 1 {
            return Err(
                "lengths: has no effect with a single group, which gets all tasks; lower `group` or remove `lengths`"
                    .into(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
