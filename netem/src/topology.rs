//! Topology files: machines, their places, and the links between them.
//!
//! A [`TopologyFile`] is the parsed file. [`TopologyFile::resolve`] turns it into a [`Topology`] with each node's
//! cores, speed and place, and the classes of links. The link between two endpoints follows from their places. A
//! topology contains no coordinators; [`Topology::seat`] gives their places. [`Facts`] describe the topology, for
//! people and for `--json`.

mod classes;
mod file;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use file::Ground;
pub use file::{
    Between, FatTree, GraphLink, GraphShape, GroupSpec, LeafSpine, LinkClasses, Placement, Region, Regions,
    Shape, Star, Switch, TopologyFile,
};
use schemars::JsonSchema;
use serde::Serialize;
use volary_actors::base::{Address, DistributionSpec, Endpoint, Purpose};

use crate::error::Error;
use crate::faults::target::{Groups, resolve_all};
use crate::links::{LinkClass, Links, Place, Scheme};

/// Possible speeds of a core, as factors on the reference core. Within these bounds, work fits 128 bits.
pub const SPEEDS: RangeInclusive<f64> = 0.01..=10_000.0;

/// A resolved topology.
#[derive(Clone, PartialEq, Debug)]
pub struct Topology {
    title: String,
    cores: Vec<u32>,
    speeds: Vec<f64>,
    ground: Ground,
    classes: Vec<LinkClass>,
    scheme: Scheme,
    groups: Vec<(String, Vec<u32>)>,
    placement: Placement,
    /// Racks of the coordinators, if the placement names racks.
    racks: Vec<u32>,
}

impl TopologyFile {
    /// Builds machines, places and link classes. Speeds that are given by a distribution are drawn from `seed`.
    ///
    /// # Errors
    /// An [`Error`] for a part that cannot be built or would be ignored, with its key in the file.
    pub fn resolve(&self, seed: u64) -> Result<Topology, Error> {
        let ground = Ground::new(&self.shape)?;
        let (classes, scheme) = match &self.shape {
            Shape::Graph(graph) => classes::graph(graph, &self.link)?,
            shape @ (Shape::Star(_) | Shape::LeafSpine(_) | Shape::FatTree(_) | Shape::Regions(_)) => {
                classes::tree(shape, &self.link, &ground)?
            }
        };
        let nodes = ground.nodes.len();
        let mut topology = Topology {
            title: self.title.clone(),
            cores: vec![self.cores; nodes],
            speeds: Vec::with_capacity(nodes),
            classes,
            scheme,
            groups: Vec::new(),
            placement: self.placement.clone(),
            racks: self.racks_of_placement(&ground)?,
            ground,
        };
        check_cores(self.cores, "cores")?;
        // The group that sets each node's speed, counted from one.
        let mut paced_by = vec![0; nodes];
        let names = topology.node_groups();
        for (i, group) in self.group.iter().enumerate() {
            let members = resolve_all(&names, &group.on, &format!("group[{i}].on"))?;
            if let Some(cores) = group.cores {
                check_cores(cores, &format!("group[{i}].cores"))?;
                members.iter().for_each(|node| topology.cores[node.index()] = cores);
            }
            if group.speed.is_some() {
                members.iter().for_each(|node| paced_by[node.index()] = i + 1);
            }
            topology.groups.push((group.name.clone(), members.iter().map(|node| node.0).collect()));
        }
        for (node, group) in paced_by.into_iter().enumerate() {
            let distribution =
                group.checked_sub(1).and_then(|i| self.group[i].speed.as_ref()).unwrap_or(&self.speed);
            topology.speeds.push(draw_speed(distribution, group, node as u64, seed)?);
        }
        Ok(topology)
    }

    fn racks_of_placement(&self, ground: &Ground) -> Result<Vec<u32>, Error> {
        match (&self.placement, &self.shape) {
            (Placement::Racks(targets), _) => {
                let racks = resolve_all(&ground.rack_names(), targets, "placement.racks")?;
                Ok(racks.iter().map(|rack| rack.0).collect())
            }
            (Placement::Frontends, Shape::Graph(_)) => Err(Error::at(
                "placement",
                "frontends have no rack in a graph, which lists all its racks",
                "write `placement = { racks = [\"rack:<switch>\"] }` or `placement = \"spread\"`",
            )),
            (Placement::Frontends | Placement::Spread, _) => Ok(Vec::new()),
        }
    }
}

fn check_cores(cores: u32, key: &str) -> Result<(), Error> {
    if cores == 0 {
        return Err(Error::at(key, "a node without cores runs nothing", "write 1 or more"));
    }
    Ok(())
}

