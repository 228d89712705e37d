//! The auxiliary actors of Pigeon: the first master of a group, and its standby.
//!
//! The first master acts whenever it is up, the standby while the first master is down. What reaches a standby that
//! does not act is passed on.

use std::collections::BTreeSet;

use super::config::Pigeon;
use super::groups::WorkerGroups;
use super::master::{Master, Takeover};
use super::queues::TaskQueues;
use crate::base::ActorId;
use crate::layout::Layout;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Group, Message};

/// A master or a standby.
pub(super) struct MasterSeat {
    config: Pigeon,
    groups: WorkerGroups,
    group: u32,
    is_standby: bool,
    /// Present while this one acts.
    master: Option<Master>,
    /// How often this one took over.
    takeovers: u32,
    /// A standby's copy of the queues.
    mirror: TaskQueues,
    /// Actors that are down.
    dead: BTreeSet<ActorId>,
}

impl MasterSeat {
    pub(super) fn new(config: &Pigeon, number: u32, layout: &Layout) -> Self {
        let groups = WorkerGroups::new(config, layout);
        let (group, is_standby) = groups.of_master(number);
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

    /// The other of the two.
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
        // A standby that is up has to be told what waits; one that is down is reported to be.
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
                // The first master acts: this was on its way when it came back.
                fx.recover(self.groups.master(self.group, fx.layout()), msg);
            }
            (None, _) => fx.unexpected(&msg.into()),
        }
    }

    /// The failure detector reports a crash.
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

    /// The failure detector reports that an actor is back.
    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.dead.remove(&actor);
        if self.partner(fx.layout()) != Some(actor) {
            if let Some(master) = &mut self.master {
                master.up(actor, fx);
            }
        } else if self.is_standby {
            // The first master asks workers and schedulers for what this one knows.
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
                // After a handover nothing has to be repeated: the first master asks for all that was said here.
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
            // A master has a conversation of one kind and arms ticks only; the other inputs are a worker's.
            _ => {}
        }
    }
}
