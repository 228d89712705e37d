//! The emulated machines: their number, speed and location, and the scheduled injections of an experiment on them.

use serde::Serialize;
use volary_actors::base::{ActorId, Address, DistributionSpec, Endpoint, Purpose, Span, Time};
use volary_actors::layout::{Layout, Role};
use volary_actors::policies::PolicySpec;
use volary_netem::topology::{SPEEDS, Topology};
use volary_netem::{Groups, Links, Place, Target, TopologyFile};

use super::section::{self, ClusterSection, KeyError, Needs, Room};
use crate::cores::{CoreTable, Injection, ScheduledInjection};
use crate::handling::{ActorsSection, Processor};
use crate::workload::{Gossip, Service, Site, WorkloadSpec};
use volary_actors::base::CoreSet;

/// Nodes per rack where no topology says otherwise. Racks then matter only to faults aimed at `"rack:N"` and to
/// interference of scope `rack`; links are the same everywhere.
pub const RACK: u32 = 40;
/// Ids are 32 bits wide and a run has at most this many actors.
const MOST_ACTORS: u64 = 1 << 26;

/// An error in building a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// An error in a key of `[cluster]`, or of `[service]` where it concerns the nodes.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// An error in the topology file.
    #[error(transparent)]
    Topology(volary_netem::Error),
}

/// The emulated machines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cluster {
    /// Cores of each node, in runs of equal nodes: (number of nodes, cores of each).
    pub nodes: Vec<(u32, u32)>,
    /// Number of schedulers, each with a client.
    pub schedulers: u32,
    /// Requests per second of all clients; no limit if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_rate: Option<f64>,
    /// Rate of a node's cores relative to the reference core, drawn once per node; samples below 0.01 are raised to
    /// 0.01. A topology states rates of its own.
    pub speed: DistributionSpec<f64>,
    /// The topology of the network. If absent all links are the same, and nodes are in racks of [`RACK`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyFile>,
    /// Capacities of nodes and reservations of tasks. If absent a task reserves a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<Room>,
    /// Number of kinds of nodes that jobs distinguish.
    #[serde(skip_serializing_if = "is_one")]
    pub kinds: u8,
    /// The updates that spread among the nodes, in place of jobs.
    #[serde(skip)]
    gossip: Option<Gossip>,
}

const fn is_one(kinds: &u8) -> bool {
    *kinds == 1
}

/// The machines under one seed, from which a run is built.
#[derive(Clone, PartialEq, Debug)]
pub struct Machines {
    /// Ids and roles of the actors.
    pub layout: Layout,
    /// Node, rack and speed of every core.
    pub cores: CoreTable,
    /// Connections between endpoints.
    pub links: Links,
    /// Groups that faults can aim at.
    pub groups: Groups,
    /// The node that each auxiliary actor is placed with, if any.
    pub beside: Vec<Option<u32>>,
}

impl Cluster {
    /// Resolves `[cluster]`; its topology file, if any, has been read.
    ///
    /// # Errors
    /// When a key does not fit, or the topology cannot be built under `seed`.
    pub fn new(
        section: &ClusterSection,
        topology: Option<TopologyFile>,
        service: &Service,
        seed: u64,
    ) -> Result<Self, ClusterError> {
        section.check()?;
        section::check_unshared(section)?;
        let (nodes, room) = match &topology {
            Some(file) => {
                let topology = file.resolve(seed).map_err(ClusterError::Topology)?;
                Needs::of(service).unmet()?;
                (runs(topology.cores()), None)
            }
            None => {
                let named = section::nodes(section, service)?;
                (named.runs, named.room)
            }
        };
        let speed = section.speed.clone().unwrap_or(DistributionSpec::Constant(1.0));
        check_speed(&speed)?;
        let schedulers = section.schedulers.unwrap_or(1);
        let request_rate = section.request_rate;
        let cluster = Self { nodes, schedulers, request_rate, speed, topology, room, kinds: 1, gossip: None };
        let actors = cluster.actors();
        if actors > MOST_ACTORS {
            let help = format!("lower nodes or cores: nodes + their cores must stay below {MOST_ACTORS}");
            let message = format!("{actors} actors are more than a run can hold");
            return Err(KeyError::new(&["cluster"], message, help).into());
        }
        Ok(cluster)
    }

