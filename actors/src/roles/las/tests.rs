//! Tests of exact schedules on one node.

use super::*;
use crate::base::{JobId, Score};
use crate::harness::{Harness, sends};
use crate::layout::Layout;
use crate::machine::{Effect, Input, Machine};
use crate::message::{Launch, Message, Row};

/// The discipline wrapped in a machine.
#[derive(Clone, Debug)]
struct Node(Las);

impl Machine for Node {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg: Message::Launch(Launch::Task { copy, .. }) } => {
                self.0.arrive(from, copy, fx);
            }
            Input::Deliver { from, msg: Message::Launch(Launch::Row(row)) } => {
                (0..row.width).for_each(|position| self.0.arrive(from, row.copy(position), fx));
            }
            Input::Deliver { from, msg: Message::Core(Core::Ended { copy }) } => {
                let _ = self.0.ended(from, copy, fx);
            }
            Input::Deliver { from, msg: Message::Core(Core::Suspended { copy, left }) } => {
                self.0.suspended(from, copy, left, fx);
            }
            Input::Deliver { from, msg: Message::Core(Core::Score { copy, done_ms, .. }) } => {
                self.0.on_progress(from, copy, done_ms, fx);
            }
            Input::Fire(Timer::Tick(tick)) => self.0.fire(tick, fx),
            Input::Down { actor } => self.0.forget(actor, fx),
            _ => unreachable!("{input:?}"),
        }
    }
}

/// A node with its workers: the copy on each core, the work that the copy has left, and the armed ticks.
struct Bench {
    harness: Harness,
    running: Vec<Option<(CopyId, u64)>>,
    ticks: Vec<(u64, u32)>,
    work: Vec<u64>,
    /// Seconds that each core needs for one second of work.
    slowdowns: Vec<u64>,
    log: Vec<(u64, &'static str, u32)>,
}

fn copy(job: u32) -> CopyId {
    JobId(job).task(0).copy(0)
}

impl Bench {
    /// A node with W = 2 s and a job of one task for each number of seconds of work.
    fn new(cores: u32, options: LasOptions, work: &[u64]) -> Self {
        let layout = Layout::new(1, 0, [cores]);
        let (me, node) = (layout.node(0), Node(Las::new(options, cores)));
        let harness = Harness::new(layout, me, 1, Box::new(node));
        let (ticks, log) = (Vec::new(), Vec::new());
        let slowdowns = vec![1; cores as usize];
        Self { harness, running: vec![None; cores as usize], ticks, work: work.to_vec(), slowdowns, log }
    }

    fn now(&self) -> u64 {
        self.harness.now.0 / 1_000_000_000
    }

