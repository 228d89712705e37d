//! Murmuration: schedulers that each keep a cache of the work at every node and broadcast their placements.
//!
//! This file has the policy and its scheduler: a queue of jobs, placement of their tasks on the nodes with the least
//! expected work, and recovery of jobs and tasks after losses.
//!
//! | module | what it holds |
//! |---|---|
//! | `config` | parameters |
//! | `cache` | expected waits: choosing a node, applying updates; a restarted scheduler copies the cache of another |
//! | `disseminator` | numbering updates and sending them; the numbers of those already applied |
//! | `node` | the node manager; the tasks of a node, their order and their cores |

mod cache;
mod config;
mod disseminator;
mod node;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cache::{ANSWER, ASK, Answers, Boot, Cache};
pub use config::{
    Murmuration, MurmurationNews, MurmurationOrder, MurmurationRank, MurmurationSpread, MurmurationTies,
    MurmurationWait,
};
use disseminator::{Disseminator, SPREAD, others};
use node::MurmurationNode;

use crate::base::{ActorId, CopyId, JobId, Span, Time};
use crate::layout::{Layout, Role};
use crate::machine::{CacheNote, Effects, Input, Machine, Note, ServiceOrder, Timer};
use crate::message::{Gossip, Job, Launch, Message, PlacementForm, PlacementUpdate};
use crate::policies::policy::{BuildContext, Caches, Policy, Traits, check_period};
use crate::roles::job_table::{JobTable, OpenJob};
use crate::roles::{RETRY_AFTER, resend};

/// Upper bound of `fan_out`.
const MOST_FAN_OUT: u32 = 1 << 16;

impl Policy for Murmuration {
    const ABOUT: &'static str = "Murmuration (Vijayakumar, Madhavapeddy and Kalyvianaki, SoCC 2024)\n\
        Each scheduler keeps a cache of the work expected at every node and sends every task of a job to the node with \
        the least. Placements are immediate and never revised. Schedulers broadcast placements and nodes broadcast \
        ends of tasks to all schedulers, so caches differ only by updates in flight. Conflicting placements queue at \
        the node. A restarted scheduler copies the cache of another. With order = \"las\" (ours; Kairos, SoCC 2018) \
        nodes run the copies with the least attained service and suspend the rest.";

    const VARIANTS: &'static [&'static str] = &[
        "{}",
        r#"{ batch = false, update_delay = "300ms", ask_timeout = "100ms", answer_delay = "200ms" }"#,
        r#"{ order = "srjf", decision_per_job = "20ms", decision_per_task = "5ms" }"#,
        r#"{ order = "srjf", rank = "job", bypass = 5, preemptive = true, decision_per_job = "20ms", decision_per_task = "5ms", news = "between-tasks" }"#,
        r#"{ order = "srjf", rank = "job-left-oracle", bypass = 5, ties = "lowest" }"#,
        r#"{ order = "las", quantum = "300ms" }"#,
        r#"{ order = "las", quantum = "1s", batch = false, repair = "5s" }"#,
        r#"{ wait = "clock", copy = "naive" }"#,
        r#"{ spread = "datagrams", repair = "2s" }"#,
        r#"{ spread = "epidemic", fan_out = #, repair = "5s" }"#,
    ];

    fn traits(&self) -> Traits<'_> {
        Traits {
            caches: Caches::Updates,
            time_slice: (self.order == MurmurationOrder::Las).then_some(("quantum", self.quantum)),
            oracle: (self.rank == MurmurationRank::JobLeftOracle).then_some("rank"),
            ..Traits::default()
        }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        self.check_order()?;
        check_period("ask_timeout", self.ask_timeout)?;
        check_period("quantum", self.quantum)?;
        if self.repair > Span::ZERO {
            check_period("repair", self.repair)?;
        }
        if self.spread == MurmurationSpread::Epidemic && !(1..=MOST_FAN_OUT).contains(&self.fan_out) {
            return Err(format!(
                "fan_out: must be from 1 to {MOST_FAN_OUT}, not {}; spread = \"datagrams\" sends to every scheduler",
                self.fan_out
            ));
        }
        if self.repair > Span::ZERO && self.update_delay > self.repair {
            return Err(format!(
                "update_delay: {} is longer than repair, {}: reports would overwrite updates that are not sent yet; \
                 lower update_delay or raise repair",
                self.update_delay, self.repair
            ));
        }
        Ok(())
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(MurmurationScheduler::new(self, context))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(MurmurationNode::new(self, context))
    }
}

