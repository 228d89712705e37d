//! The network between machines: parcels and typed frames over QUIC, with both sides authenticated.
//!
//! | module | what it holds |
//! |---|---|
//! | [`identity`], [`issue`] | certificates and keys, loaded and made |
//! | [`hosts_file`] | the hosts file: names and addresses |
//! | [`endpoint`] | the socket: connects to peers and accepts them; limits, timeouts, TLS and QUIC parameters; the handshakes under way, and their replacement |
//! | [`connection`] | one connection, and the reason for its end |
//! | [`framed`] | frames of a stream; typed frames both ways; the first frames on a connection |
//! | [`link`] | batches of parcels both ways, bounded, and lost or duplicate datagrams |
//! | [`clock_offset`] | the offset of the other machine's clock |
//!
//! All tasks run on the caller's tokio runtime, which is meant to be a `current_thread` runtime. If a peer breaks the
//! protocol, its connection is closed with the reason; other connections go on.

pub mod clock_offset;
pub mod connection;
pub mod endpoint;
pub mod framed;
pub mod hosts_file;
pub mod identity;
pub mod issue;
pub mod link;

pub use connection::{Close, Connection, End};
pub use endpoint::{Options, Peer, PeerInfo, Transport};
pub use framed::{Control, engine};
pub use hosts_file::{Host, Hosts};
pub use identity::{Identity, Role};
pub use link::{Arrival, Link, LinkStats};
