//! The master of a group (sections 2.1 and 2.2 of the paper). It gives tasks to idle workers, and queues tasks that
//! find no idle worker. The module `recovery` has section 6.1, and what the paper does not say.

mod recovery;

use std::collections::{BTreeSet, VecDeque};

use super::config::Pigeon;
use super::groups::{WorkerGroups, first_core};
use super::task_scheduling::{TaskQueues, is_short};
use super::ticks::Tick;
use super::workers::{Report, Workers};
use crate::base::{ActorId, JobId, Span, Time};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Assignment, Group, Message, Stamp, Turn, Waiting};

/// The first master of a group, its standby, or a worker that declared itself master.
#[derive(Clone, Debug)]
pub(super) struct Master {
    groups: WorkerGroups,
    group: u32,
    queues: TaskQueues,
    workers: Workers,
    /// Whether a report of the queue lengths is due.
    reporting: bool,

    // The fields below are for recovery.
    /// Whether this actor acts as master. The first master acts whenever it is up, the standby while the first master
    /// is down. A standby that does not act passes messages on.
    acting: bool,
    /// Number of this actor among first masters and standbys; for a worker that is the master, the first master's.
    seat: u32,
    /// Actors that are down. A worker that is the master is not notified of crashes of nodes, and lists the nodes that
    /// it could not reach.
    pub(super) dead: BTreeSet<ActorId>,
    /// The message by which this actor took the group over. A worker that declared itself master has a term above 0.
    takes: Group,
    /// Number of takeovers by this actor, or of the election. The timers of this master carry this number.
    takeover: u32,
    /// While this master asks workers and schedulers for their states: the tasks that schedulers reported as open.
    reported_open: Option<Vec<Waiting>>,
    /// Time from which on this master no longer waits for workers that have not answered.
    settle_by: Time,
    /// The jobs of tasks that wait at the first master, short and then long, as reported to this standby.
    order: [VecDeque<JobId>; 2],
    /// The jobs of tasks that began to wait and were not reported to the standby; `None` if the standby is down.
    unsent: Option<Vec<JobId>>,
    /// Whether a message to the standby is due.
    pushing: bool,
}

impl Master {
    /// The actor in this seat, before it acts.
    pub(super) fn new(config: &Pigeon, seat: u32, layout: &Layout) -> Self {
        let groups = WorkerGroups::new(config, layout);
        let group = groups.group_of_master(seat);
        Self {
            group,
            queues: TaskQueues::new(config.weight),
            workers: Workers::new(&groups, group, false, layout),
            groups,
            reporting: false,
            acting: false,
            seat,
            dead: BTreeSet::new(),
            takes: Group::Takes { term: 0, at: Stamp::from(Time::ZERO) },
            takeover: 0,
            reported_open: None,
            settle_by: Time::ZERO,
            order: Default::default(),
            unsent: None,
            pushing: false,
        }
    }

    /// Begins to act if this is the first master. After a restart it takes its group over like a new master.
    fn start(&mut self, epoch: u32, fx: &mut Effects<'_>) {
        if self.is_standby() {
            return;
        }
        self.unsent = self.groups.standby(self.group, fx.layout()).map(|_| Vec::new());
        if epoch > 0 {
            self.take_over(1, 0, fx);
        } else {
            self.acting = true;
            self.workers = Workers::new(&self.groups, self.group, true, fx.layout());
        }
    }

    /// Handles a message of a scheduler, of a worker, or of another master that passes one on.
    fn receive(&mut self, from: ActorId, msg: Group, fx: &mut Effects<'_>) {
        if !self.acting {
            return self.follow(msg, fx);
        }
        self.notice(from, fx);
        match msg {
            Group::Tasks(waiting) | Group::Open(waiting) => {
                let from_scheduler = matches!(fx.layout().role(from), Role::Scheduler(_));
                match &mut self.reported_open {
                    Some(open) if matches!(msg, Group::Open(_)) => open.push(waiting),
                    _ if from_scheduler && waiting.batch.attempt == 0 => self.place(waiting, fx),
                    // The message was passed on or repeated: the same tasks may have arrived by another path.
                    _ => self.place_unknown(waiting, fx),
                }
            }
            Group::Idle { life, count, core } => self.reported(core, Turn { life, count }, None, fx),
            Group::Status { life, count, core, running } => {
                self.reported(core, Turn { life, count }, Some(running), fx);
            }
            // The delivery of a watch shows its sender that this node is up. A mirror is a change of the queues that
            // the previous master sent before the hand-over.
            Group::Watch | Group::Mirror { .. } => {}
            _ => fx.unexpected(&msg.into()),
        }
    }

