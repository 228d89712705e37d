//! A node of Hopper, which offers its free cores to the jobs in its queue.

use std::collections::BTreeMap;

use crate::base::{ActorId, JobId};
use crate::machine::{Effects, Input, Machine};
use crate::message::{Launch, Message, Offer, Probe, Row, SizedJob};
use crate::roles::NodeManager;

/// Reservations of a job in the queue of a node.
#[derive(Clone, Copy, Debug)]
struct HeldPlaces {
    from: ActorId,
    of: SizedJob,
    count: u32,
    repair: bool,
}

impl HeldPlaces {
    fn is(&self, from: ActorId, job: JobId, group: u32) -> bool {
        (self.from, self.of.job, self.of.group) == (from, job, group)
    }
}

/// A refusal of a core.
#[derive(Clone, Copy, Debug)]
struct CoreRefusal {
    /// The scheduler of both jobs.
    from: ActorId,
    /// The job that refused.
    by: JobId,
    /// The job that the refusal named, which is short of cores; `by` if there is none.
    named: JobId,
}

/// A core that is offered.
#[derive(Clone, Debug)]
struct OfferedCore {
    /// The reservation that the offer has taken from the queue.
    place: HeldPlaces,
    /// The refusals of this core by other jobs.
    refusals: Vec<CoreRefusal>,
}

/// A queue of reservations in front of a node manager, which runs the copies.
#[derive(Clone, Debug)]
pub(super) struct OfferingNode {
    cores: NodeManager,
    /// Number of refusals after which an offer cannot be refused.
    refusals: usize,
    queue: Vec<HeldPlaces>,
    offered: Vec<OfferedCore>,
}

impl OfferingNode {
    pub(super) const fn new(cores: NodeManager, refusals: u32) -> Self {
        Self { cores, refusals: refusals as usize, queue: Vec::new(), offered: Vec::new() }
    }

    /// Offers the free cores.
    fn offer_all(&mut self, fx: &mut Effects<'_>) {
        while self.has_free_core() && !self.queue.is_empty() {
            self.offer(Vec::new(), fx);
        }
    }

    fn has_free_core(&self) -> bool {
        self.cores.idle_cores() as usize > self.offered.len()
    }

    /// Offers a core after these refusals to the smallest job that has not refused it. After enough refusals the
    /// offer cannot be refused. It then goes to the smallest of these jobs that a refusal named as short of cores or,
    /// if there is none, to a sampled job.
    fn offer(&mut self, refusals: Vec<CoreRefusal>, fx: &mut Effects<'_>) {
        let may_refuse = refusals.len() < self.refusals;
        let suits = |HeldPlaces { from, of: SizedJob { job, .. }, .. }: &HeldPlaces| {
            let mut own = refusals.iter().filter(|refusal| refusal.from == *from);
            own.clone().all(|refusal| refusal.by != *job)
                && (may_refuse || own.any(|refusal| refusal.named == *job))
        };
        let others = (0..self.queue.len()).filter(|&at| suits(&self.queue[at]));
        let least = others.min_by_key(|&at| self.queue[at].of.size);
        let Some(at) = least.or_else(|| self.draw(fx)) else { return };
        self.queue[at].count -= 1;
        let place = HeldPlaces { count: 1, ..self.queue[at] };
        if self.queue[at].count == 0 {
            self.queue.remove(at);
        }
        let HeldPlaces { from, of: SizedJob { job, group, .. }, repair, .. } = place;
        self.offered.push(OfferedCore { place, refusals });
        let msg = match least {
            Some(_) if may_refuse => Message::from(Offer::Core { job, group, repair }),
            _ => Probe::Claim { job, group, repair }.into(),
        };
        fx.send_as(repair, from, msg);
    }

    /// Samples a job in proportion to the virtual sizes; returns the index of its oldest reservation.
    fn draw(&self, fx: &mut Effects<'_>) -> Option<usize> {
        let mut jobs = BTreeMap::new();
        for (at, HeldPlaces { from, of, .. }) in self.queue.iter().enumerate() {
            jobs.entry((from, of.job)).or_insert(at);
        }
        let size = |at: &usize| f64::from(self.queue[*at].of.size);
        let last = *jobs.values().next_back()?;
        let mut left = fx.rng().unit() * jobs.values().map(size).sum::<f64>();
        let drawn = jobs.into_values().find(|at| {
            left -= size(at);
            left < 0.0
        });
        Some(drawn.unwrap_or(last))
    }

