//! Sparrow: batch sampling with late binding and cancellation, its pair form, and per-task sampling.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Policy, Seat};
use crate::base::{ActorId, CopyId, JobId, Span, TaskId};
use crate::layout::Layout;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Job, Launch, Message, Probe, Row};
use crate::roles::jobs::{Completion, JobTable, Open};
use crate::roles::members::Members;

/// Parameters of Sparrow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sparrow {
    /// Reservations (or samples) per task, d. The papers use 2; the authors' daemon defaults to 1.05.
    pub probe_ratio: f64,
    /// How nodes are sampled.
    pub form: Form,
    /// Tasks and servers of a group in the `pairs` form.
    pub group: u32,
    /// Tell nodes to drop reservations once the last task is launched.
    pub cancellation: bool,
    /// First wait before a reservation or sample that may have been lost is sent again; doubles each time.
    /// Armed only where the network can lose datagrams.
    pub probe_timeout: Span,
}

/// How nodes are sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// d·f reservations on distinct nodes for the f tasks of a job, bound late (batch sampling).
    #[default]
    Batch,
    /// Groups of `group` tasks, each on as many random servers with d reservations apiece, bound late: the
    /// latin-square paper's simulator.
    Pairs,
    /// d samples for each task; it is bound at once to the shorter queue (power of d choices).
    PerTask,
}

impl Default for Sparrow {
    fn default() -> Self {
        Self {
            probe_ratio: 2.0,
            form: Form::Batch,
            group: 2,
            cancellation: true,
            probe_timeout: Span::from_secs(1),
        }
    }
}

impl Policy for Sparrow {
    const ABOUT: &'static str = "Sparrow (Ousterhout et al., SOSP 2013)\n\
        A job's scheduler places d reservations per task on random nodes. A node whose core is free when a \
        reservation reaches the head of its FIFO queue asks the scheduler, which hands out its tasks first \
        come first served; the core is held for the round trip. Left-over reservations are cancelled.";

    fn check(&self, layout: &Layout) -> Result<(), String> {
        if !(self.probe_ratio >= 1.0 && self.probe_ratio <= 1000.0) {
            return Err(format!("probe_ratio: must be between 1 and 1000, not {}", self.probe_ratio));
        }
        if self.form == Form::Pairs && (self.group == 0 || self.group > layout.nodes()) {
            return Err(format!(
                "group: must be between 1 and the {} servers, not {}",
                layout.nodes(),
                self.group
            ));
        }
        if self.probe_timeout == Span::ZERO {
            return Err("probe_timeout: must be longer than zero".into());
        }
        Ok(())
    }

    fn scheduler(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        Box::new(Scheduler {
            config: self.clone(),
            lossy: seat.lossy,
            members: Members::new(seat.layout),
            jobs: JobTable::default(),
            sample: Vec::new(),
        })
    }
}

/// Tasks that are bound together.
#[derive(Debug)]
struct Group {
    base: u32,
    len: u32,
    /// Tasks handed out so far, in order.
    launched: u32,
    /// Tasks that were handed out and lost.
    again: Vec<u32>,
    /// Nodes with reservations they have not claimed all of, with how many are left.
    reserved: Vec<(ActorId, u32)>,
}

impl Group {
    const fn open(&self) -> bool {
        self.launched < self.len || !self.again.is_empty()
    }
}

/// What is known of a task that is being sampled.
#[derive(Clone, Copy, Debug, Default)]
struct Sampled {
    best: Option<(i32, ActorId)>,
    missing: u32,
}

#[derive(Debug)]
struct Placed {
    open: Open,
    groups: Vec<Group>,
    /// Node of each launched task.
    nodes: Vec<Option<ActorId>>,
    /// Per task in the sampling form, else empty.
    samples: Vec<Sampled>,
    /// Whether a look at the probes is armed.
    checking: bool,
}

#[derive(Debug)]
struct Scheduler {
    config: Sparrow,
    lossy: bool,
    members: Members,
    jobs: JobTable<Placed>,
    sample: Vec<ActorId>,
}