impl Murmuration {
    /// Refuses parameters that the chosen order does not use.
    fn check_order(&self) -> Result<(), String> {
        let default = Self::default();
        let unread = [
            (MurmurationOrder::Srjf, "rank", self.rank != default.rank),
            (MurmurationOrder::Srjf, "bypass", self.bypass < default.bypass),
            (MurmurationOrder::Srjf, "preemptive", self.preemptive),
            (MurmurationOrder::Las, "quantum", self.quantum != default.quantum),
        ];
        if let Some((order, key, _)) = unread.iter().find(|(order, _, given)| *given && *order != self.order)
        {
            let (needed, order) = (order.name(), self.order.name());
            return Err(format!(
                "{key}: has no effect with order = \"{order}\"; add order = \"{needed}\" or remove {key}"
            ));
        }
        if self.order == MurmurationOrder::Las && self.wait == MurmurationWait::Clock {
            return Err("wait: \"clock\" expects a node to serve tasks one after the other, and with order = \"las\" \
                        it does not; use wait = \"per-core\" or \"work\""
                .into());
        }
        Ok(())
    }
}

impl MurmurationOrder {
    const fn name(self) -> &'static str {
        match self {
            Self::Fcfs => "fcfs",
            Self::Srjf => "srjf",
            Self::Las => "las",
        }
    }
}

/// The tick at which a scheduler makes a decision.
const DECIDE: u32 = 0;

/// Ticks from this number on name nodes to be readmitted.
const NODES: u32 = 4;

/// Node number of a task that has no node.
const NOWHERE: u32 = PlacementUpdate::NO_NODE;

/// An open job.
#[derive(Clone, Debug)]
struct PlacedJob {
    open: OpenJob,
    /// Node of each task, and the attempt that went there.
    nodes: Vec<(u32, u32)>,
    /// Number of leading tasks for which a decision was made, with or without a live node.
    decided: u32,
}

/// A job waiting to be placed, by its rank; the job with the least rank comes first.
type Queued = Reverse<(u64, Time, JobId)>;

/// The state of a scheduler's placements, without its jobs.
#[derive(Clone, Debug)]
struct Placer {
    index: u32,
    /// The order in which nodes serve waiting tasks; `None` if nodes have no queue.
    service: Option<ServiceOrder>,
    batch: bool,
    cache: Cache,
    disseminator: Disseminator,
    /// Nodes and times of the placements that have not been announced yet.
    unannounced: Vec<(u32, Time)>,
}

/// A scheduler of Murmuration.
#[derive(Clone, Debug)]
struct MurmurationScheduler {
    order: MurmurationOrder,
    preemptive: bool,
    news: MurmurationNews,
    per_job: Span,
    per_task: Span,
    ask_timeout: Span,
    placer: Placer,
    jobs: JobTable<PlacedJob>,
    queue: BinaryHeap<Queued>,
    /// The job being placed.
    busy: Option<JobId>,
    /// Updates and requests that arrived while a job was being placed.
    inbox: Vec<(ActorId, Gossip)>,
    /// The recovery in progress, until there is a cache.
    boot: Option<Boot>,
    answers: Answers,
}

impl MurmurationScheduler {
    fn new(config: &Murmuration, context: BuildContext<'_>) -> Self {
        let service = match (config.order, config.rank) {
            (MurmurationOrder::Las, _) => None,
            (MurmurationOrder::Fcfs, _) => Some(ServiceOrder::OldestJob),
            (MurmurationOrder::Srjf, MurmurationRank::Task) => Some(ServiceOrder::LeastTask),
            // The remaining work of the job when its task is served is not known yet.
            (MurmurationOrder::Srjf, MurmurationRank::Job | MurmurationRank::JobLeftOracle) => {
                Some(ServiceOrder::LeastJob)
            }
        };
        let placer = Placer {
            index: context.index,
            service,
            batch: config.batch,
            cache: Cache::new(config, context),
            disseminator: Disseminator::new(config, context),
            unannounced: Vec::new(),
        };
        Self {
            order: config.order,
            preemptive: config.preemptive && config.order == MurmurationOrder::Srjf,
            news: config.news,
            per_job: config.decision_per_job,
            per_task: config.decision_per_task,
            ask_timeout: config.ask_timeout,
            placer,
            jobs: JobTable::default(),
            queue: BinaryHeap::new(),
            busy: None,
            inbox: Vec::new(),
            boot: None,
            answers: Answers::new(config.answer_delay),
        }
    }

