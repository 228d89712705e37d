//! The actors of a shard as servers, where they take time for messages.

use volary_actors::base::{ActorId, Address, Purpose, Span, Time};
use volary_actors::layout::{Layout, Role};

use crate::handling::{ActorsSection, Processor, ROLES, RoleLoad};

/// The index in [`ROLES`], and the number among actors of the role; `None` for a worker.
const fn role_of(role: Role) -> Option<(usize, u32)> {
    match role {
        Role::Client(number) => Some((0, number)),
        Role::Scheduler(number) => Some((1, number)),
        Role::Node(number) => Some((2, number)),
        Role::Auxiliary(number) => Some((3, number)),
        Role::Worker { .. } => None,
    }
}

/// An actor as a server.
#[derive(Clone, Copy, Default, Debug)]
struct Server {
    idle_at: Time,
    /// Number of inputs that wait or are being handled.
    queue: u32,
    load: RoleLoad,
}

/// The servers of a shard.
#[derive(Debug)]
pub(super) struct Servers {
    section: ActorsSection,
    seed: u64,
    /// By endpoint.
    servers: Vec<Server>,
}

/// The part of an input's way through the server of its actor that takes time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handling {
    /// When the actor begins with it.
    pub(super) begin: Time,
    /// The time that it takes on a healthy processor; `None` if it only waits for others.
    pub(super) work: Option<Span>,
    /// The node whose first core does the work; `None` for a healthy processor.
    pub(super) node: Option<u32>,
}

impl Servers {
    pub(super) fn new(section: &ActorsSection, layout: &Layout, seed: u64) -> Self {
        let servers = vec![Server::default(); layout.endpoints() as usize];
        Self { section: section.clone(), seed, servers }
    }

    /// An input that arrives at `now`, a message of `kind` or another input; `None` if it takes no time and nothing
    /// waits before it.
    pub(super) fn arrive(
        &self,
        now: Time,
        to: ActorId,
        kind: Option<u8>,
        layout: &Layout,
    ) -> Option<Handling> {
        let (role, number) = role_of(layout.role(to))?;
        let server = &self.servers[to.index()];
        let work = kind.and_then(|kind| self.section.time(ROLES[role], kind)).map(|time| {
            let address = Address::new(self.seed, Purpose::Handling).at(to.0.into()).at(server.load.handled);
            time.sample(&mut address.draw())
        });
        if work.is_none() && server.queue == 0 {
            return None;
        }
        let node =
            (self.section.on == Processor::Cores && ROLES[role] != "client").then(|| number % layout.nodes());
        Some(Handling { begin: server.idle_at.max(now), work, node })
    }

    /// Queues an input until `end`.
    pub(super) fn queue(&mut self, now: Time, to: ActorId, takes_time: bool, begin: Time, end: Time) {
        let Server { idle_at, queue, load } = &mut self.servers[to.index()];
        *idle_at = end;
        *queue += 1;
        load.longest_queue = load.longest_queue.max(*queue);
        if takes_time {
            let wait = begin.since(now).0;
            load.handled += 1;
            load.waited = load.waited.saturating_add(wait);
            load.longest_wait = load.longest_wait.max(wait);
            load.busy = load.busy.saturating_add(end.since(begin).0);
        }
    }

    /// The first input in the queue of an actor has been handled.
    pub(super) fn leave(&mut self, actor: ActorId) {
        self.servers[actor.index()].queue -= 1;
    }

    /// The actor crashes, and its queue is lost.
    pub(super) fn crash(&mut self, now: Time, actor: ActorId) {
        let Server { idle_at, queue, load } = &mut self.servers[actor.index()];
        load.busy -= idle_at.since(now).0.min(load.busy);
        (*idle_at, *queue) = (now, 0);
    }

    /// The load of the actors until `now`, in the order of [`ROLES`].
    pub(super) fn loads(&self, now: Time, layout: &Layout) -> Vec<RoleLoad> {
        let mut loads = vec![RoleLoad::default(); ROLES.len()];
        for (actor, server) in (0..).map(ActorId).zip(&self.servers) {
            let Some((role, _)) = role_of(layout.role(actor)) else { continue };
            // A server does not rest while inputs wait.
            let backlog = server.idle_at.since(now).0;
            let busy = server.load.busy.saturating_sub(backlog);
            loads[role].add(&RoleLoad { busy, busiest: busy, backlog, ..server.load });
        }
        loads
    }
}

/// The end of some work without the pauses of its processor, which are in order of time.
pub(super) fn end_of(begin: Time, work: Span, pauses: &[(Time, Time)]) -> Time {
    let mut end = begin + work;
    for &(from, until) in pauses.iter().filter(|pause| pause.1 > begin) {
        if from >= end {
            break;
        }
        end += until.since(from.max(begin));
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_rests_in_pauses() {
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let pauses = [(at(1), at(2)), (at(5), at(6)), (at(9), at(20))];
        for (begin, work, end) in [(0, 1, 1), (0, 2, 3), (2, 3, 5), (2, 4, 7), (3, 5, 9), (3, 6, 21)] {
            assert_eq!(end_of(at(begin), Span::from_secs(work), &pauses), at(end), "{begin} {work}");
        }
    }
}
