//! Recovery of a node: changes of masters, crashes of schedulers, messages that return, and the election of a worker as
//! master (section 6.1 of the paper; the details are ours).
//!
//! The nodes of a group without a master wait for one, and one of them becomes the master.

use super::super::masters::MasterClaim;
use super::super::ticks::Tick;
use super::{Assigned, Master, PigeonNode};
use crate::base::{ActorId, Span};
use crate::layout::Role;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Core, Group, Launch, Message};

impl PigeonNode {
    /// Passes a message on to the master of the group.
    pub(super) fn pass_on(&mut self, from: ActorId, msg: Group, fx: &mut Effects<'_>) {
        match (&mut self.hosted, self.masters.current()) {
            (Some(master), _) => master.step(Input::Deliver { from, msg: msg.into() }, fx),
            // A master does not send these messages, so this master has lost its state in a crash.
            (None, Some(master)) if master == from => self.lose(from, fx),
            // Another actor is the master now.
            (None, Some(master)) if master != fx.me() => fx.recover(master, msg),
            // There is no master: the next master asks for this state.
            (None, _) => {}
        }
    }

    /// Reports the states of all cores to a master.
    pub(super) fn tell_cores(&self, master: ActorId, fx: &mut Effects<'_>) {
        for core in 0..self.cores.len() {
            fx.recover(master, self.state(core));
        }
    }

    /// Stops the copies of a crashed scheduler, because their jobs are submitted again.
    fn forget(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let Role::Scheduler(scheduler) = fx.layout().role(actor) else { return };
        for core in 0..self.cores.len() {
            let slot = &mut self.cores[core];
            slot.next.retain(|waiting| waiting.next.scheduler != scheduler);
            let stopped = slot.running.take_if(|running| running.next.scheduler == scheduler);
            if let Some(Assigned { next, by }) = stopped {
                fx.send(fx.worker(core), Core::Stop { copy: next.copy });
                self.proceed(core, by, fx);
            }
        }
    }

    /// Handles the claim of a worker to be the master.
    pub(super) fn claimed(&mut self, claim: MasterClaim, fx: &mut Effects<'_>) {
        self.term = self.term.max(claim.term);
        let Some(is_new) = self.masters.accept(claim) else {
            if let Some(master) = &mut self.hosted {
                master.up(claim.node, fx);
            }
            return;
        };
        if is_new && claim.node != fx.me() {
            self.hosted = None;
            self.changed(fx);
        }
        self.tell_cores(claim.node, fx);
    }

    /// Arms the tick that the present masters require: a claim if there is no master, a watch if a worker is the
    /// master.
    fn changed(&mut self, fx: &mut Effects<'_>) {
        self.changes += 1;
        let after = self.groups.config.declare_after;
        if self.masters.current().is_none() {
            let late = Span(after.0 / 4).scale(fx.rng().unit());
            fx.arm(Tick::Claim.timer(self.changes), after + late);
        } else if self.masters.declared().is_some_and(|master| master != fx.me()) {
            fx.arm(Tick::Watch.timer(self.changes), after);
        }
    }

    pub(super) fn fire(&mut self, tick: u32, fx: &mut Effects<'_>) {
        match (Tick::armed(tick, self.changes), &mut self.hosted) {
            (Some(Tick::Claim), _) => self.declare(fx),
            (Some(Tick::Watch), _) => self.watch(fx),
            (_, Some(master)) => master.step(Input::Fire(Timer::Tick(tick)), fx),
            (_, None) => {}
        }
    }

    /// Checks that the worker that is the master still responds.
    fn watch(&self, fx: &mut Effects<'_>) {
        if let Some(master) = self.masters.declared().filter(|&master| master != fx.me()) {
            fx.recover(master, Group::Watch);
            fx.arm(Tick::Watch.timer(self.changes), self.groups.config.declare_after);
        }
    }

    /// Makes this node the master of a group that has none.
    fn declare(&mut self, fx: &mut Effects<'_>) {
        if self.masters.current().is_some() {
            return;
        }
        self.term = self.term.saturating_add(1);
        self.masters.accept(MasterClaim { term: self.term, at: fx.now(), node: fx.me() });
        let mut master = Master::new(&self.groups.config, self.group, fx.layout());
        master.dead.clone_from(&self.dead);
        master.take_over(self.term, self.term, fx);
        self.hosted = Some(Box::new(master));
    }

    pub(super) fn undelivered(&mut self, to: ActorId, msg: Message, fx: &mut Effects<'_>) {
        match msg {
            // Not repeated to a scheduler that is known to have crashed.
            Message::Launch(Launch::Completed { .. }) if !self.dead.contains(&to) => fx.recover(to, msg),
            Message::Group(state @ (Group::Idle { .. } | Group::Status { .. })) => {
                let is_current = (0..self.cores.len()).any(|core| self.state(core) == state);
                if (is_current && self.masters.current() == Some(to))
                    || (self.is_foreign(to, fx.layout()) && !self.dead.contains(&to))
                {
                    fx.recover(to, state);
                }
                self.lose(to, fx);
            }
            Message::Group(Group::Watch) => self.lose(to, fx),
            Message::Group(_) => {
                if let Some(master) = &mut self.hosted {
                    master.step(Input::Undelivered { to, msg }, fx);
                }
            }
            _ => {}
        }
    }

    /// Handles the loss of a worker that is the master and cannot be reached.
    fn lose(&mut self, master: ActorId, fx: &mut Effects<'_>) {
        if self.masters.declared() == Some(master) && self.masters.record(master, false) {
            self.changed(fx);
        }
    }

    pub(super) fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.dead.insert(actor);
        if let Some(master) = &mut self.hosted {
            master.step(Input::Down { actor }, fx);
        }
        self.forget(actor, fx);
        if self.masters.record(actor, false) {
            self.changed(fx);
        }
    }

    pub(super) fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.dead.remove(&actor);
        let had_master = self.masters.current().is_some();
        if self.masters.record(actor, true) {
            // The other master asks the workers and schedulers for the state that this one has.
            self.hosted = None;
            self.changed(fx);
            if !had_master {
                self.tell_cores(actor, fx);
            }
        } else if let Some(master) = &mut self.hosted {
            master.step(Input::Up { actor }, fx);
        }
    }
}
