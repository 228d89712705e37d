//! Roles and endpoints of actors.
//!
//! Ids are dense and in this order: clients, schedulers, nodes, auxiliary actors (masters of groups), workers. Client i
//! submits to scheduler i and shares its machine, so the two talk without network delay. A worker shares the endpoint
//! of its node manager; every other actor has an endpoint of its own, with its own number.

mod group;

use std::sync::Arc;

use crate::base::{ActorId, Amount, Endpoint, Span};

pub use self::group::{GossipGroup, Neighbours, Origin};

/// The role of an actor; its number counts the actors of the same role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Job source of the scheduler with the same number.
    Client(u32),
    /// Scheduler.
    Scheduler(u32),
    /// Node manager.
    Node(u32),
    /// Auxiliary actor of a policy, such as the master of a group.
    Auxiliary(u32),
    /// One core of a node.
    Worker {
        /// Number of the worker's node.
        node: u32,
        /// The number of the core within the node.
        core: u32,
    },
}

/// The sharing of nodes. A node runs as many copies at once as it has workers; these copies share its CPU and memory
/// (Park's thesis, section 5.1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sharing {
    /// The share of its memory above which a node evicts copies, in millionths.
    pub threshold: u32,
    /// Period at which a node reports its copies' use.
    pub report: Span,
}

impl Sharing {
    /// The use above which a node with `memory` bytes evicts copies; `u64::MAX` if `memory` is 0 (not stated).
    pub fn limit(self, memory: u64) -> u64 {
        match memory {
            0 => u64::MAX,
            memory => (u128::from(memory) * u128::from(self.threshold) / 1_000_000) as u64,
        }
    }
}

/// The actors of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    schedulers: u32,
    nodes: u32,
    auxiliaries: u32,
    /// Index of each node's first core, and the total number of cores; empty if all nodes have equally many.
    first_core: Vec<u32>,
    /// Number of cores of every node if all nodes have equally many, else 0. It saves table lookups.
    equal: u32,
    /// The resources of each node (one entry if all nodes are equal) and the needs of a task, if stated.
    room: Option<(Vec<Amount>, Amount)>,
    /// The sharing of nodes; `None` if each copy has a core of its own.
    sharing: Option<Sharing>,
    /// Time that each client needs for a request, if requests are limited.
    request: Option<Span>,
    /// Number of kinds of nodes, at least one.
    kinds: u8,
    /// The group of nodes that spreads updates, in a run without jobs.
    gossip: Option<Arc<GossipGroup>>,
}

impl Layout {
    /// A layout of `schedulers` schedulers with a client each, `auxiliaries` further actors, and one node for each
    /// entry of `cores`, the node's number of workers.
    pub fn new(schedulers: u32, auxiliaries: u32, cores: impl IntoIterator<Item = u32>) -> Self {
        let layout = Self {
            schedulers,
            nodes: 0,
            auxiliaries: 0,
            first_core: Vec::new(),
            equal: 0,
            room: None,
            sharing: None,
            request: None,
            kinds: 1,
            gossip: None,
        };
        layout.with_cores(cores).with_auxiliaries(auxiliaries)
    }

    /// Replaces the nodes by one node for each entry of `cores`, the node's number of workers.
    pub fn with_cores(mut self, cores: impl IntoIterator<Item = u32>) -> Self {
        let mut first_core = vec![0];
        let mut total = 0u32;
        for count in cores {
            total = total.saturating_add(count);
            first_core.push(total);
        }
        self.nodes = first_core.len() as u32 - 1;
        let each = first_core.get(1).copied().unwrap_or(0);
        self.equal = if first_core.windows(2).all(|pair| pair[1] - pair[0] == each) { each } else { 0 };
        self.first_core = if self.equal > 0 { Vec::new() } else { first_core };
        self
    }

    /// Replaces the auxiliary actors by `auxiliaries` others, which shifts the ids of workers; all other ids stay.
    pub fn with_auxiliaries(mut self, auxiliaries: u32) -> Self {
        let others = 2 * u64::from(self.schedulers) + u64::from(self.nodes) + u64::from(self.workers());
        let actors = others + u64::from(auxiliaries);
        assert!(actors < u64::from(u32::MAX), "{actors} actors do not fit 32-bit ids");
        self.auxiliaries = auxiliaries;
        self
    }

