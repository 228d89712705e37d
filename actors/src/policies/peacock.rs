//! Peacock: probes that rotate on a ring of workers until they can be served in time.

mod queue;
mod worker;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Policy, Seat};
use crate::base::{ActorId, CopyId, JobId, Span, TaskId};
use crate::layout::Layout;
use crate::machine::{Effects, Input, Machine};
use crate::message::{Job, Launch, Message, Probe, Ring, Row, Visitor};
use crate::roles::jobs::{Completion, JobTable, Open};
use crate::roles::members::Members;

/// Parameters of Peacock.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Peacock {
    /// Which of the two published forms.
    pub form: Form,
    /// `elastic` form: how often a worker passes on the probes it could not keep (authors' code: 1 s).
    pub interval: Span,
    /// `threshold` form: how long a probe may wait since its job's arrival before it stops moving. The
    /// latin-square paper does not publish its value.
    pub threshold: Span,
}

/// The published forms of Peacock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The authors': queues bounded by cluster-wide state, probes reordered, rotated at intervals.
    #[default]
    Elastic,
    /// The latin-square paper's simulator: shortest job first, one constant threshold, rotated at once.
    Threshold,
}

impl Default for Peacock {
    fn default() -> Self {
        Self { form: Form::Elastic, interval: Span::from_secs(1), threshold: Span::from_secs(1) }
    }
}

impl Policy for Peacock {
    const ABOUT: &'static str = "Peacock (Khelghatdoust and Gramoli, Euro-Par 2018)\n\
        One probe per task goes to a random worker. A worker orders its probes by size within what each may \
        still wait, and passes those it cannot serve in time to its successor on a ring. A probe at the head \
        holds the core while its scheduler is asked for the task.";

    fn check(&self, _layout: &Layout) -> Result<(), String> {
        if self.interval == Span::ZERO {
            return Err("interval: must be longer than zero".into());
        }
        Ok(())
    }

    fn scheduler(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        Box::new(Scheduler {
            form: self.form,
            threshold: self.threshold,
            index: seat.index,
            members: Members::new(seat.layout),
            jobs: JobTable::default(),
            active: 0,
            load: 0,
            sample: Vec::new(),
        })
    }

    fn node(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        Box::new(worker::Node::new(self, seat))
    }
}

#[derive(Debug)]
struct Placed {
    open: Open,
    /// Node a task was granted to; `None` while its probe is on the ring.
    nodes: Vec<Option<ActorId>>,
}

#[derive(Debug)]
struct Scheduler {
    form: Form,
    threshold: Span,
    index: u32,
    members: Members,
    jobs: JobTable<Placed>,
    /// Unfinished tasks of all schedulers, A; what others report may be late or lost.
    active: i64,
    /// Sum of their estimates in nanoseconds, Ω.
    load: i128,
    sample: Vec<ActorId>,
}

impl Scheduler {
    /// Mean load w̄ = Ω/n and queue limit q = round(max(0, A − n)/n) over the n cores alive.
    fn state(&self, layout: &Layout) -> (Span, u8) {
        let n = u64::from(layout.workers()) * u64::from(self.members.len()) / u64::from(layout.nodes());
        let n = n.max(1) as i128;
        let waiting = (i128::from(self.active) - n).max(0);
        let limit = ((waiting + n / 2) / n).min(i128::from(u8::MAX)) as u8;
        (Span((self.load.max(0) / n) as u64), limit)
    }

    fn account(&mut self, tasks: i32, work: Span) {
        self.active += i64::from(tasks);
        self.load += i128::from(work.0) * i128::from(tasks.signum());
    }

