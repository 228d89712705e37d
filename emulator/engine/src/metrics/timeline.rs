//! Messages and load on the timeline: messages of the plotted nodes, and numbers of waiting tasks and busy cores.

use std::collections::BTreeMap;

use volary_actors::base::{ActorId, CopyId, JobId, Span, Time};
use volary_actors::layout::Layout;
use volary_actors::message::Message;
use volary_actors::roles::job_table::TaskSet;

use super::Recording;
use crate::parcel::Delivered;
use crate::results::LoadRow;

/// The messages that the timeline shows: messages from and to the nodes of its cores, if handled within its window.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MessageWindow {
    /// End of the window.
    until: Time,
    /// Id of the first node.
    first: u32,
    /// Id after the last plotted node.
    end: u32,
}

impl MessageWindow {
    /// The window of a recording.
    pub fn new(layout: &Layout, recording: &Recording) -> Self {
        let cores = recording.timeline_cores.min(layout.workers());
        if cores == 0 || recording.timeline_messages == 0 {
            return Self::default();
        }
        let first = layout.node(0).0;
        let end = first + layout.node_of_core(cores - 1) + 1;
        Self { until: Time::ZERO + recording.timeline, first, end }
    }

    /// The message as the timeline keeps it; `None` if it is not shown. `sent` is its time of sending.
    #[inline]
    pub fn delivered(
        &self,
        now: Time,
        sent: Time,
        from: ActorId,
        to: ActorId,
        msg: &Message,
    ) -> Option<Delivered> {
        let drawn = |actor: ActorId| (self.first..self.end).contains(&actor.0);
        if now >= self.until || msg.is_fragment() || !(drawn(from) || drawn(to)) {
            return None;
        }
        Some(Delivered { sent, from, to, kind: msg.kind(), job: msg.job() })
    }
}

/// Number of samples in the window of a timeline.
const SAMPLES: u64 = 250;

/// The numbers of waiting tasks and running copies at fixed times of the window of a timeline.
#[derive(Debug)]
pub(super) struct LoadSampler {
    /// The time of the next sample; [`Time::MAX`] if there is none.
    next: Time,
    until: Time,
    interval: Span,
    /// Tasks that have begun, of jobs that arrived within the window and are not finished.
    begun: BTreeMap<JobId, TaskSet>,
    /// Tasks that have not started, of the jobs in `begun`.
    waiting: u64,
    rows: Vec<LoadRow>,
}

impl LoadSampler {
    /// A sampler of the first `window` of a run. A window of zero length has no samples.
    pub(super) fn new(window: Span) -> Self {
        Self {
            next: if window > Span::ZERO { Time::ZERO } else { Time::MAX },
            until: Time::ZERO + window,
            interval: Span((window.0 / SAMPLES).max(1)),
            begun: BTreeMap::new(),
            waiting: 0,
            rows: Vec::new(),
        }
    }

    /// Whether the window is still open.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.next < Time::MAX
    }

    /// Samples the state before the event at `now`, if a sample is due.
    #[inline]
    pub(super) fn observe(&mut self, now: Time, busy: u32) {
        if now >= self.next {
            self.sample(busy);
            let passed = (now.0 / self.interval.0).saturating_add(1);
            self.next = Time(passed.saturating_mul(self.interval.0));
            if self.next > self.until {
                (self.next, self.begun) = (Time::MAX, BTreeMap::new());
            }
        }
    }

    /// Adds a sample, unless it equals the previous sample.
    fn sample(&mut self, busy: u32) {
        let row = LoadRow { time: self.next.as_secs_f64(), waiting: self.waiting, busy };
        if self.rows.last().is_none_or(|last| (last.waiting, last.busy) != (row.waiting, row.busy)) {
            self.rows.push(row);
        }
    }

    /// A job has arrived.
    pub(super) fn arrived(&mut self, job: JobId, tasks: u32) {
        if self.is_open() {
            self.begun.insert(job, TaskSet::new(tasks));
            self.waiting += u64::from(tasks);
        }
    }

    /// A copy has begun.
    pub(super) fn began(&mut self, copy: CopyId) {
        if self.is_open()
            && let Some(begun) = self.begun.get_mut(&copy.task.job)
        {
            self.waiting -= u64::from(begun.add(copy.task.index));
        }
    }

    /// A job has finished.
    pub(super) fn finished(&mut self, job: JobId) {
        if self.is_open() {
            self.begun.remove(&job);
        }
    }

    /// A job of this many tasks was killed: those that have not begun no longer wait.
    pub(super) fn killed(&mut self, job: JobId, tasks: u32) {
        if self.is_open()
            && let Some(begun) = self.begun.remove(&job)
        {
            self.waiting -= (0..tasks).filter(|task| !begun.has(*task)).count() as u64;
        }
    }

    /// The samples, and the state at the end of the run if the end is within the window.
    pub(super) fn close(&mut self, now: Time, busy: u32) -> Vec<LoadRow> {
        self.observe(now, busy);
        if self.is_open() && now < self.next {
            self.next = now;
            self.sample(busy);
        }
        std::mem::take(&mut self.rows)
    }
}

