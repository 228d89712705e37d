//! The settings of a small world: its cluster, jobs, policy and budget of faults.

use volary_actors::base::{ATTEMPTS_PER_ROUND, ActorId, CopyId, JobId, Span, TaskId, Time};
use volary_actors::catalog::{Catalog, JobSpec, Links};
use volary_actors::harness::{SINGLE, StageGraph, links};
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::{Effect, Input, Machine};
use volary_actors::policies::PolicySpec;

use crate::common::group;

/// The parameters of a kind of world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Number of schedulers, and of clients.
    pub(crate) schedulers: u32,
    /// Number of cores of each node.
    pub(crate) cores: &'static [u32],
    /// Number of jobs, apart from the last.
    pub(crate) jobs: u32,
    /// Number of tasks of each job, apart from the last.
    pub(crate) tasks: u32,
    /// The stages of each chain of jobs; their number divides the number of jobs.
    pub(crate) stages: StageGraph,
    /// Whether every second job has a deadline, which it can meet if it starts early.
    pub(crate) deadlines: bool,
    pub(crate) budget: Budget,
}

/// Jobs that all arrive at the start, and a last job that arrives when all others have finished and meets the state
/// that they left; it needs every core at once. Every second job is long and takes twice the time. No two tasks take
/// the same time.
#[derive(Debug)]
pub(crate) struct Jobs(pub(crate) Shape);

/// The arrival time of the last job, later than all other events.
pub(super) const LAST: Time = Time(1 << 60);

impl Jobs {
    pub(crate) fn last(&self) -> JobId {
        JobId(self.0.jobs)
    }

    pub(super) fn work(&self, copy: CopyId) -> Span {
        let CopyId { task: TaskId { job, index }, attempt } = copy;
        let first =
            self.job_estimate(job) + Span::from_millis(100 * u64::from(index) + 10 * u64::from(job.0));
        // A later copy is shorter, so that it can end before an earlier one.
        Span(first.0 / (1 + u64::from(attempt % ATTEMPTS_PER_ROUND)))
    }
}

impl Catalog for Jobs {
    fn jobs(&self) -> u32 {
        self.0.jobs + u32::from(self.0.jobs > 0)
    }
    fn job(&self, job: JobId) -> JobSpec {
        let arrival = if job == self.last() { LAST } else { Time::ZERO };
        let tasks = if job == self.last() { self.0.cores.iter().sum() } else { self.0.tasks };
        let client = job.0 / self.0.stages.len() as u32 % self.0.schedulers;
        let deadline = (self.0.deadlines && job.0.is_multiple_of(2)).then(|| arrival + Span::from_secs(3));
        JobSpec { arrival, tasks, client, class: (job.0 % 2) as u8, deadline }
    }
    fn links(&self, job: JobId) -> Links<'_> {
        // The last job is not a stage.
        links(if job == self.last() { SINGLE } else { self.0.stages }, job)
    }
    fn estimate(&self, task: TaskId) -> Span {
        self.job_estimate(task.job)
    }
    fn job_estimate(&self, job: JobId) -> Span {
        Span::from_secs(1 + u64::from(job.0 % 2))
    }
}

/// The number of faults of each kind that may still happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Budget {
    /// Number of datagrams that are lost.
    pub(crate) losses: u8,
    /// Number of datagrams that arrive twice.
    pub(crate) duplicates: u8,
    /// Number of crashes of schedulers, nodes and auxiliary actors.
    pub(crate) crashes: u8,
    /// Number of links that are cut. Datagrams on them are lost; stream messages wait for the end of the cut or return.
    pub(crate) partitions: u8,
    /// Number of links that are cut in one direction.
    pub(crate) one_way: u8,
    /// Number of events of timers and cores that overtake messages in flight. At zero, messages arrive before time goes
    /// on.
    pub(crate) overtakes: u8,
}