    /// Gives the nodes as many kinds as the jobs of a workload distinguish. Nodes of a topology can have kinds too;
    /// nodes of `[[cluster.kind]]` cannot, because they are kinds themselves. Members of a gossip group have a core
    /// each if actors work on cores, and none otherwise.
    ///
    /// # Errors
    /// When there are fewer nodes than kinds, or `[cluster]` has kinds of its own.
    pub fn for_jobs(
        self,
        workload: &WorkloadSpec,
        section: &ClusterSection,
        actors: Option<&ActorsSection>,
    ) -> Result<Self, KeyError> {
        if let Some(gossip) = workload.gossip() {
            let on_cores = actors.is_some_and(|actors| actors.on == Processor::Cores);
            return self.for_gossip(gossip, section, u32::from(on_cores));
        }
        let Some(slo) = workload.slo().filter(|slo| slo.preference.is_some()) else { return Ok(self) };
        let at = ["workload", workload.section(), "slo", "preference"];
        if !section.kind.is_empty() {
            let name = at.join(".");
            let message = format!("`{name}`: `[[cluster.kind]]` has kinds of nodes of its own");
            return Err(KeyError::new(
                &at,
                message,
                "give all nodes to `cluster.nodes`, or leave out `preference`",
            ));
        }
        let (kinds, nodes) = (slo.kinds(), self.node_count());
        match u8::try_from(kinds) {
            Ok(kinds) if u32::from(kinds) <= nodes => Ok(Self { kinds, ..self }),
            _ => {
                let at = [&at[..], &["kinds"]].concat();
                let message = format!("`{}`: {nodes} nodes cannot be of {kinds} kinds", at.join("."));
                Err(KeyError::new(&at, message, "write fewer kinds, or add nodes"))
            }
        }
    }

    /// The machines under a policy, which uses one of the schedulers if it is central.
    pub fn under(&self, policy: &PolicySpec) -> Self {
        let schedulers = if policy.traits().one_scheduler { 1 } else { self.schedulers };
        Self { schedulers, ..self.clone() }
    }

    /// Makes the nodes members of a gossip group, with `cores` cores each.
    fn for_gossip(self, gossip: &Gossip, section: &ClusterSection, cores: u32) -> Result<Self, KeyError> {
        let idle = [
            ("cores", section.cores.is_some()),
            ("request_rate", section.request_rate.is_some()),
            ("speed", section.speed.is_some()),
            ("shared", section.shared),
            ("kind", !section.kind.is_empty()),
        ];
        if let Some((key, _)) = idle.into_iter().find(|(_, given)| *given) {
            let message = format!("`cluster.{key}` is about jobs, and gossip has none");
            return Err(KeyError::new(&["cluster", key], message, "leave the key out"));
        }
        if self.schedulers != 1 {
            let message = "the only scheduler of a gossip group is its source";
            return Err(KeyError::new(&["cluster", "schedulers"], message, "leave the key out"));
        }
        let nodes = self.nodes.iter().map(|&(nodes, _)| (nodes, cores)).collect();
        gossip.group(self.node_count(), 0).map_err(|(key, why, help)| {
            let at = [&["workload", "gossip"], key].concat();
            KeyError::new(&at, format!("`{}`: {why}", at.join(".")), help)
        })?;
        Ok(Self { nodes, gossip: Some(gossip.clone()), ..self })
    }

    /// The properties of these machines on which a workload depends.
    pub fn site(&self) -> Site {
        let largest = self.room.as_ref().and_then(Room::largest);
        Site { schedulers: self.schedulers, cores: self.core_count(), largest }
    }

    /// CPU of all nodes in cores, if they are shared.
    pub fn shared_cpu(&self) -> Option<f64> {
        self.room.as_ref().and_then(Room::shared_cpu)
    }

    /// Number of nodes.
    pub fn node_count(&self) -> u32 {
        self.nodes.iter().map(|(nodes, _)| nodes).sum()
    }

    /// Number of cores.
    pub fn core_count(&self) -> u64 {
        self.nodes.iter().map(|&(nodes, cores)| u64::from(nodes) * u64::from(cores)).sum()
    }

