//! The trait `Policy`, a factory of machines, the context they are built in, the optional traits of policies, and
//! checks and machine factories that several policies share.

use std::fmt::Debug;

use crate::base::{ActorId, JobId, Parameters, Span};
use crate::catalog::Catalog;
use crate::harness::Harness;
use crate::layout::{Layout, Role};
use crate::machine::Machine;
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
    /// Its number within its role.
    pub index: u32,
    /// All actors of the run.
    pub layout: &'a Layout,
    /// Whether the experiment's network, or the real one between hosts, can lose datagrams: repairs that cost messages
    /// are armed only then.
    pub lossy: bool,
    /// Whether caches are observed. It changes nothing but the notes.
    pub observed: bool,
    /// Whether this actor's cache of the state of others, if it has one, is observed.
    pub watched: bool,
}

/// Approximate number of actors of one role that are observed.
const WATCHED: u32 = 16;

/// Whether an actor's cache is observed, as one of `among` actors of its role: about 16 evenly spread ones are, or all
/// if there are no more. The choice depends on the layout alone, so it is the same in every run of a world.
pub const fn is_watched(index: u32, among: u32) -> bool {
    index.is_multiple_of(among.div_ceil(WATCHED))
}

/// Kind of cache that a policy's actors keep; it selects the numbers that are measured of caches.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub enum Caches {
    /// Nothing.
    #[default]
    None,
    /// Schedulers add up updates of the load of each node, as Murmuration's. There is no age of information.
    Updates,
    /// Schedulers keep the last snapshot that each node sent, as Yaq-d's. Nodes note each copy that
    /// [reaches](crate::machine::CacheNote::Reached) them, because a snapshot contains no copy that is on its way.
    /// There are no errors.
    Snapshots {
        /// The period in which a node sends one.
        every: Span,
        /// The share of the nodes that schedulers use and have snapshots of: the first ones.
        nodes: f64,
    },
    /// Snapshots of one state of the whole cluster, as Eagle's bitmap and Peacock's load. There are no errors, and no
    /// decisions are measured.
    SharedState,
}

/// Optional behaviour of a policy; the defaults suit most policies. It depends on the parameters alone.
#[derive(Clone, Default)]
pub struct Traits<'a> {
    /// The jobs that clients submit to the first scheduler that is up instead of to their own.
    pub central_jobs: CentralJobs,
    /// Whether this policy keeps all state in its only scheduler.
    pub one_scheduler: bool,
    /// Whether its schedulers plan at the ends of cycles: the CPU time of their timers is measured.
    pub plans: bool,
    /// Kind of cache that its schedulers or nodes keep; the watched ones note what happens to it.
    pub caches: Caches,
    /// Reports of shared nodes to schedulers about copies. If `Some`, nodes evict copies when memory is short, and
    /// schedulers launch their tasks again; if `None`, the policy runs on shared nodes only without memory.
    pub node_usage: Option<NodeUsage>,
    /// Its actors beside clients, schedulers and nodes.
    pub auxiliaries: Option<&'a dyn Auxiliaries>,
    /// Reports of nodes about the progress of running copies; `None` if they send none.
    pub reports: Option<ReportOptions>,
    /// Time for which a copy runs before this policy judges its progress; `None` if it never does.
    pub patience: Option<Span>,
    /// Time for which a copy runs before this policy preempts it, with the parameter that sets it; `None` if it
    /// preempts none by time.
    pub time_slice: Option<(&'static str, Span)>,
    /// Upper bound of the reservations that it makes for a job: once all tasks have started, nodes may claim them one
    /// after the other without getting a task. By default two for each task, with which speculating policies bind
    /// copies.
    pub reservations: ProbeOptions,
    /// The parameter that is about long jobs, if the policy makes no sense without such jobs.
    pub needs_long: Option<&'static str>,
    /// The parameter that has no effect where datagrams can be lost.
    pub lossless: Option<&'static str>,
    /// The parameter that makes actors consult the [`Oracle`](crate::machine::Oracle): in virtual time only.
    pub oracle: Option<&'static str>,
}

/// The actors of a policy beside clients, schedulers and nodes, such as masters of groups.
pub trait Auxiliaries {
    /// The name of such an actor, in the singular, for targets of faults (`"master:3"`), messages and reports.
    fn name(&self) -> &'static str;

    /// The layout of a run: the actors of `cluster`, which has no auxiliary ones, and the auxiliary actors of the
    /// policy. Nodes may get other cores, to emulate simulators whose workers run several tasks at once.
    fn layout(&self, cluster: Layout) -> Layout;

    /// The node whose rack and shard an auxiliary actor shares, `None` if it shares neither; it has an endpoint of its
    /// own anyway, so it talks to that node over the network and does not crash with it.
    fn beside(&self, number: u32, layout: &Layout) -> Option<u32>;

