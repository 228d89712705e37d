//! The I/O of a shard on an agent: links to the other hosts, and the control stream to the controller.

use std::io;
use std::rc::Rc;

use tokio::sync::mpsc;
use volary_actors::base::{Class, Time};
use volary_engine::parcel::{Observation, Parcel};
use volary_engine::shard::Shard;
use volary_experiment::storage::input_log::Carried;

use super::context::RunContext;
use super::injections::ShardInjections;
use crate::cluster::net::Link;
use crate::cluster::net::link::SendError;
use crate::cluster::protocol::{AgentMessage, Datagrams};
use crate::real_time::event_loop::{RealTimeObserver, ShardIo};
use crate::real_time::sample::ShardSampler;

/// Messages to the controller that may wait; a shard with more to report waits.
pub(super) const SEND_QUEUE: usize = 64;
/// Bytes that may wait for one other host; with half of it the shard waits.
pub(super) const LINK_QUEUE: usize = 8 << 20;
/// Frames of logged inputs that may wait; with more the shard waits.
const INPUT_QUEUE: usize = 64;

/// The [`ShardIo`] of a shard on an agent.
pub(super) struct QuicIo {
    context: Rc<RunContext>,
    /// Links to the other hosts, by shard; none to itself.
    links: Vec<Option<Link>>,
    messages: mpsc::Sender<AgentMessage>,
    /// Observations that `messages` had no room for.
    waiting: Vec<Observation>,
    /// Logged inputs on their way to the controller, if they are logged.
    inputs: Option<Carried>,
    /// The progress of this shard.
    progress: Time,
    /// Maximum number of waiting events.
    max_events: usize,
    sampler: ShardSampler,
    pub(super) injections: ShardInjections,
}

impl QuicIo {
    pub(super) fn new(
        context: Rc<RunContext>,
        links: Vec<Option<Link>>,
        messages: mpsc::Sender<AgentMessage>,
        inputs: Option<Carried>,
        max_events: usize,
        injections: ShardInjections,
    ) -> Self {
        let (waiting, progress, sampler) = (Vec::new(), Time::ZERO, ShardSampler::new(true));
        Self { context, links, messages, waiting, inputs, progress, max_events, sampler, injections }
    }

    /// The next message that had to wait for room.
    pub(super) fn next_waiting(&mut self) -> Option<AgentMessage> {
        let notes = std::mem::take(&mut self.waiting);
        match notes.last() {
            Some(last) => Some(AgentMessage::Notes { mark: last.at, notes, progress: self.progress }),
            None => self.inputs.as_ref()?.next().map(AgentMessage::Inputs),
        }
    }

    /// Real datagrams to and from every host, by shard.
    pub(super) fn datagrams(&self) -> Vec<Datagrams> {
        let of =
            |link: &Option<Link>| link.as_ref().map(|link| Datagrams::of(&link.stats())).unwrap_or_default();
        self.links.iter().map(of).collect()
    }

    /// Closes all links.
    pub(super) fn close(&self) {
        self.links.iter().flatten().for_each(|link| link.close("the run is over"));
    }

    /// Sends logged inputs while the queue is half empty: reports and pings have the other half.
    fn send_inputs(&self) {
        let Some(inputs) = &self.inputs else { return };
        while self.messages.capacity() > SEND_QUEUE / 2
            && let Ok(place) = self.messages.try_reserve()
            && let Some(frame) = inputs.next()
        {
            place.send(AgentMessage::Inputs(frame));
        }
    }
}

impl ShardIo for QuicIo {
    fn send(&mut self, to: u16, class: Class, parcels: &mut Vec<Parcel>) {
        match self.links.get(to as usize).and_then(Option::as_ref).map(|link| link.send(parcels, class)) {
            // The parcels stay in the caller's queue, and the shard waits.
            Some(Err(SendError::Full { .. })) => {}
            // The receiving side of the link reports its end.
            Some(Ok(()) | Err(SendError::Ended(_))) | None => parcels.clear(),
        }
    }

    fn report(&mut self, notes: Vec<Observation>, mark: Time) {
        self.waiting.extend(notes);
        if let Ok(place) = self.messages.try_reserve() {
            let notes = std::mem::take(&mut self.waiting);
            place.send(AgentMessage::Notes { notes, mark, progress: self.progress });
        }
        self.send_inputs();
    }

    /// Keeps the lateness for `volary status`. Sends the sample, unless the queue is half full: the next one supersedes
    /// it.
    fn look(&mut self, shard: &Shard<'_, RealTimeObserver>) {
        let Some(sample) = self.sampler.sample(shard) else { return };
        self.context.set_lateness(sample.deliveries);
        if self.messages.capacity() > SEND_QUEUE / 2 {
            let _ = self.messages.try_send(AgentMessage::Sample(Box::new(sample)));
        }
    }

    fn progress(&mut self, mine: Time) -> Time {
        self.progress = mine;
        self.context.reached.set(mine);
        self.context.slowest.get()
    }

    fn check_backlog(&self, events: usize) -> io::Result<()> {
        if events <= self.max_events {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "more than {} events wait here: use more hosts, or start the agent with a larger --events if it has \
             the memory",
            self.max_events
        )))
    }

    fn stopped(&self) -> bool {
        self.context.stopped.get()
    }

    /// Carries out orders while the queue has room for the reports.
    fn change_profiles(&mut self, now: Time, shard: &mut Shard<'_, RealTimeObserver>) {
        while self.messages.capacity() > 0
            && let Some(order) = self.injections.expired(now).or_else(|| self.context.next_order())
        {
            let report = self.injections.carry_out(order, now, shard);
            // Fails only if the controller is gone.
            report.into_iter().for_each(|report| drop(self.messages.try_send(report)));
        }
    }

    fn congested(&self) -> bool {
        !self.waiting.is_empty() && self.messages.capacity() == 0
            || self.inputs.as_ref().is_some_and(|inputs| inputs.waiting() > INPUT_QUEUE)
            || self.links.iter().flatten().any(|link| link.waiting() > LINK_QUEUE / 2)
    }
}
