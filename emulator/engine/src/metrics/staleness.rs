//! Staleness of the caches of schedulers, compared with the true state.
//!
//! The true load of a node is the estimated work of all tasks that were placed there and have not ended, counted from
//! the moment of the decision. A watched scheduler's cache differs from it by exactly the updates that the scheduler
//! has not yet received: the work of ended tasks minus the work of placed tasks. All numbers are folded from notes,
//! which policies without caches do not emit.
//!
//! An entry of a cache is *in sync* if no update about its node is pending. Its *age of synchronisation* is the time
//! since it was last in sync, which is the age of the oldest pending update (Zhong, Yates and Soljanin 2018); its
//! *version age* is the number of pending updates (Yates 2021). Where entries are sums of updates, a lost update is
//! pending until a later update of the same origin arrives. From then on it adds only to the error, because its age
//! says nothing about the protocol.
//!
//! A snapshot replaces everything that its receiver knew of the node, and contains everything that the node knew when
//! it made the snapshot. Tasks on their way to the node at that time are pending, including the receiver's own tasks.
//!
//! The error of every decision is measured. For watched schedulers the updates that a decision lacked and its cost are
//! measured too. Between decisions a sample of schedulers and nodes is observed, at a random instant of each of equal
//! intervals. In a long run the intervals are doubled, and one of every two observations is dropped.
//!
//! A crashed scheduler is not observed until it has a cache again. Crashes also make the measure inexact. A copied
//! cache is taken to contain all updates made before, so ages and pending updates are slightly low for a while. The
//! withdrawal of a placement is not pending. An extra copy of a finished task stays in the truth if its node crashes.
//! Where clocks are compared (`wait = "clock"`), updates are still summed as work.
//!
//! | module | what it holds |
//! |---|---|
//! | `view` | the cache of a scheduler and the updates that it lacks |
//! | `decisions` | updates that schedulers lacked in decisions, and the cost of their choices |
//! | `waits` | the wait of a task at each node |
//! | `copies` | copies of a state that a whole run shares |

mod copies;
mod decisions;
mod view;
mod waits;

use volary_actors::base::{ActorId, CopyId, JobId, Span, Time};
use volary_actors::catalog::Catalog;
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::{CacheNote, Note, ServiceOrder};
use volary_actors::policies::is_watched;
use volary_netem::Faults;

use self::copies::CopyTracker;
use self::decisions::{Decision, Decisions};
use self::view::{Received, View, Views, seconds, step};
use super::PolicyMetric;
use super::ages::Ages;
use super::gauge::Gauge;
use super::instants::{CacheSamples, Instants};
use super::recording::Recording;
use crate::results::{CacheRow, PolicyResults, Spread, Staleness};
use crate::workload::{Window, Workload};

/// Marks a task that is not placed.
const NOWHERE: u32 = u32::MAX;

/// State kept once a scheduler places tasks by a cache.
#[derive(Debug)]
struct TrackerState {
    /// Estimated work of the tasks placed on each node that have not ended, ns.
    truth: Vec<i64>,
    /// Node of each task of a job while it is placed.
    places: Vec<Vec<u32>>,
    views: Views,
    samples: CacheSamples,
    ages: Ages,
    /// Whether entries are snapshots of nodes, which have no error by this measure.
    snapshots: bool,
    /// The time in which caches are observed.
    window: Window,
    errors: Gauge,
    bias: Gauge,
    in_flight: Gauge,
    decisions: Decisions,
    decision_errors: Gauge,
}

/// Folds notes about caches.
#[derive(Debug)]
pub struct CacheTracker<'a> {
    layout: &'a Layout,
    workload: &'a Workload,
    faults: &'a Faults,
    every: Span,
    /// The time in which caches are observed.
    window: Window,
    /// Number of nodes that caches cover.
    cached: u32,
    /// Whether entries are snapshots of nodes.
    snapshots: bool,
    seed: u64,
    /// `None` until the first placement.
    state: Option<Box<TrackerState>>,
    /// Copies of a shared state, which policies without caches of nodes keep.
    copies: CopyTracker<'a>,
}

impl<'a> CacheTracker<'a> {
    /// Creates a tracker that observes caches at an interval from the first use of a cache on. With an interval of zero
    /// it does nothing.
    pub fn new(
        layout: &'a Layout,
        workload: &'a Workload,
        faults: &'a Faults,
        recording: Recording,
        seed: u64,
    ) -> Self {
        let (every, nodes) = (recording.cache_interval, layout.nodes());
        let cached = recording.cached_nodes.map_or(nodes, |cached| cached.min(nodes));
        let snapshots = recording.snapshots;
        let window = recording.measured();
        let copies = CopyTracker::new(layout, faults, every, window, seed);
        Self { layout, workload, faults, every, window, cached, snapshots, seed, state: None, copies }
    }

