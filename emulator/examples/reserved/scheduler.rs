//! The scheduler: asks nodes for reservations, and sends each task to the shortest queue.

use std::collections::BTreeMap;

use volary_actors::base::{ActorId, CopyId, Span, TaskId, Time};
use volary_actors::machine::{Effects, Timer};
use volary_actors::message::{CustomProtocol as _, Message};
use volary_actors::roles::back_off;
use volary_actors::roles::dispatcher::{DispatchRule, OpenTasks};

use crate::messages::Reservation;

/// The latest question about a task.
#[derive(Clone, Debug, Default)]
struct Question {
    /// Number of questions about this task so far; answers to earlier ones are ignored.
    round: u32,
    /// Time at which nodes are asked again, where answers can be lost.
    due: Time,
    /// Nodes that have not answered.
    asked: Vec<ActorId>,
    /// The shortest queue, and its node.
    best: Option<(i32, ActorId)>,
}

/// Each task goes to the shortest queue of a few random nodes. The dispatcher does everything else.
#[derive(Clone, Debug)]
pub(crate) struct ShortestOfFew {
    probes: usize,
    /// First wait before nodes are asked again; `None` if no answer can be lost.
    timeout: Option<Span>,
    questions: BTreeMap<TaskId, Question>,
}

impl ShortestOfFew {
    pub(crate) const fn new(probes: usize, timeout: Option<Span>) -> Self {
        Self { probes, timeout, questions: BTreeMap::new() }
    }
}

impl DispatchRule for ShortestOfFew {
    /// Sends a task to the shortest known queue, or asks random nodes. If all nodes are down, asks when some are back.
    fn ready(&mut self, copy: CopyId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let task = copy.task;
        let question = self.questions.entry(task).or_default();
        // This call is from the timer of an earlier question, while answers or the timer of the latest one are pending.
        if !question.asked.is_empty() && (self.timeout.is_none() || fx.now() < question.due) {
            return;
        }
        question.asked.clear();
        if let Some((_, node)) = question.best.take() {
            return tasks.launch(copy, node, fx);
        }
        let (earlier, repair) = (question.round, question.round > 0 || tasks.is_lost(task));
        question.round += 1;
        let round = question.round;
        tasks.members().sample(fx.rng(), self.probes, &mut question.asked);
        for &node in &question.asked {
            fx.send_as(repair, node, Reservation::Ask { task, round, repair });
        }
        if let Some(timeout) = self.timeout {
            // The timer calls this function again if the task still waits then.
            let wait = back_off(timeout, earlier);
            question.due = fx.now() + wait;
            fx.arm(Timer::Task(task), wait);
        }
    }

    fn receive(&mut self, from: ActorId, msg: &Message, tasks: &mut OpenTasks, fx: &mut Effects<'_>) -> bool {
        let Some(Reservation::Length { task, round, length }) = Reservation::of(msg) else { return false };
        // A duplicate of an answer is ignored.
        if let Some(question) = self.questions.get_mut(&task).filter(|question| question.round == round)
            && let Some(at) = question.asked.iter().position(|node| *node == from)
        {
            question.asked.swap_remove(at);
            if question.best.is_none_or(|(shortest, _)| length < shortest) {
                question.best = Some((length, from));
            }
            if question.asked.is_empty()
                && let Some(copy) = tasks.waiting(task)
            {
                self.ready(copy, tasks, fx);
            }
        }
        true
    }

    fn finished(&mut self, task: TaskId, _: bool, _: &mut Effects<'_>) {
        self.questions.remove(&task);
    }

    /// Discards the answers of the crashed node, and stops waiting for its other answers.
    fn crashed(&mut self, node: ActorId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        for question in self.questions.values_mut() {
            question.asked.retain(|asked| *asked != node);
            question.best = question.best.filter(|(_, best)| *best != node);
        }
        self.back(node, tasks, fx);
    }

    /// Asks again about the tasks whose questions have no pending answers.
    fn back(&mut self, _: ActorId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        for copy in tasks.all_waiting() {
            if self.questions.get(&copy.task).is_some_and(|question| question.asked.is_empty()) {
                self.ready(copy, tasks, fx);
            }
        }
    }
}
