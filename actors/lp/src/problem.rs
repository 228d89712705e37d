//! Problems, their errors, and plans. A problem has jobs that compete for capacities over a window of slots. A plan
//! says when and where jobs start, and which running jobs are preempted.

use std::fmt;

use crate::columns::{Columns, Job, Running};

/// A window of slots over sets of nodes, and the jobs that compete for it; see the [crate's documentation](crate).
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    sets: usize,
    slots: usize,
    capacity: Vec<f64>,
    jobs: Vec<Job>,
    running: Vec<Running>,
    columns: Columns,
}

impl Problem {
    /// A problem over `slots` slots. `capacity[set * slots + slot]` is the number of nodes that running jobs leave
    /// free.
    ///
    /// # Errors
    ///
    /// An [`Error`] names the part if a capacity, demand or price is negative or not finite, a utility is not finite, a
    /// set or slot lies outside the window, starts or sets are not strictly ascending, a job has no task, or a name
    /// occurs twice.
    pub fn new(
        slots: usize,
        capacity: Vec<f64>,
        jobs: Vec<Job>,
        running: Vec<Running>,
    ) -> Result<Self, Error> {
        if slots == 0 || !capacity.len().is_multiple_of(slots) {
            let problem = format!("{} capacities for {slots} slots", capacity.len());
            return Err(Error::of(
                "capacity",
                problem,
                "give one for each set and slot, and at least one slot",
            ));
        }
        let sets = capacity.len() / slots;
        amounts("capacity", &capacity)?;
        jobs.iter().try_for_each(|job| check_job(job, sets, slots))?;
        running.iter().try_for_each(|job| check_running(job, sets))?;
        check_names(&jobs, &running)?;
        Ok(Self::from_checked(slots, capacity, jobs, running))
    }

    /// Builds a problem without checks, from parts of a checked problem.
    pub(crate) fn from_checked(
        slots: usize,
        capacity: Vec<f64>,
        jobs: Vec<Job>,
        running: Vec<Running>,
    ) -> Self {
        let columns = Columns::new(slots, &jobs, &running);
        Self { sets: capacity.len() / slots, slots, capacity, jobs, running, columns }
    }

    /// Number of sets of nodes.
    pub fn sets(&self) -> usize {
        self.sets
    }

    /// Length of the planning window, in slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Number of free nodes, set by set and slot by slot.
    pub fn capacity(&self) -> &[f64] {
        &self.capacity
    }

    /// Pending jobs, in the order of [`Problem::new`].
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Running jobs that can be preempted, in the order of [`Problem::new`].
    pub fn running(&self) -> &[Running] {
        &self.running
    }

    /// Number of options of positive utility: one for each block and start.
    pub fn options(&self) -> usize {
        self.columns.options().len()
    }

    /// Number of variables of the linear program: one for each option and set, and one for each running job.
    pub fn variables(&self) -> usize {
        self.columns.len()
    }

    /// The columns of the linear program.
    pub(crate) fn columns(&self) -> &Columns {
        &self.columns
    }
}

/// Checks that values are finite and not negative.
fn amounts(part: &str, values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|value| !(value.is_finite() && *value >= 0.0)) {
        None => Ok(()),
        Some(at) => {
            let problem = format!("value {at} is {}", values[at]);
            Err(Error::of(part, problem, "give a finite number that is not negative"))
        }
    }
}

/// Checks a pending job.
fn check_job(job: &Job, sets: usize, slots: usize) -> Result<(), Error> {
    let part = format!("job {}", job.name);
    if job.tasks == 0 {
        return Err(Error::of(part, "the job has no task", "give the job at least one task"));
    }
    for (at, block) in job.blocks.iter().enumerate() {
        let part = format!("{part}, block {}", block.name);
        if job.blocks[..at].iter().any(|before| before.name == block.name) {
            return Err(Error::of(
                part,
                "another block has this name",
                "name each block of a job differently",
            ));
        }
        amounts(&part, &block.demand)?;
        let rising = block.sets.windows(2).all(|pair| pair[0] < pair[1])
            && block.starts.windows(2).all(|pair| pair[0].slot < pair[1].slot);
        if !rising {
            return Err(Error::of(
                part,
                "sets or starts are not strictly ascending",
                "sort them and drop repeated ones",
            ));
        }
        let inside = block.sets.iter().all(|&set| (set as usize) < sets)
            && block.starts.iter().all(|start| (start.slot as usize) < slots);
        if !inside {
            let remedy = format!("use sets below {sets} and slots below {slots}");
            return Err(Error::of(part, "a set or start lies outside the window", remedy));
        }
        if block.starts.iter().any(|start| !start.utility.is_finite()) {
            return Err(Error::of(part, "a utility is not finite", "give a number"));
        }
    }
    Ok(())
}

/// Checks a running job.
fn check_running(job: &Running, sets: usize) -> Result<(), Error> {
    let part = format!("running job {}", job.name);
    amounts(&part, &job.demand)?;
    amounts(&format!("{part}, price"), &[job.price])?;
    if job.tasks.len() == sets {
        return Ok(());
    }
    let problem = format!("the job has tasks on {} sets", job.tasks.len());
    Err(Error::of(part, problem, format!("give a number for each of the {sets} sets")))
}

/// Checks that no two jobs have the same name.
fn check_names(jobs: &[Job], running: &[Running]) -> Result<(), Error> {
    let mut names: Vec<u64> =
        jobs.iter().map(|job| job.name).chain(running.iter().map(|job| job.name)).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let part = format!("job {}", pair[0]);
            Err(Error::of(part, "another job has this name", "name each job differently"))
        }
    }
}

