//! Tasks that wait for room: those to be tried now, and those to be tried later.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::base::{CopyId, Span, Time, parameters};

parameters! {
    /// Treatment of a task for which there is no room.
    enum Retry {
        /// It waits `retry_after`, as the Murmuration paper describes it.
        #[default]
        Timer,
        /// It goes to the tail of the queue ("no retry queue").
        Tail,
        /// As in Kubernetes 1.23: it waits until a task ends somewhere and its back-off (1 s, doubled by each attempt
        /// up to 10 s) is over, checked every second; or for a minute, checked every 30 s. Tasks are tried in the order
        /// of their arrival or return.
        Events,
    }
}

/// Back-off after the first failed attempt, and its maximum (Kubernetes 1.23).
const BACK_OFF: Span = Span::from_secs(1);
const MOST_BACK_OFF: Span = Span::from_secs(10);
/// Period at which tasks in back-off are checked.
const FLUSH: Span = Span::from_secs(1);
/// Period at which tasks without an event are checked, and their least wait.
const SWEEP: Span = Span::from_secs(30);
const FORGOTTEN: Span = Span::from_secs(60);

/// A task that has no node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Pod {
    /// The copy to be launched.
    pub copy: CopyId,
    /// When its job arrived.
    created: Time,
    /// Attempts that failed.
    failures: u32,
}

impl Pod {
    pub(super) const fn new(copy: CopyId, created: Time) -> Self {
        Self { copy, created, failures: 0 }
    }

    /// Its back-off after the last failure.
    fn back_off(&self) -> Span {
        Span(BACK_OFF.0 << self.failures.saturating_sub(1).min(4)).min(MOST_BACK_OFF)
    }
}

/// Least time first, ties in order of insertion.
type Heap = BinaryHeap<Reverse<(Time, u64, Pod)>>;

/// Tasks without a node.
pub(super) struct Pending {
    retry: Retry,
    after: Span,
    /// `timer`: order by the time of return instead of the job's arrival.
    restamp: bool,
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
    pub(super) fn new(retry: Retry, after: Span, restamp: bool) -> Self {
        Self {
            retry,
            after,
            restamp,
            active: BinaryHeap::new(),
            backing: BinaryHeap::new(),
            failed: VecDeque::new(),
            swept: 0,
            came: 0,
        }
    }

    fn at(&mut self, time: Time, pod: Pod) -> Reverse<(Time, u64, Pod)> {
        self.came += 1;
        Reverse((time, self.came, pod))
    }

    /// Adds a task to be tried.
    pub(super) fn add(&mut self, pod: Pod, now: Time) {
        let rank = match self.retry {
            Retry::Timer if !self.restamp => pod.created,
            Retry::Tail => Time::ZERO,
            Retry::Timer | Retry::Events => now,
        };
        let at = self.at(rank, pod);
        self.active.push(at);
    }

    /// The next task to be tried.
    pub(super) fn pop(&mut self) -> Option<Pod> {
        self.active.pop().map(|Reverse((_, _, pod))| pod)
    }

    /// Records that there was no room for a task; `freed` says whether room was freed during the attempt.
    pub(super) fn failed(&mut self, mut pod: Pod, freed: bool, now: Time) {
        pod.failures += 1;
        match self.retry {
            Retry::Tail => self.add(pod, now),
            Retry::Events if freed => {
                let at = self.at(now + pod.back_off(), pod);
                self.backing.push(at);
            }
            Retry::Timer | Retry::Events => self.failed.push_back((now, pod)),
        }
    }

