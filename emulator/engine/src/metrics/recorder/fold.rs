//! The recorder: notes folded into the totals of one run.
//!
//! The totals are checked as they are updated. A job that finishes twice, or with a task that has no finished copy, is
//! a bug in a policy and stops the run with its seed.

use std::collections::BTreeMap;
use std::iter;

use hdrhistogram::Histogram;
use volary_actors::base::{ActorId, CopyId, JobId, Span, Time};
use volary_actors::catalog::{Catalog, JobSpec};
use volary_actors::layout::Layout;
use volary_actors::machine::Note;
use volary_actors::message::{Message, kind_name};
use volary_actors::roles::job_table::TaskSet;
use volary_netem::Faults;

use super::super::timeline::LoadSampler;
use super::super::{MessageWindow, PolicyMetric, PolicyMetrics, Recording, policy_metrics};
use crate::parcel::Delivered;
use crate::prefetch::prefetch;
use crate::results::{CopyCounts, CopyEnd, CopyRow, JobCounts, TaskCounts};
use crate::shard::Observer;
use crate::workload::{Window, Workload};

/// Limit on the copies that are preempted or evicted per open task while no task finishes. Beyond it the run is
/// stalled: its tasks are launched and stopped again and again.
const STOPPED_IN_VAIN: u64 = 1000;
/// Number of open tasks above which the limit on stopped copies no longer grows.
const MOST_OPEN: u64 = 1000;

/// The progress of a job of the catalog.
#[derive(Debug)]
pub(super) enum Job {
    Pending,
    Open { since: Time, done: TaskSet, left: u32 },
    Finished(Time),
    Killed,
}

/// The copy that a core runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    copy: CopyId,
    since: Time,
}

impl Running {
    pub(super) const fn copy(&self) -> CopyId {
        self.copy
    }
}

/// A copy that was suspended: when it first started, the core time spent on it, and when it was suspended last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspended {
    /// The core on which it was suspended; `None` while it runs again, on that core or another core of its node.
    pub(super) core: Option<u32>,
    first: Time,
    pub(super) spent: CoreTime,
    at: Time,
}

/// Core time spent on a copy, s.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct CoreTime {
    all: f64,
    /// The part of it within the measured window.
    within: f64,
}

impl CoreTime {
    fn plus(self, more: Self) -> Self {
        Self { all: self.all + more.all, within: self.within + more.within }
    }
}

/// Counts of jobs, tasks and copies.
#[derive(Clone, Copy, Default, Debug)]
pub struct Totals {
    /// Numbers of jobs, by outcome.
    pub jobs: JobCounts,
    /// Numbers of tasks, by outcome.
    pub tasks: TaskCounts,
    /// Numbers of copies, by outcome.
    pub copies: CopyCounts,
}