impl Scheduler {
    fn submit(&mut self, job: JobId, round: u32, fx: &mut Effects<'_>) {
        // A submission that was under way to an earlier life of this scheduler can come on top.
        if self.jobs.get_mut(job).is_some() {
            return;
        }
        let mut open = Open::new(fx.catalog().job(job), round);
        open.attempts(1);
        let tasks = open.spec.tasks;
        let size = match self.config.form {
            Form::Batch => tasks,
            Form::Pairs => self.config.group,
            Form::PerTask => 1,
        };
        let groups = (0..tasks.div_ceil(size)).map(|g| {
            let base = g * size;
            Group { base, len: size.min(tasks - base), launched: 0, again: Vec::new(), reserved: Vec::new() }
        });
        let mut placed = Placed {
            open,
            groups: groups.collect(),
            nodes: vec![None; tasks as usize],
            samples: Vec::new(),
            checking: self.lossy,
        };
        if self.config.form == Form::PerTask {
            placed.samples = vec![Sampled::default(); tasks as usize];
            for index in 0..tasks {
                self.ask(&mut placed, job.task(index), false, fx);
            }
        } else {
            for group in 0..placed.groups.len() {
                let tasks = placed.groups[group].len;
                self.reserve(&mut placed.groups[group], job, group as u32, tasks, false, fx);
            }
        }
        self.jobs.open(job, placed);
        self.recheck(job, 0, fx);
    }

    fn recheck(&self, job: JobId, attempt: u32, fx: &mut Effects<'_>) {
        if self.lossy {
            let wait = Span(self.config.probe_timeout.0.saturating_mul(1 << attempt.min(16)));
            fx.arm(Timer::Recheck { job, attempt }, wait);
        }
    }

    /// Reserves places for `tasks` tasks of a group on fresh nodes.
    fn reserve(
        &mut self,
        group: &mut Group,
        job: JobId,
        id: u32,
        tasks: u32,
        repair: bool,
        fx: &mut Effects<'_>,
    ) {
        let places = (f64::from(tasks) * self.config.probe_ratio).ceil() as usize;
        let servers = if self.config.form == Form::Pairs { places.min(group.len as usize) } else { places };
        self.sample.clear();
        self.members.sample(fx.rng(), servers.max(1), &mut self.sample);
        let found = self.sample.len();
        for (i, &node) in self.sample.iter().enumerate() {
            // With fewer nodes than places they hold as many each as is needed, the first ones one more.
            let count = (places / found + usize::from(i < places % found)) as u32;
            group.reserved.push((node, count));
            let probe = Probe::Reserve { job, group: id, count };
            if repair { fx.recover(node, probe) } else { fx.send(node, probe) }
        }
    }

    /// Asks d nodes how long their queues are.
    fn ask(&mut self, placed: &mut Placed, task: TaskId, repair: bool, fx: &mut Effects<'_>) {
        self.sample.clear();
        self.members.sample(fx.rng(), self.config.probe_ratio.ceil() as usize, &mut self.sample);
        placed.samples[task.index as usize] = Sampled { best: None, missing: self.sample.len() as u32 };
        for &node in &self.sample {
            if repair {
                fx.recover(node, Probe::Sample { task })
            } else {
                fx.send(node, Probe::Sample { task })
            }
        }
    }

    fn length(&mut self, from: ActorId, task: TaskId, length: i32, fx: &mut Effects<'_>) {
        let Some(placed) = self.jobs.get_mut(task.job) else { return };
        let Some(sampled) = placed.samples.get_mut(task.index as usize) else { return };
        if placed.nodes[task.index as usize].is_some() {
            return;
        }
        if sampled.best.is_none_or(|(best, _)| length < best) {
            sampled.best = Some((length, from));
        }
        sampled.missing = sampled.missing.saturating_sub(1);
        if sampled.missing == 0 {
            Self::bind(placed, task, fx);
        }
    }

    /// Sends a sampled task to the shortest queue heard of; says whether one was.
    fn bind(placed: &mut Placed, task: TaskId, fx: &mut Effects<'_>) -> bool {
        let group = &mut placed.groups[task.index as usize];
        let Some((_, node)) = placed.samples[task.index as usize].best else { return false };
        let first = group.launched == 0;
        group.launched = 1;
        group.again.clear();
        placed.nodes[task.index as usize] = Some(node);
        let attempt = if first { placed.open.first_attempt() } else { placed.open.attempts(1) };
        let row = Launch::Row(Row::single(task.copy(attempt)));
        if first {
            fx.send(node, row)
        } else {
            fx.recover(node, row)
        }
        true
    }

