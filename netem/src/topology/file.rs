//! The structs of `topologies/*.toml`, which check only the form (`resolve` checks the meaning), and the machines,
//! racks and regions of a shape.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volary_actors::base::{DistributionSpec, Endpoint, Span};

use crate::error::Error;
use crate::faults::target::{Groups, Target};
use crate::links::{LinkSpec, Place};
use crate::units::{Probability, Rate};

/// A topology file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopologyFile {
    /// The modelled system, in one line.
    pub title: String,
    /// The machines and their connections: the name of a generator, or lists of switches and links.
    pub shape: Shape,
    /// Number of cores of a node, unless a group sets it. Default: 1.
    #[serde(default = "one_core")]
    pub cores: u32,
    /// Speed of a node, as a factor on the reference core, unless a group sets it. A distribution is drawn once for
    /// each node. Default: 1.
    #[serde(default = "reference_speed")]
    pub speed: DistributionSpec<f64>,
    /// Behaviour of links, by distance.
    #[serde(default)]
    pub link: LinkClasses,
    /// Groups of nodes that differ from the rest. If several groups name a node, the last one applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<GroupSpec>,
    /// Placement of schedulers, their clients and other coordinators. Default: `"frontends"`.
    #[serde(default)]
    pub placement: Placement,
}

const fn one_core() -> u32 {
    1
}

const fn reference_speed() -> DistributionSpec<f64> {
    DistributionSpec::Constant(1.0)
}

/// The machines and their connections.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// All machines at one switch. Needs `[link.rack]`.
    Star(Star),
    /// Racks whose switches are all connected by a spine. Needs `[link.rack]` and `[link.fabric]`.
    LeafSpine(LeafSpine),
    /// A k-ary fat tree (Al-Fares et al., SIGCOMM 2008, section 3): k pods of k/2 racks of k/2 machines.
    /// Needs `[link.rack]`, `[link.pod]` and `[link.fabric]`.
    FatTree(FatTree),
    /// Distant sites, each with racks. Needs `[link.rack]`, `[link.fabric]` within a region, and a `[[link.between]]`
    /// for each pair of regions. `[link.region]` applies to all other pairs.
    Regions(Regions),
    /// Switches, the machines at them, and the links between switches, all listed. A message takes the path of least
    /// mean delay; its delay is the sum of the links' delays.
    Graph(GraphShape),
}

/// All machines at one switch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Star {
    /// Number of machines.
    pub nodes: u32,
}

/// Racks joined by a spine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeafSpine {
    /// Number of racks.
    pub racks: u32,
    /// Number of machines in each rack.
    pub nodes_per_rack: u32,
}

/// A k-ary fat tree.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Ports of each switch, an even number; there are k³/4 machines.
    pub k: u32,
}

/// Distant sites.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Regions {
    /// The sites.
    pub region: Vec<Region>,
}

/// A site.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Name of the site, for links, placement and faults.
    pub name: String,
    /// Number of racks.
    pub racks: u32,
    /// Number of machines in each rack.
    pub nodes_per_rack: u32,
}

/// A graph of listed switches and links.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphShape {
    /// The switches. A switch with machines is a rack.
    pub switch: Vec<Switch>,
    /// The links between switches.
    #[serde(default)]
    pub link: Vec<GraphLink>,
}

/// A switch and the machines at it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Name of the switch, for links, placement and faults.
    pub name: String,
    /// Number of machines at the switch. Default: none.
    #[serde(default)]
    pub nodes: u32,
    /// One-way delay between a machine and this switch. Default: none.
    #[serde(default = "no_delay")]
    pub access: DistributionSpec<Span>,
}

const fn no_delay() -> DistributionSpec<Span> {
    DistributionSpec::Constant(Span::ZERO)
}

/// A link between two switches, alike in both directions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphLink {
    /// The two switches.
    pub between: [String; 2],
    /// One-way delay of the link.
    pub one_way: DistributionSpec<Span>,
    /// Probability that the link loses a transmission. Default: 0.
    #[serde(default)]
    pub loss: Probability,
    /// Largest rate for one pair of machines; a path has the rate of its slowest link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

