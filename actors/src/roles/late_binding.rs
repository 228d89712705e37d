//! Late binding: reservations on sampled nodes, tasks for the nodes that claim first, and recovery of both. Sparrow
//! uses it, and Hawk and Eagle for short jobs.
//!
//! Places are reserved on nodes for a group of tasks. Succinct State Sharing chooses the new nodes for places that a
//! node with long work rejected (Eagle, section 4.2).

use crate::base::{ActorId, JobId, Span, TaskId, Time, parameters};
use crate::layout::Layout;
use crate::machine::{CacheNote, Effects, Input, Machine, Timer};
use crate::message::{Blocks, Job, Launch, Message, Probe, Row, Share};
use crate::roles::job_table::{JobTable, OpenJob};
use crate::roles::membership::Membership;
use crate::roles::partitions::Partitions;
use crate::roles::partitions::{NodeBitmap, nth_bit};
use crate::roles::resend::{back_off, resend};

#[derive(Clone, Debug)]
struct LateJob {
    open: OpenJob,
    groups: Vec<TaskGroup>,
    /// Node to which each task was launched.
    nodes: Vec<Option<ActorId>>,
    /// Present in the sampling form, where every task is a group.
    samples: Option<Samples>,
    /// Time of the next check of the probes, if armed. A timer that goes off earlier belongs to an earlier submission
    /// of the job.
    next_look: Option<Time>,
}

/// Places requested from a node.
#[derive(Clone, Copy, Debug)]
struct Offer {
    job: JobId,
    group: u32,
    count: u32,
    /// Number of rejections.
    round: u16,
    /// Whether the node must accept.
    last: bool,
    repair: bool,
}

impl Offer {
    fn send(self, node: ActorId, sharing: Option<&StateSharing>, fx: &mut Effects<'_>) {
        let Self { job, group, count, round, last, repair } = self;
        match sharing {
            None => fx.send_as(repair, node, Probe::Reserve { job, group, count, repair }),
            Some(sharing) => {
                let known = sharing.bits.newest().into();
                fx.send_as(repair, node, Share::Probe { job, count, round, last, repair, known });
            }
        }
    }
}

/// A scheduler that binds late.
#[derive(Clone, Debug)]
pub struct LateBinding {
    options: ProbeOptions,
    /// State for probes that can be rejected, if the policy has them.
    sharing: Option<StateSharing>,
    lossy: bool,
    members: Membership,
    jobs: JobTable<LateJob>,
    sample: Vec<ActorId>,
}

