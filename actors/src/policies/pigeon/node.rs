//! A node of Pigeon. Each core runs one copy at a time; the node reports the end of a copy to the copy's scheduler and
//! to the master of the group (section 2.2 of the paper).

mod recovery;

use std::collections::{BTreeSet, VecDeque};

use super::config::Pigeon;
use super::groups::{WorkerGroups, first_core};
use super::master::Master;
use super::masters::{GroupMasters, MasterClaim};
use crate::base::{ActorId, CopyId};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Assignment, Core, Group, Launch, Message};

/// A copy that this node was given, and the master that sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Assigned {
    next: Assignment,
    by: ActorId,
}

/// The copies of a core.
#[derive(Clone, Debug, Default)]
struct CoreCopies {
    running: Option<Assigned>,
    /// Copies that wait for the end of the running copy; there are some only after changes of masters.
    next: VecDeque<Assigned>,
    /// Number of times that the core began or ended a copy.
    turns: u32,
}

/// A node manager of Pigeon.
#[derive(Clone, Debug)]
pub(super) struct PigeonNode {
    groups: WorkerGroups,
    group: u32,
    first_core: u32,
    life: u16,
    cores: Box<[CoreCopies]>,
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
        let group = groups.group_of_node(node, layout);
        Self {
            group,
            first_core: first_core(node, layout),
            life: 0,
            cores: vec![CoreCopies::default(); layout.cores(node) as usize].into(),
            masters: GroupMasters::new(&groups, group, layout),
            groups,
            term: 0,
            changes: 0,
            dead: BTreeSet::new(),
            hosted: None,
        }
    }

    /// Handles a message of the master, or of a worker that is one. Messages for the master that runs on this node, or
    /// that ran here, are passed on.
    fn receive(&mut self, from: ActorId, msg: Group, fx: &mut Effects<'_>) {
        match msg {
            Group::Takes { term, at } => match fx.layout().role(from) {
                Role::Node(_) => self.claimed(MasterClaim { term, at: at.into(), node: from }, fx),
                _ => self.tell_cores(from, fx),
            },
            // A master does not answer with the states of its cores, so this answer shows that no master runs on this
            // node.
            Group::Watch if self.hosted.is_none() => self.tell_cores(from, fx),
            Group::Ask | Group::Mirror { .. } | Group::Lengths { .. } => fx.unexpected(&msg.into()),
            _ => self.pass_on(from, msg, fx),
        }
    }

    /// Accepts a copy for a core (section 2.2). An idle core begins it now, a busy core when its current copy has
    /// ended.
    fn assign(&mut self, core: usize, assigned: Assigned, fx: &mut Effects<'_>) {
        let is_wanted = !self.dead.contains(&fx.layout().scheduler(assigned.next.scheduler));
        let slot = &mut self.cores[core];
        match slot.running {
            None if is_wanted => self.begin(core, assigned, fx),
            Some(_) if is_wanted => slot.next.push_back(assigned),
            None => {
                // The copy of a crashed scheduler is treated as begun and ended.
                slot.turns += 1;
                self.proceed(core, assigned.by, fx);
            }
            // The master learns that the core is idle when the core's copy ends.
            Some(_) => {}
        }
    }

    /// Begins a copy on an idle core.
    fn begin(&mut self, core: usize, assigned: Assigned, fx: &mut Effects<'_>) {
        let slot = &mut self.cores[core];
        slot.turns += 1;
        slot.running = Some(assigned);
        fx.send(fx.worker(core), Core::run(assigned.next.copy));
    }

    /// Sends the result to the scheduler, and the idle notification to the master (section 2.2).
    fn ended(&mut self, worker: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let core = (fx.layout().core_index(worker) - self.first_core) as usize;
        if let Some(Assigned { next, by }) = self.cores[core].running.take() {
            fx.send(fx.layout().scheduler(next.scheduler), Launch::Completed { copy });
            self.proceed(core, by, fx);
        }
    }

    /// Begins the next copy that waits for a core; if there is none, reports the core as idle to the node's master.
    /// If the ended copy came from the master of another group, for a phantom worker, that master gets a report, too,
    /// unless it also sent the next copy.
    fn proceed(&mut self, core: usize, by: ActorId, fx: &mut Effects<'_>) {
        self.cores[core].turns += 1;
        let next = self.cores[core].next.pop_front();
        if next.is_none()
            && let Some(master) = self.masters.current()
        {
            fx.send(master, self.state(core));
        }
        if self.is_foreign(by, fx.layout()) && next.is_none_or(|next| next.by != by) {
            fx.send(by, self.state(core));
        }
        if let Some(next) = next {
            self.begin(core, next, fx);
        }
    }

    /// Whether an actor is the master of another group.
    fn is_foreign(&self, actor: ActorId, layout: &Layout) -> bool {
        matches!(layout.role(actor), Role::Auxiliary(master) if self.groups.group_of_master(master) != self.group)
    }

    /// The state of a core as reported to its master.
    fn state(&self, core: usize) -> Group {
        let CoreCopies { running, turns: count, .. } = self.cores[core];
        let (life, core) = (self.life, self.first_core + core as u32);
        match running {
            Some(Assigned { next: running, .. }) => Group::Status { life, count, core, running },
            None => Group::Idle { life, count, core },
        }
    }
}

impl Machine for PigeonNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Start { epoch } => self.life = epoch as u16,
            Input::Deliver { from, msg } => match msg {
                Message::Group(Group::Run { core, next }) => {
                    self.assign((core - self.first_core) as usize, Assigned { next, by: from }, fx);
                }
                Message::Group(msg) => self.receive(from, msg, fx),
                Message::Core(Core::Ended { copy }) => self.ended(from, copy, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg } => self.undelivered(to, msg, fx),
            Input::Fire(Timer::Tick(tick)) => self.fire(tick, fx),
            Input::Down { actor } => self.down(actor, fx),
            Input::Up { actor } => self.up(actor, fx),
            // No other timer is armed. The remaining inputs go to workers only.
            _ => {}
        }
    }
}