    /// Records that room was freed on some node.
    pub(super) fn freed(&mut self, now: Time) {
        if self.retry == Retry::Events {
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
    pub(super) fn wakes(&self, now: Time) -> Option<Time> {
        let next = |every: Span| Time((now.0 / every.0 + 1) * every.0);
        match self.retry {
            Retry::Tail => None,
            Retry::Timer => self.failed.front().map(|&(since, _)| since + self.after),
            Retry::Events if !self.backing.is_empty() => Some(next(FLUSH)),
            Retry::Events => self.failed.front().map(|_| next(SWEEP)),
        }
    }

    /// Checks the waiting tasks.
    pub(super) fn wake(&mut self, now: Time) {
        let patience = match self.retry {
            Retry::Tail => return,
            Retry::Timer => self.after,
            Retry::Events => FORGOTTEN,
        };
        while let Some(&Reverse((until, _, pod))) = self.backing.peek()
            && until <= now
        {
            self.backing.pop();
            self.add(pod, now);
        }
        // Compares periods, not exact times: in real time everything is a little late.
        let due = now.0 / SWEEP.0;
        let sweeps = self.retry == Retry::Timer || std::mem::replace(&mut self.swept, due) < due;
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
mod tests {
    use super::*;
    use crate::base::JobId;

    fn at(s: u64) -> Time {
        Time::ZERO + Span::from_secs(s)
    }

    fn pod(job: u32) -> Pod {
        Pod::new(JobId(job).task(0).copy(0), at(u64::from(job)))
    }

    fn jobs(pending: &mut Pending) -> Vec<u32> {
        std::iter::from_fn(|| pending.pop()).map(|pod| pod.copy.task.job.0).collect()
    }

    #[test]
    fn with_a_timer_a_failed_task_waits_and_keeps_its_place() {
        let mut pending = Pending::new(Retry::Timer, Span::from_secs(30), false);
        pending.failed(pod(1), true, at(10));
        pending.failed(pod(2), true, at(12));
        pending.add(pod(3), at(13));
        assert_eq!(pending.wakes(at(13)), Some(at(40)));
        pending.freed(at(20));
        pending.wake(at(40));
        assert_eq!(jobs(&mut pending), [1, 3], "by arrival; the second waits for two more seconds");
        pending.wake(at(42));
        assert_eq!((jobs(&mut pending), pending.wakes(at(42))), (vec![2], None));
        let mut pending = Pending::new(Retry::Timer, Span::from_secs(30), true);
        pending.failed(pod(1), true, at(10));
        pending.add(pod(3), at(13));
        pending.wake(at(40));
        assert_eq!(jobs(&mut pending), [3, 1], "by return");
    }

    #[test]
    fn without_a_retry_queue_a_failed_task_goes_to_the_tail() {
        let mut pending = Pending::new(Retry::Tail, Span::from_secs(30), false);
        (1..4).for_each(|job| pending.add(pod(job), at(3)));
        let first = pending.pop().unwrap();
        pending.failed(first, false, at(4));
        assert_eq!(jobs(&mut pending), [2, 3, 1]);
    }

    /// Back-off of 1, 2, 4, 8, 10, 10 s. Freed room brings back tasks after their back-off, at once or at the next full
    /// second; without an event a task waits at least a minute, until the next half minute.
    #[test]
    fn events_bring_back_tasks_after_their_back_off() {
        let waits: Vec<_> =
            (1..7).map(|failures| Pod { failures, ..pod(0) }.back_off().0 / 1_000_000_000).collect();
        assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
        let mut pending = Pending::new(Retry::Events, Span::from_secs(30), false);
        pending.failed(pod(1), false, at(10));
        assert_eq!(pending.wakes(at(10)), Some(at(30)));
        pending.failed(Pod { failures: 1, ..pod(2) }, false, at(10));
        pending.freed(at(11));
        assert_eq!(jobs(&mut pending), [1], "one second is over, two are not");
        assert_eq!(pending.wakes(at(11)), Some(at(12)));
        pending.wake(at(12));
        assert_eq!(jobs(&mut pending), [2]);
        pending.failed(pod(3), true, at(20));
        pending.wake(at(21));
        assert_eq!(jobs(&mut pending), [3], "room was made meanwhile: it only backs off");
        pending.failed(pod(4), false, at(31));
        pending.wake(at(90));
        assert_eq!(jobs(&mut pending), [0; 0]);
        // In real time ticks are a little late.
        pending.wake(at(120) + Span(1));
        assert_eq!(jobs(&mut pending), [4]);
    }
}
