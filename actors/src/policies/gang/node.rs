//! The node manager of gang scheduling: each core runs the copy that the scheduler orders and suspends the one before.

use std::collections::BTreeSet;

use crate::base::{ActorId, CopyId, JobId, Span};
use crate::layout::Role;
use crate::machine::{Effects, Input, Machine};
use crate::message::{Contention, Core, Launch, Message, Slice, SliceWork};

/// A core of a gang-scheduled node.
#[derive(Clone, Debug, Default)]
struct GangCore {
    running: Option<CopyId>,
    /// The scheduler whose copies the core runs; `None` before its first order.
    owner: Option<ActorId>,
    suspended: Vec<(CopyId, Span)>,
    /// Finished copies of open jobs, whose completion the scheduler may not have received; repeated orders for them are
    /// ignored.
    ended: BTreeSet<CopyId>,
    /// Epoch and number of the last order.
    last: (u16, u32),
}

impl GangCore {
    /// Forgets the finished copies of jobs before `open`. Delayed orders for them are stale and ignored.
    fn forget_before(&mut self, open: JobId) {
        while self.ended.first().is_some_and(|copy| copy.task.job < open) {
            self.ended.pop_first();
        }
    }
}

/// The node manager of gang scheduling.
pub(super) struct GangNode {
    slots: Box<[GangCore]>,
    /// Whether it has crashed before, so that it may have run copies that it does not know.
    restarted: bool,
}

impl GangNode {
    pub(super) fn new(cores: u32) -> Self {
        Self { slots: vec![GangCore::default(); cores as usize].into(), restarted: false }
    }

    fn switch(
        &mut self,
        from: ActorId,
        core: u16,
        work: SliceWork,
        order: (u16, u32),
        open: JobId,
        fx: &mut Effects<'_>,
    ) {
        let Role::Node(node) = fx.layout().role(fx.me()) else { return };
        let worker = fx.layout().worker(node, u32::from(core));
        let slot = &mut self.slots[core as usize];
        // Orders can overtake each other: an older one is void, and so is its first open job, because earlier jobs may
        // have been opened again since.
        if order >= slot.last {
            slot.forget_before(open);
        }
        if order < slot.last || slot.running == work.copy() {
            slot.last = slot.last.max(order);
            return;
        }
        slot.last = order;
        slot.owner = Some(from);
        if let Some(running) = slot.running.take() {
            fx.send(worker, Core::Suspend { copy: running });
        }
        let Some(copy) = work.copy().filter(|copy| !slot.ended.contains(copy)) else { return };
        match slot.suspended.iter().position(|(c, _)| *c == copy) {
            Some(i) => {
                let (_, left) = slot.suspended.swap_remove(i);
                fx.send(worker, Core::Resume { copy, left });
            }
            // The scheduler does not know of the crash yet.
            None if self.restarted && matches!(work, SliceWork::GoOn(_)) => {
                return fx.recover(from, lost(copy));
            }
            None => fx.send(worker, Core::run(copy)),
        }
        slot.running = Some(copy);
    }

    fn ended(&mut self, worker: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let Role::Worker { core, .. } = fx.layout().role(worker) else { return };
        let slot = &mut self.slots[core as usize];
        slot.running = None;
        slot.ended.insert(copy);
        if let Some(owner) = slot.owner {
            fx.send(owner, Launch::Completed { copy });
        }
    }
}

/// Reports a lost copy to the scheduler.
fn lost(copy: CopyId) -> Contention {
    Contention::Evicted { copy, age_ms: 0, alone: false }
}

impl Machine for GangNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Gang(Slice::Switch { core, work, epoch, order, open }) => {
                    self.switch(from, core, work, (epoch, order), open, fx);
                }
                Message::Core(Core::Ended { copy }) => self.ended(from, copy, fx),
                Message::Core(Core::Suspended { copy, left }) => {
                    if let Role::Worker { core, .. } = fx.layout().role(from) {
                        self.slots[core as usize].suspended.push((copy, left));
                    }
                }
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg: Message::Launch(Launch::Completed { copy }) } => {
                fx.recover(to, Launch::Completed { copy });
            }
            Input::Undelivered { to, msg: Message::Contention(Contention::Evicted { copy, .. }) } => {
                fx.recover(to, lost(copy));
            }
            Input::Start { epoch } => self.restarted = epoch > 0,
            Input::Down { actor } => {
                let Role::Node(node) = fx.layout().role(fx.me()) else { return };
                for (core, slot) in self.slots.iter_mut().enumerate() {
                    if slot.owner == Some(actor) {
                        if let Some(copy) = slot.running {
                            fx.send(fx.layout().worker(node, core as u32), Core::Stop { copy });
                        }
                        // Orders of the dead scheduler that are still under way are void, also those with a higher
                        // number than the last one received: their copies are forgotten here.
                        *slot = GangCore { last: (slot.last.0, u32::MAX), ..GangCore::default() };
                    }
                }
            }
            // A restarted scheduler needs no action; no other message leaves the node; no timer is armed; the other
            // inputs are a worker's.
            _ => {}
        }
    }
}
