//! A harness for step tests of one machine, which takes inputs and returns effects.

use crate::base::{ActorId, CopyId, JobId, Rng, Span, TaskId, Time};
use crate::catalog::{Catalog, JobSpec, Links};
use crate::layout::Layout;
use crate::machine::{Effect, Effects, Input, Machine, Oracle};
use crate::message::{Core, Job, Message};

/// The stages of a chain. For each stage: the stages that it waits for, and the stages that wait for it, as differences
/// of ids.
pub type StageGraph = &'static [(&'static [u32], &'static [u32])];

/// A job without a chain.
pub const SINGLE: StageGraph = &[(&[], &[])];
/// Two stages, one after the other.
pub const PAIR: StageGraph = &[(&[], &[1]), (&[1], &[])];
/// Four stages: two begin with the job, the third waits for both, and the last for the first and the third.
pub const JOIN: StageGraph = &[(&[], &[2, 3]), (&[], &[1]), (&[1, 2], &[1]), (&[1, 3], &[])];

/// The dependencies of a job, if every chain has this graph.
pub fn links(graph: StageGraph, job: JobId) -> Links<'static> {
    let (predecessors, successors) = graph[job.index() % graph.len()];
    Links { job, predecessors, successors }
}

/// Jobs of equal size that arrive a second apart. Task i is estimated at i + 1 s, and job j at j s, at least 1 s.
#[derive(Clone, Debug)]
pub struct Jobs {
    /// Number of tasks of each job.
    pub tasks: u32,
    /// Jobs of the long class.
    pub long: Vec<JobId>,
    /// Jobs with deadlines, and the time from their arrival to the deadline.
    pub deadlines: Vec<(JobId, Span)>,
    /// The stages of each chain; the jobs of a chain have consecutive ids.
    pub stages: StageGraph,
}

impl Catalog for Jobs {
    fn jobs(&self) -> u32 {
        1000
    }
    fn job(&self, job: JobId) -> JobSpec {
        let first = job.0 - job.0 % self.stages.len() as u32;
        let arrival = Time(u64::from(first) * 1_000_000_000);
        let class = self.long.contains(&job).into();
        let deadline =
            self.deadlines.iter().find(|(urgent, _)| *urgent == job).map(|(_, span)| arrival + *span);
        JobSpec { arrival, tasks: self.tasks, client: 0, class, deadline }
    }
    fn links(&self, job: JobId) -> Links<'_> {
        links(self.stages, job)
    }
    fn estimate(&self, task: TaskId) -> Span {
        Span::from_secs(u64::from(task.index) + 1)
    }
    fn job_estimate(&self, job: JobId) -> Span {
        Span::from_secs(u64::from(job.0).max(1))
    }
}

/// One machine under test.
pub struct Harness {
    /// All actors.
    pub layout: Layout,
    /// Address of the machine.
    pub me: ActorId,
    /// The time of the next step; a test may change it.
    pub now: Time,
    /// The oracle, which no actor of a real system has; `None` if the policy does not use it.
    pub oracle: Option<Oracle>,
    jobs: Jobs,
    rng: Rng,
    machine: Box<dyn Machine>,
}

impl Harness {
    /// A machine among the actors of `layout`; each job has `tasks` tasks.
    pub fn new(layout: Layout, me: ActorId, tasks: u32, machine: Box<dyn Machine>) -> Self {
        Self {
            layout,
            me,
            now: Time::ZERO,
            oracle: None,
            jobs: Jobs { tasks, long: Vec::new(), deadlines: Vec::new(), stages: SINGLE },
            rng: Rng::new(1, me.0, 0),
            machine,
        }
    }

    /// Makes these jobs long.
    #[must_use]
    pub fn with_long(mut self, jobs: &[JobId]) -> Self {
        self.jobs.long = jobs.to_vec();
        self
    }

    /// Gives this job a deadline, `within` after its arrival.
    #[must_use]
    pub fn with_deadline(mut self, job: JobId, within: Span) -> Self {
        self.jobs.deadlines.push((job, within));
        self
    }

    /// Crashes the machine; `next` takes its place, with the state that it has stored.
    #[must_use]
    pub fn crash(mut self, mut next: Box<dyn Machine>) -> Self {
        if let Some(stored) = self.machine.stored() {
            next.restore(stored);
        }
        self.machine = next;
        self
    }

    /// Makes the jobs chains of these stages.
    #[must_use]
    pub fn with_stages(mut self, stages: StageGraph) -> Self {
        self.jobs.stages = stages;
        self
    }

    /// Steps the machine and returns its effects.
    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut out = Vec::new();
        let fx = Effects::new(self.now, self.me, &mut self.rng, &mut out, &self.jobs, &self.layout);
        self.machine.step(input, &mut fx.with_oracle(self.oracle.as_ref()));
        out
    }

    /// Delivers a message.
    pub fn deliver(&mut self, from: ActorId, msg: impl Into<Message>) -> Vec<Effect> {
        self.step(Input::Deliver { from, msg: msg.into() })
    }

    /// Delivers a message; returns the messages that the machine sends in answer.
    pub fn receive(&mut self, from: ActorId, msg: impl Into<Message>) -> Vec<(ActorId, Message)> {
        sends(&self.deliver(from, msg))
    }

    /// Delivers the submission of a job by the first client.
    pub fn submit(&mut self, job: u32) -> Vec<Effect> {
        self.deliver(self.layout.client(0), Job::Submit { job: JobId(job), round: 0 })
    }

    /// Delivers a worker's report that a copy ended; returns the messages that the machine sends in answer.
    pub fn ended(&mut self, copy: CopyId) -> Vec<(ActorId, Message)> {
        let worker = self.layout.worker(0, 0);
        self.receive(worker, Core::Ended { copy })
    }
}

/// The messages that were sent, with their receivers.
pub fn sends(effects: &[Effect]) -> Vec<(ActorId, Message)> {
    let send =
        |effect: &Effect| if let Effect::Send { to, msg, .. } = *effect { Some((to, msg)) } else { None };
    effects.iter().filter_map(send).collect()
}

/// The messages that were broadcast.
pub fn broadcasts(effects: &[Effect]) -> Vec<Message> {
    let broadcast = |effect: &Effect| if let Effect::Broadcast { msg } = *effect { Some(msg) } else { None };
    effects.iter().filter_map(broadcast).collect()
}
