//! The cache: the work a scheduler expects at every node, and its recovery.
//!
//! A restarted scheduler copies the cache of another (section 4.2). It asks two random schedulers and takes the first
//! complete answer. On a timeout it asks two others; when all have been asked, it begins with an empty cache. A
//! scheduler without a cache does not answer. Updates that arrive meanwhile are kept and applied after the copy.
//!
//! The scheduler counts as up from its restart on, so jobs that arrive before it has a cache wait; in the paper it
//! joins only afterwards. Like updates, a request for the cache waits while the scheduler places a job.

use super::config::{Copying, Murmuration, MurmurationSpread, MurmurationTies, MurmurationWait};
use super::disseminator::SeenWindow;
use crate::base::{ActorId, JobId, Span, Time};
use crate::layout::Layout;
use crate::machine::{CacheNote, Effects, Timer};
use crate::message::{BacklogReport, EndUpdate, Gossip, PlacementForm};
use crate::policies::policy::BuildContext;
use crate::roles::min_wait_index::MinWaitIndex;

/// The resource cache of a scheduler.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    waits: MinWaitIndex,
    ties: MurmurationTies,
    clock: bool,
    /// Numbers of the updates already applied; only where an update can arrive twice or a cache can be copied.
    seen: Option<SeenWindow>,
    /// Time at which each node last crashed or came back. Updates decided earlier are outdated. Empty where nodes
    /// cannot crash.
    since: Vec<Time>,
    /// Time of each node's last report, and (`sent`) the number of tasks sent to the node since its start; empty if
    /// nodes do not report.
    reported: Vec<Time>,
    sent: Vec<u32>,
    /// Nodes that are down.
    down: Vec<u32>,
    watched: bool,
    /// Whether a copy of another cache is awaited, so that this cache is void.
    awaited: bool,
    /// The number of this scheduler.
    me: u32,
}

impl Cache {
    /// An empty cache.
    pub(super) fn new(config: &Murmuration, context: BuildContext<'_>) -> Self {
        let layout = context.layout;
        let nodes = layout.nodes();
        let times = |wanted: bool| if wanted { vec![Time::ZERO; nodes as usize] } else { Vec::new() };
        let numbered = config.copy == Copying::Numbered && context.lossy;
        let repaired = config.repair > Span::ZERO;
        let rumours = config.spread != MurmurationSpread::Streams;
        let echoes = repaired || config.spread == MurmurationSpread::Epidemic || rumours && context.lossy;
        let cores = if config.wait == MurmurationWait::PerCore { uneven(layout) } else { Vec::new() };
        Self {
            waits: MinWaitIndex::new(nodes, cores),
            ties: config.ties,
            clock: config.wait == MurmurationWait::Clock,
            seen: (numbered || echoes).then(|| SeenWindow::new(layout.schedulers() + nodes, rumours)),
            since: times(context.lossy),
            reported: times(repaired),
            sent: if repaired { vec![0; nodes as usize] } else { Vec::new() },
            down: Vec::new(),
            watched: context.watched,
            awaited: false,
            me: context.index,
        }
    }

    /// The node to place a task on, and the work expected ahead of the task there, ns.
    pub(super) fn choose(&mut self, fx: &mut Effects<'_>) -> Option<(u32, i64)> {
        let node = match self.ties {
            MurmurationTies::Random => self.waits.pick(fx.rng())?,
            MurmurationTies::Lowest => self.waits.pick_first()?,
        };
        Some((node, self.work(node, fx)))
    }

    /// The work expected at a node, ns.
    fn work(&self, node: u32, fx: &Effects<'_>) -> i64 {
        let work = self.waits.work(node);
        if !self.clock {
            return work;
        }
        let wait = work.saturating_sub(instant(fx.now())).max(0);
        wait.saturating_mul(i64::from(fx.layout().cores(node)))
    }

    /// Adds a task of this scheduler.
    pub(super) fn place(&mut self, node: u32, job: JobId, fx: &Effects<'_>) {
        let estimate = fx.catalog().job_estimate(job).signed();
        self.change(node, estimate, fx.now(), fx.layout());
        self.sent.get_mut(node as usize).into_iter().for_each(|sent| *sent += 1);
    }

