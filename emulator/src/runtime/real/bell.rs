//! What a thread of the lowest priority wakes a shard with: one system call and no lock, for which others would have
//! to wait when the thread loses its CPU in the middle.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// An eventfd. Clones are the same bell.
#[derive(Clone, Debug)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    /// A bell that nobody has rung.
    ///
    /// # Errors
    /// When the system has no more file descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Rings it, from any thread.
    pub fn ring(&self) {
        // Fails only after 2^64 times in vain.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Wakes whoever is to be woken whenever the bell rings, as a task of that one's thread, and for ever.
    pub async fn relay(self, wake: impl Fn()) {
        if let Err(error) = self.hear(wake).await {
            // It looks by itself now and then.
            tracing::warn!("ends of copies are noticed late: {error}");
        }
    }

    async fn hear(self, wake: impl Fn()) -> io::Result<()> {
        #[expect(deprecated, reason = "sound for an owned descriptor; its successor needs unsafe code")]
        let fd = AsyncFd::with_interest(self.0, Interest::READABLE)?;
        loop {
            // How often it rang is not read: every time wakes the reactor anew, read or not.
            fd.readable().await?.clear_ready();
            wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::runtime::real::drive::Inbox;

    #[tokio::test]
    async fn every_ring_is_heard() {
        let (bell, inbox) = (Bell::new().unwrap(), Rc::new(Inbox::default()));
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let woken = Rc::clone(&inbox);
                let relay = tokio::task::spawn_local(bell.clone().relay(move || woken.wake()));
                for _ in 0..100 {
                    let ring = bell.clone();
                    std::thread::spawn(move || ring.ring());
                    // Would wait for ever.
                    inbox.woken().await;
                }
                relay.abort();
            })
            .await;
    }
}
