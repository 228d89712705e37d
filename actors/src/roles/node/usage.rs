//! Use of a shared node by its copies: reports to their schedulers, and the copy to evict when memory is short.

use super::reports;
use super::row_state::RowState;
use crate::base::{ATTEMPTS_PER_ROUND, CopyId, Span, Time};
use crate::layout::Layout;
use crate::machine::Effects;
use crate::message::{Contention, UsageReport};

/// Messages of shared nodes to schedulers about the copies that the schedulers launched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeUsage {
    /// Evictions.
    Evictions,
    /// Evictions, reports of use, and throttling.
    Reports,
}

/// Options for the use of a shared node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UsageOptions {
    /// Memory above which the node evicts copies, bytes.
    pub limit: u64,
    /// Period of the node's reports; `None` if it sends none. The first comes one period after the first copy starts on
    /// an idle node.
    pub report: Option<Span>,
}

impl UsageOptions {
    /// The options of a node of the layout; `None` if nodes are not shared.
    pub fn of(layout: &Layout, node: u32, reports: NodeUsage) -> Option<Self> {
        let sharing = layout.sharing()?;
        let report = (reports == NodeUsage::Reports).then_some(sharing.report);
        Some(Self { limit: layout.memory_limit(node), report })
    }
}

/// The use of a running copy.
#[derive(Clone, Copy, Debug)]
struct CurrentUse {
    /// CPU given to the copy, thousandths of a core.
    given: u32,
    /// Memory of the copy, bytes.
    memory: u64,
    /// Fraction of its CPU demand that the copy is given, in millionths.
    rate: u32,
    /// The rate last sent to the copy's scheduler.
    reported: u32,
}

impl CurrentUse {
    const NONE: Self = Self { given: 0, memory: 0, rate: Contention::ALL, reported: Contention::ALL };
}

/// The use of the copies of a node, by core.
#[derive(Clone, Debug)]
pub(super) struct UsageTable {
    options: UsageOptions,
    used: Box<[CurrentUse]>,
    /// Memory of all copies, bytes.
    memory: u64,
    /// Whether the next reports are armed.
    armed: bool,
}

impl UsageTable {
    pub(super) fn new(options: UsageOptions, cores: u32) -> Self {
        Self { options, used: vec![CurrentUse::NONE; cores as usize].into(), memory: 0, armed: false }
    }

    /// Records the new use of the copy on a core. If throttling begins or ends, the copy's scheduler is notified at
    /// once; other changes of its rate are sent with the next reports.
    pub(super) fn set(
        &mut self,
        core: usize,
        row: &RowState,
        (demand, given, memory): (u32, u32, u64),
        fx: &mut Effects<'_>,
    ) {
        let used = &mut self.used[core];
        self.memory = self.memory - used.memory + memory;
        let rate = u64::from(given) * u64::from(Contention::ALL) / u64::from(demand.max(1));
        let rate = if given < demand { rate as u32 } else { Contention::ALL };
        *used = CurrentUse { given, memory, rate, reported: used.reported };
        if (rate < Contention::ALL) != (used.reported < Contention::ALL) {
            self.tell_rate(core, row, fx);
        }
    }

    /// Sends the rate of a throttled copy to its scheduler, unless the same rate was sent last.
    fn tell_rate(&mut self, core: usize, row: &RowState, fx: &mut Effects<'_>) {
        let CurrentUse { rate, reported, .. } = &mut self.used[core];
        if self.options.report.is_some() && rate != reported {
            *reported = *rate;
            let (copy, at) = (row.row.copy(row.at), fx.now().into());
            fx.send(row.from, Contention::Throttled { copy, rate: *rate, at });
        }
    }

    /// Forgets the copy of a core that runs no copy any more.
    pub(super) fn clear(&mut self, core: usize) {
        self.memory -= self.used[core].memory;
        self.used[core] = CurrentUse::NONE;
    }

