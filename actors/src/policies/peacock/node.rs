//! A worker node of Peacock: cores, the elastic queue, and the ring.

use std::collections::VecDeque;

use super::config::{Peacock, PeacockForm, PeacockWait};
use crate::base::{ActorId, CopyId, JobId, Span, Time};
use crate::layout::Role;
use crate::machine::{CacheNote, Effects, Input, Machine, Timer};
use crate::message::{Core, Launch, Message, Probe, Ring, RingProbe};
use crate::policies::policy::BuildContext;

/// The state of a core.
#[derive(Clone, Copy, Debug)]
enum PeacockCore {
    Idle,
    /// Held while the node asks a scheduler for the task of a probe.
    Claiming(WaitingProbe),
    Running {
        copy: CopyId,
        from: ActorId,
        estimate: Span,
        /// Time at which the task should end by its estimate.
        expected: Time,
    },
}

/// The newest cluster-wide state received.
#[derive(Clone, Copy, Debug, Default)]
struct Global {
    limit: u8,
    load: Span,
    at: Time,
    /// Time at which the state was last passed on.
    sent: Time,
}

/// A node manager on the ring.
#[derive(Clone, Debug)]
pub(super) struct PeacockNode {
    form: PeacockForm,
    wait: PeacockWait,
    interval: Span,
    node: u32,
    slots: Box<[PeacockCore]>,
    queue: ElasticQueue,
    global: Global,
    /// Probes to be passed on at the next interval.
    rotating: Vec<WaitingProbe>,
    ticking: bool,
    /// Distance on the ring to the next reachable node; the length of the ring if no node is reachable.
    hop: u32,
    /// Tasks granted for claims that have been given up since; they run before all waiting probes.
    granted: VecDeque<(ActorId, CopyId)>,
    /// Schedulers that are down; their probes that are still on the ring are void.
    down: Vec<u16>,
    watched: bool,
}

impl PeacockNode {
    pub(super) fn new(config: &Peacock, context: BuildContext<'_>) -> Self {
        Self {
            form: config.form,
            wait: config.wait,
            interval: config.interval,
            node: context.index,
            slots: vec![PeacockCore::Idle; context.layout.cores(context.index) as usize].into(),
            queue: ElasticQueue::default(),
            global: Global::default(),
            rotating: Vec::new(),
            ticking: false,
            hop: 1,
            granted: VecDeque::new(),
            down: Vec::new(),
            watched: context.watched,
        }
    }

    fn visit(&mut self, probe: RingProbe, fx: &mut Effects<'_>) {
        // After a crash the scheduler repeats probes whose first copies may still be on the ring. Where two probes of
        // one task meet, one is dropped.
        if self.down.contains(&probe.scheduler) || self.holds(&probe) {
            return;
        }
        let entered = fx.catalog().job(probe.task.job).arrival;
        let new = WaitingProbe { probe, estimate: fx.catalog().estimate(probe.task), entered };
        if self.form == PeacockForm::Threshold {
            self.queue.push_shortest_first(new);
        } else {
            self.learn(probe.limit, probe.max_wait, entered, fx);
            if let Some(rotated) = self.queue.place(new, ahead(&self.slots, Span::MAX, fx.now()), fx.now()) {
                self.rotating.push(rotated);
            }
        }
        self.settle(fx);
    }

    /// Whether a probe of the same task and scheduler waits here. A probe of another scheduler does not count, because
    /// that scheduler crashed and its probes are about to be dropped. A probe that claims its task does not count
    /// either: the claim may have been denied because of a copy that has since been lost.
    fn holds(&self, probe: &RingProbe) -> bool {
        let is = |waiting: &WaitingProbe| {
            (waiting.probe.task, waiting.probe.scheduler) == (probe.task, probe.scheduler)
        };
        self.rotating.iter().any(is) || self.queue.iter().any(is)
    }

    fn learn(&mut self, limit: u8, load: Span, at: Time, fx: &mut Effects<'_>) {
        if at > self.global.at || self.global.at == Time::ZERO {
            self.global = Global { limit, load, at, sent: self.global.sent };
            if self.watched {
                fx.note(CacheNote::Refreshed { at });
            }
        }
    }

