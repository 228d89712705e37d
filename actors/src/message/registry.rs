//! The closed set of messages.

use serde::{Deserialize, Serialize};

use super::core::Core;
use super::custom::{Custom, installed};
use super::detect::Detect;
use super::hopper::Offer;
use super::job::Job;
use super::launch::Launch;
use super::murmuration::Gossip;
use super::peacock::{Ring, RingProbe};
use super::pigeon::Group;
use super::probe::{Probe, Share, Steal};
use super::protocol::{Protocol, Run};
use super::report::{Contention, Heartbeat, NodeReport, Progress, UsageReport};
use super::slice::{Preemption, Slice};
use super::spread::Spread;
use crate::base::{ActorId, Class, JobId};
use crate::catalog::Catalog;
use crate::layout::Layout;

/// An array with the elements of `part` from index `at` on.
const fn filled<T: Copy, const N: usize>(mut all: [T; N], at: usize, part: &[T]) -> [T; N] {
    let mut i = 0;
    while i < part.len() {
        all[at + i] = part[i];
        i += 1;
    }
    all
}

macro_rules! messages {
    ($($(#[$doc:meta])* $variant:ident($message:ident),)*) => {
        /// A message from one actor to another. At most 32 bytes.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum Message {
            $($(#[$doc])* $variant($message),)*
        }

        /// Name and class of every kind of message, in the order of [`Message::kind`]. The last entries are the numbers
        /// that policies of other crates can use; [`kind_name`](super::kind_name) gives their names.
        pub const KINDS: [(&str, Class); COUNT] = {
            let mut all = [("", Class::Stream); COUNT];
            let mut at = 0;
            $(
                all = filled(all, at, <$message as Protocol>::KINDS);
                at += <$message as Protocol>::KINDS.len();
            )*
            assert!(at == COUNT);
            all
        };
        /// Length of the longest message of every kind in the encoding of messages between hosts, bytes, in the order
        /// of [`KINDS`].
        const ENCODED: [u32; COUNT] = {
            let mut all = [0; COUNT];
            let mut at = 0;
            $(
                all = filled(all, at, <$message as Protocol>::BYTES);
                at += <$message as Protocol>::BYTES.len();
            )*
            assert!(at == COUNT);
            all
        };
        const COUNT: usize = 0 $(+ <$message as Protocol>::KINDS.len())*;

        impl Message {
            /// The kind of this message: an index into [`KINDS`].
            #[inline]
            pub fn kind(&self) -> u8 {
                let mut base = 0;
                $(
                    if let Self::$variant(inner) = self { return base + inner.kind(); }
                    base += <$message as Protocol>::KINDS.len() as u8;
                )*
                base
            }

            /// True for continuation fragments. A logical message above 32 bytes is sent as several `Message`s;
            /// fragments count as bytes, not as messages.
            #[inline]
            pub fn is_fragment(&self) -> bool {
                match self { $(Self::$variant(inner) => inner.is_fragment(),)* }
            }

            /// The job that the message concerns, if any.
            pub fn job(&self) -> Option<JobId> {
                match self { $(Self::$variant(inner) => inner.job(),)* }
            }

            /// True if an actor of the role of `from` may send this message to an actor of the role of `to`, and all
            /// its indices are within the bounds of this run. Machines index their tables without checking, so
            /// runtimes check every message from another process. For a message that is returned undelivered, `from`
            /// is its original sender. The cost is a few comparisons and one access to the job.
            pub fn check(&self, from: ActorId, to: ActorId, layout: &Layout, catalog: &dyn Catalog) -> bool {
                // Workers share the endpoint of their node and never use the network.
                if from == to || from.0.max(to.0) >= layout.endpoints() {
                    return false;
                }
                let run = Run { from: layout.role(from), to: layout.role(to), layout, catalog };
                match self { $(Self::$variant(inner) => inner.check(&run),)* }
            }
        }

        $(impl From<$message> for Message {
            #[inline]
            fn from(inner: $message) -> Self { Self::$variant(inner) }
        })*
    };
}

messages! {
    /// Client ↔ scheduler: submission and completion of jobs.
    Job(Job),
    /// Scheduler ↔ node: early binding, completion, removal.
    Launch(Launch),
    /// Node ↔ its own worker.
    Core(Core),
    /// Scheduler ↔ node: reservations, late binding, sampling.
    Probe(Probe),
    /// A probe on Peacock's ring.
    RingProbe(RingProbe),
    /// Cluster-wide state on Peacock's ring.
    Ring(Ring),
    /// Gang scheduler ↔ node: time slices.
    Gang(Slice),
    /// Murmuration: updates of the caches of expected waits.
    Gossip(Gossip),
    /// Scheduler ↔ node: probes that can be rejected, and a bitmap.
    Share(Share),
    /// Node ↔ node: stealing of reservations.
    Steal(Steal),
    /// Node → scheduler: the wait at the node.
    Heartbeat(Heartbeat),
    /// Node → scheduler: progress of running copies.
    Progress(Progress),
    /// Node → scheduler: attained service, or number of containers that fit.
    NodeReport(NodeReport),
    /// Scheduler → node: suspension and resumption.
    Preemption(Preemption),
    /// Messages of Pigeon's schedulers, masters of groups and workers.
    Group(Group),
    /// Node → scheduler: use of shared nodes.
    Usage(UsageReport),
    /// Node → scheduler: throttling and eviction on shared nodes.
    Contention(Contention),
    /// Member → member: updates without jobs.
    Spread(Spread),
    /// Member ↔ member: probes, and beliefs about each other.
    Detect(Detect),
    /// Scheduler ↔ node: reservations with virtual sizes, and offers that can be refused.
    Offer(Offer),
    /// The messages of policies in other crates.
    Custom(Custom),
}

impl Message {
    /// The delivery class of this message.
    #[inline]
    pub fn class(&self) -> Class {
        KINDS[self.kind() as usize].1
    }

    /// Name of the message, `protocol.kind`.
    #[inline]
    pub fn name(&self) -> &'static str {
        kind_name(self.kind())
    }

    /// Bytes of this message on the wire: for an update the size that the experiment states, if any; else the size of
    /// the message's kind.
    #[inline]
    pub fn wire_bytes(&self, layout: &Layout) -> u32 {
        let update = matches!(self, Self::Spread(Spread::Push { .. } | Spread::Answer { .. }));
        let stated = layout.gossip().filter(|_| update).and_then(|group| group.bytes);
        stated.unwrap_or_else(|| wire_bytes(self.kind()))
    }
}

/// Bytes of the headers of a message on the wire. Each message is a QUIC packet of its own: IPv4, UDP, short header and
/// tag take 53 bytes, and the frame header takes 4.
pub const HEADERS: u32 = 57;

/// Largest size of any kind of message on the wire, in bytes. Updates whose size an experiment states can be larger.
pub const MOST_WIRE_BYTES: u32 = {
    let (mut most, mut at) = (0, 0);
    while at < COUNT {
        most = if ENCODED[at] > most { ENCODED[at] } else { most };
        at += 1;
    }
    HEADERS + most
};

/// Bytes of a message of a kind on the wire: headers, and the length of the longest message of the kind as it is
/// encoded between hosts. A message of a policy in another crate has the bytes of its fields instead of a whole
/// payload.
#[inline]
pub fn wire_bytes(kind: u8) -> u32 {
    let custom = usize::from(kind).checked_sub(CLOSED).and_then(|at| installed()[at]);
    HEADERS + custom.map_or_else(|| ENCODED[usize::from(kind)], |kind| kind.bytes)
}

/// Number of kinds of this crate's messages.
const CLOSED: usize = COUNT - <Custom as Protocol>::KINDS.len();

/// Name and class of every kind of message that this process knows.
pub fn kinds() -> impl Iterator<Item = (&'static str, Class)> {
    let custom = installed().iter().flatten().map(|kind| (kind.name, kind.class));
    KINDS[..CLOSED].iter().copied().chain(custom)
}

/// The name of a kind, an index into [`KINDS`].
pub fn kind_name(kind: u8) -> &'static str {
    let kind = usize::from(kind);
    let custom = kind.checked_sub(CLOSED).and_then(|at| installed()[at]);
    custom.map_or(KINDS[kind].0, |kind| kind.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Span, Time};
    use crate::harness::{Jobs, SINGLE};
    use crate::message::slice::SliceWork;
    use crate::message::{Blocks, EndUpdate, PlacementForm, PlacementUpdate, Row, Stamp, TaskRange};

    /// Whether a message passes the check in a run of two schedulers, nodes of one and two cores, and 1000 jobs of four
    /// tasks.
    fn passes(layout: &Layout, from: ActorId, to: ActorId, msg: impl Into<Message>) -> bool {
        msg.into().check(
            from,
            to,
            layout,
            &Jobs { tasks: 4, long: Vec::new(), deadlines: Vec::new(), stages: SINGLE },
        )
    }

    const JOB: JobId = JobId(999);
    const NO_JOB: JobId = JobId(1000);

    #[test]
    fn kinds_of_messages_have_distinct_names() {
        let submit = Message::from(Job::Submit { job: JOB, round: 0 });
        assert_eq!(submit.name(), "job.submit");
        let reserve = Message::from(Probe::Reserve { job: JOB, group: 0, count: 1, repair: false });
        assert_eq!((reserve.name(), reserve.class()), ("probe.reserve", Class::Datagram));
        let mut names: Vec<_> = kinds().map(|kind| kind.0).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn messages_name_the_job_that_they_concern() {
        let copy = JOB.task(3).copy(0);
        for (msg, job) in [
            (Message::from(Job::Finished { job: JOB, killed: false }), Some(JOB)),
            (Launch::Task { copy, at: Time::ZERO }.into(), Some(JOB)),
            (Launch::Completed { copy }.into(), Some(JOB)),
            (Core::run(copy).into(), Some(JOB)),
            (Probe::Length { task: JOB.task(1), length: 2 }.into(), Some(JOB)),
            (
                Slice::Switch { core: 0, work: SliceWork::Begin(copy), epoch: 0, order: 0, open: JobId(0) }
                    .into(),
                Some(JOB),
            ),
            (
                Slice::Switch { core: 0, work: SliceWork::Rest, epoch: 0, order: 0, open: JobId(0) }.into(),
                None,
            ),
            (Gossip::Ask { epoch: 1 }.into(), None),
            (Steal::Ask.into(), None),
        ] {
            assert_eq!(msg.job(), job, "{}", msg.name());
        }
    }

    #[test]
    fn messages_pass_only_between_the_roles_of_their_table() {
        let layout = Layout::new(2, 1, [1, 2]);
        let (client, scheduler, node) = (layout.client(0), layout.scheduler(0), layout.node(1));
        let ends = [client, scheduler, layout.scheduler(1), layout.node(0), node, layout.auxiliary(0)];
        let submit = Message::from(Job::Submit { job: JOB, round: 0 });
        let run = Core::run(JOB.task(0).copy(0));
        for from in ends.into_iter().chain([layout.worker(0, 0), ActorId(u32::MAX)]) {
            for to in ends.into_iter().chain([layout.worker(0, 0), ActorId(u32::MAX)]) {
                let roles = |a, b| {
                    from != to && ends.contains(&from) && ends.contains(&to) && {
                        let kind = |actor| std::mem::discriminant(&layout.role(actor));
                        (kind(from), kind(to)) == (kind(a), kind(b))
                    }
                };
                assert_eq!(passes(&layout, from, to, submit), roles(client, scheduler));
                assert_eq!(passes(&layout, from, to, Steal::Ask), roles(node, layout.node(0)));
                assert_eq!(passes(&layout, from, to, Gossip::Ask { epoch: 1 }), roles(scheduler, scheduler));
                assert!(!passes(&layout, from, to, run), "workers are reached by their own node only");
            }
        }
    }

    #[test]
    fn messages_with_indices_beyond_their_tables_are_rejected() {
        let layout = Layout::new(2, 1, [1, 2]);
        let (up, down, other) = (layout.scheduler(0), layout.node(1), layout.node(0));
        let row =
            |base, len, turn, width| Row { job: JOB, base, len, turn, width, attempt: 0, elsewhere: false };
        assert!(passes(&layout, up, down, Launch::Row(row(0, 4, 3, 4))));
        for bad in
            [row(0, 0, 0, 0), row(0, 2, 2, 1), row(0, 5, 0, 1), row(u32::MAX, 2, 0, 1), row(0, 2, 0, 3)]
        {
            assert!(!passes(&layout, up, down, Launch::Row(bad)));
            assert!(!passes(&layout, up, down, Probe::Grant { row: bad, group: 0 }));
        }
        for (job, base, len) in [(JOB, 0, 0), (JOB, 3, 2), (JOB, u32::MAX, u32::MAX), (NO_JOB, 0, 1)] {
            assert!(!passes(&layout, up, down, Launch::Drop(TaskRange { job, base, len, below: 1 })));
        }
        assert!(passes(&layout, down, up, Launch::Completed { copy: JOB.task(3).copy(0) }));
        assert!(!passes(&layout, down, up, Launch::Completed { copy: JOB.task(4).copy(0) }));
        assert!(!passes(&layout, up, down, Probe::Reserve { job: JOB, group: 0, count: 0, repair: false }));
        let switch = |core| Slice::Switch { core, work: SliceWork::Rest, epoch: 0, order: 0, open: JobId(0) };
        assert!(passes(&layout, up, down, switch(1)) && !passes(&layout, up, other, switch(1)));
        let bits = |first, len| Blocks { first, len, bits: [0; 3], at: Stamp::from(Time::ZERO) };
        assert!(passes(&layout, down, up, Share::Bits(bits(0, 1))));
        for (first, len) in [(0, 0), (0, 2), (u16::MAX, u16::MAX)] {
            assert!(!passes(&layout, down, up, Share::Bits(bits(first, len))));
        }
        let ended = |node| EndUpdate { node, number: 0, estimate: Span(1), counts_from: Time::ZERO };
        assert!(passes(&layout, down, up, Gossip::Ended(ended(1))));
        assert!(!passes(&layout, down, up, Gossip::Ended(ended(2))));
        let placed = |nodes, origin| PlacementUpdate {
            at: Time::ZERO,
            job: JOB,
            nodes,
            number: 0,
            origin,
            form: PlacementForm::Rest,
            rumour: false,
        };
        let pass = |update| passes(&layout, layout.scheduler(1), up, Gossip::Placed(update));
        assert!(pass(placed([1, PlacementUpdate::NO_NODE], 1)));
        assert!(!pass(placed([0, 2], 1)) && !pass(placed([0, 1], 2)));
    }
}
