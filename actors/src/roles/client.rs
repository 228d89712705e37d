//! The job source of a scheduler, with its job controller.
//!
//! Client i submits each job that arrives at it to scheduler i, and to another scheduler while scheduler i is down.
//! Under policies with a central scheduler, some or all jobs go to the first scheduler that is up. A job's response
//! time ends when its client is notified of its end. If the layout limits requests, a client has a job controller. The
//! client then submits a job when the controller has created the job's first tasks, and the job ends when the
//! controller has counted the ends of all its tasks. A stage of a chain is submitted when the client is notified that
//! the last stage it waits for has ended.
//!
//! The model of the controller is kube-controller-manager, which by default sends at most 20 requests a second to the
//! API server (`--kube-api-qps`). Its job controller spends a request on each task that it creates, on each task whose
//! end it counts, and on the state of the job at each visit. It visits jobs in the order of a work queue. A job that
//! can only wait for the ends of its tasks leaves the queue, and returns at its tail.

use std::collections::{BTreeMap, VecDeque};

use super::job_table::JobTable;
use crate::base::{ActorId, JobId, Span};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Note, Timer};
use crate::message::{Job, Message};

/// Pause before a client tries again to reach a scheduler. It doubles with each failed attempt.
const RETRY: Span = Span::from_secs(1);
/// Largest number of doublings, to 64 s. A notification that a scheduler is back ends the pause.
const MOST_DOUBLINGS: u32 = 6;

/// An open job.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Submission {
    /// Scheduler of the job; `None` if no scheduler is reachable. The job is then sent when one is back, or after a
    /// pause.
    to: Option<ActorId>,
    /// Number of earlier submissions that a scheduler may have received.
    round: u32,
    /// Number of earlier submissions.
    tries: u32,
    /// Number of pauses in a row that ended without a reachable scheduler.
    pauses: u32,
}

/// The jobs that go to the first scheduler that is up instead of to the client's own.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum CentralJobs {
    /// No jobs.
    #[default]
    None,
    /// The jobs of the long class.
    Long,
    /// All jobs.
    All,
}

/// A job source.
#[derive(Clone, Debug)]
pub struct Client {
    index: u32,
    central: CentralJobs,
    /// The job controller, if requests are limited.
    controller: Option<JobController>,
    open: JobTable<Submission>,
    /// Waiting stages, each with the number of stages it waits for that have ended. A missing entry means 0.
    waiting: BTreeMap<JobId, usize>,
    /// Schedulers known to be down.
    down: Vec<ActorId>,
}

impl Client {
    /// The client of scheduler number `index`.
    pub fn new(index: u32, central: CentralJobs, layout: &Layout) -> Self {
        let controller = layout.request().map(JobController::new);
        Self {
            index,
            central,
            controller,
            open: JobTable::default(),
            waiting: BTreeMap::new(),
            down: Vec::new(),
        }
    }

    fn arm_next(&self, from: u32, fx: &mut Effects<'_>) {
        let catalog = fx.catalog();
        if let Some(job) = catalog.next_of(self.index, from) {
            fx.arm(Timer::Arrival(job), catalog.job(job).arrival.since(fx.now()));
        }
    }

    /// Records the arrival of a job or of a stage that was waiting, and submits it.
    fn arrived(&mut self, job: JobId, fx: &mut Effects<'_>) {
        fx.note(Note::Arrived { job });
        match &mut self.controller {
            Some(controller) => controller.arrived(job, fx),
            None => self.submit(job, Submission::default(), None, fx),
        }
    }

    /// Records the end of a job, and begins the stages that waited only for this job, unless the job was killed.
    fn ended(&mut self, job: JobId, killed: bool, fx: &mut Effects<'_>) {
        if killed {
            return fx.note(Note::Killed { job });
        }
        fx.note(Note::Finished { job });
        let catalog = fx.catalog();
        for next in catalog.links(job).successors() {
            let ended = self.waiting.remove(&next).unwrap_or_default() + 1;
            if ended == catalog.links(next).predecessors.len() {
                self.arrived(next, fx);
            } else {
                self.waiting.insert(next, ended);
            }
        }
    }

