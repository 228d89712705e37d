//! What the tasks of an agent share during a unit, and how its shard speaks to the others.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Notify, mpsc};
use volary_actors::base::{Class, Time};

use crate::cluster::net::Link;
use crate::cluster::net::clock_offset::{OffsetEstimator, RoundTrip};
use crate::cluster::net::link::SendError;
use crate::cluster::protocol::{AgentMessage, Datagrams};
use crate::parcel::{Observation, Parcel};
use crate::results::ClockError;
use crate::runtime::live::clock::{Clock, MonotonicClock};
use crate::runtime::live::event_loop::{Inbox, ProfileChange, ShardIo};
use crate::storage::input_log::Carried;

/// Reports on their way to the controller at most; a shard that has more to say waits.
pub(crate) const WORDS: usize = 64;
/// Bytes that may wait for one other host; with half of it the shard waits.
pub(crate) const QUEUE: usize = 8 << 20;
/// Frames of logged inputs that may wait; with more the shard waits.
const INPUTS: usize = 64;
/// Samples of the controller's clock that are looked at.
const SAMPLES: usize = 64;
/// How much faster one machine's clock may run than another's, in parts per million: time services slew each by
/// up to 500.
const DRIFT_PPM: f64 = 1000.0;

/// What the tasks of a unit share.
pub(crate) struct CellContext {
    pub(crate) inbox: Inbox,
    /// How far this host has come, ns: for whoever judges what comes in.
    pub(crate) now: Arc<AtomicU64>,
    pub(crate) stop: Cell<bool>,
    /// How far the slowest host has come.
    pub(crate) slowest: Cell<Time>,
    /// The controller's start signal, on its clock.
    pub(crate) start: Cell<Option<i64>>,
    /// Rung when `start` or `stop` is set.
    pub(crate) bell: Notify,
    ticks: MonotonicClock,
    estimator: RefCell<OffsetEstimator>,
    answers: Cell<u32>,
    /// The largest error bound during the run, ns.
    worst: Cell<i64>,
    /// What a task of the unit said when it panicked.
    bug: RefCell<Option<String>>,
    /// Changes of interference that the shard is to make; none once it takes no more.
    changes: RefCell<Option<VecDeque<ProfileChange>>>,
}

impl CellContext {
    pub(crate) fn new(ticks: MonotonicClock) -> Self {
        Self {
            inbox: Inbox::default(),
            now: Arc::default(),
            stop: Cell::new(false),
            slowest: Cell::new(Time::ZERO),
            start: Cell::new(None),
            bell: Notify::new(),
            ticks,
            estimator: RefCell::new(OffsetEstimator::new(SAMPLES, DRIFT_PPM)),
            answers: Cell::new(0),
            worst: Cell::new(0),
            bug: RefCell::default(),
            changes: RefCell::new(Some(VecDeque::new())),
        }
    }

    /// Has the shard make a change. Where it takes no more, whoever waits for it hears that at once.
    pub(crate) fn change(&self, change: ProfileChange) {
        if let Some(changes) = &mut *self.changes.borrow_mut() {
            changes.push_back(change);
            self.inbox.wake();
        }
    }

    /// The shard makes no more changes.
    pub(crate) fn settle(&self) {
        *self.changes.borrow_mut() = None;
    }

    /// Ends the unit, wherever it is.
    pub(crate) fn halt(&self) {
        self.stop.set(true);
        self.bell.notify_waiters();
        self.inbox.wake();
    }

    /// Ends the unit because one of its tasks panicked.
    pub(crate) fn fail(&self, bug: String) {
        tracing::error!("{bug}");
        self.bug.borrow_mut().get_or_insert(bug);
        self.halt();
    }

    /// Whether no task of the unit has panicked.
    pub(crate) fn sound(&self) -> Result<(), String> {
        self.bug.borrow().clone().map_or(Ok(()), Err)
    }

    /// Why the unit was ended before it began.
    pub(crate) fn reason(&self) -> String {
        self.sound().err().unwrap_or_else(|| "the controller has called it off".to_owned())
    }

    /// The controller has said when to begin.
    pub(crate) fn begin(&self, at: i64) {
        self.start.set(Some(at));
        self.bell.notify_waiters();
    }

    /// Waits for the word to begin.
    pub(crate) async fn begun(&self) {
        self.until(|| self.start.get().is_some()).await;
    }

    /// Waits for the end of the unit.
    pub(crate) async fn halted(&self) {
        self.until(|| self.stop.get()).await;
    }

    /// Waits until so many pings were answered; returns how wrong the clock can be, ns.
    pub(crate) async fn known(&self, pings: u32) -> i64 {
        self.until(|| self.answers.get() >= pings).await;
        self.offset().map_or(0, |(_, bound)| bound)
    }

    async fn until(&self, done: impl Fn() -> bool) {
        loop {
            let bell = self.bell.notified();
            if done() {
                return;
            }
            bell.await;
        }
    }

    /// The controller answered a ping.
    pub(crate) fn pong(&self, sent: i64, here: i64) {
        let whole = |ns: i64| ns.max(0).cast_unsigned();
        let sample = RoundTrip { sent: whole(sent), remote: whole(here), received: whole(self.ticks.now()) };
        if self.estimator.borrow_mut().add(sample) {
            self.answers.set(self.answers.get() + 1);
            self.bell.notify_waiters();
        }
    }

