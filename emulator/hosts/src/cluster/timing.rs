//! Limits of silence on connections, and timeouts that grow with the round trip.

use std::time::Duration;

use super::net::Options;

/// Bounds of `--lease`: the silence after which an agent gives up a peer. The controller applies the agent's lease.
pub const SHORTEST_LEASE: Duration = Duration::from_secs(1);
pub const LONGEST_LEASE: Duration = Duration::from_secs(600);

/// Time for which a controller tries to reach an agent that does not answer; its last attempt may end later by the
/// handshake's timeout.
pub(crate) const CLAIM_PATIENCE: Duration = Duration::from_secs(10);

/// Options of a socket whose peers may be silent for this long.
pub(crate) fn socket_options(silence: Duration) -> Options {
    Options { idle_timeout: silence, keep_alive: silence / 5, ..Options::default() }
}

/// A timeout of at least the given length, and of the given number of round trips.
pub(crate) fn at_least((least, trips): (Duration, u32), round_trip: Duration) -> Duration {
    least.max(round_trip * trips)
}
