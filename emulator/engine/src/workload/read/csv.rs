//! Tables: one row per job, or per task where a column states dependencies, as cells below a header that names the
//! columns, or as JSON objects. A file of features, such as `X.features.csv` beside `X.tr`, has one row per job of the
//! other file, in its order.
//!
//! These columns are known: the job level of the simulators' traces (`arrival_s`, `ntasks`, `mean_s`), the tables
//! derived from Google's trace (`submit_ms`, `run_ms`, …), the ATLAS repository of LANL (`submit_time`, `start_time`,
//! `end_time`, …), and the tables of [`super::sets`]. For any other file the user names the columns. Other columns are
//! ignored. Every task of a job takes the job's run time. Rows that lack what a job needs are skipped and counted.
//! Comments begin with `#` and are allowed only above the header, since a user may be called `#1`.

use std::collections::BTreeSet;
use std::path::Path;

use volary_actors::base::{Span, Time};

use super::super::graph::StageGraph;
use super::super::trace::{MOST_JOBS, MOST_TASKS, Trace};
use super::columns::Meaning;
use super::dependencies::{JobStages, NamedTask};
use super::lines::{At, BadRows, Lines, Skipped, TraceLine, short};
use super::sets::bare_header;
use super::table::{Header, TableRow, WordNumbers, Words};
use super::time::Instant;
use super::{Reading, SizeBy};
use crate::workload::details::{Details, Outcome};
use crate::workload::trace::WorkloadError;

/// Reads up to `limit` jobs.
pub(super) fn read(
    lines: &mut Lines<'_>,
    trace: &mut Trace,
    limit: usize,
    reading: &Reading,
    bad: &mut BadRows,
) -> Result<Skipped, WorkloadError> {
    let names = reading.columns.as_ref();
    let mut skipped = Skipped::default();
    let bare = bare_header(lines.file());
    let Some(line) = lines.next_row('#')? else { return Ok(skipped) };
    let bare = bare.filter(|header| line.text != *header);
    let header_line = bare.map_or(line, |text| TraceLine { text, ..line });
    let header = Header::new(header_line, names, reading.zone)?;
    require(&header, header_line, names.is_some(), reading.size)?;
    if header.is_json() || bare.is_some() {
        lines.unread();
    }
    let (mut words, mut clock, mut early) = (Words::default(), Clock::default(), 0);
    let (mut names_of, mut parts) = (PartNames::default(), Vec::new());
    while trace.jobs().len() < limit && parts.len() <= MOST_JOBS {
        let Some(line) = lines.next_record()? else { break };
        let before = clock;
        let Some(job) = bad.row(job(&header, line, (&mut words, &mut names_of), &mut clock, reading))? else {
            // A row that is left out does not fix the form of times.
            clock = before;
            continue;
        };
        match job {
            Err(reason) => skipped.count(reason),
            Ok(job) if header.has(Meaning::After) => parts.push(job),
            Ok(TableJob { times, tasks, details, stages, .. }) => {
                early += u64::from(times.is_early);
                trace.push_rigid(times.submit, times.run, tasks);
                let row = trace.jobs().len() - 1;
                trace.detail(row, &details);
                stages.into_iter().for_each(|stages| trace.depend(row, stages.0, &stages.1));
            }
        }
    }
    words.keep(trace);
    early += parts.iter().filter(|part| part.times.is_early).count() as u64;
    join(parts, &names_of, lines.file(), trace, (limit, reading), bad)?;
    if header.is_google() {
        trace.mark_google();
    }
    header.remarks().for_each(|note| trace.note(note));
    clock.remark(&header).into_iter().for_each(|note| trace.note(note));
    if let Some(Some(zone)) = clock.zone {
        trace.mark_dated(zone);
    }
    if early > 0 {
        trace.note(format!(
            "jobs that start before they are submitted, so that their waits are unknown: {early}; are the columns right?"
        ));
    }
    if let Some(size) = reading.size {
        trace.note(format!("a job has as many tasks as {}", size.name()));
    } else if header.has(Meaning::After) {
        trace.note("a row is a task, or several that take its run time; rows of one `job` make a job".into());
    } else if counts_tasks(&header) {
        trace.note("the file is job-level: every task of a job takes the job's mean".into());
    } else {
        trace.without_tasks();
        let why = if names.is_some() { "no named column states" } else { "the file does not state" };
        trace.note(format!(
            "{why} how many tasks jobs have: each job counts as one; --columns tasks=COLUMN names such a column"
        ));
    }
    Ok(skipped)
}