#[cfg(test)]
mod tests {
    use volary_actors::message::{Blocks, Job, Probe, Share, Stamp};

    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn only_messages_of_plotted_nodes_are_shown_on_the_timeline() {
        // Two schedulers, and nodes of two cores: three cores are plotted, so two nodes.
        let layout = Layout::new(2, 1, [2, 2, 2]);
        let recording =
            Recording { timeline_cores: 3, timeline: Span::from_millis(10), ..Recording::default() };
        let window = MessageWindow::new(&layout, &recording);
        let msg = Message::from(Probe::Claim { job: JobId(7), group: 0, repair: false });
        let (scheduler, node) = (layout.scheduler(0), |i| layout.node(i));
        let shown = |now, from, to, msg: &Message| window.delivered(now, at(1), from, to, msg);
        let seen = shown(at(2), node(1), scheduler, &msg).unwrap();
        assert_eq!((seen.sent, seen.from, seen.to), (at(1), node(1), scheduler));
        assert_eq!((seen.kind, seen.job), (msg.kind(), Some(JobId(7))));
        assert!(shown(at(2), scheduler, node(0), &msg).is_some());
        assert!(shown(at(2), scheduler, node(2), &msg).is_none(), "that node is not plotted");
        assert!(shown(at(2), scheduler, layout.auxiliary(0), &msg).is_none());
        assert!(shown(at(10), scheduler, node(0), &msg).is_none(), "the window is over");
        let bits = Share::Bits(Blocks { first: 0, len: 1, bits: [0; 3], at: Stamp::from(Time::ZERO) });
        assert!(shown(at(2), node(0), scheduler, &bits.into()).is_none(), "a fragment is no message");
        let finished = Message::from(Job::Finished { job: JobId(1), killed: false });
        for recording in [
            Recording { timeline_cores: 0, ..recording },
            Recording { timeline_messages: 0, ..recording },
            Recording { timeline: Span::ZERO, ..recording },
        ] {
            let window = MessageWindow::new(&layout, &recording);
            assert_eq!(window.delivered(at(2), at(1), node(0), scheduler, &finished), None);
        }
    }

    #[test]
    fn a_sample_is_the_state_at_its_time() {
        // A sample each millisecond.
        let mut load = LoadSampler::new(Span::from_millis(SAMPLES));
        let row = |ms: u64, waiting, busy| LoadRow { time: at(ms).as_secs_f64(), waiting, busy };
        load.observe(at(3), 0);
        load.arrived(JobId(0), 3);
        load.observe(Time(at(3).0 + 5), 0);
        load.began(JobId(0).task(1).copy(0));
        // The state at 4 ms, which lasted until 9 ms.
        load.observe(at(9), 1);
        load.began(JobId(0).task(1).copy(1));
        load.began(JobId(0).task(2).copy(0));
        load.observe(at(20), 3);
        load.finished(JobId(0));
        load.began(JobId(5).task(0).copy(0));
        assert_eq!(
            load.close(Time(at(20).0 + 7), 2),
            [
                row(0, 0, 0),
                row(4, 2, 1),
                row(10, 1, 3),
                LoadRow { time: Time(at(20).0 + 7).as_secs_f64(), waiting: 1, busy: 2 },
            ]
        );
    }

    #[test]
    fn no_samples_are_taken_beyond_the_window() {
        let mut load = LoadSampler::new(Span::from_millis(SAMPLES));
        load.arrived(JobId(0), 1);
        load.observe(at(SAMPLES + 1), 0);
        assert!(!load.is_open() && load.begun.is_empty());
        load.arrived(JobId(1), 5);
        assert_eq!(load.close(at(SAMPLES + 9), 4), [LoadRow { time: 0.0, waiting: 1, busy: 0 }]);
        assert_eq!(LoadSampler::new(Span::ZERO).close(at(1), 1), []);
    }
}
