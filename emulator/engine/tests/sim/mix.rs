//! Jobs of several stages: exact times on idle clusters, runs with crashes, and runs on several shards.

use proptest::prelude::*;
use volary_actors::base::{JobId, Time};
use volary_actors::machine::Note;
use volary_engine::metrics::Recording;
use volary_engine::results::{CopyEnd, Measured};

use crate::common::{FAULTY, one_task, run, with, world};
use crate::oracles::HOPS;
use crate::sharding::lockstep;

/// A class of jobs; `stages` states the number of tasks and the work of each stage.
fn class(name: &str, weight: f64, stages: &[(u32, &str)], rest: &str) -> String {
    let stage = |(tasks, demand): &(u32, &str)| format!("{{ tasks = {tasks}, demand = {demand} }}");
    let stages: Vec<_> = stages.iter().map(stage).collect();
    format!("{{ name = \"{name}\", weight = {weight:?}, stages = [{}]{rest} }}", stages.join(", "))
}

/// The experiment with a mix of these classes in place of its workload.
fn mixed(text: &str, jobs: u32, interarrival: &str, classes: &[String]) -> String {
    let mut file: toml::Table = toml::from_str(text).unwrap();
    file["service"].as_table_mut().unwrap().remove("demand");
    file.remove("workload");
    let classes = classes.join(", ");
    let text = toml::to_string(&file).unwrap();
    let mix = format!("{{ jobs = {jobs}, interarrival = {interarrival}, class = [{classes}] }}");
    with(&text, &[&format!("workload.mix={mix}")])
}

/// Runs one job of these stages in the world of [`one_task`].
fn alone(nodes: u32, policy: &str, stages: &[(u32, &str)]) -> Measured {
    run(&mixed(&one_task(nodes, 1, policy, ""), 1, "\"1s\"", &[class("only", 1.0, stages, "")]))
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-9 * expected.max(1.0)
}