fn counts_tasks(header: &Header) -> bool {
    header.has(Meaning::Tasks) || header.has(Meaning::Nodes)
}

/// A job of a table, or a task of one that may wait for others.
struct TableJob {
    times: Times,
    tasks: u32,
    details: Details,
    stages: Option<Box<(StageGraph, Vec<u32>)>>,
    /// Numbers of the names of the job, of the task, and of the tasks that it waits for, where rows are tasks.
    names: (u32, u32, Vec<u32>),
    line: u64,
}

/// The numbers of the names of jobs and tasks in a table with a row per task.
#[derive(Default)]
struct PartNames {
    jobs: WordNumbers,
    tasks: WordNumbers,
    /// The job and the task of each row that was left out, if its cells could be read.
    left_out: BTreeSet<(u32, u32)>,
}

/// Outcomes of tasks that become the outcome of their job, the most decisive first.
const WORST: [Outcome; 5] =
    [Outcome::Failed, Outcome::TimedOut, Outcome::Killed, Outcome::Evicted, Outcome::Lost];

/// The details of a job that arrived at `first` and has a row per task. Cores, memory and GPUs are sums over all rows,
/// the outcome is the worst, the wait lasts until the first start, and the features are those of the first row.
fn joined(job: &[TableJob], first: Time) -> Details {
    let sum = |of: fn(&Details) -> Option<f32>| job.iter().map(|part| of(&part.details)).sum::<Option<f32>>();
    let starts = job.iter().map(|part| Some(part.times.submit + part.details.wait?));
    let start = starts.collect::<Option<Vec<Time>>>().and_then(|starts| starts.into_iter().min());
    let has = |outcome: &Option<Outcome>| job.iter().any(|part| part.details.outcome == *outcome);
    let worst = WORST.map(Some).into_iter().chain([None]).find(has);
    Details {
        wait: start.map(|start| start.since(first)),
        outcome: worst.unwrap_or(Some(Outcome::Finished)),
        cores: sum(|details| details.cores),
        memory: sum(|details| details.memory),
        gpus: sum(|details| details.gpus),
        ..job[0].details.clone()
    }
}

/// Adds the first `limit` jobs of a table with a row per task, in order of arrival. A job arrives with its first task.
/// Tasks whose rows were left out are taken to have ended before their job.
fn join(
    mut parts: Vec<TableJob>,
    names: &PartNames,
    file: &Path,
    trace: &mut Trace,
    (limit, reading): (usize, &Reading),
    bad: &mut BadRows,
) -> Result<(), WorkloadError> {
    if parts.len() > MOST_JOBS {
        let why = format!("has more than {MOST_JOBS} tasks; split it");
        return Err(WorkloadError::Trace(format!("{}: {why}", file.display())));
    }
    parts.sort_by_key(|part| part.names.0);
    let mut jobs: Vec<&[TableJob]> = parts.chunk_by(|one, other| one.names.0 == other.names.0).collect();
    jobs.sort_by_key(|job| (job.iter().map(|part| part.times.submit).min(), job[0].line));
    let mut ended = 0;
    for job in jobs {
        if trace.jobs().len() == limit {
            break;
        }
        let at = |part: &TableJob| At { file, line: part.line };
        let named = job.iter().map(|part| NamedTask { id: part.names.1, after: &part.names.2, at: at(part) });
        let tasks: Vec<_> = named.collect();
        let may_miss = |id| names.left_out.contains(&(job[0].names.0, id));
        let word =
            |id| if bad.quotes() { format!("`{}`", short(names.tasks.word(id))) } else { String::new() };
        let stages = if reading.dependencies {
            JobStages::of(&tasks, may_miss, word)
        } else {
            Ok(JobStages::single(job.len()))
        };
        let all = job.iter().fold(0u32, |sum, part| sum.saturating_add(part.tasks));
        let fits = stages.and_then(|stages| {
            let why = format!("the job of this task has {all} tasks, above the limit of {MOST_TASKS}");
            if all <= MOST_TASKS { Ok(stages) } else { Err(at(&job[0]).wrong(why)) }
        });
        let Some(stages) = bad.job(fits)? else { continue };
        ended += stages.unknown;
        let of = |stage: &Vec<u32>| stage.iter().map(|&part| job[part as usize].tasks).sum();
        let sizes: Vec<u32> = stages.tasks.iter().map(of).collect();
        let durations = stages.tasks.iter().flatten().flat_map(|&part| {
            let TableJob { times, tasks, .. } = &job[part as usize];
            std::iter::repeat_n(times.run.as_secs_f64() as f32, *tasks as usize)
        });
        let work: u128 = job.iter().map(|part| u128::from(part.times.run.0) * u128::from(part.tasks)).sum();
        let mean = Span((work / u128::from(all)) as u64);
        let first = job.iter().map(|part| part.times.submit).min().unwrap_or_default();
        if job.iter().all(|part| part.times.run == mean) {
            trace.push_rigid(first, mean, all);
        } else {
            let pushed = trace.push(first, mean, &durations.collect::<Vec<f32>>());
            pushed.map_err(|why| WorkloadError::Trace(format!("{}: {why}", file.display())))?;
        }
        let row = trace.jobs().len() - 1;
        trace.detail(row, &joined(job, first));
        if stages.graph.has_links() {
            trace.depend(row, stages.graph, &sizes);
        }
    }
    if ended > 0 {
        trace.note(format!(
            "tasks that others wait for, but whose rows were left out, so that they count as ended before the job: {ended}"
        ));
    }
    Ok(())
}