impl LateBinding {
    /// A scheduler with these options. Probes are repeated only where datagrams can be lost.
    pub fn new(options: ProbeOptions, sharing: Option<StateSharing>, layout: &Layout, lossy: bool) -> Self {
        let (members, jobs) = (Membership::new(layout), JobTable::default());
        Self { options, sharing, lossy, members, jobs, sample: Vec::new() }
    }

    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        let Some(mut open) = self.jobs.admit(job, round, fx.catalog()) else { return };
        open.attempts(1);
        let tasks = open.spec.tasks;
        let size = match self.options.form {
            SamplingForm::Batch => tasks,
            SamplingForm::Pairs => self.options.group,
            SamplingForm::PerTask => 1,
        };
        let each = self.options.probe_ratio.ceil() as usize;
        let samples = (self.options.form == SamplingForm::PerTask).then(|| Samples::new(tasks, each));
        let mut placed = LateJob {
            open,
            groups: (0..tasks.div_ceil(size)).map(|g| TaskGroup::new(g * size, size, tasks)).collect(),
            nodes: vec![None; tasks as usize],
            samples,
            next_look: None,
        };
        for group in 0..placed.groups.len() {
            let tasks = placed.groups[group].len;
            self.probe(&mut placed, job.task(group as u32), tasks, false, fx);
        }
        self.recheck(&mut placed, job, 0, fx);
        self.jobs.open(job, placed);
    }

    fn recheck(&self, placed: &mut LateJob, job: JobId, attempt: u32, fx: &mut Effects<'_>) {
        if self.lossy {
            let wait = back_off(self.options.probe_timeout, attempt);
            placed.next_look = Some(fx.now() + wait);
            fx.arm(Timer::Recheck { job, attempt }, wait);
        }
    }

    /// Requests places for `tasks` tasks of group `id` from fresh nodes, or the queue lengths of such nodes.
    fn probe(&mut self, placed: &mut LateJob, id: TaskId, tasks: u32, repair: bool, fx: &mut Effects<'_>) {
        if let Some(samples) = &mut placed.samples {
            self.sample.clear();
            self.members.sample(fx.rng(), self.options.probe_ratio.ceil() as usize, &mut self.sample);
            samples.ask(id.index, &self.sample);
            for &node in &self.sample {
                fx.send_as(repair, node, Probe::Sample { task: id, repair });
            }
            return;
        }
        let group = &mut placed.groups[id.index as usize];
        let least = if repair { 0 } else { self.options.min_probes };
        let places = ((f64::from(tasks) * self.options.probe_ratio).ceil() as u32).max(least).max(1) as usize;
        let servers =
            if self.options.form == SamplingForm::Pairs { places.min(group.len as usize) } else { places };
        self.draw(servers, fx);
        let found = self.sample.len();
        for (i, &node) in self.sample.iter().enumerate() {
            let count = portion(places, found, i);
            // A node that already has places, or is drawn again, gets the total number of its places.
            let count = if repair || self.options.replacement {
                group.places.add(node, count)
            } else {
                group.places.push(node, count);
                count
            };
            let again = self.options.replacement && self.sample[i + 1..].first() == Some(&node);
            if !again {
                let TaskId { job, index: group } = id;
                let offer = Offer { job, group, count, round: 0, last: repair, repair };
                offer.send(node, self.sharing.as_ref(), fx);
            }
        }
    }

    /// Draws `servers` nodes; the result has equal nodes next to each other.
    fn draw(&mut self, servers: usize, fx: &mut Effects<'_>) {
        self.sample.clear();
        if self.options.replacement {
            self.sample.extend((0..servers).filter_map(|_| self.members.pick(fx.rng())));
            self.sample.sort_unstable();
        } else {
            self.members.sample(fx.rng(), servers, &mut self.sample);
        }
    }

    fn length(&mut self, from: ActorId, task: TaskId, length: i32, fx: &mut Effects<'_>) {
        let Some(placed) = self.jobs.get_mut(task.job) else { return };
        let Some(samples) = &mut placed.samples else { return };
        let unbound = placed.nodes[task.index as usize].is_none();
        if unbound && samples.answer(task.index, from, length) {
            Self::bind(placed, task, fx);
        }
    }

    /// Sends a sampled task to the node with the shortest reported queue; returns whether any queue was reported.
    fn bind(placed: &mut LateJob, task: TaskId, fx: &mut Effects<'_>) -> bool {
        let Some(node) = placed.samples.as_ref().and_then(|samples| samples.best(task.index)) else {
            return false;
        };
        let group = &mut placed.groups[task.index as usize];
        let first = group.launched == 0;
        group.launched = 1;
        group.again.clear();
        placed.nodes[task.index as usize] = Some(node);
        let attempt = if first { placed.open.first_attempt() } else { placed.open.attempts(1) };
        fx.send_as(!first, node, Launch::Row(Row::single(task.copy(attempt))));
        true
    }

    fn claim(&mut self, node: ActorId, job: JobId, id: u32, repair: bool, fx: &mut Effects<'_>) {
        let granted = self.jobs.get_mut(job).and_then(|placed| {
            let group = placed.groups.get_mut(id as usize)?;
            group.places.take(node, 1);
            let (task, attempt) = group.next(&mut placed.open)?;
            placed.nodes[task as usize] = Some(node);
            let row = Row::single(job.task(task).copy(attempt));
            fx.send_as(placed.open.is_repeated(attempt), node, Probe::Grant { row, group: id });
            Some(group)
        });
        let Some(group) = granted else {
            return fx.send_as(repair, node, Probe::Nothing { job, group: id });
        };
        if self.options.cancellation && !group.is_open() {
            group.places.cancel(job, id, fx);
        }
    }

    /// Moves places that a node with long work rejected, as long as they are useful.
    fn rejected(&mut self, node: ActorId, refused: Offer, fx: &mut Effects<'_>) {
        let Offer { job, group: id, count, round, repair, .. } = refused;
        let (Some(placed), Some(sharing)) = (self.jobs.get_mut(job), &self.sharing) else { return };
        let Some(group) = placed.groups.get_mut(id as usize) else { return };
        // A later offer covers all places on the node and has its own answer. If each answer moved them, they would
        // move again before any offer of them arrives, and offers would multiply.
        if count < group.places.of(node) {
            return;
        }
        let places = group.places.take(node, count);
        if !group.is_open() {
            return;
        }
        let round = round.saturating_add(1);
        self.sample.clear();
        let mut last = false;
        for _ in 0..places {
            let Some((node, must)) = sharing.elsewhere(round, &self.members, fx) else { break };
            last = must;
            self.sample.push(node);
        }
        self.sample.sort_unstable();
        // One offer to each node covers all its places. If each place had an offer, their rejections would multiply.
        for places in self.sample.chunk_by(|a, b| a == b) {
            let count = group.places.add(places[0], places.len() as u32);
            let offer = Offer { job, group: id, count, round, last, repair };
            offer.send(places[0], Some(sharing), fx);
        }
    }

    /// Handles the timeout of a job's probes. Open reservations are repeated; a node that has one ignores the
    /// repetition. Samples that lack answers are decided on the received answers, or drawn again.
    fn repeat(&mut self, job: JobId, attempt: u32, fx: &mut Effects<'_>) {
        let is_due = |placed: &mut LateJob| placed.next_look.take_if(|at| *at <= fx.now()).is_some();
        if !self.jobs.get_mut(job).is_some_and(is_due) {
            return;
        }
        let Some(mut placed) = self.jobs.close(job) else { return };
        for id in 0..placed.groups.len() as u32 {
            let group = &placed.groups[id as usize];
            if !group.is_open() || Self::bind(&mut placed, job.task(id), fx) {
                continue;
            }
            let group = &placed.groups[id as usize];
            for (node, count) in group.places.iter() {
                let offer = Offer { job, group: id, count, round: 0, last: true, repair: true };
                offer.send(node, self.sharing.as_ref(), fx);
            }
            if group.places.is_empty() {
                let tasks = group.waiting();
                self.probe(&mut placed, job.task(id), tasks, true, fx);
            }
        }
        if placed.groups.iter().any(TaskGroup::is_open) {
            self.recheck(&mut placed, job, attempt + 1, fx);
        }
        self.jobs.open(job, placed);
    }

    /// Takes back the tasks of a node, drops the node's reservations if it is `gone`, and makes new ones.
    fn recover(&mut self, node: ActorId, only: Option<TaskId>, gone: bool, fx: &mut Effects<'_>) {
        let touched: Vec<_> = self.jobs.iter_mut().map(|(job, _)| job).collect();
        for job in touched.into_iter().filter(|job| only.is_none_or(|task| task.job == *job)) {
            let Some(mut placed) = self.jobs.close(job) else { continue };
            let mut repaired = false;
            for id in 0..placed.groups.len() {
                let missing = self.lost(&mut placed, id, node, only, gone);
                if missing > 0 {
                    repaired = true;
                    self.probe(&mut placed, job.task(id as u32), missing, true, fx);
                }
            }
            // Requests for new places can also be lost, so the back-off begins again.
            if repaired {
                self.recheck(&mut placed, job, 0, fx);
            }
            self.jobs.open(job, placed);
        }
    }

    /// Takes back the tasks of a group that were sent to a node. Returns the number of tasks that need new places.
    fn lost(&self, placed: &mut LateJob, id: usize, node: ActorId, only: Option<TaskId>, gone: bool) -> u32 {
        let group = &mut placed.groups[id];
        let places = if gone { group.places.forget(node) } else { 0 };
        let worth = (f64::from(places) / self.options.probe_ratio).ceil() as u32;
        let mut missing = if group.is_open() { worth } else { 0 };
        for task in group.base..group.base + group.launched {
            let at = &mut placed.nodes[task as usize];
            let asked = only.is_none_or(|only| only.index == task);
            if *at == Some(node) && asked && !placed.open.is_done(task) {
                *at = None;
                group.again.push(task);
                missing += 1;
            }
        }
        missing
    }

    /// Retries jobs that had found no live node.
    fn retry_stranded(&mut self, fx: &mut Effects<'_>) {
        let stranded = |placed: &LateJob, id: usize| {
            let asked = placed.samples.as_ref().is_some_and(|samples| samples.is_waiting(id as u32));
            placed.groups[id].is_open() && placed.groups[id].places.is_empty() && !asked
        };
        let touched: Vec<_> = self
            .jobs
            .iter_mut()
            .filter(|(_, placed)| (0..placed.groups.len()).any(|id| stranded(placed, id)))
            .map(|(job, _)| job)
            .collect();
        for job in touched {
            let Some(mut placed) = self.jobs.close(job) else { continue };
            for id in 0..placed.groups.len() {
                if stranded(&placed, id) {
                    let tasks = placed.groups[id].waiting();
                    self.probe(&mut placed, job.task(id as u32), tasks, true, fx);
                }
            }
            self.jobs.open(job, placed);
        }
    }
}

