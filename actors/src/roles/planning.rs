//! A central scheduler that decides in cycles which jobs run. All tasks of a job start together, on idle cores only,
//! and jobs can be preempted. A [`Planner`] makes the decisions; the scheduler handles cycles, launches, preemption and
//! repairs.

mod planner;
mod utility;

pub use planner::{
    CorePool, Decision, HeldCore, JobRun, LaunchOrder, PlannedJob, Planner, Situation, TaskPlaces,
};
pub use utility::{OverEstimates, Utility, Valuation};

use crate::base::{ActorId, CopyId, JobId, Span, TaskId, Time};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Input, Machine, Note, Stored, Timer};
use crate::message::{Contention, Job, Launch, Message, Row, TaskRange, UsageReport};
use crate::roles::job_table::{Completion, JobTable};
use crate::roles::{RETRY_AFTER, resend};

/// The tick at the end of a cycle.
const CYCLE: Timer = Timer::Tick(0);
/// The tick at which a decision is carried out.
const DECIDED: Timer = Timer::Tick(1);

/// A central scheduler. At the end of each cycle in which something has changed, its planner decides which waiting
/// jobs to launch. Jobs start only on free cores, so no task queues at a node.
#[derive(Clone, Debug)]
pub struct PlanningScheduler<P> {
    cycle: Span,
    planner: P,
    pool: CorePool,
    jobs: JobTable<PlannedJob>,
    /// Whether something has happened since the planner last decided.
    changed: bool,
    /// Time at which the planner wants to decide even if nothing happens.
    due: Option<Time>,
    /// The end of the cycle for which a tick is armed.
    armed: Option<Time>,
    /// A decision that is in progress, because it takes emulated time.
    deciding: Option<Decision>,
    /// The end of the cycle in which the planner decided last.
    decided: Option<Time>,
}

/// The outcome of a decision.
#[derive(Clone, Copy, Default)]
struct Carried {
    launched: u32,
    revoked: u32,
    preempted: u32,
}

impl<P: Planner> PlanningScheduler<P> {
    /// A scheduler that decides every `cycle`.
    pub fn new(cycle: Span, planner: P, layout: &Layout) -> Self {
        Self {
            cycle,
            planner,
            pool: CorePool::new(layout),
            jobs: JobTable::default(),
            changed: false,
            due: None,
            armed: None,
            deciding: None,
            decided: None,
        }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        self.planner.submitted(job, &open.spec, fx);
        self.jobs.open(job, PlannedJob::new(open));
        self.changed = true;
    }

    /// Arms the end of the next cycle in which there will be something to decide.
    fn proceed(&mut self, fx: &mut Effects<'_>) {
        if self.deciding.is_some() {
            return;
        }
        let end = |cycles: u64| Time(cycles.saturating_mul(self.cycle.0));
        let next = end(fx.now().0 / self.cycle.0 + 1);
        let after = |due: Time| end(due.0.div_ceil(self.cycle.0)).max(next);
        let wanted = if self.changed { Some(next) } else { self.due.map(after) };
        if let Some(at) = wanted
            && self.armed.is_none_or(|armed| at < armed)
        {
            self.armed = Some(at);
            fx.arm(CYCLE, at.since(fx.now()));
        }
    }

    /// Lets the planner decide, unless an earlier tick did so or a decision is in progress.
    fn end_cycle(&mut self, fx: &mut Effects<'_>) {
        // In real time a tick can be late; the cycle then ended at its due time.
        let Some(end) = self.armed.take_if(|armed| *armed <= fx.now()) else { return };
        if self.deciding.is_some() {
            return;
        }
        (self.changed, self.due) = (false, None);
        let waiting = self.jobs.iter_mut().any(|(_, job)| !job.waiting.is_empty());
        if !self.planner.has_choice(waiting) {
            return;
        }
        let cycles = self.decided.map_or(1, |last| end.since(last).0 / self.cycle.0);
        self.decided = Some(end);
        let mut decision = self.planner.decide(Situation { jobs: &mut self.jobs, pool: &self.pool }, fx);
        self.due = decision.due;
        decision.cycles = u32::try_from(cycles).unwrap_or(u32::MAX);
        if decision.takes == Span::ZERO {
            self.carry_out(&decision, fx);
        } else {
            fx.arm(DECIDED, decision.takes);
            self.deciding = Some(decision);
        }
    }

