//! Kairos' nodes without its central scheduler: least attained service under Sparrow's placement.

use std::collections::VecDeque;

use super::policy::{Binds, BuildContext, Policy, Traits};
use crate::base::{ActorId, JobId, Span, parameters};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Core, Launch, Message, Probe};
use crate::roles::dispatcher::Dispatcher;
use crate::roles::las::{Las, LasOptions};
use crate::roles::late_binding::{LateBinding, ProbeOptions};
use crate::roles::node::Reservation;

parameters! {
    /// Parameters of Sparrow with least attained service at the nodes.
    struct LasSparrow {
        /// Number of reservations per task, d, on random nodes.
        probe_ratio: f64 = 2.0 => 1.0..=1000.0,
        /// First wait before a reservation that may have been lost is sent again; the wait doubles each time. It is
        /// used only where the network can lose datagrams.
        probe_timeout: Span = Span::from_secs(1) => period,
        /// Q: a node with N cores asks for a task while it has fewer than N + Q. Q = 0 is Sparrow.
        queue: u32 = 4,
        /// W: time for which a core runs a copy before it compares the copy with the suspended ones. Everything else is
        /// as in the Kairos paper (section 3.2).
        quantum: Span = Span::from_secs(50) => period,
    }
}

impl Policy for LasSparrow {
    const ABOUT: &'static str = "LAS under Sparrow (ours; Kairos, SoCC 2018, section 7.2, without its centre)\n\
        Schedulers place reservations on random nodes as Sparrow does. A node asks for \
        a task for each idle core; with all N cores busy it asks for one task at a time, until it holds N + Q copies. A \
        new copy runs at once, and the running copy that has attained most service is suspended for it, as in Kairos. \
        Nodes and schedulers know neither run times nor the state of other nodes.";

    fn traits(&self) -> Traits<'_> {
        Traits {
            binds: Binds::Late,
            time_slice: Some(("quantum", self.quantum)),
            reservations: self.probes(),
            ..Traits::default()
        }
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(Dispatcher::with(LateBinding::new(self.probes(), None, context.lossy), context.layout))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let cores = context.layout.cores(context.index);
        Box::new(ClaimingLas {
            las: Las::new(LasOptions::with(self.quantum), cores),
            cores,
            most: cores.saturating_add(self.queue),
            places: VecDeque::new(),
            claims: Vec::new(),
        })
    }
}

impl LasSparrow {
    fn probes(&self) -> ProbeOptions {
        ProbeOptions {
            probe_ratio: self.probe_ratio,
            probe_timeout: self.probe_timeout,
            ..ProbeOptions::default()
        }
    }
}

/// A node that asks the schedulers of its reservations for tasks while it has room, the oldest reservation first.
#[derive(Clone, Debug)]
struct ClaimingLas {
    las: Las,
    cores: u32,
    /// Largest number of copies that the node holds, including requested ones.
    most: u32,
    places: VecDeque<Reservation>,
    /// Scheduler, job and group of each requested task.
    claims: Vec<(ActorId, JobId, u32)>,
}

impl ClaimingLas {
    /// Whether the node may ask for one more task. Beyond its cores it asks for one task at a time. Otherwise the first
    /// of several nodes with reservations of a job would take as many of the job's tasks as it may hold.
    fn has_room(&self) -> bool {
        let (held, asked) = (self.las.tasks(), self.claims.len() as u32);
        held + asked < self.cores || (asked == 0 && held < self.most)
    }

    fn claim(&mut self, fx: &mut Effects<'_>) {
        while self.has_room()
            && let Some(place) = self.places.front_mut()
        {
            place.count -= 1;
            let Reservation { from, job, group, count, repair } = *place;
            if count == 0 {
                self.places.pop_front();
            }
            self.claims.push((from, job, group));
            fx.send_as(repair, from, Probe::Claim { job, group, repair });
        }
    }

    /// Queues a reservation, unless it is known: datagrams can be duplicated, and schedulers repeat reservations
    /// believed lost.
    fn reserve(&mut self, place: Reservation) {
        let Reservation { from, job, group, count, repair } = place;
        let same = |known: &&mut Reservation| (known.from, known.job, known.group) == (from, job, group);
        if let Some(known) = self.places.iter_mut().find(same) {
            known.count = known.count.max(count);
        } else if repair || !self.claims.contains(&(from, job, group)) {
            self.places.push_back(place);
        }
    }

    /// Removes a claim that was answered or cannot be answered.
    fn settle(&mut self, from: ActorId, job: JobId, group: u32) {
        if let Some(at) = self.claims.iter().position(|&claim| claim == (from, job, group)) {
            self.claims.swap_remove(at);
        }
    }

