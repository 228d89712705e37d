//! Shared nodes: copies that share the CPU of their node, and the CPU and memory that they use.
//!
//! A copy on a shared node passes through segments. Each segment has a duration, the CPU that the copy would use (its
//! *demand*) and memory. The node's CPU is divided in proportion to requests. CPU that a copy does not need goes to the
//! other copies in proportion to their requests, until no copy needs more or no CPU is left (Park's thesis, section
//! 5.4.1). A copy that gets less than its demand does proportionally less work per second, so its segments take longer.
//! Shares change only when a copy begins, ends or reaches another segment.

use volary_actors::base::Span;

use super::integral::WorkIntegral;
use crate::workload::Segment;

/// A copy's claim on the CPU of its node, in thousandths of a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Claim {
    /// Weight of its share of a busy node, at least 1.
    pub(super) request: u32,
    /// CPU that the copy would use.
    pub(super) demand: u32,
}

/// Shares out `cpu` thousandths of a core among copies. `given` receives the share of each copy, in thousandths;
/// `order` is a reused buffer.
pub(super) fn water_fill(cpu: u32, claims: &[Claim], given: &mut Vec<f64>, order: &mut Vec<u32>) {
    given.clear();
    given.extend(claims.iter().map(|claim| f64::from(claim.demand)));
    if claims.iter().map(|claim| u64::from(claim.demand)).sum::<u64>() <= u64::from(cpu) {
        return;
    }
    // Copies are visited in the order of demand over request. A copy is satisfied if the level reaches its demand.
    let claim = |i: u32| claims[i as usize];
    let ratio = |a: u32, b: u32| {
        let cross = |x: u32, y: u32| u64::from(claim(x).demand) * u64::from(claim(y).request);
        cross(a, b).cmp(&cross(b, a))
    };
    order.clear();
    order.extend(0..claims.len() as u32);
    order.sort_unstable_by(|&a, &b| ratio(a, b).then(a.cmp(&b)));
    let (mut left, mut requests) =
        (u64::from(cpu), claims.iter().map(|claim| u64::from(claim.request)).sum::<u64>());
    let mut level = None;
    for &i in order.iter() {
        let Claim { request, demand } = claim(i);
        let reached = level.is_none()
            && u128::from(demand) * u128::from(requests) <= u128::from(left) * u128::from(request);
        if reached {
            left -= u64::from(demand);
            requests -= u64::from(request);
        } else {
            let level = *level.get_or_insert(left as f64 / requests as f64);
            given[i as usize] = f64::from(request) * level;
        }
    }
}

/// The next event of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The copy reaches its next segment.
    Segment,
    /// The copy has done all of its work.
    Done,
}

/// A change to a copy when the CPU of its node was [shared out](super::Cores::share_out).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// The core that runs the copy.
    pub core: u32,
    /// The copy's next event, and its time in nanoseconds; `None` if unchanged.
    pub next: Option<(Next, u64)>,
    /// The CPU that the copy would use, in thousandths of a core.
    pub demand: u32,
    /// The CPU that the copy is given, in thousandths of a core, rounded down.
    pub given: u32,
    /// The memory that the copy uses, in bytes.
    pub memory: u64,
}

/// Use of shared nodes by copies, in units that can be added in any order.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct SharedUse {
    /// Run time of all copies, ns.
    pub time: u128,
    /// The part of `time` in which copies were given less CPU than they would have used, ns.
    pub throttled: u128,
    /// Number of throttling events: each change that leaves a copy with less CPU than it would use.
    pub throttles: u64,
    /// CPU-time of all copies, thousandths of a core × ns: their work, as time on a healthy reference core.
    pub used: u128,
    /// The part of `used` that belongs to copies that ran to their end.
    pub useful: u128,
    /// The part of `used` that belongs to copies that still run.
    pub in_progress: u128,
    /// CPU that copies were given, thousandths of a core × ns. Copies do less work with it on a core that is slow or
    /// degraded.
    pub given: u128,
}

impl SharedUse {
    /// Counts the work of a copy since its share last changed, up to `progress`. Returns its CPU-time.
    fn count(&mut self, copy: &CopyShare, progress: WorkIntegral) -> u128 {
        let time = progress.at.saturating_sub(copy.integral.at);
        self.time += u128::from(time);
        if copy.share < 1.0 {
            self.throttled += u128::from(time);
        }
        self.given += (copy.given * time as f64) as u128;
        let done = copy.integral.left().0 - progress.left().0;
        let used = u128::from(done) * u128::from(copy.claim.demand);
        self.used += used;
        used
    }

