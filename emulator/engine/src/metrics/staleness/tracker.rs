//! The staleness tracker: the caches of schedulers compared with the truth.
//!
//! The true load of a node is the estimated work of all tasks that were placed there and have not ended, counted from
//! the moment of the decision. A watched scheduler's cache differs from it by exactly the updates that the scheduler
//! has not yet received: the sum of what ended minus the sum of what was placed. All of it is folded from notes; a
//! policy without a cache emits none and costs nothing here.
//!
//! Every decision of every scheduler is measured. Between decisions a sample of schedulers and nodes is observed at
//! equal intervals. In a long run every second observation is dropped and the interval doubled.
//!
//! A crashed scheduler is not observed until it has a cache again. Crashes make the measure inexact otherwise: a copied
//! cache counts as containing all updates made before, so ages and pending updates are slightly low for a while; the
//! withdrawal of a placement does not count as pending; an extra copy of a finished task stays in the truth if its node
//! crashes. Where clocks are compared (`wait = "clock"`), updates are still summed as work.

use std::collections::VecDeque;

use volary_actors::base::{ActorId, CopyId, JobId, Span, Time};
use volary_actors::catalog::Catalog;
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::Note;
use volary_actors::roles::min_wait_index::MinWaitIndex;
use volary_netem::Faults;

use super::super::PolicyMetric;
use super::super::gauge::Gauge;
use crate::results::{PolicyResults, Staleness, StalenessRow};
use crate::shard::is_watched;
use crate::workload::Workload;

/// Approximate number of nodes observed.
const NODES: u32 = 256;
/// Maximum number of observations kept.
const LOOKS: usize = 1024;
/// Marks a task that is not placed.
const NOWHERE: u32 = u32::MAX;

/// An update that a scheduler has not received.
#[derive(Clone, Copy, Debug)]
struct Pending {
    made: Time,
    change: i64,
}

/// A watched scheduler's cache.
#[derive(Debug)]
struct View {
    scheduler: u32,
    /// Expected work at every node, ns.
    work: Vec<i64>,
    /// Pending updates of each node, oldest first.
    pending: Vec<VecDeque<Pending>>,
    in_flight: u64,
    /// Time from which the cache is valid. A crash of the scheduler after that time invalidates it.
    since: Time,
}

/// State kept once a scheduler places tasks by a cache.
#[derive(Debug)]
struct TrackerState {
    truth: MinWaitIndex,
    /// Node of each task of a job while it is placed.
    places: Vec<Vec<u32>>,
    views: Vec<View>,
    /// Time of the first observation, time of the next one, and the interval in multiples of the configured one.
    first: Time,
    next: Time,
    stride: u32,
    rows: Vec<StalenessRow>,
    ages: Gauge,
    errors: Gauge,
    bias: Gauge,
    in_flight: Gauge,
    decisions: Gauge,
    regrets: Gauge,
}

/// Folds notes about caches.
#[derive(Debug)]
pub struct Tracker<'a> {
    layout: &'a Layout,
    workload: &'a Workload,
    faults: &'a Faults,
    every: Span,
    /// `None` until the first placement.
    books: Option<Box<TrackerState>>,
}

fn seconds(ns: i64) -> f64 {
    ns as f64 * 1e-9
}

impl<'a> Tracker<'a> {
    /// Creates a tracker that observes caches at an interval once one is used. With an interval of zero only decisions
    /// are measured.
    pub fn new(layout: &'a Layout, workload: &'a Workload, faults: &'a Faults, every: Span) -> Self {
        Self { layout, workload, faults, every, books: None }
    }

    /// Returns the state, brought up to `now`; `None` if no cache is in use.
    #[inline]
    fn at(&mut self, now: Time) -> Option<&mut TrackerState> {
        let books = self.books.as_deref_mut()?;
        if books.next <= now {
            let (layout, faults) = (self.layout, self.faults);
            books.look(now, self.every, |view, at| {
                let scheduler = layout.endpoint(layout.scheduler(view.scheduler));
                faults.crash_between(scheduler, view.since, at).is_none()
            });
        }
        Some(books)
    }

    fn open(&mut self, now: Time) {
        if self.books.is_none() {
            let every = self.every;
            let next = if every == Span::ZERO { Time::MAX } else { now };
            let mut books = TrackerState::new(self.layout, self.workload.jobs(), next);
            if every == Span::ZERO {
                books.views.clear();
            }
            self.books = Some(Box::new(books));
        }
    }

    fn scheduler(&self, who: ActorId) -> Option<u32> {
        match self.layout.role(who) {
            Role::Scheduler(index) => Some(index),
            Role::Client(_) | Role::Node(_) | Role::Extra(_) | Role::Worker { .. } => None,
        }
    }

