//! Bindings, which decide the node and the time of each copy.
//!
//! A queue of copies serves the free cores of a cluster, or random nodes. With reservations a copy goes to the first of
//! several random nodes that has a free core, as in Sparrow's batch sampling. The first copies of a job are a group,
//! every later copy is its own group, and the job stays known until it is finished.

use std::fmt::Debug;

use std::collections::{BTreeMap, VecDeque};

use super::rule::Cluster;
use crate::base::{ActorId, CopyId, JobId, Span, TaskId, Time, parameters};
use crate::layout::{Layout, Role};
use crate::machine::{Effects, Timer};
use crate::message::{Launch, Message, Probe, Row};
use crate::roles::job_table::JobTable;
use crate::roles::late_binding::{Places, ProbeOptions};
use crate::roles::membership::Membership;
use crate::roles::resend::back_off;

parameters! {
    /// The nodes to which copies are sent.
    enum CopyBinding {
        /// To free cores, from one queue. The only scheduler holds the queue and knows the free cores.
        #[default]
        Central,
        /// To the first free core of two random nodes for each copy, reserved as in Sparrow's batch sampling.
        Sparrow,
        /// To random nodes, where copies wait.
        Random,
    }
}

/// The reason for sending a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaunchReason {
    /// The task has no copy.
    First,
    /// The task has a slow copy.
    Backup,
    /// The previous copy was lost.
    Lost,
}

/// A copy that needs a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WantedCopy {
    /// The copy.
    pub copy: CopyId,
    /// The reason for sending the copy.
    pub reason: LaunchReason,
}

/// The outcome of a request for a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackupPlace {
    /// The backup goes to this node.
    Node(ActorId),
    /// A node will claim the backup.
    Reserved,
}

