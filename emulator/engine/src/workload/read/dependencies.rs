//! Tasks of a job that name the tasks that they wait for, and stages of a job as a text states them.

use std::collections::BTreeSet;

use super::super::graph::{StageGraph, staged};
use super::lines::{At, short};
use crate::workload::trace::WorkloadError;

/// A task as its row states it.
pub(super) struct NamedTask<'a> {
    /// Number of its name within the job; zero for a task that no other waits for.
    pub(super) id: u32,
    /// The names that it waits for.
    pub(super) after: &'a [u32],
    /// Position of its row.
    pub(super) at: At<'a>,
}

/// The stages of a job.
pub(super) struct JobStages {
    /// Positions of the tasks of each stage.
    pub(super) tasks: Vec<Vec<u32>>,
    pub(super) graph: StageGraph,
    /// Number of different names that tasks wait for, but that no task has.
    pub(super) unknown: u64,
}

impl JobStages {
    /// All tasks of a job as one stage.
    pub(super) fn single(tasks: usize) -> Self {
        Self { tasks: vec![(0..tasks as u32).collect()], graph: StageGraph::new(&[Vec::new()]), unknown: 0 }
    }

    /// The stages of a job of these tasks. An awaited task that is missing is taken to have ended, if `may_miss` allows
    /// it.
    ///
    /// # Errors
    /// When two tasks have one name, or a task waits for itself, also through others, or for a task that must not be
    /// missing. `name` writes the number of a name as text.
    pub(super) fn of(
        tasks: &[NamedTask<'_>],
        may_miss: impl Fn(u32) -> bool,
        name: impl Fn(u32) -> String,
    ) -> Result<Self, WorkloadError> {
        let mut known: Vec<(u32, u32)> =
            (0..).zip(tasks).filter(|(_, task)| task.id > 0).map(|(at, task)| (task.id, at)).collect();
        known.sort_unstable();
        if let Some(pair) = known.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let why = format!("the job has another task {}; give one of them another name", name(pair[0].0));
            return Err(tasks[pair[1].1 as usize].at.wrong(why));
        }
        let (mut after, mut unknown) = (Vec::with_capacity(tasks.len()), BTreeSet::new());
        for task in tasks {
            let mut awaited = Vec::with_capacity(task.after.len());
            for &other in task.after {
                match known.binary_search_by_key(&other, |(id, _)| *id) {
                    Ok(found) => awaited.push(known[found].1),
                    Err(_) if may_miss(other) => {
                        unknown.insert(other);
                    }
                    Err(_) => {
                        let why = "which its job does not have, or whose row was left out; correct the list";
                        return Err(task.at.wrong(format!("the task waits for task {}, {why}", name(other))));
                    }
                }
            }
            after.push(awaited);
        }
        let (stages, graph) = staged(&after).map_err(|task| {
            let direct = after[task as usize].contains(&task);
            let how = if direct { "" } else { " through other tasks of its job" };
            let why = format!(
                "the task waits for itself{how}, so that it would never begin; correct what it waits for"
            );
            tasks[task as usize].at.wrong(why)
        })?;
        Ok(Self { tasks: stages, graph, unknown: unknown.len() as u64 })
    }
}

/// Number of a task and of the tasks that it waits for, by its name in Alibaba's trace of 2018: `M1`, or `J3_1_2` for
/// task 3, which waits for tasks 1 and 2. `None` for a name without such numbers, such as `MergeTask` or `task_Nzg3`.
/// Parts behind the numbers, such as `Stg1`, are ignored.
pub(super) fn numbers(name: &str) -> Option<(u32, impl Iterator<Item = u32> + '_)> {
    let mut parts = name.split('_');
    let own = parts.next()?.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let has_kind = !name.starts_with(|c: char| c.is_ascii_digit());
    let own = own.parse().ok().filter(|own| *own > 0 && has_kind)?;
    Some((own, parts.map_while(|part| part.parse().ok())))
}

/// The stages that a text states for a job of `tasks` tasks; the error is the reason.
pub(in super::super) fn parse(text: &str, tasks: u32) -> Result<(StageGraph, Vec<u32>), String> {
    let (mut after, mut sizes): (Vec<Vec<u32>>, Vec<u32>) = (Vec::new(), Vec::new());
    for stage in text.split_ascii_whitespace() {
        let wrong = |why: &str| {
            let form = "stages are written as `20 5_1 1_1_2`, tasks and the stages above that they wait for";
            format!("`{}` {why}; {form}", short(stage))
        };
        let mut numbers =
            stage.split('_').map(|number| number.parse::<u32>().ok().filter(|number| *number > 0));
        let size = numbers.next().flatten().ok_or_else(|| wrong("states no number of tasks"))?;
        let mut awaited = Vec::new();
        for number in numbers {
            let other = number.filter(|&other| other as usize <= after.len());
            let other = other.ok_or_else(|| wrong("waits for a stage that is not above it"))? - 1;
            if awaited.contains(&other) {
                return Err(wrong("waits for a stage twice"));
            }
            awaited.push(other);
        }
        after.push(awaited);
        sizes.push(size);
    }
    let all: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
    if all != u64::from(tasks) {
        return Err(format!("the stages have {all} tasks, and the job has {tasks}; correct one number"));
    }
    Ok((StageGraph::new(&after), sizes))
}
