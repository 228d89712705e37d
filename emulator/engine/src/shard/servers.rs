//! The actors of a shard as servers, where they take time for messages.

use std::collections::VecDeque;

use volary_actors::base::{ActorId, Address, DistributionSpec, Purpose, Span, Time};
use volary_actors::layout::{Layout, Role};
use volary_actors::machine::Input;
use volary_actors::message::KINDS;

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

/// An input at the server of its actor.
#[derive(Clone, Copy, Debug)]
struct QueuedInput {
    arrived: Time,
    input: Input,
    /// Time to handle the input on a healthy processor; `None` if it takes no time and only waits for the inputs before
    /// it.
    work: Option<Span>,
}

/// An actor as a server.
#[derive(Clone, Default, Debug)]
struct Server {
    /// The inputs that wait, behind the one that is being handled.
    queue: VecDeque<QueuedInput>,
    /// Time from which on the first input is being handled.
    since: Time,
    /// Number of messages for which a time was drawn.
    drawn: u64,
    load: RoleLoad,
}

/// The servers of a shard.
#[derive(Debug)]
pub(super) struct Servers {
    /// Handling time of a message by the role of its receiver and by its kind; `None` if it takes none.
    times: [Vec<Option<DistributionSpec<Span>>>; ROLES.len()],
    on: Processor,
    seed: u64,
    /// By endpoint.
    servers: Vec<Server>,
}

impl Servers {
    pub(super) fn new(section: &ActorsSection, layout: &Layout, seed: u64) -> Self {
        let servers = vec![Server::default(); layout.endpoints() as usize];
        let times =
            ROLES.map(|role| (0..KINDS.len()).map(|kind| section.time(role, kind as u8).cloned()).collect());
        Self { times, on: section.on, seed, servers }
    }

    /// Adds an input to the queue of its actor; `kind` is the kind of a message, `None` for other inputs. Returns
    /// whether it was added: an input that takes no time is not added to an empty queue. The first input of a queue has
    /// to be [begun](Self::begin).
    pub(super) fn arrive(
        &mut self,
        now: Time,
        to: ActorId,
        input: Input,
        kind: Option<u8>,
        layout: &Layout,
    ) -> bool {
        let Some((role, _)) = role_of(layout.role(to)) else { return false };
        let server = &mut self.servers[to.index()];
        let time = kind.and_then(|kind| self.times[role][usize::from(kind)].as_ref());
        let work = time.map(|time| {
            let address = Address::new(self.seed, Purpose::Handling).at(to.0.into()).at(server.drawn);
            server.drawn += 1;
            time.sample(&mut address.draw())
        });
        if work.is_none() && server.queue.is_empty() {
            return false;
        }
        server.queue.push_back(QueuedInput { arrived: now, input, work });
        server.load.longest_queue = server.load.longest_queue.max(server.queue.len() as u32);
        true
    }

    /// Whether the queue of an actor has exactly one input.
    pub(super) fn is_first(&self, actor: ActorId) -> bool {
        self.servers[actor.index()].queue.len() == 1
    }

    /// Begins the first input of a queue. Returns the time that it takes on a healthy processor, and the node whose
    /// first core handles it; no node if the actor has a processor of its own. `None` if the queue is empty.
    pub(super) fn begin(
        &mut self,
        now: Time,
        actor: ActorId,
        layout: &Layout,
    ) -> Option<(Span, Option<u32>)> {
        let server = &mut self.servers[actor.index()];
        let QueuedInput { arrived, work, .. } = *server.queue.front()?;
        server.since = now;
        if work.is_some() {
            let wait = now.since(arrived).0;
            server.load.waited = server.load.waited.saturating_add(wait);
            server.load.longest_wait = server.load.longest_wait.max(wait);
        }
        let (role, number) = role_of(layout.role(actor))?;
        let on_cores = self.on == Processor::Cores && ROLES[role] != "client";
        Some((work.unwrap_or(Span::ZERO), on_cores.then(|| number % layout.nodes())))
    }

    /// Removes the first input of a queue, which has been handled.
    pub(super) fn end(&mut self, now: Time, actor: ActorId) -> Option<Input> {
        let server = &mut self.servers[actor.index()];
        let QueuedInput { input, work, .. } = server.queue.pop_front()?;
        if work.is_some() {
            server.load.handled += 1;
            server.load.busy = server.load.busy.saturating_add(now.since(server.since).0);
        }
        Some(input)
    }

    /// The actor crashes, and its queue is lost; returns the inputs.
    pub(super) fn crash(&mut self, now: Time, actor: ActorId) -> impl Iterator<Item = Input> {
        let server = &mut self.servers[actor.index()];
        if server.queue.front().is_some_and(|first| first.work.is_some()) {
            server.load.busy = server.load.busy.saturating_add(now.since(server.since).0);
        }
        std::mem::take(&mut server.queue).into_iter().map(|queued| queued.input)
    }

    /// Counts the load of the actors from `now` on.
    pub(super) fn reset(&mut self, now: Time) {
        for server in &mut self.servers {
            server.load = RoleLoad { longest_queue: server.queue.len() as u32, ..RoleLoad::default() };
            server.since = server.since.max(now);
            server.queue.iter_mut().for_each(|queued| queued.arrived = queued.arrived.max(now));
        }
    }

    /// The load of the actors until `now`, in the order of [`ROLES`]. Waiting inputs are included with their waits so
    /// far.
    pub(super) fn loads(&self, now: Time, layout: &Layout) -> Vec<RoleLoad> {
        let mut loads = vec![RoleLoad::default(); ROLES.len()];
        for (actor, server) in (0..).map(ActorId).zip(&self.servers) {
            let Some((role, _)) = role_of(layout.role(actor)) else { continue };
            let mut load = server.load;
            for (place, queued) in (0..).zip(&server.queue).filter(|(_, queued)| queued.work.is_some()) {
                if place == 0 {
                    load.busy = load.busy.saturating_add(now.since(server.since).0);
                } else {
                    let wait = now.since(queued.arrived).0;
                    load.waited = load.waited.saturating_add(wait);
                    load.longest_wait = load.longest_wait.max(wait);
                }
            }
            load.busiest = load.busy;
            loads[role].add(&load);
        }
        loads
    }
}

/// The end of `work` that starts at `begin` and is interrupted by `pauses`, which are in order of time.
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
    fn pauses_postpone_the_end_of_work() {
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let pauses = [(at(1), at(2)), (at(5), at(6)), (at(9), at(20))];
        for (begin, work, end) in [(0, 1, 1), (0, 2, 3), (2, 3, 5), (2, 4, 7), (3, 5, 9), (3, 6, 21)] {
            assert_eq!(end_of(at(begin), Span::from_secs(work), &pauses), at(end), "{begin} {work}");
        }
    }
}
