//! Copies on shared nodes: their start, shares and end.

use volary_actors::base::{Span, Time};

use super::integral::{CoreRate, WorkIntegral};
use super::shares::{Change, CopyShare, Next, SharedUse, Shares};
use super::state::{Cores, NEVER, Run};
use crate::workload::Segment;

impl Cores {
    /// Makes the nodes shared: the copies of node n share its CPU, `cpu[n]` thousandths of a core. Speed and
    /// interference change the work that a copy does with its CPU, not the CPU that it is given: a copy that is given
    /// its full demand is as fast as on a core of its own.
    pub fn with_shares(mut self, cpu: Vec<u32>) -> Self {
        self.plain = false;
        self.shares = Some(Box::new(Shares::new(cpu, self.table.cores())));
        self
    }

    /// Whether nodes are shared.
    pub const fn is_shared(&self) -> bool {
        self.shares.is_some()
    }

    /// Begins a copy on a core of a shared node, with this `request` in thousandths of a core. `left` is the part of
    /// its `work` that it has yet to do, and `segment` its use at that point. The copy does nothing until the CPU is
    /// [shared out](Self::share_out).
    ///
    /// # Panics
    /// When the core is busy, or nodes are not shared.
    pub fn begin_shared(
        &mut self,
        core: u32,
        now: Time,
        (work, left): (Span, Span),
        request: u32,
        segment: Segment,
    ) {
        assert!(!self.is_busy(core), "core {core} runs a copy already");
        let begin = self.begin(core, now.0);
        self.remember(core, Time(begin));
        self.runs[core as usize] = Run { since: now.0, work: left.0, due: NEVER };
        let node = self.table.node(core);
        self.shares_mut().begin(core, node, CopyShare::new(begin, work, left, request, segment));
    }

    /// Changes the use of the copy of a core at `now` to the segment that `next` returns for the work that the copy
    /// has done. The shares of its node are out of date until [`share_out`](Self::share_out).
    pub fn use_as(&mut self, core: u32, now: Time, next: impl FnOnce(Span) -> Segment) {
        let left = self.settle(core, now);
        let slot = &mut self.shares_mut().slots[core as usize];
        slot.use_as(next(Span(slot.work.saturating_sub(left.0))));
    }

    /// Notes that the shares of a node are to be computed again; returns whether that was noted already.
    pub fn note_sharing(&mut self, node: u32) -> bool {
        std::mem::replace(&mut self.shares_mut().due[node as usize], true)
    }

    /// Shares out the CPU of a node among its copies at `now`, and appends what changes to `changes`.
    pub fn share_out(&mut self, node: u32, now: Time, changes: &mut Vec<Change>) {
        let shares = self.shares_mut();
        shares.due[node as usize] = false;
        let copies = shares.water_fill(node);
        for i in 0..copies {
            let shares = self.shares();
            let (core, given) = (shares.busy[node as usize][i], shares.given[i]);
            let slot = &shares.slots[core as usize];
            if slot.given == given && !slot.changed {
                continue;
            }
            self.settle(core, now);
            let slot = &mut self.shares_mut().slots[core as usize];
            slot.take(given);
            let (claim, memory, before) = (slot.claim, slot.memory, slot.next);
            let throttled = slot.share < 1.0;
            let next = self.time(core);
            self.shares_mut().total.throttles += u64::from(throttled);
            changes.push(Change {
                core,
                next: (next != before).then_some(next),
                demand: claim.demand,
                given: given as u32,
                memory,
            });
        }
    }

    /// Computes the next event of the copy of a core and its time. Returns them if they have changed.
    pub fn retime_shared(&mut self, core: u32) -> Option<(Next, u64)> {
        if !self.is_busy(core) {
            return None;
        }
        let before = self.shares().slots[core as usize].next;
        let next = self.time(core);
        (next != before).then_some(next)
    }

    /// Memory that the copies of a shared node use, bytes.
    ///
    /// # Panics
    /// When nodes are not shared.
    pub fn memory(&self, node: u32) -> u64 {
        let shares = self.shares();
        shares.busy[node as usize].iter().map(|&core| shares.slots[core as usize].memory).sum()
    }

    /// Use of the shared nodes by copies until `now`; `None` if nodes are not shared.
    pub fn shared_use(&self, now: Time) -> Option<SharedUse> {
        let shares = self.shares.as_ref()?;
        let mut total = shares.total;
        for &core in shares.busy.iter().flatten() {
            total.count_running(&shares.slots[core as usize], self.progress(core, now));
        }
        Some(total)
    }

    /// The rate of a core of its own, or of the share that the copy of a core has of a node.
    pub(super) fn core_rate(&self, core: u32) -> CoreRate {
        let speed = self.table.speed(core);
        CoreRate::of(self.shares.as_ref().map_or(speed, |shares| speed * shares.share(core)))
    }

