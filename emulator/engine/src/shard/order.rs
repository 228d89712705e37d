//! The hash of the order of events.

use super::event_loop::{Event, What};
use crate::queue::Key;
use volary_actors::base::Span;
use volary_actors::machine::Input;

/// The hash of one more event.
#[inline]
pub(super) fn hash(before: u64, key: Key, event: &Event) -> u64 {
    (before.rotate_left(7) ^ fingerprint(key, event)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What of an event enters the order hash: when, from whom, to whom, and what kind of thing.
fn fingerprint(key: Key, event: &Event) -> u64 {
    let kind = match &event.what {
        What::Input(Input::Deliver { msg, .. }) => u64::from(msg.kind()),
        What::Input(Input::Undelivered { msg, .. }) => 0x100 + u64::from(msg.kind()),
        What::Input(Input::Done { copy }) => 0x200 + (u64::from(copy.task.index) << 16),
        What::Input(_) => 0x300,
        What::Told(msg) => 0x700 + u64::from(msg.kind()),
        What::Crash => 0x400,
        What::Notice => 0x500,
        What::Restart => 0x600,
        What::Stall => 0x800,
        What::Resume => 0x900,
    };
    key.due.0
        ^ (u64::from(key.source.0) << 32 | u64::from(key.count))
        ^ kind.rotate_left(24)
        ^ u64::from(event.to.0).rotate_left(48)
}

/// A delay as an event remembers it.
pub(super) fn asked(delay: Span) -> u32 {
    u32::try_from(delay.0 / 1000).unwrap_or(u32::MAX)
}
