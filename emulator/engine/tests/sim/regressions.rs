//! Minimal experiments that once failed: jobs lost, accounts that did not balance, messages that multiplied.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use volary_actors::base::Span;
use volary_engine::metrics::RunConfig;
use volary_engine::results::Measured;
use volary_engine::virtual_time::measure;
use volary_engine::workload::{Reading, Trace, TraceSource, WorkloadError};
use volary_engine::world::World;

use crate::common::{parse, run};

/// A source of one trace, given as its lines.
struct Lines(&'static str);

impl TraceSource for Lines {
    fn open(&self, file: &Path, reading: &Reading) -> Result<Arc<Trace>, WorkloadError> {
        Trace::parse_with(file, Cursor::new(self.0), reading, Vec::new()).map(Arc::new)
    }
}

/// Runs the only policy of an experiment on a trace, whose jobs above 50 s are long.
fn run_trace(trace: &'static str, seed: u64, text: &str) -> Measured {
    let text = format!("seed = {seed}\n{text}\n[workload.trace]\nfile = \"jobs.tr\"\ncutoff = \"50s\"\n");
    let mut experiment = parse(&text);
    let point = experiment.points.remove(0);
    let world = World::build(&point, seed, &Lines(trace)).unwrap();
    measure("test", &world, &RunConfig { until: Some(Span::from_secs(10_000)), ..RunConfig::default() }, &())
        .unwrap()
}

/// Runs jobs of one-second tasks that all arrive at once.
fn at_once(seed: u64, nodes: u32, jobs: u32, tasks: u32, network: &str, policy: &str) -> Measured {
    let text = format!(
        "seed = {seed}\n[cluster]\nnodes = {nodes}\n[workload.synthetic]\njobs = {jobs}\ntasks = {tasks}\n\
         interarrival = \"0s\"\n[service]\ndemand = \"1s\"\n[network]\n{network}\n[[policy]]\n{policy}\n"
    );
    run(&text)
}

fn all_finished(measured: &Measured) -> bool {
    measured.summary.jobs.finished == measured.summary.jobs.submitted
}

/// Heartbeats that launch copies are sent every 50 hours, although queues are observed every second.
#[test]
fn a_run_survives_long_waits_of_its_policy() {
    for policy in ["yarn-fifo = { heartbeat = \"50h\" }", "big-c = { heartbeat = \"50h\", monitor = \"1s\" }"]
    {
        let measured = at_once(1, 1, 1, 1, "", policy);
        assert!(all_finished(&measured), "{policy}: {:?}", measured.notes);
        assert!(measured.summary.makespan_s > 49.0 * 3600.0, "{policy}");
    }
}

/// Two nodes claim 20,000 reservations without getting a task; each claim takes a minute.
#[test]
fn a_run_goes_on_while_reservations_are_claimed_in_vain() {
    let measured =
        run("seed = 1\n[cluster]\nnodes = 2\ncores = 2\n[workload.synthetic]\njobs = 3\ntasks = 20\n\
         interarrival = \"10s\"\n[service]\ndemand = \"200s\"\n\
         [network]\none_way = { exponential = { mean = \"28s\" } }\npeer_timeout = \"3003s\"\n\
         [[policy]]\nhawk = { probe_ratio = 1000.0 }\n");
    assert!(all_finished(&measured), "{:?}", measured.notes);
}

/// The only node crashes for good while a scheduler checks its queues periodically: the run is given up at the same
/// time, however many events it has, and its notes say so.
#[test]
fn a_stuck_run_is_given_up_at_the_same_time_regardless_of_its_events() {
    let ends = |monitor: &str| {
        let gone = "[[network.fault]]\ncrash = { who = [\"node:0\"], at = \"100ms\" }";
        let policy = format!("big-c = {{ monitor = \"{monitor}\" }}");
        let measured = at_once(1, 1, 1, 1, gone, &policy);
        assert_eq!(measured.summary.jobs.unfinished, 1);
        assert!(measured.notes[0].contains("was given up, because no copy ran for 86400s"), "{measured:?}");
        (measured.summary.makespan_s, measured.summary.engine.events)
    };
    let [(often, more), (seldom, fewer)] = ["1s", "20min"].map(ends);
    assert!(often == seldom && more > 100 * fewer, "{often} s, {seldom} s, {more} events, {fewer}");
}

/// Lost reservations of late copies of a job are repeated after the same time as those of its first copies.
#[test]
fn lost_reservations_of_late_copies_are_repeated_soon() {
    let measured = run("seed = 1\n[cluster]\nnodes = 2\n[workload.synthetic]\njobs = 1\ntasks = 300\n\
         interarrival = \"1s\"\n[service]\ndemand = \"100s\"\n\
         [network]\none_way = { exponential = { mean = \"43s\" } }\nloss = 0.3\npeer_timeout = \"4000s\"\n\
         [[policy]]\nmantri = { report = \"84s\", binding = \"sparrow\" }\n");
    assert!(all_finished(&measured), "{:?}", measured.notes);
    let hours = measured.summary.makespan_s / 3600.0;
    assert!(hours < 48.0, "{hours} h, of which the work takes 4");
}

/// Late orders of a crashed scheduler must not begin a forgotten copy a second time.
#[test]
fn a_restarted_gang_scheduler_finishes_all_jobs_under_jitter() {
    let network = "one_way = { uniform = { low = \"0ms\", high = \"100ms\" } }\n[[network.fault]]\n\
         crash = { who = [\"scheduler:0\"], at = \"1500ms\", for = \"20ms\" }";
    for seed in 0..40 {
        assert!(all_finished(&at_once(seed, 1, 2, 1, network, "gang = {}")), "seed {seed}");
    }
}

/// A reservation that moves to a node that awaits the answer to a claim of the same job is not taken for a repetition.
#[test]
fn eagle_without_sticky_probes_loses_no_job() {
    let text = "[cluster]\nnodes = 2\n[network]\none_way = \"1ms\"\n[[policy]]\n\
         eagle = { sticky = false, min_probes = 0, probe_ratio = 1.0, big_partition = 0.5 }";
    for seed in 0..20 {
        assert!(all_finished(&run_trace("0 1 100 100\n1 2 1 1 1\n", seed, text)), "seed {seed}");
    }
}

/// Bitmaps of one instant have different stamps, and a rejection moves no more reservations than it rejects.
#[test]
fn rejected_probes_of_eagle_do_not_multiply() {
    let events = |rounds: u32| {
        let text = format!(
            "[cluster]\nnodes = 3\n[network]\none_way = {{ uniform = {{ low = \"10ms\", high = \"20ms\" }} }}\n[[policy]]\n\
             eagle = {{ big_partition = 1.0, retry_rounds = {rounds} }}"
        );
        let measured = run_trace("0 3 100 100 100 100\n1 1 1 1\n", 1, &text);
        assert!(all_finished(&measured));
        measured.summary.engine.events
    };
    for rounds in [1, 3, 6, 12, 1000] {
        assert!(events(rounds) < 1000, "{} events with {rounds} rounds", events(rounds));
    }
}

/// A reservation moves only with the answer to its newest probe. The scheduler has restarted, and its empty bitmap
/// names nodes free of long work that reject every probe.
#[test]
fn reservations_that_move_among_rejecting_nodes_do_not_multiply() {
    let probes = |rounds: u32| {
        let measured = run(&format!(
            "seed = 9524\n[cluster]\nschedulers = 2\nnodes = 10\ncores = 2\n[workload.synthetic]\njobs = 80\n\
             tasks = {{ uniform = {{ low = 1, high = 7 }} }}\ninterarrival = {{ exponential = {{ mean = \"612ms\" }} }}\n\
             cutoff = \"1243ms\"\n[service]\ndemand = {{ weibull = {{ scale = \"1s\", shape = 0.78 }} }}\n\
             [network]\none_way = {{ weibull = {{ scale = \"1612us\", shape = 1.49 }} }}\n\
             [[network.fault]]\npause = {{ who = [\"scheduler:1\"], at = \"6417ms\", for = \"18s\" }}\n\
             [[network.fault]]\ncrash = {{ who = [\"scheduler:0\"], at = \"6417ms\", for = \"63ms\" }}\n\
             [[network.fault]]\ncrash = {{ who = [\"node:5\"], at = \"3380ms\", for = \"1362ms\" }}\n\
             [[policy]]\neagle = {{ min_probes = 217, replacement = true, retry_rounds = {rounds} }}\n"
        ));
        assert!(all_finished(&measured));
        measured.summary.messages.by_kind["share.probe"]
    };
    let few = probes(3);
    for rounds in [12, 100] {
        assert!(probes(rounds) < 4 * few, "{} messages with {rounds} rounds, {few} with 3", probes(rounds));
    }
}

/// A row that is returned undelivered is launched again by itself, not with its group.
#[test]
fn rows_without_a_reachable_node_do_not_multiply() {
    let events = |policy: &str| {
        let network = "one_way = \"1ms\"\npeer_timeout = \"2s\"\n[[network.fault]]\n\
             partition = { a = [\"nodes\"], b = [\"schedulers\"], at = \"0s\", for = \"60s\" }";
        let measured = at_once(1, 3, 1, 3, network, policy);
        assert!(all_finished(&measured));
        measured.summary.engine.events
    };
    let once = events("random = {}");
    for policy in ["latin-square = { order = 3 }", "full-repetition = { order = 3 }"] {
        assert!(events(policy) < 2 * once, "{} events of {policy}, {once} of random", events(policy));
    }
}

/// Reservations that nodes only queue are requested again at growing intervals.
#[test]
fn requests_for_late_bound_reservations_back_off() {
    let recovery = |policy: &str| {
        at_once(1, 20, 50, 8, "one_way = \"1ms\"\nloss = 0.001", policy).summary.messages.recovery
    };
    let square =
        recovery(r#"latin-square = { order = 2, binding = "late", choices = 2, patience = "20ms" }"#);
    let sparrow = recovery(r#"sparrow = { probe_timeout = "20ms" }"#);
    assert!(square < 4 * sparrow, "{square} repairs, {sparrow} of Sparrow");
}

/// Unclaimed probes are sent again once for all crashes of an instant, and merge where they meet.
#[test]
fn crashes_of_many_nodes_do_not_multiply_peacocks_probes() {
    let visits = |crash: &str| {
        let network = format!("one_way = \"1ms\"\n{crash}");
        let measured = at_once(1, 10, 30, 10, &network, "peacock = {}");
        assert!(all_finished(&measured));
        measured.summary.messages.by_kind["ring.visit"]
    };
    let fault = |who: &str| {
        format!("[[network.fault]]\ncrash = {{ who = [\"{who}\"], at = \"500ms\", for = \"1s\" }}")
    };
    let (one, all) = (visits(&fault("node:0")), visits(&fault("nodes")));
    assert!(all < 3 * one, "{one} visits with one crash, {all} with ten");
}

/// Makespan and response times count from the same arrival, also where the client submits late.
#[test]
fn the_makespan_of_a_paused_client_counts_from_the_arrival() {
    let pause =
        "one_way = \"1ms\"\n[[network.fault]]\npause = { who = [\"all\"], at = \"0s\", for = \"10s\" }";
    let summary = at_once(1, 1, 2, 1, pause, "random = {}").summary;
    assert!((summary.makespan_s - summary.times.response_s.max).abs() < 1e-9, "{summary:#?}");
    assert!((summary.utilization - 2.0 / summary.makespan_s).abs() < 1e-9);
}

/// A row sent to a node that is down, but back before the sender gives up, is lost with its stream.
#[test]
fn a_row_sent_to_a_node_that_is_down_runs_once() {
    let crash = "one_way = \"10ms\"\npeer_timeout = \"10s\"\n[[network.fault]]\n\
         crash = { who = [\"node:0\"], at = \"0s\", for = \"2s\" }";
    for policy in [
        "random = {}",
        "round-robin = {}",
        "central-queue = {}",
        "yaq-c = {}",
        "latin-square = { order = 1 }",
    ] {
        let text = format!(
            "seed = 1\n[cluster]\nnodes = 1\n[workload.synthetic]\njobs = 1\ntasks = 1\ninterarrival = \"1s\"\n\
             [service]\ndemand = \"1s\"\n[network]\n{crash}\n[[policy]]\n{policy}\n"
        );
        let measured = run(&text);
        assert!(all_finished(&measured), "{policy}");
        assert_eq!(measured.summary.copies.started, 1, "{policy}");
    }
}

/// The scheduler could not receive the ends of some copies and orders these copies again; they do not run again.
#[test]
fn a_gang_node_runs_no_copy_twice() {
    let partition = "one_way = \"1ms\"\n[[network.fault]]\n\
         partition = { a = [\"nodes\"], b = [\"schedulers\"], at = \"0s\", for = \"40s\", one_way = true }";
    for network in ["one_way = \"1s\"", partition] {
        let measured = at_once(1, 1, 4, 8, network, "gang = {}");
        assert!(all_finished(&measured), "{network}");
        assert_eq!(
            (measured.summary.copies.started, measured.summary.copies.finished),
            (32, 32),
            "{network}"
        );
    }
}

/// A node that is notified of a crash late keeps the probes of the scheduler that took the jobs over.
#[test]
fn a_paused_node_of_peacock_keeps_probes_of_the_next_scheduler() {
    let network = "[[network.fault]]\npause = { who = [\"nodes\"], at = \"20s\", for = \"20s\" }\n\
         [[network.fault]]\ncrash = { who = [\"scheduler:1\"], at = \"30s\", for = \"3s\" }";
    let text = format!(
        "seed = 0\n[cluster]\nnodes = 1\nschedulers = 2\n[workload.synthetic]\njobs = 8\ntasks = 5\n\
         interarrival = \"1s\"\n[service]\ndemand = \"1s\"\n[network]\n{network}\n[[policy]]\npeacock = {{}}\n"
    );
    assert!(all_finished(&run(&text)));
}

/// Copies that were suspended on one core run on the other core when their node crashes. Each copy is lost once.
#[test]
fn a_copy_that_changed_its_core_is_lost_once() {
    let network = "[[network.fault]]\ncrash = { who = [\"nodes\"], at = \"20s\", for = \"40ms\" }";
    let text = "seed = 0\n[cluster]\nnodes = 1\ncores = 2\nspeed = 0.2\n[workload.synthetic]\njobs = 2\ninterarrival = \"1s\"\n\
         tasks = { uniform = { low = 1, high = 13 } }\n[service]\ndemand = \"1s\"\n[[policy]]\nkairos = { quantum = \"1s\" }\n";
    let measured = run(&format!("{text}{network}\n"));
    assert!(all_finished(&measured) && measured.summary.copies.lost > 0, "{:?}", measured.summary.copies);
}

/// The master keeps the tasks of the next scheduler, even while copies of them run for the scheduler that crashed.
#[test]
fn a_master_of_pigeon_keeps_the_tasks_of_the_next_scheduler() {
    let text = "seed = 1\n[cluster]\nnodes = 1\nschedulers = 2\n[service]\ndemand = \"10ms\"\n\
         [workload.synthetic]\njobs = 11\ninterarrival = \"0s\"\ntasks = { uniform = { low = 1, high = 7 } }\n\
         [network]\none_way = { lognormal = { median = \"90ms\", sigma = 1.0 } }\n\
         [[network.fault]]\ncrash = { who = [\"scheduler:1\"], at = \"0s\" }\n[[policy]]\npigeon = {}\n";
    assert!(all_finished(&run(text)));
}

/// Two schedulers have a job from different submissions. A scheduler drops only rows of its own submission at a node.
#[test]
fn a_drop_of_the_next_scheduler_spares_rows_of_an_earlier_submission() {
    let crash =
        |who: &str, at: &str| format!("[[network.fault]]\ncrash = {{ who = [\"{who}\"], at = \"{at}\"");
    let text = format!(
        "seed = 0\n[cluster]\nnodes = 1\nschedulers = 2\n[service]\ndemand = \"200ms\"\n\
         [workload.synthetic]\njobs = 15\ninterarrival = \"0s\"\ntasks = {{ uniform = {{ low = 1, high = 7 }} }}\n\
         [network]\npeer_timeout = \"3s\"\n{}, for = \"3s\" }}\n{} }}\n[[policy]]\nfull-repetition = {{ order = 1 }}\n",
        crash("schedulers", "2s"),
        crash("scheduler:0", "6s"),
    );
    for seed in 0..20 {
        assert!(all_finished(&run(&text.replace("seed = 0", &format!("seed = {seed}")))), "seed {seed}");
    }
}

/// Two queues that share a container do not take it from each other in turn, which would kill their tasks for ever.
#[test]
fn queues_that_share_a_container_do_not_kill_tasks_for_ever() {
    let crash = "[[network.fault]]\ncrash = { who = [\"node:1\"], at = \"60s\" }\n";
    for (nodes, network) in [(1, ""), (2, crash)] {
        let text = format!(
            "seed = 0\n[cluster]\nnodes = {nodes}\n[workload.synthetic]\njobs = 26\n\
             cutoff = \"900ms\"\ninterarrival = \"1s\"\ntasks = {{ uniform = {{ low = 1, high = 7 }} }}\n[service]\n\
             demand = {{ uniform = {{ low = \"500ms\", high = \"1s\" }} }}\n[network]\n{network}\n[[policy]]\n\
             big-c = {{ kill = true, monitor = \"500ms\", short_share = 0.7 }}\n"
        );
        for seed in 0..5 {
            assert!(all_finished(&run(&text.replace("seed = 0", &format!("seed = {seed}")))), "seed {seed}");
        }
    }
}

/// A node crashes in a pause and is back before its end. Reports of the failure detector to the earlier machine do not
/// reach the new machine, which would count a live scheduler as down. The new machine finds out by itself which
/// scheduler is still down.
#[test]
fn a_restarted_node_gets_no_reports_of_past_crashes() {
    let text = "seed = 0\n[cluster]\nnodes = 7\nschedulers = 2\n[workload.mix]\njobs = 3\ninterarrival = \"1s\"\n\
         [[workload.mix.class]]\nname = \"a\"\nweight = 1\n\
         stages = [{ tasks = 1, demand = \"1s\" }, { tasks = 2, demand = \"1s\" }]\n\
         [network]\none_way = \"10ms\"\npeer_timeout = \"1s\"\n\
         [[network.fault]]\ncrash = { who = [\"scheduler:1\"], at = \"0s\", for = \"3s\" }\n\
         [[network.fault]]\npause = { who = [\"all\"], at = \"0s\", for = \"5s\" }\n\
         [[network.fault]]\ncrash = { who = [\"node:6\"], at = \"2s\", for = \"1s\" }\n[[policy]]\npigeon = {}\n";
    for lasting in ["3s", "9s", "60s"] {
        assert!(all_finished(&run(&text.replacen("3s", lasting, 1))), "the scheduler is down for {lasting}");
    }
}
