//! The policy Kubernetes and its scheduler: one queue of pods, placed one after the other.
//!
//! After a failover there may be two schedulers: jobs of the second one stay there when the first is back, and neither
//! knows which tasks the other bound. Nodes then queue the tasks of both.

use super::pending::{Pending, Pod, Retry};
use crate::base::{ActorId, CopyId, JobId, Rng, Span, TaskId, Time, parameters};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Note, Timer};
use crate::message::{Job, Launch, Message, Row};
use crate::policies::policy::{BuildContext, Policy, Traits};
use crate::policies::shared::check_period;
use crate::roles::client::CentralJobs;
use crate::roles::job_table::{JobTable, OpenJob};
use crate::roles::min_wait_index::MinWaitIndex;
use crate::roles::{RETRY_AFTER, resend};

parameters! {
    /// Parameters of Kubernetes.
    struct Kubernetes {
        /// Treatment of a task for which there is no room.
        retry: Retry = Retry::Timer,
        /// `timer`: time for which the task waits. The Murmuration paper has 30 s by default, and 1 s (section 2.3.2).
        retry_after: Span = Span::from_secs(30),
        /// `timer`: returning tasks are tried in the order of their return, as in kube-scheduler, and not in the order
        /// in which their jobs arrived, as in the Murmuration paper.
        restamp: bool = false,
        /// Duration of an attempt to place a task; attempts follow one another. 5 ms in the Murmuration paper's
        /// prototype (sections 6.1 and 6.2.4).
        attempt: Span = Span::from_millis(5),
    }
}

impl Policy for Kubernetes {
    const ABOUT: &'static str = "Kubernetes, default scheduler (1.23; as in the Murmuration paper, section 2.3)\n\
        All jobs go to the first scheduler that is up. It takes one task after the other, looks for nodes with \
        room for it now, and binds it to the one with the best score: least allocated, and evenly between CPU \
        and memory. A task for which there is no room is tried again later, and others may find some before \
        it. Nodes do not queue.";

    const VARIANTS: &'static [&'static str] = &[
        r#"{ retry_after = "1s" }"#,
        r#"{ retry = "tail", attempt = "20ms" }"#,
        r#"{ retry = "events", attempt = "0s" }"#,
    ];

    fn traits(&self) -> Traits<'_> {
        Traits { central_jobs: CentralJobs::All, ..Traits::default() }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_period("retry_after", self.retry_after)?;
        // With `tail`, attempts that take no time would be repeated for ever.
        if self.retry == Retry::Tail { check_period("attempt", self.attempt) } else { Ok(()) }
    }

    fn remarks(&self, layout: &Layout, _: usize) -> Vec<String> {
        let shared = layout.sharing().is_some();
        let remark =
            "scores nodes as if each task requested a core: it does not read the requests of shared nodes";
        shared.then(|| remark.to_owned()).into_iter().collect()
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let pending = Pending::new(self.retry, self.retry_after, self.restamp);
        Box::new(KubernetesScheduler::new(self.attempt, pending, context.layout))
    }
}

/// Ticks of the end of an attempt, and of the next check of waiting tasks.
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
    /// Whether room was freed since the attempt began.
    freed: bool,
    /// The next check of waiting tasks.
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

// The nodes with room for a task, by score.

#[derive(Clone, Debug)]
struct Host {
    /// Tasks bound to it.
    tasks: Vec<CopyId>,
    /// Number of tasks that it can have.
    room: u32,
    /// Fractions of its CPU and of its memory that one task takes.
    share: [f64; 2],
    up: bool,
    /// Whether it could not be reached lately.
    avoided: bool,
}

impl Host {
    fn is_feasible(&self) -> bool {
        self.up && !self.avoided && self.tasks.len() < self.room as usize
    }

    /// Sum of two scores from 0 to 100 in whole numbers, as if the task were bound to it: what stays free of CPU
    /// and memory (LeastAllocated), and how evenly they are used (BalancedAllocation).
    fn score(&self) -> i64 {
        let [cpu, memory] = self.share.map(|share| (share * (self.tasks.len() as f64 + 1.0)).min(1.0));
        let free = 50.0 * (2.0 - cpu - memory);
        let balanced = 100.0 * (1.0 - (cpu - memory).abs() / 2.0);
        free as i64 + balanced as i64
    }
}

/// All nodes, as known to the scheduler.
pub(super) struct Nodes {
    hosts: Vec<Host>,
    /// Feasible nodes by negated score.
    ranks: MinWaitIndex,
}