/// A binding of copies to nodes.
pub trait NodeBinding: Clone + Debug + Send + 'static {
    /// Queues the first copies of a job's tasks.
    fn open(&mut self, job: JobId, tasks: u32, attempt: u32, fx: &mut Effects<'_>);

    /// Queues a copy of a task that has no other copy. The successor of a lost copy comes before all others, that of a
    /// restarted copy in second place.
    fn again(&mut self, wanted: WantedCopy, fx: &mut Effects<'_>);

    /// The next queued copy whose task is needed, with a node for it, if a node is available now.
    fn next(
        &mut self,
        needed: impl FnMut(TaskId) -> bool,
        fx: &mut Effects<'_>,
    ) -> Option<(WantedCopy, ActorId)>;

    /// A node that suits a backup; `None` if there is none.
    fn back_up(
        &mut self,
        copy: CopyId,
        fits: impl Fn(ActorId) -> bool,
        fx: &mut Effects<'_>,
    ) -> Option<BackupPlace>;

    /// The message that carries a copy to its node; `group` is the group of the claim that it answers, if any.
    fn launch(copy: CopyId, _group: u32) -> Message {
        Launch::Row(Row::single(copy)).into()
    }

    /// The copy for a node that makes a claim for a group of a job.
    fn claimed(
        &mut self,
        _node: ActorId,
        _job: JobId,
        _group: u32,
        _needed: impl FnMut(TaskId) -> bool,
        _fx: &mut Effects<'_>,
    ) -> Option<WantedCopy> {
        None
    }

    /// Called when an unclaimed copy is not wanted any more.
    fn withdrawn(&mut self, _copy: CopyId, _fx: &mut Effects<'_>) {}

    /// Called when a copy left a node because it ended, was stopped, or never arrived.
    fn freed(&mut self, _node: ActorId) {}

    /// Called when a job is finished.
    fn close(&mut self, _job: JobId, _fx: &mut Effects<'_>) {}

    /// Called when a job's requests are due to be repeated.
    fn repeat(&mut self, _job: JobId, _fx: &mut Effects<'_>) {}

    /// Called when an actor crashed, before its copies are taken back.
    fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>);

    /// Called when an actor is back.
    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>);

    /// The known state of the cluster, with `sent` copies on nodes.
    fn cluster(&self, sent: u32, backups: u32) -> Cluster;
}

/// Copies in the order in which they get nodes.
#[derive(Clone, Default, Debug)]
struct CopyQueue(VecDeque<WantedCopy>);

impl CopyQueue {
    fn open(&mut self, job: JobId, tasks: u32, attempt: u32) {
        let first = |task| WantedCopy { copy: job.task(task).copy(attempt), reason: LaunchReason::First };
        self.0.extend((0..tasks).map(first));
    }

    fn again(&mut self, wanted: WantedCopy) {
        let at = if wanted.reason == LaunchReason::Lost { 0 } else { self.0.len().min(1) };
        self.0.insert(at, wanted);
    }

    fn next(&mut self, mut needed: impl FnMut(TaskId) -> bool) -> Option<WantedCopy> {
        while let Some(wanted) = self.0.pop_front() {
            if needed(wanted.copy.task) {
                return Some(wanted);
            }
        }
        None
    }
}

/// All cores of the cluster. A core counts as free as soon as its copy is known to have ended or is ordered to stop.
#[derive(Clone, Debug)]
pub struct FreeCores {
    slots: u32,
    queue: CopyQueue,
    /// The node of each free core, longest idle first.
    free: VecDeque<ActorId>,
}

impl FreeCores {
    /// All cores of a layout, free.
    pub fn new(layout: &Layout) -> Self {
        let cores = |node| (0..layout.cores(node)).map(move |_| layout.node(node));
        let free = (0..layout.nodes()).flat_map(cores).collect();
        Self { slots: layout.workers(), queue: CopyQueue::default(), free }
    }
}

impl NodeBinding for FreeCores {
    fn open(&mut self, job: JobId, tasks: u32, attempt: u32, _: &mut Effects<'_>) {
        self.queue.open(job, tasks, attempt);
    }

    fn again(&mut self, wanted: WantedCopy, _: &mut Effects<'_>) {
        self.queue.again(wanted);
    }

    fn next(
        &mut self,
        needed: impl FnMut(TaskId) -> bool,
        _: &mut Effects<'_>,
    ) -> Option<(WantedCopy, ActorId)> {
        if self.free.is_empty() {
            return None;
        }
        let wanted = self.queue.next(needed)?;
        Some((wanted, self.free.pop_front()?))
    }

    /// The suitable node that has been idle longest.
    fn back_up(
        &mut self,
        _: CopyId,
        fits: impl Fn(ActorId) -> bool,
        _: &mut Effects<'_>,
    ) -> Option<BackupPlace> {
        let at = self.free.iter().position(|&node| fits(node))?;
        self.free.remove(at).map(BackupPlace::Node)
    }

    fn freed(&mut self, node: ActorId) {
        self.free.push_back(node);
    }

    fn down(&mut self, actor: ActorId, _: &mut Effects<'_>) {
        self.free.retain(|&node| node != actor);
    }

    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        if let Role::Node(node) = fx.layout().role(actor) {
            self.free.retain(|&n| n != actor);
            self.free.extend((0..fx.layout().cores(node)).map(|_| actor));
        }
    }

    fn cluster(&self, _: u32, backups: u32) -> Cluster {
        let (free, waiting) = (self.free.len() as u32, self.queue.0.len() as u32);
        Cluster { slots: self.slots, free, busy: self.slots.saturating_sub(free), waiting, backups }
    }
}

/// Number of nodes drawn for a backup; the first that fits gets it.
pub(super) const BACKUP_DRAWS: usize = 8;

/// A scheduler's share of the cores of a layout.
pub(super) fn share(layout: &Layout) -> u32 {
    layout.workers().div_ceil(layout.schedulers())
}

/// Random live nodes. Copies are queued only while no node is alive.
#[derive(Clone, Debug)]
pub struct RandomNodes {
    slots: u32,
    queue: CopyQueue,
    members: Membership,
    sample: Vec<ActorId>,
}

impl RandomNodes {
    /// All nodes of a layout.
    pub fn new(layout: &Layout) -> Self {
        let (queue, members) = (CopyQueue::default(), Membership::new(layout));
        Self { slots: share(layout), queue, members, sample: Vec::new() }
    }
}

impl NodeBinding for RandomNodes {
    fn open(&mut self, job: JobId, tasks: u32, attempt: u32, _: &mut Effects<'_>) {
        self.queue.open(job, tasks, attempt);
    }

    fn again(&mut self, wanted: WantedCopy, _: &mut Effects<'_>) {
        self.queue.again(wanted);
    }

    fn next(
        &mut self,
        needed: impl FnMut(TaskId) -> bool,
        fx: &mut Effects<'_>,
    ) -> Option<(WantedCopy, ActorId)> {
        if self.members.is_empty() {
            return None;
        }
        let wanted = self.queue.next(needed)?;
        Some((wanted, self.members.pick(fx.rng())?))
    }

    fn back_up(
        &mut self,
        _: CopyId,
        fits: impl Fn(ActorId) -> bool,
        fx: &mut Effects<'_>,
    ) -> Option<BackupPlace> {
        self.sample.clear();
        self.members.sample(fx.rng(), BACKUP_DRAWS, &mut self.sample);
        self.sample.iter().copied().find(|&node| fits(node)).map(BackupPlace::Node)
    }

    fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.members.down(actor, fx.layout());
    }

    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.members.up(actor, fx.layout());
    }

    fn cluster(&self, sent: u32, backups: u32) -> Cluster {
        let busy = sent + self.queue.0.len() as u32;
        Cluster { slots: self.slots, free: self.slots, busy, waiting: 0, backups }
    }
}