    /// Carries out a decision as far as still possible.
    fn carry_out(&mut self, decision: &Decision, fx: &mut Effects<'_>) {
        let mut carried = Carried::default();
        carried.preempted += self.stop(&decision.stops, fx);
        let mut victims = decision.victims.clone();
        for order in &decision.launches {
            let waits =
                self.jobs.get_mut(order.job).is_some_and(|job| job.waiting.len() as u32 >= order.size());
            if waits && self.make_room(order, &mut victims, &mut carried, fx) {
                self.launch(order, fx);
                carried.launched += 1;
            } else {
                carried.revoked += 1;
                self.changed = true;
            }
        }
        let Carried { launched, revoked, preempted } = carried;
        let Decision { cycles, takes, .. } = *decision;
        fx.note(Note::Enacted { cycles, launched, revoked, preempted, took: takes });
    }

    /// Preempts copies that still hold their cores; returns the number of affected jobs.
    fn stop(&mut self, stops: &[HeldCore], fx: &mut Effects<'_>) -> u32 {
        let mut preempted = Vec::new();
        for core in stops {
            let id = core.copy.task.job;
            let Some(job) = self.jobs.get_mut(id) else { continue };
            let Some(at) = job.held.iter().position(|held| held == core) else { continue };
            job.held.remove(at);
            job.whole = false;
            self.give_up(*core, fx);
            if !preempted.contains(&id) {
                preempted.push(id);
            }
        }
        preempted.len() as u32
    }

    /// Stops a copy that is no longer among the held copies of its job; its task waits again.
    fn give_up(&mut self, core: HeldCore, fx: &mut Effects<'_>) {
        drop_copy(core.copy, core.node, fx);
        self.pool.release(core.node, core.copy);
        self.wait_again(core.copy, fx);
    }

    /// Makes the task of a stopped copy wait again.
    fn wait_again(&mut self, copy: CopyId, fx: &mut Effects<'_>) {
        self.changed = true;
        if let Some(job) = self.jobs.get_mut(copy.task.job) {
            job.again(copy.task.index);
            self.planner.stopped(copy, fx);
        }
    }

    /// Preempts victims for the cores that the order lacks, if the victims' cores suffice. Returns whether the order
    /// has its cores.
    fn make_room(
        &mut self,
        order: &LaunchOrder,
        victims: &mut Vec<JobId>,
        carried: &mut Carried,
        fx: &mut Effects<'_>,
    ) -> bool {
        let tasks = match &order.places {
            TaskPlaces::Kinds(tasks) => tasks,
            TaskPlaces::Nodes(nodes) => return self.have_room(nodes),
        };
        let Some(chosen) = self.sufficient(order.job, tasks, victims) else { return false };
        victims.retain(|id| !chosen.contains(id));
        for id in chosen {
            carried.preempted += u32::from(self.preempt(id, fx));
        }
        true
    }

    /// Whether each node has a free core for each of its occurrences.
    fn have_room(&self, nodes: &[u32]) -> bool {
        let mut sorted = nodes.to_vec();
        sorted.sort_unstable();
        let mut groups = sorted.chunk_by(|a, b| a == b);
        groups.all(|group| self.pool.free_on(group[0]) >= group.len() as u32)
    }

    /// The first victims whose cores together with the free cores suffice for `tasks`, counted by kind of nodes; `None`
    /// if even all victims do not suffice. Victims that hold no core of a missing kind are skipped.
    fn sufficient(&mut self, order: JobId, tasks: &[u32], victims: &[JobId]) -> Option<Vec<JobId>> {
        let free = |(kind, tasks): (usize, &u32)| tasks.saturating_sub(self.pool.free(kind));
        let mut lacks: Vec<u32> = tasks.iter().enumerate().map(free).collect();
        let mut chosen = Vec::new();
        for &id in victims.iter().filter(|id| **id != order) {
            let Some(job) = self.jobs.get_mut(id) else { continue };
            let held = job.held_by_kind(&self.pool);
            if lacks.iter().zip(&held).any(|(lacks, held)| lacks.min(held) > &0) {
                lacks.iter_mut().zip(&held).for_each(|(lacks, held)| *lacks = lacks.saturating_sub(*held));
                chosen.push(id);
            }
        }
        lacks.iter().all(|lacks| *lacks == 0).then_some(chosen)
    }

