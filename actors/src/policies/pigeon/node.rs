//! A node of Pigeon. Each core runs one copy at a time; the node reports the end of a copy to the copy's scheduler and
//! to the master of the group.
//!
//! A core may be given another copy before its copy has ended; this happens only when masters change. The core keeps
//! the new copy until then. The nodes of a group without a master wait for one, and one of them becomes the master.

use std::collections::{BTreeSet, VecDeque};

use super::config::Pigeon;
use super::groups::WorkerGroups;
use super::groups::{GroupMasters, MasterClaim};
use super::master::Tick;
use super::master::{Master, Takeover};
use crate::base::{ActorId, CopyId, Span};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Core, Group, Launch, Message};

/// A copy, the scheduler that gets its result, and the master that sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Assigned {
    copy: CopyId,
    scheduler: u32,
    by: ActorId,
}

#[derive(Clone, Debug, Default)]
struct GroupCore {
    running: Option<Assigned>,
    next: VecDeque<Assigned>,
    /// Number of times that the core began or ended a copy.
    turns: u32,
}

/// A node manager of Pigeon.
#[derive(Clone, Debug)]
pub(super) struct PigeonNode {
    config: Pigeon,
    groups: WorkerGroups,
    group: u32,
    first_core: u32,
    life: u16,
    cores: Box<[GroupCore]>,
    masters: GroupMasters,
    /// Highest election number in a received claim.
    term: u32,
    /// Number of changes of masters.
    changes: u32,
    /// Schedulers and masters that are down.
    dead: BTreeSet<ActorId>,
    /// Present while this node is the master.
    hosted: Option<Box<Master>>,
}

impl PigeonNode {
    pub(super) fn new(config: &Pigeon, node: u32, layout: &Layout) -> Self {
        let groups = WorkerGroups::new(config, layout);
        let group = groups.of(node, layout);
        Self {
            config: config.clone(),
            groups,
            group,
            first_core: layout.core_index(layout.worker(node, 0)),
            life: 0,
            cores: vec![GroupCore::default(); layout.cores(node) as usize].into(),
            masters: GroupMasters::new(groups.master(group, layout), groups.standby(group, layout)),
            term: 0,
            changes: 0,
            dead: BTreeSet::new(),
            hosted: None,
        }
    }

    fn receive(&mut self, from: ActorId, msg: Group, fx: &mut Effects<'_>) {
        match msg {
            Group::Run { core, copy, scheduler } => {
                self.assign((core - self.first_core) as usize, Assigned { copy, scheduler, by: from }, fx);
            }
            Group::Watch => match &mut self.hosted {
                Some(master) => master.receive(from, msg, fx),
                // A master does not answer with the states of its cores, so this answer shows that no master runs on
                // this node.
                None => self.tell_cores(from, fx),
            },
            Group::Takes { term, at } => match fx.layout().role(from) {
                Role::Node(_) => self.claimed(MasterClaim { term, at: at.into(), node: from }, fx),
                _ => self.tell_cores(from, fx),
            },
            Group::Tasks { .. } | Group::Open { .. } | Group::Idle { .. } | Group::Status { .. } => {
                self.pass_on(from, msg, fx);
            }
            Group::Ask | Group::Mirror(_) | Group::Lengths { .. } => fx.unexpected(&msg.into()),
        }
    }

    /// Passes a message on to the master of the group.
    fn pass_on(&mut self, from: ActorId, msg: Group, fx: &mut Effects<'_>) {
        match (&mut self.hosted, self.masters.current()) {
            (Some(master), _) => master.receive(from, msg, fx),
            // A master does not send these messages: this master has lost its state in a crash.
            (None, Some(master)) if master == from => self.lose(from, fx),
            // Another actor is the master now.
            (None, Some(master)) if master != fx.me() => fx.recover(master, msg),
            // There is no master: the next master asks for this state.
            (None, _) => {}
        }
    }

    fn assign(&mut self, core: usize, assigned: Assigned, fx: &mut Effects<'_>) {
        let is_wanted = !self.dead.contains(&fx.layout().scheduler(assigned.scheduler));
        match (self.cores[core].running, is_wanted) {
            (Some(_), true) => self.cores[core].next.push_back(assigned),
            (None, true) => self.begin(core, assigned, fx),
            // The master learns that the core is idle when the core's copy ends.
            (Some(_), false) => {}
            (None, false) => {
                self.cores[core].turns += 2;
                self.tell_idle(core, assigned.by, fx);
            }
        }
    }

