//! Policies of runs without jobs: push, pull, push-pull and flood spread updates among members; SWIM and Lifeguard
//! detect failures of members.

use super::policy::{BuildContext, Gossips, Policy, Traits};
use crate::base::{DistributionSpec, Span, parameters};
use crate::layout::{Layout, Role};
use crate::machine::Machine;
use crate::roles::detector::Detector;
pub use crate::roles::detector::Lifeguard;
use crate::roles::gossip::{Exchange, Gossiper, Periodic};

const SECOND: DistributionSpec<Span> = DistributionSpec::Constant(Span::from_secs(1));
const AT_ONCE: DistributionSpec<Span> = DistributionSpec::Constant(Span::ZERO);

parameters! {
    /// Parameters of push.
    struct Push {
        /// Number of distinct neighbours to which a member sends in a period.
        fan_out: u32 = 1 => 1..=65_536,
        /// Length of a period. With an exponential distribution members send at the instants of Poisson processes.
        period: DistributionSpec<Span> = SECOND,
        /// Whether constant periods of all members begin together, as in models of rounds; otherwise each member begins
        /// at a random time of the first period.
        aligned: bool = false,
        /// Number of periods in which a member sends an update; 0 for all, until a newer update of the same origin
        /// replaces it.
        rounds: u32 = 0 => 0..=1_000_000,
    }
}

parameters! {
    /// Parameters of pull.
    struct Pull {
        /// Number of distinct neighbours that a member asks in a period.
        fan_out: u32 = 1 => 1..=65_536,
        /// Length of a period. With an exponential distribution members ask at the instants of Poisson processes.
        period: DistributionSpec<Span> = SECOND,
        /// Whether constant periods of all members begin together, as in models of rounds; otherwise each member begins
        /// at a random time of the first period.
        aligned: bool = false,
        /// Whether a request carries a digest of the member's updates, so that a neighbour with the same updates does
        /// not answer (Demers et al. 1987: checksums). Otherwise a neighbour that has updates always answers.
        digest: bool = true,
    }
}

parameters! {
    /// Parameters of push-pull.
    struct PushPull {
        /// Number of distinct neighbours that a member contacts in a period.
        fan_out: u32 = 1 => 1..=65_536,
        /// Length of a period. With an exponential distribution members act at the instants of Poisson processes.
        period: DistributionSpec<Span> = SECOND,
        /// Whether constant periods of all members begin together, as in models of rounds; otherwise each member begins
        /// at a random time of the first period.
        aligned: bool = false,
        /// Number of periods in which a member pushes an update; 0 for all, until a newer update of the same origin
        /// replaces it.
        rounds: u32 = 0 => 0..=1_000_000,
        /// Whether a request carries a digest of the member's updates, so that a neighbour with the same updates does
        /// not answer (Demers et al. 1987: checksums). Otherwise a neighbour that has updates always answers.
        digest: bool = true,
    }
}

parameters! {
    /// Parameters of flood.
    struct Flood {
        /// Number of distinct neighbours to which an origin sends an update, and to which each member forwards an
        /// update that is new to it; never to the sender. 0 for all neighbours.
        fan_out: u32 = 0 => 0..=65_536,
        /// Time for which a member checks an update that it does not have, before it has the update and forwards it. A
        /// member checks one update after the other.
        check: DistributionSpec<Span> = AT_ONCE,
        /// Time for which an origin prepares an update before it sends it.
        prepare: DistributionSpec<Span> = AT_ONCE,
    }
}

parameters! {
    /// Parameters of SWIM.
    struct Swim {
        /// Protocol period: time from one probe to the next.
        period: Span = Span::from_secs(1) => period,
        /// Whether the periods of all members begin together; otherwise each member begins at a random time of the
        /// first period.
        aligned: bool = false,
        /// Whether each probe goes to a random member, as in SWIM's analysis. Otherwise a member probes all others once
        /// in a random order, then draws a new order.
        random: bool = false,
        /// Time without an acknowledgement after which other members are asked to ping; less than `period`.
        timeout: Span = Span::from_millis(500) => period,
        /// Number of other members that are asked to ping a member that did not acknowledge in time.
        indirect: u32 = 3 => 0..=1_000,
        /// Time for which a member is suspected before it is declared dead, in periods. It is multiplied by log10 of
        /// the number of members if this is above 1. 0: a member is declared dead at once.
        suspicion: f64 = 5.0 => 0.0..=100_000.0,
        /// Maximum number of pieces of news in a message, besides the one about its receiver.
        piggyback: u32 = 6 => 1..=10_000,
        /// Number of messages in which a member sends a piece of news; multiplied by log10 of (members + 1), rounded
        /// up.
        repeats: u32 = 4 => 1..=10_000,
        /// Time between pings to a random member that has been declared dead.
        reconnect: Span = Span::from_secs(30) => period,
    }
}

