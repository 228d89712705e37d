//! The rule of a scheduler for which a program decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::actions::carry_out;
use super::messages::{Bounds, Vocabulary};
use super::names::{actor_name, task_named};
use super::protocol::{Answer, Event, Events, HelloAnswer, JobLine, Order};
use super::{External, Level};
use crate::base::{ActorId, Address, CopyId, DistributionSpec, JobId, Purpose, Span, TaskId};
use crate::layout::Layout;
use crate::machine::{Effects, Timer};
use crate::message::{Launch, Message, Row, SuspendableCopy, TaskRange};
use crate::program::Program;
use crate::roles::dispatcher::{DispatchRule, OpenTasks};

/// The timer at which a decision that took time is carried out.
const DECIDED: Timer = Timer::Tick(u32::MAX);

/// Collects events, asks the program, and carries out its actions.
#[derive(Clone, Debug)]
pub(super) struct ProgramRule {
    /// `None` if the program could not be started; the run then ends soon.
    program: Option<Arc<Program>>,
    messages: Vocabulary,
    /// Whether the program receives `unreachable` and `reachable` events.
    tells_unreachable: bool,
    level: Level,
    decision: Option<DistributionSpec<Span>>,
    /// Time beyond the requested run time after which a gang is killed.
    overrun: Option<Span>,
    /// The state of this actor's random numbers at its start.
    seed: u64,
    /// Number of decisions so far.
    decisions: u64,
    events: Events,
    /// The copies that are at nodes as far as the program knows. Each is removed by exactly one event: `ended`, `left`,
    /// or `down` of its node.
    placed: BTreeMap<TaskId, (SuspendableCopy, ActorId)>,
    /// Whether nodes can suspend tasks.
    suspends: bool,
    /// The copy that has just left its node. A later call during the same input shows whether its task has finished.
    left: Option<(CopyId, ActorId)>,
    /// Whether the program will be asked at the end of this instant.
    is_due: bool,
    /// Whether events have happened while the last decision was being taken.
    is_late: bool,
    /// The decision that is being taken, with its request and answer.
    decided: Option<PendingDecision>,
    /// Tasks that have become ready since the program was asked, while its decision is being taken.
    ready: BTreeSet<TaskId>,
}

/// A decision that is not carried out yet, and the lines that an error message quotes.
#[derive(Clone, Debug)]
struct PendingDecision {
    orders: Vec<Order>,
    request: String,
    answer: String,
}

impl ProgramRule {
    pub(super) fn new(external: &External, program: Option<(Arc<Program>, HelloAnswer)>) -> Self {
        let (program, about) = program.unzip();
        Self {
            program,
            tells_unreachable: about.as_ref().is_some_and(|about| about.unreachable),
            messages: about.map(|about| about.messages).unwrap_or_default(),
            level: external.level,
            decision: external.decision.clone(),
            overrun: external.overrun,
            seed: 0,
            decisions: 0,
            events: Events::default(),
            placed: BTreeMap::new(),
            suspends: external.suspend,
            left: None,
            is_due: false,
            is_late: false,
            decided: None,
            ready: BTreeSet::new(),
        }
    }

    /// Removes a copy from `placed` if it is at this node; returns the node in this case.
    fn remove(&mut self, copy: CopyId, node: ActorId) -> Option<ActorId> {
        self.placed.get(&copy.task).filter(|placed| (placed.0.copy, placed.1) == (copy, node))?;
        self.placed.remove(&copy.task).map(|placed| placed.1)
    }

    /// Reports the copy that has left its node without finishing its task, unless this has been reported.
    fn flush_left(&mut self, layout: &Layout) {
        if let Some((copy, node)) = self.left.take()
            && self.remove(copy, node).is_some()
        {
            let (job, task, node) = (copy.task.job.0, copy.task.index, layout.node_number(node));
            self.add(&Event::Left { job, task, node });
        }
    }

    fn push(&mut self, event: &Event, fx: &Effects<'_>) {
        self.flush_left(fx.layout());
        self.add(event);
    }

