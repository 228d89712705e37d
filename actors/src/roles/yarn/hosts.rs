//! The nodes as the resource manager knows them, with their containers.

use crate::base::{CopyId, JobId};
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
    /// Jobs whose application master has a container here.
    pub masters: Vec<JobId>,
    pub cores: u32,
    pub up: bool,
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
        self.cores.saturating_sub((running + self.masters.len()) as u32)
    }

    /// The suspended container of a queue that goes on first: that of the oldest application.
    pub(super) fn suspended(&mut self, leaf: usize) -> Option<&mut Container> {
        let mine = |container: &&mut Container| container.leaf == leaf && container.is_suspended();
        self.containers.iter_mut().filter(mine).min_by_key(|container| container.copy.task)
    }
}

/// All nodes.
pub(super) struct ContainerHosts(Vec<ContainerHost>);

impl ContainerHosts {
    pub(super) fn new(layout: &Layout) -> Self {
        let host = |node| ContainerHost {
            containers: Vec::new(),
            masters: Vec::new(),
            cores: layout.cores(node),
            up: true,
            avoided: false,
        };
        Self((0..layout.nodes()).map(host).collect())
    }

    pub(super) fn get(&mut self, node: u32) -> &mut ContainerHost {
        &mut self.0[node as usize]
    }

    /// Containers of all nodes that are up.
    pub(super) fn total(&self) -> u32 {
        self.0.iter().filter(|host| host.up).map(|host| host.cores).sum()
    }

    /// Application masters of all nodes.
    pub(super) fn masters(&self) -> u32 {
        self.0.iter().map(|host| host.masters.len() as u32).sum()
    }

    /// The newest job whose application master has a container.
    pub(super) fn newest_master(&self) -> Option<JobId> {
        self.0.iter().flat_map(|host| &host.masters).max().copied()
    }

    /// Removes the application master of a job.
    pub(super) fn remove_master(&mut self, job: JobId) {
        for host in &mut self.0 {
            host.masters.retain(|&other| other != job);
        }
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
        let mut all: Vec<_> = (0..).zip(&self.0).flat_map(of).collect();
        all.sort_unstable_by_key(|&(_, copy)| std::cmp::Reverse(copy));
        all
    }
}
