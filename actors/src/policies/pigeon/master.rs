//! The master of a group: gives tasks to idle workers, and queues those that find none.
//!
//! Nothing is lost as long as every open task of a scheduler is with a live master or on its way there. A master that
//! loses sight of workers therefore asks the schedulers what is open and queues what nobody has: when a node crashes,
//! and when it takes over a group of which it knows nothing.

use std::collections::BTreeSet;

use super::config::Pigeon;
use super::groups::WorkerGroups;
use super::queues::{Next, TaskQueues, Waiting};
use super::workers::Workers;
use crate::base::{ActorId, JobId, Span};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Timer};
use crate::message::{Batch, Group, Stamp, Turn};

/// Ticks of a master: the standby is told, the lengths are reported, waiting for answers ends, workers are asked.
pub(super) const PUSH: u32 = 0;
pub(super) const REPORT: u32 = 1;
pub(super) const SETTLE: u32 = 2;
pub(super) const PROBE: u32 = 3;

/// A new master that waits for its workers.
#[derive(Debug)]
struct Recovery {
    /// What schedulers said is open.
    open: Vec<(bool, Waiting)>,
    /// The queues of the master before, as far as its standby was told.
    mirror: Option<TaskQueues>,
}

/// The master of a group.
#[derive(Debug)]
pub(super) struct Master {
    group: u32,
    groups: WorkerGroups,
    config: Pigeon,
    queues: TaskQueues,
    workers: Workers,
    recovery: Option<Recovery>,
    /// Schedulers and workers that are down.
    dead: BTreeSet<ActorId>,
    /// What it says when it takes the group over; a worker that declared itself master has a term above 0.
    takes: Group,
    /// Whether the queues were cleared because all workers were down.
    abandoned: bool,
    pushing: bool,
    reporting: bool,
}

impl Master {
    /// The master of a group at the beginning of a run, when all workers are idle.
    pub(super) fn new(config: &Pigeon, groups: WorkerGroups, group: u32, layout: &Layout) -> Self {
        let mut master = Self::with(config, groups, group, Workers::new(&groups, group, true, layout));
        if config.standby {
            master.queues.tell_from_now();
        }
        master
    }

    fn with(config: &Pigeon, groups: WorkerGroups, group: u32, workers: Workers) -> Self {
        Self {
            group,
            groups,
            config: config.clone(),
            queues: TaskQueues::new(config),
            workers,
            recovery: None,
            dead: BTreeSet::new(),
            takes: Group::Takes { term: 0, at: Stamp::from(crate::base::Time::ZERO) },
            abandoned: false,
            pushing: false,
            reporting: false,
        }
    }

    /// A master that takes over, without knowing the workers. `dead` are the actors that are down. It tells workers and
    /// schedulers, who answer with what they run and what is open.
    pub(super) fn take_over(
        config: &Pigeon,
        groups: WorkerGroups,
        group: u32,
        term: u32,
        mirror: Option<TaskQueues>,
        dead: impl Iterator<Item = ActorId>,
        fx: &mut Effects<'_>,
    ) -> Self {
        let layout = fx.layout();
        let mut master = Self::with(config, groups, group, Workers::new(&groups, group, false, layout));
        master.takes = Group::Takes { term, at: fx.now().into() };
        master.recovery = Some(Recovery { open: Vec::new(), mirror });
        for actor in dead {
            master.dead.insert(actor);
            if let Role::Node(node) = layout.role(actor) {
                master.workers.down(cores(node, layout));
            }
        }
        for node in groups.nodes(group, layout) {
            master.tell(layout.node(node), fx);
        }
        for scheduler in 0..layout.schedulers() {
            master.tell(layout.scheduler(scheduler), fx);
        }
        fx.arm(Timer::Tick(SETTLE), config.declare_after);
        if term > 0 {
            fx.arm(Timer::Tick(PROBE), config.declare_after);
        }
        master
    }

    /// Tells an actor that this is the master, unless it is down.
    pub(super) fn tell(&self, to: ActorId, fx: &mut Effects<'_>) {
        if !self.dead.contains(&to) {
            fx.recover(to, self.takes);
        }
    }

    /// A message of the conversation; `from` may be a master that passes it on.
    pub(super) fn receive(&mut self, from: ActorId, msg: Group, fx: &mut Effects<'_>) {
        match msg {
            Group::Tasks { short, scheduler, batch } => {
                let waiting = Waiting { scheduler, batch };
                match fx.layout().role(from) {
                    Role::Scheduler(_) => self.place(short, waiting, fx),
                    _ => self.place_unknown(short, waiting, fx),
                }
            }
            Group::Open { short, scheduler, batch } => {
                let waiting = Waiting { scheduler, batch };
                match &mut self.recovery {
                    Some(recovery) => recovery.open.push((short, waiting)),
                    None => self.place_unknown(short, waiting, fx),
                }
            }
            Group::Idle { life, count, core } => self.told(core, Turn { life, count }, None, fx),
            Group::Status { life, count, core, copy, scheduler } => {
                self.told(core, Turn { life, count }, Some((copy, scheduler)), fx);
            }
            Group::Ask => self.asked(from, fx),
            // Of the other master, from before it handed over.
            Group::Mirror(_) => {}
            Group::Run { .. } | Group::Takes { .. } | Group::Lengths { .. } => fx.unexpected(&msg.into()),
        }
        self.finish(fx);
    }