    fn begin(&mut self, core: usize, assigned: Assigned, fx: &mut Effects<'_>) {
        let slot = &mut self.cores[core];
        slot.turns += 1;
        slot.running = Some(assigned);
        fx.send(self.worker(core, fx), Core::run(assigned.copy));
    }

    fn worker(&self, core: usize, fx: &Effects<'_>) -> ActorId {
        fx.layout().worker_of_core(self.first_core + core as u32)
    }

    /// Continues a core whose copy ended with the copy given to it meanwhile. A core without one is idle.
    fn proceed(&mut self, core: usize, by: ActorId, fx: &mut Effects<'_>) {
        self.cores[core].turns += 1;
        match self.cores[core].next.pop_front() {
            Some(next) => {
                if by != next.by && self.is_foreign(by, fx.layout()) {
                    // That master no longer has the core on loan.
                    fx.send(by, self.state(core));
                }
                self.begin(core, next, fx);
            }
            None => self.tell_idle(core, by, fx),
        }
    }

    /// Reports an idle core to the master of the group and, if its last copy came from another group, to that master.
    fn tell_idle(&self, core: usize, by: ActorId, fx: &mut Effects<'_>) {
        let idle = self.state(core);
        if let Some(master) = self.masters.current() {
            fx.send(master, idle);
        }
        if self.is_foreign(by, fx.layout()) {
            fx.send(by, idle);
        }
    }

    /// Whether an actor is the master of another group.
    fn is_foreign(&self, actor: ActorId, layout: &Layout) -> bool {
        matches!(layout.role(actor), Role::Auxiliary(master) if self.groups.group_of_master(master).0 != self.group)
    }

    /// The state of a core as reported to its master.
    fn state(&self, core: usize) -> Group {
        let GroupCore { running, turns: count, .. } = self.cores[core];
        let (life, core) = (self.life, self.first_core + core as u32);
        match running {
            Some(Assigned { copy, scheduler, .. }) => Group::Status { life, count, core, copy, scheduler },
            None => Group::Idle { life, count, core },
        }
    }

    fn tell_cores(&self, master: ActorId, fx: &mut Effects<'_>) {
        for core in 0..self.cores.len() {
            fx.recover(master, self.state(core));
        }
    }

    fn ended(&mut self, worker: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let core = (fx.layout().core_index(worker) - self.first_core) as usize;
        if let Some(Assigned { scheduler, by, .. }) = self.cores[core].running.take() {
            fx.send(fx.layout().scheduler(scheduler), Launch::Completed { copy });
            self.proceed(core, by, fx);
        }
    }

    /// Stops the copies of a crashed scheduler, because their jobs are submitted again.
    fn forget(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let Role::Scheduler(scheduler) = fx.layout().role(actor) else { return };
        for core in 0..self.cores.len() {
            self.cores[core].next.retain(|next| next.scheduler != scheduler);
            if let Some(Assigned { copy, by, .. }) = self.cores[core].running
                && self.cores[core].running.is_some_and(|running| running.scheduler == scheduler)
            {
                self.cores[core].running = None;
                fx.send(self.worker(core, fx), Core::Stop { copy });
                self.proceed(core, by, fx);
            }
        }
    }

    /// Handles the claim of a worker to be the master.
    fn claimed(&mut self, claim: MasterClaim, fx: &mut Effects<'_>) {
        let is_known = self.masters.has(claim);
        self.term = self.term.max(claim.term);
        if !self.masters.accept(claim) {
            if let Some(master) = &mut self.hosted {
                master.announce(claim.node, fx);
            }
            return;
        }
        if claim.node != fx.me() && !is_known {
            self.hosted = None;
            self.changed(fx);
        }
        self.tell_cores(claim.node, fx);
    }

