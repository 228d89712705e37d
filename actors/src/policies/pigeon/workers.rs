//! A master's view of the workers of its group: what each does, and which are idle, longest idle first.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::groups::WorkerGroups;
use super::queues::{Next, Waiting};
use crate::layout::Layout;
use crate::message::{Batch, Turn};

/// The state of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WorkerState {
    /// Its node is down.
    Down,
    /// It has not reported.
    Unknown,
    Idle,
    Running(Next),
}

/// The workers of a group.
#[derive(Debug)]
pub(super) struct Workers {
    /// The cores of the group.
    range: Range<u32>,
    /// The first reserved core; all after it are reserved as well.
    first_reserved: u32,
    states: Box<[(WorkerState, Turn)]>,
    /// Copies given to reserved workers of other groups.
    lent: BTreeMap<u32, Next>,
    idle_reserved: VecDeque<u32>,
    idle_others: VecDeque<u32>,
    /// Unreserved workers whose nodes are up. If there are none, reserved ones serve both queues.
    unreserved_up: u32,
    /// Own workers that run something.
    running: u32,
    /// Own workers whose nodes are up and which have not reported.
    unknown: u32,
    /// Own workers whose nodes are down.
    down: u32,
}

impl Workers {
    /// The workers of a group: all idle if `known`, else in an unknown state. The node of a phantom core reports its
    /// state once another master has used it.
    pub(super) fn new(groups: &WorkerGroups, group: u32, known: bool, layout: &Layout) -> Self {
        let range = groups.workers(group, layout);
        let first_reserved = groups.first_reserved(group, layout).max(range.start);
        let mut workers = Self {
            first_reserved,
            states: vec![(WorkerState::Unknown, Turn::default()); range.len()].into(),
            lent: BTreeMap::new(),
            idle_reserved: VecDeque::new(),
            idle_others: VecDeque::new(),
            unreserved_up: first_reserved - range.start,
            running: 0,
            unknown: range.len() as u32,
            down: 0,
            range,
        };
        if known {
            let mut idle: Vec<_> = (workers.range.start..first_reserved).collect();
            groups.reserved_cores(group, layout, &mut idle);
            for core in idle {
                workers.set(core, WorkerState::Idle);
                workers.put(core);
            }
        }
        workers
    }

    fn at(&self, core: u32) -> Option<usize> {
        self.range.contains(&core).then(|| (core - self.range.start) as usize)
    }

    /// The state of an own worker, and the turn of its report.
    fn state(&self, core: u32) -> Option<(WorkerState, Turn)> {
        self.at(core).map(|at| self.states[at])
    }

    /// Changes the state of an own worker; returns the one before.
    fn set(&mut self, core: u32, state: WorkerState) -> Option<WorkerState> {
        let at = self.at(core)?;
        let before = std::mem::replace(&mut self.states[at].0, state);
        if let Some(count) = self.count(before) {
            *count -= 1;
        }
        if let Some(count) = self.count(state) {
            *count += 1;
        }
        if core < self.first_reserved && (before == WorkerState::Down) != (state == WorkerState::Down) {
            self.unreserved_up =
                if state == WorkerState::Down { self.unreserved_up - 1 } else { self.unreserved_up + 1 };
            self.regroup();
        }
        Some(before)
    }

    /// The number of own workers in a state like this one; idle ones are not counted.
    const fn count(&mut self, state: WorkerState) -> Option<&mut u32> {
        match state {
            WorkerState::Down => Some(&mut self.down),
            WorkerState::Unknown => Some(&mut self.unknown),
            WorkerState::Running(_) => Some(&mut self.running),
            WorkerState::Idle => None,
        }
    }

    /// Whether a worker runs short tasks only.
    pub(super) fn is_reserved(&self, core: u32) -> bool {
        !self.range.contains(&core) || (core >= self.first_reserved && self.unreserved_up > 0)
    }

    /// Workers that run something for this master.
    pub(super) fn busy(&self) -> u32 {
        self.running + self.lent.len() as u32
    }

    /// Removes an idle worker for a task.
    pub(super) fn take(&mut self, short: bool) -> Option<u32> {
        self.idle_others.pop_front().or_else(|| if short { self.idle_reserved.pop_front() } else { None })
    }

