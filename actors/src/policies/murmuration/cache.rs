//! The resource cache of a scheduler: the expected wait of every node (section 4.1).
//!
//! E_n is the sum of the estimates x of all tasks t that are queued or executed at node n. A placement adds its
//! estimate and an end subtracts it; the time for which a task has run so far is not subtracted. The sum is signed,
//! because the update of an end may overtake the update of the placement.

use super::config::{Copying, Murmuration, MurmurationSpread, MurmurationTies, MurmurationWait};
use super::numbering::SeenWindow;
use crate::base::{JobId, Span, Time};
use crate::layout::Layout;
use crate::machine::{CacheNote, Effects};
use crate::message::{EndUpdate, Gossip, PlacementForm, PlacementUpdate};
use crate::policies::policy::BuildContext;
use crate::roles::min_wait_index::MinWaitIndex;

/// The resource cache of a scheduler.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// E_n of each node.
    pub(super) waits: MinWaitIndex,
    ties: MurmurationTies,
    pub(super) clock: bool,
    /// Numbers of the updates already applied; only where an update can arrive twice or a cache can be copied.
    pub(super) seen: Option<SeenWindow>,
    /// Time at which each node last crashed or came back. Updates decided earlier are outdated. Empty where nodes
    /// cannot crash.
    pub(super) renewed: Vec<Time>,
    /// Time of each node's last report, and number of tasks sent to the node since its start; empty if nodes do not
    /// report.
    pub(super) reports: Vec<(Time, u32)>,
    pub(super) watched: bool,
    /// Number of this scheduler.
    pub(super) me: u32,
}

impl Cache {
    /// An empty cache.
    pub(super) fn new(config: &Murmuration, context: BuildContext<'_>) -> Self {
        let layout = context.layout;
        let nodes = layout.nodes();
        let datagrams = config.spread != MurmurationSpread::Streams;
        let repaired = config.repair > Span::ZERO;
        let repeats = config.spread == MurmurationSpread::Epidemic
            || context.lossy && (datagrams || config.copy == Copying::Numbered);
        let cores = if config.wait == MurmurationWait::PerCore { uneven(layout) } else { Vec::new() };
        Self {
            waits: MinWaitIndex::new(nodes, cores),
            ties: config.ties,
            clock: config.wait == MurmurationWait::Clock,
            seen: (repaired || repeats).then(|| SeenWindow::new(layout.schedulers() + nodes, datagrams)),
            renewed: vec![Time::ZERO; if context.lossy { nodes as usize } else { 0 }],
            reports: vec![(Time::ZERO, 0); if repaired { nodes as usize } else { 0 }],
            watched: context.watched,
            me: context.index,
        }
    }

    /// Lines 8 and 9: the node with the smallest expected wait, and the work expected ahead of the next task there, ns.
    /// `None` if no node can be reached. Every task fits on every node.
    pub(super) fn choose(&mut self, fx: &mut Effects<'_>) -> Option<(u32, i64)> {
        let node = match self.ties {
            MurmurationTies::Random => self.waits.pick(fx.rng())?,
            MurmurationTies::Lowest => self.waits.pick_first()?,
        };
        Some((node, self.work(node, fx)))
    }

    /// The work expected at a node, ns.
    pub(super) fn work(&self, node: u32, fx: &Effects<'_>) -> i64 {
        let work = self.waits.work(node);
        if !self.clock {
            return work;
        }
        let wait = work.saturating_sub(instant(fx.now())).max(0);
        wait.saturating_mul(i64::from(fx.layout().cores(node)))
    }

    /// Line 11, UpdateLocCache: adds a task of this scheduler.
    pub(super) fn add_placed(&mut self, node: u32, job: JobId, fx: &Effects<'_>) {
        let estimate = fx.catalog().job_estimate(job).signed();
        self.change(node, estimate, fx.now(), fx.layout());
        if let Some((_, sent)) = self.reports.get_mut(node as usize) {
            *sent += 1;
        }
    }

    /// Lines 16, 17, 20 and 21: applies an update; returns `false` if it was applied before.
    #[inline]
    pub(super) fn receive(&mut self, update: Gossip, fx: &mut Effects<'_>) -> bool {
        let (origin, number) = update.origin(fx.layout()).unwrap_or((self.me, 0));
        if let Some(seen) = &mut self.seen
            && (origin == self.me || !seen.insert(origin, number, update))
        {
            return false;
        }
        let datagram = update.is_rumour();
        let (nodes, change, at) = changes(&update, fx);
        for node in nodes {
            if self.change(node, change, at, fx.layout()) && self.watched {
                fx.note(CacheNote::Learnt { node, change, origin, number, datagram });
            }
        }
        true
    }

    /// Changes the work expected at a node; `false` if the change was decided before the node's last crash or restart.
    #[inline]
    pub(super) fn change(&mut self, node: u32, change: i64, at: Time, layout: &Layout) -> bool {
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

    /// Whether a decision at `at` is still valid, because the node has not crashed since.
    #[inline]
    pub(super) fn counts(&self, node: u32, at: Time) -> bool {
        at >= self.renewed(node)
    }

    /// Time at which a node last crashed or came back.
    #[inline]
    pub(super) fn renewed(&self, node: u32) -> Time {
        self.renewed.get(node as usize).copied().unwrap_or(Time::ZERO)
    }
}

/// An instant as a wait in ns.
pub(super) fn instant(at: Time) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

/// The nodes of an update, the change of the work expected at each, and the time of the decision.
#[inline]
pub(super) fn changes(update: &Gossip, fx: &Effects<'_>) -> (impl Iterator<Item = u32> + use<>, i64, Time) {
    let (nodes, change, at) = match *update {
        Gossip::Placed(PlacementUpdate { job, nodes, at, form, .. }) => {
            let estimate = fx.catalog().job_estimate(job).signed();
            (nodes, if form == PlacementForm::Withdrawn { -estimate } else { estimate }, at)
        }
        Gossip::Ended(EndUpdate { node, estimate, counts_from, .. })
        | Gossip::EndedRumour(EndUpdate { node, estimate, counts_from, .. }) => {
            ([node, PlacementUpdate::NO_NODE], -estimate.signed(), counts_from)
        }
        // Other messages are not updates.
        _ => ([PlacementUpdate::NO_NODE; 2], 0, Time::ZERO),
    };
    (PlacementUpdate::unpadded(nodes), change, at)
}

/// Number of cores of each node, if the numbers differ; else empty.
fn uneven(layout: &Layout) -> Vec<u32> {
    let cores: Vec<u32> = (0..layout.nodes()).map(|node| layout.cores(node)).collect();
    if cores.windows(2).all(|pair| pair[0] == pair[1]) { Vec::new() } else { cores }
}