    /// Sets the virtual size of a scheduler's job.
    fn resize(&mut self, by: ActorId, job: JobId, size: u32) {
        for places in self.queue.iter_mut().filter(|places| (places.from, places.of.job) == (by, job)) {
            places.of.size = size;
        }
    }

    /// Queues reservations, unless they are known: datagrams can be duplicated, and schedulers repeat reservations
    /// believed lost. The count is the total of the group's reservations on this node.
    fn reserve(&mut self, new: HeldPlaces) {
        let HeldPlaces { from, of: SizedJob { job, group, size }, .. } = new;
        self.resize(from, job, size);
        if let Some(known) = self.queue.iter_mut().find(|known| known.is(from, job, group)) {
            known.count = known.count.max(new.count);
        } else if new.repair || !self.offered.iter().any(|offered| offered.place.is(from, job, group)) {
            self.queue.push(new);
        }
    }

    /// Ends an offer that was answered or cannot be answered.
    fn settle(&mut self, from: ActorId, job: JobId, group: u32) -> Option<OfferedCore> {
        let at = self.offered.iter().position(|offered| offered.place.is(from, job, group))?;
        Some(self.offered.remove(at))
    }

    fn refused(&mut self, from: ActorId, by: SizedJob, smallest: SizedJob, fx: &mut Effects<'_>) {
        self.resize(from, by.job, by.size);
        if smallest != by {
            self.reserve(HeldPlaces { from, of: smallest, count: 1, repair: false });
        }
        let Some(OfferedCore { place, mut refusals }) = self.settle(from, by.job, by.group) else { return };
        match self.queue.iter_mut().find(|known| known.is(from, by.job, by.group)) {
            Some(known) => known.count = known.count.saturating_add(1),
            None => self.queue.push(HeldPlaces { of: by, ..place }),
        }
        refusals.push(CoreRefusal { from, by: by.job, named: smallest.job });
        self.offer_again(refusals, fx);
    }

    /// Offers a core once more, unless a task has arrived for it meanwhile.
    fn offer_again(&mut self, refusals: Vec<CoreRefusal>, fx: &mut Effects<'_>) {
        if self.has_free_core() {
            self.offer(refusals, fx);
        }
    }

    fn deliver(&mut self, from: ActorId, msg: Message, fx: &mut Effects<'_>) {
        match msg {
            Message::Offer(Offer::Reserve { of, count, repair }) => {
                self.reserve(HeldPlaces { from, of, count, repair });
            }
            // A copy is accepted even if its offer was given up meanwhile, since it must not be lost.
            Message::Offer(Offer::Grant { copy, group, size }) => {
                self.resize(from, copy.task.job, size);
                self.settle(from, copy.task.job, group);
                self.cores.step(Input::Deliver { from, msg: Launch::Row(Row::single(copy)).into() }, fx);
            }
            Message::Offer(Offer::Refuse { job, smallest }) => self.refused(from, job, smallest, fx),
            Message::Probe(Probe::Nothing { job, group }) => {
                if let Some(OfferedCore { refusals, .. }) = self.settle(from, job, group) {
                    self.offer_again(refusals, fx);
                }
            }
            Message::Probe(Probe::Cancel { job, group }) => {
                self.queue.retain(|places| !places.is(from, job, group));
            }
            Message::Offer(Offer::Core { .. }) | Message::Probe(_) => fx.unexpected(&msg),
            _ => self.cores.step(Input::Deliver { from, msg }, fx),
        }
    }
}

impl Machine for OfferingNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => self.deliver(from, msg, fx),
            Input::Undelivered {
                to,
                msg:
                    Message::Offer(Offer::Core { job, group, .. })
                    | Message::Probe(Probe::Claim { job, group, .. }),
            } => {
                self.settle(to, job, group);
            }
            _ => {
                if let Input::Down { actor } = input {
                    self.queue.retain(|places| places.from != actor);
                    self.offered.retain(|offered| offered.place.from != actor);
                }
                self.cores.step(input, fx);
            }
        }
        self.offer_all(fx);
    }
}