    /// Arms the tick that the present masters require: a claim if there is no master, a watch if a worker is the
    /// master.
    fn changed(&mut self, fx: &mut Effects<'_>) {
        self.changes += 1;
        let after = self.config.declare_after;
        if self.masters.current().is_none() {
            let spread = Span(after.0 / 4);
            let late = spread.scale(fx.rng().unit());
            fx.arm(Tick::Claim.timer(self.changes), after + late);
        } else if self.masters.declared().is_some_and(|master| master != fx.me()) {
            fx.arm(Tick::Watch.timer(self.changes), after);
        }
    }

    fn fire(&mut self, tick: u32, fx: &mut Effects<'_>) {
        match (Tick::armed(tick, self.changes), &mut self.hosted) {
            (Some(Tick::Claim), _) => self.declare(fx),
            (Some(Tick::Watch), _) => self.watch(fx),
            (_, Some(master)) => master.tick(tick, fx),
            (_, None) => {}
        }
    }

    /// Checks that the worker that is the master still responds.
    fn watch(&self, fx: &mut Effects<'_>) {
        if let Some(master) = self.masters.declared().filter(|&master| master != fx.me()) {
            fx.recover(master, Group::Watch);
            fx.arm(Tick::Watch.timer(self.changes), self.config.declare_after);
        }
    }

    /// Makes this node the master of a group that has none.
    fn declare(&mut self, fx: &mut Effects<'_>) {
        if self.masters.current().is_some() {
            return;
        }
        self.term = self.term.saturating_add(1);
        self.masters.accept(MasterClaim { term: self.term, at: fx.now(), node: fx.me() });
        let (dead, of) = (self.dead.iter().copied(), (self.groups, self.group));
        let takeover = Takeover { number: self.term, term: self.term, mirror: None };
        let master = Master::take_over(&self.config, of, takeover, dead, fx);
        self.hosted = Some(Box::new(master));
    }

    fn undelivered(&mut self, to: ActorId, msg: Message, fx: &mut Effects<'_>) {
        let master = self.masters.current();
        match msg {
            // A crashed scheduler is reported down instead.
            Message::Launch(Launch::Completed { .. }) if !self.dead.contains(&to) => fx.recover(to, msg),
            Message::Group(state @ (Group::Idle { core, .. } | Group::Status { core, .. })) => {
                let own = core.checked_sub(self.first_core).map(|core| core as usize);
                let own = own.filter(|&core| core < self.cores.len());
                if own.is_some_and(|core| Some(to) == master && self.state(core) == state)
                    || (self.is_foreign(to, fx.layout()) && !self.dead.contains(&to))
                {
                    fx.recover(to, state);
                }
                self.lose(to, fx);
            }
            Message::Group(Group::Watch) => self.lose(to, fx),
            Message::Group(msg) => {
                if let Some(master) = &mut self.hosted {
                    master.undelivered(to, msg, fx);
                }
            }
            _ => {}
        }
    }

    /// Handles the loss of a worker that is the master and cannot be reached.
    fn lose(&mut self, master: ActorId, fx: &mut Effects<'_>) {
        if self.masters.declared() == Some(master) {
            self.masters.give_up(master);
            self.changed(fx);
        }
    }

    fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.dead.insert(actor);
        if let Some(master) = &mut self.hosted {
            master.down(actor, fx);
        }
        self.forget(actor, fx);
        if self.masters.set(actor, false) {
            self.changed(fx);
        }
    }

    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.dead.remove(&actor);
        if let Some(master) = &mut self.hosted {
            master.up(actor, fx);
        }
        let before = self.masters.current();
        if self.masters.set(actor, true) {
            // The other master asks the workers and schedulers for the state that this one has.
            self.hosted = None;
            self.changed(fx);
            if before.is_none() {
                self.tell_cores(actor, fx);
            }
        }
    }
}

impl Machine for PigeonNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Start { epoch } => self.life = epoch as u16,
            Input::Deliver { from, msg } => match msg {
                Message::Group(msg) => self.receive(from, msg, fx),
                Message::Core(Core::Ended { copy }) => self.ended(from, copy, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg } => self.undelivered(to, msg, fx),
            Input::Fire(Timer::Tick(tick)) => self.fire(tick, fx),
            Input::Down { actor } => self.down(actor, fx),
            Input::Up { actor } => self.up(actor, fx),
            // Only ticks are armed; the other inputs are for workers.
            _ => {}
        }
    }
}