    /// Serves idle cores, then passes on the probes that do not fit.
    fn settle(&mut self, fx: &mut Effects<'_>) {
        while let Some(core) = self.slots.iter().position(|slot| matches!(slot, PeacockCore::Idle)) {
            if let Some((from, copy)) = self.granted.pop_front() {
                self.run(from, copy, core, fx);
                continue;
            }
            let Some(next) = self.queue.pop() else { break };
            let scheduler = fx.layout().scheduler(u32::from(next.probe.scheduler));
            let RingProbe { task, repair, .. } = next.probe;
            fx.send_as(repair, scheduler, Probe::Claim { job: task.job, group: task.index, repair });
            self.slots[core] = PeacockCore::Claiming(next);
        }
        let now = fx.now();
        let alone = self.hop >= fx.layout().nodes();
        match self.form {
            PeacockForm::Threshold if !alone => {
                let mut late = Vec::new();
                let (slots, which) = (&self.slots, self.wait);
                let wait = |own| match which {
                    PeacockWait::Ahead => ahead(slots, Span::MAX, now),
                    PeacockWait::NoLonger => ahead(slots, own, now) + own,
                };
                self.queue.take_late(wait, now, fx.layout().nodes(), &mut late);
                for waiting in late {
                    self.forward(waiting.probe, fx);
                }
            }
            PeacockForm::Elastic if !alone => {
                let idle = self.slots.iter().filter(|slot| matches!(slot, PeacockCore::Idle)).count();
                let limit = usize::from(self.global.limit) * self.slots.len() + idle;
                let ahead = ahead(&self.slots, Span::MAX, now);
                self.queue.overflow(limit, self.global.load, ahead, &mut self.rotating);
                self.keep_ticking(fx);
            }
            // A ring of one node, or with one node left, keeps all probes.
            PeacockForm::Threshold => {}
            PeacockForm::Elastic => {
                for waiting in std::mem::take(&mut self.rotating) {
                    self.queue.push_shortest_first(waiting);
                }
            }
        }
    }

    fn keep_ticking(&mut self, fx: &mut Effects<'_>) {
        if !self.ticking && !self.rotating.is_empty() {
            self.ticking = true;
            // Each node has its own grid of tick times, so idle nodes need no ticks.
            let phase = self.interval.0 / u64::from(fx.layout().nodes()) * u64::from(self.node);
            let since = (fx.now().0 + self.interval.0 - phase % self.interval.0) % self.interval.0;
            fx.arm(Timer::Tick(0), Span(self.interval.0 - since));
        }
    }

    fn successor(&self, fx: &Effects<'_>) -> ActorId {
        let layout = fx.layout();
        layout.node((self.node + self.hop) % layout.nodes())
    }

    fn rotate(&mut self, fx: &mut Effects<'_>) {
        self.ticking = false;
        let successor = self.successor(fx);
        if self.global.at > self.global.sent {
            self.global.sent = self.global.at;
            let Global { limit, load, at, .. } = self.global;
            fx.send(successor, Ring::State { limit: u32::from(limit), load, at });
        }
        for waiting in std::mem::take(&mut self.rotating) {
            self.forward(waiting.probe, fx);
        }
    }

    /// Passes a probe on to the successor.
    fn forward(&self, mut probe: RingProbe, fx: &mut Effects<'_>) {
        probe.hops = probe.hops.saturating_add(1);
        fx.send_as(probe.repair, self.successor(fx), probe);
    }

    fn claiming(&self, job: JobId, index: u32) -> Option<usize> {
        let asked = |slot: &PeacockCore| match slot {
            PeacockCore::Claiming(waiting) => waiting.probe.task == job.task(index),
            PeacockCore::Idle | PeacockCore::Running { .. } => false,
        };
        self.slots.iter().position(asked)
    }

    fn run(&mut self, from: ActorId, copy: CopyId, core: usize, fx: &mut Effects<'_>) {
        let estimate = fx.catalog().estimate(copy.task);
        self.slots[core] = PeacockCore::Running { copy, from, estimate, expected: fx.now() + estimate };
        fx.send(fx.layout().worker(self.node, core as u32), Core::run(copy));
    }

    fn probe(&mut self, from: ActorId, probe: Probe, fx: &mut Effects<'_>) {
        match probe {
            Probe::Grant { row, .. } => {
                let copy = row.copy(0);
                let core = self
                    .claiming(copy.task.job, copy.task.index)
                    .or_else(|| self.slots.iter().position(|slot| matches!(slot, PeacockCore::Idle)));
                match core {
                    Some(core) => self.run(from, copy, core, fx),
                    None => self.granted.push_back((from, copy)),
                }
            }
            Probe::Nothing { job, group } => {
                if let Some(core) = self.claiming(job, group) {
                    self.slots[core] = PeacockCore::Idle;
                    self.settle(fx);
                }
            }
            _ => fx.unexpected(&probe.into()),
        }
    }