impl Swim {
    /// SWIM is Lifeguard without its three extensions.
    fn detection(&self) -> Lifeguard {
        let Self { period, aligned, random, timeout, indirect, suspicion, piggyback, repeats, reconnect } =
            *self;
        let probe =
            Lifeguard { period, aligned, random, timeout, indirect, suspicion, ..Lifeguard::default() };
        Lifeguard {
            piggyback,
            repeats,
            reconnect,
            slowest: 1.0,
            confirmations: 0,
            health: 0,
            buddy: false,
            ..probe
        }
    }
}

impl Lifeguard {
    fn detection(&self) -> Self {
        self.clone()
    }
}

impl Push {
    fn exchange(&self) -> Exchange {
        let Self { fan_out, period, aligned, rounds } = self.clone();
        Exchange::Periodic(Periodic { period, aligned, fan_out, push: Some(rounds), pull: None })
    }
}

impl Pull {
    fn exchange(&self) -> Exchange {
        let Self { fan_out, period, aligned, digest } = self.clone();
        Exchange::Periodic(Periodic { period, aligned, fan_out, push: None, pull: Some(digest) })
    }
}

impl PushPull {
    fn exchange(&self) -> Exchange {
        let Self { fan_out, period, aligned, rounds, digest } = self.clone();
        Exchange::Periodic(Periodic { period, aligned, fan_out, push: Some(rounds), pull: Some(digest) })
    }
}

impl Flood {
    fn exchange(&self) -> Exchange {
        let Self { fan_out, check, prepare } = self.clone();
        Exchange::Flood { fan_out, check, prepare }
    }
}

/// Implements the policies of runs without jobs. A row has name, purpose, parameters, machine and description.
macro_rules! gossips {
    ($($name:ident: $kind:ident, $form:ident, $machine:ident, $about:literal,)*) => {$(
        impl Policy for $name {
            const ABOUT: &'static str = $about;

            fn traits(&self) -> Traits<'_> {
                Traits { gossips: Some(Gossips::$kind), ..Traits::default() }
            }

            fn check(&self, layout: &Layout) -> Result<(), String> {
                self.$form().check(layout)
            }

            fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
                $machine::boxed(self.$form(), Role::Scheduler(context.index), context.layout)
            }

            fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
                $machine::boxed(self.$form(), Role::Node(context.index), context.layout)
            }
        }
    )*};
}

gossips! {
    Push: Updates, exchange, Gossiper, "Gossip by push (Demers et al., PODC 1987; Pittel 1987)\n\
        In each period a member sends the newest update that it has of each origin to random neighbours. On the complete \
        graph one update reaches all n members in about log2 n + ln n periods. For [workload.gossip].",
    Pull: Updates, exchange, Gossiper, "Gossip by pull (Demers et al., PODC 1987)\n\
        In each period a member asks random neighbours for the newest update that they have of each origin. Once half of \
        the members have an update, the share that lacks it is squared in each period. Updates must arise at members, \
        because members do not ask the source. For [workload.gossip].",
    PushPull: Updates, exchange, Gossiper, "Gossip by push-pull (Demers et al., PODC 1987; Karp et al., FOCS 2000)\n\
        In each period a member sends its updates to random neighbours, and then asks them for theirs. With exponential \
        periods on the complete graph one update reaches all n members in (1 + 1/2 + … + 1/(n − 1)) (n − 1)/n periods in \
        the mean. For [workload.gossip].",
    Flood: Updates, exchange, Gossiper, "Gossip by flooding (rumour mongering that ends at once)\n\
        A member forwards each update that is new to it at once, to all its neighbours or to some, and never again. With \
        a fan-out f on a large complete graph, the share r of members that an update reaches solves r = 1 − exp(−f r). \
        For [workload.gossip].",
    Swim: Failures, detection, Detector, "Failure detection by SWIM (Das, Gupta and Motivala, DSN 2002)\n\
        In each period a member pings another, and asks others to ping it if it does not acknowledge. A member that \
        acknowledges no ping is suspected, and held dead unless it refutes the suspicion in time. Suspicions, deaths and \
        refutations are piggybacked on pings and acknowledgements. For [workload.gossip] without updates.",
    Lifeguard: Failures, detection, Detector, "Failure detection by Lifeguard (Dadgar, Phillips and Currey, 2017)\n\
        SWIM with three extensions: a member that misses acknowledgements slows its probes down, a suspicion lasts \
        longer while no other member shares it, and messages to a suspected member state the suspicion. For \
        [workload.gossip] without updates.",
}
