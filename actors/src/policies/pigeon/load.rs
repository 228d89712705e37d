//! The load of a group by its master's reports (section 6.2).

use std::collections::VecDeque;

use crate::base::{Span, Time};

/// Periods without a report after which a group counts as idle. A master that has tasks reports in each, and reports
/// can be lost: the last one, which says that the group is idle, is not repeated.
const SILENT: u64 = 3;

/// Tasks of a group by the newest report, and those sent to it since.
#[derive(Debug, Default)]
pub(super) struct GroupLoad {
    reported: u32,
    /// When that was so.
    at: Time,
    /// What was sent since, oldest first.
    sent: VecDeque<(Time, u32)>,
    /// The sum of it.
    since: u32,
}

impl GroupLoad {
    /// The tasks that are there or on their way.
    pub(super) const fn tasks(&self) -> u32 {
        self.reported.saturating_add(self.since)
    }

    /// Tasks are sent.
    pub(super) fn send(&mut self, tasks: u32, now: Time) {
        self.sent.push_back((now, tasks));
        self.since += tasks;
    }

    /// A master reports its tasks as they were at `at`. Older reports change nothing.
    pub(super) fn report(&mut self, tasks: u32, at: Time) {
        if self.at < at {
            (self.reported, self.at) = (tasks, at);
            self.drop_until(at);
        }
    }

    /// Forgets what a master that reports `every` so often would have reported since.
    pub(super) fn forget(&mut self, now: Time, every: Span) {
        let silence = Span(every.0.saturating_mul(SILENT));
        if now.since(self.at) > silence {
            self.reported = 0;
            self.drop_until(Time(now.0.saturating_sub(silence.0)));
        }
    }

    /// Forgets what was sent up to then.
    fn drop_until(&mut self, then: Time) {
        while self.sent.front().is_some_and(|(at, _)| *at <= then)
            && let Some((_, tasks)) = self.sent.pop_front()
        {
            self.since -= tasks;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_after_a_report_counts_with_it() {
        let mut load = GroupLoad::default();
        (1..=4).for_each(|t| load.send(10, Time(t * 100)));
        load.report(7, Time(250));
        assert_eq!(load.tasks(), 7 + 20);
        load.report(99, Time(240));
        assert_eq!(load.tasks(), 7 + 20, "an older report");
        load.forget(Time(550), Span(100));
        assert_eq!(load.tasks(), 7 + 20, "three periods are not over");
        load.forget(Time(651), Span(100));
        assert_eq!(load.tasks(), 10, "the report that the group is idle was lost");
    }
}
