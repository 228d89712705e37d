//! The elastic queue of a Peacock worker: order, placement and overflow of waiting probes.

use crate::base::{Span, Time};
use crate::message::RingProbe;

/// A probe that waits here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WaitingProbe {
    /// The probe.
    pub probe: RingProbe,
    /// Estimated work of its task.
    pub estimate: Span,
    /// When its job entered the system.
    pub entered: Time,
}

impl WaitingProbe {
    /// When it must be served at the latest.
    pub(super) fn deadline(&self) -> Time {
        self.entered + self.probe.max_wait
    }
}

/// Waiting probes, the next to be served first.
#[derive(Debug, Default)]
pub(super) struct ElasticQueue {
    waiting: Vec<WaitingProbe>,
    total: Span,
}

impl ElasticQueue {
    /// The next probe to be served.
    pub(super) fn pop(&mut self) -> Option<WaitingProbe> {
        (!self.waiting.is_empty()).then(|| self.take(0))
    }

    /// The waiting probes, the next to be served first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &WaitingProbe> {
        self.waiting.iter()
    }

    /// Waiting probes.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Sum of their estimates.
    #[cfg(test)]
    pub(super) const fn total(&self) -> Span {
        self.total
    }

    /// Keeps only some probes.
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

    /// The authors' placement: from the tail forward. A newcomer that entered the system later overtakes a
    /// probe iff it is shorter and the other stays within its wait; one that entered earlier overtakes unless
    /// the other is shorter and the newcomer can still be served in time behind it. It stays where it ends up
    /// if that is in time, too late anyway, or the head; otherwise it is returned, to be rotated. `ahead` is
    /// what the cores still have to do before the queue's head is served.
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

    /// The authors' filter: while more probes wait than `limit`, or more work than `load`, the tail goes.
    pub(super) fn overflow(&mut self, limit: usize, load: Span, ahead: Span, out: &mut Vec<WaitingProbe>) {
        while !self.waiting.is_empty() && (self.waiting.len() > limit || ahead + self.total > load) {
            let tail = self.waiting.len() - 1;
            out.push(self.take(tail));
        }
    }

    /// Shortest first, equal ones in order of arrival.
    pub(super) fn push_shortest_first(&mut self, new: WaitingProbe) {
        let at = self.waiting.partition_point(|other| other.estimate <= new.estimate);
        self.insert(at, new);
    }

    /// Takes out every probe that is not yet late and would wait past its deadline here, where `wait` is what it waits
    /// for beside the probes ahead. One that has been all round a ring of `ring` nodes stays: without link delay it
    /// would go round for ever.
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

    /// One row per case of the placement rule: queue before, newcomer, order after (or rotated).
    #[test]
    fn placement_step_table() {
        let now = Time(10_000_000_000);
        type Case<'a> = (&'a str, &'a [WaitingProbe], WaitingProbe, Option<&'a [u32]>);
        let cases: [Case<'_>; 6] = [
            ("into an empty queue", &[], probe(9, 5, 10, 1), Some(&[9])),
            (
                "later and shorter, the other can wait: overtakes",
                &[probe(1, 5, 5, 100)],
                probe(9, 1, 10, 100),
                Some(&[9, 1]),
            ),
            (
                "later and shorter, the other cannot wait: stays behind",
                &[probe(1, 5, 5, 5)],
                probe(9, 1, 10, 100),
                Some(&[1, 9]),
            ),
            ("later and longer: stays behind", &[probe(1, 1, 5, 100)], probe(9, 5, 10, 100), Some(&[1, 9])),
            (
                "earlier, the other is shorter and the newcomer has time: stays behind",
                &[probe(1, 1, 8, 100)],
                probe(9, 5, 2, 100),
                Some(&[1, 9]),
            ),
            ("behind others and not in time: rotated", &[probe(1, 5, 5, 5)], probe(9, 6, 10, 3), None),
        ];
        for (name, before, new, expected) in cases {
            let mut queue = ElasticQueue::default();
            for &waiting in before {
                queue.insert(queue.len(), waiting);
            }
            let rotated = queue.place(new, Span::ZERO, now);
            match expected {
                Some(after) => assert_eq!((rotated, order(&queue)), (None, after.to_vec()), "{name}"),
                None => assert_eq!(rotated, Some(new), "{name}"),
            }
        }
    }

    #[test]
    fn overflow_takes_the_tail_and_keeps_the_books() {
        let mut queue = ElasticQueue::default();
        for job in 0..5 {
            queue.insert(job as usize, probe(job, 2, 0, 100));
        }
        let mut out = Vec::new();
        queue.overflow(3, Span::from_secs(100), Span::ZERO, &mut out);
        assert_eq!((order(&queue), out.len(), queue.total()), (vec![0, 1, 2], 2, Span::from_secs(6)));
        queue.overflow(3, Span::from_secs(5), Span::from_secs(1), &mut out);
        assert_eq!(order(&queue), [0, 1]);
    }

    #[test]
    fn threshold_form_serves_shortest_first_and_forwards_what_would_be_late() {
        let mut queue = ElasticQueue::default();
        for (job, estimate) in [(0, 3), (1, 1), (2, 3), (3, 2)] {
            queue.push_shortest_first(probe(job, estimate, 0, 5));
        }
        assert_eq!(order(&queue), [1, 3, 0, 2]);
        let mut out = Vec::new();
        queue.take_late(|_| Span::ZERO, Time(0), 10, &mut out);
        assert_eq!((order(&queue), out.len()), (vec![1, 3, 0], 1));
        queue.take_late(|_| Span::from_secs(50), Time(6_000_000_000), 10, &mut out);
        assert_eq!(queue.len(), 3, "expired probes stay");
        let mut own = ElasticQueue::default();
        [2, 3]
            .into_iter()
            .for_each(|estimate| own.push_shortest_first(probe(estimate, u64::from(estimate), 0, 4)));
        own.take_late(|_| Span::ZERO, Time(0), 10, &mut out);
        assert_eq!(own.len(), 2, "2 s are before the longer one");
        own.take_late(|own| own, Time(0), 10, &mut out);
        assert_eq!(order(&own), [2], "with its own work it would wait 5 s");
    }
}
