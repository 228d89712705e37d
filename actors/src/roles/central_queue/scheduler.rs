//! A central scheduler with one FIFO queue of tasks and the list of free cores.
//!
//! A core counts as free as soon as its copy is known to have ended or is ordered to stop. A rule looks at each open
//! job from time to time and may ask for more copies of a task: they use cores for which no first copy waits. The first
//! result of a task counts, its other copies are stopped.

use std::collections::VecDeque;

use super::attempts::{Attempt, Attempts};
use super::rule::{Action, Cluster, JobView, Rule};
use crate::base::{ActorId, CopyId, JobId, Score, Span, TaskId, Time};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Job, Launch, Message, Progress, Row, TaskRange};
use crate::roles::job_table::{Completion, JobTable, OpenJob};
use crate::roles::resend::resend;

/// Why a copy is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LaunchReason {
    /// Its task has none.
    First,
    /// Its task has one that is slow.
    Backup,
    /// The one before it was lost.
    Lost,
}

struct CentralJob {
    open: OpenJob,
    attempts: Attempts,
    /// The times of the copies that finished tasks, if the rule looks at the job.
    took: Vec<Span>,
    /// Tasks restarted by the rule, once for each time.
    restarted: Vec<u32>,
    /// Number of the look that is armed, if one is.
    next_look: Option<u32>,
}

/// A central scheduler.
pub struct CentralScheduler<R> {
    rule: R,
    slots: u32,
    /// A node once for each free core, longest idle first.
    free: VecDeque<ActorId>,
    queue: VecDeque<(CopyId, LaunchReason)>,
    jobs: JobTable<CentralJob>,
    /// Backups that run.
    backups: u32,
    actions: Vec<Action>,
    /// Looks so far.
    looks: u32,
}

