//! The event loop of a shard in real time, its observer, its timer, and the I/O it needs.
//!
//! All events that are due wait in the shard's own queue, so one timer serves all of them, and no task sleeps per
//! message or link. Overload causes lateness instead of memory use: no shard runs further ahead of the slowest shard
//! than `MAX_LEAD`, which bounds the events that accumulate for the slowest shard.
//!
//! The timer is asynchronous and has a resolution of tens of microseconds; tokio's own resolution is a millisecond.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use volary_actors::base::{ActorId, Class, Span, Time};
use volary_actors::machine::{Effect, Input, Note};
use volary_actors::message::Message;
use volary_engine::metrics::MessageWindow;
use volary_engine::parcel::{Observation, Parcel, Seen};
use volary_engine::replay::LogEvent;
use volary_engine::shard::{Due, Observer, Shard};
use volary_experiment::fidelity::measure::LatenessHistograms;
use volary_experiment::storage::input_log::Section;

use super::clock::Clock;

/// Maximum real time by which a shard may be ahead of the slowest shard.
const MAX_LEAD: Duration = Duration::from_millis(500);
/// Real time between two reports. A shorter interval takes more time from copies that burn the same CPU.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);
/// Number of observations that trigger a report before the interval has passed.
const REPORT_SIZE: usize = 8192;
/// Events handled before other tasks of the thread run.
const SLICE: u32 = 256;
/// Events handled per reading of the clock, while they are due.
const CLOCK_STRIDE: u32 = 8;
/// Real time below which the loop spins, because sleeping and waking take as long.
const SPIN: Duration = Duration::from_micros(12);
/// Consecutive spins before other tasks of the thread run.
const MAX_SPINS: u32 = 8;
/// Real time until a shard that is too far ahead checks again.
const LEAD_RETRY: Duration = Duration::from_micros(500);

/// Collects the observations of a shard until the next report.
#[derive(Debug, Default)]
pub struct RealTimeObserver {
    /// Observations since the last report, in order of time.
    pub notes: Vec<Observation>,
    /// Lateness of events.
    pub gauge: LatenessHistograms,
    /// The log of inputs, if there is one.
    pub inputs: Option<Section>,
    /// The messages that the timeline shows.
    pub messages: MessageWindow,
}

impl RealTimeObserver {
    /// Ends the log of inputs at `now`.
    pub fn end(&mut self, now: Time) {
        if let Some(mut section) = self.inputs.take() {
            section.put(now, LogEvent::End);
        }
    }
}

impl Observer for RealTimeObserver {
    fn note(&mut self, now: Time, who: ActorId, note: Note) {
        self.notes.push(Observation { at: now, what: Seen::Note(who, note) });
    }

    fn crashed(&mut self, now: Time, core: u32) {
        self.notes.push(Observation { at: now, what: Seen::Crashed(core) });
        if let Some(section) = &mut self.inputs {
            section.crashed(now, core);
        }
    }

    #[inline]
    fn stepped(&mut self, now: Time, who: ActorId, input: &Input, effects: &[Effect]) {
        if let Some(section) = &mut self.inputs {
            section.stepped(now, who, input, effects);
        }
    }

    fn restarted(&mut self, now: Time, who: ActorId, epoch: u32) {
        if let Some(section) = &mut self.inputs {
            section.restarted(now, who, epoch);
        }
    }

    fn due(&mut self, what: Due, late: Span) {
        match what {
            Due::Delivery { asked } => {
                self.gauge.deliveries.add(late);
                self.gauge.asked.add(asked);
                self.gauge.achieved.add(asked + late);
            }
            Due::Timer => self.gauge.timers.add(late),
            Due::Work => self.gauge.work.add(late),
        }
    }

    #[inline]
    fn delivered(&mut self, now: Time, sent: Time, from: ActorId, to: ActorId, msg: &Message) {
        if let Some(what) = self.messages.delivered(now, sent, from, to, msg) {
            self.notes.push(Observation { at: now, what: Seen::Delivered(what) });
        }
    }

    fn received(&mut self, late: Span) {
        if late != Span::ZERO {
            self.gauge.arrivals.add(late);
        }
    }
}

