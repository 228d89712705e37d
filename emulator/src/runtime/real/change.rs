//! Interference that is changed while a run goes on.

use tokio::sync::oneshot;
use volary_actors::base::Time;

use super::watcher::Watcher;
use crate::cores::{CoreSet, Injection};
use crate::shard::Shard;

/// A change, and who waits to hear when it took effect.
#[derive(Debug)]
pub enum Change {
    /// Another profile is to rule some cores.
    Inject {
        /// Which.
        injection: Box<Injection>,
        /// Its number, and from when it rules.
        done: oneshot::Sender<(usize, Time)>,
    },
    /// That is to end.
    Lift {
        /// The injection's number.
        number: usize,
        /// The cores that it ruled.
        cores: CoreSet,
        /// Since when it does not at the latest.
        done: oneshot::Sender<Time>,
    },
}

impl Change {
    /// Applies it when the clock shows `clock`.
    pub fn apply(self, clock: Time, shard: &mut Shard<'_, Watcher>) {
        // Whoever asked may have gone.
        match self {
            Self::Inject { injection, done } => {
                let _ = done.send(shard.inject(clock, *injection));
            }
            Self::Lift { number, cores, done } => {
                let _ = done.send(shard.lift(clock, number, &cores));
            }
        }
    }
}
