//! An asynchronous timer with a resolution of tens of microseconds; tokio's own resolution is a millisecond.

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Expirations closer together than this are treated as equal: setting a timer takes longer.
const RESOLUTION: Duration = Duration::from_micros(1);

/// A timerfd on the current thread's runtime. On virtual machines setting a timer is the most expensive operation of a
/// waiting shard, so a timer that is already set to the right time is left alone.
#[derive(Debug)]
pub struct TimerFd {
    fd: AsyncFd<OwnedFd>,
    /// Time of its expiration, if it is set.
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
