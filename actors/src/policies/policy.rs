//! The trait `Policy`, a factory of machines, and the context they are built in.

use serde::Serialize;
use serde_json::Value;

use crate::base::{ActorId, Parameters, Span};
use crate::harness::Harness;
use crate::layout::{Layout, Role};
use crate::machine::Machine;
use crate::roles::client::CentralJobs;
use crate::roles::node::{NodeOptions, NodeUsage, ReportOptions, UsageOptions};
use crate::roles::{Client, NodeManager, Worker};

/// The context in which a machine is built.
#[derive(Clone, Copy, Debug)]
pub struct BuildContext<'a> {
    /// Its number within its role.
    pub index: u32,
    /// All actors of the run.
    pub layout: &'a Layout,
    /// Whether the experiment's network, or the real one between hosts, can lose datagrams: repairs that cost messages
    /// are armed only then.
    pub lossy: bool,
    /// Whether the staleness of caches is recorded. It changes nothing but the notes.
    pub observed: bool,
    /// Whether what this actor keeps of others is observed, if it keeps anything.
    pub watched: bool,
}

/// Approximate number of actors of one role that are observed.
const WATCHED: u32 = 16;

/// Whether what an actor keeps of others is observed, where there are `among` of its role: a few evenly spread ones
/// are, or all if there are few. The choice depends on the layout alone, so it is the same in every run of a world.
pub const fn is_watched(index: u32, among: u32) -> bool {
    index.is_multiple_of(among.div_ceil(WATCHED))
}

/// Kind of cache that a policy's actors keep; it selects the metrics of staleness.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Caches {
    /// Nothing.
    #[default]
    None,
    /// Schedulers add up updates of the load of each node, as Murmuration's. There is no age of information.
    Updates,
    /// Schedulers keep the last snapshot that each node sent, as Yaq-d's. Nodes note each copy that
    /// [reaches](crate::machine::Note::Reached) them, because a snapshot contains no copy that is on its way. There are
    /// no errors.
    Snapshots {
        /// The period in which a node sends one.
        every: Span,
    },
    /// Snapshots of one state of the whole cluster, as Eagle's bitmap and Peacock's load. There are no errors, and no
    /// decisions are measured.
    SharedState,
}

impl Caches {
    /// Whether runs of such a policy have this number in the section `staleness` of their results.
    pub fn measures(self, number: &str) -> bool {
        match number {
            "age_of_information_s" | "peak_age_of_information_s" => {
                matches!(self, Self::Snapshots { .. } | Self::SharedState)
            }
            "error_s" | "bias_s" | "decision_error_s" => self == Self::Updates,
            "in_flight" | "decisions_out_of_sync" | "conflicts" | "regret_s" => {
                matches!(self, Self::Updates | Self::Snapshots { .. })
            }
            _ => self != Self::None,
        }
    }
}

