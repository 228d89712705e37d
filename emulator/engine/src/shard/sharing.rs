//! Copies on shared nodes: their shares of the CPU, the changes of their use, and what node managers are told of it.

use volary_actors::base::{ActorId, CopyId, Span, Time};
use volary_actors::catalog::Catalog as _;
use volary_actors::machine::Input;

use super::event_loop::{Event, EventKind, Stamp};
use super::{Observer, Shard};
use crate::cores::{Change, CoreSet, Next};

impl<O: Observer> Shard<'_, O> {
    /// Runs a copy on a core of a shared node, of which `left` is left; `None` starts it from the beginning.
    pub(super) fn start_shared_copy(&mut self, core: u32, copy: CopyId, work: Span, left: Option<Span>) {
        let left = left.unwrap_or(work);
        let workload = self.parts.workload;
        let segment = workload.segment(copy.task, work.saturating_sub(left));
        let request = u32::try_from(workload.request(copy.task.job).cpu).unwrap_or(u32::MAX);
        // What is left of a suspended copy can be more than the work here, if it is slower elsewhere.
        self.parts.cores.begin_shared(core, self.now, (work.max(left), left), request, segment);
        if let Some(copies) = &mut self.copies {
            copies[core as usize] = Some(copy);
        }
        self.share_out(core);
    }

    /// The use of the copy of a worker changes, or would have, before the copy was stopped or given another share.
    pub(super) fn end_segment(&mut self, worker: ActorId, stamp: Stamp) {
        if self.epoch(worker) != stamp {
            return;
        }
        let core = self.parts.layout.core_index(worker);
        let Some(copy) = self.copies.as_ref().and_then(|copies| copies[core as usize]) else { return };
        let segment = self.parts.workload.segment(copy.task, self.parts.cores.done(core, self.now));
        self.parts.cores.use_as(core, self.now, segment);
        self.share_out_and_tell(core);
    }

    /// Shares out the CPU of a core's node, outside of a step.
    pub(super) fn share_out_and_tell(&mut self, core: u32) {
        self.share_out(core);
        while let Some((to, input)) = self.local_queue.pop_front() {
            self.dispatch_when_running(to, to, input);
        }
    }

    /// Shares out the CPU of a core's node anew: copies of it end or come to another use at other times.
    pub(super) fn share_out(&mut self, core: u32) {
        let Some(mut changes) = self.shared.take() else { return };
        let told = self.parts.policy.usage();
        let node = self.parts.layout.node_of_core(core);
        self.parts.cores.share_out(node, self.now, &mut changes);
        for Change { core, next, demand, given, memory } in changes.drain(..) {
            if let Some(next) = next {
                self.schedule_next(core, next);
            }
            let copy = self.copies.as_ref().and_then(|copies| copies[core as usize]);
            if let (true, Some(copy)) = (told, copy) {
                let core = core - self.parts.layout.core_index(self.parts.layout.worker(node, 0));
                let input = Input::Usage { copy, core, demand, given, memory };
                self.local_queue.push_back((self.parts.layout.node(node), input));
            }
        }
        self.shared = Some(changes);
    }

    /// Recomputes when the copies of some cores end or come to another use, because interference has changed.
    pub(super) fn retime_shared(&mut self, cores: &CoreSet) {
        for core in cores.iter() {
            if let Some(next) = self.parts.cores.retime_shared(core) {
                self.schedule_next(core, next);
            }
        }
    }

    /// Queues what the copy of a core comes to next. What was queued for it before becomes void.
    fn schedule_next(&mut self, core: u32, (next, at): (Next, u64)) {
        let worker = self.parts.layout.worker_of_core(core);
        self.actors[worker.index()].epoch += 1;
        let Some(copy) = self.copies.as_ref().and_then(|copies| copies[core as usize]) else { return };
        let at = Time(at);
        match next {
            Next::Done => self.schedule_completion(worker, copy, at),
            // A copy that is paused for ever comes to nothing more.
            Next::Segment if at == Time::MAX => {}
            Next::Segment => {
                let stamp = self.epoch(worker);
                self.push(at, worker, Event { to: worker, stamp, kind: EventKind::Segment });
            }
        }
    }
}