    /// Removes a task of this scheduler that was placed at `at` and never reached its node.
    pub(super) fn withdraw(&mut self, node: u32, job: JobId, at: Time, fx: &mut Effects<'_>) {
        self.sent.get_mut(node as usize).into_iter().for_each(|sent| *sent = sent.saturating_sub(1));
        let estimate = fx.catalog().job_estimate(job).signed();
        if self.change(node, -estimate, at, fx.layout()) && self.watched {
            // The scheduler withdraws its own placement: no update carries it, so it has no number.
            fx.note(CacheNote::Learnt {
                node,
                change: -estimate,
                origin: self.me,
                number: 0,
                datagram: false,
            });
        }
    }

    /// Whether a decision at `at` is still valid, because the node has not crashed since.
    pub(super) fn counts(&self, node: u32, at: Time) -> bool {
        self.since.get(node as usize).is_none_or(|&since| at >= since)
    }

    /// Excludes an unreachable node from placement for a while; returns whether it was not excluded before.
    pub(super) fn avoid(&mut self, node: u32) -> bool {
        let new = self.waits.reaches(node);
        self.waits.reach(node, false);
        new
    }

    /// Readmits a node, unless it is down; returns whether it can be chosen.
    pub(super) fn try_again(&mut self, node: u32) -> bool {
        let up = !self.down.contains(&node);
        if up {
            self.waits.reach(node, true);
        }
        up
    }

    /// Applies an update; `false` if it was applied before.
    pub(super) fn receive(&mut self, update: Gossip, fx: &mut Effects<'_>) -> bool {
        if let Some(seen) = &mut self.seen
            && let Some((origin, number)) = update.origin(fx.layout())
            && (origin == self.me || !seen.insert(origin, number, update))
        {
            return false;
        }
        self.apply(update, fx);
        true
    }

    /// Applies an update regardless of its number.
    #[inline]
    fn apply(&mut self, update: Gossip, fx: &mut Effects<'_>) {
        let (origin, number) = update.origin(fx.layout()).unwrap_or((self.me, 0));
        let datagram = update.is_rumour();
        changes(&update, fx, |node, change, at, fx| {
            if self.change(node, change, at, fx.layout()) && self.watched {
                fx.note(CacheNote::Learnt { node, change, origin, number, datagram });
            }
        });
    }

    /// Changes the work expected at a node; `false` if the change was decided before the node's last crash or restart.
    #[inline]
    fn change(&mut self, node: u32, change: i64, at: Time, layout: &Layout) -> bool {
        if !self.counts(node, at) {
            return false;
        }
        if self.clock {
            let free = self.waits.work(node).max(instant(at));
            self.waits.set(node, free.saturating_add(change / i64::from(layout.cores(node))));
        } else {
            self.waits.add(node, change);
        }
        true
    }

    /// Replaces the entry of a node by its report. A report is ignored if it would undo newer updates: a task of this
    /// scheduler that is still on its way, or an end that was already applied.
    pub(super) fn backlog(&mut self, node: u32, report: BacklogReport, fx: &mut Effects<'_>) {
        let BacklogReport { work, at, number, came } = report;
        let Some(reported) = self.reported.get_mut(node as usize) else { return };
        let since = self.since.get(node as usize).copied().unwrap_or(Time::ZERO);
        if at < *reported || at < since || came < self.sent[node as usize] {
            return;
        }
        let origin = fx.layout().schedulers() + node;
        if self.seen.as_mut().is_some_and(|seen| !seen.catch_up(origin, number)) {
            return;
        }
        *reported = at;
        let work = work.signed();
        let value = if self.clock {
            instant(at).saturating_add(work / i64::from(fx.layout().cores(node)))
        } else {
            work
        };
        self.waits.set(node, value);
        if self.watched {
            fx.note(CacheNote::Believes { node, work, at });
        }
    }

    /// Excludes a crashed node from placement until it is back.
    pub(super) fn down(&mut self, node: u32, fx: &mut Effects<'_>) {
        self.waits.reach(node, false);
        self.down.push(node);
        self.renew(node, fx);
    }

    /// Handles the return of a node.
    pub(super) fn up(&mut self, node: u32, fx: &mut Effects<'_>) {
        self.waits.reach(node, true);
        self.down.retain(|&down| down != node);
        self.renew(node, fx);
    }

    fn renew(&mut self, node: u32, fx: &mut Effects<'_>) {
        // The restarted node counts from zero again.
        self.sent.get_mut(node as usize).into_iter().for_each(|sent| *sent = 0);
        self.waits.set(node, 0);
        if let Some(since) = self.since.get_mut(node as usize) {
            *since = fx.now();
        }
        if self.watched && !self.awaited {
            fx.note(CacheNote::Believes { node, work: 0, at: fx.now() });
        }
    }

