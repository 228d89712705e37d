//! Columns of the linear program, compiled from the jobs of a problem: pending jobs with their options, and running
//! jobs that can be preempted. The module also has bases, whose variables have names so that the next problem can start
//! from them, and upper bounds that duals prove.
//!
//! A column's entries lie in [`Segment`]s of consecutive rows. The column of an option on a set has one segment; the
//! column of a running job has a segment for each set. Columns that differ in set or start share their values. Columns
//! of consecutive starts on one set form a [`Strip`]: its products with a vector are a correlation, and are computed
//! together.
//!
//! A [`Certificate`] is an upper bound. For every y ≥ 0, Σ y b + Σ_g max(0, max_{j ∈ g} (c_j − y·a_j)) is at least the
//! optimum: each feasible x has c·x ≤ c·x + y·(b − A x) = y·b + Σ_g Σ_{j ∈ g} (c_j − y·a_j) x_j, and the x_j of a group
//! are not negative and add up to at most one. So any nonnegative duals give a bound, even those of a solve that
//! stopped early.

use std::ops::Range;

/// Consecutive rows of a column, and the values in them.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Segment {
    row: u32,
    value: u32,
    len: u32,
}

/// Columns of consecutive starts on one set. The values of each column begin one row below those of its predecessor.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Strip {
    column: u32,
    count: u32,
    /// Segment of the first column.
    segment: Segment,
}

/// One block and start of a job, with a column for each set of the block.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Choosable {
    pub(crate) job: u32,
    pub(crate) block: u32,
    pub(crate) slot: u32,
    pub(crate) utility: f64,
    /// The column of the block's first set.
    column: u32,
    /// Distance between the columns of consecutive sets.
    stride: u32,
}

impl Choosable {
    /// The column of the set with index `place` in the block.
    pub(crate) fn column(&self, place: usize) -> usize {
        self.column as usize + place * self.stride as usize
    }
}

/// The linear program's columns, grouped by job: first the pending jobs, then the running ones.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Columns {
    slots: usize,
    cost: Vec<f64>,
    group: Vec<u32>,
    /// Option of each column of a pending job.
    option: Vec<u32>,
    /// Index of each column's first segment; the last entry is the number of segments.
    first_segment: Vec<u32>,
    segments: Vec<Segment>,
    values: Vec<f64>,
    strips: Vec<Strip>,
    /// Index of each group's first strip; the last entry is the number of strips.
    first_strip: Vec<u32>,
    /// Index of each group's first column; the last entry is the number of columns.
    first_column: Vec<u32>,
    options: Vec<Choosable>,
    /// Index of each job's first option; the last entry is the number of options.
    first_option: Vec<u32>,
    /// Names of the groups with their indices, sorted by name.
    names: Vec<(u64, u32)>,
}

impl Columns {
    /// The columns of jobs whose data have been checked.
    pub(crate) fn new(slots: usize, jobs: &[Job], running: &[Running]) -> Self {
        let mut columns = Self { slots, first_segment: vec![0], ..Self::default() };
        for (at, job) in jobs.iter().enumerate() {
            columns.begin_group(job.name);
            columns.first_option.push(columns.options.len() as u32);
            for number in 0..job.blocks.len() {
                columns.add_block(at, job, number);
            }
        }
        columns.first_option.push(columns.options.len() as u32);
        for job in running {
            columns.begin_group(job.name);
            columns.add_running(job);
        }
        columns.first_column.push(columns.len() as u32);
        columns.first_strip.push(columns.strips.len() as u32);
        columns.names.sort_unstable();
        columns
    }

    /// Adds the columns of a block, set by set.
    fn add_block(&mut self, at: usize, job: &Job, number: usize) {
        let block = &job.blocks[number];
        let values = self.add_values(&block.demand, f64::from(job.tasks));
        let first = self.options.len() as u32;
        let starts = || block.starts.iter().filter(|start| start.utility > 0.0);
        let stride = starts().count() as u32;
        for (start, column) in starts().zip(self.len() as u32..) {
            let (slot, utility) = (start.slot, start.utility);
            self.options.push(Choosable {
                job: at as u32,
                block: number as u32,
                slot,
                utility,
                column,
                stride,
            });
        }
        for &set in &block.sets {
            let mut after = None;
            for (start, option) in starts().zip(first..) {
                let segment = self.segment(set, start.slot, values.clone());
                match self.strips.last_mut() {
                    Some(strip) if after == Some(start.slot) => strip.count += 1,
                    _ => self.strips.push(Strip { column: self.cost.len() as u32, count: 1, segment }),
                }
                after = Some(start.slot + 1);
                self.segments.push(segment);
                self.option.push(option);
                self.end_column(start.utility);
            }
        }
    }

