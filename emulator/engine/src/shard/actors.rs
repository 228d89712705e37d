//! The actors of a shard: their machines, random streams and counts.
//!
//! Workers are about half of all actors and the smallest of them, so a worker is part of its slot: it needs neither an
//! allocation nor a random stream, and costs an event one cache line instead of two.

use volary_actors::base::{ActorId, Rng};
use volary_actors::machine::Machine;
use volary_actors::roles::Worker;

use crate::prefetch::prefetch;

/// The state of an endpoint's actor that every event about it needs, in half a cache line, because in large clusters
/// each access is a cache miss.
#[repr(align(32))]
pub(super) struct ActorSlot {
    /// `None` while the actor is down.
    pub(super) machine: Option<Box<dyn Machine>>,
    pub(super) rng: Rng,
    /// Number of crashes.
    epoch: u32,
    /// Number of events that the actor has caused; part of their order.
    count: u32,
}

/// A worker, likewise in half a cache line.
#[repr(align(32))]
struct WorkerSlot {
    /// `None` while its node is down.
    worker: Option<Worker>,
    /// Number of copies that were lost, halted or rescheduled.
    epoch: u32,
    count: u32,
}

const _: () =
    assert!(size_of::<ActorSlot>() == 32 && size_of::<WorkerSlot>() == 32, "two slots share a line");

/// The actors of all endpoints, and the workers, whose numbers follow those of the endpoints.
pub(super) struct Actors {
    slots: Vec<ActorSlot>,
    workers: Vec<WorkerSlot>,
    /// What a worker's step is given as its stream; workers draw nothing.
    unused: Rng,
}

impl Actors {
    /// Actors without machines.
    pub(super) fn new(endpoints: u32, workers: u32, seed: u64) -> Self {
        let rng = |actor| Rng::new(seed, actor, 0);
        let slot = |actor| ActorSlot { machine: None, rng: rng(actor), epoch: 0, count: 0 };
        let worker = |_| WorkerSlot { worker: None, epoch: 0, count: 0 };
        Self {
            slots: (0..endpoints).map(slot).collect(),
            workers: (0..workers).map(worker).collect(),
            unused: rng(endpoints),
        }
    }

    /// Number of actors.
    pub(super) const fn len(&self) -> usize {
        self.slots.len() + self.workers.len()
    }

    /// The index of a worker among the workers; `None` for another actor.
    #[inline]
    const fn worker(&self, actor: ActorId) -> Option<usize> {
        actor.index().checked_sub(self.slots.len())
    }

    /// The slot of an actor that is no worker.
    #[inline]
    pub(super) fn slot(&mut self, endpoint: ActorId) -> &mut ActorSlot {
        &mut self.slots[endpoint.index()]
    }

    /// Replaces a worker; `None` while its node is down.
    pub(super) fn set_worker(&mut self, core: u32, worker: Option<Worker>) {
        self.workers[core as usize].worker = worker;
    }

    /// Whether the actor has a machine.
    #[inline]
    pub(super) fn is_up(&self, actor: ActorId) -> bool {
        match self.worker(actor) {
            None => self.slots[actor.index()].machine.is_some(),
            Some(worker) => self.workers[worker].worker.is_some(),
        }
    }

    /// The machine of an actor that is up, and its random stream.
    #[inline]
    pub(super) fn machine(&mut self, actor: ActorId) -> Option<(&mut dyn Machine, &mut Rng)> {
        match self.worker(actor) {
            None => {
                let ActorSlot { machine, rng, .. } = &mut self.slots[actor.index()];
                Some((&mut **machine.as_mut()?, rng))
            }
            Some(worker) => Some((self.workers[worker].worker.as_mut()?, &mut self.unused)),
        }
    }

    /// Number of crashes of an actor; for a worker, number of copies that were lost, halted or rescheduled. Timers and
    /// completions of an older epoch are void.
    #[inline]
    pub(super) fn epoch(&self, actor: ActorId) -> u32 {
        self.worker(actor)
            .map_or_else(|| self.slots[actor.index()].epoch, |worker| self.workers[worker].epoch)
    }

    /// Makes timers and completions of the actor void.
    pub(super) fn begin_epoch(&mut self, actor: ActorId) {
        *match self.worker(actor) {
            None => &mut self.slots[actor.index()].epoch,
            Some(worker) => &mut self.workers[worker].epoch,
        } += 1;
    }

    /// Counts one more event that an actor has caused.
    #[inline]
    pub(super) fn count_event(&mut self, source: ActorId) -> u32 {
        let count = match self.worker(source) {
            None => &mut self.slots[source.index()].count,
            Some(worker) => &mut self.workers[worker].count,
        };
        *count = count.wrapping_add(1);
        *count
    }

    /// Prefetches the slot of an actor.
    #[inline]
    pub(super) fn fetch(&self, actor: ActorId) {
        match self.worker(actor) {
            None => prefetch(&self.slots[actor.index()]),
            Some(worker) => prefetch(&self.workers[worker]),
        }
    }

    /// Prefetches the machine of an actor whose slot is in the cache.
    #[inline]
    pub(super) fn fetch_machine(&self, actor: ActorId) {
        if let Some(machine) = self.slots.get(actor.index()).and_then(|slot| slot.machine.as_ref()) {
            prefetch(&**machine);
        }
    }
}
