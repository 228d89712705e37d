//! Tests of recorders that are closed before every job has ended.

use volary_actors::base::{Endpoint, JobId, Span, Time};
use volary_actors::catalog::Catalog;
use volary_actors::layout::Layout;
use volary_actors::machine::Note;
use volary_netem::{FaultSpec, Faults, Groups};

use super::*;
use crate::metrics::Recording;
use crate::results::{CopyCounts, JobCounts};
use crate::workload::{NoTraces, Service, Synthetic, Workload, WorkloadSpec};

const LIMITS: Recording = Recording {
    copies: 10,
    one_in: None,
    timeline_cores: 0,
    timeline: Span::ZERO,
    timeline_copies: 0,
    timeline_messages: 0,
    cache_interval: Span::ZERO,
    unqueued: None,
    slowdown_bound: Span::from_secs(10),
    cached_nodes: None,
    snapshots: false,
    window: None,
    gossip: None,
    quiet: Span::from_secs(1000),
};

/// Two jobs, each of one task.
fn jobs() -> Workload {
    let jobs: Synthetic = toml::from_str("jobs = 2\ntasks = 1\ninterarrival = \"1s\"").unwrap();
    let service: Service = toml::from_str("demand = \"100s\"").unwrap();
    Workload::build(&WorkloadSpec::Synthetic(jobs), &service, 1, 1, &NoTraces).unwrap()
}

