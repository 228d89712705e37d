//! The standard node manager: cores, and a queue of rows (tasks bound to this node) and reservations (of a scheduler
//! that binds late), FIFO unless it is built [`with`](NodeManager::with) other options.
//!
//! The node manager runs a row by itself, task after task, without waiting for the scheduler. A `Drop` removes tasks
//! that need no copy any more, and stops their running copies; other cores and tasks are unaffected. The next
//! reservation holds a free core while the node asks the scheduler for a task. The reservation is charged for
//! overtaking earlier entries only if it gets a task.

mod reports;
mod row_state;
mod slots;
mod usage;

use std::collections::VecDeque;

use reports::Reporter;
pub use reports::{ProgressErrors, ReportOptions};
pub use row_state::Reservation;
use row_state::{Entry, RowState};
use slots::{CoreState, Slots, running};
pub use usage::{NodeUsage, UsageOptions};
use usage::{UsageTable, evicted};

use crate::base::{ActorId, CopyId, JobId, Score, Span, TaskId, Time};
use crate::layout::Role;
use crate::machine::{Effects, Input, Machine, Note};
use crate::message::{Core, Launch, Message, Probe, Row, TaskRange};
use crate::roles::node_queue::{NodeQueue, Place, QueueOrder, Rank};

/// Options of a node manager.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeOptions {
    /// The order of the queue. Ranks are the estimated work of all tasks of the job.
    pub order: QueueOrder,
    /// Whether ranks are the estimated work of only those tasks of the job that have not begun, by the
    /// [oracle](crate::machine::Oracle).
    pub rank_left: bool,
    /// Whether tasks of long jobs have no rank: they overtake nothing, and are served when they are at the head.
    pub long_in_turn: bool,
    /// Whether a reservation that led to a task returns to its place in the queue after the task, so that the node asks
    /// the same scheduler again.
    pub sticky: bool,
    /// Reports of the progress of running copies; `None` if the node sends none.
    pub reports: Option<ReportOptions>,
    /// Handling of the use of a shared node; `None` if use is not reported to schedulers.
    pub usage: Option<UsageOptions>,
}

/// Capacity for drops that overtook their row. A drop of a row that has ended on this node looks the same and is kept
/// too, so the oldest drops are discarded.
const EARLY_DROPS: usize = 16;

/// The node manager that most policies use.
///
/// A policy changes the behaviour with a machine of its own that contains a node manager. The outer machine answers
/// some inputs itself, for example with [`length`](Self::length) and [`idle_cores`](Self::idle_cores). It must pass all
/// other inputs to [`step`](Machine::step), including the reports of workers and the loss of coordinators.
#[derive(Clone, Debug)]
pub struct NodeManager {
    slots: Slots,
    queue: NodeQueue<Entry>,
    /// The highest number of a job with a reservation queued since this node started.
    newest: Option<JobId>,
    /// Number of waiting rows of long jobs.
    long_rows: u32,
    /// See [`NodeOptions`].
    rank_left: bool,
    long_in_turn: bool,
    sticky: bool,
    /// Whether the node reports progress or use.
    reports: bool,
    rare: Option<Box<Rare>>,
}

// An event finds the node of a large cluster in no cache: each line of a node is a miss.
const _: () = assert!(size_of::<NodeManager>() <= 136, "a node of one core must cost little");

/// The part of a node manager that most nodes never need.
#[derive(Clone, Debug, Default)]
struct Rare {
    /// Drops that overtook their rows, oldest first.
    early: VecDeque<TaskRange>,
    reporter: Option<Reporter>,
    usage: Option<UsageTable>,
}

impl NodeManager {
    /// A node with `cores` cores.
    pub fn new(cores: u32) -> Self {
        Self::with(NodeOptions::default(), cores)
    }

