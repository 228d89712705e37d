//! The caches of watched schedulers, and the updates that they lack.
//!
//! An update is kept once for all watched schedulers, in a log of its node, until each of them has received it.

use std::collections::VecDeque;

use volary_actors::base::{CopyId, TaskId, Time};
use volary_actors::policies::is_watched;

use super::super::ages::{Lack, observed};
use crate::results::CacheRow;

/// A span in seconds, from ns.
pub(super) fn seconds(ns: i64) -> f64 {
    ns as f64 * 1e-9
}

/// Approximate number of nodes observed.
const NODES: u32 = 256;

/// Marks an update that its origin has not numbered yet.
const UNNUMBERED: u32 = u32::MAX;

/// The number of updates that their origin had not numbered when it crashed. Numbers of later epochs are greater.
const LOST: u32 = 0;

/// One node in this many is observed.
pub(super) const fn step(nodes: u32) -> usize {
    nodes.div_ceil(NODES) as usize
}

/// A set of views: bit i stands for view i. At most sixteen schedulers are watched.
type ViewSet = u32;

/// An update that a watched scheduler has not received.
#[derive(Clone, Copy, Debug)]
struct Update {
    made: Time,
    change: i64,
    /// The actor that made the update (schedulers first, then nodes), and the number that the actor gave it.
    origin: u32,
    number: u32,
    /// The views for which it is pending.
    pending: ViewSet,
    /// The view of the scheduler that placed this task, while no snapshot contains the task. The scheduler's next
    /// snapshot overwrites the placement in its cache; if it does not contain the task, the placement is pending from
    /// then on.
    own: ViewSet,
    reach: Reach,
}

/// Whether an update has reached its node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    /// The node does not know of this copy yet.
    UnderWay(CopyId),
    /// The node has known of the update since this time.
    Since(Time),
}

impl Update {
    /// Whether a snapshot that the node made at a time contains the update.
    fn is_contained(&self, made: Time) -> bool {
        matches!(self.reach, Reach::Since(since) if since <= made)
    }
}

/// An update as its receiver sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub(super) node: u32,
    pub(super) change: i64,
    pub(super) origin: u32,
    pub(super) number: u32,
    /// Whether the update is a datagram: earlier ones of its origin that have not arrived are then lost.
    pub(super) datagram: bool,
}

/// Updates that a scheduler sent in datagrams and that some view has not passed, in the order of numbers. A view passes
/// a datagram when it or a later one of the scheduler arrives.
#[derive(Clone, Default, Debug)]
struct Datagrams {
    /// Number and node of each.
    sent: VecDeque<(u32, u32)>,
    /// Number of updates that all views have passed.
    removed: usize,
}

/// A watched scheduler's cache.
#[derive(Debug)]
pub(super) struct View {
    pub(super) scheduler: u32,
    /// Expected work at every observed node, ns.
    work: Vec<i64>,
    /// Number of pending updates.
    pub(super) in_flight: u64,
    /// Time of the last snapshot of each node; zero before the first snapshot.
    informed: Vec<Time>,
    /// Number of datagrams of each scheduler that have arrived or been overtaken.
    passed: Vec<usize>,
    /// Time from which the cache is valid. A later crash of the scheduler makes it invalid.
    pub(super) since: Time,
}

/// The caches of all watched schedulers.
#[derive(Debug)]
pub(super) struct Views {
    /// In order of schedulers.
    pub(super) all: Vec<View>,
    /// Number of nodes that the caches cover, from node 0 on.
    cached: u32,
    /// Updates about each node that are pending for a view or in its `own` set, oldest first.
    logs: Vec<Vec<Update>>,
    /// The datagrams of each scheduler.
    datagrams: Vec<Datagrams>,
}

impl View {
    /// The expected work at a node, if the node is observed.
    fn work(&mut self, node: u32, step: usize) -> Option<&mut i64> {
        let node = node as usize;
        if node.is_multiple_of(step) { self.work.get_mut(node / step) } else { None }
    }

    fn change(&mut self, node: u32, step: usize, change: i64) {
        if let Some(work) = self.work(node, step) {
            *work = work.saturating_add(change);
        }
    }

    fn informed_at(&self, node: u32) -> Option<Time> {
        Some(self.informed[node as usize]).filter(|made| *made > Time::ZERO)
    }
}