impl Nodes {
    pub(super) fn new(layout: &Layout) -> Self {
        let host = |node| Host {
            tasks: Vec::new(),
            room: layout.cores(node),
            share: layout.task_share(node),
            up: true,
            avoided: false,
        };
        let hosts: Vec<_> = (0..layout.nodes()).map(host).collect();
        let mut nodes = Self { hosts, ranks: MinWaitIndex::new(layout.nodes(), Vec::new()) };
        (0..layout.nodes()).for_each(|node| nodes.rank(node));
        nodes
    }

    /// The feasible node with the best score, ties broken evenly.
    pub(super) fn pick(&mut self, rng: &mut Rng) -> Option<u32> {
        self.ranks.pick(rng)
    }

    /// Binds a task to a node.
    pub(super) fn take(&mut self, node: u32, copy: CopyId) {
        self.hosts[node as usize].tasks.push(copy);
        self.rank(node);
    }

    /// Removes a task from a node; returns whether it was there.
    pub(super) fn release(&mut self, node: u32, copy: CopyId) -> bool {
        let tasks = &mut self.hosts[node as usize].tasks;
        let Some(at) = tasks.iter().position(|&c| c == copy) else { return false };
        tasks.swap_remove(at);
        self.rank(node);
        true
    }

    /// Excludes a node, or readmits it.
    pub(super) fn avoid(&mut self, node: u32, avoided: bool) {
        if let Some(host) = self.hosts.get_mut(node as usize) {
            host.avoided = avoided;
            self.rank(node);
        }
    }

    /// Marks a node as down; returns the tasks it had.
    pub(super) fn down(&mut self, node: u32) -> Vec<CopyId> {
        let host = &mut self.hosts[node as usize];
        host.up = false;
        let lost = std::mem::take(&mut host.tasks);
        self.rank(node);
        lost
    }

    /// Marks a node as up, without tasks.
    pub(super) fn up(&mut self, node: u32) {
        let host = &mut self.hosts[node as usize];
        (host.up, host.avoided) = (true, false);
        self.rank(node);
    }

    fn rank(&mut self, node: u32) {
        let host = &self.hosts[node as usize];
        self.ranks.set(node, -host.score());
        self.ranks.reach(node, host.is_feasible());
    }
}

#[cfg(test)]
mod tests {
    use super::super::pending::Retry;
    use super::super::scheduler::Kubernetes;
    use super::*;
    use crate::harness::{Harness, sends};
    use crate::machine::Effect;

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

    /// The cause of the long tail: capacity freed while an earlier task waits goes to a later one.
    #[test]
    fn room_freed_while_a_task_waits_goes_to_a_later_one() {
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
    fn with_events_freed_room_goes_to_the_earlier_task() {
        let mut bench = bench(&instant(Retry::Events), &[1], 1);
        bench.submit(0);
        assert_eq!(sends(&bench.submit(1)), []);
        bench.now += Span::from_secs(10);
        assert_eq!(done(&mut bench, 0, 0, 0)[1], (bench.layout.node(0), row(1, 0)));
    }

    /// One after the other, 5 ms each.
    #[test]
    fn attempts_take_time_one_after_the_other() {
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
        // Unreachable instead: the other one is dead, so the task waits until this one may be tried again.
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
    fn a_task_lost_and_then_refused_is_bound_again_once() {
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

    /// The second of two timers that wake at the same time does nothing.
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

#[cfg(test)]
mod nodes_tests {
    use super::*;
    use crate::base::JobId;

    /// Nodes of one, two and four tasks: the share that stays free decides, then chance.
    #[test]
    fn the_least_allocated_node_comes_first() {
        let layout = Layout::new(1, 0, [1, 2, 4]);
        let mut nodes = Nodes::new(&layout);
        let mut rng = Rng::new(1, 1, 1);
        let copy = |task| JobId(0).task(task).copy(0);
        let mut order = Vec::new();
        for i in 0..7 {
            let node = nodes.pick(&mut rng).unwrap();
            nodes.take(node, copy(i));
            order.push(node);
        }
        assert_eq!(order[0], 2, "three quarters stay free");
        order[1..3].sort_unstable();
        assert_eq!(order[1..3], [1, 2], "half");
        assert_eq!(order[3], 2, "a quarter");
        assert_eq!(nodes.pick(&mut rng), None, "all is full");
        let one = order.iter().position(|&node| node == 1).unwrap() as u32;
        assert!(!nodes.release(0, copy(one)), "it is not there");
        assert!(nodes.release(1, copy(one)));
        nodes.avoid(1, true);
        assert_eq!(nodes.pick(&mut rng), None);
        nodes.avoid(1, false);
        assert_eq!(nodes.pick(&mut rng), Some(1));
        assert_eq!(nodes.down(1).len(), 1);
        assert_eq!(nodes.pick(&mut rng), None);
    }
}
