//! Policies in other languages, with programs that run within the test: drawn worlds with faults, and programs that
//! misbehave.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use volary_actors::base::{JobId, Rng};
use volary_actors::catalog::Catalog;
use volary_actors::program::{Channel, Launcher, ProgramSpec};
use volary_engine::metrics::RunConfig;
use volary_engine::results::Measured;
use volary_engine::virtual_time::measure;
use volary_engine::world::EngineError;

use crate::common::{FAULTY, parse, run, with, worlds};
use crate::swarm::{Again, Flaw, check, experiment, first, number, quietly};

/// Starts programs by the first word of the command; the other words are ignored.
#[derive(Debug)]
pub(crate) struct WithinTest;

impl Launcher for WithinTest {
    fn launch(&self, program: ProgramSpec<'_>) -> Result<Box<dyn Channel>, String> {
        let misdeed = program.command.get(1).cloned().unwrap_or_default();
        match program.command[0].as_str() {
            "naive" => Ok(Box::new(Naive { misdeed, ..Naive::default() })),
            other => Err(format!("cannot start `{other}`")),
        }
    }
}

/// A program that does not consider faults. It sends every task that needs a node to the next node that is up,
/// sometimes all tasks of a job at once, and sometimes late. Sometimes it takes a task back or, where nodes can suspend
/// tasks, suspends one for a while. At level actor its schedulers and nodes exchange messages and arm timers without a
/// purpose.
#[derive(Debug, Default)]
struct Naive {
    hello: Value,
    actors: BTreeMap<String, State>,
    requests: u32,
    /// Answer to the fifth request for a scheduler, which violates the protocol; `ends` to end the program instead, and
    /// empty for valid answers only.
    misdeed: String,
}

#[derive(Debug)]
struct State {
    rng: Rng,
    next: u64,
    down: BTreeSet<u64>,
    /// Tasks that need a node.
    waiting: BTreeSet<(u64, u64)>,
    /// Tasks at nodes.
    placed: BTreeMap<(u64, u64), u64>,
    /// Tasks that have finished; a later copy of them can be at a node.
    finished: BTreeSet<(u64, u64)>,
    timers: u32,
    /// The task that is suspended.
    suspended: Option<(u64, u64)>,
    /// Whether decisions can take time.
    late: bool,
}

fn numbers(event: &Value) -> (u64, u64) {
    (event["job"].as_u64().unwrap_or(0), event["task"].as_u64().unwrap_or(0))
}

impl State {
    fn new(seed: &str, late: bool) -> Self {
        let rng = Rng::new(seed.parse().expect("a seed"), 0, 0);
        let (down, waiting, placed, finished, suspended) = Default::default();
        Self { rng, next: 0, down, waiting, placed, finished, timers: 0, suspended, late }
    }

    fn handle(&mut self, event: &Value, orders: &mut Vec<Value>) {
        let (job, task) = numbers(event);
        let node = event["actor"].as_str().and_then(|actor| actor.strip_prefix("node:"));
        let node = node.map(|number| number.parse().expect("a number"));
        match event["event"].as_str().expect("events have names") {
            "job" => {
                let tasks = event["tasks"].as_u64().expect("a number of tasks");
                self.waiting.extend((0..tasks).map(|task| (job, task)));
            }
            "ready" => {
                assert!(
                    self.waiting.insert((job, task)) || self.late,
                    "task {task} of job {job} waits already"
                );
                // Where a decision took time, the task has been launched since.
                let is_placed = self.placed.contains_key(&(job, task));
                assert!(!is_placed || self.late, "task {task} of job {job} is at a node");
                if is_placed {
                    self.waiting.remove(&(job, task));
                }
            }
            "ended" => {
                self.waiting.remove(&(job, task));
                self.finished.insert((job, task));
                // An event without a node means that an earlier copy has ended; the copy at a node leaves later.
                if let Some(node) = event["node"].as_u64() {
                    self.leave((job, task), node);
                }
            }
            "left" => {
                self.leave((job, task), event["node"].as_u64().expect("a node"));
            }
            "down" => {
                if let Some(node) = node {
                    self.down.insert(node);
                    self.placed.retain(|_, at| *at != node);
                    self.suspended = self.suspended.filter(|task| self.placed.contains_key(task));
                }
            }
            "up" => {
                node.map(|node| self.down.remove(&node));
            }
            "killed" => {
                assert!(
                    self.placed.keys().all(|placed| placed.0 != job),
                    "job {job} was killed and has nodes"
                );
                self.waiting.retain(|waiting| waiting.0 != job);
            }
            "unreachable" | "reachable" | "launch" | "returned" => {}
            "timer" => assert!(event["id"].as_u64() < Some(u64::from(self.timers)), "an unknown timer"),
            "message" if event["name"] == "ask" && self.rng.below(2) == 0 => {
                let values = &event["values"];
                orders.push(json!({ "do": "send", "to": event["from"], "name": "tell", "values": values }));
            }
            "message" => {}
            other => panic!("an event called {other}"),
        }
    }

