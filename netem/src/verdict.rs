//! The verdict on a message, and the counts of all verdicts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use volary_actors::base::{Class, Span};

/// The fate of a message. Spans count from the moment of sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It arrives.
    Deliver {
        /// Its total delay.
        after: Span,
        /// Number of retransmissions of a stream message; zero for datagrams.
        retransmissions: u32,
    },
    /// The network duplicated a datagram; it arrives twice, in any order.
    Twice {
        /// Total delay of the original.
        after: Span,
        /// Total delay of its duplicate, with the wait for the original at a link with a rate.
        again: Span,
    },
    /// It never arrives, without notice to the sender: a datagram, or a stream message whose sender crashed before it
    /// could send it again.
    Drop(Cause),
    /// A stream message cannot be delivered; its sender is notified.
    Unreachable {
        /// Time until the sender is notified.
        after: Span,
        /// Why the last transmission failed.
        cause: Cause,
    },
}

/// Why a message, or one transmission of it, did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The loss distribution.
    Loss,
    /// The buffer of a link with a rate was full.
    Congestion,
    /// A partition existed, or began while it was under way.
    Partition,
    /// Its destination was down, or crashed while it was under way; or its sender crashed.
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
/// sent = delivered + dropped + unreachable; `lost` counts transmissions, of which a stream message can have
/// many.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClassStats {
    /// Messages sent.
    pub sent: u64,
    /// Messages delivered at least once.
    pub delivered: u64,
    /// Messages that never arrive, by [`Cause`], in the order of [`Cause::ALL`].
    pub dropped: [u64; Cause::ALL.len()],
    /// Stream messages returned to their sender, by cause of the last failure.
    pub unreachable: [u64; Cause::ALL.len()],
    /// Transmissions that failed, by cause.
    pub lost: [u64; Cause::ALL.len()],
    /// Datagrams that arrive twice.
    pub duplicated: u64,
    /// Datagrams held back by the reordering distribution.
    pub reordered: u64,
    /// Transmissions of stream messages after the first.
    pub retransmissions: u64,
    /// Deliveries held back because their destination was paused.
    pub held: u64,
    /// Transmissions over a degraded link.
    pub degraded: u64,
    /// Total propagation delay of delivered messages, ns.
    pub propagation_ns: u64,
    /// Total time of delivered messages for waiting and transmission at links with a rate, ns.
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
        // Sums over hosts saturate: a faulty count must not overflow.
        let add = |mine: &mut u64, theirs: u64| *mine = mine.saturating_add(theirs);
        let causes = |mine: &mut [u64], theirs: &[u64]| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| add(mine, *theirs));
        };
        add(&mut self.sent, other.sent);
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
    /// Adds the counts of another part of the same network.
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

    /// Transmissions of both classes that failed for a cause.
    pub const fn lost(&self, cause: Cause) -> u64 {
        self.datagram.lost[cause as usize] + self.stream.lost[cause as usize]
    }
}