    /// A node with `cores` cores and these options.
    pub fn with(options: NodeOptions, cores: u32) -> Self {
        let NodeOptions { order, rank_left, long_in_turn, sticky, reports, usage } = options;
        let reporter = reports.map(Reporter::new);
        let usage = usage.map(|usage| UsageTable::new(usage, cores));
        let reports = reporter.is_some() || usage.is_some();
        Self {
            slots: Slots::new(cores),
            queue: NodeQueue::new(order),
            newest: None,
            long_rows: 0,
            rank_left,
            long_in_turn,
            sticky,
            reports,
            rare: reports.then(|| Box::new(Rare { reporter, usage, ..Rare::default() })),
        }
    }

    fn reporter(&mut self) -> Option<&mut Reporter> {
        self.rare.as_mut().filter(|_| self.reports)?.reporter.as_mut()
    }

    fn usage(&mut self) -> Option<&mut UsageTable> {
        self.rare.as_mut().filter(|_| self.reports)?.usage.as_mut()
    }

    /// Gives idle cores the next entries.
    fn fill(&mut self, fx: &mut Effects<'_>) {
        self.rerank(fx);
        while !self.queue.is_empty() {
            let Some(core) = self.slots.idle() else { return };
            let Some((at, entry)) = self.queue.first() else { return };
            if let Entry::Reservation(places) = entry {
                places.count -= 1;
                let reservation = *places;
                let Some(place) = self.queue.place(at) else { return };
                if reservation.count == 0 {
                    let _ = self.queue.remove(at);
                }
                self.claim(core, reservation, place, fx);
            } else if let Some(Entry::Row(row)) = self.queue.serve_at(at) {
                self.long_rows -= u32::from(row.long);
                self.run(core, row, fx);
            }
        }
    }

    /// Holds an idle core while the scheduler of a reservation is asked for a task.
    fn claim(&mut self, core: usize, reservation: Reservation, place: Place, fx: &mut Effects<'_>) {
        let Reservation { from, job, group, repair, .. } = reservation;
        self.slots[core] = CoreState::Claiming { from, job, group, place };
        fx.send_as(repair, from, Probe::Claim { job, group, repair });
    }

    /// The rank of tasks of a job of which `left` tasks have not begun, as far as this node knows.
    fn rank(&self, job: JobId, left: u32, fx: &Effects<'_>) -> Rank {
        if !self.queue.is_ranked() {
            return Rank::FIFO;
        }
        let key = key(job, left, self.long_in_turn, fx);
        Rank { key, estimate: fx.catalog().job_estimate(job) }
    }

    /// Ranks all waiting entries by the work left of their jobs, if there is an oracle.
    fn rerank(&mut self, fx: &Effects<'_>) {
        if self.rank_left && fx.oracle().is_some() {
            let in_turn = self.long_in_turn;
            self.queue.rerank(|entry| key(entry.job(), left(entry.job(), fx)?, in_turn, fx));
        }
    }

    fn enqueue(&mut self, entry: Entry, job: JobId, fx: &Effects<'_>) {
        let rank = self.rank(job, fx.catalog().tasks(job), fx);
        self.long_rows += u32::from(entry.is_long_row());
        self.queue.push(entry, rank);
    }

    /// Runs the next task of a row on an idle core; the core stays idle if no task is left.
    fn run(&mut self, core: usize, mut row: RowState, fx: &mut Effects<'_>) {
        self.slots[core] = match row.seek() {
            Some(copy) => {
                fx.send(fx.worker(core), Core::Run { copy, elsewhere: row.row.elsewhere });
                if let Some(reporter) = self.reporter() {
                    reporter.started(row.from, copy, fx);
                }
                row.began = fx.now();
                CoreState::Running(row)
            }
            None => CoreState::Idle,
        };
    }

    fn row(&mut self, from: ActorId, row: Row, fx: &mut Effects<'_>) {
        let job = row.job;
        let row = self.arrived(from, row, fx);
        match self.slots.idle() {
            // The buffer of the queue is not touched, which saves a cache miss.
            Some(core) if self.queue.is_empty() => self.run(core, row, fx),
            _ => {
                self.enqueue(Entry::Row(row), job, fx);
                self.fill(fx);
            }
        }
    }

