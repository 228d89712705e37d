//! An eventfd: a wake-up that costs one system call and takes no lock.
//!
//! Burner threads have the lowest priority and may lose their CPU at any instruction, so they must not hold a lock
//! that a shard waits for.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// An eventfd. Clones share the descriptor.
#[derive(Clone, Debug)]
pub struct EventFd(Arc<OwnedFd>);

impl EventFd {
    /// A descriptor that has not been notified.
    ///
    /// # Errors
    /// When the system has no more file descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Notifies the reader, from any thread.
    pub fn notify(&self) {
        // Fails only when the 64-bit counter is full.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Calls `wake` after every notification, forever.
    pub async fn relay(self, wake: impl Fn()) {
        if let Err(error) = self.try_relay(wake).await {
            // The shard polls now and then in any case.
            tracing::warn!("ends of copies are noticed late: {error}");
        }
    }

    async fn try_relay(self, wake: impl Fn()) -> io::Result<()> {
        #[expect(deprecated, reason = "sound for an owned descriptor; its successor needs unsafe code")]
        let fd = AsyncFd::with_interest(self.0, Interest::READABLE)?;
        loop {
            // The counter is not read: every write wakes the reactor, read or not.
            fd.readable().await?.clear_ready();
            wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;
    use crate::real_time::event_loop::Inbox;

    #[tokio::test]
    async fn every_notification_wakes() {
        let (event, inbox) = (EventFd::new().unwrap(), Rc::new(Inbox::default()));
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let woken = Rc::clone(&inbox);
                let relay = tokio::task::spawn_local(event.clone().relay(move || woken.wake()));
                for _ in 0..100 {
                    let event = event.clone();
                    std::thread::spawn(move || event.notify());
                    tokio::time::timeout(Duration::from_secs(60), inbox.woken()).await.unwrap();
                }
                relay.abort();
            })
            .await;
    }
}
