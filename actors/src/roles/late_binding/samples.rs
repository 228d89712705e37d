//! What is known of the queues that were sampled for each task of a job.

use crate::base::ActorId;

/// Questions out and the best answer, for every task of a job.
#[derive(Debug)]
pub(super) struct Samples {
    /// Most nodes asked for a task.
    each: usize,
    /// Who was asked for task t and has not answered, at `each` · t and the places after it.
    asked: Vec<Option<ActorId>>,
    /// Shortest queue heard of for each task.
    best: Vec<Option<(i32, ActorId)>>,
}

impl Samples {
    /// For `tasks` tasks with up to `each` questions.
    pub(super) fn new(tasks: u32, each: usize) -> Self {
        let tasks = tasks as usize;
        Self { each, asked: vec![None; tasks * each], best: vec![None; tasks] }
    }

    /// Questions about a task go to `nodes`; what was known of others is forgotten.
    pub(super) fn ask(&mut self, task: u32, nodes: &[ActorId]) {
        let asked = self.of(task);
        asked.fill(None);
        for (place, &node) in asked.iter_mut().zip(nodes) {
            *place = Some(node);
        }
        self.best[task as usize] = None;
    }

    /// Books an answer; whether it completes what was asked. One that comes twice, or to an earlier question,
    /// is news of that queue but no answer of another node.
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

    /// The node with the shortest queue heard of.
    pub(super) fn best(&self, task: u32) -> Option<ActorId> {
        self.best[task as usize].map(|(_, node)| node)
    }

    /// Whether a question is out.
    pub(super) fn is_waiting(&self, task: u32) -> bool {
        let from = task as usize * self.each;
        self.asked[from..from + self.each].iter().any(Option::is_some)
    }

    fn of(&mut self, task: u32) -> &mut [Option<ActorId>] {
        let from = task as usize * self.each;
        &mut self.asked[from..from + self.each]
    }
}
