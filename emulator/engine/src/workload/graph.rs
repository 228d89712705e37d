//! Dependencies between the stages of a job, and the stages of all jobs of a run.

use std::collections::BTreeMap;
use std::ops::Range;

use volary_actors::base::{JobId, Span};
use volary_actors::catalog::Links;

/// The stages of a job, numbered from 0 so that each waits for smaller numbers only.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct StageGraph {
    /// For each stage the ends of its two parts of `links`: the stages that it waits for, and the stages that wait for
    /// it.
    ends: Vec<[u32; 2]>,
    /// Differences between the numbers of a stage and of the stages that it is linked with; ascending in each part.
    links: Vec<u32>,
}

impl StageGraph {
    /// A graph by the numbers of the stages that each stage waits for; all are smaller than its own.
    pub(super) fn new(after: &[Vec<u32>]) -> Self {
        let mut successors: Vec<Vec<u32>> = vec![Vec::new(); after.len()];
        for (stage, awaited) in (0..).zip(after) {
            awaited.iter().for_each(|&other| successors[other as usize].push(stage - other));
        }
        let mut graph = Self { ends: Vec::with_capacity(after.len()), links: Vec::new() };
        for ((stage, awaited), successors) in (0..).zip(after).zip(successors) {
            let first = graph.links.len();
            graph.links.extend(awaited.iter().map(|other| stage - other));
            graph.links[first..].sort_unstable();
            let middle = graph.links.len() as u32;
            graph.links.extend(successors);
            graph.ends.push([middle, graph.links.len() as u32]);
        }
        graph
    }

    /// Number of stages.
    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether a stage waits for another one.
    pub(super) const fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// The dependencies of a stage, whose id is `job`.
    pub(super) fn links(&self, stage: u32, job: JobId) -> Links<'_> {
        let first = stage.checked_sub(1).map_or(0, |before| self.ends[before as usize][1]) as usize;
        let [middle, end] = self.ends[stage as usize].map(|end| end as usize);
        Links { job, predecessors: &self.links[first..middle], successors: &self.links[middle..end] }
    }

    /// The stages as text, in the form of tables of features: for each stage its number of tasks, and the numbers of
    /// the earlier stages that it waits for, from 1. `20 5_1 1_1_2` is a stage of 20 tasks, a stage of 5 tasks that
    /// waits for stage 1, and a stage of one task that waits for stages 1 and 2.
    pub(super) fn text(&self, tasks: &[u32]) -> String {
        let stage = |(stage, tasks): (u32, &u32)| {
            let awaited = self.links(stage, JobId(stage)).predecessors();
            let awaited: String = awaited.map(|other| format!("_{}", other.0 + 1)).collect();
            format!("{tasks}{awaited}")
        };
        (0..).zip(tasks).map(stage).collect::<Vec<_>>().join(" ")
    }

    /// The longest time along dependent stages, given the time of each stage.
    pub(super) fn critical_path(&self, mut time: impl FnMut(u32) -> Span) -> Span {
        let mut ends: Vec<Span> = Vec::with_capacity(self.len());
        for stage in 0..self.len() as u32 {
            let awaited = self.links(stage, JobId(stage)).predecessors().map(|other| ends[other.index()]);
            let begin = awaited.max().unwrap_or_default();
            ends.push(begin + time(stage));
        }
        ends.into_iter().max().unwrap_or_default()
    }

    /// Number of stages on the longest path.
    pub(super) fn depth(&self) -> u32 {
        self.critical_path(|_| Span(1)).0 as u32
    }
}

/// Groups the parts of a job, each with the positions of the parts that it waits for, into stages. Parts that wait for
/// the same parts, and that the same parts wait for, are one stage, since they become ready at once. The first result
/// has the parts of each stage.
///
/// # Errors
/// The position of a part that waits for itself, directly or through other parts.
pub(super) fn staged(after: &[Vec<u32>]) -> Result<(Vec<Vec<u32>>, StageGraph), u32> {
    let mut after = after.to_vec();
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); after.len()];
    for (part, awaited) in (0..).zip(&mut after) {
        awaited.sort_unstable();
        awaited.dedup();
        awaited.iter().for_each(|&other| before[other as usize].push(part));
    }
    // Parts are visited when they are ready; `level` is the longest path to a part. A part on a cycle never becomes
    // ready.
    let mut open: Vec<usize> = after.iter().map(Vec::len).collect();
    let mut ready: Vec<u32> = (0..after.len() as u32).filter(|&part| open[part as usize] == 0).collect();
    let mut level = vec![0u32; after.len()];
    let mut at = 0;
    while let Some(&part) = ready.get(at) {
        at += 1;
        for &next in &before[part as usize] {
            level[next as usize] = level[next as usize].max(level[part as usize] + 1);
            open[next as usize] -= 1;
            if open[next as usize] == 0 {
                ready.push(next);
            }
        }
    }
    if let Some(stuck) = on_cycle(&after, &open) {
        return Err(stuck);
    }
    ready.sort_unstable_by_key(|&part| (level[part as usize], part));
    let mut known: BTreeMap<[&[u32]; 2], u32> = BTreeMap::new();
    let (mut stages, mut of): (Vec<Vec<u32>>, Vec<u32>) = (Vec::new(), vec![0; after.len()]);
    for part in ready {
        let place = [&*after[part as usize], &*before[part as usize]];
        let stage = *known.entry(place).or_insert(stages.len() as u32);
        if stage as usize == stages.len() {
            stages.push(Vec::new());
        }
        stages[stage as usize].push(part);
        of[part as usize] = stage;
    }
    let awaited = |parts: &Vec<u32>| {
        let mut awaited: Vec<u32> =
            after[parts[0] as usize].iter().map(|&other| of[other as usize]).collect();
        awaited.sort_unstable();
        awaited.dedup();
        awaited
    };
    let graph = StageGraph::new(&stages.iter().map(awaited).collect::<Vec<_>>());
    Ok((stages, graph))
}