/// The connection of a shard's event loop to other shards and to the aggregator.
pub trait ShardIo {
    /// Sends parcels to another shard; parcels that cannot be sent yet stay in the vector.
    fn send(&mut self, to: u16, class: Class, parcels: &mut Vec<Parcel>);
    /// Reports observations, in order of time, and the time before which no further observation follows.
    fn report(&mut self, notes: Vec<Observation>, mark: Time);
    /// Called after each report, for samples of the shard.
    fn look(&mut self, _shard: &Shard<'_, RealTimeObserver>) {}
    /// Publishes the emulated time that this shard has reached; returns the time that the slowest shard has reached.
    fn progress(&mut self, mine: Time) -> Time;
    /// Takes incoming parcels that were not put into the [`Inbox`].
    fn collect(&mut self, _parcels: &mut Vec<Parcel>) {}
    /// Announces that the shard sleeps until `until`; `false` if parcels have arrived and it must stay awake.
    fn park_until(&mut self, _until: Time) -> bool {
        true
    }
    /// Announces that the shard is awake.
    fn unpark(&mut self) {}
    /// Changes the interference profiles of the shard, if the controller has ordered it.
    fn change_profiles(&mut self, _now: Time, _shard: &mut Shard<'_, RealTimeObserver>) {}
    /// Whether there may be parcels to [collect](Self::collect).
    fn has_incoming(&self) -> bool {
        false
    }
    /// Whether the run is over.
    fn stopped(&self) -> bool;
    /// Checks the number of queued events against the limit.
    ///
    /// # Errors
    /// When more events are queued than the limit.
    fn check_backlog(&self, _events: usize) -> io::Result<()> {
        Ok(())
    }
    /// Whether the send queues are full and the shard must wait.
    fn congested(&self) -> bool {
        false
    }
}

/// Capacity of an inbox in parcels; the last batch may exceed it.
const INBOX_CAPACITY: usize = 1 << 18;

/// Incoming parcels of a shard, put there by tasks of the same thread.
#[derive(Debug, Default)]
pub struct Inbox {
    parcels: RefCell<Vec<Parcel>>,
    filled: Notify,
    emptied: Notify,
}

impl Inbox {
    /// Waits until there is room. At most one task may wait at a time.
    pub async fn room(&self) {
        while self.parcels.borrow().len() >= INBOX_CAPACITY {
            self.emptied.notified().await;
        }
    }

    /// Adds parcels and wakes the shard.
    pub fn put(&self, parcels: impl IntoIterator<Item = Parcel>) {
        self.parcels.borrow_mut().extend(parcels);
        self.filled.notify_one();
    }

    /// Wakes the shard without parcels.
    pub fn wake(&self) {
        self.filled.notify_one();
    }

    /// Waits until the shard is woken.
    pub async fn woken(&self) {
        self.filled.notified().await;
    }

    /// Exchanges the parcels for an empty vector.
    fn swap(&self, empty: &mut Vec<Parcel>) {
        std::mem::swap(&mut *self.parcels.borrow_mut(), empty);
        if !empty.is_empty() {
            self.emptied.notify_one();
        }
    }
}

/// Runs a shard from the common start until its I/O is stopped.
///
/// # Errors
/// When the system refuses a timer, or [too many events](ShardIo::check_backlog) are queued.
pub async fn run_shard<I: ShardIo>(
    shard: &mut Shard<'_, RealTimeObserver>,
    clock: &Clock,
    inbox: &Inbox,
    io: &mut I,
) -> io::Result<()> {
    let timer = TimerFd::new()?;
    let max_lead = clock.emulated(MAX_LEAD);
    let mut incoming = Vec::new();
    let mut reported = Instant::now();
    let mut spins = 0;
    // Before the start, so that cores are degraded from the first moment on.
    shard.poll_executor(Time::ZERO);
    while clock.now() == Time::ZERO && !io.stopped() {
        timer.sleep(clock.until(Time(1)).min(REPORT_INTERVAL)).await?;
    }
    shard.start();
    loop {
        inbox.swap(&mut incoming);
        io.collect(&mut incoming);
        let now = clock.now();
        for parcel in incoming.drain(..) {
            shard.receive(now, &parcel);
        }
        io.change_profiles(now, shard);
        shard.poll_executor(now);
        io.check_backlog(shard.pending())?;
        let slowest = io.progress(shard.next().map_or(now, |due| due.min(now)));
        let slice = run_slice(shard, clock, slowest + max_lead, io.congested());
        shard.failure().map_or(Ok(()), |why| Err(io::Error::other(why)))?;
        shard.outbox().flush(|to, class, parcels| io.send(to, class, parcels));
        // All later observations have this time or a later one.
        let mark = clock.now();
        if io.stopped() {
            shard.observer.end(shard.now());
            io.report(std::mem::take(&mut shard.observer.notes), mark);
            return Ok(());
        }
        if shard.observer.notes.len() >= REPORT_SIZE || reported.elapsed() >= REPORT_INTERVAL {
            io.report(std::mem::take(&mut shard.observer.notes), mark);
            io.look(shard);
            reported = Instant::now();
        }
        match slice {
            SliceEnd::More => tokio::task::yield_now().await,
            SliceEnd::Blocked => timer.sleep(LEAD_RETRY).await?,
            SliceEnd::Idle(due) => {
                let wait = due.map_or(REPORT_INTERVAL, |due| clock.until(due).min(REPORT_INTERVAL));
                if wait > SPIN {
                    spins = 0;
                    if io.park_until(mark + clock.emulated(wait)) {
                        tokio::select! {
                            slept = timer.sleep(wait) => slept?,
                            () = inbox.woken() => {}
                        }
                    }
                    io.unpark();
                } else if spins < MAX_SPINS {
                    spins += 1;
                    while due.is_some_and(|due| clock.now() < due) && !io.has_incoming() {
                        std::hint::spin_loop();
                    }
                } else {
                    spins = 0;
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

/// The state after a slice of events.
enum SliceEnd {
    /// More events are due.
    More,
    /// More events are due, but other shards are behind or the send queues are full.
    Blocked,
    /// No event is due before the given time.
    Idle(Option<Time>),
}

/// Handles events that are due, up to `limit` and at most [`SLICE`].
fn run_slice(
    shard: &mut Shard<'_, RealTimeObserver>,
    clock: &Clock,
    limit: Time,
    congested: bool,
) -> SliceEnd {
    let mut now = Time::ZERO;
    for handled in 0..SLICE {
        let Some(due) = shard.next() else { return SliceEnd::Idle(None) };
        if handled % CLOCK_STRIDE == 0 || due > now {
            now = clock.now();
        }
        if due > now {
            return SliceEnd::Idle(Some(due));
        }
        if due > limit || congested {
            return SliceEnd::Blocked;
        }
        shard.advance_at(now);
    }
    SliceEnd::More
}

/// Expirations closer together than this are treated as equal, because setting a timer takes longer.
const RESOLUTION: Duration = Duration::from_micros(1);

/// A timerfd on the current thread's runtime. On virtual machines setting a timer is the most expensive operation of a
/// waiting shard, so a timer that is already set to the right time is left alone.
#[derive(Debug)]
pub struct TimerFd {
    fd: AsyncFd<OwnedFd>,
    /// Time at which the timer expires, if it is set.
    expiration: Cell<Option<Instant>>,
}

impl TimerFd {
    /// A timer that is not set.
    ///
    /// # Errors
    /// When the system has no more file descriptors.
    pub fn new() -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        #[expect(deprecated, reason = "sound for an owned descriptor; its successor needs unsafe code")]
        let fd = AsyncFd::with_interest(fd, Interest::READABLE)?;
        Ok(Self { fd, expiration: Cell::new(None) })
    }

    /// Waits for `wait`, or occasionally less: callers must check the clock again.
    ///
    /// # Errors
    /// When the system refuses the timer.
    pub async fn sleep(&self, wait: Duration) -> io::Result<()> {
        if wait.is_zero() {
            return Ok(());
        }
        let at = Instant::now() + wait;
        if self.expiration.get().is_none_or(|set| set.max(at) - set.min(at) > RESOLUTION) {
            self.arm(wait)?;
            self.expiration.set(Some(at));
        }
        // The expiration count is not read: setting the timer resets it, and every expiration wakes the reactor
        // whether it was read or not. An expiration just before the timer is set again can therefore end a later
        // wait early.
        self.fd.readable().await?.clear_ready();
        self.expiration.set(None);
        Ok(())
    }

    fn arm(&self, wait: Duration) -> io::Result<()> {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value =
            Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: i64::from(wait.subsec_nanos()) };
        let spec = Itimerspec { it_interval: zero, it_value: value };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &spec)?;
        Ok(())
    }
}