/// Copies for which places are reserved together.
#[derive(Clone, Default, Debug)]
struct CopyGroup {
    copies: VecDeque<WantedCopy>,
    places: Places,
    /// Number of repetitions since places were last requested on further nodes.
    repeated: u32,
    /// Time at which the group's requests are repeated next. A timer that goes off earlier belongs to an earlier
    /// request.
    due: Time,
}

impl CopyGroup {
    /// Requests `count` places on the nodes of a sample, and again the places that they have. Where requests can be
    /// lost, they are repeated after the timeout.
    fn request(
        &mut self,
        sample: &[ActorId],
        count: usize,
        at: (JobId, u32),
        repair: bool,
        timeout: Option<Span>,
        fx: &mut Effects<'_>,
    ) {
        let (job, group) = at;
        self.places.spread(count, sample, |node, count| {
            fx.send_as(repair, node, Probe::Reserve { job, group, count, repair });
        });
        if let Some(timeout) = timeout.filter(|_| !sample.is_empty()) {
            self.repeated = 0;
            self.arm(job, timeout, fx);
        }
    }

    /// Arms the next repetition.
    fn arm(&mut self, job: JobId, timeout: Span, fx: &mut Effects<'_>) {
        let wait = back_off(timeout, self.repeated);
        self.due = fx.now() + wait;
        fx.arm(Timer::Tick(job.0), wait);
    }
}

/// The groups of a job with waiting copies.
#[derive(Clone, Debug)]
struct ReservedJob {
    groups: BTreeMap<u32, CopyGroup>,
    /// The number of the next group.
    next: u32,
}

/// Reservations on random nodes.
#[derive(Clone, Debug)]
pub struct Reservations {
    options: ProbeOptions,
    /// Time after which requests are first repeated; `None` where they cannot be lost.
    timeout: Option<Span>,
    slots: u32,
    members: Membership,
    jobs: JobTable<ReservedJob>,
    /// Number of copies that wait for a claim.
    waiting: u32,
    sample: Vec<ActorId>,
}

impl Reservations {
    /// Reservations on the nodes of a layout. Requests are repeated only where datagrams can be lost.
    pub fn new(layout: &Layout, lossy: bool) -> Self {
        let (options, jobs) = (ProbeOptions::default(), JobTable::default());
        let (members, timeout) = (Membership::new(layout), lossy.then_some(options.probe_timeout));
        Self { options, timeout, slots: share(layout), members, jobs, waiting: 0, sample: Vec::new() }
    }

    /// Adds a group of copies, with places on the nodes of the sample.
    fn add(&mut self, job: JobId, copies: VecDeque<WantedCopy>, repair: bool, fx: &mut Effects<'_>) {
        let places = self.options.places(copies.len() as u32);
        let Some(reserved) = self.jobs.get_mut(job) else { return };
        self.waiting += copies.len() as u32;
        let mut group = CopyGroup { copies, ..CopyGroup::default() };
        group.request(&self.sample, places, (job, reserved.next), repair, self.timeout, fx);
        reserved.groups.insert(reserved.next, group);
        reserved.next += 1;
    }

    /// Draws nodes for `copies` copies.
    fn draw(&mut self, copies: usize, fx: &mut Effects<'_>) {
        self.sample.clear();
        self.members.sample(fx.rng(), self.options.places(copies as u32), &mut self.sample);
    }