    fn add(&mut self, event: &Event) {
        self.is_late |= self.decided.is_some();
        self.events.push(event);
    }

    /// Asks the program, and carries out its decision now or after the time that it takes.
    fn ask(&mut self, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let Some(program) = self.program.clone() else { return };
        let about = if std::mem::take(&mut self.is_late) { "\"late\":true," } else { "" };
        let request = self.events.request(about, fx);
        let Some((answer, line)) = program.ask(&request, Answer::read) else { return };
        let took = match (self.level, answer.took()) {
            (Level::Actor, Some(_)) => {
                return program.fail("only answers at level \"central\" take time", &request, &line);
            }
            (Level::Actor, None) => Span::ZERO,
            (Level::Central, Some(took)) => took,
            (Level::Central, None) => self.decision.as_ref().map_or(Span::ZERO, |decision| {
                self.decisions += 1;
                let address = Address::new(self.seed, Purpose::Tool).at(self.decisions);
                decision.sample(&mut address.draw())
            }),
        };
        let decision = PendingDecision { orders: answer.actions, request, answer: line };
        if took == Span::ZERO {
            return self.carry_out(decision, false, tasks, fx);
        }
        self.decided = Some(decision);
        fx.arm(DECIDED, took);
    }

    /// Carries out a decision; `late` says whether time has passed since the program was asked.
    fn carry_out(
        &mut self,
        decision: PendingDecision,
        late: bool,
        tasks: &mut OpenTasks,
        fx: &mut Effects<'_>,
    ) {
        let Some(program) = self.program.clone() else { return };
        for order in &decision.orders {
            if let Err(why) = self.obey(order, late, tasks, fx) {
                return program.fail(&why, &decision.request, &decision.answer);
            }
        }
        self.ready.clear();
    }

    fn obey(
        &mut self,
        order: &Order,
        late: bool,
        tasks: &mut OpenTasks,
        fx: &mut Effects<'_>,
    ) -> Result<(), String> {
        match *order {
            Order::Launch { job, task, node } => {
                let task = task_named(job, task, fx.catalog())?;
                let node = node_named(node, fx.layout())?;
                self.launch(task, node, false, late, tasks, fx)?;
            }
            Order::Gang { job, ref nodes } => self.launch_gang(JobId(job), nodes, late, tasks, fx)?,
            Order::Preempt { job, task } => {
                let task = task_named(job, task, fx.catalog())?;
                match self.placed.remove(&task) {
                    // If an earlier copy has finished the task, this frees the core of the later one.
                    Some((SuspendableCopy { copy, .. }, node)) => {
                        fx.send(node, Launch::Drop(TaskRange::one(task, copy.attempt + 1)));
                        let _ = tasks.take_back(node, copy, false);
                    }
                    None if late => {}
                    None => {
                        return Err(format!(
                            "it preempts task {} of job {job}, which is at no node",
                            task.index
                        ));
                    }
                }
            }
            Order::Suspend { job, task } => {
                self.turn(task_named(job, task, fx.catalog())?, true, late, fx)?
            }
            Order::Resume { job, task } => {
                self.turn(task_named(job, task, fx.catalog())?, false, late, fx)?
            }
            Order::Timer { .. } | Order::Note { .. } | Order::Send { .. } => {
                carry_out(order, &self.messages, fx)?;
            }
        }
        Ok(())
    }

    /// Suspends or resumes a task at its node.
    fn turn(&mut self, task: TaskId, suspend: bool, late: bool, fx: &mut Effects<'_>) -> Result<(), String> {
        let TaskId { job: JobId(job), index } = task;
        let verb = if suspend { "suspends" } else { "resumes" };
        if !self.suspends {
            return Err(format!("it {verb} a task, which needs suspend = true in the experiment"));
        }
        match self.placed.get_mut(&task) {
            Some((placed, node)) if placed.is_suspended() != suspend => {
                fx.send(*node, placed.switch());
                Ok(())
            }
            Some(_) => {
                let state = if suspend { "is suspended already" } else { "is not suspended" };
                Err(format!("it {verb} task {index} of job {job}, which {state}"))
            }
            None if late => Ok(()),
            None => Err(format!("it {verb} task {index} of job {job}, which is at no node")),
        }
    }

