//! The scheduler: one queue of pods, placed one after the other.
//!
//! After a failover there may be two: jobs of the second one stay there when the first is back, and neither
//! knows what the other bound. Nodes then queue what both sent.

use super::nodes::Nodes;
use super::pending::{Pending, Pod};
use crate::base::{ActorId, CopyId, JobId, Span, TaskId, Time};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Note, Timer};
use crate::message::{Job, Launch, Message, Row};
use crate::roles::job_table::{JobTable, OpenJob};
use crate::roles::{RETRY_AFTER, resend};

/// The end of an attempt, and the time to look at those that wait.
const DECIDE: u32 = 0;
const WAKE: u32 = 1;
/// From here on, ticks name nodes that may be tried again.
const NODES: u32 = 2;

pub(super) struct KubernetesScheduler {
    attempt: Span,
    pending: Pending,
    nodes: Nodes,
    jobs: JobTable<OpenJob>,
    /// The task for which a node is being looked for.
    trying: Option<Pod>,
    /// Whether room was made since that began.
    freed: bool,
    /// The next time those that wait are looked at.
    woken: Option<Time>,
}

impl KubernetesScheduler {
    pub(super) fn new(attempt: Span, pending: Pending, layout: &Layout) -> Self {
        Self {
            attempt,
            pending,
            nodes: Nodes::new(layout),
            jobs: JobTable::default(),
            trying: None,
            freed: false,
            woken: None,
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let attempt = open.attempts(1);
        for index in 0..open.spec.tasks {
            self.pending.add(Pod::new(job.task(index).copy(attempt), open.spec.arrival), fx.now());
        }
        self.jobs.open(job, open);
        self.work(fx);
    }

    fn is_open(&mut self, task: TaskId) -> bool {
        self.jobs.get_mut(task.job).is_some_and(|open| !open.is_done(task.index))
    }

    /// Tries the next tasks, until none is left or an attempt takes time.
    fn work(&mut self, fx: &mut Effects<'_>) {
        while self.trying.is_none()
            && let Some(pod) = self.pending.pop()
        {
            if !self.is_open(pod.copy.task) {
                continue;
            }
            self.freed = false;
            self.trying = Some(pod);
            if self.attempt > Span::ZERO {
                fx.arm(Timer::Tick(DECIDE), self.attempt);
            } else {
                self.decide(fx);
            }
        }
        self.wake_later(fx);
    }

    fn decide(&mut self, fx: &mut Effects<'_>) {
        let Some(pod) = self.trying.take() else { return };
        let task = pod.copy.task;
        if !self.is_open(task) {
            return;
        }
        match self.nodes.pick(fx.rng()) {
            Some(node) => {
                self.nodes.take(node, pod.copy);
                fx.note(Note::Bound { copy: pod.copy });
                let repeated = self.jobs.get_mut(task.job).is_some_and(|o| o.is_repeated(pod.copy.attempt));
                fx.send_as(repeated, fx.layout().node(node), Launch::Row(Row::single(pod.copy)));
            }
            None => self.pending.failed(pod, self.freed, fx.now()),
        }
    }

    fn wake_later(&mut self, fx: &mut Effects<'_>) {
        if let Some(due) = self.pending.wakes(fx.now())
            && self.woken.is_none_or(|woken| woken > due)
        {
            self.woken = Some(due);
            fx.arm(Timer::Tick(WAKE), due.since(fx.now()));
        }
    }

    fn completed(&mut self, from: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        self.release(from, copy, fx);
        self.jobs.complete(copy.task, |open| open, fx);
        self.work(fx);
    }

    /// Removes a copy from a node; returns whether it was there.
    fn release(&mut self, node: ActorId, copy: CopyId, fx: &Effects<'_>) -> bool {
        let was = self.nodes.release(fx.layout().node_number(node), copy);
        if was {
            self.freed = true;
            self.pending.freed(fx.now());
        }
        was
    }

    /// Queues a lost task again.
    fn again(&mut self, task: TaskId, fx: &Effects<'_>) {
        if let Some(open) = self.jobs.get_mut(task.job)
            && !open.is_done(task.index)
        {
            let copy = task.copy(open.attempts(1));
            self.pending.add(Pod::new(copy, open.spec.arrival), fx.now());
        }
    }

    fn refused(&mut self, node: ActorId, row: Row, fx: &mut Effects<'_>) {
        if !self.release(node, row.copy(0), fx) {
            // The node was reported down meanwhile, and its tasks are queued again already.
            return;
        }
        let number = fx.layout().node_number(node);
        self.nodes.avoid(number, true);
        fx.arm(Timer::Tick(NODES + number), RETRY_AFTER);
        self.again(row.copy(0).task, fx);
        self.work(fx);
    }

    fn fire(&mut self, tick: u32, fx: &mut Effects<'_>) {
        match tick {
            DECIDE => self.decide(fx),
            // An earlier tick may have been armed after this one, which is then outdated.
            WAKE if self.woken.is_none_or(|due| due > fx.now()) => return,
            WAKE => {
                self.woken = None;
                self.pending.wake(fx.now());
            }
            node => {
                self.nodes.avoid(node - NODES, false);
                self.pending.freed(fx.now());
            }
        }
        self.work(fx);
    }
}

impl Machine for KubernetesScheduler {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => self.completed(from, copy, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg } => {
                if let Some(row) = resend(to, msg, fx)
                    && let Role::Node(_) = fx.layout().role(to)
                {
                    self.refused(to, row, fx);
                }
            }
            Input::Down { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    for copy in self.nodes.down(node) {
                        self.again(copy.task, fx);
                    }
                    self.work(fx);
                }
            }
            Input::Up { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    self.nodes.up(node);
                    self.pending.freed(fx.now());
                    self.work(fx);
                }
            }
            Input::Fire(Timer::Tick(tick)) => self.fire(tick, fx),
            // A start needs no action; only ticks are armed; the other inputs are a worker's.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pending::Retry;
    use super::super::policy::Kubernetes;
    use super::*;
    use crate::harness::{Harness, sends};
    use crate::machine::Effect;
    use crate::policies::policy::Policy as _;

    fn bench(config: &Kubernetes, cores: &[u32], tasks: u32) -> Harness {
        let layout = Layout::new(1, 0, cores.iter().copied());
        config.bench(&layout, layout.scheduler(0), tasks)
    }

    fn instant(retry: Retry) -> Kubernetes {
        Kubernetes { retry, attempt: Span::ZERO, ..Kubernetes::default() }
    }

    fn tick(tick: u32) -> Input {
        Input::Fire(Timer::Tick(tick))
    }

    fn done(bench: &mut Harness, node: u32, job: u32, task: u32) -> Vec<(ActorId, Message)> {
        let node = bench.layout.node(node);
        bench.receive(node, Launch::Completed { copy: JobId(job).task(task).copy(0) })
    }

    fn row(job: u32, task: u32) -> Message {
        Launch::Row(Row::single(JobId(job).task(task).copy(0))).into()
    }

    /// What makes its tail long: capacity freed while an earlier task waits goes to a later one.
    #[test]
    fn a_later_task_takes_what_an_earlier_one_waits_for() {
        let mut bench = bench(&instant(Retry::Timer), &[1], 1);
        assert_eq!(sends(&bench.submit(0)), [(bench.layout.node(0), row(0, 0))]);
        let waits = bench.submit(1);
        assert_eq!(waits, [Effect::Arm { timer: Timer::Tick(WAKE), after: Span::from_secs(30) }]);
        bench.now += Span::from_secs(10);
        assert_eq!(done(&mut bench, 0, 0, 0).len(), 1, "the job is reported, and nothing else happens");
        assert_eq!(sends(&bench.submit(2)), [(bench.layout.node(0), row(2, 0))]);
        bench.now += Span::from_secs(20);
        assert_eq!(sends(&bench.step(tick(WAKE))), [], "no room again");
        bench.now += Span::from_secs(30);
        done(&mut bench, 0, 2, 0);
        assert_eq!(sends(&bench.step(tick(WAKE))), [(bench.layout.node(0), row(1, 0))]);
    }

    #[test]
    fn with_events_the_earlier_task_gets_it() {
        let mut bench = bench(&instant(Retry::Events), &[1], 1);
        bench.submit(0);
        assert_eq!(sends(&bench.submit(1)), []);
        bench.now += Span::from_secs(10);
        assert_eq!(done(&mut bench, 0, 0, 0)[1], (bench.layout.node(0), row(1, 0)));
    }

    /// One after the other, 5 ms each.
    #[test]
    fn attempts_take_their_time() {
        let config = Kubernetes { retry: Retry::Tail, ..Kubernetes::default() };
        let mut bench = bench(&config, &[2], 3);
        let attempt = Effect::Arm { timer: Timer::Tick(DECIDE), after: Span::from_millis(5) };
        assert_eq!(bench.submit(0), [attempt]);
        for task in [0, 1] {
            let effects = bench.step(tick(DECIDE));
            assert_eq!(sends(&effects), [(bench.layout.node(0), row(0, task))]);
            assert_eq!(effects.last(), Some(&attempt));
        }
        assert_eq!(bench.step(tick(DECIDE)), [attempt], "no room: it is tried again and again");
        assert_eq!(done(&mut bench, 0, 0, 1), []);
        assert_eq!(sends(&bench.step(tick(DECIDE))), [(bench.layout.node(0), row(0, 2))]);
    }

    #[test]
    fn tasks_of_a_dead_node_are_bound_again_elsewhere() {
        let mut bench = bench(&instant(Retry::Timer), &[4, 4], 2);
        let sent = sends(&bench.submit(0));
        assert_ne!(sent[0].0, sent[1].0, "evenly");
        let again = bench.step(Input::Down { actor: sent[0].0 });
        let copy = JobId(0).task(0).copy(1);
        let expected =
            Effect::Send { to: sent[1].0, msg: Launch::Row(Row::single(copy)).into(), recovery: true };
        assert_eq!(again, [Effect::Note(Note::Bound { copy }), expected]);
        // Out of reach instead: the other one is dead, so it waits until this one may be tried again.
        let back = Input::Undelivered { to: sent[1].0, msg: Launch::Row(Row::single(copy)).into() };
        assert_eq!(sends(&bench.step(back)), []);
        bench.now += Span::from_secs(30);
        let node = NODES + bench.layout.node_number(sent[1].0);
        bench.step(tick(node));
        assert_eq!(sends(&bench.step(tick(WAKE))).len(), 1);
    }

    /// The failure of a node is reported before its undelivered rows are returned. By then the scheduler has bound
    /// their tasks again, possibly to the same node, and must not bind them a third time.
    #[test]
    fn what_is_lost_and_then_refused_is_bound_again_once() {
        let mut bench = bench(&instant(Retry::Timer), &[1], 1);
        let node = bench.layout.node(0);
        bench.submit(0);
        assert_eq!(sends(&bench.step(Input::Down { actor: node })), []);
        let back = bench.step(Input::Up { actor: node });
        assert_eq!(sends(&back), [], "a task that found no room waits for its time");
        bench.now += Span::from_secs(30);
        let again = Launch::Row(Row::single(JobId(0).task(0).copy(1))).into();
        assert_eq!(sends(&bench.step(tick(WAKE))), [(node, again)]);
        assert_eq!(bench.step(Input::Undelivered { to: node, msg: row(0, 0) }), []);
        bench.now += Span::from_secs(30);
        assert_eq!(sends(&bench.step(tick(WAKE))), [], "it is bound");
        assert_eq!(sends(&bench.submit(1)), [], "there is no room for another");
    }

    /// Of two timers that wake at the same time the second does nothing.
    #[test]
    fn a_wake_that_is_not_due_is_ignored() {
        let mut bench = bench(&instant(Retry::Events), &[1], 1);
        bench.submit(0);
        let armed = |effects: &[Effect]| {
            effects
                .iter()
                .filter(|effect| matches!(effect, Effect::Arm { timer: Timer::Tick(WAKE), .. }))
                .count()
        };
        bench.now += Span::from_secs(29);
        assert_eq!(armed(&bench.submit(1)), 1, "looked at after half a minute");
        bench.now += Span::from_secs(1);
        assert_eq!(armed(&bench.step(tick(WAKE))), 1, "and again after another");
        assert_eq!(bench.step(tick(WAKE)), []);
    }
}
