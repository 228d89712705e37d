//! The trait `Policy`, a factory of machines, with the context in which machines are built and the optional traits of
//! policies. Also checks and machine factories that several policies share.

use std::fmt::Debug;
use std::sync::Arc;

pub(super) use crate::base::check_period;
use crate::base::{ActorId, JobId, Parameters, Span};
use crate::catalog::Catalog;
use crate::harness::Harness;
use crate::layout::{Layout, Role};
use crate::machine::Machine;
use crate::program::{ProgramSpec, Programs};
use crate::roles::client::CentralJobs;
use crate::roles::late_binding::ProbeOptions;
use crate::roles::node::{NodeOptions, NodeUsage, ProgressErrors, ReportOptions, UsageOptions};
use crate::roles::node_queue::QueueOrder;
use crate::roles::partitions::Partitions;
use crate::roles::speculation::CopyBinding;
use crate::roles::{Client, NodeManager, Worker};

/// The context in which a machine is built.
#[derive(Clone, Copy, Debug)]
pub struct BuildContext<'a> {
    /// Number of the actor within its role.
    pub index: u32,
    /// All actors of the run.
    pub layout: &'a Layout,
    /// Whether the experiment's network, or the real network between hosts, can lose datagrams. Repairs that cost
    /// messages are armed only then.
    pub lossy: bool,
    /// Whether caches are observed. This changes only the notes.
    pub observed: bool,
    /// Whether this actor's cache of other actors' state, if any, is observed.
    pub watched: bool,
    /// The programs of policies in other languages; `None` if the runtime cannot start programs.
    pub programs: Option<&'a Arc<Programs>>,
}

/// The run in which a machine is built.
#[derive(Clone, Copy, Debug)]
pub struct MachineContext<'a> {
    /// All actors of the run.
    pub layout: &'a Layout,
    /// Whether the network can lose datagrams.
    pub lossy: bool,
    /// Whether caches are observed.
    pub observed: bool,
    /// The programs of policies in other languages; `None` if the runtime cannot start programs.
    pub programs: Option<&'a Arc<Programs>>,
}

/// Approximate number of actors of one role that are observed.
const WATCHED: u32 = 16;

/// Whether the cache of an actor is observed, as one of `among` actors of its role. About 16 evenly spread actors are
/// observed, or all if there are no more. The choice depends on the layout alone, so it is the same in every run of a
/// world.
pub const fn is_watched(index: u32, among: u32) -> bool {
    index.is_multiple_of(among.div_ceil(WATCHED))
}

/// Kind of cache that a policy's actors keep; it selects the metrics of caches.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub enum Caches {
    /// No cache.
    #[default]
    None,
    /// Schedulers add up updates of the load of each node, like Murmuration's. Information has no age.
    Updates,
    /// Schedulers keep the last snapshot that each node sent, like Yaq-d's. Nodes note each copy that
    /// [reaches](crate::machine::CacheNote::Reached) them, because a snapshot contains no copy that is on its way.
    /// Errors are not measured.
    Snapshots {
        /// Period at which a node sends a snapshot.
        every: Span,
        /// Share of the nodes, the first ones, that schedulers use and have snapshots of.
        nodes: f64,
    },
    /// Snapshots of one state of the whole cluster, like Eagle's bitmap and Peacock's load. Neither errors nor
    /// decisions are measured.
    SharedState,
}

/// The time at which tasks are bound to nodes, and the place where they wait until then. Often this explains more of a
/// result than the rest of a policy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Binds {
    /// On arrival (early binding): tasks wait at nodes.
    #[default]
    Early,
    /// When a node with a reservation is free (late binding): tasks wait at their scheduler.
    Late,
    /// Short jobs late, long ones early.
    ByLength,
    /// When a node has room: tasks wait in one queue.
    Central,
    /// When a node of their group is free: tasks wait in the group's queue.
    Groups,
    /// When a plan says so: tasks wait at the only scheduler.
    Plans,
    /// When a program says so.
    Program,
}