    /// The parts of an answer: the expected work and the time of the last restart of every node, and the contained
    /// updates of every sender. Times of `wait = "clock"` do not add up, so updates that were applied out of order are
    /// then subtracted only approximately.
    pub(super) fn copy(&self, own: u32, fx: &mut Effects<'_>) -> Vec<Gossip> {
        let nodes = fx.layout().nodes();
        let mut early = vec![0i64; nodes as usize];
        for update in self.seen.iter().flat_map(SeenWindow::early) {
            // The copy does not contain this update, because an earlier update of the same origin is missing.
            changes(update, fx, |node, change, at, _| {
                if self.counts(node, at) {
                    early[node as usize] += change;
                }
            });
        }
        let since = |node: u32| self.since.get(node as usize).copied().unwrap_or(Time::ZERO);
        let entries = (0..nodes).map(|node| {
            let wait = self.waits.work(node).saturating_sub(early[node as usize]);
            Gossip::Entry { round: 0, node, wait, since: since(node) }
        });
        let contained = self.seen.iter().flat_map(SeenWindow::contained).map(|(origin, number)| {
            // The copy contains all updates of this scheduler itself.
            let number = if origin == self.me { own } else { number };
            Gossip::Heard { round: 0, origin, number }
        });
        entries.chain(contained).collect()
    }

    /// Marks this cache as void until a copy arrives.
    pub(super) const fn await_copy(&mut self) {
        self.awaited = true;
    }

    /// Replaces the whole cache by a copy, or by an empty one if there is none.
    pub(super) fn adopt(&mut self, copy: Option<&CacheCopy>, fx: &mut Effects<'_>) {
        self.awaited = false;
        match (&mut self.seen, copy) {
            (Some(seen), Some(copy)) => seen.adopt(&copy.contained),
            (Some(seen), None) => seen.forget(),
            (None, _) => {}
        }
        for node in 0..fx.layout().nodes() {
            // Without a copy, earlier placements are unknown, and updates about their ends must be ignored.
            let (wait, known) = copy.map_or_else(|| (0, fx.now()), |copy| copy.entries[node as usize]);
            // The sender of the copy may not have been notified yet that the node crashed or came back.
            let since = self.since.get_mut(node as usize);
            let stale = since.is_some_and(|since| {
                let stale = known < *since;
                *since = known.max(*since);
                stale
            });
            self.waits.set(node, if stale { 0 } else { wait });
            if self.watched {
                fx.note(CacheNote::Believes { node, work: self.work(node, fx), at: fx.now() });
            }
        }
    }
}

/// An instant as a wait in ns.
fn instant(at: Time) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

/// Calls `change` with node, change of work and time of decision for each part of an update.
#[inline]
fn changes(update: &Gossip, fx: &mut Effects<'_>, mut change: impl FnMut(u32, i64, Time, &mut Effects<'_>)) {
    match *update {
        Gossip::Placed(update) => {
            let estimate = fx.catalog().job_estimate(update.job).signed();
            let each = if update.form == PlacementForm::Withdrawn { -estimate } else { estimate };
            update.nodes().for_each(|node| change(node, each, update.at, fx));
        }
        Gossip::Ended(EndUpdate { node, estimate, since, .. })
        | Gossip::EndedRumour(EndUpdate { node, estimate, since, .. }) => {
            change(node, -estimate.signed(), since, fx);
        }
        Gossip::Ask { .. }
        | Gossip::Answer { .. }
        | Gossip::Entry { .. }
        | Gossip::Heard { .. }
        | Gossip::Backlog(_) => {}
    }
}

/// Number of cores of each node, if the numbers differ; else empty.
fn uneven(layout: &Layout) -> Vec<u32> {
    let cores: Vec<u32> = (0..layout.nodes()).map(|node| layout.cores(node)).collect();
    if cores.windows(2).all(|pair| pair[0] == pair[1]) { Vec::new() } else { cores }
}

/// The tick at which a scheduler asks two others.
pub(super) const ASK: u32 = 2;

/// The tick at which a scheduler sends a delayed answer.
pub(super) const ANSWER: u32 = 3;

/// Number of schedulers asked at once.
const AT_ONCE: usize = 2;

/// A partly received answer.
#[derive(Clone, Debug)]
pub(super) struct CacheCopy {
    from: ActorId,
    /// Number of parts announced.
    parts: Option<u32>,
    came: u32,
    /// The expected work of each node, ns, and the time of its last restart.
    pub(super) entries: Vec<(i64, Time)>,
    /// The number of the first update of each origin that the copy does not contain.
    pub(super) contained: Vec<(u32, u32)>,
}

