//! State shared by the tasks of a run on an agent.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use tokio::sync::Notify;
use volary_actors::base::Time;
use volary_engine::results::ClockError;
use volary_experiment::observer::LateSoFar;

use super::injections::InjectionOrder;
use crate::cluster::net::clock_offset::{OffsetEstimator, RoundTrip};
use crate::cluster::protocol::RunStatus;
use crate::real_time::clock::{Clock, MonotonicClock};
use crate::real_time::event_loop::Inbox;

/// Samples of the controller's clock that the offset is estimated from.
const CLOCK_SAMPLES: usize = 64;
/// Maximum drift of one machine's clock against another's, in parts per million: time services slew each by up to 500.
const MAX_DRIFT_PPM: f64 = 1000.0;

/// State shared by the tasks of a run.
pub(super) struct RunContext {
    pub(super) inbox: Inbox,
    pub(super) stopped: Cell<bool>,
    /// The common start on the controller's clock, ns.
    start: Cell<Option<i64>>,
    /// Notified when the run is stopped, when the start is known, and when a pong arrives.
    changed: Notify,
    /// The progress of the slowest host.
    pub(super) slowest: Cell<Time>,
    /// The progress of this host.
    pub(super) reached: Cell<Time>,
    /// Finished jobs, as the controller counts them.
    pub(super) finished: Cell<u64>,
    /// The status that `volary status` reports; `None` before its world is built and when it is over.
    about: RefCell<Option<RunStatus>>,
    ticks: MonotonicClock,
    estimator: RefCell<OffsetEstimator>,
    /// Pings answered so far.
    pongs: Cell<u32>,
    /// The largest bound of the clock error during the run, ns.
    max_bound: Cell<i64>,
    /// The message of the first panic of a task.
    panic: RefCell<Option<String>>,
    /// Orders of the controller that have not been carried out. The controller orders at most a hundred injections a
    /// run.
    orders: RefCell<VecDeque<InjectionOrder>>,
}

impl RunContext {
    pub(super) fn new(ticks: MonotonicClock) -> Self {
        Self {
            inbox: Inbox::default(),
            stopped: Cell::new(false),
            slowest: Cell::new(Time::ZERO),
            reached: Cell::new(Time::ZERO),
            finished: Cell::new(0),
            about: RefCell::default(),
            start: Cell::new(None),
            changed: Notify::new(),
            ticks,
            estimator: RefCell::new(OffsetEstimator::new(CLOCK_SAMPLES, MAX_DRIFT_PPM)),
            pongs: Cell::new(0),
            max_bound: Cell::new(0),
            panic: RefCell::default(),
            orders: RefCell::default(),
        }
    }

    /// Sets the status that `volary status` reports; `None` once the run is over.
    pub(super) fn describe(&self, about: Option<RunStatus>) {
        *self.about.borrow_mut() = about;
    }

    /// Sets the lateness that `volary status` reports.
    pub(super) fn set_lateness(&self, deliveries: LateSoFar) {
        if let Some(about) = self.about.borrow_mut().as_mut() {
            about.late = Some(deliveries);
        }
    }

    /// The state of the run; `None` if it is not running.
    pub(super) fn status(&self) -> Option<RunStatus> {
        let about = self.about.borrow().clone()?;
        Some(RunStatus {
            at_s: self.reached.get().as_secs_f64(),
            finished: self.finished.get(),
            clock_error_s: self.offset().map(|(_, bound)| bound as f64 * 1e-9),
            ..about
        })
    }

    /// Queues an order for the shard, and wakes it.
    pub(super) fn order(&self, order: InjectionOrder) {
        self.orders.borrow_mut().push_back(order);
        self.inbox.wake();
    }

    /// The next order that the shard is to carry out.
    pub(super) fn next_order(&self) -> Option<InjectionOrder> {
        self.orders.borrow_mut().pop_front()
    }

    /// Ends the run in any phase.
    pub(super) fn stop(&self) {
        self.stopped.set(true);
        self.changed.notify_waiters();
        self.inbox.wake();
    }

    /// Ends the run because one of its tasks panicked.
    pub(super) fn fail(&self, panic: String) {
        tracing::error!("{panic}");
        self.panic.borrow_mut().get_or_insert(panic);
        self.stop();
    }

    /// The panic of a task, if there was one, as an error.
    pub(super) fn check_panic(&self) -> Result<(), String> {
        self.panic.borrow().clone().map_or(Ok(()), Err)
    }

    /// The reason for the end of a run that did not begin.
    pub(super) fn stop_reason(&self) -> String {
        self.check_panic().err().unwrap_or_else(|| "the controller cancelled the run".to_owned())
    }

    /// Sets the common start, which begins the run.
    pub(super) fn set_start(&self, at: i64) {
        self.start.set(Some(at));
        self.changed.notify_waiters();
    }

    /// Waits until the start is known.
    pub(super) async fn start_known(&self) {
        self.until(|| self.start.get().is_some()).await;
    }

    /// Waits for the end of the run.
    pub(super) async fn until_stopped(&self) {
        self.until(|| self.stopped.get()).await;
    }

    /// Waits until this many pings were answered; returns the bound of the clock error, ns.
    pub(super) async fn clock_known(&self, pings: u32) -> i64 {
        self.until(|| self.pongs.get() >= pings).await;
        self.offset().map_or(0, |(_, bound)| bound)
    }

    async fn until(&self, done: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified();
            if done() {
                return;
            }
            changed.await;
        }
    }

    /// Adds a sample of the controller's clock.
    pub(super) fn on_pong(&self, sent: i64, here: i64) {
        let whole = |ns: i64| ns.max(0).cast_unsigned();
        let sample = RoundTrip { sent: whole(sent), remote: whole(here), received: whole(self.ticks.now()) };
        if self.estimator.borrow_mut().add(sample) {
            self.pongs.set(self.pongs.get() + 1);
            self.changed.notify_waiters();
        }
    }

    /// Lead of this clock over the controller's, and the bound of its error, ns; `None` before the first pong.
    fn offset(&self) -> Option<(i64, i64)> {
        let offset = self.estimator.borrow().at(self.ticks.now().max(0).cast_unsigned())?;
        Some((-offset.offset, offset.bound.cast_signed()))
    }

    /// Sets the clock of the run by the current estimate of the offset.
    pub(super) fn adjust(&self, clock: &Clock) {
        if let (Some(start), Some((ahead, bound))) = (self.start.get(), self.offset()) {
            clock.set_start(start + ahead);
            self.max_bound.set(self.max_bound.get().max(bound));
        }
    }

    /// The clock error at the end of a run; its bound is the largest of the run.
    pub(super) fn clock_error(&self) -> ClockError {
        let (ahead, bound) = self.offset().unwrap_or_default();
        ClockError {
            offset_s: ahead as f64 * 1e-9,
            bound_s: bound.max(self.max_bound.get()) as f64 * 1e-9,
            drift_ppm: self.estimator.borrow().drift().map_or(0.0, |drift| -drift.ppm),
        }
    }
}