impl Binds {
    /// The words before "by" and the policies that bind in this way.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Early => "on arrival",
            Self::Late => "late, to a free node with a reservation,",
            Self::ByLength => "late if short, on arrival if long,",
            Self::Central => "from one queue when a node has room",
            Self::Groups => "from a group's queue when a node is free",
            Self::Plans => "by plans",
            Self::Program => "as their programs say",
        }
    }
}

impl From<CopyBinding> for Binds {
    fn from(binding: CopyBinding) -> Self {
        match binding {
            CopyBinding::Central => Self::Central,
            CopyBinding::Sparrow => Self::Late,
            CopyBinding::Random => Self::Early,
        }
    }
}

/// The purpose of a policy in runs without jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gossips {
    /// Spreading updates.
    Updates,
    /// Detecting failures.
    Failures,
}

/// Optional behaviour of a policy, which depends on the parameters alone; the defaults suit most policies.
#[derive(Clone, Default)]
pub struct Traits<'a> {
    /// The jobs that clients submit to the first scheduler that is up instead of to their own.
    pub central_jobs: CentralJobs,
    /// The purpose of this policy in runs without jobs; `None` for a policy that schedules jobs.
    pub gossips: Option<Gossips>,
    /// The time at which tasks are bound to nodes.
    pub binds: Binds,
    /// Whether this policy keeps all state in its only scheduler.
    pub one_scheduler: bool,
    /// Kind of cache that the policy's schedulers or nodes keep; watched actors record notes about their caches.
    pub caches: Caches,
    /// Reports of shared nodes to schedulers about copies. If `Some`, nodes evict copies when memory is short, and
    /// schedulers launch their tasks again. If `None`, the policy runs on shared nodes only if their memory is not
    /// stated.
    pub node_usage: Option<NodeUsage>,
    /// The policy's actors besides clients, schedulers and nodes.
    pub auxiliaries: Option<&'a dyn Auxiliaries>,
    /// Reports of nodes about the progress of running copies; `None` if nodes send no such reports.
    pub reports: Option<ReportOptions>,
    /// Time for which a copy runs before this policy judges its progress; `None` if the policy never does.
    pub patience: Option<Span>,
    /// Time for which a copy runs before this policy preempts it, with the parameter that sets this time; `None` if the
    /// policy does not preempt by time.
    pub time_slice: Option<(&'static str, Span)>,
    /// Upper bound of the reservations that the policy makes for a job. Once all tasks have started, nodes may claim
    /// the remaining reservations one after the other and get no task. The default is two for each task, as speculating
    /// policies with reservations have.
    pub reservations: ProbeOptions,
    /// The parameter about long jobs, if the policy makes no sense without such jobs.
    pub needs_long: Option<&'static str>,
    /// The parameter that has no effect where datagrams can be lost.
    pub lossless: Option<&'static str>,
    /// The program that takes the policy's decisions; `None` for a policy in Rust.
    pub program: Option<ProgramSpec<'a>>,
    /// The parameter that makes actors consult the [`Oracle`](crate::machine::Oracle), in virtual time only.
    pub oracle: Option<&'static str>,
}

impl Traits<'_> {
    /// Whether the policy's schedulers plan at the ends of cycles; the CPU time of their timers is then measured.
    pub fn plans(&self) -> bool {
        self.binds == Binds::Plans
    }

    /// Whether the policy runs jobs without a program.
    pub fn runs_alone(&self) -> bool {
        self.gossips.is_none() && self.program.is_none()
    }
}

/// The actors of a policy besides clients, schedulers and nodes, such as masters of groups.
pub trait Auxiliaries {
    /// The name of an auxiliary actor, in the singular, for targets of faults (`"master:3"`), messages and reports.
    fn name(&self) -> &'static str;

    /// The layout of a run: the actors of `cluster`, which has no auxiliary actors, and the policy's auxiliary actors.
    /// Nodes may get other cores, to emulate simulators whose workers run several tasks at once.
    fn layout(&self, cluster: Layout) -> Layout;

