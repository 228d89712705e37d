//! The masters of a group, which give tasks to idle workers and queue tasks that find no idle worker.
//!
//! Nothing is lost as long as every open task of a scheduler is with a live master or on its way there. A master that
//! loses workers, or takes over a group whose state it does not know, therefore asks the schedulers for open tasks. It
//! queues the tasks that no worker has.

use std::collections::BTreeSet;

use super::config::Pigeon;
use super::groups::WorkerGroups;
use super::queues::{Next, TaskQueues, Waiting, Workers};
use crate::base::{ActorId, CopyId, Span};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Batch, Group, Message, Stamp, Turn};

// Timers of masters and of nodes.

/// The purpose of a timer. A timer carries the number of the master, or of the change of masters, for which it was
/// armed. Timers of a master that has handed over, and timers from before a change, are void.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tick {
    /// A master sends its standby the changes of its queues.
    Push,
    /// A master reports the lengths of its queues.
    Report,
    /// A new master no longer waits for workers that have not answered.
    Settle,
    /// A worker that is the master announces itself again, because it is not notified of crashes.
    Probe,
    /// A node becomes the master of a group without one.
    Claim,
    /// A node checks that the worker that is its master still responds.
    Watch,
}

impl Tick {
    const ALL: [Self; 6] = [Self::Push, Self::Report, Self::Settle, Self::Probe, Self::Claim, Self::Watch];
    /// Number of tick numbers reserved for each master or change.
    const STRIDE: u32 = 8;

    /// The timer of this kind for a master or change with a number.
    pub(super) const fn timer(self, number: u32) -> Timer {
        Timer::Tick(Self::STRIDE.wrapping_mul(number).wrapping_add(self as u32))
    }

    /// The kind of a tick that was armed for this number; `None` if it was armed for another number.
    pub(super) fn armed(tick: u32, number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.timer(number) == Timer::Tick(tick))
    }
}

/// A new master that waits for its workers.
#[derive(Clone, Debug)]
struct Recovery {
    /// Tasks that schedulers reported as open, with the class of each batch.
    open: Vec<(bool, Waiting)>,
    /// The queues of the previous master, as far as its standby knows them.
    mirror: Option<TaskQueues>,
}

/// The data with which a master takes a group over.
#[derive(Debug)]
pub(super) struct Takeover {
    /// Number of the takeover of this actor, or of the election.
    pub(super) number: u32,
    /// Number of the election, if the master is a worker that declared itself; else 0.
    pub(super) term: u32,
    /// The queues of the previous master, as far as its standby knows them.
    pub(super) mirror: Option<TaskQueues>,
}

/// The master of a group.
#[derive(Clone, Debug)]
pub(super) struct Master {
    group: u32,
    groups: WorkerGroups,
    config: Pigeon,
    queues: TaskQueues,
    workers: Workers,
    recovery: Option<Recovery>,
    /// Schedulers and workers that are down.
    dead: BTreeSet<ActorId>,
    /// The message by which the master takes the group over. A worker that declared itself master has a term above 0.
    takes: Group,
    /// Number of the takeover of this actor, or of the election; the master's timers carry it.
    number: u32,
    /// Whether the queues were cleared because all workers were down.
    abandoned: bool,
    pushing: bool,
    reporting: bool,
}

impl Master {
    /// The master of a group at the beginning of a run, when all workers are idle.
    pub(super) fn new(config: &Pigeon, groups: WorkerGroups, group: u32, layout: &Layout) -> Self {
        let mut master = Self::with(config, groups, group, 0, Workers::new(&groups, group, true, layout));
        if config.standby {
            master.queues.mirror_from_now();
        }
        master
    }

    fn with(config: &Pigeon, groups: WorkerGroups, group: u32, number: u32, workers: Workers) -> Self {
        Self {
            group,
            groups,
            config: config.clone(),
            queues: TaskQueues::new(config),
            workers,
            recovery: None,
            dead: BTreeSet::new(),
            takes: Group::Takes { term: 0, at: Stamp::from(crate::base::Time::ZERO) },
            number,
            abandoned: false,
            pushing: false,
            reporting: false,
        }
    }