/// A part on a cycle, given the number of parts that each part still waits for.
fn on_cycle(after: &[Vec<u32>], open: &[usize]) -> Option<u32> {
    let mut part = open.iter().position(|&open| open > 0)? as u32;
    // A walk along awaited parts that never become ready is on a cycle after as many steps as there are parts.
    for _ in 0..after.len() {
        let stuck = |other: &&u32| open[**other as usize] > 0;
        part = *after[part as usize].iter().find(stuck)?;
    }
    Some(part)
}

/// The stages of a run by job id; the stages of a chain have consecutive ids.
#[derive(Debug)]
pub(super) struct Staging {
    /// Distinct graphs.
    graphs: Vec<StageGraph>,
    /// The graph of each chain.
    kinds: Vec<u32>,
    /// The first stage of each chain, and their total number at the end.
    first: Vec<u32>,
    /// The chain of each stage.
    chains: Vec<u32>,
    /// Number of tasks of all earlier stages, and the total at the end, modulo 2³²: differences are exact.
    tasks: Vec<u32>,
}

impl Staging {
    /// Creates the stages of a run with these graphs, without chains so far.
    pub(super) fn new(graphs: Vec<StageGraph>) -> Self {
        Self { graphs, kinds: Vec::new(), first: vec![0], chains: Vec::new(), tasks: vec![0] }
    }

    /// Adds a chain with the numbers of tasks of its stages.
    pub(super) fn add(&mut self, graph: u32, tasks: impl IntoIterator<Item = u32>) {
        let chain = self.kinds.len() as u32;
        self.kinds.push(graph);
        for tasks in tasks {
            let before = self.tasks[self.chains.len()];
            self.chains.push(chain);
            self.tasks.push(before.wrapping_add(tasks));
        }
        self.first.push(self.chains.len() as u32);
    }

    /// Number of stages.
    pub(super) const fn len(&self) -> usize {
        self.chains.len()
    }

    /// Number of chains.
    pub(super) const fn chains(&self) -> u32 {
        self.kinds.len() as u32
    }

    /// The chain that a stage belongs to.
    pub(super) fn chain(&self, job: JobId) -> u32 {
        self.chains[job.index()]
    }

    /// Ids of the stages of a chain.
    pub(super) fn stages_of(&self, chain: u32) -> Range<u32> {
        self.first[chain as usize]..self.first[chain as usize + 1]
    }

    /// Number of a stage in its chain.
    pub(super) fn place(&self, job: JobId) -> u32 {
        job.0 - self.first[self.chain(job) as usize]
    }

    /// Number of the graph of a chain.
    pub(super) fn kind(&self, chain: u32) -> u32 {
        self.kinds[chain as usize]
    }

    /// The graph of a chain.
    pub(super) fn graph(&self, chain: u32) -> &StageGraph {
        &self.graphs[self.kind(chain) as usize]
    }

    /// The dependencies of a stage.
    pub(super) fn links(&self, job: JobId) -> Links<'_> {
        self.graph(self.chain(job)).links(self.place(job), job)
    }

    /// Number of tasks of a stage.
    pub(super) fn tasks(&self, job: JobId) -> u32 {
        self.tasks[job.index() + 1].wrapping_sub(self.tasks[job.index()])
    }

    /// Number of tasks of the stages before a stage in its chain.
    pub(super) fn tasks_before(&self, job: JobId) -> u32 {
        self.tasks[job.index()].wrapping_sub(self.tasks[self.first[self.chain(job) as usize] as usize])
    }

    /// Keeps some of the chains, given their numbers in order. They are numbered anew.
    pub(super) fn keep(&mut self, chains: &[u32]) {
        let mut kept = Self::new(std::mem::take(&mut self.graphs));
        for &chain in chains {
            kept.add(self.kind(chain), self.stages_of(chain).map(|job| self.tasks(JobId(job))));
        }
        *self = kept;
    }
}

#[cfg(test)]
mod tests {
    use microlp::{ComparisonOp, OptimizationDirection, Problem};
    use proptest::prelude::*;

    use super::*;