impl<R: Rule> CentralScheduler<R> {
    /// A scheduler of all cores of a layout.
    pub fn new(rule: R, layout: &Layout) -> Self {
        let cores = |node| (0..layout.cores(node)).map(move |_| layout.node(node));
        Self {
            rule,
            slots: layout.workers(),
            free: (0..layout.nodes()).flat_map(cores).collect(),
            queue: VecDeque::new(),
            jobs: JobTable::default(),
            backups: 0,
            actions: Vec::new(),
            looks: 0,
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let (tasks, attempt) = (open.spec.tasks, open.attempts(1));
        self.queue.extend((0..tasks).map(|i| (job.task(i).copy(attempt), LaunchReason::First)));
        let (attempts, took, restarted) = (Attempts::new(tasks), Vec::new(), Vec::new());
        self.jobs.open(job, CentralJob { open, attempts, took, restarted, next_look: None });
        self.dispatch(fx);
        self.look(job, None, fx);
    }

    /// Gives free cores what waits.
    fn dispatch(&mut self, fx: &mut Effects<'_>) {
        while !self.free.is_empty() {
            let Some((copy, reason)) = self.queue.pop_front() else { return };
            let Some(placed) = self.jobs.get_mut(copy.task.job) else { continue };
            if placed.open.is_done(copy.task.index) {
                continue;
            }
            let Some(node) = self.free.pop_front() else { return };
            placed.send(node, copy, reason, fx);
        }
    }

    fn completed(&mut self, from: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let CopyId { task: TaskId { job, index }, attempt: number } = copy;
        let Some(placed) = self.jobs.get_mut(job) else { return };
        // The core is free if the attempt is known; a late result of a node that was given up frees nothing.
        let ended = placed.attempts.take(index, |a| a.number == number && a.node == from);
        let completion = placed.open.complete(index);
        if let Some(ended) = ended {
            if placed.next_look.is_some() {
                placed.took.push(fx.now().since(ended.since));
            }
            let first = placed.attempts.of(index).map(|other| other.since).fold(ended.since, Time::min);
            self.rule.finished(fx.now().since(first));
            self.rule.progressed(number_of(from, fx), gain(ended.score, Score::ALL));
            self.release(ended);
        }
        if completion != Completion::Duplicate {
            self.stop(copy.task, |_| true, fx);
        }
        if completion == Completion::Job
            && let Some(placed) = self.jobs.close(job)
        {
            placed.open.report(job, fx);
        }
        self.dispatch(fx);
    }

    /// Stops the attempts of a task for which `which` holds; returns whether there were any.
    fn stop(&mut self, task: TaskId, which: impl Fn(&Attempt) -> bool, fx: &mut Effects<'_>) -> bool {
        let mut any = false;
        while let Some(placed) = self.jobs.get_mut(task.job)
            && let Some(gone) = placed.attempts.take(task.index, &which)
        {
            any = true;
            fx.send(gone.node, Launch::Drop(TaskRange::one(task, gone.number + 1)));
            self.rule.progressed(number_of(gone.node, fx), gain(gone.score, Score::NONE));
            self.release(gone);
        }
        any
    }

    /// The core of an attempt is free.
    fn release(&mut self, gone: Attempt) {
        self.backups -= u32::from(gone.backup);
        self.free.push_back(gone.node);
    }

    /// Looks at a job, unless it is over, or was submitted again and has a look of its own.
    fn look(&mut self, job: JobId, number: Option<u32>, fx: &mut Effects<'_>) {
        let Some(placed) = self.jobs.get_mut(job).filter(|placed| placed.next_look == number) else {
            return;
        };
        let (free, waiting) = (self.free.len() as u32, self.queue.len() as u32);
        let cluster = Cluster { slots: self.slots, free, waiting, backups: self.backups };
        let mut actions = std::mem::take(&mut self.actions);
        self.rule.look(&placed.view(fx.now(), cluster), &mut actions);
        let mut sent = false;
        for action in actions.drain(..) {
            match action {
                Action::Backup(task) => sent |= self.back_up(job.task(task), fx),
                Action::Restart(task, number) => self.restart(job.task(task), number, fx),
            }
        }
        self.actions = actions;
        if let (Some(pause), Some(placed)) = (self.rule.pause(sent), self.jobs.get_mut(job)) {
            self.looks = self.looks.wrapping_add(1);
            placed.next_look = Some(self.looks);
            fx.arm(Timer::Recheck { job, attempt: self.looks }, pause);
        }
    }

    /// Sends one more copy of a task to the suitable node that has been idle longest.
    fn back_up(&mut self, task: TaskId, fx: &mut Effects<'_>) -> bool {
        let Some(placed) = self.jobs.get_mut(task.job) else { return false };
        let fits = |&node: &ActorId| {
            self.rule.serves(number_of(node, fx)) && placed.attempts.of(task.index).all(|a| a.node != node)
        };
        let Some(at) = self.free.iter().position(fits) else { return false };
        let Some(node) = self.free.remove(at) else { return false };
        let copy = task.copy(placed.open.attempts(1));
        placed.send(node, copy, LaunchReason::Backup, fx);
        self.backups += 1;
        true
    }

    /// Stops an attempt and queues another one behind the task that is next.
    fn restart(&mut self, task: TaskId, number: u32, fx: &mut Effects<'_>) {
        if !self.stop(task, |a| a.number == number, fx) {
            return;
        }
        if let Some(placed) = self.jobs.get_mut(task.job) {
            placed.restarted.push(task.index);
            let at = self.queue.len().min(1);
            self.queue.insert(at, (task.copy(placed.open.attempts(1)), LaunchReason::First));
        }
        self.dispatch(fx);
    }

    fn progress(&mut self, report: Progress, fx: &Effects<'_>) {
        let Progress::Report { copy, score, at } = report;
        let Some(placed) = self.jobs.get_mut(copy.task.job) else { return };
        let Some(attempt) = placed.attempts.get_mut(copy.task.index, copy.attempt) else { return };
        if at > attempt.reported_at && score >= attempt.score {
            self.rule.progressed(number_of(attempt.node, fx), gain(attempt.score, score));
            (attempt.score, attempt.reported_at) = (score, at);
        }
    }

    /// Removes the attempts of a job, or of all, that are lost with a node or did not reach it. Tasks without any
    /// attempt left go to the head of the queue. Returns whether there were any.
    fn lost(&mut self, node: ActorId, only: Option<CopyId>, fx: &Effects<'_>) -> bool {
        let (mut any, mut again) = (false, Vec::new());
        for (job, placed) in self.jobs.iter_mut() {
            let which = |a: &Attempt| {
                a.node == node && only.is_none_or(|copy| copy == job.task(a.task).copy(a.number))
            };
            let mut tasks: Vec<_> =
                placed.attempts.all().iter().filter(|a| which(a)).map(|a| a.task).collect();
            tasks.sort_unstable();
            for task in tasks {
                let Some(gone) = placed.attempts.take(task, which) else { continue };
                any = true;
                self.backups -= u32::from(gone.backup);
                self.rule.progressed(number_of(node, fx), gain(gone.score, Score::NONE));
                if placed.attempts.copies(task) == 0 {
                    again.push(job.task(task).copy(placed.open.attempts(1)));
                }
            }
        }
        // The oldest comes out first.
        for copy in again.into_iter().rev() {
            self.queue.push_front((copy, LaunchReason::Lost));
        }
        any
    }
}

impl CentralJob {
    fn send(&mut self, node: ActorId, copy: CopyId, reason: LaunchReason, fx: &mut Effects<'_>) {
        let (task, backup) = (copy.task.index, reason == LaunchReason::Backup);
        self.attempts.add(Attempt::new(task, copy.attempt, node, fx.now(), backup));
        fx.send_as(reason == LaunchReason::Lost, node, Launch::Row(Row::single(copy)));
    }

