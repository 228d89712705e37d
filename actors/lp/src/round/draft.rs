//! Drafts of plans, with the room that they leave.

use crate::plan::{Choice, Plan};
use crate::problem::Problem;

use super::preference::Preferences;

/// Nodes by which rounding errors may exceed the room.
const SLACK: f64 = 1e-9;

/// A plan that is being changed. It always keeps the capacities.
pub(super) struct Draft<'a> {
    problem: &'a Problem,
    /// Nodes left in each set and slot.
    room: Vec<f64>,
    /// The option of each planned job.
    chosen: Vec<Option<u32>>,
    /// Tasks of each job on each set.
    tasks: Vec<u32>,
    preempted: Vec<bool>,
    pub(super) value: f64,
    /// Tasks of a job on each set that would fit, and a division of its tasks.
    limits: Vec<u32>,
    split: Vec<u32>,
}

impl<'a> Draft<'a> {
    /// The empty plan.
    pub(super) fn new(problem: &'a Problem) -> Self {
        let (jobs, sets) = (problem.jobs().len(), problem.sets());
        Self {
            problem,
            room: problem.capacity().to_vec(),
            chosen: vec![None; jobs],
            tasks: vec![0; jobs * sets],
            preempted: vec![false; problem.running().len()],
            value: 0.0,
            limits: vec![0; sets],
            split: vec![0; sets],
        }
    }