    /// Sends a job to a scheduler other than `avoid`, with the round and the counts of `last`.
    fn submit(&mut self, job: JobId, last: Submission, avoid: Option<ActorId>, fx: &mut Effects<'_>) {
        let Submission { round, tries, mut pauses, .. } = last;
        let to = self.choose(job, avoid, fx);
        match to {
            Some(to) if tries == 0 => fx.send(to, Job::Submit { job, round }),
            Some(to) => {
                fx.recover(to, Job::Submit { job, round });
                fx.note(Note::Resubmitted { job });
            }
            None => {
                fx.arm(Timer::Recheck { job, attempt: tries }, Span(RETRY.0 << pauses.min(MOST_DOUBLINGS)));
                pauses += 1;
            }
        }
        self.open.open(job, Submission { to, pauses, ..last });
    }

    /// The client's own scheduler, or else a random one that is up; for a central job, the first that is up. Never
    /// `avoid`.
    fn choose(&self, job: JobId, avoid: Option<ActorId>, fx: &mut Effects<'_>) -> Option<ActorId> {
        let layout = fx.layout();
        let usable = |s: ActorId| avoid != Some(s) && !self.down.contains(&s);
        let central = match self.central {
            CentralJobs::None => false,
            CentralJobs::Long => fx.catalog().class(job) > 0,
            CentralJobs::All => true,
        };
        if central {
            return (0..layout.schedulers()).map(|i| layout.scheduler(i)).find(|&s| usable(s));
        }
        let own = layout.scheduler(self.index);
        if usable(own) {
            return Some(own);
        }
        let others: Vec<_> =
            (0..layout.schedulers()).map(|i| layout.scheduler(i)).filter(|s| usable(*s)).collect();
        (!others.is_empty()).then(|| others[fx.rng().below(others.len() as u32) as usize])
    }

    /// Resubmits every open job that was sent to `lost`; without `lost`, the jobs that wait for a reachable scheduler.
    fn resubmit(&mut self, lost: Option<ActorId>, fx: &mut Effects<'_>) {
        let again: Vec<_> =
            self.open.iter_mut().filter(|(_, s)| s.to == lost).map(|(job, s)| (job, *s)).collect();
        for (job, Submission { to, round, tries, .. }) in again {
            let sent = u32::from(to.is_some());
            let next = Submission { round: round + sent, tries: tries + sent, ..Submission::default() };
            self.submit(job, next, None, fx);
        }
    }

    fn is_scheduler(actor: ActorId, layout: &Layout) -> bool {
        matches!(layout.role(actor), Role::Scheduler(_))
    }
}

impl Machine for Client {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Start { .. } => self.arm_next(0, fx),
            Input::Fire(Timer::Arrival(job)) => {
                self.arrived(job, fx);
                self.arm_next(job.0 + 1, fx);
            }
            Input::Fire(Timer::Tick(_)) => {
                match self.controller.as_mut().and_then(|controller| controller.done(fx)) {
                    Some((job, Step::Created)) => self.submit(job, Submission::default(), None, fx),
                    Some((job, Step::Counted { killed })) => self.ended(job, killed, fx),
                    None => {}
                }
            }
            Input::Fire(Timer::Recheck { job, attempt }) => {
                let waiting = |s: &&mut Submission| s.to.is_none() && s.tries == attempt;
                if let Some(&mut last) = self.open.get_mut(job).filter(waiting) {
                    self.submit(job, last, None, fx);
                }
            }
            Input::Deliver { msg: Message::Job(Job::Finished { job, killed }), .. } => {
                // A second report of the same job comes from a scheduler that was cut off. Only the first report
                // counts.
                match (self.open.close(job), &mut self.controller) {
                    (Some(_), Some(controller)) => controller.ended(job, killed, fx),
                    (Some(_), None) => self.ended(job, killed, fx),
                    (None, _) => {}
                }
            }
            Input::Undelivered { to, msg: Message::Job(Job::Submit { job, round }) } => {
                let sent = |s: &&mut Submission| s.to == Some(to) && s.round == round;
                if let Some(&mut Submission { tries, .. }) = self.open.get_mut(job).filter(sent) {
                    // No scheduler has received this round, so its number is used again.
                    let next = Submission { round, tries: tries + 1, ..Submission::default() };
                    self.submit(job, next, Some(to), fx);
                }
            }
            Input::Down { actor } if Self::is_scheduler(actor, fx.layout()) => {
                if !self.down.contains(&actor) {
                    self.down.push(actor);
                }
                self.resubmit(Some(actor), fx);
            }
            Input::Up { actor } if Self::is_scheduler(actor, fx.layout()) => {
                self.down.retain(|&s| s != actor);
                self.resubmit(None, fx);
            }
            Input::Deliver { ref msg, .. } => fx.unexpected(msg),
            // Crashes of nodes do not concern the client.
            Input::Down { .. } | Input::Up { .. } | Input::Undelivered { .. } => {}
            Input::Fire(_) => {}
            Input::Done { .. } | Input::Halted { .. } | Input::Progress { .. } | Input::Usage { .. } => {}
        }
    }
}

