//! The structs of `topologies/*.toml`. They check form only; `resolve` checks sense.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use volary_actors::base::{DistributionSpec, Span};

use crate::links::LinkSpec;
use crate::target::Target;
use crate::units::{Probability, Rate};

/// A topology file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopologyFile {
    /// The system that it models, in a line.
    pub title: String,
    /// The machines and their connections: the name of a generator, or lists of switches and links.
    pub shape: Shape,
    /// Cores of a node, unless a group sets them. Default: 1.
    #[serde(default = "one_core")]
    pub cores: u32,
    /// Speed of a node, unless a group sets it, as a factor on the reference core; a distribution is drawn once for
    /// each node. Default: 1.
    #[serde(default = "reference_speed")]
    pub speed: DistributionSpec<f64>,
    /// Behaviour of links, by distance.
    #[serde(default)]
    pub link: LinkClasses,
    /// Nodes that differ from the rest; of several groups that name a node, the last counts.
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
    /// Every machine at one switch. Needs `[link.rack]`.
    Star(Star),
    /// Racks whose switches all meet in a spine. Needs `[link.rack]` and `[link.fabric]`.
    LeafSpine(LeafSpine),
    /// A k-ary fat tree (Al-Fares et al., SIGCOMM 2008, section 3): k pods of k/2 racks of k/2 machines.
    /// Needs `[link.rack]`, `[link.pod]` and `[link.fabric]`.
    FatTree(FatTree),
    /// Sites far apart, each with racks. Needs `[link.rack]`, `[link.fabric]` within a region, and for each
    /// two regions a `[[link.between]]` or `[link.region]` for all that have none.
    Regions(Regions),
    /// Switches, the machines at them, and the links between switches, all listed. A message takes the path
    /// of least mean delay; its delay is the sum of the links'.
    Graph(GraphShape),
}

/// Every machine at one switch.
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
    /// Machines in each rack.
    pub nodes_per_rack: u32,
}

/// A k-ary fat tree.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Ports of each switch, an even number; there are k³/4 machines.
    pub k: u32,
}

/// Sites far apart.
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
    /// Its name, for links, placement and faults.
    pub name: String,
    /// Number of racks.
    pub racks: u32,
    /// Machines in each rack.
    pub nodes_per_rack: u32,
}

/// Switches and links, all listed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphShape {
    /// The switches. One with machines is a rack.
    pub switch: Vec<Switch>,
    /// The links between switches.
    #[serde(default)]
    pub link: Vec<GraphLink>,
}

/// A switch and the machines at it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Its name, for links, placement and faults.
    pub name: String,
    /// Machines at it. Default: none.
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
    /// Its one-way delay.
    pub one_way: DistributionSpec<Span>,
    /// Probability that it loses a transmission. Default: 0.
    #[serde(default)]
    pub loss: Probability,
    /// Largest rate for one pair of machines; a path has the rate of its slowest link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

/// Behaviour of links, by the distance of the machines they join.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LinkClasses {
    /// Between two endpoints on one machine: a node and a coordinator placed on it. Default: no delay, no
    /// loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<LinkSpec>,
    /// Within a rack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rack: Option<LinkSpec>,
    /// Between racks of a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<LinkSpec>,
    /// Between racks that share no pod, within a region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<LinkSpec>,
    /// Between regions without a `between`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<LinkSpec>,
    /// Between two regions.
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

/// Nodes that differ from the rest.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// Its name; faults can aim at `"group:name"`.
    pub name: String,
    /// The nodes: `"nodes:0-9"`, `"rack:2"`, `"pod:1"`, `"region:virginia"`.
    pub on: Vec<Target>,
    /// Their cores. Default: the file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Their speed. Default: the file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<DistributionSpec<f64>>,
}

/// Placement of coordinators: schedulers (each with its client) and auxiliary actors of a policy.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// On machines of their own, in a rack of their own; with several regions, one such rack in each and
    /// coordinators in turn. In a star they hang on the one switch.
    #[default]
    Frontends,
    /// On the machines of nodes, evenly spread over all of them.
    Spread,
    /// On machines of their own in the racks named, in turn: a number, or a switch of a graph.
    Racks(Vec<Target>),
}
