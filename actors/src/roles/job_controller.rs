//! A job controller whose requests are limited: it creates the tasks of jobs, and counts their ends.
//!
//! The model is kube-controller-manager, which by default sends at most 20 requests a second to the API server
//! (`--kube-api-qps`). Its job controller spends one on each task that it creates, another on each task whose end it
//! counts, and one on the state of the job at each visit. It visits jobs in the order of a work queue. A job that can
//! only wait for the ends of its tasks leaves the queue, and returns at its tail.

use std::collections::VecDeque;

use super::job_table::JobTable;
use crate::base::{JobId, Span};
use crate::machine::{Effects, Timer};

/// The most tasks of one visit (`maxPodCreateDeletePerSync` and `maxUncountedPods` of Kubernetes).
const VISIT: u32 = 500;

/// A step in the life of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Its first tasks are created.
    Created,
    /// The ends of all its tasks are counted.
    Counted,
}

/// A job in the work queue, with the tasks still to be created and those whose ends are still to be counted.
#[derive(Clone, Copy, Debug)]
struct Visit {
    job: JobId,
    create: u32,
    count: u32,
}

/// A job whose first tasks were created.
#[derive(Clone, Copy, Debug)]
struct Created {
    ended: bool,
    /// Its visit while it is not in the work queue.
    absent: Option<Visit>,
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

    /// Records the arrival of a job.
    pub(super) fn arrived(&mut self, job: JobId, fx: &mut Effects<'_>) {
        let tasks = fx.catalog().tasks(job);
        self.queue.push_back(Visit { job, create: tasks, count: tasks });
        self.visit(fx);
    }

    /// Records that all tasks of a job ended.
    pub(super) fn ended(&mut self, job: JobId, fx: &mut Effects<'_>) {
        if let Some(created) = self.created.get_mut(job) {
            created.ended = true;
            self.queue.extend(created.absent.take());
            self.visit(fx);
        }
    }

    /// Ends a visit; returns the new step of its job, if it has reached one.
    pub(super) fn done(&mut self, fx: &mut Effects<'_>) -> Option<(JobId, Step)> {
        let Visit { job, create, count } = self.current.take()?;
        let left = if create > 0 {
            Visit { job, create: create.saturating_sub(VISIT), count }
        } else {
            Visit { job, create, count: count.saturating_sub(VISIT) }
        };
        let step = if left.count == 0 {
            self.created.close(job);
            Some(Step::Counted)
        } else {
            self.queue.push_back(left);
            (create == count).then(|| {
                self.created.open(job, Created { ended: false, absent: None });
                Step::Created
            })
        };
        self.visit(fx);
        step.map(|step| (job, step))
    }

    /// Begins the next visit that has something to do, unless one is going on.
    fn visit(&mut self, fx: &mut Effects<'_>) {
        while self.current.is_none()
            && let Some(visit) = self.queue.pop_front()
        {
            match self.created.get_mut(visit.job) {
                Some(created) if visit.create == 0 && !created.ended => created.absent = Some(visit),
                _ => {
                    let tasks = if visit.create > 0 { visit.create } else { visit.count };
                    let requests = u64::from(tasks.min(VISIT)) + 1;
                    fx.arm(Timer::Tick(0), Span(self.request.0.saturating_mul(requests)));
                    self.current = Some(visit);
                }
            }
        }
    }
}