/// The job of a row, or the reason for which the row describes none.
fn job(
    header: &Header,
    line: TraceLine<'_>,
    (words, names): (&mut Words, &mut PartNames),
    clock: &mut Clock,
    reading: &Reading,
) -> Result<Result<TableJob, &'static str>, WorkloadError> {
    let row = header.row(line)?;
    let job = described(&row, header, (words, names), clock, reading);
    if header.has(Meaning::After)
        && !matches!(job, Ok(Ok(_)))
        && let Ok(job) = row.word(Meaning::Job, &mut names.jobs)
        && let Ok(task) = row.word(Meaning::Task, &mut names.tasks)
    {
        names.left_out.insert((job, task));
    }
    job
}

/// The job that the cells of a row describe, or the reason for which they describe none.
fn described(
    row: &TableRow<'_>,
    header: &Header,
    (words, names): (&mut Words, &mut PartNames),
    clock: &mut Clock,
    reading: &Reading,
) -> Result<Result<TableJob, &'static str>, WorkloadError> {
    if row.is_step() {
        return Ok(Err("of steps of a job"));
    }
    if row.is_unfinished() {
        return Ok(Err("of jobs that had not ended"));
    }
    if row.is_earlier() {
        return Ok(Err("of jobs from before the table began"));
    }
    let times = match times(row, header, clock)? {
        Ok(times) => times,
        Err(reason) => return Ok(Err(reason)),
    };
    let Some(stated) = tasks(row, header)? else { return Ok(Err("with a blank cell")) };
    let tasks = match reading.size {
        None => stated,
        Some(size) => {
            let amount = row.amount(size.meaning(), stated)?.unwrap_or_default().ceil();
            if amount > MOST_TASKS as f32 {
                return Err(row.at.wrong(format!("{amount} {} are too many", size.name())));
            }
            if amount < 1.0 {
                return Ok(Err(size.without()));
            }
            amount as u32
        }
    };
    let details = Details { wait: times.wait, ..row.details(words, stated)? };
    let names = if header.has(Meaning::After) {
        let job = row.word(Meaning::Job, &mut names.jobs)?;
        (job, row.word(Meaning::Task, &mut names.tasks)?, row.awaited(&mut names.tasks)?)
    } else {
        (0, 0, Vec::new())
    };
    let stages = if reading.dependencies { row.stages(tasks)?.map(Box::new) } else { None };
    Ok(Ok(TableJob { times, tasks, details, stages, names, line: row.at.line }))
}

impl SizeBy {
    const fn meaning(self) -> Meaning {
        match self {
            Self::Gpus => Meaning::Gpus,
            Self::Cores => Meaning::Cores,
        }
    }

    /// The reason to skip a row.
    const fn without(self) -> &'static str {
        match self {
            Self::Gpus => "of jobs without GPUs",
            Self::Cores => "of jobs without cores",
        }
    }
}