    /// Adds the column of a running job.
    fn add_running(&mut self, job: &Running) {
        for (set, &tasks) in job.tasks.iter().enumerate().filter(|(_, tasks)| **tasks > 0) {
            let values = self.add_values(&job.demand, -f64::from(tasks));
            let segment = self.segment(set as u32, 0, values);
            self.segments.push(segment);
            self.strips.push(Strip { column: self.len() as u32, count: 1, segment });
        }
        self.end_column(-job.price);
    }

    fn begin_group(&mut self, name: u64) {
        self.names.push((name, self.first_column.len() as u32));
        self.first_strip.push(self.strips.len() as u32);
        self.first_column.push(self.len() as u32);
    }

    /// Stores a demand times a factor, without trailing zeros.
    fn add_values(&mut self, demand: &[f64], factor: f64) -> Range<u32> {
        let used = demand.iter().rposition(|value| *value > 0.0).map_or(0, |last| last + 1).min(self.slots);
        let from = self.values.len() as u32;
        self.values.extend(demand[..used].iter().map(|value| value * factor));
        from..self.values.len() as u32
    }

    /// The segment of values that fits in the window, if the first value is placed at a slot of a set; the rest is cut.
    fn segment(&self, set: u32, slot: u32, values: Range<u32>) -> Segment {
        let slots = self.slots as u32;
        let len = (values.end - values.start).min(slots - slot);
        Segment { row: set * slots + slot, value: values.start, len }
    }

    fn end_column(&mut self, cost: f64) {
        self.cost.push(cost);
        self.group.push(self.first_column.len() as u32 - 1);
        self.first_segment.push(self.segments.len() as u32);
    }

    /// Number of columns.
    pub(crate) fn len(&self) -> usize {
        self.cost.len()
    }

    /// Number of groups, one for each pending or running job.
    pub(crate) fn groups(&self) -> usize {
        self.first_column.len() - 1
    }

    /// Objective coefficient of a column.
    pub(crate) fn cost(&self, column: usize) -> f64 {
        self.cost[column]
    }

    /// Objective coefficients of all columns.
    pub(crate) fn costs(&self) -> &[f64] {
        &self.cost
    }

    /// Group of a column.
    pub(crate) fn group(&self, column: usize) -> usize {
        self.group[column] as usize
    }

    /// Columns of a group.
    pub(crate) fn group_columns(&self, group: usize) -> Range<usize> {
        self.first_column[group] as usize..self.first_column[group + 1] as usize
    }

    /// Options of all jobs.
    pub(crate) fn options(&self) -> &[Choosable] {
        &self.options
    }

    /// Indices of a job's options.
    pub(crate) fn job_options(&self, job: usize) -> Range<usize> {
        self.first_option[job] as usize..self.first_option[job + 1] as usize
    }

    /// Segments of a column, each as its first row and its values.
    pub(crate) fn runs(&self, column: usize) -> impl Iterator<Item = (usize, &[f64])> {
        let range = self.first_segment[column] as usize..self.first_segment[column + 1] as usize;
        self.segments[range].iter().map(|segment| {
            let values = segment.value as usize..(segment.value + segment.len) as usize;
            (segment.row as usize, &self.values[values])
        })
    }

    /// Inner product of a column with a vector over the rows.
    pub(crate) fn dot(&self, column: usize, rows: &[f64]) -> f64 {
        self.runs(column).map(|(row, values)| dot(&rows[row..row + values.len()], values)).sum()
    }

    /// Adds a multiple of a column to a vector over the rows.
    pub(crate) fn add_to(&self, column: usize, factor: f64, rows: &mut [f64]) {
        for (row, values) in self.runs(column) {
            for (total, value) in rows[row..].iter_mut().zip(values) {
                *total += factor * value;
            }
        }
    }

    /// Index of the group with a name.
    pub(crate) fn find_group(&self, name: u64) -> Option<usize> {
        let at = self.names.binary_search_by_key(&name, |entry| entry.0).ok()?;
        Some(self.names[at].1 as usize)
    }

