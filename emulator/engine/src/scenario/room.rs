//! Capacity of nodes that no topology describes: CPU and memory, what a task reserves of them, and how many tasks fit.

use std::iter::repeat_n;

use serde::Serialize;
use volary_actors::layout::{Amount, Layout};
use volary_netem::Size;

use super::error::KeyError;
use super::section::{ClusterSection, NodeKind};
use crate::workload::Service;

/// CPU and memory that a node has or a task reserves. An absent resource is not reserved.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Needs {
    /// In cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<f64>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Size>,
}

/// Reservations of tasks, which are all the same, and capacities of nodes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Room {
    /// What a task reserves.
    task: Needs,
    /// Capacities of nodes: number of equal adjacent nodes, and what each has.
    nodes: Vec<(u32, Needs)>,
}

impl Room {
    /// Adds the capacities to a layout, which actors read.
    pub(super) fn tell(&self, layout: Layout) -> Layout {
        let nodes = self.nodes.iter().flat_map(|&(nodes, has)| repeat_n(has.amount(), nodes as usize));
        layout.with_room(nodes.collect(), self.task.amount())
    }
}

impl Needs {
    /// What a task reserves.
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
    /// Runs of equal adjacent nodes: their number, and how many tasks each runs at once.
    pub runs: Vec<(u32, u32)>,
    /// Capacities, if tasks reserve any.
    pub room: Option<Room>,
}

/// Reads the nodes of a `[cluster]` without a topology.
pub(super) fn nodes(section: &ClusterSection, service: &Service) -> Result<NodeRuns, KeyError> {
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
        for (name, count) in [("nodes", kind.nodes), ("cores", cores)] {
            if count == 0 {
                return Err(KeyError::new(
                    &key(name),
                    format!("a cluster without {name} runs nothing"),
                    format!("write {name} = 1 or more"),
                ));
            }
        }
        runs.push((kind.nodes, fit.map_or(cores, |fit| cores.min(fit))));
        has.extend(fit.map(|_| (kind.nodes, node)));
    }
    let room = (!has.is_empty()).then_some(Room { task, nodes: has });
    Ok(NodeRuns { runs, room })
}

/// The kinds of nodes with their paths in the file: a single one, of equal nodes, where none is named.
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
            format!("each `cluster.kind` says its own `{key}`"),
            "leave it out here, or leave out [[cluster.kind]]",
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

/// The error about a capacity without a reservation, or the reverse: each is useless without the other.
fn lone(here: &[&str], there: &[&str]) -> KeyError {
    let names = |path: &[&str]| {
        path.iter().copied().filter(|part| part.parse::<u32>().is_err()).collect::<Vec<_>>().join(".")
    };
    let (here_name, there_name) = (names(here), names(there));
    let (section, key) = there_name.rsplit_once('.').unwrap_or_default();
    let message = format!("`{here_name}` says nothing without `{there_name}`");
    KeyError::new(here, message, format!("add {key} to [{section}]"))
}
