//! The resolved experiment: nothing in it is a path to read, a default to fill in or a key to look up.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use volary_actors::base::Law;
use volary_actors::layout::Layout;
use volary_actors::policies::PolicySpec;

use super::file::{Repeat, RunSection, RuntimeKind};
use crate::results::Cell;

/// An experiment, ready to be run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Experiment {
    /// Path below `experiments/` without suffix, such as `latin-square/fig6`; else the file's stem.
    pub name: String,
    /// The file it was read from.
    pub file: PathBuf,
    /// What it is about.
    pub title: String,
    /// The paper, section and figure it reproduces.
    pub source: Option<String>,
    /// Seed of replication 0; replication r has seed + r.
    pub seed: u64,
    /// How many replications.
    pub repeat: Repeat,
    /// With `repeat = "auto"`: the relative 95 % half-width to reach.
    pub precision: f64,
    /// Every cell times every policy, in written order, policies fastest.
    pub points: Vec<Point>,
    /// How to run it.
    pub run: RunSection,
}

/// One cell of the sweep under one policy.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Point {
    /// Values of the swept keys.
    pub cell: Cell,
    /// The policy and its parameters.
    pub policy: PolicySpec,
    /// Its label in results and claims.
    pub label: String,
    /// Everything else it depends on; shared by the policies of a cell.
    #[serde(serialize_with = "shared")]
    pub resolved: Arc<Resolved>,
    /// Hash of what the result depends on, 16 hex digits, for the experiment's seed.
    pub id: String,
}

fn shared<S: Serializer>(resolved: &Arc<Resolved>, serializer: S) -> Result<S::Ok, S::Error> {
    resolved.as_ref().serialize(serializer)
}

/// What the policies of a cell share.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Resolved {
    /// The machines.
    pub cluster: Cluster,
}

/// The emulated machines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cluster {
    /// Cores of each node, in runs of equal nodes: (how many nodes, cores of each).
    pub nodes: Vec<(u32, u32)>,
    /// How many schedulers, each with a client.
    pub schedulers: u32,
    /// Rate of a node's cores relative to the reference core, drawn once per node.
    pub speed: Law<f64>,
}

impl Cluster {
    /// The actors of a run on these machines, with `extras` actors that the policy adds.
    #[must_use]
    pub fn layout(&self, extras: u32) -> Layout {
        let cores = self.nodes.iter().flat_map(|&(nodes, cores)| std::iter::repeat_n(cores, nodes as usize));
        Layout::new(self.schedulers, extras, cores)
    }
}

/// What the command line changes about an experiment file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Overrides {
    /// `--set key=value`, in order.
    pub set: Vec<String>,
    /// `--policy LABEL`: run only these; all when empty.
    pub policies: Vec<String>,
    /// `--seed N`.
    pub seed: Option<u64>,
    /// `--repeat N`.
    pub repeat: Option<Repeat>,
    /// `--runtime`.
    pub runtime: Option<RuntimeKind>,
}

/// `--shard I/N`: every N-th unit, beginning with the I-th, counted from one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// Which share, 1 ..= of.
    pub index: u32,
    /// How many shares.
    pub of: u32,
}

/// One run: a point under one seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unit {
    /// Index into [`Experiment::points`].
    pub point: usize,
    /// Which replication, from zero.
    pub replication: u32,
    /// Its seed.
    pub seed: u64,
    /// Hash of what the result depends on, 16 hex digits.
    pub id: String,
}