    /// A task has left a node. It is the node to which the task was sent last, except where decisions take time: there
    /// an earlier copy can leave its node after the program has taken the task back.
    fn leave(&mut self, task: (u64, u64), node: u64) {
        if self.placed.get(&task) == Some(&node) {
            self.placed.remove(&task);
            self.suspended = self.suspended.filter(|suspended| *suspended != task);
        } else {
            assert!(self.late, "{task:?} leaves {node}, and is at {:?}", self.placed.get(&task));
        }
    }

    fn next_node(&mut self, nodes: u64) -> Option<u64> {
        let found = (0..nodes).map(|i| (self.next + i) % nodes).find(|node| !self.down.contains(node))?;
        self.next = found + 1;
        Some(found)
    }

    /// Resumes the suspended task, or suspends one.
    fn suspend_or_resume(&mut self, orders: &mut Vec<Value>) {
        let order = |verb, (job, task): (u64, u64)| json!({ "do": verb, "job": job, "task": task });
        if let Some(task) = self.suspended.take() {
            orders.push(order("resume", task));
        } else if self.rng.below(3) == 0
            && let Some((&task, _)) = self.placed.last_key_value()
        {
            orders.push(order("suspend", task));
            self.suspended = Some(task);
        }
    }

    fn decide(&mut self, hello: &Value, orders: &mut Vec<Value>) {
        let nodes = hello["nodes"].as_u64().expect("a number of nodes");
        if hello["suspend"] == true {
            self.suspend_or_resume(orders);
        }
        // A task that is taken back starts elsewhere at once, unless an earlier copy has finished it.
        if self.rng.below(50) == 0
            && let Some((&task, _)) = self.placed.first_key_value()
        {
            orders.push(json!({ "do": "preempt", "job": task.0, "task": task.1 }));
            self.placed.remove(&task);
            self.suspended = self.suspended.filter(|suspended| *suspended != task);
            if !self.finished.contains(&task) {
                self.waiting.insert(task);
            }
        }
        for (job, task) in std::mem::take(&mut self.waiting) {
            match self.next_node(nodes) {
                Some(node) => {
                    orders.push(json!({ "do": "launch", "job": job, "task": task, "node": node }));
                    self.placed.insert((job, task), node);
                }
                None => {
                    self.waiting.insert((job, task));
                }
            }
        }
        // The suspended task is resumed when the timer goes off at the latest.
        if self.suspended.is_some() {
            orders.push(json!({ "do": "timer", "id": self.timers, "after": 0.5 }));
            self.timers += 1;
        }
    }
}

impl Naive {
    fn answer(&mut self, request: &Value) -> Value {
        if !request["hello"].is_null() {
            self.hello = request["hello"].clone();
            let own = self.hello["level"] == "actor";
            let message = |name, class| json!({ "name": name, "class": class, "fields": ["u32", "actor"] });
            return match own {
                true => json!({ "hello": {
                    "protocol": 1, "level": "actor", "nodes": self.hello["suspend"] == false,
                    "messages": [message("ask", "datagram"), message("tell", "stream")],
                } }),
                false => json!({ "hello": { "protocol": 1, "level": "central" } }),
            };
        }
        let name = request["actor"].as_str().expect("requests name an actor").to_owned();
        let events = request["events"].as_array().expect("a list of events");
        if events[0]["event"] == "start" {
            let state =
                State::new(events[0]["seed"].as_str().expect("a seed"), self.hello["level"] == "central");
            self.actors.insert(name.clone(), state);
        }
        let state = self.actors.get_mut(&name).expect("an actor starts first");
        let mut orders = Vec::new();
        for event in events.iter().filter(|event| event["event"] != "start") {
            state.handle(event, &mut orders);
        }
        if name.starts_with("node") {
            return json!({ "do": orders });
        }
        state.decide(&self.hello, &mut orders);
        if self.hello["level"] == "actor" {
            let node = format!("node:{}", state.rng.below(self.hello["nodes"].as_u64().unwrap_or(1) as u32));
            orders.push(json!({ "do": "send", "to": node, "name": "ask", "values": [7, name] }));
            return json!({ "do": orders });
        }
        match state.rng.below(4) {
            0 => json!({ "do": orders, "took": 0.05 }),
            _ => json!({ "do": orders }),
        }
    }
}

