//! The cores of a node and what runs on them.

use std::ops::{Deref, DerefMut};

use super::row_state::RowState;
use crate::base::{ActorId, JobId};
use crate::roles::node_queue::Place;

/// The state of a core.
#[derive(Clone, Debug)]
pub(super) enum CoreState {
    Idle,
    /// Held while the node asks a scheduler for a task.
    Claiming {
        from: ActorId,
        job: JobId,
        group: u32,
        place: Place,
    },
    Running(RowState),
}

const _: () = assert!(size_of::<Slots>() <= 64, "a core has the size of a cache line at most");

/// The states of a node's cores. That of a single core is part of the node, which saves a cache miss an event.
#[derive(Clone, Debug)]
pub(super) enum Slots {
    One(CoreState),
    Many(Box<[CoreState]>),
}

impl Slots {
    /// `cores` idle cores.
    pub(super) fn new(cores: u32) -> Self {
        match cores {
            1 => Self::One(CoreState::Idle),
            _ => Self::Many((0..cores).map(|_| CoreState::Idle).collect()),
        }
    }

    /// An idle core.
    pub(super) fn idle(&self) -> Option<usize> {
        self.iter().position(|slot| matches!(slot, CoreState::Idle))
    }
}

impl Deref for Slots {
    type Target = [CoreState];

    #[inline]
    fn deref(&self) -> &[CoreState] {
        match self {
            Self::One(slot) => std::slice::from_ref(slot),
            Self::Many(slots) => slots,
        }
    }
}

impl DerefMut for Slots {
    #[inline]
    fn deref_mut(&mut self) -> &mut [CoreState] {
        match self {
            Self::One(slot) => std::slice::from_mut(slot),
            Self::Many(slots) => slots,
        }
    }
}

/// The cores that run copies, each with the row of its copy.
pub(super) fn running(slots: &[CoreState]) -> impl Iterator<Item = (usize, &RowState)> {
    slots.iter().enumerate().filter_map(|(core, slot)| match slot {
        CoreState::Running(row) => Some((core, row)),
        CoreState::Idle | CoreState::Claiming { .. } => None,
    })
}