/// Totals of one run, updated from its notes.
#[derive(Debug)]
pub struct Recorder<'a> {
    pub(super) layout: &'a Layout,
    pub(super) workload: &'a Workload,
    pub(super) recording: Recording,
    pub(super) jobs: Vec<Job>,
    /// For each chain the number of its stages that can still end.
    pub(super) left: Vec<u32>,
    pub(super) counts: JobCounts,
    pub(super) tasks: TaskCounts,
    pub(super) copies: CopyCounts,
    pub(super) window: Window,
    /// Counts of the measured jobs, tasks and copies; jobs are counted only at the end.
    pub(super) measured: Totals,
    /// Core time of all copies within the measured window.
    pub(super) in_window: CopyCounts,
    pub(super) running: Vec<Option<Running>>,
    pub(super) busy: u32,
    pub(super) suspended: BTreeMap<CopyId, Suspended>,
    /// Waits of measured tasks of each class in microseconds.
    pub(super) waits: Vec<Histogram<u64>>,
    /// Time of the first start of a copy of each job; [`Time::MAX`] before that.
    pub(super) begun: Vec<Time>,
    pub(super) first_arrival: Option<Time>,
    pub(super) last_finish: Time,
    pub(super) resubmitted: u64,
    /// Unfinished tasks of jobs that were killed.
    killed_tasks: u64,
    /// Copies that shared nodes evicted.
    pub(super) evicted: u64,
    /// Copies that were preempted or evicted since a job arrived, a task finished or a node crashed.
    stopped_in_vain: u64,
    /// Time at which `stopped_in_vain` reached half of its limit.
    half_in_vain: Time,
    pub(super) unexpected: BTreeMap<&'static str, u64>,
    pub(super) sampled_one_in: u32,
    pub(super) sample: Vec<CopyRow>,
    pub(super) timeline: Vec<CopyRow>,
    shown: MessageWindow,
    /// Messages on the timeline, each with the time at which it was handled.
    pub(super) messages: Vec<(Time, Delivered)>,
    /// Messages that the timeline had no room for.
    pub(super) messages_left_out: u64,
    pub(super) load: LoadSampler,
    /// Measurements that only some policies have.
    pub metrics: PolicyMetrics<'a>,
    pub(super) progress: Time,
    /// Time at which the last fault has healed.
    heals_at: Time,
}

impl<'a> Recorder<'a> {
    /// Creates a recorder without observations.
    pub fn new(
        layout: &'a Layout,
        workload: &'a Workload,
        faults: &'a Faults,
        recording: Recording,
        seed: u64,
    ) -> Self {
        let jobs = workload.jobs();
        let tasks: u64 = (0..jobs).map(|j| u64::from(workload.job(JobId(j)).tasks)).sum();
        // Policies run at most about two copies per task; the sample may be slightly larger than asked.
        let few = (2 * tasks).div_ceil(u64::from(recording.copies.max(1))).max(1) as u32;
        let sampled_one_in = recording.one_in.unwrap_or(few);
        let waits = Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits are supported"));
        let waits = vec![waits; workload.classes().len()];
        Self {
            layout,
            workload,
            recording,
            jobs: (0..jobs).map(|_| Job::Pending).collect(),
            left: (0..workload.chains()).map(|chain| workload.jobs_of(chain).len() as u32).collect(),
            counts: JobCounts::default(),
            tasks: TaskCounts::default(),
            copies: CopyCounts::default(),
            window: recording.measured(),
            measured: Totals::default(),
            in_window: CopyCounts::default(),
            running: vec![None; layout.workers() as usize],
            busy: 0,
            suspended: BTreeMap::new(),
            waits,
            begun: vec![Time::MAX; jobs as usize],
            first_arrival: None,
            last_finish: Time::ZERO,
            resubmitted: 0,
            killed_tasks: 0,
            evicted: 0,
            stopped_in_vain: 0,
            half_in_vain: Time::ZERO,
            unexpected: BTreeMap::new(),
            sampled_one_in,
            sample: Vec::new(),
            timeline: Vec::new(),
            shown: MessageWindow::new(layout, &recording),
            messages: Vec::new(),
            messages_left_out: 0,
            load: LoadSampler::new(if recording.timeline_cores > 0 {
                recording.timeline
            } else {
                Span::ZERO
            }),
            metrics: policy_metrics(layout, workload, faults, recording, seed),
            progress: Time::ZERO,
            heals_at: faults.heals_at(),
        }
    }

