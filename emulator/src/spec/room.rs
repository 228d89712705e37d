//! What fits on a node at once: its CPU and memory, and what a task reserves of them.

use serde::Serialize;
use volary_actors::layout::{Amount, Layout};
use volary_netem::Size;

use super::document::Document;
use super::error::SpecError;
use super::file::ClusterSection;
use crate::workload::Service;

/// CPU and memory of equal nodes, and of equal tasks. What neither says is not reserved.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Room {
    /// CPU of a node and of a task, in cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<[f64; 2]>,
    /// Memory of a node and of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<[Size; 2]>,
}

impl Room {
    /// From `[cluster]` and `[service]`; `None` if neither says anything.
    pub(super) fn new(
        document: &Document,
        cluster: &ClusterSection,
        service: &Service,
    ) -> Result<Option<Self>, SpecError> {
        for (section, key, cores) in [("cluster", "cpu", cluster.cpu), ("service", "cpu", service.cpu)] {
            if cores.is_some_and(|cores| !(0.001..=1e6).contains(&cores)) {
                return Err(document
                    .error_at(&[section, key], "CPU must be between 0.001 and 1000000 cores")
                    .help("write cpu = 0.1 for a tenth of a core"));
            }
        }
        let room = Self {
            cpu: both(document, "cpu", cluster.cpu, service.cpu)?,
            memory: both(document, "memory", cluster.memory, service.memory)?,
        };
        if room.cpu.is_none() && room.memory.is_none() {
            return Ok(None);
        }
        for (key, given, empty) in [
            ("cpu", room.cpu.is_some(), Self { memory: None, ..room }.tasks() == 0),
            ("memory", room.memory.is_some(), Self { cpu: None, ..room }.tasks() == 0),
        ] {
            if given && empty {
                return Err(document
                    .error_at(&["service", key], format!("no node has the {key} that a task reserves"))
                    .help(format!("lower service.{key}, or raise cluster.{key}")));
            }
        }
        Ok(Some(room))
    }

    /// How many tasks fit on a node.
    pub(super) fn tasks(&self) -> u32 {
        let [node, task] = self.amounts();
        node.holds(task)
    }

    /// Tells the actors.
    pub(super) fn tell(&self, layout: Layout) -> Layout {
        let [node, task] = self.amounts();
        layout.with_room(node, task)
    }

    /// Of a node and of a task.
    fn amounts(&self) -> [Amount; 2] {
        let cpu = self.cpu.map_or([0; 2], |cpu| cpu.map(|cores| (cores * 1000.0).round() as u64));
        let memory = self.memory.map_or([0; 2], |memory| memory.map(|Size(bytes)| bytes));
        [0, 1].map(|i| Amount { cpu: cpu[i], memory: memory[i] })
    }
}

/// What a node has and a task reserves; either says nothing without the other.
fn both<T>(
    document: &Document,
    key: &str,
    node: Option<T>,
    task: Option<T>,
) -> Result<Option<[T; 2]>, SpecError> {
    let lone = |here: &str, there: &str| {
        document
            .error_at(&[here, key], format!("`{here}.{key}` says nothing without `{there}.{key}`"))
            .help(format!("add {key} to [{there}]"))
    };
    match (node, task) {
        (Some(node), Some(task)) => Ok(Some([node, task])),
        (None, None) => Ok(None),
        (Some(_), None) => Err(lone("cluster", "service")),
        (None, Some(_)) => Err(lone("service", "cluster")),
    }
}