    /// The name of a column.
    pub(crate) fn name(&self, column: usize, jobs: &[Job], running: &[Running]) -> Variable {
        let group = self.group(column);
        let Some(job) = jobs.get(group) else {
            return Variable::Preempted { job: running[group - jobs.len()].name };
        };
        let option = &self.options[self.option[column] as usize];
        let block = &job.blocks[option.block as usize];
        let set = block.sets[(column - option.column as usize) / option.stride as usize];
        Variable::Share { job: job.name, block: block.name, slot: option.slot, set }
    }

    /// The column with a name, if the problem has it.
    pub(crate) fn find(&self, name: Variable, jobs: &[Job]) -> Option<usize> {
        match name {
            Variable::Share { job, block, slot, set } => {
                let at = self.find_group(job).filter(|at| *at < jobs.len())?;
                let number = jobs[at].blocks.iter().position(|known| known.name == block)?;
                let place = jobs[at].blocks[number].sets.binary_search(&set).ok()?;
                let options = &self.options[self.job_options(at)];
                let key = (number as u32, slot);
                let option = options.binary_search_by_key(&key, |option| (option.block, option.slot)).ok()?;
                Some(options[option].column(place))
            }
            Variable::Preempted { job } => {
                let at = self.find_group(job).filter(|at| *at >= jobs.len())?;
                Some(self.first_column[at] as usize)
            }
            Variable::Unplanned { .. } | Variable::Idle { .. } => None,
        }
    }
}

/// Number of products that are computed at once, in registers.
const LANES: usize = 4;

/// Inner product of two vectors of one length: four partial sums, always in the same order.
pub(crate) fn dot(left: &[f64], right: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (left, right) = (left.chunks_exact(4), right.chunks_exact(4));
    let rest: f64 = left.remainder().iter().zip(right.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in left.zip(right) {
        for lane in 0..4 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3]) + rest
}

/// Profits of columns at duals of the rows.
#[derive(Default)]
pub(crate) struct Profits {
    /// The duals, set by set, with zeros after each set, so that products of [`LANES`] starts may reach beyond it.
    duals: Vec<f64>,
    /// Profits of the columns of one group.
    profits: Vec<f64>,
}

impl Profits {
    /// Takes the duals of the rows.
    pub(crate) fn take(&mut self, columns: &Columns, duals: &[f64]) {
        self.duals.clear();
        for set in duals.chunks_exact(columns.slots) {
            self.duals.extend_from_slice(set);
            self.duals.extend([0.0; LANES - 1]);
        }
    }

    /// Profits c − y·a of a group's columns at the duals y. Keeping a few of them in registers over all values makes a
    /// solve a sixth faster than going through memory value by value.
    pub(crate) fn of(&mut self, columns: &Columns, group: usize) -> &[f64] {
        let (range, slots) = (columns.group_columns(group), columns.slots);
        self.profits.clear();
        self.profits.extend_from_slice(&columns.cost[range.clone()]);
        let strips = columns.first_strip[group] as usize..columns.first_strip[group + 1] as usize;
        for strip in &columns.strips[strips] {
            let Segment { row, value, len } = strip.segment;
            let (row, value) = (row as usize, value as usize);
            let values = &columns.values[value..value + len as usize];
            let profits = &mut self.profits[strip.column as usize - range.start..][..strip.count as usize];
            let set = row / slots;
            let duals = &self.duals[row + set * (LANES - 1)..(set + 1) * (slots + LANES - 1)];
            let (chunks, rest) = profits.as_chunks_mut();
            for (chunk, first) in chunks.iter_mut().zip((0..).step_by(LANES)) {
                subtract_rents(chunk, values, &duals[first..]);
            }
            if !rest.is_empty() {
                let mut chunk = [0.0; LANES];
                chunk[..rest.len()].copy_from_slice(rest);
                subtract_rents(&mut chunk, values, &duals[LANES * chunks.len()..]);
                rest.copy_from_slice(&chunk[..rest.len()]);
            }
        }
        &self.profits
    }
}

/// Subtracts the products of values with duals from the profits of consecutive starts, whose duals begin one row apart.
fn subtract_rents(profits: &mut [f64; LANES], values: &[f64], duals: &[f64]) {
    for (value, duals) in values.iter().zip(duals.windows(LANES)) {
        for lane in 0..LANES {
            profits[lane] -= value * duals[lane];
        }
    }
}

/// A pending job. At most one of its options is chosen.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// Name of the job, the same from problem to problem; no other job or running job has it.
    pub name: u64,
    /// Number of tasks, at least 1. They start together, and each takes one node.
    pub tasks: u32,
    /// Ways to run the job. A job without blocks cannot be planned.
    pub blocks: Vec<Block>,
}