    /// Checks that a note can be true after the notes recorded so far; the error is the reason. [`note`](Self::note)
    /// and [`close`](Self::close) panic on some notes that cannot be true.
    pub fn check(&self, who: ActorId, note: Note) -> Result<(), String> {
        let job = |job: JobId| &self.jobs[job.index()];
        let suspended = |copy| self.suspended.get(&copy).is_some_and(|suspended| suspended.core.is_some());
        match note {
            Note::Arrived { job: id } => {
                let mut awaited = self.workload.links(id).predecessors();
                if !matches!(job(id), Job::Pending) {
                    return Err(format!("job {} arrived twice", id.0));
                }
                if let Some(before) = awaited.find(|before| !matches!(job(*before), Job::Finished(_))) {
                    return Err(format!("job {} began before job {} had ended", id.0, before.0));
                }
            }
            Note::Finished { job: id } => match job(id) {
                Job::Open { left: 0, .. } => {}
                Job::Open { left, .. } => {
                    return Err(format!("job {} finished with {left} tasks that no copy finished", id.0));
                }
                Job::Pending | Job::Finished(_) | Job::Killed => {
                    return Err(format!("job {} finished twice, or before it arrived", id.0));
                }
            },
            Note::Killed { job: id } if !matches!(job(id), Job::Open { .. }) => {
                return Err(format!("job {} was killed but was not open", id.0));
            }
            Note::Started { copy, resumed } => {
                let core = self.core(who)?;
                if self.running[core as usize].is_some() {
                    return Err(format!("{copy} started on core {core}, which was busy"));
                }
                if matches!(job(copy.task.job), Job::Pending) {
                    return Err(format!("{copy} started before its job arrived"));
                }
                if resumed != suspended(copy) || !resumed && self.suspended.contains_key(&copy) {
                    return Err(format!("{copy} was resumed without being suspended, or started twice"));
                }
            }
            Note::Completed { copy } | Note::Preempted { copy } | Note::Suspended { copy } => {
                let core = self.core(who)?;
                if self.running[core as usize].is_none_or(|running| running.copy != copy) {
                    return Err(format!("{copy} ended on core {core}, which did not run it"));
                }
                if matches!(note, Note::Suspended { .. }) && suspended(copy) {
                    return Err(format!("{copy} was suspended twice"));
                }
            }
            Note::Discarded { copy } if !suspended(copy) => {
                return Err(format!("{copy} was given up but was not suspended"));
            }
            Note::Cache(note) => {
                let (caches, _) = &self.metrics;
                caches.check(note)?;
            }
            Note::Informed { update } => {
                let (_, (_, (_, (spread, _)))) = &self.metrics;
                spread.check(who, update)?;
            }
            Note::Killed { .. }
            | Note::Resubmitted { .. }
            | Note::Discarded { .. }
            | Note::Evicted { .. }
            | Note::Bound { .. }
            | Note::Planned { .. }
            | Note::Enacted { .. }
            | Note::Predicted { .. }
            | Note::Regards { .. }
            | Note::Value { .. }
            | Note::Unexpected { .. } => {}
        }
        Ok(())
    }

    fn core(&self, who: ActorId) -> Result<u32, String> {
        self.layout.core_of(who).ok_or_else(|| format!("actor {} is not a worker", who.0))
    }

    /// Records one observation of actor `who`.
    pub fn note(&mut self, now: Time, who: ActorId, note: Note) {
        self.load.observe(now, self.busy);
        self.metrics.note(now, who, note);
        match note {
            Note::Arrived { job } => self.arrived(now, job),
            Note::Resubmitted { .. } => self.resubmitted += 1,
            Note::Finished { job } => self.finished(now, job),
            Note::Killed { job } => self.killed(now, job),
            Note::Started { copy, resumed } => {
                self.progress = now;
                self.copies_of(copy.task.job).for_each(|copies| copies.started += u64::from(!resumed));
                let begun = &mut self.begun[copy.task.job.index()];
                *begun = now.min(*begun);
                if resumed {
                    self.resumed(now, copy);
                }
                let slot = &mut self.running[self.layout.core_index(who) as usize];
                assert!(slot.is_none(), "{copy} started on a busy core");
                *slot = Some(Running { copy, since: now });
                self.busy += 1;
                self.load.began(copy);
            }
            Note::Completed { copy } => {
                self.progress = now;
                self.completed(now, self.layout.core_index(who), copy);
            }
            Note::Preempted { .. } => {
                self.stopped_in_vain += 1;
                if self.stopped_in_vain == self.most_in_vain() / 2 {
                    self.half_in_vain = now;
                }
                self.ended(now, self.layout.core_index(who), CopyEnd::Preempted);
            }
            Note::Evicted { .. } => self.evicted += u64::from(self.window.spans(now)),
            Note::Suspended { .. } => self.suspend(now, self.layout.core_index(who)),
            Note::Discarded { copy } => {
                self.stopped_in_vain += 1;
                if let Some(suspended) = self.suspended.remove(&copy) {
                    self.count(copy, CopyEnd::Preempted, suspended.spent);
                }
            }
            Note::Informed { .. } | Note::Regards { .. } => self.progress = now,
            Note::Cache(_)
            | Note::Bound { .. }
            | Note::Planned { .. }
            | Note::Enacted { .. }
            | Note::Predicted { .. }
            | Note::Value { .. } => {}
            Note::Unexpected { kind } => *self.unexpected.entry(kind_name(kind)).or_default() += 1,
        }
    }