impl Views {
    pub(super) fn new(schedulers: u32, nodes: u32, cached: u32) -> Self {
        let view = |scheduler| View {
            scheduler,
            work: vec![0; (0..cached).step_by(step(cached)).len()],
            in_flight: 0,
            informed: vec![Time::ZERO; nodes as usize],
            passed: vec![0; schedulers as usize],
            since: Time::ZERO,
        };
        let watched = (0..schedulers).filter(|&scheduler| is_watched(scheduler, schedulers));
        Self {
            all: watched.map(view).collect(),
            cached,
            logs: vec![Vec::new(); nodes as usize],
            datagrams: vec![Datagrams::default(); schedulers as usize],
        }
    }

    /// The index of a scheduler's view, if the scheduler is watched.
    pub(super) fn of(&self, scheduler: u32) -> Option<usize> {
        self.all.binary_search_by_key(&scheduler, |view| view.scheduler).ok()
    }

    /// Adds an update to the log of its node, as pending for all views except its author's.
    fn add(&mut self, node: u32, mut update: Update) {
        let views = self.all.iter_mut().enumerate();
        for (at, view) in views.filter(|(_, view)| view.scheduler != update.origin) {
            update.pending |= 1 << at;
            view.in_flight += 1;
        }
        if (update.pending, update.own) != (0, 0) {
            self.logs[node as usize].push(update);
        }
    }

    /// An update is made. Its author's cache already contains it.
    pub(super) fn made(&mut self, now: Time, origin: u32, node: u32, change: i64) {
        let step = step(self.cached);
        if let Some(author) = self.of(origin) {
            self.all[author].change(node, step, change);
        }
        let reach = Reach::Since(now);
        self.add(node, Update { made: now, change, origin, number: UNNUMBERED, pending: 0, own: 0, reach });
    }

    /// A copy is placed on a node that sends snapshots. The cached work is not updated, since errors of snapshots are
    /// not measured.
    pub(super) fn placed(&mut self, now: Time, origin: u32, node: u32, copy: CopyId, change: i64) {
        let (own, reach) = (self.of(origin).map_or(0, |author| 1 << author), Reach::UnderWay(copy));
        self.add(node, Update { made: now, change, origin, number: UNNUMBERED, pending: 0, own, reach });
    }

    /// A copy reached its node: snapshots contain it from now on.
    pub(super) fn reached(&mut self, now: Time, node: u32, copy: CopyId) {
        let mut log = self.logs[node as usize].iter_mut();
        if let Some(update) = log.find(|update| update.reach == Reach::UnderWay(copy)) {
            update.reach = Reach::Since(now);
        }
    }

    /// Voids the placement of a task on a node that it has not reached: the task was placed, or has ended, elsewhere.
    pub(super) fn withdrawn(&mut self, node: u32, task: TaskId) {
        let void = |update: &Update| matches!(update.reach, Reach::UnderWay(copy) if copy.task == task);
        for update in self.logs[node as usize].extract_if(.., |update| void(update)) {
            for (at, view) in self.all.iter_mut().enumerate() {
                view.in_flight -= u64::from(update.pending >> at & 1);
            }
        }
    }

    /// Numbers the oldest update of an origin about a node that has no number yet. `crashed` says whether the origin
    /// has crashed since a time. Updates without a number from before a crash are lost, and take no number.
    pub(super) fn numbered(
        &mut self,
        (origin, node): (u32, u32),
        number: u32,
        datagram: bool,
        crashed: impl Fn(Time) -> bool,
    ) {
        let new = |update: &&mut Update| update.origin == origin && update.number == UNNUMBERED;
        for update in self.logs[node as usize].iter_mut().filter(new) {
            if crashed(update.made) {
                update.number = LOST;
                continue;
            }
            update.number = number;
            if datagram && let Some(Datagrams { sent, removed }) = self.datagrams.get_mut(origin as usize) {
                let receivers = self.all.iter().filter(|view| view.scheduler != origin);
                let passed = receivers.map(|view| view.passed[origin as usize]).min().unwrap_or(*removed);
                sent.drain(..passed - *removed);
                *removed = passed;
                sent.push_back((number, node));
            }
            break;
        }
    }

    /// A scheduler applies an update. If it is a datagram, missing earlier datagrams of its origin are lost and no
    /// longer pending, whatever node they are about. The same holds for updates of an earlier epoch of the origin about
    /// the same node, because an origin that crashes may not have sent them.
    pub(super) fn learnt(&mut self, by: usize, update: Received) {
        let Received { node, change, origin, number, datagram } = update;
        let step = step(self.cached);
        self.all[by].change(node, step, change);
        while datagram
            && let Some(Datagrams { sent, removed }) = self.datagrams.get(origin as usize)
            && let passed = &mut self.all[by].passed[origin as usize]
            && let Some(&(lost, at)) =
                sent.get(passed.saturating_sub(*removed)).filter(|(sent, _)| *sent <= number)
        {
            *passed += 1;
            self.drop(by, at, |update| update.origin == origin && update.number == lost);
        }
        // An update of two tasks on one node is noted twice.
        let mut found = false;
        self.drop(by, node, |update| {
            let earlier = update.number < number && (datagram || update.number >> 24 < number >> 24);
            let same = update.number == number && !found;
            let gone = update.origin == origin && (earlier || same);
            found |= gone && same;
            gone
        });
    }

