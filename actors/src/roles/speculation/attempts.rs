//! The running attempts of a job, as its scheduler knows them.

use crate::base::{ActorId, Score, Time};

/// A copy that is wanted and has not come back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// Index of its task.
    pub task: u32,
    /// Its attempt number.
    pub number: u32,
    /// Where it is; `None` until a node has claimed it.
    pub node: Option<ActorId>,
    /// Whether it has yet to start, as far as is known: no node has claimed it, or it waits at its node, which will
    /// report the start.
    pub waits: bool,
    /// When it was sent; when it started, if that was reported.
    pub since: Time,
    /// Its last reported progress.
    pub score: Score,
    /// The time of that report; the time it was sent, before the first report.
    pub reported_at: Time,
    /// Whether there was another one when it was requested.
    pub backup: bool,
}

impl Attempt {
    /// An attempt that is sent now, or requested if it has no node yet.
    pub const fn new(task: u32, number: u32, node: Option<ActorId>, now: Time, backup: bool) -> Self {
        let (waits, score) = (node.is_none(), Score::NONE);
        Self { task, number, node, waits, since: now, score, reported_at: now, backup }
    }

    /// How long it has run, s.
    pub fn ran(&self, now: Time) -> f64 {
        if self.waits { 0.0 } else { now.since(self.since).as_secs_f64() }
    }

    /// Its share of work done per second since it was sent, by the last report; it falls while reports are missing.
    pub fn rate(&self, now: Time) -> f64 {
        let ran = self.ran(now);
        if ran > 0.0 { self.score.share() / ran } else { 0.0 }
    }

    /// The time it still needs at that rate, s; infinite before the first progress.
    pub fn left(&self, now: Time) -> f64 {
        let done = self.score.share();
        if done > 0.0 { self.ran(now) * (1.0 - done) / done } else { f64::INFINITY }
    }
}

/// Ends a list of attempts.
const NONE: u32 = u32::MAX;

/// A flat table of attempts, those of a task linked.
#[derive(Clone, Debug)]
pub struct Attempts {
    running: Vec<Attempt>,
    /// For each running attempt the place of the next one of its task.
    next: Vec<u32>,
    /// For each task the place of its first.
    first: Vec<u32>,
}

impl Attempts {
    /// An empty table for a job of `tasks` tasks.
    pub fn new(tasks: u32) -> Self {
        Self { running: Vec::new(), next: Vec::new(), first: vec![NONE; tasks as usize] }
    }

    /// All attempts, in arbitrary order.
    pub fn all(&self) -> &[Attempt] {
        &self.running
    }

    /// The attempts of a task, the latest first.
    pub fn of(&self, task: u32) -> impl Iterator<Item = &Attempt> {
        let place = |at: u32| (at != NONE).then_some(at as usize);
        std::iter::successors(place(self.first[task as usize]), move |&at| place(self.next[at]))
            .map(|at| &self.running[at])
    }

    /// The number of attempts of a task.
    pub fn copies(&self, task: u32) -> u32 {
        self.of(task).count() as u32
    }

    /// Those that run as the only attempts of their tasks.
    pub fn alone(&self) -> impl Iterator<Item = &Attempt> {
        self.running.iter().filter(|attempt| !attempt.waits && self.copies(attempt.task) == 1)
    }

    /// Adds an attempt.
    pub fn add(&mut self, attempt: Attempt) {
        let first = &mut self.first[attempt.task as usize];
        self.next.push(*first);
        *first = self.running.len() as u32;
        self.running.push(attempt);
    }

    /// The attempt with that number, mutable.
    pub fn get_mut(&mut self, task: u32, number: u32) -> Option<&mut Attempt> {
        let at = self.find(task, |attempt| attempt.number == number)?;
        Some(&mut self.running[at])
    }

    /// Removes the latest attempt of a task for which `which` holds.
    pub fn take(&mut self, task: u32, which: impl Fn(&Attempt) -> bool) -> Option<Attempt> {
        let at = self.find(task, which)?;
        let gone = self.running[at];
        self.relink(gone.task, at as u32, self.next[at]);
        self.running.swap_remove(at);
        self.next.swap_remove(at);
        // The last entry has moved to the vacated index.
        if let Some(moved) = self.running.get(at) {
            self.relink(moved.task, self.running.len() as u32, at as u32);
        }
        Some(gone)
    }

    fn find(&self, task: u32, which: impl Fn(&Attempt) -> bool) -> Option<usize> {
        let mut at = *self.first.get(task as usize)?;
        while at != NONE && !which(&self.running[at as usize]) {
            at = self.next[at as usize];
        }
        (at != NONE).then_some(at as usize)
    }

    /// Redirects the link to index `old` to `new`.
    fn relink(&mut self, task: u32, old: u32, new: u32) {
        let mut at = self.first[task as usize];
        if at == old {
            self.first[task as usize] = new;
            return;
        }
        while self.next[at as usize] != old {
            at = self.next[at as usize];
        }
        self.next[at as usize] = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Rng, Span};

    /// The table equals a plain list, through random additions and removals.
    #[test]
    fn the_table_is_what_a_list_would_be() {
        let (mut table, mut list) = (Attempts::new(7), Vec::<Attempt>::new());
        let mut rng = Rng::new(1, 1, 1);
        for number in 0..5000 {
            let task = rng.below(7);
            if rng.below(5) < 2 {
                let attempt = Attempt::new(task, number, Some(ActorId(rng.below(4))), Time::ZERO, false);
                table.add(attempt);
                list.push(attempt);
            } else {
                let node = Some(ActorId(rng.below(4)));
                let expected = list.iter().rposition(|a| a.task == task && a.node == node);
                let gone = table.take(task, |a| a.node == node);
                assert_eq!(gone, expected.map(|at| list.remove(at)));
            }
            for task in 0..7 {
                let linked: Vec<_> = table.of(task).map(|a| a.number).collect();
                let plain: Vec<_> = list.iter().rev().filter(|a| a.task == task).map(|a| a.number).collect();
                assert_eq!(linked, plain);
            }
            assert_eq!(table.all().len(), list.len());
        }
        assert!(table.get_mut(3, u32::MAX).is_none() && table.take(99, |_| true).is_none());
    }

    #[test]
    fn rates_are_of_what_was_heard() {
        let mut attempt = Attempt::new(0, 0, Some(ActorId(1)), Time::ZERO + Span::from_secs(10), false);
        let at = |s| Time::ZERO + Span::from_secs(s);
        assert_eq!((attempt.rate(at(10)), attempt.left(at(20))), (0.0, f64::INFINITY));
        attempt.score = Score(250_000_000);
        assert_eq!((attempt.rate(at(20)), attempt.left(at(20))), (0.025, 30.0));
        assert_eq!((attempt.rate(at(30)), attempt.left(at(30))), (0.0125, 60.0), "silence is slowness");
        attempt.waits = true;
        assert_eq!((attempt.ran(at(30)), attempt.rate(at(30))), (0.0, 0.0), "waiting is not running");
    }
}