    /// Gives tasks to idle workers one after the other, and queues the rest (section 2.2). No task passes a waiting
    /// task of its class.
    fn place(&mut self, mut waiting: Waiting, fx: &mut Effects<'_>) {
        if self.dead.contains(&fx.layout().scheduler(waiting.scheduler)) {
            return;
        }
        let short = is_short(waiting.batch.job, fx);
        while waiting.batch.len > 0
            && self.queues.first(short).is_none()
            && let Some(core) = self.workers.idle.take(short)
        {
            let copy = waiting.batch.take_first();
            self.run(core, Assignment { copy, scheduler: waiting.scheduler }, fx);
        }
        if waiting.batch.len > 0 {
            self.queues.push(short, waiting);
            self.unsent.iter_mut().for_each(|unsent| unsent.push(waiting.batch.job));
        }
    }

    /// Gives a worker that became idle the next task, or lists the worker (section 2.2).
    fn freed(&mut self, core: u32, fx: &mut Effects<'_>) {
        match self.queues.next(self.workers.is_reserved(core)) {
            Some(next) => self.run(core, next, fx),
            None => self.workers.put(core),
        }
    }

    /// Records a worker's report. If it is the first one after a restart of the node, the last copy or its result is
    /// lost.
    fn reported(&mut self, core: u32, turn: Turn, running: Option<Assignment>, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        if !self.is_declared() && self.dead.contains(&layout.node(layout.node_of_core(core))) {
            // The report was sent before the crash of the node.
            return;
        }
        match self.workers.reported(core, turn, running) {
            Report::Restarted => self.relearn(Group::Ask, fx),
            Report::Idle => self.freed(core, fx),
            Report::Other => {}
        }
        self.settle(fx);
    }

    /// Sends a task to a worker, with the number of the task's scheduler.
    fn run(&mut self, core: u32, next: Assignment, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        self.workers.start(core, next);
        fx.send(layout.node(layout.node_of_core(core)), Group::Run { core, next });
    }

    /// Sends the schedulers that are up a message.
    fn tell_schedulers(&self, recovery: bool, msg: Group, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        for scheduler in (0..layout.schedulers()).map(|i| layout.scheduler(i)) {
            if !self.dead.contains(&scheduler) {
                fx.send_as(recovery, scheduler, msg);
            }
        }
    }

    /// Reports the number of waiting tasks and of busy workers (section 6.2). The paper has the length of each queue;
    /// here one number is the sum of both.
    fn report(&mut self, fx: &mut Effects<'_>) {
        self.reporting = false;
        let waiting = self.queues.iter().map(|waiting| waiting.batch.len).sum();
        let busy = self.workers.running().count() as u32;
        self.tell_schedulers(false, Group::Lengths { waiting, busy, at: fx.now().into() }, fx);
    }

    fn tick(&mut self, tick: u32, fx: &mut Effects<'_>) {
        match Tick::armed(tick, self.takeover) {
            Some(Tick::Push) => self.push(fx),
            Some(Tick::Report) => self.report(fx),
            Some(Tick::Settle) => self.settle(fx),
            Some(Tick::Probe) => self.probe(fx),
            _ => {}
        }
    }

    /// Arms the ticks that are needed.
    fn arm(&mut self, fx: &mut Effects<'_>) {
        if !self.pushing && self.unsent.as_ref().is_some_and(|unsent| !unsent.is_empty()) {
            self.pushing = true;
            fx.arm(Tick::Push.timer(self.takeover), self.groups.config.push);
        }
        if self.groups.config.lengths > Span::ZERO
            && !self.reporting
            && (self.workers.running().next().is_some() || self.queues.iter().next().is_some())
        {
            self.reporting = true;
            fx.arm(Tick::Report.timer(self.takeover), self.groups.config.lengths);
        }
    }
}

impl Machine for Master {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Start { epoch } => self.start(epoch, fx),
            Input::Deliver { from, msg: Message::Group(msg) } => self.receive(from, msg, fx),
            Input::Deliver { ref msg, .. } => fx.unexpected(msg),
            Input::Down { actor } => self.down(actor, fx),
            Input::Up { actor } => self.up(actor, fx),
            // After a hand-over nothing has to be repeated, because the first master asks for everything that was sent
            // to this standby.
            Input::Undelivered { to, msg: Message::Group(msg) } if self.acting => {
                self.undelivered(to, msg, fx);
            }
            Input::Fire(Timer::Tick(tick)) if self.acting => self.tick(tick, fx),
            // A master sends only `Group` messages and arms only ticks. The remaining inputs go to workers only.
            _ => {}
        }
        if self.acting {
            self.arm(fx);
        }
    }
}

/// The cores of a node among all cores of the run.
fn cores(node: u32, layout: &Layout) -> std::ops::Range<u32> {
    first_core(node, layout)..first_core(node + 1, layout)
}
