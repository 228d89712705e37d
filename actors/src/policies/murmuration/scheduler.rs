//! The scheduler: its state, and its reactions to inputs.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::cache::Cache;
use super::config::Murmuration;
use super::disseminator::Disseminator;
use super::timers::{ANSWER, ASK, DECIDE, SPREAD};
use crate::base::{ActorId, CopyId, JobId, Time};
use crate::machine::{Effects, Timer};
use crate::message::{Gossip, Launch, Message};
use crate::policies::policy::BuildContext;
use crate::roles::dispatcher::{DispatchRule, OpenTasks};

/// A job waiting to be placed: its estimated work that is left to place (zero if jobs are not ordered by it), arrival,
/// number, and the number of its tasks for which a decision was made. The least comes first.
pub(super) type Queued = Reverse<(u64, Time, JobId, u32)>;

/// A scheduler of Murmuration.
#[derive(Clone, Debug)]
pub(super) struct MurmurationRule {
    pub(super) config: Murmuration,
    pub(super) cache: Cache,
    pub(super) disseminator: Disseminator,
    pub(super) queue: BinaryHeap<Queued>,
    /// The job being placed, and the number of its tasks for which a decision was made.
    pub(super) busy: Option<(JobId, u32)>,
    /// Nodes and times of the placements that have not been announced yet.
    pub(super) unannounced: Vec<(u32, Time)>,
    /// Copies for which a decision was made while no node could be reached.
    pub(super) stranded: BTreeSet<CopyId>,
    /// Messages that wait until the placement of a job, or the copying of a cache, has ended.
    pub(super) inbox: Vec<(ActorId, Gossip)>,
    /// The pending request for a cache; `None` if the scheduler has a cache.
    pub(super) request: Option<CacheRequest>,
    /// Delayed copies of the cache for others: due time, receiver, the receiver's epoch, parts.
    pub(super) to_send: Vec<(Time, ActorId, u32, Vec<Gossip>)>,
}

/// A request of a restarted scheduler for the cache of another.
#[derive(Clone, Debug)]
pub(super) struct CacheRequest {
    /// The epoch of this scheduler; answers to an earlier epoch are ignored.
    pub(super) epoch: u32,
    /// Schedulers not asked yet; the next ones are at the end.
    pub(super) left: Vec<ActorId>,
    /// Partly received answers: sender, number of parts if announced, parts received.
    pub(super) received: Vec<(ActorId, Option<u32>, Vec<Gossip>)>,
}

impl MurmurationRule {
    pub(super) fn new(config: &Murmuration, context: BuildContext<'_>) -> Self {
        Self {
            config: config.clone(),
            cache: Cache::new(config, context),
            disseminator: Disseminator::new(config, context),
            queue: BinaryHeap::new(),
            busy: None,
            unannounced: Vec::new(),
            stranded: BTreeSet::new(),
            inbox: Vec::new(),
            request: None,
            to_send: Vec::new(),
        }
    }

    /// Handles the messages that arrived while a job was placed. Requests for the cache wait for the end of a job,
    /// because a copy of the cache would contain placements that are not announced yet.
    pub(super) fn read_inbox(&mut self, fx: &mut Effects<'_>) {
        for (from, update) in std::mem::take(&mut self.inbox) {
            if self.busy.is_some() && matches!(update, Gossip::Ask { .. }) {
                self.inbox.push((from, update));
            } else {
                self.handle(from, update, fx);
            }
        }
    }

    #[inline]
    fn handle(&mut self, from: ActorId, gossip: Gossip, fx: &mut Effects<'_>) {
        match gossip {
            Gossip::Placed(_) | Gossip::Ended(_) | Gossip::EndedRumour(_) => {
                if self.request.is_some() {
                    self.inbox.push((from, gossip));
                } else if self.cache.receive(gossip, fx) && gossip.is_rumour() {
                    self.disseminator.sample(gossip, from, false, fx);
                }
            }
            Gossip::Backlog(report) => {
                if self.request.is_none() {
                    self.cache.backlog(fx.layout().node_number(from), report, fx);
                }
            }
            Gossip::Ask { epoch } => self.answer(from, epoch, fx),
            Gossip::Answer { epoch, .. } | Gossip::Entry { epoch, .. } | Gossip::Heard { epoch, .. } => {
                self.copied(from, epoch, gossip, fx);
            }
        }
    }
}

impl DispatchRule for MurmurationRule {
    fn started(&mut self, epoch: u32, fx: &mut Effects<'_>) {
        self.disseminator.begin(epoch);
        // At the first start nothing has been placed.
        if epoch > 0 {
            self.request(epoch, fx);
        }
    }

    fn submitted(&mut self, first: CopyId, _: u32, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.queue.push(self.queued(first.task.job, 0, fx));
    }

    fn ready(&mut self, copy: CopyId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.place(copy, true, tasks, fx);
    }

    fn settle(&mut self, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.place_stranded(tasks, fx);
        self.schedule(tasks, fx);
    }

    fn crashed(&mut self, node: ActorId, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.renew(fx.layout().node_number(node), false, fx);
    }

    fn back(&mut self, node: ActorId, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.renew(fx.layout().node_number(node), true, fx);
    }

    fn peer(&mut self, actor: ActorId, up: bool, fx: &mut Effects<'_>) {
        self.disseminator.peer(actor, up, fx);
    }

    fn reach(&mut self, node: ActorId, can: bool, fx: &mut Effects<'_>) -> bool {
        let (waits, node) = (&mut self.cache.waits, fx.layout().node_number(node));
        let changes = waits.reaches(node) != can;
        waits.reach(node, can);
        changes
    }

    #[inline]
    fn receive(&mut self, from: ActorId, msg: &Message, _: &mut OpenTasks, fx: &mut Effects<'_>) -> bool {
        let Message::Gossip(gossip) = *msg else { return false };
        if self.busy.is_some() {
            self.inbox.push((from, gossip));
        } else {
            self.handle(from, gossip, fx);
        }
        true
    }

    fn returned(&mut self, to: ActorId, msg: Message, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        match msg {
            Message::Gossip(update) => self.disseminator.undelivered(to, update, fx),
            Message::Launch(Launch::Task { copy, at }) => self.withdraw(to, copy, at, tasks, fx),
            _ => {}
        }
    }

    fn fire(&mut self, timer: Timer, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        match timer {
            DECIDE => self.decide(tasks, fx),
            SPREAD => self.disseminator.due(fx),
            ASK => self.ask(fx),
            ANSWER => self.send_answers(fx),
            _ => {}
        }
    }
}
