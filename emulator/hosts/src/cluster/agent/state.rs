//! The settings of an agent, the state that all its tasks share, and the state that the tasks of a run share.
//!
//! The tasks are local to the thread, and are aborted with their owner. A panic of a task is caught and reported.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use volary_actors::base::{Span, Time};
use volary_actors::program::Launcher;
use volary_engine::results::ClockError;
use volary_experiment::control::{LateSoFar, panic_text};

use super::injections::InjectionOrder;
use super::log::AgentLog;
use crate::cluster::net::clock_offset::{OffsetEstimator, RoundTrip};
use crate::cluster::net::{Connection, Transport, engine};
use crate::cluster::protocol::{AgentStatus, RunStatus};
use crate::executor::CpuId;
use crate::real_time::clock::{Clock, MonotonicClock};
use crate::real_time::event_loop::Inbox;

/// Time that an agent with `--once` waits for its controller, or for the next status request. A controller that waits
/// for another host sends such requests.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The folder of the agent's identity.
    pub identity: PathBuf,
    /// Duration of silence after which a peer is considered lost.
    pub lease: Span,
    /// Whether to end after serving one controller (`--once`).
    pub once: bool,
    /// Maximum number of waiting events of a run; a run that exceeds it ends.
    pub events: usize,
    /// CPUs that copies may burn.
    pub cpus: Vec<CpuId>,
    /// The clock of the agent.
    pub ticks: MonotonicClock,
    /// The programs of policies that may run here.
    pub programs: Arc<dyn Launcher>,
    /// The store of log lines for the controller.
    pub log: AgentLog,
}

/// State shared by all tasks of an agent.
pub(super) struct AgentState {
    pub(super) transport: Transport,
    pub(super) settings: Settings,
    /// The controller that is served.
    session: Cell<Option<SocketAddr>>,
    /// The latest run of the session.
    current: RefCell<Option<Rc<RunContext>>>,
    /// The smallest run number that links are accepted for.
    run: Cell<u64>,
    /// The latest link that each other host has opened, with its run number; removed when that run takes the link.
    links: RefCell<BTreeMap<String, (u64, Connection)>>,
    link_added: Notify,
    /// Time of the last status request, or of the start.
    asked: Cell<Instant>,
    /// Number of sessions so far.
    served: Cell<u32>,
    session_ended: Notify,
}

impl AgentState {
    pub(super) fn new(transport: Transport, settings: Settings) -> Self {
        Self {
            transport,
            settings,
            session: Cell::default(),
            current: RefCell::default(),
            run: Cell::default(),
            links: RefCell::default(),
            link_added: Notify::new(),
            asked: Cell::new(Instant::now()),
            served: Cell::default(),
            session_ended: Notify::new(),
        }
    }

    /// Waits until a session has ended.
    pub(super) async fn served_one(&self) {
        while self.served.get() == 0 {
            self.session_ended.notified().await;
        }
    }

    /// Waits until no session is open and no status has been requested for [`IDLE_TIMEOUT`].
    pub(super) async fn idle_too_long(&self) {
        loop {
            let until = self.asked.get() + IDLE_TIMEOUT;
            if until > Instant::now() {
                sleep_until(until).await;
            } else if self.controller().is_some() {
                self.session_ended.notified().await;
            } else {
                return;
            }
        }
    }

    /// The answer to a request for the agent's state.
    pub(super) fn status(&self) -> AgentStatus {
        self.asked.set(Instant::now());
        let run = self.current.borrow().as_ref().and_then(|run| run.status());
        AgentStatus::new(engine(), self.controller(), run)
    }

    /// Sets the current run of the session.
    pub(super) fn enter(&self, run: &Rc<RunContext>) {
        *self.current.borrow_mut() = Some(Rc::clone(run));
    }

    /// The address of the controller that is served.
    fn controller(&self) -> Option<SocketAddr> {
        self.session.get()
    }

    /// Opens the session, which lasts until the guard is dropped. If a session is open, fails with the address of its
    /// controller.
    pub(super) fn open_session(self: &Rc<Self>, controller: SocketAddr) -> Result<SessionGuard, SocketAddr> {
        if let Some(other) = self.controller() {
            return Err(other);
        }
        self.session.set(Some(controller));
        Ok(SessionGuard(Rc::clone(self)))
    }