    fn probe(&mut self, from: ActorId, probe: Probe, fx: &mut Effects<'_>) {
        match probe {
            Probe::Reserve { job, group, count, repair } => {
                self.reserve(Reservation { from, job, group, count, repair });
            }
            // A task is accepted even if its claim was given up meanwhile, since it must not be lost.
            Probe::Grant { row, group } => {
                self.settle(from, row.job, group);
                (0..row.width).for_each(|position| self.las.arrive(from, row.copy(position), fx));
            }
            Probe::Nothing { job, group } => self.settle(from, job, group),
            Probe::Cancel { job, group } => {
                self.places.retain(|place| (place.from, place.job, place.group) != (from, job, group));
            }
            Probe::Claim { .. } | Probe::Sample { .. } | Probe::Length { .. } => fx.unexpected(&probe.into()),
        }
    }

    fn deliver(&mut self, from: ActorId, msg: &Message, fx: &mut Effects<'_>) {
        match *msg {
            Message::Probe(probe) => self.probe(from, probe, fx),
            Message::Core(Core::Ended { copy }) => {
                if let Some(scheduler) = self.las.ended(from, copy, fx) {
                    fx.send(scheduler, Launch::Completed { copy });
                }
            }
            Message::Core(Core::Suspended { copy, left }) => self.las.suspended(from, copy, left, fx),
            _ => fx.unexpected(msg),
        }
    }

    /// Drops everything that belongs to a crashed scheduler, because another scheduler will request it again.
    fn forget(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.las.forget(actor, fx);
        self.places.retain(|place| place.from != actor);
        self.claims.retain(|claim| claim.0 != actor);
    }
}

impl Machine for ClaimingLas {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => self.deliver(from, &msg, fx),
            Input::Fire(Timer::Tick(tick)) => self.las.fire(tick, fx),
            Input::Undelivered { to, msg } => match msg {
                // The peer timeout limits how often this repeats. If the scheduler crashed, `Down` arrives instead.
                Message::Launch(Launch::Completed { copy }) => fx.recover(to, Launch::Completed { copy }),
                Message::Probe(Probe::Claim { job, group, .. }) => self.settle(to, job, group),
                // No other message leaves the node.
                _ => {}
            },
            Input::Down { actor } => self.forget(actor, fx),
            // `Start` needs no action, nor does `Up`, since a restarted scheduler knows nothing of this node. No
            // other timer is armed. The remaining inputs go to workers only.
            _ => {}
        }
        self.claim(fx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::message::Row;

    /// With one core and Q = 1, two of three reservations lead to claims, the second when the first is answered. The
    /// second task preempts the first. The node has room again when a task ends.
    #[test]
    fn a_node_asks_for_as_many_tasks_as_it_may_hold() {
        let layout = Layout::new(1, 0, [1]);
        let (me, scheduler, worker) = (layout.node(0), layout.scheduler(0), layout.worker(0, 0));
        let mut node = LasSparrow { queue: 1, ..LasSparrow::default() }.bench(&layout, me, 1);
        let reserve = |job| Probe::Reserve { job: JobId(job), group: 0, count: 1, repair: false };
        let claim = |job| (scheduler, Probe::Claim { job: JobId(job), group: 0, repair: false }.into());
        let copy = |job| JobId(job).task(0).copy(0);
        let grant = |job| Probe::Grant { row: Row::single(copy(job)), group: 0 };
        let order = |order: Core| (worker, Message::from(order));
        assert_eq!(node.receive(scheduler, reserve(1)), [claim(1)]);
        assert_eq!(node.receive(scheduler, reserve(1)), [], "a repeated reservation is known");
        assert_eq!(node.receive(scheduler, reserve(2)), [], "one task is requested already");
        assert_eq!(node.receive(scheduler, reserve(3)), []);
        assert_eq!(node.receive(scheduler, grant(1)), [order(Core::run(copy(1))), claim(2)]);
        assert_eq!(node.receive(scheduler, grant(2)), [order(Core::Suspend { copy: copy(1) })]);
        let left = Span::from_secs(3);
        let sent = node.receive(worker, Core::Suspended { copy: copy(1), left });
        assert_eq!(sent, [order(Core::run(copy(2)))]);
        let sent = node.ended(copy(2));
        let done = (scheduler, Launch::Completed { copy: copy(2) }.into());
        assert_eq!(sent, [order(Core::Resume { copy: copy(1), left }), done, claim(3)]);
        let nothing = Probe::Nothing { job: JobId(3), group: 0 };
        assert_eq!(node.receive(scheduler, nothing), []);
        assert_eq!(node.receive(scheduler, reserve(4)), [claim(4)]);
    }
}