    fn ended(&mut self, worker: ActorId, ended: CopyId, fx: &mut Effects<'_>) {
        // The match is by core and not by copy, because a task that was granted twice runs twice.
        if let Role::Worker { core, .. } = fx.layout().role(worker)
            && let PeacockCore::Running { copy, from, .. } = self.slots[core as usize]
            && copy == ended
        {
            self.slots[core as usize] = PeacockCore::Idle;
            fx.send(from, Launch::Completed { copy });
        }
        self.settle(fx);
    }

    fn forget(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        let Role::Scheduler(dead) = fx.layout().role(actor) else { return };
        self.down.push(dead as u16);
        self.granted.retain(|(from, _)| *from != actor);
        let of_dead = |waiting: &WaitingProbe| u32::from(waiting.probe.scheduler) == dead;
        for core in 0..self.slots.len() {
            match self.slots[core] {
                PeacockCore::Running { copy, from, .. } if from == actor => {
                    fx.send(fx.layout().worker(self.node, core as u32), Core::Stop { copy });
                    self.slots[core] = PeacockCore::Idle;
                }
                PeacockCore::Claiming(waiting) if of_dead(&waiting) => self.slots[core] = PeacockCore::Idle,
                PeacockCore::Running { .. } | PeacockCore::Claiming(_) | PeacockCore::Idle => {}
            }
        }
        self.queue.retain(|waiting| !of_dead(waiting));
        self.rotating.retain(|waiting| !of_dead(waiting));
        self.settle(fx);
    }

    fn undelivered(&mut self, to: ActorId, msg: Message, fx: &mut Effects<'_>) {
        match msg {
            Message::Launch(Launch::Completed { copy }) => fx.recover(to, Launch::Completed { copy }),
            Message::Probe(Probe::Claim { job, group, .. }) => {
                // The scheduler cannot be reached now: the core becomes free for other probes, and the probe waits
                // again. If no core is held, an answer to a claim of an earlier epoch was taken for the answer to this
                // claim.
                let Some(core) = self.claiming(job, group) else {
                    let is_up = matches!(fx.layout().role(to), Role::Scheduler(to) if !self.down.contains(&(to as u16)));
                    if is_up {
                        fx.recover(to, Probe::Claim { job, group, repair: true });
                    }
                    return;
                };
                if let PeacockCore::Claiming(waiting) =
                    std::mem::replace(&mut self.slots[core], PeacockCore::Idle)
                {
                    self.queue.push_shortest_first(waiting);
                    self.settle(fx);
                }
            }
            Message::RingProbe(probe) => {
                // A dead neighbour is skipped from now on; after the last neighbour only this node is left.
                if to == self.successor(fx) {
                    self.hop += 1;
                }
                if self.hop < fx.layout().nodes() {
                    fx.recover(self.successor(fx), probe);
                } else {
                    self.visit(probe, fx);
                }
            }
            // State messages are datagrams, and messages to workers stay on this node, so neither returns.
            _ => {}
        }
    }
}

/// Estimated work of the cores before the queue's head is served, without running tasks whose estimates exceed
/// `longest`.
fn ahead(slots: &[PeacockCore], longest: Span, now: Time) -> Span {
    let busy = |slot: &PeacockCore| match slot {
        PeacockCore::Claiming(waiting) => waiting.estimate,
        PeacockCore::Running { estimate, expected, .. } if *estimate <= longest => expected.since(now),
        PeacockCore::Running { .. } | PeacockCore::Idle => Span::ZERO,
    };
    slots.iter().map(busy).min().unwrap_or(Span::ZERO)
}

impl Machine for PeacockNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::RingProbe(probe) => {
                    // A message from a predecessor shows that the ring may be reachable again.
                    if matches!(fx.layout().role(from), Role::Node(_)) {
                        self.hop = 1;
                    }
                    self.visit(probe, fx);
                }
                Message::Ring(Ring::State { limit, load, at }) => {
                    self.learn(limit.min(u32::from(u8::MAX)) as u8, load, at, fx);
                    self.settle(fx);
                }
                Message::Probe(probe) => self.probe(from, probe, fx),
                Message::Core(Core::Ended { copy }) => self.ended(from, copy, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Fire(Timer::Tick(_)) => self.rotate(fx),
            Input::Undelivered { to, msg } => self.undelivered(to, msg, fx),
            Input::Down { actor } => self.forget(actor, fx),
            Input::Up { actor } => {
                if let Role::Scheduler(back) = fx.layout().role(actor) {
                    self.down.retain(|&s| u32::from(s) != back);
                }
            }
            // `Start` needs no action. No other timer is armed. The remaining inputs go to workers only.
            _ => {}
        }
    }
}