    fn view(&self, now: Time, cluster: Cluster) -> JobView<'_> {
        let Self { open, attempts, took, restarted, .. } = self;
        JobView { now, tasks: open.spec.tasks, finished: open.finished(), attempts, took, restarted, cluster }
    }
}

fn number_of(node: ActorId, fx: &Effects<'_>) -> u32 {
    fx.layout().node_number(node)
}

fn gain(from: Score, to: Score) -> i64 {
    i64::from(to.0) - i64::from(from.0)
}

impl<R: Rule> Machine for CentralScheduler<R> {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => self.completed(from, copy, fx),
                Message::Progress(report) => self.progress(report, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Fire(Timer::Recheck { job, attempt }) => self.look(job, Some(attempt), fx),
            Input::Undelivered { to, msg } => {
                // The core counts as free again and is tried last, so that a node that is cut off does not cause a
                // loop.
                if let Some(row) = resend(to, msg, fx)
                    && self.lost(to, Some(row.copy(0)), fx)
                {
                    self.free.push_back(to);
                    self.dispatch(fx);
                }
            }
            Input::Down { actor } => {
                if let Role::Node(_) = fx.layout().role(actor) {
                    self.free.retain(|&node| node != actor);
                    self.lost(actor, None, fx);
                    self.dispatch(fx);
                }
            }
            Input::Up { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    self.free.retain(|&n| n != actor);
                    self.free.extend((0..fx.layout().cores(node)).map(|_| actor));
                    self.dispatch(fx);
                }
            }
            // A start needs no action; only rechecks are armed; the other inputs are a worker's.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, sends};

    const JOB: JobId = JobId(0);

    /// Backs up every task with one copy; looks every second.
    struct Everything;

    impl Rule for Everything {
        fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>) {
            actions.extend(view.attempts.alone().map(|attempt| Action::Backup(attempt.task)));
        }