    /// Drops links for runs before `run`, and refuses such links from now on.
    pub(super) fn expect_run(&self, run: u64) {
        self.run.set(run);
        self.links.borrow_mut().retain(|_, (of, _)| *of >= run);
    }

    /// Keeps a link that another host has opened; a newer link replaces it. Fails if the run is over.
    pub(super) fn add_link(&self, peer: String, run: u64, connection: Connection) -> Result<(), Connection> {
        if self.session.get().is_none() || run < self.run.get() {
            return Err(connection);
        }
        self.links.borrow_mut().insert(peer, (run, connection));
        self.link_added.notify_waiters();
        Ok(())
    }

    /// Waits for the link that `peer` opens for a run.
    pub(super) async fn link_from(&self, run: u64, peer: &str) -> Connection {
        loop {
            let added = self.link_added.notified();
            let found = {
                let mut links = self.links.borrow_mut();
                let there = links.get(peer).is_some_and(|(of, _)| *of == run);
                if there { links.remove(peer) } else { None }
            };
            if let Some((_, connection)) = found {
                return connection;
            }
            added.await;
        }
    }
}

/// The session of an agent. When the guard is dropped, the next controller can be served.
pub(super) struct SessionGuard(Rc<AgentState>);

impl Drop for SessionGuard {
    fn drop(&mut self) {
        let state = &self.0;
        state.session.set(None);
        *state.current.borrow_mut() = None;
        state.run.set(0);
        state.links.borrow_mut().clear();
        state.settings.log.end();
        state.served.set(state.served.get() + 1);
        state.session_ended.notify_waiters();
    }
}

/// Samples of the controller's clock that the offset is estimated from.
const CLOCK_SAMPLES: usize = 64;
/// Maximum drift between the clocks of two machines, in parts per million. Time services slew each clock by up to 500.
const MAX_DRIFT_PPM: f64 = 1000.0;

/// State shared by the tasks of a run.
pub(super) struct RunContext {
    pub(super) inbox: Inbox,
    pub(super) stopped: Cell<bool>,
    /// The common start on the controller's clock, ns.
    start: Cell<Option<i64>>,
    /// Notified when the run is stopped, when the start is known, and when a pong arrives.
    changed: Notify,
    /// The emulated time that the slowest host has reached.
    pub(super) slowest: Cell<Time>,
    /// The emulated time that this host has reached.
    pub(super) reached: Cell<Time>,
    /// Number of finished jobs in the controller's last message.
    pub(super) finished: Cell<u64>,
    /// The status for `volary status`; `None` before the world is built and after the run.
    about: RefCell<Option<RunStatus>>,
    ticks: MonotonicClock,
    estimator: RefCell<OffsetEstimator>,
    /// Pings answered so far.
    pongs: Cell<u32>,
    /// The largest bound of the clock error during the run, ns.
    max_bound: Cell<i64>,
    /// The message of the first panic of a task.
    panic: RefCell<Option<String>>,
    /// Orders of the controller that have not been carried out. Their number is bounded, because the controller orders
    /// at most a hundred injections per run.
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

    /// The reason why a run was stopped before it began.
    pub(super) fn stop_reason(&self) -> String {
        self.check_panic().err().unwrap_or_else(|| "the controller cancelled the run".to_owned())
    }

    /// Sets the common start (controller's clock, ns), which begins the run.
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

/// Local tasks, aborted when this is dropped.
#[derive(Default)]
pub(super) struct TaskGroup(JoinSet<()>);

impl TaskGroup {
    /// Spawns a task of a session. A panic of the task is logged, and the peer notices that the task has ended.
    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + 'static) {
        self.0.spawn_local(async {
            if let Err(panic) = catch_panic(task).await {
                tracing::error!("{panic}");
            }
        });
    }

    /// Spawns a task of a run. A panic of the task ends the run.
    pub(super) fn spawn_in(&mut self, run: &Rc<RunContext>, task: impl Future<Output = ()> + 'static) {
        let run = Rc::clone(run);
        self.0.spawn_local(async move {
            if let Err(panic) = catch_panic(task).await {
                run.fail(panic);
            }
        });
    }
}

/// Runs `work` to its end, or to its first panic, whose message is returned.
pub(super) async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| panic_text(panic.as_ref()))
}