    /// Stops all copies of a job, whose work is lost; returns whether the job had any copy.
    fn preempt(&mut self, id: JobId, fx: &mut Effects<'_>) -> bool {
        let Some(job) = self.jobs.get_mut(id) else { return false };
        let held = std::mem::take(&mut job.held);
        job.preemptions += u32::from(!held.is_empty());
        for &core in &held {
            self.give_up(core, fx);
        }
        !held.is_empty()
    }

    /// Launches tasks of a job on free cores; there must be enough.
    fn launch(&mut self, order: &LaunchOrder, fx: &mut Effects<'_>) {
        let Some(job) = self.jobs.get_mut(order.job) else { return };
        let preference = fx.catalog().preference(order.job);
        let attempt = job.open.attempts(1);
        let repairs = std::mem::take(&mut job.lost);
        if job.held.is_empty() {
            (job.began, job.elsewhere) = (fx.now(), false);
            job.whole = order.size() == job.open.spec.tasks;
        }
        let tasks: Vec<u32> = job.waiting.drain(..order.size() as usize).collect();
        let copies: Vec<_> = tasks.into_iter().map(|task| order.job.task(task).copy(attempt)).collect();
        let nodes = take_cores(&mut self.pool, &order.places, &copies);
        job.elsewhere |= nodes.iter().any(|node| !preference.includes(fx.layout().kind(*node)));
        for (copy, node) in copies.into_iter().zip(nodes) {
            job.held.push(HeldCore { copy, node });
            let row = Row::single(copy).in_gang(job.elsewhere);
            fx.send_as(repairs, fx.layout().node(node), Launch::Row(row));
        }
    }

    /// Handles an eviction. The node has stopped the copy itself, so no drop is sent.
    fn evicted(&mut self, from: ActorId, copy: CopyId, alone: bool, fx: &mut Effects<'_>) {
        let node = fx.layout().node_number(from);
        // Otherwise the copy was preempted or believed lost meanwhile.
        if self.pool.release(node, copy) {
            self.planner.evicted(copy, node, alone, fx);
            if let Some(job) = self.jobs.get_mut(copy.task.job) {
                job.held.retain(|core| core.copy != copy);
                job.whole = false;
            }
            self.wait_again(copy, fx);
        }
    }

    fn reported(&mut self, from: ActorId, report: UsageReport, fx: &mut Effects<'_>) {
        let UsageReport::Report { copy, .. } = report;
        if self.holds(from, copy, fx) {
            self.changed |= self.planner.reported(report, fx);
        }
    }

    fn contended(&mut self, from: ActorId, contention: Contention, fx: &mut Effects<'_>) {
        match contention {
            Contention::Throttled { copy, rate, at } if self.holds(from, copy, fx) => {
                self.changed |= self.planner.throttled(copy, rate, at.into(), fx);
            }
            Contention::Throttled { .. } => {}
            Contention::Evicted { copy, alone, .. } => self.evicted(from, copy, alone, fx),
        }
    }

    /// Whether a copy holds a core of the node and has not been stopped meanwhile.
    fn holds(&self, node: ActorId, copy: CopyId, fx: &Effects<'_>) -> bool {
        self.pool.holds(fx.layout().node_number(node), copy)
    }

    fn completed(&mut self, from: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        self.changed |= self.pool.release(fx.layout().node_number(from), copy);
        let TaskId { job: id, index } = copy.task;
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.waiting.retain(|task| *task != index);
        if let Some(at) = job.held.iter().position(|core| core.copy.task == copy.task) {
            let core = job.held.swap_remove(at);
            if core.copy != copy {
                // A copy believed lost or stopped finished before the copy that replaced it.
                job.whole = false;
                drop_copy(core.copy, core.node, fx);
                self.changed |= self.pool.release(core.node, core.copy);
            }
        }
        let run = JobRun { length: fx.now().since(job.began), elsewhere: job.elsewhere };
        let run = job.whole.then_some(run);
        if self.jobs.complete(copy.task, |job| &mut job.open, fx) == Completion::Job {
            self.planner.ended(id, run, fx);
        }
    }

    /// Makes a lost task wait again.
    fn lost(&mut self, copy: CopyId, fx: &mut Effects<'_>) {
        if let Some(job) = self.jobs.get_mut(copy.task.job) {
            job.held.retain(|core| core.copy != copy);
            (job.whole, job.lost) = (false, true);
        }
        self.wait_again(copy, fx);
    }