    /// The core whose copy is to be evicted; `None` if there is enough memory. Copies of best-effort jobs are first,
    /// then the copies that use most above their request, then the copies that use most (Park's thesis, section
    /// 5.4.1), then the newest ones, which have done the least work. Copies of tasks that were launched very often
    /// are last, the newest first. Without this rule copies with growing use would evict each other for ever; with it
    /// the oldest copy ends.
    pub(super) fn victim<'a>(
        &self,
        running: impl Iterator<Item = (usize, &'a RowState)>,
        fx: &Effects<'_>,
    ) -> Option<usize> {
        if self.memory <= self.options.limit {
            return None;
        }
        let rank = |core: usize, row: &RowState| {
            let (memory, job) = (self.used[core].memory, row.row.job);
            if row.row.copy(row.at).attempt % ATTEMPTS_PER_ROUND >= VERY_OFTEN {
                return (false, false, 0, 0, row.began);
            }
            let best_effort = fx.catalog().job(job).deadline.is_none();
            (true, best_effort, memory.saturating_sub(fx.catalog().request(job).memory), memory, row.began)
        };
        let used = running.filter(|(core, _)| self.used[*core].memory > 0);
        used.max_by_key(|(core, row)| rank(*core, row)).map(|(core, _)| core)
    }

    /// Arms the next reports, if the node sends reports and none are armed.
    pub(super) fn arm(&mut self, fx: &mut Effects<'_>) {
        if let (false, Some(period)) = (self.armed, self.options.report) {
            self.armed = true;
            fx.arm(reports::USE, period);
        }
    }

    /// Reports the use of the running copies.
    pub(super) fn report<'a>(
        &mut self,
        running: impl Iterator<Item = (usize, &'a RowState)>,
        fx: &mut Effects<'_>,
    ) {
        self.armed = false;
        let at = fx.now().into();
        for (core, row) in running {
            self.tell_rate(core, row, fx);
            let CurrentUse { given, memory, .. } = self.used[core];
            let memory = u32::try_from(memory.div_ceil(1 << 20)).unwrap_or(u32::MAX);
            let copy = row.row.copy(row.at);
            fx.send(row.from, UsageReport::Report { copy, cpu: given, memory, at });
        }
    }
}

/// Number of launches of a task after which its copies are evicted last.
const VERY_OFTEN: u32 = 256;

