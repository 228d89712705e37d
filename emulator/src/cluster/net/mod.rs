//! Parcels and typed frames between machines, over QUIC with both sides authenticated.
//!
//! | module | what it holds |
//! |---|---|
//! | [`identity`], [`issue`] | who a machine is: certificates, loaded and made |
//! | [`hosts_file`] | the hosts file: who is where |
//! | [`endpoint`] | the socket: connects, accepts, refuses |
//! | `admission` | how many may come in, by source and by name |
//! | `hello` | the first words on a connection |
//! | [`refusals`] | who was turned away, and why |
//! | [`connection`] | one connection: who is at its other end, and why it ended |
//! | [`control`] | typed frames both ways |
//! | [`link`] | batches of parcels both ways, bounded |
//! | `counts` | what is counted of a link |
//! | [`plain`](mod@plain) | words of others, fit to be shown |
//! | [`clock_offset`] | the offset of the other machine's clock |
//!
//! Everything runs on the tokio runtime it is called in, meant to be a `current_thread` one. A peer that breaks
//! the protocol loses its connection and is told why; nobody else notices.

mod admission;
pub mod clock_offset;
pub mod connection;
pub mod control;
mod counts;
pub mod endpoint;
mod frames;
mod hello;
pub mod hosts_file;
pub mod identity;
pub mod issue;
pub mod link;
pub mod plain;
pub mod refusals;
mod sequence;
mod tls;

pub use connection::{Connection, End, Peer, PeerInfo};
pub use control::Control;
pub use counts::LinkStats;
pub use endpoint::{Options, Transport};
pub use hello::engine;
pub use hosts_file::{Host, Hosts};
pub use identity::{Identity, Role};
pub use link::{Arrival, Link};