    /// The node whose rack and shard an auxiliary actor shares; `None` if it shares neither. The actor has its own
    /// endpoint anyway, so it talks to that node over the network and does not crash with it.
    fn beside(&self, number: u32, layout: &Layout) -> Option<u32>;

    /// Builds an auxiliary actor.
    fn auxiliary(&self, context: BuildContext<'_>) -> Box<dyn Machine>;
}

/// A scheduling system: a parsed configuration that is the factory of its machines.
pub trait Policy: Parameters {
    /// The text of `volary policies`: a title with the source, then a description.
    const ABOUT: &'static str;

    /// The optional behaviour of this policy.
    fn traits(&self) -> Traits<'_> {
        Traits::default()
    }

    /// Checks the parameters against a layout, which has no auxiliary actors yet; the error reads "key: reason and
    /// remedy". If parameters fail the check, only the traits are used.
    fn check(&self, _layout: &Layout) -> Result<(), String> {
        Ok(())
    }

    /// Remarks on these parameters for the user, which `volary plan` prints after the policy's label. They name notable
    /// effects on this layout (auxiliary actors included) and parameters without effect. `classes` is the number of
    /// classes of jobs.
    fn remarks(&self, _layout: &Layout, _classes: usize) -> Vec<String> {
        Vec::new()
    }

    /// Builds a scheduler.
    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine>;

    /// Builds a node manager.
    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(standard_node(&self.traits(), context))
    }

    /// Builds the machine of an actor. `lossy` says whether the network can lose datagrams, `observed` whether caches
    /// are observed.
    fn machine(&self, me: ActorId, layout: &Layout, lossy: bool, observed: bool) -> Box<dyn Machine> {
        self.machine_in(MachineContext { layout, lossy, observed, programs: None }, me)
    }

    /// Builds the machine of an actor of a run.
    fn machine_in(&self, run: MachineContext<'_>, me: ActorId) -> Box<dyn Machine> {
        let MachineContext { layout, lossy, observed, programs } = run;
        let context = |index, among| BuildContext {
            index,
            layout,
            lossy,
            observed,
            watched: observed && is_watched(index, among),
            programs,
        };
        match layout.role(me) {
            Role::Client(i) => Box::new(Client::new(i, self.traits().central_jobs, layout)),
            Role::Scheduler(i) => self.scheduler(context(i, layout.schedulers())),
            Role::Node(i) => self.node(context(i, layout.nodes())),
            Role::Worker { node, .. } => Box::new(Worker::new(layout.node(node))),
            Role::Auxiliary(i) => match self.traits().auxiliaries {
                Some(auxiliaries) => auxiliaries.auxiliary(context(i, layout.auxiliaries())),
                None => unreachable!("a policy without auxiliary actors is asked for number {i}"),
            },
        }
    }

    /// A machine of this policy under test, in a network without losses. Each job has `tasks` tasks.
    fn bench(&self, layout: &Layout, me: ActorId, tasks: u32) -> Harness {
        Harness::new(layout.clone(), me, tasks, self.machine(me, layout, false, false))
    }
}

/// A [`Policy`] without constants and constructors, so that it can be a trait object. It is implemented for all
/// policies; each method calls the policy's method of the same name.
pub trait DynPolicy: Debug + Send + Sync + erased_serde::Serialize {
    /// [`Policy::traits`].
    fn traits(&self) -> Traits<'_>;
    /// [`Policy::check`], after the ranges of the parameters.
    fn check_parameters(&self, layout: &Layout) -> Result<(), String>;
    /// [`Policy::remarks`].
    fn remarks(&self, layout: &Layout, classes: usize) -> Vec<String>;
    /// [`Policy::machine`].
    fn machine(&self, me: ActorId, layout: &Layout, lossy: bool, observed: bool) -> Box<dyn Machine>;
    /// [`Policy::machine_in`].
    fn machine_in(&self, run: MachineContext<'_>, me: ActorId) -> Box<dyn Machine>;
}

impl<P: Policy> DynPolicy for P {
    fn traits(&self) -> Traits<'_> {
        Policy::traits(self)
    }