/// Closes the recorder of a node with two cores. One core works from 1 s on, until 3 s if it `ends`.
fn accounts(ends: bool, close: impl FnOnce(Recorder<'_>) -> Accounts) -> Accounts {
    let (layout, workload, faults) = (Layout::new(1, 0, [2]), jobs(), Faults::default());
    let mut recorder = Recorder::new(&layout, &workload, &faults, LIMITS, 1);
    let (at, worker) = (|s| Time(Span::from_secs(s).0), layout.worker(0, 0));
    let copy = JobId(0).task(0).copy(0);
    recorder.note(at(1), layout.client(0), Note::Arrived { job: JobId(0) });
    recorder.note(at(1), worker, Note::Started { copy, resumed: false });
    if ends {
        recorder.note(at(3), worker, Note::Completed { copy });
        recorder.note(at(3), layout.client(0), Note::Finished { job: JobId(0) });
    }
    close(recorder)
}

#[test]
fn a_run_that_is_cut_lasts_until_its_time_limit() {
    let until = Time(Span::from_secs(11).0);
    for (ends, utilization) in [(false, 0.5), (true, 0.1)] {
        let cut = accounts(ends, |recorder| recorder.cut(until));
        assert_eq!((cut.makespan, cut.utilization), (10.0, utilization), "ends: {ends}");
        assert_eq!((cut.jobs.submitted, cut.jobs.unfinished), (1, u64::from(!ends)));
        let CopyCounts { preempted, in_progress, wasted_work_s, in_progress_s, busy_s, .. } = cut.copies;
        assert_eq!((preempted, in_progress, wasted_work_s), (0, u64::from(!ends), 0.0));
        assert_eq!(in_progress_s, if ends { 0.0 } else { busy_s });
        assert_eq!(
            cut.goodput,
            if ends { utilization } else { 0.0 },
            "what is in progress is not yet useful"
        );
    }
    // The run was abandoned because no event was left: the idle time at its end is not part of the makespan.
    assert_eq!(accounts(true, |recorder| recorder.close(until)).makespan, 2.0);
}

/// The first job is killed while its task runs, and its copy is stopped a second later. The second job finishes.
#[test]
fn a_killed_job_has_failed_and_its_work_is_wasted() {
    let (layout, workload, faults) = (Layout::new(1, 0, [2]), jobs(), Faults::default());
    let (at, worker, client) =
        (|s| Time(Span::from_secs(s).0), |core| layout.worker(0, core), layout.client(0));
    let copy = |job| JobId(job).task(0).copy(0);
    let mut recorder = Recorder::new(&layout, &workload, &faults, LIMITS, 1);
    let killed = Note::Killed { job: JobId(0) };
    assert!(recorder.check(client, killed).unwrap_err().contains("was not open"));
    for (core, job, start) in [(0, 0, at(1)), (1, 1, at(2))] {
        recorder.note(start, client, Note::Arrived { job: JobId(job) });
        recorder.note(start, worker(core), Note::Started { copy: copy(job), resumed: false });
    }
    assert_eq!(recorder.check(client, killed), Ok(()));
    recorder.note(at(5), client, killed);
    assert!(recorder.check(client, killed).unwrap_err().contains("was not open"));
    recorder.note(at(6), worker(0), Note::Preempted { copy: copy(0) });
    recorder.note(at(8), worker(1), Note::Completed { copy: copy(1) });
    assert!(!recorder.all_finished());
    recorder.note(at(8), client, Note::Finished { job: JobId(1) });
    assert!(recorder.all_finished());
    let accounts = recorder.close(at(9));
    let JobCounts { submitted, finished, failed, unfinished } = accounts.jobs;
    assert_eq!((submitted, finished, failed, unfinished), (2, 1, 1, 0));
    assert_eq!((accounts.makespan, accounts.copies.wasted_work_s, accounts.copies.preempted), (7.0, 5.0, 1));
    assert!(accounts.rows[0].response.is_nan() && accounts.rows[0].wait == 0.0);
    assert_eq!(accounts.times.not_finished, Some(1));
    assert!(accounts.notes[0].starts_with("1 jobs were killed"), "{:?}", accounts.notes);
}

/// The run has a task of two copies and a task of a suspended copy, and is cut after 10 s. Once the first task has a
/// finished copy, its other copy is redundant, so that copy's work is wasted. Until then all work is in progress.
#[test]
fn work_in_progress_is_neither_useful_nor_wasted() {
    let (layout, workload, faults) = (Layout::new(1, 0, [3]), jobs(), Faults::default());
    let (at, worker) = (|s| Time(Span::from_secs(s).0), |core| layout.worker(0, core));
    let copy = |job, attempt| JobId(job).task(0).copy(attempt);
    for finished in [false, true] {
        let mut recorder = Recorder::new(&layout, &workload, &faults, LIMITS, 1);
        for (job, arrival) in [(JobId(0), at(1)), (JobId(1), at(2))] {
            recorder.note(arrival, layout.client(0), Note::Arrived { job });
        }
        for (core, copy, start) in [(0, copy(0, 0), at(1)), (1, copy(0, 1), at(1)), (2, copy(1, 0), at(2))] {
            recorder.note(start, worker(core), Note::Started { copy, resumed: false });
        }
        recorder.note(at(5), worker(2), Note::Suspended { copy: copy(1, 0) });
        if finished {
            recorder.note(at(6), worker(0), Note::Completed { copy: copy(0, 0) });
        }
        let accounts = recorder.cut(at(11));
        let CopyCounts { preempted, in_progress, wasted_work_s, in_progress_s, busy_s, .. } = accounts.copies;
        let expected = if finished { (1, 1, 10.0, 3.0, 18.0) } else { (0, 3, 0.0, 23.0, 23.0) };
        assert_eq!((preempted, in_progress, wasted_work_s, in_progress_s, busy_s), expected);
        let useful = busy_s - wasted_work_s - in_progress_s;
        assert!(
            (accounts.goodput - useful / 30.0).abs() < 1e-12,
            "{useful} s of {} are useful",
            accounts.goodput
        );
    }
}

/// The first job ends 2 s later than it would without a queue, and the second job never ends.
#[test]
fn unqueued_jobs_are_counted_to_the_nanosecond() {
    let (layout, workload, faults) = (Layout::new(1, 0, [1]), jobs(), Faults::default());
    for (bound, share) in [(2_000_000_000, Some(1.0)), (1_999_999_999, Some(0.0))] {
        let limits = Recording { unqueued: Some(Span(bound)), ..LIMITS };
        let mut recorder = Recorder::new(&layout, &workload, &faults, limits, 1);
        let (client, worker, job) = (layout.client(0), layout.worker(0, 0), JobId(0));
        let (arrival, copy) = (workload.job(job).arrival, job.task(0).copy(0));
        let end = arrival + workload.work(copy) + Span::from_secs(2);
        recorder.note(arrival, client, Note::Arrived { job });
        recorder.note(workload.job(JobId(1)).arrival, client, Note::Arrived { job: JobId(1) });
        recorder.note(arrival + Span::from_secs(2), worker, Note::Started { copy, resumed: false });
        recorder.note(end, worker, Note::Completed { copy });
        recorder.note(end, client, Note::Finished { job });
        let times = recorder.close(end).times.times;
        assert_eq!((times.unqueued, times.over_10x), (share, 0.0), "within {bound} ns");
    }
    assert_eq!(
        accounts(true, |recorder| recorder.close(Time::MAX)).times.times.unqueued,
        None,
        "it was not asked for"
    );
}

/// The first job ends when it has taken ten times its longest task, or a nanosecond later.
#[test]
fn jobs_that_take_more_than_ten_times_their_longest_task_are_counted() {
    let (layout, workload, faults) = (Layout::new(1, 0, [1]), jobs(), Faults::default());
    for (later, share) in [(0, 0.0), (1, 1.0)] {
        let mut recorder = Recorder::new(&layout, &workload, &faults, LIMITS, 1);
        let (client, worker, job) = (layout.client(0), layout.worker(0, 0), JobId(0));
        let (arrival, copy) = (workload.job(job).arrival, job.task(0).copy(0));
        let end = arrival + Span(10 * workload.longest(job).0 + later);
        recorder.note(arrival, client, Note::Arrived { job });
        recorder.note(arrival, worker, Note::Started { copy, resumed: false });
        recorder.note(end, worker, Note::Completed { copy });
        recorder.note(end, client, Note::Finished { job });
        assert_eq!(recorder.close(end).times.times.over_10x, share, "{later} ns later");
    }
}

/// Each job runs alone after a wait of 2 s. Jobs of 1 s are slowed down threefold, and jobs of 100 s by a fiftieth.
#[test]
fn times_are_recorded_for_each_class() {
    let jobs: Synthetic =
        toml::from_str("jobs = 40\ntasks = 1\ninterarrival = \"1000s\"\ncutoff = \"100s\"").unwrap();
    let service: Service =
        toml::from_str("demand = { empirical = { values = [\"1s\", \"100s\"] } }").unwrap();
    let workload = Workload::build(&WorkloadSpec::Synthetic(jobs), &service, 1, 1, &NoTraces).unwrap();
    let (layout, faults) = (Layout::new(1, 0, [1]), Faults::default());
    let mut recorder = Recorder::new(&layout, &workload, &faults, LIMITS, 1);
    let (client, worker) = (layout.client(0), layout.worker(0, 0));
    for job in (0..workload.jobs()).map(JobId) {
        let (copy, start) = (job.task(0).copy(0), workload.job(job).arrival + Span::from_secs(2));
        let end = start + workload.work(copy);
        recorder.note(workload.job(job).arrival, client, Note::Arrived { job });
        recorder.note(start, worker, Note::Started { copy, resumed: false });
        recorder.note(end, worker, Note::Completed { copy });
        recorder.note(end, client, Note::Finished { job });
    }
    let closed = recorder.close(Time::MAX);
    let classes: Vec<_> = closed.classes.iter().map(|(label, times)| (label.as_str(), times)).collect();
    let [("long", long), ("short", short)] = classes[..] else { panic!("{classes:?}") };
    assert_eq!(short.jobs + long.jobs, 40);
    assert!(short.jobs.min(long.jobs) > 5, "{classes:?}");
    for (times, work) in [(short, 1.0), (long, 100.0)] {
        assert_eq!((times.times.longest_s.mean, times.times.longest_s.p99), (work, work));
        assert!((times.times.response_s.p90 - work - 2.0).abs() < 1e-9, "{times:?}");
        assert!((times.times.slowdown.p50 - (work + 2.0) / work).abs() < 1e-9, "{times:?}");
        assert!((times.times.wait_s.p90 - 2.0).abs() < 0.002, "{times:?}");
        assert!((times.times.job_wait_s.p50 - 2.0).abs() < 1e-9, "{times:?}");
        let bounded = f64::max(1.0, (work + 2.0) / work.max(10.0));
        assert!((times.times.bounded_slowdown.p50 - bounded).abs() < 1e-9, "{times:?}");
    }
    assert_eq!(closed.times.jobs, 40);
    assert_eq!(closed.times.times.response_s.max, long.times.response_s.max);
    assert_eq!(closed.goodput, closed.utilization, "nothing was wasted");
}

/// A run stalls if the same task is started and stopped again and again. It continues if jobs have yet to arrive, tasks
/// end, faults have yet to heal, or a copy runs all the time.
#[test]
fn tasks_that_are_only_stopped_stall_a_run() {
    let (layout, workload, faults) = (Layout::new(1, 0, [2]), jobs(), Faults::default());
    let (at, worker) = (|s| Time(Span::from_secs(s).0), |core| layout.worker(0, core));
    let mut recorder = Recorder::new(&layout, &workload, &faults, LIMITS, 1);
    let stop = |recorder: &mut Recorder<'_>, times, now| {
        for attempt in 0..times {
            let copy = JobId(0).task(0).copy(attempt);
            recorder.note(at(now), worker(0), Note::Started { copy, resumed: false });
            recorder.note(at(now), worker(0), Note::Preempted { copy });
        }
        recorder.is_stalled(at(now))
    };
    recorder.note(at(1), layout.client(0), Note::Arrived { job: JobId(0) });
    assert!(!stop(&mut recorder, 1001, 1), "another job is to come");
    recorder.note(at(2), layout.client(0), Note::Arrived { job: JobId(1) });
    assert!(!stop(&mut recorder, 2000, 2), "two tasks are open");
    assert!(stop(&mut recorder, 1, 2));
    let copy = JobId(1).task(0).copy(0);
    recorder.note(at(3), worker(1), Note::Started { copy, resumed: false });
    assert!(stop(&mut recorder, 1, 3), "it has not run meanwhile");
    recorder.note(at(4), worker(1), Note::Completed { copy });
    assert!(!stop(&mut recorder, 1000, 4), "a task has finished");
    assert!(stop(&mut recorder, 1, 4));
}

