//! What every scheduler does with a message of its own that comes back undelivered.

use crate::base::{ActorId, Span};
use crate::machine::Effects;
use crate::message::{Launch, Message, Probe, Row};

/// How long a node that could not be reached is not tried again.
pub const RETRY_AFTER: Span = Span::from_secs(1);

/// Says again what must arrive, paced by the peer timeout, and returns the row that found no node, if that is
/// what came back: the policy launches it elsewhere.
pub fn resend(to: ActorId, msg: Message, fx: &mut Effects<'_>) -> Option<Row> {
    match msg {
        Message::Launch(Launch::Row(row)) => Some(row),
        Message::Probe(Probe::Grant { row, group }) => {
            // The node still holds its core for us: free it as soon as it can be reached.
            fx.recover(to, Probe::Nothing { job: row.job, group });
            Some(row)
        }
        Message::Probe(nothing @ Probe::Nothing { .. }) => {
            fx.recover(to, nothing);
            None
        }
        Message::Job(finished) => {
            fx.recover(to, finished);
            None
        }
        // A drop that does not arrive costs work, nothing else.
        _ => None,
    }
}
