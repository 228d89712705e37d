//! Copies on cores: begun, stopped, asked how far they are.

use volary_actors::base::{ActorId, CopyId, Score, Span, Time};
use volary_actors::machine::Input;

use super::{Event, Observer, Shard, What};

impl<O: Observer> Shard<'_, O> {
    pub(super) fn run(&mut self, me: ActorId, copy: CopyId, left: Option<Span>) {
        let core = self.parts.layout.core_index(me);
        let work = left.unwrap_or_else(|| self.parts.workload.work(copy));
        let end = self.parts.cores.start(core, self.now, work);
        // One that never ends waits for somebody to halt it.
        if end < Time::MAX {
            let stamp = self.residents[me.index()].epoch;
            self.push(end, me, Event { to: me, stamp, what: What::Input(Input::Done { copy }) });
        }
    }

    pub(super) fn halt(&mut self, me: ActorId, copy: CopyId) {
        let core = self.parts.layout.core_index(me);
        let left = self.parts.cores.preempt(core, self.now);
        self.residents[me.index()].epoch += 1;
        // Before anything else is said to this core: it may be given new work in the same step.
        self.lane.push_front((me, Input::Halted { copy, left }));
    }

    pub(super) fn gauge(&mut self, me: ActorId, copy: CopyId) {
        let left = self.parts.cores.left(self.parts.layout.core_index(me), self.now);
        let score = Score::of(self.parts.workload.work(copy), left);
        self.lane.push_front((me, Input::Gauged { copy, score }));
    }
}