    /// Returns the state, brought up to `now`; `None` if no cache is in use.
    #[inline]
    fn at(&mut self, now: Time) -> Option<&mut TrackerState> {
        let state = self.state.as_deref_mut()?;
        if state.samples.due(now).is_some() {
            let (layout, faults) = (self.layout, self.faults);
            state.look(now, |view, at| {
                let scheduler = layout.endpoint(layout.scheduler(view.scheduler));
                faults.crash_between(scheduler, view.since, at).is_none()
            });
        }
        Some(state)
    }

    fn open(&mut self, now: Time) {
        if self.state.is_none() {
            let samples = CacheSamples::new(Instants::new(self.seed, now, self.every));
            let state = TrackerState::new(self.layout, self.cached, self.workload.jobs(), samples, self.seed);
            let (snapshots, window) = (self.snapshots, self.window);
            self.state = Some(Box::new(TrackerState { snapshots, window, ..state }));
        }
    }

    fn scheduler(&self, who: ActorId) -> Option<u32> {
        match self.layout.role(who) {
            Role::Scheduler(index) => Some(index),
            Role::Client(_) | Role::Node(_) | Role::Auxiliary(_) | Role::Worker { .. } => None,
        }
    }

    /// The number of an actor that makes updates: schedulers first, then nodes.
    fn origin(&self, who: ActorId) -> Option<u32> {
        match self.layout.role(who) {
            Role::Scheduler(index) => Some(index),
            Role::Node(index) => Some(self.layout.schedulers() + index),
            Role::Client(_) | Role::Auxiliary(_) | Role::Worker { .. } => None,
        }
    }

    /// A scheduler placed a task.
    fn placed(&mut self, who: ActorId, copy: CopyId, decision: Decision, believed: i64) {
        let Decision { now, node, rank, .. } = decision;
        self.open(now);
        let Some(by) = self.scheduler(who) else { return };
        let (job, index) = (copy.task.job, copy.task.index as usize);
        let (tasks, estimate) = (self.workload.tasks(job), self.workload.job_estimate(job).signed());
        let work = self.workload.work(copy);
        if let Some(state) = self.at(now) {
            state.decided(by, decision, believed);
            let place = state.place(job, index, tasks);
            let before = std::mem::replace(place, node);
            if before != NOWHERE {
                state.truth[before as usize] -= estimate;
                state.decisions.waits.left(before, copy.task);
            }
            state.truth[node as usize] += estimate;
            state.decisions.waits.placed(node, copy.task, rank, work);
            if !state.snapshots {
                state.views.made(now, by, node, estimate);
                return;
            }
            if before != NOWHERE {
                state.views.withdrawn(before, copy.task);
            }
            state.views.placed(now, by, node, copy, estimate);
        }
    }

    /// A copy reached its node.
    fn reached(&mut self, now: Time, who: ActorId, copy: CopyId) {
        if let Role::Node(node) = self.layout.role(who)
            && let Some(state) = self.at(now)
        {
            state.views.reached(now, node, copy);
        }
    }

    /// A copy ended on a core.
    #[inline]
    fn ended(&mut self, now: Time, core: u32, copy: CopyId) {
        if self.state.is_none() {
            return;
        }
        let (job, index) = (copy.task.job, copy.task.index as usize);
        let (tasks, estimate) = (self.workload.tasks(job), self.workload.job_estimate(job).signed());
        let node = self.layout.node_of_core(core);
        let origin = self.layout.schedulers() + node;
        if let Some(state) = self.at(now) {
            state.decisions.waits.left(node, copy.task);
            let place = state.place(job, index, tasks);
            let placed = *place;
            if placed == node {
                *place = NOWHERE;
                state.truth[node as usize] -= estimate;
                // The end of a copy that was abandoned and placed again is not counted.
                state.views.made(now, origin, node, -estimate);
            } else if placed != NOWHERE {
                // The launch on `placed` may have been lost: no task waits there, and no snapshot will contain it.
                state.decisions.waits.left(placed, copy.task);
                if state.snapshots {
                    state.views.withdrawn(placed, copy.task);
                }
            }
        }
    }

    /// A copy started on a core.
    fn started(&mut self, now: Time, core: u32, copy: CopyId) {
        if self.state.is_some() {
            let node = self.layout.node_of_core(core);
            let work = self.workload.work_on(copy, self.layout.kind(node), false);
            if let Some(state) = self.at(now) {
                state.decisions.waits.started(now, node, copy.task, work);
            }
        }
    }