/// The sum of all lengths of time among parameters, multiplied by the number `scale` beside them, if it is above one.
fn lengths(parameters: &impl Serialize) -> Span {
    fn sum(value: &Value) -> Span {
        match value {
            Value::String(text) => text.parse().unwrap_or(Span::ZERO),
            Value::Array(all) => all.iter().map(sum).fold(Span::ZERO, |sum, length| sum + length),
            Value::Object(all) => {
                let scale = all.get("scale").and_then(Value::as_f64).unwrap_or(1.0);
                all.values().map(sum).fold(Span::ZERO, |sum, length| sum + length).scale(scale.max(1.0))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Span::ZERO,
        }
    }
    serde_json::to_value(parameters).map_or(Span::ZERO, |value| sum(&value))
}

/// A scheduling system: a parsed configuration that is the factory of its machines.
pub trait Policy: Parameters {
    /// The text of `volary policies`: a title with the source, then a description.
    const ABOUT: &'static str;

    /// Sets of parameters that randomised tests run, each an inline TOML table. A test replaces `#` by a number of
    /// servers between 1 and the number of nodes.
    const VARIANTS: &'static [&'static str];

    /// Checks the parameters against a layout, which has no extras yet; the error reads "key: reason and remedy".
    /// Nothing else is asked of parameters that do not pass.
    fn check(&self, _layout: &Layout) -> Result<(), String> {
        Ok(())
    }

    /// What a user should know before a run with these parameters, as `volary plan` prints it after the policy's label:
    /// what they amount to on this layout, which has the extras, and where they make no sense. `classes` is the number
    /// of classes of jobs.
    fn remarks(&self, _layout: &Layout, _classes: usize) -> Vec<String> {
        Vec::new()
    }

    /// The jobs that clients submit to the first scheduler that is up instead of to their own.
    const CENTRAL_JOBS: CentralJobs = CentralJobs::None;

    /// Whether this policy keeps all state in its only scheduler.
    fn one_scheduler(&self) -> bool {
        false
    }

    /// Whether its schedulers plan at the ends of cycles: the CPU time of their timers is measured.
    const PLANS: bool = false;

    /// What its schedulers or nodes keep of others; notes of watched ones give the staleness.
    fn caches(&self) -> Caches {
        Caches::None
    }

    /// What its nodes, where they are shared, tell its schedulers about copies. If anything, they evict copies when
    /// memory is short, and its schedulers launch the tasks of these again; if `None`, the policy runs on shared nodes
    /// without memory only.
    const NODE_USAGE: Option<NodeUsage> = None;

    /// What its extras are called, in the singular: the targets of faults at them (`"master:3"`) and the word in
    /// messages and reports. Empty: it has none.
    const EXTRAS: &'static str = "";

    /// The number of extras, the actors of a policy beside clients, schedulers and nodes, among the actors of `layout`,
    /// which has none.
    fn extras(&self, _layout: &Layout) -> u32 {
        0
    }

    /// The cores of each node of `layout` in a run of this policy, if they are not those of the cluster: for emulating
    /// simulators whose workers run several tasks at once.
    fn cores(&self, _layout: &Layout) -> Option<Vec<u32>> {
        None
    }

    /// An extra; `context.index` is below [`extras`](Self::extras).
    fn extra(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        unreachable!("a policy without extras is asked for number {}", context.index)
    }

    /// The node whose rack and shard an extra shares, `None` if it shares neither; it has an endpoint of its own
    /// anyway, so it talks to that node over the network and does not crash with it.
    fn beside(&self, _extra: u32, _layout: &Layout) -> Option<u32> {
        None
    }

    /// The parameter that is about long jobs, where the policy makes no sense without them; otherwise `None`.
    fn needs_long(&self) -> Option<&'static str> {
        None
    }

    /// How nodes report the progress of running copies; `None` if they do not.
    fn reports(&self) -> Option<ReportOptions> {
        None
    }

    /// How long a copy runs before this policy queries its progress; `None` if it never does.
    fn patience(&self) -> Option<Span> {
        self.reports().map(|reports| reports.every)
    }

    /// How long its actors wait at most of their own accord: the sum of its periods, timeouts and other lengths of
    /// time.
    fn longest_wait(&self) -> Span {
        lengths(self)
    }

    /// The parameter that has no effect where datagrams can be lost; `None` if all have.
    fn lossless(&self) -> Option<&'static str> {
        None
    }

    /// Reservations of a job of that many tasks at most: nodes may claim one after the other in vain when all tasks
    /// have started. By default two for each task, with which speculating policies bind copies.
    fn reservations(&self, tasks: u32) -> u64 {
        2 * u64::from(tasks)
    }

    /// How long a copy runs before this policy preempts it, with the parameter that says so; `None` if it preempts none
    /// by time.
    fn time_slice(&self) -> Option<(&'static str, Span)> {
        None
    }

    /// The parameter by which actors look at the [`Oracle`](crate::machine::Oracle), which exists in virtual time only;
    /// `None` if they do not.
    fn oracle(&self) -> Option<&'static str> {
        None
    }

    /// Number of nodes that the caches of schedulers cover, the first ones.
    fn cached_nodes(&self, layout: &Layout) -> u32 {
        layout.nodes()
    }

    /// A scheduler.
    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine>;

    /// A node manager.
    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let usage = Self::NODE_USAGE.and_then(|told| UsageOptions::of(context.layout, context.index, told));
        let options = NodeOptions { reports: self.reports(), usage, ..NodeOptions::default() };
        Box::new(NodeManager::with(options, context.layout.cores(context.index)))
    }

    /// The machine of an actor. `lossy` says whether the network can lose datagrams, `observed` whether the staleness
    /// of caches is recorded.
    fn machine(&self, me: ActorId, layout: &Layout, lossy: bool, observed: bool) -> Box<dyn Machine> {
        let context = |index, among| BuildContext {
            index,
            layout,
            lossy,
            observed,
            watched: observed && is_watched(index, among),
        };
        match layout.role(me) {
            Role::Client(i) => Box::new(Client::new(i, Self::CENTRAL_JOBS, layout)),
            Role::Scheduler(i) => self.scheduler(context(i, layout.schedulers())),
            Role::Node(i) => self.node(context(i, layout.nodes())),
            Role::Worker { node, .. } => Box::new(Worker::new(layout.node(node))),
            Role::Extra(i) => self.extra(context(i, layout.extras())),
        }
    }

    /// A machine of this policy under test, without losses. Each job has `tasks` tasks.
    fn bench(&self, layout: &Layout, me: ActorId, tasks: u32) -> Harness {
        Harness::new(layout.clone(), me, tasks, self.machine(me, layout, false, false))
    }
}
