//! The emulated machines: their number, speed and location.

use serde::Serialize;
use volary_actors::base::{Address, Endpoint, Law, Purpose};
use volary_actors::layout::Layout;
use volary_netem::topology::{SPEEDS, Topology};
use volary_netem::{Groups, Links, Place, TopologyFile};

use super::error::KeyError;
use super::room::{self, Needs, Room};
use super::section::ClusterSection;
use crate::cores::CoreTable;
use crate::workload::Service;

/// Nodes per rack where no topology says otherwise. Racks then matter only to faults aimed at `"rack:N"` and to
/// interference of scope `rack`; links are the same everywhere.
pub const RACK: u32 = 40;
/// Ids are 32 bits wide and a run has at most this many actors.
const MOST_ACTORS: u64 = 1 << 26;

/// Why a cluster cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A key of `[cluster]`, or of `[service]` where it concerns the nodes.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The topology file.
    #[error(transparent)]
    Topology(volary_netem::Error),
}

/// The emulated machines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cluster {
    /// Cores of each node, in runs of equal nodes: (how many nodes, cores of each).
    pub nodes: Vec<(u32, u32)>,
    /// How many schedulers, each with a client.
    pub schedulers: u32,
    /// Requests a second of all clients; absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_rate: Option<f64>,
    /// Rate of a node's cores relative to the reference core, drawn once per node; samples below 0.01 count as 0.01. A
    /// topology has its own.
    pub speed: Law<f64>,
    /// What connects the machines. If absent all links are the same, and nodes are in racks of [`RACK`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyFile>,
    /// What each node has and each task reserves. If absent a task reserves a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<Room>,
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
        let (nodes, room) = match &topology {
            Some(file) => {
                let topology = file.resolve(seed).map_err(ClusterError::Topology)?;
                Needs::of(service).unmet()?;
                (runs(topology.cores()), None)
            }
            None => {
                let named = room::nodes(section, service)?;
                (named.runs, named.room)
            }
        };
        let speed = section.speed.clone().unwrap_or(Law::Constant(1.0));
        check_speed(&speed)?;
        let schedulers = section.schedulers.unwrap_or(1);
        let request_rate = section.request_rate;
        let cluster = Self { nodes, schedulers, request_rate, speed, topology, room };
        let actors = cluster.actors();
        if actors > MOST_ACTORS {
            let help = format!("lower nodes or cores: nodes + their cores must stay below {MOST_ACTORS}");
            let message = format!("{actors} actors are more than a run can hold");
            return Err(KeyError::new(&["cluster"], message, help).into());
        }
        Ok(cluster)
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
            None => self.core_count() as f64 * self.speed.mean(),
        }
    }

    /// Checks that these machines can be built under a seed: a topology may draw impossible speeds.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self, seed: u64) -> Result<(), String> {
        let resolved = self.topology.as_ref().map(|file| file.resolve(seed));
        resolved.map_or(Ok(()), |result| result.map(drop).map_err(|error| format!("seed {seed}: {error}")))
    }

    fn actors(&self) -> u64 {
        let nodes: u64 = self.nodes.iter().map(|&(nodes, _)| u64::from(nodes)).sum();
        2 * u64::from(self.schedulers) + nodes + self.core_count()
    }

    /// The topology under a seed. It was resolved under another when the experiment was planned. Only speeds, which may
    /// be drawn as zero, can still be refused; the nodes then count as reference nodes.
    fn resolved(&self, seed: u64) -> Option<Topology> {
        self.topology.as_ref()?.resolve(seed).ok()
    }

    /// The actors of a run on these machines, with `extras` actors that the policy adds.
    pub fn layout(&self, extras: u32) -> Layout {
        let cores = self.nodes.iter().flat_map(|&(nodes, cores)| std::iter::repeat_n(cores, nodes as usize));
        let layout = Layout::new(self.schedulers, extras, cores).with_requests(self.request_rate);
        match &self.room {
            Some(room) => room.tell(layout),
            None => layout,
        }
    }

    /// Everything about the machines of a run under `seed`, with `extras` actors that the policy adds.
    pub fn machines(&self, extras: u32, seed: u64) -> Machines {
        let layout = self.layout(extras);
        let mut groups = Groups::new(layout.endpoints());
        groups.number("client", Endpoint(0), self.schedulers);
        groups.number("scheduler", Endpoint(self.schedulers), self.schedulers);
        let first_node = Endpoint(layout.node(0).0);
        groups.number("node", first_node, layout.nodes());
        if extras > 0 {
            groups.number("extra", Endpoint(layout.extra(0).0), extras);
        }
        let cores = CoreTable::of(&layout);
        let Some(topology) = self.resolved(seed) else {
            let racks: Vec<u32> = (0..layout.nodes()).map(|node| node / RACK).collect();
            for rack in 0..layout.nodes().div_ceil(RACK) {
                let nodes = rack * RACK..layout.nodes().min((rack + 1) * RACK);
                groups.add("rack", "", nodes.map(|node| Endpoint(first_node.0 + node)));
            }
            let cores =
                cores.with_racks(racks).with_speeds(self.core_speeds(&layout, &self.drawn(&layout, seed)));
            return Machines { layout, cores, links: Links::uniform(), groups };
        };
        let places = places(&topology, &layout);
        topology.name(&mut groups, &places, first_node);
        let racks = topology.nodes().iter().map(|place| place.rack).collect();
        let cores = cores.with_racks(racks).with_speeds(self.core_speeds(&layout, topology.speeds()));
        Machines { links: topology.links(places), layout, cores, groups }
    }

    /// Speed of each node, drawn from the law of the cluster.
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

/// Location of every endpoint: a client with its scheduler, extras after them.
fn places(topology: &Topology, layout: &Layout) -> Vec<Place> {
    let total = layout.schedulers() + layout.extras();
    let seat = |index| topology.seat(index, total);
    let schedulers = (0..layout.schedulers()).map(seat);
    let extras = (layout.schedulers()..total).map(seat);
    schedulers.clone().chain(schedulers).chain(topology.nodes().iter().copied()).chain(extras).collect()
}

/// Samples beyond the range of a core are clipped; a law that states such a speed as its bound is a mistake.
fn check_speed(speed: &Law<f64>) -> Result<(), KeyError> {
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
