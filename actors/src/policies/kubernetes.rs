//! The default scheduler of Kubernetes: one queue, no queues at nodes, and retries.
//!
//! Pods are placed one after the other. A pod that finds no room is tried again later.
//!
//! After a failover there may be two schedulers: jobs of the second one stay there when the first is back, and
//! neither knows which tasks the other bound. Nodes then queue the tasks of both.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::base::{ActorId, CopyId, Span, Time, check_period, parameters};
use crate::layout::Layout;
use crate::machine::{Effects, Machine, Note, Timer};
use crate::policies::policy::{Binds, BuildContext, Policy, Traits};
use crate::roles::client::CentralJobs;
use crate::roles::dispatcher::{DispatchRule, Dispatcher, OpenTasks};
use crate::roles::ranked_nodes::{NodeRank, RankedNodes};

parameters! {
    /// Parameters of Kubernetes.
    struct Kubernetes {
        /// Treatment of a task that finds no room.
        retry: Retry = Retry::Timer,
        /// `timer`: time for which the task waits. The Murmuration paper has 30 s by default, and 1 s (section 2.3.2).
        retry_after: Span = Span::from_secs(30) => period,
        /// `timer`: whether tasks that return from their wait are tried in the order of their return, as in
        /// kube-scheduler. Otherwise they are tried in the order in which their jobs arrived, as in the Murmuration
        /// paper.
        restamp: bool = false,
        /// Duration of an attempt to place a task; attempts follow one another. 5 ms in the Murmuration paper's
        /// prototype (sections 6.1 and 6.2.4).
        attempt: Span = Span::from_millis(5),
    }
}

impl Policy for Kubernetes {
    const ABOUT: &'static str = "Kubernetes, default scheduler (1.23; as in the Murmuration paper, section 2.3)\n\
        All jobs go to the first scheduler that is up. It takes one task after the other, looks for nodes with room \
        for it now, and binds it to the one with the best score: least allocated, and evenly between CPU and memory. A \
        task for which there is no room is tried again later, and other tasks may find room before it. Nodes do not \
        queue.";

    fn traits(&self) -> Traits<'_> {
        Traits { binds: Binds::Central, central_jobs: CentralJobs::All, ..Traits::default() }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
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
        Box::new(Dispatcher::with(KubernetesRule::new(self, context.layout), context.layout))
    }
}

/// The tick at which an attempt ends.
const DECIDE: Timer = Timer::Tick(0);
/// The tick of the next check of waiting tasks.
const WAKE: Timer = Timer::Tick(1);

#[derive(Clone, Debug)]
struct KubernetesRule {
    pending: Pending,
    nodes: RankedNodes<Host>,
    /// The task for which a node is being looked for.
    trying: Option<Pod>,
    /// Whether room was freed since the attempt began.
    freed: bool,
    /// The next check of waiting tasks.
    woken: Option<Time>,
}

impl KubernetesRule {
    fn new(config: &Kubernetes, layout: &Layout) -> Self {
        let host = |node| Host { room: layout.cores(node), share: layout.task_share(node) };
        let nodes = RankedNodes::new((0..layout.nodes()).map(host));
        Self { pending: Pending::new(config), nodes, trying: None, freed: false, woken: None }
    }

    fn decide(&mut self, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let Some(pod) = self.trying.take().filter(|pod| tasks.waits(pod.copy)) else { return };
        match self.nodes.pick(fx.rng()) {
            Some(node) => {
                let copy = pod.copy;
                self.nodes.give(node, copy, fx.now());
                fx.note(Note::Bound { copy });
                tasks.launch(copy, fx.layout().node(node), fx);
            }
            None => self.pending.failed(pod, self.freed, fx.now()),
        }
    }

    fn wake_later(&mut self, fx: &mut Effects<'_>) {
        if let Some(due) = self.pending.wakes(fx.now())
            && self.woken.is_none_or(|woken| woken > due)
        {
            self.woken = Some(due);
            fx.arm(WAKE, due.since(fx.now()));
        }
    }
}