    /// The progress of the copy of a core of a shared node at `now`.
    pub(super) fn progress(&self, core: u32, now: Time) -> WorkIntegral {
        let known = self.shares().slots[core as usize].integral;
        if known.at >= now.0 {
            return known;
        }
        self.work(core, self.remembered(core, Time(known.at)), known, now.0)
    }

    /// Takes the copy of a core of a shared node off it at `now`, `useful` if it ran to its end. Returns the work left.
    pub(super) fn leave(&mut self, core: u32, now: Time, useful: bool) -> Span {
        let left = self.settle(core, now);
        let node = self.table.node(core);
        self.shares_mut().end(core, node, useful);
        left
    }

    /// Counts the work of the copy of a core until `now`, after which its share may change. Returns the work left.
    fn settle(&mut self, core: u32, now: Time) -> Span {
        let progress = self.progress(core, now);
        self.shares_mut().settle(core, progress);
        self.remember(core, Time(progress.at));
        progress.left()
    }

    /// Computes and stores the next event of the copy of a core.
    fn time(&mut self, core: u32) -> (Next, u64) {
        let slot = self.shares().slots[core as usize];
        let begin = slot.integral.at;
        let cursor = self.remembered(core, Time(begin));
        let ends = |integral: WorkIntegral| self.work(core, cursor, integral, u64::MAX).at;
        let next = if slot.until < slot.work {
            (Next::Segment, ends(slot.integral.until_left(Span(slot.work - slot.until))))
        } else {
            (Next::Done, ends(slot.integral))
        };
        self.shares_mut().slots[core as usize].next = next;
        self.runs[core as usize].due = if next.0 == Next::Done { next.1 } else { NEVER };
        next
    }

    fn shares(&self) -> &Shares {
        self.shares.as_ref().expect("nodes are shared")
    }