/// Draws the speed of a node. `group` is the group with the distribution, counted from one; zero for the file's own
/// distribution.
fn draw_speed(
    distribution: &DistributionSpec<f64>,
    group: usize,
    node: u64,
    seed: u64,
) -> Result<f64, Error> {
    let speed = distribution.sample(&mut Address::new(seed, Purpose::Cluster).at(node).draw());
    if SPEEDS.contains(&speed) {
        return Ok(speed);
    }
    let key = group.checked_sub(1).map_or_else(|| "speed".to_owned(), |i| format!("group[{i}].speed"));
    let (least, most) = (SPEEDS.start(), SPEEDS.end());
    let remedy = format!("use a distribution that stays between {least} and {most}");
    Err(Error::at(key, format!("node {node} has speed {speed}"), remedy))
}

impl Topology {
    /// Number of cores of each node.
    pub fn cores(&self) -> &[u32] {
        &self.cores
    }

    /// Speed of each node, as a factor on the reference core.
    pub fn speeds(&self) -> &[f64] {
        &self.speeds
    }

    /// The place of each node.
    pub fn nodes(&self) -> &[Place] {
        &self.ground.nodes
    }

    /// The place of coordinator `index` of `total`. Coordinators that share a machine have the same seat.
    pub fn seat(&self, index: u32, total: u32) -> Place {
        let nodes = self.ground.nodes.len() as u32;
        // Machines of coordinators are numbered after those of nodes.
        let host = nodes + index;
        match &self.placement {
            Placement::Spread => {
                let node = u64::from(index) * u64::from(nodes) / u64::from(total.max(1));
                self.ground.nodes[node as usize % nodes as usize]
            }
            Placement::Racks(_) => {
                let rack = self.racks[index as usize % self.racks.len()];
                Place { host, ..self.ground.racks[rack as usize].place }
            }
            Placement::Frontends => Place { host, ..self.ground.frontend(index) },
        }
    }

    /// The links between endpoints at `places`, in the order of their numbers.
    pub fn links(&self, places: Vec<Place>) -> Links {
        Links::new(self.classes.clone(), places, self.scheme.clone())
    }

    /// Adds racks, pods, regions and node groups to a table of targets. `places` are the places of all endpoints, so
    /// that a region includes its coordinators. Nodes are the endpoints from `first_node` on.
    pub fn name(&self, groups: &mut Groups, places: &[Place], first_node: Endpoint) {
        // One pass per kind keeps this linear for clusters of many racks.
        let mut racks = vec![Vec::new(); self.ground.racks.len()];
        let mut pods = vec![Vec::new(); self.ground.pods as usize];
        for (endpoint, place) in (0u32..).map(Endpoint).zip(places) {
            if let Some(rack) = racks.get_mut(place.rack as usize) {
                rack.push(endpoint);
            }
            if let Some(pod) = pods.get_mut(place.pod as usize) {
                pod.push(endpoint);
            }
        }
        for (rack, members) in self.ground.racks.iter().zip(racks) {
            groups.add("rack", &rack.name, members);
        }
        if self.scheme.pod.is_some() {
            pods.into_iter().for_each(|members| groups.add("pod", "", members));
        }
        if self.scheme.rack.is_some() && self.ground.zones.len() > 1 {
            for (zone, name) in self.ground.zones.iter().enumerate() {
                let inside =
                    (0u32..).map(Endpoint).zip(places).filter(|(_, place)| place.zone as usize == zone);
                groups.add("region", name, inside.map(|(endpoint, _)| endpoint));
            }
        }
        for (name, nodes) in &self.groups {
            groups.add("group", name, nodes.iter().map(|node| Endpoint(first_node.0 + node)));
        }
    }

    /// Nodes by number, rack, pod and region, with the node's number as endpoint.
    fn node_groups(&self) -> Groups {
        let mut groups = Groups::new(self.ground.nodes.len() as u32);
        groups.number("node", Endpoint(0), self.ground.nodes.len() as u32);
        self.name(&mut groups, &self.ground.nodes, Endpoint(0));
        groups
    }
}

/// Facts about a topology.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Facts {
    /// The system that the topology models.
    pub title: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Number of cores of all nodes.
    pub cores: u64,
    /// Smallest and largest number of cores of a node.
    pub cores_per_node: [u32; 2],
    /// Work per second of all cores, in reference cores.
    pub capacity: f64,
    /// Speeds of the slowest and the fastest node.
    pub speed: [f64; 2],
    /// Number of racks, or of switches with nodes.
    pub racks: u32,
    /// Number of pods; `None` if the shape has none.
    pub pods: Option<u32>,
    /// Names of the regions; empty if there is only one.
    pub regions: Vec<String>,
    /// Node groups.
    pub groups: Vec<GroupFacts>,
    /// Placement of coordinators.
    pub placement: String,
    /// Link classes.
    pub classes: Vec<ClassFacts>,
}

/// A node group.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct GroupFacts {
    /// Name of the group.
    pub name: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Number of cores of the group's nodes.
    pub cores: u64,
}

