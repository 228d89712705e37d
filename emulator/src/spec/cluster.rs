//! The emulated machines: how many, how fast, where they stand.

use std::ops::Range;
use std::path::Path;

use serde::Serialize;
use volary_actors::base::{Address, Endpoint, Law, Purpose};
use volary_actors::layout::Layout;
use volary_netem::topology::{SPEEDS, Topology};
use volary_netem::{Groups, Links, Place, TopologyFile};

use super::document::Document;
use super::error::SpecError;
use super::explain;
use super::file::ClusterSection;
use super::include::located;
use super::kind::Kind;
use super::room::{self, Needs, Room};
use crate::cores::CoreTable;
use crate::files::Files;
use crate::workload::Service;

/// Nodes that share a rack where no topology says otherwise. Racks then matter only to faults aimed at
/// `"rack:N"` and to interference of scope `rack`; links are alike everywhere.
pub const RACK: u32 = 40;
/// Ids are 32 bits wide and a run has at most this many actors.
const MOST_ACTORS: u64 = 1 << 26;

/// The emulated machines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cluster {
    /// Cores of each node, in runs of equal nodes: (how many nodes, cores of each).
    pub nodes: Vec<(u32, u32)>,
    /// How many schedulers, each with a client.
    pub schedulers: u32,
    /// Rate of a node's cores relative to the reference core, drawn once per node; samples below 0.01 count
    /// as that. A topology has its own.
    pub speed: Law<f64>,
    /// What joins the machines; absent: all links are alike and nodes stand in racks of [`RACK`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyFile>,
    /// What each node has and each task reserves; absent: a task reserves a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<Room>,
}

/// Machines under one seed: what a run is built from.
#[derive(Clone, PartialEq, Debug)]
pub struct Machines {
    /// Who is who.
    pub layout: Layout,
    /// Node, rack and speed of every core.
    pub cores: CoreTable,
    /// What joins endpoints.
    pub links: Links,
    /// Whom faults can aim at.
    pub groups: Groups,
}

impl Cluster {
    /// Resolves `[cluster]` and reads its topology.
    pub(super) fn new(
        files: &Files,
        document: &Document,
        section: &ClusterSection,
        service: &Service,
        seed: u64,
    ) -> Result<Self, SpecError> {
        let schedulers = section.schedulers.unwrap_or(1);
        if schedulers == 0 {
            return Err(document
                .error_at(&["cluster", "schedulers"], "a cluster needs a scheduler")
                .help("write schedulers = 1 or more"));
        }
        let (nodes, topology, room) = match &section.topology {
            Some(_) => {
                let file = Self::read_topology(files, document, section)?;
                let topology = file.1.resolve(seed).map_err(|error| explain::netem(&file.0, &error))?;
                Needs::of(service).unmet(document)?;
                (runs(topology.cores()), Some(file.1), None)
            }
            None => {
                let named = room::nodes(document, section, service)?;
                (named.runs, None, named.room)
            }
        };
        let speed = section.speed.clone().unwrap_or(Law::Constant(1.0));
        check_speed(document, &speed)?;
        let cluster = Self { nodes, schedulers, speed, topology, room };
        let actors = cluster.actors();
        if actors > MOST_ACTORS {
            return Err(document
                .error_at(&["cluster"], format!("{actors} actors are more than a run can hold"))
                .help(format!("lower nodes or cores: nodes + their cores must stay below {MOST_ACTORS}")));
        }
        Ok(cluster)
    }

    /// What `[network]` and the links of a topology make together and cannot be, in the file that the key is of.
    pub(super) fn refused(
        files: &Files,
        document: &Document,
        section: &ClusterSection,
        error: &volary_netem::Error,
    ) -> SpecError {
        if section.topology.is_none() || error.key().starts_with("network") {
            return explain::netem(document, error);
        }
        match Self::read_topology(files, document, section) {
            Ok((topology, _)) => explain::netem(&topology, error),
            Err(unreadable) => unreadable,
        }
    }

