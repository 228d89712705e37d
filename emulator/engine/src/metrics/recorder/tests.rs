//! Tests of recorders that are closed before every job has ended.

use volary_actors::base::{JobId, Span, Time};
use volary_actors::layout::Layout;
use volary_actors::machine::Note;
use volary_netem::Faults;

use super::*;
use crate::workload::{NoTraces, Service, Synthetic, Workload, WorkloadSpec};

const LIMITS: Recording = Recording {
    copies: 10,
    one_in: None,
    timeline_cores: 0,
    timeline: Span::ZERO,
    timeline_copies: 0,
    cache_interval: Span::ZERO,
};

/// Two jobs of one task.
fn jobs() -> Workload {
    let jobs: Synthetic = toml::from_str("jobs = 2\ntasks = 1\ninterarrival = \"1s\"").unwrap();
    let service: Service = toml::from_str("demand = \"100s\"").unwrap();
    Workload::build(&WorkloadSpec::Synthetic(jobs), &service, 1, 1, &NoTraces).unwrap()
}

/// Closes the recorder of a node with two cores, one of which works from 1 s on, until 3 s if it `ends`.
fn books(ends: bool, close: impl FnOnce(Recorder<'_>) -> Books) -> Books {
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
fn a_run_that_is_cut_lasts_until_the_cut() {
    let until = Time(Span::from_secs(11).0);
    for (ends, utilization) in [(false, 0.5), (true, 0.1)] {
        let cut = books(ends, |recorder| recorder.cut(until));
        assert_eq!((cut.makespan, cut.utilization), (10.0, utilization), "ends: {ends}");
        assert_eq!((cut.jobs.submitted, cut.jobs.unfinished), (1, u64::from(!ends)));
        assert_eq!(cut.copies.preempted, u64::from(!ends));
    }
    // The run was abandoned because nothing more could happen: the idle time at its end does not count.
    assert_eq!(books(true, |recorder| recorder.close(until)).makespan, 2.0);
}
