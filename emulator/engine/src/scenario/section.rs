//! `[cluster]` of an experiment file, the error in a key of a scenario, and the capacity of nodes without a topology:
//! their CPU and memory, the reservations of tasks, and the number of tasks that fit.

use std::iter::repeat_n;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volary_actors::base::Amount;
use volary_actors::base::{DistributionSpec, Span};
use volary_actors::layout::{Layout, Sharing};
use volary_netem::Size;

use crate::workload::{LargestNode, Service};

/// `[cluster]`: equal nodes, a few kinds of nodes, or a topology file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterSection {
    /// Number of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Cores of each node, which is the number of tasks that it runs at once. If absent as many as `cpu` and `memory`
    /// allow, or else 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Number of schedulers, each with its client; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedulers: Option<u32>,
    /// Requests per second of the job controller, for all clients together. It makes one request for each task that it
    /// creates and one for each end that it counts. Jobs take turns of 500 tasks. A job is submitted after its first
    /// turn, and takes further turns until the ends of all its tasks are counted, which ends the job. The default of
    /// kube-controller-manager is 20. No limit if absent.
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
    /// Period in which shared nodes report the use of copies, for policies that ask for reports; "15s" if absent.
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
    /// Cores of each node of this kind; see `cluster.cores`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// CPU of each node of this kind; see `cluster.cpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// Memory of each node of this kind; see `cluster.memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
}

impl ClusterSection {
    /// Refuses a cluster without schedulers, and keys beside `topology` that the topology states itself.
    ///
    /// # Errors
    /// The faulty key, with a remedy.
    pub fn check(&self) -> Result<(), KeyError> {
        if self.schedulers == Some(0) {
            let key = ["cluster", "schedulers"];
            return Err(KeyError::new(&key, "a cluster needs a scheduler", "write schedulers = 1 or more"));
        }
        if let Some(rate) = self.request_rate.filter(|rate| !(1e-3..=1e9).contains(rate)) {
            return Err(KeyError::new(
                &["cluster", "request_rate"],
                format!("a controller cannot make {rate} requests a second"),
                "write a number from 0.001 to 1e9, or leave the key out for no limit",
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
                "leave the key out here, or leave out `topology`",
            )),
            None => Ok(()),
        }
    }
}

/// CPU and memory that a node has or a task reserves. An absent resource is not reserved.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Needs {
    /// CPU, in cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<f64>,
    /// Memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Size>,
}

/// The reservation of a task, equal for all tasks, and the capacities of nodes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Room {
    /// The reservation of a task.
    task: Needs,
    /// Capacities of nodes: number of equal adjacent nodes, and the resources of each.
    nodes: Vec<(u32, Needs)>,
    /// Parameters of shared nodes, if nodes are shared. Tasks then reserve nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    sharing: Option<NodeSharing>,
}

/// Parameters of shared nodes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct NodeSharing {
    /// Share of the memory above which a node evicts copies.
    threshold: f64,
    /// Period of reports of use.
    report: Span,
}

/// Default of `cluster.pods`: the limit of a Kubernetes node.
const PODS: u32 = 110;
/// Default of `cluster.threshold`.
const THRESHOLD: f64 = 0.95;
/// Smallest threshold, because nodes store thresholds in millionths.
const LEAST_THRESHOLD: f64 = 1e-6;
/// Default of `cluster.report`: the cycle of DistSched (Park's thesis, section 5.4.1).
const REPORT: Span = Span::from_secs(15);
/// Shortest period of reports.
const SHORTEST_REPORT: Span = Span::from_millis(1);

impl Room {
    /// Whether nodes are shared.
    pub const fn is_shared(&self) -> bool {
        self.sharing.is_some()
    }

    /// Adds the capacities to a layout, from which actors read them.
    pub(super) fn tell(&self, layout: Layout) -> Layout {
        let nodes = self.nodes.iter().flat_map(|&(nodes, has)| repeat_n(has.amount(), nodes as usize));
        let layout = layout.with_room(nodes.collect(), self.task.amount());
        match self.sharing {
            None => layout,
            Some(sharing) => layout.with_sharing(sharing.for_actors()),
        }
    }

    /// Capacity of the largest shared node.
    pub(super) fn largest(&self) -> Option<LargestNode> {
        let sharing = self.sharing?.for_actors();
        let amounts = || self.nodes.iter().map(|(_, has)| has.amount());
        Some(LargestNode {
            cpu: amounts().map(|has| has.cpu).max().unwrap_or(0),
            memory: amounts().map(|has| sharing.limit(has.memory)).max().unwrap_or(0),
            evicts: amounts().any(|has| sharing.limit(has.memory) < u64::MAX),
        })
    }

    /// CPU of all nodes in cores, if they are shared.
    pub(super) fn shared_cpu(&self) -> Option<f64> {
        self.sharing?;
        Some(self.nodes.iter().map(|&(nodes, has)| f64::from(nodes) * has.cpu.unwrap_or(0.0)).sum())
    }
}

