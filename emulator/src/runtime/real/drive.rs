//! The loop of a shard in real time.
//!
//! Whatever is due waits in the shard's own queue, so there is one timer for all of it and no sleeping task per
//! message or link. An overloaded shard shows as lateness and not as memory: no shard runs further ahead of
//! the slowest than `AHEAD`, so what piles up before that one is bounded.

use std::cell::RefCell;
use std::io;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use volary_actors::base::{Class, Time};

use super::alarm::Alarm;
use super::change::Change;
use super::clock::Clock;
use super::watcher::Watcher;
use crate::parcel::{Observation, Parcel};
use crate::shard::Shard;

/// Real time that a shard may be ahead of the slowest one.
const AHEAD: Duration = Duration::from_millis(500);
/// Real time between two reports at most. To be woken for one takes time from copies that burn the same CPU.
const REPORT_EVERY: Duration = Duration::from_millis(50);
/// Observations that make a report due earlier.
const REPORT_MOST: usize = 8192;
/// Events handled before others on the thread have their turn.
const SLICE: u32 = 256;
/// Events handled on one look at the clock, while they are due.
const GLANCE: u32 = 8;
/// Real time that is waited for awake: to fall asleep and be woken takes as long.
const SHORT: Duration = Duration::from_micros(12);
/// Short waits in a row, before others on the thread have their turn.
const RESTLESS: u32 = 8;
/// How long a shard that is ahead waits before it looks again.
const PATIENCE: Duration = Duration::from_micros(500);

/// What a shard needs of those around it.
pub trait Post {
    /// Sends parcels to another shard; leaves those it cannot take yet.
    fn send(&mut self, to: u16, class: Class, parcels: &mut Vec<Parcel>);
    /// Reports observations, in order of time, and the time before which no more will come.
    fn report(&mut self, notes: Vec<Observation>, mark: Time);
    /// Tells the others how far this shard has come, and learns how far the slowest of them has.
    fn progress(&mut self, mine: Time) -> Time;
    /// Takes what came in and was not put into the [`Inbox`].
    fn collect(&mut self, _parcels: &mut Vec<Parcel>) {}
    /// The shard will not look at what comes in before `until`, and need not be woken for what is due later.
    /// Returns whether nothing has come in by now: otherwise it stays awake.
    fn rest(&mut self, _until: Time) -> bool {
        true
    }
    /// The shard looks at what comes in again.
    fn rise(&mut self) {}
    /// The next change of interference, if there is one.
    fn change(&mut self) -> Option<Change> {
        None
    }
    /// Whether something waits to be [collected](Self::collect).
    fn filled(&self) -> bool {
        false
    }
    /// Whether the run is over.
    fn stopped(&self) -> bool;
    /// Ends the run if more events wait than there is room for.
    ///
    /// # Errors
    /// Says so.
    fn bear(&self, _events: usize) -> io::Result<()> {
        Ok(())
    }
    /// Whether so much waits to be sent that the shard must wait too.
    fn congested(&self) -> bool {
        false
    }
}

/// Parcels that an inbox has room for, to within one batch.
const ROOM: usize = 1 << 18;

/// Parcels that came in for a shard.
#[derive(Debug, Default)]
pub struct Inbox {
    parcels: RefCell<Vec<Parcel>>,
    filled: Notify,
    emptied: Notify,
}

impl Inbox {
    /// Waits until there is room: for the one task that puts parcels in.
    pub async fn room(&self) {
        while self.parcels.borrow().len() >= ROOM {
            self.emptied.notified().await;
        }
    }

    /// Puts parcels in and wakes the shard.
    pub fn put(&self, parcels: impl IntoIterator<Item = Parcel>) {
        self.parcels.borrow_mut().extend(parcels);
        self.filled.notify_one();
    }

    /// Wakes the shard, for news other than parcels.
    pub fn wake(&self) {
        self.filled.notify_one();
    }

    /// Waits until the shard is woken.
    pub async fn woken(&self) {
        self.filled.notified().await;
    }

    /// Exchanges what came in for an empty vector.
    fn swap(&self, empty: &mut Vec<Parcel>) {
        std::mem::swap(&mut *self.parcels.borrow_mut(), empty);
        if !empty.is_empty() {
            self.emptied.notify_one();
        }
    }
}

/// Runs a shard from the common start until it is told to stop.
///
/// # Errors
/// When the system refuses a timer, or more waits than can be [borne](Post::bear).
pub async fn drive<P: Post>(
    shard: &mut Shard<'_, Watcher>,
    clock: &Clock,
    inbox: &Inbox,
    post: &mut P,
) -> io::Result<()> {
    let alarm = Alarm::new()?;
    let ahead = clock.emulated(AHEAD);
    let mut incoming = Vec::new();
    let mut reported = Instant::now();
    let mut restless = 0;
    // Cores are as slow as they should be from the first moment on.
    shard.attend(Time::ZERO);
    while clock.now() == Time::ZERO && !post.stopped() {
        alarm.sleep(clock.until(Time(1)).min(REPORT_EVERY)).await?;
    }
    shard.start();
    loop {
        inbox.swap(&mut incoming);
        post.collect(&mut incoming);
        let now = clock.now();
        for parcel in incoming.drain(..) {
            shard.receive(now, &parcel);
        }
        while let Some(change) = post.change() {
            change.apply(now, shard);
        }
        shard.attend(now);
        post.bear(shard.pending())?;
        let slowest = post.progress(shard.next().map_or(now, |due| due.min(now)));
        let turn = turn(shard, clock, slowest + ahead, post.congested());
        shard.outbox().flush(|to, class, parcels| post.send(to, class, parcels));
        // Whatever happens from here on happens at this time or later.
        let mark = clock.now();
        if post.stopped() {
            shard.observer.end(shard.now());
            post.report(std::mem::take(&mut shard.observer.notes), mark);
            return Ok(());
        }
        if shard.observer.notes.len() >= REPORT_MOST || reported.elapsed() >= REPORT_EVERY {
            post.report(std::mem::take(&mut shard.observer.notes), mark);
            reported = Instant::now();
        }
        match turn {
            Turn::More => tokio::task::yield_now().await,
            Turn::Ahead => alarm.sleep(PATIENCE).await?,
            Turn::Idle(due) => {
                let wait = due.map_or(REPORT_EVERY, |due| clock.until(due).min(REPORT_EVERY));
                if wait > SHORT {
                    restless = 0;
                    if post.rest(mark + clock.emulated(wait)) {
                        tokio::select! {
                            slept = alarm.sleep(wait) => slept?,
                            () = inbox.woken() => {}
                        }
                    }
                    post.rise();
                } else if restless < RESTLESS {
                    restless += 1;
                    while due.is_some_and(|due| clock.now() < due) && !post.filled() {
                        std::hint::spin_loop();
                    }
                } else {
                    restless = 0;
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

/// How a turn ended.
enum Turn {
    /// More is due.
    More,
    /// More is due, but others are behind.
    Ahead,
    /// Nothing is due before that time.
    Idle(Option<Time>),
}

/// Handles what is due, up to `limit` and for a slice.
fn turn(shard: &mut Shard<'_, Watcher>, clock: &Clock, limit: Time, congested: bool) -> Turn {
    let mut now = Time::ZERO;
    for handled in 0..SLICE {
        let Some(due) = shard.next() else { return Turn::Idle(None) };
        if handled % GLANCE == 0 || due > now {
            now = clock.now();
        }
        if due > now {
            return Turn::Idle(Some(due));
        }
        if due > limit || congested {
            return Turn::Ahead;
        }
        shard.advance_at(now);
    }
    Turn::More
}
