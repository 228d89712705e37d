//! Preemption of best-effort tasks on nodes that throttle (thesis, section 5.3.2).

use std::cmp::Ordering;

use super::known::ExpectedJob;
use super::load::NodeLoad;
use crate::base::Time;
use crate::roles::job_table::JobTable;
use crate::roles::planning::{HeldCore, PlannedJob, Utility};

/// The CPU demand of the tasks on a node.
#[derive(Clone, Copy, Default)]
struct NodeDemand {
    throttled: bool,
    /// Whether a task of a job that can still gain by its deadline is among them.
    urgent: bool,
    /// Cores.
    demand: f64,
}

/// A best-effort copy on a contended node.
#[derive(Clone, Copy, Debug)]
struct Victim {
    core: HeldCore,
    over_request: bool,
    over_expected: bool,
    /// Contended nodes with tasks of its job.
    nodes: usize,
    /// Its CPU demand, cores.
    demand: f64,
}

impl Victim {
    /// Order of eviction: first tasks that use more than was requested, then more than was expected, then those of jobs
    /// on many contended nodes, then those that use most.
    fn compare(&self, other: &Self) -> Ordering {
        let rank = |victim: &Self| (victim.over_request, victim.over_expected, victim.nodes);
        rank(other)
            .cmp(&rank(self))
            .then_with(|| other.demand.total_cmp(&self.demand))
            .then_with(|| self.core.copy.task.cmp(&other.core.copy.task))
    }
}

/// The best-effort copies to be preempted on nodes that throttle copies while an SLO task runs there: the worst first,
/// until the others want no more CPU than the node has.
pub(super) fn relieve(
    jobs: &mut JobTable<PlannedJob>,
    known: &mut JobTable<ExpectedJob>,
    loads: &[NodeLoad],
    now: Time,
) -> Vec<HeldCore> {
    let mut nodes = contention(jobs, known, loads.len(), now);
    let mut victims = Vec::new();
    for (id, job) in jobs.iter_mut().filter(|(_, job)| job.open.spec.deadline.is_none()) {
        if let Some(known) = known.get_mut(id) {
            collect(job, known, &nodes, &mut victims);
        }
    }
    victims.sort_unstable_by(Victim::compare);
    let mut stops = Vec::new();
    for victim in victims {
        let node = victim.core.node as usize;
        if nodes[node].demand > loads[node].room.cpu {
            nodes[node].demand -= victim.demand;
            stops.push(victim.core);
        }
    }
    stops
}

/// The CPU demand on each node.
fn contention(
    jobs: &mut JobTable<PlannedJob>,
    known: &mut JobTable<ExpectedJob>,
    nodes: usize,
    now: Time,
) -> Vec<NodeDemand> {
    let mut found = vec![NodeDemand::default(); nodes];
    for (id, job) in jobs.iter_mut() {
        let Some(known) = known.get_mut(id) else { continue };
        let urgent = matches!(known.utility.at(now), Utility::Slo { .. });
        for core in &job.held {
            let node = &mut found[core.node as usize];
            node.throttled |= known.observed.of(core.copy).is_some_and(|seen| seen.rate < 1.0);
            node.urgent |= urgent;
            node.demand += known.demand(core.copy);
        }
    }
    found
}

/// The copies of a best-effort job that may be preempted.
fn collect(job: &PlannedJob, known: &ExpectedJob, nodes: &[NodeDemand], victims: &mut Vec<Victim>) {
    let contended = |core: &&HeldCore| nodes[core.node as usize].throttled;
    let mut on: Vec<_> = job.held.iter().filter(contended).map(|core| core.node).collect();
    on.sort_unstable();
    on.dedup();
    for &core in job.held.iter().filter(contended).filter(|core| nodes[core.node as usize].urgent) {
        let seen = known.observed.of(core.copy).copied();
        let (demand, memory) = (known.demand(core.copy), seen.map_or(0.0, |seen| seen.memory));
        let tasks = &known.tasks;
        victims.push(Victim {
            core,
            over_request: demand > tasks.request || memory > known.requested_memory,
            over_expected: demand > tasks.cpu.max() || memory > tasks.memory.max(),
            nodes: on.len(),
            demand,
        });
    }
}
