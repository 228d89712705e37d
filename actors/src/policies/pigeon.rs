//! Pigeon: schedulers deal tasks out to the masters of groups of workers. Masters queue tasks and give them to idle
//! workers. This file registers the policy.
//!
//! | module | contents | section of the paper |
//! |---|---|---|
//! | `task_scheduling` | the division of a job among masters, the idle lists, the queues and their weight | 2.2 |
//! | `groups` | groups of workers, and reserved workers | 2.1 |
//! | `scheduler`, `master`, `node` | the actors | 2.1, 2.2 |
//! | their modules `recovery` | crashes, lost messages and changes of masters | 6.1 |
//! | `workers` | the workers of a group as their master knows them | 6.1 |
//! | `masters` | the second master, and the election of a worker as master | 6.1 |
//! | `reports` | the division by reported queue lengths | 6.2 |
//! | `as_published` | a defect of the authors' simulator | |
//! | `messages` | the messages (a part of `crate::message`) | |

mod as_published;
mod config;
mod groups;
mod master;
mod masters;
mod node;
mod reports;
mod scheduler;
mod task_scheduling;
mod ticks;
mod workers;

pub use config::Pigeon;
use config::{QueueWeight, TaskSplit};
use groups::WorkerGroups;
use master::Master;
use node::PigeonNode;
use scheduler::PigeonScheduler;

use crate::base::Span;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::policies::policy::{Auxiliaries, Binds, BuildContext, Policy, Traits, check_period};

impl Policy for Pigeon {
    const ABOUT: &'static str = "Pigeon (Wang et al., SoCC 2019)\n\
        Workers are divided into groups, each with a master. A scheduler deals the tasks of a job out to the masters, \
        as evenly as it can and without asking (section 2.2). A master queues short and long tasks apart and knows its \
        idle workers. Long tasks run on unreserved workers only, short ones on any, and a weight shares the freed \
        workers between the queues. Results go from the worker to the scheduler. `cutoff` of the workload decides \
        which jobs are long. When a master crashes its standby takes over, or a worker (section 6.1; the details are \
        ours). Masters can report the lengths of their queues (section 6.2).";

    fn traits(&self) -> Traits<'_> {
        Traits { binds: Binds::Groups, auxiliaries: Some(self), ..Traits::default() }
    }

    fn check(&self, layout: &Layout) -> Result<(), String> {
        if !(self.reserved >= 0.0 && self.reserved < 1.0) {
            return Err(format!("reserved: must be at least 0 and below 1, not {}", self.reserved));
        }
        if let QueueWeight::Tasks(weight @ ..2) = self.weight {
            return Err(format!(
                "weight: must be 2 or more, or \"strict\", not {weight}, because below 2 no short task would run"
            ));
        }
        if self.lengths > Span::ZERO {
            check_period("lengths", self.lengths)?;
            if self.split != TaskSplit::Blocks {
                return Err("split: has no effect with `lengths`; remove one of the two".into());
            }
        }
        let groups = WorkerGroups::new(self, layout);
        if self.phantom_reserved {
            groups.check_phantom(layout)?;
        }
        let most = (0..layout.nodes()).map(|node| layout.cores(node)).max().unwrap_or(1);
        if most > self.group {
            return Err(format!(
                "group: the cores of a node belong to one group, and a node has {most}; set group = {most} or more"
            ));
        }
        if self.master_on_worker
            && (0..groups.count.max(1)).any(|group| groups.workers(group, layout).is_empty())
        {
            return Err(
                "master_on_worker: a group has no worker beside its master; choose another `group`".into()
            );
        }
        if self.lengths > Span::ZERO && groups.count == 1 {
            return Err(
                "lengths: has no effect with a single group, which gets all tasks; lower `group` or remove `lengths`"
                    .into(),
            );
        }
        Ok(())
    }

    fn remarks(&self, layout: &Layout, classes: usize) -> Vec<String> {
        let groups = WorkerGroups::new(self, layout);
        let count = groups.count;
        let workers = |group| groups.real_workers(group, layout).len();
        let [first, last] = [0, count.saturating_sub(1)].map(workers);
        let mut remarks = Vec::new();
        if count == 1 && u64::from(self.group) > first as u64 {
            remarks.push(format!("one group of {first} workers, fewer than `group`"));
        } else if last < first {
            remarks.push(format!("the last of {count} groups has {last} workers, the first {first}"));
        }
        if classes < 2 && self.reserved > 0.0 {
            remarks.push(
                "all jobs are short, so reserved workers run the same tasks as others: write `reserved = 0`, or \
                 state the workload's `cutoff`"
                    .to_owned(),
            );
        }
        if self.phantom_reserved {
            let cores: u32 = groups.phantom_cores(layout).into_iter().sum();
            remarks.push(format!(
                "`phantom_reserved` gives {} workers {cores} cores, and utilization is a share of these cores",
                layout.nodes()
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
        let cores = self.phantom_reserved.then(|| groups.phantom_cores(&cluster));
        let cluster = cluster.with_auxiliaries(groups.masters());
        if let Some(cores) = cores { cluster.with_cores(cores) } else { cluster }
    }

    fn auxiliary(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(Master::new(self, context.index, context.layout))
    }

    fn beside(&self, number: u32, layout: &Layout) -> Option<u32> {
        let groups = WorkerGroups::new(self, layout);
        let nodes = groups.nodes(groups.group_of_master(number), layout);
        Some(if number < groups.count { nodes.start } else { nodes.end - 1 })
    }
}

#[cfg(test)]
mod tests;