impl Machine for LateBinding {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Job(Job::Submit { job, round }) => self.submit(job, round, fx),
                Message::Launch(Launch::Completed { copy }) => {
                    self.jobs.complete(copy.task, |placed| &mut placed.open, fx);
                }
                Message::Probe(Probe::Claim { job, group, repair }) => {
                    self.claim(from, job, group, repair, fx);
                }
                Message::Probe(Probe::Length { task, length }) => self.length(from, task, length, fx),
                Message::Share(Share::Rejected { job, count, round, repair }) => {
                    let refused = Offer { job, group: 0, count, round, last: false, repair };
                    self.rejected(from, refused, fx);
                }
                Message::Share(Share::Bits(blocks)) => {
                    if let Some(sharing) = &mut self.sharing {
                        sharing.learn(blocks, fx);
                    }
                }
                // The message is sent only because it carries the bitmap.
                Message::Share(Share::Accepted { .. }) => {}
                _ => fx.unexpected(&msg),
            },
            Input::Fire(Timer::Recheck { job, attempt }) => self.repeat(job, attempt, fx),
            Input::Undelivered { to, msg } => {
                if let Some(row) = resend(to, msg, fx) {
                    self.recover(to, Some(row.copy(0).task), false, fx);
                }
            }
            Input::Down { actor } => {
                self.members.down(actor, fx.layout());
                self.recover(actor, None, true, fx);
            }
            Input::Up { actor } => {
                self.members.up(actor, fx.layout());
                self.retry_stranded(fx);
            }
            // A start needs no action; only rechecks are armed; the other inputs are for workers.
            _ => {}
        }
    }
}