    /// Takes the plan of another draft of the same problem.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.room.copy_from_slice(&other.room);
        self.chosen.copy_from_slice(&other.chosen);
        self.tasks.copy_from_slice(&other.tasks);
        self.preempted.copy_from_slice(&other.preempted);
        self.value = other.value;
    }

    /// Whether a job is planned.
    pub(super) fn is_planned(&self, job: usize) -> bool {
        self.chosen[job].is_some()
    }

    /// Whether a running job is preempted.
    pub(super) fn is_preempted(&self, running: usize) -> bool {
        self.preempted[running]
    }

    /// Plans a job by the first of its preferred options, from place `from` on and `tries` at most, that fits.
    pub(super) fn plan(&mut self, job: usize, preferences: &Preferences<'_>, from: usize, tries: usize) {
        let mut options = preferences.of_job(job).iter().skip(from).take(tries);
        if let Some(&option) = options.find(|option| self.fits(**option as usize)) {
            self.divide(option as usize, preferences);
            self.choose(job, option);
        }
    }

    /// Moves a planned job to the best option that fits, if that is worth more than the job's own.
    pub(super) fn improve(&mut self, job: usize, preferences: &Preferences<'_>) {
        let Some(own) = self.chosen[job] else { return };
        let options = self.problem.columns().options();
        let utility = |option: u32| options[option as usize].utility;
        self.drop(job);
        let mut best = own;
        for &option in preferences.of_job(job) {
            if utility(option) > utility(best) && self.fits(option as usize) {
                best = option;
            }
        }
        if best != own {
            self.fits(best as usize);
            self.divide(best as usize, preferences);
            self.choose(job, best);
        } else {
            self.put(job, own);
        }
    }

    /// The slot in which a planned job starts.
    pub(super) fn start(&self, job: usize) -> Option<u32> {
        self.chosen[job].map(|option| self.problem.columns().options()[option as usize].slot)
    }

    /// Determines how many tasks of an option fit on each set, and whether all do.
    fn fits(&mut self, option: usize) -> bool {
        let option = self.problem.columns().options()[option];
        let job = &self.problem.jobs()[option.job as usize];
        let block = &job.blocks[option.block as usize];
        let (slots, slot) = (self.problem.slots(), option.slot as usize);
        let mut total = 0_u64;
        for &set in &block.sets {
            let start = set as usize * slots + slot;
            let room = &self.room[start..start - slot + slots];
            let limit = limit(room, &block.demand, job.tasks);
            self.limits[set as usize] = limit;
            total += u64::from(limit);
        }
        total >= u64::from(job.tasks)
    }

    /// Divides the tasks of an option that fits over its sets: as the relaxed solution does, and the rest where the
    /// rent is lowest.
    fn divide(&mut self, option: usize, preferences: &Preferences<'_>) {
        let option = self.problem.columns().options()[option];
        let job = &self.problem.jobs()[option.job as usize];
        let sets = &job.blocks[option.block as usize].sets;
        let share = |at: usize| preferences.relaxed.x[option.column(at)];
        let rent = |at: usize| preferences.rents[option.column(at)];
        self.split.fill(0);
        let (mut left, total) = (job.tasks, (0..sets.len()).map(share).sum::<f64>());
        if total > 0.0 {
            let wanted = |at: usize| f64::from(job.tasks) * share(at) / total;
            for (at, &set) in sets.iter().enumerate() {
                // Up to rounding errors of the relaxed solution.
                let tasks = ((wanted(at) + 1e-6) as u32).min(self.limits[set as usize]).min(left);
                self.split[set as usize] = tasks;
                left -= tasks;
            }
            while left > 0 {
                let missing = |at: &usize| wanted(*at) - f64::from(self.split[sets[*at] as usize]);
                let open = (0..sets.len()).filter(|at| missing(at) > 1e-6 && self.has_room(sets[*at]));
                let Some(at) = open.max_by(|a, b| missing(a).total_cmp(&missing(b))) else { break };
                self.split[sets[at] as usize] += 1;
                left -= 1;
            }
        }
        while left > 0 {
            let open = (0..sets.len()).filter(|at| self.has_room(sets[*at]));
            let Some(at) = open.min_by(|a, b| rent(*a).total_cmp(&rent(*b))) else { break };
            let set = sets[at] as usize;
            let tasks = (self.limits[set] - self.split[set]).min(left);
            self.split[set] += tasks;
            left -= tasks;
        }
    }

    /// Whether another task of the option that is being divided fits on a set.
    fn has_room(&self, set: u32) -> bool {
        self.split[set as usize] < self.limits[set as usize]
    }

    /// Chooses an option as it has been divided.
    fn choose(&mut self, job: usize, option: u32) {
        let sets = self.problem.sets();
        self.tasks[job * sets..][..sets].copy_from_slice(&self.split);
        self.put(job, option);
    }

    /// Plans a job by an option, with its tasks on each set as they are.
    fn put(&mut self, job: usize, option: u32) {
        self.chosen[job] = Some(option);
        self.value += self.problem.columns().options()[option as usize].utility;
        self.add_room(job, option, -1.0);
    }

    /// Drops a job from the plan.
    pub(super) fn drop(&mut self, job: usize) {
        if let Some(option) = self.chosen[job].take() {
            self.value -= self.problem.columns().options()[option as usize].utility;
            self.add_room(job, option, 1.0);
        }
    }

    fn add_room(&mut self, job: usize, option: u32, sign: f64) {
        let option = self.problem.columns().options()[option as usize];
        let block = &self.problem.jobs()[job].blocks[option.block as usize];
        let (sets, slots) = (self.problem.sets(), self.problem.slots());
        for &set in &block.sets {
            let tasks = self.tasks[job * sets + set as usize];
            if tasks > 0 {
                let nodes = sign * f64::from(tasks);
                let rows = &mut self.room[set as usize * slots..][option.slot as usize..slots];
                rows.iter_mut().zip(&block.demand).for_each(|(room, demand)| *room += nodes * demand);
            }
        }
    }

    /// Preempts a running job.
    pub(super) fn preempt(&mut self, running: usize) {
        if !self.preempted[running] {
            self.preempted[running] = true;
            self.value -= self.problem.running()[running].price;
            self.add_running(running, 1.0);
        }
    }

    /// Lets a preempted job go on, even if the plan then exceeds the room.
    pub(super) fn spare(&mut self, running: usize) {
        if self.preempted[running] {
            self.preempted[running] = false;
            self.value += self.problem.running()[running].price;
            self.add_running(running, -1.0);
        }
    }

    fn add_running(&mut self, running: usize, sign: f64) {
        let (job, slots) = (&self.problem.running()[running], self.problem.slots());
        for (&tasks, rows) in job.tasks.iter().zip(self.room.chunks_exact_mut(slots)) {
            let nodes = sign * f64::from(tasks);
            rows.iter_mut().zip(&job.demand).for_each(|(room, demand)| *room += nodes * demand);
        }
    }

    /// Whether the plan keeps the capacities.
    pub(super) fn is_feasible(&self) -> bool {
        self.room.iter().all(|room| *room >= -SLACK)
    }

    /// Lets preempted jobs go on whose nodes the plan does not need.
    pub(super) fn spare_unneeded(&mut self) {
        for running in 0..self.preempted.len() {
            if self.preempted[running] {
                self.spare(running);
                if !self.is_feasible() {
                    self.preempt(running);
                }
            }
        }
    }

    /// The finished plan.
    pub(super) fn finish(&self) -> Plan {
        let sets = self.problem.sets();
        let choice = |(job, option): (usize, &Option<u32>)| {
            let option = self.problem.columns().options()[(*option)? as usize];
            let tasks = self.tasks[job * sets..][..sets].to_vec();
            Some(Choice { job, block: option.block as usize, slot: option.slot, tasks })
        };
        let choices = self.chosen.iter().enumerate().filter_map(choice).collect();
        let preempted = (0..self.preempted.len()).filter(|running| self.preempted[*running]).collect();
        let plan = Plan { choices, preempted, value: 0.0 };
        Plan { value: plan.worth(self.problem), ..plan }
    }
}

/// Number of `tasks` that fit into the room of a set from a slot on.
fn limit(room: &[f64], demand: &[f64], tasks: u32) -> u32 {
    let mut limit = tasks;
    for (room, demand) in room.iter().zip(demand) {
        if f64::from(limit) * demand > room + SLACK {
            limit = ((room + SLACK).max(0.0) / demand) as u32;
            if limit == 0 {
                break;
            }
        }
    }
    limit
}