// The elastic queue of a Peacock worker: order, placement and overflow of waiting probes.

/// A probe that waits on this node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WaitingProbe {
    pub probe: RingProbe,
    /// Estimated work of the probe's task.
    pub estimate: Span,
    /// Time at which the probe's job entered the system.
    pub entered: Time,
}

impl WaitingProbe {
    /// Latest time at which the probe must be served.
    pub(super) fn deadline(&self) -> Time {
        self.entered + self.probe.max_wait
    }
}

/// Waiting probes, in the order in which they are served.
#[derive(Clone, Debug, Default)]
pub(super) struct ElasticQueue {
    waiting: Vec<WaitingProbe>,
    total: Span,
}

impl ElasticQueue {
    /// The next probe to be served.
    pub(super) fn pop(&mut self) -> Option<WaitingProbe> {
        (!self.waiting.is_empty()).then(|| self.take(0))
    }

    /// The waiting probes, in the order in which they are served.
    pub(super) fn iter(&self) -> impl Iterator<Item = &WaitingProbe> {
        self.waiting.iter()
    }

    /// Keeps only the probes for which `keep` returns true.
    pub(super) fn retain(&mut self, keep: impl Fn(&WaitingProbe) -> bool) {
        self.waiting.retain(keep);
        self.total = self.waiting.iter().fold(Span::ZERO, |sum, w| sum + w.estimate);
    }

    fn take(&mut self, at: usize) -> WaitingProbe {
        let taken = self.waiting.remove(at);
        self.total = self.total.saturating_sub(taken.estimate);
        taken
    }

    fn insert(&mut self, at: usize, new: WaitingProbe) {
        self.total += new.estimate;
        self.waiting.insert(at, new);
    }

    /// The authors' placement of a new probe, which moves forward from the tail. If it entered the system later than
    /// a waiting probe, it overtakes the waiting probe iff it is shorter and the waiting probe can still be served in
    /// time. If it entered earlier, it overtakes unless the waiting probe is shorter and the new one can still be
    /// served in time behind it. The new probe stays at its final position if it can be served there in time, is late
    /// already, or is at the head; otherwise it is returned, to be rotated. `ahead` is the work of the cores before
    /// the queue's head is served.
    pub(super) fn place(&mut self, new: WaitingProbe, ahead: Span, now: Time) -> Option<WaitingProbe> {
        let mut wait = ahead + self.total;
        let mut at = self.waiting.len();
        while at > 0 {
            let other = self.waiting[at - 1];
            let others_wait = wait.saturating_sub(other.estimate);
            let shorter = new.estimate < other.estimate;
            let overtakes = if new.entered > other.entered {
                shorter && now + others_wait + new.estimate < other.deadline()
            } else {
                !(other.estimate < new.estimate && now + wait < new.deadline())
            };
            if !overtakes {
                break;
            }
            wait = others_wait;
            at -= 1;
        }
        if at == 0 || now + wait < new.deadline() || new.deadline() < now {
            self.insert(at, new);
            return None;
        }
        Some(new)
    }

    /// The authors' filter: while more probes than `limit` wait, or more work than `load`, the tail is removed.
    pub(super) fn overflow(&mut self, limit: usize, load: Span, ahead: Span, out: &mut Vec<WaitingProbe>) {
        while !self.waiting.is_empty() && (self.waiting.len() > limit || ahead + self.total > load) {
            let tail = self.waiting.len() - 1;
            out.push(self.take(tail));
        }
    }

    /// Adds a probe in the order of estimates, and after equal ones.
    pub(super) fn push_shortest_first(&mut self, new: WaitingProbe) {
        let at = self.waiting.partition_point(|other| other.estimate <= new.estimate);
        self.insert(at, new);
    }

