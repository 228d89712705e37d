//! Least attained service on one node: cores, and copies that wait or are suspended (Kairos, section 3.2, algorithm 1).
//!
//! A newcomer takes a free core, or that of the running copy with the most attained service, which is suspended with
//! its progress. A copy that ends leaves its core to the one that waits with the least. While copies wait, a core
//! compares them with what it runs at the end of every quantum. The discipline sends orders to its workers; the machine
//! that holds it forwards their answers and its own ticks.
//!
//! A core gets its next copy when the one before has answered with the work it has left. A copy without any ended in
//! that very instant: it stays, and the core is free after its end.

use crate::base::{ActorId, CopyId, Span, Time};
use crate::layout::Role;
use crate::machine::{Effects, Timer};
use crate::message::Core;

/// Options of the discipline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LasOptions {
    /// How long a core runs a copy before it compares it with those that wait.
    pub quantum: Span,
    /// How much less than the running copy a waiting one must have attained at the end of a quantum; zero: anything.
    pub hysteresis: Span,
    /// How often a copy that waits is passed over at ends of quanta before it runs next, whatever it has attained;
    /// zero: never.
    pub missed: u32,
    /// Quanta for which it then runs without being preempted, 1 or more.
    pub stretch: f64,
}

/// A copy on the node.
#[derive(Clone, Copy, Debug)]
struct ServedCopy {
    copy: CopyId,
    /// Who sent it.
    from: ActorId,
    /// Service up to `since`.
    attained: Span,
    /// Work still missing when it was suspended; `None` before it first ran.
    left: Option<Span>,
    /// When its present stretch on a core, or its wait, began.
    since: Time,
    /// Quanta at whose end it was passed over in this wait.
    missed: u32,
}

#[derive(Clone, Copy, Debug)]
enum CoreUse {
    Idle,
    Running {
        served: ServedCopy,
        /// Whether it may not be preempted before `due`.
        guarded: bool,
        /// The end of its quantum.
        due: Time,
    },
    /// The worker was told to suspend the copy and has not answered yet; then `next` runs.
    Leaving {
        served: ServedCopy,
        next: CopyId,
    },
}

#[derive(Clone, Copy, Debug)]
struct LasCore {
    usage: CoreUse,
    /// Number and time of the tick that is armed for this core; earlier ones are outdated.
    wake: Option<(u32, Time)>,
}

/// What the copies on a node have attained.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AttainedService {
    /// How many there are.
    pub tasks: u32,
    /// The sum.
    pub total: Span,
    /// The standard deviation.
    pub spread: Span,
}

/// The cores of a node and the copies that wait for them.
pub struct Las {
    options: LasOptions,
    cores: Box<[LasCore]>,
    /// Longest wait first.
    waiting: Vec<ServedCopy>,
    /// Ticks armed so far, which numbers them from one.
    ticks: u32,
}

impl Las {
    /// A node with `cores` idle cores. Its ticks are never zero, which is left to the machine that holds it.
    pub fn new(options: LasOptions, cores: u32) -> Self {
        let core = LasCore { usage: CoreUse::Idle, wake: None };
        Self { options, cores: vec![core; cores as usize].into(), waiting: Vec::new(), ticks: 0 }
    }

    /// How many copies are here.
    pub fn tasks(&self) -> u32 {
        let busy = self.cores.iter().filter(|core| !matches!(core.usage, CoreUse::Idle)).count();
        (busy + self.waiting.len()) as u32
    }

    /// What they have attained.
    pub fn service(&self, now: Time) -> AttainedService {
        let running = self.cores.iter().filter_map(|core| match core.usage {
            CoreUse::Running { served, .. } => Some(served.attained + now.since(served.since)),
            CoreUse::Leaving { served, .. } => Some(served.attained),
            CoreUse::Idle => None,
        });
        let all = running.chain(self.waiting.iter().map(|waiting| waiting.attained));
        let total = all.clone().fold(Span::ZERO, |sum, attained| sum + attained);
        let tasks = self.tasks();
        let mean = total.as_secs_f64() / f64::from(tasks.max(1));
        let squares: f64 = all.map(|attained| (attained.as_secs_f64() - mean).powi(2)).sum();
        let spread = Span::from_secs_f64((squares / f64::from(tasks.max(1))).sqrt());
        AttainedService { tasks, total, spread }
    }

