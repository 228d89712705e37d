//! Machines, racks and regions of a shape.

use volary_actors::base::Endpoint;

use super::file::{FatTree, GraphShape, LeafSpine, Region, Shape};
use crate::error::Error;
use crate::links::Place;
use crate::target::Groups;

/// More nodes than this do not fit the memory of one run, and are treated as a typing error.
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
    /// Its name; empty if it only has a number.
    pub(super) name: String,
    /// Its place; `host` is unused.
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
        return Err(Error::at(key, "there is none, so there is no node", "write 1 or more"));
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
        Err(Error::at(key, format!("two are called `{}`", pair[0]), "give each a name of its own"))
    })
}
