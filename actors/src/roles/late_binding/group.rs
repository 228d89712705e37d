//! A group of tasks that share reservations.

use crate::base::ActorId;
use crate::roles::job_table::OpenJob;

/// Tasks that are bound together.
pub(super) struct Group {
    /// First task.
    pub base: u32,
    /// How many tasks.
    pub len: u32,
    /// Tasks handed out so far, in order.
    pub launched: u32,
    /// Tasks that were handed out and lost.
    pub again: Vec<u32>,
    /// Nodes with reservations they have not claimed all of, with how many are left.
    pub reserved: Vec<(ActorId, u32)>,
}

impl Group {
    /// Up to `size` of a job's `tasks`, from `base` on.
    pub(super) fn new(base: u32, size: u32, tasks: u32) -> Self {
        Self { base, len: size.min(tasks - base), launched: 0, again: Vec::new(), reserved: Vec::new() }
    }

    /// Tasks that wait for a node.
    pub(super) fn waiting(&self) -> u32 {
        self.len - self.launched + self.again.len() as u32
    }

    pub(super) fn is_open(&self) -> bool {
        self.waiting() > 0
    }

    /// Adds places of a node; returns how many it has now.
    pub(super) fn add(&mut self, node: ActorId, count: u32) -> u32 {
        if let Some((_, places)) = self.reserved.iter_mut().find(|(n, _)| *n == node) {
            *places = places.saturating_add(count);
            return *places;
        }
        self.reserved.push((node, count));
        count
    }

    /// Removes up to `count` places that a node claimed or rejected; returns how many it had of them.
    pub(super) fn take(&mut self, node: ActorId, count: u32) -> u32 {
        let Some(i) = self.reserved.iter().position(|(n, _)| *n == node) else { return 0 };
        let gone = count.min(self.reserved[i].1);
        self.reserved[i].1 -= gone;
        if self.reserved[i].1 == 0 {
            self.reserved.swap_remove(i);
        }
        gone
    }

    /// The next task to be handed out, with its attempt number.
    pub(super) fn next(&mut self, open: &mut OpenJob) -> Option<(u32, u32)> {
        // A task given up as lost may have finished after all.
        self.again.retain(|&task| !open.is_done(task));
        if let Some(task) = self.again.pop() {
            return Some((task, open.attempts(1)));
        }
        (self.launched < self.len).then(|| {
            self.launched += 1;
            (self.base + self.launched - 1, open.first_attempt())
        })
    }

    /// Removes the places of a node; returns how many it had.
    pub(super) fn forget(&mut self, node: ActorId) -> u32 {
        let places = self.reserved.iter().filter(|(n, _)| *n == node).map(|(_, count)| count).sum();
        self.reserved.retain(|(n, _)| *n != node);
        places
    }
}