    /// Requests places for groups that have fewer places than copies.
    fn top_up(&mut self, only: Option<JobId>, fx: &mut Effects<'_>) {
        let Self { options, members, jobs, sample, timeout, .. } = self;
        for (job, reserved) in jobs.iter_mut().filter(|(job, _)| only.is_none_or(|only| only == *job)) {
            for (&id, group) in &mut reserved.groups {
                let (held, copies) = (group.places.count(), group.copies.len());
                if held < copies {
                    let places = options.places(copies as u32) - held;
                    sample.clear();
                    members.sample(fx.rng(), places, sample);
                    group.request(sample, places, (job, id), true, *timeout, fx);
                }
            }
        }
    }
}

impl NodeBinding for Reservations {
    fn open(&mut self, job: JobId, tasks: u32, attempt: u32, fx: &mut Effects<'_>) {
        self.jobs.open(job, ReservedJob { groups: BTreeMap::new(), next: 0 });
        self.draw(tasks as usize, fx);
        let first = |task| WantedCopy { copy: job.task(task).copy(attempt), reason: LaunchReason::First };
        self.add(job, (0..tasks).map(first).collect(), false, fx);
    }

    fn again(&mut self, wanted: WantedCopy, fx: &mut Effects<'_>) {
        self.draw(1, fx);
        let lost = wanted.reason == LaunchReason::Lost;
        self.add(wanted.copy.task.job, VecDeque::from([wanted]), lost, fx);
    }

    fn next(&mut self, _: impl FnMut(TaskId) -> bool, _: &mut Effects<'_>) -> Option<(WantedCopy, ActorId)> {
        None
    }

    fn back_up(
        &mut self,
        copy: CopyId,
        fits: impl Fn(ActorId) -> bool,
        fx: &mut Effects<'_>,
    ) -> Option<BackupPlace> {
        self.sample.clear();
        self.members.sample(fx.rng(), BACKUP_DRAWS, &mut self.sample);
        self.sample.retain(|&node| fits(node));
        self.sample.truncate(self.options.places(1));
        if self.sample.is_empty() {
            return None;
        }
        let wanted = WantedCopy { copy, reason: LaunchReason::Backup };
        self.add(copy.task.job, VecDeque::from([wanted]), false, fx);
        Some(BackupPlace::Reserved)
    }

    fn launch(copy: CopyId, group: u32) -> Message {
        Probe::Grant { row: Row::single(copy), group }.into()
    }

    fn claimed(
        &mut self,
        node: ActorId,
        job: JobId,
        id: u32,
        mut needed: impl FnMut(TaskId) -> bool,
        fx: &mut Effects<'_>,
    ) -> Option<WantedCopy> {
        let reserved = self.jobs.get_mut(job)?;
        let group = reserved.groups.get_mut(&id)?;
        group.places.take(node, 1);
        let mut found = None;
        while let Some(wanted) = group.copies.pop_front() {
            self.waiting -= 1;
            if needed(wanted.copy.task) {
                found = Some(wanted);
                break;
            }
        }
        if group.copies.is_empty() {
            group.places.cancel(job, id, fx);
            reserved.groups.remove(&id);
        }
        found
    }

    fn withdrawn(&mut self, copy: CopyId, fx: &mut Effects<'_>) {
        let Some(reserved) = self.jobs.get_mut(copy.task.job) else { return };
        reserved.groups.retain(|&id, group| {
            let before = group.copies.len();
            group.copies.retain(|wanted| wanted.copy != copy);
            self.waiting -= (before - group.copies.len()) as u32;
            if group.copies.is_empty() {
                group.places.cancel(copy.task.job, id, fx);
            }
            !group.copies.is_empty()
        });
    }

    fn close(&mut self, job: JobId, fx: &mut Effects<'_>) {
        for (id, mut group) in self.jobs.close(job).into_iter().flat_map(|reserved| reserved.groups) {
            self.waiting -= group.copies.len() as u32;
            group.places.cancel(job, id, fx);
        }
    }

    /// A node that has a reservation ignores its repetition.
    fn repeat(&mut self, job: JobId, fx: &mut Effects<'_>) {
        let (Some(reserved), Some(timeout)) = (self.jobs.get_mut(job), self.timeout) else { return };
        let (now, mut any) = (fx.now(), false);
        for (&group, held) in reserved.groups.iter_mut().filter(|(_, held)| held.due <= now) {
            any = true;
            for (node, count) in held.places.iter() {
                fx.recover(node, Probe::Reserve { job, group, count, repair: true });
            }
            held.repeated += 1;
            held.arm(job, timeout, fx);
        }
        if any {
            self.top_up(Some(job), fx);
        }
    }