    /// Mean work per second of all cores, in reference cores.
    pub fn capacity(&self, seed: u64) -> f64 {
        match self.resolved(seed) {
            Some(topology) => topology.describe().capacity,
            None => self.shared_cpu().unwrap_or_else(|| self.core_count() as f64) * self.speed.mean(),
        }
    }

    /// Checks that these machines can be built under a seed: a topology may draw impossible speeds, and a gossip group
    /// may find no graph.
    ///
    /// # Errors
    /// The reason why they cannot be built.
    pub fn check(&self, seed: u64) -> Result<(), String> {
        if let Some(Err((key, why, help))) =
            self.gossip.as_ref().map(|gossip| gossip.group(self.node_count(), seed))
        {
            return Err(format!("seed {seed}: workload.gossip.{}: {why}; {help}", key.join(".")));
        }
        let resolved = self.topology.as_ref().map(|file| file.resolve(seed));
        resolved.map_or(Ok(()), |result| result.map(drop).map_err(|error| format!("seed {seed}: {error}")))
    }

    /// Checks that a run does not have too many actors, including the actors that a policy adds.
    ///
    /// # Errors
    /// The reason and a remedy; `name` is the policy's name for an actor that it adds.
    pub fn check_size(layout: &Layout, name: &str) -> Result<(), String> {
        let (actors, added) = (layout.actors(), layout.auxiliaries());
        if u64::from(actors) <= MOST_ACTORS {
            return Ok(());
        }
        Err(format!(
            "the run has {actors} actors ({added} of them {name}s), above the limit of {MOST_ACTORS}; lower nodes"
        ))
    }

    fn actors(&self) -> u64 {
        let nodes: u64 = self.nodes.iter().map(|&(nodes, _)| u64::from(nodes)).sum();
        2 * u64::from(self.schedulers) + nodes + self.core_count()
    }

    /// The topology under a seed. It was resolved under another seed when the experiment was planned, so it can be
    /// refused only for drawn speeds of zero. The nodes are then treated as reference nodes.
    fn resolved(&self, seed: u64) -> Option<Topology> {
        self.topology.as_ref()?.resolve(seed).ok()
    }

    /// The actors that every run on these machines has under `seed`. A policy [may add more](PolicySpec::layout).
    pub fn layout(&self, seed: u64) -> Layout {
        let cores = self.nodes.iter().flat_map(|&(nodes, cores)| std::iter::repeat_n(cores, nodes as usize));
        let layout =
            Layout::new(self.schedulers, 0, cores).with_requests(self.request_rate).with_kinds(self.kinds);
        let layout = match &self.room {
            Some(room) => room.tell(layout),
            None => layout,
        };
        // `check` refuses seeds for which no graph is found.
        match self.gossip.as_ref().and_then(|gossip| gossip.group(self.node_count(), seed).ok()) {
            Some(group) => layout.with_gossip(group),
            None => layout,
        }
    }

    /// The machines of a run of a policy under `seed`. All policies get the same nodes; central policies have one
    /// scheduler, and others have auxiliary actors.
    pub fn machines(&self, policy: &PolicySpec, seed: u64) -> Machines {
        let layout = policy.layout(self.under(policy).layout(seed));
        let beside = |number| policy.traits().auxiliaries?.beside(number, &layout);
        let beside: Vec<_> = (0..layout.auxiliaries()).map(beside).collect();
        let mut groups = self.groups(policy, &layout);
        let topology = self.resolved(seed);
        let cores = self.core_table(&layout, topology.as_ref(), seed);
        let Some(topology) = topology else {
            add_racks(&mut groups, &layout, &beside);
            return Machines { layout, cores, links: Links::uniform(), groups, beside };
        };
        let places = places(&topology, &layout, &beside);
        topology.name(&mut groups, &places, Endpoint(layout.node(0).0));
        Machines { links: topology.links(places), layout, cores, groups, beside }
    }

    /// Node, rack and speed of every core under `seed`; policies do not change them.
    pub fn cores(&self, seed: u64) -> CoreTable {
        self.core_table(&self.layout(seed), self.resolved(seed).as_ref(), seed)
    }