    fn claim(&mut self, node: ActorId, job: JobId, id: u32, fx: &mut Effects<'_>) {
        let nothing = Probe::Nothing { job, group: id };
        let Some(placed) = self.jobs.get_mut(job) else { return fx.send(node, nothing) };
        let Some(group) = placed.groups.get_mut(id as usize) else { return fx.send(node, nothing) };
        if let Some(i) = group.reserved.iter().position(|(n, _)| *n == node) {
            group.reserved[i].1 -= 1;
            if group.reserved[i].1 == 0 {
                group.reserved.swap_remove(i);
            }
        }
        // A task given up as lost may have finished after all.
        group.again.retain(|&task| !placed.open.is_done(task));
        let (task, attempt) = if let Some(task) = group.again.pop() {
            (task, placed.open.attempts(1))
        } else if group.launched < group.len {
            group.launched += 1;
            (group.base + group.launched - 1, placed.open.first_attempt())
        } else {
            return fx.send(node, nothing);
        };
        placed.nodes[task as usize] = Some(node);
        let grant = Probe::Grant { row: Row::single(job.task(task).copy(attempt)), group: id };
        if placed.open.is_repeated(attempt) {
            fx.recover(node, grant)
        } else {
            fx.send(node, grant)
        }
        if self.config.cancellation && !group.open() {
            for (node, _) in group.reserved.drain(..) {
                fx.send(node, Probe::Cancel { job, group: id });
            }
        }
    }

    fn completed(&mut self, copy: CopyId, fx: &mut Effects<'_>) {
        let job = copy.task.job;
        let Some(placed) = self.jobs.get_mut(job) else { return };
        if placed.open.complete(copy.task.index) == Completion::Job {
            fx.send(fx.layout().client(placed.open.spec.client), Job::Finished { job });
            self.jobs.close(job);
        }
    }

    /// The timeout of a job's probes: reservations still out are repeated (a node that has one ignores it),
    /// samples that lack answers are decided on what is known or drawn again.
    fn repeat(&mut self, job: JobId, attempt: u32, fx: &mut Effects<'_>) {
        let Some(mut placed) = self.jobs.close(job) else { return };
        for id in 0..placed.groups.len() {
            if !placed.groups[id].open() {
                continue;
            }
            if self.config.form == Form::PerTask {
                let task = job.task(id as u32);
                if !Self::bind(&mut placed, task, fx) {
                    self.ask(&mut placed, task, true, fx);
                }
                continue;
            }
            let group = &mut placed.groups[id];
            for &(node, count) in &group.reserved {
                fx.recover(node, Probe::Reserve { job, group: id as u32, count });
            }
            if group.reserved.is_empty() {
                let tasks = group.len - group.launched + group.again.len() as u32;
                self.reserve(group, job, id as u32, tasks, true, fx);
            }
        }
        let open = placed.groups.iter().any(Group::open);
        placed.checking = open && self.lossy;
        self.jobs.open(job, placed);
        if open {
            self.recheck(job, attempt + 1, fx);
        }
    }