impl Channel for Naive {
    fn exchange(&mut self, request: &str) -> Result<String, String> {
        let request: Value = serde_json::from_str(request).map_err(|error| error.to_string())?;
        let of_scheduler = request["actor"].as_str().is_some_and(|actor| actor.starts_with("scheduler"));
        self.requests += u32::from(of_scheduler);
        let answer = self.answer(&request);
        if !of_scheduler || self.requests < 5 || self.misdeed.is_empty() {
            return Ok(answer.to_string());
        }
        if self.misdeed == "ends" { Err("it ended".to_owned()) } else { Ok(self.misdeed.clone()) }
    }

    fn complaint(&mut self) -> String {
        "the last words".to_owned()
    }
}

/// The drawn experiment of a seed with a program instead of its policy.
fn drawn(seed: u64) -> Option<String> {
    let text = experiment(seed);
    let (world, policy) = text.split_once("[[policy]]\n")?;
    let level = if seed.is_multiple_of(2) { "central" } else { "actor" };
    // Some sections follow the policy.
    let after = policy.find("\n[").map_or("", |at| &policy[at..]);
    let set: &[&str] = if level == "central" { &["cluster.schedulers=1"] } else { &[] };
    let with_suspend = |suspend: bool| {
        let table = format!("{{ command = [\"naive\"], level = \"{level}\", suspend = {suspend} }}");
        let text = with(&format!("{world}[[policy]]\nexternal = {table}\n{after}"), set);
        // Faults can aim at schedulers that a central policy does not have, and shared nodes cannot suspend.
        crate::swarm::valid(&text).is_ok().then_some(text)
    };
    with_suspend((seed / 8).is_multiple_of(2)).or_else(|| with_suspend(false))
}

#[test]
fn every_job_finishes_exactly_once_under_a_naive_program() {
    let seeds = number("VOLARY_SWARM_SEEDS").unwrap_or(100);
    let (mut ran, mut failed) = (0, 0);
    for seed in first()..first() + seeds {
        let Some(text) = drawn(seed) else { continue };
        ran += 1;
        let again = [Again::Replay, Again::TwoShards, Again::Hosts, Again::SameSeed][(seed / 2 % 4) as usize];
        match check(&text, again) {
            Ok(()) => {}
            Err(Flaw::Broken(why) | Flaw::Invalid(why)) => panic!("seed {seed}: {why}\n{text}"),
        }
        let misdeed = ["ends", "nonsense", "{\"do\":[{\"do\":\"sing\"}]}"][(seed % 3) as usize];
        let bad = text.replace("[\"naive\"]", &format!("[\"naive\", '{misdeed}']"));
        match quietly(|| check(&bad, Again::Nothing)) {
            Err(Flaw::Broken(why)) if why.starts_with("the policy's program failed: ") => failed += 1,
            // A short run sends fewer than five requests, so the program never misbehaves.
            Ok(()) => {}
            Err(Flaw::Broken(why) | Flaw::Invalid(why)) => panic!("seed {seed}: {why}\n{bad}"),
        }
    }
    assert!(ran * 2 > seeds, "only {ran} of {seeds} experiments could be run");
    assert!(failed * 10 > ran * 9, "only {failed} of {ran} misdeeds were noticed");
}

fn external(level: &str, misdeed: &str) -> String {
    let schedulers = if level == "central" { "cluster.schedulers=1" } else { "cluster.schedulers=2" };
    let policy =
        format!("[[policy]]\nexternal = {{ command = [\"naive\", '{misdeed}'], level = \"{level}\" }}\n");
    let faults = FAULTY.find("[[network.fault]]").expect("the world has faults");
    with(&format!("{}{policy}", &FAULTY[..faults]), &[schedulers])
}

