//! The mailbox of a shard for parcels from other shards of the same process.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use volary_actors::base::Time;
use volary_engine::parcel::Parcel;
use volary_experiment::guard::guard;

/// Parcels for one shard. A sender learns whether it must wake the shard: not while the shard is awake, nor if its own
/// timer wakes it before the first of the parcels is due.
#[derive(Debug, Default)]
pub struct Mailbox {
    parcels: Mutex<Vec<Parcel>>,
    /// Whether there are parcels, for a check without the lock.
    filled: AtomicBool,
    /// Wake-up deadline in ns, 0 while the shard is awake. Written before the queue is checked under its lock, so a
    /// parcel added concurrently is either seen by the parking shard or triggers a wake-up.
    parked_until: AtomicU64,
}

impl Mailbox {
    /// Moves parcels into the mailbox; returns whether the shard must be woken for them.
    pub fn put(&self, parcels: &mut Vec<Parcel>) -> bool {
        let first = parcels.iter().map(|parcel| parcel.due.0).min().unwrap_or(u64::MAX);
        guard(&self.parcels).append(parcels);
        self.filled.store(true, Ordering::Relaxed);
        first < self.parked_until.load(Ordering::Relaxed)
    }

    /// Moves all parcels out.
    pub fn take(&self, into: &mut Vec<Parcel>) {
        if self.filled.swap(false, Ordering::Relaxed) {
            into.append(&mut guard(&self.parcels));
        }
    }

    /// Whether there may be parcels.
    pub fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Relaxed)
    }

    /// Announces that the shard sleeps until `until`; `false` if there are parcels to take first.
    pub fn park_until(&self, until: Time) -> bool {
        self.parked_until.store(until.0, Ordering::Relaxed);
        guard(&self.parcels).is_empty()
    }

    /// Announces that the shard is awake.
    pub fn unpark(&self) {
        self.parked_until.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use volary_actors::base::{ActorId, JobId};
    use volary_actors::message::Probe;

    use super::*;

    fn parcel(due: u64) -> Parcel {
        let msg = Probe::Claim { job: JobId(0), group: 0, repair: false }.into();
        let (from, to) = (ActorId(0), ActorId(1));
        Parcel { sent: Time::ZERO, due: Time(due), from, count: 0, to, msg, returned: false }
    }

    #[test]
    fn a_shard_is_woken_only_for_parcels_that_it_would_miss() {
        let mailbox = Mailbox::default();
        assert!(!mailbox.put(&mut vec![parcel(5)]), "the shard is awake");
        assert!(!mailbox.park_until(Time(100)), "there is a parcel to take first");
        let mut taken = Vec::new();
        mailbox.take(&mut taken);
        assert!(taken.len() == 1 && !mailbox.is_filled() && mailbox.park_until(Time(100)));
        assert!(!mailbox.put(&mut vec![parcel(100), parcel(200)]), "the timer wakes it in time");
        assert!(mailbox.put(&mut vec![parcel(300), parcel(99)]), "the timer is too late");
        mailbox.unpark();
        assert!(!mailbox.put(&mut vec![parcel(1)]));
        mailbox.take(&mut taken);
        assert_eq!(taken.len(), 6);
    }

    #[test]
    fn no_wake_up_is_lost() {
        const PARCELS: usize = 20_000;
        let mailbox = Mailbox::default();
        let (wake, wakes) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let wake = wake;
                for due in 0..PARCELS as u64 {
                    if mailbox.put(&mut vec![parcel(due)]) {
                        wake.send(()).unwrap();
                    }
                }
            });
            let mut taken = Vec::new();
            while taken.len() < PARCELS {
                mailbox.take(&mut taken);
                if taken.len() < PARCELS && mailbox.park_until(Time::MAX) {
                    // Fails if the sender ends without the wake-up: it was lost.
                    wakes.recv().unwrap();
                }
                mailbox.unpark();
            }
        });
    }
}
