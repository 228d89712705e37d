//! The link class between two endpoints, computed from their places instead of a table of all pairs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use volary_actors::base::{DistributionSpec, Endpoint, Span};

use crate::config::Loss;
use crate::units::{Buffer, Rate};

/// The links of a class in a topology file. Missing keys take the values of `[network]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Propagation delay of a message, one way.
    pub one_way: DistributionSpec<Span>,
    /// Loss of a transmission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Rate of one link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Buffer of one link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
}

/// A class of links with equal behaviour.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkClass {
    /// Name of the class in reports: `rack`, `fabric`, `virginia - ireland`.
    pub name: String,
    /// The table that describes the class: `network`, or `link.rack` of a topology.
    pub key: String,
    /// Propagation delay: the sum of one draw from each distribution. If empty, the delay of `[network]`.
    pub one_way: Vec<DistributionSpec<Span>>,
    /// Loss of a transmission; `None` for the loss of `[network]`.
    pub loss: Option<Loss>,
    /// Rate of each link; `None` for the rate of `[network]`.
    pub rate: Option<Rate>,
    /// Buffer of each link; `None` for the buffer of `[network]`.
    pub buffer: Option<Buffer>,
    /// Whether the links are within one machine; `[network]` does not apply to them.
    pub local: bool,
}

/// The place of an endpoint. Numbers are unique within the topology, so two places are in one rack exactly if they have
/// the same `rack`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Place {
    /// Number of the machine.
    pub host: u32,
    /// Number of the rack, or of another group of machines with its own switch.
    pub rack: u32,
    /// Number of the pod, which has the racks under one aggregation layer.
    pub pod: u32,
    /// Number of the region, or of the switch in a topology that lists its links.
    pub zone: u32,
}

/// The links between all endpoints of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Links {
    classes: Vec<LinkClass>,
    /// Places of the endpoints; empty if all links have the same class.
    places: Vec<Place>,
    scheme: Scheme,
}

/// The classes between places: the class of the first level that two places share, else the entry of their zones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Scheme {
    /// Class within one machine.
    pub(crate) host: u16,
    /// Class within one rack; `None` if the class depends on the zones.
    pub(crate) rack: Option<u16>,
    /// Class within one pod; `None` if the class depends on the zones.
    pub(crate) pod: Option<u16>,
    /// Number of zones.
    pub(crate) zones: u32,
    /// Class between two zones, row by row.
    pub(crate) between: Vec<u16>,
}

impl Scheme {
    #[inline]
    pub(crate) fn class(&self, a: &Place, b: &Place) -> u16 {
        if a.host == b.host {
            return self.host;
        }
        match (self.rack, self.pod) {
            (Some(class), _) if a.rack == b.rack => class,
            (_, Some(class)) if a.pod == b.pod => class,
            _ => self.between[(a.zone * self.zones + b.zone) as usize],
        }
    }
}

impl Links {
    /// Links of a single class, as described by `[network]`.
    pub fn uniform() -> Self {
        let class = LinkClass {
            name: "network".to_owned(),
            key: "network".to_owned(),
            one_way: Vec::new(),
            loss: None,
            rate: None,
            buffer: None,
            local: false,
        };
        Self { classes: vec![class], places: Vec::new(), scheme: Scheme::default() }
    }

    pub(crate) const fn new(classes: Vec<LinkClass>, places: Vec<Place>, scheme: Scheme) -> Self {
        Self { classes, places, scheme }
    }

    /// The classes, in the order of their numbers.
    pub fn classes(&self) -> &[LinkClass] {
        &self.classes
    }

    /// The number of endpoints with a place; `None` if all links have the same class.
    pub fn endpoints(&self) -> Option<u32> {
        (!self.places.is_empty()).then_some(self.places.len() as u32)
    }

    /// The place of an endpoint; `None` if all links have the same class.
    pub fn place(&self, endpoint: Endpoint) -> Option<&Place> {
        self.places.get(endpoint.index())
    }

    /// The number of the class that joins two endpoints.
    #[inline]
    pub fn class(&self, a: Endpoint, b: Endpoint) -> usize {
        if self.places.is_empty() {
            return 0;
        }
        self.scheme.class(&self.places[a.index()], &self.places[b.index()]) as usize
    }
}
