//! The cache of an observed scheduler, and the updates that it lacks.

use std::collections::VecDeque;

use volary_actors::base::{CopyId, TaskId, Time};

use crate::results::CacheRow;

/// A span in seconds, from ns.
pub(super) fn seconds(ns: i64) -> f64 {
    ns as f64 * 1e-9
}

/// Approximate number of nodes observed.
const NODES: u32 = 256;

/// Marks an update that its origin has not numbered yet.
const UNNUMBERED: u32 = u32::MAX;

/// The number of updates that their origin had not numbered when it crashed, below all numbers of later epochs.
const LOST: u32 = 0;

/// One node in this many is observed.
pub(super) const fn step(nodes: u32) -> usize {
    nodes.div_ceil(NODES) as usize
}

/// An update that a scheduler has not received.
#[derive(Clone, Copy, Debug)]
struct Pending {
    made: Time,
    change: i64,
    /// The actor that made the update (schedulers first, then nodes), and the number that the actor gave it.
    origin: u32,
    number: u32,
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

impl Pending {
    const fn new(made: Time, origin: u32, change: i64, reach: Reach) -> Self {
        Self { made, change, origin, number: UNNUMBERED, reach }
    }

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
    /// Whether earlier updates of its origin that have not arrived count as lost.
    pub(super) datagram: bool,
}

/// A watched scheduler's cache.
#[derive(Debug)]
pub(super) struct View {
    pub(super) scheduler: u32,
    /// Number of nodes that the cache covers, from node 0 on.
    cached: u32,
    /// Expected work at every node, ns.
    work: Vec<i64>,
    /// Pending updates of each node, oldest first.
    pending: Vec<VecDeque<Pending>>,
    /// The scheduler's own placements on each node that no snapshot contains, oldest first. The next snapshot replaces
    /// them in the cache. From then on the placements that it does not contain are pending.
    own: Vec<VecDeque<Pending>>,
    /// Number and node of the updates of each scheduler that travel in datagrams and have not been overtaken.
    datagrams: Vec<VecDeque<(u32, u32)>>,
    /// Number of pending updates.
    in_flight: u64,
    /// Time of the last snapshot of each node; zero before the first snapshot.
    informed: Vec<Time>,
    /// Time from which the cache is valid. A later crash of the scheduler makes it invalid.
    pub(super) since: Time,
}

/// The updates that an entry of a cache lacks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Lack {
    /// Age of the oldest pending update, s; zero if there is none.
    pub(super) age: f64,
    /// Number of pending updates.
    pub(super) versions: u64,
    /// Whether a pending update is a task that another scheduler placed.
    pub(super) placement: bool,
    /// Age of information of the entry, s; `None` if the entry is not a snapshot.
    pub(super) information: Option<f64>,
}

impl View {
    pub(super) fn new(scheduler: u32, schedulers: u32, nodes: u32, cached: u32) -> Self {
        Self {
            scheduler,
            cached,
            work: vec![0; nodes as usize],
            pending: vec![VecDeque::new(); nodes as usize],
            own: vec![VecDeque::new(); nodes as usize],
            datagrams: vec![VecDeque::new(); schedulers as usize],
            in_flight: 0,
            informed: vec![Time::ZERO; nodes as usize],
            since: Time::ZERO,
        }
    }

    /// An update is made. Its author's cache already contains it.
    pub(super) fn made(&mut self, now: Time, origin: u32, node: u32, change: i64) {
        if origin == self.scheduler {
            let work = &mut self.work[node as usize];
            *work = work.saturating_add(change);
        } else {
            self.pending[node as usize].push_back(Pending::new(now, origin, change, Reach::Since(now)));
            self.in_flight += 1;
        }
    }

    /// A copy is placed on a node that sends snapshots. The cached work is not updated, since errors of snapshots are
    /// not measured.
    pub(super) fn placed(&mut self, now: Time, origin: u32, node: u32, copy: CopyId, change: i64) {
        let update = Pending::new(now, origin, change, Reach::UnderWay(copy));
        if origin == self.scheduler {
            self.own[node as usize].push_back(update);
        } else {
            self.pending[node as usize].push_back(update);
            self.in_flight += 1;
        }
    }

    /// A copy reached its node: snapshots contain it from now on.
    pub(super) fn reached(&mut self, now: Time, node: u32, copy: CopyId) {
        let (pending, own) = (&mut self.pending[node as usize], &mut self.own[node as usize]);
        if let Some(update) =
            pending.iter_mut().chain(own).find(|update| update.reach == Reach::UnderWay(copy))
        {
            update.reach = Reach::Since(now);
        }
    }

    /// Voids the placement of a task on a node that it has not reached: the task was placed, or has ended, elsewhere.
    pub(super) fn withdrawn(&mut self, node: u32, task: TaskId) {
        let void = |update: &Pending| matches!(update.reach, Reach::UnderWay(copy) if copy.task == task);
        self.own[node as usize].retain(|update| !void(update));
        self.drop(node, void);
    }

