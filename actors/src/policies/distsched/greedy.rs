//! The choice of the waiting jobs that start, and where: one after the other, the most useful first (thesis, section
//! 5.2.3).

use std::collections::BinaryHeap;
use std::sync::Arc;

use super::load::{NodeLoads, TaskUse};
use super::placement::{PlacementView, Terms, place};
use super::value::expected;
use crate::base::JobId;
use crate::roles::planning::{LaunchOrder, TaskPlaces, Utility};

/// A job with tasks that wait.
pub(super) struct PendingJob {
    pub(super) job: JobId,
    /// Number of waiting tasks.
    pub(super) waiting: u32,
    /// Expected use of each.
    pub(super) tasks: Arc<TaskUse>,
    /// Expected CPU-time of each, core-seconds.
    pub(super) work: f64,
    pub(super) utility: Utility,
    /// Nodes that run tasks of it, in order.
    pub(super) held: Vec<u32>,
    /// Nodes that it avoids, in order.
    pub(super) avoided: Vec<u32>,
    /// Seed of the random order of equal nodes.
    pub(super) salt: u64,
}

/// Options that all jobs of a cycle share.
#[derive(Clone, Copy)]
pub(super) struct GreedyOptions {
    /// Now, in seconds since the start of the run.
    pub(super) now: f64,
    /// Run time at which a best-effort job is worth least, s.
    pub(super) horizon: f64,
    /// Limit below which the probability of an over-allocation must be.
    pub(super) risk: f64,
}

/// A placement at which a job could start, and its utility.
struct SchedulingOption {
    worth: f64,
    nodes: Vec<u32>,
}

/// The last computed utility of a job's option. Ties go to the first job.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Bound {
    worth: f64,
    at: usize,
}

impl Eq for Bound {}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bound {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.worth.total_cmp(&other.worth).then_with(|| other.at.cmp(&self.at))
    }
}

/// Launches of jobs until none can be placed, the one with the highest expected utility first; `loads` has their tasks
/// in the end.
///
/// Every launch leaves less room, so that as a rule an option is worth no more when it is computed again, and a job
/// without one has none for the rest of the cycle. It therefore suffices to compute the best option again until it
/// stays the best. The exception is an option whose tasks then go to other nodes and which is worth more there: its job
/// is launched later in the cycle than it could be.
pub(super) fn select(
    pending: &[PendingJob],
    loads: &mut NodeLoads,
    options: GreedyOptions,
) -> Vec<LaunchOrder> {
    let mut order: BinaryHeap<_> = (0..pending.len()).map(|at| Bound { worth: f64::INFINITY, at }).collect();
    let mut launches = Vec::new();
    while let Some(Bound { at, .. }) = order.pop() {
        let job = &pending[at];
        let Some(SchedulingOption { worth, nodes }) = option(job, loads, options) else { continue };
        let again = Bound { worth, at };
        if order.peek().is_some_and(|next| *next > again) {
            order.push(again);
            continue;
        }
        loads.add(job.job, &nodes, &job.tasks);
        launches.push(LaunchOrder { job: job.job, places: TaskPlaces::Nodes(nodes) });
    }
    launches
}

/// The placement at which all waiting tasks of a job can start, or as many as the nodes that it does not avoid would
/// hold if idle; `None` if that is worth nothing.
fn option(job: &PendingJob, loads: &NodeLoads, options: GreedyOptions) -> Option<SchedulingOption> {
    let PendingJob { waiting, ref tasks, work, utility, salt, .. } = *job;
    let terms = Terms { tasks: waiting, risk: options.risk, alone: false, salt };
    let view = PlacementView::new(loads.nodes(), job.job, &job.held, &job.avoided);
    let mut nodes = place(&view, tasks, terms);
    if nodes.len() < waiting as usize {
        let room = loads.idle_room(tasks, waiting, options.risk, &job.avoided);
        let alone = room == 0;
        let wanted = if alone { waiting.min(loads.usable(&job.avoided)) } else { room };
        if alone {
            nodes = place(&view, tasks, Terms { tasks: wanted, alone, ..terms });
        }
        if wanted == 0 || nodes.len() < wanted as usize {
            return None;
        }
    }
    let of_time = |per_work: f64| utility.of_run(options.now, work * per_work, options.horizon);
    let worth = expected(&view, &nodes, tasks, of_time);
    (worth > 0.0).then_some(SchedulingOption { worth, nodes })
}

#[cfg(test)]
mod tests {
    use super::super::load::tests::{certain, idle, of};
    use super::*;
    use crate::base::{Address, Purpose};
    use crate::predict::Distribution;
    use rand::RngExt as _;

    const OPTIONS: GreedyOptions = GreedyOptions { now: 100.0, horizon: 1000.0, risk: 0.1 };

    fn job(job: u32, waiting: u32, tasks: &Arc<TaskUse>, work: f64, utility: Utility) -> PendingJob {
        let (tasks, held, avoided) = (Arc::clone(tasks), Vec::new(), Vec::new());
        PendingJob { job: JobId(job), waiting, tasks, work, utility, held, avoided, salt: 5 }
    }

    fn slo(within: f64) -> Utility {
        Utility::Slo { deadline: 100.0 + within, zero: 100.0 + within }
    }

    const BEST_EFFORT: Utility = Utility::BestEffort { top: 0.2, completion: None };

    fn order(launches: &[LaunchOrder]) -> Vec<(u32, u32)> {
        launches.iter().map(|launch| (launch.job.0, launch.size())).collect()
    }

