//! The event loop of a partition of the actors, and everything it acts on.

mod account;
mod ahead;
mod board;
mod event_loop;
mod faults;
mod hands;
mod observe;
mod order;
mod outbox;
mod parts;
mod speak;
mod traffic;
mod work;

pub use event_loop::Shard;
pub use hands::Hands;
pub use observe::{Due, Observer};
pub use outbox::{Outbox, Placement};
pub use parts::Parts;
pub use traffic::Traffic;