    /// A copy came: it runs at once, unless every core is guarded.
    pub fn arrive(&mut self, from: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let now = fx.now();
        let newcomer = ServedCopy { copy, from, attained: Span::ZERO, left: None, since: now, missed: 0 };
        if let Some(core) = self.cores.iter().position(|core| matches!(core.usage, CoreUse::Idle)) {
            self.start(core, newcomer, false, fx);
        } else {
            self.waiting.push(newcomer);
            if let Some(core) = self.oldest(now) {
                self.suspend(core, copy, fx);
            }
        }
        self.arm(fx);
    }

    /// A worker reports that a copy ended; returns who had sent it.
    pub fn ended(&mut self, worker: ActorId, copy: CopyId, fx: &mut Effects<'_>) -> Option<ActorId> {
        let core = core_of(worker, fx);
        let CoreUse::Running { served, .. } = self.cores[core].usage else { return None };
        debug_assert_eq!(served.copy, copy, "a core ended what it was not given");
        self.cores[core].usage = CoreUse::Idle;
        self.resume_next(core, fx);
        self.arm(fx);
        Some(served.from)
    }

    /// A worker reports that it suspended a copy.
    pub fn suspended(&mut self, worker: ActorId, copy: CopyId, left: Span, fx: &mut Effects<'_>) {
        let core = core_of(worker, fx);
        let CoreUse::Leaving { served, next } = self.cores[core].usage else { return };
        debug_assert_eq!(served.copy, copy, "a core suspended what it was not given");
        let served = ServedCopy { left: Some(left), since: fx.now(), ..served };
        self.cores[core].usage = CoreUse::Idle;
        if left == Span::ZERO {
            self.start(core, served, false, fx);
        } else {
            let next = self.waiting.iter().position(|waiting| waiting.copy == next);
            self.waiting.push(served);
            match next {
                Some(at) => self.resume(core, at, fx),
                None => self.resume_next(core, fx),
            }
        }
        self.arm(fx);
    }

    /// A tick of this discipline went off.
    pub fn fire(&mut self, tick: u32, fx: &mut Effects<'_>) {
        let mine = |core: &LasCore| core.wake.is_some_and(|(number, _)| number == tick);
        let Some(core) = self.cores.iter().position(mine) else { return };
        self.cores[core].wake = None;
        if let CoreUse::Running { served, due, .. } = self.cores[core].usage
            && fx.now() >= due
        {
            self.end_quantum(core, served.attained + fx.now().since(served.since), fx);
        }
        self.arm(fx);
    }

    /// Drops the copies of a crashed coordinator: another one launches them again.
    pub fn forget(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.waiting.retain(|waiting| waiting.from != actor);
        for core in 0..self.cores.len() {
            if let CoreUse::Running { served, .. } = self.cores[core].usage
                && served.from == actor
            {
                fx.send(worker(core, fx), Core::Stop { copy: served.copy });
                self.cores[core].usage = CoreUse::Idle;
            }
        }
        for core in 0..self.cores.len() {
            if matches!(self.cores[core].usage, CoreUse::Idle) {
                self.resume_next(core, fx);
            }
        }
        self.arm(fx);
    }

    /// The core that runs the copy with the most attained service among those that may be preempted.
    fn oldest(&self, now: Time) -> Option<usize> {
        let mut oldest: Option<(usize, Span)> = None;
        for (at, core) in self.cores.iter().enumerate() {
            let CoreUse::Running { served, guarded, due } = core.usage else { continue };
            let attained = served.attained + now.since(served.since);
            if !(guarded && now < due) && oldest.is_none_or(|(_, most)| attained > most) {
                oldest = Some((at, attained));
            }
        }
        oldest.map(|(at, _)| at)
    }