    /// A worker says what it does. One that is the master is not told of crashes: it learns of them when the node is
    /// back, in another life.
    fn told(&mut self, core: u32, turn: Turn, running: Option<Next>, fx: &mut Effects<'_>) {
        if self.is_declared() && self.workers.has_lost(core, turn) {
            self.ask(fx);
        }
        if self.workers.told(core, turn, running) {
            self.freed(core, fx);
        }
        self.settle(false, fx);
    }

    /// A worker makes sure that its master is there, where that is a worker too. It may have been given up.
    fn asked(&mut self, node: ActorId, fx: &mut Effects<'_>) {
        if self.dead.remove(&node) {
            fx.recover(node, self.takes);
        }
    }

    /// Gives tasks to idle workers one after the other, and queues the rest.
    fn place(&mut self, short: bool, mut waiting: Waiting, fx: &mut Effects<'_>) {
        if self.dead.contains(&fx.layout().scheduler(waiting.scheduler)) {
            return;
        }
        while waiting.batch.len > 0
            && !self.queues.has(short)
            && let Some(core) = self.workers.take(short)
        {
            self.run(core, (waiting.batch.take_first(), waiting.scheduler), fx);
        }
        if waiting.batch.len > 0 {
            self.queues.push(short, waiting);
        }
    }

    /// Places the tasks that neither wait nor run here.
    fn place_unknown(&mut self, short: bool, waiting: Waiting, fx: &mut Effects<'_>) {
        let known = self.known(waiting.batch.job);
        let unknown = |index: &u32| known.binary_search(index).is_err();
        if waiting.batch.indices().all(|index| unknown(&index)) {
            return self.place(short, waiting, fx);
        }
        let Batch { job, attempt, .. } = waiting.batch;
        for index in waiting.batch.indices().filter(unknown) {
            self.place(short, Waiting { batch: Batch::single(job.task(index).copy(attempt)), ..waiting }, fx);
        }
    }

    /// The tasks of a job that wait or run here, in order.
    fn known(&self, job: JobId) -> Vec<u32> {
        let mut known = Vec::new();
        self.queues.tasks_of(job, &mut known);
        self.workers.tasks_of(job, &mut known);
        known.sort_unstable();
        known
    }

    fn run(&mut self, core: u32, next: Next, fx: &mut Effects<'_>) {
        let (copy, scheduler) = next;
        let layout = fx.layout();
        self.workers.start(core, next);
        fx.send(layout.node(layout.node_of_core(core)), Group::Run { core, copy, scheduler });
    }

    /// A worker became idle.
    fn freed(&mut self, core: u32, fx: &mut Effects<'_>) {
        match self.queues.next(self.workers.is_reserved(core)) {
            Some(next) => self.run(core, next, fx),
            None => self.workers.put(core),
        }
    }

    /// Gives tasks that wait to workers that are idle.
    fn serve(&mut self, fx: &mut Effects<'_>) {
        for short in [true, false] {
            while self.queues.has(short)
                && let Some(core) = self.workers.take(short)
                && let Some(next) = self.queues.pop(short)
            {
                self.run(core, next, fx);
            }
        }
    }

    /// Queues what is open and nobody has, once all workers have said what they do, or `now`.
    fn settle(&mut self, now: bool, fx: &mut Effects<'_>) {
        if self.recovery.is_none() || (!now && self.workers.has_unknown()) {
            return;
        }
        let Some(Recovery { mut open, mirror }) = self.recovery.take() else { return };
        if let Some(mirror) = mirror {
            open.sort_by_key(|(_, waiting)| mirror.place(waiting.batch.job));
        }
        for (short, waiting) in open {
            self.place_unknown(short, waiting, fx);
        }
    }

    /// Asks the schedulers what is open.
    fn ask(&self, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        for scheduler in (0..layout.schedulers()).map(|i| layout.scheduler(i)) {
            if !self.dead.contains(&scheduler) {
                fx.recover(scheduler, Group::Ask);
            }
        }
    }

