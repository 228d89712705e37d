//! A job controller whose requests are limited: it creates the tasks of jobs, and takes note of their ends.
//!
//! kube-controller-manager sends 20 requests a second to the API server unless it is told otherwise
//! (`--kube-api-qps`), and its job controller spends one on each task that it creates and another on each task whose
//! end it counts. It visits jobs in the order of a work queue, which interleaves large ones; a job whose tasks have not
//! all ended at its visit comes again behind all that wait.

use std::collections::VecDeque;

use super::job_table::JobTable;
use crate::base::{JobId, Span};
use crate::machine::{Effects, Timer};

/// The most requests of one visit (`maxPodCreateDeletePerSync` and `maxUncountedPods` of Kubernetes).
const VISIT: u32 = 500;

/// What a job is visited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// To create its tasks.
    Create,
    /// To take note of their ends.
    Count,
}

/// A job in the work queue, with the requests that it still needs.
#[derive(Clone, Copy, Debug)]
struct Visit {
    job: JobId,
    stage: Stage,
    left: u32,
}

/// A job whose tasks were created.
#[derive(Clone, Copy, Debug)]
struct Created {
    ended: bool,
    queued: bool,
}

/// The work queue of a client.
pub(super) struct JobController {
    /// Time of a request.
    request: Span,
    queue: VecDeque<Visit>,
    current: Option<Visit>,
    created: JobTable<Created>,
}

impl JobController {
    /// A controller that needs `request` for each request.
    pub(super) fn new(request: Span) -> Self {
        Self { request, queue: VecDeque::new(), current: None, created: JobTable::default() }
    }

    /// A job arrived.
    pub(super) fn arrived(&mut self, job: JobId, fx: &mut Effects<'_>) {
        self.enqueue(job, Stage::Create, fx);
        self.visit(fx);
    }

    /// All tasks of a job ended.
    pub(super) fn ended(&mut self, job: JobId, fx: &mut Effects<'_>) {
        let Some(created) = self.created.get_mut(job) else { return };
        created.ended = true;
        if !std::mem::replace(&mut created.queued, true) {
            self.enqueue(job, Stage::Count, fx);
        }
        self.visit(fx);
    }

    /// The requests of a visit are done. Returns the job if it needs no more of that kind.
    pub(super) fn done(&mut self, fx: &mut Effects<'_>) -> Option<(JobId, Stage)> {
        let mut visit = self.current.take()?;
        visit.left = visit.left.saturating_sub(VISIT);
        let complete = visit.left == 0;
        if !complete {
            self.queue.push_back(visit);
        } else if visit.stage == Stage::Create {
            self.created.open(visit.job, Created { ended: false, queued: true });
            self.enqueue(visit.job, Stage::Count, fx);
        } else {
            self.created.close(visit.job);
        }
        self.visit(fx);
        complete.then_some((visit.job, visit.stage))
    }

    fn enqueue(&mut self, job: JobId, stage: Stage, fx: &Effects<'_>) {
        self.queue.push_back(Visit { job, stage, left: fx.catalog().tasks(job) });
    }

    /// Begins the next visit that has something to do, unless one is going on.
    fn visit(&mut self, fx: &mut Effects<'_>) {
        while self.current.is_none()
            && let Some(visit) = self.queue.pop_front()
        {
            match self.created.get_mut(visit.job) {
                Some(created) if !created.ended => created.queued = false,
                _ => {
                    let requests = u64::from(visit.left.min(VISIT));
                    fx.arm(Timer::Tick(0), Span(self.request.0.saturating_mul(requests)));
                    self.current = Some(visit);
                }
            }
        }
    }
}