    /// States the resources of each node, in the order of nodes, and the needs of a task. The number of tasks that a
    /// node runs at once is still its number of cores.
    pub fn with_room(mut self, mut nodes: Vec<Amount>, task: Amount) -> Self {
        debug_assert_eq!(nodes.len(), self.nodes as usize);
        if nodes.windows(2).all(|pair| pair[0] == pair[1]) {
            nodes.truncate(1);
        }
        self.room = Some((nodes, task));
        self
    }

    /// Makes the nodes shared, in a layout that states [their resources](Self::with_room).
    pub fn with_sharing(mut self, sharing: Sharing) -> Self {
        debug_assert!(self.room.is_some(), "a shared node has a CPU");
        self.sharing = Some(sharing);
        self
    }

    /// The sharing of nodes; `None` if each copy has a core of its own.
    #[inline]
    pub const fn sharing(&self) -> Option<Sharing> {
        self.sharing
    }

    /// CPU and memory of a node, zero where they are not stated.
    pub fn room(&self, node: u32) -> Amount {
        self.room.as_ref().map_or(Amount { cpu: 0, memory: 0 }, |(nodes, _)| {
            nodes[if nodes.len() == 1 { 0 } else { node as usize }]
        })
    }

    /// The memory above which a shared node evicts copies, in bytes; `u64::MAX` if the node never evicts.
    pub fn memory_limit(&self, node: u32) -> u64 {
        match (self.sharing, self.room(node).memory) {
            (None, _) => u64::MAX,
            (Some(sharing), memory) => sharing.limit(memory),
        }
    }

    /// Whether nodes evict copies when memory is short: nodes are shared, and their memory is stated.
    pub fn evicts(&self) -> bool {
        let limited = || (0..self.nodes).any(|node| self.room(node).memory > 0);
        self.sharing.is_some() && limited()
    }

    /// Limits the requests of all clients together to `rate` a second; each client gets an equal share.
    pub fn with_requests(mut self, rate: Option<f64>) -> Self {
        self.request = rate.map(|rate| Span::from_secs_f64(f64::from(self.schedulers) / rate));
        self
    }

    /// Gives the nodes this number of kinds, some of which a job may prefer. Kinds take turns, so adjacent nodes
    /// differ.
    pub fn with_kinds(mut self, kinds: u8) -> Self {
        self.kinds = kinds.max(1);
        self
    }

    /// Makes the nodes a group that spreads updates.
    pub fn with_gossip(mut self, group: GossipGroup) -> Self {
        self.gossip = Some(Arc::new(group));
        self
    }

    /// The group of nodes that gossip; `None` in a run with jobs.
    pub const fn gossip(&self) -> Option<&Arc<GossipGroup>> {
        self.gossip.as_ref()
    }

    /// The number of an actor in its group: the node's number for a node, the source's number for any other actor.
    pub fn in_group(&self, role: Role) -> u32 {
        match role {
            Role::Node(number) => number,
            Role::Client(_) | Role::Scheduler(_) | Role::Auxiliary(_) | Role::Worker { .. } => self.nodes(),
        }
    }

    /// Number of kinds of nodes: 1 if no job has a preference.
    pub const fn kinds(&self) -> u8 {
        self.kinds
    }

    /// The kind of the `node`-th node, below [`kinds`](Self::kinds).
    #[inline]
    pub const fn kind(&self, node: u32) -> u8 {
        (node % self.kinds as u32) as u8
    }

    /// The time that a client needs for each request, if requests are limited.
    pub const fn request(&self) -> Option<Span> {
        self.request
    }

    /// The shares of a node's CPU and memory that a task takes; if resources are not stated, an equal part of the
    /// cores.
    pub fn task_share(&self, node: u32) -> [f64; 2] {
        match &self.room {
            Some((_, needs)) => self.room(node).shares(*needs),
            None => [1.0 / f64::from(self.cores(node)); 2],
        }
    }

    /// Number of schedulers, and of clients.
    #[inline]
    pub const fn schedulers(&self) -> u32 {
        self.schedulers
    }

    /// Number of nodes.
    #[inline]
    pub const fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Number of auxiliary actors: the actors of the policy besides clients, schedulers, nodes and workers.
    pub const fn auxiliaries(&self) -> u32 {
        self.auxiliaries
    }

    /// Number of nodes in this share of all nodes, at least one.
    pub fn nodes_in(&self, share: f64) -> u32 {
        ((share * f64::from(self.nodes)).ceil() as u32).clamp(1, self.nodes.max(1))
    }

