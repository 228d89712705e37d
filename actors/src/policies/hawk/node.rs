//! A node of Hawk: the manager one, which steals when it becomes idle.

use std::collections::VecDeque;

use crate::base::ActorId;
use crate::layout::Role;
use crate::machine::{Effects, Input, Machine};
use crate::message::{Message, Probe, Steal};
use crate::policies::policy::BuildContext;
use crate::roles::NodeManager;
use crate::roles::node::Reservation;

/// A node manager that steals.
pub(super) struct StealingNode {
    manager: NodeManager,
    index: u32,
    /// Nodes of the big partition: the first ones.
    big: u32,
    attempts: u32,
    /// Nodes that may still be asked since this one became idle.
    left: u32,
    idle: bool,
    /// Reservations that were stolen from here. The scheduler still counts on them and the thief may die, so
    /// they are claimed once nothing else is left to do.
    stolen: VecDeque<Reservation>,
    /// Reservations on their way out: kept for its memory.
    loot: Vec<Reservation>,
}

impl StealingNode {
    pub(super) fn new(context: BuildContext<'_>, big: u32, attempts: u32) -> Self {
        Self {
            manager: NodeManager::new(context.layout.cores(context.index)),
            index: context.index,
            big,
            attempts,
            left: 0,
            idle: true,
            stolen: VecDeque::new(),
            loot: Vec::new(),
        }
    }

    fn receive(&mut self, from: ActorId, steal: Steal, fx: &mut Effects<'_>) {
        match steal {
            Steal::Ask => self.give(from, fx),
            Steal::Loot { scheduler, job, count, repair } => {
                let from = fx.layout().scheduler(scheduler);
                self.manager.reserve(Reservation { from, job, group: 0, count, repair }, fx);
            }
            Steal::Nothing => {
                if self.idle {
                    self.ask(fx);
                }
            }
        }
    }

    /// Gives away the first contiguous reservations behind a long task.
    fn give(&mut self, to: ActorId, fx: &mut Effects<'_>) {
        self.manager.take_behind_long(fx, &mut self.loot);
        if self.loot.is_empty() {
            return fx.send(to, Steal::Nothing);
        }
        for place in self.loot.drain(..) {
            if let Role::Scheduler(scheduler) = fx.layout().role(place.from) {
                let Reservation { job, count, repair, .. } = place;
                fx.send_as(repair, to, Steal::Loot { scheduler, job, count, repair });
            }
            self.stolen.push_back(place);
        }
    }

    /// Asks another node of the big partition, if one may still be asked.
    fn ask(&mut self, fx: &mut Effects<'_>) {
        let others = self.big - u32::from(self.index < self.big);
        if self.left == 0 || others == 0 {
            return;
        }
        self.left -= 1;
        let draw = fx.rng().below(others);
        let victim = if draw >= self.index { draw + 1 } else { draw };
        fx.send(fx.layout().node(victim), Steal::Ask);
    }

    /// After a step: claims what was stolen, or steals, if there is nothing else to do.
    fn settle(&mut self, fx: &mut Effects<'_>) {
        while self.manager.is_idle()
            && let Some(place) = self.stolen.pop_front()
        {
            self.manager.reserve(place, fx);
        }
        let was = std::mem::replace(&mut self.idle, self.manager.is_idle());
        if self.idle && !was {
            self.left = self.attempts;
            self.ask(fx);
        }
    }
}

impl Machine for StealingNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg: Message::Steal(steal) } => self.receive(from, steal, fx),
            Input::Deliver { from, msg: Message::Probe(Probe::Cancel { job, .. }) } => {
                self.stolen.retain(|place| (place.from, place.job) != (from, job));
                self.manager.step(input, fx);
            }
            Input::Down { actor } => {
                self.stolen.retain(|place| place.from != actor);
                self.manager.step(input, fx);
            }
            _ => self.manager.step(input, fx),
        }
        self.settle(fx);
    }
}