        fn pause(&self, _: bool) -> Option<Span> {
            Some(Span::from_secs(1))
        }
    }

    fn bench(rule: impl Rule + 'static, tasks: u32, nodes: usize) -> Harness {
        let layout = Layout::new(1, 0, vec![1; nodes]);
        let me = layout.scheduler(0);
        let machine = Box::new(CentralScheduler::new(rule, &layout));
        Harness::new(layout, me, tasks, machine)
    }

    fn row(task: u32, attempt: u32) -> Message {
        Launch::Row(Row::single(JOB.task(task).copy(attempt))).into()
    }

    fn dropped(task: u32, below: u32) -> Message {
        Launch::Drop(TaskRange::one(JOB.task(task), below)).into()
    }

    fn done(bench: &mut Harness, node: u32, task: u32, attempt: u32) -> Vec<(ActorId, Message)> {
        let copy = JOB.task(task).copy(attempt);
        bench.receive(bench.layout.node(node), Launch::Completed { copy })
    }

    /// Two tasks on four nodes, each with a backup. A backup wins; the first copy is stopped, its late result
    /// changes nothing, and both cores are free again.
    #[test]
    fn the_first_result_counts_and_the_other_copy_is_stopped() {
        let mut bench = bench(Everything, 2, 4);
        let node = |i| bench.layout.node(i);
        let [a, b, c, d] = [node(0), node(1), node(2), node(3)];
        let client = bench.layout.client(0);
        assert_eq!(sends(&bench.submit(0)), [(a, row(0, 0)), (b, row(1, 0)), (c, row(0, 1)), (d, row(1, 2))]);
        assert_eq!(done(&mut bench, 2, 0, 1), [(a, dropped(0, 1))]);
        assert_eq!(done(&mut bench, 0, 0, 0), [], "a late duplicate");
        let finished = Job::Finished { job: JOB }.into();
        assert_eq!(done(&mut bench, 1, 1, 0), [(d, dropped(1, 3)), (client, finished)]);
        // Four cores, once each.
        let next = sends(&bench.submit(1));
        let nodes: Vec<_> = next.iter().map(|(node, _)| *node).collect();
        assert_eq!(nodes, [c, a, b, d], "in the order in which they became free");
    }

    /// A backup keeps its task alive when the first copy is lost, and the other way round; with the last copy the
    /// task goes back to the queue.
    #[test]
    fn a_task_is_sent_again_when_its_last_copy_is_lost() {
        let mut bench = bench(Everything, 1, 3);
        let node = |i| bench.layout.node(i);
        let [a, b, c] = [node(0), node(1), node(2)];
        assert_eq!(sends(&bench.submit(0)), [(a, row(0, 0)), (b, row(0, 1))]);
        assert_eq!(sends(&bench.step(Input::Down { actor: a })), []);
        let undelivered = Input::Undelivered { to: b, msg: row(0, 1) };
        assert_eq!(sends(&bench.step(undelivered)), [(c, row(0, 2))]);
        assert_eq!(sends(&bench.step(undelivered)), [], "once");
        let client = bench.layout.client(0);
        let finished = Job::Finished { job: JOB }.into();
        assert_eq!(
            done(&mut bench, 0, 0, 0),
            [(c, dropped(0, 3)), (client, finished)],
            "it had ended before"
        );
    }

    /// First copies come before backups, and a node gets one copy of a task.
    #[test]
    fn backups_take_what_is_left() {
        let mut bench = bench(Everything, 3, 2);
        let [a, b] = [bench.layout.node(0), bench.layout.node(1)];
        assert_eq!(sends(&bench.submit(0)), [(a, row(0, 0)), (b, row(1, 0))]);
        assert_eq!(done(&mut bench, 0, 0, 0), [(a, row(2, 0))]);
        let look = |number| Input::Fire(Timer::Recheck { job: JOB, attempt: number });
        assert_eq!(sends(&bench.step(look(1))), []);
        assert_eq!(done(&mut bench, 0, 2, 0), []);
        assert_eq!(sends(&bench.step(look(2))), [(a, row(1, 1))]);
        assert_eq!(sends(&bench.step(look(2))), [], "of a job submitted before");
    }

    /// Restarts everything once; without cores to spare.
    struct Anew;

    impl Rule for Anew {
        fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>) {
            let old = view.attempts.all().iter().filter(|a| !view.restarted.contains(&a.task));
            actions.extend(old.map(|a| Action::Restart(a.task, a.number)));
        }

        fn pause(&self, _: bool) -> Option<Span> {
            Some(Span::from_secs(1))
        }
    }

    /// One core, two tasks: the restarted one lets the other go first.
    #[test]
    fn what_begins_anew_leaves_its_core_to_the_next_task() {
        let mut bench = bench(Anew, 2, 1);
        let node = bench.layout.node(0);
        let started = sends(&bench.submit(0));
        assert_eq!(started, [(node, row(0, 0)), (node, dropped(0, 1)), (node, row(1, 0))]);
        assert_eq!(done(&mut bench, 0, 1, 0), [(node, row(0, 1))]);
    }

    /// The newest report counts; older ones and those of ended copies are ignored.
    #[test]
    fn reports_can_come_late_or_twice() {
        struct Far;
        impl Rule for Far {
            fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>) {
                let far = |a: &&Attempt| a.score == Score(600) && a.reported_at == Time(2);
                actions.extend(view.attempts.all().iter().filter(far).map(|a| Action::Backup(a.task)));
            }
            fn pause(&self, _: bool) -> Option<Span> {
                Some(Span::from_secs(1))
            }
        }
        let mut bench = bench(Far, 1, 2);
        let [a, b] = [bench.layout.node(0), bench.layout.node(1)];
        sends(&bench.submit(0));
        let report =
            |score, at| Progress::Report { copy: JOB.task(0).copy(0), score: Score(score), at: Time(at) };
        for (score, at) in [(600, 2), (500, 1), (600, 2)] {
            assert_eq!(bench.receive(a, report(score, at)), []);
        }
        let other = Progress::Report { copy: JOB.task(0).copy(7), score: Score(900), at: Time(9) };
        assert_eq!(bench.receive(b, other), []);
        let look = bench.step(Input::Fire(Timer::Recheck { job: JOB, attempt: 1 }));
        assert_eq!(sends(&look), [(b, row(0, 1))]);
    }
}