    /// The topology file with its document; relative to the file that names it.
    fn read_topology(
        files: &Files,
        document: &Document,
        section: &ClusterSection,
    ) -> Result<(Document, TopologyFile), SpecError> {
        let given = [
            ("nodes", section.nodes.is_some()),
            ("cores", section.cores.is_some()),
            ("speed", section.speed.is_some()),
            ("cpu", section.cpu.is_some()),
            ("memory", section.memory.is_some()),
            ("kind", !section.kind.is_empty()),
        ];
        if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
            return Err(document
                .error_at(&["cluster", key], format!("the topology says `{key}` already"))
                .help("leave it out here, or leave out `topology`"));
        }
        let (_, node) = document.find(&["cluster", "topology"]).ok_or_else(|| {
            document.error_at(&["cluster"], "`cluster` lacks `topology`").help("name a topology file")
        })?;
        let span: Range<usize> = node.span.clone();
        let path = document.folder(&span).join(section.topology.clone().unwrap_or_default());
        let mut file = Document::read(files, &path).map_err(|error| located(document, &span, error))?;
        let mistaken = |(message, help): (String, String)| document.error(&span, message).help(help);
        Kind::Topology.expect_in(&file.root, file.name()).map_err(mistaken)?;
        super::include::values(files, &mut file)?;
        let topology = file.to()?;
        Ok((file, topology))
    }

    /// How many nodes.
    #[must_use]
    pub fn node_count(&self) -> u32 {
        self.nodes.iter().map(|(nodes, _)| nodes).sum()
    }

    /// How many cores.
    #[must_use]
    pub fn core_count(&self) -> u64 {
        self.nodes.iter().map(|&(nodes, cores)| u64::from(nodes) * u64::from(cores)).sum()
    }

    /// Mean work per second of all cores, in reference cores.
    #[must_use]
    pub fn capacity(&self, seed: u64) -> f64 {
        match self.resolved(seed) {
            Some(topology) => topology.describe().capacity,
            None => self.core_count() as f64 * self.speed.mean(),
        }
    }

    /// Whether these machines exist under a seed: a topology may draw speeds that cannot be.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, seed: u64) -> Result<(), String> {
        let resolved = self.topology.as_ref().map(|file| file.resolve(seed));
        resolved.map_or(Ok(()), |result| result.map(drop).map_err(|error| format!("seed {seed}: {error}")))
    }

    fn actors(&self) -> u64 {
        let nodes: u64 = self.nodes.iter().map(|&(nodes, _)| u64::from(nodes)).sum();
        2 * u64::from(self.schedulers) + nodes + self.core_count()
    }

    /// The topology under a seed. It resolved under another when the experiment was planned; only speeds,
    /// which may be drawn as zero, can still be refused, and then the nodes count as reference ones.
    fn resolved(&self, seed: u64) -> Option<Topology> {
        self.topology.as_ref()?.resolve(seed).inspect_err(|error| tracing::warn!("{error}")).ok()
    }

    /// The actors of a run on these machines, with `extras` actors that the policy adds.
    #[must_use]
    pub fn layout(&self, extras: u32) -> Layout {
        let cores = self.nodes.iter().flat_map(|&(nodes, cores)| std::iter::repeat_n(cores, nodes as usize));
        let layout = Layout::new(self.schedulers, extras, cores);
        match &self.room {
            Some(room) => room.tell(layout),
            None => layout,
        }
    }

    /// Everything about the machines of a run under `seed`, with `extras` actors that the policy adds.
    #[must_use]
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

/// Reads and resolves a topology file by itself.
///
/// # Errors
/// When it cannot be read, parsed or built.
pub fn topology(path: &Path, seed: u64) -> Result<Topology, SpecError> {
    let files = Files::of_disk();
    let mut document = Document::read(&files, path)?;
    Kind::Topology.expect(&document)?;
    super::include::values(&files, &mut document)?;
    let file: TopologyFile = document.to()?;
    file.resolve(seed).map_err(|error| explain::netem(&document, &error))
}

/// Where every endpoint stands: a client with its scheduler, extras after them.
fn places(topology: &Topology, layout: &Layout) -> Vec<Place> {
    let total = layout.schedulers() + layout.extras();
    let seat = |index| topology.seat(index, total);
    let schedulers = (0..layout.schedulers()).map(seat);
    let extras = (layout.schedulers()..total).map(seat);
    schedulers.clone().chain(schedulers).chain(topology.nodes().iter().copied()).chain(extras).collect()
}

/// Samples beyond what a core can have are cut; a law that states such a speed outright is a mistake.
fn check_speed(document: &Document, speed: &Law<f64>) -> Result<(), SpecError> {
    let (low, high) = speed.bounds();
    let mean = Some(speed.mean());
    let Some(odd) = [low, high, mean].into_iter().flatten().find(|speed| !SPEEDS.contains(speed)) else {
        return Ok(());
    };
    let (least, most) = (SPEEDS.start(), SPEEDS.end());
    Err(document
        .error_at(&["cluster", "speed"], format!("`cluster.speed`: no core has speed {odd}"))
        .help(format!("write a factor on the reference core between {least} and {most}")))
}

/// Equal neighbours counted together.
fn runs(cores: &[u32]) -> Vec<(u32, u32)> {
    cores.chunk_by(|a, b| a == b).map(|run| (run.len() as u32, run[0])).collect()
}
