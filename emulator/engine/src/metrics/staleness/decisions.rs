//! Decisions by caches: the updates that schedulers lacked, and the cost of their choices.

use volary_actors::base::{Address, Purpose, Time};
use volary_actors::layout::Layout;

use super::super::gauge::Gauge;
use super::view::Views;
use super::waits::{Rank, TrueWaits};
use crate::results::{DecisionRow, Spread};

/// Maximum number of decisions whose regret is kept; at least half of this number are kept if there are enough.
const SAMPLE: usize = 4096;

/// The decision to place a task on a node, before it takes effect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision {
    pub(super) now: Time,
    pub(super) node: u32,
    /// The task's rank in the node's order of service.
    pub(super) rank: Rank,
    /// The wait that the scheduler expects there, s.
    pub(super) believed: f64,
}

/// The decisions of watched schedulers.
#[derive(Debug)]
pub(super) struct Decisions {
    pub(super) waits: TrueWaits,
    all: u64,
    out_of_sync: u64,
    conflicts: u64,
    regrets: Gauge,
    address: Address,
    /// One random decision of each group of `stride` is sampled; `next` is the number of the next sampled decision.
    stride: u64,
    next: u64,
    pub(super) rows: Vec<DecisionRow>,
}

impl Decisions {
    pub(super) fn new(layout: &Layout, cached: u32, seed: u64) -> Self {
        Self {
            waits: TrueWaits::new(layout, cached),
            all: 0,
            out_of_sync: 0,
            conflicts: 0,
            regrets: Gauge::default(),
            address: Address::new(seed, Purpose::Sample).at(0),
            stride: 1,
            next: 0,
            rows: Vec::new(),
        }
    }

    /// Measures a decision of the scheduler of a view, before it takes effect.
    pub(super) fn decided(&mut self, decision: Decision, by: usize, views: &Views) {
        let lack = views.lack(by, decision.node, decision.now);
        self.out_of_sync += u64::from(lack.versions > 0);
        self.conflicts += u64::from(lack.placement);
        if self.all == self.next {
            self.sample(decision, by, views);
        }
        self.all += 1;
    }

    fn sample(&mut self, decision: Decision, by: usize, views: &Views) {
        let Decision { now, node, rank, believed } = decision;
        let wait = self.waits.wait(node, rank, now);
        let (best, least) = self.waits.least(rank, now, wait).unwrap_or((node, wait));
        let regret = wait.saturating_sub(least).as_secs_f64();
        self.regrets.add(regret, self.stride as u32);
        let [here, there] = [node, best].map(|node| views.lack(by, node, now));
        self.rows.push(DecisionRow {
            time: now.as_secs_f64(),
            scheduler: views.all[by].scheduler,
            node,
            best,
            age: here.age,
            age_best: there.age,
            information: here.information.unwrap_or(f64::NAN),
            information_best: there.information.unwrap_or(f64::NAN),
            versions: here.versions,
            versions_best: there.versions,
            believed,
            wait: wait.as_secs_f64(),
            regret,
        });
        let mut interval = self.all / self.stride + 1;
        if self.rows.len() == SAMPLE {
            self.stride *= 2;
            interval /= 2;
            let stays = |(pair, number): (&[DecisionRow], u64)| {
                pair[usize::from(self.address.at(self.stride).at(number).at(1).unit() < 0.5)]
            };
            self.rows = self.rows.chunks_exact(2).zip(0..).map(stays).collect();
        }
        let within = self.address.at(self.stride).at(interval).unit() * self.stride as f64;
        self.next = interval * self.stride + within as u64;
    }

    /// Share of decisions that were out of sync, share of decisions in conflict, and regret of decisions (s).
    pub(super) fn summary(&self) -> (f64, f64, Spread) {
        let share = |part: u64| part as f64 / self.all as f64;
        (share(self.out_of_sync), share(self.conflicts), self.regrets.spread())
    }
}

#[cfg(test)]
mod tests {
    use volary_actors::base::{JobId, Span};

    use super::*;

    /// Ten thousand decisions, a second apart, choose a node with a wait of ten seconds beside an idle node. At least
    /// two thousand decisions are kept, one of each group of equal size.
    #[test]
    fn decisions_are_sampled_evenly() {
        let layout = Layout::new(1, 0, [1, 1]);
        let (views, rank) = (Views::new(1, 2, 2), (0, Time::ZERO));
        let mut decisions = Decisions::new(&layout, 2, 1);
        decisions.waits.placed(0, JobId(0).task(0), rank, Span::from_secs(10));
        for second in 0..10_000 {
            let now = Time::ZERO + Span::from_secs(second);
            decisions.decided(Decision { now, node: 0, rank, believed: 0.0 }, 0, &views);
        }
        let (stride, regrets) = (decisions.stride, decisions.summary().2);
        assert_eq!((stride, regrets.mean, regrets.max), (4, 10.0, 10.0));
        let intervals: Vec<u64> = decisions.rows.iter().map(|row| row.time as u64 / stride).collect();
        assert_eq!(intervals, (0..2500).collect::<Vec<_>>());
        assert!(decisions.rows.iter().all(|row| (row.best, row.wait, row.regret) == (1, 10.0, 10.0)));
    }
}
