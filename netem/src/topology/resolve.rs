//! The resolution of a topology file: nodes with cores, speeds and places, and the classes of links.

use std::ops::RangeInclusive;

use volary_actors::base::{Address, DistributionSpec, Endpoint, Purpose};

use super::file::{Placement, Shape, TopologyFile};
use super::shape::Ground;
use super::{classes, graph};
use crate::error::Error;
use crate::links::{LinkClass, Links, Place, Scheme};
use crate::target::{Groups, resolve_all};

/// Speeds a core can have, as factors on the reference core: between them, work fits 128 bits.
pub const SPEEDS: RangeInclusive<f64> = 0.01..=10_000.0;

/// A resolved topology.
#[derive(Clone, PartialEq, Debug)]
pub struct Topology {
    pub(super) title: String,
    pub(super) cores: Vec<u32>,
    pub(super) speeds: Vec<f64>,
    pub(super) ground: Ground,
    pub(super) classes: Vec<LinkClass>,
    pub(super) scheme: Scheme,
    pub(super) groups: Vec<(String, Vec<u32>)>,
    pub(super) placement: Placement,
    /// Racks of placement, if it names some.
    pub(super) racks: Vec<u32>,
}

impl TopologyFile {
    /// Builds machines, places and link classes. `seed` draws the speeds of nodes that are given by a distribution.
    ///
    /// # Errors
    /// When something cannot be built or would be ignored, with its key in the file.
    pub fn resolve(&self, seed: u64) -> Result<Topology, Error> {
        let ground = Ground::new(&self.shape)?;
        let (classes, scheme) = match &self.shape {
            Shape::Graph(graph) => graph::classes(graph, &self.link)?,
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
        // The group that each node's speed comes from, counted from one.
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
                "a graph has no place for a rack that it doesn't list",
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

/// `group` is the group the distribution comes from, counted from one; zero for the file's own distribution.
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
    /// The system that it models.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Cores of each node.
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

    /// The region, or switch of a graph, that a place is in.
    pub fn zone(&self, place: Place) -> &str {
        self.ground.zones.get(place.zone as usize).map_or("", String::as_str)
    }

    /// The place of the `index`-th of `total` coordinators. Those that share a machine have the same seat.
    pub fn seat(&self, index: u32, total: u32) -> Place {
        let nodes = self.ground.nodes.len() as u32;
        // Machines of their own are numbered after those of nodes.
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

    /// Adds racks, pods, regions and node groups to a table of targets. `places` are those of all endpoints,
    /// so that a region's coordinators belong to it; nodes are endpoints from `first_node` on.
    pub fn name(&self, groups: &mut Groups, places: &[Place], first_node: Endpoint) {
        let at = |matches: &dyn Fn(&Place) -> bool| -> Vec<Endpoint> {
            let numbered = (0u32..).map(Endpoint).zip(places);
            numbered.filter(|(_, place)| matches(place)).map(|(endpoint, _)| endpoint).collect()
        };
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
                groups.add("region", name, at(&|place| place.zone as usize == zone));
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