/// The report that a copy, begun at `began`, is evicted at `now`; `alone` says that no other copy runs on the node.
pub(super) fn evicted(copy: CopyId, (began, now): (Time, Time), alone: bool) -> Contention {
    Contention::Evicted { copy, age_ms: now.since(began).whole_millis(), alone }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Amount;
    use crate::base::{ActorId, JobId};
    use crate::harness::{Harness, sends};
    use crate::layout::Sharing;
    use crate::machine::{Effect, Input, Note};
    use crate::message::{Core, Launch, Message, Row};
    use crate::roles::NodeManager;
    use crate::roles::node::NodeOptions;

    const MIB: u64 = 1 << 20;

    /// A node of four slots that evicts above 75 MiB, with one task of each of four jobs. Jobs 1 and 2 have deadlines.
    fn node() -> Harness {
        let mut node = idle();
        for job in 0..4 {
            node.deliver(node.layout.scheduler(0), Launch::Row(Row::single(copy(job))));
            node.now += Span::from_secs(1);
        }
        node
    }

    /// The same kind of node without tasks.
    fn idle() -> Harness {
        let room = Amount { cpu: 4000, memory: 100 * MIB };
        let sharing = Sharing { threshold: 750_000, report: Span::from_secs(15) };
        let layout = Layout::new(1, 0, [4]).with_room(vec![room], Amount::CORE).with_sharing(sharing);
        let options =
            NodeOptions { usage: UsageOptions::of(&layout, 0, NodeUsage::Reports), ..NodeOptions::default() };
        let me = layout.node(0);
        Harness::new(layout, me, 1, Box::new(NodeManager::with(options, 4)))
            .with_deadline(JobId(1), Span::from_secs(99))
            .with_deadline(JobId(2), Span::from_secs(99))
    }

    fn copy(job: u32) -> CopyId {
        JobId(job).task(0).copy(0)
    }

    fn uses(node: &mut Harness, job: u32, given: u32, mib: u64) -> Vec<Effect> {
        let memory = mib * MIB;
        node.step(Input::Usage { copy: copy(job), core: job, demand: 1000, given, memory, last: true })
    }

    fn evicted(node: &Harness, job: u32, age_ms: u32) -> [(ActorId, Message); 2] {
        let copy = copy(job);
        [
            (node.layout.scheduler(0), Contention::Evicted { copy, age_ms, alone: false }.into()),
            (node.layout.worker(0, job), Core::Stop { copy }.into()),
        ]
    }

    /// Best-effort copies go before copies with deadlines, then larger copies first, and only until there is enough
    /// memory.
    #[test]
    fn the_largest_copy_among_best_effort_jobs_is_evicted_first() {
        let mut node = node();
        for (job, mib) in [(0, 10), (1, 40), (2, 20)] {
            assert_eq!(uses(&mut node, job, 1000, mib), []);
        }
        let effects = uses(&mut node, 3, 1000, 11);
        assert_eq!(effects[0], Effect::Note(Note::Evicted { copy: copy(3) }), "best effort goes before 40");
        assert_eq!(sends(&effects), evicted(&node, 3, 1000));
        assert_eq!(uses(&mut node, 3, 1000, 11), [], "the copy is gone");
        assert_eq!(sends(&uses(&mut node, 2, 1000, 30)), evicted(&node, 0, 4000), "80 with the last one");
        assert_eq!(sends(&uses(&mut node, 2, 1000, 41)), evicted(&node, 2, 2000), "41 goes before 40");
        assert_eq!(uses(&mut node, 1, 1000, 75), [], "use equal to the threshold is not above the threshold");
    }

    #[test]
    fn equal_copies_are_evicted_newest_first() {
        let mut node = node();
        assert_eq!(uses(&mut node, 0, 1000, 40), []);
        assert_eq!(sends(&uses(&mut node, 3, 1000, 40)), evicted(&node, 3, 1000));
    }

    /// Of three tasks, two were launched very often, and the second of these has a deadline.
    #[test]
    fn among_tasks_launched_very_often_the_oldest_copy_stays() {
        let mut node = idle();
        let copies = [(0, VERY_OFTEN), (1, VERY_OFTEN + 9), (2, 0)]
            .map(|(job, attempt)| JobId(job).task(0).copy(attempt));
        for copy in copies {
            node.deliver(node.layout.scheduler(0), Launch::Row(Row::single(copy)));
            node.now += Span::from_secs(1);
        }
        let uses = |node: &mut Harness, at: usize, mib: u64| {
            let (copy, memory) = (copies[at], mib * MIB);
            let used = Input::Usage { copy, core: at as u32, demand: 1000, given: 1000, memory, last: true };
            let evicted = sends(&node.step(used)).into_iter().filter_map(|(_, message)| match message {
                Message::Contention(Contention::Evicted { copy, alone, .. }) => Some((copy, alone)),
                _ => None,
            });
            evicted.collect::<Vec<_>>()
        };
        assert_eq!(uses(&mut node, 0, 50), []);
        assert_eq!(uses(&mut node, 2, 20), []);
        assert_eq!(
            uses(&mut node, 1, 20),
            [(copies[2], false)],
            "the copy launched once goes, although it uses less than 50"
        );
        assert_eq!(uses(&mut node, 1, 30), [(copies[1], false)], "the newer copy goes");
        assert_eq!(uses(&mut node, 0, 76), [(copies[0], true)], "the copy needs more than the node has");
    }

    /// Schedulers are notified at once when throttling begins or ends, and of other changes by reports.
    #[test]
    fn throttling_and_use_are_reported_to_schedulers() {
        let mut node = node();
        let scheduler = node.layout.scheduler(0);
        let at = node.now.into();
        let throttled = |rate| (scheduler, Contention::Throttled { copy: copy(1), rate, at }.into());
        assert_eq!(sends(&uses(&mut node, 1, 250, 1)), [throttled(250_000)]);
        assert_eq!(uses(&mut node, 1, 500, 1), []);
        let report = |job, cpu, memory| {
            let report = UsageReport::Report { copy: copy(job), cpu, memory, at: node.now.into() };
            (scheduler, Message::from(report))
        };
        let expected =
            [report(0, 0, 0), throttled(500_000), report(1, 500, 1), report(2, 0, 0), report(3, 0, 0)];
        let effects = node.step(Input::Fire(reports::USE));
        assert_eq!(sends(&effects), expected);
        assert_eq!(effects.last(), Some(&Effect::Arm { timer: reports::USE, after: Span::from_secs(15) }));
        assert_eq!(sends(&uses(&mut node, 1, 1000, 1)), [throttled(Contention::ALL)]);
    }

    /// A scheduler that never gets the eviction would lose the task.
    #[test]
    fn an_undelivered_eviction_is_reported_again() {
        let mut node = node();
        let (scheduler, msg) = evicted(&node, 3, 1000)[0];
        let returned = node.step(Input::Undelivered { to: scheduler, msg });
        assert_eq!(returned[0], Effect::Send { to: scheduler, msg, recovery: true });
    }
}