    /// Number of workers of all nodes.
    #[inline]
    pub fn workers(&self) -> u32 {
        self.first_core(self.nodes)
    }

    /// Number of actors of all kinds.
    pub fn actors(&self) -> u32 {
        self.first_worker() + self.workers()
    }

    /// Number of endpoints: every actor except the workers has its own.
    #[inline]
    pub const fn endpoints(&self) -> u32 {
        self.first_worker()
    }

    /// Number of cores of a node.
    #[inline]
    pub fn cores(&self, node: u32) -> u32 {
        if self.equal > 0 {
            return self.equal;
        }
        self.first_core[node as usize + 1] - self.first_core[node as usize]
    }

    /// The `i`-th client.
    #[inline]
    pub const fn client(&self, i: u32) -> ActorId {
        ActorId(i)
    }

    /// The `i`-th scheduler.
    #[inline]
    pub const fn scheduler(&self, i: u32) -> ActorId {
        ActorId(self.schedulers + i)
    }

    /// The `i`-th node manager.
    #[inline]
    pub const fn node(&self, i: u32) -> ActorId {
        ActorId(2 * self.schedulers + i)
    }

    /// The number of a node manager among nodes.
    #[inline]
    pub const fn node_number(&self, node: ActorId) -> u32 {
        node.0 - 2 * self.schedulers
    }

    /// The `i`-th auxiliary actor.
    #[inline]
    pub const fn auxiliary(&self, i: u32) -> ActorId {
        ActorId(2 * self.schedulers + self.nodes + i)
    }

    /// The worker on a core of a node.
    #[inline]
    pub fn worker(&self, node: u32, core: u32) -> ActorId {
        ActorId(self.first_worker() + self.first_core(node) + core)
    }

    /// The number of a node's first core among all cores. Where all nodes have equally many cores, it is computed
    /// without the table.
    #[inline]
    fn first_core(&self, node: u32) -> u32 {
        if self.equal > 0 { node * self.equal } else { self.first_core[node as usize] }
    }

    /// The dense number of a worker's core among all cores of the run.
    #[inline]
    pub const fn core_index(&self, worker: ActorId) -> u32 {
        worker.0 - self.first_worker()
    }

    /// The core number of any actor; `None` unless it is a worker.
    #[inline]
    pub fn core_of(&self, actor: ActorId) -> Option<u32> {
        actor.0.checked_sub(self.first_worker())
    }

    /// The worker of core number `core` among all cores of the run.
    #[inline]
    pub const fn worker_of_core(&self, core: u32) -> ActorId {
        ActorId(self.first_worker() + core)
    }

    /// The node a core belongs to.
    #[inline]
    pub fn node_of_core(&self, core: u32) -> u32 {
        match self.equal {
            0 => self.first_core.partition_point(|&first| first <= core) as u32 - 1,
            1 => core,
            each => core / each,
        }
    }

    /// The role of an actor.
    #[inline]
    pub fn role(&self, actor: ActorId) -> Role {
        let id = actor.0;
        let (first_node, first_auxiliary) = (2 * self.schedulers, 2 * self.schedulers + self.nodes);
        if id < self.schedulers {
            Role::Client(id)
        } else if id < first_node {
            Role::Scheduler(id - self.schedulers)
        } else if id < first_auxiliary {
            Role::Node(id - first_node)
        } else if id < self.first_worker() {
            Role::Auxiliary(id - first_auxiliary)
        } else {
            let core = id - self.first_worker();
            let node = self.node_of_core(core);
            Role::Worker { node, core: core - self.first_core(node) }
        }
    }

    /// The endpoint of an actor.
    #[inline]
    pub fn endpoint(&self, actor: ActorId) -> Endpoint {
        if actor.0 < self.first_worker() {
            Endpoint(actor.0)
        } else {
            Endpoint(self.node(self.node_of_core(self.core_index(actor))).0)
        }
    }

    /// Whether two actors talk without the network: actors of one node, or a scheduler and its client.
    #[inline]
    pub fn local(&self, a: ActorId, b: ActorId) -> bool {
        let worker = self.first_worker();
        if a.0 >= worker || b.0 >= worker {
            return self.endpoint(a) == self.endpoint(b);
        }
        a == b
            || (a.0 < 2 * self.schedulers
                && a.0.abs_diff(b.0) == self.schedulers
                && b.0 < 2 * self.schedulers)
    }