    /// Counts a copy that still runs.
    pub(super) fn count_running(&mut self, copy: &CopyShare, progress: WorkIntegral) {
        self.in_progress += copy.used + self.count(copy, progress);
    }

    /// Subtracts the use until an earlier time. Of the remaining work, the part that is not wasted is in progress (at
    /// most as much as now) or else useful.
    pub(crate) fn subtract(&mut self, earlier: &Self) {
        let wasted = |used: &Self| used.used.saturating_sub(used.useful).saturating_sub(used.in_progress);
        let wasted = wasted(self).saturating_sub(wasted(earlier));
        self.time -= earlier.time;
        self.throttled -= earlier.throttled;
        self.throttles -= earlier.throttles;
        self.used -= earlier.used;
        self.in_progress = self.in_progress.min(self.used.saturating_sub(wasted));
        self.useful = self.used.saturating_sub(wasted).saturating_sub(self.in_progress);
        self.given = self.given.saturating_sub(earlier.given);
    }

    /// Adds the use of other nodes.
    pub const fn add(&mut self, other: &Self) {
        // The sums saturate because other hosts report these numbers.
        self.time = self.time.saturating_add(other.time);
        self.throttled = self.throttled.saturating_add(other.throttled);
        self.throttles = self.throttles.saturating_add(other.throttles);
        self.used = self.used.saturating_add(other.used);
        self.useful = self.useful.saturating_add(other.useful);
        self.in_progress = self.in_progress.saturating_add(other.in_progress);
        self.given = self.given.saturating_add(other.given);
    }
}

/// A copy on a shared node.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyShare {
    /// The copy's progress when its share last changed.
    pub(super) integral: WorkIntegral,
    /// All of the copy's work, ns.
    pub(super) work: u64,
    pub(super) claim: Claim,
    /// CPU that the copy is given, thousandths of a core.
    pub(super) given: f64,
    /// The part of its demand that the copy is given.
    pub(super) share: f64,
    /// Memory that the copy uses, bytes.
    pub(super) memory: u64,
    /// Work that is done at the end of the current segment, ns.
    pub(super) until: u64,
    pub(super) next: (Next, u64),
    /// CPU-time so far, thousandths of a core × ns.
    pub(super) used: u128,
    /// Whether the copy's use has changed since the CPU was last shared out.
    pub(super) changed: bool,
}

/// CPU of shared nodes, and the copies on them.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    /// Thousandths of a core of each node.
    pub(super) cpu: Vec<u32>,
    /// The copy of each core.
    pub(super) slots: Vec<CopyShare>,
    /// The cores of each node that run copies.
    pub(super) busy: Vec<Vec<u32>>,
    /// Whether the shares of each node must be computed again.
    pub(super) due: Vec<bool>,
    pub(super) total: SharedUse,
    /// Reused buffer of claims.
    claims: Vec<Claim>,
    pub(super) given: Vec<f64>,
    order: Vec<u32>,
}

impl CopyShare {
    const IDLE: Self = Self {
        integral: WorkIntegral::new(0, Span::ZERO),
        work: 0,
        claim: Claim { request: 1, demand: 0 },
        given: 0.0,
        share: 1.0,
        memory: 0,
        until: u64::MAX,
        next: (Next::Done, u64::MAX),
        used: 0,
        changed: false,
    };

    /// Creates a copy that has not run here: `left` of its `work` is left at `at`.
    pub(super) fn new(at: u64, work: Span, left: Span, request: u32, segment: Segment) -> Self {
        let claim = Claim { request: request.max(1), demand: segment.cpu };
        let mut slot = Self { integral: WorkIntegral::new(at, left), work: work.0, claim, ..Self::IDLE };
        slot.use_as(segment);
        slot
    }

    /// Sets the CPU that the copy is given.
    pub(super) fn take(&mut self, given: f64) {
        let demand = f64::from(self.claim.demand);
        self.given = given;
        self.share = if given < demand { given / demand } else { 1.0 };
        self.changed = false;
    }

