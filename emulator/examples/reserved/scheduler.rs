//! The scheduler: asks nodes for places, and sends each task to the shortest queue.

use std::collections::{BTreeMap, BTreeSet};

use volary_actors::base::{ActorId, CopyId, JobId, Span, TaskId};
use volary_actors::machine::{Effects, Timer};
use volary_actors::message::{CustomProtocol as _, Message};
use volary_actors::roles::back_off;
use volary_actors::roles::dispatcher::{DispatchRule, OpenTasks};

use crate::messages::Reservation;

/// The nodes that were asked about a task.
#[derive(Clone, Debug)]
struct Question {
    /// Number of the question; answers to earlier ones are ignored.
    round: u32,
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
    rounds: u32,
    questions: BTreeMap<TaskId, Question>,
    /// Jobs with an armed check of their questions.
    checked: BTreeSet<JobId>,
}

impl ShortestOfFew {
    pub(crate) fn new(probes: u32, timeout: Option<Span>) -> Self {
        let (questions, checked) = (BTreeMap::new(), BTreeSet::new());
        Self { probes: probes as usize, timeout, rounds: 0, questions, checked }
    }

    /// Asks random nodes about a task; if all are down, some that come back are asked.
    fn ask(&mut self, task: TaskId, repair: bool, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.rounds += 1;
        let (round, mut asked) = (self.rounds, Vec::new());
        tasks.members().sample(fx.rng(), self.probes, &mut asked);
        for &node in &asked {
            fx.send_as(repair, node, Reservation::Ask { task, round, repair });
        }
        self.questions.insert(task, Question { round, asked, best: None });
    }

    /// Sends a task to the shortest queue that is known, or asks again.
    fn launch_or_ask(&mut self, task: TaskId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let best = self.questions.remove(&task).and_then(|question| question.best);
        match (tasks.waiting(task), best) {
            (Some(copy), Some((_, node))) => tasks.launch(copy, node, fx),
            (Some(_), None) => self.ask(task, true, tasks, fx),
            (None, _) => {}
        }
    }
}

impl DispatchRule for ShortestOfFew {
    fn ready(&mut self, copy: CopyId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let task = copy.task;
        self.ask(task, tasks.is_lost(task), tasks, fx);
        if let Some(timeout) = self.timeout
            && self.checked.insert(task.job)
        {
            fx.arm(Timer::Recheck { job: task.job, attempt: 0 }, timeout);
        }
    }

    fn receive(&mut self, from: ActorId, msg: &Message, tasks: &mut OpenTasks, fx: &mut Effects<'_>) -> bool {
        let Some(Reservation::Length { task, round, length }) = Reservation::of(msg) else { return false };
        let Some(question) = self.questions.get_mut(&task).filter(|question| question.round == round) else {
            return true;
        };
        // An answer that arrives twice is the answer of one node.
        if let Some(at) = question.asked.iter().position(|node| *node == from) {
            question.asked.swap_remove(at);
            if question.best.is_none_or(|(shortest, _)| length < shortest) {
                question.best = Some((length, from));
            }
            if question.asked.is_empty() {
                self.launch_or_ask(task, tasks, fx);
            }
        }
        true
    }

    /// Tasks with any answer go to the best; nodes are asked again about the others.
    fn fire(&mut self, timer: Timer, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let (Timer::Recheck { job, attempt }, Some(timeout)) = (timer, self.timeout) else { return };
        for copy in tasks.all_waiting(Some(job)) {
            self.launch_or_ask(copy.task, tasks, fx);
        }
        if tasks.all_waiting(Some(job)).is_empty() {
            self.checked.remove(&job);
            self.questions.retain(|task, _| task.job != job);
        } else {
            fx.arm(Timer::Recheck { job, attempt: attempt + 1 }, back_off(timeout, attempt + 1));
        }
    }

    /// Its answers are void, and the ones that are missing will not come.
    fn crashed(&mut self, node: ActorId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let mut answered = Vec::new();
        for (task, question) in &mut self.questions {
            question.asked.retain(|asked| *asked != node);
            question.best = question.best.filter(|(_, best)| *best != node);
            answered.extend(question.asked.is_empty().then_some(*task));
        }
        answered.into_iter().for_each(|task| self.launch_or_ask(task, tasks, fx));
    }

    fn back(&mut self, _: ActorId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let unasked =
            |task: &TaskId| self.questions.get(task).is_none_or(|question| question.asked.is_empty());
        let waiting = tasks.all_waiting(None).into_iter().map(|copy| copy.task);
        let unasked: Vec<_> = waiting.filter(unasked).collect();
        unasked.into_iter().for_each(|task| self.launch_or_ask(task, tasks, fx));
    }
}