    /// Takes out every probe that is not yet late and would wait past its deadline on this node. `wait` is the wait
    /// without the probes ahead. A probe that has visited all `ring` nodes of the ring stays, because without link
    /// delay it would rotate for ever.
    pub(super) fn take_late(
        &mut self,
        wait: impl Fn(Span) -> Span,
        now: Time,
        ring: u32,
        out: &mut Vec<WaitingProbe>,
    ) {
        let mut ahead = Span::ZERO;
        let mut at = 0;
        while at < self.waiting.len() {
            let this = self.waiting[at];
            let late = now + ahead + wait(this.estimate) > this.deadline();
            if this.deadline() > now && late && u32::from(this.probe.hops) < ring {
                out.push(self.take(at));
            } else {
                ahead += this.estimate;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::JobId;

    fn probe(job: u32, estimate: u64, entered: u64, max_wait: u64) -> WaitingProbe {
        let probe = RingProbe {
            task: JobId(job).task(0),
            scheduler: 0,
            limit: 0,
            hops: 0,
            repair: false,
            max_wait: Span::from_secs(max_wait),
        };
        WaitingProbe { probe, estimate: Span::from_secs(estimate), entered: Time(entered * 1_000_000_000) }
    }

    fn order(queue: &ElasticQueue) -> Vec<u32> {
        queue.waiting.iter().map(|w| w.probe.task.job.0).collect()
    }

    /// Each row is a case of the placement rule: the queue before, the new probe, and the order after (or `None` if
    /// rotated).
    #[test]
    fn placement_follows_the_authors_rule_in_every_case() {
        let now = Time(10_000_000_000);
        type Case<'a> = (&'a str, &'a [WaitingProbe], WaitingProbe, Option<&'a [u32]>);
        let cases: [Case<'_>; 6] = [
            ("a probe enters an empty queue", &[], probe(9, 5, 10, 1), Some(&[9])),
            (
                "a later and shorter probe overtakes one that can wait",
                &[probe(1, 5, 5, 100)],
                probe(9, 1, 10, 100),
                Some(&[9, 1]),
            ),
            (
                "a later and shorter probe stays behind one that cannot wait",
                &[probe(1, 5, 5, 5)],
                probe(9, 1, 10, 100),
                Some(&[1, 9]),
            ),
            (
                "a later and longer probe stays behind",
                &[probe(1, 1, 5, 100)],
                probe(9, 5, 10, 100),
                Some(&[1, 9]),
            ),
            (
                "an earlier probe that has time stays behind a shorter one",
                &[probe(1, 1, 8, 100)],
                probe(9, 5, 2, 100),
                Some(&[1, 9]),
            ),
            (
                "a probe that would be late behind others is rotated",
                &[probe(1, 5, 5, 5)],
                probe(9, 6, 10, 3),
                None,
            ),
        ];
        for (name, before, new, expected) in cases {
            let mut queue = ElasticQueue::default();
            for &waiting in before {
                queue.insert(queue.waiting.len(), waiting);
            }
            let rotated = queue.place(new, Span::ZERO, now);
            match expected {
                Some(after) => assert_eq!((rotated, order(&queue)), (None, after.to_vec()), "{name}"),
                None => assert_eq!(rotated, Some(new), "{name}"),
            }
        }
    }

    #[test]
    fn overflow_takes_the_tail_and_updates_the_total() {
        let mut queue = ElasticQueue::default();
        for job in 0..5 {
            queue.insert(job as usize, probe(job, 2, 0, 100));
        }
        let mut out = Vec::new();
        queue.overflow(3, Span::from_secs(100), Span::ZERO, &mut out);
        assert_eq!((order(&queue), out.len(), queue.total), (vec![0, 1, 2], 2, Span::from_secs(6)));
        queue.overflow(3, Span::from_secs(5), Span::from_secs(1), &mut out);
        assert_eq!(order(&queue), [0, 1]);
    }

    #[test]
    fn threshold_form_serves_shortest_first_and_forwards_probes_that_would_be_late() {
        let mut queue = ElasticQueue::default();
        for (job, estimate) in [(0, 3), (1, 1), (2, 3), (3, 2)] {
            queue.push_shortest_first(probe(job, estimate, 0, 5));
        }
        assert_eq!(order(&queue), [1, 3, 0, 2]);
        let mut out = Vec::new();
        queue.take_late(|_| Span::ZERO, Time(0), 10, &mut out);
        assert_eq!((order(&queue), out.len()), (vec![1, 3, 0], 1));
        queue.take_late(|_| Span::from_secs(50), Time(6_000_000_000), 10, &mut out);
        assert_eq!(queue.waiting.len(), 3, "expired probes stay in the queue");
        let mut own = ElasticQueue::default();
        [2, 3]
            .into_iter()
            .for_each(|estimate| own.push_shortest_first(probe(estimate, u64::from(estimate), 0, 4)));
        own.take_late(|_| Span::ZERO, Time(0), 10, &mut out);
        assert_eq!(own.waiting.len(), 2, "the longer probe has 2 s ahead");
        own.take_late(|own| own, Time(0), 10, &mut out);
        assert_eq!(order(&own), [2], "with its own work the probe would wait 5 s");
    }
}