impl DispatchRule for KubernetesRule {
    fn ready(&mut self, copy: CopyId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        if let Some(spec) = tasks.spec(copy.task.job) {
            self.pending.add(Pod::new(copy, spec.arrival), fx.now());
        }
    }

    /// Tries the next tasks, until none is left or an attempt takes time.
    fn settle(&mut self, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        while self.trying.is_none()
            && let Some(pod) = self.pending.pop()
        {
            if !tasks.waits(pod.copy) {
                continue;
            }
            self.freed = false;
            self.trying = Some(pod);
            let attempt = self.pending.config.attempt;
            if attempt > Span::ZERO {
                fx.arm(DECIDE, attempt);
            } else {
                self.decide(tasks, fx);
            }
        }
        self.wake_later(fx);
    }

    fn left(&mut self, copy: CopyId, node: ActorId, fx: &mut Effects<'_>) {
        if self.nodes.release(fx.layout().node_number(node), copy) {
            self.freed = true;
            self.pending.freed(fx.now());
        }
    }

    fn crashed(&mut self, node: ActorId, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.nodes.set_up(fx.layout().node_number(node), false);
    }

    fn back(&mut self, node: ActorId, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.nodes.set_up(fx.layout().node_number(node), true);
        self.pending.freed(fx.now());
    }

    fn reach(&mut self, node: ActorId, can: bool, fx: &mut Effects<'_>) -> bool {
        self.nodes.avoid(fx.layout().node_number(node), !can);
        if can {
            self.pending.freed(fx.now());
        }
        true
    }

    fn fire(&mut self, timer: Timer, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        if timer == DECIDE {
            self.decide(tasks, fx);
        } else if self.woken.is_some_and(|due| due <= fx.now()) {
            // A tick with an earlier time may have been armed after this one, which is then outdated.
            self.woken = None;
            self.pending.wake(fx.now());
        }
    }
}

/// A node by the requests of its tasks.
#[derive(Clone, Debug)]
struct Host {
    /// Number of tasks that fit the node.
    room: u32,
    /// Fractions of its CPU and of its memory that one task takes.
    share: [f64; 2],
}

impl NodeRank for Host {
    /// The negated sum of two scores, whole numbers from 0 to 100, as if one more task were bound to the node: the
    /// share of CPU and memory that stays free (LeastAllocated), and the balance between their uses
    /// (BalancedAllocation).
    fn rank(&self, tasks: &[(CopyId, Time)]) -> Option<i64> {
        if tasks.len() >= self.room as usize {
            return None;
        }
        let [cpu, memory] = self.share.map(|share| (share * (tasks.len() as f64 + 1.0)).min(1.0));
        let free = 50.0 * (2.0 - cpu - memory);
        let balanced = 100.0 * (1.0 - (cpu - memory).abs() / 2.0);
        Some(-(free as i64 + balanced as i64))
    }
}

parameters! {
    /// Treatment of a task that finds no room.
    enum Retry {
        /// It waits `retry_after`, as the Murmuration paper describes it.
        #[default]
        Timer,
        /// It goes to the tail of the queue ("no retry queue").
        Tail,
        /// As in Kubernetes 1.23: it waits until a task has ended somewhere and its back-off is over (1 s, doubled by
        /// each attempt up to 10 s; checked every second), or for a minute (checked every 30 s). Tasks are tried in the
        /// order of their arrival or return.
        Events,
    }
}

/// Back-off after the first failed attempt, and its maximum (Kubernetes 1.23).
const BACK_OFF: Span = Span::from_secs(1);
const MOST_BACK_OFF: Span = Span::from_secs(10);
/// Period at which tasks in back-off are checked.
const FLUSH: Span = Span::from_secs(1);
/// Period at which tasks without an event are checked, and the least wait after which they are tried again.
const SWEEP: Span = Span::from_secs(30);
const FORGOTTEN: Span = Span::from_secs(60);

/// A task that has no node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Pod {
    copy: CopyId,
    /// Time at which its job arrived.
    created: Time,
    /// Number of failed attempts.
    failures: u32,
}

impl Pod {
    const fn new(copy: CopyId, created: Time) -> Self {
        Self { copy, created, failures: 0 }
    }

