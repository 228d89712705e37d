//! A scheduler's reaction to an undelivered message of its own.

use crate::base::{ActorId, Span};
use crate::machine::Effects;
use crate::message::{Launch, Message, Offer, Probe, Row};

/// Pause before a node that could not be reached is tried again.
pub const RETRY_AFTER: Span = Span::from_secs(1);

/// Longest wait before a message that may have been lost is repeated.
pub const LONGEST_WAIT: Span = Span::from_secs(300);

/// The wait with index `past` (from zero) of a series that begins with `first` and doubles, up to five minutes, or up
/// to `first` if `first` is longer.
pub fn back_off(first: Span, past: u32) -> Span {
    let doubled = first.0.saturating_mul(1u64.checked_shl(past).unwrap_or(u64::MAX));
    Span(doubled).min(LONGEST_WAIT.max(first))
}

/// Repeats a message that must arrive; the peer timeout limits the rate of repetitions. Returns the undelivered row, if
/// the message carried one: the policy launches it on another node.
pub fn resend(to: ActorId, msg: Message, fx: &mut Effects<'_>) -> Option<Row> {
    match msg {
        Message::Launch(Launch::Row(row)) => Some(row),
        Message::Probe(Probe::Grant { row, group }) => {
            // The node still holds a core, which becomes free as soon as the node can be reached.
            fx.recover(to, Probe::Nothing { job: row.job, group });
            Some(row)
        }
        Message::Offer(Offer::Grant { copy, group, .. }) => {
            fx.recover(to, Probe::Nothing { job: copy.task.job, group });
            Some(Row::single(copy))
        }
        Message::Probe(Probe::Nothing { .. }) | Message::Offer(Offer::Refuse { .. }) | Message::Job(_) => {
            fx.recover(to, msg);
            None
        }
        // A lost drop only wastes work.
        _ => None,
    }
}
