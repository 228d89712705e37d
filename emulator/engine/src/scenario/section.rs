//! `[cluster]` of an experiment file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volary_actors::base::{DistributionSpec, Span};
use volary_netem::Size;

use super::error::KeyError;

/// `[cluster]`: equal nodes, a few kinds of nodes, or a topology file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterSection {
    /// Number of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Cores of each node, and so the number of tasks that it runs at once; 1 if absent, or as many as `cpu` and
    /// `memory` allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Number of schedulers, each with its client; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedulers: Option<u32>,
    /// Requests per second of the job controller, for all clients together: one for each task that it creates and one
    /// for each end that it counts. Jobs take turns of 500 tasks. A job is submitted after its first turn, ends when
    /// all ends are counted, and takes further turns until then. The default of kube-controller-manager is 20; no limit
    /// if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1e-3, max = 1e9))]
    pub request_rate: Option<f64>,
    /// A topology file, relative to the experiment file; it replaces `nodes` and `cores`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<PathBuf>,
    /// Rate of a node's cores relative to the reference core, drawn once per node; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<DistributionSpec<f64>>,
    /// CPU of each node that tasks can reserve, in cores. Needs `service.cpu`, or `shared`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// Memory of each node that tasks can reserve. Needs `service.memory`, or `shared`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Whether nodes are shared: a node runs up to `pods` copies, which share its `cpu` and `memory`. CPU is divided by
    /// requests, and a copy that is given less than it would use takes longer; when memory passes the `threshold`,
    /// copies are evicted and lose their work. `service.usage` states the use and requests of tasks. Otherwise each
    /// copy has a core of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Maximum number of copies on a shared node; 110 if absent, as in Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<u32>,
    /// Share of the memory of a shared node above which it evicts copies, above 0 and at most 1; 0.95 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Period in which shared nodes report the use of copies, for policies that ask for it; "15s" if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Span>,
    /// Kinds of nodes, if nodes differ; they replace `nodes`, `cores`, `cpu` and `memory`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kind: Vec<NodeKind>,
}

/// `[[cluster.kind]]`: nodes of one kind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeKind {
    /// Number of nodes.
    pub nodes: u32,
    /// As `cluster.cores`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// As `cluster.cpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// As `cluster.memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
}

impl ClusterSection {
    /// Refuses a cluster without schedulers, and keys beside `topology` that the topology states itself.
    ///
    /// # Errors
    /// The key and the remedy.
    pub fn check(&self) -> Result<(), KeyError> {
        if self.schedulers == Some(0) {
            let key = ["cluster", "schedulers"];
            return Err(KeyError::new(&key, "a cluster needs a scheduler", "write schedulers = 1 or more"));
        }
        if let Some(rate) = self.request_rate.filter(|rate| !(1e-3..=1e9).contains(rate)) {
            return Err(KeyError::new(
                &["cluster", "request_rate"],
                format!("a controller cannot make {rate} requests a second"),
                "write a number from 0.001 to 1e9, or leave it out for no limit",
            ));
        }
        let given = [
            ("nodes", self.nodes.is_some()),
            ("cores", self.cores.is_some()),
            ("speed", self.speed.is_some()),
            ("cpu", self.cpu.is_some()),
            ("memory", self.memory.is_some()),
            ("shared", self.shared),
            ("kind", !self.kind.is_empty()),
        ];
        match given.into_iter().find(|(_, given)| *given && self.topology.is_some()) {
            Some((key, _)) => Err(KeyError::new(
                &["cluster", key],
                format!("the topology states `{key}` already"),
                "leave it out here, or leave out `topology`",
            )),
            None => Ok(()),
        }
    }
}