    /// Handles an undelivered launch: its task waits again, and the node is avoided for a while.
    fn refused(&mut self, to: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let node = fx.layout().node_number(to);
        // Otherwise the node has been reported down, or the job was preempted.
        if self.pool.release(node, copy) {
            self.pool.avoid(node, true);
            fx.arm(Timer::Node(node), RETRY_AFTER);
            self.lost(copy, fx);
        }
    }

    /// Handles an undelivered order to stop a copy, which may still run. The node is avoided and gets the order again.
    fn not_stopped(&mut self, to: ActorId, drop: Launch, fx: &mut Effects<'_>) {
        let node = fx.layout().node_number(to);
        if self.pool.is_up(node) {
            self.pool.avoid(node, true);
            fx.arm(Timer::Node(node), RETRY_AFTER);
            fx.recover(to, drop);
        }
    }

    fn deliver(&mut self, from: ActorId, msg: &Message, fx: &mut Effects<'_>) {
        match *msg {
            Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
            Message::Launch(Launch::Completed { copy }) => self.completed(from, copy, fx),
            Message::Usage(report) => self.reported(from, report, fx),
            Message::Contention(contention) => self.contended(from, contention, fx),
            _ => fx.unexpected(msg),
        }
    }

    fn fire(&mut self, timer: Timer, fx: &mut Effects<'_>) {
        match timer {
            CYCLE => self.end_cycle(fx),
            DECIDED => {
                if let Some(decision) = self.deciding.take() {
                    self.carry_out(&decision, fx);
                }
            }
            Timer::Node(node) => {
                self.pool.avoid(node, false);
                self.changed = true;
            }
            // No other timer is armed.
            _ => {}
        }
    }
}

/// Takes a free core, which must exist, for each copy; returns the nodes of the cores.
fn take_cores(pool: &mut CorePool, places: &TaskPlaces, copies: &[CopyId]) -> Vec<u32> {
    let kinds = |tasks: &[u32]| {
        let kinds = tasks.iter().enumerate();
        kinds.flat_map(|(kind, tasks)| std::iter::repeat_n(kind, *tasks as usize)).collect::<Vec<_>>()
    };
    let taken: Option<Vec<u32>> = match places {
        TaskPlaces::Kinds(tasks) => {
            kinds(tasks).into_iter().zip(copies).map(|(kind, copy)| pool.take(kind, *copy)).collect()
        }
        TaskPlaces::Nodes(nodes) => {
            nodes.iter().zip(copies).map(|(&node, copy)| pool.take_on(node, *copy).then_some(node)).collect()
        }
    };
    taken.unwrap_or_else(|| unreachable!("the order has free cores"))
}

/// Orders a node to stop a copy.
fn drop_copy(copy: CopyId, node: u32, fx: &mut Effects<'_>) {
    let tasks = TaskRange::one(copy.task, copy.attempt + 1);
    fx.send(fx.layout().node(node), Launch::Drop(tasks));
}

impl<P: Planner> Machine for PlanningScheduler<P> {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Start { .. } => self.planner.started(fx),
            Input::Deliver { from, msg } => self.deliver(from, &msg, fx),
            Input::Undelivered { to, msg: Message::Launch(drop @ Launch::Drop(_)) } => {
                self.not_stopped(to, drop, fx);
            }
            Input::Undelivered { to, msg } => {
                if let Some(row) = resend(to, msg, fx) {
                    self.refused(to, row.copy(0), fx);
                }
            }
            Input::Down { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    self.changed = true;
                    for copy in self.pool.down(node) {
                        self.lost(copy, fx);
                    }
                }
            }
            Input::Up { actor } => {
                if let Role::Node(node) = fx.layout().role(actor) {
                    self.changed = true;
                    self.pool.up(node);
                }
            }
            Input::Fire(timer) => self.fire(timer, fx),
            // The other inputs are for workers.
            Input::Done { .. } | Input::Halted { .. } | Input::Progress { .. } | Input::Usage { .. } => {}
        }
        self.proceed(fx);
    }

    fn stored(&mut self) -> Option<Stored> {
        self.planner.stored()
    }

    fn restore(&mut self, stored: Stored) {
        self.planner.restore(stored);
    }
}
