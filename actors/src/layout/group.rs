//! Gossip without jobs: the members of a group, their neighbours, and the origins of updates.
//!
//! Members are the nodes of a run. The only scheduler is the *source*: an actor outside of the group that may send to
//! each member, and to which no member sends. Updates are numbered by their origin from 1 on, and a newer update of an
//! origin replaces older ones: a member with update n needs no lower number.

use crate::base::{Address, DistributionSpec, Purpose, Span, Time};

/// The group of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct GossipGroup {
    members: u32,
    neighbours: Neighbours,
    /// Gap before each update. If all members originate updates, it is the gap between any two updates of the group.
    pub every: DistributionSpec<Span>,
    /// The actors that originate updates.
    pub origin: Origin,
    /// Time from which on no updates are created.
    pub until: Time,
    /// Bytes on the wire of a message with an update; `None` for the size of the message's kind.
    pub bytes: Option<u32>,
    /// Address of the random gaps. Under one seed, updates are created at the same times for every policy.
    gaps: Address,
}

/// The actors that originate updates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// All members in equal shares.
    Members,
    /// One member.
    Member(u32),
    /// The source.
    Source,
    /// No actor: members detect failures.
    Nowhere,
}

/// The members to which each member may send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Neighbours {
    /// All others.
    Complete,
    /// The members before and after it, in a ring.
    Ring,
    /// A list of neighbours for each member.
    Listed(Box<[Box<[u32]>]>),
}

/// Number of changes to a cycle or matching after which the search for a union ends.
const TRIES: u32 = 10_000;

/// Number of switches that are tried for each edge of a circulant graph.
const SWITCHES: usize = 10;

impl Neighbours {
    /// A random graph in which each of `members` members has `degree` neighbours: the union of random cycles through
    /// all members and, for an odd degree, a random matching. It is connected for a degree from 2 on. If no such union
    /// is found, because members have many neighbours, the graph is a circulant graph with randomly switched edges.
    /// `None` if no graph has this degree.
    pub fn regular(members: u32, degree: u32, seed: u64) -> Option<Self> {
        if degree >= members || !(degree % 2 * (members % 2)).is_multiple_of(2) {
            return None;
        }
        let lists = Self::union(members, degree, seed);
        Some(Self::of_lists(lists.unwrap_or_else(|| Self::switched(members, degree, seed))))
    }

    /// The neighbours of each member in a circulant graph, in which pairs of edges have exchanged an end at random.
    fn switched(members: u32, degree: u32, seed: u64) -> Vec<Vec<u32>> {
        let address = Address::new(seed, Purpose::Topology).at(u64::from(degree));
        let across = (degree % 2 == 1).then_some((members / 2, members / 2));
        let steps = (1..=degree / 2).map(|step| (step, members)).chain(across);
        let mut edges: Vec<[u32; 2]> =
            steps.flat_map(|(step, count)| (0..count).map(move |a| [a, (a + step) % members])).collect();
        let place = |a: u32, b: u32| a.min(b) as usize * members as usize + a.max(b) as usize;
        let mut joined = vec![false; members as usize * members as usize];
        edges.iter().for_each(|&[a, b]| joined[place(a, b)] = true);
        for i in 0..SWITCHES * edges.len() {
            let draw = |at: u64, below: usize| (address.at(i as u64).at(at).unit() * below as f64) as usize;
            let (one, other, end) = (draw(0, edges.len()), draw(1, edges.len()), draw(2, 2));
            let ([a, b], [c, d]) = (edges[one], [edges[other][end], edges[other][1 - end]]);
            if a == d || b == c || joined[place(a, d)] || joined[place(c, b)] {
                continue;
            }
            for (a, b, is_joined) in [(a, b, false), (c, d, false), (a, d, true), (c, b, true)] {
                joined[place(a, b)] = is_joined;
            }
            (edges[one], edges[other]) = ([a, d], [c, b]);
        }
        let mut all: Vec<Vec<u32>> = vec![Vec::new(); members as usize];
        for [a, b] in edges {
            all[a as usize].push(b);
            all[b as usize].push(a);
        }
        all
    }

