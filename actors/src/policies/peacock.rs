//! Peacock: probes that rotate on a ring of workers until they can be served in time.

mod queue;
mod worker;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Policy, Seat};
use crate::base::{ActorId, CopyId, JobId, Span, TaskId};
use crate::layout::{Layout, Role};
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

    fn check(&self, layout: &Layout) -> Result<(), String> {
        if layout.schedulers() > u32::from(u16::MAX) {
            return Err("peacock numbers at most 65535 schedulers; lower cluster.schedulers".into());
        }
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
            epoch: 0,
            loads: vec![Load::default(); seat.layout.schedulers() as usize],
            total: Load::default(),
            sample: Vec::new(),
        })
    }

    fn node(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        Box::new(worker::Node::new(self, seat))
    }
}

/// Unfinished tasks A and their estimated work Ω (ns), as of a numbered report.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    report: u32,
    active: u64,
    work: u128,
}

/// Bits of a report's number that count reports; the scheduler's epoch is above them.
const REPORT_BITS: u32 = 26;

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
    epoch: u32,
    /// What each scheduler last said of its unfinished tasks; our own entry is exact.
    loads: Vec<Load>,
    /// Sum of `loads`.
    total: Load,
    sample: Vec<ActorId>,
}

impl Scheduler {
    /// Mean load w̄ = Ω/n and queue limit q = round(max(0, A − n)/n) over the n cores alive.
    fn state(&self, layout: &Layout) -> (Span, u8) {
        let n = u64::from(layout.workers()) * u64::from(self.members.len()) / u64::from(layout.nodes());
        let n = n.max(1);
        let waiting = self.total.active.saturating_sub(n);
        let limit = ((waiting + n / 2) / n).min(u64::from(u8::MAX)) as u8;
        (Span((self.total.work / u128::from(n)) as u64), limit)
    }

    /// Books what a scheduler says of its unfinished tasks.
    fn account(&mut self, scheduler: u32, load: Load) {
        let entry = &mut self.loads[scheduler as usize];
        if load.report >= entry.report {
            self.total.active = self.total.active - entry.active + load.active;
            self.total.work = self.total.work - entry.work + load.work;
            *entry = load;
        }
    }

    /// Books a change of our own tasks and tells the other schedulers.
    fn spread(&mut self, change: impl FnOnce(&mut Load), fx: &mut Effects<'_>) {
        let mut own = self.loads[self.index as usize];
        change(&mut own);
        own.report = self.epoch << REPORT_BITS | (own.report + 1) & ((1 << REPORT_BITS) - 1);
        self.account(self.index, own);
        if self.form == Form::Threshold {
            return;
        }
        let (active, work) = (own.active as u32, Span(u64::try_from(own.work).unwrap_or(u64::MAX)));
        for i in (0..fx.layout().schedulers()).filter(|&i| i != self.index) {
            fx.send(fx.layout().scheduler(i), Ring::Load { report: own.report, active, work });
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        // A submission that was under way to an earlier life of this scheduler can come on top.
        if self.jobs.get_mut(job).is_some() {
            return;
        }
        let catalog = fx.catalog();
        let mut open = Open::new(catalog.job(job), round);
        open.attempts(1);
        let tasks = open.spec.tasks;
        let work = (0..tasks).fold(Span::ZERO, |sum, i| sum + catalog.estimate(job.task(i)));
        let add = |own: &mut Load| {
            own.active += u64::from(tasks);
            own.work += u128::from(work.0);
        };
        self.spread(add, fx);
        self.jobs.open(job, Placed { open, nodes: vec![None; tasks as usize] });
        let mut base = 0;
        while base < tasks && !self.members.is_empty() {
            // Distinct workers; a job with more tasks than workers goes round again.
            let mut sample = std::mem::take(&mut self.sample);
            sample.clear();
            self.members.sample(fx.rng(), (tasks - base) as usize, &mut sample);
            for &node in &sample {
                let visit = self.visitor(job.task(base), fx.layout());
                fx.send(node, Ring::Visit(visit));
                base += 1;
            }
            self.sample = sample;
        }
    }

    fn visitor(&self, task: TaskId, layout: &Layout) -> Visitor {
        let (load, limit) = self.state(layout);
        let max_wait = if self.form == Form::Threshold { self.threshold } else { load };
        Visitor { task, scheduler: self.index as u16, limit, hops: 0, max_wait }
    }

    fn claim(&mut self, node: ActorId, job: JobId, index: u32, fx: &mut Effects<'_>) {
        let nothing = Probe::Nothing { job, group: index };
        let Some(placed) = self.jobs.get_mut(job) else { return fx.send(node, nothing) };
        // A task whose probe was sent again after a crash may be claimed twice: the first has it.
        match placed.nodes.get_mut(index as usize) {
            Some(slot @ None) => {
                *slot = Some(node);
                let attempt = placed.open.latest_attempt();
                let grant = Probe::Grant { row: Row::single(job.task(index).copy(attempt)), group: index };
                if placed.open.is_repeated(attempt) { fx.recover(node, grant) } else { fx.send(node, grant) }
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
        let work = u128::from(fx.catalog().estimate(copy.task).0);
        let remove = |own: &mut Load| {
            own.active = own.active.saturating_sub(1);
            own.work = own.work.saturating_sub(work);
        };
        self.spread(remove, fx);
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
            let mut fresh = false;
            for index in 0..placed.open.spec.tasks {
                if placed.open.is_done(index) || !lost(index, placed.nodes[index as usize]) {
                    continue;
                }
                placed.nodes[index as usize] = None;
                if !std::mem::replace(&mut fresh, true) {
                    placed.open.attempts(1);
                }
                visits.push(job.task(index));
            }
        }
        for task in visits {
            if let Some(node) = self.members.pick(fx.rng()) {
                let visit = self.visitor(task, fx.layout());
                fx.recover(node, Ring::Visit(visit));
            }
        }
    }

    /// A scheduler died: its tasks are its clients' to submit again.
    fn forget(&mut self, actor: ActorId, layout: &Layout) {
        if let Role::Scheduler(other) = layout.role(actor) {
            let report = self.loads[other as usize].report;
            self.account(other, Load { report, ..Load::default() });
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
                Message::Ring(Ring::Load { report, active, work }) => {
                    if let Role::Scheduler(other) = fx.layout().role(from) {
                        let load = Load { report, active: u64::from(active), work: u128::from(work.0) };
                        self.account(other, load);
                    }
                }
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg } => self.undelivered(to, msg, fx),
            Input::Down { actor } => {
                self.members.down(actor, fx.layout());
                if !matches!(fx.layout().role(actor), Role::Node(_)) {
                    self.forget(actor, fx.layout());
                    return;
                }
                // Where a probe was when the node died is not known: every unclaimed one is sent again.
                self.again(None, |_, at| at.is_none() || at == Some(actor), fx);
            }
            Input::Up { actor } => {
                self.members.up(actor, fx.layout());
                if self.members.len() == 1 {
                    self.again(None, |_, at| at.is_none(), fx);
                }
            }
            Input::Start { epoch } => self.epoch = epoch,
            Input::Fire(_) | Input::Done { .. } | Input::Halted { .. } => {}
        }
    }
}