    /// An auxiliary actor.
    fn auxiliary(&self, context: BuildContext<'_>) -> Box<dyn Machine>;
}

/// A scheduling system: a parsed configuration that is the factory of its machines.
pub trait Policy: Parameters {
    /// The text of `volary policies`: a title with the source, then a description.
    const ABOUT: &'static str;

    /// Sets of parameters that randomised tests run, each an inline TOML table. A test replaces `#` by a number of
    /// servers between 1 and the number of nodes.
    const VARIANTS: &'static [&'static str];

    /// The optional behaviour of this policy.
    fn traits(&self) -> Traits<'_> {
        Traits::default()
    }

    /// Checks the parameters against a layout, which has no auxiliary actors yet; the error reads "key: reason and
    /// remedy". Of parameters that do not pass, only the traits are used.
    fn check(&self, _layout: &Layout) -> Result<(), String> {
        Ok(())
    }

    /// Remarks on these parameters for the user, which `volary plan` prints after the policy's label: notable effects
    /// on this layout (auxiliary actors included), and parameters without effect. `classes` is the number of classes of
    /// jobs.
    fn remarks(&self, _layout: &Layout, _classes: usize) -> Vec<String> {
        Vec::new()
    }

    /// A scheduler.
    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine>;

    /// A node manager.
    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let Traits { node_usage, reports, .. } = self.traits();
        let usage = node_usage.and_then(|told| UsageOptions::of(context.layout, context.index, told));
        let options = NodeOptions { reports, usage, ..NodeOptions::default() };
        Box::new(NodeManager::with(options, context.layout.cores(context.index)))
    }

    /// The machine of an actor. `lossy` says whether the network can lose datagrams, `observed` whether caches are
    /// observed.
    fn machine(&self, me: ActorId, layout: &Layout, lossy: bool, observed: bool) -> Box<dyn Machine> {
        let context = |index, among| BuildContext {
            index,
            layout,
            lossy,
            observed,
            watched: observed && is_watched(index, among),
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

    /// A machine of this policy under test, without losses. Each job has `tasks` tasks.
    fn bench(&self, layout: &Layout, me: ActorId, tasks: u32) -> Harness {
        Harness::new(layout.clone(), me, tasks, self.machine(me, layout, false, false))
    }
}

/// A [`Policy`] without constants and constructors, so that it can be a trait object. Implemented for all of them; the
/// methods are those of the same name.
pub trait DynPolicy: Debug + Send + Sync + erased_serde::Serialize {
    /// [`Policy::traits`].
    fn traits(&self) -> Traits<'_>;
    /// [`Policy::check`], after the ranges of the parameters.
    fn check_parameters(&self, layout: &Layout) -> Result<(), String>;
    /// [`Policy::remarks`].
    fn remarks(&self, layout: &Layout, classes: usize) -> Vec<String>;
    /// [`Policy::machine`].
    fn machine(&self, me: ActorId, layout: &Layout, lossy: bool, observed: bool) -> Box<dyn Machine>;
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
}

/// The shortest period: shorter ones are finer than any delay or task, and a run with them makes no headway.
const SHORTEST: Span = Span(1_000);

/// Checks that a period is not shorter than [`SHORTEST`].
pub(super) fn check_period(key: &str, period: Span) -> Result<(), String> {
    if period < SHORTEST { Err(format!("{key}: must be {SHORTEST} or longer, not {period}")) } else { Ok(()) }
}

/// The estimate of a job's longest task.
pub(super) fn longest_task(job: JobId, catalog: &dyn Catalog) -> Span {
    let tasks = (0..catalog.tasks(job)).map(|task| catalog.estimate(job.task(task)));
    tasks.max().unwrap_or(Span::ZERO)
}

/// The partitions of a hybrid scheduler, by the share of the big one.
pub(super) fn partitions(big: f64, layout: &Layout) -> Partitions {
    Partitions::new(layout.nodes(), layout.nodes_in(big))
}

/// Checks the parameters of a hybrid scheduler.
pub(super) fn check_probes(big: f64, timeout: Span) -> Result<(), String> {
    if !(big > 0.0 && big <= 1.0) {
        return Err(format!("big_partition: must be above 0 and at most 1, not {big}"));
    }
    check_period("probe_timeout", timeout)
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

/// Checks that the scaled periods of a speculating policy are not too short.
pub(super) fn check_scaled(scale: f64, periods: &[(&str, Span)]) -> Result<(), String> {
    periods.iter().try_for_each(|&(key, period)| check_period(key, period.scale(scale)))
}

/// Traits of a speculating policy whose nodes report progress every `every`, from values before scaling. Starts are
/// reported where copies wait at their nodes.
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
        one_scheduler: binding == CopyBinding::Central,
        patience: Some(patience.scale(scale)),
        reports: Some(ReportOptions { every: every.scale(scale), starts, errors }),
        ..Traits::default()
    }
}
