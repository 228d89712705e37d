//! A timer that wakes a task to some tens of microseconds: tokio's own wakes to the millisecond.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A timerfd on the current thread's runtime.
#[derive(Debug)]
pub struct Alarm {
    fd: AsyncFd<OwnedFd>,
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
        Ok(Self { fd })
    }

    /// Waits so long.
    ///
    /// # Errors
    /// When the system refuses the timer.
    pub async fn sleep(&self, wait: Duration) -> io::Result<()> {
        if wait.is_zero() {
            return Ok(());
        }
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value =
            Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: i64::from(wait.subsec_nanos()) };
        // Setting a timer forgets earlier expirations.
        timerfd_settime(
            self.fd.get_ref(),
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval: zero, it_value: value },
        )?;
        loop {
            let mut ready = self.fd.readable().await?;
            let mut count = [0u8; 8];
            // Otherwise it was the readiness of an expiration that a new setting has wiped out.
            if let Ok(result) = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut count)?)) {
                return result.map(|_| ());
            }
        }
    }
}