/// Maximum number of tasks in one visit (`maxPodCreateDeletePerSync` and `maxUncountedPods` of Kubernetes).
const VISIT: u32 = 500;

/// A step in the life of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The first tasks of the job are created.
    Created,
    /// The ends of all tasks of the job are counted.
    Counted {
        /// Whether the job was killed.
        killed: bool,
    },
}

/// A job in the work queue, with the number of its tasks still to be created and the number of its tasks whose ends are
/// still to be counted.
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
    killed: bool,
    /// The job's visit while the job is not in the work queue.
    absent: Option<Visit>,
}

/// The work queue of a client.
#[derive(Clone, Debug)]
pub(super) struct JobController {
    /// Time that a request takes.
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
    pub(super) fn ended(&mut self, job: JobId, killed: bool, fx: &mut Effects<'_>) {
        if let Some(created) = self.created.get_mut(job) {
            (created.ended, created.killed) = (true, killed);
            self.queue.extend(created.absent.take());
            self.visit(fx);
        }
    }

    /// Ends the current visit; returns the step that the visited job has reached with it, if any.
    pub(super) fn done(&mut self, fx: &mut Effects<'_>) -> Option<(JobId, Step)> {
        let Visit { job, create, count } = self.current.take()?;
        let left = if create > 0 {
            Visit { job, create: create.saturating_sub(VISIT), count }
        } else {
            Visit { job, create, count: count.saturating_sub(VISIT) }
        };
        let step = if left.count == 0 {
            let killed = self.created.close(job).is_some_and(|created| created.killed);
            Some(Step::Counted { killed })
        } else {
            self.queue.push_back(left);
            (create == count).then(|| {
                self.created.open(job, Created { ended: false, killed: false, absent: None });
                Step::Created
            })
        };
        self.visit(fx);
        step.map(|step| (job, step))
    }

    /// Begins the next visit that has something to do, unless a visit is in progress.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Time;
    use crate::harness::{Harness, JOIN, PAIR, sends};
    use crate::machine::Effect;

    const JOB: JobId = JobId(0);

    fn bench(schedulers: u32) -> Harness {
        of(Layout::new(schedulers, 0, [1]), 1)
    }

    fn of(layout: Layout, tasks: u32) -> Harness {
        let me = layout.client(0);
        let client = Client::new(0, CentralJobs::None, &layout);
        Harness::new(layout, me, tasks, Box::new(client))
    }

    fn submit(round: u32) -> Message {
        Job::Submit { job: JOB, round }.into()
    }

    #[test]
    fn jobs_are_submitted_when_they_arrive() {
        let mut client = bench(1);
        let start = client.step(Input::Start { epoch: 0 });
        assert_eq!(start, [Effect::Arm { timer: Timer::Arrival(JOB), after: Span::ZERO }]);
        let arrival = client.step(Input::Fire(Timer::Arrival(JOB)));
        assert_eq!(sends(&arrival), [(client.layout.scheduler(0), submit(0))]);
        assert_eq!(
            arrival.last(),
            Some(&Effect::Arm { timer: Timer::Arrival(JobId(1)), after: Span::from_secs(1) })
        );
        client.now = Time::ZERO + Span::from_secs(5);
        let finished = Input::Deliver {
            from: client.layout.scheduler(0),
            msg: Job::Finished { job: JOB, killed: false }.into(),
        };
        assert_eq!(client.step(finished), [Effect::Note(Note::Finished { job: JOB })]);
        assert_eq!(client.step(finished), [], "a second report changes nothing");
    }

    /// A client of two chains, with jobs 0 and 1, and jobs 2 and 3 as stages.
    fn chains(layout: Layout) -> Harness {
        of(layout, 1).with_stages(PAIR)
    }

    fn finished(client: &mut Harness, job: u32) -> Vec<Effect> {
        let from = client.layout.scheduler(0);
        client.step(Input::Deliver { from, msg: Job::Finished { job: JobId(job), killed: false }.into() })
    }

