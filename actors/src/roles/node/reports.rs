//! Reports of progress, with their times and errors, and the numbers of a node manager's ticks.

use std::collections::VecDeque;

use crate::base::{ActorId, CopyId, Parameters as _, Score, Span, Time, parameters};
use crate::machine::{Effects, Timer};
use crate::message::Progress;

parameters! {
    /// Errors of the progress that nodes report.
    struct ProgressErrors {
        /// Maximum error of a report, as a fraction of the copy's work. The error is sampled uniformly for each
        /// report.
        noise: f64 = 0.0 => 0.0..=1.0,
        /// Relative lengths of a task's phases, each of which makes up an equal part of the score. With [4, 1, 1], a
        /// reduce task copies for two thirds of its time, and then reports a score of one third. If empty, the score is
        /// the fraction of the work done.
        #[schemars(length(max = 16))]
        phases: Vec<f64> = Vec::new(),
        /// Age of reports when they are sent, scaled like the other durations.
        delay: Span = Span::ZERO,
    }
}

impl ProgressErrors {
    /// Checks the parameters.
    pub fn check(&self) -> Result<(), String> {
        self.check_ranges().map_err(|error| format!("progress.{error}"))?;
        let sound = |&part: &f64| part > 0.0 && part <= 1e6;
        if self.phases.len() <= 16 && self.phases.iter().all(sound) {
            return Ok(());
        }
        Err(format!("progress.phases: must be at most 16 numbers above 0, up to 1e6, not {:?}", self.phases))
    }

    /// The score that is reported after a fraction `share` of the work.
    fn phased(&self, share: f64) -> f64 {
        let (all, mut left) = (self.phases.iter().sum::<f64>(), share);
        for (done, part) in self.phases.iter().map(|part| part / all).enumerate() {
            if left < part {
                return (done as f64 + left / part) / self.phases.len() as f64;
            }
            left -= part;
        }
        // 1.0 also covers a remainder from rounding.
        if self.phases.is_empty() { share } else { 1.0 }
    }
}

/// Options of a node's reports of progress to the schedulers of its copies.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReportOptions {
    /// Period of the reports; the first comes one period after the first copy starts on an idle node.
    pub every: Span,
    /// Whether the start of a copy is reported too.
    pub starts: bool,
    /// Errors of the reports.
    pub errors: ProgressErrors,
}

/// The state of a node's reports.
#[derive(Clone, Debug)]
pub(super) struct Reporter {
    options: ReportOptions,
    /// Whether the next reports are armed.
    armed: bool,
    /// Delayed reports, oldest first.
    delayed: VecDeque<(ActorId, Progress)>,
}

impl Reporter {
    /// A reporter with these options, unarmed.
    pub(super) const fn new(options: ReportOptions) -> Self {
        Self { options, armed: false, delayed: VecDeque::new() }
    }

    /// Arms the next reports, unless they are armed.
    pub(super) fn arm(&mut self, fx: &mut Effects<'_>) {
        if !self.armed {
            self.armed = true;
            fx.arm(PROGRESS, self.options.every);
        }
    }

    /// Handles a tick: sends the oldest delayed report, or returns `true` if the next reports are due.
    pub(super) fn tick(&mut self, tick: Timer, fx: &mut Effects<'_>) -> bool {
        if tick == PROGRESS {
            self.armed = false;
        } else if let Some((to, report)) = self.delayed.pop_front() {
            fx.send(to, report);
        }
        tick == PROGRESS
    }

    /// Reports that a copy has started.
    pub(super) fn started(&mut self, to: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        if self.options.starts {
            self.send(to, Progress::Report { copy, score: Score::NONE, at: fx.now().into(), age_ms: 0 }, fx);
        }
    }

    /// Reports the progress of a copy.
    pub(super) fn report(
        &mut self,
        to: ActorId,
        copy: CopyId,
        score: Score,
        began: Time,
        fx: &mut Effects<'_>,
    ) {
        let errors = &self.options.errors;
        let mut reported = score;
        if errors.noise > 0.0 || !errors.phases.is_empty() {
            let error = if errors.noise > 0.0 { errors.noise * (2.0 * fx.rng().unit() - 1.0) } else { 0.0 };
            let share = (errors.phased(score.share()) + error).clamp(0.0, 1.0);
            reported = Score((share * f64::from(Score::ALL.0)) as u32);
        }
        let age_ms = (fx.now() - began).whole_millis();
        self.send(to, Progress::Report { copy, score: reported, at: fx.now().into(), age_ms }, fx);
    }

