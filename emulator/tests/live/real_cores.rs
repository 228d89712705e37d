//! Tests of executors: an exact test double, which must give the results of virtual time, and the real cores of this
//! machine, of which nothing is required that depends on its speed or load.

use std::cell::RefCell;
use std::fs;
use std::rc::Rc;

use crate::common::binary::{expect, lines};
use volary::config::Experiment;
use volary::runtime::executor::free_cpus;
use volary_actors::base::{Span, Time};
use volary_engine::cores::{Cores, Pauses};
use volary_engine::results::{JobRow, Measured};
use volary_engine::results::{RealWork, Worked};
use volary_engine::shard::{CoreExecutor, Parts, Placement, Shard};
use volary_engine::world::World;

/// An executor that follows `Cores` exactly; pauses are left to the shard.
struct ExactCores {
    cores: Cores,
    now: Time,
    /// Core, ticket, and when its work is finished.
    running: Vec<(u32, u64, Time)>,
    halts: u32,
}

impl ExactCores {
    fn next(&self) -> Option<Time> {
        self.running.iter().map(|(_, _, due)| *due).min()
    }
}

/// Shared by the shard and the test.
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

/// Runs a point with the exact executor; returns its jobs, the number of halts, and the measurements of the cores.
fn run_exactly(experiment: &Experiment, point: usize, world: &World) -> (Vec<JobRow>, u32, RealWork) {
    let resolved = &experiment.points[point].resolved;
    let machines = world.machines().cores.clone();
    let cores = Cores::new(resolved.interference.as_ref(), machines, Pauses::default(), world.seed());
    let exact = ExactCores { cores, now: Time::ZERO, running: Vec::new(), halts: 0 };
    let shared = SharedCores(Rc::new(RefCell::new(exact)));
    let parts = Parts { shared: true, ..world.parts(Placement::ALONE).unwrap() };
    let mut shard = Shard::new(parts, world.recorder(experiment.run.recording()));
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
    let halts = shared.0.borrow().halts;
    (shard.observer.close(now).rows, halts, work)
}

/// Asserts equal jobs and response times, to the rounding of halted copies to nanoseconds.
fn assert_same(mine: &[JobRow], others: &[JobRow], what: &str) {
    assert_eq!(mine.len(), others.len(), "{what}");
    for (mine, other) in mine.iter().zip(others) {
        let apart = (mine.response - other.response).abs();
        assert!(mine.job == other.job && apart < 1e-6, "{what}: {mine:?} {other:?}");
    }
}

/// A world with a crash, pauses, losses, cores of different speeds, and interference.
const WORLD: &str = r#"
title = "exact cores"
seed = 7
[cluster]
nodes = 12
cores = 2
schedulers = 1
speed = { uniform = { low = 0.5, high = 2.0 } }
[workload.synthetic]
jobs = 300
tasks = 4
interarrival = { exponential = { mean = "50ms" } }
[service]
demand = { exponential = { mean = "100ms" } }
[network]
one_way = { gamma = { shape = 4, mean = "3ms" } }
loss = 0.02
[[network.fault]]
crash = { who = ["node:3"], at = "1s", for = "700ms" }
[[network.fault]]
pause = { who = ["node:5"], at = "2s", for = "300ms" }
[[network.fault]]
pause = { who = ["node:6", "node:7"], at = "3s", for = "2s" }
[interference]
bernoulli = { slot = "70ms", probability = 0.3, slowdown = { uniform = { low = 1.5, high = 9.0 } } }
"#;

#[test]
fn an_exact_executor_gives_the_results_of_virtual_time() {
    let _machine = crate::machine();
    let policies = [
        "random = {}",
        "latin-square = { order = 2 }",
        "full-repetition = {}",
        "late = { scale = 0.002 }",
        "hedged = {}",
        "dolly = {}",
    ];
    let mut halted = 0;
    for policy in policies {
        let experiment = crate::common::parse(&format!("{WORLD}[[policy]]\n{policy}\n"));
        let world = crate::common::worlds(&experiment).next().unwrap();
        let virtually: Measured = crate::common::measured(&experiment).remove(0);
        let (jobs, halts, work) = run_exactly(&experiment, 0, &world);
        assert_same(&jobs, &virtually.jobs, policy);
        assert!(work.copies.count > 1000, "{policy}: {work:?}");
        assert!((work.copies.mean - 1.0).abs() < 1e-9 && work.copies.std < 1e-9, "{policy}: {work:?}");
        halted += halts;
    }
    assert!(halted > 500, "copies were halted by policies, a crash and pauses: {halted}");
}

#[test]
fn the_cost_of_a_preemption_is_work_of_the_executor() {
    let _machine = crate::machine();
    let text = WORLD
        .split("[interference]")
        .next()
        .unwrap()
        .replace("[network]\n", "preemption = \"7ms\"\n[network]\n");
    let experiment = crate::common::parse(&format!("{text}[[policy]]\nlatin-square = {{ order = 2 }}\n"));
    let world = crate::common::worlds(&experiment).next().unwrap();
    let (jobs, ..) = run_exactly(&experiment, 0, &world);
    let virtually = crate::common::measured(&experiment).remove(0);
    assert_same(&jobs, &virtually.jobs, "latin-square, with preemption");
}

/// As small as possible, because a busy machine gives copies little CPU time.
const REAL: &str = r#"
title = "real"
seed = 5
[cluster]
nodes = 1
[workload.synthetic]
jobs = 8
tasks = 2
interarrival = "10ms"
[service]
demand = "4ms"
[network]
one_way = "1ms"
[interference]
bernoulli = { slot = "10ms", probability = 0.5, slowdown = 2 }
[run.real]
kernel = "hash"
[run.record]
inputs = true
[[policy]]
random = {}
"#;

fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("e.toml"), text).unwrap();
    folder
}

/// Asserts properties of a run on real cores that hold on any machine.
fn assert_burnt(cell: &serde_json::Value, host: &str) {
    assert_eq!(cell["jobs"]["finished"], 8, "{cell}");
    let cores = &cell["fidelity"]["cores"];
    assert_eq!((&cores["kernel"], &cores["degrade"]), (&"hash".into(), &"threads".into()), "{cores}");
    let [core] = &cores["cores"].as_array().unwrap()[..] else { panic!("{cores}") };
    assert_eq!((&core["core"], &core["host"]), (&0.into(), &host.into()));
    let cpu = core["cpu"].as_u64().unwrap();
    assert!(free_cpus().iter().any(|free| u64::from(free.0) == cpu), "{core}");
    assert!(core["rounds_per_s"].as_f64().unwrap() > 0.0);
    let (copies, asked) = (&cores["copies"], cores["asked_s"].as_f64().unwrap());
    assert_eq!(copies["count"], 16, "{cores}");
    // Each takes 4 ms at least, and twice that at most.
    assert!((0.0639..0.1281).contains(&asked), "{cores}");
    assert!(
        cores["achieved_s"].as_f64().unwrap() > 0.5 * asked,
        "no core is much faster than calibrated: {cores}"
    );
}

#[test]
fn copies_burn_a_core_of_this_machine_and_are_replayed() {
    let _machine = crate::machine();
    let folder = folder(REAL);
    let (out, _) = expect(folder.path(), &["run", "e.toml", "--runtime", "local", "--out", "r", "--json"], 0);
    assert_burnt(&lines(&out)[0], "local");
    let (table, _) = expect(folder.path(), &["report", "r"], 0);
    assert!(table.contains("real cores") || table.contains("DEGRADED"), "{table}");
    let report = fs::read_to_string(folder.path().join("r/report.html")).unwrap();
    assert!(report.contains("<h3>Real cores</h3>"));
    let (out, _) = expect(folder.path(), &["replay", "r"], 0);
    assert!(out.contains("effects identical"), "{out}");
    // Virtual time ignores `[run.real]`.
    let (out, _) = expect(folder.path(), &["run", "e.toml", "--out", "v", "--json"], 0);
    assert!(lines(&out)[0]["fidelity"].is_null());
    let (out, _) = expect(folder.path(), &["plan", "e.toml"], 0);
    assert!(out.contains("calculated or timed here, not burnt"), "{out}");
}

#[test]
fn copies_burn_cores_of_hosts() {
    let _machine = crate::machine();
    let folder = folder(REAL);
    let args = ["run", "e.toml", "--runtime", "hosts", "--spawn", "1", "--out", "r", "--json"];
    let (out, _) = expect(folder.path(), &args, 0);
    assert_burnt(&lines(&out)[0], "local1");
    let (out, _) = expect(folder.path(), &["replay", "r"], 0);
    assert!(out.contains("effects identical"), "{out}");
}

#[test]
fn real_and_timed_copies_are_compared_in_one_command() {
    let _machine = crate::machine();
    let folder = folder(REAL);
    let args = ["validate", "e.toml", "--runtimes", "virtual,local", "--out", "r", "--quiet"];
    let (out, _) = expect(folder.path(), &args, 0);
    for words in ["local timed", "local burnt", "8 jobs with equal arrivals and demands"] {
        assert!(out.contains(words), "{words} is not in\n{out}");
    }
    assert!(folder.path().join("r/local-burnt-1/summary.jsonl").exists());
    let timed = fs::read_to_string(folder.path().join("r/local-timed-1/summary.jsonl")).unwrap();
    assert!(lines(&timed)[0]["fidelity"]["cores"].is_null());
}

#[test]
fn too_few_cpus_are_refused_with_what_to_do() {
    let _machine = crate::machine();
    if free_cpus().len() >= 900 {
        return;
    }
    let folder = folder(&REAL.replace("nodes = 1", "nodes = 900"));
    let (_, err) = expect(folder.path(), &["run", "e.toml", "--runtime", "local", "--out", "r"], 2);
    assert!(err.contains("real work takes a CPU for each emulated core: 900 cores there"), "{err}");
    assert!(!folder.path().join("r").exists());
    let spare =
        ["run", "e.toml", "--runtime", "local", "--set", "cluster.nodes=1", "--set", "run.real.spare=900"];
    let (_, err) = expect(folder.path(), &spare, 2);
    assert!(err.contains("run.real.spare") && err.contains("and 0 CPUs free"), "{err}");
    let spawn = ["run", "e.toml", "--runtime", "hosts", "--spawn", "64"];
    if free_cpus().len() < 64 {
        let (_, err) = expect(folder.path(), &spawn, 2);
        assert!(err.contains("agents on one machine need CPUs of their own"), "{err}");
    }
    for (key, value, known) in [("kernel", "sha1", "hash"), ("degrade", "quota", "threads")] {
        let set = format!("run.real.{key}={value}");
        let (_, err) = expect(folder.path(), &["run", "e.toml", "--set", &set], 2);
        assert!(err.contains(value) && err.contains(known), "{err}");
    }
    let agent = |cpus| ["agent", "--listen", "127.0.0.1:0", "--identity", ".", "--cpus", cpus];
    for (cpus, words) in
        [("2-1", "is no CPU"), ("x", "is no CPU"), ("65535", "none that this process may use")]
    {
        let (_, err) = expect(folder.path(), &agent(cpus), 2);
        assert!(err.contains(words), "{cpus}: {err}");
    }
}