// A group of tasks that share reservations.

/// Tasks that are bound together.
#[derive(Clone, Debug)]
struct TaskGroup {
    /// Index of the first task.
    pub base: u32,
    /// Number of tasks.
    pub len: u32,
    /// Number of tasks handed out so far, in order.
    pub launched: u32,
    /// Tasks that were handed out and then lost.
    pub again: Vec<u32>,
    /// The group's reservations.
    pub places: Places,
}

impl TaskGroup {
    /// A group of at most `size` of a job's `tasks` tasks, from `base` on.
    fn new(base: u32, size: u32, tasks: u32) -> Self {
        Self { base, len: size.min(tasks - base), launched: 0, again: Vec::new(), places: Places::default() }
    }

    /// Number of tasks that wait for a node.
    fn waiting(&self) -> u32 {
        self.len - self.launched + self.again.len() as u32
    }

    fn is_open(&self) -> bool {
        self.waiting() > 0
    }

    /// The next task to be handed out, with its attempt number.
    fn next(&mut self, open: &mut OpenJob) -> Option<(u32, u32)> {
        // A task given up as lost may have finished after all.
        self.again.retain(|&task| !open.is_done(task));
        if let Some(task) = self.again.pop() {
            return Some((task, open.attempts(1)));
        }
        (self.launched < self.len).then(|| {
            self.launched += 1;
            (self.base + self.launched - 1, open.first_attempt())
        })
    }
}

// Sampled queue lengths for each task of a job.

/// Open requests and the best answer, for every task of a job.
#[derive(Clone, Debug)]
struct Samples {
    /// Largest number of nodes asked for a task.
    each: usize,
    /// The nodes that were asked for task t and have not answered, at `each` · t and the following indices.
    asked: Vec<Option<ActorId>>,
    /// The shortest reported queue for each task.
    best: Vec<Option<(i32, ActorId)>>,
}

impl Samples {
    /// A table for `tasks` tasks with at most `each` requests for a task.
    fn new(tasks: u32, each: usize) -> Self {
        let tasks = tasks as usize;
        Self { each, asked: vec![None; tasks * each], best: vec![None; tasks] }
    }

    /// Records requests for a task to `nodes`; earlier requests are dropped.
    fn ask(&mut self, task: u32, nodes: &[ActorId]) {
        let asked = self.of(task);
        asked.fill(None);
        for (place, &node) in asked.iter_mut().zip(nodes) {
            *place = Some(node);
        }
        self.best[task as usize] = None;
    }