/// A copy that has run since before half of the stops occurred may still end: the run continues.
#[test]
fn a_copy_that_goes_on_keeps_a_run_from_stalling() {
    let (layout, workload, faults) = (Layout::new(1, 0, [2]), jobs(), Faults::default());
    let (at, worker) = (|s| Time(Span::from_secs(s).0), |core| layout.worker(0, core));
    for (started, is_stalled) in [(5, false), (15, true)] {
        let mut recorder = Recorder::new(&layout, &workload, &faults, LIMITS, 1);
        for job in [JobId(0), JobId(1)] {
            recorder.note(at(0), layout.client(0), Note::Arrived { job });
        }
        for now in 0..30 {
            if now == started {
                let copy = JobId(1).task(0).copy(0);
                recorder.note(at(now), worker(1), Note::Started { copy, resumed: false });
            }
            for attempt in 0..100 {
                let copy = JobId(0).task(0).copy(attempt);
                recorder.note(at(now), worker(0), Note::Started { copy, resumed: false });
                recorder.note(at(now), worker(0), Note::Preempted { copy });
            }
        }
        assert_eq!(recorder.is_stalled(at(30)), is_stalled, "from {started} s on");
    }
}

/// Faults that heal at 5000 s.
fn healing() -> Faults {
    let faults: Vec<FaultSpec> =
        vec![toml::from_str("crash = { who = [\"node:0\"], at = \"10s\", for = \"4990s\" }").unwrap()];
    let mut groups = Groups::new(9);
    groups.number("node", Endpoint(2), 1);
    Faults::resolve(&faults, &groups, 9).unwrap()
}

