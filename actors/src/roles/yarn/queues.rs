//! The leaf queues of the resource manager, and what they are guaranteed.

use super::options::Reclaiming;
use crate::roles::task_queue::TaskQueue;

/// A queue of applications.
#[derive(Clone, Debug)]
pub(super) struct LeafQueue {
    /// Tasks without a container.
    pub waiting: TaskQueue,
    /// Containers that run.
    pub used: u32,
    /// The part of all containers that is guaranteed to it.
    pub share: f64,
}

/// One queue, or one for each class of jobs.
#[derive(Clone, Debug)]
pub(super) struct LeafQueues(Vec<LeafQueue>);

impl LeafQueues {
    pub(super) fn new(reclaiming: Option<&Reclaiming>) -> Self {
        let shares = reclaiming
            .map_or_else(|| vec![1.0], |options| vec![options.short_share, 1.0 - options.short_share]);
        let leaf = |share| LeafQueue { waiting: TaskQueue::default(), used: 0, share };
        Self(shares.into_iter().map(leaf).collect())
    }

    /// The queue of a class of jobs.
    pub(super) fn of(&self, class: u8) -> usize {
        usize::from(class).min(self.0.len() - 1)
    }

    pub(super) fn get(&mut self, leaf: usize) -> &mut LeafQueue {
        &mut self.0[leaf]
    }

    /// All queues.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut LeafQueue> {
        self.0.iter_mut()
    }

    /// Whether a task waits anywhere.
    pub(super) fn is_waiting(&self) -> bool {
        self.0.iter().any(|leaf| !leaf.waiting.is_empty())
    }

    /// The queue that is the least served for its share among those for which `wants` holds.
    pub(super) fn least_served(&self, mut wants: impl FnMut(usize, &LeafQueue) -> bool) -> Option<usize> {
        let ratio = |leaf: usize| f64::from(self.0[leaf].used) / self.0[leaf].share;
        (0..self.0.len())
            .filter(|&leaf| wants(leaf, &self.0[leaf]))
            .min_by(|&a, &b| ratio(a).total_cmp(&ratio(b)))
    }

    /// How many containers are to be taken from each queue now, where `total` exist: a queue that is over its share by
    /// more than the tolerance gives up what the others want within theirs and free containers do not satisfy, damped,
    /// and no more than a part of the cluster in all.
    ///
    /// No queue is cut below its share. Hadoop rounds up to whole containers; where two queues share very few, each
    /// would then lose its container to the other in turn, and killed tasks would never end.
    pub(super) fn excess(&self, options: &Reclaiming, total: u32) -> Vec<u32> {
        let guaranteed = |leaf: &LeafQueue| leaf.share * f64::from(total);
        let used: u32 = self.0.iter().map(|leaf| leaf.used).sum();
        let wanted: f64 = self
            .0
            .iter()
            .map(|leaf| (guaranteed(leaf) - f64::from(leaf.used)).min(leaf.waiting.len() as f64).max(0.0))
            .sum();
        let mut need = (wanted - f64::from(total.saturating_sub(used))).max(0.0);
        let mut most = (options.round * f64::from(total)).floor().max(1.0);
        let excess = |leaf: &LeafQueue| {
            let surplus = f64::from(leaf.used) - guaranteed(leaf);
            if surplus <= options.over * guaranteed(leaf) {
                return 0;
            }
            // A share of 1 − 0.95 of 120 is 6 + 5·10⁻¹⁵ containers, so a surplus is a little below a whole number.
            let whole = (surplus + 1e-9).floor();
            let taken = (options.damping * surplus.min(need)).ceil().min(whole).min(most);
            (need, most) = ((need - taken).max(0.0), most - taken);
            taken as u32
        };
        self.0.iter().map(excess).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{JobId, Span};

    const OPTIONS: Reclaiming = Reclaiming {
        short_share: 0.95,
        every: Span::from_secs(3),
        over: 0.1,
        round: 0.1,
        damping: 0.2,
        kill: false,
    };

    fn queues(options: &Reclaiming, used: [u32; 2], waiting: [u32; 2]) -> LeafQueues {
        let mut queues = LeafQueues::new(Some(options));
        for class in [0, 1] {
            let leaf = queues.get(class);
            leaf.used = used[class];
            leaf.waiting.add(JobId(0), 0..waiting[class], 0);
        }
        queues
    }

    /// Of 120 containers 114 are for short jobs and 6 for long ones.
    #[test]
    fn a_queue_over_its_share_gives_up_what_the_other_lacks() {
        let excess = |used, waiting| queues(&OPTIONS, used, waiting).excess(&OPTIONS, 120);
        assert_eq!(excess([0, 120], [100, 0]), [0, 12], "a fifth of 100, but no more than a tenth of all");
        assert_eq!(excess([80, 40], [30, 0]), [0, 6], "a fifth of 30");
        assert_eq!(excess([80, 40], [1, 0]), [0, 1]);
        assert_eq!(excess([80, 30], [10, 0]), [0, 0], "ten are free");
        assert_eq!(excess([114, 6], [100, 100]), [0, 0]);
        assert_eq!(excess([120, 0], [0, 9]), [0, 0], "5 % over its share");
        let even = Reclaiming { short_share: 0.7, ..OPTIONS };
        assert_eq!(
            queues(&even, [120, 0], [0, 50]).excess(&even, 120),
            [8, 0],
            "a fifth of 36, which is 7.2"
        );
    }

    /// Of one container 0.7 are for short jobs and 0.3 for long ones: whoever has it keeps it.
    #[test]
    fn no_queue_is_cut_below_its_share() {
        let options = Reclaiming { short_share: 0.7, over: 0.0, ..OPTIONS };
        let excess = |used, waiting, total| queues(&options, used, waiting).excess(&options, total);
        assert_eq!(excess([1, 0], [9, 9], 1), [0, 0]);
        assert_eq!(excess([0, 1], [9, 9], 1), [0, 0]);
        assert_eq!(queues(&OPTIONS, [110, 7], [9, 0]).excess(&OPTIONS, 117), [0, 1], "5.85 of 117");
        assert_eq!(queues(&OPTIONS, [113, 7], [9, 0]).excess(&OPTIONS, 120), [0, 1], "6 of 120");
        assert_eq!(excess([0, 2], [9, 9], 2), [0, 1], "0.6 of two are for long jobs");
        assert_eq!(excess([2, 0], [9, 9], 2), [0, 0], "1.4 of two are for short jobs");
    }

    #[test]
    fn the_least_served_queue_comes_first() {
        let least = |used| queues(&OPTIONS, used, [1, 1]).least_served(|_, leaf| !leaf.waiting.is_empty());
        assert_eq!([least([0, 0]), least([113, 6]), least([114, 5])], [Some(0), Some(0), Some(1)]);
        assert_eq!(
            queues(&OPTIONS, [0, 50], [0, 1]).least_served(|_, leaf| !leaf.waiting.is_empty()),
            Some(1)
        );
        let mut one = LeafQueues::new(None);
        assert_eq!((one.of(1), one.is_waiting()), (0, false));
        one.get(0).waiting.add(JobId(0), 0..1, 0);
        assert!(one.is_waiting());
    }
}