    /// A scheduler replaces an entry by an entry that contains all updates made up to `made`.
    pub(super) fn believes(&mut self, by: usize, now: Time, node: u32, work: i64, made: Time) {
        let (step, view) = (step(self.cached), &mut self.all[by]);
        view.since = now;
        if let Some(expected) = view.work(node, step) {
            *expected = work;
        }
        self.drop(by, node, |update| update.made <= made);
    }

    /// A scheduler replaces an entry by a snapshot of its node. Returns the age of the previous snapshot, s.
    pub(super) fn snapshot(&mut self, by: usize, now: Time, node: u32, made: Time) -> Option<f64> {
        let view = &mut self.all[by];
        let before = view.informed_at(node);
        view.informed[node as usize] = made;
        view.since = now;
        for own in self.logs[node as usize].iter_mut().filter(|update| update.own == 1 << by) {
            own.own = 0;
            own.pending |= 1 << by;
            view.in_flight += 1;
        }
        self.drop(by, node, |update| update.is_contained(made));
        before.map(|before| now.since(before).as_secs_f64())
    }

    /// Removes updates about a node from those that a view lacks, if `gone` holds for them.
    fn drop(&mut self, by: usize, node: u32, mut gone: impl FnMut(&Update) -> bool) {
        let (bit, in_flight) = (1 << by, &mut self.all[by].in_flight);
        self.logs[node as usize].retain_mut(|update| {
            if update.pending & bit != 0 && gone(update) {
                update.pending ^= bit;
                *in_flight -= 1;
            }
            (update.pending, update.own) != (0, 0)
        });
    }

    /// The updates that the entry of a node lacks.
    pub(super) fn lack(&self, by: usize, node: u32, at: Time) -> Lack {
        let (view, schedulers) = (&self.all[by], self.datagrams.len() as u32);
        let mut pending = self.pending(by, node).peekable();
        Lack {
            age: pending.peek().map_or(0.0, |oldest| at.since(oldest.made).as_secs_f64()),
            placement: pending
                .clone()
                .any(|update| update.origin < schedulers && update.origin != view.scheduler),
            versions: pending.count() as u64,
            information: view.informed_at(node).map(|made| at.since(made).as_secs_f64()),
        }
    }

    /// The updates about a node that are pending for a view, oldest first.
    fn pending(&self, by: usize, node: u32) -> impl Iterator<Item = &Update> + Clone {
        self.logs[node as usize].iter().filter(move |update| update.pending >> by & 1 != 0)
    }

    /// The observed nodes.
    fn observed(&self) -> impl ExactSizeIterator<Item = u32> + use<> {
        (0..self.cached).step_by(step(self.cached))
    }

    /// Node, cached work, and the sum of the pending updates (ns of work) for every entry of a view that is observed.
    pub(super) fn entries(&self, by: usize) -> impl Iterator<Item = (u32, i64, i64)> {
        self.observed()
            .zip(&self.all[by].work)
            .map(move |(node, work)| (node, *work, self.pending(by, node).map(|update| update.change).sum()))
    }

    /// Observes a cache; `each` is called with the missing updates of every observed entry and its error (s).
    pub(super) fn row(
        &self,
        by: usize,
        at: Time,
        truth: &[i64],
        mut each: impl FnMut(Lack, f64),
    ) -> CacheRow {
        let view = &self.all[by];
        let lacks: Vec<Lack> = self.observed().map(|node| self.lack(by, node, at)).collect();
        let mut row = CacheRow {
            in_flight: view.in_flight,
            error: 0.0,
            bias: 0.0,
            error_max: 0.0,
            ..observed(at, view.scheduler, &lacks)
        };
        let count = lacks.len() as f64;
        for ((node, work), lack) in self.observed().zip(&view.work).zip(lacks) {
            let error = seconds(work.saturating_sub(truth[node as usize]));
            each(lack, error);
            row.error += error.abs() / count;
            row.bias += error / count;
            row.error_max = row.error_max.max(error.abs());
        }
        row
    }
}
