//! Facts about a topology, for people and for `--json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Placement, Topology};
use crate::links::Place;

/// Facts about a topology.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Facts {
    /// The system that it models.
    pub title: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Cores of all nodes.
    pub cores: u64,
    /// Fewest and most cores of a node.
    pub cores_per_node: [u32; 2],
    /// Work per second of all cores, in reference cores.
    pub capacity: f64,
    /// Slowest and fastest node.
    pub speed: [f64; 2],
    /// Number of racks, or of switches with nodes.
    pub racks: u32,
    /// Number of pods, if it has any.
    pub pods: Option<u32>,
    /// Names of the regions, if there are several.
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
    /// Its name.
    pub name: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Cores of its nodes.
    pub cores: u64,
}

/// A link class.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ClassFacts {
    /// Its name in reports.
    pub name: String,
    /// Number of pairs of nodes that it joins.
    pub pairs: u64,
    /// Mean propagation delay, one way, in seconds.
    pub one_way_mean_s: f64,
    /// Standard deviation of the delay, one way, in seconds.
    pub one_way_std_s: f64,
    /// Mean round trip, in seconds.
    pub rtt_mean_s: f64,
    /// Share of lost transmissions, if the class has a loss of its own.
    pub loss: Option<f64>,
    /// Its rate, if it has its own.
    pub rate: Option<String>,
}

impl Topology {
    /// Its facts.
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
            let mean: f64 = class.one_way.iter().map(volary_actors::base::DistributionSpec::mean).sum();
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

    /// Number of pairs of nodes that each class joins, counted from sizes of racks, pods and zones: the pairs
    /// themselves may be 10¹².
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
        // What shares a rack or a pod was counted with its zone as well.
        if let Some(&(zone, _)) = zones.first() {
            pairs[class(zone, zone)] -= nearer;
        }
        pairs
    }
}

/// Number of nodes of each value of a level.
fn count(nodes: &[Place], level: impl Fn(&Place) -> u32) -> BTreeMap<u32, u64> {
    let mut sizes = BTreeMap::new();
    for place in nodes {
        *sizes.entry(level(place)).or_insert(0) += 1;
    }
    sizes
}