    /// A node of 8 cores. The third job would need 40 s and has 30; the first is longer than the second.
    #[test]
    fn the_most_useful_jobs_start_first() {
        let four = certain(4.0, 1.0);
        let jobs = [
            job(0, 1, &four, 800.0, BEST_EFFORT),
            job(1, 1, &four, 400.0, BEST_EFFORT),
            job(2, 1, &four, 160.0, slo(30.0)),
            job(3, 1, &four, 160.0, slo(50.0)),
        ];
        assert_eq!(order(&select(&jobs, &mut idle(&[(8.0, 16.0)]), OPTIONS)), [(3, 1), (1, 1)]);
        assert_eq!(order(&select(&jobs, &mut idle(&[(8.0, 16.0); 9]), OPTIONS)), [(3, 1), (1, 1), (0, 1)]);
    }

    /// All tasks of a job start together, or none, unless the nodes would not hold them if they were idle.
    #[test]
    fn gangs_start_as_a_whole() {
        let four = certain(4.0, 1.0);
        let mut loads = idle(&[(8.0, 16.0); 2]);
        loads.add(JobId(9), &[0], &four);
        assert_eq!(order(&select(&[job(0, 4, &four, 1.0, BEST_EFFORT)], &mut loads, OPTIONS)), []);
        assert_eq!(order(&select(&[job(0, 7, &four, 1.0, BEST_EFFORT)], &mut loads, OPTIONS)), []);
        let whole = select(&[job(0, 7, &four, 1.0, BEST_EFFORT)], &mut idle(&[(8.0, 16.0); 2]), OPTIONS);
        assert_eq!(order(&whole), [(0, 4)], "as many as there is room for");
        let large = certain(99.0, 1.0);
        let alone = select(&[job(0, 3, &large, 1.0, BEST_EFFORT)], &mut idle(&[(8.0, 16.0); 2]), OPTIONS);
        assert_eq!(order(&alone), [(0, 2)], "one on each node");
    }

    /// A job of eight tasks, of which four fit on the node that it does not avoid.
    #[test]
    fn a_gang_does_not_wait_for_nodes_that_it_avoids() {
        let two = certain(2.0, 1.0);
        let avoiding = PendingJob { avoided: vec![0, 2], ..job(0, 8, &two, 1.0, BEST_EFFORT) };
        let found = select(&[avoiding], &mut idle(&[(8.0, 16.0); 3]), OPTIONS);
        assert_eq!(
            found.iter().map(|launch| &launch.places).collect::<Vec<_>>(),
            [&TaskPlaces::Nodes(vec![1; 4])]
        );
    }

    /// Greedy choice without caching: computes the options of all jobs anew before each launch.
    fn exhaustive(pending: &[PendingJob], loads: &mut NodeLoads, options: GreedyOptions) -> Vec<LaunchOrder> {
        let mut launches = Vec::new();
        let mut left: Vec<_> = pending.iter().collect();
        loop {
            let mut best: Option<(usize, SchedulingOption)> = None;
            for (at, job) in left.iter().enumerate() {
                let Some(found) = option(job, loads, options) else { continue };
                if best.as_ref().is_none_or(|(_, best)| found.worth > best.worth) {
                    best = Some((at, found));
                }
            }
            let Some((at, SchedulingOption { nodes, .. })) = best else { return launches };
            let job = left.remove(at);
            loads.add(job.job, &nodes, &job.tasks);
            launches.push(LaunchOrder { job: job.job, places: TaskPlaces::Nodes(nodes) });
        }
    }

    /// Jobs that use 1 or 2 cores of a few nodes, with deadlines or not.
    #[test]
    fn selection_equals_an_exhaustive_search() {
        for seed in 0..200 {
            let mut draw = Address::new(seed, Purpose::Tool).draw();
            let mut pending = Vec::new();
            for number in 0..draw.random_range(2..12) {
                let amount = |draw: &mut crate::base::Draw, scale: f64| {
                    let point = |draw: &mut crate::base::Draw| {
                        (
                            scale * f64::from(draw.random_range(1..9_u32)),
                            f64::from(draw.random_range(1..5_u32)),
                        )
                    };
                    of(&(0..draw.random_range(1..5)).map(|_| point(draw)).collect::<Vec<_>>())
                };
                let (cpu, memory) = (amount(&mut draw, 0.5), amount(&mut draw, 1.0));
                let request = cpu.mean();
                let tasks = Arc::new(TaskUse { cpu, memory, request });
                let within = f64::from(draw.random_range(10..100_u32));
                let utility = if draw.random_range(0..2) == 0 { slo(within) } else { BEST_EFFORT };
                let work = f64::from(draw.random_range(5..200_u32));
                pending.push(job(number, draw.random_range(1..6), &tasks, work, utility));
            }
            let rooms = vec![(8.0, 16.0); 4];
            let lazy = select(&pending, &mut idle(&rooms), OPTIONS);
            let all = exhaustive(&pending, &mut idle(&rooms), OPTIONS);
            assert_eq!(lazy, all, "seed {seed}");
        }
    }

    #[test]
    fn uncertain_jobs_are_worth_less() {
        let unsure = |high: f64| {
            Arc::new(TaskUse {
                cpu: of(&[(1.0, 0.5), (high, 0.5)]),
                memory: Distribution::point(1.0),
                request: 1.0,
            })
        };
        let jobs = [job(0, 1, &unsure(2.0), 40.0, slo(30.0)), job(1, 1, &unsure(1.5), 30.0, slo(30.0))];
        let found = select(&jobs, &mut idle(&[(8.0, 16.0)]), OPTIONS);
        assert_eq!(order(&found), [(1, 1), (0, 1)], "the first ends in time by half");
    }
}