    /// The state of a row that arrived, without the tasks of drops that have overtaken it.
    fn arrived(&mut self, from: ActorId, row: Row, fx: &Effects<'_>) -> RowState {
        let mut row = RowState::new(from, row, is_long(row.job, fx));
        if let Some(rare) = &mut self.rare {
            rare.early.retain(|&tasks| {
                let about = row.overlaps(tasks);
                if about {
                    row.remove(tasks);
                }
                !about
            });
        }
        row
    }

    fn ended(&mut self, worker: ActorId, copy: CopyId, fx: &mut Effects<'_>) {
        let Role::Worker { core, .. } = fx.layout().role(worker) else {
            unreachable!("{copy} ended on {worker}, which is not a core")
        };
        let core = core as usize;
        if let CoreState::Running(mut row) = self.vacate(core) {
            debug_assert_eq!(row.row.copy(row.at), copy, "a core ended a copy that it was not given");
            fx.send(row.from, Launch::Completed { copy });
            self.stick(&row, copy, fx);
            row.at += 1;
            self.run(core, row, fx);
        }
        self.fill(fx);
    }

    /// Puts the reservation that led to a task back into its place in the queue, unless the oracle shows that no task
    /// of the job is left. Without an oracle the index of the task shows how many are left, because schedulers hand out
    /// the tasks of a job in order.
    fn stick(&mut self, row: &RowState, copy: CopyId, fx: &Effects<'_>) {
        let (Some((group, mut place)), TaskId { job, index }) = (row.stick.as_deref().copied(), copy.task)
        else {
            return;
        };
        let known = if self.rank_left { left(job, fx) } else { None };
        if known == Some(0) {
            return;
        }
        let mut back = Reservation { from: row.from, job, group, count: 1, repair: false };
        if let Some(at) = self.queue.find(place)
            && let Some(now) = self.queue.place(at)
            && let Some(Entry::Reservation(others)) = self.queue.remove(at)
        {
            place = now;
            back = Reservation { count: others.count.saturating_add(1), ..others };
        }
        let rank = self.rank(job, known.unwrap_or_else(|| fx.catalog().tasks(job) - 1 - index), fx);
        self.queue.put_back(Entry::Reservation(back), place, rank);
    }

    fn drop_tasks(&mut self, tasks: TaskRange, fx: &mut Effects<'_>) {
        let mut found = false;
        for core in 0..self.slots.len() {
            let CoreState::Running(row) = &mut self.slots[core] else { continue };
            if !row.overlaps(tasks) {
                continue;
            }
            found = true;
            row.remove(tasks);
            let running = row.row.copy(row.at);
            if tasks.contains(running.task) {
                self.stop(core, running, true, fx);
            }
        }
        self.queue.retain_mut(|entry| match entry {
            Entry::Row(row) if row.overlaps(tasks) => {
                found = true;
                row.remove(tasks);
                let stays = row.seek().is_some();
                self.long_rows -= u32::from(row.long && !stays);
                stays
            }
            Entry::Row(_) | Entry::Reservation(_) => true,
        });
        if !found {
            let early = &mut self.rare.get_or_insert_default().early;
            if early.len() == EARLY_DROPS {
                early.pop_front();
            }
            early.push_back(tasks);
        }
        self.fill(fx);
    }

    /// Stops the copy on a core; with `proceed` the core continues with the rest of the row.
    fn stop(&mut self, core: usize, running: CopyId, proceed: bool, fx: &mut Effects<'_>) {
        fx.send(fx.worker(core), Core::Stop { copy: running });
        if let CoreState::Running(row) = self.vacate(core)
            && proceed
        {
            self.run(core, row, fx);
        }
    }

    /// Makes a core idle; returns its former state.
    fn vacate(&mut self, core: usize) -> CoreState {
        if let Some(usage) = self.usage() {
            usage.clear(core);
        }
        std::mem::replace(&mut self.slots[core], CoreState::Idle)
    }