/// A scheduler without a cache.
#[derive(Clone, Debug)]
pub(super) struct Boot {
    /// The epoch of this scheduler; answers to an earlier epoch are ignored.
    round: u32,
    timeout: Span,
    /// Schedulers not asked yet; the next ones are at the end.
    left: Vec<ActorId>,
    answers: Vec<CacheCopy>,
    /// Updates that arrived while the scheduler had no cache.
    pub(super) update: Vec<Gossip>,
}

impl Boot {
    /// Begins epoch `round`; `others` are the other schedulers in random order.
    pub(super) const fn new(round: u32, timeout: Span, others: Vec<ActorId>) -> Self {
        Self { round, timeout, left: others, answers: Vec::new(), update: Vec::new() }
    }

    /// Asks the next two schedulers that are up; returns `false` if none is left.
    pub(super) fn ask(&mut self, is_up: impl Fn(ActorId) -> bool, fx: &mut Effects<'_>) -> bool {
        let mut asked = 0;
        while asked < AT_ONCE
            && let Some(other) = self.left.pop()
        {
            if is_up(other) {
                asked += 1;
                fx.recover(other, Gossip::Ask { round: self.round });
            }
        }
        if asked > 0 {
            fx.arm(Timer::Tick(ASK), self.timeout);
        }
        asked > 0
    }

    /// Adds a part of an answer; returns the answer when it is complete.
    pub(super) fn answer(&mut self, from: ActorId, part: Gossip, nodes: u32) -> Option<CacheCopy> {
        let (Gossip::Answer { round, .. } | Gossip::Entry { round, .. } | Gossip::Heard { round, .. }) = part
        else {
            return None;
        };
        if round != self.round {
            return None;
        }
        let at = self.answers.iter().position(|copy| copy.from == from).unwrap_or_else(|| {
            let entries = vec![(0, Time::ZERO); nodes as usize];
            self.answers.push(CacheCopy { from, parts: None, came: 0, entries, contained: Vec::new() });
            self.answers.len() - 1
        });
        let copy = &mut self.answers[at];
        match part {
            Gossip::Answer { parts, .. } => copy.parts = Some(parts),
            Gossip::Entry { node, wait, since, .. } => {
                copy.came += 1;
                copy.entries[node as usize] = (wait, since);
            }
            Gossip::Heard { origin, number, .. } => {
                copy.came += 1;
                copy.contained.push((origin, number));
            }
            // Other messages have returned above.
            _ => {}
        }
        (copy.parts == Some(copy.came)).then(|| self.answers.swap_remove(at))
    }
}

/// Answers to other schedulers, with their artificial delay.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    /// Upper bound of the artificial delay before an answer is sent.
    most: Span,
    /// Delayed answers: due time, receiver, the receiver's epoch, parts.
    delayed: Vec<(Time, ActorId, u32, Vec<Gossip>)>,
}

impl Answers {
    pub(super) const fn new(most: Span) -> Self {
        Self { most, delayed: Vec::new() }
    }

    /// Answers with a copy, at once or after the artificial delay.
    pub(super) fn give(&mut self, to: ActorId, round: u32, parts: Vec<Gossip>, fx: &mut Effects<'_>) {
        if self.most == Span::ZERO {
            return send(to, round, parts, fx);
        }
        let after = self.most.scale(fx.rng().unit());
        self.delayed.push((fx.now() + after, to, round, parts));
        fx.arm(Timer::Tick(ANSWER), after);
    }

    /// Sends the answers whose delay has expired.
    pub(super) fn due(&mut self, fx: &mut Effects<'_>) {
        let (due, delayed) =
            std::mem::take(&mut self.delayed).into_iter().partition(|entry| entry.0 <= fx.now());
        self.delayed = delayed;
        for (_, to, round, parts) in due {
            send(to, round, parts, fx);
        }
    }
}

/// Sends the parts of an answer, marked with `round`.
fn send(to: ActorId, round: u32, parts: Vec<Gossip>, fx: &mut Effects<'_>) {
    fx.recover(to, Gossip::Answer { round, parts: parts.len() as u32 });
    for part in parts {
        let part = match part {
            Gossip::Entry { node, wait, since, .. } => Gossip::Entry { round, node, wait, since },
            Gossip::Heard { origin, number, .. } => Gossip::Heard { round, origin, number },
            other => other,
        };
        fx.recover(to, part);
    }
}
