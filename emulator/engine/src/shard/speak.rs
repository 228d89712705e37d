//! Messages on their way: to the same node, over the network, to everybody.

use volary_actors::base::{ActorId, Span};
use volary_actors::machine::Input;
use volary_actors::message::{KINDS, Message};
use volary_netem::Verdict;

use super::event_loop::{Event, What};
use super::{Observer, Shard, order};
use crate::parcel::Parcel;

impl<O: Observer> Shard<'_, O> {
    /// Delivers a message on the same node at once; one to an actor that is down comes back.
    pub(super) fn say(&mut self, me: ActorId, to: ActorId, msg: Message) {
        let input = Input::Deliver { from: me, msg };
        if self.residents[to.index()].machine.is_none() {
            self.lane.push_back((me, Input::Undelivered { to, msg }));
        } else if self.parts.layout.endpoint(me) != self.parts.layout.endpoint(to)
            && let Some(at) = self.resumes(to)
        {
            // A client and its scheduler share a machine, but each can stall by itself.
            self.push(at, me, Event { to, stamp: 0, what: What::Input(input) });
        } else {
            self.lane.push_back((to, input));
        }
    }

    pub(super) fn send(&mut self, me: ActorId, to: ActorId, msg: Message, recovery: bool) {
        let kind = msg.kind();
        let class = KINDS[kind as usize].1;
        let counts = !msg.is_fragment();
        self.traffic.by_kind[kind as usize] += u64::from(counts);
        self.traffic.recovery += u64::from(recovery && counts);
        let layout = self.parts.layout;
        let (src, dst) = (layout.endpoint(me), layout.endpoint(to));
        match self.parts.fabric.route(self.now, src, dst, class, msg.wire_bytes()) {
            Verdict::Deliver { after, retransmissions } => {
                self.traffic.retransmissions += if counts { retransmissions.into() } else { 0 };
                self.deliver(me, to, msg, after);
            }
            Verdict::Twice { after, again } => {
                self.deliver(me, to, msg, after);
                self.deliver(me, to, msg, again);
            }
            Verdict::Drop(_) => self.traffic.dropped += u64::from(counts),
            Verdict::Unreachable { after, .. } => {
                self.traffic.dropped += u64::from(counts);
                let what = What::Input(Input::Undelivered { to, msg });
                self.push(
                    self.now + after,
                    me,
                    Event { to: me, stamp: self.residents[me.index()].epoch, what },
                );
            }
        }
    }

    /// Puts a message on its way: into the queue, or to the shard that owns its receiver.
    #[inline]
    fn deliver(&mut self, me: ActorId, to: ActorId, msg: Message, after: Span) {
        if self.parts.placement.owns(self.parts.layout.endpoint(to).index()) {
            let event =
                Event { to, stamp: order::asked(after), what: What::Input(Input::Deliver { from: me, msg }) };
            self.push(self.now + after, me, event);
        } else {
            // Later than its cause, whatever the clocks: whoever merges two shards' notes relies on it.
            let due = self.now + after.max(Span(1));
            let count = self.count(me);
            let parcel = Parcel { sent: self.now, due, from: me, count, to, msg, returned: false };
            self.outbox.put(self.home(to), parcel);
        }
    }

    /// Sends a message to every other scheduler: as one event, if the network treats them all alike.
    pub(super) fn announce(&mut self, me: ActorId, msg: Message) {
        let layout = self.parts.layout;
        let common = if self.parts.shared { self.parts.fabric.common_delay() } else { None };
        let Some(after) = common else {
            for to in (0..layout.schedulers()).map(|i| layout.scheduler(i)).filter(|&to| to != me) {
                self.send(me, to, msg, false);
            }
            return;
        };
        let count = u64::from(layout.schedulers() - u32::from(self.board.is_reader(me)));
        let kind = msg.kind();
        self.traffic.by_kind[kind as usize] += if msg.is_fragment() { 0 } else { count };
        self.parts.fabric.told(KINDS[kind as usize].1, count, after);
        if count > 0 {
            self.push(self.now + after, me, Event { to: me, stamp: 0, what: What::Told(msg) });
        }
    }
}
