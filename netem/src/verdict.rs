//! The verdict on a message, and the counts of all verdicts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use volary_actors::base::{Class, Span};

/// The fate of a message. All spans are from the moment of sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The message arrives.
    Deliver {
        /// Total delay of the message.
        after: Span,
        /// Number of retransmissions of a stream message; zero for datagrams.
        retransmissions: u32,
    },
    /// The network duplicated a datagram; it arrives twice, in any order.
    Twice {
        /// Total delay of the original.
        after: Span,
        /// Total delay of the duplicate, with its wait for the original at a link with a rate.
        again: Span,
    },
    /// The message never arrives, and the sender is not notified. It is a datagram, or a stream message whose sender
    /// crashed before a repetition.
    Drop(Cause),
    /// A stream message cannot be delivered; its sender is notified.
    Unreachable {
        /// Time until the sender is notified.
        after: Span,
        /// Cause of the last transmission's failure.
        cause: Cause,
    },
}

/// Cause of the failure of a message, or of one of its transmissions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The loss distribution.
    Loss,
    /// The buffer of a link with a rate was full.
    Congestion,
    /// A partition existed, or began while the message was in flight.
    Partition,
    /// The destination was down, or crashed while the message was in flight; or the sender crashed.
    Crash,
    /// Extra loss of a degraded link.
    Degradation,
}

impl Cause {
    /// Every cause, in the order of their counters.
    pub const ALL: [Self; 5] =
        [Self::Loss, Self::Congestion, Self::Partition, Self::Crash, Self::Degradation];
}

/// Counts of the messages of one class.
///
/// sent = delivered + dropped + unreachable. `lost` counts transmissions; a stream message can have many.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClassStats {
    /// Number of messages sent.
    pub sent: u64,
    /// Bytes sent, headers and repeated transmissions included.
    pub bytes: u64,
    /// Number of messages delivered at least once.
    pub delivered: u64,
    /// Number of messages that never arrive, by [`Cause`], in the order of [`Cause::ALL`].
    pub dropped: [u64; Cause::ALL.len()],
    /// Number of stream messages returned to their sender, by cause of the last failure.
    pub unreachable: [u64; Cause::ALL.len()],
    /// Number of failed transmissions, by cause.
    pub lost: [u64; Cause::ALL.len()],
    /// Number of datagrams that arrive twice.
    pub duplicated: u64,
    /// Number of datagrams held back by the reordering distribution.
    pub reordered: u64,
    /// Number of transmissions of stream messages after the first.
    pub retransmissions: u64,
    /// Number of deliveries held back because their destination was paused.
    pub held: u64,
    /// Number of transmissions over a degraded link.
    pub degraded: u64,
    /// Total propagation delay of delivered messages, ns.
    pub propagation_ns: u64,
    /// Total time for which delivered messages waited and were sent at links with a rate, ns.
    pub queueing_ns: u64,
    /// Total delay of delivered messages that retransmission timeouts added, ns.
    pub retransmission_ns: u64,
    /// Total delay that pauses of the destination added, ns.
    pub paused_ns: u64,
}

/// Counts of both classes: verdicts, faults, and the parts of delays.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    /// Counts of datagrams.
    pub datagram: ClassStats,
    /// Counts of stream messages.
    pub stream: ClassStats,
}

impl ClassStats {
    fn add(&mut self, other: &Self) {
        // Sums over hosts saturate, so that a faulty count does not overflow.
        let add = |mine: &mut u64, theirs: u64| *mine = mine.saturating_add(theirs);
        let causes = |mine: &mut [u64], theirs: &[u64]| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| add(mine, *theirs));
        };
        add(&mut self.sent, other.sent);
        add(&mut self.bytes, other.bytes);
        add(&mut self.delivered, other.delivered);
        causes(&mut self.dropped, &other.dropped);
        causes(&mut self.unreachable, &other.unreachable);
        causes(&mut self.lost, &other.lost);
        add(&mut self.duplicated, other.duplicated);
        add(&mut self.reordered, other.reordered);
        add(&mut self.retransmissions, other.retransmissions);
        add(&mut self.held, other.held);
        add(&mut self.degraded, other.degraded);
        add(&mut self.propagation_ns, other.propagation_ns);
        add(&mut self.queueing_ns, other.queueing_ns);
        add(&mut self.retransmission_ns, other.retransmission_ns);
        add(&mut self.paused_ns, other.paused_ns);
    }
}

impl Stats {
    /// Adds the counts of another part of the network.
    pub fn add(&mut self, other: &Self) {
        self.datagram.add(&other.datagram);
        self.stream.add(&other.stream);
    }

    /// The counts of a class.
    #[inline]
    pub const fn of(&self, class: Class) -> &ClassStats {
        match class {
            Class::Datagram => &self.datagram,
            Class::Stream => &self.stream,
        }
    }

    #[inline]
    pub(crate) const fn of_mut(&mut self, class: Class) -> &mut ClassStats {
        match class {
            Class::Datagram => &mut self.datagram,
            Class::Stream => &mut self.stream,
        }
    }

    /// Bytes sent in both classes, headers and repeated transmissions included.
    pub const fn bytes(&self) -> u64 {
        self.datagram.bytes.saturating_add(self.stream.bytes)
    }

    /// Number of transmissions of both classes that failed for a cause.
    pub const fn lost(&self, cause: Cause) -> u64 {
        self.datagram.lost[cause as usize] + self.stream.lost[cause as usize]
    }
}