    fn shares_mut(&mut self) -> &mut Shares {
        self.shares.as_mut().expect("nodes are shared")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use volary_netem::Windows;

    use super::*;
    use crate::cores::{CoreTable, Interference};

    const SECOND: u64 = 1_000_000_000;

    fn segment(cpu: u32, until_s: u64) -> Segment {
        Segment { cpu, memory: 0, until: if until_s == 0 { Span::MAX } else { Span::from_secs(until_s) } }
    }

    fn node(cpu: u32, pods: u32) -> Cores {
        Cores::new(None, CoreTable::equal(1, pods), Windows::default(), 1).with_shares(vec![cpu])
    }

    fn out(cores: &mut Cores, now: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        cores.share_out(0, Time(now), &mut changes);
        changes
    }

    fn begin(cores: &mut Cores, core: u32, now: u64, work: Span, request: u32, segment: Segment) {
        cores.begin_shared(core, Time(now), (work, work), request, segment);
    }

    /// A segment of 15 s at 4 cores, given 2, takes 30 s.
    #[test]
    fn throttling_stretches_a_segment() {
        let mut cores = node(2000, 2);
        begin(&mut cores, 0, 0, Span::from_secs(20), 1000, segment(4000, 15));
        let [change] = out(&mut cores, 0)[..] else { panic!() };
        assert_eq!(change.next, Some((Next::Segment, 30 * SECOND)));
        assert_eq!((change.demand, change.given), (4000, 2000));
        cores.use_as(0, Time(30 * SECOND), |_| segment(1000, 0));
        let [change] = out(&mut cores, 30 * SECOND)[..] else { panic!() };
        assert_eq!(change.next, Some((Next::Done, 35 * SECOND)), "the rest is not throttled");
        cores.finished(0, Time(35 * SECOND));
        let used = cores.shared_use(Time(35 * SECOND)).unwrap();
        let (time, throttled) = (u128::from(35 * SECOND), u128::from(30 * SECOND));
        assert_eq!((used.time, used.throttled, used.throttles), (time, throttled, 1));
        assert_eq!(used.used, u128::from(65_000 * SECOND), "15 s of 4 cores and 5 s of one");
        assert_eq!((used.useful, used.in_progress), (used.used, 0));
        assert_eq!(used.given, used.used, "nothing slows the CPU down");
    }

    /// A run that is cut counts the work of its open copies, as neither useful nor wasted.
    #[test]
    fn use_counts_before_its_copy_ends() {
        let mut cores = node(2000, 2);
        begin(&mut cores, 0, 0, Span::from_secs(60), 1000, segment(4000, 0));
        out(&mut cores, 0);
        let used = cores.shared_use(Time(30 * SECOND)).unwrap();
        assert_eq!((used.used, used.useful), (u128::from(60_000 * SECOND), 0));
        assert_eq!((used.in_progress, used.given), (used.used, used.used));
        assert_eq!(used.throttled, u128::from(30 * SECOND));
        begin(&mut cores, 1, 30 * SECOND, Span::from_secs(60), 1000, segment(4000, 0));
        out(&mut cores, 30 * SECOND);
        let used = cores.shared_use(Time(30 * SECOND)).unwrap();
        assert_eq!(used.in_progress, u128::from(60_000 * SECOND), "the same after its share has changed");
        cores.stop(0, Time(30 * SECOND));
        let used = cores.shared_use(Time(40 * SECOND)).unwrap();
        assert_eq!((used.used - used.in_progress, used.useful), (u128::from(60_000 * SECOND), 0), "lost");
    }

    /// A copy alone on a node runs as on a core of its own, whatever it uses.
    #[test]
    fn one_copy_alone_has_a_core() {
        let mut cores = node(8000, 110);
        begin(&mut cores, 7, 5, Span(12_345_678), 1, segment(3000, 0));
        let [change] = out(&mut cores, 5)[..] else { panic!() };
        assert_eq!(change.next, Some((Next::Done, 12_345_683)));
        assert_eq!(out(&mut cores, 9), [], "nothing has changed");
        assert_eq!(cores.left(7, Time(1_000_005)), Span(11_345_678));
        assert_eq!(cores.stop(7, Time(2_000_005)), Span(10_345_678));
        assert!(!cores.is_busy(7));
        assert_eq!(cores.shared_use(Time(2_000_005)).unwrap().useful, 0);
    }

    /// Equal copies share the processor: of two, the second begun when the first has a second left, both take twice
    /// as long while both run.
    #[test]
    fn equal_copies_share_the_processor() {
        let mut cores = node(1000, 2);
        begin(&mut cores, 0, 0, Span::from_secs(3), 1000, segment(1000, 0));
        out(&mut cores, 0);
        begin(&mut cores, 1, 2 * SECOND, Span::from_secs(3), 1000, segment(1000, 0));
        let changes = out(&mut cores, 2 * SECOND);
        let next: Vec<_> =
            changes.iter().map(|change| (change.core, change.next.unwrap().1 / SECOND)).collect();
        assert_eq!(next, [(0, 4), (1, 8)]);
        cores.finished(0, Time(4 * SECOND));
        let [change] = out(&mut cores, 4 * SECOND)[..] else { panic!() };
        assert_eq!((change.core, change.next), (1, Some((Next::Done, 6 * SECOND))));
    }

    /// Speed and interference slow down the work of a share, not the share.
    #[test]
    fn interference_slows_a_share_down() {
        let table: Interference =
            toml::from_str("bernoulli = { slot = \"1s\", probability = 1.0, slowdown = 2.0 }").unwrap();
        let profile = table.load(std::path::Path::new("."), |_| unreachable!()).unwrap();
        let table = CoreTable::equal(1, 2).with_speeds(vec![0.5; 2]);
        let mut cores = Cores::new(Some(&profile), table, Windows::default(), 1).with_shares(vec![1000]);
        for core in 0..2 {
            begin(&mut cores, core, 0, Span::from_secs(1), 1000, segment(1000, 0));
        }
        let changes = out(&mut cores, 0);
        assert!(changes.iter().all(|change| change.next == Some((Next::Done, 8 * SECOND))), "{changes:?}");
    }

    proptest! {
        /// Work is conserved: however often shares change, a copy has done, when it is due, all of its work, to the
        /// nanosecond, and the CPU-time of all copies is what their work needs.
        #[test]
        fn work_is_conserved(
            cpu in 500u32..4000,
            copies in prop::collection::vec((0u64..5_000, 1u64..4_000, 1u32..3000, 1u32..3000), 1..12),
        ) {
            let mut cores = node(cpu, copies.len() as u32);
            let mut begins: Vec<_> = copies.iter().enumerate().map(|(i, c)| (c.0 * 1_000_003, i as u32)).collect();
            begins.sort_unstable();
            let work = |core: u32| Span(copies[core as usize].1 * 1_000_007);
            let mut due: Vec<Option<u64>> = vec![None; copies.len()];
            let (mut ended, mut needed) = (0, 0u128);
            let mut begins = begins.into_iter().peekable();
            while ended < copies.len() {
                let end = (0..).zip(&due).filter_map(|(core, due)| Some(((*due)?, core))).min();
                let now = match (begins.peek().copied(), end) {
                    (Some((at, core)), end) if end.is_none_or(|end| at < end.0) => {
                        begins.next();
                        let (_, _, request, demand) = copies[core as usize];
                        begin(&mut cores, core, at, work(core), request, segment(demand, 0));
                        at
                    }
                    (_, Some((at, core))) => {
                        prop_assert_eq!(cores.left(core, Time(at)), Span::ZERO);
                        prop_assert!(cores.left(core, Time(at - 1)) <= Span(2));
                        cores.finished(core, Time(at));
                        needed += u128::from(copies[core as usize].3) * u128::from(work(core).0);
                        due[core as usize] = None;
                        ended += 1;
                        at
                    }
                    (None, None) | (Some(_), None) => unreachable!(),
                };
                for change in out(&mut cores, now) {
                    if let Some((_, at)) = change.next {
                        due[change.core as usize] = Some(at);
                    }
                }
            }
            let used = cores.shared_use(Time::MAX).unwrap();
            prop_assert_eq!((used.used, used.useful), (needed, needed));
        }
    }
}