/// Refuses a header that lacks a required column; `named` says whether the user named the columns.
fn require(
    header: &Header,
    line: TraceLine<'_>,
    named: bool,
    size: Option<SizeBy>,
) -> Result<(), WorkloadError> {
    let has = |meaning| header.has(meaning);
    let lacking = if !has(Meaning::Submit) {
        "`arrival_s`, `submit_ms` or `submit_time`: when jobs were submitted"
    } else if !(has(Meaning::Run) || has(Meaning::Start) && has(Meaning::End)) {
        "`mean_s` or `run_ms`, or `start_time` and `end_time`: how long jobs ran"
    } else if !named && header.is_named(Meaning::Submit, "arrival_s") && !counts_tasks(header) {
        "`ntasks`: how many tasks jobs have"
    } else if has(Meaning::After) && has(Meaning::Stages) {
        let why = "the header names both `after`, of tables with a row per task, and `stages`; leave out one of them";
        return Err(line.at.wrong(why));
    } else if has(Meaning::After) && !(has(Meaning::Job) && has(Meaning::Task)) {
        "`job` and `task` beside `after`: the names by which tasks of a job wait for other tasks"
    } else if let Some(size) = size.filter(|size| !has(size.meaning())) {
        match size {
            SizeBy::Gpus => "`gpus`: how many tasks jobs have by `size`",
            SizeBy::Cores => "`cores`: how many tasks jobs have by `size`",
        }
    } else {
        return Ok(());
    };
    Err(line.at.wrong(format!(
        "the header names no column {lacking}; it has {}. Say which column is which: `volary trace describe` and \
         `convert`, which makes a .tr file of it, take --columns submit=COLUMN,run=COLUMN,tasks=COLUMN,user=COLUMN; in an experiment `workload.trace.columns`; or the name of a known table, such as --columns mustang",
        header.names(),
    )))
}

/// Submission, wait and run time of a job.
struct Times {
    submit: Time,
    wait: Option<Span>,
    run: Span,
    /// Whether the job started before it was submitted.
    is_early: bool,
}

/// The times of a row, or the reason for which it describes no complete job.
fn times(
    row: &TableRow<'_>,
    header: &Header,
    clock: &mut Clock,
) -> Result<Result<Times, &'static str>, WorkloadError> {
    // A date that occurs twice, at a change of clocks, is read as its second time if the first is too early.
    let mut at = |meaning, after: Option<Time>| {
        let Some(at) = row.instant(meaning)? else { return Ok(None) };
        clock.count(at);
        let first = clock.local(row, at, at.ns)?;
        let is_late = after.is_some_and(|after| first < after);
        at.second_ns.filter(|_| is_late).map_or(Ok(first), |second| clock.local(row, at, second)).map(Some)
    };
    let submit = at(Meaning::Submit, None)?;
    let start = at(Meaning::Start, submit)?;
    let end = at(Meaning::End, start.or(submit))?;
    let (run, wait) = (row.span(Meaning::Run)?, row.span(Meaning::Wait)?);
    let Some(submit) = submit else { return Ok(Err("with a blank cell")) };
    if header.has(Meaning::Run) {
        let Some(run) = run else { return Ok(Err("without a run time")) };
        let start = start.or_else(|| end.filter(|end| end.0 >= run.0).map(|end| Time(end.0 - run.0)));
        let wait = wait.or_else(|| wait_until(start?, submit));
        let is_early = wait.is_none() && start.is_some();
        return Ok(Ok(Times { submit, wait, run, is_early }));
    }
    let Some(start) = start else { return Ok(Err("without a start")) };
    let Some(end) = end else { return Ok(Err("without an end")) };
    if end < start {
        let clocks =
            header.zone().map_or("", |_| ", or write its dates with their zones if clocks were set back");
        let why = "ends before it starts, which is a negative run time; correct the row or delete it";
        return Err(row.at.wrong(format!("{why}{clocks}")));
    }
    let wait = wait_until(start, submit);
    Ok(Ok(Times { submit, wait, run: end.since(start), is_early: wait.is_none() }))
}

/// The wait of a job; unknown for a job that started before it was submitted.
fn wait_until(start: Time, submit: Time) -> Option<Span> {
    (start >= submit).then(|| start.since(submit))
}

/// The number of tasks of a row: its tasks, or else its nodes. It is one if the file has no such column, and `None` if
/// the cell is blank.
fn tasks(row: &TableRow<'_>, header: &Header) -> Result<Option<u32>, WorkloadError> {
    match row.count(Meaning::Tasks)? {
        Some(tasks) => Ok(Some(tasks)),
        None if header.has(Meaning::Nodes) => row.count(Meaning::Nodes),
        None => Ok((!header.has(Meaning::Tasks)).then_some(1)),
    }
}

/// The clock of a file. All dates are in the zone of the first date, so that hours of the day are those of the cluster.
#[derive(Clone, Copy, Default)]
struct Clock {
    /// Form of the first time: the zone of a date, or `None` for a number.
    zone: Option<Option<i64>>,
    /// Number of dates that state no zone, and of dates that occur twice, at a change of clocks.
    assumed: u64,
    repeated: u64,
}

