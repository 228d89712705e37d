//! The tracker of copies of one shared state: Eagle's bitmap of long work, Peacock's load of the cluster.
//!
//! The state belongs to no node: some actors change it, and snapshots of it reach other actors by any route. A copy is
//! in sync if the state has not changed since the snapshot was made. Actors without a snapshot are not observed.

use std::collections::BTreeMap;

use volary_actors::base::{ActorId, Span, Time};
use volary_actors::layout::{Layout, Role};
use volary_netem::Faults;

use super::super::ages::{Ages, Lack, observed};
use super::super::instants::{CacheSamples, Instants};
use crate::results::{CacheRow, PolicyResults, Staleness};
use crate::workload::Window;

/// Folds notes about copies of a shared state.
#[derive(Debug)]
pub(super) struct CopyTracker<'a> {
    layout: &'a Layout,
    faults: &'a Faults,
    every: Span,
    /// The time in which copies are observed.
    window: Window,
    seed: u64,
    /// `None` until the state changes.
    state: Option<Box<SharedState>>,
}

#[derive(Debug)]
struct SharedState {
    /// Times at which the state changed.
    changes: Vec<Time>,
    /// Copies of watched actors: the times at which each was made and received.
    copies: BTreeMap<ActorId, (Time, Time)>,
    samples: CacheSamples,
    ages: Ages,
}

impl<'a> CopyTracker<'a> {
    /// Creates a tracker that observes copies at an interval from the first copy on.
    pub(super) const fn new(
        layout: &'a Layout,
        faults: &'a Faults,
        every: Span,
        window: Window,
        seed: u64,
    ) -> Self {
        Self { layout, faults, every, window, seed, state: None }
    }

    /// The observations so far.
    pub(super) fn cache_samples(&self) -> &[CacheRow] {
        self.state.as_ref().map_or(&[], |state| &state.samples.rows)
    }

    /// Takes the observations of copies that are due before `now`.
    fn look(&mut self, now: Time) {
        let Some(state) = self.state.as_deref_mut() else { return };
        while let Some(at) = state.samples.due(now) {
            for (&who, &(made, received)) in &state.copies {
                let crash = self.faults.crash_between(self.layout.endpoint(who), received, at);
                if crash.is_none() && self.window.spans(at) {
                    let lack = lack(&state.changes, made, at);
                    state.ages.add(lack, state.samples.weight());
                    state.samples.rows.push(row(self.layout, who, lack, at));
                }
            }
            state.samples.advance(state.copies.len());
        }
    }

    /// An actor changed the state.
    pub(super) fn changed(&mut self, now: Time) {
        self.look(now);
        let (seed, every) = (self.seed, self.every);
        let fresh = || {
            let samples = CacheSamples::new(Instants::new(seed, now, every));
            Box::new(SharedState {
                changes: Vec::new(),
                copies: BTreeMap::new(),
                samples,
                ages: Ages::default(),
            })
        };
        self.state.get_or_insert_with(fresh).changes.push(now);
    }

    /// An actor replaced its copy by a copy that was made at a time.
    pub(super) fn refreshed(&mut self, now: Time, who: ActorId, made: Time) {
        self.look(now);
        if let Some(state) = &mut self.state
            && let Some((before, _)) = state.copies.insert(who, (made, now))
            && self.window.spans(now)
        {
            state.ages.peak(now.since(before).as_secs_f64());
        }
    }

    /// Adds the measurements to the results of a run that ended at `end`.
    pub(super) fn close(mut self, end: Time, results: &mut PolicyResults) {
        self.look(end);
        let Some(state) = self.state else { return };
        results.sections.staleness = Some(Staleness {
            every_s: state.samples.every_s(),
            receivers: state.copies.len() as u32,
            sources: 1,
            ..state.ages.summary()
        });
        results.looks = state.samples.rows;
    }
}

/// The changes that a copy of the state, made at `made`, lacks at `at`.
fn lack(changes: &[Time], made: Time, at: Time) -> Lack {
    let missed = &changes[changes.partition_point(|change| *change <= made)..];
    Lack::of(missed.iter().copied(), Some(made), at)
}

fn row(layout: &Layout, who: ActorId, lack: Lack, at: Time) -> CacheRow {
    let receiver = match layout.role(who) {
        Role::Client(index) | Role::Scheduler(index) | Role::Node(index) | Role::Auxiliary(index) => index,
        Role::Worker { node, .. } => node,
    };
    observed(at, receiver, &[lack])
}