impl Needs {
    /// The reservation of a task.
    pub(super) const fn of(service: &Service) -> Self {
        Self { cpu: service.cpu, memory: service.memory }
    }

    fn amount(self) -> Amount {
        let cpu = self.cpu.map_or(0, |cores| (cores * 1000.0).round() as u64);
        Amount { cpu, memory: self.memory.map_or(0, |Size(bytes)| bytes) }
    }

    const fn is_some(self) -> bool {
        self.cpu.is_some() || self.memory.is_some()
    }

    /// Refuses a reservation of tasks if the nodes do not state their capacity.
    pub(super) fn unmet(self) -> Result<(), KeyError> {
        self.fit(&["cluster"], Self { cpu: None, memory: None }).map(drop)
    }

    /// Number of tasks that fit on a node of this capacity, written at the path `at`; `None` if nothing is reserved.
    fn fit(self, at: &[&str], node: Self) -> Result<Option<u32>, KeyError> {
        let cpu: fn(Self) -> Self = |of| Self { memory: None, ..of };
        let memory: fn(Self) -> Self = |of| Self { cpu: None, ..of };
        for (key, part) in [("cpu", cpu), ("memory", memory)] {
            let (node, task) = (part(node), part(self));
            let written = [at, &[key]].concat();
            match (node.is_some(), task.is_some()) {
                (true, false) => return Err(lone(&written, &["service", key])),
                (false, true) => return Err(lone(&["service", key], &written)),
                (true, true) if node.amount().holds(task.amount()) == 0 => {
                    return Err(KeyError::new(
                        &["service", key],
                        format!("a node has less {key} than a task reserves"),
                        format!("lower service.{key}, or raise {}", written.join(".")),
                    ));
                }
                (true, true) | (false, false) => {}
            }
        }
        Ok(self.is_some().then(|| node.amount().holds(self.amount())))
    }
}

/// The nodes that `[cluster]` names.
pub(super) struct NodeRuns {
    /// Runs of equal adjacent nodes: number of nodes, and number of tasks that each runs at once.
    pub runs: Vec<(u32, u32)>,
    /// Capacities, if tasks reserve resources.
    pub room: Option<Room>,
}

/// Reads the nodes of a `[cluster]` without a topology.
pub(super) fn nodes(section: &ClusterSection, service: &Service) -> Result<NodeRuns, KeyError> {
    if section.shared {
        return shared_nodes(section, service);
    }
    let task = Needs::of(service);
    check_cpu(&["service", "cpu"], task.cpu)?;
    let (mut runs, mut has) = (Vec::new(), Vec::new());
    for (at, kind) in kinds(section)? {
        let at: Vec<&str> = at.iter().map(String::as_str).collect();
        let key = |name| [&at[..], &[name]].concat();
        check_cpu(&key("cpu"), kind.cpu)?;
        let node = Needs { cpu: kind.cpu, memory: kind.memory };
        let fit = task.fit(&at, node)?;
        let cores = kind.cores.or(fit).unwrap_or(1);
        check_counts(&at, &[("nodes", kind.nodes), ("cores", cores)])?;
        runs.push((kind.nodes, fit.map_or(cores, |fit| cores.min(fit))));
        has.extend(fit.map(|_| (kind.nodes, node)));
    }
    let room = (!has.is_empty()).then_some(Room { task, nodes: has, sharing: None });
    Ok(NodeRuns { runs, room })
}

/// Refuses counts of zero.
fn check_counts(at: &[&str], counts: &[(&str, u32)]) -> Result<(), KeyError> {
    let none = counts.iter().find(|(_, count)| *count == 0);
    none.map_or(Ok(()), |(name, _)| {
        Err(KeyError::new(
            &[at, &[name]].concat(),
            format!("a cluster without {name} runs nothing"),
            format!("write {name} = 1 or more"),
        ))
    })
}

/// Reads the nodes of a `[cluster]` that shares them.
fn shared_nodes(section: &ClusterSection, service: &Service) -> Result<NodeRuns, KeyError> {
    let sharing = NodeSharing {
        threshold: section.threshold.unwrap_or(THRESHOLD),
        report: section.report.unwrap_or(REPORT),
    };
    sharing.check()?;
    let pods = section.pods.unwrap_or(PODS);
    check_counts(&["cluster"], &[("pods", pods)])?;
    for (key, given) in [("cpu", service.cpu.is_some()), ("memory", service.memory.is_some())] {
        if given {
            let message = format!("tasks reserve no {key} on shared nodes; `service.usage` states their use");
            let help = format!("leave {key} out, and write for example service.usage.request = 1.5");
            return Err(KeyError::new(&["service", key], message, help));
        }
    }
    let (mut runs, mut has) = (Vec::new(), Vec::new());
    for (at, kind) in kinds(section)? {
        let at: Vec<&str> = at.iter().map(String::as_str).collect();
        let key = |name| [&at[..], &[name]].concat();
        check_cpu(&key("cpu"), kind.cpu)?;
        check_counts(&at, &[("nodes", kind.nodes)])?;
        if kind.cores.is_some() {
            let message = "copies have no cores of their own on shared nodes";
            return Err(KeyError::new(&key("cores"), message, "write cpu, and pods = 110 for their number"));
        }
        if kind.cpu.is_none() {
            return Err(KeyError::new(&at, "a shared node needs `cpu`", "write for example cpu = 8"));
        }
        if kind.memory == Some(Size(0)) {
            let help =
                "write for example memory = \"32GiB\", or leave memory out, so that nothing is evicted";
            return Err(KeyError::new(&key("memory"), "no copy fits into a node without memory", help));
        }
        runs.push((kind.nodes, pods));
        has.push((kind.nodes, Needs { cpu: kind.cpu, memory: kind.memory }));
    }
    let task = Needs { cpu: Some(1.0), memory: None };
    Ok(NodeRuns { runs, room: Some(Room { task, nodes: has, sharing: Some(sharing) }) })
}