    /// Adds an idle worker.
    pub(super) fn put(&mut self, core: u32) {
        if self.is_reserved(core) {
            self.idle_reserved.push_back(core)
        } else {
            self.idle_others.push_back(core)
        }
    }

    /// Records that a worker was given a copy.
    pub(super) fn start(&mut self, core: u32, next: Next) {
        if self.set(core, WorkerState::Running(next)).is_none() {
            self.lent.insert(core, next);
        }
    }

    /// Records a worker's report that it is idle or runs a copy; returns whether it is idle and was not before.
    /// Messages can overtake each other: older ones are ignored.
    pub(super) fn told(&mut self, core: u32, turn: Turn, running: Option<Next>) -> bool {
        let Some(at) = self.at(core) else {
            if running.is_none() {
                self.lent.remove(&core);
            }
            return false;
        };
        let (before, last) = self.states[at];
        let lost = matches!(before, WorkerState::Unknown | WorkerState::Down);
        if turn < last || (turn == last && !lost) {
            return false;
        }
        self.states[at].1 = turn;
        self.set(core, running.map_or(WorkerState::Idle, WorkerState::Running));
        if running.is_some() && before == WorkerState::Idle {
            self.unlist(core);
        }
        running.is_none() && before != WorkerState::Idle
    }

    /// Whether the node of a worker has crashed since the worker last reported.
    pub(super) fn has_restarted(&self, core: u32, turn: Turn) -> bool {
        self.state(core).is_some_and(|(state, last)| {
            matches!(state, WorkerState::Idle | WorkerState::Running(_)) && turn.life > last.life
        })
    }

    /// Records that a copy could not be sent to a worker; returns whether the worker was to run it.
    pub(super) fn refused(&mut self, core: u32, next: Next) -> bool {
        let Some((state, _)) = self.state(core) else {
            return self.lent.get(&core) == Some(&next) && self.lent.remove(&core).is_some();
        };
        let was = state == WorkerState::Running(next);
        if was {
            self.set(core, WorkerState::Unknown);
        }
        was
    }

    /// Marks the workers of a crashed node as down, and drops what they ran.
    pub(super) fn down(&mut self, cores: Range<u32>) {
        for core in cores {
            self.lent.remove(&core);
            self.unlist(core);
            self.set(core, WorkerState::Down);
        }
    }

    /// Marks the workers of a node that is back as idle; returns those that were down, in order.
    pub(super) fn up(&mut self, cores: Range<u32>) -> Vec<u32> {
        let is_down = |core: &u32| matches!(self.state(*core), Some((WorkerState::Down, _)));
        let idle: Vec<_> = cores.filter(is_down).collect();
        for &core in &idle {
            self.set(core, WorkerState::Idle);
        }
        idle
    }

    fn unlist(&mut self, core: u32) {
        self.idle_reserved.retain(|&other| other != core);
        self.idle_others.retain(|&other| other != core);
    }

    /// Sorts idle workers into their lists after the first unreserved one came or the last one went.
    fn regroup(&mut self) {
        if self.unreserved_up <= 1 {
            let reserved = std::mem::take(&mut self.idle_reserved);
            let others = std::mem::take(&mut self.idle_others);
            others.into_iter().chain(reserved).for_each(|core| self.put(core));
        }
    }

    /// Whether a worker whose node is up has not reported.
    pub(super) const fn has_unknown(&self) -> bool {
        self.unknown > 0
    }

    /// Whether no node of the group is up.
    pub(super) fn all_down(&self) -> bool {
        self.down as usize == self.states.len()
    }

    /// The workers that run something, in the order of their cores.
    pub(super) fn running(&self) -> impl Iterator<Item = (u32, Next)> + '_ {
        let own = (self.range.start..).zip(&self.states).filter_map(|(core, (state, _))| match *state {
            WorkerState::Running(next) => Some((core, next)),
            WorkerState::Down | WorkerState::Unknown | WorkerState::Idle => None,
        });
        own.chain(self.lent.iter().map(|(&core, &next)| (core, next)))
    }

    /// Appends the indices of the running tasks of the same submission as `of`.
    pub(super) fn tasks_of(&self, of: Waiting, out: &mut Vec<u32>) {
        let running =
            self.running().map(|(_, (copy, scheduler))| Waiting { scheduler, batch: Batch::single(copy) });
        out.extend(running.filter(|task| task.is_of_same_submission(of)).map(|task| task.batch.base));
    }
}