    /// Records the new use of a copy.
    fn used(&mut self, core: usize, copy: CopyId, used: (u32, u32, u64), fx: &mut Effects<'_>) {
        // The copy may have been stopped at the time of its report.
        if let CoreState::Running(row) = &self.slots[core]
            && row.row.copy(row.at) == copy
            && let Some(usage) = self.rare.as_mut().and_then(|rare| rare.usage.as_mut())
        {
            usage.set(core, row, used, fx);
        }
    }

    /// Evicts copies until there is enough memory. No waiting entry starts in their place, because it would use memory
    /// too, unless the node would be idle.
    fn relieve_memory(&mut self, fx: &mut Effects<'_>) {
        let mut evicted = false;
        let victim = |node: &Self, fx: &Effects<'_>| {
            node.rare.as_ref()?.usage.as_ref()?.victim(running(&node.slots), fx)
        };
        while let Some(core) = victim(self, fx) {
            self.evict(core, fx);
            evicted = true;
        }
        if evicted && running(&self.slots).next().is_none() {
            self.fill(fx);
        }
    }

    /// Stops the copy on a core because memory is short; its scheduler launches the task again.
    fn evict(&mut self, core: usize, fx: &mut Effects<'_>) {
        let alone = running(&self.slots).count() == 1;
        if let CoreState::Running(row) = &mut self.slots[core] {
            let copy = row.row.copy(row.at);
            fx.note(Note::Evicted { copy });
            fx.send(row.from, evicted(copy, (row.began, fx.now()), alone));
            row.remove(TaskRange::one(copy.task, copy.attempt + 1));
            self.stop(core, copy, true, fx);
        }
    }

    /// Queues a reservation, unless it is known: datagrams can be duplicated, and schedulers repeat reservations
    /// believed lost. A reservation that `moved` to this node from another one is never a repetition.
    pub fn reserve(&mut self, reservation: Reservation, moved: bool, fx: &mut Effects<'_>) {
        let Reservation { from, job, group, count, repair } = reservation;
        if let Some(known) = self.known(from, job, group) {
            // The count is the total of the group's reservations on this node; it grows if reservations on other nodes
            // were lost.
            known.count = known.count.max(count);
        } else if repair || moved || self.claiming(from, job, group).is_none() {
            self.newest = self.newest.max(Some(job));
            if let Some(core) = self.slots.idle().filter(|_| count == 1 && self.queue.is_empty()) {
                let place = self.queue.pass(self.rank(job, fx.catalog().tasks(job), fx));
                return self.claim(core, reservation, place, fx);
            }
            self.enqueue(Entry::Reservation(reservation), job, fx);
            self.fill(fx);
        }
    }

    /// The waiting reservation of a group. Jobs are numbered by arrival, so a comparison with the newest job usually
    /// shows that there is none. This saves a search of the queue, which is long and not in the processor's cache.
    fn known(&mut self, from: ActorId, job: JobId, group: u32) -> Option<&mut Reservation> {
        if self.newest < Some(job) {
            return None;
        }
        match self.queue.iter_mut().find(|entry| entry.is_reservation(from, job, group))? {
            Entry::Reservation(place) => Some(place),
            Entry::Row(_) => None,
        }
    }

    /// The length of the queue as reported to schedulers that sample it: waiting rows and reservations, plus busy and
    /// held cores. With idle cores it is minus their number.
    pub fn length(&self) -> i32 {
        let free = self.idle_cores();
        let waiting = self.queue.len() + self.slots.len();
        if free > 0 { -(free as i32) } else { waiting as i32 }
    }

    /// Number of cores that neither run a task nor are held for a task.
    pub fn idle_cores(&self) -> u32 {
        self.slots.iter().filter(|slot| matches!(slot, CoreState::Idle)).count() as u32
    }

    /// Whether nothing waits on this node and no core is busy or held.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.slots.iter().all(|slot| matches!(slot, CoreState::Idle))
    }

    /// The wait of a new task for a core, and the part of this wait that running tasks have left. Both are by
    /// estimates, divided by the number of cores.
    pub fn wait(&self, fx: &Effects<'_>) -> (Span, Span) {
        let estimate = |row: &RowState| fx.catalog().job_estimate(row.row.job);
        let work = |row: &RowState, tasks: u32| Span(estimate(row).0.saturating_mul(u64::from(tasks)));
        let (mut waiting, mut running) = (Span::ZERO, Span::ZERO);
        for entry in self.queue.iter() {
            if let Entry::Row(row) = entry {
                waiting += work(row, row.left());
            }
        }
        for slot in self.slots.iter() {
            if let CoreState::Running(row) = slot {
                waiting += work(row, row.left() - 1);
                running += estimate(row).saturating_sub(fx.now().since(row.began));
            }
        }
        let share = |work: Span| Span(work.0 / self.slots.len() as u64);
        (share(waiting + running), share(running))
    }

    /// Whether tasks of long jobs wait or run on this node.
    pub fn has_long(&self) -> bool {
        self.long_rows > 0 || self.runs_long()
    }

    fn runs_long(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot, CoreState::Running(row) if row.long))
    }

    /// Moves the first contiguous reservations behind a task of a long job to `out`.
    pub fn take_behind_long(&mut self, out: &mut Vec<Reservation>) {
        let mut behind = self.runs_long();
        let mut ended = false;
        self.queue.retain_mut(|entry| match entry {
            Entry::Reservation(place) if behind && !ended => {
                out.push(*place);
                false
            }
            Entry::Reservation(_) => true,
            Entry::Row(_) => {
                ended |= !out.is_empty();
                behind |= entry.is_long_row();
                true
            }
        });
    }

    /// The core that is held for this claim.
    fn claiming(&self, by: ActorId, about: JobId, which: u32) -> Option<usize> {
        self.slots.iter().position(|slot| {
            matches!(*slot, CoreState::Claiming { from, job, group, .. } if (from, job, group) == (by, about, which))
        })
    }

    fn release(&mut self, from: ActorId, job: JobId, group: u32, fx: &mut Effects<'_>) {
        if let Some(core) = self.claiming(from, job, group) {
            self.slots[core] = CoreState::Idle;
            self.fill(fx);
        }
    }

    fn probe(&mut self, from: ActorId, probe: Probe, fx: &mut Effects<'_>) {
        match probe {
            Probe::Reserve { job, group, count, repair } => {
                self.reserve(Reservation { from, job, group, count, repair }, false, fx);
            }
            Probe::Grant { row, group } => match self.claiming(from, row.job, group) {
                Some(core) => {
                    let mut row = self.arrived(from, row, fx);
                    if let CoreState::Claiming { place, .. } = self.slots[core] {
                        self.queue.overtake(place);
                        row.stick = self.sticky.then(|| Box::new((group, place)));
                    }
                    self.run(core, row, fx);
                    self.fill(fx);
                }
                // The claim was given up meanwhile. The task is accepted anyway, because it must not be lost.
                None => self.row(from, row, fx),
            },
            Probe::Nothing { job, group } => self.release(from, job, group, fx),
            Probe::Cancel { job, group } => {
                self.queue.retain_mut(|entry| !entry.is_reservation(from, job, group));
            }
            Probe::Sample { task, repair } => {
                fx.send_as(repair, from, Probe::Length { task, length: self.length() });
            }
            Probe::Claim { .. } | Probe::Length { .. } => fx.unexpected(&probe.into()),
        }
    }

    /// Arms the next reports while copies run.
    fn arm_reports(&mut self, fx: &mut Effects<'_>) {
        if !self.reports || running(&self.slots).next().is_none() {
            return;
        }
        if let Some(reporter) = self.reporter() {
            reporter.arm(fx);
        }
        if let Some(usage) = self.usage() {
            usage.arm(fx);
        }
    }

    /// Queries the progress of every busy core; the answers are reported to the schedulers of the copies.
    fn query_progress(&mut self, fx: &mut Effects<'_>) {
        for (core, slot) in self.slots.iter().enumerate() {
            if let CoreState::Running(row) = slot {
                fx.send(fx.worker(core), Core::Ask { copy: row.row.copy(row.at) });
            }
        }
    }

    /// Forwards a core's answer about progress.
    fn score(&mut self, worker: ActorId, copy: CopyId, score: Score, fx: &mut Effects<'_>) {
        if let Role::Worker { core, .. } = fx.layout().role(worker)
            && let CoreState::Running(row) = &self.slots[core as usize]
            && let Some(reporter) = self.rare.as_mut().and_then(|rare| rare.reporter.as_mut())
        {
            reporter.report(row.from, copy, score, row.began, fx);
        }
    }

    /// Drops everything that belongs to a crashed actor, because another actor will request it again.
    fn forget(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        for core in 0..self.slots.len() {
            match &mut self.slots[core] {
                CoreState::Running(row) if row.from == actor => {
                    let running = row.row.copy(row.at);
                    self.stop(core, running, false, fx);
                }
                CoreState::Claiming { from, .. } if *from == actor => self.slots[core] = CoreState::Idle,
                CoreState::Running(_) | CoreState::Claiming { .. } | CoreState::Idle => {}
            }
        }
        self.queue.retain_mut(|entry| match entry {
            Entry::Row(row) => {
                let stays = row.from != actor;
                self.long_rows -= u32::from(row.long && !stays);
                stays
            }
            Entry::Reservation(place) => place.from != actor,
        });
        self.fill(fx);
    }
}