impl NodeSharing {
    /// The parameters as actors get them.
    fn for_actors(self) -> Sharing {
        Sharing { threshold: (self.threshold * 1e6).round() as u32, report: self.report }
    }

    fn check(self) -> Result<(), KeyError> {
        if !(self.threshold >= LEAST_THRESHOLD && self.threshold <= 1.0) {
            let message = format!("a node cannot evict above {} of its memory", self.threshold);
            return Err(KeyError::new(
                &["cluster", "threshold"],
                message,
                "write a share from a millionth to 1, such as 0.95",
            ));
        }
        if self.report < SHORTEST_REPORT {
            let message = format!("a period of {} is too short for reports", self.report);
            let help = format!("write {SHORTEST_REPORT} or longer, such as \"15s\"");
            return Err(KeyError::new(&["cluster", "report"], message, help));
        }
        Ok(())
    }
}

/// Refuses keys about shared nodes where nodes are not shared.
pub(super) fn check_unshared(section: &ClusterSection) -> Result<(), KeyError> {
    let given = [
        ("pods", section.pods.is_some()),
        ("threshold", section.threshold.is_some()),
        ("report", section.report.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given && !section.shared) {
        None => Ok(()),
        Some((key, _)) => Err(KeyError::new(
            &["cluster", key],
            format!("`cluster.{key}` is about shared nodes"),
            "add shared = true to [cluster], or leave the key out",
        )),
    }
}

/// The kinds of nodes with their paths in the file; a single kind if the file names none.
fn kinds(section: &ClusterSection) -> Result<Vec<(Vec<String>, NodeKind)>, KeyError> {
    let ClusterSection { nodes, cores, cpu, memory, .. } = *section;
    if section.kind.is_empty() {
        let Some(nodes) = nodes else {
            return Err(KeyError::new(
                &["cluster"],
                "`cluster` lacks `nodes`",
                "add nodes = 1000, [[cluster.kind]], or topology = \"file.toml\"",
            ));
        };
        return Ok(vec![(vec!["cluster".into()], NodeKind { nodes, cores, cpu, memory })]);
    }
    let given = [
        ("nodes", nodes.is_some()),
        ("cores", cores.is_some()),
        ("cpu", cpu.is_some()),
        ("memory", memory.is_some()),
    ];
    if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(KeyError::new(
            &["cluster", key],
            format!("each `cluster.kind` states its own `{key}`"),
            "leave the key out here, or leave out [[cluster.kind]]",
        ));
    }
    let path = |i: usize| vec!["cluster".into(), "kind".into(), i.to_string()];
    Ok(section.kind.iter().enumerate().map(|(i, kind)| (path(i), kind.clone())).collect())
}

fn check_cpu(at: &[&str], cores: Option<f64>) -> Result<(), KeyError> {
    if cores.is_none_or(|cores| (0.001..=1e6).contains(&cores)) {
        return Ok(());
    }
    let help = "write cpu = 0.1 for a tenth of a core";
    Err(KeyError::new(at, "CPU must be between 0.001 and 1000000 cores", help))
}

/// The error of a capacity without a reservation, or of a reservation without a capacity.
fn lone(here: &[&str], there: &[&str]) -> KeyError {
    let names = |path: &[&str]| {
        path.iter().copied().filter(|part| part.parse::<u32>().is_err()).collect::<Vec<_>>().join(".")
    };
    let (here_name, there_name) = (names(here), names(there));
    let (section, key) = there_name.rsplit_once('.').unwrap_or_default();
    let message = format!("`{here_name}` has no effect without `{there_name}`");
    KeyError::new(here, message, format!("add {key} to [{section}]"))
}

/// An error in a key, with the remedy. The caller adds the file and the line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{}`: {message}; {help}", key.join("."))]
pub struct KeyError {
    /// Path of the key: names of tables, indices of array elements, then its own name.
    pub key: Vec<String>,
    /// Description of the error.
    pub message: String,
    /// Remedy for the error.
    pub help: String,
}

impl KeyError {
    pub(super) fn new(key: &[&str], message: impl Into<String>, help: impl Into<String>) -> Self {
        let key = key.iter().map(|part| (*part).to_owned()).collect();
        Self { key, message: message.into(), help: help.into() }
    }
}
