//! Limits of silence and timeouts that grow with the path.

use std::time::Duration;

use crate::cluster::net::Options;

/// The shortest time of silence after which an agent may give a peer up.
pub const SHORTEST_LEASE: Duration = Duration::from_secs(1);
/// The longest. The controller waits as long as the agent's own lease says, and never longer than this.
pub const LONGEST_LEASE: Duration = Duration::from_secs(600);

/// Limits of a socket whose peers may be silent for so long.
pub(crate) fn socket_options(silence: Duration) -> Options {
    Options { idle_timeout: silence, keep_alive: silence / 5, ..Options::default() }
}

/// A time that depends on the path: at least so long, or so many round trips.
pub(crate) fn allowing((least, trips): (Duration, u32), round_trip: Duration) -> Duration {
    least.max(round_trip * trips)
}
