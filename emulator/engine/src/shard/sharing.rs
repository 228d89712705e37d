//! Copies on shared nodes: their shares of the CPU, the changes of their use, and reports of these to node managers.

use volary_actors::base::{ActorId, CopyId, Span, Time};
use volary_actors::catalog::Catalog as _;
use volary_actors::layout::Role;
use volary_actors::machine::Input;

use super::event_loop::{Event, EventKind, Stamp};
use super::{Observer, Shard};
use crate::cores::{Change, CoreSet, Next};

impl<O: Observer> Shard<'_, O> {
    /// Runs a copy on a core of a shared node. `left` is the work that it has yet to do; `None` starts it from the
    /// beginning.
    pub(super) fn start_shared_copy(&mut self, core: u32, copy: CopyId, work: Span, left: Option<Span>) {
        let left = left.unwrap_or(work);
        let workload = self.parts.workload;
        let segment = workload.segment(copy.task, work.saturating_sub(left));
        let request = u32::try_from(workload.request(copy.task.job).cpu).unwrap_or(u32::MAX);
        // The rest of a suspended copy can exceed its work here, if it is slower elsewhere.
        self.parts.cores.begin_shared(core, self.now, (work.max(left), left), request, segment);
        if let Some(copies) = &mut self.copies {
            copies[core as usize] = Some(copy);
        }
        self.plan_sharing(core);
    }

    /// Ends a segment of the copy of a worker. Ignored if the copy was stopped or retimed since.
    pub(super) fn end_segment(&mut self, worker: ActorId, stamp: Stamp) {
        if self.epoch(worker) != stamp {
            return;
        }
        let core = self.parts.layout.core_index(worker);
        let Some(copy) = self.copies.as_ref().and_then(|copies| copies[core as usize]) else { return };
        let workload = self.parts.workload;
        self.parts.cores.use_as(core, self.now, |done| workload.segment(copy.task, done));
        self.plan_sharing(core);
    }

    /// Plans to share out the CPU of a core's node after all that its workers do at this instant: use that changes at
    /// one instant is one change. Otherwise a node would evict for memory that its copies never use at the same time.
    pub(super) fn plan_sharing(&mut self, core: u32) {
        let layout = self.parts.layout;
        let node = layout.node_of_core(core);
        if !self.parts.cores.note_sharing(node) {
            // Events of one instant are ordered by source.
            let last = layout.worker(node, layout.cores(node) - 1);
            let event = Event { to: layout.node(node), stamp: Stamp::NONE, kind: EventKind::Share };
            self.push(self.now, last, event);
        }
    }

    /// Shares out the CPU of a node, schedules the next event of each copy whose rate changes, and reports the use of
    /// its copies to its manager.
    pub(super) fn share_out(&mut self, manager: ActorId) {
        let Role::Node(node) = self.parts.layout.role(manager) else { return };
        let Some(mut changes) = self.share_changes.take() else { return };
        self.parts.cores.share_out(node, self.now, &mut changes);
        for &Change { core, next, .. } in &changes {
            if let Some(next) = next {
                self.schedule_next(core, next);
            }
        }
        if self.parts.policy.traits().node_usage.is_some() {
            self.tell_usage(node, &changes);
        }
        changes.clear();
        self.share_changes = Some(changes);
    }

    /// Reports changes on a node to its manager.
    fn tell_usage(&mut self, node: u32, changes: &[Change]) {
        let (manager, first) = (self.parts.layout.node(node), self.parts.layout.worker(node, 0));
        let first = self.parts.layout.core_index(first);
        let mut left = changes.len();
        for &Change { core, demand, given, memory, .. } in changes {
            left -= 1;
            let Some(copy) = self.copies.as_ref().and_then(|copies| copies[core as usize]) else { continue };
            let input = Input::Usage { copy, core: core - first, demand, given, memory, last: left == 0 };
            self.dispatch_when_running(manager, manager, input);
        }
    }

    /// Recomputes when the copies of some cores end or enter their next segments, because interference has changed.
    pub(super) fn retime_shared(&mut self, cores: &CoreSet) {
        for core in cores.iter() {
            if let Some(next) = self.parts.cores.retime_shared(core) {
                self.schedule_next(core, next);
            }
        }
    }

    /// Queues the next event of the copy of a core. An earlier one becomes void.
    fn schedule_next(&mut self, core: u32, (next, at): (Next, u64)) {
        let worker = self.parts.layout.worker_of_core(core);
        self.actors[worker.index()].epoch += 1;
        let Some(copy) = self.copies.as_ref().and_then(|copies| copies[core as usize]) else { return };
        let at = Time(at);
        match next {
            Next::Done => self.schedule_completion(worker, copy, at),
            // A copy that is paused for ever has no further event.
            Next::Segment if at == Time::MAX => {}
            Next::Segment => {
                let stamp = self.epoch(worker);
                self.push(at, worker, Event { to: worker, stamp, kind: EventKind::Segment });
            }
        }
    }
}