/// Behaviour of links, by the distance between their machines.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LinkClasses {
    /// Links between two endpoints on one machine: a node and a coordinator placed on it. Default: no delay, no loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<LinkSpec>,
    /// Links within a rack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rack: Option<LinkSpec>,
    /// Links between racks of a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<LinkSpec>,
    /// Links between racks of a region that share no pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<LinkSpec>,
    /// Links between regions without a `between`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<LinkSpec>,
    /// Links between two regions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub between: Vec<Between>,
}

/// The links between two regions, alike in both directions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Between {
    /// The two regions.
    pub regions: [String; 2],
    /// Behaviour of these links.
    pub link: LinkSpec,
}

/// A group of nodes that differ from the rest.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// Name of the group; faults can target `"group:name"`.
    pub name: String,
    /// The nodes: `"nodes:0-9"`, `"rack:2"`, `"pod:1"`, `"region:virginia"`.
    pub on: Vec<Target>,
    /// Number of cores of these nodes. Default: `cores` of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Speed of these nodes. Default: `speed` of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<DistributionSpec<f64>>,
}

/// Placement of coordinators: schedulers (each with its client) and auxiliary actors of a policy.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// On their own machines in their own rack. With several regions each region has such a rack, and coordinators are
    /// placed in turn. In a star they are connected to the only switch.
    #[default]
    Frontends,
    /// On the machines of nodes, evenly spread over all of them.
    Spread,
    /// On their own machines in the named racks, in turn. A rack is a number, or a switch of a graph.
    Racks(Vec<Target>),
}

/// Maximum number of nodes. More do not fit the memory of one run, and are treated as a typing error.
const MOST_NODES: u64 = 20_000_000;

/// The places of all nodes and racks.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Ground {
    /// Place of each node.
    pub(super) nodes: Vec<Place>,
    /// Every rack, or switch of a graph.
    pub(super) racks: Vec<Rack>,
    /// Number of pods.
    pub(super) pods: u32,
    /// Names of the regions, or of the switches of a graph.
    pub(super) zones: Vec<String>,
    /// Whether frontends have racks of their own, one in each region.
    own_racks: bool,
}

/// A rack.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Rack {
    /// Name of the rack; empty if it only has a number.
    pub(super) name: String,
    /// Place of the rack; `host` is unused.
    pub(super) place: Place,
}

impl Ground {
    pub(super) fn new(shape: &Shape) -> Result<Self, Error> {
        let mut ground = Self::default();
        match shape {
            Shape::Star(star) => {
                ground.zones.push("star".to_owned());
                ground.add_rack("", 0, 0, some(star.nodes, "shape.star.nodes")?)?;
                ground.pods = 1;
            }
            Shape::LeafSpine(shape) => ground.leaf_spine(shape)?,
            Shape::FatTree(shape) => ground.fat_tree(shape)?,
            Shape::Regions(shape) => {
                some(shape.region.len() as u32, "shape.regions.region")?;
                ground.own_racks = true;
                for (i, region) in shape.region.iter().enumerate() {
                    ground.region(region, &format!("shape.regions.region[{i}]"))?;
                }
                refuse_twins(&ground.zones, "shape.regions.region")?;
            }
            Shape::Graph(shape) => ground.graph(shape)?,
        }
        Ok(ground)
    }

    fn leaf_spine(&mut self, shape: &LeafSpine) -> Result<(), Error> {
        self.own_racks = true;
        self.zones.push("leaf-spine".to_owned());
        let nodes = some(shape.nodes_per_rack, "shape.leaf-spine.nodes_per_rack")?;
        for rack in 0..some(shape.racks, "shape.leaf-spine.racks")? {
            self.add_rack("", rack, 0, nodes)?;
        }
        self.pods = shape.racks;
        Ok(())
    }