    /// Sets the copy's segment.
    pub(super) const fn use_as(&mut self, segment: Segment) {
        self.claim.demand = segment.cpu;
        self.memory = segment.memory;
        self.until = segment.until.0;
        self.changed = true;
    }
}

impl Shares {
    pub(super) fn new(cpu: Vec<u32>, cores: u32) -> Self {
        Self {
            busy: vec![Vec::new(); cpu.len()],
            due: vec![false; cpu.len()],
            cpu,
            slots: vec![CopyShare::IDLE; cores as usize],
            total: SharedUse::default(),
            claims: Vec::new(),
            given: Vec::new(),
            order: Vec::new(),
        }
    }

    /// The part of its demand that the copy of a core is given.
    pub(super) fn share(&self, core: u32) -> f64 {
        self.slots[core as usize].share
    }

    /// Puts a copy on a core.
    pub(super) fn begin(&mut self, core: u32, node: u32, slot: CopyShare) {
        self.slots[core as usize] = slot;
        self.busy[node as usize].push(core);
    }

    /// Removes the copy of a core; `useful` if the copy ran to its end.
    pub(super) fn end(&mut self, core: u32, node: u32, useful: bool) {
        let slot = std::mem::replace(&mut self.slots[core as usize], CopyShare::IDLE);
        if useful {
            self.total.useful += slot.used;
        }
        let busy = &mut self.busy[node as usize];
        if let Some(at) = busy.iter().position(|&other| other == core) {
            busy.swap_remove(at);
        }
    }

    /// Counts the work of a copy up to `progress`, and stores `progress`.
    pub(super) fn settle(&mut self, core: u32, progress: WorkIntegral) {
        let slot = &mut self.slots[core as usize];
        let used = self.total.count(slot, progress);
        slot.used += used;
        slot.integral = progress;
    }

    /// Computes the CPU that each copy of a node is given, in the order of [`busy`](Self::busy); returns their number.
    pub(super) fn water_fill(&mut self, node: u32) -> usize {
        let Self { cpu, slots, busy, claims, given, order, .. } = self;
        claims.clear();
        claims.extend(busy[node as usize].iter().map(|&core| slots[core as usize].claim));
        water_fill(cpu[node as usize], claims, given, order);
        given.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shared(cpu: u32, claims: &[(u32, u32)]) -> Vec<f64> {
        let claims: Vec<_> = claims.iter().map(|&(request, demand)| Claim { request, demand }).collect();
        let mut given = Vec::new();
        water_fill(cpu, &claims, &mut given, &mut Vec::new());
        given
    }

    /// Three copies with requests of 1:1:2 and demands of 0.5, 3 and 3 cores share four cores.
    #[test]
    fn unused_cpu_goes_to_other_copies_in_proportion_to_requests() {
        let given = shared(4000, &[(1000, 500), (1000, 3000), (2000, 3000)]);
        let expected = [500.0, 3500.0 / 3.0, 7000.0 / 3.0];
        assert!(given.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{given:?}");
        assert_eq!(shared(4000, &[(1, 3000), (1000, 1000)]), [3000.0, 1000.0], "enough for all");
        assert_eq!(shared(1000, &[(7, 1000); 4]), [250.0; 4]);
        assert!(shared(1000, &[]).is_empty());
    }

    proptest! {
        /// No copy gets more than its demand, and demand leaves no CPU of the node unused. No copy with unmet demand
        /// has less CPU per unit of request than another copy.
        #[test]
        fn shares_use_all_cpu_and_exceed_no_demand(
            cpu in 1u32..64_000,
            claims in prop::collection::vec((1u32..16_000, 0u32..16_000), 1..40),
        ) {
            let given = shared(cpu, &claims);
            let demand: f64 = claims.iter().map(|&(_, demand)| f64::from(demand)).sum();
            let total: f64 = given.iter().sum();
            prop_assert!((total - demand.min(f64::from(cpu))).abs() < 1e-6, "{total}");
            let most = given.iter().zip(&claims).map(|(given, claim)| given / f64::from(claim.0));
            let most = most.fold(0.0, f64::max);
            for (given, &(request, demand)) in given.iter().zip(&claims) {
                prop_assert!(*given <= f64::from(demand) + 1e-6);
                let wants = *given < f64::from(demand) - 1e-6;
                prop_assert!(!wants || given / f64::from(request) >= most - 1e-9, "{given} of {demand}");
            }
        }
    }
}
