//! Inputs of actors that take time for messages: queued, begun and handled.

use volary_actors::base::{ActorId, Time};
use volary_actors::machine::{Input, Timer};

use super::event_loop::{Event, EventKind, Stamp};
use super::servers::end_of;
use super::{Observer, Shard};

impl<O: Observer> Shard<'_, O> {
    /// Delivers an input to an actor: at once or, if its inputs take time, once this input and those before it are
    /// handled.
    pub(super) fn handle_or_queue(&mut self, to: ActorId, input: Input) {
        if !self.queue_at_server(to, input) {
            self.dispatch(to, input);
        }
    }

    /// Queues an input at the server of its actor. Returns whether it has to wait or takes time.
    pub(super) fn queue_at_server(&mut self, to: ActorId, input: Input) -> bool {
        let Some(servers) = &mut self.servers else { return false };
        let kind = match &input {
            // Fragments take no time: the whole message does.
            Input::Deliver { msg, .. } => (!msg.is_fragment()).then(|| msg.kind()),
            // A scheduler's decision at the end of an instant is part of handling the messages of this instant.
            Input::Fire(Timer::Settled) => return false,
            Input::Undelivered { .. } | Input::Fire(_) | Input::Down { .. } | Input::Up { .. } => None,
            Input::Start { .. }
            | Input::Done { .. }
            | Input::Halted { .. }
            | Input::Progress { .. }
            | Input::Usage { .. } => return false,
        };
        if !servers.arrive(self.now, to, input, kind, self.parts.layout) {
            return false;
        }
        if servers.is_first(to) {
            self.begin_handling(to);
        }
        true
    }

    /// Begins the first input in the queue of an actor, if there is one.
    fn begin_handling(&mut self, actor: ActorId) {
        let Self { servers: Some(servers), parts, now, .. } = self else { return };
        let Some((work, node)) = servers.begin(*now, actor, parts.layout) else { return };
        let pauses = parts.fabric.faults().pauses(parts.layout.endpoint(actor));
        let end = match node {
            Some(node) => {
                let core = parts.layout.core_index(parts.layout.worker(node, 0));
                parts.cores.end_of(core, *now, work, pauses)
            }
            None => end_of(*now, work, pauses),
        };
        // If the processor never works again, the input is never handled.
        if end < Time::MAX {
            self.schedule_handled(end, actor);
        }
    }

    fn schedule_handled(&mut self, at: Time, actor: ActorId) {
        self.push(at, actor, Event { to: actor, stamp: self.epoch(actor), kind: EventKind::Handled });
    }

    /// Ends the handling of an actor's first input: delivers it, unless the actor has crashed since, and begins the
    /// next.
    pub(super) fn end_handling(&mut self, actor: ActorId, stamp: Stamp) {
        if self.epoch(actor) != stamp {
            return;
        }
        if let Some(at) = self.resumes_at(actor) {
            return self.schedule_handled(at, actor);
        }
        let now = self.now;
        if let Some(input) = self.servers.as_mut().and_then(|servers| servers.end(now, actor)) {
            self.dispatch(actor, input);
            self.begin_handling(actor);
        }
    }

    /// Drops the inputs that wait at an actor when it crashes, and counts the messages among them.
    pub(super) fn lose_queue(&mut self, actor: ActorId) {
        let Self { servers: Some(servers), parts, now, traffic, .. } = self else { return };
        for input in servers.crash(*now, actor) {
            if let Input::Deliver { from, msg } = input
                && !parts.layout.local(from, actor)
            {
                traffic.dropped += u64::from(!msg.is_fragment());
            }
        }
    }
}