    /// Launches all tasks of a job at once.
    fn launch_gang(
        &mut self,
        job: JobId,
        nodes: &[u32],
        late: bool,
        tasks: &mut OpenTasks,
        fx: &mut Effects<'_>,
    ) -> Result<(), String> {
        let count = task_named(job.0, 0, fx.catalog()).map(|_| fx.catalog().tasks(job))?;
        if nodes.len() != count as usize {
            return Err(format!("job {} has {count} tasks, and its gang has {} nodes", job.0, nodes.len()));
        }
        let chosen: Vec<ActorId> =
            nodes.iter().map(|node| node_named(*node, fx.layout())).collect::<Result<_, _>>()?;
        let preference = fx.catalog().preference(job);
        let elsewhere = nodes.iter().any(|node| !preference.includes(fx.layout().kind(*node)));
        for (index, node) in (0..count).zip(chosen) {
            self.launch(job.task(index), node, elsewhere, late, tasks, fx)?;
        }
        Ok(())
    }

    /// Launches a task; `elsewhere` is as in [`Row::in_gang`].
    fn launch(
        &mut self,
        task: TaskId,
        node: ActorId,
        elsewhere: bool,
        late: bool,
        tasks: &mut OpenTasks,
        fx: &mut Effects<'_>,
    ) -> Result<(), String> {
        let fresh = self.ready.contains(&task);
        if let Some(copy) = waiting(task, late, tasks)?.filter(|_| !fresh) {
            tasks.launch_by(Launch::Row(Row::single(copy).in_gang(elsewhere)), copy, node, fx);
            self.placed.insert(task, (SuspendableCopy::new(copy), node));
            self.limit(task.job, tasks, fx);
            return Ok(());
        }
        // While the decision was being taken, the task finished or became ready again. The program assumes that the
        // task is at this node now.
        let (job, index, node) = (task.job.0, task.index, fx.layout().node_number(node));
        self.push(&Event::Left { job, task: index, node }, fx);
        if fresh {
            self.push(&Event::Ready { job, task: index, lost: tasks.is_lost(task) }, fx);
        }
        Ok(())
    }

    /// Arms a check at the time limit of a gang, counted from the launch of its first task.
    fn limit(&self, job: JobId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        if let (Some(overrun), Some(requested)) = (self.overrun, fx.catalog().requested(job))
            && fx.catalog().is_gang(job)
            && !tasks.has_check(job)
        {
            let most = requested.0.saturating_add(overrun.0);
            tasks.check_later(job, 0, Some(Span(most.saturating_add(1))), fx);
        }
    }
}

/// The copy of a task that waits for a node; `None` if the task has finished while the decision was taken.
fn waiting(task: TaskId, late: bool, tasks: &mut OpenTasks) -> Result<Option<CopyId>, String> {
    let TaskId { job: JobId(job), index } = task;
    match (tasks.waiting(task), tasks.at_node(task)) {
        (Some(copy), _) => Ok(Some(copy)),
        (None, Some(_)) => Err(format!("it launches task {index} of job {job}, which is at a node already")),
        (None, None) if late => Ok(None),
        (None, None) => {
            Err(format!("it launches task {index} of job {job}, which has finished or never arrived"))
        }
    }
}

fn node_named(number: u32, layout: &Layout) -> Result<ActorId, String> {
    if number < layout.nodes() {
        return Ok(layout.node(number));
    }
    Err(format!("there is no node {number}: the last one is {}", layout.nodes() - 1))
}

impl DispatchRule for ProgramRule {
    fn started(&mut self, epoch: u32, fx: &mut Effects<'_>) {
        self.seed = fx.rng().state();
        let seed = self.seed.to_string();
        self.push(&Event::Start { epoch, seed }, fx);
    }

    fn submitted(&mut self, first: CopyId, _: u32, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        let line = JobLine::new(first.task.job, fx.catalog());
        self.push(&Event::Job(line), fx);
    }