    /// A scheduler placed a task.
    fn placed(&mut self, now: Time, who: ActorId, copy: CopyId, node: u32, believed: i64) {
        self.open(now);
        let Some(by) = self.scheduler(who) else { return };
        let (job, index) = (copy.task.job, copy.task.index as usize);
        let (tasks, estimate) = (self.workload.tasks(job), self.workload.job_estimate(job).signed());
        if let Some(books) = self.at(now) {
            books.decided(node, believed);
            let place = books.place(job, index, tasks);
            let before = std::mem::replace(place, node);
            if before != NOWHERE {
                books.truth.add(before, -estimate);
            }
            books.truth.add(node, estimate);
            books.made(now, Some(by), node, estimate);
        }
    }

    /// A copy ended on a core.
    #[inline]
    fn ended(&mut self, now: Time, core: u32, copy: CopyId) {
        if self.books.is_none() {
            return;
        }
        let (job, index) = (copy.task.job, copy.task.index as usize);
        let (tasks, estimate) = (self.workload.tasks(job), self.workload.job_estimate(job).signed());
        let node = self.layout.node_of_core(core);
        if let Some(books) = self.at(now) {
            let place = books.place(job, index, tasks);
            if *place == node {
                *place = NOWHERE;
                books.truth.add(node, -estimate);
                // The end of a copy that was abandoned and placed again is not counted.
                books.made(now, None, node, -estimate);
            }
        }
    }

    /// A scheduler received an update.
    fn learnt(&mut self, now: Time, who: ActorId, node: u32, change: i64) {
        let by = self.scheduler(who);
        if let Some(view) = self.at(now).and_then(|books| books.view(by)) {
            view.work[node as usize] = view.work[node as usize].saturating_add(change);
            let pending = &mut view.pending[node as usize];
            if let Some(at) = pending.iter().position(|news| news.change == change) {
                pending.remove(at);
                view.in_flight -= 1;
            }
        }
    }

    /// A scheduler replaced its cache entry by one that contains all updates made up to `made`.
    fn believes(&mut self, now: Time, who: ActorId, node: u32, work: i64, made: Time) {
        let by = self.scheduler(who);
        if let Some(view) = self.at(now).and_then(|books| books.view(by)) {
            view.work[node as usize] = work;
            view.since = now;
            let pending = &mut view.pending[node as usize];
            let before = pending.len();
            pending.retain(|news| news.made > made);
            view.in_flight -= (before - pending.len()) as u64;
        }
    }

    /// Cached load, true load and the sum of the updates between them, ns of work, of every watched scheduler and node.
    pub fn pairs(&self) -> Vec<(i64, i64, i64)> {
        let Some(books) = &self.books else { return Vec::new() };
        let nodes = 0..self.layout.nodes();
        let pair = |view: &View, node: u32| {
            let pending = view.pending[node as usize].iter().map(|news| news.change).sum();
            (view.work[node as usize], books.truth.work(node), pending)
        };
        books.views.iter().flat_map(|view| nodes.clone().map(move |node| pair(view, node))).collect()
    }
}

impl PolicyMetric for Tracker<'_> {
    #[inline]
    fn note(&mut self, now: Time, who: ActorId, note: Note) {
        match note {
            Note::Completed { copy } => self.ended(now, self.layout.core_index(who), copy),
            Note::Placed { copy, node, believed } => self.placed(now, who, copy, node, believed),
            Note::Learnt { node, change } => self.learnt(now, who, node, change),
            Note::Believes { node, work, at } => self.believes(now, who, node, work, at),
            Note::Arrived { .. }
            | Note::Resubmitted { .. }
            | Note::Finished { .. }
            | Note::Started { .. }
            | Note::Preempted { .. }
            | Note::Suspended { .. }
            | Note::Bound { .. }
            | Note::Unexpected { .. } => {}
        }
    }

    /// The node does not count as a choice until a task is placed there again.
    fn crashed(&mut self, now: Time, core: u32) {
        let node = self.layout.node_of_core(core);
        if let Some(books) = self.at(now) {
            books.truth.reach(node, false);
        }
    }

    fn watches(&self, scheduler: u32) -> bool {
        self.every.0 > 0 && is_watched(self.layout, scheduler)
    }

    fn close(mut self, _: Time, end: Time, results: &mut PolicyResults) {
        self.at(end);
        let every = self.every.as_secs_f64();
        let Some(books) = self.books else { return };
        results.staleness = Some(Staleness {
            age_s: books.ages.spread(),
            error_s: books.errors.spread(),
            bias_s: books.bias.mean(),
            in_flight: books.in_flight.spread(),
            decision_error_s: books.decisions.spread(),
            regret_s: books.regrets.spread(),
            every_s: every * f64::from(books.stride),
            schedulers: books.views.len() as u32,
            nodes: (0..self.layout.nodes()).step_by(step(self.layout)).len() as u32,
        });
        results.looks = books.rows;
    }
}

