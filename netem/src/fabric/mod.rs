//! The network's decisions: `route(now, src, dst, class, bytes) -> Verdict`.
//!
//! Delay and loss of the n-th message from one endpoint to another are pure functions of (seed, purpose,
//! source, destination, n): no other link, no time and no policy changes them. Only a rate makes messages
//! depend on each other, through the moment until which their link is busy.
//!
//! **Datagrams** are transmitted once, or twice if the network duplicates them. **Stream messages** are transmitted
//! until one transmission gets through: the second follows the first after the retransmission timeout, each further
//! one after twice the span before it. Retransmissions of a message count as attempts 1, 2, … of message n, with
//! delays and losses of their own. If none has got through when the peer timeout has passed, the message is
//! *unreachable*; loss alone can bring that about only if it defeats every attempt in that time. Messages
//! don't wait for each other's repetitions, as those of separate QUIC streams don't. Every transmission takes its
//! time on a link with a rate, also one that is lost on the way: loss makes no link faster.
//!
//! **Faults** are known in advance, so one that begins while a message is under way is taken into account
//! when it is sent:
//! - A transmission is lost if a partition exists at any moment between its departure and its arrival.
//! - A transmission that arrives while its destination is down is lost. What was sent to an incarnation that
//!   has crashed since never reaches the next: a datagram is gone, a stream message is reset, and its sender
//!   learns so when it arrives or when the destination is back, whichever is later, and not later than the
//!   peer timeout. What is sent while the destination is down may reach its next incarnation.
//! - Deliveries to a paused host wait until it goes on, however long; its own repetitions too.
//! - Acknowledgements are not modelled: a one-way partition stops messages in its direction only.

mod route;
mod transmit;

pub use route::Fabric;