    fn check_parameters(&self, layout: &Layout) -> Result<(), String> {
        Parameters::check_ranges(self)?;
        Policy::check(self, layout)
    }

    fn remarks(&self, layout: &Layout, classes: usize) -> Vec<String> {
        Policy::remarks(self, layout, classes)
    }

    fn machine(&self, me: ActorId, layout: &Layout, lossy: bool, observed: bool) -> Box<dyn Machine> {
        Policy::machine(self, me, layout, lossy, observed)
    }

    fn machine_in(&self, run: MachineContext<'_>, me: ActorId) -> Box<dyn Machine> {
        Policy::machine_in(self, run, me)
    }
}

/// The node manager of a policy with these traits, unless the policy builds its own.
pub(super) fn standard_node(traits: &Traits<'_>, context: BuildContext<'_>) -> NodeManager {
    let usage = traits.node_usage.and_then(|told| UsageOptions::of(context.layout, context.index, told));
    let options = NodeOptions { reports: traits.reports.clone(), usage, ..NodeOptions::default() };
    NodeManager::with(options, context.layout.cores(context.index))
}

/// Estimated work of a job's longest task.
pub(super) fn longest_task(job: JobId, catalog: &dyn Catalog) -> Span {
    let tasks = (0..catalog.tasks(job)).map(|task| catalog.estimate(job.task(task)));
    tasks.max().unwrap_or(Span::ZERO)
}

/// The partitions of a hybrid scheduler, by the share of the big one.
pub(super) fn partitions(big: f64, layout: &Layout) -> Partitions {
    Partitions::new(layout.nodes(), layout.nodes_in(big))
}

/// Checks the share of the big partition of a hybrid scheduler.
pub(super) fn check_partition(big: f64) -> Result<(), String> {
    if big > 0.0 && big <= 1.0 {
        return Ok(());
    }
    Err(format!("big_partition: must be above 0 and at most 1, not {big}"))
}

/// The node manager of Yaq-c, and of Yaq-d without its heartbeats.
pub(super) fn plain(srpt: bool, bypass: f64, context: BuildContext<'_>) -> NodeManager {
    let order = if srpt { QueueOrder::Least { bypass } } else { QueueOrder::Fifo };
    NodeManager::with(NodeOptions { order, ..NodeOptions::default() }, context.layout.cores(context.index))
}

/// Checks the limit on overtaking in a queue.
pub(super) fn check_bypass(bypass: f64) -> Result<(), String> {
    if bypass >= 0.0 && bypass.is_finite() {
        return Ok(());
    }
    Err(format!("bypass: must be a number from 0 on, not {bypass}"))
}

/// Checks the errors of progress reports of a speculating policy, and that its scaled periods are not too short.
pub(super) fn check_scaled(
    errors: &ProgressErrors,
    scale: f64,
    periods: &[(&str, Span)],
) -> Result<(), String> {
    errors.check()?;
    periods.iter().try_for_each(|&(key, period)| check_period(key, period.scale(scale)))
}

/// Traits of a speculating policy with this binding.
pub(super) fn bound_by<'a>(binding: CopyBinding) -> Traits<'a> {
    Traits { binds: binding.into(), one_scheduler: binding == CopyBinding::Central, ..Traits::default() }
}

/// Traits of a speculating policy whose nodes report progress every `every`; `scale` multiplies all durations. Nodes
/// report the start of a copy only if copies wait at nodes, with random binding.
pub(super) fn reporting<'a>(
    every: Span,
    patience: Span,
    errors: &ProgressErrors,
    scale: f64,
    binding: CopyBinding,
) -> Traits<'a> {
    let errors = ProgressErrors { delay: errors.delay.scale(scale), ..errors.clone() };
    let starts = binding == CopyBinding::Random;
    Traits {
        patience: Some(patience.scale(scale)),
        reports: Some(ReportOptions { every: every.scale(scale), starts, errors }),
        ..bound_by(binding)
    }
}