    fn ready(&mut self, copy: CopyId, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        let TaskId { job, index } = copy.task;
        let lost = tasks.is_lost(copy.task);
        if self.decided.is_some() {
            self.ready.insert(copy.task);
        }
        self.push(&Event::Ready { job: job.0, task: index, lost }, fx);
    }

    fn settle(&mut self, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.flush_left(fx.layout());
        if self.events.is_empty() {
            return;
        }
        match self.level {
            Level::Actor => self.ask(tasks, fx),
            Level::Central if self.is_due || self.decided.is_some() => {}
            Level::Central => {
                self.is_due = true;
                fx.arm(Timer::Settled, Span::ZERO);
            }
        }
    }

    fn left(&mut self, copy: CopyId, node: ActorId, fx: &mut Effects<'_>) {
        self.flush_left(fx.layout());
        self.left = Some((copy, node));
    }

    fn finished(&mut self, task: TaskId, last: bool, fx: &mut Effects<'_>) {
        let left = self.left.take().and_then(|(copy, node)| self.remove(copy, node));
        let node = left.map(|node| fx.layout().node_number(node));
        self.add(&Event::Ended { job: task.job.0, task: task.index, node, last });
    }

    fn crashed(&mut self, node: ActorId, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.placed.retain(|_, placed| placed.1 != node);
        self.peer(node, false, fx);
    }

    fn back(&mut self, node: ActorId, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        self.peer(node, true, fx);
    }

    fn peer(&mut self, actor: ActorId, up: bool, fx: &mut Effects<'_>) {
        let actor = actor_name(actor, fx.layout());
        self.push(&if up { Event::Up { actor } } else { Event::Down { actor } }, fx);
    }

    fn reach(&mut self, node: ActorId, can: bool, fx: &mut Effects<'_>) -> bool {
        if !self.tells_unreachable {
            return false;
        }
        let node = fx.layout().node_number(node);
        self.push(&if can { Event::Reachable { node } } else { Event::Unreachable { node } }, fx);
        true
    }

    fn receive(&mut self, from: ActorId, msg: &Message, _: &mut OpenTasks, fx: &mut Effects<'_>) -> bool {
        let bounds = Bounds { layout: fx.layout(), catalog: fx.catalog() };
        let Some((name, values)) = self.messages.read(msg, bounds) else { return false };
        let from = actor_name(from, fx.layout());
        self.push(&Event::Message { from, name, values }, fx);
        true
    }

    fn returned(&mut self, to: ActorId, msg: Message, _: &mut OpenTasks, fx: &mut Effects<'_>) {
        if let Message::Preemption(order) = msg {
            // The order is sent again unless a newer order has replaced it.
            if let Some((placed, node)) = self.placed.get(&order.copy().task)
                && (*node, placed.newest()) == (to, order)
            {
                fx.recover(to, order);
            }
        }
        let bounds = Bounds { layout: fx.layout(), catalog: fx.catalog() };
        if let Some((name, values)) = self.messages.read(&msg, bounds) {
            let to = actor_name(to, fx.layout());
            self.push(&Event::Returned { to, name, values }, fx);
        }
    }

    fn check(&mut self, job: JobId, _: u32, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        tasks.kill(job, fx);
        let mut placed = self.placed.split_off(&job.task(0));
        self.placed.append(&mut placed.split_off(&JobId(job.0 + 1).task(0)));
        for (TaskId { index, .. }, (_, node)) in placed {
            let node = fx.layout().node_number(node);
            self.push(&Event::Left { job: job.0, task: index, node }, fx);
        }
        self.push(&Event::Killed { job: job.0 }, fx);
    }

    fn fire(&mut self, timer: Timer, tasks: &mut OpenTasks, fx: &mut Effects<'_>) {
        match timer {
            Timer::Settled => {
                self.is_due = false;
                self.ask(tasks, fx);
            }
            DECIDED => {
                if let Some(decision) = self.decided.take() {
                    self.carry_out(decision, true, tasks, fx);
                }
            }
            Timer::Tick(id) => self.push(&Event::Timer { id }, fx),
            _ => {}
        }
    }
}