    /// The neighbours of each member in a union of random cycles and, for an odd degree, a random matching; `None` if
    /// none is found.
    fn union(members: u32, degree: u32, seed: u64) -> Option<Vec<Vec<u32>>> {
        let address = Address::new(seed, Purpose::Topology);
        let mut all: Vec<Vec<u32>> = vec![Vec::new(); members as usize];
        for part in 0..degree.div_ceil(2) {
            let step = if 2 * part + 1 == degree { 2 } else { 1 };
            let address = address.at(part.into());
            let mut order = shuffled(members, address);
            let taken = |order: &[u32]| {
                pairs(order, step).position(|(a, b)| all[a as usize].contains(&b)).map(|at| at * step)
            };
            let mut tries = 0..TRIES;
            // If a pair of members are neighbours already, one of them changes places with a random member.
            while let Some(at) = taken(&order) {
                let other = address.at(members.into()).at(tries.next()?.into()).unit() * f64::from(members);
                order.swap(at, other as usize);
            }
            for (a, b) in pairs(&order, step) {
                all[a as usize].push(b);
                all[b as usize].push(a);
            }
        }
        Some(all)
    }

    /// The graph of these undirected edges; the error names an edge that does not fit.
    ///
    /// # Errors
    /// An edge from a member to itself, to a member that does not exist, or a second time.
    pub fn of_edges(members: u32, edges: &[[u32; 2]]) -> Result<Self, String> {
        let mut all: Vec<Vec<u32>> = vec![Vec::new(); members as usize];
        for &[a, b] in edges {
            if a.max(b) >= members {
                return Err(format!("the edge {a}–{b} names a member above {}", members - 1));
            }
            if a == b || all[a as usize].contains(&b) {
                return Err(format!("the edge {a}–{b} joins a member to itself, or appears twice"));
            }
            all[a as usize].push(b);
            all[b as usize].push(a);
        }
        Ok(Self::of_lists(all))
    }

    fn of_lists(all: Vec<Vec<u32>>) -> Self {
        Self::Listed(all.into_iter().map(Vec::into_boxed_slice).collect())
    }

    /// A member that is not connected with member 0; `None` if the graph is connected.
    pub fn apart(&self) -> Option<u32> {
        let Self::Listed(all) = self else { return None };
        let (mut reached, mut next) = (vec![false; all.len()], vec![0]);
        reached[0] = true;
        while let Some(member) = next.pop() {
            for &other in &all[member as usize] {
                if !std::mem::replace(&mut reached[other as usize], true) {
                    next.push(other);
                }
            }
        }
        reached.iter().position(|reached| !reached).map(|member| member as u32)
    }
}

/// Adjacent members of a closed cycle, or of a matching if `step` is 2.
fn pairs(order: &[u32], step: usize) -> impl Iterator<Item = (u32, u32)> {
    (0..order.len()).step_by(step).map(|at| (order[at], order[(at + 1) % order.len()]))
}

fn shuffled(members: u32, address: Address) -> Vec<u32> {
    let mut order: Vec<u32> = (0..members).collect();
    for last in (1..members).rev() {
        let other = (address.at(last.into()).unit() * f64::from(last + 1)) as usize;
        order.swap(last as usize, other);
    }
    order
}

impl GossipGroup {
    /// A group of `members` members, in which updates are created until a time.
    pub const fn new(
        members: u32,
        neighbours: Neighbours,
        every: DistributionSpec<Span>,
        origin: Origin,
        until: Time,
        seed: u64,
    ) -> Self {
        let gaps = Address::new(seed, Purpose::Update);
        Self { members, neighbours, every, origin, until, bytes: None, gaps }
    }

    /// Number of members.
    pub const fn members(&self) -> u32 {
        self.members
    }

    /// The number that the source has among actors of the group: it follows the members.
    pub const fn source(&self) -> u32 {
        self.members
    }

    /// The members to which each member may send.
    pub const fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// Whether an actor of the group originates updates.
    pub fn makes_updates(&self, number: u32) -> bool {
        match self.origin {
            Origin::Members => number < self.members,
            Origin::Member(member) => number == member,
            Origin::Source => number == self.source(),
            Origin::Nowhere => false,
        }
    }

    /// Number of actors that originate updates.
    pub const fn origins(&self) -> u32 {
        match self.origin {
            Origin::Members => self.members,
            Origin::Member(_) | Origin::Source => 1,
            Origin::Nowhere => 0,
        }
    }

    /// The gap of the group before the `number`-th update of an origin.
    pub fn gap(&self, origin: u32, number: u32) -> Span {
        self.every.sample(&mut self.gaps.at(origin.into()).at(number.into()).draw())
    }