    fn input(&mut self, input: Input) {
        for effect in self.harness.step(input) {
            match effect {
                Effect::Send { to, msg: Message::Core(order), .. } => self.order(to, order),
                Effect::Arm { timer: Timer::Tick(tick), after } => {
                    self.ticks.push((self.now() + after.0 / 1_000_000_000, tick));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn order(&mut self, worker: ActorId, order: Core) {
        let core = self.harness.layout.core_index(worker) as usize;
        let (now, slowdown) = (self.now(), self.slowdowns[core]);
        match order {
            Core::Run { copy, .. } => {
                self.log.push((now, "run", copy.task.job.0));
                self.running[core] = Some((copy, now + self.work[copy.task.job.index()] * slowdown));
            }
            Core::Resume { copy, left } => {
                self.log.push((now, "resume", copy.task.job.0));
                self.running[core] = Some((copy, now + left.0 * slowdown / 1_000_000_000));
            }
            Core::Suspend { copy } => {
                let Some((running, due)) = self.running[core].take() else { panic!("idle") };
                assert_eq!(running, copy);
                let left = Span(Span::from_secs(due - now).0 / slowdown);
                self.input(Input::Deliver { from: worker, msg: Core::Suspended { copy, left }.into() });
            }
            Core::Ask { copy } => {
                // A worker does not answer for a copy that it does not run.
                let Some((_, due)) = self.running[core].filter(|(running, _)| *running == copy) else {
                    return;
                };
                let left_ms = (due - now) * 1000 / slowdown;
                let done_ms = self.work[copy.task.job.index()] * 1000 - left_ms;
                let score = Core::Score { copy, score: Score::NONE, done_ms: done_ms as u32 };
                self.input(Input::Deliver { from: worker, msg: score.into() });
            }
            Core::Stop { copy } => {
                assert_eq!(self.running[core].take().map(|(running, _)| running), Some(copy));
            }
            _ => panic!("{order:?}"),
        }
    }

    /// Runs until a time. Ticks come before ends of the same instant.
    fn run_until(&mut self, end: u64) {
        loop {
            let tick = self.ticks.iter().copied().min();
            let done = self.running.iter().flatten().map(|(_, due)| *due).min();
            let next = tick.map(|(at, _)| at).into_iter().chain(done).min().filter(|&at| at < end);
            let Some(now) = next else { break };
            self.harness.now = Time::ZERO + Span::from_secs(now);
            if let Some((at, number)) = tick.filter(|(at, _)| *at == now) {
                self.ticks.retain(|&armed| armed != (at, number));
                self.input(Input::Fire(Timer::Tick(number)));
                continue;
            }
            let core = self.running.iter().position(|run| run.is_some_and(|(_, due)| due == now)).unwrap();
            let Some((copy, _)) = self.running[core].take() else { unreachable!("it runs") };
            self.log.push((now, "end", copy.task.job.0));
            let from = self.harness.layout.worker(0, core as u32);
            self.input(Input::Deliver { from, msg: Core::Ended { copy }.into() });
        }
        self.harness.now = Time::ZERO + Span::from_secs(end);
    }

    fn arrive(&mut self, at: u64, job: u32) {
        self.run_until(at);
        let (from, now) = (self.harness.layout.scheduler(0), self.harness.now);
        self.input(Input::Deliver { from, msg: Launch::Task { copy: copy(job), at: now }.into() });
    }

    fn ends(&self) -> Vec<(u64, u32)> {
        self.log.iter().filter(|(_, what, _)| *what == "end").map(|&(at, _, job)| (at, job)).collect()
    }
}

fn options() -> LasOptions {
    LasOptions { guard: LasGuard::None, ..LasOptions::with(Span::from_secs(2)) }
}

/// The copies swap at 3, 5 and 7. The first ends at 9, at the end of its quantum, and the second at 10.
#[test]
fn two_copies_take_turns() {
    let mut bench = Bench::new(1, options(), &[5, 5]);
    bench.arrive(0, 0);
    bench.arrive(1, 1);
    bench.run_until(20);
    let log = [(0, "run", 0), (1, "run", 1), (3, "resume", 0), (5, "resume", 1), (7, "resume", 0)];
    assert_eq!(bench.log[..5], log);
    assert_eq!(bench.ends(), [(9, 0), (10, 1)]);
}

/// A newcomer with 1 s of work delays the other copy by 1 s.
#[test]
fn a_newcomer_runs_at_once() {
    let mut bench = Bench::new(1, options(), &[10, 1]);
    bench.arrive(0, 0);
    assert_eq!(bench.ticks, [], "a single copy needs no tick");
    bench.arrive(4, 1);
    bench.run_until(20);
    assert_eq!(bench.ends(), [(5, 1), (11, 0)]);
    assert_eq!(bench.ticks, [], "no tick is armed at the end");
}

/// On two cores the newcomer takes the core of the copy that has attained most. The copy that ends leaves its core to
/// the suspended copy that has attained least.
#[test]
fn the_most_attained_copy_leaves_and_the_least_attained_continues() {
    let mut bench =
        Bench::new(2, LasOptions { quantum: Span::from_secs(100), ..options() }, &[50, 50, 50, 2, 1]);
    bench.arrive(0, 0);
    bench.arrive(3, 1);
    bench.arrive(5, 2);
    assert_eq!(bench.running.iter().flatten().map(|(c, _)| c.task.job.0).collect::<Vec<_>>(), [2, 1]);
    bench.arrive(6, 3);
    assert_eq!(bench.running.iter().flatten().map(|(c, _)| c.task.job.0).collect::<Vec<_>>(), [2, 3]);
    bench.run_until(9);
    assert_eq!(
        bench.log.last(),
        Some(&(8, "resume", 1)),
        "copy 1 has attained three seconds, the other five"
    );
    bench.arrive(9, 4);
    assert_eq!(
        bench.running.iter().flatten().map(|(c, _)| c.task.job.0).collect::<Vec<_>>(),
        [4, 1],
        "both copies have attained 4 s"
    );
}

/// On healthy cores the work done is the time spent, so both measures give the same orders at the same times.
#[test]
fn both_measures_give_equal_schedules_on_healthy_cores() {
    let log = |attained| {
        let mut bench = Bench::new(
            2,
            LasOptions { attained, guard: LasGuard::Promote, missed: 2, ..options() },
            &[7, 9, 4, 12, 3, 5, 8],
        );
        for (at, job) in [(0, 0), (0, 1), (3, 2), (3, 3), (8, 4), (9, 5), (9, 6)] {
            bench.arrive(at, job);
        }
        bench.run_until(60);
        assert_eq!(bench.ends().len(), 7);
        bench.log
    };
    assert_eq!(log(AttainedMeasure::Work), log(AttainedMeasure::Time));
}

/// Two copies have run for 4 s. The copy on a core of a quarter of the speed has done less work. It is preempted if
/// service is time, as the first of equals, and continues if service is work.
#[test]
fn a_copy_on_a_slow_core_attains_time_but_little_work() {
    for (attained, running) in [(AttainedMeasure::Time, [2, 1]), (AttainedMeasure::Work, [0, 2])] {
        let quantum = Span::from_secs(100);
        let mut bench = Bench::new(2, LasOptions { attained, quantum, ..options() }, &[8, 8, 1]);
        bench.slowdowns = vec![4, 1];
        for (at, job) in [(0, 0), (0, 1), (4, 2)] {
            bench.arrive(at, job);
        }
        let jobs = bench.running.iter().flatten().map(|(copy, _)| copy.task.job.0);
        assert_eq!(jobs.collect::<Vec<_>>(), running, "{attained:?}");
        bench.run_until(60);
        assert_eq!(bench.ends().len(), 3);
    }
}

/// Two copies that arrive in one message take the two cores of the running copies.
#[test]
fn newcomers_of_one_message_take_a_core_each() {
    for attained in [AttainedMeasure::Time, AttainedMeasure::Work] {
        let mut bench = Bench::new(2, LasOptions { attained, ..options() }, &[20, 20, 1]);
        bench.arrive(0, 0);
        bench.arrive(0, 1);
        bench.run_until(5);
        let row = Row { job: JobId(2), base: 0, len: 2, turn: 0, width: 2, attempt: 0, elsewhere: false };
        let from = bench.harness.layout.scheduler(0);
        bench.input(Input::Deliver { from, msg: Launch::Row(row).into() });
        let jobs = bench.running.iter().flatten().map(|(copy, _)| copy.task.job.0);
        assert_eq!(jobs.collect::<Vec<_>>(), [2, 2], "{attained:?}");
        bench.run_until(99);
        assert_eq!(bench.ends().len(), 4);
    }
}

/// A pause delays the end of a copy. The report of the end reaches the node after it has ordered the copy to be
/// suspended, and the worker ignores this order. The copy has ended, and the newcomer gets the core.
#[test]
fn an_end_in_flight_voids_a_suspension() {
    let layout = Layout::new(1, 0, [1]);
    let (me, worker, scheduler) = (layout.node(0), layout.worker(0, 0), layout.scheduler(0));
    let mut node = Harness::new(layout, me, 1, Box::new(Node(Las::new(options(), 1))));
    let task = |job| Launch::Task { copy: copy(job), at: Time::ZERO };
    assert_eq!(node.receive(scheduler, task(0)), [(worker, Core::run(copy(0)).into())]);
    assert_eq!(node.receive(scheduler, task(1)), [(worker, Core::Suspend { copy: copy(0) }.into())]);
    assert_eq!(node.ended(copy(0)), [(worker, Core::run(copy(1)).into())]);
}

/// With a hysteresis of 4 s a swap needs this lead: the copies swap at 5 s, 9 s and so on, not every 2 s.
#[test]
fn hysteresis_delays_swaps() {
    let mut bench = Bench::new(1, LasOptions { hysteresis: Span::from_secs(4), ..options() }, &[20, 20]);
    bench.arrive(0, 0);
    bench.arrive(1, 1);
    bench.run_until(24);
    let swaps: Vec<_> = bench.log.iter().filter(|(_, what, _)| *what == "resume").map(|e| e.0).collect();
    assert_eq!(swaps, [7, 17], "1 + 6 ≥ 1 + 4, then 11 ≥ 6 + 4");
}

/// Time at which a job's copy resumes for the first time.
fn resumes(bench: &Bench, job: u32) -> Option<u64> {
    bench.log.iter().find(|(_, what, of)| (*what, *of) == ("resume", job)).map(|(at, ..)| *at)
}

/// The first copy has attained 10 s when two newcomers arrive and take turns. The first copy is passed over at 12, 14
/// and 16 s. At the next end of a quantum it runs for two quanta, in which a third newcomer waits. Without the guard
/// it runs when the two newcomers have attained as much.
#[test]
fn a_copy_passed_over_often_runs_next_and_is_not_preempted() {
    for (guard, runs, third) in [(LasGuard::Promote, 18, 23), (LasGuard::None, 32, 20)] {
        let guard = LasOptions { guard, stretch: 2.0, ..options() };
        let mut bench = Bench::new(1, guard, &[30, 20, 20, 1]);
        for (at, job) in [(0, 0), (10, 1), (10, 2), (19, 3)] {
            bench.arrive(at, job);
        }
        bench.run_until(60);
        assert_eq!(resumes(&bench, 0), Some(runs), "{:?}", bench.log);
        assert_eq!(bench.ends()[0], (third, 3), "{:?}", bench.log);
    }
}

/// Four cores end their quanta at different times. A copy that one core passes over must be passed over by three more.
#[test]
fn a_copy_is_promoted_only_after_every_core_passed_it_over() {
    let guard = LasOptions {
        quantum: Span::from_secs(4),
        hysteresis: Span::from_secs(100),
        guard: LasGuard::Promote,
        ..options()
    };
    let mut bench = Bench::new(4, guard, &[90, 90, 90, 90, 90]);
    for (at, job) in [(0, 0), (1, 1), (2, 2), (3, 3), (20, 4)] {
        bench.arrive(at, job);
    }
    bench.run_until(40);
    assert_eq!(resumes(&bench, 0), Some(33), "{:?}", bench.log);
}

/// Copies of 10 and 1 s of service wait behind a newcomer, the first for 10 s and the other for 11 s. Both have been
/// passed over three times at 19 s.
#[test]
fn the_guard_promote_runs_the_copy_that_has_waited_longest() {
    let options = LasOptions { guard: LasGuard::Promote, hysteresis: Span::from_secs(100), ..options() };
    let mut bench = Bench::new(1, options, &[30, 30, 30]);
    for (at, job) in [(0, 0), (10, 1), (11, 2)] {
        bench.arrive(at, job);
    }
    bench.run_until(25);
    assert_eq!(bench.log.iter().find(|(_, what, _)| *what == "resume"), Some(&(19, "resume", 0)));
}

/// Two copies take turns of 2 s. With `missed = 1` and two quanta, a copy that was suspended twice is not compared at
/// the end of its next quantum but runs for 4 s. A newcomer can still preempt it.
#[test]
fn the_guard_running_protects_a_copy_suspended_more_often_than_missed() {
    let guard = LasOptions { guard: LasGuard::Running, missed: 1, stretch: 2.0, ..options() };
    let swaps = |options, newcomer: Option<u64>| {
        let mut bench = Bench::new(1, options, &[30, 30, 1]);
        bench.arrive(0, 0);
        bench.arrive(1, 1);
        newcomer.iter().for_each(|&at| bench.arrive(at, 2));
        bench.run_until(20);
        bench
            .log
            .iter()
            .filter(|(_, what, _)| *what == "resume")
            .map(|&(at, _, job)| (at, job))
            .collect::<Vec<_>>()
    };
    assert_eq!(swaps(options(), None)[..4], [(3, 0), (5, 1), (7, 0), (9, 1)]);
    assert_eq!(
        swaps(guard, None)[..4],
        [(3, 0), (5, 1), (7, 0), (13, 1)],
        "the first copy was suspended at 1 and 5 s"
    );
    assert_eq!(swaps(guard, Some(10))[3], (11, 1), "the copy is suspended for the third one at 10 s");
}

#[test]
fn copies_of_a_dead_scheduler_are_dropped() {
    let mut bench = Bench::new(1, options(), &[5, 5]);
    bench.arrive(0, 0);
    bench.arrive(1, 1);
    let scheduler = bench.harness.layout.scheduler(0);
    bench.input(Input::Down { actor: scheduler });
    assert_eq!(bench.running, [None]);
    bench.run_until(9);
    assert_eq!(bench.ends(), [], "the remaining tick has no effect");
}

/// Two copies have 1 s and 3 s of service, and one of them runs. The report has two copies, 4 s in all, and a deviation
/// of 1 s.
#[test]
fn reported_service_covers_all_copies() {
    let mut bench = Bench::new(1, LasOptions { quantum: Span::from_secs(9), ..options() }, &[9, 9]);
    bench.arrive(0, 0);
    bench.arrive(1, 1);
    bench.run_until(4);
    let mut las = Las::new(options(), 1);
    let served = |attained, since| ServedCopy {
        copy: copy(0),
        from: ActorId(1),
        attained: Span::from_secs(attained),
        left: None,
        since: Time::ZERO + Span::from_secs(since),
        missed: 0,
    };
    las.waiting.push(served(1, 0));
    las.cores[0].usage = CoreUse::Running { served: served(0, 1), guarded: false, due: Time::MAX };
    let service = las.service(Time::ZERO + Span::from_secs(4));
    assert_eq!(service, AttainedService { tasks: 2, total: Span::from_secs(4), spread: Span::from_secs(1) });
    assert_eq!(sends(&bench.harness.step(Input::Fire(Timer::Tick(7)))), [], "an unknown tick has no effect");
}
