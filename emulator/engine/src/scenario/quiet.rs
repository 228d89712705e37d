//! The time without a copy after which a run is given up, because no copy can start after such a long time.

use volary_actors::base::{JobId, Span};
use volary_actors::catalog::Catalog;
use volary_actors::message::MOST_WIRE_BYTES;
use volary_actors::roles::LONGEST_WAIT;
use volary_netem::{Faults, Worst};

use crate::scenario::{Machines, Point};
use crate::workload::Workload;

/// The shortest time after which a run is given up.
pub const SHORTEST: Span = Span::from_secs(24 * 3600);

/// Messages that must arrive in sequence until a copy runs: a request, a claim, its answer, and a spare message.
const IN_TURN: u32 = 4;

/// Rounds of messages without a copy when nothing fails: the current round, and the round that answers it.
const BETWEEN: f64 = 2.0;

/// Probability below which a series of failures is ignored.
const UNLIKELY: f64 = 1e-9;

/// Limit on the length of a series of failures. It is reached if nine messages of ten are lost.
const MOST_FAILURES: f64 = 1e5;

/// Maximum share of one core in all reservations, as a multiple of the mean share.
const SKEW: f64 = 2.0;

/// The time without a copy after which a run of a point with these jobs is given up, once all jobs have arrived and all
/// faults have healed; `None` for a point that cannot be run. It is at least a day. It covers the longest waits of
/// policy and network, repeated as often in a row as messages can be lost, all reservations claimed in vain, and all
/// messages handled by one actor.
pub fn longest_quiet(point: &Point, workload: &Workload) -> Option<Span> {
    let network = &point.resolved.network;
    let machines = point.resolved.cluster.machines(&point.policy, 0);
    let faults = Faults::resolve(&network.fault, &machines.groups, machines.layout.endpoints()).ok()?;
    longest(point, workload, &machines, &faults)
}

/// Calculates [`longest_quiet`] for machines and faults that are resolved already.
pub(crate) fn longest(
    point: &Point,
    workload: &Workload,
    machines: &Machines,
    faults: &Faults,
) -> Option<Span> {
    let (policy, network) = (&point.policy, &point.resolved.network);
    let worst = Worst::of(network, &machines.links, faults).ok()?;
    let tasks = || (0..workload.jobs()).map(|job| workload.job(JobId(job)).tasks);
    let messages: u64 = tasks().map(|tasks| u64::from(tasks) * u64::from(IN_TURN)).sum();
    let delay = worst.longest_delay(messages.saturating_mul(MOST_WIRE_BYTES.into()));
    let round = policy.longest_wait() + network.peer_timeout + LONGEST_WAIT + delay + delay;
    let reservations = policy.traits().reservations;
    let claims: u64 = tasks().map(|tasks| reservations.reserved_for(tasks)).sum();
    let trip = 2.0 * worst.mean_delay().min(delay.as_secs_f64());
    let workers = f64::from(machines.layout.workers().max(1));
    let in_vain = Span::from_secs_f64(SKEW * claims as f64 / workers * trip);
    let slowest = point.resolved.actors.iter().flat_map(|actors| actors.handling.values());
    let slowest = slowest.map(|time| time.mean()).fold(0.0, f64::max);
    let handling = Span::from_secs_f64(SKEW * messages as f64 * slowest);
    Some(SHORTEST.max(round.scale(BETWEEN + failures(worst.loss())) + in_vain + handling))
}

/// Maximum number of failures in a row of a round of messages.
fn failures(loss: f64) -> f64 {
    let fails = 1.0 - (1.0 - loss).powi(IN_TURN as i32);
    if fails <= 0.0 {
        1.0
    } else if fails >= 1.0 {
        MOST_FAILURES
    } else {
        (UNLIKELY.ln() / fails.ln()).ceil().clamp(1.0, MOST_FAILURES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_are_counted_until_they_are_unlikely() {
        assert_eq!((failures(0.0), failures(1.0)), (1.0, MOST_FAILURES));
        for loss in [0.01_f64, 0.3, 0.6] {
            let (fails, most) = (1.0 - (1.0 - loss).powi(4), failures(loss));
            assert!(fails.powf(most) <= UNLIKELY && fails.powf(most - 1.0) > UNLIKELY, "{loss}: {most}");
        }
    }
}