/// A link class.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ClassFacts {
    /// Name of the class in reports.
    pub name: String,
    /// Number of pairs of nodes that it joins.
    pub pairs: u64,
    /// Mean propagation delay, one way, in seconds.
    pub one_way_mean_s: f64,
    /// Standard deviation of the delay, one way, in seconds.
    pub one_way_std_s: f64,
    /// Mean round trip, in seconds.
    pub rtt_mean_s: f64,
    /// Share of lost transmissions; `None` for the loss of `[network]`.
    pub loss: Option<f64>,
    /// Rate of a link; `None` for the rate of `[network]`.
    pub rate: Option<String>,
}

impl Topology {
    /// Returns the facts about the topology.
    pub fn describe(&self) -> Facts {
        let range = |values: &[f64]| {
            [values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(0.0, f64::max)]
        };
        let least = self.cores.iter().copied().min().unwrap_or(0);
        let most = self.cores.iter().copied().max().unwrap_or(0);
        let racks = count(&self.ground.nodes, |place| place.rack).len() as u32;
        let tree = self.scheme.rack.is_some();
        Facts {
            title: self.title.clone(),
            nodes: self.ground.nodes.len() as u32,
            cores: self.cores.iter().map(|&c| u64::from(c)).sum(),
            cores_per_node: [least, most],
            capacity: self.cores.iter().zip(&self.speeds).map(|(&c, s)| f64::from(c) * s).sum(),
            speed: range(&self.speeds),
            racks,
            pods: self.scheme.pod.map(|_| self.ground.pods),
            regions: if tree && self.ground.zones.len() > 1 { self.ground.zones.clone() } else { Vec::new() },
            groups: self.groups.iter().map(|(name, nodes)| self.group_facts(name, nodes)).collect(),
            placement: match &self.placement {
                Placement::Frontends => "frontends".to_owned(),
                Placement::Spread => "spread over nodes".to_owned(),
                Placement::Racks(racks) => {
                    format!("in {}", racks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
                }
            },
            classes: self.class_facts(),
        }
    }

    fn group_facts(&self, name: &str, nodes: &[u32]) -> GroupFacts {
        let cores = nodes.iter().map(|&node| u64::from(self.cores[node as usize])).sum();
        GroupFacts { name: name.to_owned(), nodes: nodes.len() as u32, cores }
    }

    fn class_facts(&self) -> Vec<ClassFacts> {
        let pairs = self.pairs();
        let facts = self.classes.iter().zip(pairs).map(|(class, pairs)| {
            let mean: f64 = class.one_way.iter().map(DistributionSpec::mean).sum();
            ClassFacts {
                name: class.name.clone(),
                pairs,
                one_way_mean_s: mean,
                one_way_std_s: class
                    .one_way
                    .iter()
                    .map(|distribution| distribution.std().powi(2))
                    .sum::<f64>()
                    .sqrt(),
                rtt_mean_s: 2.0 * mean,
                loss: class.loss.map(|loss| loss.mean()),
                rate: class.rate.map(|rate| rate.to_string()),
            }
        });
        facts.collect()
    }

    /// Number of pairs of nodes that each class joins. It is computed from the sizes of racks, pods and zones, because
    /// there may be 10¹² pairs.
    fn pairs(&self) -> Vec<u64> {
        let mut pairs = vec![0; self.classes.len()];
        let within = |sizes: &BTreeMap<u32, u64>| -> u64 { sizes.values().map(|n| n * (n - 1) / 2).sum() };
        let nodes = &self.ground.nodes;
        let mut nearer = 0;
        for (class, sizes) in
            [(self.scheme.rack, count(nodes, |p| p.rack)), (self.scheme.pod, count(nodes, |p| p.pod))]
        {
            if let Some(class) = class {
                pairs[class as usize] += within(&sizes) - nearer;
                nearer = within(&sizes);
            }
        }
        let zones: Vec<_> = count(nodes, |p| p.zone).into_iter().collect();
        let class = |a: u32, b: u32| self.scheme.between[(a * self.scheme.zones + b) as usize] as usize;
        for (i, &(a, n)) in zones.iter().enumerate() {
            pairs[class(a, a)] += n * (n - 1) / 2;
            for &(b, m) in &zones[i + 1..] {
                pairs[class(a, b)] += n * m;
            }
        }
        // Pairs that share a rack or a pod were also counted with their zone.
        if let Some(&(zone, _)) = zones.first() {
            pairs[class(zone, zone)] -= nearer;
        }
        pairs
    }
}

/// Number of nodes for each value of a level.
fn count(nodes: &[Place], level: impl Fn(&Place) -> u32) -> BTreeMap<u32, u64> {
    let mut sizes = BTreeMap::new();
    for place in nodes {
        *sizes.entry(level(place)).or_insert(0) += 1;
    }
    sizes
}