impl Clock {
    fn count(&mut self, at: Instant) {
        self.zone.get_or_insert(at.zone);
        self.assumed += u64::from(at.is_assumed);
        self.repeated += u64::from(at.second_ns.is_some());
    }

    /// The time of `ns`, one of the times of `at`.
    fn local(&self, row: &TableRow<'_>, at: Instant, ns: u64) -> Result<Time, WorkloadError> {
        match (self.zone.unwrap_or(at.zone), at.zone) {
            (None, None) => Ok(Time(ns)),
            (Some(first), Some(_)) => Ok(Time(ns.saturating_add_signed(first.saturating_mul(1_000_000_000)))),
            _ => Err(row.at.wrong("mixes dates and numbers as times; write all of them in one form")),
        }
    }

    /// A remark about the zone that was assumed.
    fn remark(&self, header: &Header) -> Option<String> {
        let zone = header.zone()?;
        let twice = match self.repeated {
            0 => String::new(),
            times => format!(
                "; {times} of them occur twice, at a change of clocks, and count as the first unless a job \
                               would start before it was submitted or end before it started"
            ),
        };
        Some(match self.zone {
            Some(Some(_)) if self.assumed > 0 => format!("dates without a zone are in {zone}{twice}"),
            Some(Some(_)) => format!("the zone {zone} is not used, since dates state their own"),
            Some(None) | None => format!("the zone {zone} is not used, since times are numbers"),
        })
    }
}

/// The comment that marks unknown numbers of tasks, so that each job counts as one task.
pub const TASKS_UNKNOWN: &str = "tasks unknown";
/// The comment that marks jobs of Google's trace of 2011.
pub const GOOGLE: &str = "google 2011";
/// The beginning of the comment with the zone of dates, seconds east of Greenwich.
pub const ZONE: &str = "zone ";

/// Applies a comment above the header to the whole trace; returns whether the comment is known.
fn mark(trace: &mut Trace, said: &str) -> bool {
    match (said, said.strip_prefix(ZONE).and_then(|zone| zone.parse().ok())) {
        (_, Some(zone)) => trace.mark_dated(zone),
        (TASKS_UNKNOWN, None) => trace.without_tasks(),
        (GOOGLE, None) => trace.mark_google(),
        _ => return false,
    }
    true
}

/// Adds the rows to the jobs of a trace that is not sorted yet. If all jobs are read, each must have a row. The rows
/// `without_job`, from zero, are about lines of the trace that make no job.
pub(super) fn read_features(
    lines: &mut Lines<'_>,
    trace: &mut Trace,
    reading: &Reading,
    without_job: &[u64],
) -> Result<(), WorkloadError> {
    let jobs = trace.jobs().len();
    let mut is_marked = false;
    let marked = lines.next_row_with_comments('#', |said| is_marked |= mark(trace, said))?;
    let Some(line) = marked else {
        if is_marked {
            return Ok(());
        }
        return Err(WorkloadError::Trace(format!("{}: is empty; delete it", lines.file().display())));
    };
    let header = Header::new(line, None, None)?;
    if header.is_empty() {
        return Err(line.at.wrong(format!(
            "the header names none of the features user, name, lname, queue, application, priority, class; it has {}",
            header.names()
        )));
    }
    let mut words = Words::default();
    let (mut rows, mut job) = (0, 0);
    while let Some(line) = lines.next_record()? {
        let has_job = without_job.binary_search(&rows).is_err();
        if has_job && job == jobs {
            if reading.jobs.is_none() {
                let why = format!("has more rows than `{}` has jobs ({jobs})", trace.file().display());
                return Err(line.at.wrong(format!("{why}; do both belong together?")));
            }
            break;
        }
        let row = header.row(line)?;
        rows += 1;
        let number = row.line()?.unwrap_or(rows);
        if number != rows {
            let why = format!("is about job {number} in the place of job {rows}; sort the rows by `line`");
            return Err(line.at.wrong(why));
        }
        if has_job {
            let tasks = trace.jobs()[job].tasks;
            let wait = row.span(Meaning::Wait)?;
            trace.detail(job, &Details { wait, ..row.details(&mut words, tasks)? });
            let stages = if reading.dependencies { row.stages(tasks)? } else { None };
            stages.into_iter().for_each(|(graph, sizes)| trace.depend(job, graph, &sizes));
            job += 1;
        }
    }
    words.keep(trace);
    if job < jobs {
        return Err(WorkloadError::Trace(format!(
            "{}: has {rows} rows for the {jobs} jobs of `{}`; one row per job is needed",
            lines.file().display(),
            trace.file().display()
        )));
    }
    Ok(())
}