    fn arrived(&mut self, now: Time, job: JobId) {
        (self.progress, self.stopped_in_vain) = (now, 0);
        let JobSpec { tasks, arrival, .. } = self.workload.job(job);
        assert!(matches!(self.jobs[job.index()], Job::Pending), "job {} arrived twice", job.0);
        let links = self.workload.links(job);
        for before in links.predecessors() {
            let ended = matches!(self.jobs[before.index()], Job::Finished(_));
            assert!(
                ended,
                "job {} began before the stage that it waits for, job {}, had ended",
                job.0, before.0
            );
        }
        self.load.arrived(job, tasks);
        self.counts.submitted += u64::from(self.workload.jobs_of(self.workload.chain(job)).start == job.0);
        self.tasks.submitted += u64::from(tasks);
        if self.is_measured(job) {
            self.measured.tasks.submitted += u64::from(tasks);
        }
        let since = if links.predecessors.is_empty() { arrival } else { now };
        self.jobs[job.index()] = Job::Open { since, done: TaskSet::new(tasks), left: tasks };
        // Responses count from `arrival`, not from `now`, because a paused client submits late.
        self.first_arrival = Some(self.first_arrival.map_or(arrival, |first| first.min(arrival)));
    }

    fn finished(&mut self, now: Time, job: JobId) {
        let was = std::mem::replace(&mut self.jobs[job.index()], Job::Finished(now));
        let Job::Open { left, .. } = was else {
            panic!("job {} finished twice, or before it arrived", job.0)
        };
        assert_eq!(left, 0, "job {} finished with {left} tasks that no copy finished", job.0);
        self.load.finished(job);
        (self.last_finish, self.progress) = (now, now);
        self.stages_ended(job, 1);
    }

    /// Records that some stages of the chain of a job can no longer end. The last one ends the chain.
    fn stages_ended(&mut self, job: JobId, stages: u32) {
        let chain = self.workload.chain(job);
        let left = &mut self.left[chain as usize];
        *left -= stages;
        if *left == 0 {
            let mut jobs = self.workload.jobs_of(chain);
            let failed = jobs.any(|stage| matches!(self.jobs[stage as usize], Job::Killed));
            *(if failed { &mut self.counts.failed } else { &mut self.counts.finished }) += 1;
        }
    }

    /// Records that a job was killed. The stages that wait for it will not begin; its chain fails when its other stages
    /// have ended.
    fn killed(&mut self, now: Time, job: JobId) {
        let was = std::mem::replace(&mut self.jobs[job.index()], Job::Killed);
        let Job::Open { left, .. } = was else { panic!("job {} was killed but was not open", job.0) };
        self.killed_tasks += u64::from(left);
        self.load.killed(job, self.workload.tasks(job));
        (self.last_finish, self.progress, self.stopped_in_vain) = (now, now, 0);
        let (mut void, mut ended) = (vec![job], 1);
        while let Some(stage) = void.pop() {
            for next in self.workload.links(stage).successors() {
                if matches!(self.jobs[next.index()], Job::Pending) {
                    self.jobs[next.index()] = Job::Killed;
                    ended += 1;
                    void.push(next);
                }
            }
        }
        self.stages_ended(job, ended);
    }