    #[test]
    fn a_stage_is_submitted_when_the_stage_before_it_has_ended() {
        let mut client = chains(Layout::new(1, 0, [1]));
        let scheduler = client.layout.scheduler(0);
        let send = |job| Effect::Send {
            to: scheduler,
            msg: Job::Submit { job: JobId(job), round: 0 }.into(),
            recovery: false,
        };
        let arrived = |job| Effect::Note(Note::Arrived { job: JobId(job) });
        let first = client.step(Input::Fire(Timer::Arrival(JOB)));
        let next = Effect::Arm { timer: Timer::Arrival(JobId(2)), after: Span::from_secs(2) };
        assert_eq!(first, [arrived(0), send(0), next], "the next job to arrive belongs to another chain");
        let ended = |job| Effect::Note(Note::Finished { job: JobId(job) });
        assert_eq!(finished(&mut client, 0), [ended(0), arrived(1), send(1)]);
        assert_eq!(finished(&mut client, 0), [], "a second report submits nothing");
        assert_eq!(finished(&mut client, 1), [ended(1)], "the end of a chain starts no other chain");
    }

    /// Stages 0 and 1 arrive with the job; stage 2 waits for both, and stage 3 for stages 0 and 2.
    #[test]
    fn a_stage_is_submitted_when_all_stages_it_waits_for_have_ended() {
        let mut client = of(Layout::new(1, 0, [1]), 1).with_stages(JOIN);
        let first = client.step(Input::Fire(Timer::Arrival(JOB)));
        let next = Effect::Arm { timer: Timer::Arrival(JobId(1)), after: Span::ZERO };
        assert_eq!(first.last(), Some(&next), "the other stage that waits for none arrives at once");
        let second = client.step(Input::Fire(Timer::Arrival(JobId(1))));
        assert_eq!(
            second.last(),
            Some(&Effect::Arm { timer: Timer::Arrival(JobId(4)), after: Span::from_secs(4) })
        );
        let mut submitted =
            |job| sends(&finished(&mut client, job)).into_iter().map(|(_, msg)| msg).collect();
        let submit = |job| Message::from(Job::Submit { job: JobId(job), round: 0 });
        let after: [Vec<Message>; 3] = [1, 0, 2].map(&mut submitted);
        assert_eq!(after, [vec![], vec![submit(2)], vec![submit(3)]]);
    }

    #[test]
    fn stages_after_a_killed_stage_are_not_submitted() {
        let mut client = chains(Layout::new(1, 0, [1]));
        client.step(Input::Fire(Timer::Arrival(JOB)));
        let killed = Message::from(Job::Finished { job: JOB, killed: true });
        let input = Input::Deliver { from: client.layout.scheduler(0), msg: killed };
        assert_eq!(client.step(input), [Effect::Note(Note::Killed { job: JOB })]);
        assert_eq!(client.step(input), [], "a second report changes nothing");
    }

    /// The scheduler crashes while it has a later stage. Only that stage is submitted again.
    #[test]
    fn a_crash_repeats_only_the_open_stage() {
        let mut client = chains(Layout::new(2, 0, [1]));
        let [own, other] = [client.layout.scheduler(0), client.layout.scheduler(1)];
        client.step(Input::Fire(Timer::Arrival(JOB)));
        finished(&mut client, 0);
        let again = Job::Submit { job: JobId(1), round: 1 }.into();
        assert_eq!(sends(&client.step(Input::Down { actor: own })), [(other, again)]);
        assert_eq!(finished(&mut client, 0), [], "this stage was reported before the crash");
    }

    /// The client has ten requests a second. A stage of one task is created in 0.2 s and counted in 0.2 s.
    #[test]
    fn each_stage_spends_requests_on_creation_and_counting() {
        let mut client = chains(Layout::new(1, 0, [1]).with_requests(Some(10.0)));
        let scheduler = client.layout.scheduler(0);
        let visit = Effect::Arm { timer: Timer::Tick(0), after: Span::from_millis(200) };
        let tick = Input::Fire(Timer::Tick(0));
        assert!(client.step(Input::Fire(Timer::Arrival(JOB))).contains(&visit));
        assert_eq!(sends(&client.step(tick)), [(scheduler, submit(0))]);
        assert_eq!(finished(&mut client, 0), [visit]);
        let [ended, arrived] =
            [Note::Finished { job: JOB }, Note::Arrived { job: JobId(1) }].map(Effect::Note);
        assert_eq!(client.step(tick), [ended, arrived, visit]);
        let second = Job::Submit { job: JobId(1), round: 0 }.into();
        assert_eq!(sends(&client.step(tick)), [(scheduler, second)]);
        let killed = Message::from(Job::Finished { job: JobId(1), killed: true });
        assert_eq!(client.step(Input::Deliver { from: scheduler, msg: killed }), [visit]);
        assert_eq!(client.step(tick), [Effect::Note(Note::Killed { job: JobId(1) })]);
    }