    fn fat_tree(&mut self, shape: &FatTree) -> Result<(), Error> {
        self.own_racks = true;
        self.zones.push("fat-tree".to_owned());
        let k = some(shape.k, "shape.fat-tree.k")?;
        if k % 2 == 1 {
            return Err(Error::at(
                "shape.fat-tree.k",
                format!("{k} ports cannot be half uplinks and half downlinks"),
                format!("write an even number, such as {}", k.saturating_add(1)),
            ));
        }
        check_size(u64::from(k).saturating_pow(3) / 4)?;
        for rack in 0..k * k / 2 {
            self.add_rack("", rack / (k / 2), 0, k / 2)?;
        }
        self.pods = k;
        Ok(())
    }

    fn region(&mut self, region: &Region, key: &str) -> Result<(), Error> {
        let zone = self.zones.len() as u32;
        self.zones.push(named(&region.name, &format!("{key}.name"))?);
        let nodes = some(region.nodes_per_rack, &format!("{key}.nodes_per_rack"))?;
        for _ in 0..some(region.racks, &format!("{key}.racks"))? {
            self.add_rack("", self.pods, zone, nodes)?;
            self.pods += 1;
        }
        Ok(())
    }

    fn graph(&mut self, shape: &GraphShape) -> Result<(), Error> {
        for (i, switch) in shape.switch.iter().enumerate() {
            let name = named(&switch.name, &format!("shape.graph.switch[{i}].name"))?;
            self.zones.push(name.clone());
            self.add_rack(&name, i as u32, i as u32, switch.nodes)?;
        }
        self.pods = self.racks.len() as u32;
        refuse_twins(&self.zones, "shape.graph.switch")?;
        some(self.nodes.len() as u32, "shape.graph.switch.nodes")?;
        Ok(())
    }

    fn add_rack(&mut self, name: &str, pod: u32, zone: u32, nodes: u32) -> Result<(), Error> {
        check_size(self.nodes.len() as u64 + u64::from(nodes))?;
        let place = Place { host: 0, rack: self.racks.len() as u32, pod, zone };
        self.racks.push(Rack { name: name.to_owned(), place });
        for _ in 0..nodes {
            self.nodes.push(Place { host: self.nodes.len() as u32, ..place });
        }
        Ok(())
    }

    /// The rack of the `index`-th frontend.
    pub(super) fn frontend(&self, index: u32) -> Place {
        if !self.own_racks {
            return self.racks[0].place;
        }
        let zone = index % self.zones.len() as u32;
        Place { host: 0, rack: self.racks.len() as u32 + zone, pod: self.pods + zone, zone }
    }

    /// Racks by number, name, pod and region, with the rack's number as endpoint.
    pub(super) fn rack_names(&self) -> Groups {
        let mut groups = Groups::new(self.racks.len() as u32);
        let numbered = || (0u32..).map(Endpoint).zip(&self.racks);
        for (number, rack) in numbered() {
            groups.add("rack", &rack.name, [number]);
        }
        for (zone, name) in self.zones.iter().enumerate() {
            let here = numbered().filter(|(_, rack)| rack.place.zone as usize == zone);
            groups.add("region", name, here.map(|(number, _)| number));
        }
        groups
    }
}

fn check_size(nodes: u64) -> Result<(), Error> {
    if nodes > MOST_NODES {
        return Err(Error::at(
            "shape",
            format!("{nodes} nodes are too many"),
            format!("stay below {MOST_NODES}"),
        ));
    }
    Ok(())
}

fn some(count: u32, key: &str) -> Result<u32, Error> {
    if count == 0 {
        return Err(Error::at(key, "must be at least 1, since 0 leaves no nodes", "write 1 or more"));
    }
    Ok(count)
}

/// Checks that a name cannot be mistaken for a number in a target.
fn named(name: &str, key: &str) -> Result<String, Error> {
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.trim() == name {
        return Ok(name.to_owned());
    }
    Err(Error::at(key, format!("`{name}` is not a name"), "begin it with a letter"))
}

fn refuse_twins(names: &[String], key: &str) -> Result<(), Error> {
    let mut sorted: Vec<_> = names.iter().collect();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map_or(Ok(()), |pair| {
        Err(Error::at(key, format!("two entries are called `{}`", pair[0]), "give each a different name"))
    })
}