    fn core_table(&self, layout: &Layout, topology: Option<&Topology>, seed: u64) -> CoreTable {
        let (racks, speeds) = match topology {
            None => {
                let racks = (0..layout.nodes()).map(|node| node / RACK).collect();
                (racks, self.core_speeds(layout, &self.drawn(layout, seed)))
            }
            Some(topology) => {
                let racks = topology.nodes().iter().map(|place| place.rack).collect();
                (racks, self.core_speeds(layout, topology.speeds()))
            }
        };
        CoreTable::of(layout).with_racks(racks).with_speeds(speeds)
    }

    /// The groups of actors by kind, empty for kinds of auxiliary actors that only other policies have.
    fn groups(&self, policy: &PolicySpec, layout: &Layout) -> Groups {
        let mut groups = Groups::new(layout.endpoints());
        let schedulers = layout.schedulers();
        for (kind, first) in [("client", 0), ("scheduler", schedulers)] {
            if schedulers < self.schedulers {
                groups.number_some(kind, Endpoint(first), schedulers);
            } else {
                groups.number(kind, Endpoint(first), schedulers);
            }
        }
        groups.number("node", Endpoint(layout.node(0).0), layout.nodes());
        let kinds = PolicySpec::defaults().into_iter().map(|policy| policy.auxiliary());
        kinds.filter(|kind| !kind.is_empty()).for_each(|kind| groups.number_some(kind, Endpoint(0), 0));
        if layout.auxiliaries() > 0 {
            groups.number_some(policy.auxiliary(), Endpoint(layout.auxiliary(0).0), layout.auxiliaries());
        }
        groups
    }

    /// Speed of each node, sampled from the distribution of the cluster.
    fn drawn(&self, layout: &Layout, seed: u64) -> Vec<f64> {
        let address = Address::new(seed, Purpose::Cluster);
        (0..layout.nodes())
            .map(|node| {
                self.speed
                    .sample(&mut address.at(u64::from(node)).draw())
                    .clamp(*SPEEDS.start(), *SPEEDS.end())
            })
            .collect()
    }

    fn core_speeds(&self, layout: &Layout, nodes: &[f64]) -> Vec<f64> {
        let of = |node: u32| std::iter::repeat_n(nodes[node as usize], layout.cores(node) as usize);
        (0..layout.nodes()).flat_map(of).collect()
    }
}

/// Adds the racks of a cluster without a topology: [`RACK`] nodes each, and the auxiliary actors beside them.
fn add_racks(groups: &mut Groups, layout: &Layout, beside: &[Option<u32>]) {
    for rack in 0..layout.nodes().div_ceil(RACK) {
        let nodes = rack * RACK..layout.nodes().min((rack + 1) * RACK);
        let near = (0..layout.auxiliaries())
            .zip(beside)
            .filter(|(_, node)| node.is_some_and(|node| nodes.contains(&node)));
        let auxiliaries = near.map(|(number, _)| Endpoint(layout.auxiliary(number).0));
        groups.add("rack", "", nodes.clone().map(|node| Endpoint(layout.node(node).0)).chain(auxiliaries));
    }
}

/// Location of every endpoint. A client is placed with its scheduler. An auxiliary actor has a machine of its own, in
/// the rack of the node that it is beside, or else where the topology seats coordinators. Schedulers are seated as if
/// there were no auxiliary actors.
fn places(topology: &Topology, layout: &Layout, beside: &[Option<u32>]) -> Vec<Place> {
    let nodes = topology.nodes();
    let schedulers = (0..layout.schedulers()).map(|index| topology.seat(index, layout.schedulers()));
    let auxiliaries = (0..layout.auxiliaries()).zip(beside).map(|(number, node)| {
        let seat = || topology.seat(number, layout.auxiliaries());
        let near = node.map_or_else(seat, |node| nodes[node as usize]);
        Place { host: layout.nodes() + layout.schedulers() + number, ..near }
    });
    schedulers.clone().chain(schedulers).chain(nodes.iter().copied()).chain(auxiliaries).collect()
}

