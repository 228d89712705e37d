//! Timers of masters and of nodes.

use crate::machine::Timer;

/// The purpose of a timer. A timer carries the number of the takeover, or of the change of masters, for which it was
/// armed. Timers of a master that has handed over, and timers from before a change, are void.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tick {
    /// A master sends its standby the changes of its queues.
    Push,
    /// A master reports the lengths of its queues.
    Report,
    /// A master no longer waits for workers that have not answered.
    Settle,
    /// A worker that is the master announces itself again, because it is not notified of crashes.
    Probe,
    /// A node becomes the master of a group without one.
    Claim,
    /// A node checks that its master, which is a worker, still responds.
    Watch,
}

impl Tick {
    const ALL: [Self; 6] = [Self::Push, Self::Report, Self::Settle, Self::Probe, Self::Claim, Self::Watch];
    /// Number of tick numbers reserved for each takeover or change.
    const STRIDE: u32 = 8;

    /// The timer of this kind for the takeover or change with this number.
    pub(super) const fn timer(self, number: u32) -> Timer {
        Timer::Tick(Self::STRIDE.wrapping_mul(number).wrapping_add(self as u32))
    }

    /// The kind of a tick that was armed for this number; `None` if it was armed for another number.
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