    /// Begins an epoch: the first with an empty cache, since no task is placed yet, and later ones with a copy.
    fn start(&mut self, epoch: u32, fx: &mut Effects<'_>) {
        self.placer.disseminator.begin(epoch);
        if epoch == 0 {
            return;
        }
        let mut peers: Vec<ActorId> = others(fx).collect();
        for i in (1..peers.len()).rev() {
            peers.swap(i, fx.rng().below(i as u32 + 1) as usize);
        }
        self.boot = Some(Boot::new(epoch, self.ask_timeout, peers));
        self.placer.cache.await_copy();
        self.ask(fx);
    }

    fn ask(&mut self, fx: &mut Effects<'_>) {
        let Some(boot) = &mut self.boot else { return };
        if !boot.ask(|other| self.placer.disseminator.is_up(other), fx) {
            self.ready(None, fx);
        }
    }

    /// Installs the copied or empty cache and begins to place jobs.
    fn ready(&mut self, copy: Option<&cache::CacheCopy>, fx: &mut Effects<'_>) {
        let Some(boot) = self.boot.take() else { return };
        self.placer.cache.adopt(copy, fx);
        for update in boot.update {
            self.placer.cache.receive(update, fx);
        }
        self.work(fx);
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let catalog = fx.catalog();
        let Some(mut open) = self.jobs.admit(job, round, catalog) else { return };
        open.attempts(1);
        let tasks = open.spec.tasks;
        self.queue.push(Reverse(self.rank(job, tasks, fx)));
        self.jobs.open(job, PlacedJob { open, nodes: vec![(NOWHERE, 0); tasks as usize], decided: 0 });
        self.work(fx);
    }

    /// The rank of a job with `left` tasks to be placed.
    fn rank(&self, job: JobId, left: u32, fx: &Effects<'_>) -> (u64, Time, JobId) {
        let first = match self.order {
            MurmurationOrder::Fcfs | MurmurationOrder::Las => 0,
            MurmurationOrder::Srjf => fx.catalog().job_estimate(job).0.saturating_mul(u64::from(left)),
        };
        (first, fx.catalog().job(job).arrival, job)
    }

    /// Places jobs one after the other, until the queue is empty or a decision takes time.
    fn work(&mut self, fx: &mut Effects<'_>) {
        while self.busy.is_none()
            && self.boot.is_none()
            && let Some(Reverse((.., job))) = self.queue.pop()
        {
            self.busy = Some(job);
            let begun = self.jobs.get_mut(job).is_some_and(|tasks| tasks.decided > 0);
            let first = if begun { self.per_task } else { self.per_job + self.per_task };
            if first == Span::ZERO {
                self.decide(fx);
            } else {
                fx.arm(Timer::Tick(DECIDE), first);
            }
        }
    }

    /// Places the next task of the current job, or all its tasks if a decision takes no time.
    fn decide(&mut self, fx: &mut Effects<'_>) {
        let Some(job) = self.busy else { return };
        if let Some(tasks) = self.jobs.get_mut(job) {
            let count = if self.per_task == Span::ZERO { tasks.nodes.len() as u32 } else { 1 };
            for _ in 0..count {
                let index = tasks.decided;
                tasks.decided += 1;
                if tasks.open.is_done(index) {
                    continue; // by a copy of an earlier submission
                }
                let attempt = tasks.open.first_attempt();
                let node = self.placer.bind(job.task(index).copy(attempt), false, fx);
                tasks.nodes[index as usize] = (node, attempt);
            }
            let left = tasks.nodes.len() as u32 - tasks.decided;
            if left > 0 {
                if self.news == MurmurationNews::BetweenTasks {
                    self.read_inbox(fx);
                }
                let rank = Reverse(self.rank(job, left, fx));
                if !self.preemptive || self.queue.peek().is_none_or(|other| *other < rank) {
                    return fx.arm(Timer::Tick(DECIDE), self.per_task);
                }
                self.queue.push(rank);
            }
        }
        self.placer.announce_batch(job, fx);
        self.busy = None;
        self.read_inbox(fx);
    }