    /// Parts of a job: the time of each, s, and the parts that it waits for. A part waits only for parts with a larger
    /// random key, so the order of the list is not the order of work.
    fn parts() -> impl Strategy<Value = (Vec<u32>, Vec<Vec<u32>>)> {
        (1..14usize).prop_flat_map(|parts| {
            let keys = prop::collection::vec(any::<u64>(), parts);
            let waits = prop::collection::vec(prop::collection::vec(prop::bool::weighted(0.3), parts), parts);
            (prop::collection::vec(0..50u32, parts), keys, waits).prop_map(|(times, keys, waits)| {
                let after = |part: usize| {
                    let awaited =
                        (0..times.len()).filter(|&other| keys[other] > keys[part] && waits[part][other]);
                    awaited.map(|other| other as u32).collect()
                };
                let after = (0..times.len()).map(after).collect();
                (times, after)
            })
        })
    }

    /// The least time at which all parts can have ended, as a linear program.
    fn least_end(times: &[u32], after: &[Vec<u32>]) -> f64 {
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let end = problem.add_var(1.0, (0.0, f64::INFINITY));
        let ends: Vec<_> =
            times.iter().map(|&time| problem.add_var(0.0, (f64::from(time), f64::INFINITY))).collect();
        for (part, awaited) in after.iter().enumerate() {
            problem.add_constraint([(end, 1.0), (ends[part], -1.0)], ComparisonOp::Ge, 0.0);
            for &other in awaited {
                let gap = [(ends[part], 1.0), (ends[other as usize], -1.0)];
                problem.add_constraint(gap, ComparisonOp::Ge, f64::from(times[part]));
            }
        }
        problem.solve().unwrap().into_solution().unwrap().objective()
    }

    proptest! {
        /// Parts in one stage wait for the same parts. The critical path is the optimum of a linear program over the
        /// parts.
        #[test]
        fn the_critical_path_of_stages_is_the_optimum_of_a_linear_program((times, after) in parts()) {
            let (stages, graph) = staged(&after).unwrap();
            let mut all: Vec<u32> = stages.iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..times.len() as u32), "each part is in one stage");
            let of = |part: u32| stages.iter().position(|stage| stage.contains(&part)).unwrap() as u32;
            for (stage, parts) in (0..).zip(&stages) {
                let awaited: Vec<u32> = graph.links(stage, JobId(stage)).predecessors().map(|other| other.0).collect();
                for &part in parts {
                    let mut own: Vec<u32> = after[part as usize].iter().map(|&other| of(other)).collect();
                    own.sort_unstable_by_key(|other| std::cmp::Reverse(*other));
                    own.dedup();
                    prop_assert_eq!(&own, &awaited);
                }
                for next in graph.links(stage, JobId(stage)).successors() {
                    prop_assert!(graph.links(next.0, next).predecessors().any(|other| other.0 == stage));
                }
            }
            let time = |stage: u32| {
                let longest = stages[stage as usize].iter().map(|&part| times[part as usize]).max();
                Span::from_secs(u64::from(longest.unwrap_or_default()))
            };
            let path = graph.critical_path(time).as_secs_f64();
            prop_assert!((path - least_end(&times, &after)).abs() < 1e-6, "{path} s");
            let depth = least_end(&vec![1; times.len()], &after);
            prop_assert!((f64::from(graph.depth()) - depth).abs() < 1e-6, "{} stages", graph.depth());
        }

        #[test]
        fn stages_round_trip_through_text((times, after) in parts()) {
            let (stages, graph) = staged(&after).unwrap();
            let tasks: Vec<u32> = stages.iter().map(|stage| 1 + times[stage[0] as usize]).collect();
            let read = super::super::read::parse_stages(&graph.text(&tasks), tasks.iter().sum());
            prop_assert_eq!(read, Ok((graph, tasks)));
        }
    }

    #[test]
    fn parts_that_wait_for_each_other_are_refused() {
        for (after, on_cycle) in [
            (vec![vec![0]], vec![0]),
            (vec![vec![1], vec![0]], vec![0, 1]),
            // Part 3 waits for a cycle and is not on it.
            (vec![vec![], vec![2], vec![1, 0], vec![2]], vec![1, 2]),
        ] {
            let found = staged(&after).unwrap_err();
            assert!(on_cycle.contains(&found), "{after:?}: {found}");
        }
    }

    #[test]
    fn parts_that_become_ready_at_once_are_one_stage() {
        // Two maps for one reducer, a lone task, and another map for another reducer.
        let (stages, graph) = staged(&[vec![], vec![], vec![0, 1], vec![], vec![], vec![4]]).unwrap();
        assert_eq!(stages, [vec![0, 1], vec![3], vec![4], vec![2], vec![5]]);
        assert_eq!(graph.text(&[2, 1, 1, 1, 1]), "2 1 1 1_1 1_3");
        assert_eq!((graph.depth(), graph.has_links()), (2, true));
        // Independent tasks are one stage, as if they had no names.
        let (stages, graph) = staged(&[vec![], vec![], vec![]]).unwrap();
        assert_eq!((stages.len(), graph.len(), graph.has_links()), (1, 1, false));
    }
}