    /// Records an answer; returns whether all requests are answered. A duplicate, or an answer to an earlier request,
    /// updates the best queue but does not count as another node's answer.
    fn answer(&mut self, task: u32, node: ActorId, length: i32) -> bool {
        let best = &mut self.best[task as usize];
        if best.is_none_or(|(shortest, _)| length < shortest) {
            *best = Some((length, node));
        }
        if let Some(place) = self.of(task).iter_mut().find(|place| **place == Some(node)) {
            *place = None;
        }
        !self.is_waiting(task)
    }

    /// The node with the shortest reported queue.
    fn best(&self, task: u32) -> Option<ActorId> {
        self.best[task as usize].map(|(_, node)| node)
    }

    /// Whether a request is open.
    fn is_waiting(&self, task: u32) -> bool {
        let from = task as usize * self.each;
        self.asked[from..from + self.each].iter().any(Option::is_some)
    }

    fn of(&mut self, task: u32) -> &mut [Option<ActorId>] {
        let from = task as usize * self.each;
        &mut self.asked[from..from + self.each]
    }
}

parameters! {
    /// Parameters of Sparrow.
    #[schemars(rename = "Sparrow")]
    struct ProbeOptions {
        /// Reservations (or samples) per task, d. The papers use 2; the authors' daemon defaults to 1.05.
        probe_ratio: f64 = 2.0 => 1.0..=1000.0,
        /// Least number of reservations of a job. The paper has none; the simulators of Eagle and Murmuration use 20.
        min_probes: u32 = 0 => 0..=65536,
        /// Whether a node can be drawn more than once for a job, as the simulators of Eagle and Murmuration do.
        replacement: bool = false,
        /// Sampling of nodes.
        form: SamplingForm = SamplingForm::Batch,
        /// Number of tasks, and of servers, of a group in the `pairs` form.
        #[schemars(range(min = 1))]
        group: u32 = 2,
        /// Cancel reservations at the nodes once the last task is launched.
        cancellation: bool = true,
        /// First wait before a reservation or sample that may have been lost is sent again; the wait doubles each time.
        /// It is used only where the network can lose datagrams.
        probe_timeout: Span = Span::from_secs(1) => period,
    }

    /// Sampling of nodes.
    enum SamplingForm {
        /// d·f reservations on distinct nodes for the f tasks of a job, bound late (batch sampling).
        #[default]
        Batch,
        /// Groups of `group` tasks, each on the same number of random servers with d reservations for each, bound late,
        /// as in the latin-square paper's simulator.
        Pairs,
        /// d samples for each task, which is bound at once to the shortest queue (power of d choices).
        PerTask,
    }
}

impl ProbeOptions {
    /// Number of reservations for a job of `tasks` tasks.
    pub fn reserved_for(&self, tasks: u32) -> u64 {
        ((f64::from(tasks) * self.probe_ratio).ceil() as u64).max(self.min_probes.into())
    }
}

/// Nodes with unclaimed reservations, each with the number of its reservations.
#[derive(Clone, Default, Debug)]
pub(crate) struct Places(Vec<(ActorId, u32)>);

impl Places {
    /// Whether no node has a place.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Total number of places.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|&(_, places)| places as usize).sum()
    }

    /// The nodes, each with the number of its places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ActorId, u32)> {
        self.0.iter().copied()
    }

    /// Number of places of a node.
    pub(crate) fn of(&self, node: ActorId) -> u32 {
        self.0.iter().find(|(n, _)| *n == node).map_or(0, |&(_, places)| places)
    }

    /// Adds places of a node that has no place yet.
    pub(crate) fn push(&mut self, node: ActorId, count: u32) {
        self.0.push((node, count));
    }

    /// Adds places of a node; returns the number of its places.
    pub(crate) fn add(&mut self, node: ActorId, count: u32) -> u32 {
        if let Some((_, places)) = self.0.iter_mut().find(|(n, _)| *n == node) {
            *places = places.saturating_add(count);
            return *places;
        }
        self.push(node, count);
        count
    }

    /// Removes up to `count` places that a node claimed or rejected; returns the number of removed places.
    pub(crate) fn take(&mut self, node: ActorId, count: u32) -> u32 {
        let Some(i) = self.0.iter().position(|(n, _)| *n == node) else { return 0 };
        let gone = count.min(self.0[i].1);
        self.0[i].1 -= gone;
        if self.0[i].1 == 0 {
            self.0.swap_remove(i);
        }
        gone
    }

    /// Removes the places of a node; returns their number.
    pub(crate) fn forget(&mut self, node: ActorId) -> u32 {
        let places = self.0.iter().filter(|(n, _)| *n == node).map(|(_, count)| count).sum();
        self.0.retain(|(n, _)| *n != node);
        places
    }

    /// Removes all places and sends each node a cancellation.
    pub(crate) fn cancel(&mut self, job: JobId, group: u32, fx: &mut Effects<'_>) {
        for (node, _) in self.0.drain(..) {
            fx.send(node, Probe::Cancel { job, group });
        }
    }
}