    /// How far this clock is ahead of the controller's, and how wrong that can be, ns; `None` before the first
    /// answer.
    fn offset(&self) -> Option<(i64, i64)> {
        let offset = self.estimator.borrow().at(self.ticks.now().max(0).cast_unsigned())?;
        Some((-offset.offset, offset.bound.cast_signed()))
    }

    /// Sets the clock by what is known of the controller's.
    pub(crate) fn adjust(&self, clock: &Clock) {
        if let (Some(start), Some((ahead, bound))) = (self.start.get(), self.offset()) {
            clock.set_start(start + ahead);
            self.worst.set(self.worst.get().max(bound));
        }
    }

    /// What is known of the clock at the end of a run: the bound is the largest of the run.
    pub(crate) fn clock_error(&self) -> ClockError {
        let (ahead, bound) = self.offset().unwrap_or_default();
        ClockError {
            offset_s: ahead as f64 * 1e-9,
            bound_s: bound.max(self.worst.get()) as f64 * 1e-9,
            drift_ppm: self.estimator.borrow().drift().map_or(0.0, |drift| -drift.ppm),
        }
    }
}

/// The [`ShardIo`] of a shard on a host.
pub(crate) struct QuicIo {
    context: Rc<CellContext>,
    /// Links to the other hosts, by shard; none to itself.
    links: Vec<Option<Link>>,
    words: mpsc::Sender<AgentMessage>,
    /// Reports that the channel had no room for.
    waiting: Vec<Observation>,
    /// Logged inputs on their way to the controller, if they are logged.
    inputs: Option<Carried>,
    mine: Time,
    /// Events that may wait at most.
    events: usize,
}

impl QuicIo {
    pub(crate) fn new(
        context: Rc<CellContext>,
        links: Vec<Option<Link>>,
        words: mpsc::Sender<AgentMessage>,
        inputs: Option<Carried>,
        events: usize,
    ) -> Self {
        Self { context, links, words, waiting: Vec::new(), inputs, mine: Time::ZERO, events }
    }

    /// The next of what there was no room for.
    pub(crate) fn rest(&mut self) -> Option<AgentMessage> {
        let notes = std::mem::take(&mut self.waiting);
        match notes.last() {
            Some(last) => Some(AgentMessage::Notes { mark: last.at, notes, progress: self.mine }),
            None => self.inputs.as_ref()?.next().map(AgentMessage::Inputs),
        }
    }

    /// What the links counted, by shard.
    pub(crate) fn links(&self) -> Vec<Datagrams> {
        let of =
            |link: &Option<Link>| link.as_ref().map(|link| Datagrams::of(&link.stats())).unwrap_or_default();
        self.links.iter().map(of).collect()
    }

    /// Ends all links.
    pub(crate) fn close(&self) {
        self.links.iter().flatten().for_each(|link| link.close("the run is over"));
    }

    /// Sends logged inputs on while the channel is half empty: notes and pings have the other half.
    fn carry(&self) {
        let Some(inputs) = &self.inputs else { return };
        while self.words.capacity() > WORDS / 2
            && let Ok(room) = self.words.try_reserve()
            && let Some(frame) = inputs.next()
        {
            room.send(AgentMessage::Inputs(frame));
        }
    }
}

impl ShardIo for QuicIo {
    fn send(&mut self, to: u16, class: Class, parcels: &mut Vec<Parcel>) {
        match self.links.get(to as usize).and_then(Option::as_ref).map(|link| link.send(parcels, class)) {
            // They stay where they are, and the shard waits.
            Some(Err(SendError::Full { .. })) => {}
            // A host that is gone is told of elsewhere.
            Some(Ok(()) | Err(SendError::Ended(_))) | None => parcels.clear(),
        }
    }

    fn report(&mut self, notes: Vec<Observation>, mark: Time) {
        self.waiting.extend(notes);
        if let Ok(room) = self.words.try_reserve() {
            let notes = std::mem::take(&mut self.waiting);
            room.send(AgentMessage::Notes { notes, mark, progress: self.mine });
        }
        self.carry();
    }

    fn progress(&mut self, mine: Time) -> Time {
        self.mine = mine;
        self.context.now.store(mine.0, Ordering::Relaxed);
        self.context.slowest.get()
    }

    fn check_backlog(&self, events: usize) -> io::Result<()> {
        if events <= self.events {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "more than {} events wait here: use more hosts, or start the agent with a larger --events if it has \
             the memory",
            self.events
        )))
    }

    fn stopped(&self) -> bool {
        self.context.stop.get()
    }

    fn next_change(&mut self) -> Option<ProfileChange> {
        self.context.changes.borrow_mut().as_mut()?.pop_front()
    }

    fn congested(&self) -> bool {
        !self.waiting.is_empty() && self.words.capacity() == 0
            || self.inputs.as_ref().is_some_and(|inputs| inputs.waiting() > INPUTS)
            || self.links.iter().flatten().any(|link| link.waiting() > QUEUE / 2)
    }
}
