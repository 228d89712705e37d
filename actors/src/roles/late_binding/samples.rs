//! Sampled queue lengths for each task of a job.

use crate::base::ActorId;

/// Open requests and the best answer, for every task of a job.
pub(super) struct Samples {
    /// Most nodes asked for a task.
    each: usize,
    /// The nodes that were asked for task t and have not answered, at `each` · t and the following indices.
    asked: Vec<Option<ActorId>>,
    /// The shortest reported queue for each task.
    best: Vec<Option<(i32, ActorId)>>,
}

impl Samples {
    /// For `tasks` tasks with up to `each` questions.
    pub(super) fn new(tasks: u32, each: usize) -> Self {
        let tasks = tasks as usize;
        Self { each, asked: vec![None; tasks * each], best: vec![None; tasks] }
    }

    /// Records requests for a task to `nodes`; earlier ones are dropped.
    pub(super) fn ask(&mut self, task: u32, nodes: &[ActorId]) {
        let asked = self.of(task);
        asked.fill(None);
        for (place, &node) in asked.iter_mut().zip(nodes) {
            *place = Some(node);
        }
        self.best[task as usize] = None;
    }

    /// Records an answer; returns whether all requests are answered. A duplicate, or an answer to an earlier request,
    /// updates the best queue but does not count as the answer of another node.
    pub(super) fn answer(&mut self, task: u32, node: ActorId, length: i32) -> bool {
        let best = &mut self.best[task as usize];
        if best.is_none_or(|(shortest, _)| length < shortest) {
            *best = Some((length, node));
        }
        if let Some(place) = self.of(task).iter_mut().find(|place| **place == Some(node)) {
            *place = None;
        }
        !self.is_waiting(task)
    }

    /// The node with the shortest reported queue.
    pub(super) fn best(&self, task: u32) -> Option<ActorId> {
        self.best[task as usize].map(|(_, node)| node)
    }

    /// Whether a request is open.
    pub(super) fn is_waiting(&self, task: u32) -> bool {
        let from = task as usize * self.each;
        self.asked[from..from + self.each].iter().any(Option::is_some)
    }

    fn of(&mut self, task: u32) -> &mut [Option<ActorId>] {
        let from = task as usize * self.each;
        &mut self.asked[from..from + self.each]
    }
}