/// The options of a job that differ only in their start, such as all options on its preferred nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// Name of the block within its job, the same from problem to problem.
    pub name: u32,
    /// Sets of nodes over which the tasks may be split, in ascending order.
    pub sets: Vec<u32>,
    /// Expected number of nodes that each task uses, by slots since its start; at least 0, and 0 beyond the end. In
    /// 3Sigma it is 1 − CDF of the run time.
    pub demand: Vec<f64>,
    /// Possible starts, in ascending order.
    pub starts: Vec<Start>,
}

/// An option's start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Start {
    /// Slot of the window, from 0.
    pub slot: u32,
    /// Utility of the job if it starts in this slot, in any unit. Options of utility 0 or less are never chosen.
    pub utility: f64,
}

/// A running job that can be preempted, as a whole and at a price, to gain the capacity that it holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Running {
    /// Name of the job, the same from problem to problem; no other job or running job has it.
    pub name: u64,
    /// Number of the job's tasks on each set of nodes.
    pub tasks: Vec<u32>,
    /// Expected number of nodes that each task uses, by slot of the window; at least 0, and 0 beyond the end.
    pub demand: Vec<f64>,
    /// Price of preempting the job, in the unit of utilities; at least 0.
    pub price: f64,
}

/// A variable of a linear program, by names that stay the same from problem to problem.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variable {
    /// The share of a job that starts at a slot on a set of nodes.
    Share {
        /// Name of the job.
        job: u64,
        /// Name of the block.
        block: u32,
        /// Slot of the start.
        slot: u32,
        /// Set of nodes.
        set: u32,
    },
    /// The share of a running job that is preempted.
    Preempted {
        /// Name of the running job.
        job: u64,
    },
    /// The slack of a group row: the share of a pending job that is not planned, or of a running job that continues.
    Unplanned {
        /// Name of the job.
        job: u64,
    },
    /// The slack of a capacity row: nodes that stay idle.
    Idle {
        /// Set of nodes.
        set: u32,
        /// Slot of the window.
        slot: u32,
    },
}

/// A basis of a linear program: the variables that determine the solution.
///
/// It refers to variables by name, so it also serves for a later problem with other jobs, capacities, utilities and
/// demands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Basis {
    /// Key columns of the groups; groups whose key is their slack are left out.
    pub(crate) keys: Vec<Variable>,
    /// The columns of the working basis.
    pub(crate) working: Vec<Variable>,
}

/// The best bound so far, with the duals that prove it.
pub(crate) struct Certificate<'a> {
    columns: &'a Columns,
    capacity: &'a [f64],
    bound: f64,
    duals: Vec<f64>,
    offered: Vec<f64>,
    profits: Profits,
}

impl<'a> Certificate<'a> {
    /// The bound that zero duals prove: every job gets its best option.
    pub(crate) fn new(columns: &'a Columns, capacity: &'a [f64]) -> Self {
        let duals = vec![0.0; capacity.len()];
        let offered = duals.clone();
        let mut profits = Profits::default();
        let bound = bound(columns, capacity, &duals, &mut profits);
        Self { columns, capacity, bound, duals, offered, profits }
    }

    /// Computes the bound that duals prove, with negative duals set to zero. The certificate keeps the best bound.
    pub(crate) fn offer(&mut self, duals: &[f64]) -> f64 {
        for (offered, dual) in self.offered.iter_mut().zip(duals) {
            *offered = dual.max(0.0);
        }
        let bound = bound(self.columns, self.capacity, &self.offered, &mut self.profits);
        if bound < self.bound {
            self.bound = bound;
            std::mem::swap(&mut self.duals, &mut self.offered);
        }
        bound
    }

    /// The best bound and its duals.
    pub(crate) fn into_best(self) -> (f64, Vec<f64>) {
        (self.bound, self.duals)
    }
}

/// The bound that nonnegative duals prove.
fn bound(columns: &Columns, capacity: &[f64], duals: &[f64], profits: &mut Profits) -> f64 {
    let rows: f64 = capacity.iter().zip(duals).map(|(nodes, dual)| nodes * dual).sum();
    profits.take(columns, duals);
    let best = |group| profits.of(columns, group).iter().fold(0.0, |best: f64, profit| best.max(*profit));
    rows + (0..columns.groups()).map(best).sum::<f64>()
}