#[test]
fn a_misbehaving_program_ends_its_run_with_an_error_that_quotes_request_and_answer() {
    for (misdeed, says) in [
        ("ends", "it ended"),
        ("nonsense", "its answer must be an object"),
        (r#"{"do":[{"do":"sing"}]}"#, "unknown variant `sing`"),
        (r#"{"do":[],"too":1}"#, "unknown field `too`"),
        (r#"{"do":[{"do":"launch","job":9999,"task":0,"node":0}]}"#, "there is no task 0 of job 9999"),
        (r#"{"do":[{"do":"launch","job":0,"task":0,"node":99}]}"#, "there is no node 99: the last one is 11"),
        (r#"{"do":[{"do":"launch","job":79,"task":0,"node":0}]}"#, "has finished or never arrived"),
        (r#"{"do":[{"do":"gang","job":0,"nodes":[1]}]}"#, "job 0 has 4 tasks, and its gang has 1 nodes"),
        (r#"{"do":[{"do":"preempt","job":79,"task":0}]}"#, "which is at no node"),
        (r#"{"do":[{"do":"suspend","job":0,"task":0}]}"#, "which needs suspend = true in the experiment"),
        (r#"{"do":[{"do":"timer","id":1,"after":-1}]}"#, "after must be a number of seconds"),
        (r#"{"do":[{"do":"timer","id":4294967295,"after":1}]}"#, "must be below 2147483648"),
        (
            r#"{"do":[{"do":"send","to":"node:1","name":"ask","values":[]}]}"#,
            "has 2 fields, and 0 values were given",
        ),
        (
            r#"{"do":[{"do":"send","to":"node:77","name":"ask","values":[1,"node:1"]}]}"#,
            "there is no `node:77`",
        ),
        (r#"{"took":-1}"#, "took must be a number of seconds"),
    ] {
        for level in ["central", "actor"] {
            let world = worlds(&parse(&external(level, misdeed))).next().expect("a policy");
            match measure("test", &world, &RunConfig::default(), &()) {
                Err(EngineError::Refused(why)) => {
                    assert!(why.starts_with("the policy's program failed: "), "{why}");
                    let none = level == "central" && why.contains("its greeting declares no message `ask`");
                    assert!(none || why.contains(says), "{misdeed}: {why}");
                    let asked =
                        why.contains("it was asked {\"at\":") || why.contains("it was asked {\"hello\":");
                    assert!(asked && why.contains("the last words"), "{why}");
                    assert!(misdeed == "ends" || why.contains(&format!("it said {misdeed}")), "{why}");
                }
                other => panic!("{misdeed} at level {level}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_decision_that_takes_time_is_carried_out_when_it_is_over() {
    let text =
        external("central", "").replace("[policy.external]\n", "[policy.external]\ndecision = \"200ms\"\n");
    let (slow, fast) = (run(&text), run(&external("central", "")));
    assert_eq!([slow.summary.jobs.finished, fast.summary.jobs.finished], [80, 80]);
    let mean = |measured: &Measured| measured.summary.times.response_s.mean;
    assert!(mean(&slow) > mean(&fast) + 0.1, "{} against {}", mean(&slow), mean(&fast));
}

/// A suspended task keeps its progress, so no core time is wasted.
#[test]
fn a_program_suspends_tasks_and_resumes_them() {
    for level in ["central", "actor"] {
        let suspend = "[policy.external]\nsuspend = true\n";
        let run = run(&external(level, "").replace("[policy.external]\n", suspend));
        let copies = run.summary.copies;
        assert_eq!(run.summary.jobs.finished, 80);
        assert!(copies.suspensions > 5 && copies.suspended_s > 0.0, "{copies:?}");
        assert_eq!(copies.started, copies.finished + copies.preempted, "{copies:?}");
    }
}

/// Users request between 0.5 and 1.5 times the time that their jobs need.
#[test]
fn gangs_that_run_longer_than_requested_are_killed_and_counted_as_failed() {
    let set = ["workload.synthetic.gang=true", "cluster.nodes=200", "cluster.cores=1"];
    let requested = "service.requested={ uniform = { low = 0.5, high = 1.5 } }";
    for (faults, level) in [(false, "central"), (false, "actor"), (true, "actor")] {
        let text = external(level, "").replace("[policy.external]", "[policy.external]\noverrun = \"30ms\"");
        let crashes = if faults { &FAULTY[FAULTY.find("[[network.fault]]").expect("faults")..] } else { "" };
        let text = format!("{}\n{crashes}", with(&text, &[&set[..], &[requested]].concat()));
        let world = worlds(&parse(&text)).next().expect("a policy");
        let run = measure("test", &world, &RunConfig::default(), &()).expect("the run ends");
        let counts = run.summary.jobs;
        assert_eq!((counts.finished + counts.failed, counts.unfinished), (80, 0), "{text}");
        assert!(counts.failed > 20 && counts.finished > 20, "{counts:?}");
        assert!(
            run.notes.iter().any(|note| note.contains("jobs were killed because they ran longer")),
            "{:?}",
            run.notes
        );
        let copies = run.summary.copies;
        assert_eq!(copies.started, copies.finished + copies.preempted + copies.lost, "{copies:?}");
        assert!(copies.wasted_work_s > 0.0);
        // The longest task of a job that finishes exceeds the limit by at most the time that messages take.
        for row in run.jobs.iter().filter(|row| row.response.is_finite()) {
            let requested = world.workload().requested(JobId(row.job)).expect("it is drawn").as_secs_f64();
            assert!(row.longest < requested + 0.04, "job {}: {requested} of {}", row.job, row.longest);
        }
    }
}