    /// A master that takes over without knowing the workers. It notifies workers and schedulers; workers answer with
    /// the copies that they run, schedulers with the open tasks.
    pub(super) fn take_over(
        config: &Pigeon,
        (groups, group): (WorkerGroups, u32),
        takeover: Takeover,
        dead: impl Iterator<Item = ActorId>,
        fx: &mut Effects<'_>,
    ) -> Self {
        let layout = fx.layout();
        let Takeover { number, term, mirror } = takeover;
        let workers = Workers::new(&groups, group, false, layout);
        let mut master = Self::with(config, groups, group, number, workers);
        master.takes = Group::Takes { term, at: fx.now().into() };
        master.recovery = Some(Recovery { open: Vec::new(), mirror });
        for actor in dead {
            master.dead.insert(actor);
            if let Role::Node(node) = layout.role(actor) {
                master.workers.down(cores(node, layout));
            }
        }
        for node in groups.nodes(group, layout).map(|node| layout.node(node)) {
            if !master.dead.contains(&node) {
                fx.recover(node, master.takes);
            }
        }
        master.tell_schedulers(master.takes, fx);
        fx.arm(Tick::Settle.timer(number), config.declare_after);
        if term > 0 {
            fx.arm(Tick::Probe.timer(number), config.declare_after);
        }
        master
    }

    /// Sends all schedulers that are up a message of which none may be lost.
    fn tell_schedulers(&self, msg: Group, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        for scheduler in (0..layout.schedulers()).map(|i| layout.scheduler(i)) {
            if !self.dead.contains(&scheduler) {
                fx.recover(scheduler, msg);
            }
        }
    }

    /// Tells a node that this is the master. The node is up, since a message from it has arrived.
    pub(super) fn announce(&mut self, node: ActorId, fx: &mut Effects<'_>) {
        self.dead.remove(&node);
        fx.recover(node, self.takes);
    }

