//! The nodes as the resource manager knows them, with their containers.

use std::collections::BTreeMap;

use crate::base::{CopyId, JobId, Time};
use crate::layout::Layout;

/// A container with a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Container {
    pub copy: CopyId,
    /// The leaf queue it is charged to.
    pub leaf: usize,
    /// Orders about it so far; it is suspended while the number is odd.
    pub turn: u32,
}

impl Container {
    pub(super) const fn is_suspended(&self) -> bool {
        self.turn % 2 == 1
    }
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct ContainerHost {
    /// In the order in which they were given.
    pub containers: Vec<Container>,
    /// Application masters that have a container here.
    masters: u32,
    cores: u32,
    up: bool,
    /// When the newest of its heartbeats was sent.
    reported: Time,
    /// Whether it could not be reached lately.
    pub avoided: bool,
}

impl ContainerHost {
    /// Containers that fit beside those that run.
    pub(super) fn room(&self) -> u32 {
        if !self.up || self.avoided {
            return 0;
        }
        let running = self.containers.iter().filter(|container| !container.is_suspended()).count();
        self.cores.saturating_sub(running as u32 + self.masters)
    }

    /// The suspended container of a queue that goes on first: that of the oldest application.
    pub(super) fn suspended(&mut self, leaf: usize) -> Option<&mut Container> {
        let mine = |container: &&mut Container| container.leaf == leaf && container.is_suspended();
        self.containers.iter_mut().filter(mine).min_by_key(|container| container.copy.task)
    }
}

/// All nodes.
pub(super) struct ContainerHosts {
    hosts: Vec<ContainerHost>,
    /// The node of the application master of each job that has one.
    masters: BTreeMap<JobId, u32>,
}

impl ContainerHosts {
    pub(super) fn new(layout: &Layout) -> Self {
        let host = |node| ContainerHost {
            containers: Vec::new(),
            masters: 0,
            cores: layout.cores(node),
            up: true,
            reported: Time::ZERO,
            avoided: false,
        };
        Self { hosts: (0..layout.nodes()).map(host).collect(), masters: BTreeMap::new() }
    }

    pub(super) fn get(&mut self, node: u32) -> &mut ContainerHost {
        &mut self.hosts[node as usize]
    }

    /// Containers of all nodes that are up.
    pub(super) fn total(&self) -> u32 {
        self.hosts.iter().filter(|host| host.up).map(|host| host.cores).sum()
    }

    /// Takes note of a heartbeat; returns whether it is newer than those before, which can overtake it.
    pub(super) fn hear(&mut self, node: u32, at: Time) -> bool {
        let reported = &mut self.get(node).reported;
        let newer = at >= *reported;
        *reported = at.max(*reported);
        newer
    }

    /// A node is lost; returns its containers.
    pub(super) fn down(&mut self, node: u32) -> Vec<Container> {
        self.masters.retain(|_, of| *of != node);
        let host = self.get(node);
        (host.up, host.masters) = (false, 0);
        std::mem::take(&mut host.containers)
    }

    /// A node is back, without containers.
    pub(super) fn up(&mut self, node: u32) {
        let host = self.get(node);
        (host.up, host.avoided) = (true, false);
    }

    /// Gives a container on a node to the application master of a job.
    pub(super) fn add_master(&mut self, node: u32, job: JobId) {
        self.masters.insert(job, node);
        self.get(node).masters += 1;
    }

    /// Removes the application master of a job, if it has one.
    pub(super) fn remove_master(&mut self, job: JobId) {
        if let Some(node) = self.masters.remove(&job) {
            self.get(node).masters -= 1;
        }
    }

    /// Whether the application master of a job has a container.
    pub(super) fn has_master(&self, job: JobId) -> bool {
        self.masters.contains_key(&job)
    }

    /// Application masters of all nodes.
    pub(super) fn masters(&self) -> u32 {
        self.masters.len() as u32
    }

    /// The newest job whose application master has a container.
    pub(super) fn newest_master(&self) -> Option<JobId> {
        self.masters.last_key_value().map(|(&job, _)| job)
    }

    /// Whether a node has a suspended container of a queue.
    pub(super) fn has_suspended(&self, node: u32, leaf: usize) -> bool {
        self.hosts[node as usize].containers.iter().any(|c| c.leaf == leaf && c.is_suspended())
    }

    /// The container of a copy on a node.
    pub(super) fn find(&mut self, node: u32, copy: CopyId) -> Option<&mut Container> {
        self.get(node).containers.iter_mut().find(|container| container.copy == copy)
    }

    /// Removes the container of a copy from a node.
    pub(super) fn remove(&mut self, node: u32, copy: CopyId) -> Option<Container> {
        let containers = &mut self.get(node).containers;
        let at = containers.iter().position(|container| container.copy == copy)?;
        Some(containers.remove(at))
    }

    /// The running containers of a queue and their nodes: those of the newest application first, and within it the task
    /// with the highest number.
    pub(super) fn newest(&self, leaf: usize) -> Vec<(u32, CopyId)> {
        let of = |(node, host): (u32, &ContainerHost)| {
            let mine = host.containers.iter().filter(move |c| c.leaf == leaf && !c.is_suspended());
            mine.map(move |container| (node, container.copy)).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = (0..).zip(&self.hosts).flat_map(of).collect();
        all.sort_unstable_by_key(|&(_, copy)| std::cmp::Reverse(copy));
        all
    }
}