    /// Back-off of the task after its last failure.
    fn back_off(&self) -> Span {
        Span(BACK_OFF.0 << self.failures.saturating_sub(1).min(4)).min(MOST_BACK_OFF)
    }
}

/// Least time first, ties in order of insertion.
type Heap = BinaryHeap<Reverse<(Time, u64, Pod)>>;

/// Tasks without a node.
#[derive(Clone, Debug, Default)]
struct Pending {
    config: Kubernetes,
    /// Tasks to be tried now.
    active: Heap,
    /// `events`: tasks in back-off, with its end.
    backing: Heap,
    /// Tasks without room, with the time of the failure; the oldest first.
    failed: VecDeque<(Time, Pod)>,
    /// `events`: number of sweep periods that had passed at the last sweep.
    swept: u64,
    came: u64,
}

impl Pending {
    fn new(config: &Kubernetes) -> Self {
        Self { config: config.clone(), ..Self::default() }
    }

    fn at(&mut self, time: Time, pod: Pod) -> Reverse<(Time, u64, Pod)> {
        self.came += 1;
        Reverse((time, self.came, pod))
    }

    /// Adds a task to be tried.
    fn add(&mut self, pod: Pod, now: Time) {
        let rank = match self.config.retry {
            Retry::Timer if !self.config.restamp => pod.created,
            Retry::Tail => Time::ZERO,
            Retry::Timer | Retry::Events => now,
        };
        let at = self.at(rank, pod);
        self.active.push(at);
    }

    /// The next task to be tried.
    fn pop(&mut self) -> Option<Pod> {
        self.active.pop().map(|Reverse((_, _, pod))| pod)
    }

    /// Records that there was no room for a task; `freed` says whether room was freed during the attempt.
    fn failed(&mut self, mut pod: Pod, freed: bool, now: Time) {
        pod.failures += 1;
        match self.config.retry {
            Retry::Tail => self.add(pod, now),
            Retry::Events if freed => self.recall(now, pod, now),
            Retry::Timer | Retry::Events => self.failed.push_back((now, pod)),
        }
    }

    /// Records that room was freed on some node.
    fn freed(&mut self, now: Time) {
        if self.config.retry == Retry::Events {
            while let Some((since, pod)) = self.failed.pop_front() {
                self.recall(since, pod, now);
            }
        }
    }

    /// Tries a task again as soon as its back-off is over.
    fn recall(&mut self, since: Time, pod: Pod, now: Time) {
        let until = since + pod.back_off();
        if until <= now {
            return self.add(pod, now);
        }
        let at = self.at(until, pod);
        self.backing.push(at);
    }

    /// Time of the next check of waiting tasks after `now`.
    fn wakes(&self, now: Time) -> Option<Time> {
        let next = |every: Span| Time((now.0 / every.0 + 1) * every.0);
        match self.config.retry {
            Retry::Tail => None,
            Retry::Timer => self.failed.front().map(|&(since, _)| since + self.config.retry_after),
            Retry::Events if !self.backing.is_empty() => Some(next(FLUSH)),
            Retry::Events => self.failed.front().map(|_| next(SWEEP)),
        }
    }

    /// Checks the waiting tasks.
    fn wake(&mut self, now: Time) {
        let patience = match self.config.retry {
            Retry::Tail => return,
            Retry::Timer => self.config.retry_after,
            Retry::Events => FORGOTTEN,
        };
        while let Some(&Reverse((until, _, pod))) = self.backing.peek()
            && until <= now
        {
            self.backing.pop();
            self.add(pod, now);
        }
        // Compares periods, not exact times: in real time ticks are a little late.
        let due = now.0 / SWEEP.0;
        let sweeps = self.config.retry == Retry::Timer || std::mem::replace(&mut self.swept, due) < due;
        while let Some(&(since, pod)) = self.failed.front()
            && sweeps
            && since + patience <= now
        {
            // Any back-off is over by now.
            self.failed.pop_front();
            self.add(pod, now);
        }
    }
}

#[cfg(test)]
mod tests;