/// Every stage costs its work and the hops of a single job. The client starts the next stage without delay.
#[test]
fn a_chain_alone_takes_the_sum_of_its_stages() {
    for (policy, hops, _) in HOPS {
        let run = alone(8, policy, &[(1, "\"1s\""), (1, "\"2s\""), (1, "\"250ms\"")]);
        let response = run.summary.times.response_s.mean;
        let expected = 3.25 + 3.0 * 0.01 * f64::from(*hops);
        assert!(near(response, expected), "{policy}: {response} instead of {expected}");
        assert_eq!(
            (run.summary.jobs.submitted, run.summary.jobs.finished, run.summary.tasks.finished),
            (1, 1, 3)
        );
        let [job] = &run.jobs[..] else { panic!("{:?}", run.jobs) };
        assert_eq!((job.job, job.tasks, job.longest, job.alone), (0, 3, 3.25, None));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A chain takes as long as the same stages as single jobs, in any number of waves.
    #[test]
    fn a_chain_takes_as_long_as_its_stages_run_as_single_jobs(
        nodes in 1..5u32,
        stages in prop::collection::vec((1..12u32, 1..5000u64), 1..5),
    ) {
        let stages: Vec<_> = stages.into_iter().map(|(tasks, ms)| (tasks, format!("\"{ms}ms\""))).collect();
        let stages: Vec<_> = stages.iter().map(|(tasks, demand)| (*tasks, demand.as_str())).collect();
        let policy = "central-queue = {}";
        let single = |(tasks, demand): &(u32, &str)| {
            let set = [format!("workload.synthetic.tasks={tasks}"), format!("service.demand={demand}")];
            run(&with(&one_task(nodes, 1, policy, ""), &set.each_ref().map(String::as_str))).summary.times.response_s.mean
        };
        let chain = alone(nodes, policy, &stages).summary.times.response_s.mean;
        let sum: f64 = stages.iter().map(single).sum();
        prop_assert!(near(chain, sum), "{} for {}", chain, sum);
    }
}

/// A mix of one class of one stage runs like the synthetic workload, event by event.
#[test]
fn a_mix_of_one_stage_runs_like_a_synthetic_workload() {
    for policy in ["sparrow = {}", "hawk = {}", "murmuration = {}", "central-queue = {}"] {
        let text = format!("{FAULTY}[[policy]]\n{policy}\n");
        let demand = "{ exponential = { mean = \"100ms\" } }";
        let gap = "{ exponential = { mean = \"50ms\" } }";
        let one = run(&mixed(&text, 80, gap, &[class("only", 0.4, &[(4, demand)], "")]));
        let other = run(&text);
        assert_eq!(one.summary.engine.order_hash, other.summary.engine.order_hash, "{policy}");
        assert_eq!(one.summary.times.response_s, other.summary.times.response_s, "{policy}");
    }
}

/// Jobs in steps run like chains of equal stages, event by event.
#[test]
fn a_job_in_steps_runs_like_a_chain_of_equal_stages() {
    for policy in ["sparrow = {}", "hawk = {}", "murmuration = {}", "central-queue = {}"] {
        let text = format!("{FAULTY}[[policy]]\n{policy}\n");
        let gap = "{ exponential = { mean = \"500ms\" } }";
        let stages = [(4, "\"100ms\""); 5];
        let chains = run(&mixed(&text, 80, gap, &[class("only", 0.4, &stages, "")]));
        let gap = format!("workload.synthetic.interarrival={gap}");
        let steps = ["workload.synthetic.synchronous=5", "service.demand=\"500ms\"", &gap];
        let steps = run(&with(&text, &steps));
        assert_eq!(steps.summary.engine.order_hash, chains.summary.engine.order_hash, "{policy}");
        assert_eq!(steps.summary.times, chains.summary.times, "{policy}");
        assert_eq!(steps.summary.graphs, chains.summary.graphs, "{policy}");
    }
}

/// A core at a third of the speed delays each of five steps of a second. Messages take 20 ms a step.
#[test]
fn each_step_takes_as_long_as_its_slowest_worker() {
    for (slow, response, straggling) in [(3.0, 15.1, 1.0), (1.0, 5.1, 0.0)] {
        let text = with(
            &one_task(4, 1, "central-queue = {}", ""),
            &[
                "workload.synthetic.tasks=4",
                "workload.synthetic.synchronous=5",
                "service.demand=\"5s\"",
                &format!("interference.scripted={{ slot = \"1000s\", rows = [[1]], slowdown = {slow:?} }}"),
            ],
        );
        let summary = run(&text).summary;
        let (times, graphs) = (summary.times, summary.graphs.unwrap());
        assert!(near(times.response_s.mean, response), "{} s", times.response_s.mean);
        assert!(near(graphs.slowdown.p50, response / 5.0), "{graphs:?}");
        assert_eq!((graphs.depth.p50, graphs.delayed, graphs.straggling), (5.0, 1.0, straggling));
    }
}

/// Two classes of jobs of a second meet interference of kind `cache` at a slowdown of 3, and from 1000 s on an
/// injection of another kind at a slowdown of 2. One class has a sensitivity of 2.5 to the first kind and of 0 to the
/// other; the other class has sensitivities of 1.
#[test]
fn classes_suffer_from_each_kind_of_interference_by_their_sensitivity() {
    let classes = [class("web", 1.0, &[(1, "\"1s\"")], ""), class("batch", 1.0, &[(1, "\"1s\"")], "")];
    let world = mixed(&one_task(2, 1, "central-queue = {}", ""), 40, "\"50s\"", &classes);
    let always = |slowdown: f64| {
        format!("bernoulli = {{ slot = \"10000s\", probability = 1, slowdown = {slowdown:?} }}")
    };
    let (cache, network) = (always(3.0), always(2.0));
    let table = format!(
        "interference={{ kind = \"cache\", {cache}, injection = [{{ profile = {{ kind = \"network\", {network} }}, \
         at = \"1000s\" }}] }}"
    );
    let measured = run(&with(&world, &[&table, "service.sensitivity.web={ cache = 2.5, network = 0.0 }"]));
    for job in &measured.jobs {
        let takes = match (&*job.class, job.arrival < 1000.0) {
            ("web", true) => 6.0,
            ("web", false) => 1.0,
            (_, true) => 3.0,
            (_, false) => 2.0,
        };
        assert!(near(job.response, takes + 0.02), "{job:?}");
    }
    let of = |label: &str, early| {
        measured.jobs.iter().filter(|job| &*job.class == label && (job.arrival < 1000.0) == early).count()
    };
    assert!(
        [("web", true), ("web", false), ("batch", true), ("batch", false)].iter().all(|&(l, e)| of(l, e) > 0)
    );
    let same = run(&with(&world, &[&table]));
    let alike = run(&with(&world, &[&table, "service.sensitivity.web={ cache = 1.0 }"]));
    assert_eq!(same.summary.engine.order_hash, alike.summary.engine.order_hash);
}

/// Jobs never wait for each other. They take 2 s and 1 s of work and two round trips, or 1 s and one round trip.
#[test]
fn results_list_chains_under_the_names_of_their_classes() {
    let classes = [
        class("two", 1.0, &[(2, "\"2s\""), (3, "\"1s\"")], ", alone = \"1510ms\""),
        class("one", 1.0, &[(1, "\"1s\"")], ", long = true"),
    ];
    let run = run(&mixed(&one_task(4, 1, "central-queue = {}", ""), 50, "\"100s\"", &classes));
    let [("one", one), ("two", two)] =
        run.summary.classes.iter().map(|(label, times)| (label.as_str(), times)).collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", run.summary.classes)
    };
    assert_eq!((run.summary.jobs.submitted, run.summary.jobs.finished, one.jobs + two.jobs), (50, 50, 50));
    assert!(one.jobs > 10 && two.jobs > 10);
    assert_eq!(run.summary.tasks.submitted, one.jobs + 5 * two.jobs);
    for (times, response, slowdown, longest) in [(one, 1.02, 1.02, 1.0), (two, 3.04, 3.04 / 1.51, 3.0)] {
        assert!(
            near(times.times.response_s.p50, response) && near(times.times.response_s.max, response),
            "{times:?}"
        );
        assert!(
            near(times.times.slowdown.p50, slowdown) && near(times.times.longest_s.p50, longest),
            "{times:?}"
        );
        assert!(
            (times.times.wait_s.p99 - 0.01).abs() < 1e-4,
            "a stage waits from its own submission: {times:?}"
        );
    }
    // Both tables use the chain as the job, and number its tasks across its stages.
    for job in &run.jobs {
        let mut tasks: Vec<_> = run.copies.iter().filter(|row| row.job == job.job).collect();
        tasks.sort_by_key(|row| row.task);
        assert!(tasks.iter().map(|row| row.task).eq(0..job.tasks), "{job:?}: {tasks:?}");
        assert_eq!(job.tasks, if &*job.class == "two" { 5 } else { 1 });
        let begins = |row: u32| tasks[row as usize].start - job.arrival;
        assert!(
            (0..job.tasks).all(|task| near(begins(task), if task < 2 { 0.01 } else { 2.03 })),
            "{tasks:?}"
        );
    }
    assert!(near(run.summary.makespan_s, 49.0 * 100.0 + run.jobs[49].response));
}