    /// Records a decision for `node`. The order in which the node serves tasks determines the rank.
    fn decision(&self, now: Time, copy: CopyId, node: u32, believed: i64, order: ServiceOrder) -> Decision {
        let job = copy.task.job;
        let (estimate, arrival) = (self.workload.job_estimate(job), self.workload.job(job).arrival);
        let rank = match order {
            ServiceOrder::Arrival => (0, Time::ZERO),
            ServiceOrder::OldestJob => (0, arrival),
            ServiceOrder::LeastTask => (estimate.0, arrival),
            ServiceOrder::LeastJob => {
                (estimate.0.saturating_mul(u64::from(self.workload.tasks(job))), Time::ZERO)
            }
        };
        let believed = seconds(believed) / f64::from(self.layout.cores(node));
        Decision { now, node, rank, believed }
    }

    /// An actor numbered an update.
    fn numbered(&mut self, now: Time, who: ActorId, node: u32, number: u32, datagram: bool) {
        let Some(origin) = self.origin(who) else { return };
        let (faults, endpoint) = (self.faults, self.layout.endpoint(who));
        let crashed = |since| faults.crash_between(endpoint, since, now).is_some();
        if let Some(state) = self.at(now) {
            state.views.numbered((origin, node), number, datagram, crashed);
        }
    }

    /// A scheduler received an update.
    fn learnt(&mut self, now: Time, who: ActorId, update: Received) {
        let by = self.scheduler(who);
        if let Some((views, by)) = self.at(now).and_then(|state| state.view(by)) {
            views.learnt(by, update);
        }
    }

    /// A scheduler replaced its cache entry by an entry that contains all updates made up to `made`.
    fn believes(&mut self, now: Time, who: ActorId, node: u32, work: i64, made: Time) {
        let by = self.scheduler(who);
        if let Some((views, by)) = self.at(now).and_then(|state| state.view(by)) {
            views.believes(by, now, node, work, made);
        }
    }

    /// A scheduler received a snapshot of a node.
    fn snapshot(&mut self, now: Time, who: ActorId, node: u32, made: Time) {
        assert!(self.snapshots, "a policy that sends snapshots must say so in Policy::traits");
        let by = self.scheduler(who);
        if let Some(state) = self.at(now) {
            state.snapshot(now, by, node, made);
        }
    }

    /// An actor made an observation about its cache.
    fn cache(&mut self, now: Time, who: ActorId, note: CacheNote) {
        match note {
            CacheNote::Placed { copy, node, believed, order } => {
                self.placed(who, copy, self.decision(now, copy, node, believed, order), believed);
            }
            CacheNote::Numbered { node, number, datagram } => {
                self.numbered(now, who, node, number, datagram);
            }
            CacheNote::Learnt { node, change, origin, number, datagram } => {
                self.learnt(now, who, Received { node, change, origin, number, datagram });
            }
            CacheNote::Believes { node, work, at } => self.believes(now, who, node, work, at),
            CacheNote::Snapshot { node, at } => self.snapshot(now, who, node, at),
            CacheNote::Reached { copy } => self.reached(now, who, copy),
            CacheNote::Changed => self.copies.changed(now),
            CacheNote::Refreshed { at } => self.copies.refreshed(now, who, at),
        }
    }

    /// Checks that a note can be made under this policy; the error is the reason.
    pub fn check(&self, note: CacheNote) -> Result<(), String> {
        if matches!(note, CacheNote::Snapshot { .. }) && !self.snapshots {
            return Err("an actor received a snapshot of a node, but the policy has none".to_owned());
        }
        Ok(())
    }

    /// The observations so far, of caches or of copies of a shared state.
    pub fn cache_samples(&self) -> &[CacheRow] {
        self.state.as_ref().map_or_else(|| self.copies.cache_samples(), |state| &state.samples.rows)
    }

    /// Cached load, true load and the sum of pending updates (ns of work) for every watched scheduler and every node
    /// that is observed.
    pub fn pairs(&self) -> Vec<(i64, i64, i64)> {
        let Some(state) = &self.state else { return Vec::new() };
        let entries = (0..state.views.all.len()).flat_map(|by| state.views.entries(by));
        entries.map(|(node, work, pending)| (work, state.truth[node as usize], pending)).collect()
    }
}

