//! Late binding for a group: more nodes than it has rows reserve a place for it, and the first ones that claim get the
//! rows in turn.

use super::scheduler::{ReplicatedJob, Replication};
use crate::base::{ActorId, JobId};
use crate::machine::Effects;
use crate::message::{Launch, Probe, TaskRange};

impl Replication {
    /// Grants a node that has a free core the next row of a group, without the tasks already done.
    pub(super) fn claim(&mut self, from: ActorId, job: JobId, base: u32, repair: bool, fx: &mut Effects<'_>) {
        let granted = self.jobs.get_mut(job).and_then(|placed| {
            let at = placed.choosing.iter().position(|choice| choice.base == base)?;
            Some((placed.choosing[at].claimed(from), placed))
        });
        let Some((i, placed)) = granted else {
            return fx.send_as(repair, from, Probe::Nothing { job, group: base });
        };
        let group @ (_, len) = self.design.group(base, placed.open.spec.tasks);
        let row = self.design.row(job, group, i, placed.open.first_attempt() + i);
        placed.servers[(base + i) as usize] = Some((from, row.attempt));
        fx.send_as(repair, from, Probe::Grant { row, group: base });
        for task in row.tasks().filter(|task| placed.open.is_done(task.index)) {
            fx.send_as(repair, from, Launch::Drop(TaskRange::one(task, placed.open.next_attempt())));
        }
        if i + 1 == len {
            placed.withdraw(job, base, fx);
        } else if placed.choosing.iter().any(|choice| choice.base == base && choice.asked().next().is_none())
        {
            // There were fewer nodes than rows.
            self.repeat(job, fx);
        }
    }

    /// Repeats open places, which a node that has one ignores; where none is open, other nodes are asked. Returns
    /// whether any group still waits.
    pub(super) fn repeat(&mut self, job: JobId, fx: &mut Effects<'_>) -> bool {
        let Some(placed) = self.jobs.get_mut(job) else { return false };
        for choice in &mut placed.choosing {
            if choice.asked().next().is_none() {
                let (_, len) = self.design.group(choice.base, placed.open.spec.tasks);
                let places = (len - choice.given) * self.design.choices;
                self.sample.clear();
                self.members.sample(fx.rng(), places as usize, &mut self.sample);
                choice.ask(&self.sample);
            }
            for node in choice.asked() {
                fx.recover(node, Probe::Reserve { job, group: choice.base, count: 1, repair: true });
            }
        }
        !placed.choosing.is_empty()
    }

    /// Asks again for groups without any place left after a crash.
    pub(super) fn offer_again(&mut self, fx: &mut Effects<'_>) {
        let mut bare = Vec::new();
        for (job, placed) in self.jobs.iter_mut() {
            for choice in &mut placed.choosing {
                choice.keep(|node| self.members.has(node, fx.layout()));
            }
            if placed.choosing.iter().any(|choice| choice.asked().next().is_none()) {
                bare.push(job);
            }
        }
        for job in bare {
            self.repeat(job, fx);
        }
    }
}

impl ReplicatedJob {
    /// Cancels the open places of a group.
    pub(super) fn withdraw(&mut self, job: JobId, base: u32, fx: &mut Effects<'_>) {
        if let Some(at) = self.choosing.iter().position(|choice| choice.base == base) {
            for node in self.choosing.swap_remove(at).asked() {
                fx.send(node, Probe::Cancel { job, group: base });
            }
        }
    }
}