    /// Numbers the oldest update of an origin about a node that has no number yet. `crashed` tells whether the origin
    /// has crashed since a time. Updates from before a crash without a number are lost, and take no number.
    pub(super) fn numbered(
        &mut self,
        (origin, node): (u32, u32),
        number: u32,
        datagram: bool,
        crashed: impl Fn(Time) -> bool,
    ) {
        let new = |update: &&mut Pending| update.origin == origin && update.number == UNNUMBERED;
        for update in self.pending[node as usize].iter_mut().filter(new) {
            if crashed(update.made) {
                update.number = LOST;
                continue;
            }
            update.number = number;
            if datagram && let Some(sent) = self.datagrams.get_mut(origin as usize) {
                sent.push_back((number, node));
            }
            break;
        }
    }

    /// The scheduler applies an update. If it is a datagram, missing earlier datagrams of its origin count as lost and
    /// are no longer pending, whatever node they are about. The same holds for updates of an earlier epoch of the
    /// origin about the same node, because an origin that crashes may not have sent them.
    pub(super) fn learnt(&mut self, update: Received) {
        let Received { node, change, origin, number, datagram } = update;
        let work = &mut self.work[node as usize];
        *work = work.saturating_add(change);
        while datagram
            && let Some(sent) = self.datagrams.get_mut(origin as usize)
            && let Some(&(lost, at)) = sent.front().filter(|(sent, _)| *sent <= number)
        {
            sent.pop_front();
            self.drop(at, |pending| pending.origin == origin && pending.number == lost);
        }
        // An update of two tasks on one node is noted twice.
        let pending = &mut self.pending[node as usize];
        if let Some(at) = pending.iter().position(|update| (update.origin, update.number) == (origin, number))
        {
            pending.remove(at);
            self.in_flight -= 1;
        }
        self.drop(node, |pending| {
            let earlier = pending.number < number && (datagram || pending.number >> 24 < number >> 24);
            pending.origin == origin && earlier
        });
    }

    /// The scheduler replaces an entry by an entry that contains all updates made up to `made`.
    pub(super) fn believes(&mut self, now: Time, node: u32, work: i64, made: Time) {
        self.work[node as usize] = work;
        self.since = now;
        self.drop(node, |pending| pending.made <= made);
    }

    /// The scheduler replaces an entry by a snapshot of its node. Returns the age of the previous snapshot, s.
    pub(super) fn snapshot(&mut self, now: Time, node: u32, made: Time) -> Option<f64> {
        let before = self.informed_at(node);
        self.informed[node as usize] = made;
        self.since = now;
        self.drop(node, |pending| pending.is_contained(made));
        let replaced = self.own[node as usize].drain(..).filter(|update| !update.is_contained(made));
        let pending = &mut self.pending[node as usize];
        let known = pending.len();
        pending.extend(replaced);
        if pending.len() > known {
            pending.make_contiguous().sort_by_key(|update| update.made);
            self.in_flight += (pending.len() - known) as u64;
        }
        before.map(|before| now.since(before).as_secs_f64())
    }

    fn informed_at(&self, node: u32) -> Option<Time> {
        Some(self.informed[node as usize]).filter(|made| *made > Time::ZERO)
    }

    fn drop(&mut self, node: u32, gone: impl Fn(&Pending) -> bool) {
        let pending = &mut self.pending[node as usize];
        let before = pending.len();
        pending.retain(|update| !gone(update));
        self.in_flight -= (before - pending.len()) as u64;
    }

    /// The updates that the entry of a node lacks.
    pub(super) fn lack(&self, node: u32, at: Time) -> Lack {
        let pending = &self.pending[node as usize];
        let schedulers = self.datagrams.len() as u32;
        Lack {
            age: pending.front().map_or(0.0, |oldest| at.since(oldest.made).as_secs_f64()),
            versions: pending.len() as u64,
            placement: pending
                .iter()
                .any(|update| update.origin < schedulers && update.origin != self.scheduler),
            information: self.informed_at(node).map(|made| at.since(made).as_secs_f64()),
        }
    }

    /// Number of pending updates about all nodes.
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Cached work at a node, and the sum of the pending updates about it, ns.
    pub(super) fn entry(&self, node: u32) -> (i64, i64) {
        let pending = self.pending[node as usize].iter().map(|update| update.change).sum();
        (self.work[node as usize], pending)
    }

    /// Observes this cache; `each` is called with the missing updates of every observed entry and its error (s).
    pub(super) fn row(&self, at: Time, truth: &[i64], mut each: impl FnMut(Lack, f64)) -> CacheRow {
        let mut row = CacheRow {
            time: at.as_secs_f64(),
            receiver: self.scheduler,
            in_flight: self.in_flight,
            ..CacheRow::default()
        };
        let observed = (0..self.cached).step_by(step(self.cached));
        let count = observed.len() as f64;
        let (mut information, mut informed) = (0.0, 0.0);
        for node in observed {
            let lack = self.lack(node, at);
            let error = seconds(self.work[node as usize].saturating_sub(truth[node as usize]));
            each(lack, error);
            row.age += lack.age / count;
            row.versions += lack.versions as f64 / count;
            row.out_of_sync += f64::from(u8::from(lack.versions > 0)) / count;
            row.error += error.abs() / count;
            row.bias += error / count;
            row.age_max = row.age_max.max(lack.age);
            row.error_max = row.error_max.max(error.abs());
            if let Some(age) = lack.information {
                information += age;
                informed += 1.0;
            }
        }
        row.information = information / informed;
        row
    }
}
