//! The workers of a group as their master knows them. The paper's master knows only which workers are idle; the rest is
//! for crashes, and for masters that take a group over.

use std::collections::BTreeMap;
use std::ops::Range;

use super::groups::WorkerGroups;
use super::task_scheduling::IdleWorkers;
use crate::layout::Layout;
use crate::message::{Assignment, Turn};

/// The state of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WorkerState {
    /// The worker's node is down.
    Down,
    /// The worker has not reported.
    Unknown,
    Idle,
    Running(Assignment),
}

impl WorkerState {
    const fn is_known(self) -> bool {
        matches!(self, Self::Idle | Self::Running(_))
    }
}

/// The meaning of a worker's report to its master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Report {
    /// The worker's node has crashed since its last report.
    Restarted,
    /// The worker has become idle.
    Idle,
    /// The report is old, or says that the worker runs a copy or is still idle.
    Other,
}

/// The workers of a group.
#[derive(Clone, Debug)]
pub(super) struct Workers {
    pub(super) idle: IdleWorkers,
    /// The cores of the group.
    range: Range<u32>,
    /// First reserved core of the group; all cores after it are reserved as well.
    first_reserved: u32,
    /// The state of each worker, and the turn of its report.
    states: Box<[(WorkerState, Turn)]>,
    /// Copies given to reserved workers of other groups.
    lent: BTreeMap<u32, Assignment>,
}

impl Workers {
    /// The workers of a group, all idle if `known`, else in an unknown state. The state of a phantom core is reported
    /// after another master has used the core.
    pub(super) fn new(groups: &WorkerGroups, group: u32, known: bool, layout: &Layout) -> Self {
        let range = groups.workers(group, layout);
        let first_reserved = groups.first_reserved(group, layout);
        let states = vec![(WorkerState::Unknown, Turn::default()); range.len()].into();
        let (idle, lent) = (IdleWorkers::default(), BTreeMap::new());
        let mut workers = Self { idle, range, first_reserved, states, lent };
        if known {
            let unreserved = workers.range.start..first_reserved;
            for core in unreserved.chain(groups.listed_reserved(group, layout)) {
                if let Some((state, _)) = workers.state_of(core) {
                    *state = WorkerState::Idle;
                }
                workers.put(core);
            }
        }
        workers
    }

    /// The state of a worker of the group, and the turn of its report.
    fn state_of(&mut self, core: u32) -> Option<&mut (WorkerState, Turn)> {
        self.states.get_mut(core.checked_sub(self.range.start)? as usize)
    }

    /// Whether a worker runs short tasks only. Without other workers, reserved ones serve both queues.
    pub(super) fn is_reserved(&self, core: u32) -> bool {
        let unreserved = &self.states[..(self.first_reserved - self.range.start) as usize];
        // A core outside of the group is a phantom of another group.
        !self.range.contains(&core)
            || (core >= self.first_reserved
                && unreserved.iter().any(|(state, _)| *state != WorkerState::Down))
    }

    /// Adds an idle worker.
    pub(super) fn put(&mut self, core: u32) {
        let reserved = self.is_reserved(core);
        self.idle.put(core, reserved);
    }

    /// Records that a worker was given a copy.
    pub(super) fn start(&mut self, core: u32, next: Assignment) {
        match self.state_of(core) {
            Some((state, _)) => *state = WorkerState::Running(next),
            None => drop(self.lent.insert(core, next)),
        }
    }

    /// Records a worker's report that it is idle or runs a copy. Messages can overtake each other, so older reports are
    /// ignored.
    pub(super) fn reported(&mut self, core: u32, turn: Turn, running: Option<Assignment>) -> Report {
        let Some((state, last)) = self.state_of(core) else {
            if running.is_none() {
                self.lent.remove(&core);
            }
            return Report::Other;
        };
        let before = *state;
        let lost = matches!(before, WorkerState::Unknown | WorkerState::Down);
        if turn < *last || (turn == *last && !lost) {
            return Report::Other;
        }
        if !lost && turn.life > last.life {
            return Report::Restarted;
        }
        (*state, *last) = (running.map_or(WorkerState::Idle, WorkerState::Running), turn);
        if running.is_some() && before == WorkerState::Idle {
            self.idle.remove(core);
        }
        if running.is_none() && before != WorkerState::Idle { Report::Idle } else { Report::Other }
    }

    /// Whether this master knows the state of a worker whose node is up.
    pub(super) fn is_known(&mut self, core: u32) -> bool {
        let lent = self.lent.contains_key(&core);
        self.state_of(core).map_or(lent, |(state, _)| state.is_known())
    }

    /// Marks the workers of a crashed node as down, and drops their copies. Returns whether the state of any was
    /// known.
    pub(super) fn down(&mut self, cores: Range<u32>) -> bool {
        let mut known = false;
        for core in cores {
            known |= self.is_known(core);
            self.lent.remove(&core);
            self.idle.remove(core);
            if let Some((state, _)) = self.state_of(core) {
                *state = WorkerState::Down;
            }
        }
        known
    }

    /// Marks the workers of a node that is back as unknown until they report.
    pub(super) fn up(&mut self, cores: Range<u32>) {
        for core in cores {
            if let Some((state @ WorkerState::Down, _)) = self.state_of(core) {
                *state = WorkerState::Unknown;
            }
        }
    }

    /// Marks the workers as unknown until they report again, except those of crashed nodes.
    pub(super) fn forget(&mut self) {
        self.idle = IdleWorkers::default();
        for (state, _) in self.states.iter_mut().filter(|(state, _)| *state != WorkerState::Down) {
            *state = WorkerState::Unknown;
        }
    }

    /// Whether a worker whose node is up has not reported.
    pub(super) fn has_unknown(&self) -> bool {
        self.states.iter().any(|(state, _)| *state == WorkerState::Unknown)
    }

    /// Whether no node of the group is up.
    pub(super) fn all_down(&self) -> bool {
        self.states.iter().all(|(state, _)| *state == WorkerState::Down)
    }

    /// The copies that workers run for this master.
    pub(super) fn running(&self) -> impl Iterator<Item = Assignment> + '_ {
        let running = |&(state, _): &(WorkerState, Turn)| {
            if let WorkerState::Running(next) = state { Some(next) } else { None }
        };
        self.states.iter().filter_map(running).chain(self.lent.values().copied())
    }
}
