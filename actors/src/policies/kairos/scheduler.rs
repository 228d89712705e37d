//! The central scheduler of Kairos: one queue of tasks, dealt to the nodes with the fewest copies (algorithm 2).

use super::config::{Kairos, KairosPass};
use super::nodes::DealtNodes;
use crate::base::{ActorId, CopyId, JobId, Span, TaskId};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Job, Launch, Message, NodeReport};
use crate::roles::job_table::{JobTable, OpenJob};
use crate::roles::task_queue::TaskQueue;
use crate::roles::{RETRY_AFTER, resend};

/// The tick at which tasks are dealt.
const DEAL: u32 = 0;
/// From here on, ticks name nodes that may be tried again.
const NODES: u32 = 1;

/// The one scheduler of a run.
pub(super) struct KairosScheduler {
    interval: Span,
    eager: bool,
    nodes: DealtNodes,
    queue: TaskQueue,
    jobs: JobTable<OpenJob>,
    /// Whether the next round is armed.
    ticking: bool,
}

impl KairosScheduler {
    pub(super) fn new(config: &Kairos, layout: &Layout) -> Self {
        Self {
            interval: config.interval,
            eager: config.pass == KairosPass::Eager,
            nodes: DealtNodes::new(config, layout),
            queue: TaskQueue::default(),
            jobs: JobTable::default(),
            ticking: false,
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        let attempt = open.attempts(1);
        self.queue.add(job, 0..open.spec.tasks, attempt);
        self.jobs.open(job, open);
    }

    /// Deals tasks now, or at the end of the interval if there will be something to do.
    fn proceed(&mut self, fx: &mut Effects<'_>) {
        if self.eager {
            self.deal(fx);
        } else if !self.ticking && !self.queue.is_empty() && self.nodes.has_room() {
            self.ticking = true;
            let since = fx.now().0 % self.interval.0;
            fx.arm(Timer::Tick(DEAL), Span(self.interval.0 - since));
        }
    }

    /// Deals tasks until none waits or no node may get one.
    fn deal(&mut self, fx: &mut Effects<'_>) {
        while !self.queue.is_empty()
            && self.nodes.has_room()
            && let Some(copy) = self.pop()
            && let Some(node) = self.nodes.next(fx.rng())
        {
            self.nodes.deal(node, copy, fx.now());
            let repeated =
                self.jobs.get_mut(copy.task.job).is_some_and(|open| open.is_repeated(copy.attempt));
            fx.send_as(repeated, fx.layout().node(node), Launch::Task { copy, at: fx.now() });
        }
        self.nodes.end_round();
    }

    /// The next task without a finished copy.
    fn pop(&mut self) -> Option<CopyId> {
        loop {
            let copy = self.queue.pop()?;
            let TaskId { job, index } = copy.task;
            if self.jobs.get_mut(job).is_some_and(|open| !open.is_done(index)) {
                return Some(copy);
            }
        }
    }

    fn completed(&mut self, from: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        self.nodes.release(fx.layout().node_number(from), copy);
        self.jobs.complete(copy.task, |open| open, fx);
    }

    /// Queues a lost task again.
    fn again(&mut self, task: TaskId) {
        if let Some(open) = self.jobs.get_mut(task.job)
            && !open.is_done(task.index)
        {
            let attempt = open.attempts(1);
            self.queue.add_copy(task.copy(attempt));
        }
    }

    /// Queues a task again that could not be delivered, and avoids its node for a while.
    fn refused(&mut self, node: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let number = fx.layout().node_number(node);
        // Otherwise the node was reported down meanwhile, and its tasks are queued again already.
        if self.nodes.release(number, copy) {
            self.nodes.avoid(number, true);
            fx.arm(Timer::Tick(NODES + number), RETRY_AFTER);
            self.again(copy.task);
        }
    }

    fn deliver(&mut self, from: ActorId, msg: &Message, fx: &mut Effects<'_>) {
        match *msg {
            Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
            Message::Launch(Launch::Completed { copy }) => self.completed(from, copy, fx),
            Message::NodeReport(NodeReport::Service { tasks, attained_ms, spread_ms, at }) => {
                self.nodes.report(fx.layout().node_number(from), (tasks, attained_ms, spread_ms), at);
            }
            _ => fx.unexpected(msg),
        }
    }
}

impl Machine for KairosScheduler {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => self.deliver(from, &msg, fx),
            Input::Undelivered { to, msg: Message::Launch(Launch::Task { copy, .. }) } => {
                self.refused(to, copy, fx);
            }
            Input::Undelivered { to, msg } => {
                let _ = resend(to, msg, fx);
            }
            Input::Down { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    for (copy, _) in self.nodes.down(node, fx.now()) {
                        self.again(copy.task);
                    }
                }
            }
            Input::Up { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    self.nodes.up(node);
                }
            }
            Input::Fire(Timer::Tick(DEAL)) => {
                self.ticking = false;
                self.deal(fx);
            }
            Input::Fire(Timer::Tick(node)) => self.nodes.avoid(node - NODES, false),
            // A start needs no action; only ticks are armed; the other inputs are a worker's.
            _ => {}
        }
        self.proceed(fx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Time;
    use crate::harness::{Harness, sends};
    use crate::machine::Effect;
    use crate::policies::policy::Policy as _;

    fn bench(config: &Kairos, cores: &[u32], tasks: u32) -> Harness {
        let layout = Layout::new(1, 0, cores.iter().copied());
        config.bench(&layout, layout.scheduler(0), tasks)
    }

    /// The copies that were dealt, by node.
    fn dealt(effects: &[Effect]) -> Vec<(ActorId, CopyId)> {
        let task = |(to, msg)| match msg {
            Message::Launch(Launch::Task { copy, .. }) => Some((to, copy)),
            _ => None,
        };
        sends(effects).into_iter().filter_map(task).collect()
    }

    fn copy(job: u32, task: u32, attempt: u32) -> CopyId {
        JobId(job).task(task).copy(attempt)
    }

    /// One core and Q = 1: two tasks of three are dealt in two rounds, or in one, the third in the one after an end.
    #[test]
    fn tasks_are_dealt_in_rounds() {
        for pass in [KairosPass::One, KairosPass::Levels] {
            tasks_are_dealt_at_the_ends_of_intervals(pass);
        }
    }

    fn tasks_are_dealt_at_the_ends_of_intervals(pass: KairosPass) {
        let config = Kairos { queue: 1, pass, ..Kairos::default() };
        let mut bench = bench(&config, &[1], 3);
        let node = bench.layout.node(0);
        bench.now = Time::ZERO + Span::from_millis(2300);
        let round = |ms| Effect::Arm { timer: Timer::Tick(DEAL), after: Span::from_millis(ms) };
        assert_eq!(bench.submit(0), [round(700)]);
        bench.now = Time::ZERO + Span::from_secs(3);
        let mut sent = bench.step(Input::Fire(Timer::Tick(DEAL)));
        if pass == KairosPass::One {
            assert_eq!(sent.pop(), Some(round(1000)));
            assert_eq!(dealt(&sent), [(node, copy(0, 0, 0))]);
            sent.extend(bench.step(Input::Fire(Timer::Tick(DEAL))));
        }
        assert_eq!(dealt(&sent), [(node, copy(0, 0, 0)), (node, copy(0, 1, 0))]);
        assert_eq!(sent.len(), 2, "the node is full: nothing to wait for but an end");
        let ended = bench.deliver(node, Launch::Completed { copy: copy(0, 1, 0) });
        assert_eq!(ended, [round(1000)]);
        assert_eq!(dealt(&bench.step(Input::Fire(Timer::Tick(DEAL)))), [(node, copy(0, 2, 0))]);
    }

    #[test]
    fn an_eager_centre_serves_the_oldest_job() {
        let mut bench = bench(&Kairos { pass: KairosPass::Eager, queue: 0, ..Kairos::default() }, &[1], 2);
        let node = bench.layout.node(0);
        assert_eq!(dealt(&bench.submit(0)), [(node, copy(0, 0, 0))]);
        assert_eq!(dealt(&bench.submit(1)), []);
        let sent = bench.deliver(node, Launch::Completed { copy: copy(0, 0, 0) });
        assert_eq!(dealt(&sent), [(node, copy(0, 1, 0))]);
    }

    /// A node is lost with its task; what could not be delivered goes elsewhere, and its node rests for a while.
    #[test]
    fn lost_tasks_are_dealt_again() {
        let mut bench = bench(&Kairos { pass: KairosPass::Eager, queue: 0, ..Kairos::default() }, &[1, 1], 2);
        let first = dealt(&bench.submit(0));
        let [(a, lost), (b, _)] = first[..] else { panic!("{first:?}") };
        assert_eq!(dealt(&bench.step(Input::Down { actor: a })), [], "the other node is full");
        let again = lost.task.copy(1);
        assert_eq!(dealt(&bench.step(Input::Up { actor: a })), [(a, again)]);
        let back = |copy| Input::Undelivered { to: a, msg: Launch::Task { copy, at: Time::ZERO }.into() };
        assert_eq!(bench.step(back(lost)), [], "it is queued already");
        let refused = bench.step(back(again));
        assert_eq!(dealt(&refused), []);
        let number = NODES + bench.layout.node_number(a);
        assert!(refused.contains(&Effect::Arm { timer: Timer::Tick(number), after: RETRY_AFTER }));
        let ended = bench.deliver(b, Launch::Completed { copy: first[1].1 });
        assert_eq!(dealt(&ended), [(b, lost.task.copy(2))]);
        assert_eq!(
            sends(&bench.deliver(b, Launch::Completed { copy: lost.task.copy(2) })).len(),
            1,
            "the job ends"
        );
        assert_eq!(bench.step(Input::Fire(Timer::Tick(number))), []);
    }
}
