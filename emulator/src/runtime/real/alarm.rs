//! A timer that wakes a task to some tens of microseconds: tokio's own wakes to the millisecond.

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Settings that differ by less are the same: setting a timer takes longer.
const SAME: Duration = Duration::from_micros(1);

/// A timerfd on the current thread's runtime. Where timers are virtual, setting one is the dearest thing that a
/// waiting shard does, so one that is set already is left alone.
#[derive(Debug)]
pub struct Alarm {
    fd: AsyncFd<OwnedFd>,
    /// When it will go off, if it is set.
    set: Cell<Option<Instant>>,
}

impl Alarm {
    /// A timer that is not set.
    ///
    /// # Errors
    /// When the system has no more file descriptors.
    pub fn new() -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        #[expect(deprecated, reason = "sound for an owned descriptor; its successor needs unsafe code")]
        let fd = AsyncFd::with_interest(fd, Interest::READABLE)?;
        Ok(Self { fd, set: Cell::new(None) })
    }

    /// Waits so long, or now and then less: whoever waits must look at the clock again.
    ///
    /// # Errors
    /// When the system refuses the timer.
    pub async fn sleep(&self, wait: Duration) -> io::Result<()> {
        if wait.is_zero() {
            return Ok(());
        }
        let at = Instant::now() + wait;
        if self.set.get().is_none_or(|set| set.max(at) - set.min(at) > SAME) {
            self.arm(wait)?;
            self.set.set(Some(at));
        }
        // What the descriptor counts is not read: setting the timer anew forgets it, and every expiration wakes
        // the reactor, read or not. So an expiration that a new setting came too late for can end a later wait.
        self.fd.readable().await?.clear_ready();
        self.set.set(None);
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