    /// Number of members that do not have an actor's update when it is created: all but the origin itself.
    pub const fn receivers(&self, origin: u32) -> u32 {
        if origin == self.source() { self.members } else { self.members - 1 }
    }

    /// Number of members to which an actor of the group may send.
    pub fn degree(&self, number: u32) -> u32 {
        if number == self.source() {
            return self.members;
        }
        match &self.neighbours {
            Neighbours::Complete => self.members - 1,
            Neighbours::Ring => 2.min(self.members - 1),
            Neighbours::Listed(all) => all[number as usize].len() as u32,
        }
    }

    /// The largest degree of a member.
    pub fn most_degree(&self) -> u32 {
        (0..self.members).map(|member| self.degree(member)).max().unwrap_or(0)
    }

    /// The `i`-th member to which an actor of the group may send.
    pub fn neighbour(&self, number: u32, i: u32) -> u32 {
        if number == self.source() {
            return i;
        }
        match &self.neighbours {
            Neighbours::Complete => i + u32::from(i >= number),
            Neighbours::Ring if i == 0 => (number + 1) % self.members,
            Neighbours::Ring => (number + self.members - 1) % self.members,
            Neighbours::Listed(all) => all[number as usize][i as usize],
        }
    }
}

impl GossipGroup {
    /// The index of a member among those to which an actor may send; the inverse of [`neighbour`](Self::neighbour).
    pub fn place_of(&self, number: u32, other: u32) -> Option<u32> {
        match &self.neighbours {
            _ if other == number || other == self.source() => None,
            _ if number == self.source() => Some(other),
            Neighbours::Complete => Some(other - u32::from(other > number)),
            Neighbours::Ring | Neighbours::Listed(_) => {
                (0..self.degree(number)).find(|&i| self.neighbour(number, i) == other)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(members: u32, neighbours: Neighbours) -> GossipGroup {
        let every = DistributionSpec::Constant(Span::from_secs(1));
        GossipGroup::new(members, neighbours, every, Origin::Source, Time::MAX, 1)
    }

    fn neighbours(group: &GossipGroup, member: u32) -> Vec<u32> {
        let all = (0..group.degree(member)).map(|i| (i, group.neighbour(member, i)));
        all.inspect(|&(i, other)| assert_eq!(group.place_of(member, other), Some(i)))
            .map(|(_, other)| other)
            .collect()
    }

    #[test]
    fn members_send_to_their_neighbours_and_the_source_to_all() {
        let complete = group(4, Neighbours::Complete);
        assert_eq!(neighbours(&complete, 1), [0, 2, 3]);
        assert_eq!(neighbours(&complete, complete.source()), [0, 1, 2, 3]);
        assert_eq!(neighbours(&group(5, Neighbours::Ring), 0), [1, 4]);
        assert_eq!(neighbours(&group(2, Neighbours::Ring), 1), [0]);
        let path = Neighbours::of_edges(3, &[[0, 1], [2, 1]]).unwrap();
        assert_eq!(path.apart(), None);
        assert_eq!(neighbours(&group(3, path), 1), [0, 2]);
        assert_eq!(Neighbours::of_edges(3, &[[0, 1]]).unwrap().apart(), Some(2));
        for wrong in [[0, 3], [1, 1], [1, 0]] {
            assert!(Neighbours::of_edges(3, &[[0, 1], wrong]).is_err());
        }
    }

    #[test]
    fn random_regular_graphs_are_connected_and_have_the_degree() {
        let all = |members| (2..members).map(move |degree| (members, degree));
        let exist = (3..24).flat_map(all).filter(|(members, degree)| members * degree % 2 == 0);
        for (members, degree) in exist.chain([(2, 1), (100, 12), (100, 51), (101, 90)]) {
            let graph = Neighbours::regular(members, degree, 7).unwrap();
            assert_eq!(graph.apart(), None);
            let group = group(members, graph);
            for member in 0..members {
                let mut found = neighbours(&group, member);
                found.sort_unstable();
                found.dedup();
                assert!(found.len() == degree as usize && !found.contains(&member));
            }
        }
        assert_ne!(Neighbours::regular(50, 4, 1), Neighbours::regular(50, 4, 2));
        for (members, degree) in [(5, 3), (5, 5), (2, 2)] {
            assert_eq!(Neighbours::regular(members, degree, 1), None);
        }
    }
}
