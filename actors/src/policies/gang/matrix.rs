//! The Ousterhout matrix: a row for each time slice, a column for each core of the run.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::base::{CopyId, TaskId};

/// What runs on which core in which slice. Cells lie on cores believed alive.
pub(super) struct Matrix {
    /// Rows in the order of their turns: copies by core, at least one each.
    slices: Vec<BTreeMap<u32, CopyId>>,
    /// The slice that runs.
    current: usize,
    /// By core, whether its node is believed alive.
    alive: Vec<bool>,
    /// How many are.
    width: usize,
}

impl Matrix {
    /// Without slices, over `cores` cores that are alive.
    pub(super) fn new(cores: u32) -> Self {
        let cores = cores as usize;
        Self { slices: Vec::new(), current: 0, alive: vec![true; cores], width: cores }
    }

    /// Slices that take turns.
    pub(super) fn slices(&self) -> usize {
        self.slices.len()
    }

    /// Cores believed alive.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn is_alive(&self, core: u32) -> bool {
        self.alive[core as usize]
    }

    /// What a core runs now.
    pub(super) fn running(&self, core: u32) -> Option<CopyId> {
        self.slices.get(self.current)?.get(&core).copied()
    }

    /// Cores that have something to run now, in ascending order.
    pub(super) fn busy(&self) -> impl Iterator<Item = u32> + '_ {
        self.slices.get(self.current).into_iter().flat_map(|slice| slice.keys().copied())
    }

    /// The first slice in which `count` cores are free, or a new one, and those that are, in ascending order.
    pub(super) fn room(&mut self, count: usize) -> (usize, Vec<u32>) {
        let fits = |slice: &BTreeMap<_, _>| self.width - slice.len() >= count;
        let slice = self.slices.iter().position(fits).unwrap_or_else(|| {
            self.slices.push(BTreeMap::new());
            self.slices.len() - 1
        });
        let mut taken = self.slices[slice].keys().copied().peekable();
        let free = |core: &u32| taken.next_if_eq(core).is_none() && self.alive[*core as usize];
        (slice, (0..self.alive.len() as u32).filter(free).collect())
    }

    /// Fills a free cell; whether it is to run now.
    pub(super) fn put(&mut self, slice: usize, core: u32, copy: CopyId) -> bool {
        self.slices[slice].insert(core, copy);
        slice == self.current
    }

    /// Goes on to the next slice; the cores for which that can change something, in ascending order.
    pub(super) fn turn(&mut self) -> Vec<u32> {
        let mut cores: Vec<_> = self.busy().collect();
        self.current = (self.current + 1) % self.slices.len();
        cores.extend(self.busy());
        cores.sort_unstable();
        cores.dedup();
        cores
    }

    /// Takes a task off the core it is on; the copy that was there, and whether it was to run now.
    pub(super) fn remove(&mut self, core: u32, task: TaskId) -> Option<(CopyId, bool)> {
        let here = |slice: &BTreeMap<u32, CopyId>| slice.get(&core).is_some_and(|copy| copy.task == task);
        let slice = self.slices.iter().position(here)?;
        let copy = self.slices[slice].remove(&core)?;
        Some((copy, slice == self.current))
    }

    /// Whether a copy has a cell on a core.
    pub(super) fn has(&self, core: u32, copy: CopyId) -> bool {
        self.slices.iter().any(|slice| slice.get(&core) == Some(&copy))
    }

    /// Puts another copy in the cell of one; whether it is to run now.
    pub(super) fn replace(&mut self, core: u32, copy: CopyId, by: CopyId) -> bool {
        let slice = self.slices.iter().position(|slice| slice.get(&core) == Some(&copy));
        slice.is_some_and(|slice| self.put(slice, core, by))
    }

    /// Cores that died, with all cells on them.
    pub(super) fn kill(&mut self, cores: Range<u32>) -> Vec<CopyId> {
        for alive in &mut self.alive[cores.start as usize..cores.end as usize] {
            self.width -= usize::from(std::mem::replace(alive, false));
        }
        let mut lost = Vec::new();
        for slice in &mut self.slices {
            for core in cores.clone() {
                lost.extend(slice.remove(&core));
            }
        }
        lost
    }

    /// Cores that are back.
    pub(super) fn revive(&mut self, cores: Range<u32>) {
        for alive in &mut self.alive[cores.start as usize..cores.end as usize] {
            self.width += usize::from(!std::mem::replace(alive, true));
        }
    }

    /// Drops empty slices; whether the turn passed on, because the current one was among them.
    pub(super) fn tidy(&mut self) -> bool {
        if self.slices.iter().all(|slice| !slice.is_empty()) {
            return false;
        }
        let before = self.slices.iter().take(self.current).filter(|slice| !slice.is_empty()).count();
        let passed = self.slices.get(self.current).is_some_and(BTreeMap::is_empty);
        self.slices.retain(|slice| !slice.is_empty());
        self.current = if before < self.slices.len() { before } else { 0 };
        passed
    }
}