/// At most one option for each pending job, with whole tasks, and the running jobs to preempt.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plan {
    /// The choices, by job; jobs without a choice are not planned.
    pub choices: Vec<Choice>,
    /// Indices in [`Problem::running`] of the jobs to preempt, in ascending order.
    pub preempted: Vec<usize>,
    /// Utilities of the choices less the prices of the preempted jobs.
    pub value: f64,
}

/// The option that is chosen for a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Index of the job in [`Problem::jobs`].
    pub job: usize,
    /// Index of the block in [`Job::blocks`](crate::Job::blocks).
    pub block: usize,
    /// Slot of the start.
    pub slot: u32,
    /// Number of tasks on each set of the problem.
    pub tasks: Vec<u32>,
}

impl Plan {
    /// Largest number of nodes by which the plan exceeds a capacity; 0 or less if it keeps all capacities.
    pub fn excess(&self, problem: &Problem) -> f64 {
        let slots = problem.slots();
        let mut load: Vec<f64> = problem.capacity().iter().map(|nodes| -nodes).collect();
        let mut add = |tasks: &[u32], demand: &[f64], slot: usize, sign: f64| {
            for (tasks, rows) in tasks.iter().zip(load.chunks_exact_mut(slots)) {
                for (row, nodes) in rows[slot..].iter_mut().zip(demand) {
                    *row += sign * f64::from(*tasks) * nodes;
                }
            }
        };
        for choice in &self.choices {
            let block = &problem.jobs()[choice.job].blocks[choice.block];
            add(&choice.tasks, &block.demand, choice.slot as usize, 1.0);
        }
        for &at in &self.preempted {
            let job = &problem.running()[at];
            add(&job.tasks, &job.demand, 0, -1.0);
        }
        load.into_iter().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Utilities of the choices less the prices of the preempted jobs.
    pub(crate) fn worth(&self, problem: &Problem) -> f64 {
        let utility = |choice: &Choice| {
            let starts = &problem.jobs()[choice.job].blocks[choice.block].starts;
            starts.iter().find(|start| start.slot == choice.slot).map_or(0.0, |start| start.utility)
        };
        let price = |at: &usize| problem.running()[*at].price;
        self.choices.iter().map(utility).sum::<f64>() - self.preempted.iter().map(price).sum::<f64>()
    }
}

/// An error in the data of a problem: a value outside its range, or a name that occurs twice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// The part of the problem, such as `job 7, block 1`.
    pub part: String,
    /// Description of the error.
    pub problem: String,
    /// Remedy.
    pub remedy: String,
}

impl Error {
    /// An error of one part of a problem, with its remedy.
    pub(crate) fn of(part: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { part: part.into(), problem: problem.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}; {}", self.part, self.problem, self.remedy)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Block, Start};

    fn job(name: u64) -> Job {
        let starts = vec![Start { slot: 0, utility: 1.0 }];
        Job { name, tasks: 1, blocks: vec![Block { name: 0, sets: vec![0], demand: vec![1.0], starts }] }
    }

    fn refused(change: impl FnOnce(&mut Job, &mut Running, &mut Vec<f64>), expected: &str) {
        let mut running = Running { name: 9, tasks: vec![1], demand: vec![1.0], price: 0.5 };
        let (mut pending, mut capacity) = (job(1), vec![1.0, 1.0]);
        change(&mut pending, &mut running, &mut capacity);
        let error = Problem::new(2, capacity, vec![pending, job(2)], vec![running]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn errors_name_the_part_and_the_remedy() {
        let amount = "give a finite number that is not negative";
        refused(|_, _, capacity| capacity[1] = -1.0, &format!("capacity: value 1 is -1; {amount}"));
        refused(
            |_, _, capacity| capacity.truncate(1),
            "capacity: 1 capacities for 2 slots; give one for each set and slot, and at least one slot",
        );
        refused(|job, _, _| job.tasks = 0, "job 1: the job has no task; give the job at least one task");
        refused(|job, _, _| job.name = 2, "job 2: another job has this name; name each job differently");
        refused(|_, job, _| job.name = 2, "job 2: another job has this name; name each job differently");
        refused(|_, job, _| job.price = f64::NAN, &format!("running job 9, price: value 0 is NaN; {amount}"));
        refused(
            |_, job, _| job.tasks.push(1),
            "running job 9: the job has tasks on 2 sets; give a number for each of the 1 sets",
        );
        let block = "job 1, block 0";
        refused(|job, _, _| job.blocks[0].demand[0] = -2.0, &format!("{block}: value 0 is -2; {amount}"));
        refused(
            |job, _, _| job.blocks[0].sets = vec![1],
            &format!("{block}: a set or start lies outside the window; use sets below 1 and slots below 2"),
        );
        refused(
            |job, _, _| job.blocks[0].starts.push(Start { slot: 0, utility: 1.0 }),
            &format!("{block}: sets or starts are not strictly ascending; sort them and drop repeated ones"),
        );
        refused(
            |job, _, _| job.blocks[0].starts[0].utility = f64::INFINITY,
            &format!("{block}: a utility is not finite; give a number"),
        );
        refused(
            |job, _, _| job.blocks.push(job.blocks[0].clone()),
            &format!("{block}: another block has this name; name each block of a job differently"),
        );
    }
}