    /// The time at which the last stage of a chain ended, if all of them have finished.
    pub(super) fn end_of(&self, chain: u32) -> Option<Time> {
        let ends = self.workload.jobs_of(chain).map(|stage| match self.jobs[stage as usize] {
            Job::Finished(at) => Some(at),
            Job::Pending | Job::Open { .. } | Job::Killed => None,
        });
        ends.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Number of unfinished tasks of open jobs.
    pub(super) const fn open_tasks(&self) -> u64 {
        self.tasks.submitted - self.tasks.finished - self.killed_tasks
    }

    fn completed(&mut self, now: Time, core: u32, copy: CopyId) {
        let first = match &mut self.jobs[copy.task.job.index()] {
            Job::Open { done, left, .. } => {
                let first = done.add(copy.task.index);
                *left -= u32::from(first);
                first
            }
            Job::Finished(_) | Job::Killed => false,
            Job::Pending => panic!("{copy} finished before its job arrived"),
        };
        self.ended(now, core, if first { CopyEnd::First } else { CopyEnd::Second });
    }

    /// Records the end of the copy on a core.
    pub(super) fn ended(&mut self, now: Time, core: u32, how: CopyEnd) {
        let Some(Running { copy, since }) = self.running[core as usize].take() else {
            panic!("core {core} ended a copy that it was not running")
        };
        let stretch = self.vacated(copy, since, now);
        // A copy that runs has an entry if it was suspended and resumed. The entry then names no core.
        let resumed = self.suspended.get(&copy).is_some_and(|suspended| suspended.core.is_none());
        let earlier = if resumed { self.suspended.remove(&copy) } else { None };
        let spent = earlier.map_or_else(CoreTime::default, |s| s.spent).plus(stretch);
        match how {
            CopyEnd::First => {
                self.tasks.finished += 1;
                self.stopped_in_vain = 0;
                let start = earlier.map_or(since, |s| s.first);
                let job = copy.task.job;
                let Job::Open { since: arrived, .. } = self.jobs[job.index()] else {
                    unreachable!("only an open job has a first copy of a task")
                };
                self.metrics.finished(copy, arrived, start, now);
                if self.is_measured(job) {
                    self.measured.tasks.finished += 1;
                    let class = self.workload.class_index(job);
                    // The histogram resizes itself; u64 microseconds hold any wait.
                    let _ = self.waits[class].record(start.since(arrived).0 / 1000);
                }
            }
            CopyEnd::Suspended => unreachable!("a suspended copy has not ended"),
            CopyEnd::Second | CopyEnd::Preempted | CopyEnd::Lost | CopyEnd::InProgress => {}
        }
        self.count(copy, how, spent);
        self.keep(core, copy, since, now, how);
    }

    /// Records the end of the run at `now` for the copies that are open then.
    pub(super) fn cut_off(&mut self, now: Time) {
        for core in 0..self.running.len() as u32 {
            if let Some(Running { copy, .. }) = self.running[core as usize] {
                self.ended(now, core, self.fate_of(copy));
            }
        }
        for (copy, suspended) in std::mem::take(&mut self.suspended) {
            self.count(copy, self.fate_of(copy), suspended.spent);
        }
    }

    /// The fate of a copy that is open at the end of the run: preempted if another copy of its task has finished,
    /// otherwise in progress.
    pub(super) fn fate_of(&self, copy: CopyId) -> CopyEnd {
        let needed = match &self.jobs[copy.task.job.index()] {
            Job::Open { done, .. } => !done.has(copy.task.index),
            Job::Pending | Job::Finished(_) | Job::Killed => false,
        };
        if needed { CopyEnd::InProgress } else { CopyEnd::Preempted }
    }

    fn resumed(&mut self, now: Time, copy: CopyId) {
        if let Some(suspended) = self.suspended.get_mut(&copy) {
            suspended.core = None;
            let at = suspended.at;
            for copies in self.copies_of(copy.task.job) {
                copies.suspended_s += now.since(at).as_secs_f64();
                // A copy that is resumed in the same instant never left its core.
                copies.suspensions -= u64::from(at == now);
            }
        }
    }

    /// Whether results count a job.
    fn is_measured(&self, job: JobId) -> bool {
        self.window.is_whole() || self.window.has(self.workload.chain(job))
    }

    /// The counts of copies of all jobs and, for a measured job, of the measured ones.
    fn copies_of(&mut self, job: JobId) -> impl Iterator<Item = &mut CopyCounts> {
        let is_measured = self.is_measured(job);
        iter::once(&mut self.copies).chain(is_measured.then_some(&mut self.measured.copies))
    }

    /// Counts a copy that has ended, and the core time spent on it.
    fn count(&mut self, copy: CopyId, how: CopyEnd, spent: CoreTime) {
        self.copies_of(copy.task.job).for_each(|copies| copies.count(how, spent.all));
        self.in_window.count(how, spent.within);
    }

    /// Counts a stretch of a copy that has left its core; returns its core time.
    fn vacated(&mut self, copy: CopyId, since: Time, now: Time) -> CoreTime {
        self.busy -= 1;
        let [all, within] = [now.since(since), self.window.overlap(since, now)].map(Span::as_secs_f64);
        self.copies_of(copy.task.job).for_each(|copies| copies.busy_s += all);
        self.in_window.busy_s += within;
        CoreTime { all, within }
    }

    fn suspend(&mut self, now: Time, core: u32) {
        let Some(Running { copy, since }) = self.running[core as usize].take() else {
            panic!("core {core} suspended a copy that it was not running")
        };
        let stretch = self.vacated(copy, since, now);
        let spent = CoreTime::default();
        let entry =
            self.suspended.entry(copy).or_insert(Suspended { core: None, first: since, spent, at: now });
        entry.core = Some(core);
        entry.spent = entry.spent.plus(stretch);
        entry.at = now;
        self.copies_of(copy.task.job).for_each(|copies| copies.suspensions += 1);
        self.keep(core, copy, since, now, CopyEnd::Suspended);
    }

    fn keep(&mut self, core: u32, copy: CopyId, start: Time, end: Time, end_kind: CopyEnd) {
        let chain = self.workload.chain(copy.task.job);
        let sampled = self.sampled_one_in > 0 && chain.is_multiple_of(self.sampled_one_in);
        let drawn = core < self.recording.timeline_cores
            && start < Time::ZERO + self.recording.timeline
            && self.timeline.len() < self.recording.timeline_copies as usize;
        if !sampled && !drawn {
            return;
        }
        let row = CopyRow {
            job: chain,
            task: self.workload.tasks_before(copy.task.job) + copy.task.index,
            attempt: copy.attempt,
            core,
            start: start.as_secs_f64(),
            end: end.as_secs_f64(),
            end_kind,
        };
        if sampled {
            self.sample.push(row);
        }
        if drawn {
            self.timeline.push(row);
        }
    }

    /// Records a message that the timeline shows, if there is room.
    pub fn delivered(&mut self, now: Time, what: Delivered) {
        if self.messages.len() < self.recording.timeline_messages as usize {
            self.messages.push((now, what));
        } else {
            self.messages_left_out += 1;
        }
    }

    /// Records the crash of a core's node: the copy on the core is lost.
    pub fn crashed(&mut self, now: Time, core: u32) {
        (self.progress, self.stopped_in_vain) = (now, 0);
        self.load.observe(now, self.busy);
        self.metrics.crashed(now, core);
        if self.running[core as usize].is_some() {
            self.ended(now, core, CopyEnd::Lost);
        }
        let gone: Vec<_> = self
            .suspended
            .iter()
            .filter(|(_, s)| s.core == Some(core))
            .map(|(copy, s)| (*copy, s.spent))
            .collect();
        for (copy, spent) in gone {
            self.suspended.remove(&copy);
            self.count(copy, CopyEnd::Lost, spent);
        }
    }

    /// Whether every job has ended: has finished, or was killed. A run without jobs lasts until its time limit.
    pub fn all_finished(&self) -> bool {
        self.workload.chains() > 0
            && self.counts.finished + self.counts.failed == u64::from(self.workload.chains())
    }

    /// Jobs finished so far.
    pub const fn finished_jobs(&self) -> u64 {
        self.counts.finished
    }

    /// Whether jobs have yet to arrive, or copies are running.
    pub fn is_active(&self) -> bool {
        self.counts.submitted < u64::from(self.workload.chains()) || self.busy > 0
    }

    /// Time of the last arrival, start, end or crash.
    pub const fn last_progress(&self) -> Time {
        self.progress
    }

    /// Whether the run is stuck at `now`: every fault has healed, and either nothing runs and the time for any repair
    /// has passed, or the same tasks are launched and stopped again and again.
    pub fn is_stalled(&self, now: Time) -> bool {
        let arrived = self.counts.submitted == u64::from(self.workload.chains());
        arrived && now > self.heals_at && self.stall(now).is_some()
    }

    /// Whether, at `now`, no copy has run for so long that none will run any more.
    pub fn is_idle_forever(&self, now: Time) -> bool {
        self.busy == 0
            && now > self.quiet_until()
            && self.counts.submitted == u64::from(self.workload.chains())
    }

    /// The time after which a run without a running copy is given up.
    pub fn quiet_until(&self) -> Time {
        self.progress.max(self.heals_at) + self.recording.quiet
    }

    /// Limit on `stopped_in_vain`.
    fn most_in_vain(&self) -> u64 {
        STOPPED_IN_VAIN * self.open_tasks().clamp(1, MOST_OPEN)
    }

    /// The reason why open jobs do not progress at `now`; `None` if they progress.
    pub(super) fn stall(&self, now: Time) -> Option<String> {
        // A copy that has run since before half of the stops occurred may still end.
        let spared = || self.running.iter().flatten().any(|copy| copy.since < self.half_in_vain);
        if self.busy == 0 && now > self.quiet_until() {
            let quiet = self.recording.quiet;
            Some(format!("no copy ran for {quiet}; makespan and utilization end with the last change"))
        } else if self.stopped_in_vain > self.most_in_vain() && !spared() {
            let stopped = self.stopped_in_vain;
            Some(format!(
                "{stopped} copies were preempted or evicted in turn, and no task finished meanwhile"
            ))
        } else {
            None
        }
    }
}

impl Observer for Recorder<'_> {
    #[inline]
    fn note(&mut self, now: Time, who: ActorId, note: Note) {
        Recorder::note(self, now, who, note);
    }

    fn crashed(&mut self, now: Time, core: u32) {
        Recorder::crashed(self, now, core);
    }

    fn watches(&self, scheduler: u32) -> bool {
        self.metrics.watches(scheduler)
    }

    #[inline]
    fn reads_by(&self) -> Time {
        self.metrics.reads_by()
    }

    #[inline]
    fn fetch(&self, core: u32) {
        prefetch(&self.running[core as usize]);
    }

    #[inline]
    fn delivered(&mut self, now: Time, sent: Time, from: ActorId, to: ActorId, msg: &Message) {
        if let Some(what) = self.shown.delivered(now, sent, from, to, msg) {
            Recorder::delivered(self, now, what);
        }
    }
}