/// Refuses a distribution whose bounds or mean cannot be the speed of a core. Samples out of range are clipped.
fn check_speed(speed: &DistributionSpec<f64>) -> Result<(), KeyError> {
    let (low, high) = speed.bounds();
    let mean = Some(speed.mean());
    let Some(odd) = [low, high, mean].into_iter().flatten().find(|speed| !SPEEDS.contains(speed)) else {
        return Ok(());
    };
    let (least, most) = (SPEEDS.start(), SPEEDS.end());
    Err(KeyError::new(
        &["cluster", "speed"],
        format!("`cluster.speed`: no core has speed {odd}"),
        format!("write a factor on the reference core between {least} and {most}"),
    ))
}

/// Run-length encoding of equal adjacent nodes.
fn runs(cores: &[u32]) -> Vec<(u32, u32)> {
    cores.chunk_by(|a, b| a == b).map(|run| (run.len() as u32, run[0])).collect()
}

/// Maximum number of injections of an experiment, because cores evaluate each injection whenever a copy begins.
const MOST: usize = 100;

impl Machines {
    /// The cores of the nodes that a target names.
    ///
    /// # Errors
    /// When the target names no node; the message names valid targets.
    pub fn cores_at(&self, target: &Target) -> Result<CoreSet, String> {
        let wrong = |why: String| format!("`{target}` names no node of this cluster: {why}");
        let layout = &self.layout;
        let node = |&Endpoint(endpoint): &Endpoint| match layout.role(ActorId(endpoint)) {
            Role::Node(node) => Some(node),
            Role::Client(_) | Role::Scheduler(_) | Role::Worker { .. } | Role::Auxiliary(_) => None,
        };
        let found = self.groups.resolve(target).map_err(wrong)?;
        let workers = found.iter().filter_map(node);
        let workers = workers.flat_map(|node| (0..layout.cores(node)).map(move |core| (node, core)));
        let cores: CoreSet =
            workers.map(|(node, core)| layout.core_index(layout.worker(node, core))).collect();
        if cores.is_empty() {
            return Err(wrong("it names other actors only".to_owned()));
        }
        Ok(cores)
    }

    /// The scheduled injections under `seed`, in the order of the experiment.
    ///
    /// # Errors
    /// A target or core that does not exist, a duration of zero, or two injections into one core at a time.
    pub fn scheduled(
        &self,
        injections: &[ScheduledInjection],
        seed: u64,
    ) -> Result<Vec<Injection>, KeyError> {
        let mut all: Vec<Injection> = Vec::new();
        for (i, scheduled) in injections.iter().enumerate() {
            let wrong = |key: &str, message: String, help: &str| {
                Err(KeyError::new(&["interference", "injection", &i.to_string(), key], message, help))
            };
            if i >= MOST {
                return wrong("at", format!("more than {MOST} injections"), "schedule fewer");
            }
            if scheduled.spec.lasting == Some(Span::ZERO) {
                let help = "write for example \"5s\", or leave it out to inject until the run ends";
                return wrong("for", "it is zero".to_owned(), help);
            }
            let count = self.layout.workers();
            if let Some(last) = scheduled.spec.cores.last().filter(|&last| last >= count) {
                let (message, help) =
                    (format!("there is no core {last}"), format!("cores are 0 to {}", count - 1));
                return wrong("cores", message, &help);
            }
            let mut cores = scheduled.spec.cores.clone();
            for target in &scheduled.spec.who {
                match self.cores_at(target) {
                    Ok(found) => cores = cores.union(&found),
                    Err(why) => return wrong("who", why, "name nodes or racks, such as \"nodes:0-9\""),
                }
            }
            if cores.is_empty() {
                cores = CoreSet::below(count);
            }
            let injection = scheduled.over(cores, seed);
            let meets = |other: &Injection| {
                let both = other.cores.intersection(&injection.cores);
                let at = other.from.max(injection.from);
                let meet = at < other.until.min(injection.until) && !both.is_empty();
                meet.then_some((other.from, both, at))
            };
            if let Some((from, both, at)) = all.iter().find_map(meets) {
                let [from, at] = [from, at].map(|time| time.since(Time::ZERO));
                let message =
                    format!("the injection with at = \"{from}\" is in effect on cores {both} at {at}");
                return wrong("at", message, "let one end before the other begins, or name other cores");
            }
            all.push(injection);
        }
        Ok(all)
    }
}