/// The parts of a world that do not change while it is explored.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) policy: PolicySpec,
    pub(crate) layout: Layout,
    pub(crate) jobs: Jobs,
    pub(crate) budget: Budget,
    /// Whether policies repair losses; without lost datagrams they need not.
    pub(crate) repairs: bool,
    /// Number of copies that a node may have beyond its cores; `None` if any number may wait there.
    pub(crate) node_queue: Option<u32>,
    /// Whether caches of expected waits are right after faults, unless a scheduler crashed with updates on their way.
    pub(crate) conserves: bool,
    /// The defect of broken machines, if they are broken.
    pub(crate) defect: Option<Defect>,
}

/// A defect of a machine, as a change of the effects of its steps.
pub(crate) type Defect = fn(Role, Input, &mut Vec<Effect>);

/// Number of copies that a node may have beyond its cores: 0 if nodes do not queue, Q for Kairos; `None` if any number
/// may wait at a node.
fn queue_of_node(policy: &PolicySpec) -> Option<u32> {
    let parameters = serde_json::to_value(policy).expect("parameters are plain values");
    match policy.name() {
        "kairos" => parameters["kairos"]["queue"].as_u64().and_then(|queue| u32::try_from(queue).ok()),
        "kubernetes" => Some(0),
        _ => policy.traits().plans().then_some(0),
    }
}

/// Whether the caches of a policy are right after faults. This holds for Murmuration if no update waits at its
/// sender, and updates are numbered and can be added up. A restarted scheduler still misses its own updates that were
/// in flight.
fn conserves(policy: &PolicySpec) -> bool {
    let parameters = &serde_json::to_value(policy).expect("parameters are plain values")["murmuration"];
    let is = |key: &str, value: &str| parameters[key].as_str() == Some(value);
    let at_once = ["update_delay", "decision_per_job", "decision_per_task", "repair"];
    at_once.into_iter().all(|key| is(key, "0ns"))
        && is("spread", "streams")
        && is("copy", "numbered")
        && !is("wait", "clock")
}

impl Setting {
    /// The world of a policy; `None` if it does not run on such a cluster, or the world has deadlines that the policy
    /// ignores.
    pub(crate) fn new(policy: &PolicySpec, shape: &Shape) -> Option<Self> {
        let Shape { schedulers, cores, deadlines, budget, .. } = *shape;
        let gossips = policy.traits().gossips.is_some();
        if gossips != (shape.jobs == 0) {
            return None;
        }
        let layout = match gossips {
            true => group(policy, cores.len() as u32),
            false => Layout::new(schedulers, 0, cores.iter().copied()),
        };
        policy.check(&layout).ok().filter(|()| !deadlines || policy.traits().plans())?;
        let layout = policy.layout(layout);
        Some(Self {
            policy: policy.clone(),
            node_queue: queue_of_node(policy),
            layout,
            jobs: Jobs(*shape),
            budget,
            conserves: conserves(policy),
            defect: None,
            // The engine sets this flag for policies in the same way.
            repairs: budget.losses + budget.crashes + budget.partitions + budget.one_way > 0,
        })
    }

    pub(super) fn build(&self, actor: ActorId) -> Box<dyn Machine> {
        self.policy.machine(actor, &self.layout, self.repairs, false)
    }

    /// Whether tasks can run while one node is down. A master on a worker occupies the spare node.
    pub(super) fn has_spare_node(&self) -> bool {
        let taken = u32::from(format!("{:?}", self.policy).contains("master_on_worker: true"));
        self.layout.nodes() > 1 + taken
    }

    /// The name of an actor, as in experiment files.
    pub(crate) fn name(&self, actor: ActorId) -> String {
        match self.layout.role(actor) {
            Role::Client(i) => format!("client:{i}"),
            Role::Scheduler(i) => format!("scheduler:{i}"),
            Role::Node(i) => format!("node:{i}"),
            Role::Auxiliary(i) => format!("{}:{i}", self.policy.auxiliary()),
            Role::Worker { node, core } => format!("core:{node}.{core}"),
        }
    }
}