    /// Takes back tasks whose node is `lost`, forgets its reservations, and makes new ones.
    fn recover(&mut self, node: ActorId, only: Option<TaskId>, gone: bool, fx: &mut Effects<'_>) {
        let ratio = self.config.probe_ratio;
        let touched: Vec<_> = self.jobs.iter_mut().map(|(job, _)| job).collect();
        for job in touched.into_iter().filter(|job| only.is_none_or(|task| task.job == *job)) {
            let Some(mut placed) = self.jobs.close(job) else { continue };
            let mut repaired = false;
            for id in 0..placed.groups.len() {
                let group = &mut placed.groups[id];
                let mut places = 0;
                if gone {
                    places = group.reserved.iter().filter(|(n, _)| *n == node).map(|(_, count)| count).sum();
                    group.reserved.retain(|(n, _)| *n != node);
                }
                let worth = (f64::from(places) / ratio).ceil() as u32;
                let mut missing = if group.open() { worth } else { 0 };
                for task in group.base..group.base + group.launched {
                    let at = &mut placed.nodes[task as usize];
                    let asked = only.is_none_or(|o| o.index == task);
                    if *at == Some(node) && asked && !placed.open.is_done(task) {
                        *at = None;
                        group.again.push(task);
                        missing += 1;
                    }
                }
                if missing == 0 {
                    continue;
                }
                repaired = true;
                if self.config.form == Form::PerTask {
                    self.ask(&mut placed, job.task(id as u32), true, fx);
                } else {
                    self.reserve(group, job, id as u32, missing, true, fx);
                }
            }
            let checking = placed.checking;
            placed.checking |= self.lossy && repaired;
            self.jobs.open(job, placed);
            if repaired && !checking {
                self.recheck(job, 0, fx);
            }
        }
    }

    /// Nodes came back: jobs that found none alive try again.
    fn retry_stranded(&mut self, fx: &mut Effects<'_>) {
        let stranded: Vec<_> = self
            .jobs
            .iter_mut()
            .filter(|(_, placed)| placed.groups.iter().any(|g| g.open() && g.reserved.is_empty()))
            .map(|(job, _)| job)
            .collect();
        for job in stranded {
            let Some(mut placed) = self.jobs.close(job) else { continue };
            for id in 0..placed.groups.len() {
                let group = &mut placed.groups[id];
                if !group.open() || !group.reserved.is_empty() {
                    continue;
                }
                if self.config.form != Form::PerTask {
                    let tasks = group.len - group.launched + group.again.len() as u32;
                    self.reserve(group, job, id as u32, tasks, true, fx);
                } else if placed.samples[id].missing == 0 {
                    self.ask(&mut placed, job.task(id as u32), true, fx);
                }
            }
            self.jobs.open(job, placed);
        }
    }