fn is_long(job: JobId, fx: &Effects<'_>) -> bool {
    fx.catalog().class(job) > 0
}

/// The key of a job of which `left` tasks have not begun: the estimated work of these tasks; `None` for a long job
/// `in_turn`.
fn key(job: JobId, left: u32, in_turn: bool, fx: &Effects<'_>) -> Option<(Span, Time)> {
    let work = fx.catalog().job_estimate(job).0.saturating_mul(u64::from(left));
    (!(in_turn && is_long(job, fx))).then_some((Span(work), Time::ZERO))
}

/// The number of tasks of a job that have not begun on any node, by the oracle.
fn left(job: JobId, fx: &Effects<'_>) -> Option<u32> {
    Some(fx.catalog().tasks(job).saturating_sub(fx.oracle()?.begun(job)))
}

impl Machine for NodeManager {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { from, msg } => match msg {
                Message::Launch(Launch::Row(row)) => self.row(from, row, fx),
                Message::Launch(Launch::Drop(tasks)) => self.drop_tasks(tasks, fx),
                Message::Core(Core::Ended { copy }) => self.ended(from, copy, fx),
                Message::Core(Core::Score { copy, score, .. }) => self.score(from, copy, score, fx),
                Message::Probe(probe) => self.probe(from, probe, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Undelivered { to, msg } => match msg {
                // The peer timeout limits how often this repeats. If the scheduler crashed, `Down` arrives instead.
                Message::Launch(Launch::Completed { copy }) => fx.recover(to, Launch::Completed { copy }),
                Message::Contention(contention) => fx.recover(to, contention),
                Message::Probe(Probe::Claim { job, group, .. }) => self.release(to, job, group, fx),
                // Lengths and reports are datagrams, and messages to workers stay on this node, so none of them
                // returns.
                _ => {}
            },
            Input::Down { actor } => self.forget(actor, fx),
            Input::Usage { copy, core, demand, given, memory, last } => {
                self.used(core as usize, copy, (demand, given, memory), fx);
                if last {
                    self.relieve_memory(fx);
                }
            }
            Input::Fire(reports::USE) => {
                if let Some(usage) = self.rare.as_mut().and_then(|rare| rare.usage.as_mut()) {
                    usage.report(running(&self.slots), fx);
                }
            }
            Input::Fire(tick @ (reports::PROGRESS | reports::SEND)) => {
                let due = self.reporter().is_some_and(|reporter| reporter.tick(tick, fx));
                if due {
                    self.query_progress(fx);
                }
            }
            // `Start` needs no action, nor does `Up`, since a restarted scheduler knows nothing of this node. The
            // remaining inputs go to workers only.
            _ => {}
        }
        self.arm_reports(fx);
    }
}

#[cfg(test)]
mod tests;