    /// Handles updates and requests; both wait while a job is being placed.
    #[inline]
    fn gossip(&mut self, from: ActorId, update: Gossip, fx: &mut Effects<'_>) {
        if self.busy.is_some() {
            return self.inbox.push((from, update));
        }
        self.apply(from, update, fx);
    }

    /// Handles the messages that arrived while a job was placed. Requests for the cache wait for the end of a job,
    /// because a copy of the cache would contain placements that are not announced yet.
    fn read_inbox(&mut self, fx: &mut Effects<'_>) {
        for (from, update) in std::mem::take(&mut self.inbox) {
            if self.busy.is_some() && matches!(update, Gossip::Ask { .. }) {
                self.inbox.push((from, update));
            } else {
                self.apply(from, update, fx);
            }
        }
    }

    fn apply(&mut self, from: ActorId, update: Gossip, fx: &mut Effects<'_>) {
        match update {
            Gossip::Placed(_) | Gossip::Ended(_) | Gossip::EndedRumour(_) => {
                if let Some(boot) = &mut self.boot {
                    boot.update.push(update);
                } else if self.placer.cache.receive(update, fx)
                    && self.placer.disseminator.spread == MurmurationSpread::Epidemic
                    && update.is_rumour()
                {
                    self.placer.disseminator.pass_on(update, Some(from), false, fx);
                }
            }
            Gossip::Backlog(report) => {
                if let Role::Node(node) = fx.layout().role(from)
                    && self.boot.is_none()
                {
                    self.placer.cache.backlog(node, report, fx);
                }
            }
            // Without a cache there is no answer.
            Gossip::Ask { round } if self.boot.is_none() => {
                let parts = self.placer.cache.copy(self.placer.disseminator.number, fx);
                self.answers.give(from, round, parts, fx);
            }
            Gossip::Ask { .. } => {}
            Gossip::Answer { .. } | Gossip::Entry { .. } | Gossip::Heard { .. } => {
                let nodes = fx.layout().nodes();
                if let Some(copy) = self.boot.as_mut().and_then(|boot| boot.answer(from, update, nodes)) {
                    self.ready(Some(&copy), fx);
                }
            }
        }
    }

    /// Places again every unfinished task for which `lost` holds, of all jobs or of job `only`.
    fn again(&mut self, only: Option<JobId>, lost: impl Fn(u32, (u32, u32)) -> bool, fx: &mut Effects<'_>) {
        for (job, tasks) in self.jobs.iter_mut().filter(|(job, _)| only.is_none_or(|o| o == *job)) {
            for index in 0..tasks.decided {
                if !tasks.open.is_done(index) && lost(index, tasks.nodes[index as usize]) {
                    let attempt = tasks.open.attempts(1);
                    let node = self.placer.bind(job.task(index).copy(attempt), true, fx);
                    tasks.nodes[index as usize] = (node, attempt);
                }
            }
        }
    }

    fn undelivered(&mut self, to: ActorId, msg: Message, fx: &mut Effects<'_>) {
        match msg {
            Message::Gossip(update) => self.placer.disseminator.undelivered(to, update, fx),
            Message::Launch(Launch::Task { copy, at }) => {
                if let Role::Node(node) = fx.layout().role(to) {
                    self.refused(node, copy, at, fx);
                }
            }
            // Rows are not used by this policy.
            _ => _ = resend(to, msg, fx),
        }
    }

    /// Places a task that never reached its node on another node, and excludes this node for a while.
    fn refused(&mut self, node: u32, copy: CopyId, at: Time, fx: &mut Effects<'_>) {
        if !self.placer.cache.counts(node, at) {
            // The task was removed and placed again when the node was reported down.
            return;
        }
        let (job, index) = (copy.task.job, copy.task.index);
        self.placer.cache.withdraw(node, job, at, fx);
        self.placer.announce(job, [node, NOWHERE], at, PlacementForm::Withdrawn, true, fx);
        if self.placer.cache.avoid(node) {
            fx.arm(Timer::Tick(NODES + node), RETRY_AFTER);
        }
        self.again(Some(job), |task, place| task == index && place == (node, copy.attempt), fx);
    }

    fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        match fx.layout().role(actor) {
            Role::Node(node) => {
                self.placer.cache.down(node, fx);
                self.again(None, |_, (at, _)| at == node, fx);
            }
            Role::Scheduler(_) => self.placer.disseminator.down(actor, fx.layout()),
            Role::Client(_) | Role::Auxiliary(_) | Role::Worker { .. } => {}
        }
    }

    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        match fx.layout().role(actor) {
            Role::Node(node) => {
                self.placer.cache.up(node, fx);
                self.again(None, |_, (at, _)| at == NOWHERE, fx);
            }
            Role::Scheduler(_) => self.placer.disseminator.up(actor, fx),
            Role::Client(_) | Role::Auxiliary(_) | Role::Worker { .. } => {}
        }
    }
}

impl Placer {
    /// Sends a copy to the node with the least expected work and returns the node's number; [`NOWHERE`] if no node is
    /// alive.
    fn bind(&mut self, copy: CopyId, repair: bool, fx: &mut Effects<'_>) -> u32 {
        let Some((node, believed)) = self.cache.choose(fx) else { return NOWHERE };
        fx.note(match self.service {
            Some(order) => CacheNote::Placed { copy, node, believed, order }.into(),
            None => Note::Bound { copy },
        });
        self.cache.place(node, copy.task.job, fx);
        let at = fx.now();
        fx.send_as(repair, fx.layout().node(node), Launch::Task { copy, at });
        if self.batch && !repair {
            self.unannounced.push((node, at));
        } else {
            self.announce(copy.task.job, [node, NOWHERE], at, PlacementForm::Single, repair, fx);
        }
        node
    }

    /// Announces the tasks of a job, in pairs of the same decision time, since receivers judge each pair by its time.
    fn announce_batch(&mut self, job: JobId, fx: &mut Effects<'_>) {
        let (mut form, unannounced) = (PlacementForm::Batch, std::mem::take(&mut self.unannounced));
        for reported in unannounced.chunk_by(|a, b| a.1 == b.1).flat_map(|at_once| at_once.chunks(2)) {
            let nodes = [reported[0].0, reported.get(1).map_or(NOWHERE, |next| next.0)];
            self.announce(job, nodes, reported[0].1, form, false, fx);
            form = PlacementForm::Rest;
        }
    }

    fn announce(
        &mut self,
        job: JobId,
        nodes: [u32; 2],
        at: Time,
        form: PlacementForm,
        repair: bool,
        fx: &mut Effects<'_>,
    ) {
        let (number, origin) = (self.disseminator.take_number(), self.index);
        let update =
            PlacementUpdate { job, nodes, at, number, origin, form, rumour: self.disseminator.rumours() };
        self.disseminator.announce(Gossip::Placed(update), repair, fx);
    }
}

impl Machine for MurmurationScheduler {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Gossip(update) => self.gossip(from, update, fx),
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => {
                    self.jobs.complete(copy.task, |tasks| &mut tasks.open, fx);
                }
                _ => fx.unexpected(&msg),
            },
            Input::Fire(Timer::Tick(DECIDE)) => {
                self.decide(fx);
                self.work(fx);
            }
            Input::Fire(Timer::Tick(SPREAD)) => self.placer.disseminator.due(fx),
            Input::Fire(Timer::Tick(ASK)) => self.ask(fx),
            Input::Fire(Timer::Tick(ANSWER)) => self.answers.due(fx),
            Input::Fire(Timer::Tick(tick)) => {
                if self.placer.cache.try_again(tick - NODES) {
                    self.again(None, |_, (at, _)| at == NOWHERE, fx);
                }
            }
            Input::Undelivered { to, msg } => self.undelivered(to, msg, fx),
            Input::Down { actor } => self.down(actor, fx),
            Input::Up { actor } => self.up(actor, fx),
            Input::Start { epoch } => self.start(epoch, fx),
            Input::Fire(_)
            | Input::Done { .. }
            | Input::Halted { .. }
            | Input::Progress { .. }
            | Input::Usage { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