    fn send(&mut self, to: ActorId, report: Progress, fx: &mut Effects<'_>) {
        if self.options.errors.delay == Span::ZERO {
            return fx.send(to, report);
        }
        self.delayed.push_back((to, report));
        fx.arm(SEND, self.options.errors.delay);
    }
}

/// The tick at which reports of progress are due.
pub(super) const PROGRESS: Timer = Timer::Tick(0);
/// The tick at which a delayed report of progress is sent.
pub(super) const SEND: Timer = Timer::Tick(1);
/// The tick at which reports of use are due.
pub(super) const USE: Timer = Timer::Tick(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::JobId;
    use crate::harness::Harness;
    use crate::layout::Layout;
    use crate::machine::{Effect, Input};
    use crate::message::{Core, Launch, Row};
    use crate::roles::NodeManager;
    use crate::roles::node::NodeOptions;

    /// The phases are those of Hadoop's reduce task if copying takes four sixths of the time.
    #[test]
    fn each_phase_makes_up_an_equal_part_of_the_score() {
        let errors = ProgressErrors { phases: vec![4.0, 1.0, 1.0], ..ProgressErrors::default() };
        for (share, score) in
            [(0.0, 0.0), (1.0 / 3.0, 1.0 / 6.0), (0.75, 0.5), (11.0 / 12.0, 5.0 / 6.0), (1.0, 1.0)]
        {
            assert!((errors.phased(share) - score).abs() < 1e-12, "{share}: {}", errors.phased(share));
        }
        assert_eq!(ProgressErrors::default().phased(0.3), 0.3);
        let phases = |phases| ProgressErrors { phases, ..ProgressErrors::default() }.check();
        assert!(
            phases(vec![1.0, 0.0]).is_err() && phases(vec![1.0; 17]).is_err() && phases(vec![1.0]).is_ok()
        );
    }

    fn node(errors: ProgressErrors, starts: bool) -> Harness {
        let layout = Layout::new(1, 0, [1]);
        let reports = Some(ReportOptions { every: Span::from_secs(3), starts, errors });
        let options = NodeOptions { reports, ..NodeOptions::default() };
        Harness::new(layout.clone(), layout.node(0), 1, Box::new(NodeManager::with(options, 1)))
    }

    /// A report of half of the work has an evenly distributed error of at most a tenth, and is never below zero or
    /// above one.
    #[test]
    fn noise_of_reports_is_uniform_and_bounded() {
        let mut node = node(ProgressErrors { noise: 0.1, ..ProgressErrors::default() }, false);
        let (worker, scheduler, copy) =
            (node.layout.worker(0, 0), node.layout.scheduler(0), JobId(0).task(0).copy(0));
        node.receive(scheduler, Launch::Row(Row::single(copy)));
        let mut reported = |of: f64| match node
            .receive(worker, Core::Score { copy, score: Score((of * 1e9) as u32), done_ms: 0 })[..]
        {
            [(_, crate::message::Message::Progress(Progress::Report { score, .. }))] => score.share(),
            ref sent => panic!("{sent:?}"),
        };
        let shares: Vec<f64> = (0..4000).map(|_| reported(0.5)).collect();
        assert!(shares.iter().all(|share| (0.4..=0.6).contains(share)));
        let mean = shares.iter().sum::<f64>() / 4000.0;
        // The standard deviation of the mean is 0.1 / √(3 · 4000).
        assert!((mean - 0.5).abs() < 0.004, "{mean}");
        let ends: Vec<f64> = (0..100).flat_map(|_| [reported(0.0), reported(1.0)]).collect();
        assert!(ends.iter().all(|share| (0.0..=1.0).contains(share)));
    }

    /// Starts are reported if requested, and a delayed report carries the time to which it refers.
    #[test]
    fn a_delayed_report_carries_the_time_to_which_it_refers() {
        let delay = Span::from_secs(2);
        let mut node = node(ProgressErrors { delay, ..ProgressErrors::default() }, true);
        let (scheduler, copy) = (node.layout.scheduler(0), JobId(0).task(0).copy(0));
        node.now = Time::ZERO + Span::from_secs(5);
        let started = node.deliver(scheduler, Launch::Row(Row::single(copy)));
        assert!(started.contains(&Effect::Arm { timer: SEND, after: delay }));
        node.now += delay;
        let report = Progress::Report {
            copy,
            score: Score::NONE,
            at: (Time::ZERO + Span::from_secs(5)).into(),
            age_ms: 0,
        };
        let sent = crate::harness::sends(&node.step(Input::Fire(SEND)));
        assert_eq!(sent, [(scheduler, report.into())]);
        assert_eq!(node.step(Input::Fire(SEND)), []);
    }
}