    fn undelivered(&mut self, to: ActorId, msg: Message, fx: &mut Effects<'_>) {
        match msg {
            Message::Probe(Probe::Grant { row, group }) => {
                self.recover(to, Some(row.copy(0).task), false, fx);
                // The node still holds its core for us: free it as soon as it can be reached.
                fx.recover(to, Probe::Nothing { job: row.job, group });
            }
            Message::Probe(nothing @ Probe::Nothing { .. }) => fx.recover(to, nothing),
            Message::Launch(Launch::Row(row)) => self.recover(to, Some(row.copy(0).task), false, fx),
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
                Message::Probe(Probe::Length { task, length }) => self.length(from, task, length, fx),
                _ => fx.unexpected(&msg),
            },
            Input::Fire(Timer::Recheck { job, attempt }) => self.repeat(job, attempt, fx),
            Input::Undelivered { to, msg } => self.undelivered(to, msg, fx),
            Input::Down { actor } => {
                self.members.down(actor, fx.layout());
                self.recover(actor, None, true, fx);
            }
            Input::Up { actor } => {
                self.members.up(actor, fx.layout());
                self.retry_stranded(fx);
            }
            Input::Start { .. } | Input::Fire(_) | Input::Done { .. } | Input::Halted { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::{Bench, sends};

    const JOB: JobId = JobId(0);

    fn bench(config: &Sparrow, tasks: u32, nodes: usize) -> Bench {
        let layout = Layout::new(1, 0, vec![1; nodes]);
        let me = layout.scheduler(0);
        let machine = config.scheduler(Seat { me, index: 0, layout: &layout, lossy: false });
        Bench::new(layout, me, tasks, machine)
    }

    fn submit(bench: &mut Bench) -> Vec<(ActorId, Message)> {
        bench.hear(bench.layout.client(0), Job::Submit { job: JOB, round: 0 })
    }

    fn reservations(sent: &[(ActorId, Message)]) -> Vec<(ActorId, u32, u32)> {
        sent.iter()
            .filter_map(|&(to, msg)| match msg {
                Message::Probe(Probe::Reserve { group, count, .. }) => Some((to, group, count)),
                _ => None,
            })
            .collect()
    }

    fn grant(task: u32) -> Message {
        Probe::Grant { row: Row::single(JOB.task(task).copy(0)), group: 0 }.into()
    }

    #[test]
    fn tasks_go_to_whoever_asks_first_and_the_rest_is_cancelled() {
        let mut bench = bench(&Sparrow::default(), 3, 10);
        let reserved = reservations(&submit(&mut bench));
        let nodes: Vec<_> = reserved.iter().map(|r| r.0).collect();
        assert_eq!(nodes.len(), 6, "d·f reservations");
        assert!(nodes.iter().enumerate().all(|(i, node)| !nodes[..i].contains(node)), "on distinct nodes");
        let claim = Probe::Claim { job: JOB, group: 0 };
        assert_eq!(bench.hear(nodes[4], claim), [(nodes[4], grant(0))]);
        assert_eq!(bench.hear(nodes[1], claim), [(nodes[1], grant(1))]);
        let last = bench.hear(nodes[0], claim);
        assert_eq!(last[0], (nodes[0], grant(2)));
        let mut cancelled: Vec<_> = last[1..].iter().map(|&(to, msg)| (to, msg.name())).collect();
        cancelled.sort_unstable();
        let mut expected: Vec<_> = [2, 3, 5].map(|i| (nodes[i], "probe.cancel")).to_vec();
        expected.sort_unstable();
        assert_eq!(cancelled, expected);
        let nothing = Probe::Nothing { job: JOB, group: 0 }.into();
        assert_eq!(bench.hear(nodes[2], claim), [(nodes[2], nothing)]);
    }

    #[test]
    fn pairs_hold_d_reservations_for_each_of_two_tasks() {
        let config = Sparrow { form: Form::Pairs, ..Sparrow::default() };
        let reserved = reservations(&submit(&mut bench(&config, 5, 10)));
        let shape: Vec<_> = reserved.iter().map(|&(_, group, count)| (group, count)).collect();
        assert_eq!(shape, [(0, 2), (0, 2), (1, 2), (1, 2), (2, 2)], "100 tasks would make 50 pairs");
        assert_ne!(reserved[0].0, reserved[1].0);
    }

    #[test]
    fn with_fewer_nodes_than_reservations_each_holds_several() {
        let reserved = reservations(&submit(&mut bench(&Sparrow::default(), 5, 4)));
        let mut counts: Vec<_> = reserved.iter().map(|r| r.2).collect();
        counts.sort_unstable();
        assert_eq!(counts, [2, 2, 3, 3]);
    }

    #[test]
    fn sampling_binds_to_the_shorter_queue_and_ties_to_the_first_answer() {
        let config = Sparrow { form: Form::PerTask, ..Sparrow::default() };
        let mut bench = bench(&config, 1, 10);
        let asked: Vec<_> = submit(&mut bench).iter().map(|s| s.0).collect();
        assert_eq!(asked.len(), 2);
        let length = |length| Probe::Length { task: JOB.task(0), length };
        assert_eq!(bench.hear(asked[0], length(3)), []);
        let row = Message::from(Launch::Row(Row::single(JOB.task(0).copy(0))));
        assert_eq!(bench.hear(asked[1], length(3)), [(asked[0], row)]);
        assert_eq!(bench.hear(asked[1], length(-1)), [], "a late or repeated answer changes nothing");
    }

    #[test]
    fn what_a_dead_node_had_is_reserved_again_elsewhere() {
        let mut bench = bench(&Sparrow::default(), 1, 3);
        let nodes: Vec<_> = reservations(&submit(&mut bench)).iter().map(|r| r.0).collect();
        bench.hear(nodes[0], Probe::Claim { job: JOB, group: 0 });
        let again = reservations(&sends(&bench.step(Input::Down { actor: nodes[0] })));
        assert_eq!(again.len(), 2);
        assert!(again.iter().all(|r| r.0 != nodes[0]));
        let sent = bench.hear(again[0].0, Probe::Claim { job: JOB, group: 0 });
        let row = Row::single(JOB.task(0).copy(1));
        assert_eq!(sent[0], (again[0].0, Probe::Grant { row, group: 0 }.into()), "a fresh attempt");
    }
}
