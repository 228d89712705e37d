//! An exact executor, which must give the results of virtual time.

use std::cell::RefCell;
use std::rc::Rc;

use volary_actors::base::{Span, Time};
use volary_engine::cores::Cores;
use volary_engine::metrics::Recording;
use volary_engine::results::{RealWork, Worked};
use volary_engine::shard::{CoreExecutor, Parts, Placement, Shard};

use crate::common::{FAULTY, parse, run, with, worlds};

/// An executor that follows `Cores` exactly; pauses are left to the shard.
struct ExactCores {
    cores: Cores,
    now: Time,
    /// Core and ticket of each copy, and the time at which its work is finished.
    running: Vec<(u32, u64, Time)>,
    halts: u32,
}

impl ExactCores {
    fn next(&self) -> Option<Time> {
        self.running.iter().map(|(_, _, due)| *due).min()
    }
}

/// The executor, shared by the shard and the test.
#[derive(Clone)]
struct SharedCores(Rc<RefCell<ExactCores>>);

impl CoreExecutor for SharedCores {
    fn run(&mut self, core: u32, ticket: u64, work: Span) {
        let ExactCores { cores, now, running, .. } = &mut *self.0.borrow_mut();
        running.push((core, ticket, cores.start(core, *now, work)));
    }

    fn halt(&mut self, core: u32) -> Span {
        let ExactCores { cores, now, running, halts } = &mut *self.0.borrow_mut();
        running.retain(|(other, ..)| *other != core);
        *halts += 1;
        cores.stop(core, *now)
    }

    fn left(&self, core: u32) -> Span {
        let exact = self.0.borrow();
        exact.cores.left(core, exact.now)
    }

    fn finished(&mut self) -> Option<(u32, u64, Time)> {
        let ExactCores { cores, now, running, .. } = &mut *self.0.borrow_mut();
        let at = running.iter().position(|(.., due)| due <= now)?;
        let (core, ticket, due) = running.swap_remove(at);
        cores.finished(core, due);
        Some((core, ticket, due))
    }

    fn degrade(&mut self, _: &Cores, _: Time, _: bool) {}

    fn end(&mut self) -> Worked {
        Worked::default()
    }
}

/// Runs an experiment with the exact executor and in virtual time, and asserts equal jobs and response times, apart
/// from the rounding of halted copies to nanoseconds. Returns the number of halts, and the measurements of the cores.
fn assert_same(text: &str) -> (u32, RealWork) {
    let experiment = parse(text);
    let world = worlds(&experiment).next().unwrap();
    let interference = experiment.points[0].resolved.interference.as_ref();
    let cores = Cores::new(
        interference,
        world.machines().cores.clone(),
        volary_netem::Windows::default(),
        world.seed(),
    );
    let exact = ExactCores { cores, now: Time::ZERO, running: Vec::new(), halts: 0 };
    let shared = SharedCores(Rc::new(RefCell::new(exact)));
    let parts = Parts { shared: true, ..world.parts(Placement::ALONE, true).unwrap() };
    let mut shard = Shard::new(parts, world.recorder(Recording::default()));
    shard.set_executor(Box::new(shared.clone()));
    shard.start();
    while !shard.observer.all_finished() {
        let done = shared.0.borrow().next();
        let Some(now) = [done, shard.next()].into_iter().flatten().min() else { break };
        shared.0.borrow_mut().now = now;
        shard.poll_executor(now);
        shard.advance();
    }
    let work = shard.take_executor().unwrap().work;
    let now = shard.now();
    let rows = shard.observer.close(now).rows;
    let virtually = run(text);
    assert_eq!(rows.len(), virtually.jobs.len(), "{text}");
    for (mine, other) in rows.iter().zip(&virtually.jobs) {
        let apart = (mine.response - other.response).abs();
        assert!(mine.job == other.job && apart < 1e-6, "{mine:?} {other:?}\n{text}");
    }
    let halts = shared.0.borrow().halts;
    (halts, work)
}

/// An experiment with crashes, pauses, losses, and cores of different speeds.
fn file(policy: &str, set: &[&str]) -> String {
    let faults = "network.fault=[{crash={who=[\"node:3\"], at=\"1s\", for=\"700ms\"}}, \
                  {pause={who=[\"node:5\"], at=\"2s\", for=\"300ms\"}}, \
                  {pause={who=[\"node:6\", \"node:7\"], at=\"3s\", for=\"2s\"}}]";
    let speed = "cluster.speed={uniform={low=0.5, high=2.0}}";
    let set = [&["cluster.schedulers=1", "workload.synthetic.jobs=300", faults, speed], set].concat();
    with(&format!("{FAULTY}[[policy]]\n{policy}\n"), &set)
}

const BURSTS: &str =
    "interference.bernoulli={slot=\"70ms\", probability=0.3, slowdown={uniform={low=1.5, high=9.0}}}";

#[test]
fn an_exact_executor_gives_the_results_of_virtual_time() {
    let mut halted = 0;
    for policy in [
        "random = {}",
        "latin-square = { order = 2 }",
        "full-repetition = {}",
        "late = { scale = 0.002 }",
        "hedged = {}",
        "dolly = {}",
    ] {
        let (halts, work) = assert_same(&file(policy, &[BURSTS]));
        assert!(work.copies.count > 1000, "{policy}: {work:?}");
        assert!((work.copies.mean - 1.0).abs() < 1e-9 && work.copies.std < 1e-9, "{policy}: {work:?}");
        halted += halts;
    }
    assert!(halted > 500, "copies were halted by policies, a crash and pauses: {halted}");
}

#[test]
fn the_cost_of_a_preemption_is_work_of_the_executor() {
    assert_same(&file("latin-square = { order = 2 }", &["service.preemption=7ms"]));
}