    /// Whether a copy was passed over so often that it runs next.
    const fn is_starved(&self, waiting: &ServedCopy) -> bool {
        self.options.missed > 0 && waiting.missed >= self.options.missed
    }

    /// The place among those that wait of the one that runs next: it is starved, or has attained least; of equals, the
    /// one that has waited longest, which is also the first to starve.
    fn next(&self) -> Option<usize> {
        if self.is_starved(self.waiting.first()?) {
            return Some(0);
        }
        (0..self.waiting.len()).min_by_key(|&at| self.waiting[at].attained)
    }

    /// Ends the quantum of a running copy that has attained so much.
    fn end_quantum(&mut self, core: usize, attained: Span, fx: &mut Effects<'_>) {
        let now = fx.now();
        if let Some(at) = self.next() {
            let next = self.waiting[at];
            let lead = attained.saturating_sub(next.attained);
            let swaps = self.is_starved(&next) || lead > Span::ZERO && lead >= self.options.hysteresis;
            for (other, waiting) in self.waiting.iter_mut().enumerate() {
                waiting.missed += u32::from(!swaps || other != at);
            }
            if swaps {
                return self.suspend(core, next.copy, fx);
            }
        }
        if let CoreUse::Running { guarded, due, .. } = &mut self.cores[core].usage {
            (*guarded, *due) = (false, now + self.options.quantum);
        }
    }

    /// Orders a busy core to suspend its copy and run `next` after it.
    fn suspend(&mut self, core: usize, next: CopyId, fx: &mut Effects<'_>) {
        let CoreUse::Running { mut served, .. } = self.cores[core].usage else { return };
        served.attained += fx.now().since(served.since);
        fx.send(worker(core, fx), Core::Suspend { copy: served.copy });
        self.cores[core].usage = CoreUse::Leaving { served, next };
    }

    /// Gives a free core to the copy that is next, if one waits.
    fn resume_next(&mut self, core: usize, fx: &mut Effects<'_>) {
        if let Some(at) = self.next() {
            self.resume(core, at, fx);
        }
    }

    /// Gives a free core to a copy that waits.
    fn resume(&mut self, core: usize, at: usize, fx: &mut Effects<'_>) {
        let next = self.waiting.remove(at);
        let starved = self.is_starved(&next);
        self.start(core, next, starved, fx);
    }

    fn start(&mut self, core: usize, next: ServedCopy, guarded: bool, fx: &mut Effects<'_>) {
        let (copy, now, quantum) = (next.copy, fx.now(), self.options.quantum);
        let order = next.left.map_or(Core::Run { copy }, |left| Core::Resume { copy, left });
        fx.send(worker(core, fx), order);
        let quantum = if guarded { quantum.scale(self.options.stretch) } else { quantum };
        let served = ServedCopy { since: now, missed: 0, ..next };
        self.cores[core].usage = CoreUse::Running { served, guarded, due: now + quantum };
    }

    /// While copies wait, each busy core has a tick at the end of its quantum or before. Quanta that ended without one,
    /// because no copy waited, are over.
    fn arm(&mut self, fx: &mut Effects<'_>) {
        if self.waiting.is_empty() {
            return;
        }
        let (now, quantum) = (fx.now(), self.options.quantum.0);
        for core in &mut self.cores {
            let CoreUse::Running { guarded, due, .. } = &mut core.usage else { continue };
            if core.wake.is_some_and(|(_, at)| at <= *due) {
                continue;
            }
            if *due <= now {
                let over = now.since(*due).0 / quantum + 1;
                (*guarded, *due) = (false, *due + Span(quantum.saturating_mul(over)));
            }
            self.ticks = self.ticks.checked_add(1).unwrap_or(1);
            core.wake = Some((self.ticks, *due));
            fx.arm(Timer::Tick(self.ticks), due.since(now));
        }
    }
}