    fn down(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.members.down(actor, fx.layout());
        for group in self.jobs.iter_mut().flat_map(|(_, reserved)| reserved.groups.values_mut()) {
            group.places.forget(actor);
        }
        self.top_up(None, fx);
    }

    fn up(&mut self, actor: ActorId, fx: &mut Effects<'_>) {
        self.members.up(actor, fx.layout());
        self.top_up(None, fx);
    }

    fn cluster(&self, sent: u32, backups: u32) -> Cluster {
        let busy = sent + self.waiting;
        Cluster { slots: self.slots, free: self.slots, busy, waiting: 0, backups }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Harness;
    use crate::machine::{Effect, Input};
    use crate::message::{Job, Launch};
    use crate::roles::speculation::rule::{Action, JobView, NoBackups, Rule};
    use crate::roles::speculation::{CopyBinding, speculate};

    /// The delays of the armed timers.
    fn armed(effects: &[Effect]) -> Vec<Span> {
        let after = |effect: &Effect| match *effect {
            Effect::Arm { timer: Timer::Tick(0), after } => Some(after),
            _ => None,
        };
        effects.iter().filter_map(after).collect()
    }

    /// A scheduler of jobs of one task on four nodes, where datagrams can be lost.
    fn bench(rule: impl Rule + 'static) -> Harness {
        let layout = Layout::new(1, 0, [1; 4]);
        let machine = speculate(rule, CopyBinding::Sparrow, &layout, true, true);
        Harness::new(layout.clone(), layout.scheduler(0), 1, machine)
    }

    /// A job ends and is submitted again while the timer of its first submission is armed. Only the timer of the second
    /// submission repeats requests.
    #[test]
    fn a_job_that_is_submitted_again_is_repeated_by_one_timer() {
        let mut bench = bench(NoBackups);
        let layout = bench.layout.clone();
        let (job, client, node) = (JobId(0), layout.client(0), layout.node(0));
        let [timeout] = armed(&bench.submit(0))[..] else { panic!("not exactly one timer is armed") };
        bench.now += timeout.scale(0.5);
        bench.receive(node, Launch::Completed { copy: job.task(0).copy(0) });
        assert_eq!(armed(&bench.deliver(client, Job::Submit { job, round: 1 })), [timeout]);
        bench.now += timeout.scale(0.5);
        assert_eq!(bench.step(Input::Fire(Timer::Tick(0))), [], "the timer of the first submission is void");
        bench.now += timeout.scale(0.5);
        let repeated = bench.step(Input::Fire(Timer::Tick(0)));
        assert_eq!(armed(&repeated), [timeout.scale(2.0)]);
    }

    /// A rule that sends one more copy of the only task at each check, every 1000 s.
    #[derive(Clone, Debug)]
    struct Later;

    impl Rule for Later {
        fn look(&mut self, view: &JobView<'_>, actions: &mut Vec<Action>) {
            actions.extend(view.attempts.alone().map(|attempt| Action::Backup(attempt.task)));
        }

        fn pause(&self, _: bool) -> Option<Span> {
            Some(Span::from_secs(1000))
        }
    }

    /// The request of a copy that is wanted late is repeated as soon as the request of the job's first copy. No request
    /// waits longer than five minutes.
    #[test]
    fn requests_of_late_copies_are_repeated_as_soon_as_early_requests() {
        let mut bench = bench(Later);
        let job = JobId(0);
        let [timeout] = armed(&bench.submit(0))[..] else { panic!("not exactly one timer is armed") };
        let mut waits = vec![timeout];
        while bench.now < Time::ZERO + Span::from_secs(2000) {
            bench.now += *waits.last().unwrap();
            waits.extend(armed(&bench.step(Input::Fire(Timer::Tick(0)))));
        }
        assert_eq!(waits[..9], [1, 2, 4, 8, 16, 32, 64, 128, 256].map(Span::from_secs));
        assert!(waits[9..].iter().all(|&wait| wait == Span::from_secs(300)), "{waits:?}");
        let node = bench.layout.node(0);
        bench.receive(node, Probe::Claim { job, group: 0, repair: false });
        let late = bench.step(Input::Fire(Timer::Recheck { job, attempt: 1 }));
        assert_eq!(armed(&late), [timeout]);
    }
}