    /// Whether the failure detector notifies this actor of crashed nodes as well: true for clients, schedulers and
    /// auxiliary actors.
    #[inline]
    pub const fn coordinates(&self, actor: ActorId) -> bool {
        actor.0 < 2 * self.schedulers
            || (actor.0 >= 2 * self.schedulers + self.nodes && actor.0 < self.first_worker())
    }

    #[inline]
    const fn first_worker(&self) -> u32 {
        2 * self.schedulers + self.nodes + self.auxiliaries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_resource_limits_the_number_of_tasks() {
        let node = Amount { cpu: 8000, memory: 64 << 30 };
        let task = |cpu, memory| Amount { cpu, memory };
        assert_eq!(
            [task(100, 1 << 30), task(100, 1 << 29), task(100, 0)].map(|t| node.holds(t)),
            [64, 80, 80]
        );
        let layout = Layout::new(1, 0, [10, 5]);
        assert_eq!(layout.task_share(1), [0.2; 2]);
        let share = |task| layout.clone().with_room(vec![node; 2], task).task_share(0);
        assert_eq!(share(task(2000, 16 << 30)), [0.25, 0.25]);
        assert_eq!(share(task(1000, 32 << 30)), [0.125, 0.5]);
        let cpu_only = |cpu| Amount { cpu, memory: 0 };
        let mixed = layout.with_room(vec![cpu_only(8000), cpu_only(4000)], task(2000, 0));
        assert_eq!([0, 1].map(|node| mixed.task_share(node)), [[0.25; 2], [0.5; 2]]);
    }

    #[test]
    fn shared_nodes_evict_above_their_threshold() {
        let nodes = vec![Amount { cpu: 8000, memory: 1 << 30 }, Amount { cpu: 4000, memory: 0 }];
        let layout = Layout::new(1, 0, [110; 2]).with_room(nodes, Amount::CORE);
        assert_eq!((layout.sharing(), layout.memory_limit(0)), (None, u64::MAX));
        let sharing = Sharing { threshold: 750_000, report: Span::from_secs(15) };
        let layout = layout.with_sharing(sharing);
        assert_eq!(layout.sharing(), Some(sharing));
        assert_eq!([0, 1].map(|node| layout.memory_limit(node)), [3 << 28, u64::MAX]);
        assert!(layout.evicts());
        assert_eq!([0, 1].map(|node| layout.room(node).cpu), [8000, 4000]);
    }

    #[test]
    fn changed_cores_and_auxiliaries_keep_the_ids_of_nodes() {
        let cluster = Layout::new(2, 0, [1; 3]);
        let run = cluster.clone().with_cores([1, 3, 1]).with_auxiliaries(2);
        assert_eq!(run, Layout::new(2, 2, [1, 3, 1]));
        assert_eq!((run.node(2), run.auxiliary(0)), (cluster.node(2), cluster.worker(0, 0)));
        assert_eq!(run.endpoint(run.worker(1, 2)), run.endpoint(run.node(1)));
    }

    #[test]
    fn roles_convert_back_to_the_same_ids() {
        let layout = Layout::new(2, 1, [1, 3, 2]);
        assert_eq!(layout.actors(), 2 + 2 + 3 + 1 + 6);
        let mut seen = Vec::new();
        for id in 0..layout.actors() {
            let actor = ActorId(id);
            let back = match layout.role(actor) {
                Role::Client(i) => layout.client(i),
                Role::Scheduler(i) => layout.scheduler(i),
                Role::Node(i) => layout.node(i),
                Role::Auxiliary(i) => layout.auxiliary(i),
                Role::Worker { node, core } => layout.worker(node, core),
            };
            assert_eq!(back, actor);
            seen.push(layout.endpoint(actor));
        }
        assert_eq!(layout.endpoint(layout.worker(1, 2)), layout.endpoint(layout.node(1)));
        assert!(layout.local(layout.client(1), layout.scheduler(1)));
        assert!(!layout.local(layout.client(0), layout.scheduler(1)));
        assert!(!layout.local(layout.node(0), layout.node(1)));
        assert!(layout.local(layout.node(2), layout.worker(2, 1)));
        assert!(layout.local(layout.worker(2, 0), layout.worker(2, 1)));
        assert!(layout.coordinates(layout.auxiliary(0)) && !layout.coordinates(layout.node(0)));
    }
}