/// The worker of a core of the node that is stepped.
fn worker(core: usize, fx: &Effects<'_>) -> ActorId {
    match fx.layout().role(fx.me()) {
        Role::Node(node) => fx.layout().worker(node, core as u32),
        role => unreachable!("a node runs as {role:?}"),
    }
}

/// The number of a worker's core within its node.
fn core_of(worker: ActorId, fx: &Effects<'_>) -> usize {
    match fx.layout().role(worker) {
        Role::Worker { core, .. } => core as usize,
        role => unreachable!("{role:?} is no core"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::JobId;
    use crate::harness::{Harness, sends};
    use crate::layout::Layout;
    use crate::machine::{Effect, Input, Machine};
    use crate::message::{Launch, Message};

    /// The discipline as a machine.
    struct Node(Las);

    impl Machine for Node {
        fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
            match input {
                Input::Deliver { from, msg: Message::Launch(Launch::Task { copy, .. }) } => {
                    self.0.arrive(from, copy, fx);
                }
                Input::Deliver { from, msg: Message::Core(Core::Ended { copy }) } => {
                    let _ = self.0.ended(from, copy, fx);
                }
                Input::Deliver { from, msg: Message::Core(Core::Suspended { copy, left }) } => {
                    self.0.suspended(from, copy, left, fx);
                }
                Input::Fire(Timer::Tick(tick)) => self.0.fire(tick, fx),
                Input::Down { actor } => self.0.forget(actor, fx),
                _ => unreachable!("{input:?}"),
            }
        }
    }

    /// A node with its workers: what runs on each core, how much work it has left, and the ticks that are armed.
    struct Bench {
        harness: Harness,
        running: Vec<Option<(CopyId, u64)>>,
        ticks: Vec<(u64, u32)>,
        work: Vec<u64>,
        log: Vec<(u64, &'static str, u32)>,
    }

    fn copy(job: u32) -> CopyId {
        JobId(job).task(0).copy(0)
    }

    impl Bench {
        /// W = 2 s; a job of one task for each number of seconds of work.
        fn new(cores: u32, options: LasOptions, work: &[u64]) -> Self {
            let layout = Layout::new(1, 0, [cores]);
            let (me, node) = (layout.node(0), Node(Las::new(options, cores)));
            let harness = Harness::new(layout, me, 1, Box::new(node));
            let (ticks, log) = (Vec::new(), Vec::new());
            Self { harness, running: vec![None; cores as usize], ticks, work: work.to_vec(), log }
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
            let now = self.now();
            match order {
                Core::Run { copy } => {
                    self.log.push((now, "run", copy.task.job.0));
                    self.running[core] = Some((copy, now + self.work[copy.task.job.index()]));
                }
                Core::Resume { copy, left } => {
                    self.log.push((now, "resume", copy.task.job.0));
                    self.running[core] = Some((copy, now + left.0 / 1_000_000_000));
                }
                Core::Suspend { copy } => {
                    let Some((running, due)) = self.running[core].take() else { panic!("idle") };
                    assert_eq!(running, copy);
                    let left = Span::from_secs(due - now);
                    self.input(Input::Deliver { from: worker, msg: Core::Suspended { copy, left }.into() });
                }
                Core::Stop { copy } => {
                    assert_eq!(self.running[core].take().map(|(running, _)| running), Some(copy));
                }
                _ => panic!("{order:?}"),
            }
        }

        /// Ticks come before ends of the same instant.
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
                let core =
                    self.running.iter().position(|run| run.is_some_and(|(_, due)| due == now)).unwrap();
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
        LasOptions { quantum: Span::from_secs(2), hysteresis: Span::ZERO, missed: 0, stretch: 1.0 }
    }

    /// O-K1: swaps at 3, 5 and 7; the first ends at 9, in the instant its quantum ends, the second at 10.
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

    /// O-K1: a newcomer of a second delays the other by a second.
    #[test]
    fn a_newcomer_runs_at_once() {
        let mut bench = Bench::new(1, options(), &[10, 1]);
        bench.arrive(0, 0);
        assert_eq!(bench.ticks, [], "alone it needs no tick");
        bench.arrive(4, 1);
        bench.run_until(20);
        assert_eq!(bench.ends(), [(5, 1), (11, 0)]);
        assert_eq!(bench.ticks, [], "nor in the end");
    }

    /// Two cores: the newcomer takes that of the copy that has attained most, and the one that ends leaves its core to
    /// the suspended one that has attained least.
    #[test]
    fn the_most_attained_leaves_and_the_least_attained_goes_on() {
        let mut bench =
            Bench::new(2, LasOptions { quantum: Span::from_secs(100), ..options() }, &[50, 50, 50, 2, 1]);
        bench.arrive(0, 0);
        bench.arrive(3, 1);
        bench.arrive(5, 2);
        assert_eq!(bench.running.iter().flatten().map(|(c, _)| c.task.job.0).collect::<Vec<_>>(), [2, 1]);
        bench.arrive(6, 3);
        assert_eq!(bench.running.iter().flatten().map(|(c, _)| c.task.job.0).collect::<Vec<_>>(), [2, 3]);
        bench.run_until(9);
        assert_eq!(bench.log.last(), Some(&(8, "resume", 1)), "three seconds against five");
        bench.arrive(9, 4);
        assert_eq!(
            bench.running.iter().flatten().map(|(c, _)| c.task.job.0).collect::<Vec<_>>(),
            [4, 1],
            "4 s each"
        );
    }

    /// With a hysteresis of 4 s a swap needs that lead: the copies swap at 5 s, 9 s and so on, not every 2 s.
    #[test]
    fn hysteresis_delays_swaps() {
        let mut bench = Bench::new(1, LasOptions { hysteresis: Span::from_secs(4), ..options() }, &[20, 20]);
        bench.arrive(0, 0);
        bench.arrive(1, 1);
        bench.run_until(24);
        let swaps: Vec<_> = bench.log.iter().filter(|(_, what, _)| *what == "resume").map(|e| e.0).collect();
        assert_eq!(swaps, [7, 17], "1 + 6 ≥ 1 + 4, then 11 ≥ 6 + 4");
    }

    /// The first copy has attained 10 s when two newcomers come, which take turns. Passed over at 12, 14 and 16 s, it
    /// runs at the next end of a quantum for two quanta, in which a third newcomer waits.
    #[test]
    fn who_is_passed_over_runs_next_and_is_not_preempted() {
        for (missed, runs, third) in [(3, 18, 23), (0, 51, 20)] {
            let guard = LasOptions { missed, stretch: 2.0, ..options() };
            let mut bench = Bench::new(1, guard, &[30, 20, 20, 1]);
            for (at, job) in [(0, 0), (10, 1), (10, 2), (19, 3)] {
                bench.arrive(at, job);
            }
            bench.run_until(60);
            let again = bench.log.iter().find(|(_, what, job)| (*what, *job) == ("resume", 0));
            assert!(again.is_some_and(|(at, ..)| *at == runs || missed == 0), "{:?}", bench.log);
            assert_eq!(bench.ends()[0], (third, 3), "{:?}", bench.log);
        }
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
        assert_eq!(bench.ends(), [], "the tick that is left finds nothing");
    }

    /// Copies of 1 s and 3 s of service, one running: two, 4 s, 1 s.
    #[test]
    fn service_is_of_all_copies() {
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
        assert_eq!(
            service,
            AttainedService { tasks: 2, total: Span::from_secs(4), spread: Span::from_secs(1) }
        );
        assert_eq!(sends(&bench.harness.step(Input::Fire(Timer::Tick(7)))), [], "an unknown tick");
    }
}