impl PolicyMetric for CacheTracker<'_> {
    #[inline]
    fn note(&mut self, now: Time, who: ActorId, note: Note) {
        if self.every == Span::ZERO {
            return;
        }
        match note {
            Note::Completed { copy } => self.ended(now, self.layout.core_index(who), copy),
            Note::Started { copy, .. } => self.started(now, self.layout.core_index(who), copy),
            Note::Preempted { copy } => {
                let node = self.layout.node_of_core(self.layout.core_index(who));
                if let Some(state) = self.at(now) {
                    state.decisions.waits.left(node, copy.task);
                }
            }
            Note::Cache(note) => self.cache(now, who, note),
            Note::Arrived { .. }
            | Note::Resubmitted { .. }
            | Note::Finished { .. }
            | Note::Killed { .. }
            | Note::Suspended { .. }
            | Note::Discarded { .. }
            | Note::Evicted { .. }
            | Note::Bound { .. }
            | Note::Planned { .. }
            | Note::Enacted { .. }
            | Note::Predicted { .. }
            | Note::Informed { .. }
            | Note::Regards { .. }
            | Note::Value { .. }
            | Note::Unexpected { .. } => {}
        }
    }

    fn crashed(&mut self, now: Time, core: u32) {
        let node = self.layout.node_of_core(core);
        if let Some(state) = self.at(now) {
            state.decisions.waits.crashed(node);
        }
    }

    fn watches(&self, scheduler: u32) -> bool {
        self.every > Span::ZERO && is_watched(scheduler, self.layout.schedulers())
    }

    #[inline]
    fn reads_by(&self) -> Time {
        self.state.as_ref().map_or(Time::MAX, |state| state.samples.next())
    }

    fn close(mut self, _: Time, end: Time, results: &mut PolicyResults) {
        self.at(end);
        let nodes = self.cached;
        let Some(state) = self.state else { return self.copies.close(end, results) };
        let (decisions_out_of_sync, conflicts, regret_s) = state.decisions.summary();
        let error = |gauge: &Gauge| if state.snapshots { Spread::UNMEASURED } else { gauge.spread() };
        results.sections.staleness = Some(Staleness {
            error_s: error(&state.errors),
            bias_s: if state.snapshots { f64::NAN } else { state.bias.mean() },
            in_flight: state.in_flight.spread(),
            decisions_out_of_sync,
            conflicts,
            decision_error_s: error(&state.decision_errors),
            regret_s,
            every_s: state.samples.every_s(),
            receivers: state.views.all.len() as u32,
            sources: (0..nodes).step_by(step(nodes)).len() as u32,
            ..state.ages.summary()
        });
        results.looks = state.samples.rows;
        results.decisions = state.decisions.rows;
    }
}

impl TrackerState {
    fn new(layout: &Layout, cached: u32, jobs: u32, samples: CacheSamples, seed: u64) -> Self {
        let (schedulers, nodes) = (layout.schedulers(), layout.nodes());
        Self {
            truth: vec![0; nodes as usize],
            places: vec![Vec::new(); jobs as usize],
            views: Views::new(schedulers, nodes, cached),
            samples,
            ages: Ages::default(),
            snapshots: false,
            window: Window::WHOLE,
            errors: Gauge::default(),
            bias: Gauge::default(),
            in_flight: Gauge::default(),
            decisions: Decisions::new(layout, cached, seed),
            decision_errors: Gauge::default(),
        }
    }

    fn place(&mut self, job: JobId, index: usize, tasks: u32) -> &mut u32 {
        let places = &mut self.places[job.index()];
        if places.is_empty() {
            places.resize(tasks as usize, NOWHERE);
        }
        &mut places[index]
    }

    fn snapshot(&mut self, now: Time, scheduler: Option<u32>, node: u32, made: Time) {
        if let Some((views, by)) = self.view(scheduler)
            && let Some(peak) = views.snapshot(by, now, node, made)
            && self.window.spans(now)
        {
            self.ages.peak(peak);
        }
    }

    /// The views, and the index of a scheduler's view; `None` if the scheduler is not watched.
    fn view(&mut self, scheduler: Option<u32>) -> Option<(&mut Views, usize)> {
        let by = self.views.of(scheduler?)?;
        Some((&mut self.views, by))
    }

    /// Measures a decision before it takes effect.
    fn decided(&mut self, by: u32, decision: Decision, believed: i64) {
        if !self.window.spans(decision.now) {
            return;
        }
        self.decision_errors.add(seconds(believed - self.truth[decision.node as usize]).abs(), 1);
        if let Some(by) = self.views.of(by) {
            self.decisions.decided(decision, by, &self.views);
        }
    }

    /// Observes the caches for which `there` holds, at each instant that is due before `now`.
    fn look(&mut self, now: Time, there: impl Fn(&View, Time) -> bool) {
        while let Some(at) = self.samples.due(now) {
            let weight = self.samples.weight();
            let there = |view: &View| self.window.spans(at) && there(view, at);
            for (by, view) in self.views.all.iter().enumerate().filter(|(_, view)| there(view)) {
                let mut row = self.views.row(by, at, &self.truth, |lack, error| {
                    self.ages.add(lack, weight);
                    self.errors.add(error.abs(), weight);
                    self.bias.add(error, weight);
                });
                if self.snapshots {
                    (row.error, row.bias, row.error_max) = (f64::NAN, f64::NAN, f64::NAN);
                }
                self.in_flight.add(view.in_flight as f64, weight);
                self.samples.rows.push(row);
            }
            self.samples.advance(self.views.all.len());
        }
    }
}

#[cfg(test)]
mod closed_forms;

#[cfg(test)]
mod tests;