    /// The client has ten requests a second and two jobs of 600 tasks. A visit covers 500 tasks and the state of the
    /// job. The job that ends first is counted first.
    #[test]
    fn the_job_controller_creates_tasks_and_counts_ends_in_queue_order() {
        let mut client = of(Layout::new(1, 0, [1]).with_requests(Some(10.0)), 600);
        let scheduler = client.layout.scheduler(0);
        let visit =
            |tasks: u64| Effect::Arm { timer: Timer::Tick(0), after: Span::from_millis(100 * (tasks + 1)) };
        let fire = Input::Fire(Timer::Tick(0));
        let finished = |job| Input::Deliver {
            from: scheduler,
            msg: Job::Finished { job: JobId(job), killed: false }.into(),
        };
        assert!(client.step(Input::Fire(Timer::Arrival(JOB))).contains(&visit(500)));
        assert_eq!(
            sends(&client.step(Input::Fire(Timer::Arrival(JobId(1))))),
            [],
            "job 1 waits for its turn"
        );
        let created = client.step(fire);
        assert_eq!((sends(&created), created.contains(&visit(500))), (vec![(scheduler, submit(0))], true));
        assert!(client.step(fire).contains(&visit(100)), "the visit covers the rest of the first job");
        assert_eq!(client.step(fire), [visit(100)], "the visit covers the rest of the second job");
        assert_eq!(client.step(fire), [], "no job has ended, so there is nothing to count");
        assert_eq!(client.step(finished(1)), [visit(500)]);
        assert_eq!(client.step(finished(0)), []);
        assert_eq!(client.step(fire), [visit(500)], "the first job is counted");
        assert_eq!(client.step(fire), [visit(100)], "the rest of the second job is counted");
        assert_eq!(client.step(fire), [visit(100), Effect::Note(Note::Finished { job: JobId(1) })]);
        assert_eq!(client.step(fire), [Effect::Note(Note::Finished { job: JOB })]);
    }

    /// The only scheduler is down for 100 h.
    #[test]
    fn a_client_backs_off_until_a_scheduler_returns() {
        let mut client = bench(1);
        let scheduler = client.layout.scheduler(0);
        client.step(Input::Fire(Timer::Arrival(JOB)));
        let mut armed = client.step(Input::Down { actor: scheduler });
        let (mut waited, mut pauses) = (Span::ZERO, Vec::new());
        while waited < Span::from_secs(100 * 3600) {
            let [Effect::Arm { timer, after }] = armed[..] else { panic!("{armed:?}") };
            waited += after;
            pauses.push(after.0 / 1_000_000_000);
            armed = client.step(Input::Fire(timer));
        }
        assert_eq!(pauses[..8], [1, 2, 4, 8, 16, 32, 64, 64]);
        assert!(pauses.len() < 6000, "{} pauses", pauses.len());
        let up = client.step(Input::Up { actor: scheduler });
        assert_eq!(sends(&up), [(scheduler, submit(1))], "the job is submitted at once");
    }

    #[test]
    fn jobs_of_a_dead_scheduler_go_to_another_or_wait() {
        let mut client = bench(2);
        let [own, other] = [client.layout.scheduler(0), client.layout.scheduler(1)];
        client.step(Input::Fire(Timer::Arrival(JOB)));
        assert_eq!(
            sends(&client.step(Input::Down { actor: other })),
            [],
            "the other scheduler has no job of this client"
        );
        let down = client.step(Input::Down { actor: own });
        assert_eq!(sends(&down), [], "no scheduler is left");
        assert_eq!(sends(&client.step(Input::Up { actor: other })), [(other, submit(1))]);
        // The client's own scheduler is down and the other one is unreachable, so each retry waits for a pause.
        let undelivered = Input::Undelivered { to: other, msg: submit(1) };
        for tries in 2..5000 {
            assert_eq!(sends(&client.step(undelivered)), []);
            let retry = Input::Fire(Timer::Recheck { job: JOB, attempt: tries });
            assert_eq!(sends(&client.step(retry)), [(other, submit(1))], "no scheduler has seen the round");
            assert_eq!(sends(&client.step(retry)), [], "the job is submitted once");
        }
    }
}
