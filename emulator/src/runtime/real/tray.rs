//! Where shards of one process put parcels for each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use volary_actors::base::Time;

use crate::guard::guard;
use crate::parcel::Parcel;

/// Parcels for one shard. Whoever puts some in learns whether the shard must be woken for them: not if it is
/// awake, nor if it wakes by itself before the first of them is due.
#[derive(Debug, Default)]
pub struct Tray {
    parcels: Mutex<Vec<Parcel>>,
    /// Whether there are any, to a glance.
    filled: AtomicBool,
    /// Until when the shard sleeps, ns; zero while it is awake. The mutex orders it: either the sleeper finds
    /// what was put in before it lay down, or whoever puts it in finds that it sleeps.
    asleep: AtomicU64,
}

impl Tray {
    fn parcels(&self) -> MutexGuard<'_, Vec<Parcel>> {
        guard(&self.parcels)
    }

    /// Takes parcels in; says whether their shard must be woken for them.
    #[must_use]
    pub fn put(&self, parcels: &mut Vec<Parcel>) -> bool {
        let first = parcels.iter().map(|parcel| parcel.due.0).min().unwrap_or(u64::MAX);
        self.parcels().append(parcels);
        self.filled.store(true, Ordering::Relaxed);
        first < self.asleep.load(Ordering::Relaxed)
    }

    /// Gives what is in it.
    pub fn take(&self, into: &mut Vec<Parcel>) {
        if self.filled.swap(false, Ordering::Relaxed) {
            into.append(&mut self.parcels());
        }
    }

    /// Whether there may be something in it.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Relaxed)
    }

    /// The shard lies down until `until`; `false` if something is in the tray that it should take first.
    #[must_use]
    pub fn rest(&self, until: Time) -> bool {
        self.asleep.store(until.0, Ordering::Relaxed);
        self.parcels().is_empty()
    }

    /// The shard is awake.
    pub fn rise(&self) {
        self.asleep.store(0, Ordering::Relaxed);
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
    fn a_shard_is_woken_only_for_what_it_would_miss() {
        let tray = Tray::default();
        assert!(!tray.put(&mut vec![parcel(5)]), "it is awake");
        assert!(!tray.rest(Time(100)), "there is something to take first");
        let mut taken = Vec::new();
        tray.take(&mut taken);
        assert!(taken.len() == 1 && !tray.is_filled() && tray.rest(Time(100)));
        assert!(!tray.put(&mut vec![parcel(100), parcel(200)]), "it will be awake by then");
        assert!(tray.put(&mut vec![parcel(300), parcel(99)]), "it would be late");
        tray.rise();
        assert!(!tray.put(&mut vec![parcel(1)]));
        tray.take(&mut taken);
        assert_eq!(taken.len(), 6);
    }

    /// Whatever the interleaving, nobody sleeps over a parcel.
    #[test]
    fn no_parcel_is_slept_over() {
        const PARCELS: usize = 20_000;
        let tray = Tray::default();
        let (knock, knocks) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let knock = knock;
                for due in 0..PARCELS as u64 {
                    if tray.put(&mut vec![parcel(due)]) {
                        knock.send(()).unwrap();
                    }
                }
            });
            let mut taken = Vec::new();
            while taken.len() < PARCELS {
                tray.take(&mut taken);
                if taken.len() < PARCELS && tray.rest(Time::MAX) {
                    // Fails if the sender ends without a knock that was due: a lost wake-up.
                    knocks.recv().unwrap();
                }
                tray.rise();
            }
        });
    }
}