/// The time without a copy counts from the last change or the end of the last fault, and only while nothing runs.
#[test]
fn a_run_without_running_copies_is_given_up_after_all_faults_heal() {
    let (layout, workload) = (Layout::new(1, 0, [1]), jobs());
    let at = |s| Time(Span::from_secs(s).0);
    for (faults, from) in [(Faults::default(), 60), (healing(), 5000)] {
        let mut recorder = Recorder::new(&layout, &workload, &faults, LIMITS, 1);
        let copy = JobId(0).task(0).copy(0);
        recorder.note(at(1), layout.client(0), Note::Arrived { job: JobId(0) });
        assert!(!recorder.is_stalled(at(90_000)), "another job is to come");
        recorder.note(at(2), layout.client(0), Note::Arrived { job: JobId(1) });
        recorder.note(at(3), layout.worker(0, 0), Note::Started { copy, resumed: false });
        assert!(!recorder.is_stalled(at(90_000)), "a copy runs");
        recorder.note(at(60), layout.worker(0, 0), Note::Completed { copy });
        let stalled = |s| recorder.is_stalled(at(s)) && recorder.is_idle_forever(at(s));
        assert_eq!((stalled(from + 1000), stalled(from + 1001)), (false, true));
        let accounts = recorder.close(at(from + 1001));
        assert_eq!(accounts.jobs.unfinished, 2);
        assert!((accounts.makespan - 59.0).abs() < 1e-9, "{}", accounts.makespan);
        assert!(accounts.notes[0].starts_with("the run was given up, because no copy ran for 1000s"));
    }
}