    /// The failure detector reports a crash, or a worker cannot be reached by a master that is not told of crashes.
    pub(super) fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        match layout.role(actor) {
            Role::Node(node) if self.knows(node, layout) => {
                self.dead.insert(actor);
                self.workers.down(cores(node, layout));
                if self.workers.all_down() {
                    // The schedulers send what is open to other groups. They may have been told of the crash earlier
                    // and have sent more since, so they are asked when a worker is back.
                    self.queues.clear();
                    self.recovery = None;
                    self.abandoned = true;
                } else {
                    // Also while answers are missing: what came since, and was given to that node, is not among them.
                    self.serve(fx);
                    self.ask(fx);
                    self.settle(false, fx);
                }
            }
            Role::Scheduler(scheduler) => {
                self.dead.insert(actor);
                self.queues.forget(scheduler);
                if let Some(recovery) = &mut self.recovery {
                    recovery.open.retain(|(_, waiting)| waiting.scheduler != scheduler);
                }
            }
            _ => {}
        }
        self.finish(fx);
    }

    /// Whether this master may have given tasks to a node.
    fn knows(&self, node: u32, layout: &Layout) -> bool {
        let group = self.groups.of(node, layout);
        group == self.group || (self.config.phantom_reserved && group < self.group)
    }

    /// The failure detector reports that an actor is back.
    pub(super) fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.dead.remove(&actor);
        match fx.layout().role(actor) {
            Role::Node(node) => {
                for core in self.workers.up(cores(node, fx.layout())) {
                    self.freed(core, fx);
                }
                self.settle(false, fx);
            }
            Role::Scheduler(_) if self.is_declared() => self.tell(actor, fx),
            _ => {}
        }
        self.finish(fx);
    }

    /// Whether a worker is the master.
    const fn is_declared(&self) -> bool {
        matches!(self.takes, Group::Takes { term: 1.., .. })
    }

    /// Begins to tell the standby, or ends it.
    pub(super) fn standby(&mut self, up: bool, fx: &mut Effects<'_>) {
        self.queues.tell(up);
        self.finish(fx);
    }

    /// A message of this master came back.
    pub(super) fn undelivered(&mut self, to: ActorId, msg: Group, fx: &mut Effects<'_>) {
        match msg {
            Group::Run { core, copy, scheduler } if self.workers.refused(core, (copy, scheduler)) => {
                let short = fx.catalog().class(copy.task.job) == 0;
                if !self.dead.contains(&fx.layout().scheduler(scheduler)) {
                    self.queues.push_front(short, Waiting { scheduler, batch: Batch::single(copy) });
                }
                fx.recover(to, Group::Ask);
                self.serve(fx);
            }
            Group::Ask | Group::Takes { .. } if self.dead.contains(&to) => {}
            Group::Ask | Group::Takes { .. } => match fx.layout().role(to) {
                Role::Node(_) if self.is_declared() => self.down(to, fx),
                _ => fx.recover(to, msg),
            },
            _ => {}
        }
        self.finish(fx);
    }

    /// A tick of this master.
    pub(super) fn tick(&mut self, tick: u32, fx: &mut Effects<'_>) {
        match tick {
            PUSH => {
                self.pushing = false;
                if let Some(standby) = self.groups.standby(self.group, fx.layout()) {
                    for change in self.queues.take_untold() {
                        fx.send(standby, Group::Mirror(change));
                    }
                }
            }
            REPORT => {
                self.reporting = false;
                self.report(fx);
            }
            SETTLE => self.settle(true, fx),
            PROBE => self.probe(fx),
            _ => {}
        }
        self.finish(fx);
    }

    /// Makes sure that busy workers are there: a worker that is the master is not told of their crashes.
    fn probe(&self, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        let node = |(core, _)| layout.node(layout.node_of_core(core));
        let mut busy: BTreeSet<_> = self.workers.running().map(node).collect();
        busy.remove(&fx.me());
        busy.into_iter().for_each(|node| fx.recover(node, Group::Ask));
        fx.arm(Timer::Tick(PROBE), self.config.declare_after);
    }

    fn report(&self, fx: &mut Effects<'_>) {
        let lengths =
            Group::Lengths { waiting: self.queues.waiting(), busy: self.workers.busy(), at: fx.now().into() };
        let layout = fx.layout();
        for scheduler in (0..layout.schedulers()).map(|i| layout.scheduler(i)) {
            if !self.dead.contains(&scheduler) {
                fx.send(scheduler, lengths);
            }
        }
    }

    /// Ends a step: asks what is open if the first worker is back, and arms the ticks that are needed.
    fn finish(&mut self, fx: &mut Effects<'_>) {
        if self.abandoned && !self.workers.all_down() {
            self.abandoned = false;
            self.ask(fx);
        }
        if !self.pushing && self.queues.has_untold() {
            self.pushing = true;
            fx.arm(Timer::Tick(PUSH), self.config.push);
        }
        let active = self.workers.busy() + self.queues.waiting() > 0;
        if !self.reporting && active && self.config.lengths > Span::ZERO {
            self.reporting = true;
            fx.arm(Timer::Tick(REPORT), self.config.lengths);
        }
    }
}

/// The cores of a node among all cores of the run.
fn cores(node: u32, layout: &Layout) -> std::ops::Range<u32> {
    let first = layout.core_index(layout.worker(node, 0));
    first..first + layout.cores(node)
}