    /// Books a change and tells the other schedulers.
    fn spread(&mut self, job: JobId, tasks: i32, work: Span, fx: &mut Effects<'_>) {
        self.account(tasks, work);
        if self.form == Form::Threshold {
            return;
        }
        for i in (0..fx.layout().schedulers()).filter(|&i| i != self.index) {
            fx.send(fx.layout().scheduler(i), Ring::Delta { job, tasks, work });
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let catalog = fx.catalog();
        let mut open = Open::new(catalog.job(job), round);
        open.attempts(1);
        let tasks = open.spec.tasks;
        let work = (0..tasks).fold(Span::ZERO, |sum, i| sum + catalog.estimate(job.task(i)));
        self.spread(job, tasks as i32, work, fx);
        let attempt = open.first_attempt() as u16;
        self.jobs.open(job, Placed { open, nodes: vec![None; tasks as usize] });
        let mut base = 0;
        while base < tasks && !self.members.is_empty() {
            // Distinct workers; a job with more tasks than workers goes round again.
            let mut sample = std::mem::take(&mut self.sample);
            sample.clear();
            self.members.sample(fx.rng(), (tasks - base) as usize, &mut sample);
            for &node in &sample {
                let visit = self.visitor(job.task(base), attempt, fx.layout());
                fx.send(node, Ring::Visit(visit));
                base += 1;
            }
            self.sample = sample;
        }
    }

    fn visitor(&self, task: TaskId, attempt: u16, layout: &Layout) -> Visitor {
        let (load, limit) = self.state(layout);
        let max_wait = if self.form == Form::Threshold { self.threshold } else { load };
        Visitor { task, scheduler: self.index as u16, attempt, limit, hops: 0, max_wait }
    }

    fn claim(&mut self, node: ActorId, job: JobId, index: u32, fx: &mut Effects<'_>) {
        let nothing = Probe::Nothing { job, group: index };
        let Some(placed) = self.jobs.get_mut(job) else { return fx.send(node, nothing) };
        // A task whose probe was sent again after a crash may be claimed twice: the first has it.
        match placed.nodes.get_mut(index as usize) {
            Some(slot @ None) => {
                *slot = Some(node);
                let row = Row::single(job.task(index).copy(placed.open.latest_attempt()));
                fx.send(node, Probe::Grant { row, group: index });
            }
            Some(Some(_)) | None => fx.send(node, nothing),
        }
    }

    fn completed(&mut self, copy: CopyId, fx: &mut Effects<'_>) {
        let job = copy.task.job;
        let Some(placed) = self.jobs.get_mut(job) else { return };
        let completion = placed.open.complete(copy.task.index);
        if completion == Completion::Duplicate {
            return;
        }
        if completion == Completion::Job {
            fx.send(fx.layout().client(placed.open.spec.client), Job::Finished { job });
            self.jobs.close(job);
        }
        self.spread(job, -1, fx.catalog().estimate(copy.task), fx);
    }

    /// Sends probes again for open tasks that are `lost`; whoever claims first gets the task.
    fn again(
        &mut self,
        only: Option<JobId>,
        lost: impl Fn(u32, Option<ActorId>) -> bool,
        fx: &mut Effects<'_>,
    ) {
        let mut visits = Vec::new();
        for (job, placed) in self.jobs.iter_mut().filter(|(job, _)| only.is_none_or(|o| o == *job)) {
            let mut fresh = None;
            for index in 0..placed.open.spec.tasks {
                if placed.open.is_done(index) || !lost(index, placed.nodes[index as usize]) {
                    continue;
                }
                placed.nodes[index as usize] = None;
                let attempt = *fresh.get_or_insert_with(|| placed.open.attempts(1));
                visits.push((job.task(index), attempt as u16));
            }
        }
        for (task, attempt) in visits {
            if let Some(node) = self.members.pick(fx.rng()) {
                let visit = self.visitor(task, attempt, fx.layout());
                fx.recover(node, Ring::Visit(visit));
            }
        }
    }

    fn undelivered(&mut self, to: ActorId, msg: Message, fx: &mut Effects<'_>) {
        match msg {
            Message::Ring(Ring::Visit(visit)) => {
                let task = visit.task.index;
                self.again(Some(visit.task.job), |index, at| index == task && at.is_none(), fx);
            }
            Message::Probe(Probe::Grant { row, group }) => {
                self.again(Some(row.job), |index, at| index == group && at == Some(to), fx);
                fx.recover(to, Probe::Nothing { job: row.job, group });
            }
            Message::Probe(nothing @ Probe::Nothing { .. }) => fx.recover(to, nothing),
            Message::Job(finished) => fx.recover(to, finished),
            _ => {}
        }
    }
}

impl Machine for Scheduler {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => self.completed(copy, fx),
                Message::Probe(Probe::Claim { job, group }) => self.claim(from, job, group, fx),
                Message::Ring(Ring::Delta { tasks, work, .. }) => self.account(tasks, work),
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg } => self.undelivered(to, msg, fx),
            Input::Down { actor } => {
                self.members.down(actor, fx.layout());
                // Where a probe was when the node died is not known: every unclaimed one is sent again.
                self.again(None, |_, at| at.is_none() || at == Some(actor), fx);
            }
            Input::Up { actor } => {
                self.members.up(actor, fx.layout());
                if self.members.len() == 1 {
                    self.again(None, |_, at| at.is_none(), fx);
                }
            }
            Input::Start { .. } | Input::Fire(_) | Input::Done { .. } | Input::Halted { .. } => {}
        }
    }
}