/// One node in this many is observed.
const fn step(layout: &Layout) -> usize {
    layout.nodes().div_ceil(NODES) as usize
}

impl TrackerState {
    fn new(layout: &Layout, jobs: u32, next: Time) -> Self {
        let nodes = layout.nodes();
        let cores: Vec<u32> = (0..nodes).map(|node| layout.cores(node)).collect();
        let alike = cores.iter().all(|&cores| cores == 1);
        let view = |scheduler| View {
            scheduler,
            work: vec![0; nodes as usize],
            pending: vec![VecDeque::new(); nodes as usize],
            in_flight: 0,
            since: Time::ZERO,
        };
        Self {
            truth: MinWaitIndex::new(nodes, if alike { Vec::new() } else { cores }),
            places: vec![Vec::new(); jobs as usize],
            views: (0..layout.schedulers()).filter(|&i| is_watched(layout, i)).map(view).collect(),
            first: next,
            next,
            stride: 1,
            rows: Vec::new(),
            ages: Gauge::new(),
            errors: Gauge::new(),
            bias: Gauge::new(),
            in_flight: Gauge::new(),
            decisions: Gauge::new(),
            regrets: Gauge::new(),
        }
    }

    fn place(&mut self, job: JobId, index: usize, tasks: u32) -> &mut u32 {
        let places = &mut self.places[job.index()];
        if places.is_empty() {
            places.resize(tasks as usize, NOWHERE);
        }
        &mut places[index]
    }

    fn view(&mut self, scheduler: Option<u32>) -> Option<&mut View> {
        let scheduler = scheduler?;
        let at = self.views.binary_search_by_key(&scheduler, |view| view.scheduler).ok()?;
        Some(&mut self.views[at])
    }

    /// Measures a decision before it takes effect.
    fn decided(&mut self, node: u32, believed: i64) {
        if !self.truth.reaches(node) {
            self.truth.reach(node, true);
        }
        let wait = self.truth.wait(node);
        let least = self.truth.least().unwrap_or(wait);
        self.regrets.add(seconds(wait - least), 1);
        self.decisions.add(seconds(believed - self.truth.work(node)).abs(), 1);
    }

    /// Adds an update to the pending ones of all schedulers except its author, whose cache already contains it.
    fn made(&mut self, now: Time, by: Option<u32>, node: u32, change: i64) {
        for view in &mut self.views {
            if Some(view.scheduler) == by {
                view.work[node as usize] += change;
            } else {
                view.pending[node as usize].push_back(Pending { made: now, change });
                view.in_flight += 1;
            }
        }
    }

    /// Observes the caches that are `there`, as often as is due before `now`.
    fn look(&mut self, now: Time, every: Span, there: impl Fn(&View, Time) -> bool) {
        while self.next <= now {
            let at = self.next;
            for view in self.views.iter().filter(|view| there(view, at)) {
                let row = view.row(at, &self.truth, |age, error| {
                    self.ages.add(age, self.stride);
                    self.errors.add(error.abs(), self.stride);
                    self.bias.add(error, self.stride);
                });
                self.in_flight.add(view.in_flight as f64, self.stride);
                self.rows.push(row);
            }
            if self.rows.len() >= LOOKS * self.views.len() {
                self.thin(every);
            }
            let apart = every.0.saturating_mul(u64::from(self.stride)).max(1);
            let looks = at.since(self.first).0 / apart + 1;
            self.next = self.first + Span(looks.saturating_mul(apart));
        }
    }

    /// Drops every second observation and doubles the interval.
    fn thin(&mut self, every: Span) {
        let (first, apart) = (self.first.as_secs_f64(), every.as_secs_f64() * f64::from(self.stride));
        self.rows.retain(|row| ((row.time - first) / apart).round() % 2.0 == 0.0);
        self.stride = self.stride.saturating_mul(2);
    }
}

impl View {
    /// Observes this cache; `each` is called with every age and error, s.
    fn row(&self, at: Time, truth: &MinWaitIndex, mut each: impl FnMut(f64, f64)) -> StalenessRow {
        let nodes = self.work.len();
        let mut row = StalenessRow {
            time: at.as_secs_f64(),
            scheduler: self.scheduler,
            in_flight: self.in_flight,
            ..StalenessRow::default()
        };
        let mut count = 0.0;
        for node in (0..nodes).step_by(nodes.div_ceil(NODES as usize)) {
            let age = self.pending[node].front().map_or(0.0, |news| at.since(news.made).as_secs_f64());
            let error = seconds(self.work[node].saturating_sub(truth.work(node as u32)));
            each(age, error);
            count += 1.0;
            row.age += age;
            row.error += error.abs();
            row.bias += error;
            row.age_max = row.age_max.max(age);
            row.error_max = row.error_max.max(error.abs());
        }
        for mean in [&mut row.age, &mut row.error, &mut row.bias] {
            *mean /= count;
        }
        row
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