/// Number of `places` that the node at `index` of `found` nodes holds. With fewer nodes than places each node holds
/// several, and the first nodes hold one more.
pub(crate) fn portion(places: usize, found: usize, index: usize) -> u32 {
    (places / found + usize::from(index < places % found)) as u32
}

/// Number of random draws before a scan.
const DRAWS: u32 = 16;

/// A scheduler's view of the nodes with long work.
#[derive(Clone, Debug)]
pub struct StateSharing {
    /// Number of rounds in which probes go to nodes that the bitmap shows without long work.
    rounds: u16,
    partitions: Partitions,
    /// The newest bitmap received.
    bits: NodeBitmap,
    watched: bool,
}

impl StateSharing {
    /// Starts with an empty bitmap. `watched` says whether the age of the bitmap is recorded.
    pub fn new(rounds: u16, partitions: Partitions, watched: bool) -> Self {
        Self { rounds, partitions, bits: NodeBitmap::default(), watched }
    }

    /// Applies a part of a bitmap.
    fn learn(&mut self, blocks: Blocks, fx: &mut Effects<'_>) {
        let before = self.bits.newest();
        self.bits.learn(blocks, fx.layout().nodes());
        if self.watched && self.bits.newest() > before {
            fx.note(CacheNote::Refreshed { at: self.bits.newest() });
        }
    }

    /// A node for a place that was rejected `round` times, and whether the node must accept.
    fn elsewhere(&self, round: u16, members: &Membership, fx: &mut Effects<'_>) -> Option<(ActorId, bool)> {
        if round <= self.rounds
            && let Some(node) = free(&self.bits, members, fx)
        {
            return Some((node, false));
        }
        let node = for_short(self.partitions, members, fx).or_else(|| members.pick(fx.rng()))?;
        Some((node, true))
    }
}

/// A uniformly drawn live node that a bitmap shows without long work.
fn free(bits: &NodeBitmap, members: &Membership, fx: &mut Effects<'_>) -> Option<ActorId> {
    let layout = fx.layout();
    for _ in 0..DRAWS {
        let node = members.pick(fx.rng())?;
        let number = layout.node_number(node);
        if bits.word(number / 32) >> (number % 32) & 1 == 0 {
            return Some(node);
        }
    }
    let nodes = layout.nodes();
    let words = || (0..nodes.div_ceil(32)).map(|word| (word, !bits.word(word) & members.word(word)));
    let full = members.is_full();
    let count = if full { bits.clear(nodes) } else { words().map(|(_, bits)| bits.count_ones()).sum() };
    if count == 0 {
        return None;
    }
    let mut nth = fx.rng().below(count);
    if full {
        return Some(layout.node(bits.nth_clear(nth)));
    }
    let (word, bits) = words().find(|(_, bits)| {
        let here = nth < bits.count_ones();
        nth -= if here { 0 } else { bits.count_ones() };
        here
    })?;
    Some(layout.node(word * 32 + nth_bit(bits, nth)))
}

/// A uniformly drawn live node of the small partition.
fn for_short(partitions: Partitions, members: &Membership, fx: &mut Effects<'_>) -> Option<ActorId> {
    let (layout, small) = (fx.layout(), partitions.small());
    let live = |nth| Some(layout.node(partitions.small_node(nth))).filter(|&node| members.has(node, layout));
    if small == 0 {
        return None;
    }
    let drawn = (0..DRAWS).find_map(|_| live(fx.rng().below(small)));
    drawn.or_else(|| {
        let count = (0..small).filter_map(live).count() as u32;
        let nth = (count > 0).then(|| fx.rng().below(count))?;
        (0..small).filter_map(live).nth(nth as usize)
    })
}

#[cfg(test)]
mod tests;
