//! What a shard is built from, and the machines that it builds.

use volary_actors::base::{ActorId, Span};
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::Machine;
use volary_actors::policies::{BuildContext, PolicySpec};
use volary_actors::roles::Worker;
use volary_netem::Fabric;

use super::Placement;
use crate::cores::Cores;
use crate::metrics::staleness::Watch;
use crate::workload::Workload;

/// What a shard is built from.
pub struct Parts<'a> {
    /// Who is who.
    pub layout: &'a Layout,
    /// Jobs and their work.
    pub workload: &'a Workload,
    /// What schedulers and nodes do.
    pub policy: &'a PolicySpec,
    /// The run's seed.
    pub seed: u64,
    /// What happens to messages.
    pub fabric: Fabric,
    /// When work ends.
    pub cores: Cores,
    /// Whether the network can lose datagrams.
    pub lossy: bool,
    /// Whether faults pause anyone.
    pub pauses: bool,
    /// How long after a crash the others learn of it, unless the restart comes first.
    pub peer_timeout: Span,
    /// Whether what everybody is told, and reaches all at once, is one event.
    pub shared: bool,
    /// Which actors live where.
    pub placement: Placement<'a>,
}

impl Parts<'_> {
    /// A new machine for an actor, as it starts and restarts.
    #[must_use]
    pub fn machine(&self, actor: ActorId) -> Box<dyn Machine> {
        let Parts { layout, policy, lossy, .. } = *self;
        let watch = Watch::new(layout);
        let context = |index| BuildContext { me: actor, index, layout, lossy, watched: watch.has(index) };
        match layout.role(actor) {
            Role::Client(i) => policy.client(context(i)),
            Role::Scheduler(i) => policy.scheduler(context(i)),
            Role::Node(i) => policy.node(context(i)),
            Role::Worker { node, .. } => Box::new(Worker::new(layout.node(node))),
            Role::Extra(i) => unreachable!("no registered policy has an extra actor {i}"),
        }
    }
}