/// A run that ends between two stages has an open job.
#[test]
fn a_chain_is_open_until_its_last_stage_has_ended() {
    let text = mixed(
        &one_task(1, 1, "random = {}", ""),
        1,
        "\"1s\"",
        &[class("a", 1.0, &[(1, "\"1s\""), (1, "\"9s\"")], "")],
    );
    let world = world(&text);
    let mut recorder = world.recorder(Recording::default());
    let client = world.layout().client(0);
    let (copy, worker) = (JobId(0).task(0).copy(0), world.layout().worker(0, 0));
    let at = |s: u64| Time(s * 1_000_000_000);
    recorder.note(at(1), client, Note::Arrived { job: copy.task.job });
    recorder.note(at(1), worker, Note::Started { copy, resumed: false });
    recorder.note(at(2), worker, Note::Completed { copy });
    recorder.note(at(2), client, Note::Finished { job: copy.task.job });
    assert!(!recorder.all_finished());
    recorder.note(at(2), client, Note::Arrived { job: JobId(1) });
    let closed = recorder.cut(at(5));
    assert_eq!((closed.jobs.submitted, closed.jobs.finished, closed.jobs.unfinished), (1, 0, 1));
    let tasks = closed.measured.tasks;
    assert_eq!((tasks.submitted, tasks.finished), (2, 1));
    assert!(closed.rows[0].response.is_nan() && closed.rows[0].tasks == 2);
}

/// Nodes and schedulers crash, and messages are lost and doubled. Every stage still ends once, after the stage before.
#[test]
fn stages_end_once_and_in_order_under_faults() {
    let demand = "{ exponential = { mean = \"100ms\" } }";
    let classes = [
        class("three", 0.6, &[(4, demand), (1, demand), (6, demand)], ""),
        class(
            "one",
            0.4,
            &[(3, demand)],
            ", long = true, names = 4, users = 2, recurrence = 0.7, spread = 0.4",
        ),
    ];
    for policy in [
        "sparrow = {}",
        "peacock = {}",
        "murmuration = {}",
        "latin-square = { order = 2 }",
        "eagle = { rank = \"job\" }",
    ] {
        let text = with(&format!("{FAULTY}[[policy]]\n{policy}\n"), &["cluster.schedulers=3"]);
        let text = mixed(&text, 60, "{ exponential = { mean = \"100ms\" } }", &classes);
        let (world, alone) = (world(&text), run(&text));
        assert_eq!((alone.summary.jobs.finished, alone.summary.jobs.submitted), (60, 60), "{policy}");
        assert_eq!(alone.summary.tasks.finished, alone.summary.tasks.submitted);
        let first = alone.copies.iter().filter(|row| row.end_kind == CopyEnd::First).count() as u64;
        assert!(alone.sampled_one_in > 1 || first == alone.summary.tasks.finished, "{policy}");
        for shards in [2, 5] {
            let (rows, crossed) = lockstep(&world, shards, world.recorder(Recording::default()));
            assert_eq!(rows, alone.jobs, "{policy} on {shards} shards");
            assert!(crossed > 0);
        }
    }
}
