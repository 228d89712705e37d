//! A group of tasks that share reservations.

use super::places::Places;
use crate::roles::job_table::OpenJob;

/// Tasks that are bound together.
pub(super) struct TaskGroup {
    /// First task.
    pub base: u32,
    /// How many tasks.
    pub len: u32,
    /// Tasks handed out so far, in order.
    pub launched: u32,
    /// Tasks that were handed out and lost.
    pub again: Vec<u32>,
    /// Its reservations.
    pub places: Places,
}

impl TaskGroup {
    /// Up to `size` of a job's `tasks`, from `base` on.
    pub(super) fn new(base: u32, size: u32, tasks: u32) -> Self {
        Self { base, len: size.min(tasks - base), launched: 0, again: Vec::new(), places: Places::default() }
    }

    /// Tasks that wait for a node.
    pub(super) fn waiting(&self) -> u32 {
        self.len - self.launched + self.again.len() as u32
    }

    pub(super) fn is_open(&self) -> bool {
        self.waiting() > 0
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
}