    /// Handles a message of the group; `from` may be a master that passes the message on.
    pub(super) fn receive(&mut self, from: ActorId, msg: Group, fx: &mut Effects<'_>) {
        if self.is_declared() && matches!(fx.layout().role(from), Role::Node(_)) && self.dead.contains(&from)
        {
            // A worker that is the master is not notified that a node is back.
            self.announce(from, fx);
        }
        match msg {
            Group::Tasks { short, scheduler, batch } => {
                let waiting = Waiting { scheduler, batch };
                match fx.layout().role(from) {
                    Role::Scheduler(_) if batch.attempt == 0 => self.place(short, waiting, fx),
                    // The message was passed on or repeated: the same tasks may have arrived by another path.
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
            Group::Idle { life, count, core } => self.reported(core, Turn { life, count }, None, fx),
            Group::Status { life, count, core, copy, scheduler } => {
                self.reported(core, Turn { life, count }, Some((copy, scheduler)), fx);
            }
            // The delivery shows the sender that this node is up. If the sender counted as down here, it was sent an
            // announcement above.
            Group::Watch => {}
            // The previous master sent this before the hand-over.
            Group::Mirror(_) => {}
            Group::Run { .. } | Group::Ask | Group::Takes { .. } | Group::Lengths { .. } => {
                fx.unexpected(&msg.into());
            }
        }
        self.finish(fx);
    }

    /// Records a worker's report. From it a master that is not notified of crashes learns that the node has restarted
    /// and a result may have been lost.
    fn reported(&mut self, core: u32, turn: Turn, running: Option<Next>, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        if !self.is_declared() && self.dead.contains(&layout.node(layout.node_of_core(core))) {
            // The report was sent before the crash of the node.
            return;
        }
        if self.is_declared() && self.workers.has_restarted(core, turn) {
            self.tell_schedulers(Group::Ask, fx);
        }
        if self.workers.reported(core, turn, running) {
            self.freed(core, fx);
        }
        self.settle(false, fx);
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

    /// Places the tasks that neither wait nor run in this group.
    fn place_unknown(&mut self, short: bool, waiting: Waiting, fx: &mut Effects<'_>) {
        let known = self.known(waiting);
        let unknown = |index: &u32| known.binary_search(index).is_err();
        if waiting.batch.indices().all(|index| unknown(&index)) {
            return self.place(short, waiting, fx);
        }
        let Batch { job, attempt, .. } = waiting.batch;
        for index in waiting.batch.indices().filter(unknown) {
            self.place(short, Waiting { batch: Batch::single(job.task(index).copy(attempt)), ..waiting }, fx);
        }
    }

    /// The tasks of the same submission as `of` that wait or run in this group, in order. Copies for another scheduler,
    /// or for an earlier submission, do not count: a crashed scheduler gets their results, or they are being stopped.
    fn known(&self, of: Waiting) -> Vec<u32> {
        let mut known = Vec::new();
        self.queues.tasks_of(of, &mut known);
        self.workers.tasks_of(of, &mut known);
        known.sort_unstable();
        known
    }

    fn run(&mut self, core: u32, next: Next, fx: &mut Effects<'_>) {
        let (copy, scheduler) = next;
        let layout = fx.layout();
        self.workers.start(core, next);
        fx.send(layout.node(layout.node_of_core(core)), Group::Run { core, copy, scheduler });
    }

    /// Records that a worker became idle.
    fn freed(&mut self, core: u32, fx: &mut Effects<'_>) {
        match self.queues.next(self.workers.is_reserved(core)) {
            Some(next) => self.run(core, next, fx),
            None => self.workers.put(core),
        }
    }

    /// Gives waiting tasks to idle workers.
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

    /// Queues the open tasks that no worker has, once all workers have reported, or at once if `now` is set.
    fn settle(&mut self, now: bool, fx: &mut Effects<'_>) {
        if self.recovery.is_none() || (!now && self.workers.has_unknown()) {
            return;
        }
        let Some(Recovery { mut open, mirror }) = self.recovery.take() else { return };
        if let Some(mirror) = mirror {
            open.sort_by_cached_key(|(_, waiting)| mirror.place(waiting.batch.job));
        }
        for (short, waiting) in open {
            self.place_unknown(short, waiting, fx);
        }
    }

    /// Handles a reported crash, or an unreachable worker of a master that is not notified of crashes.
    pub(super) fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let layout = fx.layout();
        match layout.role(actor) {
            Role::Node(node) if self.knows(node, layout) => {
                self.dead.insert(actor);
                self.workers.down(cores(node, layout));
                if self.workers.all_down() {
                    // The schedulers send open tasks to other groups. They may have been notified of the crash earlier
                    // and have sent more tasks since, so they are asked when a worker is back.
                    self.queues.clear();
                    self.recovery = None;
                    self.abandoned = true;
                } else {
                    // This also serves tasks while answers are missing: tasks that arrived since and went to that node
                    // are not in the answers.
                    self.serve(fx);
                    self.tell_schedulers(Group::Ask, fx);
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

    /// Handles the return of an actor.
    pub(super) fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.dead.remove(&actor);
        match fx.layout().role(actor) {
            Role::Node(node) => {
                for core in self.workers.up(cores(node, fx.layout())) {
                    self.freed(core, fx);
                }
                self.settle(false, fx);
            }
            Role::Scheduler(_) if self.is_declared() => fx.recover(actor, self.takes),
            _ => {}
        }
        self.finish(fx);
    }

    /// Whether this master is a worker that declared itself master.
    const fn is_declared(&self) -> bool {
        matches!(self.takes, Group::Takes { term: 1.., .. })
    }

    /// Records that the standby crashed or is back; a standby that is back is sent all waiting tasks.
    pub(super) fn set_standby_up(&mut self, up: bool, fx: &mut Effects<'_>) {
        self.queues.set_mirrored(up);
        self.finish(fx);
    }

    /// Handles a message of this master that could not be delivered.
    pub(super) fn undelivered(&mut self, to: ActorId, msg: Group, fx: &mut Effects<'_>) {
        match msg {
            Group::Run { core, copy, scheduler } => {
                if self.workers.refused(core, (copy, scheduler)) {
                    fx.recover(to, self.takes);
                }
                self.put_back(scheduler, copy, fx);
            }
            Group::Mirror(_) if self.queues.is_mirrored() => self.queues.set_mirrored(true),
            Group::Ask | Group::Takes { .. } if self.dead.contains(&to) => {}
            Group::Ask | Group::Takes { .. } => match fx.layout().role(to) {
                Role::Node(_) if self.is_declared() => self.down(to, fx),
                _ => fx.recover(to, msg),
            },
            _ => {}
        }
        self.finish(fx);
    }

    /// Queues a copy that did not reach its worker, before others. The worker may have reported since, and then no
    /// longer counts as running the copy. The copy may also have been replaced, or its group given up.
    fn put_back(&mut self, scheduler: u32, copy: CopyId, fx: &mut Effects<'_>) {
        let gone = self.workers.all_down() || self.dead.contains(&fx.layout().scheduler(scheduler));
        let waiting = Waiting { scheduler, batch: Batch::single(copy) };
        if !gone && self.known(waiting).binary_search(&copy.task.index).is_err() {
            let short = fx.catalog().class(copy.task.job) == 0;
            self.queues.push_front(short, waiting);
        }
        self.serve(fx);
    }

    /// Handles a tick of this master.
    pub(super) fn tick(&mut self, tick: u32, fx: &mut Effects<'_>) {
        match Tick::armed(tick, self.number) {
            Some(Tick::Push) => {
                self.pushing = false;
                if let Some(standby) = self.groups.standby(self.group, fx.layout()) {
                    for change in self.queues.take_changes() {
                        fx.send(standby, Group::Mirror(change));
                    }
                }
            }
            Some(Tick::Report) => {
                self.reporting = false;
                self.report(fx);
            }
            Some(Tick::Settle) => self.settle(true, fx),
            Some(Tick::Probe) => self.probe(fx),
            Some(Tick::Claim | Tick::Watch) | None => {}
        }
        self.finish(fx);
    }

    /// Announces this master again to all, also to workers that could not be reached. A worker that is the master is
    /// not notified of crashes: it learns of them from undelivered messages, and from the answers of restarted nodes.
    fn probe(&self, fx: &mut Effects<'_>) {
        let (layout, me) = (fx.layout(), fx.me());
        let nodes = self.groups.nodes(self.group, layout).map(|node| layout.node(node));
        nodes.filter(|&node| node != me).for_each(|node| fx.recover(node, self.takes));
        self.tell_schedulers(self.takes, fx);
        fx.arm(Tick::Probe.timer(self.number), self.config.declare_after);
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

    /// Ends a step: asks for open tasks if the first worker is back, and arms the ticks that are needed.
    fn finish(&mut self, fx: &mut Effects<'_>) {
        if self.abandoned && !self.workers.all_down() {
            self.abandoned = false;
            self.tell_schedulers(Group::Ask, fx);
        }
        if !self.pushing && self.queues.has_changes() {
            self.pushing = true;
            fx.arm(Tick::Push.timer(self.number), self.config.push);
        }
        let active = self.workers.busy() + self.queues.waiting() > 0;
        if !self.reporting && active && self.config.lengths > Span::ZERO {
            self.reporting = true;
            fx.arm(Tick::Report.timer(self.number), self.config.lengths);
        }
    }
}

/// The cores of a node among all cores of the run.
fn cores(node: u32, layout: &Layout) -> std::ops::Range<u32> {
    let first = layout.core_index(layout.worker(node, 0));
    first..first + layout.cores(node)
}

// The auxiliary actors of Pigeon: the first master of a group, and its standby.
//
// The first master acts whenever it is up; the standby acts while the first master is down. A standby that does not act
// passes messages on.

/// A master or a standby.
#[derive(Clone, Debug)]
pub(super) struct MasterSeat {
    config: Pigeon,
    groups: WorkerGroups,
    group: u32,
    is_standby: bool,
    /// Present while this actor acts as master.
    master: Option<Master>,
    /// Number of takeovers by this actor.
    takeovers: u32,
    /// A standby's copy of the queues.
    mirror: TaskQueues,
    /// Actors that are down.
    dead: BTreeSet<ActorId>,
}

impl MasterSeat {
    pub(super) fn new(config: &Pigeon, number: u32, layout: &Layout) -> Self {
        let groups = WorkerGroups::new(config, layout);
        let (group, is_standby) = groups.group_of_master(number);
        let mirror = TaskQueues::new(config);
        Self {
            config: config.clone(),
            groups,
            group,
            is_standby,
            master: None,
            takeovers: 0,
            mirror,
            dead: BTreeSet::new(),
        }
    }

    /// The standby of a master, or the master of a standby.
    fn partner(&self, layout: &Layout) -> Option<ActorId> {
        if self.is_standby {
            Some(self.groups.master(self.group, layout))
        } else {
            self.groups.standby(self.group, layout)
        }
    }

    fn start(&mut self, epoch: u32, fx: &mut Effects<'_>) {
        if self.is_standby {
            return;
        }
        if epoch == 0 {
            self.master = Some(Master::new(&self.config, self.groups, self.group, fx.layout()));
            return;
        }
        self.take_over(None, fx);
        // A standby that is up must be sent the waiting tasks; a standby that is down is reported as such.
        if let (Some(master), Some(_)) = (&mut self.master, self.groups.standby(self.group, fx.layout())) {
            master.set_standby_up(true, fx);
        }
    }

    fn take_over(&mut self, mirror: Option<TaskQueues>, fx: &mut Effects<'_>) {
        self.takeovers += 1;
        let (dead, of) = (self.dead.iter().copied(), (self.groups, self.group));
        let takeover = Takeover { number: self.takeovers, term: 0, mirror };
        self.master = Some(Master::take_over(&self.config, of, takeover, dead, fx));
    }

    fn receive(&mut self, from: ActorId, msg: Group, fx: &mut Effects<'_>) {
        match (&mut self.master, msg) {
            (Some(master), _) => master.receive(from, msg, fx),
            (None, Group::Mirror(change)) => self.mirror.follow(change),
            (None, Group::Tasks { .. } | Group::Open { .. } | Group::Idle { .. } | Group::Status { .. }) => {
                // The first master acts: this message was on its way when the first master came back.
                fx.recover(self.groups.master(self.group, fx.layout()), msg);
            }
            (None, _) => fx.unexpected(&msg.into()),
        }
    }

    /// Handles a reported crash.
    fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.dead.insert(actor);
        if self.partner(fx.layout()) != Some(actor) {
            if let Some(master) = &mut self.master {
                master.down(actor, fx);
            }
        } else if self.is_standby {
            let mirror = std::mem::replace(&mut self.mirror, TaskQueues::new(&self.config));
            self.take_over(Some(mirror), fx);
        } else if let Some(master) = &mut self.master {
            master.set_standby_up(false, fx);
        }
    }

    /// Handles the return of an actor.
    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.dead.remove(&actor);
        if self.partner(fx.layout()) != Some(actor) {
            if let Some(master) = &mut self.master {
                master.up(actor, fx);
            }
        } else if self.is_standby {
            // The first master asks workers and schedulers for the state known to this standby.
            self.master = None;
            self.mirror.clear();
        } else if let Some(master) = &mut self.master {
            master.set_standby_up(true, fx);
        }
    }
}

impl Machine for MasterSeat {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Start { epoch } => self.start(epoch, fx),
            Input::Deliver { from, msg: Message::Group(msg) } => self.receive(from, msg, fx),
            Input::Deliver { ref msg, .. } => fx.unexpected(msg),
            Input::Undelivered { to, msg: Message::Group(msg) } => {
                // After a handover nothing has to be repeated, because the first master asks for everything that was
                // sent to this standby.
                if let Some(master) = &mut self.master {
                    master.undelivered(to, msg, fx);
                }
            }
            Input::Fire(Timer::Tick(tick)) => {
                if let Some(master) = &mut self.master {
                    master.tick(tick, fx);
                }
            }
            Input::Down { actor } => self.down(actor, fx),
            Input::Up { actor } => self.up(actor, fx),
            // A master exchanges one kind of message and arms ticks only; the other inputs are for workers.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_another_number_are_void() {
        for number in [0, 1, u32::MAX] {
            for kind in Tick::ALL {
                let Timer::Tick(tick) = kind.timer(number) else { panic!("{kind:?}") };
                assert_eq!(Tick::armed(tick, number), Some(kind));
                assert_eq!(Tick::armed(tick, number.wrapping_add(1)), None);
            }
        }
    }
}
