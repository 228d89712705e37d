//! Timers of masters and of nodes.

use crate::machine::Timer;

/// What a timer is for. Those of a master that has handed over, and those of a node that were armed before the masters
/// of its group changed, are void: a timer carries the number of the master, or of the change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tick {
    /// A master tells its standby what changed.
    Push,
    /// A master reports the lengths of its queues.
    Report,
    /// A new master no longer waits for workers that have not answered.
    Settle,
    /// A worker that is the master tells everybody so, because it is not told of crashes.
    Probe,
    /// A node becomes the master of a group without one.
    Claim,
    /// A node makes sure that the worker that is its master is there.
    Watch,
}

impl Tick {
    const ALL: [Self; 6] = [Self::Push, Self::Report, Self::Settle, Self::Probe, Self::Claim, Self::Watch];
    /// Numbers set aside for each master or change.
    const STRIDE: u32 = 8;

    /// The timer of this kind under a number.
    pub(super) const fn timer(self, number: u32) -> Timer {
        Timer::Tick(Self::STRIDE.wrapping_mul(number).wrapping_add(self as u32))
    }

    /// The kind of a tick that was armed under this number; `None` if it was armed under another.
    pub(super) fn armed(tick: u32, number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.timer(number) == Timer::Tick(tick))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_another_number_are_void() {
        for number in [0, 1, u32::MAX] {
            for kind in Tick::ALL {
                let Timer::Tick(tick) = kind.timer(number) else { panic!("{kind:?}") };
                assert_eq!(Tick::armed(tick, number), Some(kind));
                assert_eq!(Tick::armed(tick, number.wrapping_add(1)), None);
            }
        }
    }
}
